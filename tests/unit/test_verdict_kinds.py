"""Every kind of verdict has an entry in each table that needs one for every kind; a failure names
the kinds that are missing. docs/contributing.md lists what else a new kind may need.
"""

import re
from pathlib import Path
from typing import Annotated, get_args, get_origin

import pytest

from bot.models.report import AnyVerdict
from bot.render import sticky
from bot.render.phrases import verdict as phrases
from bot.render.report_json import Kind

ROOT = Path(__file__).resolve().parents[2]
assert get_origin(AnyVerdict) is Annotated
KINDS = {member.model_fields["kind"].default for member in get_args(get_args(AnyVerdict)[0])}
# Their next step depends on the report: `next_step` computes it, and a reproduced report's comment
# has none of its own.
COMPUTED = {"reproduced", "setup_failed"}
IN_THE_COMMENT = {"reproduced"}


def styled() -> set[str]:
    style = (ROOT / "bot/render/html/style.css").read_text(encoding="utf-8")
    rules = re.findall(r"((?:\.\w+(?:, )?)+) \{ --tone:", style)
    return {name for rule in rules for name in re.findall(r"\w+", rule)}


def in_the_readme() -> set[str]:
    rows = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", (ROOT / "README.md").read_text("utf-8"), re.M)
    return {name for row in rows for name in re.findall(r"\w+", row)}


@pytest.mark.parametrize(
    ("table", "entries"),
    [
        ("Kind in bot/render/report_json.py", set(get_args(Kind))),
        ("TITLES in bot/render/phrases/verdict.py", set(phrases.TITLES)),
        ("_NEXT in bot/render/phrases/verdict.py", set(phrases._NEXT) | COMPUTED),
        ("_NEXT in bot/render/sticky.py", set(sticky._NEXT) | IN_THE_COMMENT),
        ("bot/render/html/style.css", styled()),
        (
            "tests/golden/reports/",
            {path.stem for path in (ROOT / "tests/golden/reports").iterdir()},
        ),
        ("the README's table of verdicts", in_the_readme()),
    ],
)
def test_every_kind_has_an_entry(table: str, entries: set[str]) -> None:
    assert KINDS - entries == set(), f"missing in {table}; see docs/contributing.md for the rest"
