"""The sections of a diagnosis and of a repair."""

from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import version

from bot.kernel.document import (
    Block,
    BulletList,
    DataTable,
    Document,
    Fold,
    Headline,
    Paragraph,
    Picture,
    Preformatted,
    Section,
    Strong,
    Text,
    TrainingPlot,
    sentence,
    shown,
)
from bot.kernel.report import Report
from bot.kernel.training_types import Curve, DiagnosedRun, Finding, Metric, Repair, Trial
from bot.training import phrases

# The diagnosis of a training run: findings with their numbers, advice apart from them, what was
# looked at, and the curves.

_ADVICE = 6


def diagnosis_section(report: Report, page: str = "") -> Section | None:
    """The findings in a sentence for every reader, the rest for those who open it. The `page` of
    the run has the curves as a picture.
    """
    run = report.diagnosis
    if run is None:
        return None
    fold = f"Diagnosis of the training run: {phrases.diagnosis_headline(run).lower()}"
    blocks = [Paragraph(phrases.diagnosis_summary(run))]
    told = [Paragraph(phrases.course(run)), *_told(run)]
    if page and run.curves:
        told.append(Picture("Loss, gradients, updates and dead units", f"{page}/plot.png"))
    return Section("diagnosis", "Diagnosis", blocks, _told(run), told, fold)


def diagnosis_document(run: DiagnosedRun, *, name: str, folder: str = "") -> Document:
    """A diagnosis on its own; `name` is the program's, `folder` has what its run left."""
    tone = "inconclusive" if run.undecided else "not_reproduced"
    ours = any(finding.by == "rules" for finding in run.diagnosis.findings)
    tone = "reproduced" if ours else "inconclusive" if run.diagnosis.findings else tone
    head: list[Block] = [
        Headline(f"{phrases.diagnosis_headline(run)} in {name}", phrases.course(run), tone)
    ]
    plot: list[Block] = [TrainingPlot(run.curves)] if run.curves else []
    parts = [Section("diagnosis", blocks=head), Section("curves", blocks=plot)]
    parts += [Section("findings", blocks=list(_findings(run)))]
    parts += [Section("rest", blocks=list(_rest(run)))]
    last: list[Block] = [Paragraph(("Everything is in ", Strong(folder)))] if folder else []
    next_ = phrases.next_step(run, name)
    last += [Paragraph((Strong("Next:"), f" {next_}"))] if next_ else []
    parts += [Section("next", blocks=last)]
    return Document([part for part in parts if part.blocks], (f"Reprise {version('reprise')}",))


def _told(run: DiagnosedRun) -> list[Block]:
    plot: list[Block] = [TrainingPlot(run.curves)] if run.curves else []
    return [*_findings(run), *plot, *_rest(run)]


def _findings(run: DiagnosedRun) -> Iterator[Block]:
    for number, finding in enumerate(run.diagnosis.findings, 1):
        title = f"{number}. {', '.join(finding.codes)}, {phrases.fault_name(finding)}"
        yield Paragraph((Strong(title), f": {sentence(finding.message)}"))
        yield BulletList("", tuple(_details(finding)))


def _details(finding: Finding) -> Iterator[Text]:
    if numbers := phrases.evidence(finding):
        yield f"Evidence: {numbers}"
    if finding.change is not None:
        yield f"Suggested change: {finding.change.words}"
    yield phrases.origin(finding)


def _rest(run: DiagnosedRun) -> Iterator[Block]:
    found = run.diagnosis
    told = [(each.by, f"{phrases.fault_name(each)}: {each.message}") for each in found.advice]
    ours, doubts = (tuple(text for by, text in told if by == who) for who in ("rules", "model"))
    lists = {
        "Advice (habits, not faults):": shown(ours, _ADVICE),
        "Doubts of a model (the run learned its training data):": doubts,
        "The probe could not see:": found.unseen,
    }
    if said := phrases.opinion(run):
        yield Paragraph(said)
    if found.examined and not found.findings:
        yield Paragraph(f"Checked: {', '.join(found.examined)}.")
    for title, items in lists.items():
        if items:
            yield BulletList(title, items)


# The repair of a training program: edits, figures, the diff, the trials, and the curves.

_MOST_TRIALS = 40


def repair_document(found: Repair, *, name: str, folder: str = "") -> Document:
    """A repair on its own; `name` is the program's, `folder` has what it left."""
    tone = "reproduced" if found.proven else "inconclusive"
    head = Headline(
        f"{phrases.repair_headline(found)} in {name}", phrases.repair_summary(found), tone
    )
    parts = [Section("repair", blocks=[head]), Section("patch", blocks=blocks(found, _apart))]
    last: list[Block] = [Paragraph(("Everything is in ", Strong(folder)))] if folder else []
    if folder and found.diff:
        apply = f"git apply {folder}/repair.diff"
        last.append(Paragraph((Strong("Next:"), f" Run {apply} to apply the patch.")))
    parts += [Section("next", blocks=last)]
    return Document([part for part in parts if part.blocks], (f"Reprise {version('reprise')}",))


def repair_section(report: Report) -> Section | None:
    """The answer in a sentence for everybody, the patch and its figures for those who open it."""
    found = report.repair
    if found is None:
        return None
    headline = phrases.repair_headline(found)
    shown: list[Block] = [Paragraph((Strong(f"{headline}:"), f" {phrases.repair_summary(found)}"))]
    return Section("repair", "Repair", shown, blocks(found), blocks(found), f"Repair: {headline}")


def _apart(curves: Sequence[Curve]) -> list[Block]:
    """A plot of each loss: a terminal shows one at a time."""
    return [TrainingPlot([curve]) for curve in curves if curve.panel == "loss"]


def _together(curves: Sequence[Curve]) -> list[Block]:
    return [TrainingPlot(curves)] if curves else []


def blocks(
    found: Repair, plots: Callable[[Sequence[Curve]], list[Block]] = _together
) -> list[Block]:
    """The edits with their figures, the diff, the curves, and every training."""
    told = [*_elsewhere(found), *figures(found)]
    if found.diff:
        told.append(Preformatted(found.diff, "diff"))
    told += plots(found.curves)
    if found.tried and found.metric is not None:
        told.append(Fold("All trainings", [_trials(found.tried, found.metric)]))
    return told


def _elsewhere(found: Repair) -> list[Block]:
    """What the diagnosis found, and no patch of hyperparameters mends."""
    told = [
        " ".join(filter(None, (sentence(one.message), one.change.words if one.change else "")))
        + (f" (line {one.line})" if one.line else "")
        for one in found.elsewhere
    ]
    title = "Also found by the diagnosis; no hyperparameter can fix it:"
    return [BulletList(title, tuple(told))] if told else []


def figures(found: Repair) -> list[Block]:
    """The edits, and the metric before and after."""
    told: list[Block] = [_edits(found)] if found.patch else []
    return [*told, _figures(found)] if found.improvement is not None else told


def _edits(found: Repair) -> DataTable:
    rows = [
        (
            phrases.hyperparameter_name(edit),
            edit.before,
            edit.after,
            phrases.edit_location(edit),
            edit.operator,
        )
        for edit in found.patch
    ]
    return DataTable(("Change", "From", "To", "Line", "Fault"), rows)


def _figures(found: Repair) -> DataTable:
    compared, metric = found.improvement, found.metric
    assert compared is not None
    assert metric is not None
    row = (
        metric.name,
        phrases.spread(compared.before),
        phrases.spread(compared.after),
        str(len(compared.after)),
        f"{compared.p:.2g}",
        phrases.effect(compared),
    )
    return DataTable(("Metric", "Before", "After", "Seeds", "p", "Effect"), [row])


def _trials(tried: tuple[Trial, ...], metric: Metric) -> DataTable:
    rows = [
        (
            ", ".join(f"{phrases.hyperparameter_name(x)} {x.after}" for x in made.patch)
            or "unchanged",
            made.error if made.value is None else f"{made.value:.4g}",
            made.part,
            str(made.seed),
            f"{made.seconds:.1f} s",
        )
        for made in tried[:_MOST_TRIALS]
    ]
    hidden = max(0, len(tried) - _MOST_TRIALS)
    return DataTable(("Changes", metric.name, "Rows", "Seed", "Time"), rows, hidden)
