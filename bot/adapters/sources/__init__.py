"""Indexes of installed sources in SQLite: found by distribution, kept by content."""

from bot.adapters.sources.indexer import SqliteIndexer

__all__ = ["SqliteIndexer"]
