"""A judgement → what to change before the next run: a requirement, an import, a device, or fewer rounds; None when nothing
helps.
"""

from __future__ import annotations

import ast
import json

from packaging.requirements import InvalidRequirement
from packaging.requirements import Requirement as Parsed

from bot.models.attempt import Judgement, Match, Script
from bot.models.environment import Environment, EnvironmentSpec, Requirement, Rung
from bot.models.signature import HangSignature
from bot.pipeline import environment, launch
from bot.pipeline.desk import Desk, changed
from bot.pipeline.signature import members_of
from bot.rules.mends import cpu, imports, shorter

_PARTS = ("", ".nn", ".data", ".utils", ".layers", ".models", ".transforms", ".optim", ".callbacks", ".loader", ".functional")
Step = tuple[EnvironmentSpec, Script, str]


def way(desk: Desk, spec: EnvironmentSpec, script: Script, judgement: Judgement) -> Step | None:
    """The next thing to try with this candidate, with a word on what it is."""
    if judgement.match is Match.UNDECIDED:
        return _shorter(desk, spec, script)
    decoy = judgement.decoy
    if decoy is None:
        return None
    if decoy.module or decoy.requirement:
        return _install(desk, spec, script, decoy.module, decoy.requirement)
    if decoy.rewrite == "cpu":
        source, mends = cpu.to_cpu(script.source)
        return (spec, changed(script, source, mends), "on the processor instead of a GPU") if mends else None
    if decoy.names and desk.environment is not None:
        mended = _imported(desk, desk.environment, script, decoy.names)
        return (spec, mended, f"importing {', '.join(decoy.names)}") if mended is not script else None
    return None


def name_imports(desk: Desk, built: Environment, script: Script) -> Script:
    """A script with the imports it lacks, looked up in the built environment."""
    return _imported(desk, built, script, imports.undefined(script.source))


def _shorter(desk: Desk, spec: EnvironmentSpec, script: Script) -> Step | None:
    last = desk.attempts[-1].execution
    if not last.timed_out or (
        desk.signature and any(isinstance(member, HangSignature) for member in members_of(desk.signature))
    ):
        return None
    source, mends = shorter.shorten(script.source)
    return (spec, changed(script, source, mends), "with fewer rounds") if mends else None


def _install(desk: Desk, spec: EnvironmentSpec, script: Script, module: str, text: str) -> Step | None:
    requirement = environment.requirement_for_import(module, desk.bug) if module else _requirement(text)
    if requirement is None or any(_same(requirement, known) for known in spec.requirements):
        return None
    return environment.add(spec, requirement), script, f"with {requirement.name}{requirement.specifier} installed"


def _same(new: Requirement, known: Requirement) -> bool:
    if new.name != known.name:
        return False
    return new.specifier in {"", known.specifier} and set(new.extras) <= set(known.extras)


def _requirement(text: str) -> Requirement | None:
    """A requirement that an error message names; anything but a plain name with extras and versions is refused."""
    try:
        parsed = Parsed(text)
    except InvalidRequirement:
        return None
    if parsed.url or parsed.marker:
        return None
    reason = "named by the error message of a run"
    extras = tuple(sorted(parsed.extras))
    return Requirement(
        name=parsed.name.lower(), specifier=str(parsed.specifier), extras=extras, rung=Rung.REPAIR, reason=reason
    )


def _imported(desk: Desk, built: Environment, script: Script, names: tuple[str, ...]) -> Script:
    """The script with imports for the names that the environment's packages offer; the very script when none does."""
    if not names:
        return script
    known = {name: imports.conventional(name, script.source) for name in names}
    unknown = tuple(name for name in names if not known[name] and name.isidentifier())
    located = _located(desk, built, script, unknown)
    statements = [known[name] or (f"from {located[name]} import {name}" if name in located else "") for name in names]
    source, mends = imports.add(script.source, tuple(filter(None, statements)))
    return changed(script, source, mends) if mends else script


def _located(desk: Desk, built: Environment, script: Script, names: tuple[str, ...]) -> dict[str, str]:
    modules = [top + part for part in _PARTS for top in _tops(built, script)]
    if not names or not modules:
        return {}
    result = desk.execute(launch.names_spec(built, desk.job.options, names, tuple(modules)))
    try:
        found = json.loads(result.stdout.strip().splitlines()[-1])
    except (ValueError, IndexError):
        return {}
    # The answer comes out of the sandbox: only what was asked for is taken.
    return {name: module for name, module in found.items() if name in names and module in modules}


def _tops(built: Environment, script: Script) -> list[str]:
    """Packages to look in: those that the program imports, then those that were asked for."""
    found: list[str] = []
    for node in ast.walk(ast.parse(script.source)):
        if isinstance(node, ast.Import):
            found.extend(alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.append(node.module.split(".")[0])
    asked = [package.name for package in built.packages if package.rung is not Rung.DEPENDENCY]
    for name in asked:
        found.extend((name.replace("-", "_"), name.replace("-", "")))
    return list(dict.fromkeys(found))
