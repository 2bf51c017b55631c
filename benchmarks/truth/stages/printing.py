"""What people and machines are shown: reports of every verdict in every form, comments and replies,
regression tests and the pull request that has one.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, get_args

from benchmarks.truth.inputs import Inputs, JudgedRun
from benchmarks.truth.stages.runs import reported
from benchmarks.truth.stages.stage import Stage
from bot.issues.proposal.propose import propose
from bot.issues.verdicts import KINDS
from bot.kernel.files import RepositoryFiles
from bot.kernel.job import Proof
from bot.kernel.report import IssueReport
from bot.kernel.run import RunState, TreeEntry
from bot.report import html, pull_request
from bot.report.comment import comment
from bot.report.html import view
from bot.report.report_json import diagnosis_text, repair_text, report_json
from bot.report.terminal import ProofRequest, proof_terminal, terminal
from tests.golden.stages import run, stages

_RUN = "acme-pool-41"
_NOW = datetime(2024, 5, 2, 10, 30, tzinfo=UTC)
_REPOSITORIES: dict[str, dict[str, str]] = {
    "pytest": {
        "pool/core.py": "",
        "tests/conftest.py": "",
        "pyproject.toml": "[tool.pytest.ini_options]\n",
        "tests/test_core.py": "import pytest\n\ndef test_core():\n    pass\n",
    },
    "unittest": {
        "pool/core.py": "",
        "pool/core_test.py": "import unittest\n\nclass A(unittest.TestCase):\n    pass\n",
    },
    "bare": {"pool.py": ""},
}


def _printed(report: IssueReport) -> object:
    draft = report.draft()
    draft.version = "0"
    report = draft.finish()
    shown = view(
        run(report, state=RunState.FINISHED), report, (), github_url="https://github.com", now=_NOW
    )
    return {
        "comment": comment(report, run=_RUN),
        "short comment": comment(report, run=_RUN, limit=3_000),
        "terminal": terminal(report, run=f"runs/{_RUN}", width=100),
        "narrow terminal": terminal(report, width=60, encoding="ascii"),
        "coloured terminal": terminal(report, width=100, colour=True),
        "report.json": report_json(report),
        "page": html.run_page(shown),
        "label": KINDS[report.verdict.kind].label,
        **_training(report),
        **{f"proof {proof}": _proof(report, proof) for proof in get_args(Proof)},
    }


def _training(report: IssueReport) -> dict[str, object]:
    made: dict[str, object] = {}
    if report.diagnosis is not None:
        told: dict[str, Any] = {"environment": report.environment, "sandbox": "bwrap", "hide": str}
        made["diagnosis.json"] = diagnosis_text(report.diagnosis, program="a.py", **told)
    if report.repair is not None:
        made["repair.json"] = repair_text(report.repair, program="a.py", hide=str)
    return made


def _proof(report: IssueReport, proof: Proof) -> object:
    request = ProofRequest(proof=proof, run="runs/x", again=f"reprise {proof} runs/x")
    return proof_terminal(report, request, width=100)


def _pieces(_: Inputs) -> Mapping[str, str]:
    return dict(stages())


def _reproduced(inputs: Inputs) -> Mapping[str, tuple[Any, str]]:
    """Reports, or the runs that lead to one, with each repository."""
    runs = {name: one for name, one in inputs.whole_runs.items() if name.startswith("kind/")}
    subjects = {f"golden/{name}": report for name, report in inputs.reports.items()} | runs
    return {
        f"{name}/{repository}": (subject, repository)
        for name, subject in subjects.items()
        for repository in _REPOSITORIES
    }


def _proposal(case: tuple[Any, str]) -> object:
    subject, name = case
    report = reported(subject) if isinstance(subject, JudgedRun) else subject
    texts = _REPOSITORIES[name]
    entries = [TreeEntry(path=path, mode="100644", size=len(text)) for path, text in texts.items()]
    proposal = propose(report, RepositoryFiles(entries, lambda entry: texts[entry.path]))
    return {
        "proposal": proposal,
        "title": pull_request.title(41, proposal),
        "message": pull_request.message(report, proposal),
        "body": pull_request.body(report, proposal).replace(report.version, "0"),
    }


STAGES = (
    Stage("regression-test", _reproduced, _proposal),
    Stage("printed", lambda inputs: inputs.reports, _printed),
    Stage("pieces", _pieces, str),
)
