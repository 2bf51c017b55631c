"""The folded parts of a comment, and the guard that keeps the whole under GitHub's limit by cutting inside them only."""

from __future__ import annotations

from dataclasses import dataclass, replace

from bot.render.sanitize import clip, fence, html_text

LIMIT = 60_000
_LEAST = 40


@dataclass(frozen=True, slots=True)
class Block:
    """Part of a fold: Markdown of our own making in whole lines, or text that goes into a fence (`tag` is not None)."""

    text: str
    tag: str | None = None

    def render(self) -> str:
        """The block as Markdown."""
        return self.text if self.tag is None else fence(self.text, self.tag)

    def cut(self, room: int, elsewhere: str) -> Block:
        """A block whose text is at most about `room` long: the middle of a fence goes, the end of a list or table. `elsewhere`
        says where the whole is, "" when nowhere.
        """
        if len(self.text) <= room:
            return self
        if self.tag is None:
            return replace(self, text=_first_lines(self.text, room, elsewhere))
        return replace(self, text=_both_ends(self.text, room, elsewhere))


@dataclass(frozen=True, slots=True)
class Fold:
    """A part that the reader opens."""

    summary: str
    blocks: tuple[Block, ...]

    def render(self) -> str:
        """The fold as HTML around Markdown; the blank lines make GitHub read the inside as Markdown."""
        inside = "\n\n".join(block.render() for block in self.blocks)
        return f"<details><summary>{html_text(clip(self.summary, 200))}</summary>\n\n{inside}\n\n</details>"


def assemble(head: str, folds: tuple[Fold, ...], foot: str, limit: int = LIMIT, elsewhere: str = "") -> str:
    """Head, folds and foot, the longest blocks of the folds cut until the whole is short enough."""
    folds = tuple(fold for fold in folds if fold.blocks)
    room = max((len(block.text) for fold in folds for block in fold.blocks), default=0)
    while True:
        cut = tuple(replace(fold, blocks=tuple(block.cut(room, elsewhere) for block in fold.blocks)) for fold in folds)
        text = "\n\n".join([head, *(fold.render() for fold in cut), foot]) + "\n"
        if size(text) <= limit or room <= _LEAST:
            return text
        room = room * 4 // 5


def size(text: str) -> int:
    """Length as GitHub counts it: characters beyond the basic plane are two."""
    return len(text.encode("utf-16-le", "replace")) // 2


def _first_lines(text: str, room: int, elsewhere: str) -> str:
    lines = text.splitlines()
    kept: list[str] = []
    for line in lines:
        if sum(len(each) + 1 for each in kept) + len(line) > room:
            break
        kept.append(line)
    return "\n".join([*kept, "", f"… {len(lines) - len(kept)} more lines {f'are {elsewhere}' if elsewhere else 'left out'}."])


def _both_ends(text: str, room: int, elsewhere: str) -> str:
    head = text[: room * 2 // 3]
    tail = text[len(text) - room // 3 :] if room >= 3 else ""
    head = head[: head.rfind("\n")] if "\n" in head[len(head) // 2 :] else head
    tail = tail[tail.find("\n") + 1 :] if "\n" in tail[: len(tail) // 2] else tail
    left_out = len(text) - len(head) - len(tail)
    whole = f"; the whole is {elsewhere}" if elsewhere else ""
    return f"{head}\n… {left_out:,} characters left out{whole} …\n{tail}"
