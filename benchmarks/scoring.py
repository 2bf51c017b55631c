"""Holds a finished run folder against its key; the one module that reads keys, and only after
the run.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from bot.kernel.errors import UserError
from bot.kernel.values import Record


class Expected(BaseModel):
    """What the failing program was seen to do. A silent oracle is words for a person to hold the
    run against.
    """

    model_config = ConfigDict(frozen=True)

    exception_type: str | None = None
    message_regex: str | None = None
    silent_oracle: str | None = None


class Key(BaseModel):
    """The answer to one case; fields that scoring does not use are ignored."""

    model_config = ConfigDict(frozen=True)

    id: str
    kind: str = "other"
    right_verdicts: tuple[str, ...]
    expected: Expected = Expected()
    body_has_runnable_code: bool = False
    fix_hint: str | None = None


class Score(Record):
    """Whether a verdict is right; None when its kind is right but a person must look at what the
    program printed.
    """

    right: bool | None
    false_reproduced: bool = False
    reason: str = ""


def load_key(folder: Path, case: str) -> Key:
    """The key of a case, from the folder `keys` beside `cases`."""
    path = folder / "keys" / f"{case}.json"
    try:
        return Key.model_validate_json(path.read_bytes())
    except FileNotFoundError as error:
        raise UserError(
            f"{case} has no key.", f"Add {path}, or leave the case out with --only."
        ) from error
    except ValidationError as error:
        raise UserError(
            f"{path} is not a key.", "It needs at least `id` and `right_verdicts`."
        ) from error


def score(run: Path, key: Key) -> Score:
    """Judge the report in a run folder: the kind of verdict, and for `reproduced` what its
    confirming runs printed.
    """
    report = json.loads((run / "report.json").read_bytes())
    kind = report["verdict"]["kind"]
    if kind not in key.right_verdicts:
        return Score(
            right=False,
            false_reproduced=kind == "reproduced",
            reason=f"{kind} instead of {' or '.join(key.right_verdicts)}",
        )
    if kind != "reproduced":
        return Score(right=True)
    patterns = _patterns(key.expected)
    if not patterns:
        return (
            Score(right=None, reason=key.expected.silent_oracle)
            if key.expected.silent_oracle
            else Score(right=True)
        )
    return _held(evidence(run, report), patterns)


_INSTALLED = re.compile(r'File "[^"\n]*site-packages/([\w./-]+\.py)", line \d+')
_SOURCE = re.compile(r"[\w./-]+/[\w-]+\.py")


def touched(folder: Path, case: str, answers: Path | None = None) -> tuple[str, ...]:
    """The installed files that a case is about: those its key says the fix touched, else the
    frame its key names, else the innermost frame of its own package in what was seen. `answers`
    maps ids to files and comes first.
    """
    if answers is not None:
        known: dict[str, list[str]] = json.loads(answers.read_bytes())
        if case in known:
            return tuple(known[case])
    key = json.loads((folder / "keys" / f"{case}.json").read_bytes())
    if key.get("fix_files"):
        return tuple(key["fix_files"])
    framed = _SOURCE.findall((key.get("expected") or {}).get("frame") or "")
    if framed:
        return (str(framed[0]),)
    seen = [
        path
        for path in _INSTALLED.findall(key.get("verified_output") or "")
        if path.partition("/")[0] != "torch"
    ]
    return (str(seen[-1]),) if seen else ()


def evidence(run: Path, report: dict[str, Any]) -> tuple[str, ...]:
    """What each confirming run that met the signature printed."""
    confirming = [
        attempt
        for attempt in report["attempts"]
        if attempt["purpose"] in ("confirm", "repeat")
        and attempt["judgement"]["match"] == "matched"
    ]
    return printed(run, confirming)


def printed(run: Path, attempts: list[dict[str, Any]]) -> tuple[str, ...]:
    """What each of these runs printed."""
    return tuple(_log(run, attempt["execution"]["log"]) for attempt in attempts)


def shows(texts: tuple[str, ...], key: Key) -> bool | None:
    """Whether each of these texts, and at least one, holds what a key expects; None for a key
    without a pattern.
    """
    patterns = _patterns(key.expected)
    return (_held(texts, patterns).right is True) if patterns else None


def _patterns(expected: Expected) -> tuple[str, ...]:
    name = (expected.exception_type or "").rpartition(".")[2]
    named = rf"\b{re.escape(name)}\b" if name else ""
    return tuple(pattern for pattern in (named, expected.message_regex or "") if pattern)


def _held(printed: tuple[str, ...], patterns: tuple[str, ...]) -> Score:
    if not printed:
        return Score(
            right=False, false_reproduced=True, reason="no confirming run stands behind the verdict"
        )
    for text in printed:
        for pattern in patterns:
            if not re.search(pattern, text):
                return Score(
                    right=False,
                    false_reproduced=True,
                    reason=f"a confirming run does not show {pattern}",
                )
    return Score(right=True)


def _log(run: Path, name: str) -> str:
    path = run / name
    return path.read_text(errors="replace") if name and path.is_file() else ""
