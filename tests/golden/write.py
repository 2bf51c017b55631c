"""Writes the golden comments, replies and terminal views anew: `python tests/golden/write.py`, then read the difference."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent.parent))

from bot.kernel.report import IssueReport  # noqa: E402
from bot.report.comment import comment  # noqa: E402
from bot.report.terminal import terminal  # noqa: E402
from tests.golden.stages import stages  # noqa: E402

for path in sorted((HERE / "reports").glob("*.json")):
    report = IssueReport.model_validate_json(path.read_text(encoding="utf-8"))
    (HERE / "comment" / f"{path.stem}.md").write_text(
        comment(report, run="acme-pool-41"), encoding="utf-8"
    )
    (HERE / "terminal" / f"{path.stem}.txt").write_text(
        terminal(report, run="reprise-runs/acme-pool-41"), encoding="utf-8"
    )

for name, text in stages():
    (HERE / "stages" / f"{name}.md").write_text(text, encoding="utf-8")
