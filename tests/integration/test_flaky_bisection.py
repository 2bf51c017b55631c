"""The bench of a bisected chance failure: its own truth is found, and a wrong answer counts as
one.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks import flaky_bisection
from sandbox.process import ProcessSandbox


def test_both_ends_of_a_failure_that_is_always_there_are_found() -> None:
    with tempfile.TemporaryDirectory(prefix="reprise-flaky-") as folder:
        Path(folder).chmod(0o755)
        (row,) = flaky_bisection.bisect_flaky(
            1, Path(folder), ProcessSandbox(), rate=1.0, releases=6, seed=3
        )
    assert row.right
    assert row.verdict == "reproduced"
    assert (row.named_brought, row.named_mended) == (row.brought, row.mended)
    assert flaky_bisection.told([row]).endswith("right in 1 of 1")
    wrong = row.model_copy(update={"named_mended": ""})
    assert flaky_bisection.told([row, wrong]).endswith("right in 1 of 2")
    assert "WRONG" in flaky_bisection.told([wrong])
