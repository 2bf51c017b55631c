"""Reading Python sources without running them: parsing, outlines, names, calls, and an index
to search them.
"""
