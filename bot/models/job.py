"""What is asked for: which issue, with which options, within which limits; and notes on what came
of it.
"""

from enum import StrEnum
from typing import Literal, get_args

from bot.models.base import Record
from bot.models.bug import Issue
from bot.models.repair import RepairRequest

Proof = Literal["control", "bisect", "minimize"]
"""What is done with a failure that was reproduced."""

PROOFS: tuple[Proof, ...] = get_args(Proof)

Extra = Literal["control", "bisect", "minimize", "diagnose", "repair"]
"""A proof, or the diagnosis or repair of the training: what a command may ask for by name."""

Part = Literal[
    "model", "refine", "context", "checks", "feedback", "probe", "contrast",
    "control", "bisect", "minimize",
]  # fmt: skip
"""Parts that can be left out, to show what each is worth."""

PARTS: tuple[Part, ...] = get_args(Part)

NoteKind = Literal["run", "control", "bisect", "minimize"]
"""The run itself, or one of its proofs."""


class Options(Record):
    """The choices a user may make. Everything that is None is left to the report and the ladder.

    `max_cost` is in dollars; it, `max_tokens`, `max_calls` and `minutes` are held before each call
    of a model, `max_attempts` counts the programs a model may have run. `proof_minutes` is for
    control, bisection and minimisation together; `training_timeout_s` is for the run that is
    diagnosed (None: `timeout_s`); `package` is what is bisected, by default the one
    under test. `diagnose` asks for a diagnosis of the training, `repair` for a patch as well,
    within `repair_minutes`. `model` replaces the host's
    choice; `without` leaves parts out.
    """

    python: str | None = None
    pins: tuple[str, ...] = ()
    repo: str | None = None
    ref: str | None = None
    device: Literal["cpu", "gpu"] = "cpu"
    sandbox: Literal["auto", "docker", "bwrap", "process"] = "auto"
    timeout_s: float = 120.0
    training_timeout_s: float | None = None
    max_runs: int = 40
    seed: int = 0
    model: str | None = None
    max_cost: float = 1.0
    max_tokens: int = 200_000
    max_calls: int = 16
    max_attempts: int = 6
    minutes: float = 20.0
    proof_minutes: float = 10.0
    package: str | None = None
    diagnose: bool = False
    repair: RepairRequest | None = None
    repair_minutes: float = 40.0
    without: tuple[Part, ...] = ()


class Job(Record):
    """One request to reproduce one issue."""

    issue: Issue
    options: Options = Options()


class Note(Record):
    """One sentence for the reader. Code selects notes by `kind` and never reads `text`."""

    kind: NoteKind
    text: str


class Interruption(StrEnum):
    """What ended work that has more to do."""

    STOPPED = "stopped on request"
    OUT_OF_TIME = "the time limit was reached"
