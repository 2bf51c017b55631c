"""The comment of a plan is found by its run; the first digits of a hash may be those of another."""

from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

_NEWEST = (
    "SELECT runs.id FROM runs WHERE runs.repository = comments.repository "
    "AND runs.number = comments.number AND 'plan:' || substr(runs.plan, 1, 12) = comments.key "
    "ORDER BY runs.seq DESC LIMIT 1"
)


def upgrade() -> None:
    """Other keys in one table: the newest plan wrote the comment last."""
    op.execute(
        f"UPDATE comments SET key = 'plan:' || ({_NEWEST}) "  # noqa: S608
        f"WHERE comments.key LIKE 'plan:%' AND EXISTS ({_NEWEST})"
    )
