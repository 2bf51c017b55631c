"""Builds environments with uv: the fallbacks around one resolver, and what came of each."""

import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from threading import Event, Lock

from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version
from typing_extensions import override

from bot.environment import (
    drafts,
    fallbacks,
    imports,
    matching,
    releases,
    removed_names,
    source_builds,
    torch_builds,
    versions,
)
from bot.environment.drafts import Draft, World
from bot.environment.git import Checkout, Credentials, Git
from bot.environment.index import PackageIndex
from bot.environment.operator_files import Shelf
from bot.environment.source_builds import Workshop
from bot.environment.torch_builds import Torch
from bot.kernel import settings
from bot.kernel.bug import Frame, Release
from bot.kernel.environment import (
    BuildStep,
    Claimed,
    Environment,
    EnvironmentSpec,
    LibraryName,
    OperatorFiles,
    Package,
    PinSource,
    Requirement,
)
from bot.kernel.errors import BuildError, IndexUnreachable, Stopped, TransientError
from bot.kernel.ports import Builder
from sandbox import indexes, interpreters
from sandbox.cache import Cache, LockHolder
from sandbox.environment import FORMAT, IndexDown, Installation, Installer, Unresolvable, Wishes
from sandbox.footprint import DiskFull
from sandbox.interpreters import Snapshot
from sandbox.port import Sandbox, SandboxError
from sandbox.subprocesses import Interrupted

# A built environment as the report shows it: packages with their sources, claims compared with
# what was resolved, and the lock.

_UNBUILT = "the clone has uncommitted changes; commit {} was built without them"


def outcome(
    spec: EnvironmentSpec,
    draft: Draft,
    installation: Installation,
    steps: tuple[BuildStep, ...],
    checkout: Checkout | None,
    history: Callable[[str], tuple[Release, ...]],
) -> Environment:
    """The environment that was built. `history` are the releases of a distribution."""
    packages = _packages(spec, draft, installation.pins)
    mounts = [str(installation.python.root), str(installation.root)]
    variables = {**installation.python.variables, **spec.variables}
    if checkout is not None and not draft.cloned:
        mounts.append(str(checkout.tree))
        variables["PYTHONPATH"] = f"{checkout.tree}:{checkout.tree}/src"
    return Environment(
        id=installation.id,
        python=installation.python.version,
        interpreter=str(installation.interpreter),
        mounts=tuple(mounts),
        variables=variables,
        packages=packages,
        lock="".join(
            f"{pin}\n" for pin in (f"# python {installation.python.version}", *installation.pins)
        ),
        claims=tuple(
            claim.model_copy(update={"is_absent": _is_absent(claim, history)})
            for claim in _claims(spec, draft, packages, installation.python.version)
        ),
        steps=steps,
        commit=checkout.commit if checkout else "",
        tree=str(checkout.tree) if checkout else "",
        cloned=draft.cloned,
        note=_note(checkout) if checkout is not None else "",
    )


def _note(checkout: Checkout) -> str:
    if checkout.missing:
        names = ", ".join(f"`{path}`" for path in checkout.missing[:3])
        more = f" and {len(checkout.missing) - 3} more" if len(checkout.missing) > 3 else ""
        return f"the clone lacks files of the commit: {names}{more}"
    return _UNBUILT.format(checkout.commit[:12]) if checkout.changed else ""


def _packages(spec: EnvironmentSpec, draft: Draft, pins: tuple[str, ...]) -> tuple[Package, ...]:
    unstated = {row.name: row.rung for row in spec.requirements if not row.specifier}
    requirements = {requirement.name: requirement for requirement in draft.requirements}
    bounds = {bound.name: bound.rung for bound in (*draft.constraints, *draft.overrides)}
    packages = []
    for pin in pins:
        name, _, version = pin.partition("==")
        plain = canonicalize_name(name.partition("[")[0].strip())
        requirement = requirements.get(plain)
        rung = bounds.get(plain, PinSource.DEPENDENCY)
        if requirement is not None:
            free = plain in draft.undated or plain in draft.windows
            is_raised = unstated.get(plain) is requirement.rung  # to the newest of the day
            any_version = is_raised or not requirement.specifier
            dated = draft.exclude_newer and not free and any_version
            rung = PinSource.DATE if dated else requirement.rung
        packages.append(Package(name=plain, version=version.partition(" ")[0], rung=rung))
    return tuple(packages)


def _claims(
    spec: EnvironmentSpec, draft: Draft, packages: tuple[Package, ...], python: str
) -> tuple[Claimed, ...]:
    """What the report names of what was built, what was left out, and what had to give way."""
    resolved = {package.name: package.version for package in packages} | {"python": python}
    for name, build in {"tensorflow": "tensorflow-cpu", **imports.WINDOWED}.items():
        resolved.setdefault(name, resolved.get(build, ""))
    notes: dict[str, str] = {}
    for name, note in dict.fromkeys(draft.notes):
        notes[name] = f"{notes[name]}; {note}" if name in notes else note
    claims = []
    for claim in spec.claims:
        version = resolved.get(claim.name, "")
        if version or claim.name in notes:
            differs = "" if _agrees(claim, version) else "differs"
            joined_notes = "; ".join(filter(None, (claim.note, notes.pop(claim.name, ""))))
            claims.append(
                claim.model_copy(update={"resolved": version, "note": joined_notes or differs})
            )
    # A bound on what nobody asks for, and what is not drawn in, says nothing.
    names = {*resolved, "date", *(row.name for row in (*spec.requirements, *draft.requirements))}
    extra = [
        Claimed(name=name, claimed="", resolved=resolved.get(name, ""), note=note)
        for name, note in notes.items()
        if name in names
    ]
    return (*claims, *extra)


def _is_absent(claim: Claimed, history: Callable[[str], tuple[Release, ...]]) -> bool:
    """Whether no release of a package fits the version that the report names."""
    specifier = versions.specifier(claim.claimed, "text") if claim.claimed else ""
    if claim.name == "python" or not specifier or _agrees(claim, claim.resolved):
        return False
    offered = [release.version for release in history(claim.name)]
    fits = SpecifierSet(specifier).filter(offered, prereleases=True)
    return bool(offered) and next(iter(fits), None) is None


def _agrees(claim: Claimed, resolved: str) -> bool:
    if claim.name == "python" and (
        versions.python_minor(claim.claimed) == versions.python_minor(resolved)
    ):
        return True
    specifier = versions.specifier(claim.claimed, "text")
    if not specifier or not resolved:
        return True
    version = specifier.removeprefix("==").removesuffix(".*")
    try:
        public = Version(resolved).public
    except InvalidVersion:
        return False
    return public == version or public.startswith(f"{version}.")


# Builds environments with uv: the ladder of tries around one resolver, and what came of each try.

_TRIES = 30
"""Resolutions; each takes seconds, and old releases lack several wheels."""
_FRESH_S = 86_400.0
_PROBE_S = 3_600.0
_RAISED = (PinSource.REPOSITORY, PinSource.IMPORT)
_TORCH_DEPENDENCIES = ("setuptools",)
_UNCOMPILED = (
    "without its compiled operators (nms, image decoding and others): the index's build of them "
    "loads only with a CUDA build of torch"
)


@dataclass
class UvBuilder(Builder):
    """The Builder of this machine. `cache` is where environments live, `sandbox` where source
    distributions are built. `torch_index` says whether the index of CPU builds answers, None when
    that is to be found out; `credentials` are for the repository under test. The operator's `shelf`
    has the `data` that programs get, and weights.
    """

    cache: Path
    sandbox: Sandbox | None = None
    environ: Mapping[str, str] = field(default_factory=settings.host)
    torch_index: bool | None = None
    credentials: Credentials | None = None
    shelf: Shelf | None = None
    data: Mapping[str, str] = field(default_factory=dict)
    _index: PackageIndex = field(init=False)
    _settings: indexes.Indexes = field(init=False)
    _probing: Lock = field(default_factory=Lock, init=False)
    _held: LockHolder = field(default_factory=LockHolder, init=False)
    _visions: dict[Torch, str] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self._settings = indexes.read_indexes(self.environ)
        self._index = PackageIndex(self._settings)

    @cached_property
    def _operator_files(self) -> OperatorFiles:
        return self.shelf.files(self.data) if self.shelf is not None else OperatorFiles()

    @override
    def pythons(self) -> tuple[str, ...]:
        minors = {interpreter.minor for interpreter in interpreters.discover(self.environ)}
        return tuple(sorted(minors, key=versions.order))

    @override
    def releases(self, name: str) -> tuple[str, ...]:
        return tuple(release.version for release in self.history(name) if not release.yanked)

    @override
    def history(self, name: str) -> tuple[Release, ...]:
        try:
            releases = self._index.releases(name)
        except IndexUnreachable:
            return ()
        return tuple(
            Release(
                version=str(release.version),
                uploaded_at=release.uploaded,
                yanked=release.yanked,
                prerelease=release.version.is_prerelease,
                wheels=release.wheels,
            )
            for release in releases
        )

    def usable(self, name: str, minor: str) -> tuple[str, ...]:
        """The releases with a wheel for Linux and a Python; of jax those whose jaxlib has one."""
        rows = self._with_wheel(name, minor)
        if name != "jax":
            return rows
        builds = {*self._with_wheel("jaxlib", minor)}
        return tuple(version for version in rows if version in builds) or rows

    def _with_wheel(self, name: str, minor: str) -> tuple[str, ...]:
        try:
            releases = self._index.releases(name)
        except IndexUnreachable:
            return ()
        return tuple(
            str(release.version)
            for release in releases
            if release.fits(minor) and not release.yanked
        )

    @override
    def changelog(self, name: str) -> str:
        try:
            return releases.changelog(self._index.links(name))
        except IndexUnreachable:
            return ""

    @override
    def matched(self, spec: EnvironmentSpec) -> tuple[EnvironmentSpec, tuple[str, ...]]:
        return (spec, ()) if self._settings.offline else matching.match_spec(spec, self._index)

    @override
    def fitting(
        self,
        environment: Environment,
        name: str,
        frames: tuple[Frame, ...],
        before: datetime | None,
    ) -> str:
        site = next(self.cache.glob(f"envs/{environment.id}/lib/python3*/site-packages"), None)
        if site is None or self._settings.offline:
            return ""
        return matching.release(self._index, site, name, environment.version(name), frames, before)

    @override
    def providing(
        self, environment: Environment, lacking: LibraryName, before: datetime | None
    ) -> tuple[str, str]:
        site = next(self.cache.glob(f"envs/{environment.id}/lib/python3*/site-packages"), None)
        if site is None or self._settings.offline:
            return "", ""
        place = removed_names.located(site, lacking)
        if place is None:
            return "", ""
        version = removed_names.release_with(self._index, place, lacking, before)
        return (place.distribution, version) if version else ("", "")

    @override
    def build(self, spec: EnvironmentSpec, *, cancel: Event | None = None) -> Environment:
        started = time.monotonic()
        cache = Cache(self.cache, cancel, self._held)
        try:
            warm = self._warm(spec, cache) if spec.repo is None else None
            environment = warm or _Job(self, spec, cache).run()
        except Interrupted as error:
            raise Stopped("the build was cancelled") from error
        except IndexDown as error:
            raise IndexUnreachable(
                "The package index does not answer.", "Check the network and pip's index settings."
            ) from error
        except DiskFull as error:
            raise TransientError(
                "The disk is full.", f"Free some space, or empty {self.cache}."
            ) from error
        return environment.model_copy(
            update={
                "warm": warm is not None,
                "seconds": time.monotonic() - started,
                "operator_files": self._operator_files,
            }
        )

    def spec_key(self, spec: EnvironmentSpec) -> str:
        """The name under which the outcome of a spec is noted: all that the outcome depends on,
        dates aside.
        """
        wheels = sorted(
            path.name for folder in self._settings.folders for path in folder.glob("torch*.whl")
        )
        parts = (
            spec.model_dump_json(),
            repr(self._settings.without_secrets()),
            *wheels,
            FORMAT,
        )
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]

    def _warm(self, spec: EnvironmentSpec, cache: Cache) -> Environment | None:
        note = cache.recall(self.spec_key(spec))
        if note is None or (
            spec.exclude_newer is None and time.time() - note.get("at", 0) > _FRESH_S
        ):
            return None
        environment = Environment.model_validate(note["environment"])
        whole = cache.using("envs", environment.id) and all(
            Path(mount).exists() for mount in environment.mounts
        )
        return environment if whole else None

    def reachable(self, installer: Installer, python: Snapshot) -> bool:
        """Whether the index of CPU builds of torch answers; asked once an hour at most, as the
        answer may take seconds.
        """
        with self._probing:
            if self.torch_index is None:
                note = installer.cache.recall("torch-index") or {}
                if time.time() - note.get("at", 0) < _PROBE_S:
                    self.torch_index = bool(note.get("answers"))
                else:
                    self.torch_index = installer.reachable("cpu", python)
                    installer.cache.note(
                        "torch-index", {"at": time.time(), "answers": self.torch_index}
                    )
            return self.torch_index

    def vision(self, installer: Installer, local: Torch, python: Snapshot) -> str:
        """The pin of the torchvision that requires a local build of torch, "" when there is none;
        asked once.
        """
        if local not in self._visions:
            wishes = Wishes(requirements=(local.pin, imports.FITTED_VISION))
            try:
                pins = installer.resolve(wishes, python)
            except Unresolvable:
                pins = ()
            self._visions[local] = next((p for p in pins if p.startswith("torchvision==")), "")
        return self._visions[local]


def _stamp(day: datetime) -> str:
    return f"{day.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


class _Job:
    """One build: the drafts that were tried, the steps they took, and the environment at the
    end.
    """

    def __init__(self, owner: UvBuilder, spec: EnvironmentSpec, cache: Cache) -> None:
        self.owner, self.spec, self.cache = owner, spec, cache
        self.installer = Installer(cache, owner._settings)
        self.found = {
            interpreter.minor: interpreter for interpreter in interpreters.discover(owner.environ)
        }
        self.steps: list[BuildStep] = []
        self.checkout: Checkout | None = None
        self.torch = Torch(anything=True)
        self.at_hand: dict[str, tuple[str, str]] = {}
        """Packages of which only one release can be had: its pin, and why it is that."""
        self.raised: dict[str, Requirement] = {}
        """Packages that were to be of their newest release of the day, the last one last."""
        self.best: tuple[Draft, tuple[str, ...]] | None = None
        """The best solution so far: a draft and its pins."""

    def run(self) -> Environment:
        if not self.found:
            raise BuildError("No Python interpreter was found to build with.")
        self.torch = torch_builds.choose(
            self.spec,
            self.owner._settings.folders,
            tuple(self.found),
            self._reachable,
        )
        if self.torch.pin:
            self.at_hand = self._local()
        draft = self._first()
        attempts, causes = list[Draft](), dict[str, str]()
        while True:
            attempts.append(draft)
            pins, error = self._resolved(draft)
            causes[draft.minor] = error
            following = (
                self._fallback(draft, error, attempts)
                if pins is None
                else self._improved(draft, pins)
            )
            if following is None and self.best is not None:
                return self._installed(*self.best)
            if following is None:
                # Other Pythons fail for reasons of their own: what the one that was asked for could
                # not do is the cause.
                cause = releases.first_cause(causes[attempts[0].minor])
                raise BuildError(f"No environment could be built: {cause}", tuple(self.steps))
            draft = following

    def _first(self) -> Draft:
        minor, why = self._python()
        requirements, notes = self._requirements()
        notes += (("python", why),) if why else ()
        in_tree = self.spec.repo is not None and self.spec.repo.in_place
        under_test = "" if in_tree or not requirements else requirements[0].name
        undated = (*_TORCH_DEPENDENCIES, *self.at_hand, *drafts.exact(requirements))
        draft = Draft(
            what=f"as the bug report says, Python {minor}",
            minor=minor,
            requirements=requirements,
            under_test=under_test,
            declared=tuple(
                row.name
                for row in requirements
                if row.rung is PinSource.REPOSITORY and row.specifier and row.name != under_test
            ),
            constraints=self.spec.constraints,
            exclude_newer=self.spec.exclude_newer,
            notes=notes,
            undated=tuple(dict.fromkeys((*self.spec.undated, *undated))),
        )
        if self.spec.repo is not None:
            draft = self._with_repository(draft)
        return drafts.with_bounds(draft, drafts.bounds(draft, self._oldest(draft)))

    def _improved(self, draft: Draft, pins: tuple[str, ...]) -> Draft | None:
        """What to try after a solution: what it lacks, else a newer release of a package."""
        if completed := drafts.completed(draft, pins):
            return completed
        if self.best is None or self._is_newer(pins, self.best[1]):
            self.best = draft, pins
        return self._newest(*self.best)

    def _fallback(self, draft: Draft, error: str, attempts: list[Draft]) -> Draft | None:
        """What to try after a failure: where there is a solution, only what gives nothing up."""
        may_try, world = len(attempts) < _TRIES, self._world()
        if self.best is None:
            return fallbacks.next_draft(draft, error, world, attempts) if may_try else None
        following = (
            fallbacks.raised_draft(draft, error, world, attempts, self._is_about())
            if may_try
            else None
        )
        return following or self._newest(*self.best)

    def _newest(self, draft: Draft, pins: tuple[str, ...]) -> Draft | None:
        """A draft that holds a package which the report is about or the program imports to the
        newest release before the report, where the resolver took an older one because a dependency
        of the newest has no wheel of that day.
        """
        resolved = dict(pin.split("==", 1) for pin in pins if "==" in pin)
        for requirement in draft.requirements:
            version = resolved.get(requirement.name)
            is_free = not requirement.specifier and requirement.name not in draft.undated
            if not (is_free and requirement.rung in _RAISED and version):
                continue
            newest = self._newest_release(requirement.name, draft.exclude_newer)
            if requirement.name in self.raised or not newest or Version(newest) <= Version(version):
                continue
            has_wheel = newest in self.owner.usable(requirement.name, draft.minor)
            if has_wheel or requirement.rung is PinSource.REPOSITORY:
                self.raised[requirement.name] = requirement
                return drafts.at_least(draft, requirement, newest)
        return None

    def _is_newer(self, pins: tuple[str, ...], older: tuple[str, ...]) -> bool:
        """Whether the newest release of a package costs no other one its own; that of the one that
        the report is about may.
        """
        if self._is_about():
            return True
        now, before = (
            dict(pin.split("==", 1) for pin in of if "==" in pin) for of in (pins, older)
        )
        names = now.keys() & before.keys() & {row.name for row in self.spec.requirements}
        return all(Version(now[name]) >= Version(before[name]) for name in names)

    def _is_about(self) -> bool:
        """Whether the report is about the package that was last to be newer."""
        return next(reversed(self.raised.values())).rung is PinSource.REPOSITORY

    def _newest_release(self, name: str, before: datetime | None) -> str:
        release_names = (
            release.version
            for release in self.owner.history(name)
            if not (release.yanked or release.prerelease)
            and (
                before is None or (release.uploaded_at is not None and release.uploaded_at < before)
            )
        )
        return max(release_names, key=Version, default="")

    def _python(self) -> tuple[str, str]:
        """The Python to begin with, and why it is not the one that was asked for."""
        minor = self.spec.python
        if any(requirement.name == "torch" for requirement in self.spec.requirements):
            if not self.torch.possible:
                raise BuildError(torch_builds.NONE_TO_BE_HAD)
            if self.torch.minor and not self._fixed():
                why = f"{self.torch.minor}, for which there is a CPU build of torch"
                return self.torch.minor, why if self.torch.minor != minor else ""
        if minor in self.found:
            return minor, ""
        if self._fixed():
            raise BuildError(
                f"Python {minor} is not installed here; available: {', '.join(self.found)}."
            )
        near = versions.by_distance(minor, tuple(self.found))[0]
        return near, f"{near}, the nearest on this machine"

    def _local(self) -> dict[str, tuple[str, str]]:
        vision = self.owner.vision(self.installer, self.torch, self._snapshot(self.torch.minor))
        fits = f"the release for {self.torch.pin.replace('==', ' ')} is"
        return {
            "torch": (self.torch.pin, "nearest available CPU build"),
            **({"torchvision": (vision, fits)} if vision else {}),
        }

    def _requirements(self) -> tuple[tuple[Requirement, ...], tuple[tuple[str, str], ...]]:
        """What to install, with the versions of torch and torchvision that are available; packages
        that load only with another torch are left out.
        """
        requirements, notes = [], []
        for requirement in self.spec.requirements:
            if requirement.name in self.at_hand:
                requirements.append(drafts.at_hand(requirement, *self.at_hand[requirement.name]))
                if requirements[-1].rung is PinSource.NEIGHBOUR:
                    notes.append((requirement.name, requirements[-1].reason))
            elif self.torch.pin and requirement.name in imports.CUDA_ONLY:
                notes.append(
                    (
                        requirement.name,
                        "omitted: no build of it works with a CPU build of torch from a folder",
                    )
                )
                self.steps.append(BuildStep(what=f"omit {requirement.name}", error=notes[-1][1]))
            else:
                requirements.append(drafts.without_windows(requirement))
        return tuple(requirements), tuple(notes)

    def _resolved(self, draft: Draft) -> tuple[tuple[str, ...] | None, str]:
        started = time.monotonic()
        try:
            pins = self.installer.resolve(self._wishes(draft), self._snapshot(draft.minor))
            torch_drawn = any(pin.startswith("torch==") for pin in pins)
            error = torch_builds.NONE_TO_BE_HAD if torch_drawn and not self.torch.possible else ""
            error = error or self._outlier(draft, pins)
        except Unresolvable as failure:
            pins, error = (), str(failure)
        self.steps.append(
            BuildStep(
                what=draft.what,
                error=releases.first_cause(error) if error else "",
                seconds=time.monotonic() - started,
            )
        )
        return (None, error) if error else (pins, "")

    def _outlier(self, draft: Draft, pins: tuple[str, ...]) -> str:
        """What is wrong with the release that the resolver fell back to, "" when nothing is."""
        versions_by_name = dict(pin.split("==", 1) for pin in pins if "==" in pin)
        for requirement in draft.requirements:
            free = (
                not requirement.specifier
                and requirement.name in versions_by_name
                and requirement.name not in draft.undated
            )
            history = self.owner.history(requirement.name) if free else ()
            if outlier := releases.outlier(
                requirement.name,
                versions_by_name.get(requirement.name, ""),
                history,
                self.spec.exclude_newer,  # also once the cut-off is given up
            ):
                return outlier
        return ""

    def _wishes(self, draft: Draft) -> Wishes:
        excludes = [
            name for name in imports.CUDA_ONLY if self.torch.pin and name not in self.at_hand
        ]
        if any(requirement.name == "tensorflow-cpu" for requirement in draft.requirements):
            excludes += [name for name in imports.TENSORFLOW if name != "tensorflow-cpu"]
        names = {requirement.name for requirement in draft.requirements}
        excludes += [name for name, plain in imports.WINDOWED.items() if plain in names]
        day = draft.exclude_newer
        return Wishes(
            requirements=tuple(map(drafts.line, draft.requirements)),
            constraints=tuple(map(drafts.line, draft.constraints)),
            overrides=(
                *(pin for name, (pin, _) in self.at_hand.items() if name != draft.cloned),
                *map(drafts.line, draft.overrides),
            ),
            excludes=tuple(excludes),
            exclude_newer=_stamp(day) if day else "",
            undated=tuple(dict.fromkeys((*draft.undated, *drafts.exact(draft.requirements)))),
            windows=tuple((name, _stamp(until)) for name, until in draft.windows.items()),
            wheels=draft.wheels,
            torch_backend=self.torch.backend,
        )

    def _installed(self, draft: Draft, pins: tuple[str, ...]) -> Environment:
        started = time.monotonic()
        try:
            installation = self.installer.install(
                pins, self._wishes(draft), self._snapshot(draft.minor)
            )
        except Unresolvable as failure:
            cause = releases.first_cause(str(failure))
            raise BuildError(
                f"The packages cannot be installed: {cause}",
                (*self.steps, BuildStep(what="install", error=cause)),
            ) from failure
        self.steps.append(
            BuildStep(what=f"install {len(pins)} packages", seconds=time.monotonic() - started)
        )
        if interpreters.missing(installation.site):
            self.steps.append(BuildStep(what="use torchvision", error=_UNCOMPILED))
            draft = replace(draft, notes=(*draft.notes, ("torchvision", _UNCOMPILED)))
        return self._noted(draft, installation)

    def _noted(self, draft: Draft, installation: Installation) -> Environment:
        steps, history = tuple(self.steps), self.owner.history
        environment = outcome(self.spec, draft, installation, steps, self.checkout, history)
        environment = environment.model_copy(update={"undated": self._undated(draft, environment)})
        if self.spec.repo is None:
            value = {"at": time.time(), "environment": environment.model_dump(mode="json")}
            self.cache.note(self.owner.spec_key(self.spec), value)
        return environment

    def _undated(self, draft: Draft, environment: Environment) -> tuple[str, ...]:
        """What is installed from after the date, or from no known day, because the date does not
        bind it.
        """
        cut_off, names = (
            draft.exclude_newer,
            (*draft.undated, *draft.windows, *drafts.exact(draft.requirements)),
        )
        if cut_off is None:
            return ()
        free = {name for name in names if environment.version(name)} - {*self.spec.undated}
        days = {name: self._day(name, environment.version(name)) for name in sorted(free)}
        return tuple(name for name, day in days.items() if day is None or day > cut_off)

    def _day(self, name: str, version: str) -> datetime | None:
        """When a release came out, None when the index does not say."""
        return next(
            (
                release.uploaded_at
                for release in self.owner.history(name)
                if release.version == version
            ),
            None,
        )

    def _snapshot(self, minor: str) -> Snapshot:
        return self.installer.python(self.found[minor])

    def _reachable(self) -> bool:
        return self.owner.reachable(
            self.installer, self._snapshot(versions.by_distance("3.11", tuple(self.found))[0])
        )

    def _fixed(self) -> bool:
        return any(
            claim.name == "python" and claim.note == "--python" for claim in self.spec.claims
        )

    def _minors(self) -> tuple[str, ...]:
        """The Pythons that can do: where torch comes from a folder, those that its wheels fit."""
        has_torch = any(row.name == "torch" for row in self.spec.requirements)
        if not (has_torch and self.torch.pin):
            return tuple(self.found)
        builds = torch_builds.local_builds(self.owner._settings.folders, tuple(self.found))
        return tuple(minor for version, minor in builds if self.torch.pin == f"torch=={version}")

    def _world(self) -> World:
        return World(
            self.owner.releases,
            self._minors(),
            self._from_source,
            self._fixed(),
            self.owner.history,
            self.owner.usable,
        )

    def _oldest(self, draft: Draft) -> datetime | None:
        """When the oldest release that is pinned exactly came out."""
        pins = (
            (requirement.name, versions.exact_version(requirement.specifier))
            for requirement in draft.requirements
        )
        days = (self._day(name, pin) for name, pin in pins if pin and name != "torch")
        return min(filter(None, days), default=None)

    def _from_source(self, name: str, draft: Draft) -> Path | None:
        return self._attempted(
            f"build {name} from source",
            lambda sandbox: source_builds.release(name, draft, self._workshop(draft, sandbox)),
        )

    def _with_repository(self, draft: Draft) -> Draft:
        """The draft with the repository under test: as a wheel when it builds, else on the path
        with its requirements.
        """
        assert self.spec.repo is not None
        self.checkout = Git(
            self.cache, dict(self.owner.environ), credentials=self.owner.credentials
        ).checkout(self.spec.repo, self.spec.exclude_newer)
        checkout, wheel = self.checkout, None
        if self.spec.repo.in_place:
            return draft  # the spec has what its files ask for
        if checkout.installable:
            wheel = self._attempted(
                f"build the repository at {checkout.commit[:12]}",
                lambda sandbox: source_builds.repository(
                    checkout, draft, self._workshop(draft, sandbox)
                ),
            )
        return source_builds.add_wheel(draft, checkout, wheel)

    def _workshop(self, draft: Draft, sandbox: Sandbox) -> Workshop:
        return Workshop(self.owner._index, self.installer, self._snapshot(draft.minor), sandbox)

    def _attempted(self, what: str, build: Callable[[Sandbox], Path | None]) -> Path | None:
        started, error, wheel = time.monotonic(), "", None
        if self.owner.sandbox is None:
            error = "there is no sandbox to build it in"
        else:
            try:
                wheel = build(self.owner.sandbox)
                error = "" if wheel else "the index has no source archive of a matching release"
            except (Interrupted, DiskFull):
                raise
            except SandboxError as failure:
                error = str(failure)
        self.steps.append(BuildStep(what=what, error=error, seconds=time.monotonic() - started))
        return wheel
