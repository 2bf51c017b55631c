"""A paper as data, what it claims and states, and what came of its repository's runs."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from bot.kernel.training_types import Curve
from bot.kernel.values import Record

# A paper, read: one value whatever it was written in.

PaperFormat = Literal["latex", "markdown", "html", "pdf"]


class PaperFiles(Record):
    """What a source of papers hands on: the files of one paper by their path, and its `name`."""

    name: str
    files: dict[str, bytes]


class PaperSection(Record):
    """A heading; `level` is 1 for the outermost."""

    id: str
    title: str
    level: int = 1


class PaperSentence(Record):
    """One sentence. `id` is that of its section with a number, "S3.2"; a caption's is that of its
    table, "T1.c1". `cites` are keys of references.
    """

    id: str
    text: str
    cites: tuple[str, ...] = ()


class PaperTable(Record):
    """A table as cells. `number` counts tables with a caption as the paper does; `head` are the
    rows of column heads, and every row has the same number of cells. `bold` are emphasised cells of
    `rows`, (row, column) from 0. A table of which only the caption is known has no rows.
    `section` is the id of the section that it stands in, "" for none.
    """

    id: str
    number: int
    caption: str = ""
    label: str = ""
    head: tuple[tuple[str, ...], ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    bold: tuple[tuple[int, int], ...] = ()
    section: str = ""

    def column(self, at: int) -> str:
        """The heads of a column, the outer one first."""
        texts = dict.fromkeys(row[at] for row in self.head if at < len(row) and row[at])
        return " ".join(texts)


class PaperFormula(Record):
    """A displayed formula, as it is written."""

    id: str
    text: str
    label: str = ""


class PaperListing(Record):
    """An algorithm or a piece of code."""

    id: str
    text: str
    caption: str = ""


class PaperReference(Record):
    """An entry of the bibliography; `url` is "" where it has none."""

    key: str
    text: str
    url: str = ""


class Paper(Record):
    """A paper. `repositories` are addresses of code that its text names; `problems` are sentences
    on what could not be read.
    """

    title: str = ""
    format: PaperFormat
    sections: tuple[PaperSection, ...] = ()
    sentences: tuple[PaperSentence, ...] = ()
    tables: tuple[PaperTable, ...] = ()
    formulas: tuple[PaperFormula, ...] = ()
    listings: tuple[PaperListing, ...] = ()
    references: tuple[PaperReference, ...] = ()
    repositories: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    def section_of(self, sentence: PaperSentence) -> str:
        """The title of a sentence's section, "" for none."""
        key = sentence.id.rpartition(".")[0]
        return next((section.title for section in self.sections if section.id == key), "")


# What a paper claims, and what it states of its experiment.


class PaperQuote(Record):
    """Words of a paper and where they stand: a sentence, or a cell of a table by its row and column
    from 0.
    """

    text: str
    sentence: str = ""
    table: str = ""
    row: int = 0
    column: int = 0


class NumberClaim(Record):
    """A number that a run can be held against. `value` is in the paper's own unit, `text` as it is
    printed there; of a percentage `is_percent`. `spread` is what the paper gives after ±, over
    `seeds` runs where it says so. `title` names the place: "Table 2, ours, digits".
    """

    title: str
    metric: str
    value: float
    text: str
    is_percent: bool = False
    spread: float | None = None
    seeds: int | None = None
    dataset: str = ""
    method: str = ""
    quote: PaperQuote
    weight: float = 0.0

    @property
    def rounding(self) -> float:
        """Half a unit of the last digit that is printed."""
        decimals = len(self.text.partition(".")[2].partition("e")[0])
        return 0.5 * 10.0**-decimals


CriterionKind = Literal[
    "optimizer", "learning_rate", "momentum", "weight_decay", "clipping", "schedule", "warm_up",
    "batch_size", "epochs", "steps", "loss", "activation", "width", "layers", "channels", "kernel",
    "stride", "order", "heads", "dropout",
    "initialisation", "normalisation", "augmentation", "preprocessing", "split", "seeds",
    "early_stopping", "hardware", "method",
]  # fmt: skip
CriterionVerdict = Literal["agrees", "contradicts", "unknown", "open"]
EvidenceKind = Literal["observed", "located", "read", "none"]


class LocatedValue(Record):
    """A value in the code, a configuration or a command; `file` is "" for the command."""

    value: str
    file: str = ""
    line: int = 0

    @property
    def at(self) -> str:
        """Where it stands, in words."""
        return f"{self.file}:{self.line}" if self.file else "the command"


class ReadQuotes(Record):
    """What a model's judgement rests on: words of the paper, and a line of the code by its file.
    Both stand there as they are; `reason` is the model's own.
    """

    paper: str
    code: str
    file: str
    line: int
    reason: str = ""

    @property
    def at(self) -> str:
        """Where the code stands, in words."""
        return f"{self.file}:{self.line}"


class InheritedValue(Record):
    """What a cited work states or has of a hyperparameter that the paper leaves open: `work` is the
    key of the reference, `source` its paper or repository, `where` the place in it.
    """

    value: str
    work: str
    source: str
    where: str = ""


class CriterionEffect(Record):
    """What a contradiction costs: our number with the value of the code and with the paper's, over
    the same seeds. `change` says what was changed; `explains` that it alone closes the gap.
    """

    change: str
    before: tuple[float, ...]
    after: tuple[float, ...]
    explains: bool = False


class Criterion(Record):
    """One hyperparameter: what the paper states, what the code has, and what the run used.

    `stated` is "" where the paper leaves it open; `cited` is then the key of the work that it
    refers to, and `inherited` what a cited work has. `by` says who read it; of a model, `readings`
    is how many of two have it. `located` and `observed` are None where the code or the run does not
    tell; `read` is what a model's judgement rests on where neither does. Of the kind `method` there
    may be several: a statement that no other kind covers, in the words of the paper.
    """

    kind: CriterionKind
    name: str
    stated: str = ""
    quote: PaperQuote | None = None
    cited: str = ""
    inherited: InheritedValue | None = None
    located: LocatedValue | None = None
    observed: str | None = None
    read: ReadQuotes | None = None
    verdict: CriterionVerdict = "unknown"
    evidence: EvidenceKind = "none"
    by: Literal["rules", "model"] = "rules"
    readings: int = 0
    effect: CriterionEffect | None = None


# What came of it.

PaperVerdictKind = Literal[
    "reproduced", "not_reproduced", "inconclusive", "needs_info", "needs_hardware", "setup_failed",
    "cancelled", "budget_reached",
]  # fmt: skip


PaperNeed = Literal["paper", "source", "number", "repository", "command", "data"]


class PaperVerdict(Record):
    """Decided by numbers alone. `items` are what is missing, or what was tried to build the
    environment; `needs` is the kind of what is missing, None for no kind of its own.
    """

    kind: PaperVerdictKind
    reason: str
    items: tuple[str, ...] = ()
    needs: PaperNeed | None = None


class PaperRun(Record):
    """One run of the command. `value` is in the unit of the claim, None where the run printed no
    such number; `line` is where it did. A run that was stopped is `partial`. `spread` is what it
    printed after ±; `problem` is why it counts for nothing, "" where it does.
    """

    attempt: int
    seed: int
    value: float | None = None
    spread: float | None = None
    line: str = ""
    partial: bool = False
    problem: str = ""
    seconds: float = 0.0


class NumberComparison(Record):
    """Our number beside the paper's, in the paper's unit. `interval` is the 95 % prediction
    interval for the paper's number, None with fewer than three full runs that differ. `gap` is
    |paper - ours| / max of both, 1.0 where nothing ran.
    """

    mean: float | None = None
    spread: float | None = None
    runs: int = 0
    interval: tuple[float, float] | None = None
    gap: float = 1.0


class WrittenCode(Record):
    """Code that a model wrote from the paper. `notes` are its words on what it assumed; `ended` is
    why it stopped before it was done, "" where it was.
    """

    files: dict[str, str]
    notes: tuple[str, ...] = ()
    answers: int = 0
    runs: int = 0
    revisions: int = 0
    ended: str = ""


class PaperResult(Record):
    """What came of a paper. `claim` is the number that was looked at, `claims` are all; `criteria`
    have contradictions first. `command` is what ran, at `commit`; `code` is what a model wrote,
    None where a repository ran.
    """

    title: str = ""
    format: PaperFormat | None = None
    verdict: PaperVerdict
    claim: NumberClaim | None = None
    claims: tuple[NumberClaim, ...] = ()
    comparison: NumberComparison = NumberComparison()
    criteria: tuple[Criterion, ...] = ()
    command: str = ""
    commit: str = ""
    code: WrittenCode | None = None
    runs: tuple[PaperRun, ...] = ()
    repositories: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    curves: tuple[Curve, ...] = Field((), description="Of the first run that trained.")

    @property
    def contradictions(self) -> tuple[Criterion, ...]:
        """The criteria on which paper, code and run do not agree."""
        return tuple(row for row in self.criteria if row.verdict == "contradicts")
