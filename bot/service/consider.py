"""A delivery, looked at: what is asked, whether they may, and what is done about it. Doing it twice is doing it once."""

from __future__ import annotations

import hashlib
import logging

from bot.models.command import Choices, Command
from bot.models.config import Config
from bot.models.delivery import Delivery
from bot.models.draft import Draft
from bot.models.issue import Issue
from bot.models.job import PROOFS, Job, Options, Proof
from bot.models.run import LIVE, NewRun, Run, RunState
from bot.pipeline import plan
from bot.render import plan as plans
from bot.render import replies, sticky
from bot.render.config import configuration, problems
from bot.rules import verbs
from bot.service import access, publish
from bot.service.configuration import problem_key
from bot.service.lease import kept
from bot.service.office import Office, owner
from bot.service.perform import clone_of
from bot.service.ports import OurComment, Reaction, Target, Task

_log = logging.getLogger(__name__)
_ALONE_MINUTES = 30  # for a proof that is asked for by name
_MOST_REPLIES = 20  # a day, to one person in one repository
_ALWAYS = frozenset({"cancel", "status", "help", "config"})  # what a kill switch leaves to do


def consider(office: Office, delivery: Delivery) -> None:
    """Look at one delivery. Raises Throttled, Gone and TransientError: then it is looked at again."""
    if delivery.trigger == "uninstalled":
        _end(office, office.store.cancel("GitHub (uninstalled)", installation=delivery.installation))
    elif delivery.repository is None or delivery.issue is None or delivery.issue.number is None:
        repository = delivery.repository.full_name if delivery.repository is not None else None
        if delivery.trigger == "gone" and repository is not None:
            _end(office, office.store.cancel("GitHub (removed)", repository=repository))
    elif delivery.trigger == "gone":
        where = delivery.repository.full_name
        _end(office, office.store.cancel("GitHub (deleted)", repository=where, number=delivery.issue.number))
    else:
        _Case(office, delivery, delivery.issue).decide()


def _end(office: Office, runs: tuple[Run, ...]) -> None:
    for run in runs:
        task = Task(kind="run", id=run.id, device=run.request.device, turn=run.turn)
        office.queue.abort(task)
        if run.state is RunState.QUEUED:
            office.queue.offer(task)  # so that the issue hears of it now, not when its turn comes


def approval(job: Job, draft: Draft) -> str:
    """The hash that an approval names: what will be run, what counts, and every option of the run."""
    return hashlib.sha256(f"{draft.hash}\0{job.options.model_dump_json()}".encode()).hexdigest()


def _as_shown(job: Job) -> Job:
    """An approval is for the programs that were shown; no model may add others."""
    without = (*job.options.without, "model")
    return job.model_copy(update={"options": job.options.model_copy(update={"without": without})})


def _proof(command: Command) -> Proof | None:
    """What is asked for by name."""
    return next((each for each in PROOFS if each == command.verb), None)


class _Case:
    """One delivery about one issue."""

    def __init__(self, office: Office, delivery: Delivery, issue: Issue) -> None:
        assert delivery.repository is not None
        assert issue.number is not None
        self.office, self.delivery, self.issue, self.number = office, delivery, issue, issue.number
        self.repository = delivery.repository
        self.where = Target(installation=delivery.installation, repository=delivery.repository.full_name)
        self.reaction: Reaction | None = None
        self.answers: list[str] = []

    def decide(self) -> None:
        """Answer the commands, or start what the configuration says starts by itself."""
        off = self.office.switched_off(self.delivery.installation, self.repository)
        config = self.office.config(self.where) if not off else Config()
        if not config.enabled or self.delivery.sender.lower() in {name.lower() for name in config.ignore_authors}:
            return
        if self.delivery.trigger != "comment":
            if not off and self._triggered(config):
                self._by_itself(config)
            return
        for ordinal, command in enumerate(self.delivery.commands):
            if off and command.verb not in _ALWAYS:
                self._say(replies.refused(off), "confused")
            else:
                self._command(ordinal, command, config)
        self._answer()

    # --- what starts by itself -----------------------------------------------------------------------------------------------

    def _triggered(self, config: Config) -> bool:
        if self.delivery.trigger == "opened":
            return config.triggers.opened != "off" and not self.delivery.pull_request
        return self.delivery.label.lower() in {label.lower() for label in config.triggers.labels}

    def _by_itself(self, config: Config) -> None:
        """Nobody asked: what is no bug report, and what a limit forbids, stays unanswered."""
        job = self._job(Command(text=""), config)
        draft = plan(job)
        if self.delivery.trigger == "opened" and draft.verdict is not None and draft.verdict.kind == "not_a_bug":
            return
        person = self.issue.author if self.delivery.trigger == "opened" else self.delivery.sender
        if person.lower() in {name.lower() for name in config.ignore_authors}:
            return
        if limit := access.over_quota(self.office, config, self.repository.full_name, person):
            _log.info("%s#%d is not run: %s", self.repository.full_name, self.number, limit)
            return
        if (
            self.delivery.trigger == "opened"
            and not config.author_may_run
            and not access.writes(self.office, self.where, person)
        ):
            if config.outsiders == "approve":
                self._wait(0, job, draft, person)
            return
        self._start(0, job, draft, person)
        self._complain()

    # --- commands ------------------------------------------------------------------------------------------------------------

    def _command(self, ordinal: int, command: Command, config: Config) -> None:
        if command.problems or not command.verb:
            self._say(replies.problems(command), "confused")
            return
        match command.verb:
            case "help":
                self._say(replies.help_text(verbs.help_rows()), "+1")
            case "config":
                self._say(configuration(self.office.loaded(self.where)), "+1")
            case "status":
                runs = self.office.store.runs(repository=self.where.repository, number=self.number, limit=5)
                self._say(replies.status(runs, self.office.page), "+1")
            case "cancel":
                self._cancel()
            case "approve":
                self._approve(command.argument)
            case "reproduce" | "control" | "bisect" | "minimize":
                self._reproduce(ordinal, command, config)
            case _:
                self._say(replies.unavailable(command.verb), "confused")

    def _reproduce(self, ordinal: int, command: Command, config: Config) -> None:
        sender = self.delivery.sender
        job, proof = self._job(command, config), _proof(command)
        usual = proof is None and command.choices == Choices()
        own = usual and sender == self.issue.author and config.author_may_run
        may = own or access.writes(self.office, self.where, sender)
        if not may and config.outsiders == "ignore":
            self._say(replies.refused("Running this takes write permission on the repository."), "confused")
            return
        if limit := access.over_quota(self.office, config, self.where.repository, sender):
            self._over_quota(limit)
            return
        draft = plan(job)
        if may and any(run.request.job == job for run in self._live(RunState.QUEUED, RunState.RUNNING)):
            self._say(replies.refused("The same run is under way already."), "eyes")
        elif may:
            self._start(ordinal, job, draft, sender, proof)
            self._react("eyes")
        else:
            self._wait(ordinal, job, draft, sender, proof)
        self._complain()

    def _over_quota(self, limit: str) -> None:
        """Said once a day to a person; after that a reaction has to do."""
        key = f"quota:{self.delivery.sender}:{self.office.day():%Y-%m-%d}"
        known = self.office.store.comment(self.where.repository, 0, key)
        if known is None or known.digest == self.delivery.guid:
            self._say(replies.quota(limit), "confused")
            note = OurComment(repository=self.where.repository, number=0, key=key, comment=0, digest=self.delivery.guid)
            self.office.store.put_comment(note)
        self._react("confused")

    def _live(self, *states: RunState) -> list[Run]:
        runs = self.office.store.runs(repository=self.where.repository, number=self.number, states=states)
        return [run for run in runs if run.request.delivery != self.delivery.guid]

    def _wait(self, ordinal: int, job: Job, draft: Draft, sender: str, proof: Proof | None = None) -> None:
        """An outsider's request: shown, and kept until somebody with write permission says yes to exactly this."""
        if draft.verdict is not None:
            if self.delivery.trigger == "comment":
                self._say(replies.refused("Running this takes write permission on the repository."), "confused")
            return
        job = _as_shown(job)
        plan_ = approval(job, draft)
        if not any(run.request.plan == plan_ for run in self._live(RunState.WAITING)):
            run, _ = self.office.store.add_run(self._new(ordinal, job, draft, sender, RunState.WAITING, proof))
            text = plans.waiting(draft, run, page=self.office.page(run))
            publish.reply(self.office, self.where, self.number, publish.plan_key(run), text)
        self._react("eyes")

    def _approve(self, argument: str) -> None:
        sender = self.delivery.sender
        if not access.writes(self.office, self.where, sender):
            self._say(replies.refused("Approving takes write permission on the repository."), "confused")
            return
        waiting = [run for run in self._live(RunState.WAITING) if run.request.plan.startswith(argument)]
        if waiting and approval(waiting[0].request.job, plan(waiting[0].request.job)) != waiting[0].request.plan:
            self.office.store.cancel("Reprise (its plan has changed)", run=waiting[0].id)
            self._say(replies.refused("The plan has changed since; ask for a new one."), "confused")
            return
        run = self.office.store.approve(self.where.repository, self.number, argument, sender)
        if run is None:
            done = [each for each in self._live(*RunState) if each.request.plan.startswith(argument) and each.approved_by]
            if not done:
                self._say(replies.no_such_plan(argument), "confused")
                return
            run = done[0]
        publish.close_plan(self.office, run, plans.approved(run))
        self._offer(run)
        self._react("+1")

    def _cancel(self) -> None:
        live = self._live(*LIVE)
        own = [run for run in live if run.request.requester == self.delivery.sender]
        if not live:
            self._say(replies.nothing_to_cancel(), "confused")
        elif access.writes(self.office, self.where, self.delivery.sender):
            _end(
                self.office,
                self.office.store.cancel(self.delivery.sender, repository=self.where.repository, number=self.number),
            )
            self._react("+1")
        elif own:
            for run in own:
                _end(self.office, self.office.store.cancel(self.delivery.sender, run=run.id))
            self._react("+1")
        else:
            self._say(replies.refused("Stopping somebody else's run takes write permission."), "confused")

    # --- what all of them do -------------------------------------------------------------------------------------------------

    def _job(self, command: Command, config: Config) -> Job:
        """The command's options, then the repository's defaults; a proof that is asked for by name is the only one made."""
        choices, usual, proof = command.choices, config.defaults, _proof(command)
        proofs = (proof,) if proof is not None else usual.proofs if usual.proof_minutes else ()
        options = Options(
            python=choices.python or usual.python,
            pins=choices.pins,
            ref=choices.ref,
            device=choices.device or usual.device,
            timeout_s=choices.timeout_s or usual.timeout,
            max_runs=choices.runs or usual.runs,
            seed=choices.seed or 0,
            proof_minutes=usual.proof_minutes if proof is None else _ALONE_MINUTES,
            package=choices.package,
            without=tuple(each for each in PROOFS if each not in proofs),
        )
        repo = clone_of(self.repository, options, usual.clone)
        return Job(issue=self.issue, options=options.model_copy(update={"repo": repo}))

    def _new(self, ordinal: int, job: Job, draft: Draft, requester: str, state: RunState, proof: Proof | None) -> NewRun:
        assert state in (RunState.WAITING, RunState.QUEUED)
        return NewRun(
            delivery=self.delivery.guid,
            ordinal=ordinal,
            installation=self.delivery.installation,
            repository=self.repository,
            number=self.number,
            comment=self.delivery.comment,
            requester=requester,
            trigger=self.delivery.trigger,
            job=job,
            device=job.options.device,
            plan=approval(job, draft),
            proof=proof,
            state=state,
        )

    def _start(self, ordinal: int, job: Job, draft: Draft, requester: str, proof: Proof | None = None) -> None:
        run, _ = self.office.store.add_run(self._new(ordinal, job, draft, requester, RunState.QUEUED, proof))
        if run.state is not RunState.QUEUED:
            return
        if self.delivery.trigger != "comment":
            publish.react(self.office, run.request, "eyes")
        self._announce(run)
        self._offer(run)

    def _announce(self, run: Run) -> None:
        """A place in the queue is worth a comment. Whoever writes the sticky comment holds the run's lease."""
        me = owner()
        ahead = self.office.store.ahead(run.id)
        if not ahead or self.office.store.take_run(run.id, me, self.office.house.lease_s) is None:
            return
        store, lease_s = self.office.store, self.office.house.lease_s
        try:
            with kept(lambda: store.beat(run.id, me, lease_s), lease_s / 4):
                body = sticky.working(run, ahead=ahead, page=self.office.page(run), elapsed_s=0.0, attempts=0)
                publish.show(self.office, run, body)
        finally:
            store.defer_run(run.id, me, 0.0)

    def _offer(self, run: Run) -> None:
        current = self.office.store.run(run.id) or run
        self.office.queue.offer(Task(kind="run", id=run.id, device=run.request.device, turn=current.turn))

    def _say(self, text: str, reaction: Reaction) -> None:
        if text not in self.answers:
            self.answers.append(text)
        self._react(reaction)

    def _answer(self) -> None:
        """One reply to a comment, whatever it asks, and one reaction."""
        if self.answers and self._is_answered():
            text = "\n\n".join(self.answers)
            publish.reply(self.office, self.where, self.number, f"reply:{self.delivery.guid}", text)
        if self.reaction is not None:
            self.office.github.react(self.where, self.number, self.delivery.comment, self.reaction)

    def _is_answered(self) -> bool:
        """So often a day, whoever may not write; after that a reaction has to do."""
        key = f"replies:{self.delivery.sender}:{self.office.day():%Y-%m-%d}"
        known = self.office.store.comment(self.where.repository, 0, key)
        if known is not None and known.digest == self.delivery.guid:
            return True
        count = known.comment if known is not None else 0
        if count >= _MOST_REPLIES and not access.writes(self.office, self.where, self.delivery.sender):
            return False
        note = OurComment(repository=self.where.repository, number=0, key=key, comment=count + 1, digest=self.delivery.guid)
        self.office.store.put_comment(note)
        return True

    def _react(self, reaction: Reaction) -> None:
        """One reaction a comment: not understood outweighs taken, taken outweighs done."""
        order: tuple[Reaction | None, ...] = (None, "+1", "eyes", "confused")
        self.reaction = max(self.reaction, reaction, key=order.index)

    def _complain(self) -> None:
        """What is wrong with the configuration is said once."""
        loaded = self.office.loaded(self.where)
        if not loaded.problems:
            return
        key = f"config:{problem_key(loaded.problems)}"
        if self.office.store.comment(self.where.repository, 0, key) is None:
            publish.reply(self.office, self.where, self.number, key, problems(loaded.problems))
            self.office.store.put_comment(OurComment(repository=self.where.repository, number=0, key=key, comment=0))
