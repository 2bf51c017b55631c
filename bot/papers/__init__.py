"""Reproduces a number of a paper with the paper's repository.

`reproduce.py` is the product on one screen: find the paper that an issue or a repository names
(`origin.py`), read it (`reading/`), choose the claim, or the one that an issue means
(`claims.py`), collect the hyperparameters that it states (`criteria.py`; what rules miss, a
model, `fingerprint.py`), run the repository's command (`repository.py`, `runs.py`), compare the
number (`comparison.py`), see that it is computed (`staging.py`), and hold each hyperparameter
against the code and the run (`located.py`, `traces.py`, `evidence.py`) with what a contradiction
costs (`runs.py`). What neither decides, a model reads in the code (`code_reading.py`). Where there
is no repository, an agent writes the code in a workspace (`develop.py`, `workbench.py`).
"""
