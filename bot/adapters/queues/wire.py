"""How tasks lie in Redis: the keys and the job format of arq, as JSON and never pickled."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count
from time import time
from typing import Any

from pydantic import ValidationError

from bot.adapters.queues.underway import Lane
from bot.service.ports import Task

FUNCTION = "look"
ABORTS = "reprise:aborts"
JOB, IN_PROGRESS, RETRY = "arq:job:", "arq:in-progress:", "arq:retry:"  # arq.constants, without importing arq to offer
_MOST_MS = 1 << 42  # the year 2109: a time that arq can make a date of


def queue_of(lane: Lane) -> str:
    """The sorted set of what waits in a lane; the score is when it is due, in milliseconds since 1970."""
    return f"reprise:{lane}"


def offers_of(lane: Lane) -> str:
    """The channel that wakes the workers of a lane."""
    return f"reprise:{lane}:offers"


def name(task: Task) -> str:
    """The job id. A worker that was killed leaves an id blocked for a while; `turn` makes the next offer another job."""
    return f"{task.kind}:{task.id}:{task.turn}"


def now_ms() -> int:
    """Now, as arq counts."""
    return int(time() * 1000)


def scores(delay_ms: int) -> Iterator[float]:
    """When tasks offered together now are due, each a little later than the one before: Redis sorts equal ones by name. The
    first ones lie in the past, as arq takes up nothing that is due within the current millisecond.
    """
    first = time() * 1000 + (delay_ms or -2.0)
    return (first + number / 1000 for number in count())


def dump(job: dict[str, Any]) -> bytes:
    """A job as arq hands it to a serialiser."""
    return json.dumps(job, default=str, separators=(",", ":")).encode()


def job_of(task: Task) -> bytes:
    """A task as a job of arq."""
    return dump({"t": None, "f": FUNCTION, "a": [task.model_dump(mode="json")], "k": {}, "et": now_ms()})


def load(raw: bytes) -> dict[str, Any]:
    """A job as arq expects it from a deserialiser. Raises ValueError for anything that arq would stumble over."""
    job = json.loads(raw)
    shape: dict[str, Any] = {"t": (int, type(None)), "f": str, "a": list, "k": dict, "et": int}
    if not isinstance(job, dict) or not all(key in job and isinstance(job[key], kind) for key, kind in shape.items()):
        raise ValueError("no job")
    if not 0 <= job["et"] <= _MOST_MS:
        raise ValueError("no time")
    return job


def task_of(given: tuple[object, ...]) -> Task | None:
    """The task among the arguments of a job; None when there is none, as in a job of another version."""
    try:
        return Task.model_validate(given[0]) if len(given) == 1 else None
    except ValidationError:
        return None
