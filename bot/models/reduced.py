"""A failing program made smaller: what it was, what was taken away, and why that ended."""

from typing import Literal

from bot.models.attempt import Script
from bot.models.base import Record

Mode = Literal["fork", "fresh", "single"]
"""How candidates were run: forked from one process that had imported the framework, each in a
process of its own within one run of the sandbox, or each in a run of its own.
"""

Ended = Literal["complete", "tests", "time", "stopped", "unseen"]
"""Nothing more to take away; the limit of tests or of time; a request; or the failure was not
seen again.
"""


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
