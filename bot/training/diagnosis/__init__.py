"""Says why a training run learns badly, from its trace alone: one row a rule.

A rule is a `Rule` with its check in the file of its theme, whose tuple `rules.py` lists;
`_EFFECTS` there says which findings follow from which. `tests/support/trace_pairs.py` has a
buggy and a healthy trace for each, and `make docs` writes its row into the documentation.
"""
