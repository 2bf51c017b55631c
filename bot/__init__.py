"""The engine and its doors: from an issue to an executed verdict."""
