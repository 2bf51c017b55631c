"""Whether the same paper gives the same list of criteria when it is asked for again: the Jaccard
index over repeated readings of (kind, value, verdict).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory

from rich.console import Group
from rich.table import Table
from rich.text import Text

from bot.app import bootstrap
from bot.kernel.job import ModelLimits, ReproducePaper
from bot.kernel.paper import Criterion, PaperFiles
from bot.kernel.ports import Model
from bot.kernel.session import Session
from bot.kernel.settings import Settings
from bot.kernel.trees import read_tree
from bot.kernel.values import Record
from bot.model.budget import ModelBudget
from bot.model.cassette import Cassette, Recording
from bot.model.chat import configured
from bot.papers.claims import choose_claim, read_claims
from bot.papers.code_reading import read_code
from bot.papers.criteria import read_criteria
from bot.papers.evidence import judge
from bot.papers.fingerprint import add_readings
from bot.papers.located import locate
from bot.papers.reading.archives import read_local
from bot.papers.reading.read import read_paper
from bot.papers.repository import choose_program
from bot.report.run_folder import EXCHANGE_FILE, Folder
from sandbox.port import Sandbox

Answers = frozenset[tuple[str, str, str]]
"""One reading: the kind, value and verdict of each criterion."""


class StabilityRow(Record):
    """One paper. `unstable` are criteria that not every reading has."""

    id: str
    jaccard: float
    criteria: int
    by_model: int
    unstable: tuple[str, ...] = ()
    tokens: int = 0


class StabilityBench(Record):
    """All papers of a folder, each read so often."""

    readings: int
    rows: tuple[StabilityRow, ...]


@dataclass(frozen=True, slots=True)
class StabilityOptions:
    """How often a paper is read and by which model, and where the exchanges go or come from; ""
    asks nobody.
    """

    readings: int
    sandbox: Sandbox
    settings: Settings
    model: str = ""
    out: Path | None = None
    replay: Path | None = None


def run_stability(paths: Sequence[Path], options: StabilityOptions) -> StabilityBench:
    """Read each paper so often, every time anew."""
    with TemporaryDirectory(prefix="reprise-stability-") as name:
        rows = tuple(_row(path, options, options.out or Path(name)) for path in paths)
    return StabilityBench(readings=options.readings, rows=rows)


def _row(path: Path, options: StabilityOptions, out: Path) -> StabilityRow:
    source, readings, tokens = read_local(path / "paper"), list[tuple[Criterion, ...]](), 0
    for number in range(1, options.readings + 1):
        criteria, tokens_of_reading = _reading(path, source, options, out / path.name / str(number))
        readings.append(criteria)
        tokens += tokens_of_reading
    sets = [answers(rows) for rows in readings]
    unstable = frozenset[tuple[str, str, str]].union(*sets) - sets[0].intersection(*sets)
    return StabilityRow(
        id=path.name,
        jaccard=mean_jaccard(sets),
        criteria=round(fmean(len(one) for one in sets)),
        by_model=sum(row.by == "model" for row in readings[0]),
        unstable=tuple(sorted(f"{kind}: {value}" for kind, value, _ in unstable)),
        tokens=tokens,
    )


def answers(criteria: Sequence[Criterion]) -> Answers:
    """What a reading says, of that which the paper states. A statement that no kind covers is the
    sentence that it stands in, however much of it is quoted.
    """
    return frozenset((row.kind, _value(row), row.verdict) for row in criteria if row.stated)


def _value(row: Criterion) -> str:
    return row.quote.sentence if row.kind == "method" and row.quote is not None else row.stated


def mean_jaccard(sets: Sequence[Answers]) -> float:
    """The mean of the Jaccard index over all pairs; 1.0 for sets that are empty."""
    values = [
        len(one & other) / len(one | other) if one | other else 1.0
        for one, other in combinations(sets, 2)
    ]
    return fmean(values) if values else 1.0


def _reading(
    path: Path, source: PaperFiles, options: StabilityOptions, out: Path
) -> tuple[tuple[Criterion, ...], int]:
    """One reading in a folder of its own, so that nothing of an earlier one is answered again."""
    job = ReproducePaper(source=str(path / "paper"), model=ModelLimits(name=options.model or None))
    with closing(Folder(out)) as folder:
        folder.go_on()
        ports = bootstrap.make_ports(
            options.settings, sandbox=options.sandbox, journal=folder, listener=lambda _: None,
            model=_model(options, out, folder),
        )  # fmt: skip
        budget = ModelBudget(ports, job.model, ports.clock())
        paper = read_paper(source)
        claims = read_claims(paper)
        claim = choose_claim(claims, "")
        criteria = read_criteria(paper, claims, claim)
        session = Session.begin(job, ports)
        criteria = add_readings(paper, claim, criteria, session, budget)
        tree = read_tree(str(path / "repo"))
        if claim is not None and (script := choose_program(tree, claim)) is not None:
            criteria = judge(criteria, locate(script, tree), {})
            criteria = read_code(criteria, paper, claim, script, tree, session, budget)
    usage = budget.usage
    return criteria, usage.input_tokens + usage.output_tokens


def _model(options: StabilityOptions, out: Path, folder: Folder) -> Model | None:
    if options.replay is not None:
        recorded = options.replay / out.parent.name / out.name / EXCHANGE_FILE
        return Cassette(recorded) if recorded.is_file() else None
    model = configured(options.settings, options.model) if options.model else None
    return Recording(model, folder) if model is not None else None


def stability_table(bench: StabilityBench) -> Group:
    """One row a paper, and the mean."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in ("id", "Jaccard", "criteria", "by a model", "not in every reading", "tokens"):
        table.add_column(name, overflow="fold")
    for row in bench.rows:
        table.add_row(
            row.id, f"{row.jaccard:.2f}", str(row.criteria), str(row.by_model),
            ", ".join(row.unstable), str(row.tokens),
        )  # fmt: skip
    return Group(table, Text(), *(Text(line) for line in _summary(bench)))


def _summary(bench: StabilityBench) -> Iterator[str]:
    if bench.rows:
        mean = fmean(row.jaccard for row in bench.rows)
        yield f"{bench.readings} readings of each paper: Jaccard {mean:.2f}"
