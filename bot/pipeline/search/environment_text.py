"""What a model is told of an environment: what was asked for, what was installed, and why; and
whether the package under test can be imported there.
"""

from bot.models.environment import Claimed, Environment, EnvironmentSpec, Requirement
from bot.rules.intake import names
from bot.rules.packages import claims as said, companions, versions
from prompts import fence, shared

_MOST = 12


def described(spec: EnvironmentSpec, built: Environment, problem: str = "") -> str:
    """The packages that matter, a line each, inside the fence; `problem` is how their import
    ends where it fails.
    """
    claims = {claim.name: claim for claim in built.claims}
    rows = [_python(spec, built, claims.pop("python", None))]
    for wanted in spec.requirements[:_MOST]:
        claim = claims.pop(said.claim_name(wanted.name), None)
        rows.append(_asked(spec, built, wanted, claim))
    rows += [*_drawn(spec, list(claims.values())), *_dependencies(spec, built)]
    rows += [shared("not_importable", problem=problem)] if problem else []
    return fence("the environment", "\n".join(rows))


def _python(spec: EnvironmentSpec, built: Environment, claim: Claimed | None) -> str:
    note = claim.note if claim is not None else ""
    why = "; ".join(filter(None, (spec.python_why, note)))
    return shared("python_row", asked=spec.python, version=built.python, why=why)


def _asked(
    spec: EnvironmentSpec, built: Environment, wanted: Requirement, claim: Claimed | None
) -> str:
    """A package that is to be installed."""
    stated = versions.pinned(wanted.specifier) or wanted.specifier
    asked = (claim.claimed if claim is not None else "") or stated
    got = built.version(wanted.name) or (claim.resolved if claim is not None else "")
    note = claim.note if claim is not None else ""
    why = "; ".join(filter(None, (wanted.why, note, _processor(spec, wanted.name, asked, got))))
    return _row(wanted.name, asked, got, why)


def _drawn(spec: EnvironmentSpec, claims: list[Claimed]) -> list[str]:
    """What the report names beside that: a line for each that differs, one for the others."""
    other = [each for each in claims if each.note]
    alike = [each for each in claims if not each.note and each.resolved]
    rows = [_row(each.name, each.claimed, each.resolved, _why(spec, each)) for each in other]
    listed = ", ".join(f"{each.name} {each.resolved}" for each in alike[:_MOST])
    return [*rows[:_MOST], *([shared("as_reported", packages=listed)] if listed else [])]


def _dependencies(spec: EnvironmentSpec, built: Environment) -> list[str]:
    """The well-known libraries that came as dependencies, in one line."""
    told = {row.name for row in spec.requirements} | {
        claim.name for claim in built.claims if claim.resolved
    }
    found = [each for each in built.packages if each.name not in told and names.known(each.name)]
    listed = ", ".join(f"{each.name} {each.version}" for each in found[:_MOST])
    return [shared("also_installed", packages=listed)] if listed else []


def _why(spec: EnvironmentSpec, claim: Claimed) -> str:
    processor = _processor(spec, claim.name, claim.claimed, claim.resolved)
    return "; ".join(filter(None, (claim.note, processor)))


def _processor(spec: EnvironmentSpec, name: str, asked: str, got: str) -> str:
    """That only builds for the processor were looked at, where that may have decided."""
    family = name in companions.TORCH_FAMILY and spec.device == "cpu"
    plain = got.partition("+")[0]
    return shared("cpu_builds") if family and got and not (asked and asked in {got, plain}) else ""


def _row(name: str, asked: str, got: str, why: str) -> str:
    if not got:
        return shared("absent_row", name=name, asked=asked or "any", why=why)
    if not asked:
        return shared("package_row", name=name, version=got, why=why)
    return shared("asked_row", name=name, asked=asked, version=got, why=why)
