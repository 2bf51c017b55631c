"""The run folder: attempts and logs as they happen, the report at the end, and never a half-
written file.
"""

import fcntl
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import IO, TypeVar

from typing_extensions import override

from bot.kernel.attempt import Script
from bot.kernel.errors import UserError
from bot.kernel.files import append, cut_unfinished, read_exchanges, sync, write, write_bytes
from bot.kernel.job import ProofOptions, ReproduceIssue, ReproducePaper
from bot.kernel.journal import ATTEMPTS, EXCHANGES, E, EntryKind, RunLog, log_name
from bot.kernel.ports import Journal
from bot.kernel.report import IssueReport, RequestedReport
from bot.kernel.training_types import Curve
from bot.kernel.values import Record
from bot.report.svg import png, standalone, training
from sandbox import footprint
from sandbox.port import RunResult

# What a diagnosis leaves in a run folder: trace, plot, JSON, and what the program printed.

TRACE, SVG, JSON, OUTPUT = "trace.jsonl", "plot.svg", "diagnosis.json", "output.txt"


def keep_run(folder: Path, result: RunResult) -> None:
    """Write the trace of a run, and its streams."""
    write_bytes(folder / TRACE, trace(result.artifacts))
    write(folder / OUTPUT, f"{result.stdout}\n--- stderr\n{result.stderr}")


def keep_plot(path: Path, curves: Sequence[Curve]) -> None:
    """Write the plot of curves as SVG, and as PNG beside it, where there is one."""
    if drawing := training(curves):
        svg = standalone(drawing)
        write(path, svg)
        write_bytes(path.with_suffix(".png"), png(svg))


def trace(artifacts: Mapping[str, bytes]) -> bytes:
    """The traces of all processes of a run, one after the other."""
    names = (name for name in sorted(artifacts) if name.endswith(".jsonl"))
    return b"".join(artifacts[name].rstrip(b"\n") + b"\n" for name in names)


MARK = ".reprise"
SCRIPTS = "scripts"
EXCHANGE_FILE = f"{EXCHANGES.name}.jsonl"
_ATTEMPT_FILE = f"{ATTEMPTS.name}.jsonl"
JOB = "job.json"
GIVEN_SCRIPT = "given.json"
STATE = "run.json"
REPORT = "report.json"
CODE = "code"
_OURS = (
    REPORT,
    "report.md",
    "report.html",
    "measurements.jsonl",
    "steps.jsonl",
    CODE,
    "environment.lock",
    _ATTEMPT_FILE,
    "logs",
    SCRIPTS,
    EXCHANGE_FILE,
    "trials.jsonl",
    STATE,
    JOB,
    GIVEN_SCRIPT,
)
_RUNS = ("logs", SCRIPTS, _ATTEMPT_FILE)
_NOTHING = {MARK, JOB, GIVEN_SCRIPT, "logs"}
_R = TypeVar("_R", bound=Record)


class Folder(Journal):
    """A folder that belongs to one run; what others put there is not touched. `begin` clears
    what an earlier run left, unless it was this very one and did not come to its end: then it
    goes on from the attempts that are there. What a run of something else came to is kept: that
    is refused.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._made = tuple(folder for folder in (path, *path.parents) if not folder.exists())
        self._mark = _claim(path)
        self._keys: dict[str, list[str]] = {}

    def begin(self, job: ReproduceIssue | ReproducePaper, script: Script | None = None) -> None:
        """Keep what was asked for, so that the run can be repeated from its folder, or gone on
        with; `given` is a program that takes the place of the report's. Raises UserError when
        the result of something else lies here.
        """
        job_before, finished = (
            _read_record(self.path / JOB, type(job)),
            (self.path / REPORT).exists(),
        )
        same_program = _read_record(self.path / GIVEN_SCRIPT, Script) == script
        if finished and not (job_before and same_program and _key(job_before) == _key(job)):
            raise not_ours(self.path)
        if finished or not (
            job_before and same_program and _timeless(job_before) == _timeless(job)
        ):
            self._clear()
        self.go_on()
        write(self.path / JOB, job.model_dump_json(indent=2) + "\n")
        if script is not None:
            write(self.path / GIVEN_SCRIPT, script.model_dump_json() + "\n")

    def take_over(self, run: Path) -> None:
        """Begin with the attempts of another run, unless there are some. Those come last and at
        once: a take-over that was killed is made anew.
        """
        if self.read(ATTEMPTS):
            return
        for name in _RUNS:
            if (run / name).is_dir():
                shutil.copytree(run / name, self.path / name, dirs_exist_ok=True)
            elif (run / name).is_file():
                # A kill may have cut the last letter in two.
                write(self.path / name, (run / name).read_text("utf-8", errors="replace"))
        self.go_on()

    def go_on(self) -> None:
        """Take up what is there."""
        (self.path / "logs").mkdir(exist_ok=True)
        self._keys.clear()

    @override
    def append(self, kind: EntryKind[E], entry: E) -> None:
        if isinstance(entry, RunLog):
            write(self.path / log_name(entry.number), entry.text)
        elif isinstance(entry, Script):
            _write_all(self.path / SCRIPTS / entry.digest[:12], entry.files)
            write(self.path / SCRIPTS / f"{entry.digest[:12]}.json", entry.model_dump_json() + "\n")
        else:
            self._append(kind, entry)

    def _append(self, kind: EntryKind[E], entry: E) -> None:
        path, key = self.path / f"{kind.name}.jsonl", kind.key(entry)
        if kind.name not in self._keys:
            cut_unfinished(path)
            self._keys[kind.name] = list(map(kind.key, self.read(kind)))
        keys = self._keys[kind.name]
        if key in keys:
            del keys[keys.index(key) :]
            old_lines = path.read_bytes().splitlines(keepends=True)[: len(keys)]
            write_bytes(path, b"".join(old_lines))
        append(path, entry)
        keys.append(key)

    @override
    def read(self, kind: EntryKind[E]) -> tuple[E, ...]:
        path = self.path / f"{kind.name}.jsonl"
        if issubclass(kind.model, Script):
            stored = (
                _read_record(file, kind.model)
                for file in sorted(self.path.glob(f"{SCRIPTS}/*.json"))
            )
            return tuple(filter(None, stored))
        if issubclass(kind.model, RunLog):
            logs = sorted(self.path.glob("logs/[0-9]*.log"))
            texts = ((int(file.stem), file.read_text("utf-8", "replace")) for file in logs)
            return tuple(kind.model(number=number, text=text) for number, text in texts)
        return read_exchanges(path, kind.model) if path.exists() else ()

    def put(self, texts: Mapping[str, str]) -> None:
        """Write files by their names; report.json comes last."""
        for name, text in sorted(texts.items(), key=lambda row: row[0] == REPORT):
            write(self.path / name, text)

    def finish(
        self,
        report: RequestedReport,
        *,
        json_text: str,
        markdown: str,
        state: str,
        defects: Mapping[str, str] | None = None,
    ) -> None:
        """Write the report. report.json comes last: where it exists, so does everything it names.
        `state` is the whole of it, for `kept_report`; `defects` are the tracebacks of proofs.
        """
        script = report.script if isinstance(report, IssueReport) else None
        scripts = dict(script.files) if script is not None else {}
        self._mark.seek(0)
        self._mark.truncate()
        self._mark.write("".join(f"{name}\n" for name in sorted(scripts)))
        sync(self._mark)
        _write_all(self.path, scripts)
        if report.environment is not None and report.environment.lock:
            write(self.path / "environment.lock", report.environment.lock)
        for proof, defect_text in (defects or {}).items():
            write(self.path / defect(proof), defect_text)
        write(self.path / "report.md", markdown)
        write(self.path / STATE, state)
        write(self.path / REPORT, json_text)

    def close(self) -> None:
        """Let others use the folder; one in which nothing happened goes."""
        self._mark.close()
        if (
            self.path.is_dir()
            and {path.name for path in self.path.iterdir()} <= _NOTHING
            and not any(self.path.glob("logs/*"))
        ):
            self._remove()

    def discard(self) -> None:
        """Leave nothing behind of what was refused, where the folder was made for it."""
        if self.path in self._made:
            self._remove()

    def _remove(self) -> None:
        """Take the folder away, and those above that were made for it and hold nothing else."""
        shutil.rmtree(self.path)
        for folder in self._made:
            if folder != self.path and not any(folder.iterdir()):
                folder.rmdir()

    def _clear(self) -> None:
        scripts = [name for name in self._mark.read().splitlines() if inside(name)]
        for name in (*_OURS, *scripts, *(path.name for path in self.path.glob(".*.reprise-part"))):
            path = self.path / name
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)


def not_ours(path: Path) -> UserError:
    """The refusal to write over what a run of something else came to."""
    return UserError(
        f"{path} already contains the result of another job.",
        "Choose another --out, or remove that folder.",
    )


def defect(proof: str) -> str:
    """Where the traceback of an error of our own is kept that ended a proof, below the folder."""
    return f"logs/{proof}-defect.txt"


def _claim(path: Path) -> IO[str]:
    """The folder's mark, locked: one run a folder, and nobody's own files are overwritten."""
    path.mkdir(parents=True, exist_ok=True)
    if not (path / MARK).exists() and any(path.iterdir()):
        raise UserError(
            f"{path} already contains other files.",
            "Choose an empty folder for --out, or a new name.",
        )
    mark = (path / MARK).open("a+", encoding="utf-8")
    try:
        fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        mark.close()
        hint = "Wait for it, or choose another --out."
        raise UserError(f"Another run is writing to {path}.", hint) from None
    mark.seek(0)
    return mark


def kept_job(path: Path) -> ReproduceIssue:
    """The job of an earlier run. Raises UserError when the folder does not have it."""
    job = _read_record(path / JOB, ReproduceIssue)
    if job is None:
        raise UserError(
            f"{path} is not the folder of a run.",
            "Pass a folder that contains job.json and exchanges.jsonl.",
        )
    return job


def kept_report(path: Path) -> IssueReport:
    """The whole report of an earlier run. Raises UserError when the folder does not have it."""
    report = _read_record(path / STATE, IssueReport)
    if report is None:
        raise UserError(
            f"{path} is not the folder of a finished run.", f"Pass a folder that contains {STATE}."
        )
    return report


def _read_record(path: Path, kind: type[_R]) -> _R | None:
    """A stored value, None when the file is missing or damaged."""
    try:
        return kind.model_validate_json(path.read_bytes())
    except (OSError, ValueError):
        return None


def _key(job: ReproduceIssue | ReproducePaper) -> tuple[object, ...]:
    """What makes two jobs one: the same paper, the same number of a repository, or the same
    text.
    """
    if isinstance(job, ReproducePaper):
        return (job.source,)
    issue = job.issue
    if issue.repository and issue.number is not None:
        return issue.repository, issue.number
    return issue.repository, issue.title, issue.body


def _timeless(job: ReproduceIssue | ReproducePaper) -> ReproduceIssue | ReproducePaper:
    """A job without the time for its runs or proofs, which makes it no other."""
    if isinstance(job, ReproducePaper):
        return job.model_copy(update={"minutes": 1.0})
    return job.model_copy(update={"proof": ProofOptions(package=job.proof.package, minutes=0.0)})


def inside(name: str) -> bool:
    """Whether a name that came with a script stays below the folder it is written to."""
    parts = PurePosixPath(name).parts
    return (
        bool(parts)
        and not name.startswith(("/", "."))
        and ".." not in parts
        and "\0" not in name
        and "\\" not in name
    )


def _write_all(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        if inside(name):
            write(folder / name, text)


# Keeps the folder of run folders below its cap: the oldest finished runs go first.


def keep_runs(runs: Path, most: int) -> None:
    """Remove finished runs, the oldest first, until the folder takes at most so many bytes. What
    somebody works on stays, and so does what is not finished or is no run.
    """
    runs_by_age = [(path.stat().st_mtime, path.parent) for path in runs.glob(f"*/{REPORT}")]
    sizes = {folder: footprint.remembered(folder, folder / REPORT) for _, folder in runs_by_age}
    total = sum(sizes.values())
    for _, folder in sorted(runs_by_age):
        if total <= most:
            return
        if _remove(folder):
            total -= sizes[folder]


def _remove(folder: Path) -> bool:
    with suppress(OSError), (folder / MARK).open("r+") as mark:
        fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder)
        return True
    return False
