"""The verdict of a run on GitHub: the final comment, the label and the reaction. Idempotent."""

from functools import partial

from bot.errors import TransientError
from bot.models.report import Report
from bot.models.run import Run, RunState
from bot.render import plan as plans, sticky
from bot.render.document import Hyperlink, Text
from bot.render.phrases.requests import asked
from bot.render.phrases.verdict import TITLES
from bot.service import publish
from bot.service.app_context import AppContext
from bot.service.heartbeat import heartbeat

_DECIDED = frozenset({"reproduced", "not_reproduced", "different_failure", "inconclusive"})


def announce(context: AppContext, run: Run, owner: str) -> None:
    """Announce the stored report of a leased run and finish the run."""
    store, lease_s = context.store, context.policy.lease_s
    report = store.report(run.id)
    if report is None:
        raise TransientError(f"The report of run {run.id} is missing.")
    renew = partial(store.beat, run.id, owner, lease_s, "report", "posting the verdict")
    if renew().lost:
        return
    with heartbeat(renew, lease_s / 4):
        if run.request.state is RunState.WAITING and not run.approved_by:
            publish.close_plan(context, run, plans.withdrawn(run))
        else:
            _show(context, run, report)
    store.finish_run(run.id, owner)


def _show(context: AppContext, run: Run, report: Report) -> None:
    """Update the comment, the label and the reaction. A run that was cancelled before it ran
    anything does not replace an earlier verdict.
    """
    before = _last_decided(context, run)
    shown = run
    if report.verdict.kind == "cancelled" and not report.attempts and before is not None:
        shown, report = before, context.store.report(before.id) or report
    ends: list[Text] = [asked(shown), report.interrupted]
    if shown is run and before is not None:
        title = TITLES[before.verdict].lower()
        ends.append(Hyperlink(f"an earlier run: {title}", context.page(before), own=True))
    page, secrets = context.page(shown), context.policy.secrets
    body = sticky.final(report, page=page, secrets=secrets, ends=tuple(filter(None, ends)))
    publish.show(context, run, body)
    if context.config(publish.target(run.request)).labels:
        publish.label(context, run, report.verdict.kind)
    publish.react(context, run.request, "+1")


def _last_decided(context: AppContext, run: Run) -> Run | None:
    """The newest other run of the issue whose verdict came from running something."""
    where, number = run.request.repository.full_name, run.request.number
    done = context.store.runs(repository=where, number=number, states=(RunState.FINISHED,))
    return next((other for other in done if other.id != run.id and other.verdict in _DECIDED), None)
