"""Environments: the package index, the resolver's ladder of attempts, and the builder."""
