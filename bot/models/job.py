"""What is asked for: which issue, with which options, within which limits."""

from __future__ import annotations

from typing import Literal

from bot.models.base import Record
from bot.models.issue import Issue


class Options(Record):
    """The choices a user may make. Everything that is None is left to the report and the ladder."""

    python: str | None = None
    pins: tuple[str, ...] = ()
    repo: str | None = None
    ref: str | None = None
    device: Literal["cpu", "gpu"] = "cpu"
    sandbox: Literal["auto", "docker", "bwrap", "process"] = "auto"
    timeout_s: float = 120.0
    max_runs: int = 40
    seed: int = 0


class Job(Record):
    """One request to reproduce one issue."""

    issue: Issue
    options: Options = Options()
