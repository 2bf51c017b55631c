"""How a program becomes a regression test of a repository, and what may be written there."""
