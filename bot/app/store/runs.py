"""Runs: asked for, counted, approved and cancelled; and the leases on them."""

import secrets
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from pydantic import TypeAdapter
from sqlalchemy import (
    ColumnElement,
    Connection,
    Executable,
    Integer,
    Row,
    case,
    cast,
    delete,
    func,
    insert,
    select,
    update,
)
from typing_extensions import override

from bot.app.ports import AppStore, Beat
from bot.app.store import database
from bot.app.store.deliveries import WHOLE, SqlPart, as_run, one, values
from bot.app.store.tables import costs, journal, reports, requests, runs, usage
from bot.kernel.journal import E, EntryKind, RunLog
from bot.kernel.report import IssueReport, RequestedReport, package_under_test
from bot.kernel.run import (
    LIVE,
    NewRun,
    Repository,
    Run,
    RunState,
    VerdictCount,
    approval_hash,
)

# Runs: asked for, found, counted, approved and cancelled.

_c = runs.c
_REPORTS: TypeAdapter[RequestedReport] = TypeAdapter(RequestedReport)
_UNBEGUN = (RunState.WAITING.value, RunState.QUEUED.value)
_BUSY = (RunState.QUEUED.value, RunState.RUNNING.value)
_DAY_S = 86_400.0


class SqlRuns(SqlPart, AppStore):
    """Runs: added, found, approved and cancelled."""

    @override
    def add_run(self, new: NewRun) -> tuple[Run, bool]:
        id_, body = secrets.token_hex(16), database.json(new)
        same = WHOLE.where(_c.delivery == new.delivery, _c.ordinal == new.ordinal)
        with self._db.writing() as connection:
            now = self._clock()
            time = now if new.asked_at is None else new.asked_at.timestamp()
            times = {"offered_at": now, "created_at": now, "asked_at": time}
            row = {**_fresh(new), **times, "id": id_, "plan": approval_hash(id_, new.plan)}
            once = self._db.insert(runs).on_conflict_do_nothing(
                index_elements=[_c.delivery, _c.ordinal]
            )
            added = connection.execute(once.values(**row).returning(_c.id)).scalar() is not None
            if added:
                connection.execute(insert(requests).values(run=id_, body=body))
            return as_run(connection.execute(same).one()), added

    @override
    def run(self, run: str) -> Run | None:
        with self._db.reading() as connection:
            return one(connection, run)

    @override
    def runs(
        self,
        *,
        repository: str | None = None,
        number: int | None = None,
        installation: int | None = None,
        plan: str | None = None,
        states: Sequence[RunState] = (),
        limit: int = 50,
    ) -> tuple[Run, ...]:
        statement = WHOLE.order_by(_c.seq.desc()).limit(limit)
        statement = statement.filter_by(
            **_without_none(
                repository=repository, number=number, installation=installation, plan=plan
            )
        )
        if states:
            statement = statement.where(_c.state.in_(values(states)))
        return tuple(map(as_run, self._rows(statement)))

    @override
    def history(
        self,
        repository: Repository,
        *,
        verdict: str | None = None,
        before: str | None = None,
        limit: int = 25,
    ) -> tuple[Run, ...]:
        statement = WHOLE.where(_is_listed(repository)).order_by(_c.seq.desc()).limit(limit)
        if verdict is not None:
            statement = statement.where(_c.verdict == verdict)
        if before is not None:
            last = select(_c.seq).where(_c.id == before).scalar_subquery()
            statement = statement.where(_c.seq < last)
        return tuple(map(as_run, self._rows(statement)))

    @override
    def verdict_counts(self, repository: Repository) -> tuple[VerdictCount, ...]:
        days = _c.created_at / _DAY_S
        day = cast(days if self._db.sqlite else func.floor(days), Integer).label("day")
        grouped = select(day, _c.verdict, func.count().label("runs")).where(_is_listed(repository))
        rows = self._rows(grouped.group_by(day, _c.verdict).order_by(day, _c.verdict))
        return tuple(
            VerdictCount(
                day=datetime.fromtimestamp(row.day * _DAY_S, UTC).date(),
                verdict=row.verdict,
                runs=row.runs,
            )
            for row in rows
        )

    @override
    def unlist(self, repository: str, number: int | None, *, before: datetime) -> None:
        mine = update(runs).filter_by(**_without_none(repository=repository, number=number))
        with self._db.writing() as connection:
            older = mine.where(_c.asked_at <= before.timestamp())
            connection.execute(older.values(audience="link"))

    @override
    def ahead(self, run: str) -> int:
        mine = runs.alias("mine")
        older = select(func.count()).select_from(
            runs.join(mine, (mine.c.id == run) & (mine.c.device == _c.device))
        )
        return self._value(older.where(_c.state.in_(_BUSY), _c.seq < mine.c.seq)) or 0

    @override
    def approve(self, run: str, by: str) -> Run | None:
        waiting = update(runs).where(_c.id == run, _c.state == RunState.WAITING.value)
        change = {
            "state": RunState.QUEUED.value,
            "approved_by": database.line(by),
            "offered_at": self._clock(),
        }
        with self._db.writing() as connection:
            changed = connection.execute(waiting.values(**change)).rowcount
            return one(connection, run) if changed else None

    @override
    def cancel(
        self,
        by: str,
        *,
        run: str | None = None,
        repository: str | None = None,
        number: int | None = None,
        installation: int | None = None,
        before: datetime | None = None,
    ) -> tuple[Run, ...]:
        live = select(_c.id).where(_c.state.in_(values(LIVE))).order_by(_c.seq).with_for_update()
        live = live.filter_by(
            **_without_none(id=run, repository=repository, number=number, installation=installation)
        )
        if before is not None:
            live = live.where(_c.asked_at <= before.timestamp())
        with self._db.writing() as connection:
            ids = connection.scalars(live).all()
            first = case((_c.cancelled_by == "", database.line(by)), else_=_c.cancelled_by)
            connection.execute(update(runs).where(_c.id.in_(ids)).values(cancelled_by=first))
            again = {
                "state": "queued",
                "turn": _c.turn + 1,
                "offered_at": self._clock(),
                "not_before": 0.0,
            }
            connection.execute(
                update(runs).where(_c.id.in_(ids), _c.state.in_(_UNBEGUN)).values(**again)
            )
            rows = connection.execute(WHOLE.where(_c.id.in_(ids)).order_by(_c.seq))
            return tuple(map(as_run, rows))


def _is_listed(repository: Repository) -> ColumnElement[bool]:
    audiences = ("everyone", "readers") if repository.private else ("everyone",)
    return (_c.repository_id == repository.id) & _c.audience.in_(audiences)


def _without_none(**values: str | int | None) -> dict[str, str | int]:
    return {name: value for name, value in values.items() if value is not None}


def _fresh(new: NewRun) -> dict[str, object]:
    fields = (
        "owner",
        "approved_by",
        "cancelled_by",
        "stage",
        "progress",
        "verdict",
        "patch",
        "package",
        "error",
    )
    return {
        **dict.fromkeys(fields, ""),
        "delivery": new.delivery,
        "ordinal": new.ordinal,
        "installation": new.installation,
        "repository": new.repository.full_name,
        "repository_id": new.repository.id,
        "audience": "readers" if new.repository.private else "everyone",
        "number": new.number,
        "requester": new.requester,
        "device": new.device,
        "state": new.state.value,
        "planned": int(new.state is RunState.WAITING),
        **dict.fromkeys(("turn", "takes"), 0),
        **dict.fromkeys(("not_before", "lease_until", "seconds"), 0.0),
    }


# Leases on runs, one live lease per issue, kept by heartbeats, lost to another worker without;
# and what a run records while it holds one: its journal, the cost of models, and the report.

_STATE_AFTER = {
    RunState.QUEUED.value: RunState.RUNNING.value,
    RunState.REPORTED.value: RunState.REPORTED.value,
}
_FREE: Mapping[str, Any] = {"owner": "", "lease_until": 0.0}
_j = journal.c


class SqlLeases(SqlPart, AppStore):
    """Leases on runs. An empty stage or progress in a heartbeat keeps the earlier one."""

    @override
    def take_run(self, run: str, owner: str, lease_s: float) -> Run | None:
        with self._db.writing() as connection:
            issue = _issue(connection, run)
            now = self._clock()
            mine = next((row for row in issue if row.id == run), None)
            if (
                mine is None
                or mine.state not in _STATE_AFTER
                or mine.not_before > now
                or any(_live(row, now) for row in issue)
            ):
                return None
            lease = {
                "owner": owner,
                "lease_until": now + lease_s,
                "state": _STATE_AFTER[mine.state],
                "takes": _c.takes + 1,
            }
            # A run that was cancelled before it began uses up nobody's quota.
            began = mine.started_at or (None if mine.cancelled_by else now)
            connection.execute(update(runs).where(_c.id == run).values(**lease, started_at=began))
            return one(connection, run)

    @override
    def beat(
        self,
        run: str,
        owner: str,
        lease_s: float,
        stage: str = "",
        progress: str = "",
        seconds: float = 0.0,
    ) -> Beat:
        with self._db.writing() as connection:
            issue = _issue(connection, run)
            now = self._clock()
            mine = next((row for row in issue if row.id == run and row.owner == owner), None)
            others = any(_live(row, now) for row in issue if row.id != run)
            if mine is None or (not _live(mine, now) and others):
                return Beat(lost=True)
            texts = {"stage": database.line(stage), "progress": database.line(progress)}
            change = {"lease_until": now + lease_s, "seconds": _c.seconds + seconds}
            change |= {name: words for name, words in texts.items() if words}
            connection.execute(update(runs).where(_c.id == run).values(**change))
            return Beat(cancel=bool(mine.cancelled_by))

    @override
    def finish_run(self, run: str, owner: str, error: str = "") -> bool:
        with self._db.writing() as connection:
            row = lock_owned(connection, run, owner)
            if not row:
                return False
            failed = error and row.state != RunState.REPORTED.value
            state = RunState.FAILED if failed else RunState.FINISHED
            over = {**_FREE, "state": state.value, "error": database.line(error)}
            change = update(runs).where(_c.id == run)
            connection.execute(change.values(**over, finished_at=self._clock()))
            return True

    @override
    def defer_run(
        self,
        run: str,
        owner: str,
        after_s: float,
        *,
        counted: bool = True,
        refused: bool = False,
    ) -> int:
        with self._db.writing() as connection:
            row = lock_owned(connection, run, owner)
            if row:
                until = self._clock() + after_s
                state = RunState.QUEUED.value if row.state == RunState.RUNNING.value else row.state
                back = {
                    **_FREE,
                    "state": state,
                    "turn": _c.turn + 1,
                    "takes": _c.takes if counted else _c.takes - 1,
                    "refused": int(refused),
                    "not_before": until,
                    "offered_at": until,
                }
                connection.execute(update(runs).where(_c.id == run).values(**back))
            return connection.execute(select(_c.turn).where(_c.id == run)).scalar() or 0


def _patch(report: RequestedReport) -> str:
    if not isinstance(report, IssueReport) or report.repair is None or not report.repair.patch:
        return ""
    return "proven" if report.repair.proven else "unproven"


def lock_owned(connection: Connection, run: str, owner: str) -> Row[*tuple[Any, ...]] | None:
    """The row of a run that this owner holds, locked until the end of the transaction; None when
    the lease was lost.
    """
    mine = select(_c.id, _c.state).where(_c.id == run, _c.owner == owner, _c.owner != "")
    return connection.execute(mine.with_for_update()).first()


def _issue(connection: Connection, run: str) -> Sequence[Row[*tuple[Any, ...]]]:
    """The live runs of a run's issue, locked in one order everywhere: whoever leases one of them
    has seen all of them.
    """
    where = connection.execute(select(_c.repository, _c.number).where(_c.id == run)).first()
    if where is None:
        return ()
    row = select(
        _c.id, _c.state, _c.owner, _c.lease_until, _c.not_before, _c.started_at, _c.cancelled_by
    )
    same = row.where(
        _c.repository == where.repository, _c.number == where.number, _c.state.in_(values(LIVE))
    )
    return connection.execute(same.order_by(_c.seq).with_for_update()).all()


def _live(row: Row[*tuple[Any, ...]], now: float) -> bool:
    return bool(row.owner) and row.lease_until > now


class SqlResults(SqlPart, AppStore):
    """The results of runs. Whoever writes must hold the run's lease."""

    @override
    def append_entry(self, run: str, owner: str, kind: EntryKind[E], entry: E) -> bool:
        row = {"run": run, "kind": kind.name, "key": kind.key(entry)}
        if isinstance(entry, RunLog):
            entry = entry.model_copy(update={"text": database.log(entry.text)})
        first = select(func.min(_j.seq)).filter_by(**row).scalar_subquery()
        return self._leased(
            run,
            owner,
            delete(journal).where(_j.run == run, _j.kind == kind.name, _j.seq >= first),
            insert(journal).values(
                **row, body=database.json(entry), until_report=kind.until_report
            ),
        )

    @override
    def entries(
        self, run: str, kind: EntryKind[E], *, key: str | None = None, last: int | None = None
    ) -> tuple[E, ...]:
        newest = select(_j.body).where(_j.run == run, _j.kind == kind.name)
        if key is not None:
            newest = newest.where(_j.key == key)
        rows = self._rows(newest.order_by(_j.seq.desc()).limit(last))
        return tuple(kind.model.model_validate_json(body) for (body,) in reversed(rows))

    @override
    def put_report(self, run: str, owner: str, report: RequestedReport) -> bool:
        state = {
            "state": RunState.REPORTED.value,
            "verdict": report.verdict.kind,
            "patch": _patch(report),
            "package": database.line(package_under_test(report)),
        }
        return self._leased(
            run,
            owner,
            self._db.upsert(reports, {"run": run, "body": database.json(report)}),
            update(runs).where(runs.c.id == run).values(**state),
            delete(journal).where(_j.run == run, _j.until_report),
        )

    @override
    def report(self, run: str) -> RequestedReport | None:
        fits = func.length(reports.c.body) <= database.MOST_ROW
        body = self._value(select(reports.c.body).where(reports.c.run == run, fits))
        return None if body is None else _REPORTS.validate_json(body)

    @override
    def note_cost(
        self,
        run: str,
        *,
        calls: int = 0,
        input_tokens: int = 0,
        output_tokens: int = 0,
        usd: float = 0.0,
    ) -> None:
        tokens = {"input_tokens": input_tokens, "output_tokens": output_tokens}
        statement = update(usage).where(usage.c.run == run).values(usd=usage.c.usd + usd)
        lock_statement = select(runs.c.id).where(runs.c.id == run).with_for_update(key_share=True)
        with self._db.writing() as connection:
            if connection.execute(lock_statement).first():
                row = {"run": run, "calls": calls, **tokens, "usd": usd, "at": self._clock()}
                connection.execute(insert(costs).values(**row))
            else:  # a pruned run's cost is not counted, an erased one's is
                connection.execute(statement)

    def _leased(self, run: str, owner: str, *statements: Executable) -> bool:
        with self._db.writing() as connection:
            if not lock_owned(connection, run, owner):
                return False
            for statement in statements:
                connection.execute(statement)
            return True
