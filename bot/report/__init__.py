"""A report to comment, terminal, page and JSON; pure."""
