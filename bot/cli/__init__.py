"""The command line: one error boundary, one place for output."""
