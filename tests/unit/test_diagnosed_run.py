"""A program → its diagnosis, on fakes: its environment, how it ended, and the diagnosis beside a verdict."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bot.cli import app
from bot.environment import provided
from bot.kernel.bug import Issue
from bot.kernel.errors import UserError
from bot.kernel.job import PROOFS, ReproduceIssue
from bot.kernel.ports import TrainingWatch
from bot.kernel.session import Session
from bot.kernel.training_types import RECORDS, TrainingProgram
from bot.products.engine import execute as run, plan
from bot.report.comment import comment
from bot.report.run_folder import Folder, kept_report
from bot.training import diagnose
from sandbox.port import RunResult
from sandbox.probe.training.core import is_sampled
from tests.support import traces
from tests.support.jobs import issue_job, job_options
from tests.unit.test_pipeline import world

TRAINS = """import torch
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(10):
    loss = model(torch.ones(4, 2)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
OPTIONS = job_options(without=PROOFS, diagnose=True)
REPORT = Issue(
    title="The network does not learn",
    body=f"The loss stays flat whatever I do.\n\n```python\n{TRAINS}```\n",
)

SLOW = REPORT.model_copy(
    update={"title": "The network is slow", "body": f"It is slow.\n\n```python\n{TRAINS}```\n"}
)


def trace(written=range(30), **fields):
    rows = [{"kind": "step", "step": at, "loss": 1.0 - at / 1e4, **fields} for at in written]
    for row in rows:
        RECORDS.validate_python(row)
    return "".join(f"{json.dumps(row)}\n" for row in rows).encode()


OK = RunResult(exit_code=0, seconds=2.0, artifacts={".reprise/training-7.jsonl": trace()})
MISSING = RunResult(
    exit_code=1,
    stderr='Traceback (most recent call last):\n  File "a.py", line 1, in <module>\n    import tqdm\n'
    "ModuleNotFoundError: No module named 'tqdm'\n",
)


def program(source=TRAINS, **files):
    return TrainingProgram(files={"a.py": source.encode(), **files}, entry="a.py")


def session(answer, options=OPTIONS):
    return Session.begin(
        ReproduceIssue(issue=Issue(title="a", body=""), **dict(options)), world(answer)
    )


def recorded(answer, source=TRAINS):
    session_, given = session(answer), program(source)
    spec = provided.spec(given, OPTIONS.environment)
    return diagnose.record_run(given, spec, session_)


def test_what_a_program_imports_and_declares_is_wanted_but_not_its_own_files() -> None:
    source = '# /// script\n# dependencies = ["torch==2.3.0"]\n# ///\nimport torch\nfrom layers_of_mine import net\n'
    files = {
        "layers_of_mine.py": b"import numpy\n",
        "requirements.txt": b"# x\n-e .\nnumpy<2  # old\nrich; python_version < '3'\n",
    }
    given = program(source, **files)
    found = {
        each.name: each for each in provided.spec(given, job_options().environment).requirements
    }
    assert {name: each.specifier for name, each in found.items()} == {
        "torch": "==2.3.0",
        "numpy": "<2",
    }
    assert found["torch"].reason == "its script block says torch==2.3.0"
    assert found["numpy"].reason.startswith("requirements.txt says")
    asked = provided.spec(given, job_options(pins=("torch==2.1.0",)).environment).requirements
    assert {each.specifier for each in asked if each.name == "torch"} == {"==2.1.0"}


def test_what_other_scripts_of_the_folder_need_is_not_wanted() -> None:
    files = {
        "other.py": b"import tqdm\n",
        "settings.py": b"import yaml\n",
        "tools/__init__.py": b"",
        "tools/of_data.py": b"import pandas\nfrom shapes import Shape\n",
        "shapes.py": b"import numpy\n",
    }
    source = "import torch, tools\nexec(open('settings.py').read())\n"
    found = provided.spec(program(source, **files), job_options().environment).requirements
    assert {each.name for each in found} == {"torch", "pyyaml", "pandas", "numpy"}


def test_a_file_somewhere_that_has_the_name_of_a_library_is_not_taken_for_it() -> None:
    files = {
        "old/adapters/torch.py": b"import tqdm\n",
        "old/nn.py": b"import tqdm\n",
        "old/logging.py": b"import tqdm\n",
        "layers/blocks.py": b"import yaml\n",
        "numpy.py": b"import pandas\n",
    }
    source = "import torch.nn as nn, logging\nfrom torch import nn\nfrom layers import blocks\nimport numpy\n"
    found = provided.spec(program(source, **files), job_options().environment).requirements
    assert {each.name for each in found} == {"torch", "pyyaml", "pandas"}


def test_a_malformed_script_block_is_the_users() -> None:
    with pytest.raises(UserError, match="not valid TOML"):
        list(provided.declared(program("# /// script\n# dependencies = [\n# ///\n")))


def test_a_missing_package_is_installed_and_the_program_runs_again() -> None:
    answers = iter([MISSING, OK])
    run_ = recorded(lambda spec: next(answers))
    assert "tqdm" in [package.name for package in run_.environment.packages]
    assert len(run_.trace.steps) == 30


@pytest.mark.parametrize(
    ("result", "ended", "undecided"),
    [
        (OK, "completed", ""),
        (replace(OK, exit_code=None, timed_out=True), "timed out", ""),
        (replace(OK, exit_code=1, stderr=MISSING.stderr), "failed", ""),
        (replace(OK, artifacts={}), "completed", "no training was observed"),
        (replace(MISSING, stderr=MISSING.stderr.replace("ModuleNotFoundError: No module named 'tqdm'", "ValueError: bad")), "failed", "the program failed before it trained (ValueError: bad)"),
        (RunResult(exit_code=None, timed_out=True, seconds=9.0), "timed out", "stopped after 9 s, before it trained"),
        (RunResult(exit_code=None, signal=9, oom=True), "killed", "ran out of memory"),
    ],
)  # fmt: skip
def test_how_a_run_ended(result: RunResult, ended: str, undecided: str) -> None:
    found = diagnose.diagnose_recording(recorded(lambda spec: result))
    assert found.ended == ended
    assert undecided in found.undecided
    assert bool(found.undecided) == bool(undecided)
    assert bool(found.curves) == (not undecided)


def test_of_a_long_run_all_steps_count_though_not_all_are_written_down() -> None:
    written = trace(filter(is_sampled, range(2301))) + trace(range(40), optimizer="other")
    artifacts = {".reprise/training-7.jsonl": written, ".reprise/training-8.jsonl": trace()}
    run_ = recorded(lambda spec: replace(OK, artifacts=artifacts))
    assert len(run_.trace.steps) < 2100
    assert diagnose.diagnose_recording(run_).steps == 2301 + 40


def test_an_issue_of_bad_training_is_diagnosed_whatever_its_verdict() -> None:
    job = ReproduceIssue(issue=REPORT, **dict(OPTIONS))
    assert not plan(job).runs_nothing
    report = run(job, world(lambda spec: OK))
    assert report.verdict.kind == "inconclusive"
    assert report.diagnosis is not None
    assert report.diagnosis.steps == 30
    assert report.environment is not None
    assert "Run once, for the diagnosis" in comment(report)


def of_curve(losses):
    told = traces.trace(losses=losses, data=None)
    rows = (*told.models, *told.losses, *told.optimizers, *told.steps, *told.epochs)
    text = "".join(f"{row.model_dump_json()}\n" for row in rows)
    return replace(OK, artifacts={".reprise/training-7.jsonl": text.encode()})


@pytest.mark.parametrize(
    ("ends", "kind", "runs"),
    [
        ([traces.FLAT] * 3, "reproduced", 2),
        ([traces.FLAT, traces.FLAT, traces.GOOD, traces.FLAT], "reproduced", 3),
        ([traces.FLAT, *[traces.GOOD] * 9], "inconclusive", 9),
        ([traces.GOOD], "inconclusive", 0),
    ],
)
def test_trainings_no_better_than_a_constant_decide_where_no_value_is_reported(
    ends: list[list[float]], kind: str, runs: int
) -> None:
    answers = map(of_curve, ends)
    bare = REPORT.model_copy(update={"body": f"It does not learn.\n\n```python\n{TRAINS}```\n"})
    job = ReproduceIssue(issue=bare, **dict(OPTIONS))
    report = run(job, world(lambda spec: next(answers)))
    assert report.verdict.kind == kind
    assert len([*answers]) == len(ends) - 1 - runs
    if kind == "reproduced":
        assert (report.verdict.failures, report.verdict.runs) == (2, runs)
        assert report.signature.probed
        text = comment(report)
        assert "as the training probe reads it" in text
        assert f"Run once, for the diagnosis; {runs} runs confirmed the verdict" in text


def test_what_is_no_complaint_of_a_training_is_diagnosed_where_asked_for() -> None:
    plain = issue_job(SLOW)
    draft = plan(ReproduceIssue(issue=SLOW, **dict(OPTIONS)))
    assert draft.training is not None
    assert not draft.runs_nothing
    assert plan(plain).runs_nothing
    assert draft.hash != plan(plain).hash
    assert run(plain, world(lambda spec: OK)).diagnosis is None


def test_a_complaint_without_a_value_is_decided_by_its_training_unasked() -> None:
    assert run(issue_job(REPORT), world(lambda spec: OK)).diagnosis is not None


def test_who_watches_hears_the_losses_of_an_issues_diagnosis() -> None:
    heard = []
    told = replace(OK, stderr="\x1ereprise step 12 loss 0.5\n")
    watch = TrainingWatch(loss=lambda step, loss: heard.append((step, loss)))
    ports = replace(world(lambda spec: told), training=watch)
    run(ReproduceIssue(issue=REPORT, **dict(OPTIONS)), ports)
    assert heard == [(12, 0.5)]


def test_without_a_training_program_a_note_says_so() -> None:
    issue = REPORT.model_copy(update={"body": "It is slow.\n\n```python\nprint(1)\n```\n"})
    report = run(ReproduceIssue(issue=issue, **dict(OPTIONS)), world(lambda spec: OK))
    assert report.diagnosis is None
    assert any("contains no program that trains" in note.text for note in report.notes)


def test_a_defect_in_the_rules_leaves_the_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(run: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("bot.products.issue_training.diagnose_recording", broken)
    report = run(ReproduceIssue(issue=REPORT, **dict(OPTIONS)), world(lambda spec: OK))
    assert report.verdict.kind == "inconclusive"
    assert "ZeroDivisionError" in report.defects["diagnose"]


def test_the_program_of_a_finished_run_is_diagnosed_where_no_run_was_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The issue is read again; diagnosis.json names the sandbox, the verdict has none."""
    job = ReproduceIssue(issue=REPORT, **dict(OPTIONS))
    first = run(ReproduceIssue(issue=SLOW, without=PROOFS), world(lambda spec: OK))
    assert (first.diagnosis, first.sandbox) == (None, "")
    path = tmp_path / "run"
    folder = Folder(path)
    folder.begin(job)
    folder.finish(first, json_text="", markdown="", state=first.model_dump_json())
    folder.close()
    monkeypatch.setenv("REPRISE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr("bot.app.bootstrap.make_ports", lambda *_, **__: world(lambda spec: OK))
    done = CliRunner().invoke(app.app, ["diagnose", str(path), "--sandbox", "process", "--json"])
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert (told["sandbox"], told["diagnosis"]["steps"]) == ("process", 30)
    report = kept_report(path)
    assert report.diagnosis is not None
    assert (report.verdict, report.sandbox) == (first.verdict, "")
