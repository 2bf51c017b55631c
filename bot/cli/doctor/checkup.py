"""What works on this machine, and how to fix the rest."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from textwrap import fill

from bot.cli.doctor import checks, room
from bot.cli.doctor.checks import Area, CheckResult, Findings
from bot.settings import Settings
from bot.text.sanitize import redact

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


def examine(settings: Settings) -> Findings:
    """The findings of all checks, made in parallel. One isolating sandbox is needed as well."""
    every: list[Callable[[], tuple[CheckResult, ...]]] = [
        checks.sandboxes,
        checks.pythons,
        checks.packages,
        checks.devices,
        lambda: room.disk(settings),
        checks.tools,
        lambda: checks.github(settings),
    ]
    with ThreadPoolExecutor(max_workers=len(every)) as pool:
        found = [finding for part in pool.map(lambda check: check(), every) for finding in part]
    sandboxes = (each for each in found if each.area == "sandbox" and each.name != "process")
    ready = any(each.ok for each in sandboxes) and all(each.ok for each in found if each.needed)
    return Findings(ready=ready, findings=tuple(found))


def as_text(findings: Findings, width: int = 80) -> str:
    """The findings for people."""
    lines, area = list[str](), ""
    for finding in findings.findings:
        if finding.area != area:
            area = finding.area
            lines += ["", _TITLES[finding.area]] if lines else [_TITLES[finding.area]]
        head = f"  {_STATES[finding.ok]:<3} {finding.name}: {finding.detail}"
        lines.append(_wrapped(head, width))
        details = (
            ("fix", finding.fix),
            ("protects", "; ".join(finding.protects)),
            ("does not protect", "; ".join(finding.exposes)),
        )
        lines += [_wrapped(f"      {label}: {text}", width) for label, text in details if text]
    last = "Ready to reproduce." if findings.ready else "Not ready: fix what is marked NO."
    return redact("\n".join([*lines, "", last])) + "\n"


def _wrapped(text: str, width: int) -> str:
    return fill(
        text,
        max(width, 40),
        subsequent_indent="        ",
        break_long_words=False,
        break_on_hyphens=False,
    )
