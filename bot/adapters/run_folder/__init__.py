"""A run on disk: attempts, logs, model exchanges and the report."""
