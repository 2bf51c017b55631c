"""What is known of a run without its report or its request, also after it was erased."""

import json

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Two more tables, and columns filled from what is stored."""
    op.create_table(
        "usage",
        sa.Column("run", sa.Text(), nullable=False),
        sa.Column("repository", sa.Text(), nullable=False),
        sa.Column("requester", sa.Text(), nullable=False),
        sa.Column("planned_at", sa.Double(), nullable=False),
        sa.Column("started_at", sa.Double(), nullable=False),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.Column("usd", sa.Double(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("run"),
    )
    op.create_index("usage_by_time", "usage", ["at"])
    op.create_table(
        "sweeps",
        sa.Column("repository", sa.Text(), nullable=False),
        sa.Column("number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("installation", sa.BigInteger(), nullable=False),
        sa.Column("due", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("repository", "number", "key"),
    )
    for table in ("deliveries", "runs"):
        op.add_column(table, sa.Column("refused", sa.Integer(), server_default="0", nullable=False))
    op.add_column("writes", sa.Column("owner", sa.Text(), server_default="", nullable=False))
    op.add_column("runs", sa.Column("asked_at", sa.Double(), server_default="0", nullable=False))
    op.execute("UPDATE runs SET asked_at = created_at")
    op.add_column("runs", sa.Column("patch", sa.Text(), server_default="", nullable=False))
    _fill_patches(op.get_bind())


def _fill_patches(connection: sa.Connection) -> None:
    """Only a run that asked for a repair has a patch; a quotation mark in its issue is escaped."""
    repairs = sa.text(
        "SELECT reports.run FROM reports JOIN requests ON requests.run = reports.run"
        """ WHERE requests.body LIKE '%"repair":{%'"""
    )
    statement = sa.text("SELECT body FROM reports WHERE run = :run")
    change = sa.text("UPDATE runs SET patch = :patch WHERE id = :run")
    for run in connection.scalars(repairs).all():
        body = connection.execute(statement, {"run": run}).scalar_one()
        repair = json.loads(body).get("repair") or {}
        if repair.get("patch"):
            patch = "proven" if repair["proven"] else "unproven"
            connection.execute(change, {"run": run, "patch": patch})
