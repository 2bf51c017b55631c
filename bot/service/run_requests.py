"""What a delivery asks to run: the job and its options, and how a run is admitted."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import get_args

from bot.models.job import (
    PROOFS,
    EnvironmentOptions,
    Extra,
    ProofOptions,
    ReproduceIssue,
    RunLimits,
    TrainingOptions,
)
from bot.models.repair import RepairRequest
from bot.models.run import (
    LIVE,
    Choices,
    Command,
    NewRun,
    Repository,
    Run,
    RunPlan,
    RunState,
    approval_hash,
)
from bot.products import plan
from bot.render import plan as plans, replies
from bot.service.app_context import IssueEvent
from bot.service.ports.store import AppStore, OurComment, Settled
from bot.service.quotas import over_plans, over_quota

PLAN_CHANGED = "Reprise (its plan has changed)"
_SINGLE_PROOF_MINUTES = 30
_REPLY = -1  # in place of a command's number
_MOST_REPLIES = 20  # a day, to one person in one repository
_ONE_OPENING = timedelta(minutes=5)  # GitHub tells of a new issue and of each of its labels


@dataclass(frozen=True)
class RunRequest:
    """One request of a delivery: who wants to run what. `ordinal` counts a comment's commands."""

    job: ReproduceIssue
    plan: RunPlan
    requester: str
    proof: Extra | None = None
    ordinal: int = 0


def request(
    event: IssueEvent, requester: str, command: Command | None = None, ordinal: int = 0
) -> RunRequest:
    """The command's options, then the repository's defaults; a proof requested by name is the
    only one.
    """
    assert event.delivery.repository is not None
    command = command or Command(text="")
    proof = next((name for name in get_args(Extra) if name == command.verb), None)
    job = _job(event, command, event.delivery.repository, proof)
    return RunRequest(job, plan(job), requester, proof, ordinal)


def _job(
    event: IssueEvent, command: Command, repository: Repository, proof: Extra | None
) -> ReproduceIssue:
    choices, config = command.choices, event.config
    usual = config.defaults
    proofs = (proof,) if proof is not None else usual.proofs if usual.proof_minutes else ()
    timeout_s = choices.timeout_s or usual.timeout
    diagnosed = config.diagnose if proof is None else proof in {"diagnose", "repair"}
    repair = _repair(choices) if proof == "repair" else None
    return ReproduceIssue(
        issue=event.issue,
        environment=EnvironmentOptions(
            python=choices.python or usual.python,
            pins=choices.pins,
            repo=_clone_url(repository, choices.ref, usual.clone),
            ref=choices.ref,
            device=choices.device or usual.device,
        ),
        limits=RunLimits(
            timeout_s=timeout_s,
            training_timeout_s=max(timeout_s, usual.training_timeout),
            max_runs=choices.runs or usual.runs,
            seed=choices.seed or 0,
        ),
        proof=ProofOptions(
            minutes=usual.proof_minutes if proof is None else _SINGLE_PROOF_MINUTES,
            package=choices.package,
        ),
        training=TrainingOptions(repair=repair) if diagnosed else None,
        without=tuple(name for name in PROOFS if name not in proofs),
    )


def _repair(choices: Choices) -> RepairRequest:
    """What a repair is asked for; where a command says nothing, the defaults."""
    said = {"metric": choices.metric, "budget": choices.budget}
    return RepairRequest(**{name: value for name, value in said.items() if value is not None})


def _clone_url(repository: Repository, ref: str | None, setting: str) -> str | None:
    """The address to install the repository itself from; None when it is not installed."""
    wanted = repository.private or ref if setting == "auto" else setting == "always"
    return repository.clone_url or None if wanted else None


def plan_hash(job: ReproduceIssue, planned: RunPlan) -> str:
    """The hash of all that an approval covers: the programs, the signature and every option."""
    options = job.model_dump_json(exclude={"issue"})
    text = f"{planned.hash}\0{options}"
    return hashlib.sha256(text.encode()).hexdigest()


def planned(run: Run) -> RunPlan:
    """The plan of a stored run, as it is made now."""
    return plan(run.request.job)


def is_plan(run: Run, job: ReproduceIssue, planned: RunPlan) -> bool:
    """Whether the hash of a stored run is that of this plan. It never is where a version before
    the run's id was part of the hash has stored the run.
    """
    return run.plan == approval_hash(run.id, plan_hash(job, planned))


def others(
    event: IssueEvent, store: AppStore, *states: RunState, plan: str | None = None
) -> list[Run]:
    """The runs of this issue in these states (and of this plan) that earlier deliveries asked
    for.
    """
    delivery, where = event.delivery, event.target.repository
    runs = store.runs(repository=where, number=event.number, plan=plan, states=states)
    return [
        run
        for run in runs
        if run.request.delivery != delivery.guid
        and (run.request.asked_at is None or run.request.asked_at <= delivery.received_at)
    ]


def may_run(event: IssueEvent, asked: RunRequest, ledger: AppStore) -> Settled:
    """Decide on a run that may start at once."""
    issue = ledger.runs(repository=event.target.repository, number=event.number, states=tuple(LIVE))
    busy = [run for run in issue if run.state is not RunState.WAITING]
    if any(run.request.job == asked.job for run in busy):
        text = replies.refused("The same run is already in progress.")
        return Settled(text=text, reaction="eyes")
    where = event.target.repository
    if limit := over_quota(event.context, ledger, event.config, where, asked.requester):
        return limited(event, ledger, limit)
    run = ledger.add_run(_new(event, asked, RunState.QUEUED))[0]
    return Settled(kind="queued", runs=(run.id,), reaction="eyes")


def may_wait(
    event: IssueEvent, asked: RunRequest, hidden: Sequence[str], ledger: AppStore
) -> Settled:
    """Decide on a run whose plan waits until someone with write permission approves it; `hidden`
    is what of it cannot be shown.
    """
    where = event.target.repository
    waiting = ledger.runs(repository=where, number=event.number, states=(RunState.WAITING,))
    if any(is_plan(run, asked.job, asked.plan) for run in waiting):
        return Settled(reaction="eyes")
    if limit := over_plans(event.context, ledger, event.config, where, asked.requester):
        return limited(event, ledger, limit)
    if hidden:
        text = replies.unshowable(hidden)
        return Settled(kind="unshown", text=text, reaction="confused")
    run = ledger.add_run(_new(event, asked, RunState.WAITING))[0]
    # Another version of Reprise planned the same job in another way: nobody can approve that.
    stale = [old.id for old in waiting if old.request.job == asked.job]
    for old in stale:
        ledger.cancel(PLAN_CHANGED, run=old)
    return Settled(kind="waiting", runs=(run.id, *stale), reaction="eyes")


def unshowable(event: IssueEvent, asked: RunRequest) -> tuple[str, ...]:
    """What of a requested plan no comment can show as it would run."""
    return plans.unshowable(asked.plan, _new(event, asked, RunState.WAITING))


def limited(event: IssueEvent, ledger: AppStore, limit: str) -> Settled:
    """A refusal by a limit. One person is told once a day; after that there is a reaction."""
    key = f"quota:{event.delivery.sender}:{event.context.day():%Y-%m-%d}"
    asked = event.delivery.trigger == "comment"
    told = asked and tally(ledger, event.target.repository, key) > 1
    return Settled(
        text="" if told else replies.refused(limit, replies.NOT_RUN), reaction="confused"
    )


def tally(ledger: AppStore, repository: str, key: str) -> int:
    """Count one more under a key. The count is kept as a comment of an issue number that no issue
    has.
    """
    known = ledger.comment(repository, 0, key)
    count = OurComment(
        repository=repository, number=0, key=key, comment=known.comment + 1 if known else 1
    )
    ledger.put_comment(count)
    return count.comment


def among_first(event: IssueEvent) -> bool:
    """Whether this delivery is one of the first that its sender is answered today."""
    key = f"replies:{event.delivery.sender}:{event.context.day():%Y-%m-%d}"

    def count(ledger: AppStore) -> Settled:
        many = tally(ledger, event.target.repository, key) > _MOST_REPLIES
        return Settled(kind="unsaid" if many else "said")

    return event.context.store.decide(event.delivery.cause, _REPLY, count).kind == "said"


def opened_twice(event: IssueEvent, asked: RunRequest, ledger: AppStore) -> bool:
    """Whether another event of the same opening has started a run already."""
    at, text = event.delivery.received_at, (asked.job.issue.title, asked.job.issue.body)
    return any(
        run.request.trigger in {"opened", "labeled"}
        and (run.request.job.issue.title, run.request.job.issue.body) == text
        and run.request.asked_at is not None
        and abs(run.request.asked_at - at) < _ONE_OPENING
        for run in ledger.runs(repository=event.target.repository, number=event.number)
    )


def without_model(asked: RunRequest) -> RunRequest:
    """The same without a model: an approval is for the programs that were shown."""
    return with_job(asked, asked.job.model_copy(update={"without": (*asked.job.without, "model")}))


def with_job(asked: RunRequest, job: ReproduceIssue) -> RunRequest:
    """The same with other options, and so with another plan."""
    return replace(asked, job=job, plan=plan(job))


def _new(event: IssueEvent, asked: RunRequest, state: RunState) -> NewRun:
    delivery = event.delivery
    assert delivery.repository is not None
    return NewRun(
        delivery=delivery.guid,
        ordinal=asked.ordinal,
        installation=delivery.installation,
        repository=delivery.repository,
        number=event.number,
        comment=delivery.comment,
        requester=asked.requester,
        trigger=delivery.trigger,
        job=asked.job,
        device=asked.job.environment.device,
        plan=plan_hash(asked.job, asked.plan),
        proof=asked.proof,
        asked_at=delivery.received_at,
        state=state,
    )
