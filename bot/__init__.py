"""The engine and its doors, room by room; a room imports only those below it.

`cli` and `app` ask for jobs, `report` shows what came of them, `products.py` has a row for each
kind of job. `issues` and `training` are the products, which do not know each other; a third one
stands beside them. `environment` and `model` serve them, and `kernel` is what all of them need.
"""
