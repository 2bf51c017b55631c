"""`.github/reprise.yml`: from its text to values that fit the model, or to problems with their
lines.
"""
