"""A run's streams as one text: how it ended, then what it printed."""

from bot.models.attempt import Script
from sandbox.port import RunResult


def log_text(script: Script, result: RunResult) -> str:
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
    return head + "".join(
        f"\n--- {name}{' (truncated)' if cut else ''}\n{text}" for name, text, cut in streams
    )
