"""The same interpreter as the contract suite."""

from __future__ import annotations

from tests.contract.conftest import interpreter

__all__ = ["interpreter"]
