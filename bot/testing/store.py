"""The store in memory: the whole contract under one lock, gone with the process."""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from threading import Lock

from bot.models.attempt import Attempt, Script
from bot.models.delivery import Delivery
from bot.models.dialogue import Exchange
from bot.models.report import Report
from bot.models.run import LIVE, NewRun, Run, RunState
from bot.service import keep
from bot.service.ports import Beat, Claim, OurComment, Task, Usage

_UNBEGUN = frozenset({RunState.WAITING, RunState.QUEUED})
_OVER = frozenset({RunState.FINISHED, RunState.FAILED})


@dataclass
class _Offered:
    """Something that is offered, leased and given back. Times are seconds of the store's clock."""

    offered_at: float
    turn: int = 0
    not_before: float = -math.inf
    owner: str = ""
    lease_until: float = -math.inf

    def leased(self, now: float) -> bool:
        return bool(self.owner) and self.lease_until > now

    def lease(self, owner: str, until: float) -> None:
        self.owner, self.lease_until = owner, until

    def free(self) -> None:
        self.owner, self.lease_until = "", -math.inf

    def defer(self, until: float) -> None:
        self.free()
        self.turn += 1
        self.not_before = self.offered_at = until

    def offer(self, now: float) -> int:
        self.free()
        self.turn += 1
        self.offered_at = now
        return self.turn

    def unheard(self, now: float, patience: float) -> bool:
        return self.not_before <= now and now - self.offered_at > patience


@dataclass
class _Delivery(_Offered):
    body: Delivery = field(kw_only=True)
    state: str = "waiting"
    finished_at: float = math.inf


@dataclass
class _Run(_Offered):
    run: Run = field(kw_only=True)
    attempts: dict[int, tuple[Attempt, Script, str]] = field(default_factory=dict)
    exchanges: dict[int, Exchange] = field(default_factory=dict)
    report: Report | None = None

    def set(self, **fields: object) -> None:
        self.run = self.run.model_copy(update=fields)

    def seen(self) -> Run:
        return self.run.model_copy(update={"turn": self.turn})


@dataclass(frozen=True)
class _Cost:
    run: str
    at: float
    usd: float
    calls: int
    tokens: tuple[int, int]


class MemoryStore:
    """A Store for tests and rehearsals. `clock` tells the time in epoch seconds; the limits are those of GitHub's writes, for
    each installation. Safe to share between threads.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.time,
        write_gap_s: float = 1.0,
        notify_gap_s: float = 3.0,
        per_minute: int = 80,
        per_hour: int = 500,
    ) -> None:
        self._clock, self._lock = clock, Lock()
        self._gaps, self._caps = (write_gap_s, notify_gap_s), ((60.0, per_minute), (3600.0, per_hour))
        self._deliveries: dict[str, _Delivery] = {}
        self._runs: dict[str, _Run] = {}  # the oldest first
        self._comments: dict[tuple[str, int, str], OurComment] = {}
        self._writes: dict[int, list[tuple[float, bool]]] = {}
        self._holds: dict[int, float] = {}
        self._costs: list[_Cost] = []
        self._switches: dict[str, str] = {}

    # --- deliveries ----------------------------------------------------------------------------------------------------------

    def claim(self, deliveries: Sequence[Delivery]) -> tuple[Claim, ...]:
        """Keep deliveries."""
        with self._lock:
            return tuple([self._claim(each) for each in deliveries])

    def _claim(self, delivery: Delivery) -> Claim:
        now, known = self._clock(), self._deliveries.get(delivery.guid)
        if known is None:
            self._deliveries[delivery.guid] = _Delivery(now, body=keep.record(delivery))
            return "new"
        if known.state != "failed":
            return "known"
        known.offer(now)
        known.state, known.body, known.not_before, known.finished_at = "waiting", keep.record(delivery), now, math.inf
        return "again"

    def take_delivery(self, guid: str, owner: str, lease_s: float) -> Delivery | None:
        """Lease a delivery."""
        with self._lock:
            now, known = self._clock(), self._deliveries.get(guid)
            waits = known is not None and known.state == "waiting" and known.not_before <= now
            left = known is not None and known.state == "handling" and not known.leased(now)
            if known is None or not (waits or left):
                return None
            known.state = "handling"
            known.lease(owner, now + lease_s)
            return known.body

    def renew_delivery(self, guid: str, owner: str, lease_s: float) -> bool:
        """Renew the lease of a delivery."""
        with self._lock:
            known = self._held_delivery(guid, owner)
            if known is not None:
                known.lease(owner, self._clock() + lease_s)
            return known is not None

    def finish_delivery(self, guid: str, owner: str, error: str = "") -> bool:
        """Handled, or failed."""
        with self._lock:
            known = self._held_delivery(guid, owner)
            if known is not None:
                known.free()
                known.state, known.finished_at = "failed" if error else "handled", self._clock()
            return known is not None

    def defer_delivery(self, guid: str, owner: str, after_s: float) -> int:
        """Give a delivery back."""
        with self._lock:
            known = self._held_delivery(guid, owner)
            if known is not None:
                known.defer(self._clock() + after_s)
                known.state = "waiting"
            return self._deliveries[guid].turn if guid in self._deliveries else 0

    def seen(self, guids: Sequence[str]) -> frozenset[str]:
        """Those that need no redelivery."""
        with self._lock:
            return frozenset(guid for guid in guids if guid in self._deliveries and self._deliveries[guid].state != "failed")

    def _held_delivery(self, guid: str, owner: str) -> _Delivery | None:
        known = self._deliveries.get(guid)
        return known if known is not None and known.state == "handling" and known.owner == owner else None

    # --- runs ----------------------------------------------------------------------------------------------------------------

    def add_run(self, new: NewRun) -> tuple[Run, bool]:
        """The run of this delivery and ordinal."""
        with self._lock:
            for each in self._runs.values():
                if (each.run.request.delivery, each.run.request.ordinal) == (new.delivery, new.ordinal):
                    return each.seen(), False
            now = self._clock()
            run = Run(id=secrets.token_hex(16), request=keep.record(new), state=new.state, created_at=_moment(now))
            self._runs[run.id] = _Run(now, run=run)
            return run, True

    def run(self, run: str) -> Run | None:
        """A run by its id."""
        with self._lock:
            return self._runs[run].seen() if run in self._runs else None

    def runs(
        self,
        *,
        repository: str | None = None,
        number: int | None = None,
        installation: int | None = None,
        states: Sequence[RunState] = (),
        limit: int = 50,
    ) -> tuple[Run, ...]:
        """Runs that fit, the newest first."""
        with self._lock:
            fitting = self._fitting(repository, number, installation, states)
            return tuple(each.seen() for each in reversed(fitting))[:limit]

    def _fitting(
        self,
        repository: str | None,
        number: int | None,
        installation: int | None,
        states: Collection[RunState],
    ) -> list[_Run]:
        """The oldest first."""
        wanted = {"repository": repository, "number": number, "installation": installation}
        return [
            each
            for each in self._runs.values()
            if (not states or each.run.state in states)
            and all(value is None or value == _attribute(each.run, name) for name, value in wanted.items())
        ]

    def ahead(self, run: str) -> int:
        """How many queued or running runs for the same device are older."""
        with self._lock:
            older = 0
            for each in self._runs.values():
                if each.run.id == run:
                    mine = each.run.request.device
                    break
                older += 1
            else:
                return 0
            busy = [each.run for each in list(self._runs.values())[:older]]
            return sum(each.request.device == mine and each.state in {RunState.QUEUED, RunState.RUNNING} for each in busy)

    def take_run(self, run: str, owner: str, lease_s: float) -> Run | None:
        """Lease a run."""
        with self._lock:
            now, known = self._clock(), self._runs.get(run)
            if known is None or known.leased(now) or known.not_before > now or self._rival(known, now):
                return None
            if known.run.state not in {RunState.QUEUED, RunState.REPORTED}:
                return None
            known.lease(owner, now + lease_s)
            state = RunState.RUNNING if known.run.state is RunState.QUEUED else RunState.REPORTED
            known.set(state=state, takes=known.run.takes + 1, started_at=known.run.started_at or _moment(now))
            return known.seen()

    def beat(self, run: str, owner: str, lease_s: float, stage: str = "", progress: str = "", seconds: float = 0.0) -> Beat:
        """Renew a lease; an empty stage or progress leaves what was said before."""
        with self._lock:
            now, known = self._clock(), self._held_run(run, owner)
            if known is None or (not known.leased(now) and self._rival(known, now)):
                return Beat(lost=True)
            known.lease(owner, now + lease_s)
            said = {"stage": keep.line(stage), "progress": keep.line(progress)}
            known.set(seconds=known.run.seconds + seconds, **{name: value for name, value in said.items() if value})
            return Beat(cancel=bool(known.run.cancelled_by))

    def finish_run(self, run: str, owner: str, error: str = "") -> bool:
        """FINISHED, or FAILED."""
        with self._lock:
            known = self._held_run(run, owner)
            if known is not None:
                known.free()
                state = RunState.FAILED if error else RunState.FINISHED
                known.set(state=state, error=keep.line(error), finished_at=_moment(self._clock()))
            return known is not None

    def defer_run(self, run: str, owner: str, after_s: float) -> int:
        """Give a run back."""
        with self._lock:
            known = self._held_run(run, owner)
            if known is not None:
                known.defer(self._clock() + after_s)
                if known.run.state is RunState.RUNNING:
                    known.set(state=RunState.QUEUED)
            return self._runs[run].turn if run in self._runs else 0

    def approve(self, repository: str, number: int, plan: str, by: str) -> Run | None:
        """The waiting run of this plan, now QUEUED. A prefix that fits two different plans names none."""
        with self._lock:
            waiting = self._fitting(repository, number, None, (RunState.WAITING,))
            fitting = [each for each in waiting if len(plan) >= 8 and each.run.request.plan.startswith(plan)]
            if len({each.run.request.plan for each in fitting}) != 1:
                return None
            fitting[-1].offered_at = self._clock()
            fitting[-1].set(state=RunState.QUEUED, approved_by=keep.line(by))
            return fitting[-1].seen()

    def cancel(
        self, by: str, *, run: str | None = None, repository: str | None = None, number: int | None = None,
        installation: int | None = None,
    ) -> tuple[Run, ...]:  # fmt: skip
        """Ask every live run that fits to stop; who asked first is kept."""
        with self._lock:
            asked = [each for each in self._fitting(repository, number, installation, LIVE) if run in {None, each.run.id}]
            for each in asked:
                each.set(cancelled_by=each.run.cancelled_by or keep.line(by))
                if each.run.state in _UNBEGUN:
                    each.offer(self._clock())
                    each.not_before = -math.inf
                    each.set(state=RunState.QUEUED)
            return tuple(each.seen() for each in asked)

    def _rival(self, mine: _Run, now: float) -> bool:
        """Whether another run of the same issue holds a live lease."""
        request = mine.run.request
        same = self._fitting(request.repository.full_name, request.number, None, LIVE)
        return any(each is not mine and each.leased(now) for each in same)

    def _held_run(self, run: str, owner: str) -> _Run | None:
        known = self._runs.get(run)
        return known if known is not None and known.owner == owner and owner else None

    # --- what runs leave behind ----------------------------------------------------------------------------------------------

    def note_attempt(self, run: str, owner: str, attempt: Attempt, script: Script, log: str) -> bool:
        """Keep one attempt; the first of a number stays."""
        with self._lock:
            known = self._held_run(run, owner)
            if known is not None:
                known.attempts.setdefault(attempt.number, (keep.record(attempt), keep.record(script), keep.log(log)))
            return known is not None

    def attempts(self, run: str) -> tuple[Attempt, ...]:
        """The attempts of a run."""
        with self._lock:
            kept = self._runs[run].attempts if run in self._runs else {}
            return tuple(kept[number][0] for number in sorted(kept))

    def script(self, run: str, number: int) -> Script | None:
        """The program of one attempt."""
        with self._lock:
            kept = self._runs[run].attempts if run in self._runs else {}
            return kept[number][1] if number in kept else None

    def log(self, run: str, number: int) -> str:
        """The log of one attempt."""
        with self._lock:
            kept = self._runs[run].attempts if run in self._runs else {}
            return kept[number][2] if number in kept else ""

    def note_exchange(self, run: str, owner: str, exchange: Exchange) -> bool:
        """Keep one exchange; the first of a number stays."""
        with self._lock:
            known = self._held_run(run, owner)
            if known is not None:
                known.exchanges.setdefault(exchange.number, keep.record(exchange))
            return known is not None

    def exchanges(self, run: str) -> tuple[Exchange, ...]:
        """The exchanges of a run."""
        with self._lock:
            kept = self._runs[run].exchanges if run in self._runs else {}
            return tuple(kept[number] for number in sorted(kept))

    def forget_attempts(self, run: str, owner: str, above: int) -> bool:
        """Drop attempts with a higher number."""
        with self._lock:
            known = self._held_run(run, owner)
            if known is not None:
                known.attempts = {number: kept for number, kept in known.attempts.items() if number <= above}
            return known is not None

    def put_report(self, run: str, owner: str, report: Report) -> bool:
        """RUNNING becomes REPORTED; what a model was asked is needed no longer."""
        with self._lock:
            known = self._held_run(run, owner)
            if known is not None:
                known.report = keep.record(report)
                known.set(state=RunState.REPORTED, verdict=report.verdict.kind)
                known.exchanges.clear()
            return known is not None

    def report(self, run: str) -> Report | None:
        """The report of a run."""
        with self._lock:
            return self._runs[run].report if run in self._runs else None

    # --- what is overdue -----------------------------------------------------------------------------------------------------

    def overdue(self, unheard_s: float) -> tuple[Task, ...]:
        """What must be offered again, marked as offered."""
        with self._lock:
            now, tasks = self._clock(), []
            for guid, each in sorted(self._deliveries.items(), key=lambda item: (item[1].body.received_at, item[0])):
                if each.state == "handling" and not each.leased(now):
                    each.state = "waiting"
                    tasks.append(Task(kind="delivery", id=guid, turn=each.offer(now)))
                elif each.state == "waiting" and each.unheard(now, unheard_s):
                    each.offered_at = now
                    tasks.append(Task(kind="delivery", id=guid, turn=each.turn))
            for id_, known in self._runs.items():
                waits = known.run.state in {RunState.QUEUED, RunState.REPORTED} and not known.owner
                left = bool(known.owner) and not known.leased(now)
                patience: float = unheard_s * 2 ** min(known.turn, 6)
                if left or (waits and known.unheard(now, patience)):
                    if known.run.state is RunState.RUNNING:
                        known.set(state=RunState.QUEUED)
                    tasks.append(Task(kind="run", id=id_, device=known.run.request.device, turn=known.offer(now)))
            return tuple(tasks)

    # --- comments ------------------------------------------------------------------------------------------------------------

    def comment(self, repository: str, number: int, key: str) -> OurComment | None:
        """A comment of ours."""
        with self._lock:
            return self._comments.get((repository, number, key))

    def comments(self, repository: str, number: int) -> tuple[OurComment, ...]:
        """All comments of ours on an issue, the oldest first."""
        with self._lock:
            ours = [each for each in self._comments.values() if (each.repository, each.number) == (repository, number)]
            return tuple(sorted(ours, key=lambda each: (each.comment, each.key)))

    def put_comment(self, comment: OurComment) -> None:
        """Remember a comment of ours."""
        with self._lock:
            self._comments[comment.repository, comment.number, comment.key] = comment

    def forget_comment(self, repository: str, number: int, key: str) -> None:
        """Somebody deleted it."""
        with self._lock:
            self._comments.pop((repository, number, key), None)

    # --- pacing --------------------------------------------------------------------------------------------------------------

    def reserve_write(self, installation: int, *, notifies: bool) -> float:
        """Book one write, or say how long to wait."""
        with self._lock:
            now, booked = self._clock(), self._writes.setdefault(installation, [])
            write_gap, notify_gap = self._gaps
            allowed = [self._holds.get(installation, -math.inf)]
            allowed += [at + write_gap for at, _ in booked]
            allowed += [at + notify_gap for at, loud in booked if loud and notifies]
            for span, cap in self._caps:
                allowed += [at + span for at, _ in booked[-cap : len(booked) - cap + 1]] if len(booked) >= cap else []
            wait = max(allowed) - now
            if wait > 0:
                return wait
            booked.append((now, notifies))
            return 0.0

    def hold_writes(self, installation: int, after_s: float) -> None:
        """GitHub asked to wait."""
        with self._lock:
            self._holds[installation] = max(self._holds.get(installation, -math.inf), self._clock() + after_s)

    # --- figures -------------------------------------------------------------------------------------------------------------

    def usage(self, since: datetime, *, repository: str | None = None, requester: str | None = None) -> Usage:
        """What was used since a moment."""
        with self._lock:
            ours = {
                each.run.id: each.run
                for each in self._fitting(repository, None, None, ())
                if requester in {None, each.run.request.requester}
            }
            counted = [run for run in ours.values() if _counts(run, since)]
            usd = sum(cost.usd for cost in self._costs if cost.run in ours and cost.at >= since.timestamp())
            return Usage(runs=len(counted), seconds=sum(run.seconds for run in counted), usd=usd)

    def note_cost(self, run: str, *, calls: int = 0, input_tokens: int = 0, output_tokens: int = 0, usd: float = 0.0) -> None:
        """Add what a model cost."""
        with self._lock:
            if run in self._runs:
                self._costs.append(_Cost(run, self._clock(), usd, calls, (input_tokens, output_tokens)))

    def switches(self) -> dict[str, str]:
        """The kill switches that are thrown."""
        with self._lock:
            return dict(self._switches)

    def set_switch(self, name: str, reason: str | None) -> None:
        """Throw a switch, or take it back."""
        with self._lock:
            if reason is None:
                self._switches.pop(name, None)
            else:
                self._switches[name] = reason

    def counts(self) -> dict[str, int]:
        """Figures for the metrics page; every state is there, verdicts as far as there are any."""
        with self._lock:
            figures = {f"deliveries.{state}": 0 for state in ("waiting", "handling", "handled", "failed")}
            figures |= {f"runs.{state}": 0 for state in RunState}
            names = [f"deliveries.{each.state}" for each in self._deliveries.values()]
            names += [f"runs.{each.run.state}" for each in self._runs.values()]
            names += [f"verdicts.{each.run.verdict}" for each in self._runs.values() if each.run.verdict]
            for name in names:
                figures[name] = figures.get(name, 0) + 1
            return figures

    def prune(self, before: datetime) -> int:
        """Forget what is over."""
        with self._lock:
            then = before.timestamp()
            self._deliveries = {
                guid: each
                for guid, each in self._deliveries.items()
                if each.state not in {"handled", "failed"} or each.finished_at >= then
            }
            old = [
                id_
                for id_, each in self._runs.items()
                if each.run.state in _OVER and each.run.finished_at is not None and each.run.finished_at < before
            ]
            for id_ in old:
                del self._runs[id_]
            self._costs = [cost for cost in self._costs if cost.run in self._runs]
            self._writes = {key: [each for each in booked if each[0] >= then] for key, booked in self._writes.items()}
            return len(old)

    def close(self) -> None:
        """Nothing to let go of."""


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _attribute(run: Run, name: str) -> object:
    return run.request.repository.full_name if name == "repository" else getattr(run.request, name)


def _counts(run: Run, since: datetime) -> bool:
    """A run counts when it began since, when it is queued, or when it was asked for since and waits for an approval."""
    if run.started_at is not None:
        return run.started_at >= since
    return run.state is RunState.QUEUED or (run.state is RunState.WAITING and run.created_at >= since)
