"""The judgements that comparing a run with a signature ends in."""

from bot.kernel.attempt import Failure, Judgement, Match

EVIDENCE = 600


def matched(reason: str, evidence: str, failure: Failure | None = None) -> Judgement:
    """The run shows what the report says."""
    return Judgement(
        match=Match.MATCHED, reason=reason, evidence=evidence[:EVIDENCE], failure=failure
    )


def passed(reason: str, evidence: str = "") -> Judgement:
    """The run does not show it."""
    return Judgement(match=Match.PASSED, reason=reason, evidence=evidence[:EVIDENCE])


def contrary(reason: str, evidence: str) -> Judgement:
    """The run shows that what the report complains of is right here."""
    return passed(reason, evidence).model_copy(update={"contrary": True})


def undecided(reason: str, evidence: str = "") -> Judgement:
    """The run decides nothing."""
    return Judgement(match=Match.UNDECIDED, reason=reason, evidence=evidence[:EVIDENCE])
