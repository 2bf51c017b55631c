"""The comment and the terminal view of every verdict kind, word for word; `python tests/golden/write.py` renews them."""

import re
from pathlib import Path
from typing import get_args

import pytest
from markdown_it import MarkdownIt

from bot.models.report import Report
from bot.models.verdict import Control
from bot.render.comment import UNFOLDED, comment
from bot.render.report_json import Kind
from bot.render.terminal import terminal

GOLDEN = Path(__file__).parent.parent / "golden"
NAMES = sorted(path.stem for path in (GOLDEN / "reports").glob("*.json"))


def load(name: str) -> Report:
    return Report.model_validate_json((GOLDEN / "reports" / f"{name}.json").read_text(encoding="utf-8"))


def seen(markdown: str) -> list[str]:
    """Lines that are in sight, a fold counting as the line of its summary."""
    folded = re.sub(r"(<summary>.*?</summary>).*?</details>", r"\1", markdown, flags=re.DOTALL)
    return [line for line in folded.splitlines() if line.strip()]


def test_every_kind_of_verdict_has_a_golden_file() -> None:
    assert {load(name).verdict.kind for name in NAMES} == set(get_args(Kind))


@pytest.mark.parametrize("name", NAMES)
def test_comment(name: str) -> None:
    assert comment(load(name), run="acme-pool-41") == (GOLDEN / "comment" / f"{name}.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", NAMES)
def test_terminal(name: str) -> None:
    expected = (GOLDEN / "terminal" / f"{name}.txt").read_text(encoding="utf-8")
    assert terminal(load(name), run="reprise-runs/acme-pool-41") == expected


@pytest.mark.parametrize("name", NAMES)
def test_at_most_25_lines_are_in_sight(name: str) -> None:
    assert len(seen(comment(load(name), run="acme-pool-41"))) <= UNFOLDED == 25


def test_a_long_script_is_folded() -> None:
    report = load("reproduced")
    assert report.script is not None
    long = report.model_copy(update={"script": report.script.model_copy(update={"files": {"repro.py": "x = 1\n" * 400}})})
    text = comment(long)
    assert "Script: repro.py, 400 lines" in text
    assert len(seen(text)) <= UNFOLDED


def test_without_a_control_nothing_is_called_confirmed() -> None:
    text = comment(load("reproduced"))
    assert "Symptom observed" in text
    assert "confirmed" not in text.lower()


def test_a_control_that_fails_as_often_confirms_nothing() -> None:
    report = load("reproduced-with-control")
    weak = report.verdict.model_copy(update={"control": Control(type="fixed-version", runs=5, failures=4, p=1.0)})
    text = comment(report.model_copy(update={"verdict": weak}))
    assert "Symptom observed: 4 of 5 runs failed with the control" in text
    assert "confirmed" not in text.lower()


def test_a_control_that_passes_confirms() -> None:
    assert "Bug confirmed: 0 of 5 runs failed with the control (fixed-version), p = 0.0039." in comment(
        load("reproduced-with-control")
    )


def test_the_command_is_the_only_shell_block_and_stands_in_sight() -> None:
    text = comment(load("reproduced"))
    blocks = [token for token in MarkdownIt().parse(text) if token.type == "fence" and token.info == "sh"]
    assert [block.content.strip() for block in blocks] == [load("reproduced").command]
    assert text.index("```sh") < text.index("<details>")


@pytest.mark.parametrize("width", [20, 40, 200])
@pytest.mark.parametrize("name", NAMES)
def test_terminal_fits_narrow_windows(name: str, width: int) -> None:
    lines = terminal(load(name), run="runs/x", width=width).splitlines()
    command = "  " + load(name).command
    assert all(len(line) <= width for line in lines if line != command)


def test_terminal_has_no_escapes_unless_colour_is_wanted() -> None:
    assert "\x1b" not in terminal(load("reproduced"))
    assert "\x1b[" in terminal(load("reproduced"), colour=True)


def test_terminal_reads_nothing_as_markup_and_passes_no_escape_on() -> None:
    report = load("not_a_bug")
    verdict = report.verdict.model_copy(update={"sentence": "[red]x[/red] \x1b[31mred\x1b[0m [/nonsense] :bug:"})
    text = terminal(report.model_copy(update={"verdict": verdict}))
    assert "[red]x[/red] red [/nonsense] :bug:" in text
