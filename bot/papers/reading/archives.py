"""An archive or a folder of a paper → its files in memory, within limits: no link, no path that
leads out, no bomb.
"""

import gzip
import io
import os
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO

from bot.kernel.errors import UserError
from bot.kernel.outside_text import one_line
from bot.kernel.paper import PaperFiles

MOST_BYTES, MOST_FILES, MOST_ENTRIES = 48_000_000, 400, 4_000
"""Of all files that are read, together; and the entries of an archive."""
_LONGEST_NAME = 400
SUFFIXES = (".tex", ".ltx", ".bib", ".bbl", ".md", ".markdown", ".html", ".htm", ".xhtml", ".pdf")
"""What is read of a paper; pictures and styles are not."""
_BROKEN = (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError)
_SKIPPED = {"__MACOSX", "node_modules"}
_OTHER = "Pass the paper's folder, or one of its files."


def read_local(path: Path) -> PaperFiles:
    """The files of a paper in a folder, an archive or a single file of this machine. Raises
    UserError.
    """
    if path.is_dir():
        return PaperFiles(name=path.name, files=_of_folder(path))
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except FileNotFoundError:
        raise UserError(f"There is no file {path}.", "Check the path.") from None
    except OSError as error:
        raise UserError(f"Cannot read {path} ({error.strerror}).", "Check the path.") from None
    return unpacked(data, path.name)


def unpacked(data: bytes, name: str) -> PaperFiles:
    """The files of a paper that comes as one piece: an archive, a packed file, or the file itself.
    Raises UserError for an archive that is broken, too large, or contains a link or a path that
    leads out.
    """
    if len(data) > MOST_BYTES:
        raise UserError(f"{name} is larger than {MOST_BYTES // 1_000_000} MB.", _OTHER)
    if data[:4] == b"PK\x03\x04":
        return PaperFiles(name=name, files=_collected(_zip_members(data), name))
    if data[:2] == b"\x1f\x8b" or data[257:262] == b"ustar" or data[:6] == b"\xfd7zXZ\x00":
        return _tarred(data, name)
    return PaperFiles(name=name, files={_file_name(name, data): data})


def _file_name(name: str, data: bytes) -> str:
    """A single file by a name that says what it is."""
    if name.lower().endswith(SUFFIXES):
        return name
    if data.startswith(b"%PDF"):
        return f"{name}.pdf"
    head = data[:2_000].lstrip().lower()
    if head.startswith((b"<!doctype html", b"<html")):
        return f"{name}.html"
    return f"{name}.tex" if b"\\document" in data or b"\\section" in data else f"{name}.md"


def _tarred(data: bytes, name: str) -> PaperFiles:
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r|*") as packed:
            return PaperFiles(name=name, files=_collected(_tar_members(packed), name))
    except tarfile.ReadError:
        pass  # a single file, packed: so does arXiv with a paper of one file
    except _BROKEN as error:
        raise _broken(name, error) from None
    try:
        with gzip.open(io.BytesIO(data)) as file:
            single = file.read(MOST_BYTES + 1)
    except _BROKEN as error:
        raise _broken(name, error) from None
    if len(single) > MOST_BYTES:
        raise UserError(f"{name} unpacks to more than {MOST_BYTES // 1_000_000} MB.", _OTHER)
    plain = name.removesuffix(".gz")
    return PaperFiles(name=plain, files={_file_name(plain, single): single})


Member = tuple[str, IO[bytes] | None]
"""A path and its content, None where it is not read."""


def _zip_members(data: bytes) -> Iterator[Member]:
    with zipfile.ZipFile(io.BytesIO(data)) as packed:
        for info in packed.infolist():
            kind = (info.external_attr >> 16) & 0o170000
            if kind not in {0, 0o100000, 0o040000}:
                raise _special(info.filename)
            yield info.filename, None if info.is_dir() else packed.open(info)


def _tar_members(packed: tarfile.TarFile) -> Iterator[Member]:
    for info in packed:
        if not (info.isfile() or info.isdir()):
            raise _special(info.name)
        yield info.name, packed.extractfile(info) if info.isfile() else None


def _collected(members: Iterator[Member], name: str) -> dict[str, bytes]:
    files, room = dict[str, bytes](), MOST_BYTES
    try:
        for count, (path, content) in enumerate(members):
            if count >= MOST_ENTRIES:
                raise UserError(f"{name} has more than {MOST_ENTRIES:,} entries.", _OTHER)
            _check(path)
            if content is None:
                continue
            data = content.read(room + 1)
            room -= len(data)
            if room < 0:
                size = MOST_BYTES // 1_000_000
                raise UserError(f"{name} unpacks to more than {size} MB.", _OTHER)
            if path.lower().endswith(SUFFIXES) and len(files) < MOST_FILES:
                files[PurePosixPath(path).as_posix()] = data
    except RuntimeError:  # of zipfile, for a password
        raise UserError(f"{name} needs a password.", _OTHER) from None
    except _BROKEN as error:
        raise _broken(name, error) from None
    return files


def _check(path: str) -> None:
    pure = PurePosixPath(path)
    leads_out = pure.is_absolute() or ".." in pure.parts or "\\" in path or "\0" in path
    if leads_out or len(path) > _LONGEST_NAME:
        path_text = one_line(path)[:80]
        raise UserError(f"The archive has the path {path_text!r}, which leads out of it.", _OTHER)


def _special(path: str) -> UserError:
    path_text = one_line(path)[:80]
    return UserError(
        f"The archive contains {path_text!r}, which is no plain file or folder.", _OTHER
    )


def _broken(name: str, error: Exception) -> UserError:
    return UserError(f"{name} is a broken archive ({one_line(str(error))[:100]}).", _OTHER)


def _of_folder(root: Path) -> dict[str, bytes]:
    """The files of a folder; no link is followed, hidden folders are left out."""
    files, room = dict[str, bytes](), MOST_BYTES
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(x for x in folders if not x.startswith(".") and x not in _SKIPPED)
        for name in sorted(names):
            path = Path(folder) / name
            if not name.lower().endswith(SUFFIXES) or path.is_symlink() or not path.is_file():
                continue
            room -= path.stat().st_size
            if room < 0 or len(files) >= MOST_FILES:
                return files
            files[path.relative_to(root).as_posix()] = path.read_bytes()
    return files
