"""Everything that Reprise shows, as blocks; the Markdown, terminal and HTML printers print them.

A plain string is a sentence in which `words in backticks` are monospaced. Nothing in it is markup:
the printers escape everything, so outside text is only ever displayed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bot.models.attempt import Attempt, Reduced, Script
from bot.models.bisect import Bisection
from bot.models.diagnosis import Curve


@dataclass(frozen=True, slots=True)
class Code:
    """Text shown monospaced, exactly as it is."""

    text: str


@dataclass(frozen=True, slots=True)
class Strong:
    """Emphasised words."""

    text: str


@dataclass(frozen=True, slots=True)
class Hyperlink:
    """Our words over an address, which is printed as a link only when it is a plain one. An
    `own` address belongs to this host; any other comes from a package index.
    """

    text: str
    url: str
    own: bool = False


Inline = str | Code | Strong | Hyperlink
Text = Inline | tuple[Inline, ...]


@dataclass(frozen=True, slots=True)
class Headline:
    """The answer in a few words, and the sentence that carries its numbers. `tone` is a verdict
    kind, or "running" or "broken".
    """

    title: str
    text: Text = ""
    tone: str = ""


@dataclass(frozen=True, slots=True)
class Paragraph:
    """One sentence or several, on one line. An `unbroken` one holds a command to be copied."""

    text: Text
    unbroken: bool = False


@dataclass(frozen=True, slots=True)
class BulletList:
    """Items under a title; a title of "" is not shown."""

    title: str
    items: Sequence[Text]
    numbered: bool = False


@dataclass(frozen=True, slots=True)
class DataTable:
    """Rows under column heads; `hidden` counts the omitted rows."""

    columns: tuple[str, ...]
    rows: Sequence[tuple[Text, ...]]
    hidden: int = 0


@dataclass(frozen=True, slots=True)
class Preformatted:
    """Lines shown as they are."""

    text: str
    language: str = ""


@dataclass(frozen=True, slots=True)
class Program:
    """The script, its size in words, the command that runs it anywhere, and what the command lacks.
    `before` is the script as it was before it became smaller.
    """

    script: Script
    size: str
    command: str = ""
    needs: str = ""
    before: Script | None = None


@dataclass(frozen=True, slots=True)
class StepList:
    """The steps of a run as (state, title, activity); a state is "done", "now" or "later"."""

    steps: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True, slots=True)
class Figures:
    """Numbers with their names, and the interval (low, high, failures, runs) of a failure rate."""

    rows: Sequence[tuple[str, str]]
    interval: tuple[float, float, int, int] | None = None


@dataclass(frozen=True, slots=True)
class BisectionPlot:
    """What was tried, oldest first."""

    found: Bisection


@dataclass(frozen=True, slots=True)
class ReductionPlot:
    """Lines of the program over the programs tried."""

    reduced: Reduced


@dataclass(frozen=True, slots=True)
class PairedRunsPlot:
    """The failing runs and the control runs by seed; `control` names the control."""

    failing: tuple[Attempt, ...]
    passing: tuple[Attempt, ...]
    control: str


@dataclass(frozen=True, slots=True)
class TrainingPlot:
    """The curves of a training run."""

    curves: Sequence[Curve]


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture at an address of this host, for where nothing can be drawn."""

    text: str
    url: str


@dataclass(frozen=True, slots=True)
class RunTable:
    """Every run of the program. `elsewhere` says where to find the runs that do not fit."""

    attempts: Sequence[Attempt]
    elsewhere: str = ""


@dataclass(frozen=True, slots=True)
class Fold:
    """Blocks that a reader opens."""

    title: str
    blocks: Sequence[Block]


Block = (
    Headline
    | Paragraph
    | BulletList
    | DataTable
    | Preformatted
    | Program
    | StepList
    | Figures
    | BisectionPlot
    | ReductionPlot
    | PairedRunsPlot
    | TrainingPlot
    | Picture
    | RunTable
    | Fold
)


@dataclass(frozen=True, slots=True)
class Section:
    """One subject. `blocks` are for every reader, `digest` for a terminal alone, `details` for
    those who open them; `fold` is the title of the details where they are folded.
    """

    key: str
    title: str = ""
    blocks: Sequence[Block] = ()
    digest: Sequence[Block] = ()
    details: Sequence[Block] = ()
    fold: str = ""


@dataclass(frozen=True, slots=True)
class Document:
    """Sections in reading order, and what the footer says."""

    sections: Sequence[Section]
    footer: Sequence[Text] = ()

    def section(self, key: str) -> Section:
        """The section of that key, empty when there is none."""
        return next((section for section in self.sections if section.key == key), Section(key))
