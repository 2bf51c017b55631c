"""A verdict is held against its key by kind and by what the confirming runs printed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.scoring import Key, load_key, score
from bot.kernel.errors import UserError

STACK = (
    "Traceback (most recent call last):\n  File 'x.py'\nlib.errors.ShapeError: got (4,) and (0,)\n"
)


def finished(
    folder: Path, kind: str, *logs: str, purpose: str = "confirm", match: str = "matched"
) -> Path:
    """A run folder with one attempt a log."""
    (folder / "logs").mkdir()
    attempts = []
    for number, text in enumerate(logs, start=1):
        name = f"logs/{number}.txt"
        (folder / name).write_text(text)
        attempts.append(
            {"purpose": purpose, "judgement": {"match": match}, "execution": {"log": name}}
        )
    (folder / "report.json").write_text(
        json.dumps({"verdict": {"kind": kind}, "attempts": attempts})
    )
    return folder


def key(*verdicts: str, **expected: str) -> Key:
    return Key.model_validate({"id": "x", "right_verdicts": verdicts, "expected": expected})


CRASH = {"exception_type": "errors.ShapeError", "message_regex": r"got \(\d,\)"}


def test_the_reported_crash_in_every_confirming_run_is_right(tmp_path: Path) -> None:
    assert (
        score(finished(tmp_path, "reproduced", STACK, STACK), key("reproduced", **CRASH)).right
        is True
    )


@pytest.mark.parametrize(
    "other", ["lib.errors.ShapeError: got nothing", "ValueError: got (4,) and (0,)", ""]
)
def test_one_confirming_run_that_shows_something_else_makes_it_a_false_reproduced(
    tmp_path: Path, other: str
) -> None:
    result = score(finished(tmp_path, "reproduced", STACK, other), key("reproduced", **CRASH))
    assert (result.right, result.false_reproduced) == (False, True)


@pytest.mark.parametrize(("purpose", "match"), [("search", "matched"), ("confirm", "passed")])
def test_runs_that_do_not_confirm_are_no_evidence(tmp_path: Path, purpose: str, match: str) -> None:
    run = finished(tmp_path, "reproduced", STACK, purpose=purpose, match=match)
    assert score(run, key("reproduced", **CRASH)).false_reproduced


def test_reproduced_where_the_key_says_otherwise_is_a_false_reproduced(tmp_path: Path) -> None:
    result = score(finished(tmp_path, "reproduced", STACK), key("not_a_bug", "needs_info"))
    assert (result.right, result.false_reproduced) == (False, True)
    assert "not_a_bug or needs_info" in result.reason


def test_a_missed_bug_is_wrong_but_not_false(tmp_path: Path) -> None:
    result = score(finished(tmp_path, "needs_info"), key("reproduced", **CRASH))
    assert (result.right, result.false_reproduced) == (False, False)


def test_a_silent_bug_needs_eyes_only_when_the_kind_is_right(tmp_path: Path) -> None:
    silent = key("reproduced", silent_oracle="prints 3 instead of 4")
    assert score(finished(tmp_path, "reproduced", "3"), silent).right is None
    other = tmp_path / "other"
    other.mkdir()
    assert score(finished(other, "not_reproduced", "4"), silent).right is False


def test_without_words_about_the_failure_the_kind_decides(tmp_path: Path) -> None:
    assert score(finished(tmp_path, "reproduced", "anything"), key("reproduced")).right is True


def test_a_log_that_is_gone_is_no_evidence(tmp_path: Path) -> None:
    run = finished(tmp_path, "reproduced", STACK)
    (run / "logs/1.txt").unlink()
    assert score(run, key("reproduced", **CRASH)).false_reproduced


def test_a_case_without_a_key_is_one_clear_sentence(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="AFB-1 has no key"):
        load_key(tmp_path, "AFB-1")
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys/AFB-1.json").write_text("{}")
    with pytest.raises(UserError, match="is not a key"):
        load_key(tmp_path, "AFB-1")
