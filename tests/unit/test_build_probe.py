"""What becomes of a wheel that was built: it can be installed with the tools of today."""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING

import pytest

from sandbox.probe import build_wheel

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("written", "mended"),
    [
        ("opencv-python (>=3.) ; extra == 'all'", "opencv-python (>=3) ; extra == 'all'"),
        ("a>=1.,<2.", "a>=1,<2"),
        ("a (==2.*) ; python_version < '3.'", "a (==2.*) ; python_version < '3.'"),
        ("a>=1.0", "a>=1.0"),
    ],
)
def test_a_version_that_ends_with_a_dot_loses_it(tmp_path: Path, written: str, mended: str) -> None:
    path = tmp_path / "a-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr("a-1.0.dist-info/METADATA", f"Name: a\nRequires-Dist: {written}\n\nIn 3.\n")
        wheel.writestr("a/__init__.py", "Requires-Dist: a>=3.\n")
    build_wheel.mend_versions(str(path))
    with zipfile.ZipFile(path) as wheel:
        text = wheel.read("a-1.0.dist-info/METADATA").decode()
        assert wheel.read("a/__init__.py") == b"Requires-Dist: a>=3.\n"
    assert text == f"Name: a\nRequires-Dist: {mended}\n\nIn 3.\n"
