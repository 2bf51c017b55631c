"""Which unit tests are not traced when the engine's coverage is measured: tracing doubles the time."""

from __future__ import annotations

import pytest

UNTRACED = (
    "test_approvals", "test_architecture", "test_bench_", "test_configuration_parse",
    "test_decision", "test_deploy", "test_docs", "test_erasing", "test_hostile_",
    "test_hyperparameters_round_trip", "test_jobs", "test_mutants_", "test_names",
    "test_neutrality", "test_pairs", "test_patterns", "test_refusals", "test_repair_arms", "test_rewordings",
    "test_service", "test_soak", "test_worker",
)  # fmt: skip
"""Files about the repository, the App and the benchmarks, and those that say again, with many
texts, what others have tested. So do the slow ones.
"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark them for pytest-cov."""
    for item in items:
        repeats = item.path.name.startswith(UNTRACED) or item.get_closest_marker("slow")
        if item.path.parent.name == "unit" and repeats:
            item.add_marker(pytest.mark.no_cover)
