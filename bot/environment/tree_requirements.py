"""A repository's files at one commit → what they ask to be installed for a command in it, each
with its file and line.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import PurePosixPath
from typing import Final

from packaging.requirements import InvalidRequirement, Requirement as Parsed
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name

from bot.environment import dependency_files as formats, imports, package_names, provided, versions
from bot.environment.dependency_files import MOST_ENTRIES, Declaration, Listing
from bot.kernel.attempt import Script
from bot.kernel.environment import DeclaredDependencies, PinSource, Requirement

# Which files and which of their groups count for a command, and what their entries are here.

_MOST_TEXT, _MOST_LOCK = 200_000, 2_000_000
"""Bytes that are read of a file, and of a lock file."""
_MOST_FILES, _MOST_NOTES = 40, 8
_SIDE: Final = re.compile(
    r"(?:^|[-_./])(?:dev\w*|tests?|testing|docs?|documentation|lint\w*|typing|format\w*|style|ci|build|"
    r"release|gpu|cuda\w*|cu\d+|colab|readthedocs|rtd|optional|extras?|all|full|mac\w*|windows)(?=$|[-_./\d])"
)
"""Files, extras and groups for work on a project, for other machines, or for everything."""
_TESTS: Final = re.compile(r"(?:^|[-_./])(?:tests?|testing)(?=$|[-_./])")
_MAIN = (
    "requirements",
    "requirement",
    "base",
    "main",
    "core",
    "default",
    "runtime",
    "install",
    "prod",
    "common",
)
_REQUIREMENTS = re.compile(
    r"(?:.*/)?(?:requirements?|reqs?)(?:/[\w.-]+|[\w.-]*)\.(?:txt|in)", re.IGNORECASE
)
_CONDA = re.compile(r"(?:.*/)?(?:conda\w*|environment|env)[\w.-]*\.ya?ml", re.IGNORECASE)
_DOCKERFILE = re.compile(r"(?:[\w.-]+/)?(?:Dockerfile[\w.-]*|[\w.-]+\.Dockerfile)", re.IGNORECASE)
_WORKFLOW = re.compile(r"\.github/workflows/[^/]*(?:test|ci|python|build|main|unit)[^/]*\.ya?ml")
_LISTS = (".txt", ".in")
_NAMED_FILE = re.compile(
    r"(?<!\S)(?:-r|-f|--requirements?|--file)[ =]*([\w./-]{1,200}\.(?:txt|in|ya?ml))"
)
_OWN_EXTRAS = re.compile(r"(?:^|[\s\"'=])(?:\.{1,2}/?|[\w./-]+/)\[([\w,\s.-]+)\]")
_FLAGGED_EXTRAS = re.compile(r"(?:--(?:extras?|group|with|only)[ =]+|-E +)[\"']?([\w,. -]+)")
_OWN_INSTALL = re.compile(
    r"pip3? +install +(?:(?:-e|--editable|-U) +)*\.(?=[\s`&;]|$)|"
    r"(?:poetry|uv|pdm) +(?:install|sync)(?! +-)"
)
_INSTALLERS = frozenset(
    (
        "pip",
        "wheel",
        "setuptools",
        "virtualenv",
        "pipenv",
        "poetry",
        "uv",
        "conda",
        "pipx",
        "python",
    )
)
_TOOL = re.compile(
    r"black|flake8.*|isort|mypy|pylint|ruff|pre-commit|yapf|autopep8|pycodestyle|twine|tox|nox|bump.*|"
    r"sphinx.*|nbsphinx|mkdocs.*|jupyter.*|notebook|ipykernel|ipdb|pudb|codecov|coverage|pytest.*"
)
_FOR_CUDA = re.compile(r"-(?:cu\d+|cuda\w*|gpu)(?:-|$)")
_WORK_EXTRAS = re.compile(r"(?:and-)?(?:cuda|rocm|tpu|gpu).*|dev\w*|docs?|tests?|testing|lint")
_PLAIN_BUILDS: Final = {
    "opencv-python": "opencv-python-headless",
    "opencv-contrib-python": "opencv-contrib-python-headless",
    "tensorflow-gpu": "tensorflow",
    "tensorflow-cpu": "tensorflow",
    "tf-nightly-gpu": "tf-nightly",
    "faiss": "faiss-cpu",
    "faiss-gpu": "faiss-cpu",
    "onnxruntime-gpu": "onnxruntime",
    "pillow-simd": "pillow",
    "sklearn": "scikit-learn",
    "pytorch": "torch",
    "msgpack-python": "msgpack",
}
"""Builds for a display or an accelerator, with what has the same modules without it, and names that
only look like the distribution.
"""
_LOCKS: Final[Mapping[str, Callable[[str, str], Listing]]] = {
    "uv.lock": formats.toml_lock,
    "poetry.lock": formats.toml_lock,
    "pdm.lock": formats.toml_lock,
    "Pipfile.lock": formats.pipfile_lock,
}
_PROJECTS: Final[Mapping[str, Callable[[str, str], Listing]]] = {
    "pyproject.toml": formats.pyproject,
    "Pipfile": formats.pipfile,
    "setup.cfg": formats.setup_cfg,
    "setup.py": formats.setup_py,
}
_PYTHON_FILES = (".python-version", "runtime.txt")


def read_dependencies(
    tree: Mapping[str, bytes], folder: str = "", command: Iterable[str] = (), words: str = ""
) -> DeclaredDependencies:
    """What to install for a command (what follows `python`) that is started in a folder of the
    tree, and what its lock files pin. The extras, groups and requirement files that the command or
    the `words` of the report name count, and with pytest those for tests.
    """
    return _Reading(tree, folder, tuple(command), words).result()


def for_program(tree: Mapping[str, bytes], program: Script, words: str) -> DeclaredDependencies:
    """What to install for a program of the tree, of which a report says these words."""
    folder = PurePosixPath(program.entry).parent
    return read_dependencies(
        tree, "" if folder == PurePosixPath() else folder.as_posix(), program.command, words
    )


class _Reading:
    """The files of one tree that count for one command."""

    def __init__(
        self, tree: Mapping[str, bytes], folder: str, command: tuple[str, ...], words: str
    ) -> None:
        self.tree, self.words = tree, words
        parts = PurePosixPath(folder).parts
        self.folders = ["/".join(parts[:length]) for length in range(len(parts), -1, -1)]
        self.tests = command[:2] == ("-m", "pytest")
        self.command_words = {one for one in _parts(" ".join(command)) if len(one) > 2}
        self.read_files = dict[str, None]()
        self.locked, self.direct = list[Declaration](), list[Declaration]()
        self.pythons, self.notes = list[Declaration](), dict[str, None]()
        self.readme = {path: self._text(path) for path in self._named_like(r"readme(\.\w+)?")}
        self.docker = {
            path: self._text(path) for path in sorted(tree) if _DOCKERFILE.fullmatch(path)
        }
        texts = {name: self._text(name) for name in provided.METADATA if name in tree}
        layout = provided.read_layout(tree, texts)
        beside = {
            path.rpartition("/")[2].removesuffix(".py")
            for path in tree
            if path.endswith(".py") and path.rpartition("/")[0] == folder
        }
        self.name = layout.name
        self.own = {
            canonicalize_name(name) for name in (layout.name, *layout.on_path, *beside) if name
        }

    def result(self) -> DeclaredDependencies:
        """Files in the order of trust; of two statements on a version the earlier counts."""
        for name, of_format in _LOCKS.items():
            for path in self._nearest(name):
                self._take(of_format(path, self._text(path, _MOST_LOCK)))
        for path in self._requirement_files():
            self._requirement_file(path)
        for name, of_format in _PROJECTS.items():
            for path in self._nearest(name):
                self._project(path, of_format(path, self._text(path)))
        for path in self._conda_files():
            self._project(path, formats.conda(path, self._text(path)))
        installed = [formats.installs(*row) for row in (*self.docker.items(), *self.readme.items())]
        beside = [entry for listing in installed for entry in listing.entries]
        # Beside files, these lines say which release is meant where it is needed, not what is.
        has_files = bool(self.direct or self.locked)
        self.direct += [Declaration("pytest", "the command")] if self.tests else []
        rows = self._merged([*self.direct, *(() if has_files else beside)])
        tools = {name: row for name, row in rows.items() if self._is_tool(name)}
        versioned = {name for name, row in rows.items() if row.specifier}
        weak = {name: row for name, row in self._merged(beside).items() if name not in versioned}
        constraints = {**tools, **weak, **self._merged(self.locked)}
        pythons, why = self._python(installed)
        return DeclaredDependencies(
            requirements=tuple(row for name, row in rows.items() if name not in tools),
            constraints=tuple(row for row in constraints.values() if row.specifier),
            pythons=pythons,
            python_why=why,
            own=tuple(sorted(self.own)),
            notes=tuple(self.notes)[:_MOST_NOTES],
        )

    # Files of the tree.

    def _text(self, path: str, most: int = _MOST_TEXT) -> str:
        content = self.tree[path][:most]
        utf_16 = content.startswith((b"\xff\xfe", b"\xfe\xff"))
        text = content.decode("utf-16" if utf_16 else "utf-8-sig", "replace")
        return text.replace("\r\n", "\n")

    def _nearest(self, name: str) -> list[str]:
        """A file by its name, in the folder of the command or the nearest one above it."""
        paths = (f"{folder}/{name}".lstrip("/") for folder in self.folders)
        return [path for path in paths if path in self.tree][:1]

    def _named_like(self, pattern: str) -> list[str]:
        names = re.compile(pattern, re.IGNORECASE)
        rows = (path.rpartition("/") for path in sorted(self.tree))
        paths = [(folder, name) for folder, _, name in rows if names.fullmatch(name)]
        return [
            f"{one}/{name}".lstrip("/")
            for one in self.folders
            for folder, name in paths
            if folder == one
        ]

    def _file(self, name: str, base: str) -> str:
        """A file of the tree by its path from a folder of it; "" for one outside or missing."""
        parts = list[str]()
        for part in (*PurePosixPath(base).parts, *PurePosixPath(name).parts):
            if part == ".." and not parts:
                return ""
            parts = parts[:-1] if part == ".." else [*parts, part]
        path = "/".join(parts)
        return path if path in self.tree else ""

    def _files_in(self, texts: Iterable[str], ends: tuple[str, ...]) -> list[str]:
        """The files of the tree that lines such as `pip install -r FILE` name."""
        names = [name for text in texts for name in _NAMED_FILE.findall(text)]
        paths = (self._file(name, folder) for name in names for folder in self.folders)
        return list(dict.fromkeys(path for path in paths if path.endswith(ends)))

    # Which of them count.

    def _is_meant(self, name: str) -> bool:
        """Whether an extra, a group or a further file is for this command: it names it, or is
        pytest.
        """
        if _TESTS.search(name.lower()):
            return self.tests
        return bool({*_parts(name)} - {*_MAIN, "txt", "yml", "yaml"} & self.command_words)

    def _is_tool(self, name: str) -> bool:
        """Whether people only work on a project with it: a program that needs it imports it."""
        return bool(_TOOL.fullmatch(name)) and not (self.tests and name.startswith("pytest"))

    def _requirement_files(self) -> list[str]:
        """Those that the report names; the usual one of the nearest folder that has one; those
        that the README names, the first and what else is for this command.
        """
        files = [path for path in sorted(self.tree) if _REQUIREMENTS.fullmatch(path)]
        paths = self._files_in([self.words], _LISTS)
        for folder in self.folders:
            inside = {folder, f"{folder}/requirements".lstrip("/")}
            here = [path for path in files if path.rpartition("/")[0] in inside]
            stems = {path: PurePosixPath(path).stem.lower() for path in here}
            main = [path for name in _MAIN for path in here if stems[path] == name]
            is_own = folder == self.folders[0] != ""
            plain = [path for path in here if is_own or not _SIDE.search(path.lower())]
            paths += main[:1] or (plain if len(plain) == 1 else [])
            paths += [path for path in here if path not in main and self._is_meant(stems[path])]
        further = self._files_in((*self.readme.values(), *self.docker.values()), _LISTS)
        paths += [path for path in further if self._is_meant(path)]
        paths = paths or [path for path in further if not _SIDE.search(path.lower())][:1]
        return list(dict.fromkeys(paths))

    def _conda_files(self) -> list[str]:
        """The environment of conda that the report or a README names, else the nearest."""
        texts = (self.words, *self.readme.values(), *self.docker.values())
        stated = self._files_in(texts, (".yml", ".yaml"))
        files = [path for path in sorted(self.tree) if _CONDA.fullmatch(path)]
        near = [
            path for folder in self.folders for path in files if path.rpartition("/")[0] == folder
        ]
        plain = [path for path in (*stated, *near) if not _SIDE.search(path.lower())]
        return (plain or stated or near)[:1]

    def _extras(self) -> set[str]:
        """Those that the report names, else those of the README where it has no installation
        without.
        """
        names = set(_names_of_extras(self.words))
        readme = "\n".join(self.readme.values())
        if not names and not _OWN_INSTALL.search(readme):
            names = {name for name in _names_of_extras(readme) if not _SIDE.search(name)}
        return names

    def _requirement_file(self, path: str, *, is_bound: bool = False) -> None:
        """A file and those that it names, each once; what only bounds versions is as of a lock."""
        if not path or path in self.read_files or len(self.read_files) >= _MOST_FILES:
            return
        self.read_files[path] = None
        listing, base = formats.requirements(path, self._text(path)), path.rpartition("/")[0]
        self._take(listing, is_bound=is_bound)
        for name in listing.files:
            self._requirement_file(self._file(name, base), is_bound=is_bound)
        for name in listing.bounds:
            self._requirement_file(self._file(name, base), is_bound=True)

    def _project(self, path: str, listing: Listing) -> None:
        """The dependencies of a project, with the groups that count and those that these name."""
        self._take(listing)
        base, extras = path.rpartition("/")[0], self._extras()
        for name in listing.files:
            self._requirement_file(self._file(name, base))
        groups = {canonicalize_name(name): rows for name, rows in listing.groups.items()}
        defaults = {canonicalize_name(name) for name in listing.defaults if not _SIDE.search(name)}
        waiting = [name for name in groups if name in {*extras, *defaults} or self._is_meant(name)]
        if self.tests and not any(map(_TESTS.search, groups)):
            waiting += [name for name in groups if name == "dev"]
        while waiting:
            for entry in groups.pop(waiting.pop(), []):
                parsed = _parsed(entry.text)
                if parsed is not None and canonicalize_name(parsed.name) == self.name:
                    waiting += map(canonicalize_name, parsed.extras)  # an extra of further extras
                else:
                    self.direct.append(entry)

    def _take(self, listing: Listing, *, is_bound: bool = False) -> None:
        (self.locked if listing.locked or is_bound else self.direct).extend(listing.entries)
        self.pythons += listing.pythons

    # Entries as requirements.

    def _merged(self, entries: Iterable[Declaration]) -> dict[str, Requirement]:
        """One requirement a name, with the first version that is stated and every extra."""
        rows = dict[str, Requirement]()
        for new in filter(None, map(self._requirement, list(entries)[:MOST_ENTRIES])):
            old = rows.get(new.name, new)
            first = old if old.specifier or not new.specifier else new
            extras = tuple(sorted({*old.extras, *new.extras}))
            rows[new.name] = first.model_copy(update={"extras": extras})
        return rows

    def _requirement(self, entry: Declaration) -> Requirement | None:
        """What to install for an entry; None, with a note, for what is no release of the index."""
        parsed = _parsed(entry.text)
        if parsed is None or parsed.url or "===" in str(parsed.specifier):
            text = f"{entry.where}: {entry.text[:100]} is left out: it is no release of the index"
            self.notes[text] = None
            return None
        plain = canonicalize_name(parsed.name)
        name = package_names.alias(_PLAIN_BUILDS.get(plain, plain))
        skipped = {plain, name} & {*self.own, *_INSTALLERS} or imports.foreign(name)
        if skipped or _FOR_CUDA.search(name) or not _holds(parsed):
            return None
        extras = {extra for extra in parsed.extras if not _WORK_EXTRAS.fullmatch(extra)}
        specifier = re.sub(r"\+[\w.]+", "", str(parsed.specifier))
        return Requirement(
            name=name,
            specifier=specifier,
            extras=tuple(sorted(extras)),
            rung=PinSource.REPOSITORY if specifier else PinSource.IMPORT,
            reason=f"{entry.where} says {plain}{specifier}"
            if specifier
            else f"{entry.where} names it",
        )

    # The Python.

    def _python(self, installed: list[Listing]) -> tuple[tuple[str, ...], str]:
        """The Pythons that are allowed, and by which file: one that a file names, else those that
        the workflows test within the project's bounds, else those bounds.
        """
        files = [path for name in _PYTHON_FILES for path in self._nearest(name)]
        single = [
            row for path in files for row in formats.version_file(path, self._text(path)).pythons
        ]
        single += [row for row in self.pythons if _names_one(row.text)]
        single += [row for listing in installed for row in listing.pythons]
        bounds = [row for row in self.pythons if not _names_one(row.text)]
        allowed = [
            minor
            for minor in versions.RELEASE_DAYS
            if all(_allows(row.text, minor) for row in bounds)
        ]
        if single:
            minors = [minor for minor in versions.RELEASE_DAYS if _allows(single[0].text, minor)]
            return tuple(minors), f"{single[0].where} says Python {', '.join(minors)}"
        rows = [
            row
            for path in self._workflows()
            for row in formats.workflow(path, self._text(path)).pythons
        ]
        tested = [minor for minor in allowed if any(_allows(row.text, minor) for row in rows)]
        if tested:
            return tuple(tested), f"{rows[0].where} tests Python {', '.join(tested)}"
        if bounds and allowed:
            return tuple(allowed), f"{bounds[0].where} says Python {bounds[0].text}"
        return (), ""

    def _workflows(self) -> list[str]:
        return [path for path in sorted(self.tree) if _WORKFLOW.fullmatch(path)][:_MOST_FILES]


def _parts(text: str) -> list[str]:
    return [part for part in re.split(r"[^a-z0-9]+", text.lower()) if part]


def _names_of_extras(text: str) -> Iterator[str]:
    for match in (*_OWN_EXTRAS.finditer(text), *_FLAGGED_EXTRAS.finditer(text)):
        yield from (
            canonicalize_name(name) for name in re.split(r"[,\s]+", match[1].strip()) if name
        )


def _parsed(text: str) -> Parsed | None:
    try:
        return Parsed(text)
    except (InvalidRequirement, RecursionError):
        return None


def _holds(requirement: Parsed) -> bool:
    try:
        return requirement.marker is None or requirement.marker.evaluate()
    except ValueError:  # a comparison that has no meaning
        return False


def _names_one(specifier: str) -> bool:
    return bool(re.fullmatch(r"===?3\.\d+(?:\.\d+|\.\*)?", specifier))


def _allows(specifier: str, minor: str) -> bool:
    """Whether a bound on Python leaves any patch release of a minor version."""
    try:
        allowed = SpecifierSet(re.sub(r"(==3\.\d+)(?:\.\d+)?$", r"\1.*", specifier))
    except InvalidSpecifier:
        return True
    return any(allowed.contains(f"{minor}.{patch}") for patch in (0, 1, 8, 99))
