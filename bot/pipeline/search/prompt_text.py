"""What prompts show: source code with line numbers, each piece with its origin and why it was
taken; and what a model learned from its earlier actions.
"""

from collections.abc import Iterable, Sequence

from bot.models.attempt import Attempt, Execution
from bot.models.dialogue import ReadAction, SearchAction
from bot.models.environment import Chunk, Context
from bot.ports import SourceIndex
from bot.rules.code import syntax
from prompts import fence, shared
from sandbox.port import RunResult

_MOST_LINES = 160
_MOST_LINE = 300
_HITS = 5
_WIDE = 30
_HIT_LINES = 50
_MOST_OUTPUT = 3_000  # characters
_FRAMES = 6


def contexts(ranked: Iterable[Context]) -> str:
    """The contexts in their order."""
    shown = []
    for context in ranked:
        pieces = "\n\n".join(chunk(piece) for piece in context.chunks)
        shown += [shared("context", rank=context.rank, title=context.title), pieces]
    return "\n\n".join(shown) or shared("no_context")


def chunk(piece: Chunk, most: int = _MOST_LINES) -> str:
    """One piece with line numbers, inside the fence, without all but the first line of its
    docstrings.
    """
    lines, left_out = piece.text.splitlines(), syntax.docstrings(piece.text)
    kept = [(at, line) for at, line in enumerate(lines) if at not in left_out]
    shown = [f"{piece.start + at:5d}  {line[:_MOST_LINE]}" for at, line in kept[:most]]
    if len(kept) > most:
        shown.append("       " + shared("more_lines", count=len(kept) - most))
    label = shared(
        "piece",
        origin=piece.origin,
        path=piece.path,
        start=piece.start,
        end=piece.end,
        package=f", {piece.package} {piece.version}".rstrip() if piece.package else "",
        reasons=f" ({'; '.join(piece.why[:3])})" if piece.why else "",
    )
    return fence(label, "\n".join(shown))


def look_up(sources: SourceIndex | None, wish: SearchAction | ReadAction) -> str:
    """The answer to one look into the sources."""
    if sources is None:
        return shared("no_sources")
    if isinstance(wish, ReadAction):
        end = min(max(wish.end, wish.start), wish.start + _MOST_LINES - 1)
        found = sources.read(wish.path.lstrip("/"), wish.start, end)
        if found is None:
            return shared("no_file", path=repr(wish.path[:200]))
        cut = found.end < wish.end
        return chunk(found) + ("\n" + shared("read_cut", line=found.end + 1) if cut else "")
    hits = _literal(
        wish.query, _unique([*sources.symbol(wish.query, 3), *sources.search(wish.query, _WIDE)])
    )[:_HITS]
    listed = "\n\n".join(chunk(hit, _HIT_LINES) for hit in hits)
    return listed or shared("not_found", query=repr(wish.query[:200]))


def _literal(query: str, pieces: list[Chunk]) -> list[Chunk]:
    """Pieces that hold what was asked for as it was written; where any does, the others are
    noise.
    """
    words = query.split()
    held = [piece for piece in pieces if all(word in piece.text for word in words)]
    return held or pieces


def _unique(pieces: Iterable[Chunk]) -> list[Chunk]:
    known: dict[tuple[str, int], Chunk] = {}
    for piece in pieces:
        known.setdefault((piece.path, piece.start), piece)
    return list(known.values())


def request(wish: SearchAction | ReadAction) -> str:
    """A look into the sources, in a few words."""
    if isinstance(wish, SearchAction):
        return shared("search", query=repr(wish.query))
    return shared("read", path=wish.path, start=wish.start, end=wish.end)


def looked_up(sources: SourceIndex | None, wish: SearchAction | ReadAction) -> str:
    """What a look into the sources found."""
    return shared("looked_up", request=request(wish), found=look_up(sources, wish))


def probed(code: str, result: RunResult) -> str:
    """What a probe printed and how it ended."""
    return shared(
        "probed",
        code=fence("probe", code),
        ended=_ended(result),
        output=fence("output", _shortened(f"{result.stdout}\n{result.stderr}".strip())),
    )


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


def outcome(attempt: Attempt, result: RunResult | None) -> str:
    """What a run did: how it ended, where it failed, and what it printed."""
    judgement, execution = attempt.judgement, attempt.execution
    shown = [_shortened(text.strip()) for text in _streams(attempt, result)]
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
