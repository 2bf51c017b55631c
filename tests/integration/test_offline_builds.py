"""Builds from source: contained while they run, and honest ones come to their wheel without a
network.
"""

from __future__ import annotations

import ast
import os
import shutil
import socket
import sys
import tarfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.environment.builder import UvBuilder
from bot.kernel.environment import Environment
from bot.kernel.errors import BuildError
from sandbox.port import RunSpec, Sandbox
from sandbox.process import ProcessSandbox
from tests.contract.conftest import KINDS, REAL
from tests.integration.conftest import share_pythons
from tests.integration.test_builder import Index, open_to_the_sandbox, spec, wanted

SPY = """
import os, socket, urllib.request

def reached(connect):
    try:
        connect()
    except Exception as error:
        return type(error).__name__
    return "REACHED"

def found():
    abstract = socket.socket(socket.AF_UNIX)
    return {
        "http": reached(lambda: urllib.request.urlopen("http://127.0.0.1:PORT/", timeout=3)),
        "redis": reached(lambda: socket.create_connection(("127.0.0.1", PORT), 3).send(b"PING\\r\\n")),
        "abstract": reached(lambda: abstract.connect("\\0ABSTRACT")),
        "names": reached(lambda: socket.getaddrinfo("pypi.org", 443)),
    }

assert "REACHED" not in found().values(), found()
"""
BACKEND = """
import os, zipfile

def get_requires_for_build_wheel(config_settings=None):
    return ASKS

def build_wheel(directory, config_settings=None, metadata_directory=None):
    name = "NAME-1.0-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(directory, name), "w") as pack:
        pack.writestr("NAME/__init__.py", "seen = " + repr(SEEN))
        pack.writestr("NAME-1.0.dist-info/METADATA", "Metadata-Version: 2.1\\nName: NAME\\nVersion: 1.0\\n")
        pack.writestr("NAME-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        pack.writestr("NAME-1.0.dist-info/RECORD", "")
    return name
"""
OWN = '[build-system]\nrequires = [{}]\nbuild-backend = "back"\nbackend-path = ["."]\n'


@pytest.fixture
def host() -> Iterator[tuple[int, str]]:
    """A service on this host's loopback that answers HTTP and Redis alike, and one at an abstract
    address.
    """
    name = f"reprise-build-{os.getpid()}"
    server = socket.create_server(("127.0.0.1", 0))
    with server, socket.socket(socket.AF_UNIX) as abstract:
        abstract.bind(f"\0{name}")
        abstract.listen()

        def serve() -> None:
            while True:
                try:
                    connection = server.accept()[0]
                except OSError:
                    return
                with connection:
                    connection.sendall(b"HTTP/1.0 200 OK\r\n\r\n+PONG\r\n")

        threading.Thread(target=serve, daemon=True).start()
        yield server.getsockname()[1], name
        server.shutdown(socket.SHUT_RDWR)


class World:
    """An index of our own, and builders over it."""

    def __init__(self, root: Path) -> None:
        open_to_the_sandbox(root)
        self.root, self.index = root, Index(root)
        self.index.wheel("setuptools", "80.0", "2024-01-01")

    def source(self, name: str, files: dict[str, str]) -> None:
        """Add a source distribution, as files below its folder."""
        folder = self.root / "sources" / f"{name}-1.0"
        for path, text in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, encoding="utf-8")
        packed = self.root / "sources" / f"{name}-1.0.tar.gz"
        with tarfile.open(packed, "w:gz") as pack:
            pack.add(folder, arcname=folder.name)
        self.index._add(name, packed.name, packed.read_bytes(), "2024-01-01")

    def builder(self, sandbox: Sandbox, **environ: str) -> UvBuilder:
        index = {"PIP_INDEX_URL": (self.root / "simple").as_uri(), "PIP_CONFIG_FILE": "/dev/null"}
        own = {"PATH": os.environ["PATH"], "HOME": str(self.root), **(environ or index)}
        return UvBuilder(self.root / "cache", sandbox, environ=own, torch_index=False)


@pytest.fixture
def world(tmp_path: Path, pythons: Path) -> Iterator[World]:
    share_pythons(tmp_path / "cache", pythons)
    yield World(tmp_path)
    shutil.rmtree(tmp_path / "cache", ignore_errors=True)  # where wheels of torch are, gigabytes


def says(environment: Environment, code: str, sandbox: Sandbox | None = None) -> str:
    run = RunSpec((environment.interpreter, "-c", code), env=environment.variables)
    result = (sandbox or ProcessSandbox()).run(run)
    assert result.exit_code == 0, result.stderr
    return result.stdout.strip()


@pytest.mark.parametrize("kind", REAL[:2])
def test_a_build_reaches_nothing_of_its_host(
    kind: str, world: World, host: tuple[int, str]
) -> None:
    port, name = host
    text = SPY.replace("PORT", str(port)).replace("ABSTRACT", name)
    world.source("spy", project("spy", "found()", before=text))
    built = world.builder(KINDS[kind]()).build(spec(wanted("spy")))
    seen = ast.literal_eval(says(built, "import spy; print(spy.seen)"))
    assert set(seen) == {"http", "redis", "abstract", "names"}
    assert "REACHED" not in seen.values()
    with socket.create_connection(("127.0.0.1", port), 3) as connection:
        assert connection.recv(4) == b"HTTP", "the service does answer, from here"


def project(
    name: str, seen: str = "1", *, before: str = "", asks: str = "[]", requires: str = ""
) -> dict[str, str]:
    """A project with a back end of its own, whose module holds what `seen` was during the build."""
    text = BACKEND.replace("NAME", name).replace("SEEN", seen).replace("ASKS", asks)
    return {"pyproject.toml": OWN.format(requires), "back.py": before + text}


def test_a_build_requirement_that_is_a_source_itself_is_built_first(world: World) -> None:
    world.source("inner", project("inner", "42"))
    seen = project("spy", "inner.seen", before="import inner\n", requires="'inner'")
    world.source("spy", seen)
    built = world.builder(ProcessSandbox()).build(spec(wanted("spy")))
    assert says(built, "import spy; print(spy.seen)") == "42"


def test_what_only_the_back_end_asks_for_is_fetched_too(world: World) -> None:
    world.index.wheel("extra", "2.0", "2024-01-01")
    seen = "__import__('extra').version"
    world.source("spy", project("spy", seen, asks="['extra>=2']"))
    built = world.builder(ProcessSandbox()).build(spec(wanted("spy")))
    assert says(built, "import spy; print(spy.seen)") == "2.0"


@pytest.mark.parametrize(
    ("requires", "reason"),
    [
        ("'none-such>1'", "build requirements are not available as wheels"),
        ("'x @ file:///etc/passwd'", "requires x from an address"),
        ("'x @ git+https://127.0.0.1/x'", "requires x from an address"),
        ("'-r /etc/passwd'", "is not a requirement"),
        ("'x\\n-r /etc/passwd'", "is not a requirement"),
        ("'spy'", "needed to build itself"),
    ],
)
def test_a_build_that_cannot_be_equipped_says_why(world: World, requires: str, reason: str) -> None:
    world.source("spy", project("spy", requires=requires.replace("'", '"')))
    with pytest.raises(BuildError) as failure:
        world.builder(ProcessSandbox()).build(spec(wanted("spy")))
    assert any(reason in step.error for step in failure.value.steps), failure.value.steps


BACKENDS = {
    "legacy": {
        "setup.py": "from setuptools import setup\nsetup(name='spy', version='1.0', packages=['spy'])\n"
    },
    "setuptools": {
        "pyproject.toml": "[build-system]\nrequires=['setuptools>=61']\nbuild-backend='setuptools.build_meta'\n"
        "[project]\nname='spy'\nversion='1.0'\n[tool.setuptools]\npackages=['spy']\n"
    },
    "flit": {
        "pyproject.toml": "[build-system]\nrequires=['flit_core>=3.2']\nbuild-backend='flit_core.buildapi'\n"
        "[project]\nname='spy'\nversion='1.0'\ndescription='x'\n"
    },
    "poetry": {
        "pyproject.toml": "[build-system]\nrequires=['poetry-core']\nbuild-backend='poetry.core.masonry.api'\n"
        "[tool.poetry]\nname='spy'\nversion='1.0'\ndescription='x'\nauthors=[]\n"
    },
    "hatchling": {
        "pyproject.toml": "[build-system]\nrequires=['hatchling']\nbuild-backend='hatchling.build'\n"
        "[project]\nname='spy'\nversion='1.0'\n"
    },
}


@pytest.mark.slow
@pytest.mark.index
@pytest.mark.parametrize(
    ("kind", "backend"),
    [
        ("docker", "legacy"),
        ("bwrap", "setuptools"),
        *(
            pytest.param("bwrap", each, marks=pytest.mark.nightly)
            for each in BACKENDS
            if each != "setuptools"
        ),
    ],
)
def test_an_honest_source_builds_without_a_network(kind: str, backend: str, world: World) -> None:
    world.source("spy", {**BACKENDS[backend], "spy/__init__.py": "seen = 'built'\n"})
    given = {name: text for name, text in os.environ.items() if name.startswith(("PIP_", "UV_"))}
    index = (world.root / "simple").as_uri()
    given["UV_INDEX"] = " ".join(filter(None, (index, given.get("UV_INDEX", ""))))
    builder = world.builder(KINDS[kind](), **given, SSL_CERT_FILE=given.get("PIP_CERT", ""))
    built = builder.build(spec(wanted("spy"), at=None))
    assert says(built, "import spy; print(spy.seen)") == "built"
    assert sys.version_info[:2] == tuple(map(int, built.python.split(".")[:2]))
