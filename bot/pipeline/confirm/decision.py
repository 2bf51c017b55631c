"""What the search for a verdict ended with."""

from __future__ import annotations

from dataclasses import dataclass

from bot.models.attempt import Script
from bot.models.bug import BugReport
from bot.models.plan import Reconstruction
from bot.models.report import Claim
from bot.models.signature import AnySignature
from bot.models.verdict import AnyVerdict
from bot.pipeline.execution.runner import SearchResult


@dataclass(frozen=True, slots=True)
class Decision:
    """A verdict, and what it is about. `result` is the program and the environment to show, None
    when nothing was run. `contrasts` are the report's variants that did work.
    """

    verdict: AnyVerdict
    bug: BugReport | None = None
    signature: AnySignature | None = None
    result: SearchResult | None = None
    contrasts: tuple[Script, ...] = ()
    claims: tuple[Claim, ...] = ()
    reconstruction: Reconstruction | None = None
