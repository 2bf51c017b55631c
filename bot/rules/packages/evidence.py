"""Which distribution an import means: the links and files of those that it may be, never the bare
name alone.

Source: a name on an index belongs to whoever registered it first, so `import foo` may well be the
`foo` of another project.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

from packaging.utils import canonicalize_name

_HOSTS = frozenset({"github.com", "gitlab.com", "bitbucket.org", "codeberg.org"})
_AFFIXES = ("python", "pytorch", "torch", "keras", "jax", "py", "dm", "tf")
_MODULE = re.compile(r"(?:[^/]+\.data/(?:pure|plat)lib/)?(\w+)(?:/.*)?")
_NAMED = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_CODE = (".py", ".so", ".pyi", ".pyd")


@dataclass(frozen=True, slots=True)
class Known:
    """What an index tells of a distribution: the modules at the top level of its files, None where
    they cannot be read; the repositories ("owner/name") that its links name; what it needs.
    """

    name: str
    modules: frozenset[str] | None = None
    projects: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()

    def holds(self, module: str) -> bool:
        """Whether a module is among its files, or may come with what it needs: a distribution
        without files of its own consists of others.
        """
        return self.modules is not None and (module in self.modules or not self.modules)


def modules(files: Iterable[str]) -> frozenset[str]:
    """The modules at the top level of the files of a wheel."""
    found = (_MODULE.fullmatch(_stem(path)) for path in files if path.endswith(_CODE))
    return frozenset(each[1] for each in found if each)


def _stem(path: str) -> str:
    """A path with the suffixes of a single module taken off ("m.cpython-311-x86_64.so")."""
    folder, _, name = path.rpartition("/")
    return f"{folder}/{name.split('.')[0]}" if folder else name.split(".")[0]


def projects(links: Iterable[str]) -> tuple[str, ...]:
    """The repositories that addresses name, in lower case."""
    found = dict[str, None]()
    for link in links:
        try:
            parts = urlsplit(link.strip().lower())
        except ValueError:
            continue
        path = parts.path.strip("/").split("/")
        if (parts.hostname or "").removeprefix("www.") in _HOSTS and len(path) >= 2:
            found[f"{path[0]}/{path[1].removesuffix('.git')}"] = None
    return tuple(found)


def names(requirements: Iterable[str]) -> tuple[str, ...]:
    """The distributions that requirements name, those of extras too."""
    found = (_NAMED.match(each) for each in requirements)
    return tuple(dict.fromkeys(canonicalize_name(each[0]) for each in found if each))


def alike(one: str, other: str) -> bool:
    """Whether two names mean one project, apart from separators and what such names begin or end
    with.
    """
    first, second = _squeezed(one), _squeezed(other)
    short, long = sorted((first, second), key=len)
    return short == long or (len(short) >= 4 and short in long)


def _squeezed(name: str) -> str:
    plain = re.sub(r"[^a-z0-9]+", "", name.lower())
    for affix in _AFFIXES:
        rest = plain.removeprefix(affix).removesuffix(affix)
        plain = rest if len(rest) >= 3 else plain
    return plain


def choose(module: str, repository: str, candidates: Iterable[Known]) -> tuple[str, str]:
    """The distribution that most speaks for, and what does; ("", why not) when all are ruled
    out. The first of equals is taken, and one that the repository's own links confirm at once.
    """
    best, chosen, told = -1, "", ""
    for known in candidates:
        rank, why = _weighed(module, repository.lower(), known)
        if rank > best:
            best, chosen, told = rank, known.name, why
        elif not told:
            told = why
        if best == _CONFIRMED:
            break
    return chosen, told


_CONFIRMED = 2


def _weighed(module: str, repository: str, known: Known) -> tuple[int, str]:
    """How much speaks for a distribution, -1 when something speaks against it, and what."""
    if known.modules is not None and not known.holds(module):
        return -1, f"{known.name} on the index has no module {module}"
    if repository and repository in known.projects:
        return _CONFIRMED, f"its links name {repository}"
    owner, _, name = repository.rpartition("/")
    related = (
        alike(each.rpartition("/")[2], name) or each.partition("/")[0] == owner
        for each in known.projects
    )
    if name and alike(module, name) and known.projects and not any(related):
        return -1, f"{known.name} on the index belongs to {known.projects[0]}"
    if known.modules:
        return 1, f"its files contain {module}"
    return 0, "only its name speaks for it"
