"""Settings → the model they name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot.adapters.model.counting import Price
from bot.errors import UserError
from bot.settings import Settings

if TYPE_CHECKING:
    from bot.adapters.model.chat import ChatModel


def configured(settings: Settings, name: str = "") -> ChatModel | None:
    """The model of the settings; `name` (one, or a cascade with commas) replaces both of its
    roles. None when no model is named; UserError when one is, but no endpoint.
    """
    readers, writers = names(name or settings.model_reader), names(name or settings.model_writer)
    if not readers and not writers:
        return None
    url, key = settings.model_endpoint
    if not url:
        raise UserError(
            "A model is named, but no endpoint is set.",
            "Set REPRISE_MODEL_URL, and REPRISE_MODEL_KEY if it needs a key.",
        )
    # Importing the SDK takes more than a second, which runs without a model need not wait for.
    from bot.adapters.model.chat import ChatModel
    from bot.adapters.model.endpoint import Endpoint

    return ChatModel(
        Endpoint(url, key, stall_s=settings.model_stall_s, structured=settings.model_structured),
        {"reader": readers or writers, "writer": writers or readers},
        timeout_s=settings.model_timeout_s,
        prices={
            model: Price(input=read, output=written)
            for model, (read, written) in (settings.model_prices or {}).items()
        },
    )


def names(text: str) -> tuple[str, ...]:
    """The models of a cascade, written with commas between."""
    return tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
