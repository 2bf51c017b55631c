"""Files that are written whole or not at all, also when the power fails."""

import os
from pathlib import Path
from typing import IO


def write(path: Path, text: str, mode: int = 0o666) -> None:
    """Write a whole file or none: to a temporary name, to disk, then renamed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.reprise-part")
    part.unlink(missing_ok=True)
    try:
        opened = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(opened, "wb") as file:
            file.write(text.encode("utf-8", "replace"))
            sync(file)
        part.replace(path)
    except OSError:
        part.unlink(missing_ok=True)
        raise
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def sync(file: IO[str] | IO[bytes]) -> None:
    """Bring what was written to the disk."""
    file.flush()
    os.fsync(file.fileno())
