"""Commands in a comment: who may give them, and what each one does."""

from bot.models.run import LIVE, Choices, Command, Run, RunState
from bot.pipeline import plan
from bot.render import plan as plans, replies
from bot.render.replies import configuration
from bot.rules import verbs
from bot.service import app_context, publish
from bot.service.app_context import AppContext, IssueEvent, run_task
from bot.service.publish import Reply
from bot.service.run_requests import RunRequests, approval_hash, request

_ALWAYS = frozenset({"cancel", "status", "help", "config"})  # what a kill switch leaves to do
_NO_PERMISSION = "You need write permission on this repository to run this."


class Commands:
    """The commands of one comment."""

    def __init__(self, event: IssueEvent) -> None:
        self._event, self._context, self._config = event, event.context, event.config
        self._where, self._number = event.target, event.number
        self._sender = event.delivery.sender
        self._reply, self._requests = Reply(event), RunRequests(event)

    def handle(self, switched_off: str) -> bool:
        """Carry out every command and send one reply; True when one asked for a run."""
        asked = False
        for ordinal, command in enumerate(self._event.delivery.commands):
            if switched_off and command.verb not in _ALWAYS:
                self._refuse(switched_off)
            else:
                asked = self._handle(ordinal, command) or asked
        self._reply.send()
        return asked

    def _handle(self, ordinal: int, command: Command) -> bool:
        if command.problems or not command.verb:
            self._reply.say(replies.misunderstood(command), "confused")
            return False
        match command.verb:
            case "help":
                self._reply.say(replies.help_text(verbs.help_rows()), "+1")
            case "config":
                self._reply.say(configuration(self._context.loaded(self._where)), "+1")
            case "status":
                self._status()
            case "cancel":
                self._cancel()
            case "approve":
                self._approve(command.argument)
            case "reproduce" | "control" | "bisect" | "minimize":
                return self._reproduce(ordinal, command)
            case _:
                self._reply.say(replies.unavailable(command.verb), "confused")
        return False

    def _refuse(self, reason: str) -> None:
        self._reply.say(replies.refused(reason), "confused")

    def _may_write(self) -> bool:
        return app_context.writes(self._context, self._where, self._sender)

    def _status(self) -> None:
        runs = self._context.store.runs(
            repository=self._where.repository, number=self._number, limit=5
        )
        self._reply.say(replies.status(runs, self._context.page), "+1")

    def _reproduce(self, ordinal: int, command: Command) -> bool:
        asked = request(self._event, self._sender, command, ordinal)
        usual = asked.proof is None and command.choices == Choices()
        own = usual and self._sender == self._event.issue.author and self._config.author_may_run
        may = own or self._may_write()
        if not may and self._config.outsiders == "ignore":
            self._refuse(_NO_PERMISSION)
            return False
        limit = app_context.over_quota(
            self._context, self._config, self._where.repository, self._sender
        )
        if limit:
            self._reply.once_a_day("quota", replies.quota(limit), "confused")
            return False
        unfinished = self._requests.others(RunState.QUEUED, RunState.RUNNING) if may else ()
        if any(run.request.job == asked.job for run in unfinished):
            self._reply.say(replies.refused("The same run is already in progress."), "eyes")
        elif may:
            self._requests.start(asked)
            self._reply.react("eyes")
        elif asked.plan.verdict is not None:
            self._refuse(_NO_PERMISSION)
        else:
            self._requests.wait(asked)
            self._reply.react("eyes")
        return True

    def _approve(self, prefix: str) -> None:
        if not self._may_write():
            self._refuse("You need write permission on this repository to approve a run.")
            return
        waiting = self._with_plan(prefix, RunState.WAITING)
        if waiting and _plan_changed(waiting[0]):
            self._context.store.cancel("Reprise (its plan has changed)", run=waiting[0].id)
            self._refuse("The plan has changed; request a new one.")
            return
        where = self._where.repository
        run = self._context.store.approve(where, self._number, prefix, self._sender)
        before = [run for run in self._with_plan(prefix, *RunState) if run.approved_by]
        if run is None and not before:
            self._reply.say(replies.no_such_plan(prefix), "confused")
        else:
            self._release(run or before[0])

    def _release(self, run: Run) -> None:
        publish.close_plan(self._context, run, plans.approved(run))
        self._context.offer(self._context.store.run(run.id) or run)
        self._reply.react("+1")

    def _with_plan(self, prefix: str, *states: RunState) -> list[Run]:
        return [
            run for run in self._requests.others(*states) if run.request.plan.startswith(prefix)
        ]

    def _cancel(self) -> None:
        live = self._requests.others(*LIVE)
        own = [run for run in live if run.request.requester == self._sender]
        store = self._context.store
        if not live:
            self._reply.say(replies.nothing_to_cancel(), "confused")
        elif self._may_write():
            where, number = self._where.repository, self._number
            stop(self._context, store.cancel(self._sender, repository=where, number=number))
            self._reply.react("+1")
        elif own:
            for run in own:
                stop(self._context, store.cancel(self._sender, run=run.id))
            self._reply.react("+1")
        else:
            self._refuse("You need write permission to cancel someone else's run.")


def _plan_changed(run: Run) -> bool:
    job = run.request.job
    return approval_hash(job, plan(job)) != run.request.plan


def stop(context: AppContext, runs: tuple[Run, ...]) -> None:
    """Stop cancelled runs. Queued ones are offered, so that a worker answers the issue now."""
    for run in runs:
        context.queue.abort(run_task(run))
        if run.state is RunState.QUEUED:
            context.offer(run)
