"""Papers with a key: the verdict, the gap, and how many of the hyperparameters and contradictions
that the key lists are told, and how.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from benchmarks.cassettes import Cassettes
from benchmarks.paper_mutants import CONSEQUENCES, Mutant, mutants
from bot.app import bootstrap
from bot.kernel import files
from bot.kernel.errors import RepriseError
from bot.kernel.job import EnvironmentOptions, ModelLimits, ReproducePaper
from bot.kernel.paper import Criterion, PaperResult
from bot.kernel.ports import Model, Progress
from bot.kernel.report import PaperReport
from bot.kernel.settings import Settings
from bot.kernel.values import Record
from bot.products.engine import execute
from bot.report.run_folder import Folder
from sandbox.port import Sandbox
from tests.support.git_http import GitServer

Edit = tuple[str, str, str]
"""A file, the text in it, and what stands in its place."""


class Rates(Record):
    """What was told against a key; None where there is nothing to divide by."""

    precision: float | None
    recall: float | None


class PaperRow(Record):
    """One paper. `observed` is the share of judged criteria that the run decided, `read` how many a
    model read, `unknown` what nothing judged; `explained` are the contradictions that were shown to
    explain the gap, and `inherited` what a cited work has of that which the paper leaves open.
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
    read: int = 0
    unknown: tuple[str, ...] = ()
    inherited: tuple[str, ...] = ()
    calls: int = 0
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


@dataclass(frozen=True, slots=True)
class Reader:
    """The model that reads papers and code, "" for none, and where its exchanges are kept or come
    from.
    """

    name: str = ""
    cassettes: Cassettes = field(default_factory=Cassettes)

    def model(
        self, case: str, job: ReproducePaper, settings: Settings, folder: Folder
    ) -> Model | None:
        """Who answers for a case."""
        if self.cassettes.replay is not None:
            return self.cassettes.of(case)
        return bootstrap.model_of(job, settings, folder) if self.name else None


def run(
    paths: Sequence[Path],
    sandbox: Sandbox,
    settings: Settings,
    minutes: float,
    reader: Reader = Reader(),
) -> PaperBench:
    """Reproduce each paper in a repository made of its `repo` folder; a git server has those of the
    works that it cites.
    """
    return PaperBench(cases=tuple(_run(path, sandbox, settings, minutes, reader) for path in paths))


def _run(
    path: Path, sandbox: Sandbox, settings: Settings, minutes: float, reader: Reader
) -> PaperRow:
    expected = json.loads((path / "expected.json").read_text(encoding="utf-8"))
    limits = ModelLimits(name=reader.name or None)
    try:
        report = _reproduced(path, [], sandbox, settings, reader, minutes=minutes, model=limits)
    except RepriseError as error:
        return PaperRow(id=path.name, error=str(error))
    return score(path.name, report, expected)


def _reproduced(
    path: Path,
    edits: Sequence[Edit],
    sandbox: Sandbox,
    settings: Settings,
    reader: Reader,
    **more: Any,
) -> PaperReport:
    """The report of a paper with a repository made of its `repo` folder, with edits."""
    with (
        tempfile.TemporaryDirectory(prefix="reprise-papers-") as name,
        GitServer(Path(name) / "served") as server,
        closing(Folder(Path(name) / "run")) as folder,
    ):
        clone = Path(name) / "repo"
        cited = {work.name: server.publish(work) for work in sorted((path / "cited").glob("*"))}
        shutil.copytree(path / "repo", clone)
        for file, before, after in edits:
            text = (clone / file).read_text(encoding="utf-8")
            (clone / file).write_text(text.replace(before, after), encoding="utf-8")
        for argv in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "one")):
            who = ("-c", "user.name=bench", "-c", "user.email=bench@example.invalid")
            subprocess.run(("git", *who, *argv), cwd=clone, check=True)
        environment = EnvironmentOptions(repo=str(clone))
        job = ReproducePaper(
            source=str(path / "paper"), environment=environment, cited=cited, **more
        )
        folder.begin(job)
        ports = bootstrap.make_ports(
            settings, sandbox=sandbox, journal=folder, listener=_silent, own_paths=True,
            model=reader.model(path.name, job, settings, folder),
        )  # fmt: skip
        try:
            return execute(job, ports)
        finally:
            reader.cassettes.keep(path.name, folder.path)


def run_written(
    paths: Sequence[Path],
    sandbox: Sandbox,
    settings: Settings,
    minutes: float,
    model: str,
    cassettes: Cassettes,
) -> PaperBench:
    """Reproduce each paper with code that a model writes: then its number is expected, and nothing
    that contradicts it.
    """
    limits = ModelLimits(name=model or None, max_tokens=2_000_000, max_calls=80, minutes=minutes)
    rows = list[PaperRow]()
    for path in paths:
        key = json.loads((path / "expected.json").read_text(encoding="utf-8"))
        key |= {"verdict": "reproduced", "contradictions": ()}
        job = ReproducePaper(
            source=str(path / "paper"), no_repo=True, minutes=minutes, model=limits
        )
        try:
            report = _written(path.name, job, sandbox, settings, cassettes)
        except RepriseError as error:
            rows.append(PaperRow(id=path.name, error=str(error)))
        else:
            rows.append(score(path.name, report, key))
    return PaperBench(cases=tuple(rows))


def _written(
    name: str, job: ReproducePaper, sandbox: Sandbox, settings: Settings, cassettes: Cassettes
) -> PaperReport:
    with (
        tempfile.TemporaryDirectory(prefix="reprise-papers-") as work,
        closing(Folder(Path(work) / "run")) as folder,
    ):
        folder.begin(job)
        recorded = cassettes.of(name)
        model = None if cassettes.replay is not None else bootstrap.model_of(job, settings, folder)
        ports = bootstrap.make_ports(
            settings, sandbox=sandbox, journal=folder, listener=_silent, own_paths=True,
            model=recorded or model,
        )  # fmt: skip
        try:
            return execute(job, ports)
        finally:
            cassettes.keep(name, folder.path)


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
        read=sum(row.evidence == "read" for row in judged),
        unknown=tuple(row.name for row in result.criteria if row.verdict == "unknown"),
        inherited=tuple(
            f"{row.kind}: {row.inherited.value}" for row in result.criteria if row.inherited
        ),
        calls=report.cost.calls,
        tokens=report.cost.input_tokens + report.cost.output_tokens,
        seconds=report.seconds.get("total", 0.0),
    )


def _stated(result: PaperResult) -> set[tuple[str, str]]:
    """What was read of a paper; of statements that no kind covers no key could list the words."""
    return {
        (row.kind, row.stated) for row in result.criteria if row.stated and row.kind != "method"
    }


def _share(judged: Sequence[Criterion]) -> float:
    return fmean(row.evidence == "observed" for row in judged) if judged else 0.0


def rates(answers: set[Any], key: set[Any]) -> Rates:
    """Precision and recall of answers against a key."""
    hits = len(answers & key)
    return Rates(
        precision=hits / len(answers) if answers else None, recall=hits / len(key) if key else None
    )


# Mutants: changes of the repositories, each of which makes one hyperparameter wrong, or none.


class MutantRow(Record):
    """One mutant: the kind that it makes wrong ("" for a harmless one, or where the paper states
    none of the kind), the contradictions that were found, each with its evidence, and how many
    criteria each evidence judged.
    """

    id: str
    kind: str
    what: str = ""
    contradictions: dict[str, str] = {}
    judged: dict[str, int] = {}
    seconds: float = 0.0
    error: str = ""

    @property
    def alarms(self) -> dict[str, str]:
        """Contradictions that are none: neither the change nor a consequence of it."""
        right = {self.kind} | CONSEQUENCES.get(self.kind, frozenset())
        return {kind: how for kind, how in self.contradictions.items() if kind not in right}


class MutantBench(Record):
    """The mutants of all papers."""

    mutants: tuple[MutantRow, ...]


def run_mutants(
    paths: Sequence[Path],
    sandbox: Sandbox,
    settings: Settings,
    minutes: float,
    only: str = "",
    out: Path | None = None,
) -> Iterator[MutantRow]:
    """Run the mutants of each paper; `agrees` edits of its key make its repository agree with it
    first. `only` are ids such as "digits-3"; what `out` has of an earlier run is not run again.
    """
    ids = tuple(part.strip() for part in only.split(",") if part.strip())
    for path in paths:
        base, stated = key_of(path)
        for number, mutant in enumerate(mutants(repository_files(path, base)), 1):
            name = f"{path.name}-{number}"
            kept = out / f"{name}.json" if out is not None else None
            if ids and name not in ids:
                continue
            if kept is not None and kept.is_file():
                yield MutantRow.model_validate_json(kept.read_text("utf-8"))
                continue
            row = _run_mutant(name, path, base, mutant, stated, sandbox, settings, minutes)
            if kept is not None:
                files.write(kept, row.model_dump_json())
            yield row


def key_of(path: Path) -> tuple[list[Edit], set[str]]:
    """What makes a repository agree with its paper, and the kinds that the paper states."""
    key = json.loads((path / "expected.json").read_text(encoding="utf-8"))
    edits = [(row["file"], row["before"], row["after"]) for row in key.get("agrees", ())]
    return edits, set(key["criteria"])


def repository_files(path: Path, edits: Sequence[Edit]) -> dict[str, str]:
    """The files of a paper's repository, with edits."""
    root = path / "repo"
    files = (file for file in sorted(root.rglob("*.*")) if file.is_file() and file.suffix != ".pyc")
    tree = {file.relative_to(root).as_posix(): file.read_text("utf-8") for file in files}
    for file, before, after in edits:
        tree[file] = tree[file].replace(before, after)
    return tree


def _run_mutant(
    name: str,
    path: Path,
    base: Sequence[Edit],
    mutant: Mutant,
    stated: set[str],
    sandbox: Sandbox,
    settings: Settings,
    minutes: float,
) -> MutantRow:
    kind = mutant.kind if mutant.kind in stated else ""
    change = (mutant.file, repository_files(path, base)[mutant.file], mutant.text)
    try:
        report = _reproduced(
            path, [*base, change], sandbox, settings, Reader(), minutes=minutes, runs=mutant.runs
        )
    except RepriseError as error:
        return MutantRow(id=name, kind=kind, what=mutant.what, error=str(error))
    result = report.result
    judged = [row.evidence for row in result.criteria if row.verdict in {"agrees", "contradicts"}]
    return MutantRow(
        id=name,
        kind=kind,
        what=mutant.what,
        contradictions={row.kind: row.evidence for row in result.contradictions},
        judged=dict(Counter(judged)),
        seconds=report.seconds.get("total", 0.0),
        error=next((run.problem for run in result.runs if run.problem), ""),
    )


def mutant_line(row: MutantRow) -> str:
    """A mutant as it ends."""
    texts = ", ".join(f"{kind} ({how})" for kind, how in row.contradictions.items())
    return f"{row.id}  {row.kind or 'nothing'}: {row.what} -> {texts or 'nothing'} {row.error}"


def mutants_table(bench: MutantBench) -> Group:
    """One row a mutant, and how many were found."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in ("id", "makes wrong", "change", "", "contradictions", "s", "problem"):
        table.add_column(name, overflow="fold")
    for row in bench.mutants:
        is_right = (not row.kind or row.kind in row.contradictions) and not row.alarms
        texts = ", ".join(f"{kind} ({how})" for kind, how in row.contradictions.items())
        mark = Text("right", "green") if is_right else Text("wrong", "red")
        table.add_row(
            row.id, row.kind or "nothing", row.what, mark, texts, f"{row.seconds:.0f}", row.error,
        )  # fmt: skip
    return Group(table, Text(), *(Text(line) for line in mutant_summary(bench.mutants)))


def mutant_summary(rows: Sequence[MutantRow]) -> Iterator[str]:
    """Recall and false alarms, in all and by kind of evidence."""
    faulty = [row for row in rows if row.kind]
    hits = [row.contradictions[row.kind] for row in faulty if row.kind in row.contradictions]
    alarms = [how for row in rows for how in row.alarms.values()]
    judged = sum((Counter(row.judged) for row in rows), Counter())
    yield (
        f"{len(hits)} of {len(faulty)} mutants found; "
        f"{len(alarms)} false alarms of {judged.total()} judgements"
    )
    for how in ("observed", "located"):
        yield (
            f"{how}: {hits.count(how)} found, "
            f"{alarms.count(how)} false alarms of {judged[how]} judgements"
        )
    missed = [f"{row.id} {row.kind}" for row in faulty if row.kind not in row.contradictions]
    if missed:
        yield f"missed: {', '.join(missed)}"


# The table.


def papers_table(bench: PaperBench) -> Group:
    """One row a paper, and the means."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in (
        "id", "verdict", "", "gap", "claim", "criteria P/R", "judged", "observed", "read",
        "unknown", "contradictions P/R", "explained by", "inherited", "tokens", "s",
    ):  # fmt: skip
        table.add_column(name, overflow="fold")
    for row in bench.cases:
        mark = Text("right", "green") if row.is_right else Text("wrong", "red")
        table.add_row(
            row.id, row.verdict or "error", mark, f"{100 * row.gap:.1f} %",
            "right" if row.claim_is_right else "wrong", _pair(row.criteria), str(row.judged),
            f"{100 * row.observed:.0f} %", str(row.read), ", ".join(row.unknown),
            _pair(row.contradictions), ", ".join(row.explained), ", ".join(row.inherited),
            str(row.tokens), f"{row.seconds:.0f}",
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
