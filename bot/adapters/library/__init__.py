"""Indexes of installed sources, in SQLite: found by distribution, built by two processes, kept by content."""

from bot.adapters.library.library import SqliteLibrary

__all__ = ["SqliteLibrary"]
