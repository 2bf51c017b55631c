"""The environment: claimed and installed versions, what decided them, and how it was built."""

from bot.models.environment import Environment
from bot.models.report import Report, SetupFailed
from bot.render.document import (
    Block,
    BulletList,
    Code,
    DataTable,
    Fold,
    Paragraph,
    Preformatted,
    Section,
)
from bot.render.phrases import count, environment as phrases

_TRIED = 12


def section(report: Report) -> Section | None:
    """Every table of the environment, and what was tried where none could be built."""
    built, verdict = report.environment, report.verdict
    tried = verdict.tried if isinstance(verdict, SetupFailed) else ()
    blocks = [
        *(_built(report, built) if built else ()),
        *([BulletList("Build attempts:", tried)] if tried else ()),
    ]
    if not blocks:
        return None
    summary = _summary(report, built) if built is not None else "Environment"
    digest = [BulletList("Build attempts:", tried[:_TRIED])] if tried else []
    return Section("environment", "Environment", [], digest, blocks, summary)


def _summary(report: Report, built: Environment) -> str:
    named = [f"{name} {version}" for name, version, _ in phrases.decided(report)[:3]]
    total = count(len(built.packages), "package")
    return ", ".join([f"Environment: Python {built.python}", *named, f"{total} in total"])


def _built(report: Report, built: Environment) -> list[Block]:
    claims = [
        (Code(claim.name), Code(claim.claimed), Code(claim.resolved), claim.note)
        for claim in built.claims
    ]
    pins = [(Code(name), Code(version), why) for name, version, why in phrases.decided(report)]
    steps = [(step.what, ": ", step.error or "done") for step in built.steps]
    blocks: list[Block] = [Paragraph(("Repository at commit ", Code(built.commit), "."))]
    blocks = blocks if built.commit else []
    blocks += [DataTable(("", "The bug report says", "Installed", ""), claims)] if claims else []
    blocks += [DataTable(("Package", "Version", "Why this version"), pins)] if pins else []
    blocks += [Paragraph(newest)] if (newest := phrases.cut_off(report)) else []
    blocks += [BulletList("Build attempts:", steps, numbered=True)] if steps else []
    return blocks + _lock(report, built)


def _lock(report: Report, built: Environment) -> list[Block]:
    packages = phrases.dependencies(report)
    listed = "\n".join(f"{package.name}=={package.version}" for package in packages)
    title = f"{count(len(packages), 'more package')} that these depend on"
    folds = (Fold(title, [Preformatted(listed)]), Fold("Lock file", [Preformatted(built.lock)]))
    return [fold for fold, full in zip(folds, (listed, built.lock), strict=True) if full]
