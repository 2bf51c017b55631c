"""Python interpreters: which are present, and a relocated copy of each that a bare container can
run.
"""

import hashlib
import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Event

from sandbox import subprocesses
from sandbox.port import SandboxError

_LEFT_OUT = (
    "site-packages",
    "dist-packages",
    "test",
    "tests",
    "idlelib",
    "turtledemo",
    "tkinter",
    "ensurepip",
    "config-*",
    "_tkinter*",
    "_test*",
    "*.a",
    "idle_test",
    "*.opt-?.pyc",
)
_SYSTEM = re.compile(r"^(?:ld-linux|linux-vdso|lib(?:c|m|dl|pthread|rt|util|resolv|nsl)\.so)")
_LIBRARY = re.compile(r"^\s*(\S+) => (/\S+) \(", re.MULTILINE)
_OLDEST = 6


@dataclass(frozen=True, slots=True)
class Interpreter:
    """An interpreter on this machine: its executable and its minor version ("3.11")."""

    executable: Path
    minor: str

    @property
    def prefix(self) -> Path:
        """The folder that holds its bin and lib."""
        return self.executable.parent.parent


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A relocated copy: `root` holds bin and lib, `version` is the full version."""

    root: Path
    executable: Path
    version: str
    minor: str

    @property
    def variables(self) -> dict[str, str]:
        """What the copy needs to find its shared libraries."""
        return {"LD_LIBRARY_PATH": str(self.root / "lib")}


def discover(environ: Mapping[str, str]) -> tuple[Interpreter, ...]:
    """One interpreter for each minor version: the running one, pyenv's, uv's own, then those on
    the path. Oldest first.
    """
    by_minor: dict[str, Interpreter] = {}
    for path in _places(environ):
        match = re.fullmatch(r"python3\.(\d+)", path.name)
        if match and int(match[1]) >= _OLDEST and _is_program(path):
            by_minor.setdefault(f"3.{match[1]}", Interpreter(path.resolve(), f"3.{match[1]}"))
    return tuple(
        sorted(by_minor.values(), key=lambda interpreter: int(interpreter.minor.partition(".")[2]))
    )


def _places(environ: Mapping[str, str]) -> Iterator[Path]:
    home = Path(environ.get("HOME") or "/nonexistent")
    yield Path(sys.base_prefix, "bin", f"python3.{sys.version_info.minor}")
    yield from sorted(
        Path(environ.get("PYENV_ROOT") or home / ".pyenv").glob("versions/*/bin/python3.*"),
        reverse=True,
    )
    managed = environ.get("UV_PYTHON_INSTALL_DIR") or Path(
        environ.get("XDG_DATA_HOME") or home / ".local/share", "uv/python"
    )
    yield from sorted(Path(managed).glob("cpython-*/bin/python3.*"), reverse=True)
    for folder in environ.get("PATH", "/usr/local/bin:/usr/bin:/bin").split(":"):
        yield from sorted(Path(folder or ".").glob("python3.*"))


def _is_program(path: Path) -> bool:
    """Whether the file is a binary; version managers put shell scripts of the same name on the
    path.
    """
    try:
        with path.open("rb") as stream:
            return stream.read(4) == b"\x7fELF" and os.access(path, os.X_OK)
    except OSError:
        return False


def snapshot(interpreter: Interpreter, store: Path, cancel: Event | None = None) -> Snapshot:
    """The copy of an interpreter under `store`, made on first use. The caller holds the lock."""
    about = interpreter.executable.stat()
    identity = f"{interpreter.executable}\0{about.st_mtime_ns}\0{about.st_size}"
    root = (
        store / f"cpython-{interpreter.minor}-{hashlib.sha256(identity.encode()).hexdigest()[:12]}"
    )
    marker = root / ".complete"
    if not marker.exists():
        shutil.rmtree(root, ignore_errors=True)
        _copy(interpreter, root, cancel)
        version = _version(root / "bin" / f"python{interpreter.minor}", root)
        marker.write_text(version, encoding="utf-8")
    return Snapshot(
        root,
        root / "bin" / f"python{interpreter.minor}",
        marker.read_text(encoding="utf-8"),
        interpreter.minor,
    )


def _copy(interpreter: Interpreter, root: Path, cancel: Event | None) -> None:
    name = f"python{interpreter.minor}"
    library = root / "lib"
    (root / "bin").mkdir(parents=True)
    library.mkdir()
    shutil.copy2(interpreter.executable, root / "bin" / name)
    for alias in ("python3", "python"):
        (root / "bin" / alias).symlink_to(name)
    unneeded = shutil.ignore_patterns(*_LEFT_OUT)
    shutil.copytree(
        interpreter.prefix / "lib" / name, library / name, ignore=unneeded, symlinks=True
    )
    (library / name / "site-packages").mkdir()
    headers = next(interpreter.prefix.glob(f"include/{name}*"), None)
    if headers is not None:
        shutil.copytree(headers, root / "include" / headers.name)
    for source in _libraries(root, cancel):
        shutil.copy2(source, library / source.name)
    _open_to_readers(root)


def _libraries(root: Path, cancel: Event | None) -> set[Path]:
    """Shared libraries the copy needs beyond the C library itself, and the C++ runtime that most
    wheels presume.
    """
    modules = [*root.glob("bin/python3.*"), *root.glob("lib/python*/lib-dynload/*.so")]
    libraries: dict[str, Path] = {}
    linker = shutil.which("ldd", path="/usr/bin:/bin")
    if linker is not None:
        listing = subprocesses.run(
            [linker, *modules],
            env={"PATH": "/usr/bin:/bin", "LC_ALL": "C"},
            cancel=cancel,
            timeout_s=60,
        )
        libraries |= {name: Path(path) for name, path in _LIBRARY.findall(listing.out)}
    for name in ("libstdc++.so.6", "libgcc_s.so.1", "libgomp.so.1"):
        for path in sorted(Path("/usr/lib").glob(f"*-linux-gnu/{name}")) or sorted(
            Path("/usr/lib64").glob(name)
        ):
            libraries.setdefault(name, path)
    return {
        path.parent / name
        for name, path in libraries.items()
        if not _SYSTEM.match(name) and (path.parent / name).exists()
    }


def _open_to_readers(root: Path) -> None:
    for folder, _, files in os.walk(root):
        Path(folder).chmod(0o755)
        for file in files:
            path = Path(folder, file)
            if not path.is_symlink():
                path.chmod(0o755 if path.stat().st_mode & 0o100 else 0o644)


def _version(executable: Path, root: Path) -> str:
    code = "import ssl, sqlite3, ctypes, sys; print('.'.join(map(str, sys.version_info[:3])))"
    result = subprocesses.run(
        [executable, "-I", "-S", "-c", code],
        env={"LD_LIBRARY_PATH": str(root / "lib")},
        timeout_s=60,
    )
    if result.code:
        raise SandboxError(
            f"the copy of Python does not run: {result.err.strip().splitlines()[-1:]}"
        )
    return result.out.strip()


# torchvision beside a torch without CUDA, for which the index has no build: makes its import work
# without its compiled operators.

_SCHEMAS = {
    "nms": "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms": "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
}
_ADDED_SOURCE = """

# Added by Reprise, not a part of torchvision. The compiled operators of this build load only
# beside a CUDA build of torch, and `_meta_registrations` needs some of them at import. They are
# declared here without a kernel: the import works, and a call of one of them fails.
if not _has_ops():
    import torch.library

"""


def missing(site: Path) -> bool:
    """Whether torchvision is installed there and cannot load its compiled operators, because they
    are linked against the CUDA libraries of torch.
    """
    links_cuda = (b"libtorch_cuda" in path.read_bytes() for path in site.glob("torchvision/_C*.so"))
    return any(links_cuda) and not any(site.glob("torch/lib/libtorch_cuda*"))


def declare(site: Path) -> None:
    """Declare the operators that the import needs, at the end of `torchvision/extension.py`. The
    file is replaced, not written to: the installer's cache may hold a link to it.
    """
    package = site / "torchvision"
    extension, registrations = package / "extension.py", package / "_meta_registrations.py"
    if not (extension.is_file() and registrations.is_file()):
        return
    source = registrations.read_text(encoding="utf-8")
    lines = [
        f'    torch.library.define("torchvision::{name}", "{schema}")\n'
        for name, schema in _SCHEMAS.items()
        if f'"torchvision::{name}"' in source
    ]
    if lines:
        text = extension.read_text(encoding="utf-8")
        extension.unlink()
        extension.write_text("".join((text, _ADDED_SOURCE, *lines)), encoding="utf-8")
