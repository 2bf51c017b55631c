"""Papers with a key: the verdict, the gap, and how many of the hyperparameters and contradictions
that the key lists are told, and how.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from bot.app import bootstrap
from bot.kernel.errors import RepriseError
from bot.kernel.job import EnvironmentOptions, ReproducePaper
from bot.kernel.paper import Criterion, PaperResult
from bot.kernel.ports import Progress
from bot.kernel.report import PaperReport
from bot.kernel.settings import Settings
from bot.kernel.values import Record
from bot.products import execute
from bot.report.run_folder import Folder
from sandbox.port import Sandbox

Edit = tuple[str, str, str]
"""A file, the text in it, and what stands in its place."""


class Rates(Record):
    """What was told against a key; None where there is nothing to divide by."""

    precision: float | None
    recall: float | None


class PaperRow(Record):
    """One paper. `observed` is the share of judged criteria that the run decided; `explained` are
    the contradictions that were shown to explain the gap.
    """

    id: str
    verdict: str = ""
    is_right: bool = False
    gap: float = 1.0
    ran: bool = False
    claim_is_right: bool = False
    criteria: Rates = Rates(precision=None, recall=None)
    contradictions: Rates = Rates(precision=None, recall=None)
    explained: tuple[str, ...] = ()
    judged: int = 0
    observed: float = 0.0
    tokens: int = 0
    seconds: float = 0.0
    error: str = ""


class PaperBench(Record):
    """All papers of a folder."""

    cases: tuple[PaperRow, ...]


def cases(folder: Path, only: str = "") -> list[Path]:
    """The papers of a folder that have a key, those alone whose ids begin so."""
    starts = tuple(part.strip() for part in only.split(",") if part.strip())
    paths = sorted(path.parent for path in folder.glob("*/expected.json"))
    return [path for path in paths if not starts or path.name.startswith(starts)]


def run(paths: Sequence[Path], sandbox: Sandbox, settings: Settings, minutes: float) -> PaperBench:
    """Reproduce each paper in a repository made of its `repo` folder."""
    return PaperBench(cases=tuple(_run(path, sandbox, settings, minutes) for path in paths))


def _run(path: Path, sandbox: Sandbox, settings: Settings, minutes: float) -> PaperRow:
    expected = json.loads((path / "expected.json").read_text(encoding="utf-8"))
    try:
        report = _reproduced(path, [], sandbox, settings, minutes=minutes)
    except RepriseError as error:
        return PaperRow(id=path.name, error=str(error))
    return score(path.name, report, expected)


def _reproduced(
    path: Path, edits: Sequence[Edit], sandbox: Sandbox, settings: Settings, **more: Any
) -> PaperReport:
    """The report of a paper with a repository made of its `repo` folder, with edits."""
    with tempfile.TemporaryDirectory(prefix="reprise-papers-") as name:
        clone, work = Path(name) / "repo", Path(name) / "run"
        shutil.copytree(path / "repo", clone)
        for file, before, after in edits:
            text = (clone / file).read_text(encoding="utf-8")
            (clone / file).write_text(text.replace(before, after), encoding="utf-8")
        for argv in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "one")):
            who = ("-c", "user.name=bench", "-c", "user.email=bench@example.invalid")
            subprocess.run(("git", *who, *argv), cwd=clone, check=True)
        environment = EnvironmentOptions(repo=str(clone))
        job = ReproducePaper(source=str(path / "paper"), environment=environment, **more)
        folder = Folder(work)
        folder.begin(job)
        ports = bootstrap.make_ports(
            settings, sandbox=sandbox, journal=folder, listener=_silent, own_paths=True
        )
        return execute(job, ports)


def _silent(_: Progress) -> None:
    """Nobody watches."""


def score(name: str, report: PaperReport, expected: dict[str, Any]) -> PaperRow:
    """A report held against its key."""
    result, claim = report.result, report.result.claim
    wanted_claim = expected.get("claim", {})
    has_claim = claim is not None and all(
        getattr(claim, field) == value for field, value in wanted_claim.items()
    )
    judged = [row for row in result.criteria if row.verdict in {"agrees", "contradicts"}]
    explained = (row.kind for row in result.criteria if row.effect and row.effect.explains)
    return PaperRow(
        id=name,
        verdict=result.verdict.kind,
        is_right=result.verdict.kind == expected["verdict"],
        gap=result.comparison.gap,
        ran=any(run.value is not None and not run.problem for run in result.runs),
        claim_is_right=has_claim,
        criteria=rates(_stated(result), set(expected.get("criteria", {}).items())),
        contradictions=rates(
            {row.kind for row in result.contradictions}, set(expected.get("contradictions", ()))
        ),
        explained=tuple(explained),
        judged=len(judged),
        observed=_share(judged),
        tokens=report.cost.input_tokens + report.cost.output_tokens,
        seconds=report.seconds.get("total", 0.0),
    )


def _stated(result: PaperResult) -> set[tuple[str, str]]:
    return {(row.kind, row.stated) for row in result.criteria if row.stated}


def _share(judged: Sequence[Criterion]) -> float:
    return fmean(row.evidence == "observed" for row in judged) if judged else 0.0


def rates(answers: set[Any], key: set[Any]) -> Rates:
    """Precision and recall of answers against a key."""
    hits = len(answers & key)
    return Rates(
        precision=hits / len(answers) if answers else None, recall=hits / len(key) if key else None
    )


# Mutants: changes of the repositories, each of which one hyperparameter contradicts, or none.


class MutantRow(Record):
    """One mutant: the kind that it changes ("" for a harmless one), the contradictions that were
    told of, each with its evidence, and how many criteria were judged.
    """

    id: str
    kind: str
    contradictions: dict[str, str] = {}
    judged: int = 0
    seconds: float = 0.0
    error: str = ""


class MutantBench(Record):
    """The mutants of all papers."""

    mutants: tuple[MutantRow, ...]


def run_mutants(
    paths: Sequence[Path], sandbox: Sandbox, settings: Settings, minutes: float
) -> MutantBench:
    """Run each mutant once; `base` edits of a paper make its repository agree with it first."""
    rows = list[MutantRow]()
    for path in paths:
        data = json.loads((path / "mutants.json").read_text(encoding="utf-8"))
        base = [_edit(row) for row in data["base"]]
        for number, row in enumerate(data["mutants"], 1):
            edits = [*base, _edit(row)]
            name = f"{path.name}-{number}"
            try:
                report = _reproduced(path, edits, sandbox, settings, minutes=minutes, runs=1)
            except RepriseError as error:
                rows.append(MutantRow(id=name, kind=row["kind"], error=str(error)))
                continue
            judged = [x for x in report.result.criteria if x.verdict in {"agrees", "contradicts"}]
            contradictions = {x.kind: x.evidence for x in report.result.contradictions}
            seconds = report.seconds.get("total", 0.0)
            problem = next((run.problem for run in report.result.runs if run.problem), "")
            rows.append(
                MutantRow(
                    id=name, kind=row["kind"], contradictions=contradictions,
                    judged=len(judged), seconds=seconds, error=problem,
                )
            )  # fmt: skip
    return MutantBench(mutants=tuple(rows))


def _edit(row: dict[str, str]) -> Edit:
    return row["file"], row["before"], row["after"]


def mutants_table(bench: MutantBench) -> Group:
    """One row a mutant, and how many were told of."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in ("id", "changes", "", "contradictions", "judged", "s", "problem"):
        table.add_column(name, overflow="fold")
    for row in bench.mutants:
        is_right = set(row.contradictions) == ({row.kind} - {""})
        texts = ", ".join(f"{kind} ({how})" for kind, how in row.contradictions.items())
        mark = Text("right", "green") if is_right else Text("wrong", "red")
        table.add_row(
            row.id, row.kind or "nothing", mark, texts, str(row.judged), f"{row.seconds:.0f}",
            row.error,
        )  # fmt: skip
    return Group(table, Text(), Text(mutant_summary(bench.mutants)))


def mutant_summary(rows: Sequence[MutantRow]) -> str:
    """How many mutants were told of, by evidence, and the false alarms."""
    faulty = [row for row in rows if row.kind]
    hits = [row.contradictions[row.kind] for row in faulty if row.kind in row.contradictions]
    alarms = sum(len(set(row.contradictions) - {row.kind}) for row in rows)
    judged = sum(row.judged for row in rows)
    return (
        f"{len(hits)} of {len(faulty)} mutants told of ({hits.count('observed')} observed, "
        f"{hits.count('located')} located); {alarms} false alarms of {judged} judgements"
    )


# The table.


def papers_table(bench: PaperBench) -> Group:
    """One row a paper, and the means."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in (
        "id", "verdict", "", "gap", "claim", "criteria P/R", "judged", "observed",
        "contradictions P/R", "explained by", "s",
    ):  # fmt: skip
        table.add_column(name, overflow="fold")
    for row in bench.cases:
        mark = Text("right", "green") if row.is_right else Text("wrong", "red")
        table.add_row(
            row.id, row.verdict or "error", mark, f"{100 * row.gap:.1f} %",
            "right" if row.claim_is_right else "wrong", _pair(row.criteria), str(row.judged),
            f"{100 * row.observed:.0f} %", _pair(row.contradictions), ", ".join(row.explained),
            f"{row.seconds:.0f}",
        )  # fmt: skip
    return Group(table, Text(), *(Text(line) for line in _lines(bench.cases)))


def _pair(row: Rates) -> str:
    texts = ("–" if value is None else f"{value:.2f}" for value in (row.precision, row.recall))
    return " / ".join(texts)


def _lines(rows: Sequence[PaperRow]) -> Iterator[str]:
    if rows:
        right, ran = sum(row.is_right for row in rows), sum(row.ran for row in rows)
        seconds = sum(row.seconds for row in rows)
        yield f"{right} of {len(rows)} verdicts right, {ran} ran, {seconds:.0f} s"
    yield from (f"{row.id}: {row.error}" for row in rows if row.error)
