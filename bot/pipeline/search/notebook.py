"""What a model has learned while it writes a program, as later questions show it: the newest in
full, the rest in a line each, and no piece of source twice.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from bot.models.dialogue import ReadAction, SearchAction
from bot.models.environment import Chunk, Context
from bot.pipeline.search import look_ups, prompt_text
from bot.ports import SourceIndex
from bot.rules.code.line_budget import beyond, size
from prompts import fence, shared

_NOTES = 6
_MOST_FOUND = 200  # lines


@dataclass(slots=True)
class _Note:
    """Something learned, and the line that is left of it after the next answer."""

    text: str
    brief: str
    fresh: bool = True


@dataclass(slots=True)
class Notebook:
    """The sources in sight, the notes, and the outcome of the last program."""

    contexts: tuple[Context, ...]
    found: tuple[Chunk, ...] = ()
    newest: tuple[Chunk, ...] = ()
    notes: list[_Note] = field(default_factory=list)
    outcome: _Note | None = None
    thought: str = ""
    is_new: bool = True

    def answered(self, relied_on: int, thought: str) -> None:
        """The model has seen all of it: what it relies on is shown again, the rest only named."""
        self.contexts = tuple(each for each in self.contexts if each.rank == relied_on)
        self.thought, self.is_new, self.newest = thought, False, ()
        for note in self.notes:
            note.fresh = False

    def tell(self, text: str, brief: str = "") -> None:
        """Keep something for the next questions; the oldest is dropped first."""
        self.notes = [*self.notes, _Note(text, brief or text)][-_NOTES:]

    def ran(self, text: str, brief: str) -> None:
        """Keep what the last program did; of the one before only a line is left."""
        if self.outcome is not None:
            self.tell(self.outcome.brief)
        self.outcome = _Note(text, brief)

    def look_up(self, sources: SourceIndex | None, wish: SearchAction | ReadAction) -> None:
        """Carry out a look into the sources; what is in sight already is not shown again."""
        answer = look_ups.look_up(sources, wish)
        asked = look_ups.request(wish)
        lines = [f"{piece.path} {piece.start}-{piece.end}" for piece in answer.pieces]
        said = " ".join(filter(None, (answer.remark, shared("found") if lines else "")))
        brief = shared("looked_up", request=asked, found=", ".join(lines) or answer.remark)
        self.tell(shared("looked_up", request=asked, found=said), brief)
        self.newest = (*answer.pieces, *self.newest)
        self.found = _within(beyond((*answer.pieces, *self.found), (), 0), size(self.newest))

    def sources(self) -> str:
        """The pieces of source in sight, those of the last look first."""
        known = [piece for each in self.contexts for piece in each.chunks]
        looked = beyond(self.found, known, 0)
        shown = [shared("found_pieces"), prompt_text.listed(looked)] if looked else []
        if self.contexts or not looked:
            shown.append(prompt_text.contexts(self.contexts))
        return "\n\n".join(shown)

    def history(self, program: str, contrast: str) -> str:
        """The last program and its twin, what was learned, and the last thought."""
        told = [note.text if note.fresh else note.brief for note in self.notes]
        if self.outcome is not None:
            told.append(self.outcome.text)
        if self.thought:
            told.append(shared("earlier_thought", thought=fence("thought", self.thought)))
        return prompt_text.history(program, contrast, told)


def _within(pieces: Iterable[Chunk], newest: int) -> tuple[Chunk, ...]:
    """The newest pieces, as many as there is room for: at least what the last answer asked for,
    in lines.
    """
    room = max(_MOST_FOUND, newest)
    kept: list[Chunk] = []
    for piece in pieces:
        if kept and size([*kept, piece]) > room:
            break
        kept.append(piece)
    return tuple(kept)
