"""BugReport + the program's imports + options + date → EnvironmentSpec: what to install, and
which source decided it.
"""

import sys
from collections.abc import Iterable, Iterator, Set
from datetime import datetime, timedelta
from typing import NamedTuple

from packaging.requirements import InvalidRequirement, Requirement as Parsed
from packaging.utils import canonicalize_name

from bot.environment import evidence, imports, package_names, versions
from bot.environment.evidence import Claims
from bot.environment.versions import Range
from bot.kernel.bug import BugReport, Issue
from bot.kernel.environment import (
    DeclaredDependencies,
    Environment,
    EnvironmentSpec,
    PinSource,
    RepoSource,
    Requirement,
)
from bot.kernel.errors import UserError
from bot.kernel.job import EnvironmentOptions
from bot.kernel.source import symbols

# BugReport + the program's imports + options + date → EnvironmentSpec: what to install, and which
# source decided each version.
#
# Pure: nothing here asks an index. When something cannot be installed as requested, the builder
# looks for the next best.

_MONTH = timedelta(weeks=4)
_WORDING_REASON = "the errors in the bug report are worded as in this version"
HOST = f"{sys.version_info.major}.{sys.version_info.minor}"


class _Wish(NamedTuple):
    """What is to be installed and why; `modules` as a Requirement has them."""

    name: str
    reason: str
    rung: PinSource
    modules: tuple[str, ...] = ()


def specify(
    report: BugReport,
    issue: Issue,
    options: EnvironmentOptions,
    source: str,
    declared: DeclaredDependencies | None = None,
) -> EnvironmentSpec:
    """The environment that a report describes: options, then claims, then what the files of the
    repository declare, then the date, for what the program imports and the files ask for.
    """
    claims, at = evidence.gather_claims(report), issue.created_at
    declared = declared or DeclaredDependencies()
    target = _published(report, issue, source, claims)
    wishes = (*target, *_wishes_of_imports(report, source, at))
    spec = _specified(options, source, wishes, claims, at, declared)
    python, why = _python(options, claims, at, versions.possible(report), declared)
    update = {
        "python": python,
        "python_why": why,
        "repo": _repo(options, target[0].name if target else "", claims),
        "repository": issue.repository,
        "named": (*evidence.named_packages(report), *(row.name for row in declared.requirements)),
    }
    return spec.model_copy(update=update)


def for_program(
    options: EnvironmentOptions,
    source: str,
    declared: DeclaredDependencies | None = None,
    at: datetime | None = None,
) -> EnvironmentSpec:
    """The environment of a program that nobody reports on: options, then what the files of its
    repository declare, then the newest releases, before the day `at` where there is one, of what it
    imports.
    """
    wishes = _wishes_of_imports(None, source, at)
    return _specified(options, source, wishes, {}, at, declared or DeclaredDependencies())


def in_place(spec: EnvironmentSpec, options: EnvironmentOptions) -> EnvironmentSpec:
    """The spec with the clone on the path: a program in its tree uses what lies beside it, not what
    an index has under the name of the repository.
    """
    repo = RepoSource.of(options.repo or "", options.ref or "").model_copy(
        update={"in_place": True}
    )
    own = package_names.distribution_of(spec.repository)[0]
    rows = tuple(row for row in spec.requirements if row.name != own)
    return spec.model_copy(update={"repo": repo, "requirements": rows})


def _specified(
    options: EnvironmentOptions,
    source: str,
    wishes: Iterable[_Wish],
    claims: Claims,
    at: datetime | None,
    declared: DeclaredDependencies,
) -> EnvironmentSpec:
    requirements = _option_requirements(options)
    for name, reason, rung, modules in wishes:
        new = pin_versions(name, reason, rung, claims, at)
        if not {name, *map(canonicalize_name, modules[:1])} & {*declared.own}:
            requirements.setdefault(name, new.model_copy(update={"modules": modules}))
    pins = _add_declared(requirements, declared, claims, at)
    variables = imports.add_backend(
        requirements,
        source,
        at,
        lambda name, why: pin_versions(name, why, PinSource.IMPORT, claims, None),
    )
    python, why = _python(options, claims, at, Range(), declared)
    stated = evidence.bounds(claims, requirements)
    names = {row.name for row in stated}
    bounds = (*stated, *(row for row in pins if row.name not in names))
    return EnvironmentSpec(
        python=python,
        python_why=why,
        requirements=tuple(requirements.values()),
        exclude_newer=at,
        undated=imports.TORCH_FAMILY,
        device=options.device,
        repo=_repo(options, "", claims),
        constraints=bounds,
        variables=variables,
        claims=evidence.beside(claims, options),
    )


def _add_declared(
    requirements: dict[str, Requirement],
    declared: DeclaredDependencies,
    claims: Claims,
    at: datetime | None,
) -> list[Requirement]:
    """Add what the files of a repository ask for, with the versions that they state where neither
    an option nor the report states one. Returns what they pin beside it.
    """

    def rows(of: Iterable[Requirement]) -> dict[str, Requirement]:
        names = ((imports.installed_as(row.name, at), row) for row in of)
        return {name: row.model_copy(update={"name": name}) for name, row in names}

    pins, wishes = rows(declared.constraints), rows(declared.requirements)
    for name in [name for name, row in requirements.items() if row.modules and name not in pins]:
        # A guess for a module gives way to what the files ask for under a name like it.
        others = wishes.keys() - requirements.keys()
        if name not in wishes and any(evidence.alike(name, other) for other in others):
            del requirements[name]
    for name in dict.fromkeys((*requirements, *wishes)):
        row = pins.get(name) or wishes.get(name)
        old = requirements.get(name)
        if row is None or (old is not None and (old.specifier or old.rung is PinSource.OPTION)):
            continue
        extras = tuple(sorted({*row.extras, *(old.extras if old else ())}))
        stated = pin_versions(name, row.reason, row.rung, claims, at)
        row = stated if stated.rung is PinSource.ISSUE else row
        requirements[name] = row.model_copy(
            update={"extras": tuple(sorted({*row.extras, *extras}))}
        )
    free = {*requirements, *imports.TORCH_FAMILY, *imports.TENSORFLOW}
    return [row for name, row in pins.items() if name not in free]


def add(spec: EnvironmentSpec, requirement: Requirement) -> EnvironmentSpec:
    """The spec with one requirement more; one of the same name is replaced, keeping its extras."""
    name = imports.installed_as(canonicalize_name(requirement.name))
    old = next((requirement for requirement in spec.requirements if requirement.name == name), None)
    extras = tuple(sorted({*requirement.extras, *(old.extras if old else ())}))
    specifier = requirement.specifier or (old.specifier if old else "")
    new = requirement.model_copy(update={"name": name, "extras": extras, "specifier": specifier})
    requirements = tuple(
        requirement for requirement in spec.requirements if requirement.name != name
    )
    bounds = tuple(constraint for constraint in spec.constraints if constraint.name != name)
    return spec.model_copy(update={"requirements": (*requirements, new), "constraints": bounds})


def alternatives(
    spec: EnvironmentSpec,
    report: BugReport,
    issue: Issue,
    environment: Environment | None = None,
) -> tuple[EnvironmentSpec, ...]:
    """At most two other environments that the report may mean, for when the first did not show
    the failure, after one with the Python that words errors like the report.

    Another version that the report names; the newest release before the report where a version
    was named; the release before the one that was tried.
    """
    return (
        *_other_python(spec, report, environment),
        *_other_releases(spec, report, issue, environment),
    )


def month_before(spec: EnvironmentSpec, commit: str = "") -> EnvironmentSpec | None:
    """The spec with the packages of four weeks before the report, but for the versions that it
    names and the `commit` of its repository: few people upgrade everything on the day they write,
    and a fix in a dependency may be days old. None where no date decides, or no commit is known.
    """
    if spec.exclude_newer is None:
        return None
    repo = spec.repo
    if repo is not None and not repo.ref:
        if not commit:
            return None
        repo = repo.model_copy(update={"ref": commit})
    return spec.model_copy(update={"exclude_newer": spec.exclude_newer - _MONTH, "repo": repo})


def _other_python(
    spec: EnvironmentSpec, report: BugReport, environment: Environment | None
) -> tuple[EnvironmentSpec, ...]:
    minor = versions.python_minor(environment.python if environment else spec.python)
    python_range = versions.possible(report).nearest(minor or spec.python)
    is_option = any(claim.name == "python" and claim.note == "--python" for claim in spec.claims)
    if is_option or python_range in {minor, spec.python}:
        return ()
    return (spec.model_copy(update={"python": python_range, "python_why": _WORDING_REASON}),)


def _other_releases(
    spec: EnvironmentSpec, report: BugReport, issue: Issue, environment: Environment | None
) -> tuple[EnvironmentSpec, ...]:
    target = under_test(spec, report, issue)
    if target is None:
        return ()
    version = versions.exact_version(target.specifier) or (
        environment.version(target.name) if environment else ""
    )
    others = {other.specifier: other for other in _others(target, report, issue, version)}
    others.pop(target.specifier, None)
    return tuple(at_version(spec, other) for other in list(others.values())[:2])


def _others(
    target: Requirement, report: BugReport, issue: Issue, version: str
) -> Iterator[Requirement]:
    for claim in evidence.gather_claims(report).get(evidence.claim_name(target.name), []):
        if specifier := versions.specifier(claim.version, claim.source):
            reason = f"the bug report also names {claim.version} ({claim.source})"
            yield _with(target, specifier, PinSource.ISSUE, reason)
    if target.specifier and issue.created_at:
        reason = f"newest release before {issue.created_at:%Y-%m-%d}"
        yield _with(target, "", PinSource.DATE, reason)
    if version:
        public = version.partition("+")[0]  # "<2.13.0+cpu" is no specifier
        yield _with(target, f"<{public}", PinSource.NEIGHBOUR, f"the release before {public}")


def _with(target: Requirement, specifier: str, rung: PinSource, reason: str) -> Requirement:
    return target.model_copy(update={"specifier": specifier, "rung": rung, "reason": reason})


def of_release(target: Requirement, version: str) -> Requirement:
    """The package under test at the release whose lines a traceback quotes."""
    reason = f"the traceback in the bug report quotes the lines of {version}"
    return _with(target, f"=={version}", PinSource.ISSUE, reason)


def at_version(spec: EnvironmentSpec, new: Requirement) -> EnvironmentSpec:
    """The spec with the package under test at another version. Packages that share its version
    go along.
    """
    followers = {
        name
        for pair in imports.SHARED_VERSIONS
        if new.name in pair
        for name in pair
        if name != new.name
    }
    requirements = tuple(
        new
        if requirement.name == new.name
        else _with(requirement, new.specifier, new.rung, new.reason)
        if requirement.name in followers
        else requirement
        for requirement in spec.requirements
    )
    bounds = tuple(
        constraint for constraint in spec.constraints if constraint.name not in followers
    )
    in_tree = spec.repo is not None and spec.repo.in_place
    update = {
        "requirements": requirements,
        "constraints": bounds,
        "repo": spec.repo if in_tree else None,
    }
    return spec.model_copy(update=update)


def under_test(spec: EnvironmentSpec, report: BugReport, issue: Issue) -> Requirement | None:
    """The requirement for the package under test: the repository's, else the one whose frame
    raised, else the first named.
    """
    own = package_names.distribution_of(issue.repository)[0]
    names = [imports.installed_as(own), own.replace("-", "_")]
    frames = (frame for trace in report.tracebacks for frame in trace.frames[::-1] if frame.package)
    for frame in frames:
        names += [imports.installed_as(imports.distribution(frame.package)), frame.package]
    requirements = {
        module: requirement
        for requirement in spec.requirements
        for module in requirement.modules[:1]
    }
    requirements |= {requirement.name: requirement for requirement in spec.requirements}
    for name in names:
        if name in requirements:
            return requirements[name]
    return next(
        (
            requirement
            for requirement in spec.requirements
            if requirement.rung is PinSource.ISSUE and requirement.name != "torch"
        ),
        None,
    )


def quoted_ones(spec: EnvironmentSpec, report: BugReport, issue: Issue) -> tuple[Requirement, ...]:
    """The requirements of which a traceback may quote lines that tell their release: the package
    under test; for a program in its tree, that of each library on the stack.
    """
    if spec.repo is None or not spec.repo.in_place:
        target = under_test(spec, report, issue)
        return (target,) if target is not None else ()
    frames = (frame for row in report.tracebacks for frame in row.frames if frame.package)
    names = {imports.installed_as(imports.distribution(frame.package)) for frame in frames}
    packages = {frame.package for row in report.tracebacks for frame in row.frames}
    return tuple(
        row for row in spec.requirements if row.name in names or packages & {*row.modules[:1]}
    )


def _option_requirements(options: EnvironmentOptions) -> dict[str, Requirement]:
    requirements = {}
    for text in options.pins:
        try:
            requirement = Parsed(text)
        except InvalidRequirement as error:
            raise UserError(
                f"--with {text!r} is not a requirement.", "Write it like 'numpy==1.26.4'."
            ) from error
        if requirement.url or requirement.marker:
            raise UserError(
                f"--with {text!r} is not a plain requirement.", "Use a package name and a version."
            )
        name = imports.installed_as(package_names.alias(requirement.name))
        requirements[name] = Requirement(
            name=name,
            specifier=str(requirement.specifier),
            extras=tuple(sorted(requirement.extras)),
            rung=PinSource.OPTION,
            reason=f"--with {text}",
        )
    return requirements


def used_modules(
    top: str, module_names: Iterable[str], report: BugReport | None
) -> tuple[str, ...]:
    """A top-level module whose distribution is only guessed, with what the report imports of it or
    quotes the files of; () for none.
    """
    if not top:
        return ()
    traces = report.tracebacks if report else ()
    paths = (frame.module_path for trace in traces for frame in trace.frames)
    files = (path.removesuffix(".py").removesuffix("/__init__") for path in paths)
    names = (*module_names, *(path.replace("/", ".") for path in files))
    return tuple(
        dict.fromkeys((top, *(module for module in names if module.startswith(f"{top}."))))
    )


def _wishes_of_imports(report: BugReport | None, source: str, at: datetime | None) -> list[_Wish]:
    names = symbols.imported_modules(source)
    return [
        _Wish(
            imports.installed_as(name, at),
            f"the program imports {module}",
            PinSource.IMPORT,
            used_modules(imports.guess_distribution(module), names, report),
        )
        for module in names
        if (name := imports.distribution(module))
    ]


def _published(report: BugReport, issue: Issue, source: str, claims: Claims) -> list[_Wish]:
    """The repository's own distribution. One that is only guessed from the repository's name
    needs a second sign.
    """
    name, distribution = package_names.distribution_of(issue.repository)
    if not name:
        return []
    distributions = {
        imports.distribution(frame.package)
        for trace in report.tracebacks
        for frame in trace.frames
        if frame.package
    }
    name = _published_as(name, source, distributions, issue.created_at)
    by_custom = {
        undefined: imports.conventional(undefined, source)
        for undefined in imports.undefined(source)
    }
    unexplained = [undefined for undefined, line in by_custom.items() if not line]
    distributions |= {
        imports.distribution(module.partition(".")[0])
        for module in symbols.imported_modules("\n".join(by_custom.values()))
    }
    if not (
        distribution or name in claims or name in distributions or unexplained or not source.strip()
    ):
        return []
    reason = (
        f"{issue.repository} publishes it"
        if distribution
        else f"named like the repository {issue.repository}"
    )
    top = "" if distribution or imports.well_known(name) else name.replace("-", "_")
    modules = used_modules(top, symbols.imported_modules(source), report)
    name = imports.installed_as(name, issue.created_at)
    return [_Wish(name, reason, PinSource.REPOSITORY, modules)]


def _published_as(name: str, source: str, in_stacks: Set[str], at: datetime | None) -> str:
    """One of the names under which a project publishes: the one that the program imports or a
    traceback shows, else that of the day.
    """
    if name == "lightning" and at is not None and at < imports.LIGHTNING:
        return "pytorch-lightning"
    for pair in imports.SHARED_VERSIONS:
        if name == pair[0]:
            modules = symbols.imported_modules(source)
            names = {imports.distribution(module) for module in modules} | in_stacks
            return next((distribution for distribution in pair if distribution in names), name)
    return name


def pin_versions(
    name: str, reason: str, rung: PinSource, claims: Claims, at: datetime | None
) -> Requirement:
    """A requirement at the strongest claim's version, else whatever the date allows."""
    for claim in claims.get(evidence.claim_name(name), []):
        specifier = versions.specifier(claim.version, claim.source)
        if specifier:
            return Requirement(
                name=name,
                specifier=specifier,
                extras=imports.EXTRAS.get(name, ()),
                rung=PinSource.ISSUE,
                reason=f"the report says {claim.version} ({claim.source})",
            )
        if specifier == "":
            reason += (
                f"; the report says {claim.version!r}, meaning the newest release before the report"
            )
            break
    day = f"; newest release before {at:%Y-%m-%d}" if at else ""
    extras = imports.EXTRAS.get(name, ())
    return Requirement(name=name, extras=extras, rung=rung, reason=reason + day)


def _python(
    options: EnvironmentOptions,
    claims: Claims,
    at: datetime | None,
    python_range: Range,
    declared: DeclaredDependencies,
) -> tuple[str, str]:
    """The minor version, and what decided it."""
    if options.python:
        minor = versions.python_minor(options.python)
        if not minor:
            raise UserError(
                f"--python {options.python!r} is not a Python version.",
                "Use a minor version such as 3.11.",
            )
        return minor, f"--python {options.python}"
    for claim in claims.get("python", []):
        if minor := versions.python_minor(claim.version):
            return minor, f"the report says {claim.version} ({claim.source})"
    usual = versions.usual(at, HOST)
    near = python_range.nearest(usual)
    allowed = tuple(minor for minor in declared.pythons if python_range.nearest(minor) == minor)
    if allowed and (near not in allowed or len(allowed) == 1):
        return versions.by_distance(near, allowed)[0], declared.python_why
    return near, "usual at the date of the bug report" if near == usual else _WORDING_REASON


def _repo(options: EnvironmentOptions, target: str, claims: Claims) -> RepoSource | None:
    """The clone, when one was given and the report does not name a release that the index has."""
    if not options.repo or options.for_commands:
        return None
    is_named = any(
        versions.specifier(claim.version, claim.source)
        for claim in claims.get(evidence.claim_name(target), [])
    )
    is_release = is_named and target and not options.ref
    return None if is_release else RepoSource.of(options.repo, options.ref or "")


# What is asked for after an environment was derived: by a run that lacks a module, or by a model
# that names a distribution.


def for_import(name: str, report: BugReport | None = None) -> Requirement | None:
    """What to install for a module that a run found missing, at the version the report names;
    None when it cannot be had.
    """
    distribution = imports.distribution(name)
    if not distribution or name.partition(".")[0] in sys.stdlib_module_names:
        return None
    claims = evidence.gather_claims(report) if report else {}
    requirement = pin_versions(
        distribution, f"module {name} was missing in a run", PinSource.REPAIR, claims, None
    )
    update = {
        "name": imports.installed_as(distribution),
        "modules": used_modules(imports.guess_distribution(name), (name,), report),
    }
    return requirement.model_copy(update=update)


def by_model(
    name: str, version: str, reason: str, module_names: Iterable[str] = ()
) -> Requirement | None:
    """What a model asks for, to be weighed by a module of it that is `imported`, else by its name;
    None when it is no plain name with a plain version.
    """
    specifier = f"=={version}" if version else ""
    try:
        requirement = Parsed(f"{name}{specifier}")
    except InvalidRequirement:
        return None
    if requirement.url or requirement.marker or requirement.extras:
        return None
    plain = package_names.alias(canonicalize_name(requirement.name))
    return Requirement(
        name=imports.installed_as(plain),
        specifier=specifier,
        rung=PinSource.REPAIR,
        reason=f"a model asked for it: {reason}" if reason else "a model asked for it",
        modules=modules(plain, module_names),
        named=True,
    )


def modules(name: str, module_names: Iterable[str]) -> tuple[str, ...]:
    """The imported module that a named distribution seems to be for, else one of its name; () for
    a well-known distribution.
    """
    if imports.well_known(name):
        return ()
    tops = (top for module in module_names if (top := imports.guess_distribution(module)))
    return (next((top for top in tops if evidence.alike(top, name)), name.replace("-", "_")),)


def missing(
    module: str, text: str, bug: BugReport | None, spec: EnvironmentSpec
) -> Requirement | None:
    """What to install for a missing module or a requirement that an error names; None when it is
    no requirement, or is there.
    """
    new = for_import(module, bug) if module else _requirement(text)
    return (
        None
        if new is None or any(_same(new, requirement) for requirement in spec.requirements)
        else new
    )


def _same(new: Requirement, present: Requirement) -> bool:
    if new.name != present.name:
        return False
    return new.specifier in {"", present.specifier} and set(new.extras) <= set(present.extras)


def _requirement(text: str) -> Requirement | None:
    """A requirement that an error message names; anything but a plain name with extras and
    versions is refused.
    """
    try:
        requirement = Parsed(text)
    except InvalidRequirement:
        return None
    if requirement.url or requirement.marker:
        return None
    reason = "named by the error message of a run"
    extras = tuple(sorted(requirement.extras))
    return Requirement(
        name=package_names.alias(requirement.name),
        specifier=str(requirement.specifier),
        extras=extras,
        rung=PinSource.REPAIR,
        reason=reason,
    )
