"""Runs the programs of a diagnosis bench: each through the pipeline, or with an interpreter that
has what they import. Traces are kept, so that changed rules judge them anew without a run.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.cassettes import Cassettes
from benchmarks.fault_opinions import Asked, judged
from benchmarks.faults import FaultRow, expanded, scored, truths_of
from bot.app import bootstrap
from bot.environment import provided
from bot.kernel import training_trace as trace
from bot.kernel.environment import Environment
from bot.kernel.errors import RepriseError, UserError
from bot.kernel.files import write, write_bytes
from bot.kernel.job import DiagnoseProgram, JobOptions
from bot.kernel.session import Session
from bot.kernel.settings import Settings
from bot.kernel.training_types import DiagnosedRun, TrainingProgram, TrainingTrace
from bot.report.run_folder import EXCHANGE_FILE, Folder
from bot.training import diagnose
from bot.training.diagnose import RecordedRun, record, record_program
from bot.training.repair.interventions import intervene
from sandbox.cache import Cache
from sandbox.interpreters import Interpreter, snapshot
from sandbox.port import RunResult, Sandbox, SandboxError

FIGURES, DIAGNOSIS = "figures.json", "interventions.json"
"""Beside the traces of a kept run: its seconds, and why nothing could be told."""


@dataclass(frozen=True, slots=True)
class FaultCase:
    """One training program of the bench, healthy or faulty, with its key where it has one."""

    id: str
    data: dict[str, Any]
    truths: tuple[tuple[str, ...], ...]
    healthy: bool
    family: str = ""
    key: dict[str, Any] = field(default_factory=dict)

    @property
    def folder(self) -> str:
        """Of its run: a healthy program without a key may bear the name of the faulty one that it
        repairs.
        """
        return f"{self.id}-healthy" if self.healthy and not self.key else self.id

    @property
    def unclear(self) -> str:
        """What is wrong with the key, in one sentence; "" for nothing."""
        try:
            for codes in self.truths:
                expanded(codes)
        except ValueError as error:
            return f"the key of {self.id} is unclear: {error}"
        return ""


@dataclass(frozen=True, slots=True)
class TrainingBench:
    """How the programs are run. `python` is an interpreter that has what they import."""

    settings: Settings
    options: JobOptions
    sandbox: Sandbox
    out: Path
    python: Path | None = None


@dataclass(frozen=True, slots=True)
class Bench(TrainingBench):
    """A bench of diagnoses. `cassettes` are None where no model gives a second opinion; `budget` is
    for trainings that confirm the findings, 0 for none.
    """

    fresh: bool = False
    cassettes: Cassettes | None = None
    budget: float = 0.0


def find(folder: Path, only: Sequence[str] = ()) -> tuple[FaultCase, ...]:
    """The cases of a folder and its healthy programs, by id; `only` picks by a beginning."""
    found = [_case(path, folder / "keys") for path in sorted((folder / "cases").glob("*.json"))]
    found += [_case(path, None) for path in sorted((folder / "healthy").glob("*.json"))]
    kept = [one for one in found if not only or one.id.startswith(tuple(only))]
    if not kept:
        raise UserError(f"{folder} holds no such cases.", "Name a folder with cases/*.json.")
    return tuple(kept)


def _case(path: Path, keys: Path | None) -> FaultCase:
    data = json.loads(path.read_bytes())
    if keys is None:
        return FaultCase(path.stem, data, (), healthy=True, family=data.get("family", ""))
    key = json.loads((keys / path.name).read_bytes())
    family = key.get("family", "")
    if key.get("status") == "healthy":
        return FaultCase(path.stem, data, (), healthy=True, family=family, key=key)
    return FaultCase(path.stem, data, truths_of(key), healthy=False, family=family, key=key)


def run(cases: Sequence[FaultCase], bench: Bench, jobs: int) -> Iterator[FaultRow]:
    """A row for each case as it ends."""
    with ThreadPoolExecutor(max_workers=jobs, thread_name_prefix="faults") as pool:
        for done in as_completed([pool.submit(_row, case, bench) for case in cases]):
            yield done.result()


def _row(case: FaultCase, bench: Bench) -> FaultRow:
    row = FaultRow(
        id=case.id, framework=case.data.get("framework", ""), truth=(), found=(),
        recall=None, precision=None, f3=None, f3_alternatives=None,
        healthy=case.healthy, seconds=0.0, family=case.family,
    )  # fmt: skip
    try:
        seen, figures = _seen(case, bench)
        asked = Asked(case.id, case.data, seen, str(figures["error"]), bench.out / case.folder)
        confirm = partial(_confirmed, case, bench, seen, figures) if bench.budget else None
        found = judged(
            asked, bench.settings, bench.options, bench.sandbox, bench.cassettes, confirm
        )
        row = row.model_copy(update={**found, **figures})
    except (RepriseError, SandboxError) as error:
        row = row.model_copy(update={"error": f"{type(error).__name__}: {error}"[:300]})
    if case.unclear:
        return row.model_copy(update={"error": case.unclear})
    return row if case.healthy else scored(row, case.truths)


def _seen(case: FaultCase, bench: Bench) -> tuple[TrainingTrace, dict[str, object]]:
    """The kept trace, otherwise that of a run."""
    seen, figures = _kept(bench.out / case.folder) if not bench.fresh else (None, {})
    return (seen, figures) if seen is not None else _recorded(case, bench)


def _confirmed(
    case: FaultCase,
    bench: Bench,
    seen: TrainingTrace,
    figures: dict[str, Any],
    run: DiagnosedRun,
) -> DiagnosedRun:
    """A diagnosis that trainings confirmed or refuted; those that were kept are not made again."""
    path = bench.out / case.folder
    stdout = (path / "output.txt").read_text().partition("\n--- stderr\n")[0]
    result = RunResult(exit_code=0, stdout=stdout, seconds=figures["seconds"])
    with closing(Folder(path)) as folder:
        program, session = begun(case, bench, folder)
        if bench.python is None:
            environment = session.build(
                session.matched(provided.spec(program, session.job.environment))
            )
        else:
            environment = environment_of(bench.python, bench.settings)
        recording = RecordedRun(environment, result, seen)
        confirmed = intervene(program, recording, run, session, bench.budget)
        write(path / DIAGNOSIS, confirmed.model_dump_json(indent=1))
        return confirmed


def _kept(run: Path) -> tuple[TrainingTrace | None, dict[str, object]]:
    if not (run / FIGURES).is_file():
        return None, {}
    artifacts = {path.name: path.read_bytes() for path in run.glob("training-*.jsonl")}
    return trace.read_trace(artifacts), json.loads((run / FIGURES).read_bytes())


def _recorded(case: FaultCase, bench: Bench) -> tuple[TrainingTrace, dict[str, object]]:
    path = bench.out / case.folder
    with closing(Folder(path)) as folder:
        for left in (path / EXCHANGE_FILE, *path.glob("training-*.jsonl")):
            left.unlink(missing_ok=True)
        run = recorded(case, bench, folder)[-1]
        result = run.result
        for name, data in result.artifacts.items():
            write_bytes(path / Path(name).name, data)
        write(path / "program.py", case.data["program"])
        write(path / "output.txt", f"{result.stdout}\n--- stderr\n{result.stderr}")
        error = diagnose.no_training(result, run.trace)
        figures: dict[str, object] = {"seconds": round(result.seconds, 2), "error": error}
        write(path / FIGURES, json.dumps(figures))
    return run.trace, figures


def recorded(
    case: FaultCase, bench: TrainingBench, folder: Folder
) -> tuple[TrainingProgram, Session, RecordedRun]:
    """Run the program of a case. Raises RepriseError, SandboxError."""
    program, session = begun(case, bench, folder)
    if bench.python is None:
        return program, session, record_program(program, session)
    given = environment_of(bench.python, bench.settings)
    return program, session, RecordedRun(given, *record(program, given, session))


def begun(
    case: FaultCase, bench: TrainingBench, folder: Folder
) -> tuple[TrainingProgram, Session[DiagnoseProgram]]:
    """The program of a case, and a session that works on it."""
    files = {"program.py": case.data["program"].encode()}
    program = TrainingProgram(files=files, entry="program.py")
    pins = tuple(case.data.get("requirements", ()))
    environment = bench.options.environment.model_copy(update={"pins": pins})
    options = bench.options.model_copy(update={"environment": environment})
    job = DiagnoseProgram(program=program, **dict(options))
    ports = bootstrap.make_ports(
        bench.settings, sandbox=bench.sandbox, journal=folder, listener=_unheard
    )
    return program, Session.begin(job, ports)


def environment_of(python: Path, settings: Settings) -> Environment:
    """The packages of a virtual environment, on a copy of its interpreter that a sandbox may see.
    Raises UserError.
    """
    real = python.resolve()
    minor = real.name.removeprefix("python")
    site = python.absolute().parent.parent / "lib" / real.name / "site-packages"
    if not site.is_dir():
        raise UserError(f"{python} has no packages in {site}.", "Give a virtual environment's.")
    cache = Cache(settings.cache_dir)
    with cache.guarded(f"python-{minor}"):
        copied = snapshot(Interpreter(real, minor), cache.folder("pythons"))
    return Environment(
        id="given",
        python=copied.version,
        interpreter=str(copied.executable),
        mounts=(str(copied.root), str(site)),
        variables={**copied.variables, "PYTHONPATH": str(site)},
    )


def _unheard(_event: object) -> None:
    """Events of the runs: the bench prints its own."""
