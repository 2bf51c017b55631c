"""What is delivered: honest reports whose verdict is known, and the hostile corpus."""

from __future__ import annotations

import random
import subprocess
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tests.corpus.hostile import world
from tests.corpus.hostile.case_files import Case, cases
from tests.corpus.hostile.corpus import load
from tests.support.stand_in import GitHubServer

_QUOTA = "quota: {person: 10000, repository: 100000, plans: 100000, minutes: 1000000}\n"
_QUICK = "defaults:\n  proofs: []\n"
_BASIN = """def flow(sources, rate):
    if not sources:
        {empty}
    return rate + sum(sources) / len(sources)
"""
_WRITER = "max"


@dataclass(frozen=True, slots=True)
class IssueReport:
    """One report. `verdicts` are the kinds that are right, "" among them when nobody need be
    answered; none when any will do. With a `comment`, `sender` asks for the run.
    """

    id: str
    honest: bool
    repository: str
    title: str
    body: str
    verdicts: tuple[str, ...] = ()
    comment: str = ""
    sender: str = ""


def honest() -> tuple[IssueReport, ...]:
    """The reports of honest.toml, with {n} in them."""
    table = tomllib.loads(Path(__file__).with_name("honest.toml").read_text("utf-8"))
    return tuple(
        IssueReport(
            each["id"],
            True,
            "honest/proven" if each.get("proofs") else "honest/quick",
            each["title"],
            each["body"],
            (each["verdict"],),
        )
        for each in table["report"]
    )


def hostile() -> tuple[IssueReport, ...]:
    """The hostile corpus: cases that need no model, and the texts, opened as issues."""
    attacks = (
        IssueReport(
            case.id,
            False,
            f"hostile/{case.id}",
            case.title,
            case.body,
            case.verdict or ("",),
            case.comment,
            case.sender,
        )
        for case in _cases()
    )
    said = (
        IssueReport(each.id, False, "hostile/texts", each.title, each.text)
        for each in load("incoming")
    )
    return (*attacks, *said)


def mixture(count: int, share: float, seed: int) -> list[IssueReport]:
    """`count` reports in random order, this share of them honest. None comes a second time before
    all others of its kind have come.
    """
    chance = random.Random(seed)
    bags = {True: _drawn(honest(), chance), False: _drawn(hostile(), chance)}
    drawn = (next(bags[chance.random() < share]) for _ in range(count))
    return [_numbered(each, number) for number, each in enumerate(drawn, 1)]


def index(root: Path) -> None:
    """The package index of all reports."""
    made = world.index_of(_cases(), root)
    for version, empty in (
        ("0.9", "return 0.0"),
        ("1.0", 'raise ZeroDivisionError("the basin has no source")'),
    ):
        made.wheel("basin", {"basin/__init__.py": _BASIN.format(empty=empty)}, version)


def repositories(hub: GitHubServer, folder: Path) -> None:
    """Every repository that reports are about, with its configuration and its files."""
    settings = {"honest/quick": _QUICK, "honest/proven": "", "hostile/texts": _QUICK}
    for name, settled in settings.items():
        hub.commit(name, {".github/reprise.yml": settled + _QUOTA})
    for case in _cases():
        name = f"hostile/{case.id}"
        made = hub.state.repository(name)
        hub.state.collaborator(name, _WRITER, "write")
        files = {**case.files, ".github/reprise.yml": case.config}
        source = world.repository(folder / case.id, files)
        refs = ("HEAD:refs/heads/main", "refs/pull/*:refs/pull/*")
        git = ["git", "-C", str(hub.git.folder(made)), "fetch", "-q", source, *refs]
        subprocess.run(git, check=True, capture_output=True)


def _cases() -> Sequence[Case]:
    return [case for case in cases() if not case.answers and not case.broken]


def _drawn(every: Sequence[IssueReport], chance: random.Random) -> Iterator[IssueReport]:
    while True:
        yield from chance.sample(every, len(every))


def _numbered(report: IssueReport, number: int) -> IssueReport:
    if not report.honest:
        return report
    title, body = (text.replace("{n}", str(number)) for text in (report.title, report.body))
    return replace(report, title=title, body=body)
