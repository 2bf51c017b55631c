"""What the operator keeps on this host for runs: data by name, unpacked once if it is an archive,
and a hub cache with the weights in it.
"""

import hashlib
import os
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from bot.kernel.bug import Issue
from bot.kernel.config import is_data_name
from bot.kernel.environment import DataMount, OperatorFiles
from bot.kernel.outside_text import one_line
from sandbox import footprint
from sandbox.cache import Cache
from sandbox.footprint import TooLarge
from sandbox.port import SandboxError

_SUFFIXES = (".zip", ".tar.gz", ".tgz")
_MOST_ENTRIES = 1_000_000
_MOST_SETS = 100
_LONGEST_NAME, _DEEPEST = 1_000, 100
_PIECE = 1 << 20
_Members = Generator[tuple[str, IO[bytes] | None], None, None]
_BROKEN = (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError)


@dataclass(frozen=True, slots=True)
class Shelf:
    """Where the operator keeps what runs get: a folder of data, the folder of a hub cache, and the
    `cache` into which archives are unpacked, `most` bytes each. `own_paths`: the person who starts
    the job is the operator, and may name any path of this host.
    """

    cache: Cache
    data_dir: Path | None = None
    hub_dir: Path | None = None
    most: int = 20 * 10**9
    own_paths: bool = False

    def files(self, data: Mapping[str, str]) -> OperatorFiles:
        """What a job's runs get. Never raises: what cannot be had is among the problems."""
        mounts, problems = list[DataMount](), list[str]()
        for path, wish in data.items():
            name, source = Path(wish).name, ""
            try:
                source = str(self._source(path, wish))
            except (SandboxError, OSError) as error:
                why = error.strerror if isinstance(error, OSError) else ""
                problems.append(f"the data `{name}` for `{path}` is left out: {why or error}")
            mounts.append(DataMount(path=path, name=name, source=source))
        hub, variables = hub_variables(self.hub_dir)
        return OperatorFiles(
            data=tuple(mounts),
            hub=hub,
            weights=weights_in(self.hub_dir),
            sets=_sets_in(hub),
            variables=variables,
            problems=tuple(problems),
        )

    def _source(self, path: str, wish: str) -> Path:
        """The folder or file to mount for a path in a tree. Raises SandboxError and OSError."""
        place = self._place(wish)
        is_archive = place.is_file() and place.name.endswith(_SUFFIXES)
        if is_archive and not path.endswith(PurePosixPath(place.name).suffix):
            place = self._unpacked(place)
            inside = list(place.iterdir())
            # An archive of one folder is that folder, as when a person unpacks it.
            lone = inside[0] if len(inside) == 1 and inside[0].is_dir() else place
            return lone if lone.name in {PurePosixPath(path).name, _stem(wish)} else place
        if not place.is_dir() and not place.is_file():
            raise SandboxError("it is neither a folder nor a file")
        needed = 0o005 if place.is_dir() else 0o004
        is_service = os.geteuid() == 0 or not self.own_paths  # its runs have users of their own
        if is_service and place.stat().st_mode & needed != needed:
            raise SandboxError("not every user can read it")
        return place

    def _place(self, wish: str) -> Path:
        if "/" in wish and self.own_paths:
            return Path(wish).resolve(strict=True)
        if not is_data_name(wish):  # whoever made the job, names lead nowhere else
            raise SandboxError("that is no name of data")
        if self.data_dir is None:
            raise SandboxError("this worker has no REPRISE_DATA_DIR")
        names = (wish, *(wish + suffix for suffix in _SUFFIXES))
        places = (self.data_dir / name for name in names)
        place = next((one for one in places if one.exists()), None)
        if place is None:
            raise SandboxError("this worker's REPRISE_DATA_DIR does not contain it")
        return place.resolve()

    def _unpacked(self, archive: Path) -> Path:
        """The folder of an archive's content, made once for each version of it."""
        about = archive.stat()
        parts = (str(archive), about.st_size, about.st_mtime_ns, about.st_ino)
        key = hashlib.sha256(repr(parts).encode()).hexdigest()[:32]
        target = self.cache.folder("data") / key
        if self.cache.using("data", key):
            return target / "content"
        with self.cache.guarded(f"data-{key}"):
            if not (target / ".complete").exists():
                footprint.remove(target)
                (target / "content").mkdir(parents=True)
                for folder in (target, target / "content"):
                    folder.chmod(0o755)
                try:
                    size = unpack(archive, target / "content", self.most)
                except BaseException:
                    footprint.remove(target)
                    raise
                (target / ".complete").write_text(str(size), encoding="ascii")
        return target / "content"


def _stem(name: str) -> str:
    base = PurePosixPath(name).name
    return next((base.removesuffix(one) for one in _SUFFIXES if base.endswith(one)), base)


# Archives → folders. The operator trusts them, but whoever packed one may not have been careful:
# only plain files and folders come out, below the folder, within bounds.


def unpack(archive: Path, folder: Path, most: int) -> int:
    """Unpack an archive of plain files into an empty folder; the bytes that came out. Raises
    SandboxError for one that is broken, too large, or contains a link or a path that leads out.
    """
    members = _zip_members if archive.name.endswith(".zip") else _tar_members
    room, count = most, 0
    try:
        with closing(members(archive)) as rows:
            for name, content in rows:
                count += 1
                if count > _MOST_ENTRIES:
                    raise TooLarge(f"the archive has more than {_MOST_ENTRIES:,} entries")
                room -= _write(folder, name, content, room)
    except _BROKEN as error:
        raise SandboxError(f"the archive is broken: {one_line(str(error))[:200]}") from error
    except RuntimeError as error:  # of zipfile, for a password
        raise SandboxError("the archive needs a password") from error
    return most - room


def _write(folder: Path, name: str, content: IO[bytes] | None, room: int) -> int:
    """Write one member, a folder where it has no content; the bytes that it took."""
    path = PurePosixPath(name)
    is_long = len(name) > _LONGEST_NAME or len(path.parts) > _DEEPEST
    if is_long or path.is_absolute() or ".." in path.parts or "\0" in name or "\\" in name:
        raise SandboxError(
            f"the archive has the path {one_line(name)[:80]!r}, which leads out of it"
        )
    target = folder / path
    if content is None:
        _make(target, folder)
        return 0
    _make(target.parent, folder)
    footprint.ensure_room(folder)
    size = 0
    with content, target.open("xb") as out:
        while piece := content.read(_PIECE):
            size += len(piece)
            if size > room:
                raise TooLarge("the archive unpacks to more than REPRISE_DATA_GB allows")
            out.write(piece)
    target.chmod(0o644)
    return size


def _make(folder: Path, root: Path) -> None:
    """Make a folder and those above it, which every user may read."""
    for one in reversed([folder, *folder.parents]):
        if one.is_relative_to(root) and not one.is_dir():
            one.mkdir()
            one.chmod(0o755)


def _zip_members(archive: Path) -> _Members:
    with zipfile.ZipFile(archive) as packed:
        for info in packed.infolist():
            kind = stat.S_IFMT(info.external_attr >> 16)
            if kind not in {0, stat.S_IFREG, stat.S_IFDIR}:
                raise _special(info.filename)
            yield info.filename, None if info.is_dir() else packed.open(info)


def _tar_members(archive: Path) -> _Members:
    with tarfile.open(archive, "r|gz") as packed:
        for info in packed:
            if not (info.isfile() or info.isdir()):
                raise _special(info.name)
            yield info.name, packed.extractfile(info) if info.isfile() else None


def _special(name: str) -> SandboxError:
    return SandboxError(
        f"the archive contains {one_line(name)[:80]!r}, which is no plain file or folder"
    )


# A hub cache: where libraries look for it, and what is in it.


def hub_variables(folder: Path | None) -> tuple[str, dict[str, str]]:
    """What to mount of a hub cache, "" for nothing, and the variables that lead libraries to it."""
    if folder is None or not folder.is_dir():
        return "", {}
    folder = folder.resolve()
    hub, torch = _hub(folder), folder / "torch"
    # Releases before 2024, and transformers since this layout of the cache, read the second.
    # HF_HOME stays writable: libraries keep locks and the code of models there.
    variables = dict.fromkeys(("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"), str(hub))
    return str(folder), variables | ({"TORCH_HOME": str(torch)} if torch.is_dir() else {})


def _hub(folder: Path) -> Path:
    return folder / "hub" if (folder / "hub").is_dir() else folder


def _sets_in(hub: str) -> tuple[str, ...]:
    """The data sets that the library of that name has prepared beside a hub cache."""
    folders = Path(hub).glob("datasets/*/") if hub else ()
    return tuple(sorted(str(path) for path in folders if path.name != "downloads"))[:_MOST_SETS]


def weights_in(folder: Path | None) -> tuple[str, ...]:
    """The names of the models in a hub cache, as programs write them, and those of the checkpoints
    of torch.hub: "bert-base-uncased", "org/model", "resnet18".
    """
    if folder is None or not folder.is_dir():
        return ()
    models = (
        path.name.removeprefix("models--").replace("--", "/")
        for path in _hub(folder).glob("models--*")
        if any(path.glob("snapshots/*/*"))
    )
    checkpoints = (
        path.stem.rpartition("-")[0] or path.stem
        for path in folder.glob("torch/hub/checkpoints/*.pth")
    )
    return tuple(sorted({*models, *checkpoints}))


def weights_named(issue: Issue, weights: Sequence[str]) -> tuple[str, ...]:
    """Those of the weights that a bug report names."""
    text = f"{issue.title}\n{issue.body}"
    return tuple(name for name in weights if name in text)
