"""What every store does to outside text before it keeps it: no database may refuse it, none may be filled by it."""

from __future__ import annotations

import re
from typing import TypeVar

from pydantic_core import PydanticSerializationError

from bot.models.base import Record

MOST_LOG = 400_000
MOST_LINE = 1_000

_REFUSED = re.compile("[\0\ud800-\udfff]")
_LONE = re.compile("[\ud800-\udfff]")
R = TypeVar("R", bound=Record)


def text(value: str) -> str:
    """Text that every database takes: PostgreSQL knows no NUL character, and half a surrogate pair is not UTF-8."""
    return _REFUSED.sub("\ufffd", value)


def line(value: str) -> str:
    """The same for what belongs on one line of a status."""
    return text(value[:MOST_LINE])


def log(value: str) -> str:
    """The same for a log; of a long one the beginning and the end are kept, where the causes stand."""
    if len(value) > MOST_LOG:
        half = MOST_LOG // 2
        value = f"{value[:half]}\n[... {len(value) - 2 * half} characters left out ...]\n{value[-half:]}"
    return text(value)


def json(record: Record) -> str:
    """A record as JSON; NUL is escaped there, lone surrogates are replaced."""
    try:
        return record.model_dump_json()
    except PydanticSerializationError:
        return type(record).model_validate(_whole(record.model_dump())).model_dump_json()


def record(value: R) -> R:
    """A record as it comes back from a store."""
    return type(value).model_validate_json(json(value))


def _whole(value: object) -> object:
    if isinstance(value, str):
        return _LONE.sub("\ufffd", value)
    if isinstance(value, dict):
        return {_whole(key): _whole(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_whole(each) for each in value]
    return value
