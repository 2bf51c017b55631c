"""A built environment as the report shows it: packages with their sources, claims compared with
what was resolved, and the lock.
"""

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from bot.adapters.git.clone import Checkout
from bot.adapters.packages.drafts import Draft
from bot.models.environment import (
    BuildStep,
    Claimed,
    Environment,
    EnvironmentSpec,
    Package,
    PinSource,
)
from bot.rules.packages import versions
from sandbox.environment import Built

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
