"""Alembic's folder: one file a step under `versions`, for `bot.adapters.store.bring_up()`."""
