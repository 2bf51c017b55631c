"""`reprise doctor`: what works on this machine, and the fix for what does not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from textwrap import fill

from bot.doctor import machine, packages, sandboxes
from bot.doctor.finding import Area, Finding, Findings
from bot.render.sanitize import redact
from bot.settings import Settings, host

_TITLES: dict[Area, str] = {
    "sandbox": "Sandboxes",
    "python": "Python",
    "packages": "Packages",
    "device": "Devices",
    "disk": "Disk",
    "tool": "Tools",
    "github": "GitHub",
}
_STATES = {True: "ok", False: "NO", None: "--"}


def examine(settings: Settings, environ: Mapping[str, str] | None = None) -> Findings:
    """Every check, side by side; a check that fails is a finding, never an exception."""
    known = host() if environ is None else environ
    checks: list[Callable[[], tuple[Finding, ...]]] = [
        sandboxes.check,
        lambda: machine.pythons(known),
        lambda: packages.check(known),
        machine.devices,
        lambda: machine.disk(settings.cache_dir),
        machine.tools,
        lambda: packages.github(settings),
    ]
    with ThreadPoolExecutor(max_workers=len(checks)) as pool:
        found = [finding for part in pool.map(lambda check: check(), checks) for finding in part]
    return Findings(ready=_ready(found), findings=tuple(found))


def _ready(found: list[Finding]) -> bool:
    """Whether a report could be reproduced now: one isolating sandbox, and everything that is needed."""
    isolating = any(each.area == "sandbox" and each.name != "process" and each.ok for each in found)
    return isolating and all(each.ok for each in found if each.needed)


def as_json(findings: Findings) -> str:
    """The findings for programs."""
    return redact(findings.model_dump_json(indent=2)) + "\n"


def as_text(findings: Findings, width: int = 80) -> str:
    """The findings for people."""
    lines: list[str] = []
    area = ""
    for each in findings.findings:
        if each.area != area:
            area = each.area
            lines += ["", _TITLES[each.area]] if lines else [_TITLES[each.area]]
        lines.append(_wrapped(f"  {_STATES[each.ok]:<3} {each.name}: {each.detail}", width))
        details = (("fix", each.fix), ("protects", ", ".join(each.protects)), ("does not protect", ", ".join(each.exposes)))
        lines += [_wrapped(f"      {label}: {text}", width) for label, text in details if text]
    last = "Ready to reproduce." if findings.ready else "Not ready: mend what is marked NO."
    return redact("\n".join([*lines, "", last])) + "\n"


def _wrapped(text: str, width: int) -> str:
    return fill(text, max(width, 40), subsequent_indent="        ", break_long_words=False, break_on_hyphens=False)
