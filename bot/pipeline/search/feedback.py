"""What a model learns from its earlier actions: the history that the next prompt shows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bot.models.attempt import Attempt
from bot.models.plan import ReadAction, SearchAction
from bot.pipeline.search import source_listing
from bot.ports import SourceIndex
from prompts import fence, shared
from sandbox.port import RunResult

_MOST_OUTPUT = 3_000  # characters
_FRAMES = 6


def request(wish: SearchAction | ReadAction) -> str:
    """A look into the sources, in a few words."""
    if isinstance(wish, SearchAction):
        return shared("search", query=repr(wish.query))
    return shared("read", path=wish.path, start=wish.start, end=wish.end)


def looked_up(sources: SourceIndex | None, wish: SearchAction | ReadAction) -> str:
    """What a look into the sources found."""
    return shared("looked_up", request=request(wish), found=source_listing.look_up(sources, wish))


def probed(code: str, result: RunResult) -> str:
    """What a probe printed and how it ended."""
    return shared(
        "probed",
        code=fence("probe", code),
        ended=shared("exit_code", code=result.exit_code)
        if result.signal is None
        else shared("signal", signal=result.signal),
        output=fence("output", _shortened(f"{result.stdout}\n{result.stderr}".strip())),
    )


def refused(objections: Iterable[str]) -> str:
    """Why a program was not run."""
    return shared("refused", objections="\n".join(f"- {objection}" for objection in objections))


def outcome(attempt: Attempt, result: RunResult | None) -> str:
    """What a run did: how it ended, where it failed, and what it printed."""
    judgement, execution = attempt.judgement, attempt.execution
    shown = [_shortened(text.strip()) for text in _streams(attempt, result)]
    return shared(
        "outcome",
        ended=shared("timed_out")
        if execution.timed_out
        else shared("exit_code", code=execution.exit_code),
        seconds=f"{execution.seconds:.1f}",
        reason=judgement.reason,
        output=fence(
            "output of the run",
            "\n\n".join(shown) or judgement.evidence or shared("no_output"),
        ),
    )


def _streams(attempt: Attempt, result: RunResult | None) -> Iterable[str]:
    failure = attempt.judgement.failure
    if failure is not None:
        frames = [
            f'  File "{frame.module_path or frame.path}", line {frame.line}, in {frame.function}\n'
            f"    {frame.code}"
            for frame in failure.frames[-_FRAMES:]
        ]
        yield "\n".join([*frames, f"{failure.exception}: {failure.message}"])
    elif result is not None and result.stderr.strip():
        yield result.stderr
    if result is not None and result.stdout.strip():
        yield shared("standard_output", output=result.stdout)


def history(program: str, contrast: str, notes: Sequence[str]) -> str:
    """The last program and its twin with line numbers, and the notes on what was tried."""
    parts = []
    for name, text in (("program", program), ("contrast", contrast)):
        if text.strip():
            numbered = "\n".join(f"{at:4d}  {line}" for at, line in enumerate(text.splitlines(), 1))
            parts.append(shared("last_program", name=name, source=fence(name, numbered)))
    return "\n\n".join([*parts, *notes])


def _shortened(text: str) -> str:
    if len(text) <= _MOST_OUTPUT:
        return text
    return f"{text[: _MOST_OUTPUT // 3]}\n[…]\n{text[-_MOST_OUTPUT * 2 // 3 :]}"
