"""What a webhook delivery or a command in a comment leads to. Each is decided once; doing it
again changes nothing.
"""

import logging
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from bot.app import context, context as app_context, publish, pull_requests
from bot.app.configuration import problem_key
from bot.app.context import AppContext, IssueEvent
from bot.app.ports import AppStore, GoneError, Reaction, Settled, Target
from bot.app.publish import choose_runs
from bot.app.requests import (
    PLAN_CHANGED,
    RunRequest,
    among_first,
    carry_out,
    is_plan,
    may_run,
    may_wait,
    opened_twice,
    others,
    over_quota,
    plan_of,
    request,
    unshowable,
    waits,
    with_job,
    without_model,
)
from bot.kernel.config import Config
from bot.kernel.errors import UserError
from bot.kernel.run import LIVE, Choices, Command, Delivery, PaperPlan, Run, RunState
from bot.report import replies, verbs
from bot.report.markdown import inline
from bot.report.replies import configuration, problems

# Commands in a comment: who may give them, and what each one leads to. Each is decided once; a
# delivery that is handled again only completes what was decided.

_NO_PERMISSION = "You need write permission on this repository to run this."
_NO_COMMIT = "`ref=` names no branch or tag of this repository."
_UNFINISHED = (RunState.QUEUED, RunState.RUNNING)
_ORDER: tuple[Reaction | None, ...] = (None, "+1", "eyes", "confused")


class Commands:
    """The commands of one comment."""

    def __init__(self, event: IssueEvent) -> None:
        self._event, self._context, self._config = event, event.context, event.config
        self._where, self._number = event.target, event.number
        self._sender, self._cause = event.delivery.sender, event.delivery.cause

    def handle(self, switched_off: str) -> bool:
        """Carry out every command and send one reply; True when one asked for a run."""
        outcomes = [
            self._context.store.outcome(self._cause, ordinal)
            or self._outcome(ordinal, command, switched_off)
            for ordinal, command in enumerate(self._event.delivery.commands)
        ]
        self._answer([carry_out(self._context, outcome) for outcome in outcomes])
        return any(outcome.kind in {"queued", "waiting"} for outcome in outcomes)

    def _outcome(self, ordinal: int, command: Command, switched_off: str) -> Settled:
        if command.problems or not command.verb:
            return self._say(ordinal, replies.misunderstood(command), "confused")
        if switched_off and not verbs.WORDS[command.verb].always:
            return self._refuse(ordinal, switched_off)
        keeps_runs = self._context.policy.keeps_runs
        if not keeps_runs and (instead := verbs.WORDS[command.verb].instead):
            return self._refuse(ordinal, instead)
        match command.verb:
            case "help":
                return self._say(ordinal, replies.help_text(verbs.help_rows(keeps_runs=keeps_runs)))
            case "config":
                return self._say(ordinal, configuration(self._context.loaded(self._where)))
            case "status":
                return self._say(ordinal, self._status())
            case "cancel":
                return self._cancel(ordinal)
            case "approve":
                return self._approve(ordinal, command.argument)
            case "pr":
                return self._pull_request(ordinal)
        return self._reproduce(ordinal, command)

    def _say(self, ordinal: int, text: str, reaction: Reaction = "+1") -> Settled:
        decision = Settled(text=text, reaction=reaction)
        return self._context.store.decide(self._cause, ordinal, lambda _: decision)

    def _refuse(self, ordinal: int, reason: str) -> Settled:
        return self._say(ordinal, replies.refusal(reason), "confused")

    def _may_write(self) -> bool:
        return context.writes(self._context, self._where, self._sender)

    def _status(self) -> str:
        runs = self._context.store.runs(
            repository=self._where.repository, number=self._number, limit=5
        )
        if not runs:
            return replies.status((), self._context.page)
        text = replies.status(runs, self._context.page, self._context.list_page(runs[0]))
        link = publish.pull_request(self._context, runs[0])
        return f"{text}\n\n{inline(('See ', link, '.'))}" if link else text

    def _reproduce(self, ordinal: int, command: Command) -> Settled:
        run_request = request(self._event, self._sender, command, ordinal)
        usual = run_request.proof is None and command.choices == Choices()
        own = usual and self._sender == self._event.issue.author and self._config.author_may_run
        if own or self._may_write():
            act = partial(may_run, self._event, run_request)
        elif not waits(self._event) or run_request.plan.runs_nothing:
            return self._refuse(ordinal, _NO_PERMISSION)
        else:
            at_commit = self._at_commit(run_request)
            if at_commit is None:
                return self._refuse(ordinal, _NO_COMMIT)
            run_request = without_model(at_commit)
            act = partial(may_wait, self._event, run_request, unshowable(self._event, run_request))
        return self._context.store.decide(self._cause, ordinal, act)

    def _at_commit(self, run_request: RunRequest) -> RunRequest | None:
        """The request for the commit that its ref names now: an approval is for that one. Only a
        branch or a tag will do: a bare hash may be that of anybody's pull request.
        """
        ref = run_request.job.environment.ref
        if ref is None and isinstance(run_request.plan, PaperPlan):
            # The README's command is whatever stands there now, and nothing that is pushed later.
            assert self._event.delivery.repository is not None
            ref = self._event.delivery.repository.default_branch
        if ref is None:
            return run_request
        commits = (
            self._context.github.commit(self._where, f"{kind}/{ref}") for kind in ("heads", "tags")
        )
        commit = next(filter(None, commits), None)
        if not commit:
            return None
        environment = run_request.job.environment.model_copy(update={"ref": commit})
        return with_job(
            run_request, run_request.job.model_copy(update={"environment": environment})
        )

    def _pull_request(self, ordinal: int) -> Settled:
        if not self._may_write():
            reason = "You need write permission on this repository to open a pull request."
            return self._refuse(ordinal, reason)
        return self._context.store.decide(self._cause, ordinal, self._proposal)

    def _proposal(self, ledger: AppStore) -> Settled:
        where = self._where.repository
        if ledger.runs(repository=where, number=self._number, states=_UNFINISHED, limit=1):
            text = replies.refusal(
                "A run of this issue is in progress; ask again when it has finished."
            )
            return Settled(text=text, reaction="confused")
        finished_runs = others(self._event, ledger, RunState.REPORTED, RunState.FINISHED)
        try:
            runs = choose_runs(finished_runs)
        except UserError as error:
            return Settled(text=replies.refusal(str(error)), reaction="confused")
        ids = tuple(run.id for run in runs)
        return Settled(kind="pull_request", runs=ids, reaction="eyes")

    def _approve(self, ordinal: int, plan: str) -> Settled:
        if not self._may_write():
            reason = "You need write permission on this repository to approve a run."
            return self._refuse(ordinal, reason)
        # Making a plan takes long: not while nobody else can decide.
        waiting = others(self._event, self._context.store, RunState.WAITING, plan=plan)
        changed_runs = frozenset(run.id for run in waiting if _plan_changed(run))
        act = partial(self._approval, plan, changed_runs)
        return self._context.store.decide(self._cause, ordinal, act)

    def _approval(self, plan: str, changed_runs: frozenset[str], ledger: AppStore) -> Settled:
        run = next(iter(others(self._event, ledger, plan=plan)), None)
        if run is None or (run.state is not RunState.WAITING and not run.approved_by):
            return Settled(text=replies.no_such_plan(plan), reaction="confused")
        if run.state is RunState.WAITING and (
            refusal := self._unapprovable(run, changed_runs, ledger)
        ):
            return refusal
        ledger.approve(run.id, self._sender)
        return Settled(kind="approved", runs=(run.id,), reaction="+1")

    def _unapprovable(
        self, run: Run, changed_runs: frozenset[str], ledger: AppStore
    ) -> Settled | None:
        if run.id in changed_runs:
            ledger.cancel(PLAN_CHANGED, run=run.id)
            text = replies.refusal("The plan has changed. Ask for the run again to get a new one.")
            return Settled(kind="cancelled", runs=(run.id,), text=text, reaction="confused")
        limit = over_quota(self._context, ledger, self._config, self._where.repository)
        return (
            Settled(text=replies.refusal(limit, replies.NOT_RUN), reaction="confused")
            if limit
            else None
        )

    def _cancel(self, ordinal: int) -> Settled:
        live = others(self._event, self._context.store, *LIVE)
        may = bool(live) and self._may_write()
        if live and not may and all(run.request.requester != self._sender for run in live):
            reason = "You need write permission to cancel someone else's run."
            return self._refuse(ordinal, reason)
        act = partial(self._cancellation, may)
        return self._context.store.decide(self._cause, ordinal, act)

    def _cancellation(self, may: bool, ledger: AppStore) -> Settled:
        live = others(self._event, ledger, *LIVE)
        mine = [run.id for run in live if may or run.request.requester == self._sender]
        if not mine:
            return Settled(text=replies.nothing_to_cancel(), reaction="confused")
        for run in reversed(mine):  # oldest first, as workers lock them
            ledger.cancel(self._sender, run=run)
        return Settled(kind="cancelled", runs=tuple(mine), reaction="+1")

    def _answer(self, outcomes: list[Settled]) -> None:
        """Post the answers as one comment, then the reaction. People without write permission
        get a limited number of both a day: they count against what GitHub lets the App write.
        """
        texts = dict.fromkeys(outcome.text for outcome in outcomes if outcome.text)
        reaction = max((outcome.reaction for outcome in outcomes), key=_ORDER.index)
        has_reply = bool(texts) or reaction is not None
        if not has_reply or not (among_first(self._event) or self._may_write()):
            return
        if texts:
            key = f"reply:{self._cause[:36]}"
            publish.reply(self._context, self._where, self._number, key, "\n\n".join(texts))
        if reaction is not None:
            comment = self._event.delivery.comment
            with suppress(GoneError):  # the comment may be deleted by now
                self._context.github.react(self._where, self._number, comment, reaction)


def _plan_changed(run: Run) -> bool:
    """Whether a newer version would run or show something else than what waits."""
    now, request = plan_of(run), run.request
    return not is_plan(run, request.job, now) or bool(replies.unshowable_programs(now, request))


# What a webhook delivery leads to: runs are cancelled, commands are carried out, or a run starts
# automatically. Idempotent: what was decided once is only completed.

_log = logging.getLogger(__name__)


def handle(context: AppContext, delivery: Delivery) -> None:
    """Handle one delivery. Raises Throttled, Gone and TransientError: then it is retried."""
    repository, issue = delivery.repository, delivery.issue
    if delivery.trigger in {"uninstalled", "gone"}:
        carry_out(context, context.store.decide(delivery.cause, 0, partial(_end, delivery)))
    elif delivery.trigger == "closed":
        if repository is not None and issue is not None and issue.number is not None:
            pull_requests.close(context, repository, delivery.installation, issue.number)
    elif repository is not None and issue is not None and issue.number is not None:
        target = Target(installation=delivery.installation, repository=repository.full_name)
        off = context.switched_off(delivery.installation, repository)
        config = context.config(target) if not off else Config()
        _handle_issue(IssueEvent(context, delivery, issue, target, issue.number, config), off)


def _end(delivery: Delivery, ledger: AppStore) -> Settled:
    """Cancel the runs of an issue, a repository or an installation that is no more, and erase what
    is private of what the App has left for good: only what came before, because a delivery may be
    late and the App back.
    """
    repository, issue, where = delivery.repository, delivery.issue, delivery.installation
    before = delivery.received_at
    if delivery.trigger == "uninstalled":
        runs = ledger.cancel("GitHub (uninstalled)", installation=where, before=before)
        if delivery.action == "deleted":
            ledger.erase(where, before=before)
    elif repository is not None:
        number, name = issue.number if issue is not None else None, repository.full_name
        by = "GitHub (removed)" if number is None else "GitHub (deleted)"
        runs = ledger.cancel(by, repository=name, number=number, before=before)
        ledger.unlist(name, number, before=before)
        if issue is None:
            ledger.erase(where, repository.id, before=before)
    else:
        runs = ()
    return Settled(kind="cancelled", runs=tuple(run.id for run in runs))


def _handle_issue(event: IssueEvent, off: str) -> None:
    """Carry out commands, or start what the configuration starts automatically. `off` is the
    reason of an active kill switch.
    """
    if not event.config.enabled or _ignored(event.delivery.sender, event.config):
        return
    if event.delivery.trigger == "comment":
        has_trigger = Commands(event).handle(off)
    else:
        has_trigger = not off and _triggered(event.delivery, event.config) and _start(event)
    if has_trigger:
        _report_problems(event)


def _ignored(login: str, config: Config) -> bool:
    return login.lower() in {name.lower() for name in config.ignore_authors}


def _triggered(delivery: Delivery, config: Config) -> bool:
    if delivery.trigger == "opened":
        return config.triggers.opened != "off" and not delivery.pull_request
    return delivery.label.lower() in {label.lower() for label in config.triggers.labels}


def _start(event: IssueEvent) -> bool:
    """Start or propose a run; True when it was started. What is no bug report, and what a limit
    forbids, gets no answer: nobody asked.
    """
    context, cause = event.context, event.delivery.cause
    outcome = context.store.outcome(cause, 0) or _decide(event)
    if outcome is None:
        return False
    if not outcome.runs:
        where = event.target.repository
        _log.info("%s#%d is not run: %s", where, event.number, outcome.text or "it runs already")
    carry_out(context, outcome)
    if outcome.kind == "unshown" and among_first(event):
        publish.reply(context, event.target, event.number, f"reply:{cause[:36]}", outcome.text)
    return outcome.kind == "queued"


def _decide(event: IssueEvent) -> Settled | None:
    """Whether this event starts a run, or proposes one; None when it asks for none."""
    context, config, is_opening = event.context, event.config, event.delivery.trigger == "opened"
    person = event.issue.author if is_opening else event.delivery.sender
    run_request = request(event, person)
    if (is_opening and run_request.plan.is_no_bug) or _ignored(person, config):
        return None
    if not is_opening and not app_context.labels(context, event.target, person):
        return None
    may: object = not is_opening or config.author_may_run
    if may or app_context.writes(context, event.target, person):
        act = partial(may_run, event, run_request)
    elif waits(event) and not run_request.plan.runs_nothing:
        run_request = without_model(run_request)
        act = partial(may_wait, event, run_request, unshowable(event, run_request))
    else:
        return None
    return context.store.decide(event.delivery.cause, 0, partial(_once, event, run_request, act))


def _once(
    event: IssueEvent, run_request: RunRequest, act: Callable[[AppStore], Settled], ledger: AppStore
) -> Settled:
    return Settled() if opened_twice(event, run_request, ledger) else act(ledger)


def _report_problems(event: IssueEvent) -> None:
    """Say once what is wrong with the configuration, on the first issue that asks for a run."""
    context, where = event.context, event.target
    config = context.loaded(where)
    if not config.problems or not context.policy.keeps_runs:
        return  # who keeps nothing would say it on every issue
    key, cause = f"config:{problem_key(config.problems)}", event.delivery.cause
    first = context.store.decide(f"{where.repository}:{key}", 0, lambda _: Settled(text=cause))
    if first.text == cause:
        publish.reply(context, where, event.number, key, problems(config.problems))
