"""One attempt: a script, what it did, and what that means, the unit of storage and replay; and a
script made smaller.
"""

from __future__ import annotations

import hashlib
from enum import StrEnum
from typing import Literal

from bot.kernel.bug import Frame, ScriptFix
from bot.kernel.values import Record
from sandbox.port import RunResult

Mode = Literal["fork", "fresh", "single"]
"""How candidates were run: forked from one process that had imported the framework, each in a
process of its own within one run of the sandbox, or each in a run of its own.
"""


Ended = Literal["complete", "tests", "time", "stopped", "unseen"]
"""Nothing more to take away; the limit of tests or of time; a request; or the failure was not
seen again.
"""


BESIDE = "reprise_program.py"
"""The name of a program that lies at the root of a repository without belonging to it."""


class FaultCode(Record):
    """The code of a repository that raises: the function around a line of one of its files, or,
    outside of one, the statement; `start` is the line on which its text begins, `ran` are the lines
    of it that the failing run executed, where they are known.
    """

    path: str
    text: str
    start: int
    line: int
    ran: frozenset[int] = frozenset()


class Script(Record):
    """A program of one or more files, the one to start named by `entry`. `origin` says which
    blocks of the issue it came from; the `author` is who wrote it in the first place.

    With a `command` it runs in the repository under test: the command (what follows the
    interpreter) starts it in `folder`, in the tree of the environment's commit. Of its files those
    that are `edited`, by a fix or because they are ours, lie over the tree.
    `steps` are other commands that are run before it, in the same run.
    One that was made of such a program may contain a copy of the repository's `fault_code`.
    """

    files: dict[str, str]
    entry: str = "repro.py"
    command: tuple[str, ...] = ()
    steps: tuple[tuple[str, ...], ...] = ()
    folder: str = ""
    edited: tuple[str, ...] = ()
    variables: dict[str, str] = {}
    origin: str = ""
    author: Literal["reporter", "model"] = "reporter"
    fences: tuple[int, ...] = ()
    fixes: tuple[ScriptFix, ...] = ()
    fault_code: FaultCode | None = None

    @property
    def source(self) -> str:
        """The text of the entry file."""
        return self.files[self.entry]

    @property
    def is_repositorys(self) -> bool:
        """Whether the repository wrote it, so that what it raises or prints is not staged."""
        return bool(self.command) and self.entry != BESIDE

    @property
    def digest(self) -> str:
        """SHA-256 over names and contents; equal scripts have equal digests."""
        text = "\0".join(f"{name}\0{text}" for name, text in sorted(self.files.items()))
        if self.command:
            variables = [f"{name}={value}" for name, value in sorted(self.variables.items())]
            steps = (word for step in self.steps for word in ("\0", *step))
            text = "\0".join((text, self.folder, *self.command, *variables, *steps))
        return hashlib.sha256(text.encode()).hexdigest()


class Failure(Record):
    """How a run failed, as the hook inside the sandbox (or the printed traceback) reports it.
    Frames run outermost to innermost; the program's own have package "" and the standard
    library's "<stdlib>". `swallowed` when the program caught and printed it.
    """

    exception: str
    message: str
    bases: tuple[str, ...] = ()
    frames: tuple[Frame, ...] = ()
    swallowed: bool = False
    chained: tuple[Failure, ...] = ()

    @property
    def innermost(self) -> Frame | None:
        """The frame that raised, or None when the program only printed the exception."""
        return self.frames[-1] if self.frames else None

    @property
    def script_frame(self) -> Frame | None:
        """The innermost frame that belongs to the program itself."""
        return next((frame for frame in reversed(self.frames) if frame.package == ""), None)


FALSE_STARTS = frozenset(("ImportError", "ModuleNotFoundError", "SystemExit"))
"""What ends a program at its imports or its command line."""


class Match(StrEnum):
    """A run compared with the signature. SETUP_FAILURE: the environment failed before
    the reported one.
    """

    MATCHED = "matched"
    PASSED = "passed"
    OTHER = "other"
    SETUP_FAILURE = "setup_failure"
    UNDECIDED = "undecided"


class SetupFailure(Record):
    """A failure of the environment that comes before the reported one, and what would fix it: a
    module or a requirement to install, an environment variable to set, a rewrite of the script (by
    its id), names to import, or, when nothing here can, what is needed from outside.
    """

    id: str
    what: str
    module: str = ""
    requirement: str = ""
    variable: str = ""
    rewrite: Literal["", "cpu", "shorter"] = ""
    names: tuple[str, ...] = ()
    needs: str = ""
    hardware: str = ""


class Evidence(Record):
    """Whether one piece of an exception agrees with the reported one: its class, its message
    (`score` is their similarity, 0 to 1), the shapes in it, its location, the check that failed, or
    who raised it.
    """

    what: Literal["class", "words", "shapes", "place", "check", "origin"]
    agrees: bool = True
    score: float | None = None
    says: str = ""


class Judgement(Record):
    """What one run shows, with the output that shows it. `weighed` is the comparison of each piece
    of the exception, up to the one that decided. `member` is the index of the signature that was
    matched, from 0; `value` is the number that an observation printed; `contrary` says that the
    output which the bug report expects was printed instead. `doubt` is why this run cannot confirm
    a bug, whatever it shows. `rest_s` are the seconds that a program which was stopped still needs
    at least, by its own progress.
    """

    match: Match
    reason: str
    evidence: str = ""
    weighed: tuple[Evidence, ...] = ()
    failure: Failure | None = None
    setup_failure: SetupFailure | None = None
    member: int = 0
    value: float | None = None
    contrary: bool = False
    doubt: str = ""
    rest_s: float | None = None

    @property
    def is_false_start(self) -> bool:
        """Whether the run ended at its command line or at its imports, so that it tells nothing of
        what the program does.
        """
        if self.match not in {Match.OTHER, Match.SETUP_FAILURE}:
            return False
        name = self.failure.exception.rsplit(".", 1)[-1] if self.failure is not None else ""
        at_arguments = self.setup_failure is not None and self.setup_failure.id == "arguments"
        return at_arguments or name in FALSE_STARTS


class Execution(Record):
    """The numbers of one run, without its streams (those are in `logs/`)."""

    exit_code: int | None
    signal: int | None = None
    timed_out: bool = False
    idle: bool = False
    oom: bool = False
    seconds: float
    seed: int | None = None
    log: str = ""

    @classmethod
    def of(cls, result: RunResult, seed: int, log: str) -> Execution:
        """The numbers of a result."""
        return cls(
            exit_code=result.exit_code,
            signal=result.signal,
            timed_out=result.timed_out,
            idle=result.idle,
            oom=result.oom,
            seconds=result.seconds,
            seed=seed,
            log=log,
        )


class Attempt(Record):
    """One run of a script with its judgement. `purpose` distinguishes searching from confirming."""

    number: int
    purpose: Literal[
        "search", "confirm", "repeat", "contrast", "control", "bisect", "minimize", "measure"
    ]
    script: str
    origin: str
    environment: str
    execution: Execution
    judgement: Judgement
    change: str = ""

    @property
    def brief(self) -> Attempt:
        """The attempt without its evidence: its number, purpose, timing and match remain."""
        judgement = self.judgement.model_copy(update={"evidence": "", "failure": None})
        return self.model_copy(update={"judgement": judgement})


class Step(Record):
    """One accepted reduction."""

    what: str
    lines: int
    tests: int
    seconds: float


class Reduced(Record):
    """What became of a program. `tests` counts the programs tried, `runs` the processes started
    for them and to confirm.

    `before` is the program as it was given and `script` the last confirmed one, the same when
    `ended` is "unseen". `seconds` is wall time; all three are sums over the tries at this program,
    but for those that were killed: where one was gone on with, `resumed` is the lines it had come
    to. `lines_before` and `lines_after` count those that are not blank. `confirmed` is whether the
    result had its last, sequential test; without it, it was seen to fail in the runs that the way
    to it took.
    """

    before: Script
    script: Script
    tests: int
    runs: int
    seconds: float
    lines_before: int
    lines_after: int
    history: tuple[Step, ...] = ()
    mode: Mode = "fork"
    ended: Ended = "complete"
    confirmed: bool = True
    resumed: int = 0

    @property
    def is_smaller(self) -> bool:
        """Whether the program became shorter."""
        return self.lines_after < self.lines_before


class ObservedTensor(Record):
    """A variable of the program that held a tensor in whose computation no parameter took part, an
    array, or a plain value, which is there as `text`.
    """

    path: str
    name: str
    shape: tuple[int, ...]
    dtype: str
    text: str = ""


Reached = frozenset[tuple[str, int]]
"""The lines of a program that ran: file and line."""
