"""Reading a report without a model: what failed, by which program, and what counts as the
failure.
"""
