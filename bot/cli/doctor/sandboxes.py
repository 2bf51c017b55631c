"""Which sandboxes work here, and what each one contains."""

from __future__ import annotations

from bot.cli.doctor.finding import Finding
from sandbox.select import kinds


def check() -> tuple[Finding, ...]:
    """Try each sandbox. Any one that isolates is enough."""
    found = []
    for sandbox in kinds():
        health = sandbox.check()
        found.append(
            Finding(
                area="sandbox",
                name=sandbox.name,
                ok=health.works,
                detail=health.detail,
                fix="" if health.works else health.fix,
                protects=health.protects if health.works else (),
                exposes=health.exposes if health.works else (),
            )
        )
    return tuple(found)
