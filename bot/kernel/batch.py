"""A sandboxed run that stays open: it imports the libraries once, then takes rounds of programs;
what goes in, and a result for each that ended.
"""

import base64
import json
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from threading import Condition, Event, Thread
from time import monotonic

from bot.kernel import launch
from bot.kernel.attempt import Mode, ObservedTensor, Reached, Script
from bot.kernel.session import Session
from bot.kernel.source import symbols
from bot.kernel.values import Record
from sandbox.cache import Inbox
from sandbox.port import Limits, RunResult, RunSpec, SandboxError, Stream

_POLL_S = 0.05
_LIFE_S = 3600.0
_OUTPUT = 64 << 20  # half of it comes whole; a server that printed a third of it is replaced
_MAX_RESULT, _MAX_PARTS = 4 << 20, 1000
_MESSAGE = re.compile(r"@(\d{1,6}) (\d{1,6}|end) (\d{1,6}) (\S*)\n?", re.ASCII)
_MODULE = re.compile(r"(?!__)\w+(?:\.\w+)*")
_MAX_MODULES = 4000
DEGREE = int(Limits().cpus) + 1  # one waits for its turn while another ends
_FOLDER, _BATCH = ".reprise", "batch"
_PROBES = (*launch.PROBES, "batch.py", "batch_child.py")
_ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS"), "1"
)


class BatchServer:
    """One such run. The results come from where hostile code runs: text to read with care.

    `begin` makes the run's specification for the path of its inbox. The job's time limit and cancel
    flag apply while an answer is waited for. `close` must be called.
    """

    def __init__(self, runner: Session, begin: Callable[[str], RunSpec]) -> None:
        self._runner, self._inbox = runner, Inbox(runner.ports.cache)
        self._changed, self._cancel = Condition(), Event()
        self._rounds, self._printed, self._born = 0, 0, monotonic()
        self._parts: dict[tuple[int, str], list[str]] = {}
        self._whole: dict[tuple[int, str], bytes] = {}
        self._error: SandboxError | None = None
        self._ended = False
        plain = begin(str(self._inbox.path))
        limits = replace(plain.limits, wall_s=_LIFE_S, output_bytes=_OUTPUT)
        spec = replace(plain, mounts=(*plain.mounts, self._inbox.mount), limits=limits)
        self._thread = Thread(target=self._serve, args=(spec,), name="server", daemon=True)
        self._thread.start()

    @property
    def worn(self) -> bool:
        """Whether the next round needs a new server."""
        old = monotonic() - self._born > _LIFE_S / 2
        return self._ended or self._printed > _OUTPUT // 3 or old

    def ask(self, plan: Mapping[str, object], wait_s: float) -> Iterator[tuple[int, bytes]]:
        """Hand in a round; the results with the ids of their programs, each as it ends. A missing
        program ended the server, or had no time left. Raises Stopped and SandboxError.
        """
        number, name = self._rounds, f"{self._rounds}.json"
        self._rounds += 1
        self._inbox.put(name, json.dumps(plan).encode())
        until, over = monotonic() + wait_s, False
        while not over:
            results, over = self._results(number)
            if monotonic() > until:
                self._cancel.set()
            self._runner.context.check()  # also while a candidate prints without end
            yield from results
        with self._changed:
            self._parts.clear()
        self._inbox.take_back(name)

    def _results(self, number: int) -> tuple[list[tuple[int, bytes]], bool]:
        """The results of a round that came in, and whether it is over."""
        with self._changed:
            if not self._whole and not self._ended:
                self._changed.wait(_POLL_S)
            if self._error is not None:
                raise self._error
            whole, self._whole = self._whole, {}
            over = self._ended or (number, "end") in whole
        mine = {name: data for (of_round, name), data in whole.items() if of_round == number}
        return [(int(name), data) for name, data in mine.items() if name.isdecimal()], over

    def close(self) -> None:
        """End the run and leave nothing behind."""
        self._cancel.set()
        self._thread.join()
        self._inbox.close()

    def _serve(self, spec: RunSpec) -> None:
        error = None
        try:
            self._runner.ports.sandbox.run(spec, cancel=self._cancel, on_output=self._read)
        except SandboxError as sandbox_error:
            error = sandbox_error
        finally:
            with self._changed:
                self._error, self._ended = error, True
                self._changed.notify_all()

    def _read(self, stream: Stream, line: str) -> None:
        self._printed += len(line)
        part = _MESSAGE.fullmatch(line)  # a candidate can print here too: all else is dropped
        if stream != "stdout" or part is None:
            return
        key = (int(part[1]), part[2])
        with self._changed:
            parts = self._parts.setdefault(key, []) if len(self._parts) < _MAX_PARTS else []
            if len(parts) < _MAX_PARTS:
                parts.append(part[4])
            if int(part[3]) == 0:
                self._whole[key] = _decompressed("".join(parts))
                self._changed.notify_all()


def _decompressed(text: str) -> bytes:
    try:
        return zlib.decompressobj().decompress(base64.b64decode(text), _MAX_RESULT)
    except (ValueError, zlib.error):
        return b""


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
    scripts: Sequence[tuple[Script, int]], cover: Script | None = None, late: int = 0
) -> list[dict[str, object]]:
    """Programs with their seeds, numbered as their results will be; one more run notes what
    `cover` reaches. The first `late` ones note only which modules they import on the way.
    """
    every = [*scripts, *([(cover, scripts[0][1])] if cover is not None else [])]
    return [
        {
            "id": number,
            "entry": script.entry,
            "seed": seed,
            "cover": "lines" if number == len(scripts) else "modules" if number < late else "",
            "files": dict(script.files),
        }
        for number, (script, seed) in enumerate(every)
    ]


def libraries(script: Script) -> list[str]:
    """The modules of other people that a program imports, worth importing once for all
    candidates.
    """
    ours, texts = own_modules(script), (script.files[path] for path in sorted(script.files))
    names = dict.fromkeys(name for text in texts for name in symbols.imported_modules(text))
    return [name for name in names if name.split(".")[0] not in ours]


def late_imports(coverage: Coverage, script: Script) -> tuple[str, ...]:
    """What libraries import only when they need it: worth importing beforehand too."""
    own = own_modules(script)
    names = (name for name in coverage.modules if _MODULE.fullmatch(name))
    return tuple(name for name in names if name.split(".")[0] not in own)[:_MAX_MODULES]


def own_modules(script: Script) -> set[str]:
    """The top-level modules that a program brings along."""
    return {path.removesuffix(".py").split("/")[0] for path in script.files}
