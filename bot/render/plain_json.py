"""PublishedData data: the base of its classes, and as JSON can hold it: texts cleaned, NaN and
infinities as strings.
"""

import math
from collections.abc import Callable
from typing import Any

from pydantic import BaseModel, ConfigDict


class PublishedData(BaseModel):
    """The base of what report.json and diagnosis.json hold."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        from_attributes=True,
        ser_json_inf_nan="strings",
        json_schema_serialization_defaults_required=True,
    )


def plain(value: Any, clean: Callable[[str], str]) -> Any:
    """The same data, every text of it cleaned."""
    match value:
        case float() if not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        case str():
            return clean(value).encode("utf-8", "replace").decode()
        case list():
            return [plain(item, clean) for item in value]
        case dict():
            return {key: plain(item, clean) for key, item in value.items()}
    return value
