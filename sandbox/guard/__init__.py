"""The guard: a small stdlib-only program beside the untrusted one that holds its limits and ends
it when the caller is gone.
"""
