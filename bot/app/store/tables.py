"""The tables. Times are epoch seconds; 0 means no lease or no deferral. Whole objects are kept as
JSON text.
"""

from functools import partial

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Dialect,
    Double,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
)

from bot.app.store import database

REVISION = "0008"
"""The migration that leads to these tables."""


class Words(TypeDecorator[str]):
    """Text in which nothing is left that a database would refuse; what is looked up passes the
    same way.
    """

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002
        """On the way in."""
        return None if value is None else database.text(value)


def _counter_column() -> Column[int]:
    return Column("seq", BigInteger().with_variant(Integer, "sqlite"), primary_key=True)


def _of_run(**options: bool) -> Column[str]:
    run = ForeignKey("runs.id", ondelete="CASCADE")
    return Column("run", Words, run, nullable=False, **options)  # type: ignore[arg-type]


_text = partial(Column[str], type_=Words, nullable=False)
_whole = partial(Column[int], type_=Integer, nullable=False)
_big = partial(Column[int], type_=BigInteger, nullable=False)
_real = partial(Column[float], type_=Double, nullable=False)


def _offer_columns() -> tuple[Column[int] | Column[float] | Column[str], ...]:
    """What a delivery and a run have in common: both are offered, leased and given back."""
    return (
        _whole("turn"),
        _real("offered_at"),
        _real("not_before"),
        _text("owner"),
        _real("lease_until"),
        Column("refused", Integer, nullable=False, server_default="0"),
    )


metadata = MetaData()

deliveries = Table(
    "deliveries",
    metadata,
    Column("guid", Words, primary_key=True),
    _text("state"),
    _text("body"),
    _text("error"),
    _whole("tries"),
    *_offer_columns(),
    Column("finished_at", Double),
    Index("deliveries_by_state", "state", "offered_at"),
    Index("deliveries_by_end", "finished_at"),
)

runs = Table(
    "runs",
    metadata,
    _counter_column(),
    Column("id", Words, nullable=False, unique=True),
    _text("delivery"),
    _whole("ordinal"),
    _big("installation"),
    _text("repository"),
    Column("repository_id", BigInteger, nullable=False, server_default="0"),
    Column("audience", Words, nullable=False, server_default="link"),
    _big("number"),
    _text("requester"),
    _text("device"),
    _text("plan"),
    _text("state"),
    Column("planned", Integer, nullable=False, server_default="0"),
    *_offer_columns(),
    _whole("takes"),
    _text("approved_by"),
    _text("cancelled_by"),
    _text("stage"),
    _text("progress"),
    _text("verdict"),
    Column("patch", Words, nullable=False, server_default=""),
    Column("package", Words, nullable=False, server_default=""),
    _text("error"),
    _real("seconds"),
    _real("created_at"),
    Column("asked_at", Double, nullable=False, server_default="0"),
    Column("started_at", Double),
    Column("finished_at", Double),
    UniqueConstraint("delivery", "ordinal", name="runs_once"),
    Index("runs_by_issue", "repository", "number"),
    Index("runs_by_repository", "repository_id", "seq"),
    Index("runs_by_installation", "installation"),
    Index("runs_by_state", "state", "offered_at"),
    Index("runs_by_start", "started_at"),
    Index("runs_by_end", "finished_at"),
    Index("runs_by_verdict", "verdict"),
)

# Apart from `runs`, whose rows are written anew with every heartbeat.
requests = Table("requests", metadata, _of_run(primary_key=True), _text("body"))

journal = Table(
    "journal",
    metadata,
    _counter_column(),
    _of_run(),
    _text("kind"),
    _text("key"),
    _text("body"),
    Column("until_report", Boolean, nullable=False),
    UniqueConstraint("run", "kind", "key", name="journal_once"),
)

reports = Table("reports", metadata, _of_run(primary_key=True), _text("body"))

costs = Table(
    "costs",
    metadata,
    _counter_column(),
    _of_run(),
    _real("at"),
    _big("calls"),
    _big("input_tokens"),
    _big("output_tokens"),
    _real("usd"),
    Index("costs_by_run", "run"),
    Index("costs_by_time", "at"),
)

# What erased runs of this day count toward its limits. `repository` and `requester` are hashes
# that the run's id salts; `usd` was spent today.
usage = Table(
    "usage",
    metadata,
    Column("run", Words, primary_key=True),
    _text("repository"),
    _text("requester"),
    _real("planned_at"),
    _real("started_at"),
    _real("seconds"),
    _real("usd"),
    _real("at"),
    Index("usage_by_time", "at"),
)

outcomes = Table(
    "outcomes",
    metadata,
    Column("cause", Words, primary_key=True),
    Column("ordinal", Integer, primary_key=True, autoincrement=False),
    _text("body"),
    _real("at"),
    Index("outcomes_by_time", "at"),
)

comments = Table(
    "comments",
    metadata,
    Column("repository", Words, primary_key=True),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("key", Words, primary_key=True),
    _big("comment"),
    _text("digest"),
)

# Comments that GitHub may yet create a second time: a request was sent, and no answer came.
sweeps = Table(
    "sweeps",
    metadata,
    Column("repository", Words, primary_key=True),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("key", Words, primary_key=True),
    _big("installation"),
    _real("due"),
)

writes = Table(
    "writes",
    metadata,
    _counter_column(),
    _big("installation"),
    _real("at"),
    Column("notifies", Boolean, nullable=False),
    Column("owner", Words, nullable=False, server_default=""),
    Index("writes_by_installation", "installation", "at"),
)

holds = Table(
    "holds",
    metadata,
    Column("installation", BigInteger, primary_key=True, autoincrement=False),
    _real("until"),
)

switches = Table("switches", metadata, Column("name", Words, primary_key=True), _text("reason"))

# What all processes know: alarms, and the key that signs links.
shared = Table(
    "shared", metadata, Column("name", Words, primary_key=True), _text("value"), _real("at")
)
