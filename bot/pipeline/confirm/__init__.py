"""From repeated runs to a verdict."""
