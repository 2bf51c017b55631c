"""Builds environments with uv: the fallbacks around one resolver, and what came of each."""

import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from threading import Event, Lock

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version
from typing_extensions import override

from bot.environment import fallbacks, imports, matching, releases, source_builds, versions
from bot.environment.fallbacks import Draft, Torch, World
from bot.environment.git import Checkout, Credentials, Git
from bot.environment.index import PackageIndex
from bot.environment.source_builds import Workshop
from bot.kernel import settings
from bot.kernel.bug import Frame, Release
from bot.kernel.environment import (
    BuildStep,
    Claimed,
    Environment,
    EnvironmentSpec,
    Package,
    PinSource,
    Requirement,
)
from bot.kernel.errors import BuildError, IndexUnreachable, Stopped, TransientError
from bot.kernel.ports import Builder
from sandbox import indexes, interpreters
from sandbox.cache import Cache, Held
from sandbox.environment import FORMAT, Built, IndexDown, Installer, Unresolvable, Wishes
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
    built: Built,
    steps: tuple[BuildStep, ...],
    checkout: Checkout | None,
) -> Environment:
    """The environment that was built."""
    packages = _packages(draft, built.pins)
    mounts = [str(built.python.root), str(built.root)]
    variables = {**built.python.variables, **spec.variables}
    if checkout is not None and not draft.cloned:
        mounts.append(str(checkout.tree))
        variables["PYTHONPATH"] = f"{checkout.tree}:{checkout.tree}/src"
    return Environment(
        id=built.id,
        python=built.python.version,
        interpreter=str(built.interpreter),
        mounts=tuple(mounts),
        variables=variables,
        packages=packages,
        lock="".join(f"{pin}\n" for pin in (f"# python {built.python.version}", *built.pins)),
        claims=_claims(spec, draft, packages, built.python.version),
        steps=steps,
        commit=checkout.commit if checkout else "",
        cloned=draft.cloned,
        note=_UNBUILT.format(checkout.commit[:12])
        if checkout is not None and checkout.changed
        else "",
    )


def _packages(draft: Draft, pins: tuple[str, ...]) -> tuple[Package, ...]:
    asked = {each.name: each for each in draft.requirements}
    bounds = {each.name: each.rung for each in (*draft.constraints, *draft.overrides)}
    found = []
    for pin in pins:
        name, _, version = pin.partition("==")
        plain = canonicalize_name(name.partition("[")[0].strip())
        each = asked.get(plain)
        rung = bounds.get(plain, PinSource.DEPENDENCY)
        if each is not None:
            dated = draft.exclude_newer and plain not in draft.undated and not each.specifier
            rung = PinSource.DATE if dated else each.rung
        found.append(Package(name=plain, version=version.partition(" ")[0], rung=rung))
    return tuple(found)


def _claims(
    spec: EnvironmentSpec, draft: Draft, packages: tuple[Package, ...], python: str
) -> tuple[Claimed, ...]:
    """What the report names of what was built, what was left out, and what had to give way."""
    resolved = {each.name: each.version for each in packages} | {"python": python}
    resolved.setdefault("tensorflow", resolved.get("tensorflow-cpu", ""))
    notes: dict[str, str] = {}
    for name, note in draft.notes:
        notes[name] = f"{notes[name]}; {note}" if name in notes else note
    found = []
    for claim in spec.claims:
        version = resolved.get(claim.name, "")
        if version or claim.name in notes:
            differs = "" if _agrees(claim, version) else "differs"
            told = "; ".join(filter(None, (claim.note, notes.pop(claim.name, ""))))
            found.append(claim.model_copy(update={"resolved": version, "note": told or differs}))
    extra = [
        Claimed(name=name, claimed="", resolved=resolved.get(name, ""), note=note)
        for name, note in notes.items()
    ]
    return (*found, *extra)


def _agrees(claim: Claimed, resolved: str) -> bool:
    if claim.name == "python" and (
        versions.python_minor(claim.claimed) == versions.python_minor(resolved)
    ):
        return True
    specifier = versions.specifier(claim.claimed, "text")
    if not specifier or not resolved:
        return True
    wanted = specifier.removeprefix("==").removesuffix(".*")
    try:
        public = Version(resolved).public
    except InvalidVersion:
        return False
    return public == wanted or public.startswith(f"{wanted}.")


# Builds environments with uv: the ladder of tries around one resolver, and what came of each try.

_TRIES = 24
"""Resolutions; each takes seconds, and old releases lack several wheels."""
_FRESH_S = 86_400.0
_PROBE_S = 3_600.0
_TORCH_DEPENDENCIES = ("setuptools",)
_UNCOMPILED = (
    "without its compiled operators (nms, image decoding and others): the index's build of them "
    "loads only with a CUDA build of torch"
)


@dataclass
class UvBuilder(Builder):
    """The Builder of this machine. `cache` is where environments live, `sandbox` where source
    distributions are built. `torch_index` says whether the index of CPU builds answers, None when
    that is to be found out; `credentials` are for the repository under test.
    """

    cache: Path
    sandbox: Sandbox | None = None
    environ: Mapping[str, str] = field(default_factory=settings.host)
    torch_index: bool | None = None
    credentials: Credentials | None = None
    _index: PackageIndex = field(init=False)
    _settings: indexes.Indexes = field(init=False)
    _probing: Lock = field(default_factory=Lock, init=False)
    _held: Held = field(default_factory=Held, init=False)
    _visions: dict[Torch, str] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self._settings = indexes.read(self.environ)
        self._index = PackageIndex(self._settings)

    @override
    def releases(self, name: str) -> tuple[str, ...]:
        return tuple(each.version for each in self.history(name) if not each.yanked)

    @override
    def history(self, name: str) -> tuple[Release, ...]:
        try:
            found = self._index.releases(name)
        except IndexUnreachable:
            return ()
        return tuple(
            Release(
                version=str(each.version),
                uploaded_at=each.uploaded,
                yanked=each.yanked,
                prerelease=each.version.is_prerelease,
                wheels=each.wheels,
            )
            for each in found
        )

    def usable(self, name: str, minor: str) -> tuple[str, ...]:
        """The releases with a wheel for Linux and a Python."""
        try:
            found = self._index.releases(name)
        except IndexUnreachable:
            return ()
        return tuple(str(each.version) for each in found if each.fits(minor) and not each.yanked)

    @override
    def changelog(self, name: str) -> str:
        try:
            return releases.changelog(self._index.links(name))
        except IndexUnreachable:
            return ""

    @override
    def matched(self, spec: EnvironmentSpec) -> tuple[EnvironmentSpec, tuple[str, ...]]:
        return (spec, ()) if self._settings.offline else matching.matched(spec, self._index)

    @override
    def fitting(
        self, built: Environment, name: str, frames: tuple[Frame, ...], before: datetime | None
    ) -> str:
        site = next(self.cache.glob(f"envs/{built.id}/lib/python3*/site-packages"), None)
        if site is None or self._settings.offline:
            return ""
        return matching.release(self._index, site, name, built.version(name), frames, before)

    @override
    def build(self, spec: EnvironmentSpec, *, cancel: Event | None = None) -> Environment:
        started = time.monotonic()
        cache = Cache(self.cache, cancel, self._held)
        try:
            warm = self._warm(spec, cache) if spec.repo is None else None
            built = warm or _Job(self, spec, cache).run()
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
        return built.model_copy(
            update={"warm": warm is not None, "seconds": time.monotonic() - started}
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
        noted = cache.recall(self.spec_key(spec))
        if noted is None or (
            spec.exclude_newer is None and time.time() - noted.get("at", 0) > _FRESH_S
        ):
            return None
        known = Environment.model_validate(noted["environment"])
        whole = cache.using("envs", known.id) and all(
            Path(mount).exists() for mount in known.mounts
        )
        return known if whole else None

    def reachable(self, installer: Installer, python: Snapshot) -> bool:
        """Whether the index of CPU builds of torch answers; asked once an hour at most, as the
        answer may take seconds.
        """
        with self._probing:
            if self.torch_index is None:
                noted = installer.cache.recall("torch-index") or {}
                if time.time() - noted.get("at", 0) < _PROBE_S:
                    self.torch_index = bool(noted.get("answers"))
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


class _Job:
    """One build: the drafts that were tried, the steps they took, and the environment at the
    end.
    """

    def __init__(self, owner: UvBuilder, spec: EnvironmentSpec, cache: Cache) -> None:
        self.owner, self.spec, self.cache = owner, spec, cache
        self.installer = Installer(cache, owner._settings)
        self.found = {each.minor: each for each in interpreters.discover(owner.environ)}
        self.steps: list[BuildStep] = []
        self.checkout: Checkout | None = None
        self.torch = Torch(anything=True)
        self.at_hand: dict[str, tuple[str, str]] = {}
        """Packages of which only one release can be had: its pin, and why it is that."""

    def run(self) -> Environment:
        if not self.found:
            raise BuildError("No Python interpreter was found to build with.")
        self.torch = fallbacks.choose(
            self.spec,
            self.owner._settings.folders,
            tuple(self.found),
            self._reachable,
        )
        if self.torch.pin:
            self.at_hand = self._local()
        draft = self._first()
        tried, causes = list[Draft](), dict[str, str]()
        older: tuple[Draft, tuple[str, ...]] | None = None
        while True:
            tried.append(draft)
            following = None
            pins, error = self._resolved(draft)
            causes[draft.minor] = error
            if pins is not None:
                following = fallbacks.completed(draft, pins)
                if following is None and older is None:
                    following = self._newest(draft, pins)
                    older = (draft, pins) if following is not None else None
                if following is None:
                    return self._installed(draft, pins)
            elif len(tried) < _TRIES:
                following = fallbacks.next_draft(draft, error, self._world(), tried)
            if following is None and older is not None:
                return self._installed(*older)
            if following is None:
                # Other Pythons fail for reasons of their own: what the one that was asked for could
                # not do is the cause.
                cause = releases.first_cause(causes[tried[0].minor])
                raise BuildError(f"No environment could be built: {cause}", tuple(self.steps))
            draft = following

    def _first(self) -> Draft:
        wanted, why = self._python()
        requirements, notes = self._requirements()
        notes += (("python", why),) if why else ()
        undated = (*_TORCH_DEPENDENCIES, *self.at_hand, *fallbacks.exact(requirements))
        draft = Draft(
            what=f"as the bug report says, Python {wanted}",
            minor=wanted,
            requirements=requirements,
            constraints=self.spec.constraints,
            exclude_newer=self.spec.exclude_newer,
            notes=notes,
            undated=tuple(dict.fromkeys((*self.spec.undated, *undated))),
        )
        if self.spec.repo is not None:
            draft = self._with_repository(draft)
        return fallbacks.with_bounds(draft, fallbacks.bounds(draft, self._oldest(draft)))

    def _newest(self, draft: Draft, pins: tuple[str, ...]) -> Draft | None:
        """A draft that holds the package under test to the newest release before the report, where
        the resolver took an older one because a dependency of the newest is not of that day.
        """
        resolved = dict(pin.split("==", 1) for pin in pins if "==" in pin)
        for each in draft.requirements:
            taken = resolved.get(each.name)
            if each.specifier or each.rung is not PinSource.REPOSITORY or not taken:
                continue
            newest = self._newest_release(each.name, draft.exclude_newer)
            if newest and Version(newest) > Version(taken):
                return fallbacks.at_least(draft, each, newest)
        return None

    def _newest_release(self, name: str, before: datetime | None) -> str:
        offered = (
            each.version
            for each in self.owner.history(name)
            if not (each.yanked or each.prerelease)
            and (before is None or (each.uploaded_at is not None and each.uploaded_at < before))
        )
        return max(offered, key=Version, default="")

    def _python(self) -> tuple[str, str]:
        """The Python to begin with, and why it is not the one that was asked for."""
        asked = self.spec.python
        if any(each.name == "torch" for each in self.spec.requirements):
            if not self.torch.possible:
                raise BuildError(fallbacks.NONE_TO_BE_HAD)
            if self.torch.minor and not self._fixed():
                why = f"{self.torch.minor}, for which there is a CPU build of torch"
                return self.torch.minor, why if self.torch.minor != asked else ""
        if asked in self.found:
            return asked, ""
        if self._fixed():
            raise BuildError(
                f"Python {asked} is not installed here; available: {', '.join(self.found)}."
            )
        near = versions.by_distance(asked, tuple(self.found))[0]
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
        kept, notes = [], []
        for each in self.spec.requirements:
            if each.name in self.at_hand:
                kept.append(fallbacks.at_hand(each, *self.at_hand[each.name]))
                if kept[-1].rung is PinSource.NEIGHBOUR:
                    notes.append((each.name, kept[-1].reason))
            elif self.torch.pin and each.name in imports.CUDA_ONLY:
                notes.append(
                    (
                        each.name,
                        "omitted: no build of it works with a CPU build of torch from a folder",
                    )
                )
                self.steps.append(BuildStep(what=f"omit {each.name}", error=notes[-1][1]))
            else:
                kept.append(each)
        return tuple(kept), tuple(notes)

    def _resolved(self, draft: Draft) -> tuple[tuple[str, ...] | None, str]:
        started = time.monotonic()
        try:
            pins = self.installer.resolve(self._wishes(draft), self._snapshot(draft.minor))
            torch_drawn = any(pin.startswith("torch==") for pin in pins)
            error = fallbacks.NONE_TO_BE_HAD if torch_drawn and not self.torch.possible else ""
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
        taken = dict(pin.split("==", 1) for pin in pins if "==" in pin)
        for each in draft.requirements:
            free = not each.specifier and each.name in taken and each.name not in draft.undated
            history = self.owner.history(each.name) if free else ()
            if told := releases.outlier(
                each.name, taken.get(each.name, ""), history, draft.exclude_newer
            ):
                return told
        return ""

    def _wishes(self, draft: Draft) -> Wishes:
        excludes = [
            name for name in imports.CUDA_ONLY if self.torch.pin and name not in self.at_hand
        ]
        if any(each.name == "tensorflow-cpu" for each in draft.requirements):
            excludes += [name for name in imports.TENSORFLOW if name != "tensorflow-cpu"]
        day = draft.exclude_newer
        return Wishes(
            requirements=tuple(map(fallbacks.line, draft.requirements)),
            constraints=tuple(map(fallbacks.line, draft.constraints)),
            overrides=(
                *(pin for name, (pin, _) in self.at_hand.items() if name != draft.cloned),
                *map(fallbacks.line, draft.overrides),
            ),
            excludes=tuple(excludes),
            exclude_newer=f"{day.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}" if day else "",
            undated=tuple(dict.fromkeys((*draft.undated, *fallbacks.exact(draft.requirements)))),
            wheels=draft.wheels,
            torch_backend=self.torch.backend,
        )

    def _installed(self, draft: Draft, pins: tuple[str, ...]) -> Environment:
        started = time.monotonic()
        try:
            built = self.installer.install(pins, self._wishes(draft), self._snapshot(draft.minor))
        except Unresolvable as failure:
            cause = releases.first_cause(str(failure))
            raise BuildError(
                f"The packages cannot be installed: {cause}",
                (*self.steps, BuildStep(what="install", error=cause)),
            ) from failure
        self.steps.append(
            BuildStep(what=f"install {len(pins)} packages", seconds=time.monotonic() - started)
        )
        if interpreters.missing(built.site):
            self.steps.append(BuildStep(what="use torchvision", error=_UNCOMPILED))
            draft = replace(draft, notes=(*draft.notes, ("torchvision", _UNCOMPILED)))
        return self._noted(draft, built)

    def _noted(self, draft: Draft, built: Built) -> Environment:
        environment = outcome(self.spec, draft, built, tuple(self.steps), self.checkout)
        environment = environment.model_copy(update={"undated": self._undated(draft, environment)})
        if self.spec.repo is None:
            value = {"at": time.time(), "environment": environment.model_dump(mode="json")}
            self.cache.note(self.owner.spec_key(self.spec), value)
        return environment

    def _undated(self, draft: Draft, built: Environment) -> tuple[str, ...]:
        """What is installed from after the date, or from no known day, because the date does not
        bind it.
        """
        cut_off, names = (
            draft.exclude_newer,
            (*draft.undated, *fallbacks.exact(draft.requirements)),
        )
        if cut_off is None:
            return ()
        free = {name for name in names if built.version(name)} - {*self.spec.undated}
        days = {name: self._day(name, built.version(name)) for name in sorted(free)}
        return tuple(name for name, day in days.items() if day is None or day > cut_off)

    def _day(self, name: str, version: str) -> datetime | None:
        """When a release came out, None when the index does not say."""
        return next(
            (each.uploaded_at for each in self.owner.history(name) if each.version == version), None
        )

    def _snapshot(self, minor: str) -> Snapshot:
        return self.installer.python(self.found[minor])

    def _reachable(self) -> bool:
        return self.owner.reachable(
            self.installer, self._snapshot(versions.by_distance("3.11", tuple(self.found))[0])
        )

    def _fixed(self) -> bool:
        return any(each.name == "python" and each.note == "--python" for each in self.spec.claims)

    def _world(self) -> World:
        return World(
            self.owner.releases,
            tuple(self.found),
            self._from_source,
            self._fixed(),
            self.owner.history,
            self.owner.usable,
        )

    def _oldest(self, draft: Draft) -> datetime | None:
        """When the oldest release that is pinned exactly came out."""
        pins = ((each.name, versions.pinned(each.specifier)) for each in draft.requirements)
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
        checkout, made = self.checkout, None
        if checkout.installable:
            made = self._attempted(
                f"build the repository at {checkout.commit[:12]}",
                lambda sandbox: source_builds.repository(
                    checkout, draft, self._workshop(draft, sandbox)
                ),
            )
        return source_builds.added(draft, checkout, made)

    def _workshop(self, draft: Draft, sandbox: Sandbox) -> Workshop:
        return Workshop(self.owner._index, self.installer, self._snapshot(draft.minor), sandbox)

    def _attempted(self, what: str, build: Callable[[Sandbox], Path | None]) -> Path | None:
        started, error, made = time.monotonic(), "", None
        if self.owner.sandbox is None:
            error = "there is no sandbox to build it in"
        else:
            try:
                made = build(self.owner.sandbox)
                error = "" if made else "the index has no source archive of a matching release"
            except (Interrupted, DiskFull):
                raise
            except SandboxError as failure:
                error = str(failure)
        self.steps.append(BuildStep(what=what, error=error, seconds=time.monotonic() - started))
        return made
