"""The title and the body of a pull request: what it holds, why, with the figures of the verdict,
and who wrote what.
"""

from collections.abc import Iterable
from shlex import quote

from bot.issues import program_phrases, sections
from bot.kernel.document import (
    Block,
    BulletList,
    Code,
    Document,
    Headline,
    Hyperlink,
    Inline,
    Paragraph,
    Preformatted,
    Section,
    Strong,
    Text,
    sentence,
)
from bot.kernel.outside_text import scrubbed
from bot.kernel.report import IssueReport
from bot.kernel.run import Proposal, RegressionTest, RepositoryPatch
from bot.report.comment import LIMIT, arranged, marker
from bot.training import phrases
from bot.training.repair.metric import option_text
from bot.training.sections import figures

_MARK = marker("pr") + "\n"
_UNRUN = (
    "Reprise ran the program in its own sandbox, but not this test in your environment: your "
    "tests are the first to run it."
)
_MEASUREMENT_TEXT = (
    "This was measured: Reprise trained both programs in a sandbox, on the same fresh seeds. It "
    "did not run your tests."
)


def title(number: int, proposal: Proposal) -> str:
    """The title, without a word from outside."""
    if proposal.test is None:
        return f"Repair the training for #{number}"
    change = " and repair its training" if proposal.patch is not None else ""
    return f"Add a regression test for #{number}{change}"


def message(report: IssueReport, proposal: Proposal) -> str:
    """The commit's message."""
    result, lines = report.repair, [title(report.issue.number or 0, proposal), ""]
    if proposal.test is not None:
        lines.append("The test is expected to fail until the bug is fixed.")
    if proposal.patch is not None and result is not None and result.metric and result.improvement:
        lines.append(sentence(phrases.gain(result.metric, result.improvement)))
    return "\n".join(lines)


def body(
    report: IssueReport,
    proposal: Proposal,
    *,
    pages: Iterable[str] = (),
    secrets: Iterable[str] = (),
) -> str:
    """The body. `pages` are the addresses of the pages of the runs that it is made from."""
    report, hidden = scrubbed(report, tuple(secrets)), scrubbed(proposal, tuple(secrets))
    number = Hyperlink(f"#{report.issue.number}", report.issue.url, own=True)
    first = Headline(_what(proposal), ("for ", number, ", made by Reprise."))
    parts = [
        Section("about", blocks=[first]),
        Section("why", blocks=_why(report, hidden)),
        *([_test(report, hidden.test)] if hidden.test is not None else []),
        *([_change(report, hidden.patch)] if hidden.patch is not None else []),
    ]
    if proposal.left_out:
        parts.append(Section("left-out", blocks=[Paragraph(sentence(hidden.left_out))]))
    footer: list[Text] = [
        program_phrases.provenance(report).rstrip("."),
        f"Reprise {report.version}",
    ]
    footer += [Hyperlink("all details of the run", page, own=True) for page in pages]
    return _MARK + arranged(Document(parts, footer), LIMIT - len(_MARK))


def _what(proposal: Proposal) -> str:
    if proposal.test is None:
        return "A repair of the training"
    return "A regression test" + (" and a repair" if proposal.patch is not None else "")


def _why(report: IssueReport, proposal: Proposal) -> list[Block]:
    """The verdict for a test, the diagnosis for a change."""
    blocks: list[Block] = []
    if proposal.test is not None:
        blocks += [block for block in sections.verdict(report).blocks if not _twice(block)]
    if proposal.patch is not None and report.diagnosis is not None:
        blocks.append(Paragraph(phrases.diagnosis_summary(report.diagnosis)))
    return blocks


def _twice(block: Block) -> bool:
    return isinstance(block, Paragraph) and not block.text


def _test(report: IssueReport, test: RegressionTest) -> Section:
    """What the test is, how to run it, and what to do with it."""
    mark: tuple[Inline, ...] = ("It expects ", Code(test.raises), " until the bug is fixed. ")
    if test.framework == "unittest":
        mark = ("It is an expected failure until the bug is fixed. ",)
    once = "Once it passes, the test run fails and says so: then remove the mark."
    maybe = (
        "It may occasionally pass, which is not an error. Once it always passes, remove the mark."
    )
    items: list[Text] = [
        (Code(test.path), " holds the program that Reprise ran."),
        (*mark, once if test.strict or test.framework == "unittest" else maybe),
        ("To run it: ", Code(test.command)),
        _UNRUN,
    ]
    if author := program_phrases.model_mark(report):
        items.append(author)
    else:
        items.append("The program is the bug report's: read it before you run it.")
    return Section("test", blocks=[BulletList("", items)])


def _change(report: IssueReport, patch: RepositoryPatch) -> Section:
    """The change of the repository's own code: its edits, its figures, how to measure it again."""
    result = report.repair
    assert result is not None
    metric = f" --metric {quote(option_text(result.metric))}" if result.metric is not None else ""
    summary_text = phrases.repair_summary(result)
    again = f"reprise repair {quote(patch.program)}{metric}"
    change_parts: list[Inline] = []
    for change in patch.changes:
        change_parts += [" and " if change_parts else "", Code(change.path)]
    return Section(
        "change",
        blocks=[
            Paragraph((Strong("The change"), " of ", *change_parts, f": {summary_text}")),
            *figures(result),
            Paragraph(_MEASUREMENT_TEXT),
            Paragraph(("To measure it again, on the base branch: ", Code(again))),
        ],
        details=[Preformatted(patch.diff, "diff")],
        fold="The change as a diff",
    )
