"""The products in one table, and the training of a bug report beside its verdict."""
