"""Runs: what each shows of its bug report, and what the whole engine makes of a bug report whose
program always ends like that, on the tests' fakes of everything that runs or fetches.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from pydantic import TypeAdapter

from benchmarks.truth.inputs import JudgedRun, KeptTraining, idioms
from benchmarks.truth.plain import chosen
from benchmarks.truth.stages.issues import issue_of
from benchmarks.truth.stages.stage import Stage
from bot.issues.judge import judge
from bot.issues.observe import observe
from bot.issues.reading import issue
from bot.issues.signature import freeze
from bot.kernel.attempt import Script
from bot.kernel.bug import AnySignature, Issue
from bot.kernel.dialogue import Question
from bot.kernel.job import PROOFS, IssueOptions, ReproduceIssue, TrainingOptions
from bot.kernel.ports import Model, Ports
from bot.kernel.report import IssueReport
from bot.products.engine import execute as run_job
from bot.report.comment import comment
from bot.report.report_json import report_json
from bot.report.terminal import terminal
from sandbox.port import RunResult, RunSpec
from tests.support.engine import FakeBuilder, FrozenClock, ListListener, MemoryJournal
from tests.support.model import ScriptedModel
from tests.support.sandbox import FakeSandbox
from tests.support.source_index import FakeIndexer, FakeSourceIndex

_SIGNATURES: TypeAdapter[AnySignature] = TypeAdapter(AnySignature)
_BARE = IssueOptions(without=PROOFS)
_GIVE_UP = {"action": "give_up", "reason": "nothing more to do", "questions": ["Which version?"]}


def result_of(fields: Any) -> RunResult:
    """A run of the sandbox, from its fields where it is none; `error` is the exception that the
    probe saw, its frames as lists.
    """
    if isinstance(fields, RunResult):
        return fields
    told = dict(fields)
    error = told.pop("error", None)
    ended = {"timed_out", "idle", "signal"} & told.keys()
    told = {"exit_code": None if ended else 0, "seconds": 1.0, **told}
    if error is not None:
        trace = {"main": True, "where": "main", "error": _error(error)}
        told["artifacts"] = {".reprise/trace-1-main.json": json.dumps(trace).encode()}
    return RunResult(**told)


def _error(row: Mapping[str, Any]) -> dict[str, Any]:
    names = ("path", "line", "function", "code")
    frames = [dict(zip(names, frame, strict=True)) for frame in row.get("frames", ())]
    return {**row, "frames": frames, "chained": list(map(_error, row.get("chained", ())))}


def _judgement(case: JudgedRun) -> object:
    if case.signature is not None:
        signature: AnySignature | None = _SIGNATURES.validate_python(case.signature)
    else:
        signature = freeze.freeze(issue.read_issue(issue_of(case.issue)))
    seen = observe(result_of(case.result))
    script = Script(files={"repro.py": case.program})
    return {
        "observation": chosen(seen, "failures", "refused", "doubt", "output"),
        "judgement": judge(seen, signature, script) if signature is not None else None,
    }


def reported(case: JudgedRun) -> IssueReport:
    """The report on a bug report whose program always ends in the same way."""
    return _report(ReproduceIssue(issue=issue_of(case.issue), **dict(_BARE)), _sandbox(case.result))


def _report(job: ReproduceIssue, sandbox: FakeSandbox, model: Model | None = None) -> IssueReport:
    return run_job(job, _ports(sandbox, model))


def _ports(sandbox: FakeSandbox, model: Model | None) -> Ports:
    index = FakeIndexer(_index()) if model is not None else None
    return Ports(
        sandbox=sandbox,
        builder=FakeBuilder(),
        journal=MemoryJournal(),
        clock=FrozenClock(),
        listener=ListListener(),
        model=model,
        indexer=index,
    )


@cache
def _index() -> FakeSourceIndex:
    """Sources to point a model at: the idioms of training, as if they were installed."""
    return FakeSourceIndex({f"pool/{name}.py": text for name, text in idioms().items()})


def _sandbox(result: Any) -> FakeSandbox:
    made = result_of(result)
    return FakeSandbox(lambda _: made)


def printed(report: IssueReport) -> dict[str, object]:
    """A report as it is published and shown, without the version and how long it took."""
    draft = report.draft()
    draft.seconds, draft.version = {}, "0"
    report = draft.finish()
    return {
        "report.json": report_json(report),
        "comment": comment(report, run="run-1"),
        "terminal": terminal(report, run="runs/run-1", width=100),
    }


def _whole(case: JudgedRun) -> object:
    sandbox = _sandbox(case.result)
    report = _report(ReproduceIssue(issue=issue_of(case.issue), **dict(_BARE)), sandbox)
    return printed(report) | {"started": _started(sandbox)}


def _started(sandbox: FakeSandbox) -> object:
    """How the first run was started, without what the probe is and its secret; and what the runs
    were for.
    """
    first: RunSpec | None = next(iter(sandbox.specs), None)
    labels = [spec.label for spec in sandbox.specs]
    if first is None:
        return labels
    env = {name: value for name, value in first.env.items() if "KEY" not in name}
    told = {"argv": first.argv, "env": env, "limits": first.limits, "files": set(first.files)}
    return {**told, "artifacts": first.artifacts, "labels": labels}


def _diagnosed(case: tuple[Any, KeptTraining]) -> object:
    source, kept = case
    artifacts = {f".reprise/{name}": data for name, data in kept.artifacts.items()}
    result = RunResult(exit_code=0, stdout=kept.output, seconds=1.0, artifacts=artifacts)
    options = IssueOptions(without=PROOFS, training=TrainingOptions())
    return printed(
        _report(ReproduceIssue(issue=issue_of(source), **dict(options)), _sandbox(result))
    )


def _questions(source: Any) -> object:
    """What a model is asked about a bug report, one that reads what the report says as a crash and
    then gives up.
    """
    issue = issue_of(source)
    model = ScriptedModel(lambda question: _answer(question, issue))
    report = _report(ReproduceIssue(issue=issue, **dict(_BARE)), _sandbox({}), model)
    told = [{"prompt": asked.prompt, "messages": asked.messages} for asked in model.asked]
    return {"asked": told, **printed(report)}


def _answer(question: Question, issue: Issue) -> dict[str, Any]:
    if question.prompt.partition("@")[0] == "act":
        return {"thought": "as it says", "context": 0, "actions": [_GIVE_UP]}
    observation = {
        "name": "fails",
        "says": "whether it fails",
        "wrong": {"op": "==", "value": True},
        "right": {"op": "==", "value": False},
    }
    package = issue.repository.rpartition("/")[2] or "pool"
    return {
        "claim": "It fails.", "kind": "observation", "sign_if_right": False, "needs": "",
        "api": [f"{package}.fit"], "packages": [package], "pins": [], "questions": [],
        "quotes": [issue.title[:80]], "crash": None, "warning": None,
        "training": None, "observation": observation,
    }  # fmt: skip


STAGES = (
    Stage("report", lambda inputs: inputs.whole_runs, _whole),
    Stage("report-of-training", lambda inputs: inputs.diagnosed_issues, _diagnosed),
    Stage("questions", lambda inputs: inputs.saved_issues, _questions),
    Stage("judgement", lambda inputs: inputs.runs, _judgement),
)
