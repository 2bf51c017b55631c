"""The steps; a published one is never edited."""
