"""The prepare phase: resolve and install with uv into environments that are kept by their lock and shown read-only to runs.

Only wheels are installed here, so nothing of what is installed gets to run: uv unpacks files, and byte code is compiled by a
Python that looks at no site-packages. What has no wheel is built elsewhere, inside a sandbox (`sandbox.build`).
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import platform
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Any

from uv import find_uv_bin

from sandbox import child
from sandbox.indexes import Indexes
from sandbox.interpreters import Interpreter, Snapshot, snapshot
from sandbox.port import SandboxError

_FORMAT = "1"
_NETWORK = (
    "error sending request",
    "Failed to fetch",
    "dns error",
    "Connection refused",
    "operation timed out",
    "tcp connect error",
)
_FULL = ("No space left on device", "os error 28", "Disk quota exceeded")


class Unresolvable(SandboxError):
    """The wishes cannot be met together; the message is the resolver's."""


class IndexDown(SandboxError):
    """The package index does not answer."""


class DiskFull(SandboxError):
    """There is no room for the environment."""


@dataclass(frozen=True, slots=True)
class Wishes:
    """What to resolve, in the resolver's own words (PEP 508 lines)."""

    requirements: tuple[str, ...]
    constraints: tuple[str, ...] = ()
    overrides: tuple[str, ...] = ()
    excludes: tuple[str, ...] = ()
    exclude_newer: str = ""
    undated: tuple[str, ...] = ()
    wheels: tuple[Path, ...] = ()
    torch_backend: str = ""


@dataclass(frozen=True, slots=True)
class Built:
    """An installed environment."""

    id: str
    root: Path
    interpreter: Path
    python: Snapshot
    pins: tuple[str, ...]
    fresh: bool


@dataclass
class Installer:
    """uv, one cache and one set of index settings. Safe to use from several threads and processes at once."""

    cache: Path
    indexes: Indexes
    cancel: Event | None = None
    _uv: str = field(default_factory=find_uv_bin)

    def python(self, found: Interpreter) -> Snapshot:
        """The relocated copy of an interpreter, made on first use."""
        with self._guarded(f"python-{found.minor}"):
            return snapshot(found, self._folder("pythons"), self.cancel)

    def resolve(self, wishes: Wishes, python: Snapshot) -> tuple[str, ...]:
        """The pins ("name==version") that meet the wishes. Raises Unresolvable with the resolver's words."""
        with self._scratch() as folder:
            argv = [self._uv, "pip", "compile", "-q", "--no-header", "--no-annotate", "--only-binary", ":all:"]
            argv += ["--python", str(python.executable), *self._dates(wishes), *self._sources(wishes, folder)]
            for option, lines in (("--constraints", wishes.constraints), ("--overrides", wishes.overrides),
                                  ("--excludes", wishes.excludes)):  # fmt: skip
                argv += [option, self._file(folder, option[2:], lines)] if lines else []
            done = self._run([*argv, self._file(folder, "requirements", wishes.requirements)], python)
        if done.code:
            raise self._failure(done.err)
        return tuple(line.strip() for line in done.out.splitlines() if line.strip() and not line.startswith(("#", "-")))

    def install(self, pins: Sequence[str], wishes: Wishes, python: Snapshot) -> Built:
        """The environment with exactly these pins: from the cache, else built in place and marked complete at the end."""
        key = self.key(pins, wishes, python)
        root = self._folder("envs") / key
        built = Built(key, root, root / "bin/python", python, tuple(pins), fresh=not self.complete(key))
        if not built.fresh:
            return built
        with self._guarded(f"env-{key}"):
            if not self.complete(key):
                shutil.rmtree(root, ignore_errors=True)
                self._fill(built, wishes)
                (root / ".complete").touch()
        return built

    def key(self, pins: Sequence[str], wishes: Wishes, python: Snapshot) -> str:
        """The name of an environment: its pins, its Python, its platform, and the wheels that were built here."""
        own = [f"{wheel.name}:{wheel.stat().st_size}:{wheel.stat().st_mtime_ns}" for wheel in wishes.wheels]
        parts = [_FORMAT, python.root.name, platform.machine(), wishes.torch_backend, *sorted(pins), *sorted(own)]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:24]

    def complete(self, key: str) -> bool:
        """Whether an environment of that name stands ready."""
        return (self.cache / "envs" / key / ".complete").exists()

    def recall(self, key: str) -> dict[str, Any] | None:
        """What was noted under a key, or None."""
        try:
            noted = json.loads((self.cache / "specs" / f"{key}.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return noted if isinstance(noted, dict) else None

    def note(self, key: str, value: dict[str, Any]) -> None:
        """Note something under a key; readers see the old or the new, never a part."""
        target = self._folder("specs") / f"{key}.json"
        with self._space():
            part = target.with_name(f".{target.name}.{os.getpid()}.{time.monotonic_ns()}")
            part.write_text(json.dumps(value), encoding="utf-8")
            part.replace(target)

    def reachable(self, backend: str, python: Snapshot) -> bool:
        """Whether the index of a torch backend answers, asked once with little patience."""
        with self._scratch() as folder:
            argv = [self._uv, "pip", "compile", "-q", "--no-deps", "--torch-backend", backend, "--only-binary", ":all:"]
            argv += ["--python", str(python.executable), self._file(folder, "requirements", ("torch",))]
            patience = {"UV_HTTP_RETRIES": "0", "UV_HTTP_CONNECT_TIMEOUT": "3", "UV_HTTP_TIMEOUT": "5"}
            try:
                return self._run(argv, python, patience).code == 0
            except child.Interrupted:
                raise
            except SandboxError:
                return False

    def sweep(self) -> int:
        """Remove what killed builders left behind; returns how many things went."""
        gone = 0
        for root in [*self.cache.glob("envs/*"), *self.cache.glob("scratch/*")]:
            name = f"env-{root.name}" if root.parent.name == "envs" else root.name
            if (root / ".complete").exists():
                continue
            with self._lock(name, wait=False) as held:
                if held:
                    shutil.rmtree(root, ignore_errors=True)
                    gone += 1
        return gone

    def _fill(self, built: Built, wishes: Wishes) -> None:
        self._checked(
            [self._uv, "venv", "-q", "--no-project", "--python", str(built.python.executable), str(built.root)], built
        )
        with self._scratch() as folder:
            lock = self._file(folder, "lock", built.pins)
            argv = [self._uv, "pip", "install", "-q", "--no-deps", "--only-binary", ":all:", "--python", str(built.interpreter)]
            if built.pins:
                self._checked([*argv, *self._sources(wishes, folder), "-r", lock], built)
        self._compile(built)

    def _compile(self, built: Built) -> None:
        """Compile byte code with the bare Python: the environment's own would run the `.pth` files it was just given."""
        folder = built.root / f"lib/python{built.python.minor}/site-packages"
        argv = [built.python.executable, "-I", "-S", "-c", _COMPILE, folder]
        child.run(argv, env=self._environment(built.python), cancel=self.cancel)

    def _checked(self, argv: list[str], built: Built) -> None:
        done = self._run(argv, built.python)
        if done.code:
            raise self._failure(done.err)

    def _run(self, argv: list[str], python: Snapshot, more: dict[str, str] | None = None) -> child.Completed:
        return child.run(argv, env=self._environment(python) | (more or {}), cancel=self.cancel)

    def _environment(self, python: Snapshot) -> dict[str, str]:
        return {
            "PATH": "/usr/bin:/bin", "HOME": str(self._folder("home")), "LC_ALL": "C.UTF-8", "UV_CACHE_DIR": str(self._folder("uv")),
            "UV_NO_CONFIG": "1", "UV_PYTHON_DOWNLOADS": "never", "UV_NO_PROGRESS": "1", "NO_COLOR": "1", "UV_HTTP_RETRIES": "2",
            **self.indexes.variables(), **python.variables,
        }  # fmt: skip

    @staticmethod
    def _dates(wishes: Wishes) -> list[str]:
        if not wishes.exclude_newer:
            return []
        exempt = [part for name in wishes.undated for part in ("--exclude-newer-package", f"{name}=false")]
        return ["--exclude-newer", wishes.exclude_newer, *exempt]

    @staticmethod
    def _sources(wishes: Wishes, folder: Path) -> list[str]:
        argv = ["--torch-backend", wishes.torch_backend] if wishes.torch_backend else []
        if wishes.wheels:
            links = folder / "wheels"
            links.mkdir(exist_ok=True)
            for wheel in wishes.wheels:
                shutil.copyfile(wheel, links / wheel.name)
            argv += ["--find-links", str(links)]
        return argv

    @staticmethod
    def _file(folder: Path, name: str, lines: Sequence[str]) -> str:
        path = folder / f"{name}.txt"
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return str(path)

    @staticmethod
    def _failure(text: str) -> SandboxError:
        if any(mark in text for mark in _FULL):
            return DiskFull("there is no room left on the disk for the environment")
        if any(mark in text for mark in _NETWORK):
            return IndexDown(_first(text))
        return Unresolvable(text.strip())

    def _folder(self, name: str) -> Path:
        """A folder of the cache. Other users (the sandbox's) must be able to look inside."""
        path = self.cache / name
        if not path.is_dir():
            with self._space():
                path.mkdir(mode=0o755, parents=True, exist_ok=True)
                path.chmod(0o755)
                self.cache.chmod(0o755)
        return path

    @contextmanager
    def _scratch(self) -> Iterator[Path]:
        name = f"{os.getpid()}-{time.monotonic_ns()}"
        path = self._folder("scratch") / name
        with self._guarded(name):
            path.mkdir()
            try:
                yield path
            finally:
                shutil.rmtree(path, ignore_errors=True)
                (self.cache / "locks" / f"{name}.lock").unlink(missing_ok=True)

    @contextmanager
    def _guarded(self, name: str) -> Iterator[None]:
        with self._space(), self._lock(name, wait=True):
            yield

    @contextmanager
    def _lock(self, name: str, *, wait: bool) -> Iterator[bool]:
        with (self._folder("locks") / f"{name}.lock").open("a") as stream:
            held = _try_lock(stream.fileno())
            while wait and not held:
                if self.cancel is not None and self.cancel.is_set():
                    raise child.Interrupted("stopped while waiting for another build")
                time.sleep(0.05)
                held = _try_lock(stream.fileno())
            yield held

    @contextmanager
    def _space(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if error.errno in {28, 122}:
                raise DiskFull("there is no room left on the disk for the environment") from error
            raise SandboxError(f"the cache folder {self.cache} cannot be used: {error.strerror}") from error


_COMPILE = """
import compileall, os, sys
files = [os.path.join(f, n) for f, _, names in os.walk(sys.argv[1]) for n in names if n.endswith('.py')]
count = min(os.cpu_count() or 1, 8, 1 + len(files) // 50)
children = []
for k in range(count - 1):
    pid = os.fork()
    if not pid:
        import ctypes
        ctypes.CDLL(None).prctl(1, 9)
        for name in files[k + 1::count]:
            compileall.compile_file(name, quiet=2)
        os._exit(0)
    children.append(pid)
for name in files[0::count]:
    compileall.compile_file(name, quiet=2)
for pid in children:
    os.waitpid(pid, 0)
"""


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _first(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")
