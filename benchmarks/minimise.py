"""Five failing training scripts made small, by Reprise and by general reducers with the same
oracle.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from importlib import resources
from pathlib import Path
from time import monotonic

from pydantic import TypeAdapter

from bot.issues import judge, observe
from bot.issues.proof.minimise import confirmed_identity, minimise, oracle_of
from bot.issues.reading import issue
from bot.issues.reduce.edits import size
from bot.issues.reduce.failure_identity import FailureIdentity, difference
from bot.issues.runner import Runner, judging
from bot.kernel import launch
from bot.kernel.attempt import Match, Script
from bot.kernel.bug import AnySignature, Issue
from bot.kernel.environment import Environment, EnvironmentSpec, PinSource, Requirement
from bot.kernel.errors import UserError
from bot.kernel.job import JobOptions, ReproduceIssue
from bot.kernel.ports import Builder, Ports, Progress
from bot.kernel.session import Session
from bot.kernel.values import Record
from sandbox.port import Sandbox
from tests.support.fakes import MemoryJournal

NAMES = ("sequences", "images", "checkpoints", "attention", "detector")
TOOLS = ("reprise", "lithium", "shrinkray")
_SIGNATURES: TypeAdapter[dict[str, AnySignature]] = TypeAdapter(dict[str, AnySignature])
_WALL_S = 7200.0
Say = Callable[[str], None]
_Start = Callable[[Path, Path, float], bool]


class ReducerFailed(Exception):
    """A general reducer that did not do its work, so that there is no figure of it."""


class ToolResult(Record):
    """One program reduced by one tool. `seconds` is the wall time of the tests alone, `held`
    whether the result still shows the confirmed failure and no other, by a fresh ordinary run,
    `path` the lines it had come to after so many seconds, and `stopped` whether it was not done
    when its time was up.
    """

    case: str
    tool: str
    before: int
    after: int
    tests: int
    seconds: float
    total: float
    held: bool
    path: tuple[tuple[int, float], ...] = ()
    stopped: bool = False


class InterestingnessTest(Record):
    """One test by a general reducer: how long it took, how long the program was, and whether it
    fails as it should.
    """

    seconds: float
    lines: int
    interesting: bool


class OracleSettings(Record):
    """All that an interestingness test in another process needs: the same signature, reference
    and environment.
    """

    signature: AnySignature
    held: FailureIdentity
    environment: Environment
    seed: int
    log: str


def cases(only: Iterable[str] = ()) -> dict[str, tuple[Script, AnySignature]]:
    """The bundled programs with the signatures of their failures."""
    folder = resources.files("benchmarks").joinpath("data", "minimise")
    signatures = _SIGNATURES.validate_json(folder.joinpath("cases.json").read_bytes())
    chosen = [name for name in NAMES if not list(only) or name in only]
    files = {name: folder.joinpath(f"{name}.txt").read_text("utf-8") for name in chosen}
    return {
        name: (Script(files={"repro.py": files[name]}, origin=name), signatures[name])
        for name in chosen
    }


def known(names: str) -> tuple[str, ...]:
    """The tools named, with commas between. Raises UserError for another one."""
    named = tuple(each.strip() for each in names.split(",") if each.strip())
    if unknown := [each for each in named if each not in TOOLS]:
        raise UserError(
            f"--tools {unknown[0]} is no reducer that is known here.",
            f"Choose from {', '.join(TOOLS)}.",
        )
    return named


def environment(builder: Builder) -> Environment:
    """Torch on the processor, and numpy."""
    names = {"torch": "==2.13.0", "numpy": ""}
    wanted = tuple(
        Requirement(name=name, specifier=each, rung=PinSource.OPTION, reason="bench")
        for name, each in names.items()
    )
    return builder.build(EnvironmentSpec(python="3.11", requirements=wanted))


def reduced(
    name: str,
    script: Script,
    signature: AnySignature,
    world: tuple[Sandbox, Builder],
    built: Environment,
    say: Say,
    tools: tuple[str, ...] = TOOLS[:2],
    most_s: float = _WALL_S,
) -> list[ToolResult]:
    """One case by each of the tools. shrinkray, which may go on for hours, is stopped after
    `most_s`.
    """
    runner = runner_for(world, signature)
    for seed in (1, 2):
        runner.run(script, built, seed, "confirm")
    found = confirmed_identity(runner, script, built)
    assert found is not None, f"{name} does not fail here"
    held, seeds = found
    oracle = OracleSettings(
        signature=signature, held=held, environment=built, seed=seeds[0], log=""
    )
    rows = [_reprise(name, script, held, seeds, runner, built, say)] if "reprise" in tools else []
    for tool, start in (("lithium", _lithium), ("shrinkray", _shrinkray)):
        if tool in tools:
            try:
                rows.append(_general(name, tool, script, oracle, runner, start, most_s))
            except ReducerFailed as error:
                say(f"{name}: {error}; it is not in the table")
                continue
            say(_in_words(rows[-1], "stopped" if rows[-1].stopped else "done"))
    return rows


def _in_words(row: ToolResult, ended: str) -> str:
    return (
        f"{row.case}: {row.tool} {row.before} → {row.after} lines in {row.tests} tests, "
        f"{row.seconds:.0f} s ({ended})"
    )


def _reprise(
    name: str,
    script: Script,
    held: FailureIdentity,
    seeds: tuple[int, ...],
    runner: Runner,
    built: Environment,
    say: Say,
) -> ToolResult:
    began = monotonic()
    result = minimise(runner, script, built, held, seeds=seeds, max_tests=5000, seconds=_WALL_S)
    total = monotonic() - began
    say(result.script.source)
    mine = ToolResult(
        case=name,
        tool="reprise",
        before=result.lines_before,
        after=result.lines_after,
        tests=result.tests,
        seconds=total,
        total=total,
        held=_still(runner, result.script, built, held),
        path=tuple((step.lines, step.seconds) for step in result.history),
    )
    say(_in_words(mine, result.ended))
    return mine


def runner_for(world: tuple[Sandbox, Builder], signature: AnySignature) -> Runner:
    """A runner for a failure that no bug report is about."""

    def quiet(progress: Progress) -> None:
        del progress

    sandbox, builder = world
    ports = Ports(
        sandbox=sandbox, builder=builder, journal=MemoryJournal(), clock=monotonic, listener=quiet
    )
    job = ReproduceIssue(issue=Issue(title="bench", body=""))
    return judging(Session.begin(job, ports), issue.read_issue(job.issue), signature)


def still_fails(runner: Runner, script: Script, environment: Environment) -> bool:
    """Whether a script shows the reported failure in a fresh run."""
    return runner.run(script, environment, 99, "repeat").match is Match.MATCHED


def _still(runner: Runner, script: Script, built: Environment, held: FailureIdentity) -> bool:
    return oracle_of(runner, built, held).test.shows(
        runner.run(script, built, 99, "repeat").judgement, script
    )


def _general(
    name: str,
    tool: str,
    script: Script,
    oracle: OracleSettings,
    runner: Runner,
    start: _Start,
    most_s: float,
) -> ToolResult:
    """A general reducer, its test a run of the program judged in the same way. Raises ReducerFailed
    where it fails by itself.
    """
    with tempfile.TemporaryDirectory() as folder:
        program, settings, log = (
            Path(folder, "repro.py"),
            Path(folder, "oracle.json"),
            Path(folder, "log.jsonl"),
        )
        program.write_text(script.source, "utf-8")
        settings.write_text(oracle.model_copy(update={"log": str(log)}).model_dump_json(), "utf-8")
        began = monotonic()
        ended = start(settings, program, most_s)
        total = monotonic() - began
        if not log.exists():
            raise ReducerFailed(f"{tool} ended without a single test")
        tests = [
            InterestingnessTest.model_validate_json(line) for line in log.read_text().splitlines()
        ]
        after = script.model_copy(update={"files": {"repro.py": program.read_text("utf-8")}})
    return ToolResult(
        case=name,
        tool=tool,
        before=size(script.files)[0],
        after=size(after.files)[0],
        tests=len(tests),
        seconds=sum(test.seconds for test in tests),
        total=total,
        held=_still(runner, after, oracle.environment, oracle.held),
        path=tuple(_smaller(tests)),
        stopped=not ended,
    )


def _smaller(tests: list[InterestingnessTest]) -> Iterator[tuple[int, float]]:
    """The lines that a reducer had come to, and after how many seconds of tests."""
    spent, least = 0.0, sys.maxsize
    for test in tests:
        spent += test.seconds
        if test.interesting and test.lines < least:
            least = test.lines
            yield least, spent


def _lithium(settings: Path, program: Path, _most_s: float) -> bool:
    """lithium, line by line."""
    from lithium.reducer import Lithium  # `make bench-minimize` installs it

    place = settings.with_name("tmp")
    place.mkdir()
    Lithium().main(["--tempdir", str(place), "benchmarks.interesting", str(settings), str(program)])
    return True


def _shrinkray(settings: Path, program: Path, most_s: float) -> bool:
    """All its passes, one test at a time. It writes each smaller program over the first."""
    tool = shutil.which("shrinkray")
    if tool is None:
        raise UserError(
            "shrinkray is not on the search path.",
            "Install it where Python is 3.12 or newer, and put it there: uv tool install shrinkray",
        )
    test = settings.with_name("test.sh")
    ours = shlex.join([sys.executable, "-m", "benchmarks.interesting", str(settings)])
    test.write_text(f'#!/bin/sh\nexec {ours} "$1"\n')
    test.chmod(0o755)
    options = [
        "--ui",
        "basic",
        "--volume",
        "quiet",
        "--no-history",
        "--parallelism",
        "1",
        "--input-type",
        "arg",
    ]
    limits = ["--timeout", "0", "--memory-limit", "0"]  # the sandbox has its own
    argv = [tool, *options, *limits, str(test), str(program)]
    with _ended(
        subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=sys.stderr, start_new_session=True)
    ) as running:
        try:
            status = running.wait(most_s)
        except subprocess.TimeoutExpired:
            return False
    if status:
        raise ReducerFailed(f"shrinkray failed, exit status {status}")
    return True


@contextmanager
def _ended(process: subprocess.Popen[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    """Whatever happens, nothing of it is left running."""
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def interesting(oracle: OracleSettings, program: str, sandbox: Sandbox) -> bool:
    """One test of a general reducer: a run of its own, judged as Reprise judges."""
    script = Script(files={"repro.py": program})
    spec = launch.spec(
        script, oracle.environment, JobOptions(), oracle.signature, oracle.seed, "bench"
    )
    began = monotonic()
    result = sandbox.run(spec)
    judgement = judge.judge(observe.observe(result), oracle.signature, script)
    shows = judgement.match == "matched" and not difference(oracle.held, judgement, script)
    done = InterestingnessTest(
        seconds=monotonic() - began, lines=size(script.files)[0], interesting=shows
    )
    with Path(oracle.log).open("a") as log:
        log.write(f"{done.model_dump_json()}\n")
    return shows


def told(rows: list[ToolResult]) -> str:
    """The table, and what it comes to beside each of the other tools."""
    lines = [
        (
            f"{'case':12} {'tool':9} {'before':>6} {'after':>6} {'tests':>6} {'seconds':>8}  same "
            "failure"
        )
    ]
    lines += [
        f"{row.case:12} {row.tool:9} {row.before:6} {row.after:6} {row.tests:6} "
        f"{row.seconds:8.1f}  "
        + ("yes" if row.held else "NO")
        + (", stopped" if row.stopped else "")
        for row in rows
    ]
    for tool in TOOLS[1:]:
        lines += _beside(tool, rows)
    return "\n".join(lines)


def _beside(tool: str, rows: list[ToolResult]) -> list[str]:
    ours = {row.case: row for row in rows if row.tool == TOOLS[0]}
    pairs = [(ours[row.case], row) for row in rows if row.tool == tool and row.case in ours]
    if not pairs:
        return []
    theirs = sum(other.seconds for _, other in pairs)
    whole = sum(one.seconds for one, _ in pairs)
    as_small = sum(_as_small(one, other.after) for one, other in pairs)
    larger = [one.case for one, other in pairs if one.after > other.after]
    return [
        f"until nothing goes any more: {whole / theirs:.3f} of the wall time of {tool}'s tests",
        f"until as small as {tool}'s result: {as_small / theirs:.3f} of it",
        f"larger than {tool}'s result: {', '.join(larger) or 'none'}",
    ]


def _as_small(row: ToolResult, lines: int) -> float:
    """Seconds until a program had at most so many lines; all of them when it never had."""
    return next((spent for after, spent in row.path if after <= lines), row.seconds)
