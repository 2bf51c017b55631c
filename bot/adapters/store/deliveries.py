"""Deliveries: claimed once, leased by one worker at a time."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from sqlalchemy import ColumnElement, and_, or_, select, update
from sqlalchemy.dialects import sqlite
from sqlalchemy.sql.dml import ReturningInsert

from bot.adapters.store.part import Part
from bot.adapters.store.tables import deliveries
from bot.models.delivery import Delivery
from bot.service import keep
from bot.service.ports import Claim

_c = deliveries.c
_OPEN = {"state": "waiting", "error": "", "owner": "", "lease_until": 0.0, "finished_at": None}
_FRESH = {**_OPEN, "tries": 0, "turn": 0, "not_before": 0.0}


class Deliveries(Part):
    """The part of the store that the webhook and the workers meet at."""

    def claim(self, deliveries: Sequence[Delivery]) -> tuple[Claim, ...]:
        """Keep deliveries, in one transaction and one statement: the webhook's answer waits for this."""
        first: dict[str, Delivery] = {}
        for each in deliveries:
            first.setdefault(keep.text(each.guid), each)
        bodies = {guid: keep.json(first[guid]) for guid in sorted(first)}  # in one order everywhere: no deadlock
        tries = self._keep(bodies) if bodies else {}
        words: list[Claim] = []
        for each in deliveries:
            tried = tries.pop(keep.text(each.guid), None)
            words.append(_word(tried))
        return tuple(words)

    def claim_now(self, deliveries: Sequence[Delivery]) -> tuple[Claim, ...] | None:
        """The same for one delivery on SQLite, in this very thread and waiting for nobody; None when nothing was kept."""
        if self._db.at_once is None or len(deliveries) != 1:
            return None
        [delivery] = deliveries
        row = self._row(self._clock(), keep.text(delivery.guid), keep.json(delivery))
        sql, names, constants = self._keeping_sql
        kept = self._db.at_once.run(sql, [row[name] if name in row else constants[name] for name in names])
        return None if kept is None else (_word(kept[0][1] if kept else None),)

    @cached_property
    def _keeping(self) -> ReturningInsert[Any]:
        """Keeps new deliveries and opens failed ones again. Made once: making it takes as long as running it."""
        new = self._db.insert(deliveries)
        again: dict[str, Any] = {name: new.excluded[name] for name in (*_OPEN, "body", "offered_at")}
        again |= {"not_before": new.excluded.offered_at, "tries": _c.tries + 1, "turn": _c.turn + 1}
        kept = new.on_conflict_do_update(index_elements=[_c.guid], set_=again, where=_c.state == "failed")
        return kept.returning(_c.guid, _c.tries)

    @cached_property
    def _keeping_sql(self) -> tuple[str, Sequence[str], dict[str, Any]]:
        """The same statement as SQLite itself takes it, the names of its parameters in order, and those that never change."""
        made = self._keeping.compile(dialect=sqlite.dialect(), column_keys=list(self._row(0.0, "", "")))
        return made.string, made.positiontup or (), made.params

    def _keep(self, bodies: dict[str, str]) -> dict[str, int]:
        """How often each had failed before, of those that are open now because of this call."""
        now = self._clock()
        rows = [self._row(now, guid, body) for guid, body in bodies.items()]
        with self._db.writing() as connection:
            return {row.guid: row.tries for row in connection.execute(self._keeping, rows)}

    @staticmethod
    def _row(now: float, guid: str, body: str) -> dict[str, Any]:
        return {**_FRESH, "offered_at": now, "guid": guid, "body": body}

    def take_delivery(self, guid: str, owner: str, lease_s: float) -> Delivery | None:
        """Lease a delivery."""
        with self._db.writing() as connection:
            now = self._clock()
            waits = and_(_c.state == "waiting", _c.not_before <= now)
            left = and_(_c.state == "handling", _c.lease_until <= now)
            take = update(deliveries).where(_c.guid == guid, or_(waits, left))
            taken = take.values(state="handling", owner=owner, lease_until=now + lease_s).returning(_c.body)
            body = connection.execute(taken).scalar()
        return None if body is None else Delivery.model_validate_json(body)

    def renew_delivery(self, guid: str, owner: str, lease_s: float) -> bool:
        """Renew the lease of a delivery."""
        return self._held_set(guid, owner, lambda now: {"lease_until": now + lease_s}) is not None

    def finish_delivery(self, guid: str, owner: str, error: str = "") -> bool:
        """Handled, or failed."""
        state = {"state": "failed" if error else "handled", "error": keep.line(error), "owner": "", "lease_until": 0.0}
        return self._held_set(guid, owner, lambda now: {**state, "finished_at": now}) is not None

    def defer_delivery(self, guid: str, owner: str, after_s: float) -> int:
        """Give a delivery back."""
        back = {"state": "waiting", "owner": "", "lease_until": 0.0, "turn": _c.turn + 1}
        later = self._held_set(guid, owner, lambda now: {**back, "not_before": now + after_s, "offered_at": now + after_s})
        if later is not None:
            return later
        with self._db.reading() as connection:
            return connection.execute(select(_c.turn).where(_c.guid == guid)).scalar() or 0

    def seen(self, guids: Sequence[str]) -> frozenset[str]:
        """Those that need no redelivery."""
        known = {keep.text(guid): guid for guid in guids}
        found = select(_c.guid).where(_c.guid.in_(list(known)), _c.state != "failed")
        with self._db.reading() as connection:
            return frozenset(known[guid] for guid in connection.scalars(found))

    def _held_set(self, guid: str, owner: str, values: Any) -> int | None:
        """Change a delivery that this owner holds; its turn, None when it is not held."""
        held: ColumnElement[bool] = and_(_c.guid == guid, _c.state == "handling", _c.owner == owner)
        with self._db.writing() as connection:
            change = update(deliveries).where(held).values(**values(self._clock())).returning(_c.turn)
            turn: int | None = connection.execute(change).scalar()
            return turn


def _word(tried: int | None) -> Claim:
    """How often a delivery had failed before → what its sender is told; None stands for one that was left as it was."""
    return "known" if tried is None else "new" if tried == 0 else "again"
