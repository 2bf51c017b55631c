"""The sections of a paper's report: the number beside ours, contradictions first, then every
criterion, what the paper leaves open, and the runs.
"""

from collections.abc import Iterator
from statistics import fmean

from bot.kernel.document import (
    Block,
    BulletList,
    Code,
    DataTable,
    Document,
    Figures,
    Headline,
    Paragraph,
    Section,
    Strong,
    Text,
    TrainingPlot,
    count,
    sentence,
    usage_text,
)
from bot.kernel.outside_text import clip
from bot.kernel.paper import Criterion, PaperResult
from bot.kernel.report import PaperReport
from bot.papers.comparison import paper_text, value_text
from bot.papers.criterion_kinds import UNREAD
from bot.papers.verdicts import PAPER_KINDS, next_step

_MOST_CLAIMS, _QUOTE = 12, 160


def paper_document(report: PaperReport, folder: str = "") -> Document:
    """A report as a document; `folder` has what its run left."""
    result = report.result
    row = PAPER_KINDS[result.verdict.kind]
    step = next_step(result.verdict, of_issue=report.job.issue is not None)
    title = f"{row.title}: {clip(result.claim.title, 100)}" if result.claim else row.title
    head = Headline(title, sentence(result.verdict.reason), row.tone)
    sections = [
        Section("verdict", blocks=[head, *_needs(result)]),
        _folded("contradictions", "Contradictions", list(_contradictions(result))),
        Section("numbers", "The number", list(_numbers(result))),
        _section("criteria", "Hyperparameters", list(_criteria(result))),
        _section("open", "What the paper leaves open", list(_left_open(result))),
        _section("code", "The code", list(_code(result))),
        _section("runs", "Runs", list(_runs(report))),
        _section("claims", "Other numbers of the paper", list(_claims(result))),
        _section("notes", "Notes", list(_notes(report))),
        Section("next", blocks=list(_last(step, folder))),
    ]
    sections_to_show = [part for part in sections if part.blocks or part.details]
    return Document(sections_to_show, (f"Reprise {report.version}", result.title or "a paper"))


def _section(key: str, title: str, blocks: list[Block]) -> Section:
    """A part that a comment folds."""
    heading: list[Block] = [Paragraph((Strong(title),))] if blocks else []
    return Section(key, title, digest=[*heading, *blocks], details=blocks, fold=title)


def _folded(key: str, title: str, blocks: list[Block]) -> Section:
    """A part that everybody sees."""
    return Section(key, title, blocks=blocks)


def _needs(result: PaperResult) -> Iterator[Block]:
    if result.verdict.items:
        titles = {"needs_info": "Missing:", "setup_failed": "Tried:"}
        title = titles.get(result.verdict.kind, "Needed:")
        yield BulletList(title, result.verdict.items)


def _contradictions(result: PaperResult) -> Iterator[Block]:
    rows = result.contradictions
    if not rows:
        return
    yield Paragraph((Strong(f"{count(len(rows), 'contradiction')} between paper, code and run"),))
    items = list[Text]()
    for row in rows:
        items.append(f"{sentence(contradiction(row))[:-1]}{_effect(row, result)}.")
    yield BulletList("", items, numbered=True)


def contradiction(row: Criterion) -> str:
    """A contradiction as one sentence."""
    says, located = f"{row.name}: the paper states {row.stated}", row.located
    if located is not None and located.value == UNREAD:
        return f"{says}, no code reads what `{located.at}` sets"
    if row.read is not None:
        code = clip(row.read.code, _QUOTE).replace("`", "'")
        reads = clip(row.read.reason, _QUOTE).rstrip(".")
        text = f"{row.name}: the paper states “{row.read.paper}”, `{row.read.at}` has `{code}`"
        return f"{text} (a model: {reads})" if reads else text
    if row.observed is None:
        return f"{says}, `{located.at}` has {located.value}" if located is not None else says
    where = f" (`{located.at}`)" if located is not None else ""
    return f"{says}, the run used {row.observed}{where}"


def _effect(row: Criterion, result: PaperResult) -> str:
    effect, claim = row.effect, result.claim
    if effect is None or claim is None:
        return ""
    before, after = (value_text(claim, fmean(side)) for side in (effect.before, effect.after))
    seeds = count(len(effect.after), "seed")
    says = "this explains the gap" if effect.explains else "this does not explain the gap"
    return f"; with the paper's value {after} instead of {before} over {seeds}: {says}"


def _numbers(result: PaperResult) -> Iterator[Block]:
    claim, ours = result.claim, result.comparison
    if claim is None:
        return
    rows = [("paper", paper_text(claim) + (f" (n = {claim.seeds})" if claim.seeds else ""))]
    if ours.mean is not None:
        rows.append(("ours", f"{value_text(claim, ours.mean, ours.spread)} (n = {ours.runs})"))
        rows.append(("gap", f"{100 * ours.gap:.1f} %"))
    if ours.interval is not None:
        low, high = (value_text(claim, bound) for bound in ours.interval)
        rows.append(("95 % prediction interval", f"{low} to {high}"))
    rows.append(("metric", claim.metric))
    yield DataTable(("", claim.title), rows)
    if claim.quote.sentence:
        yield Paragraph(f"Sentence {claim.quote.sentence}: “{clip(claim.quote.text, _QUOTE)}”")


def _criteria(result: PaperResult) -> Iterator[Block]:
    rows = [row for row in result.criteria if row.verdict != "open"]
    if rows:
        columns = ("Hyperparameter", "Paper", "Code", "Run", "Verdict")
        yield DataTable(columns, [_criterion(row) for row in rows])


def _criterion(row: Criterion) -> tuple[Text, ...]:
    located = row.located
    code: Text = (f"{located.value} (", Code(located.at), ")") if located is not None else "–"
    if row.read is not None:
        code = (Code(clip(row.read.code, _QUOTE)), " (", Code(row.read.at), ")")
    quote = row.quote
    where = (quote.sentence or quote.table) if quote is not None else ""
    if row.by == "model":
        where += ", read by a model" + (", once of two readings" if row.readings < 2 else "")
    verdict = f"{row.verdict}, {row.evidence}" if row.evidence != "none" else row.verdict
    return row.name, f"{row.stated} ({where})", code, row.observed or "–", verdict


def _left_open(result: PaperResult) -> Iterator[Block]:
    items = list[Text]()
    for row in result.criteria:
        if row.verdict != "open":
            continue
        text = f"{row.name}: the paper does not say"
        if row.cited:
            text = f"{row.name}: the paper refers to [{row.cited}]"
        if inherited := row.inherited:
            which = "which" if inherited.work == row.cited else f"the cited [{inherited.work}]"
            text += f", {which} has {inherited.value} (`{inherited.where}`)"
        if row.observed is not None or row.located is not None:
            value = row.observed or (row.located.value if row.located else "")
            at = f" (`{row.located.at}`)" if row.located is not None else ""
            who = "repository" if result.code is None else "code"
            text += f"; the {who} uses {value}{at}"
        items.append(sentence(text))
    if items:
        yield BulletList("", items)


def _code(result: PaperResult) -> Iterator[Block]:
    code = result.code
    if code is None:
        return
    lines = sum(len(text.splitlines()) for text in code.files.values())
    size = f"{count(len(code.files), 'file')}, {count(lines, 'line')}"
    work = f"{count(code.answers, 'answer')}, {count(code.runs, 'run')} on the way"
    revised = f", {count(code.revisions, 'revision')}" if code.revisions else ""
    yield Paragraph(
        f"A model wrote the program from the paper ({size}; {work}{revised}). A difference from "
        "the paper's number says as much about this program as about the paper."
    )
    if code.ended:
        yield Paragraph(sentence(f"the work ended early: {code.ended}"))
    if code.notes:
        yield BulletList("What the model says it assumed:", tuple(map(sentence, code.notes)))


def _runs(report: PaperReport) -> Iterator[Block]:
    result, claim = report.result, report.result.claim
    if result.command:
        commit = f" at commit `{result.commit[:12]}`" if result.commit else ""
        yield Paragraph(f"Command: `{result.command}`{commit}", unbroken=True)
    if result.runs and claim is not None:
        rows = [
            (
                str(run.attempt),
                str(run.seed),
                value_text(claim, run.value, run.spread) if run.value is not None else "–",
                run.problem or ("partial" if run.partial else "complete"),
                f"{run.seconds:.1f} s",
            )
            for run in result.runs
        ]
        yield DataTable(("Run", "Seed", claim.metric, "Ended", "Time"), rows)
    if result.curves:
        yield TrainingPlot(result.curves)
    stages = [(name, f"{seconds:.1f} s") for name, seconds in report.seconds.items()]
    if stages and result.command:  # a terminal shows none, and what nothing ran for is no run
        yield Figures(stages)


def _claims(result: PaperResult) -> Iterator[Block]:
    others = [claim for claim in result.claims if claim != result.claim]
    if others:
        rows = [(claim.title, claim.metric, paper_text(claim)) for claim in others[:_MOST_CLAIMS]]
        hidden = max(0, len(others) - _MOST_CLAIMS)
        yield DataTable(("Where", "Metric", "Value"), rows, hidden)


def _notes(report: PaperReport) -> Iterator[Block]:
    texts = [*report.result.problems, *(note.text for note in report.notes)]
    texts += [usage_text(report.cost)] if report.cost.calls else []
    if texts:
        yield BulletList("", tuple(map(sentence, texts)))


def _last(next_step: str, folder: str) -> Iterator[Block]:
    if folder:
        yield Paragraph(("Everything is in ", Code(folder)))
    if next_step:
        yield Paragraph((Strong("Next:"), f" {next_step}"))
