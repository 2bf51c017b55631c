"""Files that are written whole or not at all, also when the power fails, and records that are
appended to one, a line each.
"""

import os
from pathlib import Path
from typing import IO, TypeVar

from pydantic import ValidationError

from bot.errors import UserError
from bot.models.base import Record

R = TypeVar("R", bound=Record)


def write(path: Path, text: str, mode: int = 0o666) -> None:
    """Write a whole text file or none: to a temporary name, to disk, then renamed."""
    write_bytes(path, text.encode("utf-8", "replace"), mode)


def write_bytes(path: Path, data: bytes, mode: int = 0o666) -> None:
    """Write a whole file or none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.reprise-part")
    part.unlink(missing_ok=True)
    try:
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            file.write(data)
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


def recorded(path: Path, kind: type[R]) -> tuple[R, ...]:
    """Every record of a file but a last line that a kill left unfinished. Raises UserError."""
    try:
        *lines, _ = path.read_bytes().split(b"\n")
    except OSError as error:
        hint = "Pass the folder of a run that asked a model."
        raise UserError(f"{path} cannot be read ({error.strerror}).", hint) from None
    found = []
    for number, line in enumerate(lines, 1):
        try:
            found.append(kind.model_validate_json(line))
        except ValidationError:
            raise UserError(
                f"Line {number} of {path} is not a recorded {kind.__name__.lower()}.",
                "Start again in a new folder.",
            ) from None
    return tuple(found)


def append(path: Path, record: Record) -> None:
    """Append a record as a line, to the disk. A line that a kill cut short has no newline."""
    with path.open("ab") as file:
        file.write(record.model_dump_json().encode() + b"\n")
        sync(file)


def cut_unfinished(path: Path) -> None:
    """Take off the part of a last line that a kill left unfinished."""
    content = path.read_bytes() if path.exists() else b""
    whole = content.rfind(b"\n") + 1
    if whole < len(content):
        os.truncate(path, whole)
