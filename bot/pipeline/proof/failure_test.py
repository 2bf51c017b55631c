"""Whether runs of a smaller program show the confirmed failure and no other."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, Self

from bot.models.attempt import Judgement, Match, Script
from bot.models.signature import (
    AnySignature,
    CrashSignature,
    HangSignature,
    Member,
    NonFiniteSignature,
    WarningSignature,
)
from bot.pipeline.reading.signature import members_of
from bot.rules.reduce.failure_identity import FailureIdentity, difference
from bot.rules.signatures import readings, staged
from bot.rules.statistics import Decision, SequentialTest

OFTEN = 0.95
_RATE_ERROR = 0.2  # how far a rate estimated from 60 runs may lie from the true one
NonFiniteKind = Literal["", "nan", "inf"]


@dataclass(frozen=True, slots=True)
class FailureTest:
    """The confirmed failure: the signature that its run matched, and its identity."""

    signature: AnySignature
    identity: FailureIdentity

    @property
    def rate(self) -> float:
        """The part of the runs that fail."""
        return self.identity.rate

    @property
    def always(self) -> bool:
        """Whether every run fails."""
        return self.identity.rate == 1.0

    @property
    def hangs(self) -> bool:
        """Whether the program may hang."""
        return any(isinstance(member, HangSignature) for member in members_of(self.signature))

    @property
    def member(self) -> Member:
        """The member of the signature that was matched."""
        return members_of(self.signature)[self.identity.member]

    @property
    def depends_on_values(self) -> bool:
        """Whether the failure is a value, or arises in a statement of the program with few words:
        other values in the program may well cause the same one for another reason.
        """
        known = self.identity
        return not isinstance(self.member, CrashSignature) or not (known.path or known.shapes)

    @property
    def non_finite(self) -> NonFiniteKind:
        """The kind of non-finite value that the failure is about, "" when it is about another
        thing.
        """
        if self.hangs or not isinstance(self.member, NonFiniteSignature):
            return ""
        return "nan" if any("nan" in value.lower() for value in self.member.values) else "inf"

    def with_rate(self, rate: float) -> Self:
        """The same failure at another rate."""
        return replace(self, identity=self.identity.model_copy(update={"rate": rate}))

    def shows(self, judgement: Judgement, script: Script) -> bool:
        """Whether a judged run shows the confirmed failure and no other."""
        matched = judgement.match is Match.MATCHED
        return matched and not difference(self.identity, judgement, script)

    def stages(self, script: Script) -> bool:
        """Whether any file of a program causes the failure by itself."""
        if readings.self_made(script.source, self.member):
            return True
        member = self.member
        if not isinstance(member, CrashSignature | WarningSignature):
            return False
        others = script.files.keys() - {script.entry}
        texts = (script.files[path] for path in others if path.endswith(".py"))
        return any(staged.staged(text, member) for text in texts)

    def decide(self, failures: int, runs: int, beta: float = 0.1) -> Decision:
        """What so many failures in so many runs show of an intermittent failure: it must come at
        least as often as it did, against a quarter of that, and not much more often: what then
        fails is another thing.
        """
        low, high = self.rate * (1 - _RATE_ERROR), min(self.rate * (1 + _RATE_ERROR), OFTEN)
        at_least = SequentialTest(p0=max(0.02, self.rate / 4), p1=low, alpha=0.02, beta=beta)
        more = SequentialTest(p0=high, p1=(1 + high) / 2, alpha=beta / 2, beta=0.1)
        decisions = (at_least.decide(failures, runs), more.decide(failures, runs))
        if decisions[0] == "passes" or decisions[1] == "fails":
            return "passes"
        return "fails" if decisions == ("fails", "passes") else "undecided"
