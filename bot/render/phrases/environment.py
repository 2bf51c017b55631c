"""An environment in words: what was installed, and what decided each version."""

from bot.models.environment import Package, PinSource
from bot.models.report import Report
from bot.render.phrases import PIN_SOURCES


def decided(report: Report) -> list[tuple[str, str, str, str]]:
    """The installed packages that something decided, as (name, version, decided by, why)."""
    built, spec = report.environment, report.spec
    if built is None:
        return []
    reasons = dict.fromkeys(built.undated, "not limited to the cut-off date")
    reasons |= {wanted.name: wanted.reason for wanted in (spec.requirements if spec else ())}
    clone = "built from the repository", f"its clone at commit {built.commit[:12]}"
    return [
        (package.name, package.version, *clone)
        if package.name == built.cloned
        else (
            package.name,
            package.version,
            PIN_SOURCES[package.rung],
            _beyond(PIN_SOURCES[package.rung], reasons.get(package.name, "")),
        )
        for package in built.packages
        if package.rung is not PinSource.DEPENDENCY
    ]


def _beyond(source: str, reason: str) -> str:
    """The reason, where it says more than the source of the version."""
    return "" if reason == source else reason


def dependencies(report: Report) -> list[Package]:
    """The installed packages that only the resolver chose."""
    packages = report.environment.packages if report.environment is not None else ()
    return [package for package in packages if package.rung is PinSource.DEPENDENCY]


def cut_off(report: Report) -> str:
    """The date cut-off as a sentence, with the newer packages it exempts; "" without one."""
    if report.environment is None or report.spec is None or report.spec.exclude_newer is None:
        return ""
    undated = report.environment.undated
    late = [f"{row.name} {row.version}" for row in dependencies(report) if row.name in undated]
    but = f", except for {', '.join(late)}" if late else ""
    day = report.spec.exclude_newer.date().isoformat()
    return f"All other packages are the newest releases before {day}{but}."
