"""A paper in LaTeX, Markdown, HTML or PDF → one `Paper`."""
