"""Reproduces a bug report: `reproduce.py` is the product on one screen.

`reading/` reads the report, `signature/` freezes what counts, `search/` finds a program that
fails (`runner.py` runs and `judge.py` judges it), `confirm.py` gives the verdict, `proof/` and
`reduce/` prove it, `proposal/` turns it into a pull request. `verdicts.py` has a row for each
kind of verdict.
"""
