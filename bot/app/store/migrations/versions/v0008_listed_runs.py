"""What the list of a repository's runs shows: whose they are, who may see them, what was tested."""

import json

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Columns filled from the requests; runs of before name no package."""
    number = sa.Column("repository_id", sa.BigInteger(), server_default="0", nullable=False)
    op.add_column("runs", number)
    audience = sa.Column("audience", sa.Text(), server_default="link", nullable=False)
    op.add_column("runs", audience)
    op.add_column("runs", sa.Column("package", sa.Text(), server_default="", nullable=False))
    op.create_index("runs_by_repository", "runs", ["repository_id", "seq"])
    connection = op.get_bind()
    body = sa.text("SELECT body FROM requests WHERE run = :run")
    change = sa.text("UPDATE runs SET repository_id = :id, audience = :audience WHERE id = :run")
    for run in connection.scalars(sa.text("SELECT run FROM requests")).all():
        repository = json.loads(connection.execute(body, {"run": run}).scalar_one())["repository"]
        row = {"id": repository["id"], "audience": _audience(private=repository["private"])}
        connection.execute(change, {"run": run, **row})


def _audience(*, private: bool) -> str:
    return "readers" if private else "everyone"
