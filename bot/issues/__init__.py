"""Reproduces a bug report: read it, find its program, confirm the failure, prove it."""
