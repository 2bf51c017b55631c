"""Runs the stages over their cases, in several processes, and keeps what they make: one file a
stage, one line a case.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from time import process_time

from benchmarks.truth.inputs import Inputs
from benchmarks.truth.plain import canonical
from benchmarks.truth.stages.stage import Stage
from bot.kernel.errors import UserError

INPUTS = "inputs.json"
_SUFFIX = ".jsonl.gz"
_CHUNK, _OURS = 4, "reprise-runs"
Task = tuple[int, str]
Row = tuple[str, str, float]
Lines = dict[str, str]
"""The canonical JSON of a stage's results, by case id."""


@dataclass(frozen=True)
class StageRecord:
    """The results of one stage. `seconds` is the processor's, of all processes."""

    name: str
    lines: Lines
    seconds: float = 0.0


def results(
    stages: Sequence[Stage], inputs: Inputs, jobs: int, only: Sequence[str] = ()
) -> Iterator[StageRecord]:
    """What each stage makes of its cases; `only` picks cases by globs."""
    cases = {stage.name: _chosen(stage.cases(inputs), only) for stage in stages}
    tasks = [(at, name) for at, stage in enumerate(stages) for name in cases[stage.name]]
    _work.stages, _work.cases = tuple(stages), cases
    with _mapped(tasks, jobs) as made:
        for stage in stages:
            rows = list(islice(made, len(cases[stage.name])))
            lines = {name: line for name, line, _ in rows}
            yield StageRecord(stage.name, lines, sum(seconds for *_, seconds in rows))


@contextmanager
def _mapped(tasks: list[Task], jobs: int) -> Iterator[Iterator[Row]]:
    """The rows of the tasks in their order."""
    if jobs == 1:
        yield map(_line, tasks)
        return
    # A fork has the inputs already; making them again takes each process seconds.
    with get_context("fork").Pool(jobs) as pool:
        yield pool.imap(_line, tasks, _CHUNK)


class _Work:
    """What the processes share: the stages, and their cases by stage and id."""

    stages: tuple[Stage, ...] = ()
    cases: Mapping[str, Mapping[str, object]] = {}


_work = _Work()


def _line(task: Task) -> Row:
    at, name = task
    stage, began = _work.stages[at], process_time()
    line = canonical(stage.result(_work.cases[stage.name][name]))
    return name, line, process_time() - began


def _chosen(cases: Mapping[str, object], only: Sequence[str]) -> dict[str, object]:
    return {
        name: cases[name]
        for name in sorted(cases)
        if not only or any(fnmatchcase(name, glob) for glob in only)
    }


def opened(folder: Path) -> Path:
    """The folder of a record. Raises UserError for one that git would take for ours: a record holds
    what other people wrote.
    """
    place, top = folder.resolve(), Path(__file__).resolve().parents[2]
    if place.is_relative_to(top) and not place.is_relative_to(top / _OURS):
        raise UserError(f"{folder} is in the repository.", f"Name a folder outside, or in {_OURS}.")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def write(folder: Path, record: StageRecord) -> int:
    """Keep the results of a stage; returns how many bytes they take."""
    text = "".join(
        f'{{"case":{json.dumps(name, ensure_ascii=False)},"result":{line}}}\n'
        for name, line in record.lines.items()
    )
    data = gzip.compress(text.encode("utf-8", "surrogatepass"), mtime=0)
    path = folder / f"{record.name}{_SUFFIX}"
    path.write_bytes(data)
    return len(data)


def read(folder: Path, stage: str) -> Lines | None:
    """The kept results of a stage; None where none are kept."""
    path = folder / f"{stage}{_SUFFIX}"
    if not path.is_file():
        return None
    text = gzip.decompress(path.read_bytes()).decode("utf-8", "surrogatepass")
    rows = (json.loads(line) for line in text.split("\n") if line)
    return {row["case"]: canonical(row["result"]) for row in rows}


def kept_stages(folder: Path) -> list[str]:
    """The names of the stages that a folder has results of."""
    return sorted(path.name.removesuffix(_SUFFIX) for path in folder.glob(f"*{_SUFFIX}"))


def write_inputs(folder: Path, inputs: Inputs, cases: Sequence[str]) -> None:
    """Keep where the inputs came from, so that a check takes the same."""
    told = {
        "bench": str(inputs.bench.resolve()) if inputs.bench is not None else "",
        "kept": [str(path.resolve()) for path in inputs.kept],
        "cases": list(cases),
    }
    (folder / INPUTS).write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


def read_inputs(folder: Path) -> tuple[Inputs, tuple[str, ...]]:
    """The inputs that a folder was recorded with, and the globs of its cases. Raises UserError."""
    if not (folder / INPUTS).is_file():
        raise UserError(f"{folder} holds no record.", "Make one: python -m benchmarks truth record")
    told = json.loads((folder / INPUTS).read_text(encoding="utf-8"))
    bench = Path(told["bench"]) if told["bench"] else None
    kept = tuple(map(Path, told["kept"]))
    missing = [path for path in (bench, *kept) if path is not None and not path.is_dir()]
    if missing:
        raise UserError(f"The inputs of this record are gone: {missing[0]}.", "Record it again.")
    return Inputs(bench, kept), tuple(told["cases"])
