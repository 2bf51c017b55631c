"""The comment and the terminal view of every verdict kind, word for word; `python
tests/golden/write.py` renews them.
"""

import re
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from bot.issues.program_phrases import telling
from bot.issues.verdicts import KINDS
from bot.kernel.attempt import Match
from bot.kernel.environment import EnvironmentSpec, RepoSource
from bot.kernel.job import Note
from bot.kernel.report import Comparison, Control, IssueReport, SetupFailed
from bot.report.comment import LINES_UNFOLDED, comment
from bot.report.terminal import terminal

GOLDEN = Path(__file__).parent.parent / "golden"
NAMES = sorted(path.stem for path in (GOLDEN / "reports").glob("*.json"))


def load(name: str) -> IssueReport:
    return IssueReport.model_validate_json(
        (GOLDEN / "reports" / f"{name}.json").read_text(encoding="utf-8")
    )


def seen(markdown: str) -> list[str]:
    """Lines that are in sight, a fold counting as the line of its summary."""
    folded = re.sub(r"(<summary>.*?</summary>).*?</details>", r"\1", markdown, flags=re.DOTALL)
    return [line for line in folded.splitlines() if line.strip()]


def test_every_kind_of_verdict_has_a_golden_file() -> None:
    assert {load(name).verdict.kind for name in NAMES} == set(KINDS)


@pytest.mark.parametrize("name", NAMES)
def test_comment(name: str) -> None:
    assert comment(load(name), run="acme-pool-41") == (GOLDEN / "comment" / f"{name}.md").read_text(
        encoding="utf-8"
    )


@pytest.mark.parametrize("name", NAMES)
def test_terminal(name: str) -> None:
    expected = (GOLDEN / "terminal" / f"{name}.txt").read_text(encoding="utf-8")
    assert terminal(load(name), run="reprise-runs/acme-pool-41") == expected


@pytest.mark.parametrize("name", NAMES)
def test_at_most_25_lines_are_in_sight(name: str) -> None:
    assert len(seen(comment(load(name), run="acme-pool-41"))) <= LINES_UNFOLDED == 25


def test_a_long_script_is_folded() -> None:
    report = load("reproduced")
    assert report.script is not None
    long = report.model_copy(
        update={"script": report.script.model_copy(update={"files": {"repro.py": "x = 1\n" * 400}})}
    )
    text = comment(long)
    assert "Script: repro.py, 400 lines" in text
    assert len(seen(text)) <= LINES_UNFOLDED


def test_without_a_control_nothing_is_called_confirmed() -> None:
    text = comment(load("reproduced"))
    assert "Symptom observed" in text
    assert "confirmed" not in text.lower()


def test_a_control_that_fails_as_often_confirms_nothing() -> None:
    report = load("reproduced-with-control")
    weak = report.verdict.model_copy(
        update={"control": Control(type="fixed-version", runs=5, failures=4, p=1.0)}
    )
    text = comment(report.model_copy(update={"verdict": weak}))
    assert (
        "Symptom observed: 5 of 5 runs failed and 4 of 5 failed in the control (p = 1), which is not a significant difference."
        in text
    )
    assert "confirmed" not in text.lower()


def test_a_control_that_passes_confirms() -> None:
    assert (
        "Bug confirmed: 5 of 5 runs failed, but 0 of 5 failed in the control (p = 0.004)."
        in comment(load("reproduced-with-control"))
    )


UNKNOWN = "pool was not found in the package registry and you require pool==0.3.1"
REPO = EnvironmentSpec(python="3.11", repo=RepoSource(url="", path="clone"))


@pytest.mark.parametrize(
    ("verdict", "spec", "offered"),
    [
        (
            SetupFailed(reason=f"No environment could be built: {UNKNOWN}"),
            None,
            True,
        ),
        (
            SetupFailed(reason="No module named 'pool.core'", tried=("pool.core",)),
            EnvironmentSpec(python="3.11"),
            True,
        ),
        (SetupFailed(reason="No module named 'pool.core'", tried=("pool.core",)), REPO, False),
        (
            SetupFailed(
                reason="x",
                tried=("build the repository at 3c00: no", f"as the bug report says: {UNKNOWN}"),
            ),
            None,
            False,
        ),
        (SetupFailed(reason="x", tried=("pool==0.3.1 on Python 3.11: no wheel",)), None, False),
    ],
)
def test_what_no_index_has_may_come_from_a_clone(
    verdict: SetupFailed, spec: EnvironmentSpec | None, offered: bool
) -> None:
    report = load("setup_failed").model_copy(update={"verdict": verdict, "spec": spec})
    assert ("Add a clone of pool" in terminal(report, width=100)) == offered


@pytest.mark.parametrize("name", ["not_reproduced", "reproduced"])
def test_what_was_not_built_of_a_clone_is_told_with_any_verdict(name: str) -> None:
    note = "the working tree of the clone has changes"
    report = load(name)
    assert report.environment is not None
    built = report.environment.model_copy(update={"note": note})
    report = report.model_copy(
        update={"environment": built, "notes": (Note(kind="run", text=note), *report.notes)}
    )
    assert terminal(report, width=100).count(note) == 1
    assert note in comment(report)


def test_a_long_name_in_the_table_breaks_between_its_parts() -> None:
    name = "networkx.exception.NetworkXNoPath: No path"
    report = load("not_reproduced").model_copy(
        update={"comparison": (Comparison(what="failure", reported=name, observed=name),)}
    )
    for width in range(50, 100):
        assert not re.search(r"\s:", terminal(report, width=width)), width
    text = terminal(report, width=70)
    assert [
        " ".join(line.split())
        for line in text.splitlines()
        if "networkx" in line or "NoPath" in line
    ] == [
        "failure networkx.exception. networkx.exception.",
        "NetworkXNoPath: No path NetworkXNoPath: No path",
    ]


def test_a_bisection_alone_confirms_nothing() -> None:
    text = comment(load("reproduced-half-proven")) + terminal(load("reproduced-half-proven"))
    assert text.count("Symptom observed") == 2
    assert "confirmed" not in text.lower()


def test_the_smaller_program_is_in_sight_and_the_original_folded() -> None:
    report = load("reproduced-with-proof")
    text = comment(report)
    assert "`repro.py`, 32 \u2192 4 lines:\n```python\nimport torch" in text
    assert text.index("`repro.py`, 32") < text.index("<details>") < text.index("argparse")


def smaller(lines: int, rows: int = 4) -> IssueReport:
    """The report with everything, a smaller program of so many lines and a table of so many
    rows.
    """
    report = load("reproduced-with-proof")
    assert report.script is not None
    assert report.reduced is not None
    script = report.script.model_copy(update={"files": {"repro.py": "x = 1\n" * lines}})
    return report.model_copy(
        update={
            "script": script,
            "reduced": report.reduced.model_copy(update={"script": script, "lines_after": lines}),
            "comparison": (report.comparison * 3)[:rows],
        }
    )


@pytest.mark.parametrize("lines", range(1, 15))
@pytest.mark.parametrize("rows", range(5))
def test_a_program_takes_the_place_of_rows(lines: int, rows: int) -> None:
    report = smaller(lines, rows)
    text = comment(report)
    assert len(seen(text)) <= LINES_UNFOLDED
    for row in report.comparison:
        assert row.observed in text, "what has no room in sight is in the evidence"
    if lines <= 9:
        assert text.index("x = 1") < text.index("<details>")


def test_runs_of_a_proof_do_not_drown_those_that_confirmed() -> None:
    report = load("reproduced-with-proof")
    many = tuple(
        each.model_copy(update={"number": each.number + 40 * turn})
        for turn in range(30)
        for each in report.attempts[3:]
    )
    text = comment(report.model_copy(update={"attempts": (*report.attempts[:3], *many)}))
    rows = [
        line
        for line in text[text.index("Runs of the program: ") :].splitlines()
        if line.startswith("| ")
    ][1:]
    assert [row.split(" | ")[1] for row in rows[:2]] == ["search: as reported", "confirm"]
    assert len(rows) <= 13


def test_the_evidence_is_of_the_environment_that_was_reported() -> None:
    report = load("reproduced-half-proven")
    assert report.environment is not None
    assert report.attempts[-1].judgement.match is Match.MATCHED
    assert report.attempts[-1].environment != report.environment.id
    told = telling(report)
    assert told is not None
    assert (told.environment, told.purpose) == (report.environment.id, "confirm")


def test_claims_that_do_not_hold_come_first() -> None:
    text = comment(load("reproduced-with-proof"))
    assert "Evidence (1 claim in the bug report is wrong)" in text
    assert (
        text.index("wrong (2 of 2 runs failed with 0.3.0)")
        < text.index("correct (5 of 5 runs failed with 0.3.1)")
        < text.index("not checked")
    )


def test_the_command_is_the_only_shell_block_and_stands_in_sight() -> None:
    text = comment(load("reproduced"))
    blocks = [
        token for token in MarkdownIt().parse(text) if token.type == "fence" and token.info == "sh"
    ]
    assert [block.content.strip() for block in blocks] == [load("reproduced").command]
    assert text.index("```sh") < text.index("<details>")


@pytest.mark.parametrize("width", [20, 40, 200])
@pytest.mark.parametrize("name", NAMES)
def test_terminal_fits_narrow_windows(name: str, width: int) -> None:
    lines = terminal(load(name), run="runs/x", width=width).splitlines()
    command = "  " + load(name).command
    assert all(
        len(line) <= width
        for line in lines
        if line != command and not line.startswith("Changelog: https://")
    )


def test_terminal_has_no_escapes_unless_colour_is_wanted() -> None:
    assert "\x1b" not in terminal(load("reproduced"))
    assert "\x1b[" in terminal(load("reproduced"), colour=True)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
def test_terminal_can_be_written_in_any_encoding(name: str, encoding: str) -> None:
    text = terminal(load(name), run="runs/x", encoding=encoding)
    text.encode(encoding)
    assert "?" * 3 not in text, "our own marks have a stand-in"


def test_a_bisection_is_drawn_where_it_can_be() -> None:
    report = load("reproduced-with-proof")
    assert (
        "0.1.0 -?\u2713\u2713\u2502\u2717\u2717\u2717\u250a?\u250a\u2713\u2713 0.4.1"
        in terminal(report)
    )
    assert "0.1.0 -?oo|xxx:?:oo 0.4.1" in terminal(report, encoding="ascii")
    assert "x fails, o passes" in terminal(report, encoding="ascii")
    assert "32 -> 4 lines" in terminal(report, encoding="ascii")


def test_terminal_reads_nothing_as_markup_and_passes_no_escape_on() -> None:
    report = load("not_a_bug")
    verdict = report.verdict.model_copy(
        update={"sentence": "[red]x[/red] \x1b[31mred\x1b[0m [/nonsense] :bug:"}
    )
    text = terminal(report.model_copy(update={"verdict": verdict}))
    assert "[red]x[/red] red [/nonsense] :bug:" in text
