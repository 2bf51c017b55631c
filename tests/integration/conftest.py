"""The same sandboxes and interpreter as the contract suite."""

from __future__ import annotations

from tests.contract.conftest import host_secret, interpreter, real, walled

__all__ = ["host_secret", "interpreter", "real", "walled"]
