"""RunResult → what happened, as values: exceptions, printed lines, and what the hooks wrote."""

import ast
import base64
import builtins
import hashlib
import os
import re
import signal
import stat
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from pathlib import Path
from types import MappingProxyType

from bot.issues.signature import values
from bot.kernel import artifacts, launch, traceback_frames, tracebacks
from bot.kernel.attempt import Failure, Script
from bot.kernel.bug import (
    BugReport,
    CrashSignature,
    FailedTestSignature,
    Frame,
    Member,
    ObservationSignature,
    Traceback,
)
from bot.kernel.source.syntax import module_of, name_of, source_lines
from bot.kernel.traceback_frames import LIBRARY
from bot.kernel.trees import Tree, tree_files
from bot.kernel.values import Record
from sandbox.port import RunResult

# The operation that a report complains of: what a run must reach before its good end, or another
# failure, says anything about the report.

Functions = tuple[tuple[str, str], ...]
_NEAR = 3  # a version without the bug may no longer call the very function that raised
_CODE = 80
_MOST_ROWS, _MOST_FRAMES = 8, 20


@dataclass(frozen=True, slots=True)
class Operation:
    """Functions (file below site-packages, name) of which one must be entered; or, without any,
    lines of a file of the program, "" for its entry, of which `needed` must run.
    """

    says: str
    functions: Functions = ()
    lines: frozenset[int] = frozenset()
    needed: int = 1
    file: str = ""

    def reached(self, functions_entered: Functions, lines: frozenset[int]) -> bool:
        """Whether a run reached it."""
        if self.functions:
            return bool(set(self.functions) & set(functions_entered))
        return len(self.lines & lines) >= self.needed


def operation(
    bug: BugReport,
    members: tuple[Member, ...],
    script: Script,
    tree: Tree = MappingProxyType({}),
    *,
    failed: bool,
) -> Operation:
    """The operation, by the best that the report offers: frames of a library, lines of the
    repository's files or of the program in its traceback, the API it names, the program's calls.
    `failed`: runs ended in another failure, so that only the last call shows that they came far
    enough.
    """
    crashes = [member for member in members if isinstance(member, CrashSignature)]
    names = {member.exception.rsplit(".", 1)[-1] for member in crashes}
    rows = [row for row in bug.tracebacks if row.exception.rsplit(".", 1)[-1] in names]
    return (
        _tests(members, script.source)
        or _of_tree(rows, script.entry, tree)
        or _functions(rows)
        or _quoted_lines(rows, script.source)
        or _named_operation(bug, members, script.source)
        or _calls(script.source, failed=failed)
    )


def _tests(members: tuple[Member, ...], source: str) -> Operation | None:
    """The statements of the tests that are said to fail."""
    names = {name for one in members if isinstance(one, FailedTestSignature) for name in one.tests}
    tests = [
        node
        for node in ast.walk(module_of(source) if names else ast.Module([], []))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name in names
    ]
    lines = frozenset(row.lineno for node in tests for row in node.body)
    return Operation(f"the test `{tests[0].name}`", lines=lines) if tests else None


def _functions(rows: list[Traceback]) -> Operation | None:
    frames: list[Frame] = []
    for row in rows:
        libraries = [
            frame
            for frame in row.frames
            if frame.package not in {"", "<stdlib>"} and frame.module_path and frame.function
        ]
        frames += libraries[-_NEAR:]
    if not frames:
        return None
    pairs = dict.fromkeys((frame.module_path, _last(frame.function)) for frame in frames)
    path, name = list(pairs)[-1]
    return Operation(f"`{name}` in {path}", functions=tuple(pairs))


def _of_tree(rows: list[Traceback], entry: str, tree: Tree) -> Operation | None:
    """The innermost line that a traceback quotes of a file of the tree, where that is not the file
    that is started: whoever only starts another program, in the background, reaches nothing.
    """
    own = [
        (frame, max(paths, key=len))
        for row in rows[:_MOST_ROWS]
        for frame in row.frames[-_MOST_FRAMES:]
        if (paths := tree_files(frame, tree)) and frame.code.strip()
    ]
    if not own or own[-1][1] == entry:
        return None
    frame, path = own[-1]
    code = " ".join(frame.code.split())
    texts = source_lines(tree[path].decode("utf-8", "replace"))
    lines = frozenset(at for at, text in enumerate(texts, 1) if " ".join(text.split()) == code)
    return Operation(f"the line `{code[:_CODE]}` of {path}", lines=lines, file=path)


def _quoted_lines(rows: list[Traceback], source: str) -> Operation | None:
    code = [" ".join(line.split()) for line in source_lines(source)]
    for row in rows:
        own = (" ".join(frame.code.split()) for frame in reversed(row.frames) if not frame.package)
        for line_quoted in filter(None, own):
            lines = frozenset(at for at, line in enumerate(code, 1) if line == line_quoted)
            if lines:
                return Operation(f"the line `{line_quoted[:_CODE]}`", lines=lines)
    return None


def _named_operation(bug: BugReport, members: tuple[Member, ...], source: str) -> Operation | None:
    api = [*bug.api]
    for member in members:
        api += member.api if isinstance(member, ObservationSignature) else ()
    names = {_last(name.rstrip("()")) for name in api}
    calls = [(name, line) for name, line in _library_calls(source) if name in names]
    if not calls:
        return None
    return Operation(f"the call of `{calls[-1][0]}`", lines=frozenset(line for _, line in calls))


def _calls(source: str, *, failed: bool) -> Operation:
    """Half of the program's calls, or its last one; where it calls no library, of its statements.
    A program that only defines things reaches nothing.
    """
    lines = {line for _, line in _library_calls(source)} or set(_statements(source))
    what = "what the program calls"
    if failed and lines:
        lines, what = {max(lines)}, "the program's last call"
    return Operation(what, lines=frozenset(lines), needed=max(1, (len(lines) + 1) // 2))


def _statements(source: str) -> Iterator[int]:
    """The lines of the statements outside definitions, imports aside."""
    inert = (ast.Import, ast.ImportFrom, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    return (node.lineno for node in module_of(source).body if not isinstance(node, inert))


def _library_calls(source: str) -> Iterator[tuple[str, int]]:
    """The name and line of each call that may be a library's: neither of the program's own, a
    builtin's nor the standard library's.
    """
    tree = module_of(source)
    local_names = {*dir(builtins), *(name for node in ast.walk(tree) for name in _defined(node))}
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    for call in calls:
        name = name_of(call.func)
        if name and ast.unparse(call.func).partition(".")[0] not in local_names:
            yield name, call.lineno


def _defined(node: ast.AST) -> Iterator[str]:
    """The names that a statement defines itself or takes from the standard library."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Import(names=names):
            for alias in names:
                top = alias.name.partition(".")[0]
                if top in sys.stdlib_module_names:
                    yield alias.asname or top
        case ast.ImportFrom(module=str(module), names=names):
            if module.partition(".")[0] in sys.stdlib_module_names:
                yield from (alias.asname or alias.name for alias in names)


def _last(name: str) -> str:
    return name.rsplit(".", 1)[-1]


# Whether a frame of a stack is of a file that is installed: below what the run was shown, with
# this line, as its wheel brought it.

_LARGEST = 4 << 20
_MOST_FILES = 200
_EXTENSIONS = (".pyx", ".pxd", ".pxi")
"""Sources of compiled code: their frames name files that no wheel has to bring."""


class InstalledFiles:
    """The files that a run was shown: `mounts` of its environment, `roots` of a clone.

    `forged` collects what frames of libraries say that these files do not.
    """

    def __init__(self, mounts: tuple[str, ...], roots: tuple[str, ...]) -> None:
        places = (place.rstrip("/") for place in (*mounts, *roots))
        self._places = tuple(f"{place}/" for place in places if Path(place).is_dir())
        self._seen: dict[str, str] = {}
        self.forged: list[str] = []

    def checked(self, failure: Failure) -> Failure:
        """The failure with forged frames of libraries turned into the program's own."""
        if not self._places:
            return failure
        frames = tuple(map(self._frame, failure.frames))
        chained_failures = tuple(map(self.checked, failure.chained))
        return failure.model_copy(update={"frames": frames, "chained": chained_failures})

    def _frame(self, frame: Frame) -> Frame:
        if frame.package in {"", "<stdlib>"} or frame.path.endswith(_EXTENSIONS):
            return frame
        why = self._why(frame)
        if not why:
            return frame
        self.forged.append(f"a frame names {frame.path[-120:]}, {why}")
        return frame.model_copy(update={"package": "", "module_path": ""})

    def _why(self, frame: Frame) -> str:
        path = frame.path
        if os.path.normpath(path) != path or not path.startswith(self._places):
            return "which is not installed"
        if path not in self._seen:
            if len(self._seen) >= _MOST_FILES:
                return "one of too many files"
            self._seen[path] = _change_of(Path(path))
        lines = _lines(path, _state(path))
        line = frame.line or 0
        if self._seen[path] or not lines:
            return self._seen[path] or "which is not installed"
        if not 0 < line <= len(lines):
            return f"which has no line {line}"
        same = not frame.code or lines[line - 1].strip()[:500] == frame.code
        return "" if same else f"whose line {line} differs"


def _state(path: str) -> tuple[int, int]:
    """The size and time of a regular file; (0, 0) for anything else."""
    try:
        about = Path(path).stat()
    except (OSError, ValueError):
        return 0, 0
    plain = stat.S_ISREG(about.st_mode) and about.st_size <= _LARGEST
    return (about.st_size, about.st_mtime_ns) if plain else (0, 0)


@lru_cache(maxsize=64)
def _lines(path: str, state: tuple[int, int]) -> tuple[str, ...]:
    if not state[0]:
        return ()
    return tuple(Path(path).read_text(encoding="utf-8", errors="replace").split("\n"))


def _change_of(path: Path) -> str:
    """Why a file is not as its wheel brought it; "" also where no wheel tells."""
    match = LIBRARY.match(str(path))
    size = _state(str(path))
    if match is None or not size[0]:
        return ""
    module = match["module"]
    digest_on_record = _digest_on_record(str(path).removesuffix(module), module)
    digest = hashlib.sha256(path.read_bytes()).digest()
    is_same = not digest_on_record or digest_on_record == base64.urlsafe_b64encode(
        digest
    ).decode().rstrip("=")
    return "" if is_same else "which was changed after its installation"


@lru_cache(maxsize=1024)
def _digest_on_record(site: str, module: str) -> str:
    """The hash of a file by the RECORD of its distribution, "" where none names it."""
    head = f"\n{module},sha256="
    for record in sorted(Path(site).glob("*.dist-info/RECORD")):
        if _state(str(record))[0]:
            _, row_head, rest = ("\n" + record.read_text("utf-8", "replace")).partition(head)
            if row_head:
                return rest.split(",", 1)[0]
    return ""


# RunResult → what happened, as values: the exceptions (escaped, or caught and printed) and the
# printed lines.

_MOST_CHAIN = 20
_CHAINED_MESSAGE = 2_000
"""Characters of the message of an exception that only led to another one."""
_BESIDE = re.compile(r"(?:examples?|tests?|benchmarks?|scripts|docs)/")
_STDLIB = re.compile(r"/lib/python3\.\d+/(?!site-packages|dist-packages)|^<frozen ")


class Observation(Record):
    """One run as the judge sees it. `failures` has the escaped exception first; chained ones
    hang on it; of a run with a key (`keyed`), `signed` are those that the probe vouches for.
    `refused` says which traces were not read, and why; `doubt` why this run can confirm nothing.
    `output` are the printed lines made comparable, `told` the same ones for people, `printed` all
    lines as they were.
    """

    failures: tuple[Failure, ...]
    refused: tuple[str, ...] = ()
    signed: tuple[Failure, ...] = ()
    keyed: bool = False
    doubt: str = ""
    output: tuple[str, ...]
    told: tuple[str, ...]
    printed: tuple[str, ...] = ()
    errors: str
    exit_code: int | None
    signal: int | None
    timed_out: bool
    idle: bool
    oom: bool
    seconds: float

    @property
    def escaped(self) -> Failure | None:
        """The exception that ended the program, if one did."""
        return next((failure for failure in self.failures if not failure.swallowed), None)


def observe(
    result: RunResult,
    roots: tuple[str, ...] = (),
    *,
    key: bytes = b"",
    mounts: tuple[str, ...] = (),
) -> Observation:
    """Everything a run shows. The probe's trace is preferred; printed tracebacks are what the
    program caught. `roots` are the folders of a clone on the path: its files are a package's,
    not the program's. With the `key` of the run, only what its probe signed is taken for an
    exception that ended it; with its `mounts`, only installed files for a library's.
    """
    trace_files = artifacts.traces(result.artifacts, result.refused, key)
    installed_files = InstalledFiles(mounts, roots)
    failures_and_keys = [
        (one, name in trace_files.signed)
        for name, one in _traced_failures(trace_files, result.exit_code)
    ]
    failures_and_keys = [
        (installed_files.checked(one), is_signed) for one, is_signed in failures_and_keys
    ]
    escaped_failures = [one for one, _ in failures_and_keys]
    if result.signal is not None and not (
        result.timed_out or result.idle or result.cancelled or result.oom
    ):
        escaped_failures = [_killed(result)]
    is_swallowed = bool(escaped_failures) or result.exit_code == 0
    spans = (tracebacks.find(text.splitlines()) for text in (result.stderr, result.stdout))
    printed_failures = [
        _printed_failure(span.traceback, swallowed=is_swallowed)
        for match_list in spans
        for span in match_list
    ]
    keys = {(failure.exception, failure.message) for failure in escaped_failures}
    failures = (
        *escaped_failures,
        *(row for row in printed_failures if (row.exception, row.message) not in keys),
    )
    return Observation(
        failures=tuple(_with_locations(failure, roots) for failure in failures)
        if roots
        else failures,
        refused=trace_files.refused,
        signed=tuple(flatten(tuple(one for one, is_signed in failures_and_keys if is_signed))),
        keyed=bool(key),
        doubt=_doubt(result, trace_files, installed_files),
        output=tuple(values.lines(result.stdout)),
        told=tuple(values.nonempty_lines(result.stdout)),
        printed=tuple(result.stdout.splitlines()),
        errors=result.stderr,
        exit_code=result.exit_code,
        signal=result.signal,
        timed_out=result.timed_out,
        idle=result.idle,
        oom=result.oom,
        seconds=result.seconds,
    )


def _traced_failures(
    trace_files: artifacts.TraceFiles, exit_code: int | None
) -> list[tuple[str, Failure]]:
    """The exceptions of the traces. One that escapes ends a program with a status; a trace beside
    a clean end is of something that was caught.
    """
    traces = [
        (not _is_escaped(trace, exit_code), name, trace)
        for name, trace in trace_files.traces.items()
        if name in trace_files.signed or not trace.main
    ]
    rows = sorted(traces, key=itemgetter(0, 1))
    return [(name, _failure(trace.error, swallowed=is_caught)) for is_caught, name, trace in rows]


def _doubt(
    result: RunResult, trace_files: artifacts.TraceFiles, installed_files: InstalledFiles
) -> str:
    """Why this run can confirm nothing: signs that the program has a hand in what is told of it."""
    if any(
        trace.main and name not in trace_files.signed for name, trace in trace_files.traces.items()
    ):
        return "the program wrote a trace of its own"
    if result.exit_code is not None and result.ended_by_itself and not trace_files.ended:
        return "the program exited without Python's normal shutdown, as with os._exit"
    return installed_files.forged[0] if installed_files.forged else ""


def _is_escaped(trace: artifacts.Trace, exit_code: int | None) -> bool:
    return trace.main and trace.where == "main" and exit_code != 0


def _failure(row: artifacts.TracedError, *, swallowed: bool, depth: int = 0) -> Failure:
    chained = row.chained if depth < _MOST_CHAIN else ()
    message, library_frames = tracebacks.unfold(row.message)
    return Failure(
        exception=row.exception,
        message=message[:_CHAINED_MESSAGE] if depth else message,
        bases=row.bases,
        frames=(*_own_frames(map(_frame, row.frames)), *map(_library, library_frames)),
        swallowed=swallowed,
        chained=tuple(_failure(inner, swallowed=swallowed, depth=depth + 1) for inner in chained),
    )


def _frame(row: artifacts.TracedFrame) -> Frame:
    number = None if row.line is None else str(row.line)
    return _library(traceback_frames.frame(row.path, number, row.function, row.code))


def _own_frames(frames: Iterable[Frame]) -> Iterator[Frame]:
    """The frames but for those of what answers CUDA calls, which the report's machine has not."""
    return (frame for frame in frames if not frame.path.endswith(f"/{launch.CUDA_PROBE}"))


def _library(frame: Frame) -> Frame:
    """The frame with the standard library's own files marked, so that they are not taken for the
    program's.
    """
    if not frame.package and _STDLIB.search(frame.path):
        return frame.model_copy(update={"package": "<stdlib>"})
    return frame


def _with_locations(failure: Failure, roots: tuple[str, ...]) -> Failure:
    """The failure with the files of a clone named as if they were installed."""
    frames = tuple(_in_clone(frame, roots) for frame in failure.frames)
    chained_failures = tuple(_with_locations(inner, roots) for inner in failure.chained)
    return failure.model_copy(update={"frames": frames, "chained": chained_failures})


def _in_clone(frame: Frame, roots: tuple[str, ...]) -> Frame:
    below = [
        frame.path.removeprefix(f"{root}/") for root in roots if frame.path.startswith(f"{root}/")
    ]
    module = min(below, key=len, default="")
    if not module or _BESIDE.match(module):
        return frame
    return frame.model_copy(
        update={"module_path": module, "package": module.split("/", 1)[0].removesuffix(".py")}
    )


def _printed_failure(row: Traceback, *, swallowed: bool) -> Failure:
    return Failure(
        exception=row.exception,
        message=row.message,
        frames=tuple(_own_frames(map(_library, row.frames))),
        swallowed=swallowed,
        chained=tuple(_printed_failure(inner, swallowed=swallowed) for inner in row.chained),
    )


def _killed(result: RunResult) -> Failure:
    number = result.signal or 0
    name = signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"
    return Failure(exception=name, message=result.stderr.strip()[:2000])


def flatten(failures: tuple[Failure, ...]) -> list[Failure]:
    """Failures with everything chained to them, outermost first."""
    all_failures: list[Failure] = []
    for failure in failures:
        all_failures.extend([failure, *flatten(failure.chained)])
    return all_failures[:_MOST_CHAIN]
