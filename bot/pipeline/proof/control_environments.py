"""An environment → the same one with another version of one package; the other packages change as
little as possible.
"""

import re
from dataclasses import dataclass
from datetime import timedelta

from bot.errors import BuildError
from bot.models.attempt import Judgement
from bot.models.bisect import Release
from bot.models.environment import Environment, EnvironmentSpec, PinSource, RepoSource, Requirement
from bot.pipeline.environment import specify
from bot.pipeline.execution.runner import Runner
from bot.rules import releases
from bot.rules.packages import companions

_INSTALLED = re.compile(r"(?:/[^\s/()'\"]+)+/(?:site|dist)-packages/")
_SETTLED = timedelta(days=7)
_MOST_MOVED = 6


def at_release(
    spec: EnvironmentSpec, built: Environment, package: str, release: Release
) -> tuple[EnvironmentSpec, ...]:
    """The ways to install a release: with the very packages of `built`, then those of its day."""
    wanted = _requirement(spec, package, release.version)
    if not any(each.name == package for each in spec.requirements):  # drawn by another one so far
        spec = spec.model_copy(update={"requirements": (*spec.requirements, wanted)})
    near = specify.at_version(spec, wanted)
    others = (each for each in near.constraints if not built.version(each.name))
    fixed = near.model_copy(update={"constraints": (*_as_built(near, built), *others)})
    if release.uploaded_at is None:
        return (fixed,)
    day = release.uploaded_at + _SETTLED if spec.exclude_newer is not None else None
    loose = tuple(_loose(each, package) for each in near.requirements)
    free = near.model_copy(update={"exclude_newer": day, "requirements": loose, "constraints": ()})
    return fixed, free


def _loose(each: Requirement, package: str) -> Requirement:
    """A requirement at whatever version fits, for what the report only happens to have beside
    the package; what was asked for by option stays, as does what moves along.
    """
    if (
        each.name == package
        or each.rung is PinSource.OPTION
        or each.name in companions.TORCH_FAMILY
    ):
        return each
    return each.model_copy(
        update={
            "specifier": "",
            "rung": PinSource.DEPENDENCY,
            "reason": "released by the date of the compared version",
        }
    )


def _requirement(spec: EnvironmentSpec, package: str, version: str) -> Requirement:
    old = next((each for each in spec.requirements if each.name == package), None)
    extras = old.extras if old is not None else ()
    return Requirement(
        name=package,
        specifier=f"=={version}",
        extras=extras,
        rung=PinSource.OPTION,
        reason="compared version",
    )


def _as_built(spec: EnvironmentSpec, built: Environment) -> tuple[Requirement, ...]:
    """What was built, as bounds on what the new environment draws; torch comes as it can be had."""
    asked = {each.name for each in spec.requirements if each.specifier}
    moving = {each.name for each in spec.requirements if each.rung is PinSource.OPTION}
    together = (pair for pair in companions.SHARED_VERSIONS if moving & set(pair))
    free = asked.union(companions.TORCH_FAMILY, companions.TENSORFLOW, *together, {"setuptools"})
    return tuple(
        Requirement(
            name=each.name,
            specifier=f"=={each.version}",
            rung=PinSource.DEPENDENCY,
            reason="same version as in the failing environment",
        )
        for each in built.packages
        if each.name not in free and "+" not in each.version
    )


def at_commit(spec: EnvironmentSpec, source: RepoSource, commit: str) -> EnvironmentSpec:
    """The environment with a repository at a commit."""
    repo = source.model_copy(update={"commit": commit, "ref": ""})
    return spec.model_copy(update={"repo": repo})


@dataclass(frozen=True, slots=True)
class ControlEnvironment:
    """An environment that could be built, its spec, and the place of that among the specs."""

    index: int
    spec: EnvironmentSpec
    environment: Environment


@dataclass(frozen=True, slots=True)
class Unavailable:
    """Why a version cannot be had, as a phrase. `instead` is the version that would be installed
    in its place, where one would.
    """

    why: str
    instead: str = ""


def build(
    runner: Runner, specs: tuple[EnvironmentSpec, ...], package: str, version: str, first: int = 0
) -> ControlEnvironment | Unavailable:
    """The first spec, from `first` on, that can be built and has the version, if one is asked
    for; else why there is none.
    """
    unavailable = Unavailable("it could not be installed")
    for index, spec in list(enumerate(specs))[first:]:
        try:
            built = runner.build(spec)
        except BuildError as error:
            unavailable = Unavailable(str(error))
            continue
        got = built.version(package)
        if not package or not version or releases.same(got, version):
            return ControlEnvironment(index, spec, built)
        unavailable = Unavailable(f"{got or 'nothing'} would be installed instead", got)
        if package in companions.TORCH_FAMILY:
            # Which torch builds exist depends on the machine and its index: no other spec has more.
            break
    return unavailable


def words(judgement: Judgement) -> str:
    """What a run shows in one line: the exception it ended with, else the reason; where things
    are installed is left out.
    """
    first = next(iter(judgement.evidence.splitlines()), "") or judgement.reason
    return _INSTALLED.sub("", first)[:200]


def moved(before: Environment, after: Environment, package: str) -> tuple[str, ...]:
    """What else differs between two environments, in words, at most six rows."""
    rows = []
    if _minor(before.python) != _minor(after.python):
        rows.append(f"Python {before.python} → {after.python}")
    for each in before.packages:
        now = after.version(each.name)
        if each.name != package and now and now != each.version:
            rows.append(f"{each.name} {each.version} → {now}")
    more = len(rows) - _MOST_MOVED
    return (*rows[:_MOST_MOVED], f"{more} more") if more > 0 else tuple(rows)


def _minor(python: str) -> str:
    return ".".join(python.split(".")[:2])
