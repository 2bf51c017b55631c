"""Which patches to try, which metric to read, and when a gain counts as proven."""
