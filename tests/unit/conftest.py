"""Which unit tests are not traced when the engine's coverage is measured: tracing doubles the time."""

from __future__ import annotations

import pytest

UNTRACED = (
    "test_architecture", "test_bench_", "test_deploy", "test_docs", "test_hostile_", "test_jobs",
    "test_mutants_", "test_names", "test_neutrality", "test_repair_arms", "test_soak",
)  # fmt: skip
"""Files about the repository and the benchmarks, and those that say again, with many texts, what
others have tested.
"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark them for pytest-cov."""
    for item in items:
        if item.path.parent.name == "unit" and item.path.name.startswith(UNTRACED):
            item.add_marker(pytest.mark.no_cover)
