"""What a hostile run leaves costs a moment and little memory, and ends as a refusal that is told."""

import json
import resource
import time

import pytest

from bot.issues.judge import judge
from bot.issues.observe import observe
from bot.kernel import artifacts
from bot.kernel.attempt import Match, Script
from bot.kernel.bug import CrashSignature, WarningSignature
from sandbox.port import RunResult

NAME = ".reprise/trace-1-main.json"
SCRIPT = Script(files={"repro.py": "import lib\nlib.fit()\n"})
WANTED = CrashSignature(exception="RuntimeError", message="mat1 and mat2 cannot be multiplied")
FRAME = {"path": "/e/site-packages/lib/core.py", "line": 9, "function": "fit", "code": "f()"}


def trace(**changed):
    error = {"exception": "RuntimeError", "message": WANTED.message, "frames": [FRAME]}
    return {"pid": 1, "main": True, "where": "main", "error": {**error, **changed}}


def nested(depth, inner="1"):
    return b'{"error":' + b"[" * depth + inner.encode() + b"]" * depth + b"}"


def chain(depth):
    row = {"exception": "E", "message": "m"}
    for _ in range(depth):
        row = {"exception": "E", "message": "m", "chained": [row]}
    return row


HOSTILE = {
    "a path that a pattern walks for a minute": json.dumps(
        trace(frames=[{**FRAME, "path": "/torch" * 38_000}])
    ).encode(),
    "3.4 MB of frames": json.dumps(trace(frames=[FRAME] * 45_000)).encode(),
    "a wide tree of chained errors": json.dumps(
        trace(chained=[{**chain(1), "chained": [chain(0)] * 9}] * 9)
    ).encode(),
    "a deep chain of errors": json.dumps(trace(chained=[chain(90)])).encode(),
    "deep nesting": nested(100_000),
    "nesting without an end": b"[" * 900_000,
    "500 MB of zeros": bytes(500 << 20),
    "a list": b"[1, 2]",
    "a null": b"null",
    "a number in the place of frames": json.dumps(trace(frames=7)).encode(),
    "a number in the place of bases": json.dumps(trace(bases=7)).encode(),
    "a list in the place of a word": json.dumps(trace(exception=[1])).encode(),
    "a line with 5000 digits": b'{"error":{"exception":"E","frames":[{"line":1' + b"0" * 5000 + b"}]}}",
    "a negative line": json.dumps(trace(frames=[{**FRAME, "line": -1}])).encode(),
    "half a surrogate": b'{"error":{"exception":"\\ud800"}}',
    "no text": b"\xff\xfe\x00",
}  # fmt: skip


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_trace_is_refused_in_a_moment(what):
    data = HOSTILE[what]
    peak, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    seen = observe(RunResult(exit_code=1, artifacts={NAME: data}, seconds=1.0))
    judged = judge(seen, WANTED, SCRIPT)
    assert time.process_time() - began < 3
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak < 200_000
    assert judged.match is Match.UNDECIDED
    assert judged.reason.startswith(f"the artifact {NAME} was refused because ")
    assert len(judged.reason) < 500


def test_what_the_sandbox_refused_is_told_too():
    result = RunResult(exit_code=1, refused={NAME: "it has 524288000 bytes"}, seconds=1.0)
    judged = judge(observe(result), WANTED, SCRIPT)
    assert judged.match is Match.UNDECIDED
    assert judged.reason == f"the artifact {NAME} was refused because it has 524288000 bytes"


def test_many_traces_cost_no_more_than_a_few():
    files = {f".reprise/trace-{n}-main.json": json.dumps(trace()).encode() for n in range(1000)}
    left = artifacts.traces(files, {})
    assert len(left.traces) <= 64
    assert "1000 traces" in left.refused[0]


def test_an_honest_trace_is_read_whole():
    row = trace(frames=[FRAME] * 200, chained=[chain(8)], bases=["Exception"])
    (failure,) = observe(
        RunResult(exit_code=1, artifacts={NAME: json.dumps(row).encode()}, seconds=1.0)
    ).failures
    assert (failure.exception, len(failure.frames), failure.bases) == ("RuntimeError", 200, ("Exception",))  # fmt: skip
    assert failure.frames[0].package == "lib"
    assert failure.chained[0].exception == "E"
    assert not failure.swallowed


@pytest.mark.parametrize(
    "data", [b"[]", b'{"entered": 3}', nested(50_000), b'{"lines": [["a", "b"]]}', bytes(2 << 20)]
)
def test_a_hostile_list_of_what_was_reached_is_refused(data):
    assert isinstance(artifacts.parse_record(artifacts.Reached, data), str)


@pytest.mark.parametrize("text", ["", "[" * 100_000, "[1]", "7", "{", '{"a": ' * 5000])
def test_the_last_row_of_an_output_is_an_object_or_nothing(text):
    assert artifacts.last_row(text) == {}
    assert artifacts.last_row('noise\n{"Path": "pathlib"}\n') == {"Path": "pathlib"}


FLOODS = {
    "one line of signs": "_" * 500_000,
    "one line of errors": "Error " * 80_000,
    "one line of colons": "E: " * 160_000,
    "empty lines": "\n" * 500_000,
    "endless log": "ERROR " * 80_000,
}


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
@pytest.mark.parametrize("what", FLOODS)
def test_a_hostile_output_is_judged_in_seconds(what, stream):
    seen = observe(RunResult(exit_code=1, seconds=1.0, **{stream: FLOODS[what]}))
    warning = WarningSignature(category="UserWarning", message="something here is deprecated")
    began = time.process_time()
    for signature in (WANTED, warning):
        assert judge(seen, signature, SCRIPT).match is not Match.MATCHED
    assert time.process_time() - began < 8
