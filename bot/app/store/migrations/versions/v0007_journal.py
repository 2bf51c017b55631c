"""One journal a run in place of a table for each kind of entry."""

import json

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """One table for three. Attempts held their program and log, which have entries of their own."""
    counted = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    journal = op.create_table(
        "journal",
        sa.Column("seq", counted, nullable=False),
        sa.Column("run", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("until_report", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["run"], ["runs.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("seq"),
        sa.UniqueConstraint("run", "kind", "key", name="journal_once"),
    )
    connection = op.get_bind()

    def add(run: str, kind: str, key: str, body: str, *, until_report: bool = False) -> None:
        row = {"run": run, "kind": kind, "key": key, "body": body, "until_report": until_report}
        connection.execute(sa.insert(journal).values(**row))

    programs = set[tuple[str, str]]()
    # Logs are long: one attempt is in memory at a time.
    keys = connection.execute(sa.text("SELECT run, number FROM attempts ORDER BY run, number"))
    for run, number in keys.all():
        row = connection.execute(
            sa.text("SELECT body, script, log FROM attempts WHERE run = :run AND number = :number"),
            {"run": run, "number": number},
        ).one()
        digest = json.loads(row.body)["script"]
        if (run, digest) not in programs:
            programs.add((run, digest))
            add(run, "programs", digest, row.script)
        add(run, "logs", str(number), json.dumps({"number": number, "text": row.log}))
        add(run, "attempts", str(number), row.body)
    exchanges = sa.text("SELECT run, number, body FROM exchanges ORDER BY run, number")
    for run, number, body in connection.execute(exchanges).all():
        add(run, "exchanges", str(number), body, until_report=True)
    for run, seq, body in connection.execute(
        sa.text("SELECT run, seq, body FROM trials ORDER BY seq")
    ).all():
        add(run, "trials", f"v0006-{seq}", body, until_report=True)
    for table in ("attempts", "exchanges", "trials"):
        op.drop_table(table)
