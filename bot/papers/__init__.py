"""Reproduces a number of a paper with the paper's repository.

`reproduce.py` is the product on one screen: read the paper (`reading/`), choose the claim
(`claims.py`), collect the hyperparameters that it states (`criteria.py`; what rules miss, a model,
`fingerprint.py`), run the repository's command (`repository.py`, `runs.py`), compare the number
(`comparison.py`), see that it is computed (`staging.py`), and hold each hyperparameter against the
code and the run (`located.py`, `traces.py`, `evidence.py`) with what a contradiction costs
(`effects.py`).
"""
