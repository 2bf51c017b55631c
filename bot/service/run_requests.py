"""What a delivery asks to run: the job and its options, and how a run is queued or waits for an
approval.
"""

import hashlib
from dataclasses import dataclass, replace

from bot.models.config import Config
from bot.models.job import PROOFS, Job, Options, Proof
from bot.models.run import Command, NewRun, Repository, Run, RunPlan, RunState
from bot.pipeline import plan
from bot.render import plan as plans, sticky
from bot.service import publish
from bot.service.app_context import IssueEvent, heartbeat, new_owner

_SINGLE_PROOF_MINUTES = 30


@dataclass(frozen=True)
class RunRequest:
    """One request of a delivery: who wants to run what. `ordinal` counts a comment's commands."""

    job: Job
    plan: RunPlan
    requester: str
    proof: Proof | None = None
    ordinal: int = 0


def request(
    event: IssueEvent, requester: str, command: Command | None = None, ordinal: int = 0
) -> RunRequest:
    """The command's options, then the repository's defaults; a proof requested by name is the
    only one.
    """
    assert event.delivery.repository is not None
    command = command or Command(text="")
    proof = next((name for name in PROOFS if name == command.verb), None)
    options = _options(command, event.config, proof)
    repo = _clone_url(event.delivery.repository, options, event.config.defaults.clone)
    job = Job(issue=event.issue, options=options.model_copy(update={"repo": repo}))
    return RunRequest(job, plan(job), requester, proof, ordinal)


def _options(command: Command, config: Config, proof: Proof | None) -> Options:
    choices, usual = command.choices, config.defaults
    proofs = (proof,) if proof is not None else usual.proofs if usual.proof_minutes else ()
    return Options(
        python=choices.python or usual.python,
        pins=choices.pins,
        ref=choices.ref,
        device=choices.device or usual.device,
        timeout_s=choices.timeout_s or usual.timeout,
        max_runs=choices.runs or usual.runs,
        seed=choices.seed or 0,
        proof_minutes=usual.proof_minutes if proof is None else _SINGLE_PROOF_MINUTES,
        package=choices.package,
        without=tuple(name for name in PROOFS if name not in proofs),
    )


def _clone_url(repository: Repository, options: Options, setting: str) -> str | None:
    """The address to install the repository itself from; None when it is not installed."""
    wanted = repository.private or options.ref if setting == "auto" else setting == "always"
    return repository.clone_url or None if wanted else None


def approval_hash(job: Job, planned: RunPlan) -> str:
    """The hash that an approval names: the programs, the signature and every option."""
    text = f"{planned.hash}\0{job.options.model_dump_json()}"
    return hashlib.sha256(text.encode()).hexdigest()


class RunRequests:
    """Turns the requests of one delivery into runs."""

    def __init__(self, event: IssueEvent) -> None:
        self._context, self._delivery = event.context, event.delivery
        self._where, self._number = event.target, event.number

    def others(self, *states: RunState) -> list[Run]:
        """The runs of this issue in these states that other deliveries asked for."""
        runs = self._context.store.runs(
            repository=self._where.repository, number=self._number, states=states
        )
        return [run for run in runs if run.request.delivery != self._delivery.guid]

    def start(self, asked: RunRequest) -> None:
        """Queue a run and announce it."""
        run = self._add(asked, RunState.QUEUED)
        if run.state is not RunState.QUEUED:
            return
        if self._delivery.trigger != "comment":
            publish.react(self._context, run.request, "eyes")
        self._announce(run)
        self._context.offer(self._context.store.run(run.id) or run)

    def wait(self, asked: RunRequest) -> None:
        """Show a plan and store its run until someone with write permission approves it. An
        approval is for the programs that were shown; no model may add others.
        """
        options = asked.job.options
        options = options.model_copy(update={"without": (*options.without, "model")})
        asked = replace(asked, job=asked.job.model_copy(update={"options": options}))
        approval = approval_hash(asked.job, asked.plan)
        if any(run.request.plan == approval for run in self.others(RunState.WAITING)):
            return
        run = self._add(asked, RunState.WAITING)
        text = plans.waiting(asked.plan, run, page=self._context.page(run))
        publish.reply(self._context, self._where, self._number, publish.plan_key(run), text)

    def _add(self, asked: RunRequest, state: RunState) -> Run:
        delivery = self._delivery
        assert delivery.repository is not None
        new = NewRun(
            delivery=delivery.guid,
            ordinal=asked.ordinal,
            installation=delivery.installation,
            repository=delivery.repository,
            number=self._number,
            comment=delivery.comment,
            requester=asked.requester,
            trigger=delivery.trigger,
            job=asked.job,
            device=asked.job.options.device,
            plan=approval_hash(asked.job, asked.plan),
            proof=asked.proof,
            state=state,
        )
        return self._context.store.add_run(new)[0]

    def _announce(self, run: Run) -> None:
        """Comment that a run waits behind others. Writing the sticky comment takes the lease."""
        context, owner = self._context, new_owner()
        store, lease_s = context.store, context.policy.lease_s
        ahead = store.ahead(run.id)
        if not ahead or store.take_run(run.id, owner, lease_s) is None:
            return
        page = context.page(run)
        try:
            with heartbeat(lambda: store.beat(run.id, owner, lease_s), lease_s / 4):
                body = sticky.working(run, ahead=ahead, page=page, elapsed_s=0.0, attempts=0)
                publish.show(context, run, body)
        finally:
            store.defer_run(run.id, owner, 0.0)
