"""The first tables."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """From nothing."""
    counted = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "comments",
        sa.Column("repository", sa.Text(), nullable=False),
        sa.Column("number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("comment", sa.BigInteger(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("repository", "number", "key"),
    )
    op.create_table(
        "deliveries",
        sa.Column("guid", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("error", sa.Text(), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("turn", sa.Integer(), nullable=False),
        sa.Column("offered_at", sa.Double(), nullable=False),
        sa.Column("not_before", sa.Double(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("lease_until", sa.Double(), nullable=False),
        sa.Column("finished_at", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("guid"),
    )
    op.create_index("deliveries_by_end", "deliveries", ["finished_at"], unique=False)
    op.create_index("deliveries_by_state", "deliveries", ["state", "offered_at"], unique=False)
    op.create_table(
        "holds",
        sa.Column("installation", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("until", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("installation"),
    )
    op.create_table(
        "runs",
        sa.Column("seq", counted, nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("delivery", sa.Text(), nullable=False),
        sa.Column("ordinal", sa.Integer(), nullable=False),
        sa.Column("installation", sa.BigInteger(), nullable=False),
        sa.Column("repository", sa.Text(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("requester", sa.Text(), nullable=False),
        sa.Column("device", sa.Text(), nullable=False),
        sa.Column("plan", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("turn", sa.Integer(), nullable=False),
        sa.Column("offered_at", sa.Double(), nullable=False),
        sa.Column("not_before", sa.Double(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("lease_until", sa.Double(), nullable=False),
        sa.Column("takes", sa.Integer(), nullable=False),
        sa.Column("approved_by", sa.Text(), nullable=False),
        sa.Column("cancelled_by", sa.Text(), nullable=False),
        sa.Column("stage", sa.Text(), nullable=False),
        sa.Column("progress", sa.Text(), nullable=False),
        sa.Column("verdict", sa.Text(), nullable=False),
        sa.Column("error", sa.Text(), nullable=False),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("started_at", sa.Double(), nullable=True),
        sa.Column("finished_at", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("seq"),
        sa.UniqueConstraint("delivery", "ordinal", name="runs_once"),
        sa.UniqueConstraint("id"),
    )
    op.create_index("runs_by_end", "runs", ["finished_at"], unique=False)
    op.create_index("runs_by_installation", "runs", ["installation"], unique=False)
    op.create_index("runs_by_issue", "runs", ["repository", "number"], unique=False)
    op.create_index("runs_by_start", "runs", ["started_at"], unique=False)
    op.create_index("runs_by_state", "runs", ["state", "offered_at"], unique=False)
    op.create_index("runs_by_verdict", "runs", ["verdict"], unique=False)
    op.create_table(
        "switches",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "writes",
        sa.Column("seq", counted, nullable=False),
        sa.Column("installation", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("notifies", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("seq"),
    )
    op.create_index("writes_by_installation", "writes", ["installation", "at"], unique=False)
    op.create_table(
        "attempts",
        sa.Column("run", sa.Text(), nullable=False),
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("script", sa.Text(), nullable=False),
        sa.Column("log", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["run"], ["runs.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run", "number"),
    )
    op.create_table(
        "costs",
        sa.Column("seq", counted, nullable=False),
        sa.Column("run", sa.Text(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("calls", sa.BigInteger(), nullable=False),
        sa.Column("input_tokens", sa.BigInteger(), nullable=False),
        sa.Column("output_tokens", sa.BigInteger(), nullable=False),
        sa.Column("usd", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["run"], ["runs.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("seq"),
    )
    op.create_index("costs_by_run", "costs", ["run"], unique=False)
    op.create_index("costs_by_time", "costs", ["at"], unique=False)
    op.create_table(
        "reports",
        sa.Column("run", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["run"], ["runs.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run"),
    )
    op.create_table(
        "requests",
        sa.Column("run", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["run"], ["runs.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run"),
    )
