"""Which distribution an import means, and which versions a report names: evidence, never the
bare name alone.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from packaging.utils import canonicalize_name

from bot.environment import imports, package_names, versions
from bot.kernel.bug import BugReport, VersionClaim
from bot.kernel.environment import Claimed, PinSource, Requirement
from bot.kernel.job import EnvironmentOptions

# Which distribution an import means: the links and files of those that it may be, never the bare
# name alone.
#
# Source: a name on an index belongs to whoever registered it first, so `import foo` may well be
# the `foo` of another project.

_HOSTS = frozenset({"github.com", "gitlab.com", "bitbucket.org", "codeberg.org"})
_AFFIXES = ("python", "pytorch", "torch", "keras", "jax", "py", "dm", "tf")
_MOVED = re.compile(r"^[^/]+\.data/(?:pure|plat)lib/")
_NAMED = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_CODE = (".py", ".so", ".pyi", ".pyd")


@dataclass(frozen=True, slots=True)
class Known:
    """What an index tells of a distribution: the dotted modules among its files, None where they
    cannot be read; the repositories ("owner/name") that its links name, and those that all of its
    metadata mention; what it needs.
    """

    name: str
    modules: frozenset[str] | None = None
    projects: tuple[str, ...] = ()
    mentions: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()

    def lacks(self, wanted: Sequence[str]) -> str:
        """The module (the first of `wanted`, with some below it) for which it cannot be meant, ""
        when it can: one without modules of its own consists of what it needs.
        """
        below = [each for each in wanted[1:] if "." in each]
        if not self.modules or (wanted[0] in self.modules and not below):
            return ""
        found = wanted[0] in self.modules and any(each in self.modules for each in below)
        return "" if found else (below[0] if wanted[0] in self.modules else wanted[0])


def modules(files: Iterable[str]) -> frozenset[str]:
    """The dotted modules that the files of a wheel are, and the packages that they are in."""
    found = set[str]()
    for path in files:
        if path.endswith(_CODE):
            folder, _, name = _MOVED.sub("", path).rpartition("/")
            parts = [*filter(None, folder.split("/")), name.split(".")[0]]
            if all(part.isidentifier() for part in parts):
                found.update(".".join(parts[:length]) for length in range(1, len(parts) + 1))
    return frozenset(name.removesuffix(".__init__") for name in found)


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


def links(text: str) -> list[str]:
    """The addresses in a text."""
    return re.findall(r"https?://[^\s<>()\[\]'\"`]{1,300}", text)


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


def choose(
    wanted: Sequence[str], repository: str, candidates: Iterable[Known], *, published: bool = False
) -> tuple[str, str]:
    """The distribution that most speaks for as the one of a module (the first of `wanted`, with
    some below it), and what does; ("", why not) when all are ruled out. The first of equals is
    taken, and one that links to the repository at once. For what is `published` by the repository
    the module is a guess too.
    """
    best, chosen, told = -1, "", ""
    for known in candidates:
        rank, why = _weighed(wanted, repository.lower(), known, published=published)
        if rank > best:
            best, chosen, told = rank, known.name, why
        elif not told:
            told = why
        if best == _CONFIRMED:
            break
    return chosen, told


_CONFIRMED = 2


def _weighed(
    wanted: Sequence[str], repository: str, known: Known, *, published: bool
) -> tuple[int, str]:
    """How much speaks for a distribution, -1 when something speaks against it, and what."""
    if published:
        tops = (each for each in sorted(known.modules or ()) if "." not in each)
        named = next((each for each in tops if alike(each, wanted[0])), wanted[0])
        wanted = (named, *wanted[1:])
    confirmed = bool(repository) and repository in known.projects
    if confirmed and (published or not known.lacks(wanted[:1])):
        return _CONFIRMED, f"its links name {repository}"
    if gap := known.lacks(wanted):
        return -1, f"the {known.name} on the index has no module {gap}"
    if _strangers(wanted, repository, known):
        return -1, f"the {known.name} on the index belongs to {known.projects[0]}"
    if known.modules:
        return 1, f"its files contain {wanted[0]}"
    return 0, "only its name matches"


def _strangers(wanted: Sequence[str], repository: str, known: Known) -> bool:
    """Whether an import is named like the repository, and the distribution of that name is from
    elsewhere: its links name neither the owner nor, as the owner may have changed, a repository of
    that name.
    """
    owner, _, name = repository.rpartition("/")
    if not (name and _squeezed(wanted[0]) == _squeezed(name) and known.projects):
        return False
    kin = any(alike(each.partition("/")[0], owner) for each in known.projects)
    same = any(alike(each.rpartition("/")[2], name) for each in known.projects)
    return not (kin or same or repository in known.mentions)


# The versions that a report names, by package: which to install, which are bounds, and how the
# report words them.

Claims = dict[str, list[VersionClaim]]


def gathered(report: BugReport) -> Claims:
    """All claims by distribution, the most believable first; releases that travel together lend
    each other theirs.
    """
    found: Claims = {}
    for claim in report.versions:
        found.setdefault(package_names.alias(claim.name), []).append(claim)
    for pair in imports.SHARED_VERSIONS:
        for name, twin in (pair, pair[::-1]):
            if twin in found and name not in found:
                found[name] = found[twin]
    return {name: versions.ranked(claims) for name, claims in found.items()}


def bounds(claims: Claims, wanted: dict[str, Requirement]) -> tuple[Requirement, ...]:
    """Versions that a program printed for packages nobody asked to install: bounds, should
    something draw them.
    """
    skip = {
        "python",
        *imports.TORCH_FAMILY,
        *imports.TENSORFLOW,
        *wanted,
        *map(claim_name, wanted),
    }
    found = []
    for name, ranked in claims.items():
        specifier = versions.specifier(ranked[0].version, ranked[0].source)
        if (
            name not in skip
            and specifier
            and ranked[0].source != "label"
            and not imports.foreign(name)
        ):
            reason = f"the report says {ranked[0].version} ({ranked[0].source})"
            found.append(
                Requirement(name=name, specifier=specifier, rung=PinSource.ISSUE, reason=reason)
            )
    return tuple(found)


def beside(claims: Claims, options: EnvironmentOptions) -> tuple[Claimed, ...]:
    """What the report itself names, for the comparison with what is built."""
    found = [
        Claimed(name=name, claimed=ranked[0].version, resolved="", note=_contradiction(ranked))
        for name, ranked in claims.items()
        if package_names.alias(ranked[0].name) == name
    ]
    if options.python:
        found = [each for each in found if each.name != "python"]
        found.append(Claimed(name="python", claimed=options.python, resolved="", note="--python"))
    return tuple(found)


def named(report: BugReport) -> tuple[str, ...]:
    """The distributions that a report names: installed by its author, or with a version."""
    installed = names(line for fence in report.fences for line in fence.installs)
    return tuple(dict.fromkeys((*installed, *names(each.name for each in report.versions))))


def _contradiction(ranked: list[VersionClaim]) -> str:
    others = dict.fromkeys(claim.version for claim in ranked if claim.version != ranked[0].version)
    return f"the bug report also names {', '.join(others)}" if others else ""


def claim_name(name: str) -> str:
    """The name under which a distribution's claims are kept."""
    return "tensorflow" if name in imports.TENSORFLOW else name
