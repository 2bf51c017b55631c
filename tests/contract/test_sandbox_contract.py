"""What every sandbox promises, the fake included: one suite, each program written for both."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from sandbox.port import Limits, Mount, RunSpec, Sandbox, SandboxError
from tests.support.sandbox import Die, Exit, Save, Say, Take, Wait

SMALL = {"memory_mb": 512, "scratch_mb": 64, "file_mb": 32}


def test_reports_the_exit_code(bench):
    done = bench.run("import sys; sys.exit(3)", [Exit(3)])
    assert (done.exit_code, done.signal) == (3, None)
    assert done.ended_by_itself


def test_reports_a_signal_and_no_exit_code(bench):
    done = bench.run("import os; os.kill(os.getpid(), 11)", [Die(signal.SIGSEGV)])
    assert (done.exit_code, done.signal) == (None, signal.SIGSEGV)
    assert done.ended_by_itself


@pytest.mark.parametrize("number", [signal.SIGABRT, signal.SIGINT, signal.SIGPIPE, signal.SIGKILL])
def test_names_the_signal(bench, number):
    source = f"import os, signal; signal.signal({int(number)}, 0) if {int(number)} != 9 else 0; os.kill(os.getpid(), {int(number)})"
    done = bench.run(source, [Die(number)])
    assert (done.exit_code, done.signal, done.oom) == (None, number, False)


def test_an_exit_code_that_looks_like_a_signal_is_an_exit_code(bench):
    done = bench.run("import os; os._exit(139)", [Exit(139)])
    assert (done.exit_code, done.signal) == (139, None)


def test_keeps_the_streams_apart(bench):
    source = "import sys; print('out'); print('err', file=sys.stderr)"
    done = bench.run(source, [Say(b"out\n"), Say(b"err\n", "stderr")])
    assert (done.stdout, done.stderr) == ("out\n", "err\n")
    assert not done.stdout_truncated
    assert not done.stderr_truncated


def test_decodes_broken_text_with_replacement(bench):
    data = b"caf\xc3\xa9 \xff\xfe end\n"
    done = bench.run(f"import sys; sys.stdout.buffer.write({data!r})", [Say(data)])
    assert done.stdout == "café �� end\n"


def test_cuts_long_output_in_the_middle_and_says_so(bench):
    data = b"".join(b"line %06d\n" % n for n in range(20_000))
    source = "import sys\nfor n in range(20000): sys.stdout.write('line %06d\\n' % n)"
    done = bench.run(source, [Say(data)], limits=Limits(wall_s=20, output_bytes=10_000, **SMALL))
    assert done.stdout_truncated
    assert not done.stderr_truncated
    assert done.stdout.startswith("line 000000\n")
    assert done.stdout.endswith("line 019999\n")
    assert f"[... {len(data) - 10_000} bytes cut ...]" in done.stdout
    assert len(done.stdout) < 10_100


def test_tells_lines_while_the_program_runs(bench):
    told: list[tuple[float, str, str]] = []
    source = """
import sys, time
print('first', flush=True); time.sleep(0.6)
sys.stderr.write('one\\r\\ntwo\\n'); sys.stderr.flush()
sys.stdout.write('half'); sys.stdout.flush(); time.sleep(0.1); print(' line'); print('no end', end='')
"""
    steps = [
        Say(b"first\n"),
        Wait(0.6),
        Say(b"one\r\ntwo\n", "stderr"),
        Say(b"half"),
        Say(b" line\nno end"),
    ]
    bench.run(
        source, steps, on_output=lambda stream, line: told.append((time.monotonic(), stream, line))
    )
    end = time.monotonic()
    assert [line for _, stream, line in told if stream == "stdout"] == [
        "first",
        "half line",
        "no end",
    ]
    assert [line for _, stream, line in told if stream == "stderr"] == ["one", "two"]
    assert end - told[0][0] > 0.5


def test_ends_at_the_wall_and_keeps_what_was_printed(bench):
    source = "print('before', flush=True)\nwhile True: pass"
    done = bench.run(
        source, [Say(b"before\n"), Wait(60, busy=True)], limits=Limits(wall_s=1.0, **SMALL)
    )
    assert (done.timed_out, done.idle, done.oom, done.cancelled) == (True, False, False, False)
    assert (done.exit_code, done.signal, done.stdout) == (None, None, "before\n")
    assert 1.0 <= done.seconds < 3.0


HOG = "import os\nos.sched_setaffinity(0, {{{cpu}}})\nwhile True: pass"
ALONE = """
import os, time
os.sched_setaffinity(0, {{{cpu}}})
end = time.process_time() + 0.5
while time.process_time() < end: pass
print('done', flush=True)
"""


@pytest.mark.parametrize(("patience", "ends"), [(1.0, False), (60.0, True)])
def test_time_in_which_others_have_the_processor_does_not_count(bench, patience, ends):
    cpu = min(os.sched_getaffinity(0))
    # Each in a session of its own: the scheduler shares time between sessions first.
    hog = [sys.executable, "-c", HOG.format(cpu=cpu)]
    hogs = [subprocess.Popen(hog, start_new_session=True) for _ in range(9)]
    try:
        done = bench.run(
            ALONE.format(cpu=cpu),
            [Wait(2.6, starved=True), Say(b"done\n")],
            limits=Limits(wall_s=2.2, patience=patience, **SMALL),
        )
    finally:
        for one in hogs:
            one.kill()
            one.wait()
    assert (done.timed_out, done.stdout == "done\n") == (not ends, ends)


def test_ends_an_idle_run(bench):
    began = time.monotonic()
    done = bench.run(
        "print('x', flush=True); import time; time.sleep(60)",
        [Say(b"x\n"), Wait(60)],
        limits=Limits(wall_s=20, idle_s=1.0, **SMALL),
    )
    assert (done.idle, done.timed_out, done.exit_code, done.signal) == (True, False, None, None)
    assert done.stdout == "x\n"
    assert time.monotonic() - began < 8


def test_a_run_that_computes_or_prints_is_not_idle(bench):
    source = """
import time
end = time.time() + 1.6
while time.time() < end: pass
for _ in range(8): time.sleep(0.3); print('.', flush=True)
"""
    steps = [Wait(1.6, busy=True), *(step for _ in range(8) for step in (Wait(0.3), Say(b".\n")))]
    done = bench.run(source, steps, limits=Limits(wall_s=20, idle_s=0.9, **SMALL))
    assert (done.idle, done.exit_code) == (False, 0)


def test_tells_memory_from_a_kill(bench):
    source = "data = []\nwhile True: data.append(bytearray(16 << 20))"
    done = bench.run(
        source, [Take(1 << 20)], limits=Limits(wall_s=20, memory_mb=256, scratch_mb=64, file_mb=32)
    )
    if done.exit_code is not None:  # a Python that was refused memory would say so itself
        raise AssertionError(done.stderr)
    assert (done.oom, done.signal, done.timed_out) == (True, signal.SIGKILL, False)
    assert not done.ended_by_itself


def test_is_cancelled_soon(bench):
    cancel = threading.Event()
    set_at: list[float] = []

    def press() -> None:
        set_at.append(time.monotonic())
        cancel.set()

    threading.Timer(1.2, press).start()
    done = bench.run(
        "print('x', flush=True); import time; time.sleep(60)",
        [Say(b"x\n"), Wait(60)],
        cancel=cancel,
    )
    assert (
        time.monotonic() - set_at[0] < 2.5
    )  # a second on a quiet machine, and in Docker the container's removal
    assert (done.cancelled, done.exit_code, done.signal, done.stdout) == (True, None, None, "x\n")


def test_gives_back_artifacts_by_pattern(bench):
    source = """
import os
os.makedirs('out/deep'); open('out/a.json', 'wb').write(b'{}'); open('out/deep/b.json', 'wb').write(b'[]'); open('c.txt', 'w').write('no')
"""
    steps = [Save("out/a.json", b"{}"), Save("out/deep/b.json", b"[]"), Save("c.txt", b"no")]
    assert bench.run(source, steps, artifacts=("out/*.json",)).artifacts == {"out/a.json": b"{}"}
    assert bench.run(source, steps, artifacts=("**/*.json",)).artifacts == {
        "out/a.json": b"{}",
        "out/deep/b.json": b"[]",
    }
    assert bench.run(source, steps).artifacts == {}


@pytest.mark.parametrize(
    "pattern",
    [
        "", "/etc/passwd", "/**/*.json", "..", "../*", "../../*.json", "out/../../*", "**/../*", "./*.json", "out//*.json", "out/", "a\0b", "\0",
        "*" * 20, "*a*", "**/**/**", "a/**/b/**/c", "**.json", "a**/*", "out/" * 100 + "*.json", "x" * 300,
    ],
)  # fmt: skip
def test_refuses_patterns_that_lead_elsewhere_or_take_long(bench, pattern):
    with pytest.raises(ValueError, match="artifact pattern"):
        bench.run("", artifacts=("*.json", pattern))


@pytest.mark.parametrize(
    "pattern", ["*", "**/*", "**", "a?/*-?.json", "..a/*..", ".reprise/*.json"]
)
def test_takes_patterns_below_the_working_directory(bench, pattern):
    assert bench.run("", artifacts=(pattern,)).ended_by_itself


def test_artifacts_over_the_size_limit_are_refused_with_the_reason(bench):
    source = "[open(name, 'wb').write(bytes(3 << 19)) for name in ('a.bin', 'b.bin')]; open('c.bin', 'wb').write(b'small')"
    steps = [Save("a.bin", bytes(3 << 19)), Save("b.bin", bytes(3 << 19)), Save("c.bin", b"small")]
    done = bench.run(
        source,
        steps,
        artifacts=("*.bin",),
        limits=Limits(wall_s=20, memory_mb=512, scratch_mb=64, artifact_mb=2),
    )
    assert {name: len(data) for name, data in done.artifacts.items()} == {
        "a.bin": 3 << 19,
        "c.bin": 5,
    }
    assert set(done.refused) == {"b.bin"}
    assert str(3 << 19) in done.refused["b.bin"]


def test_artifacts_survive_a_failure(bench):
    source = "open('trace.json', 'wb').write(b'1'); import os; os.abort()"
    done = bench.run(source, [Save("trace.json", b"1"), Die(signal.SIGABRT)], artifacts=("*.json",))
    assert done.artifacts == {"trace.json": b"1"}


def test_measures_time(bench):
    source = "import time\nend = time.process_time() + 0.5\nwhile time.process_time() < end: pass"
    done = bench.run(source, [Wait(0.5, busy=True)])
    assert 0.4 < done.seconds < 5


@pytest.mark.parametrize("name", ["../out.txt", "/etc/out.txt", "a/../b", "", "a\0b"])
def test_refuses_files_outside_the_working_directory(bench, name):
    with pytest.raises(SandboxError):
        bench.sandbox.run(RunSpec(("/bin/true",), files={name: b"x"}))


@pytest.fixture
def data(interpreter):
    """A folder of the host's that every user may read, as it may be mounted."""
    folder = interpreter / "data-of-the-host"
    (folder / "deep").mkdir(parents=True, exist_ok=True)
    (folder / "deep" / "numbers.txt").write_text("1 2 3")
    for path in (folder, folder / "deep"):
        path.chmod(0o755)
    return folder


def test_a_link_leads_to_a_mount(bench, data):
    """In a folder of the program's files too, and below folders that only the link needs."""
    source = """
import os
print(open('data/numbers.txt').read(), open('pack/own.txt').read(), os.listdir('pack/new/data'))
"""
    steps = [Say(b"1 2 3 own ['deep']\n")]
    links = {"data": f"{data}/deep", "pack/new/data": str(data)}
    done = bench.run(
        source, steps, files={"pack/own.txt": b"own"}, links=links, mounts=(Mount(data),)
    )
    assert (done.exit_code, done.stdout) == (0, "1 2 3 own ['deep']\n"), done.stderr


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("data", "/etc"), ("data", "/"), ("data", "deep"), ("data", "{}/../x"), ("data", "{}-of-another"), ("data", "{}\0"),
        ("../data", "{}"), ("/data", "{}"), ("a/../data", "{}"), ("", "{}"), ("a\0b", "{}"),
        ("own.txt", "{}"), ("pack", "{}"), ("pack/own.txt/data", "{}"), ("link/below", "{}"),
    ],
)  # fmt: skip
def test_refuses_links_that_lead_elsewhere_or_meet_a_file(bench, data, name, target):
    spec = RunSpec(
        ("/bin/true",),
        files={"own.txt": b"x", "pack/own.txt": b"x"},
        links={"link": str(data), name: target.format(data)},
        mounts=(Mount(data),),
    )
    with pytest.raises(SandboxError):
        bench.sandbox.run(spec)


def test_a_link_is_no_artifact(bench, data):
    links = {"data": str(data), "one.txt": f"{data}/deep/numbers.txt"}
    done = bench.run("", links=links, mounts=(Mount(data),), artifacts=("**/*.txt",))
    assert done.artifacts == {}


def test_a_program_that_is_not_there_is_no_result(bench):
    sandbox: Sandbox = bench.sandbox
    if bench.kind == "fake":
        sandbox.program = {}
    with pytest.raises(SandboxError, match="no-such-program"):
        sandbox.run(RunSpec(("/no-such-program", "x")))


def test_check_is_honest_and_sweep_counts(bench):
    health = bench.sandbox.check()
    assert health.works, health.detail
    assert health.protects
    assert bench.sandbox.sweep() >= 0
