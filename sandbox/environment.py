"""The prepare phase: resolve and install with uv into environments that are kept by their lock
and shown read-only to runs.
"""

import hashlib
import platform
import re
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from uv import find_uv_bin

from sandbox import footprint, interpreters, subprocesses
from sandbox.cache import Cache
from sandbox.footprint import Bounds, DiskFull, TooLarge, UnpackWatch
from sandbox.indexes import Indexes
from sandbox.interpreters import Interpreter, Snapshot, snapshot
from sandbox.port import SandboxError

# What the resolver decided, read from a lock file of PEP 751, and how large packed wheels are.


def wheel_sizes(text: str) -> dict[str, int]:
    """The pins ("name==version"), each with the bytes of its largest fitting wheel; 0 where the
    index does not tell.
    """
    packages = tomllib.loads(text).get("packages", [])
    return {
        f"{package['name']}=={package['version']}": max(
            map(_size, package.get("wheels", ())), default=0
        )
        for package in packages
    }


def _size(wheel: dict[str, Any]) -> int:
    if "size" in wheel:
        return int(wheel["size"])
    address = urlsplit(wheel.get("url", ""))
    path = wheel.get("path") or (unquote(address.path) if address.scheme == "file" else "")
    try:
        return Path(path).stat().st_size if path else 0
    except OSError:
        return 0


def folder_sizes(folders: Iterable[Path]) -> dict[str, int]:
    """The bytes of the largest wheel of each distribution in some folders."""
    sizes_by_name: dict[str, int] = {}
    for wheel in (file for folder in folders for file in folder.glob("*.whl")):
        name = wheel.name.partition("-")[0].replace("_", "-").lower()
        sizes_by_name[name] = max(sizes_by_name.get(name, 0), wheel.stat().st_size)
    return sizes_by_name


# The prepare phase: resolve and install with uv into environments that are kept by their lock and
# shown read-only to runs.
#
# Only wheels are installed here, so nothing of what is installed gets to run: uv unpacks files,
# and byte code is compiled by a Python that looks at no site-packages. What has no wheel is built
# elsewhere, inside a sandbox (`sandbox.build`).

FORMAT = "2"
"""Of environments; another one leaves those that exist aside."""

_COMPILER = Path(str(resources.files("sandbox").joinpath("probe", "compile_sources.py")))
_NETWORK = (
    "error sending request",
    "Failed to fetch",
    "dns error",
    "Connection refused",
    "operation timed out",
    "tcp connect",
)
_FILE_TOO_LARGE = re.compile(r"Failed to \w+ `([\w.-]+)[^`]*`[\s\S]*\(os error 27\)")
_FULL = ("No space left on device", "os error 28", "Disk quota exceeded")
_UV = {
    "PATH": "/usr/bin:/bin",
    "LC_ALL": "C.UTF-8",
    "UV_NO_CONFIG": "1",
    "UV_PYTHON_DOWNLOADS": "never",
    "UV_NO_PROGRESS": "1",
    "NO_COLOR": "1",
    "UV_HTTP_RETRIES": "2",
}


class Unresolvable(SandboxError):
    """The wishes cannot be met together; the message is the resolver's."""


class IndexDown(SandboxError):
    """The package index does not answer."""


@dataclass(frozen=True, slots=True)
class Wishes:
    """What to resolve, in the resolver's own words (PEP 508 lines). `wheels` are files that were
    built here, `windows` the days before which packages with a date of their own came out.
    """

    requirements: tuple[str, ...]
    constraints: tuple[str, ...] = ()
    overrides: tuple[str, ...] = ()
    excludes: tuple[str, ...] = ()
    exclude_newer: str = ""
    undated: tuple[str, ...] = ()
    windows: tuple[tuple[str, str], ...] = ()
    wheels: tuple[Path, ...] = ()
    torch_backend: str = ""


@dataclass(frozen=True, slots=True)
class Installation:
    """An installed environment."""

    id: str
    root: Path
    interpreter: Path
    python: Snapshot
    pins: tuple[str, ...]

    @property
    def site(self) -> Path:
        """Where its packages are."""
        return self.root / f"lib/python{self.python.minor}/site-packages"


@dataclass
class Installer:
    """uv, one cache and one set of index settings. Safe to use from several threads and
    processes at once.
    """

    cache: Cache
    indexes: Indexes
    bounds: Bounds = field(default_factory=Bounds)
    _uv: str = field(default_factory=find_uv_bin)
    _sizes: dict[str, int] = field(default_factory=dict, init=False)
    """Of the packed wheels that were resolved, in bytes by their pins."""

    def python(self, interpreter: Interpreter) -> Snapshot:
        """The relocated copy of an interpreter, made on first use."""
        with self.cache.guarded(f"python-{interpreter.minor}"):
            return snapshot(interpreter, self.cache.folder("pythons"), self.cache.cancel)

    def resolve(self, wishes: Wishes, python: Snapshot) -> tuple[str, ...]:
        """The pins ("name==version") that meet the wishes. Raises Unresolvable with the
        resolver's words.
        """
        if not wishes.requirements:
            return ()
        with self.cache.scratch() as folder:
            argv = self._compiling(python, "--format", "pylock.toml", *_dates(wishes))
            argv += _backend(wishes)
            lists = {
                "--constraints": wishes.constraints,
                "--overrides": wishes.overrides,
                "--excludes": wishes.excludes,
            }
            for option, lines in lists.items():
                argv += [option, _file(folder, option[2:], lines)] if lines else []
            argv.append(_file(folder, "requirements", wishes.requirements))
            # Wheels without a hash are unpacked for it.
            local = folder_sizes(self._places(wishes))
            result = self._unpacking(argv, python, wishes, local)
        sizes = wheel_sizes(result.out)
        self._sizes |= sizes
        return tuple(sizes)

    def reachable(self, backend: str, python: Snapshot) -> bool:
        """Whether the index of a torch backend answers, asked with little patience."""
        patience = {
            "UV_HTTP_RETRIES": "0",
            "UV_HTTP_CONNECT_TIMEOUT": "3",
            "UV_HTTP_TIMEOUT": "5",
            "UV_FIND_LINKS": "",
        }
        with self.cache.scratch() as folder:
            argv = self._compiling(python, "--no-deps", "--torch-backend", backend)
            return (
                self._run([*argv, _file(folder, "requirements", ("torch",))], python, patience).code
                == 0
            )

    def install(self, pins: Sequence[str], wishes: Wishes, python: Snapshot) -> Installation:
        """The environment with exactly these pins: from the cache, else built in place and
        marked complete at the end.
        """
        key = _key(pins, wishes, python)
        root = self.cache.folder("envs") / key
        installation = Installation(key, root, root / "bin/python", python, tuple(pins))
        if self.cache.using("envs", key):
            return installation
        with self.cache.guarded(f"env-{key}"):
            if not self.cache.complete("envs", key):
                footprint.remove(root)
                try:
                    self._fill(installation, wishes)
                except SandboxError:
                    footprint.remove(root)
                    raise
                footprint.note(root)
                marker = root / ".complete"
                marker.unlink(missing_ok=True)  # a wheel may bring one
                marker.write_text("\n".join(pins), encoding="utf-8")
        return installation

    def _fill(self, installation: Installation, wishes: Wishes) -> None:
        bare = str(installation.python.executable)
        self._checked(
            [self._uv, "venv", "-q", "--no-project", "--python", bare, str(installation.root)],
            installation.python,
        )
        if installation.pins:
            with self.cache.scratch() as folder:
                argv = [
                    self._uv,
                    "pip",
                    "install",
                    "-q",
                    "--no-deps",
                    "--only-binary",
                    ":all:",
                    "--python",
                    str(installation.interpreter),
                    *self._offline(),
                ]
                argv += [*_backend(wishes), "-r", _file(folder, "lock", installation.pins)]
                sizes = {
                    pin.partition("==")[0]: self._sizes.get(pin, 0) for pin in installation.pins
                }
                self._unpacking(argv, installation.python, wishes, sizes)
        if interpreters.missing(installation.site):
            interpreters.declare(installation.site)
        self._byte_code(installation)

    def _unpacking(
        self, argv: list[str], python: Snapshot, wishes: Wishes, sizes: dict[str, int]
    ) -> subprocesses.Completed:
        """Run uv on wheels of these packed sizes by name, under the limits for them."""
        watch = UnpackWatch(self.cache.folder("uv"), sizes, self.bounds)
        try:
            watch.room()
            result = self._run(argv, python, self._links(wishes), watch)
            watch.ended()
        except TooLarge as error:
            watch.stopped()
            raise Unresolvable(str(error)) from error
        if match := _FILE_TOO_LARGE.search(result.err):
            most = f"{self.bounds.most >> 20} MiB"
            raise Unresolvable(f"{match[1]} has a file of more than {most}, the limit for a file")
        if result.code:
            raise _failure(result.err)
        return result

    def _byte_code(self, installation: Installation) -> None:
        """Compile the sources. The environment's own Python would run the `.pth` files it was just
        given; the bare one with -S does not look there.
        """
        store = self.cache.folder("bytecode") / installation.python.root.name
        argv = [str(installation.python.executable), "-I", "-S", "-W", "ignore", str(_COMPILER)]
        result = self._run(
            [*argv, str(installation.root), str(installation.site), str(store)], installation.python
        )
        if result.code:
            raise SandboxError(f"the byte code could not be made: {result.err.strip()[-300:]}")

    def _compiling(self, python: Snapshot, *more: str) -> list[str]:
        argv = [
            self._uv,
            "pip",
            "compile",
            "-q",
            "--no-header",
            "--no-annotate",
            "--only-binary",
            ":all:",
        ]
        return [*argv, *self._offline(), "--python", str(python.executable), *more]

    def _offline(self) -> list[str]:
        return ["--no-index"] if self.indexes.offline else []  # uv has no variable for it

    def _checked(
        self, argv: list[str], python: Snapshot, more: dict[str, str] | None = None
    ) -> None:
        result = self._run(argv, python, more)
        if result.code:
            raise _failure(result.err)

    def _run(
        self,
        argv: list[str],
        python: Snapshot,
        more: dict[str, str] | None = None,
        watch: UnpackWatch | None = None,
    ) -> subprocesses.Completed:
        places = {
            "HOME": str(self.cache.folder("home")),
            "UV_CACHE_DIR": str(self.cache.folder("uv")),
        }
        env = _UV | places | self.indexes.variables() | python.variables | (more or {})
        limits = self.bounds.rlimits
        with self.cache.sharing("uv"):
            return subprocesses.run(
                argv, env=env, cancel=self.cache.cancel, limits=limits, watch=watch
            )

    def _links(self, wishes: Wishes) -> dict[str, str]:
        """The places for single files, with the folders of wheels that were built here."""
        places = [*self.indexes.find_links, *(str(wheel.parent) for wheel in wishes.wheels)]
        return {"UV_FIND_LINKS": ",".join(dict.fromkeys(places))} if places else {}

    def _places(self, wishes: Wishes) -> tuple[Path, ...]:
        return (*self.indexes.folders, *(wheel.parent for wheel in wishes.wheels))


def _key(pins: Sequence[str], wishes: Wishes, python: Snapshot) -> str:
    """The name of an environment: its pins, its Python, its platform, and the wheels that were
    built here.
    """
    own = [f"{wheel.parent.name}/{wheel.name}" for wheel in wishes.wheels]
    parts = [
        FORMAT,
        python.root.name,
        platform.machine(),
        wishes.torch_backend,
        *sorted(pins),
        *sorted(own),
    ]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:24]


def _dates(wishes: Wishes) -> list[str]:
    if not wishes.exclude_newer:
        return []
    days = {**dict(wishes.windows), **dict.fromkeys(wishes.undated, "false")}
    exempt = [
        part for name, day in days.items() for part in ("--exclude-newer-package", f"{name}={day}")
    ]
    return ["--exclude-newer", wishes.exclude_newer, *exempt]


def _backend(wishes: Wishes) -> list[str]:
    return ["--torch-backend", wishes.torch_backend] if wishes.torch_backend else []


def _file(folder: Path, name: str, lines: Sequence[str]) -> str:
    path = folder / f"{name}.txt"
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return str(path)


def _failure(text: str) -> SandboxError:
    if any(mark in text for mark in _FULL):
        return DiskFull("the disk has no space left for the environment")
    if any(mark in text for mark in _NETWORK) and "HTTP status client error" not in text:
        return IndexDown(next((line.strip() for line in text.splitlines() if line.strip()), ""))
    return Unresolvable(text.strip())
