"""Runs: asked for, found, counted, approved and cancelled."""

import secrets
from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import case, func, insert, select, update
from typing_extensions import override

from bot.adapters.store.part import WHOLE, SqlPart, as_run, one, values
from bot.adapters.store.tables import requests, runs
from bot.models.run import LIVE, NewRun, Run, RunState, approval_hash
from bot.service import db_text
from bot.service.ports.store import AppStore

_c = runs.c
_UNBEGUN = (RunState.WAITING.value, RunState.QUEUED.value)
_BUSY = (RunState.QUEUED.value, RunState.RUNNING.value)


class SqlRuns(SqlPart, AppStore):
    """Runs: added, found, approved and cancelled."""

    @override
    def add_run(self, new: NewRun) -> tuple[Run, bool]:
        id_, body = secrets.token_hex(16), db_text.json(new)
        same = WHOLE.where(_c.delivery == new.delivery, _c.ordinal == new.ordinal)
        with self._db.writing() as connection:
            now = self._clock()
            asked = now if new.asked_at is None else new.asked_at.timestamp()
            times = {"offered_at": now, "created_at": now, "asked_at": asked}
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
        found = WHOLE.order_by(_c.seq.desc()).limit(limit)
        found = found.filter_by(
            **_given(repository=repository, number=number, installation=installation, plan=plan)
        )
        if states:
            found = found.where(_c.state.in_(values(states)))
        return tuple(map(as_run, self._rows(found)))

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
            "approved_by": db_text.line(by),
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
            **_given(id=run, repository=repository, number=number, installation=installation)
        )
        if before is not None:
            live = live.where(_c.asked_at <= before.timestamp())
        with self._db.writing() as connection:
            ids = connection.scalars(live).all()
            first = case((_c.cancelled_by == "", db_text.line(by)), else_=_c.cancelled_by)
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


def _given(**wanted: str | int | None) -> dict[str, str | int]:
    return {name: value for name, value in wanted.items() if value is not None}


def _fresh(new: NewRun) -> dict[str, object]:
    said = (
        "owner",
        "approved_by",
        "cancelled_by",
        "stage",
        "progress",
        "verdict",
        "patch",
        "error",
    )
    return {
        **dict.fromkeys(said, ""),
        "delivery": new.delivery,
        "ordinal": new.ordinal,
        "installation": new.installation,
        "repository": new.repository.full_name,
        "number": new.number,
        "requester": new.requester,
        "device": new.device,
        "state": new.state.value,
        "planned": int(new.state is RunState.WAITING),
        **dict.fromkeys(("turn", "takes"), 0),
        **dict.fromkeys(("not_before", "lease_until", "seconds"), 0.0),
    }
