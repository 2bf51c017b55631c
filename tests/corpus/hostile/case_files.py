"""Hostile issues, comments and repositories with what must hold of each: a few readable files."""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "cases"
_REFINE: dict[str, Any] = {
    "claim": "json.loads accepts NaN.",
    "kind": "observation",
    "sign_if_right": False,
    "needs": "",
    "api": ["json.loads"],
    "packages": [],
    "pins": [],
    "quotes": [],
    "crash": None,
    "warning": None,
    "training": None,
    "observation": {
        "name": "accepts_nan",
        "says": "whether json.loads accepts NaN",
        "wrong": {"op": "==", "value": True},
        "right": {"op": "==", "value": False},
    },
    "questions": [],
}
_ACT: dict[str, Any] = {"thought": "as the report says", "context": 0}
_END = {"actions": [{"action": "give_up", "reason": "nothing more to do", "questions": []}]}


@dataclass(frozen=True)
class Case:
    """One attack and what must hold. `answers` are what a model that obeys answers, in order; a
    text stands as it is, a table fills in a fitting answer. `files` make the repository that is
    cloned (one that begins with "-> " is a link), `wheels` and `sources` (name to files) the package index. `comment` asks for the run
    as `sender`; without one the issue was just opened. `verdict` lists the kinds that are right,
    none when nothing may run; `replies` counts the comments beside the sticky one. `hides` must not be in the comment or on the page, `shows` must be
    in one of them.
    """

    id: str
    attacks: str
    verdict: tuple[str, ...]
    body: str = ""
    title: str = "json.loads accepts NaN"
    answers: tuple[str, ...] = ()
    structured: str = "auto"
    files: dict[str, str] = field(default_factory=dict)
    wheels: dict[str, dict[str, str]] = field(default_factory=dict)
    sources: dict[str, dict[str, str]] = field(default_factory=dict)
    config: str = "defaults:\n  proofs: []\n  timeout: 20\n  runs: 10\n"
    comment: str = ""
    sender: str = "max"
    replies: int = 0
    hides: tuple[str, ...] = ()
    shows: tuple[str, ...] = ()
    slow: str = ""
    broken: str = ""


def inflated(text: str) -> str:
    """A text of a case; "@1000 x" is a thousand x."""
    times, _, piece = text.partition(" ")
    return piece * int(times[1:]) if times[:1] == "@" and times[1:].isdigit() else text


def cases() -> tuple[Case, ...]:
    """Every case of every file."""
    return tuple(_case(entry) for path in sorted(FOLDER.glob("*.toml")) for entry in _of(path))


def _of(path: Path) -> list[dict[str, Any]]:
    read = tomllib.loads(path.read_text(encoding="utf-8"))
    return [{"id": entry.pop("id"), **read.get("all", {}), **entry} for entry in read["case"]]


def _case(entry: dict[str, Any]) -> Case:
    given = entry.pop("answers", [])
    acts = any("actions" in each for each in given if isinstance(each, dict))
    answers = tuple(map(_answer, [*given, *([_END] if acts else [])]))
    for key in {"body", "comment"} & entry.keys():
        entry[key] = inflated(entry[key])
    fixed: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()
    }
    return Case(answers=answers, **fixed)


def _answer(given: str | dict[str, Any]) -> str:
    if isinstance(given, str):
        return inflated(given)
    if "actions" in given:
        return json.dumps(_ACT | given)
    absent = {key: None for key in ("crash", "warning", "observation") if given.get(key) is False}
    return json.dumps(_REFINE | given | absent)
