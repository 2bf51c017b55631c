"""What a delivery asks to run: the job and its options, how it is admitted, and what follows
from an outcome.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import get_args

from bot.app import publish, pull_requests
from bot.app.context import AppContext, IssueEvent, heartbeat, new_owner, run_task, writes
from bot.app.ports import AppStore, OurComment, Settled
from bot.environment.operator_files import weights_named
from bot.kernel.config import Config
from bot.kernel.job import (
    MOST_PAPER_RUNS,
    PROOFS,
    EnvironmentOptions,
    Extra,
    ProofOptions,
    ReproduceIssue,
    ReproducePaper,
    RequestedJob,
    RunLimits,
    TrainingOptions,
)
from bot.kernel.run import (
    LIVE,
    Choices,
    Command,
    JobPlan,
    NewRun,
    Repository,
    Run,
    RunState,
    approval_hash,
)
from bot.kernel.training_types import RepairRequest
from bot.products.engine import plan_job
from bot.report import comment, replies

# The daily limits of the host, a repository and a person, as they stand within one decision.

_HOST = "This host has reached its daily limit, which resets at 00:00 UTC."
_Limit = tuple[float, int, str, str, str]


def over_host(context: AppContext, store: AppStore) -> str:
    """The host's limit that another run would exceed, as a sentence; "" when there is none."""
    policy, total = context.policy, store.usage(context.day())
    busy = total.runs >= policy.daily_runs or total.seconds >= policy.daily_minutes * 60
    return _HOST if busy or 0 < policy.daily_usd <= total.usd else ""


def over_quota(
    context: AppContext, store: AppStore, config: Config, repository: str, person: str = ""
) -> str:
    """The limit that another run would exceed, as a sentence; "" when there is none. The limit of
    one person counts where `person` is given.
    """
    quota, here = config.quota, store.usage(context.day(), repository=repository)
    limits: list[_Limit] = [
        (here.runs, quota.repository, "This repository has", "runs", "repository"),
        (here.seconds / 60, quota.minutes, "This repository has", "minutes", "minutes"),
    ]
    if person:
        own = store.usage(context.day(), repository=repository, requester=person)
        limits.append((own.runs, quota.person, "You have", "runs", "person"))
    return over_host(context, store) or _exceeded(limits)


def over_plans(
    context: AppContext, store: AppStore, config: Config, repository: str, person: str
) -> str:
    """The limit that another plan would exceed. Runs do not count here, nor plans as runs:
    neither keeps the other out.
    """
    quota, day = config.quota, context.day()
    here = store.usage(day, repository=repository).plans
    own = store.usage(day, repository=repository, requester=person).plans
    return _exceeded(
        [
            (here, quota.plans, "This repository has", "plans", "plans"),
            (own, quota.person, "You have", "plans", "person"),
        ]
    )


def _exceeded(limits: list[_Limit]) -> str:
    for usage, limit, who, unit, key in limits:
        if usage >= limit:
            whose = "your" if who.startswith("You") else "its"
            return f"{who} reached {whose} limit of {limit} {unit} a day (`quota.{key}`)."
    return ""


# What a delivery asks to run: the job and its options, and how a run is admitted.

PLAN_CHANGED = "Reprise (its plan has changed)"
_SINGLE_PROOF_MINUTES = 30
_SHARE_OF_LIMIT = 0.8  # of the host's minutes, for the runs of a paper
_REPLY = -1  # in place of a command's number
_MOST_REPLIES = 20  # a day, to one person in one repository
_ONE_OPENING = timedelta(minutes=5)  # GitHub tells of a new issue and of each of its labels


@dataclass(frozen=True)
class RunRequest:
    """One request of a delivery: who wants to run what. `ordinal` counts a comment's commands."""

    job: RequestedJob
    plan: JobPlan
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
    repository = event.delivery.repository
    job: RequestedJob = (
        _paper_job(event, command.choices, repository)
        if proof == "paper"
        else _issue_job(event, command, repository, proof)
    )
    return RunRequest(job, plan_job(job), requester, proof, ordinal)


def _environment(event: IssueEvent, choices: Choices, repository: Repository) -> EnvironmentOptions:
    usual = event.config.defaults
    return EnvironmentOptions(
        python=choices.python or usual.python,
        pins=choices.pins,
        repo=repository.clone_url or None if usual.clone != "never" else None,
        ref=choices.ref,
        command=choices.command or "",
        data=event.config.data,
        device=choices.device or usual.device,
    )


def _paper_job(event: IssueEvent, choices: Choices, repository: Repository) -> ReproducePaper:
    """The job for the paper of this repository. It ends before the host's limit stops it."""
    limits = RunLimits()
    minutes = choices.minutes or ReproducePaper.model_fields["minutes"].default
    runs = choices.runs or ReproducePaper.model_fields["runs"].default
    return ReproducePaper(
        source="",
        issue=event.issue,
        claim=choices.claim or "",
        minutes=min(minutes, _SHARE_OF_LIMIT * event.context.policy.run_minutes),
        requested_minutes=choices.minutes,
        runs=min(runs, MOST_PAPER_RUNS),
        requested_runs=choices.runs,
        environment=_environment(event, choices, repository),
        limits=RunLimits(timeout_s=choices.timeout_s or limits.timeout_s, seed=choices.seed or 0),
    )


def _issue_job(
    event: IssueEvent, command: Command, repository: Repository, proof: Extra | None
) -> ReproduceIssue:
    choices, config = command.choices, event.config
    usual = config.defaults
    proofs = (proof,) if proof is not None else usual.proofs if usual.proof_minutes else ()
    timeout_s = choices.timeout_s or usual.timeout
    diagnosed = config.diagnose if proof is None else proof in {"diagnose", "repair"}
    repair = _repair(choices) if proof == "repair" else None
    requested_budget = choices.budget if proof == "diagnose" else None
    trials = usual.diagnosis_budget if requested_budget is None else requested_budget
    only_for_commands = not (repository.private or choices.ref) and usual.clone == "auto"
    environment = {
        "for_commands": only_for_commands,
        "weights": weights_named(event.issue, event.context.policy.weights),
    }
    return ReproduceIssue(
        issue=event.issue,
        environment=_environment(event, choices, repository).model_copy(update=environment),
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
        training=TrainingOptions(repair=repair, budget=trials) if diagnosed else None,
        without=tuple(name for name in PROOFS if name not in proofs),
    )


def _repair(choices: Choices) -> RepairRequest:
    """What a repair is asked for; where a command says nothing, the defaults."""
    values = {"metric": choices.metric, "budget": choices.budget}
    return RepairRequest(**{name: value for name, value in values.items() if value is not None})


def plan_hash(job: RequestedJob, run_plan: JobPlan) -> str:
    """The hash of all that an approval covers: the programs, the signature and every option."""
    options = job.model_dump_json(exclude={"issue"})
    text = f"{run_plan.hash}\0{options}"
    return hashlib.sha256(text.encode()).hexdigest()


def plan_of(run: Run) -> JobPlan:
    """The plan of a stored run, as it is made now."""
    return plan_job(run.request.job)


def is_plan(run: Run, job: RequestedJob, run_plan: JobPlan) -> bool:
    """Whether the hash of a stored run is that of this plan. It never is where a version before
    the run's id was part of the hash has stored the run.
    """
    return run.plan == approval_hash(run.id, plan_hash(job, run_plan))


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


def may_run(event: IssueEvent, run_request: RunRequest, ledger: AppStore) -> Settled:
    """Decide on a run that may start at once."""
    issue = ledger.runs(repository=event.target.repository, number=event.number, states=tuple(LIVE))
    busy = [run for run in issue if run.state is not RunState.WAITING]
    if any(run.request.job == run_request.job for run in busy):
        text = replies.refusal("The same run is already in progress.")
        return Settled(text=text, reaction="eyes")
    where = event.target.repository
    if limit := over_quota(event.context, ledger, event.config, where, run_request.requester):
        return refuse_over_limit(event, ledger, limit)
    run = ledger.add_run(_new(event, run_request, RunState.QUEUED))[0]
    return Settled(kind="queued", runs=(run.id,), reaction="eyes")


def may_wait(
    event: IssueEvent, run_request: RunRequest, hidden: Sequence[str], ledger: AppStore
) -> Settled:
    """Decide on a run whose plan waits until someone with write permission approves it; `hidden`
    is what of it cannot be shown.
    """
    where = event.target.repository
    waiting = ledger.runs(repository=where, number=event.number, states=(RunState.WAITING,))
    if any(is_plan(run, run_request.job, run_request.plan) for run in waiting):
        return Settled(reaction="eyes")
    if limit := over_plans(event.context, ledger, event.config, where, run_request.requester):
        return refuse_over_limit(event, ledger, limit)
    if hidden:
        text = replies.unshowable_reply(hidden)
        return Settled(kind="unshown", text=text, reaction="confused")
    run = ledger.add_run(_new(event, run_request, RunState.WAITING))[0]
    # Another version of Reprise planned the same job in another way: nobody can approve that.
    stale = [old.id for old in waiting if old.request.job == run_request.job]
    for old in stale:
        ledger.cancel(PLAN_CHANGED, run=old)
    return Settled(kind="waiting", runs=(run.id, *stale), reaction="eyes")


def unshowable(event: IssueEvent, run_request: RunRequest) -> tuple[str, ...]:
    """What of a requested plan no comment can show as it would run."""
    return replies.unshowable_programs(run_request.plan, _new(event, run_request, RunState.WAITING))


def refuse_over_limit(event: IssueEvent, ledger: AppStore, limit: str) -> Settled:
    """A refusal by a limit. One person is told once a day; after that there is a reaction."""
    key = f"quota:{event.delivery.sender}:{event.context.day():%Y-%m-%d}"
    is_comment = event.delivery.trigger == "comment"
    is_repeated = is_comment and tally(ledger, event.target.repository, key) > 1
    return Settled(
        text="" if is_repeated else replies.refusal(limit, replies.NOT_RUN), reaction="confused"
    )


def tally(ledger: AppStore, repository: str, key: str) -> int:
    """Count one more under a key. The count is kept as a comment of an issue number that no issue
    has.
    """
    comment = ledger.comment(repository, 0, key)
    count = OurComment(
        repository=repository, number=0, key=key, comment=comment.comment + 1 if comment else 1
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


def waits(event: IssueEvent) -> bool:
    """Whether what somebody without write permission asks for waits for an approval: a plan that
    nobody keeps cannot be approved.
    """
    return event.config.outsiders == "approve" and event.context.policy.keeps_runs


def opened_twice(event: IssueEvent, run_request: RunRequest, ledger: AppStore) -> bool:
    """Whether another event of the same opening has started a run already."""
    if not event.context.policy.keeps_runs:
        return _opened_with_label(event, run_request)
    at, text = event.delivery.received_at, (event.issue.title, event.issue.body)
    return any(
        run.request.trigger in {"opened", "labeled"}
        and (run.request.issue.title, run.request.issue.body) == text
        and run.request.asked_at is not None
        and abs(run.request.asked_at - at) < _ONE_OPENING
        for run in ledger.runs(repository=event.target.repository, number=event.number)
    )


def _opened_with_label(event: IssueEvent, run_request: RunRequest) -> bool:
    """Whether a label came with the issue, whose opening has an event of its own that starts a
    run.
    """
    delivery, issue = event.delivery, event.issue
    if delivery.trigger != "labeled" or event.config.triggers.opened == "off":
        return False
    if issue.created_at is None or delivery.received_at - issue.created_at >= _ONE_OPENING:
        return False
    if run_request.plan.is_no_bug:
        return False
    author_may = event.config.author_may_run
    return author_may or writes(event.context, event.target, issue.author)


def without_model(run_request: RunRequest) -> RunRequest:
    """The same without a model: an approval is for the programs that were shown."""
    return with_job(
        run_request,
        run_request.job.model_copy(update={"without": (*run_request.job.without, "model")}),
    )


def with_job(request: RunRequest, job: RequestedJob) -> RunRequest:
    """The same with other options, and so with another plan."""
    return replace(request, job=job, plan=plan_job(job))


def _new(event: IssueEvent, run_request: RunRequest, state: RunState) -> NewRun:
    delivery = event.delivery
    assert delivery.repository is not None
    return NewRun(
        delivery=delivery.guid,
        ordinal=run_request.ordinal,
        installation=delivery.installation,
        repository=delivery.repository,
        number=event.number,
        comment=delivery.comment,
        requester=run_request.requester,
        trigger=delivery.trigger,
        job=run_request.job,
        device=run_request.job.environment.device,
        plan=plan_hash(run_request.job, run_request.plan),
        proof=run_request.proof,
        asked_at=delivery.received_at,
        state=state,
    )


# What follows from an outcome: runs are announced, offered and stopped, plans are shown. Nothing
# is decided here, so that it may be done again.


def carry_out(context: AppContext, outcome: Settled) -> Settled:
    """Do what an outcome says, as far as it is not done yet; the outcome with what came of it."""
    runs_or_none = (context.store.run(run) for run in outcome.runs)
    present_runs = [run for run in runs_or_none if run is not None]
    if outcome.kind == "pull_request":
        return pull_requests.answer(context, present_runs) if present_runs else outcome
    runs = [run for run in present_runs if run.state in LIVE]
    match outcome.kind:
        case "queued":
            for run in runs:
                _begin(context, run)
        case "waiting":
            for run in runs:
                _propose(context, run)
            stop(context, [run for run in runs if run.cancelled_by])  # those it replaces
        case "approved":
            for run in runs:
                publish.close_plan(context, run, replies.approved(run))
                context.offer(run)
        case "cancelled":
            stop(context, runs)
    return outcome


def stop(context: AppContext, runs: Sequence[Run]) -> None:
    """Stop cancelled runs. Queued ones are offered, so that a worker answers the issue now."""
    for run in runs:
        context.queue.abort(run_task(run))
        if run.state is RunState.QUEUED:
            context.offer(run)


def _begin(context: AppContext, run: Run) -> None:
    if run.state is RunState.QUEUED:
        if run.request.trigger != "comment":
            publish.react(context, run.request, "eyes")
        _announce(context, run)
        context.offer(context.store.run(run.id) or run)


def _propose(context: AppContext, run: Run) -> None:
    if run.state is RunState.WAITING:
        where, number = publish.target(run.request), run.request.number
        text = replies.waiting(plan_of(run), run, page=context.page(run))
        publish.reply(context, where, number, publish.plan_key(run), text)


def _announce(context: AppContext, run: Run) -> None:
    """Comment that a run waits behind others, where somebody asked for it. Writing the sticky
    comment takes the lease.
    """
    if run.request.trigger == "opened":
        return
    owner, store, lease_s = new_owner(), context.store, context.policy.lease_s
    ahead = store.ahead(run.id)
    if not ahead or store.take_run(run.id, owner, lease_s) is None:
        return
    page = context.page(run)
    try:
        with heartbeat(lambda: store.beat(run.id, owner, lease_s), lease_s / 4):
            body = comment.working(run, ahead=ahead, page=page, elapsed_s=0.0, attempts=0)
            publish.show(context, run, body)
    finally:
        store.defer_run(run.id, owner, 0.0, counted=False)  # nothing was tried
