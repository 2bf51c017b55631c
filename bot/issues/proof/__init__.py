"""Proof of a reproduced failure: a control, a bisection, a minimal script."""
