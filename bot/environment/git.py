"""The repository under test from git: its clone within limits, its history, one commit
checked out without running anything.
"""

import hashlib
import os
import re
import shutil
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from bot.environment.clone_bounds import CloneBounds, TreeListing
from bot.kernel.environment import RepoSource
from bot.kernel.errors import Stopped, TransientError, UserError
from sandbox import footprint, subprocesses
from sandbox.cache import Cache
from sandbox.footprint import DiskFull, FolderWatch, TooLarge
from sandbox.port import SandboxError
from sandbox.subprocesses import Completed, Interrupted, Take, TookTooLong, TooMuchOutput

_REF = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/@+~^-]{0,199}")
_REQUESTED_REF = "refs/heads/asked"
_COMPLETE = ".complete"
_SETUP = ("setup.py", "setup.cfg")
MOST_TEXT = 1_000_000
"""Characters that are read of a repository's settings."""
_SMALLER = "Give a smaller repository, or a clone with less history."
_MOST_MISSING = 500
_MOST_PULLS = 200
_PULL = re.compile(
    r"\tMerge (?:remote-tracking )?branch '"
    r"(?:(?P<same>main|master|dev|devel|develop)' of \S+(?: into '?(?P=same)'?)?$|origin/)"
)
"""What git itself writes for the merge of a pull, behind the parents of the commit."""
HEAD = "refs/heads/reported"
_COMMIT = re.compile(r"[0-9a-f]{7,40}")
_REMOTE = re.compile(
    r"(?:https://[\w.-]+|http://(?:localhost|127\.0\.0\.1))(?::\d+)?/[\w./~+-]+", re.ASCII
)
_FILE_TOO_LARGE = "File too large"
_OUT_OF_MEMORY = re.compile(r"out of memory|mmap failed|unable to create thread", re.IGNORECASE)
# Hooks, filters, LFS, attributes' programs and submodules are off; only the transports that a clone
# needs are on.
_SAFE = (
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.symlinks=false",
    "-c",
    "core.autocrlf=false",
    "-c",
    "filter.lfs.smudge=",
    "-c",
    "filter.lfs.process=",
    "-c",
    "filter.lfs.required=false",
    "-c",
    "submodule.recurse=false",
    "-c",
    "fetch.recurseSubmodules=false",
    "-c",
    "protocol.allow=never",
    "-c",
    "protocol.https.allow=always",
    "-c",
    "gc.auto=0",
    "-c",
    "credential.helper=",
    "-c",
    "uploadpack.packObjectsHook=",
    "-c",
    "core.attributesFile=/dev/null",
)
# What is fetched becomes one file, which a limit holds, and git has little of it in memory.
_FRUGAL = (
    "-c",
    "fetch.unpackLimit=1",
    "-c",
    "pack.threads=4",
    "-c",
    "pack.windowMemory=256m",
    "-c",
    "core.bigFileThreshold=32m",
    "-c",
    "core.packedGitWindowSize=256m",
    "-c",
    "core.packedGitLimit=1g",
)
_UPLOAD = " ".join(("git", *_FRUGAL, "upload-pack"))
"""The other side of a fetch on this machine, which inherits the limits and no options."""


class IncompleteClone(UserError):
    """A clone on this machine that lacks a part of its objects."""


@dataclass(frozen=True, slots=True)
class Checkout:
    """A commit as files. `tree` is read-only by agreement and stays in the cache. `changed` when
    tracked files of the clone are not as they were committed; of a commit that was asked for and
    is not the clone's own that is not told. `missing` are files that the clone does not have.
    """

    tree: Path
    commit: str
    described: str = ""
    changed: bool = False
    missing: tuple[str, ...] = ()

    @property
    def installable(self) -> bool:
        """Whether a build front end can make something of it."""
        pyproject = self.text("pyproject.toml")
        builds = re.search(r"^\[(?:project|build-system|tool\.poetry)\]", pyproject, re.MULTILINE)
        return bool(builds) or any((self.tree / name).is_file() for name in _SETUP)

    def text(self, name: str) -> str:
        """The start of a file, "" where there is none."""
        try:
            with (self.tree / name).open(encoding="utf-8", errors="replace") as file:
                return file.read(MOST_TEXT)
        except OSError:
            return ""


@dataclass(frozen=True, slots=True)
class Credentials:
    """What one address is cloned with. It reaches git by its environment: never its arguments,
    its configuration or a disk.
    """

    url: str
    username: str
    password: str = field(repr=False)

    def variables(self) -> dict[str, str]:
        """The header for exactly this address, and no following of redirects, which would carry
        it elsewhere.
        """
        basic = b64encode(f"{self.username}:{self.password}".encode()).decode()
        return {
            "GIT_CONFIG_COUNT": "2",
            "GIT_CONFIG_KEY_0": f"http.{self.url}.extraHeader",
            "GIT_CONFIG_VALUE_0": f"Authorization: Basic {basic}",
            "GIT_CONFIG_KEY_1": "http.followRedirects",
            "GIT_CONFIG_VALUE_1": "false",
        }


@dataclass
class Git:
    """Clones into one cache."""

    cache: Cache
    environ: dict[str, str]
    timeout_s: float = 600.0
    credentials: Credentials | None = None
    bounds: CloneBounds = field(default_factory=CloneBounds)
    _whole: set[str] = field(default_factory=set, init=False)

    def checkout(self, source: RepoSource, before: datetime | None) -> Checkout:
        """The asked commit, else the newest of before a day. Raises UserError when there is
        none, or when it is too large; DiskFull.
        """
        place, local = _place(source)
        check_ref(source.ref)
        with self._store(place) as store:
            try:
                alone = self._fetch(place, store, source.ref, local)
            except IncompleteClone:
                partial = self._partial(place, store, source, before) if local else None
                if partial is None:
                    raise
                return partial
            commit = source.commit or self._commit(store, source.ref, before, alone=alone)
            is_pinned = source.commit or (source.ref and commit != self._resolved(store, HEAD))
            changed = local and not is_pinned and self._changed(place, store)
            return Checkout(
                self._tree(store, commit), commit, self._described(store, commit), changed
            )

    def _partial(
        self, place: str, store: Path, source: RepoSource, before: datetime | None
    ) -> Checkout | None:
        """The commit that is asked for from a clone that lacks a part of its history or some large
        files, as one made with `--filter` does; None where it cannot be had either. The clone's
        objects are read where they are.
        """
        # Nothing missing is fetched: the clone's configuration may name a program for that.
        nowhere = ("-c", "protocol.file.allow=never", "-c", "protocol.https.allow=never")
        where = ("-C", place, *_transport(place, local=True), *nowhere)
        start = source.commit or source.ref or "HEAD"
        day = before if not source.ref else None
        commit = self._newest(None, start, day, *where)
        path = ("rev-parse", "--path-format=absolute", "--git-path", "objects")
        objects = self._git(None, *where, *path, check=False).out.strip()
        if not _COMMIT.fullmatch(commit) or not objects:
            return None
        if not (store / "HEAD").exists():
            self._made(store)
        more = {"GIT_ALTERNATE_OBJECT_DIRECTORIES": objects}
        every = ("rev-list", "--objects", "--missing=print", "-1", commit)
        listing = self._git(store, *every, check=False, more=more)
        files = self._git(store, "ls-tree", "-r", "-z", commit, check=False, more=more)
        if listing.code or files.code:
            return None
        absent = {row[1:] for row in listing.out.splitlines() if row.startswith("?")}
        rows = [row.partition("\t") for row in files.out.split("\0") if row]
        missing = tuple(path for about, _, path in rows if about.rpartition(" ")[2] in absent)
        if len(missing) > min(_MOST_MISSING, len(rows) - 1):
            return None
        tree = self._tree(store, commit, more=more, missing=missing)
        return Checkout(tree, commit, missing=missing)

    def history(self, source: RepoSource, *argv: str) -> Completed:
        """What a reading command of git says about the whole history of a repository, its exit
        code included.
        """
        place, local = _place(source)
        with self._store(place) as store:
            try:
                if place not in self._whole:
                    self._fetch(place, store, "", local)
                    self._whole.add(place)
                return self._git(store, *argv, check=False)
            except Interrupted as error:
                raise Stopped("reading the history was cancelled") from error
            except DiskFull as error:
                raise TransientError("The disk is full.", "Free some space.") from error
            except TooMuchOutput as error:
                raise UserError(
                    f"The history of {place} is too large to read.", _SMALLER
                ) from error

    @contextmanager
    def _store(self, place: str) -> Iterator[Path]:
        """Our bare clone of a place, for this builder alone."""
        store = self.cache.folder("repos") / hashlib.sha256(place.encode()).hexdigest()[:16]
        with self.cache.guarded(f"repo-{store.name}"):
            yield store
            if store.is_dir():
                os.utime(store)

    def _fetch(self, place: str, store: Path, ref: str, local: bool) -> bool:
        """Have a reference and its history, or everything; True when it is that one commit
        alone. A store that is full of earlier commits is made anew.
        """
        if not (store / _COMPLETE).exists():
            self._made(store)
        elif _COMMIT.fullmatch(ref) and self._resolved(store, ref):
            return False
        empty = not any(store.glob("objects/pack/*.pack"))
        try:
            try:
                return self._fetched(place, store, ref, local)
            except TooLarge:
                if empty:
                    raise
            self._made(store)
            return self._fetched(place, store, ref, local)
        except TooLarge as error:
            raise UserError(f"The repository {place} has {error}.", _SMALLER) from error
        except (TooMuchOutput, TookTooLong) as error:
            raise _fetch_error(place, str(error)) from error

    def _fetched(self, place: str, store: Path, ref: str, local: bool) -> bool:
        allow = _transport(place, local)
        refspecs = (f"+HEAD:{HEAD}", "+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*")
        shallow = bool(ref) and not local
        upload = ("--upload-pack", _UPLOAD) if local else ()
        one = ("fetch", "-q", "--depth=1", "--no-tags", "--", place, f"+{ref}:{_REQUESTED_REF}")
        if shallow and self._download(store, *allow, *one).code == 0:
            return True
        if (
            store / "shallow"
        ).exists():  # one commit was fetched before: its ancestors would stay hidden
            self._made(store)
        everything = ("fetch", "-q", *upload, "--no-tags", "--force", "--", place, *refspecs)
        download = self._download(store, *allow, *everything)
        if download.code and local:
            if "not a git repository" in download.err or not download.err.strip():
                raise UserError(f"{place} is not a git repository.", "Pass the path of a clone.")
            why = _last(download.err)
            raise IncompleteClone(f"{place} cannot be cloned: {why}", "Pass a complete clone.")
        if download.code:
            raise _fetch_error(place, _last(download.err))
        self._git(
            store, "symbolic-ref", "HEAD", HEAD
        )  # what it means there, whichever branch that is on
        return False

    def _download(self, store: Path, *argv: str) -> Completed:
        """Fetch within the bounds. Where that is stopped the store goes: what is in it is not
        known.
        """
        whole = store / _COMPLETE
        before = whole.exists()
        whole.unlink(missing_ok=True)
        watch = self._watch(store)
        try:
            watch.look()
            result = self._git(store, *argv, check=False, watch=watch)
            if result.code and _FILE_TOO_LARGE in result.err:
                raise TooLarge(f"more than {self.bounds.size / (1 << 30):g} GiB of data")
            watch.look()
        except (SandboxError, UserError):
            footprint.remove(store)
            raise
        if before or result.code == 0:
            whole.touch()
        return result

    def _watch(self, folder: Path) -> FolderWatch:
        bounds = self.bounds
        return FolderWatch(folder, bounds.size, bounds.entries, bounds.reserve)

    def _made(self, store: Path) -> None:
        footprint.remove(store)
        self._git(None, "init", "-q", "--bare", "--template=", "--", str(store))

    def _commit(self, store: Path, ref: str, before: datetime | None, *, alone: bool) -> str:
        names = [f"refs/heads/{ref}", f"refs/tags/{ref}", ref] if ref else [HEAD]
        names = [_REQUESTED_REF] if alone else names
        start = next((sha for name in names if (sha := self._resolved(store, name))), "")
        if not start:
            raise UserError(
                f"The repository has no {ref or 'commit'}.", "Look up the branch, tag or commit."
            )
        if ref or before is None:
            return start
        commit = self._newest(store, start, before)
        if not commit:
            raise UserError(
                f"The repository has no commit before {before:%Y-%m-%d}.", "Choose one with --ref."
            )
        return commit

    def _newest(self, store: Path | None, start: str, before: datetime | None, *where: str) -> str:
        """The newest commit of before a day on the line that was public, "" for none. Where
        somebody pulled before pushing, that line is the second parent of the merge: the first is
        what only they had until then, often for months.
        """
        until: tuple[str, ...] = ()
        if before is not None:
            until = (f"--before={before.isoformat()}",)
            # Not `log`, which starts the program for signatures that a clone's configuration names.
            form = ("--merges", f"--since={before.isoformat()}", "--format=%P%x09%s")
            for _ in range(_MOST_PULLS):
                merges = ("rev-list", "--first-parent", *form, start, "--")
                rows = self._git(store, *where, *merges, check=False).out.splitlines()
                pulls = (row.partition("\t")[0].split() for row in rows if _PULL.search(row))
                public = next((parents[1] for parents in pulls if len(parents) == 2), "")
                if not public:
                    break
                start = public
        # A history that began anew has what was public before behind a second parent only.
        for line in (("--first-parent",), ()):
            newest = ("rev-list", "-1", *line, *until, start, "--")
            if commit := self._git(store, *where, *newest, check=False).out.strip():
                return commit
        return ""

    def _resolved(self, store: Path, name: str) -> str:
        result = self._git(
            store,
            "rev-parse",
            "--verify",
            "-q",
            "--end-of-options",
            f"{name}^{{commit}}",
            check=False,
        )
        return result.out.strip() if result.code == 0 else ""

    def _tree(
        self,
        store: Path,
        commit: str,
        *,
        more: dict[str, str] | None = None,
        missing: tuple[str, ...] = (),
    ) -> Path:
        tree = self.cache.folder("trees") / f"{store.name}-{commit[:16]}"
        marker = tree.with_suffix(".complete")
        self.cache.touch(marker, tree.name)
        if not marker.exists():
            footprint.remove(tree)
            with self.cache.scratch() as folder:
                try:
                    places = (folder / "tree", folder / "index")
                    size = self._checked_out(store, commit, *places, more or {}, missing)
                except TooLarge as error:
                    raise UserError(f"The commit {commit[:12]} has {error}.", _SMALLER) from error
                (folder / "tree").rename(tree)
            marker.write_text(str(size), encoding="ascii")
        return tree

    def _checked_out(
        self,
        store: Path,
        commit: str,
        tree: Path,
        index: Path,
        more: dict[str, str],
        missing: tuple[str, ...],
    ) -> int:
        """A commit as files, but for those that are missing, counted before there is any; their
        bytes on disk.
        """
        listing = ("ls-tree", "-r", "-t", "-l", "-z", commit)
        self._git(store, *listing, take=TreeListing(self.bounds), more=more)
        tree.mkdir()
        tree.chmod(0o755)
        watch = self._watch(tree)  # what attributes expand is not in the list
        watch.look()
        others = [f":(exclude,literal){path}" for path in missing]
        argv = ("checkout", "-q", "--force", "--no-recurse-submodules", commit, "--", ".", *others)
        more = {**more, "GIT_INDEX_FILE": str(index)}
        self._git(store, f"--work-tree={tree}", *argv, watch=watch, more=more)
        return watch.look()

    def _changed(self, place: str, store: Path) -> bool:
        """Whether the working tree differs from its commit. A copy of its index is read with our
        own configuration: nothing that the clone configures is run, and nothing is written to
        it.
        """
        where = (
            "-C",
            place,
            *_transport(place, local=True),
            "rev-parse",
            "--path-format=absolute",
            "--git-path",
            "index",
        )
        index_path = self._git(None, *where, check=False)
        index = Path(index_path.out.strip())
        if index_path.code or not index.is_file():
            return False
        quiet = ("--name-only", "--no-ext-diff", "--no-textconv", "--ignore-submodules=all")
        with self.cache.scratch() as folder:
            # With its time, by which git knows which files it has to read.
            copy = shutil.copy2(index, folder / "index")
            diff = (f"--work-tree={place}", "diff", *quiet, HEAD, "--")
            diff_result = self._git(store, *diff, check=False, more={"GIT_INDEX_FILE": str(copy)})
            return diff_result.code == 0 and bool(diff_result.out.strip())

    def _described(self, store: Path, commit: str) -> str:
        result = self._git(store, "describe", "--tags", "--abbrev=0", commit, check=False)
        match = re.search(r"\d+(?:\.\d+)+", result.out)
        return match[0] if result.code == 0 and match else ""

    def _git(
        self,
        store: Path | None,
        *argv: str,
        check: bool = True,
        more: dict[str, str] | None = None,
        watch: FolderWatch | None = None,
        take: Take | None = None,
    ) -> Completed:
        program = shutil.which("git", path=self.environ.get("PATH", "/usr/bin:/bin"))
        if program is None:
            raise UserError("git is not installed.", "Install git, or omit --repo.")
        where = [f"--git-dir={store}"] if store is not None else []
        result = subprocesses.run(
            [program, *_SAFE, *_FRUGAL, *where, *argv],
            env=self._environment() | (more or {}),
            cancel=self.cache.cancel,
            timeout_s=self.timeout_s,
            limits=self.bounds.rlimits,
            watch=watch,
            take=take,
        )
        if result.code and _OUT_OF_MEMORY.search(result.err):
            most = self.bounds.memory / (1 << 30)
            raise UserError(f"git needs more than {most:g} GiB of memory for it.", _SMALLER)
        if check and result.code:
            raise TransientError(f"git could not prepare the repository: {_last(result.err)}")
        return result

    def _environment(self) -> dict[str, str]:
        variables = {
            name: text
            for name, text in self.environ.items()
            if name.lower().endswith("_proxy") or name in {"GIT_SSL_CAINFO"}
        }
        secret = self.credentials.variables() if self.credentials else {}
        return {
            **variables,
            **secret,
            "PATH": "/usr/bin:/bin",
            "HOME": str(self.cache.folder("home")),
            "LC_ALL": "C.UTF-8",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_LFS_SKIP_SMUDGE": "1",
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_ASKPASS": "/bin/false",
            "GIT_OPTIONAL_LOCKS": "0",
        }


def check_ref(ref: str) -> None:
    """Raises UserError for what is no name of a commit; "" is one. What passes cannot be taken
    for an option or a range.
    """
    if ref and (not _REF.fullmatch(ref) or ".." in ref):
        raise UserError(f"{ref!r} is not a git reference.", "Use a branch, a tag or a commit.")


def _transport(place: str, local: bool) -> tuple[str, ...]:
    """What a clone needs beyond https: a folder of this machine, or a server on this machine."""
    if local:
        return (
            "-c",
            "protocol.file.allow=always",
            "-c",
            f"safe.directory={place}",
            "-c",
            f"safe.directory={place}/.git",
        )
    return ("-c", "protocol.http.allow=always") if place.startswith("http://") else ()


def _place(source: RepoSource) -> tuple[str, bool]:
    if source.path:
        path = Path(source.path).expanduser().resolve()
        if not path.is_dir():
            raise UserError(
                f"There is no folder {source.path}.",
                "Pass the path of a clone, or its https address.",
            )
        return str(path), True
    if not _REMOTE.fullmatch(source.url):
        raise UserError(
            f"{source.url!r} is not an https address of a repository.",
            "Use one like https://host/owner/name.git.",
        )
    return source.url, False


def _fetch_error(place: str, why: str) -> TransientError:
    return TransientError(
        f"The repository {place} cannot be fetched: {why}", "Check the address and the network."
    )


def _last(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:200] if lines else "no reason given"
