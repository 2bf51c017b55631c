"""Chooses a sandbox: `auto` takes the strongest that works here, and never the plain process."""

from typing import Literal

from sandbox.bwrap import BwrapSandbox
from sandbox.port import Sandbox, SandboxUnavailable
from sandbox.process import ProcessSandbox

Kind = Literal["auto", "docker", "bwrap", "process"]


def kinds() -> tuple[Sandbox, ...]:
    """One of each real kind, the strongest first."""
    from sandbox.docker import DockerSandbox  # takes 0.2 s, and most commands never need it

    return (DockerSandbox(), BwrapSandbox(), ProcessSandbox())


def choose(kind: Kind = "auto") -> Sandbox:
    """A sandbox that works. Raises SandboxUnavailable with the fix."""
    reasons = []
    for one in kinds():
        if kind not in ("auto", one.name) or (kind == "auto" and one.name == "process"):
            continue
        health = one.check()
        if health.works:
            return one
        reasons.append(
            f"{one.name}: {health.detail}"
            + (f" ({health.fix})" if health.fix and health.fix not in health.detail else "")
        )
    raise SandboxUnavailable("no sandbox works here; " + "; ".join(reasons))
