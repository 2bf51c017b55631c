"""Tables, addresses and errors of the store on a database."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, create_engine, event, text

from bot.app.ports import OurComment
from bot.app.store import SqlStore, database, tables
from bot.kernel.bug import Issue
from bot.kernel.errors import TransientError, UserError
from bot.kernel.journal import ATTEMPTS, EXCHANGES, LOGS, PROGRAMS, RunLog
from bot.kernel.run import Repository, RunState
from bot.kernel.training_types import Edit, Repair, RepairRequest
from bot.training.repair.trials import TRIALS
from tests.contract.samples import SCRIPT, attempt, delivery, exchange, new_run, report, trial
from tests.support.jobs import issue_job
from tests.support.postgres import postgres_server

ROOT = Path(__file__).resolve().parents[2]
MIGRATIONS = ROOT / "bot" / "app" / "store" / "migrations"
EDIT = Edit(parameter="learning_rate", kind="learning_rate", before="1", after="0.1", line=1)


@pytest.fixture(
    scope="module", params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)]
)
def fresh(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[], str]]:
    """Makes the address of an empty database."""
    if request.param == "postgres":
        with postgres_server() as server:
            yield server.fresh
    else:
        yield lambda: f"sqlite:///{tmp_path_factory.mktemp('store')}/reprise.db"


@pytest.fixture(scope="module")
def url(fresh: Callable[[], str]) -> str:
    return fresh()


def test_a_delivery_waits_for_one_answer_of_the_database(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A statement alone is a transaction: PostgreSQL need not be told of its begin and its end."""
    with closing(SqlStore(url)) as store:
        store.claim([delivery("first")])
        alone: list[bool] = []

        def note_commit(connection: Connection) -> None:
            alone.append(getattr(connection.connection.dbapi_connection, "autocommit", True))

        event.listen(store._db._engine, "commit", note_commit)
        assert store.claim([delivery("one")]) == ("new",)
        assert store.claim([delivery("two"), delivery("three")]) == ("new", "new")
    assert alone == ([True, True] if store._db.sqlite else [True, False])


def test_the_migrations_lead_to_the_tables_of_the_code(url: str) -> None:
    SqlStore(url).close()
    SqlStore(url).close()
    engine = create_engine(url)
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, tables.metadata) == []
        assert context.get_current_revision() == tables.REVISION
    engine.dispose()
    assert ScriptDirectory(str(MIGRATIONS)).get_current_head() == tables.REVISION


def upgraded_to(url: str, revision: str) -> Engine:
    """A database as an earlier version made it."""
    engine, config = create_engine(url), Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, revision)
    return engine


BEFORE_THE_JOURNAL = {
    "attempts": "run TEXT, number INTEGER, body TEXT, script TEXT, log TEXT",
    "exchanges": "run TEXT, number INTEGER, body TEXT",
    "trials": "seq INTEGER, run TEXT, body TEXT",
}


def insert_run(connection: Connection) -> None:
    """A row for run "r", in the columns that every version has."""
    words = "id, delivery, repository, requester, device, plan, state, owner, approved_by, cancelled_by, stage, progress, verdict, error"
    numbers = (
        "ordinal, installation, number, turn, offered_at, not_before, lease_until, takes, seconds"
    )
    columns = [*words.split(", "), *numbers.split(", "), "created_at"]
    given = dict.fromkeys(columns, 0) | dict.fromkeys(words.split(", "), "")
    given |= {"id": "r", "device": "cpu", "state": "finished", "created_at": 1_800_000_000}
    named = ", ".join(f":{name}" for name in columns)
    connection.execute(text(f"INSERT INTO runs ({', '.join(columns)}) VALUES ({named})"), given)


@pytest.mark.parametrize(
    ("found", "patch"),
    [
        (Repair(patch=(EDIT,), proven=True), "proven"),
        (Repair(patch=(EDIT,)), "unproven"),
        (Repair(), ""),
        (None, ""),
    ],
)
def test_a_database_of_the_version_before_is_filled_in(
    fresh: Callable[[], str], found: Repair | None, patch: str
) -> None:
    url, asked = (
        fresh(),
        issue_job(Issue(title="", body=""), repair=RepairRequest()),
    )
    new = new_run(job=asked if found is not None else issue_job(Issue(title='"repair":{', body="")))
    engine = upgraded_to(url, "0004")
    with engine.begin() as connection:
        insert_run(connection)
        stored = report().model_copy(update={"repair": found})
        for table, body in (("requests", new), ("reports", stored)):
            row = {"run": "r", "body": body.model_dump_json()}
            connection.execute(text(f"INSERT INTO {table} (run, body) VALUES (:run, :body)"), row)
    engine.dispose()
    store = SqlStore(url)
    run = store.run("r")
    assert run is not None
    assert run.patch == patch
    early, late = (datetime.fromtimestamp(1_800_000_000 + s, UTC) for s in (-1, 1))
    with store._db.writing() as connection:
        connection.execute(text("UPDATE runs SET state = 'queued'"))
    assert store.cancel("mona", before=early) == ()
    assert [each.id for each in store.cancel("mona", before=late)] == ["r"]
    store.close()


def test_attempts_exchanges_and_trials_of_an_earlier_version_are_in_the_journal(
    fresh: Callable[[], str],
) -> None:
    url = fresh()
    engine = upgraded_to(url, "0005")
    known = SCRIPT.digest
    with engine.begin() as connection:
        insert_run(connection)
        for number in (1, 2):
            body = attempt(number).model_copy(update={"script": known}).model_dump_json()
            row = {"number": number, "body": body, "script": SCRIPT.model_dump_json()}
            connection.execute(
                text(
                    "INSERT INTO attempts (run, number, body, script, log) "
                    "VALUES ('r', :number, :body, :script, 'it\nfails')"
                ),
                row,
            )
        asked, made = exchange(1, "why").model_dump_json(), trial(3, "died").model_dump_json()
        connection.execute(
            text("INSERT INTO exchanges (run, number, body) VALUES ('r', 1, :body)"),
            {"body": asked},
        )
        connection.execute(
            text("INSERT INTO trials (run, body) VALUES ('r', :body)"), {"body": made}
        )
    engine.dispose()
    store = SqlStore(url)
    assert [each.number for each in store.entries("r", ATTEMPTS)] == [1, 2]
    assert store.entries("r", PROGRAMS) == (SCRIPT,)
    assert store.entries("r", LOGS, key="2") == (RunLog(number=2, text="it\nfails"),)
    assert store.entries("r", EXCHANGES) == (exchange(1, "why"),)
    assert store.entries("r", TRIALS) == (trial(3, "died"),)
    store.close()


@pytest.mark.parametrize("private", [False, True])
def test_runs_of_an_earlier_version_are_listed_for_those_who_may_see_them(
    fresh: Callable[[], str], private: bool
) -> None:
    url, where = fresh(), Repository(id=5, full_name="acme/pool", private=private)
    engine = upgraded_to(url, "0007")
    with engine.begin() as connection:
        insert_run(connection)
        row = {"run": "r", "body": new_run(repository=where).model_dump_json()}
        connection.execute(text("INSERT INTO requests (run, body) VALUES (:run, :body)"), row)
    engine.dispose()
    store = SqlStore(url)
    assert [run.id for run in store.history(where)] == ["r"]
    everyone = where.model_copy(update={"private": False})
    assert [run.id for run in store.history(everyone)] == ([] if private else ["r"])
    store.close()


def test_a_database_of_a_newer_version_is_left_alone(url: str) -> None:
    SqlStore(url).close()
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(UserError, match="newer version of Reprise") as refused:
        SqlStore(url)
    assert "Upgrade Reprise" in refused.value.fix
    with engine.begin() as connection:
        assert (
            connection.execute(text("SELECT version_num FROM alembic_version")).scalar() == "9999"
        )
        connection.execute(text(f"UPDATE alembic_version SET version_num = '{tables.REVISION}'"))
    engine.dispose()


def test_a_plan_of_an_earlier_version_opens_and_keeps_its_own_comment(url: str) -> None:
    store = SqlStore(url)
    found, withdrawn = "ab" * 6 + "1" * 52, "ab" * 6 + "2" * 52
    first, second = (
        store.add_run(new_run(guid, plan=plan, state=RunState.WAITING))[0]
        for guid, plan in (("a", found), ("b", withdrawn))
    )
    old = OurComment(repository="acme/pool", number=7, key=f"plan:{'ab' * 6}", comment=11)
    for kept in (old, old.model_copy(update={"number": 8}), old.model_copy(update={"key": "run"})):
        store.put_comment(kept)
    store.close()
    engine = create_engine(url)
    with engine.begin() as connection:
        for run, plan in ((first, found), (second, withdrawn)):
            before = {"plan": plan, "id": run.id}
            connection.execute(text("UPDATE runs SET plan = :plan WHERE id = :id"), before)
        connection.execute(text("DROP TABLE journal"))
        for table, columns in BEFORE_THE_JOURNAL.items():
            connection.execute(text(f"CREATE TABLE {table} ({columns})"))
        connection.execute(text("DROP INDEX runs_by_repository"))
        for column in ("repository_id", "audience", "package"):
            connection.execute(text(f"ALTER TABLE runs DROP COLUMN {column}"))
        connection.execute(text("UPDATE alembic_version SET version_num = '0005'"))
    engine.dispose()
    store = SqlStore(url)
    opened = store.run(first.id)
    assert opened is not None
    assert (opened.plan, opened.state) == (found, RunState.WAITING)
    assert opened.model_copy(update={"plan": first.plan}) == first
    assert store.comment("acme/pool", 7, f"plan:{first.id}") is None, "the newer one wrote last"
    new = store.comment("acme/pool", 7, f"plan:{second.id}")
    assert new == old.model_copy(update={"key": f"plan:{second.id}"})
    assert store.comment("acme/pool", 7, old.key) is None
    assert store.comment("acme/pool", 7, "run") is not None
    assert store.comment("acme/pool", 8, old.key) is not None, "no run of that issue has it"
    store.close()


@pytest.mark.parametrize(
    "address",
    [
        "hunter2",
        "",
        "mysql://root:hunter2@host/reprise",
        "postgresql://root:hunter2@host:port/reprise",
        "sqlite://",
        "sqlite:///:memory:",
        "sqlite://hunter2/reprise.db",
    ],
)
def test_an_unusable_address_is_told_without_showing_it(address: str) -> None:
    with pytest.raises(UserError) as told:
        SqlStore(address)
    assert "sqlite:///PATH" in told.value.fix
    assert "hunter2" not in f"{told.value} {told.value.fix}"


def test_a_database_that_is_away_is_told_without_its_password() -> None:
    with pytest.raises(TransientError) as told:
        SqlStore("postgres://mona:hunter2@127.0.0.1:1/reprise")
    assert "127.0.0.1" in str(told.value)
    assert told.value.fix
    assert "hunter2" not in f"{told.value!r} {told.value.fix}"
    assert told.value.__suppress_context__


@pytest.mark.postgres
def test_a_database_that_goes_away_and_comes_back() -> None:
    with postgres_server() as server:
        store = SqlStore(server.fresh())
        store.claim([delivery("a")])
        server.stop()
        with pytest.raises(TransientError, match="does not answer"):
            store.claim([delivery("b")])
        server.start()
        assert store.claim([delivery("a"), delivery("b")]) == ("known", "new")
        store.close()


@pytest.mark.postgres
def test_a_machine_whose_clock_is_an_hour_ahead_holds_nobody_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with postgres_server() as server:
        url, true_time = server.fresh(), time.time
        right = SqlStore(url)
        monkeypatch.setattr(time, "time", lambda: true_time() + 3600)
        ahead = SqlStore(url)
        ahead.claim([delivery("a")])
        assert ahead.take_delivery("a", "dies", 0.1) is not None
        assert ahead.reserve_write(5, "one", notifies=True) == 0.0
        ahead.end_write(5, "one")
        monkeypatch.undo()
        assert 0.0 < right.reserve_write(5, "two", notifies=True) <= 3.5
        time.sleep(0.2)
        assert right.take_delivery("a", "lives", 5.0) is not None
        right.close()
        ahead.close()


@pytest.mark.postgres
def test_a_clock_that_has_drifted_is_set_again_by_the_database() -> None:
    with postgres_server() as server:
        store = SqlStore(server.fresh())
        store._db.clock._ahead_s += 3600
        store.overdue(1.0)
        assert store._clock() == pytest.approx(time.time(), abs=5.0)
        store.close()


def test_a_locked_file_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "WAIT_S", 0.2)
    store = SqlStore(f"sqlite:///{tmp_path}/reprise.db")
    other = sqlite3.connect(tmp_path / "reprise.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(TransientError, match="busy"):
        store.claim([delivery()])
    assert store.seen(["g1"]) == frozenset()  # readers do not wait for a writer
    other.execute("ROLLBACK")
    other.close()
    assert store.claim([delivery()]) == ("new",)
    store.close()


def test_files_that_are_no_database(tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("this is a letter, not a database " * 100)
    with pytest.raises(UserError, match="unusable"):
        SqlStore(f"sqlite:///{tmp_path}/text.db")
    with pytest.raises(UserError, match="cannot be written"):
        SqlStore(f"sqlite:///{tmp_path}/no/such/folder/reprise.db")


def test_a_commit_on_sqlite_survives_a_power_cut_and_strangers_cannot_read_it(
    tmp_path: Path,
) -> None:
    store = SqlStore(f"sqlite:///{tmp_path}/reprise.db")
    with store._db.writing() as connection:
        asked = ("journal_mode", "synchronous", "foreign_keys")
        assert [connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in asked] == [
            "wal",
            2,
            1,
        ]
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}
    store.close()


def test_a_store_that_needs_no_migration_loads_no_alembic(tmp_path: Path) -> None:
    SqlStore(f"sqlite:///{tmp_path}/reprise.db").close()
    code = (
        "import sys; from bot.app.store import SqlStore; SqlStore(sys.argv[1]).close();"
        "print([name for name in ('alembic', 'mako', 'psycopg') if name in sys.modules])"
    )
    argv = (sys.executable, "-c", code, f"sqlite:///{tmp_path}/reprise.db")
    assert (
        subprocess.run(argv, cwd=ROOT, check=True, capture_output=True, text=True).stdout == "[]\n"
    )
