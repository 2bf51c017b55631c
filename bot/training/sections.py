"""The sections of a diagnosis and of a repair."""

from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import version

from bot.kernel.document import (
    Block,
    BulletList,
    Code,
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
    first_items,
    sentence,
)
from bot.kernel.report import IssueReport
from bot.kernel.training_types import Curve, DiagnosedRun, Finding, Metric, Repair, Trial
from bot.training import phrases

# The diagnosis of a training run: findings with their numbers, advice apart from them, what was
# looked at, and the curves.

_ADVICE = 6


def diagnosis_section(report: IssueReport, page: str = "") -> Section | None:
    """The findings in a sentence for every reader, the rest for those who open it. The `page` of
    the run has the curves as a picture.
    """
    run = report.diagnosis
    if run is None:
        return None
    fold = f"Diagnosis of the training run: {phrases.diagnosis_headline(run).lower()}"
    blocks = [Paragraph(phrases.diagnosis_summary(run))]
    full_blocks = [Paragraph(phrases.course(run)), *_plain_blocks(run)]
    if page and run.curves:
        full_blocks.append(Picture("Loss, gradients, updates and dead units", f"{page}/plot.png"))
    return Section("diagnosis", "Diagnosis", blocks, _plain_blocks(run), full_blocks, fold)


def diagnosis_document(run: DiagnosedRun, *, name: str, folder: str = "") -> Document:
    """A diagnosis on its own; `name` is the program's, `folder` has what its run left."""
    tone = "inconclusive" if run.undecided else "not_reproduced"
    ours = any(x.by != "model" or x.status == "confirmed" for x in run.diagnosis.findings)
    tone = "reproduced" if ours else "inconclusive" if run.diagnosis.findings else tone
    head: list[Block] = [
        Headline(f"{phrases.diagnosis_headline(run)} in {name}", phrases.course(run), tone)
    ]
    plot: list[Block] = [TrainingPlot(run.curves)] if run.curves else []
    parts = [Section("diagnosis", blocks=head), Section("curves", blocks=plot)]
    parts += [Section("findings", blocks=list(_findings(run)))]
    parts += [Section("rest", blocks=list(_rest(run)))]
    last: list[Block] = [Paragraph(("Everything is in ", Code(folder)))] if folder else []
    next_ = phrases.next_step(run, name)
    last += [Paragraph((Strong("Next:"), f" {next_}"))] if next_ else []
    parts += [Section("next", blocks=last)]
    return Document([part for part in parts if part.blocks], (f"Reprise {version('reprise')}",))


def _plain_blocks(run: DiagnosedRun) -> list[Block]:
    plot: list[Block] = [TrainingPlot(run.curves)] if run.curves else []
    return [*_findings(run), *plot, *_rest(run)]


def _findings(run: DiagnosedRun) -> Iterator[Block]:
    for number, finding in enumerate(run.diagnosis.findings, 1):
        title = f"{number}. {', '.join(finding.codes)}, {phrases.fault_name(finding)}"
        yield Paragraph((Strong(title), f": {sentence(finding.message)}"))
        yield BulletList("", tuple(_details(finding, run)))


def _details(finding: Finding, run: DiagnosedRun) -> Iterator[Text]:
    yield from filter(None, (phrases.trial_gain(finding), phrases.alternatives(finding, run)))
    if numbers := phrases.evidence(finding):
        yield f"Evidence: {numbers}"
    if finding.change is not None and finding.change.words:
        yield f"Suggested change: {finding.change.words}"
    yield phrases.origin(finding)


def _rest(run: DiagnosedRun) -> Iterator[Block]:
    diagnosis = run.diagnosis
    refuted = tuple(
        f"{', '.join(finding.codes)}, {phrases.fault_name(finding)}: {phrases.trial_gain(finding)}"
        for finding in diagnosis.refuted
    )
    remarks = [
        (finding.by, f"{phrases.fault_name(finding)}: {finding.message}")
        for finding in diagnosis.advice
    ]
    ours, doubts = (tuple(text for by, text in remarks if by == who) for who in ("rules", "model"))
    guesses = tuple(
        f"{phrases.fault_name(finding)}: {finding.message}" for finding in diagnosis.doubts
    )
    lists = {
        "Doubts (no measurement decides them):": guesses,
        "Refuted by trainings (the change does not help):": refuted,
        "Advice (habits, not faults):": first_items(ours, _ADVICE),
        "Doubts of a model (the run learned its training data):": doubts,
        "The probe could not see:": diagnosis.unseen,
    }
    for text in filter(None, (phrases.interventions(run), phrases.opinion(run))):
        yield Paragraph(text)
    if diagnosis.examined and not diagnosis.findings:
        yield Paragraph(f"Checked: {', '.join(diagnosis.examined)}.")
    for title, items in lists.items():
        if items:
            yield BulletList(title, items)


# The repair of a training program: edits, figures, the diff, the trials, and the curves.

_MOST_TRIALS = 40


def repair_document(result: Repair, *, name: str, folder: str = "") -> Document:
    """A repair on its own; `name` is the program's, `folder` has what it left."""
    tone = "reproduced" if result.proven else "inconclusive"
    head = Headline(
        f"{phrases.repair_headline(result)} in {name}", phrases.repair_summary(result), tone
    )
    parts = [Section("repair", blocks=[head]), Section("patch", blocks=blocks(result, _apart))]
    last: list[Block] = [Paragraph(("Everything is in ", Code(folder)))] if folder else []
    if folder and result.diff:
        apply = f"git apply {folder}/repair.diff"
        last.append(Paragraph((Strong("Next:"), f" Run {apply} to apply the patch.")))
    parts += [Section("next", blocks=last)]
    return Document([part for part in parts if part.blocks], (f"Reprise {version('reprise')}",))


def repair_section(report: IssueReport) -> Section | None:
    """The answer in a sentence for everybody, the patch and its figures for those who open it."""
    result = report.repair
    if result is None:
        return None
    headline = phrases.repair_headline(result)
    summary_blocks: list[Block] = [
        Paragraph((Strong(f"{headline}:"), f" {phrases.repair_summary(result)}"))
    ]
    return Section(
        "repair", "Repair", summary_blocks, blocks(result), blocks(result), f"Repair: {headline}"
    )


def _apart(curves: Sequence[Curve]) -> list[Block]:
    """A plot of each loss: a terminal shows one at a time."""
    return [TrainingPlot([curve]) for curve in curves if curve.panel == "loss"]


def _together(curves: Sequence[Curve]) -> list[Block]:
    return [TrainingPlot(curves)] if curves else []


def blocks(
    result: Repair, plots: Callable[[Sequence[Curve]], list[Block]] = _together
) -> list[Block]:
    """The edits with their figures, the diff, the curves, and every training."""
    block_list = [*_elsewhere(result), *figures(result)]
    if result.diff:
        block_list.append(Preformatted(result.diff, "diff"))
    block_list += plots(result.curves)
    if result.tried and result.metric is not None:
        block_list.append(Fold("All trainings", [_trials(result.tried, result.metric)]))
    return block_list


def _elsewhere(result: Repair) -> list[Block]:
    """What the diagnosis found, and no patch of hyperparameters mends; what was not tried."""
    suggestions = [
        " ".join(filter(None, (sentence(one.message), one.change.words if one.change else "")))
        + (f" (line {one.line})" if one.line else "")
        for one in result.elsewhere
    ]
    lists = {
        "Also found by the diagnosis; no edit of Reprise can fix it:": tuple(suggestions),
        "Edits that a model proposed and that were not tried:": result.refused,
    }
    return [BulletList(title, items) for title, items in lists.items() if items]


def figures(result: Repair) -> list[Block]:
    """The edits, and the metric before and after."""
    tables: list[Block] = [_edits(result)] if result.patch else []
    return [*tables, _figures(result)] if result.improvement is not None else tables


def _edits(result: Repair) -> DataTable:
    rows = [
        (
            phrases.hyperparameter_name(edit),
            *phrases.edit_values(edit),
            phrases.edit_location(edit),
            edit.operator,
        )
        for edit in result.patch
    ]
    return DataTable(("Change", "From", "To", "Line", "Fault"), rows)


def _figures(result: Repair) -> DataTable:
    improvement, metric = result.improvement, result.metric
    assert improvement is not None
    assert metric is not None
    row = (
        metric.name,
        phrases.spread_text(improvement.before),
        phrases.spread_text(improvement.after),
        str(len(improvement.after)),
        f"{improvement.p:.2g}",
        phrases.effect(improvement),
    )
    return DataTable(("Metric", "Before", "After", "Seeds", "p", "Effect"), [row])


def _trials(trials: tuple[Trial, ...], metric: Metric) -> DataTable:
    rows = [
        (
            ", ".join(map(phrases.edit_words, trial.patch)) or "unchanged",
            trial.error if trial.value is None else f"{trial.value:.4g}",
            trial.part,
            str(trial.seed),
            f"{trial.seconds:.1f} s",
        )
        for trial in trials[:_MOST_TRIALS]
    ]
    hidden = max(0, len(trials) - _MOST_TRIALS)
    return DataTable(("Changes", metric.name, "Rows", "Seed", "Time"), rows, hidden)
