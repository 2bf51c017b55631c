"""Alembic's folder: one file a step under `versions`, applied by `bot.adapters.store.migrate()`."""
