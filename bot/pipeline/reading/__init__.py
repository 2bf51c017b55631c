"""Reads a report without a model: what failed, in which program, and what counts as the failure."""
