"""Records without credentials and without characters that cannot be seen."""

from collections.abc import Mapping
from typing import Any, TypeVar

from bot.models.base import Record
from bot.text.sanitize import clean, redact

R = TypeVar("R", bound=Record)


def scrubbed(record: R, secrets: tuple[str, ...] = ()) -> R:
    """The record with every text in it cleaned; `secrets` are values that must not appear."""

    def scrub(value: Any) -> Any:
        match value:
            case str():
                return redact(clean(value), secrets)
            case Mapping():
                return {scrub(key): scrub(item) for key, item in value.items()}
            case list() | tuple():
                return tuple(map(scrub, value))
        return value

    return type(record).model_validate(scrub(record.model_dump()))
