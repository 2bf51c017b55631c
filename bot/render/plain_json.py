"""What the published JSON files share: the base of their classes, and data as JSON can hold it,
with texts cleaned and NaN and infinities as strings.
"""

import json
import math
from collections.abc import Callable
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict

Absent = Annotated[str | None, BeforeValidator(lambda text: text or None)]
"""A text that is null where there is none."""


class PublishedData(BaseModel):
    """The base of what report.json and diagnosis.json hold; read from the models themselves."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        from_attributes=True,
        ser_json_inf_nan="strings",
        json_schema_serialization_defaults_required=True,
    )

    def to_json(self, clean: Callable[[str], str]) -> dict[str, Any]:
        """Plain data, every text of it cleaned; names of fields stay."""
        data = self.model_dump(mode="json", by_alias=True)
        return {key: _plain(value, clean) for key, value in data.items()}


def json_text(data: dict[str, Any]) -> str:
    """A file: indented, one final newline, characters as they are."""
    return json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _plain(value: Any, clean: Callable[[str], str]) -> Any:
    match value:
        case float() if not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        case str():
            return clean(value).encode("utf-8", "replace").decode()
        case list():
            return [_plain(item, clean) for item in value]
        case dict():
            return {key: _plain(item, clean) for key, item in value.items()}
    return value
