"""What Alembic runs: it works in the transaction, and under the lock, of whoever called it."""

from alembic import context

from bot.app.store.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    transactional_ddl=True,
)
with context.begin_transaction():
    context.run_migrations()
