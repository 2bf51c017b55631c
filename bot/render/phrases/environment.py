"""An environment in words: what was installed, and what decided each version."""

from bot.models.environment import Package, PinSource
from bot.models.report import Report
from bot.render.phrases import PIN_SOURCES


def decided(report: Report) -> list[tuple[str, str, str]]:
    """The installed packages that something decided, as (name, version, why this version)."""
    built, spec = report.environment, report.spec
    if built is None:
        return []
    reasons = dict.fromkeys(built.undated, "may be newer than the cut-off date")
    reasons |= {wanted.name: wanted.why for wanted in (spec.requirements if spec else ())}
    said = {each.name: why(each.rung, reasons.get(each.name, "")) for each in built.packages}
    said[built.cloned] = f"built from a clone of the repository at commit {built.commit[:12]}"
    chosen = (each for each in built.packages if each.rung is not PinSource.DEPENDENCY)
    return [(each.name, each.version, said[each.name]) for each in chosen]


def why(source: PinSource, reason: str) -> str:
    """What decided a version; the reason for a named or imported one says it all."""
    if reason and source in {PinSource.ISSUE, PinSource.IMPORT}:
        return reason
    words = PIN_SOURCES[source]
    return words if reason in {"", words} else f"{words}: {reason}"


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
    return f"All other packages are the newest releases from before {day} that fit{but}."
