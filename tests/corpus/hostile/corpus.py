"""The hostile texts: two readable files, with the long ones made longer here."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Hostile:
    """One text and what it attacks; the fields are explained at the head of each file."""

    id: str
    attacks: str
    text: str
    title: str = "Training fails"
    hides: tuple[str, ...] = ()
    shows: tuple[str, ...] = ()
    commands: int = 0
    fill: int = 0

    def __post_init__(self) -> None:
        if self.fill:
            object.__setattr__(
                self, "text", (self.text * (self.fill // len(self.text) + 1))[: self.fill]
            )


def load(name: str) -> tuple[Hostile, ...]:
    """The texts of a file, "incoming" or "outgoing"."""
    entries = tomllib.loads((HERE / f"{name}.toml").read_text(encoding="utf-8"))["text"]
    return tuple(Hostile(**_fields(each)) for each in entries)


def _fields(entry: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(x) if isinstance(x, list) else x for key, x in entry.items()}
