"""Reads a bug report: Markdown to blocks, blocks to kinds and roles, words to claims."""
