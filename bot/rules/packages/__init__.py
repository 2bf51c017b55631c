"""What the field's packages are called, which others they need, and from when: knowledge as data,
with its sources.
"""
