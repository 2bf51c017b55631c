"""A run's streams as one text: how it ended, then what it printed."""

from bot.models.attempt import Script
from bot.models.journal import RunLog
from sandbox.port import RunResult


def run_log(number: int, script: Script, result: RunResult) -> RunLog:
    """The log of one run; a stream that was cut says so."""
    flags = [flag for flag in ("timed_out", "idle", "oom", "cancelled") if getattr(result, flag)]
    ended = (
        f"signal {result.signal}" if result.signal is not None else f"exit code {result.exit_code}"
    )
    head = f"script {script.digest[:12]} · {', '.join([ended, *flags])} · {result.seconds:.2f} s\n"
    streams = (
        ("stdout", result.stdout, result.stdout_truncated),
        ("stderr", result.stderr, result.stderr_truncated),
    )
    text = head + "".join(
        f"\n--- {name}{' (truncated)' if cut else ''}\n{text}" for name, text, cut in streams
    )
    return RunLog(number=number, text=text)
