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
_MOVED_FOLDER = re.compile(r"^[^/]+\.data/(?:pure|plat)lib/")
_REQUIREMENT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_CODE = (".py", ".so", ".pyi", ".pyd")


@dataclass(frozen=True, slots=True)
class ProjectFacts:
    """What an index tells of a distribution: the dotted modules among its files, None where they
    cannot be read; the repositories ("owner/name") that its links name, and those that all of its
    metadata mention; what it needs.
    """

    name: str
    modules: frozenset[str] | None = None
    projects: tuple[str, ...] = ()
    mentions: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()

    def lacks(self, module_names: Sequence[str]) -> str:
        """The module (the first of `wanted`, with some below it) for which it cannot be meant, ""
        when it can: one without modules of its own consists of what it needs.
        """
        below = [name for name in module_names[1:] if "." in name]
        if not self.modules or (module_names[0] in self.modules and not below):
            return ""
        has_module = module_names[0] in self.modules and any(name in self.modules for name in below)
        return (
            "" if has_module else (below[0] if module_names[0] in self.modules else module_names[0])
        )


def modules(files: Iterable[str]) -> frozenset[str]:
    """The dotted modules that the files of a wheel are, and the packages that they are in."""
    names = set[str]()
    for path in files:
        if path.endswith(_CODE):
            folder, _, name = _MOVED_FOLDER.sub("", path).rpartition("/")
            parts = [*filter(None, folder.split("/")), name.split(".")[0]]
            if all(part.isidentifier() for part in parts):
                names.update(".".join(parts[:length]) for length in range(1, len(parts) + 1))
    return frozenset(name.removesuffix(".__init__") for name in names)


def projects(links: Iterable[str]) -> tuple[str, ...]:
    """The repositories that addresses name, in lower case."""
    paths = dict[str, None]()
    for link in links:
        try:
            parts = urlsplit(link.strip().lower())
        except ValueError:
            continue
        path = parts.path.strip("/").split("/")
        if (parts.hostname or "").removeprefix("www.") in _HOSTS and len(path) >= 2:
            paths[f"{path[0]}/{path[1].removesuffix('.git')}"] = None
    return tuple(paths)


def names(requirements: Iterable[str]) -> tuple[str, ...]:
    """The distributions that requirements name, those of extras too."""
    matches = (_REQUIREMENT_NAME.match(requirement) for requirement in requirements)
    return tuple(dict.fromkeys(canonicalize_name(match[0]) for match in matches if match))


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
    module_names: Sequence[str],
    repository: str,
    candidates: Iterable[ProjectFacts],
    *,
    published: bool = False,
) -> tuple[str, str]:
    """The distribution that most speaks for as the one of a module (the first of `wanted`, with
    some below it), and what does; ("", why not) when all are ruled out. The first of equals is
    taken, and one that links to the repository at once. For what is `published` by the repository
    the module is a guess too.
    """
    best, best_name, best_reason = -1, "", ""
    for project in candidates:
        rank, why = _weigh(module_names, repository.lower(), project, published=published)
        if rank > best:
            best, best_name, best_reason = rank, project.name, why
        elif not best_reason:
            best_reason = why
        if best == _CONFIRMED:
            break
    return best_name, best_reason


_CONFIRMED = 2


def _weigh(
    module_names: Sequence[str], repository: str, project: ProjectFacts, *, published: bool
) -> tuple[int, str]:
    """How much speaks for a distribution, -1 when something speaks against it, and what."""
    if published:
        tops = (module for module in sorted(project.modules or ()) if "." not in module)
        name = next((top for top in tops if alike(top, module_names[0])), module_names[0])
        module_names = (name, *module_names[1:])
    confirmed = bool(repository) and repository in project.projects
    if confirmed and (published or not project.lacks(module_names[:1])):
        return _CONFIRMED, f"its links name {repository}"
    if gap := project.lacks(module_names):
        return -1, f"the {project.name} on the index has no module {gap}"
    if _strangers(module_names, repository, project):
        return -1, f"the {project.name} on the index belongs to {project.projects[0]}"
    if project.modules:
        return 1, f"its files contain {module_names[0]}"
    return 0, "only its name matches"


def _strangers(module_names: Sequence[str], repository: str, project: ProjectFacts) -> bool:
    """Whether an import is named like the repository, and the distribution of that name is from
    elsewhere: its links name neither the owner nor, as the owner may have changed, a repository of
    that name.
    """
    owner, _, name = repository.rpartition("/")
    if not (name and _squeezed(module_names[0]) == _squeezed(name) and project.projects):
        return False
    kin = any(alike(path.partition("/")[0], owner) for path in project.projects)
    same = any(alike(path.rpartition("/")[2], name) for path in project.projects)
    return not (kin or same or repository in project.mentions)


# The versions that a report names, by package: which to install, which are bounds, and how the
# report words them.

Claims = dict[str, list[VersionClaim]]


def gather_claims(report: BugReport) -> Claims:
    """All claims by distribution, the most believable first; releases that travel together lend
    each other theirs.
    """
    by_name: Claims = {}
    for claim in report.versions:
        by_name.setdefault(package_names.alias(claim.name), []).append(claim)
    for pair in imports.SHARED_VERSIONS:
        for name, twin in (pair, pair[::-1]):
            if twin in by_name and name not in by_name:
                by_name[name] = by_name[twin]
    return {name: versions.rank_claims(claims) for name, claims in by_name.items()}


def bounds(claims: Claims, requirements: dict[str, Requirement]) -> tuple[Requirement, ...]:
    """Versions that a program printed for packages nobody asked to install: bounds, should
    something draw them.
    """
    skip = {
        "python",
        *imports.TORCH_FAMILY,
        *imports.TENSORFLOW,
        *requirements,
        *map(claim_name, requirements),
    }
    bound_list = []
    for name, claims_of_name in claims.items():
        specifier = versions.specifier(claims_of_name[0].version, claims_of_name[0].source)
        if (
            name not in skip
            and specifier
            and claims_of_name[0].source != "label"
            and not imports.foreign(name)
        ):
            reason = f"the report says {claims_of_name[0].version} ({claims_of_name[0].source})"
            bound_list.append(
                Requirement(name=name, specifier=specifier, rung=PinSource.ISSUE, reason=reason)
            )
    return tuple(bound_list)


def beside(claims: Claims, options: EnvironmentOptions) -> tuple[Claimed, ...]:
    """What the report itself names, for the comparison with what is built."""
    claim_list = [
        Claimed(
            name=name,
            claimed=claims_of_name[0].version,
            resolved="",
            note=_contradiction(claims_of_name),
        )
        for name, claims_of_name in claims.items()
        if package_names.alias(claims_of_name[0].name) == name
    ]
    if options.python:
        claim_list = [claim for claim in claim_list if claim.name != "python"]
        claim_list.append(
            Claimed(name="python", claimed=options.python, resolved="", note="--python")
        )
    return tuple(claim_list)


def named_packages(report: BugReport) -> tuple[str, ...]:
    """The distributions that a report names: installed by its author, or with a version."""
    names_installed = names(line for fence in report.fences for line in fence.installs)
    return tuple(dict.fromkeys((*names_installed, *names(claim.name for claim in report.versions))))


def _contradiction(claims_of_name: list[VersionClaim]) -> str:
    others = dict.fromkeys(
        claim.version for claim in claims_of_name if claim.version != claims_of_name[0].version
    )
    return f"the bug report also names {', '.join(others)}" if others else ""


def claim_name(name: str) -> str:
    """The name under which a distribution's claims are kept."""
    return "tensorflow" if name in imports.TENSORFLOW else name
