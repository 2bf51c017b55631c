"""The result of one check: whether it works, in words, and how to fix it."""

from typing import Literal

from bot.models.base import Record

Area = Literal["sandbox", "python", "packages", "device", "disk", "tool", "github"]


class Finding(Record):
    """`ok` is None for what is missing and not needed. `needed` things must work before anything
    can be reproduced.
    """

    area: Area
    name: str
    ok: bool | None
    detail: str
    fix: str = ""
    needed: bool = False
    protects: tuple[str, ...] = ()
    exposes: tuple[str, ...] = ()


class Findings(Record):
    """All of them, and whether this machine can reproduce a report."""

    ready: bool
    findings: tuple[Finding, ...]
