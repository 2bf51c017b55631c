"""`python -m benchmarks issues` from a folder of cases to figures, on the real pipeline with a
sandbox that answers from a script.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from threading import Event

import pytest

from benchmarks.runner import Case, find_cases, run_cases
from benchmarks.summary import Row
from bot.cli.sources import from_text
from bot.kernel.attempt import Attempt, Execution, Judgement, Match, Script
from bot.kernel.errors import TransientError, UserError
from bot.kernel.journal import LOGS, log_name
from bot.kernel.ports import Listener, Progress
from bot.kernel.report import AnyVerdict, Cancelled, IssueReport, NotABug, Reproduced
from bot.kernel.session import run_log
from bot.report.report_json import report_text
from bot.report.run_folder import Folder
from sandbox.port import RunResult
from tests.support.fakes import ListListener
from tests.support.jobs import issue_job

MET = Judgement(match=Match.MATCHED, reason="it failed as reported")
SAID = "Traceback (most recent call last):\nKeyError: 'lr'\n"


def bench(folder: Path, **keys: dict[str, object]) -> Path:
    """A bench of one case for each key."""
    for part in ("cases", "keys"):
        (folder / part).mkdir(parents=True)
    for name, key in keys.items():
        issue = {
            "title": f"{name} fails",
            "body": "it does",
            "number": 1,
            "repository": {"full_name": "a/b"},
        }
        (folder / "cases" / f"{name}.json").write_text(json.dumps(issue))
        (folder / "keys" / f"{name}.json").write_text(
            json.dumps({"id": name, "kind": "crash", **key})
        )
    return folder


def reproducer(
    printed: dict[str, str | Exception], calls: list[str]
) -> Callable[[Case, Path, Listener], dict[str, float]]:
    """Reproduces by printing; a case that prints nothing is no bug."""

    def reproduce(case: Case, run: Path, listener: Listener) -> dict[str, float]:
        calls.append(case.id)
        listener(Progress(stage="search", text="running"))
        said = printed[case.id]
        folder = Folder(run)
        try:
            if isinstance(said, Exception):
                raise said
            folder.begin(issue_job(from_text(case.path.read_text(), case.path.name)))
            report = _report(case, folder, said)
            folder.finish(
                report, json_text=report_text(report), markdown="", state=report.model_dump_json()
            )
        finally:
            folder.close()
        return {"overhead": 1.25}

    return reproduce


def _report(case: Case, folder: Folder, said: str) -> IssueReport:
    issue = from_text(case.path.read_text(), case.path.name)
    verdict: AnyVerdict = NotABug(reason="a question", sentence="it does")
    attempts: tuple[Attempt, ...] = ()
    if said == "stopped":
        verdict = Cancelled(reason="stopped on request")
    elif said:
        script = Script(files={"repro.py": "x"})
        folder.append(LOGS, run_log(1, script, RunResult(exit_code=1, stderr=said)))
        execution = Execution(exit_code=1, seconds=0.5, log=log_name(1))
        verdict = Reproduced(
            runs=1, failures=1, interval=(0.1, 1.0), reason="met", determinism="deterministic"
        )
        attempts = (
            Attempt(
                number=1,
                purpose="confirm",
                script=script.digest,
                origin="fence 1",
                environment="e",
                execution=execution,
                judgement=MET,
            ),
        )
    return IssueReport(issue=issue, verdict=verdict, attempts=attempts, seconds={"total": 2.0})


def run(
    folder: Path,
    out: Path,
    printed: dict[str, str | Exception],
    calls: list[str],
    fresh: bool = False,
) -> dict[str, Row]:
    heard = ListListener()
    rows = run_cases(
        find_cases(folder),
        out,
        reproducer(printed, calls),
        jobs=2,
        fresh=fresh,
        cancel=Event(),
        hear=lambda case: heard,
    )
    return {row.id: row for row in rows}


def test_cases_are_run_scored_kept_and_not_run_again(tmp_path: Path) -> None:
    folder = bench(
        tmp_path / "bench",
        hit={
            "right_verdicts": ["reproduced"],
            "expected": {"exception_type": "KeyError", "message_regex": "'lr'"},
        },
        slide={"right_verdicts": ["reproduced"], "expected": {"exception_type": "ValueError"}},
        question={"right_verdicts": ["not_a_bug"]},
        offline={"right_verdicts": ["reproduced"]},
        halted={"right_verdicts": ["reproduced"]},
    )
    printed: dict[str, str | Exception] = {
        "hit": SAID,
        "slide": SAID,
        "question": "",
        "offline": TransientError("no index answers"),
        "halted": "stopped",
    }
    out, calls = tmp_path / "out", list[str]()
    rows = run(folder, out, printed, calls)
    assert {name: (row.verdict, row.right, row.false_reproduced) for name, row in rows.items()} == {
        "hit": ("reproduced", True, False),
        "slide": ("reproduced", False, True),
        "question": ("not_a_bug", True, False),
        "offline": (None, False, False),
    }
    assert rows["offline"].error == "TransientError: no index answers"
    assert "no index answers" in (out / "offline.crash.txt").read_text()
    assert (rows["hit"].runs, rows["hit"].seconds, rows["hit"].overhead) == (1, 2.0, 1.25)
    assert Path(rows["hit"].report).is_file()

    calls.clear()
    again = run(folder, out, printed, calls)
    assert sorted(calls) == ["halted", "offline"]
    assert again["hit"] == rows["hit"].model_copy(update={"kept": True})

    calls.clear()
    run(folder, out, printed, calls, fresh=True)
    assert sorted(calls) == ["halted", "hit", "offline", "question", "slide"]


def test_a_set_flag_starts_nothing_more(tmp_path: Path) -> None:
    folder, calls, cancel = (
        bench(tmp_path / "b", one={"right_verdicts": ["reproduced"]}),
        list[str](),
        Event(),
    )
    cancel.set()
    work = reproducer({"one": SAID}, calls)
    assert (
        list(
            run_cases(
                find_cases(folder),
                tmp_path,
                work,
                jobs=1,
                fresh=False,
                cancel=cancel,
                hear=lambda _: ListListener(),
            )
        )
        == []
    )
    assert calls == []


def test_cases_are_picked_by_the_beginning_of_their_id(tmp_path: Path) -> None:
    folder = bench(
        tmp_path,
        **{name: {"right_verdicts": ["reproduced"]} for name in ("AFB-1", "AFB-2", "TRAP-x")},
    )
    assert [case.id for case in find_cases(folder, ["AFB", "TRAP-x"])] == [
        "AFB-1",
        "AFB-2",
        "TRAP-x",
    ]
    with pytest.raises(UserError, match="No case begins with ZZZ"):
        find_cases(folder, ["ZZZ"])
    with pytest.raises(UserError, match="holds no cases"):
        find_cases(tmp_path / "nowhere")
