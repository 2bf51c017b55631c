"""The verdict: a closed set of words, each with the numbers that carry it."""

from typing import Annotated, Literal

from pydantic import Field

from bot.models.base import Record

Determinism = Literal["deterministic", "seed-dependent", "nondeterministic"]
ControlType = Literal[
    "fixed-version", "fixed-commit", "last-good-version", "report-contrast", "patched", "none"
]


class Effect(Record):
    """How far failing runs and control runs lie apart: the difference of their failure rates
    with its 95 % interval and, where the runs printed a number for the reported quantity,
    Cliff's delta of the two samples.
    """

    difference: float
    interval: tuple[float, float]
    delta: float | None = None
    values: tuple[float, ...] = ()
    control_values: tuple[float, ...] = ()


class Control(Record):
    """The twin that should pass. With type "none" a comment says "symptom observed", not "bug
    confirmed".

    `p` is Fisher's exact test, one-sided. `what` names the twin ("x-lib 1.42.20");
    `paired_failures` of `paired_runs` are the failing environment's runs under the same seeds,
    `environment` is where the control ran, on `python`, and `moved` what else differs.
    """

    type: ControlType = "none"
    runs: int = 0
    failures: int = 0
    p: float | None = None
    what: str = ""
    paired_runs: int = 0
    paired_failures: int = 0
    effect: Effect | None = None
    environment: str = ""
    python: str = ""
    moved: tuple[str, ...] = ()


class _Counted(Record):
    runs: int
    failures: int
    interval: tuple[float, float]
    reason: str


class Reproduced(_Counted):
    """The frozen signature was met."""

    kind: Literal["reproduced"] = "reproduced"
    determinism: Determinism
    control: Control = Control()


class NotReproduced(_Counted):
    """The scenario ran as described and did not fail."""

    kind: Literal["not_reproduced"] = "not_reproduced"
    checked: tuple[str, ...] = ()
    versions_tried: tuple[str, ...] = ()


class DifferentFailure(_Counted):
    """It failed another way: both failures side by side."""

    kind: Literal["different_failure"] = "different_failure"
    reported: str
    seen: str


class Inconclusive(_Counted):
    """The sequential test reached its cap."""

    kind: Literal["inconclusive"] = "inconclusive"


class NeedsInfo(Record):
    """Something only the reporter knows is missing."""

    kind: Literal["needs_info"] = "needs_info"
    reason: str
    items: tuple[str, ...] = Field(max_length=4)


class NeedsHardware(Record):
    """The signature demands hardware that this runner has not."""

    kind: Literal["needs_hardware"] = "needs_hardware"
    reason: str
    needs: tuple[str, ...] = ()


class SetupFailed(Record):
    """The environment could not be built."""

    kind: Literal["setup_failed"] = "setup_failed"
    reason: str
    tried: tuple[str, ...] = ()


class NotABug(Record):
    """A question, a feature request or documentation; nothing was run."""

    kind: Literal["not_a_bug"] = "not_a_bug"
    reason: str
    sentence: str


class Cancelled(Record):
    """Stopped by a person."""

    kind: Literal["cancelled"] = "cancelled"
    reason: str


class BudgetReached(Record):
    """Stopped by a limit."""

    kind: Literal["budget_reached"] = "budget_reached"
    reason: str


AnyVerdict = Annotated[
    Reproduced
    | NotReproduced
    | DifferentFailure
    | Inconclusive
    | NeedsInfo
    | NeedsHardware
    | SetupFailed
    | NotABug
    | Cancelled
    | BudgetReached,
    Field(discriminator="kind"),
]
