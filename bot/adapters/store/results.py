"""What a run records while it works: attempts with their scripts and logs, exchanges with models,
their cost, and the report.
"""

from sqlalchemy import Executable, delete, insert, select, update
from typing_extensions import override

from bot.adapters.store.leases import held
from bot.adapters.store.part import SqlPart
from bot.adapters.store.tables import attempts, costs, exchanges, reports, runs
from bot.models.attempt import Attempt, Script
from bot.models.dialogue import Exchange
from bot.models.report import Report
from bot.models.run import RunState
from bot.service import db_text
from bot.service.ports.store import ResultStore

_c = attempts.c


class SqlResults(SqlPart, ResultStore):
    """The results of runs. Whoever writes must hold the run's lease."""

    @override
    def note_attempt(
        self, run: str, owner: str, attempt: Attempt, script: Script, log: str
    ) -> bool:
        body = {"body": db_text.json(attempt), "script": db_text.json(script)}
        row = {"run": run, "number": attempt.number, **body, "log": db_text.log(log)}
        return self._leased(run, owner, self._db.insert_once(attempts, row))

    @override
    def attempts(self, run: str) -> tuple[Attempt, ...]:
        found = select(_c.body).where(_c.run == run).order_by(_c.number)
        return tuple(Attempt.model_validate_json(body) for (body,) in self._rows(found))

    @override
    def script(self, run: str, number: int) -> Script | None:
        body = self._value(select(_c.script).where(_c.run == run, _c.number == number))
        return None if body is None else Script.model_validate_json(body)

    @override
    def log(self, run: str, number: int) -> str:
        return self._value(select(_c.log).where(_c.run == run, _c.number == number)) or ""

    @override
    def forget_attempts(self, run: str, owner: str, above: int) -> bool:
        return self._leased(run, owner, delete(attempts).where(_c.run == run, _c.number > above))

    @override
    def note_exchange(self, run: str, owner: str, exchange: Exchange) -> bool:
        row = {"run": run, "number": exchange.number, "body": db_text.json(exchange)}
        return self._leased(run, owner, self._db.insert_once(exchanges, row))

    @override
    def exchanges(self, run: str) -> tuple[Exchange, ...]:
        found = select(exchanges.c.body).where(exchanges.c.run == run).order_by(exchanges.c.number)
        return tuple(Exchange.model_validate_json(body) for (body,) in self._rows(found))

    @override
    def put_report(self, run: str, owner: str, report: Report) -> bool:
        state = {"state": RunState.REPORTED.value, "verdict": report.verdict.kind}
        return self._leased(
            run,
            owner,
            self._db.upsert(reports, {"run": run, "body": db_text.json(report)}),
            update(runs).where(runs.c.id == run).values(**state),
            delete(exchanges).where(exchanges.c.run == run),  # only an unfinished run needs them
        )

    @override
    def report(self, run: str) -> Report | None:
        body = self._value(select(reports.c.body).where(reports.c.run == run))
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
        # A pruned run's cost is not counted.
        known = select(runs.c.id).where(runs.c.id == run).with_for_update(key_share=True)
        with self._db.writing() as connection:
            if connection.execute(known).first():
                row = {"run": run, "calls": calls, **tokens, "usd": usd, "at": self._clock()}
                connection.execute(insert(costs).values(**row))

    def _leased(self, run: str, owner: str, *statements: Executable) -> bool:
        """Execute statements in one transaction if this owner holds the run's lease."""
        with self._db.writing() as connection:
            if not held(connection, run, owner):
                return False
            for statement in statements:
                connection.execute(statement)
            return True
