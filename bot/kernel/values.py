"""The base of all value types: frozen, closed, and able to carry NaN through JSON."""

from pydantic import BaseModel, ConfigDict


class Record(BaseModel):
    """An immutable value. NaN and infinities are written as strings, so that they survive JSON."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", ser_json_inf_nan="strings", val_json_bytes="base64"
    )
