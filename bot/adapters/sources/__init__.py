"""Indexes of installed sources in SQLite: found by distribution, kept by content."""
