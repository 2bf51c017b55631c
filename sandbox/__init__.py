"""Runs untrusted code and reports exactly what happened."""
