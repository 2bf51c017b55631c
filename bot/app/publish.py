"""Idempotent writes to GitHub: the sticky comment, the verdict, replies, reactions and labels."""

import hashlib
import logging
from collections.abc import Callable, Sequence
from functools import partial

from bot.app.context import AppContext, heartbeat
from bot.app.ports import (
    PULL_REQUEST,
    GoneError,
    OurComment,
    Reaction,
    RepositoryReader,
    RepositoryState,
    Target,
    Throttled,
)
from bot.issues.proposal.propose import has_test, of_repair
from bot.issues.verdicts import KINDS, LABELS
from bot.kernel.document import Code, Hyperlink, Inline, Text
from bot.kernel.errors import RepriseError, TransientError, UserError
from bot.kernel.files import RepositoryFiles
from bot.kernel.report import IssueReport, RequestedReport
from bot.kernel.run import NewRun, Run, RunState
from bot.report import comment as report_comment, replies
from bot.report.comment import requested_by

# What a pull request of an issue can be made from: its runs, their reports as one, and the
# repository as it is now.

_NONE = (
    "No run has reproduced this issue or found a patch that is proven to help. Comment "
    "`/reproduce` or `/reproduce repair` first."
)
_UNPROVEN = "The patch of the last repair is not proven to help, so it is not proposed."


def choose_runs(runs: Sequence[Run]) -> tuple[Run, ...]:
    """Of the finished runs of an issue, newest first, those that a pull request is made from: the
    newest that is reproduced or has a proven repair, and the other of the two for the same text of
    the issue. Raises UserError where there is none.
    """
    runs = [run for run in runs if run.request.proof != "paper"]
    proven = [run for run in runs if run.patch == "proven"]
    worth = [run for run in runs if run.verdict == "reproduced" or run in proven]
    runs_with_patch = [run for run in runs if run.patch]
    if not worth:
        raise UserError(_UNPROVEN if runs_with_patch else _NONE)
    same = [run for run in runs if _text(run) == _text(worth[0])]
    # What a patch alone decides is a training, and no test: an older failure comes first.
    reproduced = [run for run in same if run.verdict == "reproduced"]
    test = sorted(reproduced, key=lambda run: run in proven)[:1]
    # An unproven patch goes along to be refused: its reader is told why it is not there.
    patch = [run for run in same if run in (proven or runs_with_patch)][:1]
    return tuple(run for run in same if run in [*test, *patch])


def _text(run: Run) -> tuple[str, str]:
    issue = run.request.issue
    return issue.title, issue.body


def merge_reports(reports: Sequence[IssueReport]) -> IssueReport:
    """The reports of chosen runs as one: what was reproduced, with the repair."""
    tested = next(filter(has_test, reports), None)
    reproduced = (report for report in reports if report.verdict.kind == "reproduced")
    first = tested or next(reproduced, reports[0])
    report_with_repair = repaired(reports) or first
    draft = first.draft()
    draft.repair, draft.diagnosis = report_with_repair.repair, report_with_repair.diagnosis
    return draft.finish()


def repaired(reports: Sequence[IssueReport]) -> IssueReport | None:
    """The report with the repair to propose: a proven one before one that is not, and any patch
    before none.
    """

    def worth(report: IssueReport) -> tuple[bool, bool]:
        repair = report.repair
        return repair is not None and repair.proven, repair is not None and bool(repair.patch)

    reports_with_repair = [report for report in reports if report.repair is not None]
    return max(reports_with_repair, key=worth, default=None)


def admitted(repository: RepositoryReader, number: int) -> RepositoryState:
    """The repository, if it can have a pull request of ours for an issue. Raises UserError."""
    state = repository.state()
    reasons = (
        (state.archived, "This repository is archived, so nothing can be added to it."),
        (state.fork, "This repository is a fork. Ask in the original repository."),
        (not state.head, "This repository has no commit yet."),
    )
    for applies, reason in reasons:
        if applies:
            raise UserError(reason)
    if not repository.issue_open(number):
        raise UserError("This issue is closed.", "Reopen it first.")
    return state


def files_of(repository: RepositoryReader, state: RepositoryState) -> RepositoryFiles:
    """What the default branch holds."""
    return RepositoryFiles(repository.entries(state.head), repository.text)


def hint(context: AppContext, run: Run, report: RequestedReport, where: Target) -> Text:
    """How to get the proven patch of a run as a pull request; "" where there can be none, as far as
    is known now, or where it is in one.
    """
    repair = report.repair if isinstance(report, IssueReport) else None
    number = run.request.number
    comment = context.store.comment(where.repository, number, PULL_REQUEST)
    if repair is None or not repair.proven or (comment is not None and comment.digest == run.id):
        return ""
    try:
        with context.github.writable(where) as writer:
            files = files_of(writer, admitted(writer, number))
            program = of_repair(repair, files).program
    except RepriseError:
        return ""
    get = "To have this change of ", Code(program), " as a draft pull request, someone with write "
    return (*get, "permission comments `/reproduce pr`.")


STICKY = "run"
_log = logging.getLogger(__name__)
_ENDED_STATES = (RunState.REPORTED, RunState.FINISHED)


def target(request: NewRun) -> Target:
    """The repository of the run's issue."""
    return Target(installation=request.installation, repository=request.repository.full_name)


def upsert(
    context: AppContext, where: Target, number: int, key: str, body: str, *, revive: bool = True
) -> None:
    """Create or replace our comment with this key. The stored id is tried first, then the marker
    in our own comments: that finds a comment whose response was lost. Unless `revive`, a comment
    that somebody deleted stays deleted.

    A comment that GitHub wrote after we had given up waiting is a second one; the next look at the
    marker deletes it, and one is noted.
    """
    digest = hashlib.sha256(body.encode()).hexdigest()
    comment_before = context.store.comment(where.repository, number, key)
    if comment_before is not None:
        if comment_before.digest == digest:
            return
        try:
            context.github.update_comment(where, comment_before.comment, body)
        except GoneError:
            if not revive:
                return
            context.store.forget_comment(where.repository, number, key)
        else:
            context.store.put_comment(comment_before.model_copy(update={"digest": digest}))
            return
    comment, *strays = context.github.find_comments(where, number, report_comment.marker(key)) or (
        0,
    )
    if comment:
        context.github.update_comment(where, comment, body)
    else:
        comment = _create(context, where, number, key, body)
    comment_now = OurComment(repository=where.repository, number=number, key=key, comment=comment)
    context.store.put_comment(comment_now.model_copy(update={"digest": digest}))
    _delete(context, where, strays)


def _create(context: AppContext, where: Target, number: int, key: str, body: str) -> int:
    """Create a comment. Until GitHub answers, and if it never does, the store has a look for a
    second one noted: this request may be carried out late, and this process may die.
    """
    place = (where.installation, where.repository, number, key)
    sweep = context.store.note_sweep(*place, context.policy.sweep_s)

    def forget() -> None:
        if sweep is not None:  # else an earlier request was not answered
            context.store.forget_sweep(sweep)

    try:
        comment = context.github.create_comment(where, number, body)
    except (Throttled, GoneError, UserError):
        forget()
        raise
    forget()
    return comment


def sweep(context: AppContext, where: Target, number: int, key: str) -> None:
    """Delete our comments with this key but one: that which the store knows, or else the oldest."""
    # Listed first: a comment that is stored meanwhile is never taken for a second one.
    comments = context.github.find_comments(where, number, report_comment.marker(key))
    comment_before = context.store.comment(where.repository, number, key)
    stays = comment_before.comment if comment_before is not None else next(iter(comments), 0)
    _delete(context, where, [comment for comment in comments if comment != stays])


def sweep_due(context: AppContext) -> None:
    """Look for the second comments that GitHub may have written late, once for each."""
    for due in context.store.due_sweeps(context.policy.sweep_s):
        where = Target(installation=due.installation, repository=due.repository)
        try:
            sweep(context, where, due.number, due.key)
        except (UserError, GoneError) as error:
            _log.info("%s#%d: no look for a second comment: %s", due.repository, due.number, error)
        except TransientError as error:
            _log.warning("%s#%d: %s", due.repository, due.number, error)
            continue  # it is due again
        context.store.forget_sweep(due)


def _delete(context: AppContext, where: Target, comments: Sequence[int]) -> None:
    for comment in comments:
        context.github.delete_comment(where, comment)


def reply(context: AppContext, where: Target, number: int, key: str, text: str) -> None:
    """Post a separate comment; `text` comes without its marker."""
    upsert(context, where, number, key, f"{report_comment.marker(key)}\n{text}")


def react(context: AppContext, request: NewRun, reaction: Reaction) -> None:
    """React to the comment or issue that requested the run."""
    context.github.react(target(request), request.number, request.comment, reaction)


def show(context: AppContext, run: Run, body: str, *, revive: bool = True) -> None:
    """Replace the body of the issue's sticky comment."""
    upsert(context, target(run.request), run.request.number, STICKY, body, revive=revive)


def label(context: AppContext, run: Run, report: RequestedReport) -> None:
    """Put the verdict's label on the issue and remove our others. A paper has none: its number is
    reproduced where the issue is not.
    """
    is_open = not isinstance(report, IssueReport) or report.repaired_instead or report.needs_reader
    label_of_verdict = None if is_open else KINDS[report.verdict.kind].label
    if label_of_verdict is None or run.request.issue.number is None:
        return
    others = tuple(name for name in LABELS if name != label_of_verdict.name)
    where = target(run.request)
    context.github.labels(
        where,
        run.request.number,
        label_of_verdict.name,
        others,
        label_of_verdict.colour,
        label_of_verdict.description,
    )


def plan_key(run: Run) -> str:
    """The key of the comment that shows a waiting plan: no other plan may take it over."""
    return f"plan:{run.id}"


def close_plan(context: AppContext, run: Run, text: str) -> None:
    """Replace the comment of a plan that no longer waits, if there is one."""
    where, number, key = target(run.request), run.request.number, plan_key(run)
    if context.store.comment(where.repository, number, key) is not None:
        upsert(context, where, number, key, f"{report_comment.marker(key)}\n{text}", revive=False)


def announce(
    context: AppContext, run: Run, owner: str, then: Callable[[AppContext, Run], None]
) -> None:
    """Announce the stored report of a leased run, do what follows it, and finish the run."""
    store, lease_s = context.store, context.policy.lease_s
    report = store.report(run.id)
    if report is None:
        raise TransientError(f"The report of run {run.id} is missing.")
    renew = partial(store.beat, run.id, owner, lease_s, "report", "posting the verdict")
    if renew().lost:
        return
    with heartbeat(renew, lease_s / 4):
        if run.request.state is RunState.WAITING and not run.approved_by:
            close_plan(context, run, replies.withdrawn(run))
        else:
            _show(context, run, report)
            then(context, run)
    store.finish_run(run.id, owner)


def _show(context: AppContext, run: Run, report: RequestedReport) -> None:
    """Update the comment, the label and the reaction. A run that was cancelled before it ran
    anything does not replace an earlier verdict.
    """
    before, run_to_show = _last_decided(context, run.request, run.id), run
    if report.verdict.kind == "cancelled" and not report.attempts and before is not None:
        run_to_show, report = before, context.store.report(before.id) or report
    if run.request.trigger == "opened" and _says_nothing(report) and not _is_shown(context, run):
        return  # nobody asked, and there is nothing to say or to ask
    show(context, run, _final(context, run_to_show, report, before if run_to_show is run else None))
    try:
        sweep(context, target(run.request), run.request.number, STICKY)
        if context.config(target(run.request)).labels:
            label(context, run, report)
        react(context, run.request, "+1")
    except (UserError, GoneError) as error:
        _log.warning(
            "run %s: the verdict is posted, but not all that goes with it: %s", run.id, error
        )


def _says_nothing(report: RequestedReport) -> bool:
    """Whether a report is left to a reader and has no training to tell of."""
    return isinstance(report, IssueReport) and report.needs_reader and report.diagnosis is None


def _is_shown(context: AppContext, run: Run) -> bool:
    """Whether the issue has our comment already."""
    where = target(run.request)
    return context.store.comment(where.repository, run.request.number, STICKY) is not None


def refresh(context: AppContext, request: NewRun) -> None:
    """Show the last verdict of an issue again, with what has changed around it."""
    run = _last_decided(context, request)
    report = context.store.report(run.id) if run is not None else None
    if run is not None and report is not None:
        before = _last_decided(context, request, run.id)
        show(context, run, _final(context, run, report, before), revive=False)


def _final(context: AppContext, run: Run, report: RequestedReport, before: Run | None) -> str:
    """The comment with a verdict; it links the pull request and an earlier run."""
    ends: list[Text] = [requested_by(run), report.interrupted]
    if before is not None:
        title = replies.verdict_title(before).lower() or "a repair"
        ends.append(Hyperlink(f"an earlier run: {title}", context.page(before), own=True))
    ends.append(pull_request(context, run))
    page, secrets = context.page(run), context.policy.secrets
    offer = hint(context, run, report, target(run.request))
    return report_comment.final(
        report, page=page, secrets=secrets, ends=tuple(filter(None, ends)), offer=offer
    )


def pull_request(context: AppContext, run: Run) -> Inline:
    """A link to the pull request of a run's issue, "" when we opened none."""
    where, number = run.request.repository.full_name, run.request.number
    comment = context.store.comment(where, number, PULL_REQUEST)
    if comment is None:
        return ""
    pull = comment.comment
    home = run.request.issue.url.removesuffix(f"/issues/{number}")
    address = f"{home.removesuffix(f'/pull/{number}')}/pull/{pull}"
    return Hyperlink(f"draft pull request {pull}", address, own=True)


def _last_decided(context: AppContext, request: NewRun, but: str = "") -> Run | None:
    """The newest run of the issue, but for one, whose verdict came from running something, or whose
    repair is proven.
    """
    where, number = request.repository.full_name, request.number
    ended_runs = context.store.runs(repository=where, number=number, states=_ENDED_STATES)
    return next((other for other in ended_runs if other.id != but and _counts(other)), None)


def _counts(run: Run) -> bool:
    if run.request.proof == "paper":
        return run.verdict in {"reproduced", "not_reproduced"}
    row = KINDS.get(run.verdict)
    return (row is not None and row.from_runs) or run.patch == "proven"
