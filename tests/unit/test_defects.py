"""An error of our own in a proof, at the command line: the verdict is told, and so is where the
traceback lies.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from bot.cli import app, error_boundary
from bot.issues.proof import proofs
from bot.kernel.job import PROOFS
from bot.kernel.report import IssueReport
from bot.report.report_json import report_text
from bot.report.run_folder import Folder, defect, kept_report
from tests.unit.test_folder import JOB, REPORT

SECRET = "hunter2-of-the-house"


@pytest.mark.parametrize(("proof", "code"), [("control", error_boundary.DEFECT), ("bisect", 0)])
def test_it_is_told_and_kept_without_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, proof: str, code: int
) -> None:
    """Only the command whose own proof it was ends as a defect."""
    path = tmp_path / "run"
    folder = Folder(path)
    folder.begin(JOB)
    folder.finish(
        REPORT, json_text=report_text(REPORT), markdown="", state=REPORT.model_dump_json()
    )
    folder.close()

    def prove(report: IssueReport, *_: object, **__: object) -> IssueReport:
        return report.model_copy(
            update={"defects": {"control": f"Traceback: ZeroDivisionError {SECRET}"}}
        )

    monkeypatch.setattr(proofs, "resume_proof", prove)
    monkeypatch.setenv("REPRISE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("REPRISE_MODEL_KEY", SECRET)
    assert proof in PROOFS
    done = CliRunner().invoke(app.app, [proof, str(path), "--sandbox", "process"])
    assert done.exit_code == code, done.output
    kept = path / defect("control")
    assert f"Please report it with the details in {kept}." in done.stderr
    assert kept.read_text().startswith("Traceback: ZeroDivisionError")
    assert SECRET not in kept.read_text() + (path / "run.json").read_text()
    assert kept_report(path).verdict == REPORT.verdict
