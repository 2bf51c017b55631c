"""What is asked for after an environment was derived: by a run that lacks a module, or by a model
that names a distribution.
"""

import sys
from collections.abc import Iterable

from packaging.requirements import InvalidRequirement, Requirement as Parsed
from packaging.utils import canonicalize_name

from bot.models.bug import BugReport
from bot.models.environment import EnvironmentSpec, PinSource, Requirement
from bot.pipeline.environment import specify
from bot.rules.packages import claims as said, companions, evidence, imports, repositories


def for_import(name: str, report: BugReport | None = None) -> Requirement | None:
    """What to install for a module that a run found missing, at the version the report names;
    None when it cannot be had.
    """
    distribution = imports.distribution(name)
    if not distribution or name.partition(".")[0] in sys.stdlib_module_names:
        return None
    claims = said.gathered(report) if report else {}
    pinned = specify.pinned(
        distribution, f"module {name} was missing in a run", PinSource.REPAIR, claims, None
    )
    update = {
        "name": companions.installed_as(distribution),
        "modules": specify.used(imports.guessed(name), (name,), report),
    }
    return pinned.model_copy(update=update)


def by_model(
    name: str, version: str, reason: str, imported: Iterable[str] = ()
) -> Requirement | None:
    """What a model asks for, to be weighed by a module of it that is `imported`, else by its name;
    None when it is no plain name with a plain version.
    """
    specifier = f"=={version}" if version else ""
    try:
        parsed = Parsed(f"{name}{specifier}")
    except InvalidRequirement:
        return None
    if parsed.url or parsed.marker or parsed.extras:
        return None
    plain = repositories.alias(canonicalize_name(parsed.name))
    return Requirement(
        name=companions.installed_as(plain),
        specifier=specifier,
        rung=PinSource.REPAIR,
        reason=f"a model asked for it: {reason}" if reason else "a model asked for it",
        modules=modules(plain, imported),
        named=True,
    )


def modules(name: str, imported: Iterable[str]) -> tuple[str, ...]:
    """The imported module that a named distribution seems to be for, else one of its name; () for
    a well-known distribution.
    """
    if imports.well_known(name):
        return ()
    tops = (top for each in imported if (top := imports.guessed(each)))
    return (next((top for top in tops if evidence.alike(top, name)), name.replace("-", "_")),)


def missing(
    module: str, text: str, bug: BugReport | None, spec: EnvironmentSpec
) -> Requirement | None:
    """What to install for a missing module or a requirement that an error names; None when it is
    no requirement, or is there.
    """
    new = for_import(module, bug) if module else _requirement(text)
    return None if new is None or any(_same(new, each) for each in spec.requirements) else new


def _same(new: Requirement, known: Requirement) -> bool:
    if new.name != known.name:
        return False
    return new.specifier in {"", known.specifier} and set(new.extras) <= set(known.extras)


def _requirement(text: str) -> Requirement | None:
    """A requirement that an error message names; anything but a plain name with extras and
    versions is refused.
    """
    try:
        parsed = Parsed(text)
    except InvalidRequirement:
        return None
    if parsed.url or parsed.marker:
        return None
    reason = "named by the error message of a run"
    extras = tuple(sorted(parsed.extras))
    return Requirement(
        name=repositories.alias(parsed.name),
        specifier=str(parsed.specifier),
        extras=extras,
        rung=PinSource.REPAIR,
        reason=reason,
    )
