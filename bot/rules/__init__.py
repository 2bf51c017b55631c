"""Knowledge as data and small pure functions."""
