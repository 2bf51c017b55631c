"""What goes into the sandbox's batch server and what comes back: a round of programs, and a result
for each that ended.
"""

from collections.abc import Sequence
from dataclasses import replace

from bot.models.attempt import Mode, Script
from bot.models.base import Record
from bot.pipeline.execution import launch
from bot.rules.packages import imports
from bot.rules.reduce.data import ObservedTensor
from bot.rules.reduce.statements import Reached
from sandbox.port import Limits, RunResult, RunSpec

DEGREE = int(Limits().cpus) + 1  # one waits for its turn while another ends
_FOLDER, _BATCH = ".reprise", "batch"
_PROBES = ("sitecustomize.py", "batch.py", "batch_child.py")
_ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS"), "1"
)


class CandidateResult(Record):
    """What the batch server reports of one program; it comes from where hostile code runs. Each
    character of a text is one byte. `left` are the files and folders that the program left in its
    working directory, `first` the first operation with a non-finite result, `covered` a `Coverage`.
    """

    id: int
    seconds: float
    cpu: float
    timed_out: bool
    signal: int | None
    exit_code: int | None
    stdout: str
    stderr: str
    stdout_truncated: bool
    stderr_truncated: bool
    traces: dict[str, str]
    left: tuple[str, ...] = ()
    covered: str = ""
    first: str = ""

    def result(self) -> RunResult:
        """The result as if it had been a run of its own."""
        return RunResult(
            exit_code=None if self.timed_out else self.exit_code,
            signal=None if self.timed_out else self.signal,
            timed_out=self.timed_out,
            stdout=_bytes(self.stdout).decode(errors="replace"),
            stderr=_bytes(self.stderr).decode(errors="replace"),
            stdout_truncated=self.stdout_truncated,
            stderr_truncated=self.stderr_truncated,
            seconds=self.seconds,
            artifacts={f"{_FOLDER}/{name}": _bytes(data) for name, data in self.traces.items()},
        )


class Coverage(Record):
    """What a run reached: lines of its files, the modules that it imported on the way, and the
    tensors that its variables held.
    """

    lines: tuple[tuple[str, int], ...] = ()
    modules: tuple[str, ...] = ()
    tensors: tuple[ObservedTensor, ...] = ()

    @property
    def reached(self) -> Reached:
        """The lines, each with its file."""
        return frozenset(self.lines)


def _bytes(text: str) -> bytes:
    return text.encode("latin-1", "replace")


def serving(plain: RunSpec, inbox: str, mode: Mode) -> RunSpec:
    """The run of a program as one that serves the rounds that appear in a folder."""
    return replace(
        plain,
        argv=(plain.argv[0], f"{_FOLDER}/batch.py", _BATCH, inbox),
        files={f"{_FOLDER}/{name}": launch.probe(name) for name in _PROBES},
        env={**plain.env, **(_ONE_THREAD if mode == "fork" else {})},
        artifacts=(),
    )


def jobs(
    scripts: Sequence[tuple[Script, int]], cover: Script | None = None
) -> list[dict[str, object]]:
    """Programs with their seeds, numbered as their results will be; one more run notes what
    `cover` reaches.
    """
    every = [*scripts, *([(cover, scripts[0][1])] if cover is not None else [])]
    return [
        {
            "id": number,
            "entry": script.entry,
            "seed": seed,
            "cover": number == len(scripts),
            "files": dict(script.files),
        }
        for number, (script, seed) in enumerate(every)
    ]


def libraries(script: Script) -> list[str]:
    """The modules of other people that a program imports, worth importing once for all
    candidates.
    """
    ours, texts = own_modules(script), (script.files[path] for path in sorted(script.files))
    names = dict.fromkeys(name for text in texts for name in imports.imported(text))
    return [name for name in names if name.split(".")[0] not in ours]


def own_modules(script: Script) -> set[str]:
    """The top-level modules that a program brings along."""
    return {path.removesuffix(".py").split("/")[0] for path in script.files}
