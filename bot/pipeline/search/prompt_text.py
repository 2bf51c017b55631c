"""What prompts show: source code with line numbers, each piece with its origin and why it was
taken; and what a model learned from its earlier actions.
"""

from collections.abc import Iterable, Sequence
from itertools import groupby

from bot.models.attempt import Attempt, Execution
from bot.models.environment import Chunk, Context
from bot.pipeline.execution.run_state import CompletedRun
from bot.rules.code.line_budget import shown
from prompts import fence, shared
from sandbox.port import RunResult

_MOST_LINE = 300
_MOST_OUTPUT = 3_000  # characters
_FRAMES = 6
_BRIEF = 400  # characters


def contexts(ranked: Iterable[Context]) -> str:
    """The contexts in their order."""
    blocks = []
    for context in ranked:
        blocks += [
            shared("context", rank=context.rank, title=context.title),
            listed(context.chunks),
        ]
    return "\n\n".join(blocks) or shared("no_context")


def listed(pieces: Iterable[Chunk]) -> str:
    """Pieces of sources with line numbers, neighbours of one file inside one fence, without all
    but the first line of their docstrings.
    """
    blocks = []
    for _, group in groupby(pieces, key=lambda piece: (piece.path, piece.origin, piece.version)):
        first, *more = group
        package = f", {first.package} {first.version}".rstrip() if first.package else ""
        label = shared("piece", origin=first.origin, path=first.path, package=package)
        blocks.append(fence(label, "\n".join(row for one in (first, *more) for row in _rows(one))))
    return "\n\n".join(blocks)


def _rows(piece: Chunk) -> Iterable[str]:
    """Why a piece was taken, and its lines."""
    if piece.why:
        yield f"       [{'; '.join(piece.why[:2])}]"
    lines = piece.text.split("\n")
    for at in shown(piece.text):
        yield f"{piece.start + at:5d}  {lines[at][:_MOST_LINE]}"


def probed(result: RunResult, code: str = "") -> str:
    """What a probe printed and how it ended; without its code the end of it, for later."""
    output = f"{result.stdout}\n{result.stderr}".strip()
    if not code:
        brief = fence("output", output[-_BRIEF:])
        return shared("earlier_probe", ended=_ended(result), output=brief)
    output = fence("output", _shortened(output))
    return shared("probed", code=fence("probe", code), ended=_ended(result), output=output)


def _ended(run: RunResult | Execution) -> str:
    """How a run ended."""
    if run.timed_out or run.idle:
        return shared("timed_out", seconds=f"{run.seconds:.0f}")
    if run.oom:
        return shared("out_of_memory")
    if run.signal is not None:
        return shared("signal", signal=run.signal)
    return shared("exit_code", code=run.exit_code)


def refused(objections: Iterable[str]) -> str:
    """Why a program was not run."""
    return shared("refused", objections="\n".join(f"- {objection}" for objection in objections))


def outcome(run: CompletedRun) -> str:
    """What a run did: how it ended, where it failed, and what it printed."""
    judgement, execution = run.judgement, run.attempt.execution
    shown = [_shortened(text.strip()) for text in _streams(run.attempt, run.result)]
    return shared(
        "outcome",
        ended=_ended(execution),
        seconds=f"{execution.seconds:.1f}",
        reason=judgement.reason,
        output=fence(
            "output of the run",
            "\n\n".join(shown) or judgement.evidence or shared("no_output"),
        ),
    )


def earlier(attempt: Attempt) -> str:
    """What is said of a run when another program has taken its place."""
    return shared("earlier_program", reason=attempt.judgement.reason)


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
