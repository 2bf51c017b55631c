"""Reproduces a number of a paper with the paper's repository.

`reproduce.py` is the product on one screen: read the paper (`reading/`), choose the claim
(`claims.py`), collect the hyperparameters that it states (`criteria.py`), run the repository's
command, compare the number (`comparison.py`), and hold each criterion against the code and the run
(`evidence.py`).
"""
