"""What a model was asked and answered, in a file: a line each, whole whatever is killed."""

import os
from pathlib import Path

from pydantic import ValidationError

from bot.adapters.files import sync
from bot.errors import UserError
from bot.models.base import Record
from bot.models.dialogue import Exchange


class ExchangeFile:
    """Exchanges in a file, a line each. A file that is there already is gone on with, after what
    a kill left unfinished of its last line is taken off. `exchanges` raises UserError when it
    holds something else.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        cut_unfinished(path)

    def exchange(self, exchange: Exchange) -> None:
        """Write one exchange, to the disk."""
        append(self._path, exchange, exclude_defaults=True)

    def exchanges(self) -> tuple[Exchange, ...]:
        """Those that the file holds."""
        return recorded(self._path) if self._path.exists() else ()


def recorded(path: Path) -> tuple[Exchange, ...]:
    """Every exchange of a file; a last line that a kill left unfinished is passed over. Raises
    UserError when it is none.
    """
    try:
        *lines, _ = path.read_bytes().split(b"\n")
    except OSError as error:
        raise UserError(
            f"{path} cannot be read ({error.strerror}).",
            "Give the folder of a run that asked a model.",
        ) from None
    found = []
    for number, line in enumerate(lines, 1):
        try:
            found.append(Exchange.model_validate_json(line))
        except ValidationError:
            raise UserError(
                f"Line {number} of {path} is not a recorded exchange.", "Record again with a model."
            ) from None
    return tuple(found)


def append(path: Path, record: Record, *, exclude_defaults: bool = False) -> None:
    """Append a record as a line, to the disk. A line that a kill cut short has no newline."""
    with path.open("ab") as file:
        file.write(record.model_dump_json(exclude_defaults=exclude_defaults).encode() + b"\n")
        sync(file)


def cut_unfinished(path: Path) -> None:
    """Take off the part of a last line that a kill left unfinished."""
    content = path.read_bytes() if path.exists() else b""
    whole = content.rfind(b"\n") + 1
    if whole < len(content):
        os.truncate(path, whole)
