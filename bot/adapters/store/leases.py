"""Leases on runs, one live lease per issue, kept by heartbeats, lost to another worker without;
and what a run records while it holds one: its journal, the cost of models, and the report.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Executable, Row, delete, func, insert, select, update
from typing_extensions import override

from bot.adapters.store.part import SqlPart, one, values
from bot.adapters.store.tables import costs, journal, reports, runs, usage
from bot.models.journal import E, EntryKind, RunLog
from bot.models.report import Report
from bot.models.run import LIVE, Run, RunState
from bot.service import db_text
from bot.service.ports.store import AppStore, Beat

_c = runs.c
_TAKEN = {
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
                or mine.state not in _TAKEN
                or mine.not_before > now
                or any(_live(row, now) for row in issue)
            ):
                return None
            lease = {
                "owner": owner,
                "lease_until": now + lease_s,
                "state": _TAKEN[mine.state],
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
            said = {"stage": db_text.line(stage), "progress": db_text.line(progress)}
            change = {"lease_until": now + lease_s, "seconds": _c.seconds + seconds}
            change |= {name: words for name, words in said.items() if words}
            connection.execute(update(runs).where(_c.id == run).values(**change))
            return Beat(cancel=bool(mine.cancelled_by))

    @override
    def finish_run(self, run: str, owner: str, error: str = "") -> bool:
        with self._db.writing() as connection:
            row = held(connection, run, owner)
            if not row:
                return False
            failed = error and row.state != RunState.REPORTED.value
            state = RunState.FAILED if failed else RunState.FINISHED
            over = {**_FREE, "state": state.value, "error": db_text.line(error)}
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
            row = held(connection, run, owner)
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


def _patch(report: Report) -> str:
    if report.repair is None or not report.repair.patch:
        return ""
    return "proven" if report.repair.proven else "unproven"


def held(connection: Connection, run: str, owner: str) -> Row[*tuple[Any, ...]] | None:
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
            entry = entry.model_copy(update={"text": db_text.log(entry.text)})
        first = select(func.min(_j.seq)).filter_by(**row).scalar_subquery()
        return self._leased(
            run,
            owner,
            delete(journal).where(_j.run == run, _j.kind == kind.name, _j.seq >= first),
            insert(journal).values(**row, body=db_text.json(entry), until_report=kind.until_report),
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
    def put_report(self, run: str, owner: str, report: Report) -> bool:
        state = {
            "state": RunState.REPORTED.value,
            "verdict": report.verdict.kind,
            "patch": _patch(report),
        }
        return self._leased(
            run,
            owner,
            self._db.upsert(reports, {"run": run, "body": db_text.json(report)}),
            update(runs).where(runs.c.id == run).values(**state),
            delete(journal).where(_j.run == run, _j.until_report),
        )

    @override
    def report(self, run: str) -> Report | None:
        fits = func.length(reports.c.body) <= db_text.MOST_ROW
        body = self._value(select(reports.c.body).where(reports.c.run == run, fits))
        return None if body is None else Report.model_validate_json(body)

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
        spent = update(usage).where(usage.c.run == run).values(usd=usage.c.usd + usd)
        known = select(runs.c.id).where(runs.c.id == run).with_for_update(key_share=True)
        with self._db.writing() as connection:
            if connection.execute(known).first():
                row = {"run": run, "calls": calls, **tokens, "usd": usd, "at": self._clock()}
                connection.execute(insert(costs).values(**row))
            else:  # a pruned run's cost is not counted, an erased one's is
                connection.execute(spent)

    def _leased(self, run: str, owner: str, *statements: Executable) -> bool:
        with self._db.writing() as connection:
            if not held(connection, run, owner):
                return False
            for statement in statements:
                connection.execute(statement)
            return True
