"""Settings → the model that they name."""

from __future__ import annotations

from bot.adapters.model.chat import ChatModel
from bot.adapters.model.counting import Price
from bot.adapters.model.endpoint import Endpoint
from bot.errors import UserError
from bot.settings import Settings


def configured(settings: Settings, name: str = "") -> ChatModel | None:
    """The model that the host has set; `name` (one, or a cascade with commas) stands in for both of its roles. None when no
    model is named; UserError when one is, but no endpoint.
    """
    readers, writers = names(name or settings.model_reader), names(name or settings.model_writer)
    if not readers and not writers:
        return None
    url, key = settings.model_endpoint
    if not url:
        raise UserError(
            "A model is named, but no endpoint is set.", "Set REPRISE_MODEL_URL, and REPRISE_MODEL_KEY when it wants a key."
        )
    return ChatModel(
        Endpoint(url, key, stall_s=settings.model_stall_s, structured=settings.model_structured),
        {"reader": readers or writers, "writer": writers or readers},
        timeout_s=settings.model_timeout_s,
        prices={model: Price(input=each[0], output=each[1]) for model, each in (settings.model_prices or {}).items()},
    )


def names(text: str) -> tuple[str, ...]:
    """A cascade as it is written: names with commas between."""
    return tuple(dict.fromkeys(each.strip() for each in text.split(",") if each.strip()))
