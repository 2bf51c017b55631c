"""Looks for other ground truths of the programs of a bench. Trials are kept, so that a stopped run
goes on, and with a larger budget goes further. Each row is kept as `ID/neutral.json`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing
from statistics import fmean

from rich.table import Table

from benchmarks.fault_runs import FaultCase
from benchmarks.faults import expanded
from benchmarks.neutrality import NeutralSearch, codes, scores_of
from benchmarks.recorded_programs import BenchRuns, RecordedProgram
from bot.kernel.errors import RepriseError
from bot.kernel.files import write
from bot.kernel.values import Record
from bot.report.run_folder import Folder
from bot.training.repair.repair import changeable, open_trials
from bot.training.repair.trials import Trials
from sandbox.port import SandboxError

_MARGIN = 0.05
"""Of the gain of the key's repair: how much less is as good."""


class NeutralTruth(Record):
    """A configuration that learns as well as the key's repair."""

    codes: tuple[str, ...]
    patch: tuple[str, ...]
    values: tuple[float, ...]
    mean: float


class NeutralRow(Record):
    """What was found for a program. `alternative_ground_truths` are for its key: each list of codes
    once, without the key's own. `exhausted` says that nothing is left to try; otherwise the budget
    ended the search.
    """

    id: str
    ground_truth: tuple[str, ...]
    alternative_ground_truths: tuple[tuple[str, ...], ...] = ()
    truths: tuple[NeutralTruth, ...] = ()
    before: float | None = None
    truth: float | None = None
    configurations: int = 0
    trainings: int = 0
    seconds: float = 0.0
    exhausted: bool = False
    error: str = ""


class NeutralBench(Record):
    """The JSON of `python -m benchmarks neutral`."""

    cases: tuple[NeutralRow, ...]


def run(cases: Sequence[FaultCase], bench: BenchRuns, jobs: int) -> Iterator[NeutralRow]:
    """The row of each faulty case as it ends."""
    faulty = [case for case in cases if not case.healthy]
    with ThreadPoolExecutor(max_workers=jobs, thread_name_prefix="neutral") as pool:
        for done in as_completed([pool.submit(_row, case, bench) for case in faulty]):
            yield done.result()


def _row(case: FaultCase, bench: BenchRuns) -> NeutralRow:
    if case.unclear:
        return NeutralRow(id=case.id, ground_truth=(), error=case.unclear)
    row = NeutralRow(id=case.id, ground_truth=expanded(case.truths[0]))
    repaired = case.key.get("repaired")
    if not repaired:
        return row.model_copy(update={"error": "the key does not tell what its repair reaches"})
    try:
        with closing(Folder(bench.out / case.id / "neutral")) as folder:
            subject = RecordedProgram.of(case, bench, folder)
            request = bench.request(case)
            with open_trials(subject.program, subject.run, subject.session, request) as trials:
                if isinstance(trials, str):
                    return row.model_copy(update={"error": trials})
                found = searched(row, trials, fmean(repaired))
        write(bench.out / case.id / "neutral.json", found.model_dump_json(indent=2))
    except (RepriseError, SandboxError) as error:
        return row.model_copy(update={"error": f"{type(error).__name__}: {error}"[:300]})
    return found


def searched(row: NeutralRow, trials: Trials, truth: float) -> NeutralRow:
    """A row with what the search finds; `truth` is the mean metric of the key's repair."""
    sign = 1 if trials.subject.metric.direction == "max" else -1
    scores = [x for x in scores_of((), trials) if x > float("-inf")]
    top, faulty = sign * truth, fmean(scores) if scores else None
    margin = _MARGIN * abs(top - faulty if faulty is not None else top)
    known = [frozenset(row.ground_truth)]
    search = NeutralSearch(trials, changeable(trials), top, margin, known)
    search.run()
    truths = tuple(
        NeutralTruth(
            codes=codes(patch, search.found),
            patch=tuple(f"{x.parameter} {x.before} → {x.after}" for x in patch),
            values=tuple(sign * x for x in values),
            mean=sign * fmean(values),
        )
        for patch, values in search.truths.items()
    )
    own, *_ = search.known
    others = (x.codes for x in truths if not any(one < set(x.codes) for one in search.known))
    told = {
        "alternative_ground_truths": tuple(dict.fromkeys(x for x in others if set(x) != own)),
        "truths": truths, "truth": truth,
        "before": None if faulty is None else sign * faulty,
        "configurations": len(search.visited), "trainings": len(trials.made),
        "seconds": sum(x.seconds for x in trials.made.values()), "exhausted": search.exhausted,
    }  # fmt: skip
    return row.model_copy(update=told)


def line(row: NeutralRow) -> str:
    """One row, as progress."""
    if row.error:
        return f"{row.id}: {row.error}"
    others = "; ".join(" ".join(each) for each in row.alternative_ground_truths) or "none"
    return (
        f"{row.id}: {others} ({row.configurations} configurations, {row.trainings} trainings, "
        f"{row.seconds:.0f} s{', all tried' if row.exhausted else ''})"
    )


def neutral_table(whole: NeutralBench) -> Table:
    """A line for each truth that was found."""
    table = Table(title="Other ground truths")
    for head in ("id", "codes", "patch", "faulty", "mean", "key's repair"):
        table.add_column(head)
    for row in whole.cases:
        for each in row.truths:
            table.add_row(
                row.id, " ".join(each.codes), "; ".join(each.patch),
                "none" if row.before is None else f"{row.before:.3g}", f"{each.mean:.3g}",
                f"{row.truth:.3g}",
            )  # fmt: skip
        if not row.truths:
            table.add_row(row.id, row.error or "none found")
    return table
