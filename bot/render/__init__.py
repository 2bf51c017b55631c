"""Report to comment, terminal and page; pure."""
