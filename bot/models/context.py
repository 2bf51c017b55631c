"""Source code relevant to a report, with its origin and the reasons for choosing it."""

from typing import Literal

from bot.models.base import Record

Origin = Literal["installed", "clone", "issue", "lineage"]
ChunkKind = Literal["module", "class", "function", "method", "loop", "lines"]


class Chunk(Record):
    """Lines of one source file. `path` is below its root ("torch/nn/functional.py"), `start` and
    `end` are 1-based and inclusive, `name` the dotted name of what is defined there
    ("torch.nn.functional.linear"), `why` are the reasons for choosing it, the strongest first.
    """

    path: str
    start: int
    end: int
    text: str
    kind: ChunkKind = "lines"
    name: str = ""
    origin: Origin = "installed"
    package: str = ""
    version: str = ""
    score: float = 0.0
    why: tuple[str, ...] = ()


class Context(Record):
    """The chunks for one hypothesis, in reading order. `module` is the part of the package it is
    about (see RepGen, arXiv 2512.14990, section on module partition);
    `lines` their number in all.
    """

    rank: int
    title: str
    module: str = ""
    chunks: tuple[Chunk, ...] = ()

    @property
    def lines(self) -> int:
        """How many source lines the context shows."""
        return sum(chunk.end - chunk.start + 1 for chunk in self.chunks)
