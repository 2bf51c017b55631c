"""How tasks lie in Redis: the keys and the job format of arq, as JSON and never pickled."""

from __future__ import annotations

import json
from time import time
from typing import Any

from pydantic import ValidationError

from bot.service.ports import Device, Task

FUNCTION = "look"
ABORTS = "reprise:aborts"
JOB, IN_PROGRESS, RETRY = "arq:job:", "arq:in-progress:", "arq:retry:"  # arq.constants, without importing arq to offer
_MOST_MS = 1 << 42  # the year 2109: a time that arq can make a date of


def queue_of(device: Device) -> str:
    """The sorted set of what waits for a device; the score is when it is due, in milliseconds since 1970."""
    return f"reprise:{device}"


def offers_of(device: Device) -> str:
    """The channel that wakes the workers of a device."""
    return f"reprise:{device}:offers"


def name(task: Task) -> str:
    """The job id. A worker that was killed leaves an id blocked for a while; `turn` makes the next offer another job."""
    return f"{task.kind}:{task.id}:{task.turn}"


def now_ms() -> int:
    """Now, as arq counts."""
    return int(time() * 1000)


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
