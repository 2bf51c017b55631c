"""The documentation: within its size, and without a dead link."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from itertools import pairwise
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
README_MAX_CHARACTERS = 9_000


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub gives to the headings of a page."""
    tokens = MarkdownIt("commonmark").parse(page.read_text("utf-8"))
    titles = (
        token.content for opening, token in pairwise(tokens) if opening.type == "heading_open"
    )
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


def dead_links(page: Path, text: str) -> list[str]:
    targets = re.findall(r"\]\(([^)\s]+)\)", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    dead = []
    for target in targets:
        path, _, anchor = target.partition("#")
        if re.match(r"[a-z]+:", path):
            continue
        file = (page.parent / path).resolve() if path else page
        if not file.exists() or (anchor and anchor not in anchors(file)):
            dead.append(target)
    return dead


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_no_link_is_dead(page: Path) -> None:
    assert dead_links(page, "[a](no-such-file.md) [b](#no-such-heading)") != []
    assert dead_links(page, page.read_text("utf-8")) == []


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text("utf-8")) <= README_MAX_CHARACTERS


def test_the_paths_that_the_documentation_names_exist() -> None:
    pattern = re.compile(r"`((?:bot|handlers|sandbox|prompts|benchmarks|tests|deploy)/[\w./]*)`")
    named = {
        (page.name, path) for page in PAGES for path in pattern.findall(page.read_text("utf-8"))
    }
    assert ("CONTRIBUTING.md", "bot/kernel/ports.py") in named
    assert [pair for pair in sorted(named) if not (ROOT / pair[1]).exists()] == []


def rows(page: str, heading: str) -> dict[str, str]:
    """The rows of the table under a heading, by what their first cell says in code."""
    section = page.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    found = re.findall(r"^\| `(\w+)` \|(.*)$", section, re.MULTILINE)
    assert len(found) == len(dict(found))
    return dict(found)


def test_the_escape_suite_answers_two_public_lists_with_tests_that_exist() -> None:
    page = (ROOT / "docs" / "escape-suite.md").read_text("utf-8")
    lists = [rows(page, name) for name in ("SandboxEscapeBench", "SandboxBench")]
    assert [len(each) for each in lists] == [18, 15]
    node = re.compile(r"`(test_\w+\.py)::(test_\w+)`")
    for row in (row for each in lists for row in each.items()):
        assert re.search(r"\| (covered|not applicable: |\*\*not contained\*\*)", row[1]), row
        assert node.search(row[1]), row
    files = {path.name: path.read_text("utf-8") for path in (ROOT / "tests").rglob("test_*.py")}
    named = set(node.findall(page))
    assert len(named) == len(set(re.findall(r"`(\S+)::(\S+)`", page)))
    assert [pair for pair in named if f"\ndef {pair[1]}(" not in files[pair[0]]] == []


def test_generated_pages_are_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "cogapp", "--check", *map(str, PAGES)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}{done.stderr}\nrun `make docs`"


def test_the_wheel_holds_four_rooms() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    assert project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"] == [
        "bot",
        "handlers",
        "sandbox",
        "prompts",
    ]


def test_the_glossary_is_linked_sorted_and_has_a_sentence_for_each_noun() -> None:
    page = ROOT / "docs" / "glossary.md"
    rows = [row for row in page.read_text("utf-8").splitlines() if row.startswith("- ")]
    entries = [re.fullmatch(r"- \*\*([a-z -]+)\*\*: ([A-Z].*\.)", row) for row in rows]
    assert [row for row, entry in zip(rows, entries, strict=True) if entry is None] == []
    nouns = [entry[1] for entry in entries if entry is not None]
    assert {"bug report", "judgement", "run report", "signature", "verdict"} <= {*nouns}
    assert nouns == sorted(set(nouns))
    assert [entry[1] for entry in entries if entry and ". " in entry[2]] == []
    assert "](glossary.md)" in (ROOT / "docs" / "contributing.md").read_text("utf-8")
