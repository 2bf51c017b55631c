"""What each delivery has led to, which runs were plans first, and what all processes share."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Two more tables and a column."""
    op.create_table(
        "outcomes",
        sa.Column("cause", sa.Text(), nullable=False),
        sa.Column("ordinal", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("cause", "ordinal"),
    )
    op.create_index("outcomes_by_time", "outcomes", ["at"], unique=False)
    op.create_table(
        "shared",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )
    op.add_column("runs", sa.Column("planned", sa.Integer(), server_default="0", nullable=False))
    op.execute("UPDATE runs SET planned = 1 WHERE state = 'waiting' OR approved_by <> ''")
