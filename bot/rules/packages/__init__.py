"""What the field's packages are called, what they need beside them, and from when: knowledge as
data, with its sources.
"""
