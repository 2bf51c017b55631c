"""A build from source sees its requirements, its sources, and no network."""

import json
from pathlib import Path

import pytest

from sandbox.build import Backend, BuildFailed, BuildSource, MoreRequired, backend, cause, wheel
from sandbox.environment import Installation
from sandbox.interpreters import Snapshot
from sandbox.port import RunResult
from tests.support.sandbox import Exit, FakeSandbox, Save, Say

SOURCE = BuildSource(b"packed", version="1.0")


@pytest.fixture
def tools(tmp_path: Path) -> Installation:
    python = Snapshot(tmp_path / "python", tmp_path / "python/bin/python3.11", "3.11.9", "3.11")
    root = tmp_path / "envs/key"
    for folder in (python.root, root):
        folder.mkdir(parents=True)
    return Installation("key", root, root / "bin/python", python, ())


def of(tools: Installation, *steps: object) -> Backend:
    return backend(SOURCE, tools.python, FakeSandbox(lambda _: list(steps)))


def test_what_a_build_sees_is_its_python_and_its_requirements(tools, tmp_path):
    sandbox = FakeSandbox(lambda _: [Save("out/alpha-1.0-py3-none-any.whl", b"zip")])
    made = wheel(SOURCE, Backend(), tools, sandbox, tmp_path / "wheels")
    assert made.read_bytes() == b"zip"
    (spec,) = sandbox.specs
    assert [mount.source for mount in spec.mounts] == [tools.python.root, tools.root]
    assert not any("INDEX" in name or "PROXY" in name.upper() for name in spec.env)


def test_a_clone_is_shown_to_the_build_and_not_held_in_memory(tools, tmp_path):
    tree = tmp_path / "trees/commit"
    tree.mkdir(parents=True)
    (tree / "setup.py").write_bytes(b"x" * 1_000_000)
    source = BuildSource(tree, version="1.0")
    sandbox = FakeSandbox(lambda _: [Save("out/alpha-1.0-py3-none-any.whl", b"zip")])
    wheel(source, Backend(), tools, sandbox, tmp_path / "wheels")
    (spec,) = sandbox.specs
    assert spec.mounts[-1].source == tree
    assert json.loads(spec.files["job.json"])["source"] == str(tree)
    assert sum(map(len, spec.files.values())) < 10_000


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", Backend()),
        ('[project]\nname = "x"', Backend()),
        ("[build-system]\nrequires = ['setuptools']", Backend(("setuptools",))),
        (
            "[build-system]\nrequires = []\nbuild-backend = 'a.b:c'\nbackend-path = ['in']",
            Backend((), "a.b:c", ("in",)),
        ),
    ],
)
def test_what_a_project_is_built_with(tools, text, found):
    assert of(tools, Save("out/pyproject.toml", text.encode())) == found


@pytest.mark.parametrize(
    "text",
    [
        b"[build-system",
        b"\xff",
        b"x = " + b"[" * 5000,
        b"[build-system]\nrequires = 'setuptools'",
        b"[build-system]\nrequires = [1]",
        b"build-system = 3",
    ],
)
def test_settings_that_cannot_be_read_end_the_build_with_a_reason(tools, text):
    with pytest.raises(BuildFailed, match=r"pyproject\.toml cannot be read"):
        of(tools, Save("out/pyproject.toml", text))


def test_an_archive_that_cannot_be_unpacked(tools):
    with pytest.raises(BuildFailed, match=r"cannot be unpacked: .+ not a gzip file"):
        of(tools, Say(b"tarfile.ReadError: not a gzip file\n", "stderr"), Exit(1))


def test_what_the_back_end_asks_for_besides(tools, tmp_path):
    asks = FakeSandbox(lambda _: [Save("out/requires.json", json.dumps(["cython"]).encode())])
    with pytest.raises(MoreRequired) as told:
        wheel(SOURCE, Backend(), tools, asks, tmp_path)
    assert Backend(("a",)).requiring(told.value.requires).requires == ("a", "cython")


def test_a_build_that_wants_the_network_is_told_apart():
    said = "urllib.error.URLError: <urlopen error [Errno -3] Temporary failure in name resolution>"
    assert "has no network" in cause(RunResult(1, stderr=f"{said}\nRuntimeError: no model\n"))
    assert cause(RunResult(1, stdout="x.c:1: error: no header\n")) == "x.c:1: error: no header"
