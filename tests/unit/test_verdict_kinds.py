"""A row of `KINDS` and a class are all that a verdict kind needs to be printed everywhere.
docs/contributing.md lists what else a new kind may need.
"""

import json
import re
from pathlib import Path
from typing import get_args

import pytest
from jsonschema import Draft202012Validator

from bot.cli.error_boundary import code
from bot.issues.phrases import next_step
from bot.issues.verdicts import KINDS
from bot.kernel.report import AnyVerdict, Inconclusive, IssueReport
from bot.report import comment as report_comment
from bot.report.comment import comment
from bot.report.html import STYLE, landing
from bot.report.report_json import report_json
from bot.report.terminal import terminal

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = json.loads((ROOT / "bot/report/report.schema.json").read_text(encoding="utf-8"))
ANSI = {"red": "\x1b[1;31m", "green": "\x1b[1;32m", "yellow": "\x1b[1;33m"}
# Their next step depends on the report.
COMPUTED = {"reproduced", "setup_failed"}


def report(kind: str) -> IssueReport:
    text = (ROOT / f"tests/golden/reports/{kind}.json").read_text(encoding="utf-8")
    return IssueReport.model_validate_json(text)


def in_the_readme() -> set[str]:
    rows = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", (ROOT / "README.md").read_text("utf-8"), re.M)
    return {name for row in rows for name in re.findall(r"\w+", row)}


def test_each_kind_has_a_class_and_a_row() -> None:
    classes = get_args(get_args(AnyVerdict)[0])
    assert {each.model_fields["kind"].default for each in classes} == set(KINDS)
    assert set(KINDS) <= in_the_readme()


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_is_printed_everywhere(kind: str) -> None:
    row, made = KINDS[kind], report(kind)
    page = landing({f"verdicts.{kind}": 7}, off="", app="", version="1")
    assert f'<tr class="{kind}"><th scope="row"><span class="verdict">{row.title}</span>' in page
    assert f".{kind} {{ --tone: var(--{row.tone}); }}" in STYLE.decode()
    assert f" --{row.tone}: #" in STYLE.decode()
    assert row.title in comment(made)
    assert f"{ANSI[row.colour]}{row.title}" in terminal(made, colour=True)
    assert code(made) == row.exit_code
    assert report_json(made)["verdict"]["kind"] == kind
    Draft202012Validator(SCHEMA).validate(report_json(made))


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_says_what_to_do_next(kind: str) -> None:
    row, made = KINDS[kind], report(kind).model_copy(update={"cut_short": {}})
    if isinstance(made.verdict, Inconclusive):  # more runs could not decide it
        undecided = made.verdict.model_copy(update={"at_maximum": False})
        made = made.model_copy(update={"verdict": undecided})
    assert (next_step(made) == row.next_step) is (kind not in COMPUTED)
    assert bool(row.comment) is (kind != "reproduced")
    assert row.comment in report_comment.final(made, page="")
