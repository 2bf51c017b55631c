"""The same sandboxes and interpreter as the contract suite, and one copy of each Python for caches
that a test has for itself.
"""

from __future__ import annotations

from itertools import takewhile
from pathlib import Path

import pytest

from tests.contract.conftest import host_secret, interpreter, real, walled

__all__ = ["host_secret", "interpreter", "real", "walled"]


@pytest.fixture(scope="session")
def pythons(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where they are, open to the sandbox's own user."""
    root = tmp_path_factory.mktemp("pythons")
    for folder in (root, *takewhile(lambda path: "pytest-" in str(path), root.parents)):
        folder.chmod(0o755)
    return root


def share_pythons(cache: Path, pythons: Path) -> None:
    """Let a new cache have them: each takes half a second to copy."""
    cache.mkdir(mode=0o755)
    (cache / "pythons").symlink_to(pythons)
