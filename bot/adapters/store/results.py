"""What a run leaves behind while it works: attempts with their scripts and logs, what a model said and cost, the report."""

from __future__ import annotations

from sqlalchemy import delete, insert, select, update

from bot.adapters.store.leases import held
from bot.adapters.store.part import Part
from bot.adapters.store.tables import attempts, costs, exchanges, reports, runs
from bot.models.attempt import Attempt, Script
from bot.models.dialogue import Exchange
from bot.models.report import Report
from bot.models.run import RunState
from bot.service import keep

_c = attempts.c


class Results(Part):
    """The part of the store that a recorder meets."""

    def note_attempt(self, run: str, owner: str, attempt: Attempt, script: Script, log: str) -> bool:
        """Keep one attempt; the first of a number stays."""
        row = {"run": run, "number": attempt.number}
        row |= {"body": keep.json(attempt), "script": keep.json(script), "log": keep.log(log)}
        with self._db.writing() as connection:
            if not held(connection, run, owner):
                return False
            once = self._db.insert(attempts).on_conflict_do_nothing(index_elements=[_c.run, _c.number])
            connection.execute(once.values(**row))
            return True

    def attempts(self, run: str) -> tuple[Attempt, ...]:
        """The attempts of a run."""
        found = select(_c.body).where(_c.run == run).order_by(_c.number)
        with self._db.reading() as connection:
            return tuple(Attempt.model_validate_json(body) for body in connection.scalars(found))

    def script(self, run: str, number: int) -> Script | None:
        """The program of one attempt."""
        with self._db.reading() as connection:
            body = connection.execute(select(_c.script).where(_c.run == run, _c.number == number)).scalar()
        return None if body is None else Script.model_validate_json(body)

    def log(self, run: str, number: int) -> str:
        """The log of one attempt."""
        with self._db.reading() as connection:
            return connection.execute(select(_c.log).where(_c.run == run, _c.number == number)).scalar() or ""

    def forget_attempts(self, run: str, owner: str, above: int) -> bool:
        """Drop attempts with a higher number."""
        with self._db.writing() as connection:
            if not held(connection, run, owner):
                return False
            connection.execute(delete(attempts).where(_c.run == run, _c.number > above))
            return True

    def note_exchange(self, run: str, owner: str, exchange: Exchange) -> bool:
        """Keep one exchange; the first of a number stays."""
        with self._db.writing() as connection:
            if not held(connection, run, owner):
                return False
            once = self._db.insert(exchanges).on_conflict_do_nothing(index_elements=[exchanges.c.run, exchanges.c.number])
            connection.execute(once.values(run=run, number=exchange.number, body=keep.json(exchange)))
            return True

    def exchanges(self, run: str) -> tuple[Exchange, ...]:
        """The exchanges of a run."""
        found = select(exchanges.c.body).where(exchanges.c.run == run).order_by(exchanges.c.number)
        with self._db.reading() as connection:
            return tuple(Exchange.model_validate_json(body) for body in connection.scalars(found))

    def put_report(self, run: str, owner: str, report: Report) -> bool:
        """RUNNING becomes REPORTED; what a model was asked is needed no longer."""
        body = keep.json(report)
        with self._db.writing() as connection:
            if not held(connection, run, owner):
                return False
            new = self._db.insert(reports).values(run=run, body=body)
            connection.execute(new.on_conflict_do_update(index_elements=[reports.c.run], set_={"body": body}))
            said = {"state": RunState.REPORTED.value, "verdict": report.verdict.kind}
            connection.execute(update(runs).where(runs.c.id == run).values(**said))
            connection.execute(delete(exchanges).where(exchanges.c.run == run))
            return True

    def report(self, run: str) -> Report | None:
        """The report of a run."""
        with self._db.reading() as connection:
            body = connection.execute(select(reports.c.body).where(reports.c.run == run)).scalar()
        return None if body is None else Report.model_validate_json(body)

    def note_cost(self, run: str, *, calls: int = 0, input_tokens: int = 0, output_tokens: int = 0, usd: float = 0.0) -> None:
        """Add what a model cost; of a run that is no longer kept it is not counted."""
        row = {"run": run, "calls": calls, "input_tokens": input_tokens, "output_tokens": output_tokens, "usd": usd}
        with self._db.writing() as connection:
            if connection.execute(select(runs.c.id).where(runs.c.id == run).with_for_update(key_share=True)).first():
                connection.execute(insert(costs).values(**row, at=self._clock()))
