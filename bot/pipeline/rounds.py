"""What goes into the sandbox's server and what comes back: a round of programs, and a row for each that ended."""

from __future__ import annotations

import ast
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from importlib import resources

from bot.models.attempt import Script
from bot.models.base import Record
from bot.models.reduced import Mode
from bot.rules.reduce.edits import programs
from bot.rules.reduce.synthetic import Seen
from sandbox.port import Limits, RunResult, RunSpec

DEGREE = int(Limits().cpus) + 1  # one waits for its turn while another ends
_FOLDER, _BATCH = ".reprise", "batch"
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS"), "1")


class Row(Record):
    """What the batch says of one program; it comes from where hostile code runs. Each character of a text is one byte."""

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
    covered: str = ""
    first: str = ""

    def result(self) -> RunResult:
        """The row as if it had been a run of its own."""
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


class Covered(Record):
    """What a run of the unreduced program reached: lines of its files, and the modules that it imported on the way."""

    lines: tuple[tuple[str, int], ...] = ()
    modules: tuple[str, ...] = ()
    tensors: tuple[Seen, ...] = ()


def _bytes(text: str) -> bytes:
    return text.encode("latin-1", "replace")


def serving(plain: RunSpec, inbox: str, mode: Mode) -> RunSpec:
    """The run of a program as one that serves the rounds that appear in a folder."""
    return replace(
        plain,
        argv=(plain.argv[0], f"{_FOLDER}/batch.py", _BATCH, inbox),
        files={f"{_FOLDER}/{name}": _probe(name) for name in ("sitecustomize.py", "batch.py")},
        env={**plain.env, **(_ONE_THREAD if mode == "fork" else {})},
        artifacts=(),
    )


def jobs(scripts: Sequence[tuple[Script, int]], cover: Script | None = None) -> list[dict[str, object]]:
    """Programs with their seeds, numbered as their rows will be; one more run notes what `cover` reaches."""
    rows = [_job(number, script, seed) for number, (script, seed) in enumerate(scripts)]
    return rows if cover is None else [*rows, {**_job(len(rows), cover, scripts[0][1]), "cover": True}]


def _job(number: int, script: Script, seed: int) -> dict[str, object]:
    return {"id": number, "entry": script.entry, "seed": seed, "cover": False, "files": dict(script.files)}


def heavy(script: Script) -> list[str]:
    """The modules of other people that a program imports, worth importing once for all candidates."""
    ours = own(script)
    names: dict[str, None] = {}
    for _, _, tree in programs(script.files):
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                names |= dict.fromkeys(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names[node.module] = None
    return [name for name in names if name.split(".")[0] not in ours | sys.stdlib_module_names]


def own(script: Script) -> set[str]:
    """The top-level modules that a program brings along."""
    return {path.removesuffix(".py").split("/")[0] for path in script.files}


@cache
def _probe(name: str) -> bytes:
    return resources.files("sandbox").joinpath("probe", name).read_bytes()
