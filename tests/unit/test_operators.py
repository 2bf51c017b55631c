"""Operators of torchvision that cannot be loaded, declared where its import needs them."""

from __future__ import annotations

from pathlib import Path

import pytest

from sandbox import interpreters

EXTENSION = "def _has_ops():\n    return False\n"
REGISTRATIONS = '@torch.library.register_fake("torchvision::nms")\ndef meta_nms(): ...\n'


@pytest.fixture
def site(tmp_path: Path) -> Path:
    for name, text in (
        ("torchvision/_C.so", "\0libtorch_cuda.so\0"),
        ("torchvision/extension.py", EXTENSION),
        ("torchvision/_meta_registrations.py", REGISTRATIONS),
        ("torch/lib/libtorch_cpu.so", ""),
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def test_operators_are_missing_where_torch_lacks_the_library_they_are_linked_against(
    site: Path,
) -> None:
    assert interpreters.missing(site)
    (site / "torch/lib/libtorch_cuda.so").touch()
    assert not interpreters.missing(site)


def test_a_build_for_the_processor_lacks_nothing(site: Path) -> None:
    (site / "torchvision/_C.so").write_text("\0libtorch_cpu.so\0", encoding="utf-8")
    assert not interpreters.missing(site)


def test_only_what_the_import_needs_is_declared_and_the_installers_copy_stays(site: Path) -> None:
    cached = site / "cached.py"
    extension = site / "torchvision/extension.py"
    cached.hardlink_to(extension)
    interpreters.declare(site)
    added = extension.read_text(encoding="utf-8").removeprefix(EXTENSION)
    assert "Added by Reprise" in added
    assert '"torchvision::nms"' in added
    assert "qnms" not in added
    assert cached.read_text(encoding="utf-8") == EXTENSION


def test_a_release_that_registers_nothing_is_left_as_it_is(site: Path) -> None:
    (site / "torchvision/_meta_registrations.py").unlink()
    interpreters.declare(site)
    assert (site / "torchvision/extension.py").read_text(encoding="utf-8") == EXTENSION
