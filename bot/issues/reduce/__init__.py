"""Making a failing program smaller: edits, what can be edited, in which order, and what must
stay the same.
"""
