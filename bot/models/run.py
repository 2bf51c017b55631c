"""A run: one request to reproduce one issue, as the App keeps it while it waits, works and is
told about.
"""

from datetime import datetime
from enum import StrEnum
from typing import Literal

from bot.models.base import Record
from bot.models.delivery import Repository, Trigger
from bot.models.job import Job, Proof


class RunState(StrEnum):
    """Where a run stands.

    WAITING for an approval → QUEUED → RUNNING → REPORTED (the verdict is stored, GitHub does not
    show it yet) → FINISHED. FAILED is a defect of ours. A run that a dead worker left goes back
    from RUNNING to QUEUED.
    """

    WAITING = "waiting"
    QUEUED = "queued"
    RUNNING = "running"
    REPORTED = "reported"
    FINISHED = "finished"
    FAILED = "failed"


LIVE = frozenset({RunState.WAITING, RunState.QUEUED, RunState.RUNNING, RunState.REPORTED})
"""States that something will still come of."""


class NewRun(Record):
    """A run that is asked for. `delivery` and `ordinal` (which command of it) make it unique:
    asking twice is asking once.

    `plan` is the hash that `/reproduce approve` names; `comment` the id of the asking comment, None
    for the issue itself; `proof` what a command such as `/reproduce bisect` asked for by name.
    """

    delivery: str
    ordinal: int = 0
    installation: int
    repository: Repository
    number: int
    comment: int | None = None
    requester: str
    trigger: Trigger
    job: Job
    device: Literal["cpu", "gpu"] = "cpu"
    plan: str = ""
    proof: Proof | None = None
    state: Literal[RunState.WAITING, RunState.QUEUED] = RunState.QUEUED


class Run(Record):
    """A run as the store knows it.

    `id` is unguessable (it is the address of the run's page); `turn` counts how often it was
    offered to the queue, `takes` how often a worker took it; `cancelled_by` is the login of whoever
    asked to stop it; `progress` the last line of what went on; `seconds` the compute time used so
    far.
    """

    id: str
    request: NewRun
    state: RunState
    turn: int = 0
    takes: int = 0
    approved_by: str = ""
    cancelled_by: str = ""
    stage: str = ""
    progress: str = ""
    verdict: str = ""
    error: str = ""
    seconds: float = 0.0
    created_at: datetime
    started_at: datetime | None = None
    finished_at: datetime | None = None
