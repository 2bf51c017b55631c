"""The App at work: what happens between a stored delivery and the comment on GitHub."""
