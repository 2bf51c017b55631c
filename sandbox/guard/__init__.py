"""The guard: a small stdlib-only program that runs next to the untrusted one, keeps it within its
limits and ends it when the caller is gone.
"""
