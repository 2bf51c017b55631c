"""What comes back from where hostile code ran: one validating parser for each format.

The sandbox bounds files and bytes. Here each document is bounded before it is parsed (bytes) and
while it is (depth, by the parser; rows and characters, by its type), so that none takes more than
a moment; one that does not fit is refused with the reason, never half believed.
"""

import hashlib
from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError
from pydantic_core import from_json

TRACE, END = "trace-", "end-"
_MOST_BYTES = 1 << 20
_MOST_TRACES, _MOST_ERRORS = 64, 64
_Word = Annotated[str, StringConstraints(max_length=1000)]
_Text = Annotated[str, StringConstraints(max_length=24_000)]
_Number = Annotated[int, Field(ge=0, lt=10_000_000)]


class _ProbeRecord(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)


class TracedFrame(_ProbeRecord):
    """One frame, as the probe writes it."""

    path: _Word = ""
    line: _Number | None = None
    function: _Word = ""
    code: _Word = ""


class TracedError(_ProbeRecord):
    """One exception, with those that are chained to it."""

    exception: _Word
    message: _Text = ""
    bases: tuple[_Word, ...] = Field((), max_length=64)
    frames: tuple[TracedFrame, ...] = Field((), max_length=200)
    chained: "tuple[TracedError, ...]" = Field((), max_length=9)

    @property
    def size(self) -> int:
        """How many exceptions these are."""
        return 1 + sum(inner.size for inner in self.chained)


class Trace(_ProbeRecord):
    """One `trace-*.json` of the probe (sandbox/probe/_reprise_trace.py)."""

    pid: _Number = 0
    main: bool = False
    where: _Word = ""
    error: TracedError


class Reached(_ProbeRecord):
    """One `reached-*.json` of the probe (sandbox/probe/reached.py)."""

    entered: tuple[tuple[_Text, _Text], ...] = Field((), max_length=2000)
    lines: tuple[tuple[_Text, _Number], ...] = Field((), max_length=100_000)
    opened: tuple[_Text, ...] = Field((), max_length=1000)
    modules: tuple[tuple[_Text, _Text], ...] = Field((), max_length=5000)


class TraceFiles(NamedTuple):
    """The traces that a run left, by name, and why others were refused. With a key, `signed` are
    those that the probe of the run's first process wrote, and `ended` says whether that came to
    its own end.
    """

    traces: Mapping[str, Trace]
    refused: tuple[str, ...]
    signed: frozenset[str] = frozenset()
    ended: bool = True


_T = TypeVar("_T", bound=BaseModel)


def parse_record(kind: type[_T], data: bytes) -> _T | str:
    """One document, or why it is refused."""
    if len(data) > _MOST_BYTES:
        return f"it has {len(data)} bytes, over the limit of {_MOST_BYTES}"
    try:
        return kind.model_validate_json(data)
    except (ValidationError, RecursionError) as error:
        return _why(error)


def _why(error: Exception) -> str:
    if not isinstance(error, ValidationError):
        return "it is nested too deeply"
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    place = ".".join(str(part) for part in first["loc"][:6])
    return f"{place}: {first['msg']}"[:300] if place else str(first["msg"])[:300]


def traces(
    artifacts: Mapping[str, bytes], refused: Mapping[str, str], key: bytes = b""
) -> TraceFiles:
    """The traces among what a run left; all that was refused, here or by the sandbox."""
    whys = [_refusal_text(name, why) for name, why in refused.items()]
    names = sorted(name for name in artifacts if TRACE in name)
    if len(names) > _MOST_TRACES:
        whys.append(_refusal_text(names[_MOST_TRACES], f"there are {len(names)} traces"))
    traces_by_name: dict[str, Trace] = {}
    for name in names[:_MOST_TRACES]:
        trace = parse_record(Trace, artifacts[name])
        if isinstance(trace, Trace) and trace.error.size > _MOST_ERRORS:
            trace = f"it chains {trace.error.size} exceptions"
        if isinstance(trace, Trace):
            traces_by_name[name] = trace
        else:
            whys.append(_refusal_text(name, trace))
    true = {name for name, data in artifacts.items() if not key or _is_signed(name, data, key)}
    ended = not key or any(name.rpartition("/")[2].startswith(END) for name in true)
    return TraceFiles(
        traces_by_name, tuple(whys[:5]), frozenset(true & traces_by_name.keys()), ended
    )


def _is_signed(name: str, data: bytes, key: bytes) -> bool:
    digest = hashlib.blake2b(data[:_MOST_BYTES], key=key, digest_size=16).hexdigest()
    return name.endswith(f"-{digest}.json")


def _refusal_text(name: str, why: str) -> str:
    name = name.encode("ascii", "backslashreplace").decode()[:80]
    return f"the artifact {name} was refused because {why}" if name else f"artifacts: {why}"


def last_row(text: str) -> dict[str, Any]:
    """The JSON object on the last line of what a program printed; empty when there is none."""
    lines = text.strip().splitlines()
    try:
        row = from_json(lines[-1]) if lines and len(lines[-1]) <= _MOST_BYTES else None
    except (ValueError, RecursionError):
        return {}
    return row if isinstance(row, dict) else {}
