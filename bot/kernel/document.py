"""Everything that Reprise shows, as blocks that the Markdown, terminal and HTML printers print;
and the words and links that all of them share.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from bot.kernel.attempt import Attempt, Match, Reduced, Script
from bot.kernel.bug import Bisection
from bot.kernel.dialogue import Usage
from bot.kernel.environment import PinSource
from bot.kernel.training_types import Curve

# Every fact about a run as a plain sentence, phrased once for all three printers.

MATCHES = {
    Match.MATCHED: "failed as reported",
    Match.PASSED: "did not fail",
    Match.OTHER: "failed in another way",
    Match.SETUP_FAILURE: "blocked by the environment",
    Match.UNDECIDED: "inconclusive",
}
"""How a run went, in words."""

HOLDS = {True: "correct", False: "wrong", None: "not checked"}
"""Whether a claim of the bug report holds."""

PIN_SOURCES = {
    PinSource.OPTION: "requested",
    PinSource.ISSUE: "named in the bug report",
    PinSource.REPOSITORY: "required or published by the repository",
    PinSource.NEIGHBOUR: "nearest version still available",
    PinSource.DATE: "newest release before the bug report",
    PinSource.IMPORT: "imported by the program",
    PinSource.REPAIR: "added to make it build",
    PinSource.DEPENDENCY: "dependency",
}
"""What decided a version, in words."""


def count(number: int, word: str) -> str:
    """A number and its word: 1 line, 2 lines."""
    return f"{number} {word}{'' if number == 1 else 's'}"


def sentence(text: str) -> str:
    """Text with a capital letter and a full stop."""
    text = text.strip()
    return text[:1].upper() + text[1:] + ("" if not text or text[-1] in ".!?:" else ".")


def first_items(items: tuple[str, ...], limit: int, rest: str = "more") -> tuple[str, ...]:
    """The first items, and how many more there are."""
    more = (f"{len(items) - limit} {rest}",) if len(items) > limit else ()
    return (*items[:limit], *more)


def usage_text(usage: Usage) -> str:
    """What models used, in a few words."""
    return f"model: {usage_figures(usage)}{'' if usage.usd else ', price unknown'}"


def usage_figures(usage: Usage) -> str:
    """Calls and tokens, and dollars where the price is known."""
    about = "about " if usage.estimated else ""
    digits = 4 if usage.usd < 0.01 else 2
    price = f", {usage.usd:.{digits}f} USD" if usage.usd else ""
    tokens = usage.input_tokens + usage.output_tokens
    return f"{count(usage.calls, 'call')}, {about}{tokens:,} tokens{price}"


# The only addresses that may become links: those of this host, and the plain ones of a changelog
# that a package index names.

_OWN = re.compile(r"https?://[A-Za-z0-9.:\[\]-]+(?:/[A-Za-z0-9._~/-]*)?(?:#[a-z-]+)?")
_OUTSIDE = re.compile(
    r"https?://(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}(?::[0-9]{1,5})?"
    r"(?:/[A-Za-z0-9._~/%+-]{0,300})?(?:#[A-Za-z0-9._-]{0,100})?"
)
# GitHub notifies an issue, a pull request or a commit that a comment links.
_NOTIFIES = re.compile(
    r"/(?:issues|pull|pulls|discussions|commit|commits|compare)(?:/|$)", re.IGNORECASE
)


def own(text: str, address: str) -> str:
    """A link to a page of this host in Markdown; only its text when the address is not plain."""
    return f"[{text}]({address})" if _OWN.fullmatch(address) else text


def elsewhere(address: str) -> str:
    """An outside address as it came, or "" when it is not a plain one that notifies nobody."""
    return address if _OUTSIDE.fullmatch(address) and not _NOTIFIES.search(address) else ""


def outside(text: str, address: str) -> str:
    """A link to an outside page in Markdown; "" when the address will not do. `text` is ours."""
    return f"[{text}]({address})" if elsewhere(address) else ""


# Everything that Reprise shows, as blocks; the Markdown, terminal and HTML printers print them.
#
# A plain string is a sentence in which `words in backticks` are monospaced. Nothing in it is
# markup: the printers escape everything, so outside text is only ever displayed.


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
