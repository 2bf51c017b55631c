"""Files that are written whole or not at all, and checkouts on this machine, read without
following links.
"""

import difflib
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha1
from pathlib import Path, PurePosixPath
from typing import IO, TypeVar

from pydantic import ValidationError
from unidiff.errors import UnidiffParseError
from unidiff.patch import PatchedFile, PatchSet

from bot.kernel.errors import UserError
from bot.kernel.run import REGULAR, ProposedFile, TreeEntry
from bot.kernel.values import Record

# Files that are written whole or not at all, also when the power fails, and records that are
# appended to one, a line each.

R = TypeVar("R", bound=Record)


def write(path: Path, text: str, mode: int = 0o666) -> None:
    """Write a whole text file or none: to a temporary name, to disk, then renamed."""
    write_bytes(path, text.encode("utf-8", "replace"), mode)


def write_bytes(path: Path, data: bytes, mode: int = 0o666) -> None:
    """Write a whole file or none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.reprise-part")
    part.unlink(missing_ok=True)
    try:
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            file.write(data)
            sync(file)
        part.replace(path)
    except OSError:
        part.unlink(missing_ok=True)
        raise
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def sync(file: IO[str] | IO[bytes]) -> None:
    """Bring what was written to the disk."""
    file.flush()
    os.fsync(file.fileno())


def read_exchanges(path: Path, kind: type[R]) -> tuple[R, ...]:
    """Every record of a file but a last line that a kill left unfinished. Raises UserError."""
    try:
        *lines, _ = path.read_bytes().split(b"\n")
    except OSError as error:
        hint = "Pass the folder of a run that asked a model."
        raise UserError(f"{path} cannot be read ({error.strerror}).", hint) from None
    exchanges = []
    for number, line in enumerate(lines, 1):
        try:
            exchanges.append(kind.model_validate_json(line))
        except ValidationError:
            raise UserError(
                f"Line {number} of {path} is not a recorded {kind.__name__.lower()}.",
                "Start again in a new folder.",
            ) from None
    return tuple(exchanges)


def append(path: Path, record: Record) -> None:
    """Append a record as a line, to the disk. A line that a kill cut short has no newline."""
    with path.open("ab") as file:
        file.write(record.model_dump_json().encode() + b"\n")
        sync(file)


def cut_unfinished(path: Path) -> None:
    """Take off the part of a last line that a kill left unfinished."""
    content = path.read_bytes() if path.exists() else b""
    whole = content.rfind(b"\n") + 1
    if whole < len(content):
        os.truncate(path, whole)


# Unified diffs as git reads them: written here, and held to apply to what they are for.

_NO_END = "\\ No newline at end of file\n"


def unified(path: str, before: str | None, after: str) -> str:
    """The diff of one file; `before` is None where it is new. "" when nothing changes."""
    old, new = _lines(before or ""), _lines(after)
    source = f"a/{path}" if before is not None else "/dev/null"
    lines = "".join(_with_line_ends(difflib.unified_diff(old, new, source, f"b/{path}")))
    if not lines:
        return ""
    head = f"diff --git a/{path} b/{path}\n"
    return head + ("new file mode 100644\n" if before is None else "") + lines


def _with_line_ends(lines: Iterator[str]) -> Iterator[str]:
    for line in lines:
        yield line if line.endswith("\n") else f"{line}\n{_NO_END}"


def misfit(diff: str, path: str, before: str, after: str) -> str:
    """Why a diff does not lead from one text of a file to another, as a clause; "" when it does."""
    file = _only(diff)
    if file is None:
        return "is not a unified diff of one file"
    if file.path != path:
        return "changes another file"
    patched = apply_diff(diff, before)
    if patched is None:
        return "does not apply to the current file"
    return "" if patched.rstrip("\n") == after.rstrip("\n") else "gives another text"


def apply_diff(diff: str, before: str) -> str | None:
    """A text after the diff of its file; None where its lines are others, or stand elsewhere."""
    file = _only(diff)
    if file is None:
        return None
    lines, at, patched = _lines(before), 0, list[str]()
    for hunk in file:
        start = hunk.source_start - (1 if hunk.source_length else 0)
        old = [line.value for line in hunk if line.is_context or line.is_removed]
        new = [line.value for line in hunk if line.is_context or line.is_added]
        if start < at or _bare(lines[start : start + len(old)]) != _bare(old):
            return None
        patched += [*lines[at:start], *new]
        at = start + len(old)
    line_end = "\n" if before.endswith("\n") else ""
    return "\n".join(_bare([*patched, *lines[at:]])) + line_end


def files(diff: str) -> list[tuple[str, str]]:
    """The path of each file that a diff modifies, with the part of the diff that is of it; none
    where it is no diff.
    """
    try:
        return [(file.path, str(file)) for file in PatchSet(diff) if file.is_modified_file]
    except (UnidiffParseError, ValueError):
        return []


def blob(text: str) -> str:
    """Git's id of a file with this text."""
    raw = text.encode()
    return sha1(b"blob %d\0%b" % (len(raw), raw), usedforsecurity=False).hexdigest()


def _only(diff: str) -> PatchedFile | None:
    """The one file that a diff modifies."""
    try:
        patch = PatchSet(diff)
    except (UnidiffParseError, ValueError):
        return None
    return patch[0] if len(patch) == 1 and patch[0].is_modified_file else None


def changed_lines(diff: str) -> int:
    """How many lines a diff adds and removes."""
    return sum(file.added + file.removed for file in PatchSet(diff))


def added_lines(diff: str) -> frozenset[int]:
    """The numbers, in the text after a diff of one file, of the lines that it adds."""
    lines = (line for file in PatchSet(diff) for hunk in file for line in hunk if line.is_added)
    return frozenset(line.target_line_no for line in lines if line.target_line_no)


def _lines(text: str) -> list[str]:
    """Lines as git has them: only a newline ends one."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _bare(lines: list[str]) -> list[str]:
    # The diff tells of a missing last line end on a line of its own.
    return [line.rstrip("\n") for line in lines]


# Which paths of a repository a pull request may touch: a new test, one program of its own with
# its modules and configuration files.

MOST_TEST, MOST_PATCHED, MOST_CHANGED, MOST_FILES = 65_536, 524_288, 400, 12
"""Characters of a test, of a patched file, changed lines in all of those, files altogether."""

_PATCHED_SUFFIXES = frozenset({".py", ".yaml", ".yml", ".json", ".toml", ".ini", ".cfg", ".gin"})
# Continuous integration, builds and locks decide what runs elsewhere and with which rights.
_NAMES = frozenset(
    {
        *("setup.py", "setup.cfg", "pyproject.toml", "tox.ini", "noxfile.py", "conftest.py"),
        *("pytest.ini", "pytest.toml", "tasks.py", "dodo.py", "manifest.in", "makefile"),
        *("cmakelists.txt", "dockerfile", "justfile", "sitecustomize.py", "usercustomize.py"),
        *("environment.yml", "environment.yaml", "package.json", "package-lock.json"),
        *("appveyor.yml", "azure-pipelines.yml", "bitbucket-pipelines.yml", "codecov.yml"),
        *("cloudbuild.yaml", "buildspec.yml", "jenkinsfile", "readthedocs.yml", "meta.yaml"),
        *("docker-compose.yml", "docker-compose.yaml", "compose.yml", "compose.yaml"),
    }
)
_FOLDERS = frozenset(
    {"ci", "workflows", "vendor", "third_party", "node_modules", "site-packages", "deploy"}
)
_LOCK = re.compile(r"\.lock$|(?:^|[-_.])lock\.(?:json|ya?ml|toml|txt)$")
_LONGEST = 240


def vendored(path: str) -> bool:
    """Whether a path belongs to CI or to code of others."""
    return not _FOLDERS.isdisjoint(path.lower().split("/")[:-1])


def refusal(path: str, *, is_patched: bool) -> str:
    """Why a path may not be written, as a clause; "" when it may. `patched`: a file that exists."""
    parts = path.split("/")
    pure, name = PurePosixPath(path), parts[-1].lower()
    plain = path.isprintable() and "\\" not in path and ":" not in path and len(path) <= _LONGEST
    reasons = (
        (
            not plain or any(part.strip() in {"", ".", ".."} for part in parts),
            "is not a plain path",
        ),
        (any(part.startswith(".") for part in parts), "is in a hidden folder or is hidden"),
        (name in _NAMES or name.startswith("requirements"), "configures builds, tests or CI"),
        (_LOCK.search(name), "is a lock file"),
        (vendored(path), "belongs to CI or to others"),
        (
            is_patched and pure.suffix.lower() not in _PATCHED_SUFFIXES,
            "is neither Python nor configuration",
        ),
    )
    return next((reason for applies, reason in reasons if applies), "")


def in_the_way(path: str, entries: Iterable[TreeEntry]) -> str:
    """What keeps a new file from a path: a folder of it that is a link, a submodule or a file, or
    something of that name, however it is written; "" when nothing does.
    """
    folders = {parent.as_posix() for parent in PurePosixPath(path).parents} - {"."}
    alike = {folder.casefold(): folder for folder in folders}
    for entry in entries:
        if entry.path.casefold() == path.casefold():
            return f"{entry.path} exists"
        folder = alike.get(entry.path.casefold())
        if folder is not None and (entry.mode != "040000" or entry.path != folder):
            return f"{entry.path} is {_KINDS.get(entry.mode, 'a file')}"
    return ""


_KINDS = {"120000": "a link", "160000": "a submodule", "040000": "a folder of another name"}


def regular(path: str, entries: Iterable[TreeEntry]) -> TreeEntry | None:
    """The file at a path, None when there is none or it is a link, a folder or a submodule."""
    matches = (entry for entry in entries if entry.path == path)
    return next((entry for entry in matches if entry.mode in REGULAR), None)


# One commit of a repository, as a proposal reads it.

_MOST_READ = 262_144


@dataclass(frozen=True)
class RepositoryFiles:
    """One commit of a repository: everything in it, and how to read a file (None: it is no
    text). Reading happens for a handful of small files.
    """

    entries: Sequence[TreeEntry]
    read: Callable[[TreeEntry], str | None]

    def text(self, path: str, most: int = _MOST_READ) -> str | None:
        """The text of a regular file of at most so many bytes; None for everything else."""
        entry = regular(path, self.entries)
        return self.read(entry) if entry is not None and entry.size <= most else None


# A checkout on this machine: what is in it, read without following links or running git, and
# files written into it.

_MOST = 200_000
_OTHERS = frozenset({"node_modules", "site-packages", "__pycache__"})


def open_checkout(folder: Path) -> RepositoryFiles:
    """The files of a checkout. Environments and hidden folders in it are left out. Raises
    UserError for what is none.
    """
    if not folder.is_dir():
        raise UserError(f"There is no folder {folder}.", "Pass the folder of a clone with --into.")
    entries = []
    for entry in _entries(folder, folder):
        entries.append(entry)
        if len(entries) > _MOST:
            raise UserError(f"{folder} contains too many files.", "Use a clean checkout.")
    return RepositoryFiles(tuple(entries), lambda entry: _text(folder / entry.path))


def _entries(top: Path, folder: Path) -> Iterator[TreeEntry]:
    for item in sorted(os.scandir(folder), key=lambda item: item.name):
        path = Path(item.path)
        name, state = path.relative_to(top).as_posix(), item.stat(follow_symlinks=False)
        if stat.S_ISLNK(state.st_mode):
            yield TreeEntry(path=name, mode="120000")
        elif stat.S_ISREG(state.st_mode):
            mode = "100755" if state.st_mode & stat.S_IXUSR else "100644"
            yield TreeEntry(path=name, mode=mode, size=state.st_size)
        elif stat.S_ISDIR(state.st_mode):
            inner = (path / ".git").exists()
            yield TreeEntry(path=name, mode="160000" if inner else "040000")
            skipped = inner or item.name in _OTHERS or item.name.startswith(".")
            if not skipped and not (path / "pyvenv.cfg").exists():
                yield from _entries(top, path)


def _text(path: Path) -> str | None:
    try:
        return path.read_bytes().decode()
    except (OSError, UnicodeDecodeError):
        return None


def put_files(folder: Path, files: Iterable[ProposedFile]) -> list[Path]:
    """Write files into a checkout; returns where. Raises UserError where a folder on the way is
    not a plain one.
    """
    paths = []
    for file in files:
        path = folder / file.path
        for parent in reversed(path.relative_to(folder).parents):
            place = folder / parent
            if place.is_symlink() or (place.exists() and not place.is_dir()):
                raise UserError(f"{place} is not a regular folder.", "Use a clean checkout.")
        if path.is_symlink():
            raise UserError(f"{path} is a symbolic link.", "Use a clean checkout.")
        path.parent.mkdir(parents=True, exist_ok=True)
        write(path, file.text)
        if file.mode == "100755":
            path.chmod(path.stat().st_mode | 0o111)
        paths.append(path)
    return paths
