"""One run: how it is launched, what was observed, and how it is judged."""
