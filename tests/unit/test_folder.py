"""The run folder: whole files or none, and nobody else's."""

import errno
import json
import os
import resource
import signal
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path

import pytest

from bot.kernel.attempt import Script
from bot.kernel.bug import Issue
from bot.kernel.errors import UserError
from bot.kernel.files import write
from bot.kernel.job import ReproduceIssue
from bot.kernel.journal import ATTEMPTS, EXCHANGES, LOGS, PROGRAMS, log_name
from bot.kernel.report import IssueReport
from bot.kernel.session import run_log
from bot.report.report_json import report_text
from bot.report.run_folder import Folder, defect, inside, kept_job, kept_report
from bot.training.repair.trials import TRIALS
from sandbox.port import RunResult
from tests.support.jobs import issue_job

REPORT = IssueReport.model_validate_json(
    (Path(__file__).parent.parent / "golden" / "reports" / "reproduced.json").read_text(
        encoding="utf-8"
    )
)

JOB = issue_job(Issue(title="t", body="b"))


def finished(path: Path, report: IssueReport = REPORT, job: ReproduceIssue = JOB) -> Folder:
    folder = Folder(path)
    assert report.script is not None
    folder.begin(job)
    folder.append(PROGRAMS, report.script)
    result = RunResult(exit_code=1, stdout="out\n", stderr="err\n", seconds=0.5)
    folder.append(LOGS, run_log(1, report.script, result))
    for attempt in report.attempts:
        folder.append(ATTEMPTS, attempt)
    folder.finish(
        report, json_text=report_text(report), markdown="# report\n", state=report.model_dump_json()
    )
    folder.close()
    return folder


def test_a_finished_run_holds_everything(tmp_path: Path) -> None:
    finished(tmp_path / "run")
    names = {
        str(path.relative_to(tmp_path / "run"))
        for path in (tmp_path / "run").rglob("*")
        if path.is_file()
    }
    kept = f"scripts/{REPORT.script.digest[:12]}/repro.py" if REPORT.script else ""
    assert names == {
        ".reprise", "report.json", "report.md", "repro.py", "environment.lock", "attempts.jsonl", "logs/001.log", kept,
        "job.json", "run.json", f"scripts/{REPORT.script.digest[:12]}.json",
    }  # fmt: skip
    assert json.loads((tmp_path / "run/report.json").read_text())["verdict"]["kind"] == "reproduced"
    assert len((tmp_path / "run/attempts.jsonl").read_text().splitlines()) == 3
    log = (tmp_path / "run/logs/001.log").read_text()
    assert "exit code 1" in log
    assert "--- stdout\nout\n" in log
    assert "--- stderr\nerr\n" in log


def test_the_log_is_named_as_the_report_refers_to_it(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.begin(JOB)
    script, killed = Script(files={"repro.py": "x"}), RunResult(exit_code=None, signal=9, oom=True)
    folder.append(LOGS, run_log(7, script, killed))
    name = log_name(7)
    assert (tmp_path / name).read_text().startswith("script ")
    assert "signal 9, oom" in (tmp_path / name).read_text()
    folder.close()


def test_a_second_run_starts_from_nothing_and_leaves_the_strangers_file(tmp_path: Path) -> None:
    finished(tmp_path)
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / ".report.json.reprise-part").write_text("half")
    folder = Folder(tmp_path)
    folder.begin(JOB)
    assert {path.name for path in tmp_path.iterdir()} == {
        ".reprise",
        "job.json",
        "logs",
        "notes.txt",
    }
    folder.close()


@pytest.mark.parametrize(
    ("job", "given"),
    [
        (issue_job(Issue(title="t", body="other")), None),
        (JOB, Script(files={"repro.py": "import x\n"})),
    ],
)
def test_the_result_of_something_else_is_refused_and_stays(
    tmp_path: Path, job: ReproduceIssue, given: Script | None
) -> None:
    finished(tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    folder = Folder(tmp_path)
    with pytest.raises(UserError, match="already contains the result of another job"):
        folder.begin(job, given)
    folder.close()
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("number", [7, 8])
def test_an_issue_that_was_edited_is_the_same_one(tmp_path: Path, number: int) -> None:
    finished(tmp_path, job=issue_job(Issue(title="t", body="b", repository="a/b", number=7)))
    folder = Folder(tmp_path)
    edited = issue_job(Issue(title="now", body="more", repository="a/b", number=number), seed=7)
    with nullcontext() if number == 7 else pytest.raises(UserError, match="another job"):
        folder.begin(edited)
    assert (tmp_path / "report.json").exists() == (number == 8)
    folder.close()


def test_a_killed_run_is_gone_on_with_and_another_one_is_not(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.begin(JOB)
    assert REPORT.script is not None
    program = REPORT.script.model_copy(update={"origin": "block 1"})
    folder.append(PROGRAMS, program)
    for attempt in REPORT.attempts:
        folder.append(ATTEMPTS, attempt)
    with (tmp_path / "attempts.jsonl").open("ab") as file:
        file.write(b'{"number": 4, "pur')
    folder._mark.close()  # the process is dead: nothing else was closed

    again = Folder(tmp_path)
    again.begin(JOB)
    assert again.read(ATTEMPTS) == REPORT.attempts
    assert again.read(PROGRAMS) == (program,)
    again.append(ATTEMPTS, REPORT.attempts[1])  # what was done after it no longer fits
    assert [
        json.loads(line)["number"]
        for line in (tmp_path / "attempts.jsonl").read_text().splitlines()
    ] == [1, 2]
    assert again.read(ATTEMPTS) == REPORT.attempts[:2]
    again.close()

    other = Folder(tmp_path)
    other.begin(issue_job(JOB.issue, seed=7))
    assert other.read(ATTEMPTS) == ()
    other.close()


def test_what_was_found_can_be_read_again(tmp_path: Path) -> None:
    finished(tmp_path)
    assert kept_report(tmp_path) == REPORT
    with pytest.raises(UserError, match="not the folder of a finished run"):
        kept_report(tmp_path / "logs")


def test_a_folder_with_other_files_is_refused_and_untouched(tmp_path: Path) -> None:
    (tmp_path / "report.json").write_text("mine")
    with pytest.raises(UserError, match="already contains other files"):
        Folder(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["report.json"]


def test_two_runs_cannot_share_a_folder(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    with pytest.raises(UserError, match="Another run"):
        Folder(tmp_path)
    folder.close()
    Folder(tmp_path).close()


@pytest.mark.parametrize(
    "name", ["../x", "/etc/x", "a/../../x", "", ".", ".reprise", "a\\b", "a\0b"]
)
def test_names_that_leave_the_folder(name: str) -> None:
    assert not inside(name)


def test_a_script_cannot_write_elsewhere(tmp_path: Path) -> None:
    hostile = Script(files={"repro.py": "1", "../escaped.py": "2"})
    finished(tmp_path / "run", REPORT.model_copy(update={"script": hostile}))
    assert not (tmp_path / "escaped.py").exists()


def test_a_full_disk_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "a", "old")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write(tmp_path / "a", "new")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"a": "old"}


LOOP = """
import sys
from pathlib import Path
from bot.kernel.files import write
for index in range(10**6):
    write(Path(sys.argv[1]), '{"n": "' + str(index) * 20000 + '"}')
"""


def test_a_killed_writer_never_leaves_half_a_file(tmp_path: Path) -> None:
    for delay in (0.05, 0.11, 0.17):
        process = subprocess.Popen(
            [sys.executable, "-c", LOOP, tmp_path / "report.json"], cwd=Path(__file__).parents[2]
        )
        try:
            while not (tmp_path / "report.json").exists() and process.poll() is None:
                time.sleep(0.01)
            time.sleep(delay)
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()
        json.loads((tmp_path / "report.json").read_text())
        (tmp_path / "report.json").unlink()


GIVEN = Script(files={"repro.py": "import x\n"}, origin="long.py")


def killed(path: Path, given: Script | None = GIVEN) -> None:
    """A folder in which one run was kept before its process died."""
    folder = Folder(path)
    folder.begin(JOB, given)
    folder.append(ATTEMPTS, REPORT.attempts[0])
    folder._mark.close()


@pytest.mark.parametrize(
    ("job", "given", "kept"),
    [
        (JOB, GIVEN, True),
        (issue_job(JOB.issue, proof_minutes=99), GIVEN, True),
        (issue_job(JOB.issue, seed=9), GIVEN, False),
        (JOB, GIVEN.model_copy(update={"files": {"repro.py": "import y\n"}}), False),
        (JOB, None, False),
    ],
)
def test_only_the_same_program_is_gone_on_with(
    tmp_path: Path, job: ReproduceIssue, given: Script | None, kept: bool
) -> None:
    killed(tmp_path)
    again = Folder(tmp_path)
    again.begin(job, given)
    assert bool(again.read(ATTEMPTS)) == kept
    again.close()


def test_what_was_refused_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    for path in (tmp_path / "runs" / "deep" / "run", tmp_path / "mine" / "run"):
        folder = Folder(path)
        folder.begin(JOB, GIVEN)
        folder.append(PROGRAMS, GIVEN)
        folder.append(ATTEMPTS, REPORT.attempts[0])
        folder.discard()
        folder.close()
    assert [path.name for path in tmp_path.iterdir()] == ["mine"], "what was there before stays"
    killed(tmp_path / "run")
    folder = Folder(tmp_path / "run")
    folder.begin(JOB, GIVEN)
    folder.discard()
    folder.close()
    assert (tmp_path / "run" / "attempts.jsonl").exists(), "so does what an earlier process kept"


def test_a_folder_in_which_nothing_happened_takes_those_above_it_along(tmp_path: Path) -> None:
    Folder(tmp_path / "runs" / "run").close()
    assert list(tmp_path.iterdir()) == []


def test_a_copy_of_a_run_has_its_runs(tmp_path: Path) -> None:
    finished(tmp_path / "run")
    copy = Folder(tmp_path / "copy")
    copy.begin(JOB)
    copy.take_over(tmp_path / "run")
    assert copy.read(ATTEMPTS) == REPORT.attempts
    assert (tmp_path / "copy" / "logs" / "001.log").read_text() == (
        tmp_path / "run" / "logs" / "001.log"
    ).read_text()
    copy.append(ATTEMPTS, REPORT.attempts[0].model_copy(update={"number": 4}))
    copy.take_over(tmp_path / "run")
    assert len((tmp_path / "copy" / "attempts.jsonl").read_text().splitlines()) == 4, (
        "and nothing is taken over twice"
    )
    copy.close()


def test_a_letter_that_a_kill_cut_in_two_stops_no_take_over(tmp_path: Path) -> None:
    run = finished(tmp_path / "run")
    with (run.path / "attempts.jsonl").open("ab") as file:
        file.write(b'{"torn": "\xc3')
    copy = Folder(tmp_path / "copy")
    copy.begin(JOB)
    copy.take_over(run.path)
    assert copy.read(ATTEMPTS) == REPORT.attempts
    copy.close()


def test_a_take_over_that_broke_off_is_made_anew(tmp_path: Path) -> None:
    run, copy = finished(tmp_path / "run"), Folder(tmp_path / "copy")
    lines = (run.path / "attempts.jsonl").read_bytes()
    (run.path / "attempts.jsonl").write_bytes(lines * 20)
    copy.begin(JOB)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(lines) * 10, before[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            copy.take_over(run.path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    copy.close()
    again = Folder(tmp_path / "copy")
    again.begin(JOB)
    again.take_over(run.path)
    again.close()
    assert (again.path / "attempts.jsonl").read_bytes() == lines * 20


def test_the_traceback_of_a_proof_that_broke_is_kept_beside_the_logs(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.begin(JOB)
    folder.finish(
        REPORT, json_text="{}", markdown="", state="{}", defects={"bisect": "Traceback: ..."}
    )
    assert (tmp_path / defect("bisect")).read_text() == "Traceback: ..."
    assert defect("bisect").startswith("logs/")
    folder.close()


def test_a_folder_of_an_earlier_version_is_gone_on_with(tmp_path: Path) -> None:
    """Its files, as that version wrote them."""
    path, digest = tmp_path / "run", GIVEN.digest
    (path / "scripts").mkdir(parents=True)
    (path / "logs").mkdir()
    (path / ".reprise").touch()
    (path / "job.json").write_text(OLD_JOB)
    (path / "attempts.jsonl").write_text(OLD_ATTEMPT.replace("DIGEST", digest) + '\n{"numb')
    (path / "exchanges.jsonl").write_text(OLD_EXCHANGE + "\n")
    (path / "scripts" / f"{digest[:12]}.json").write_text(GIVEN.model_dump_json() + "\n")
    (path / "logs" / "001.log").write_text("script 012345678901 · exit code 1 · 0.50 s\n")
    (path / "trials.jsonl").write_text(OLD_TRIAL + "\n")
    folder = Folder(path)
    folder.begin(JOB)
    (attempt,) = folder.read(ATTEMPTS)
    assert (attempt.number, attempt.judgement.reason) == (1, "met")
    assert folder.read(PROGRAMS) == (GIVEN,)
    assert folder.read(LOGS)[0].text.startswith("script 0123")
    assert folder.read(EXCHANGES)[0].question.messages[0].content == "why"
    assert folder.read(TRIALS)[0].trial.error == "died"
    folder.append(ATTEMPTS, attempt.model_copy(update={"number": 2}))
    assert [each.number for each in folder.read(ATTEMPTS)] == [1, 2]
    folder.close()
    assert kept_job(path) == JOB


OLD_JOB = """{"issue": {"title": "t", "body": "b"}, "options": {"python": null, "pins": [], "repo": null,
"ref": null, "device": "cpu", "sandbox": "auto", "timeout_s": 120.0, "training_timeout_s": null,
"max_runs": 40, "seed": 0, "model": null, "max_cost": 1.0, "max_tokens": 200000, "max_calls": 16,
"max_attempts": 6, "minutes": 20.0, "proof_minutes": 10.0, "package": null, "diagnose": false,
"repair": null, "repair_minutes": 40.0, "without": []}}"""
OLD_ATTEMPT = (
    '{"number": 1, "purpose": "search", "script": "DIGEST", "origin": "block 1", '
    '"environment": "e1", "execution": {"exit_code": 1, "seconds": "NaN"}, '
    '"judgement": {"match": "matched", "reason": "met"}, "change": ""}'
)
OLD_EXCHANGE = (
    '{"number": 1, "question": {"role": "reader", "prompt": "read@v1#0", '
    '"messages": [{"role": "user", "content": "why"}], "answer_schema": {"a": 1}}, '
    '"answer": {"data": {"n": [1.5]}, "text": "{}", "usage": {"usd": 0.25}}}'
)
OLD_TRIAL = (
    '{"key": "program", "trial": {"patch": [], "seed": 1, "part": "guide", "value": null, '
    '"seconds": 1.5, "rows_split": false, "error": "died"}, "symptom": ""}'
)
