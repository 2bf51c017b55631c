"""What the tests of the endpoint share: one question, one model before a faulty endpoint, and
how long it took.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any

from bot.kernel.dialogue import Message, Question
from bot.model.chat import ChatModel
from bot.model.endpoint import Endpoint, Structured
from bot.model.usage import Price, Prices

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}},
    "required": ["name"],
    "additionalProperties": False,
}
QUESTION = Question(
    role="reader",
    prompt="read@v1#0123456789ab",
    messages=(
        Message(role="system", content="You read."),
        Message(role="user", content="What is it called?"),
    ),
    answer_schema=SCHEMA,
    most_tokens=500,
)
RIGHT = {"name": "Conv2d"}
SAID = json.dumps(RIGHT)
KEY = "sk-k3y-of-the-test-0123456789"
PRICE = Price(input=2, output=8)


def model(
    url: str,
    *names: str,
    key: str = KEY,
    timeout_s: float = 5.0,
    stall_s: float = 2.0,
    structured: Structured = "auto",
    writer: str = "",
    prices: Prices | None = None,
) -> ChatModel:
    endpoint = Endpoint(url, key, stall_s=stall_s, structured=structured, backoff_s=0.01)
    used = names or ("m",)
    known = dict.fromkeys(used, PRICE) if prices is None else prices
    return ChatModel(
        endpoint,
        {"reader": used, "writer": (writer,) if writer else used},
        timeout_s=timeout_s,
        prices=known,
    )


@contextmanager
def within(seconds: float, *, least: float = 0.0) -> Iterator[None]:
    started = monotonic()
    yield
    took = monotonic() - started
    assert least <= took < seconds, f"took {took:.2f} s"


def by_model(acts: dict[str, Any]) -> Callable[[dict[str, Any]], Any]:
    return lambda body: acts[body["model"]]
