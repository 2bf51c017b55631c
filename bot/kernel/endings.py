"""How a program ended: completed, failed with an exception, out of time, or killed."""

from typing import Literal

from bot.kernel import tracebacks
from bot.kernel.bug import Traceback
from bot.kernel.outside_text import clip, one_line
from sandbox.port import RunResult

Ending = Literal["completed", "failed", "timed out", "killed"]


def ending_of(result: RunResult) -> Ending:
    """How the program ended."""
    if result.timed_out or result.idle:
        return "timed out"
    if result.exit_code == 0:
        return "completed"
    return "failed" if result.exit_code is not None and not result.oom else "killed"


def failure(result: RunResult) -> Traceback | None:
    """The last exception that the program printed before it failed."""
    if result.exit_code in {0, None}:
        return None
    matches = tracebacks.find(result.stderr.splitlines())
    return matches[-1].traceback if matches else None


def error(result: RunResult) -> str:
    """The exception that ended the program, on one line; "" for none."""
    traceback = failure(result)
    if traceback is None:
        return ""
    name = traceback.exception.rsplit(".", 1)[-1]
    return clip(one_line(f"{name}: {traceback.message}".removesuffix(": ")), 300)
