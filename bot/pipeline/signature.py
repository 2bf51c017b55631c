"""BugReport → what will count as the reported failure, frozen before anything runs."""

from __future__ import annotations

import ast
import re

from bot.models.bug import BugReport, Fence, Frame, Output, Role, Symptom, Traceback
from bot.models.signature import (
    AlternativesSignature,
    AnySignature,
    CrashSignature,
    HangSignature,
    Member,
    NonFiniteSignature,
    OutputSignature,
    WarningSignature,
)
from bot.rules.intake.exceptions import suffixed
from bot.rules.signatures import genuine, values, wording

IDLE_BOUND_S = 20.0
BUSY_BOUND_S = 60.0
_MOST_MEMBERS = 6
_BUSY = re.compile(r"infinite loop|100 ?% (?:of )?(?:one )?cpu|cpu (?:usage )?(?:at|is) 100|spins?\b|busy", re.IGNORECASE)
_REPEATED = re.compile(
    r"\bspam|every (?:step|batch|update|call|iteration|time)|repeated|multiple times|floods?\b|again and again", re.I
)
_VALUES = {Symptom.WRONG_VALUE, Symptom.NONFINITE, Symptom.NOT_LEARNING, Symptom.SAVE_LOAD}
_ASIDE = {Role.FIX, Role.EXPECTED, Role.CONTRAST, Role.SOURCE}


def freeze(bug: BugReport) -> AnySignature | None:
    """The signature of a report: its tracebacks, contrasted outputs and warnings; else the checks of its own program; else a
    hang or non-finite values. None when the report shows nothing that a run could be held against.
    """
    outputs = _outputs(bug)
    members: list[Member] = [*_crashes(bug), *outputs, *_warnings(bug)]
    if bug.symptom in _VALUES and any(output.expected for output in outputs):
        members = [*outputs]  # wrong and right values side by side say more than an exception logged on the way
    if bug.symptom is Symptom.HANG and not any(isinstance(member, CrashSignature) for member in members):
        members = [_hang(bug)]
    if not members:
        members = [*_checks(bug)] or [*_nonfinite(bug)]
    if not members:
        return None
    return members[0] if len(members) == 1 else AlternativesSignature(members=tuple(members[:_MOST_MEMBERS]))


def members_of(signature: AnySignature) -> tuple[Member, ...]:
    """The signatures of which any one counts."""
    return signature.members if isinstance(signature, AlternativesSignature) else (signature,)


def _crashes(bug: BugReport) -> list[CrashSignature]:
    roles = {fence.index: fence.role for fence in bug.fences}
    reported = [row for row in bug.tracebacks if row.fence is None or roles.get(row.fence) not in _ASIDE]
    found: dict[tuple[str, str], CrashSignature] = {}
    for row in sorted(reported, key=lambda row: -len(row.frames)):
        crash = _crash(bug, row)
        key = (crash.exception.rsplit(".", 1)[-1], wording.normalise(wording.core(crash.message)).lower())
        if any(key[0] == known[0] and _covers(known[1], key[1]) for known in found):
            continue
        # Exceptions such as `queue.Empty` have no message; of a ValueError without one the reporter has left it out.
        bare = row.fence is not None and not suffixed(crash.exception)
        if crash.message or crash.frame or crash.checks or crash.exception.startswith("SIG") or bare:
            found[key] = crash
    return list(found.values())


def _covers(known: str, new: str) -> bool:
    return new in known or (known in new and bool(known))


def _crash(bug: BugReport, row: Traceback) -> CrashSignature:
    third_party = [frame for frame in row.frames if frame.package and frame.package != "<stdlib>"]
    own = [frame for frame in row.frames if not frame.package and frame.code]
    fault = third_party[-1] if third_party else Frame(path="")
    checks: tuple[str, ...] = ()
    if row.exception.startswith("SIG"):  # the words are the shell's, not the program's
        return CrashSignature(exception=row.exception)
    if row.exception.rsplit(".", 1)[-1] == "AssertionError" and not row.message and not third_party:
        checks = (own[-1].code,) if own else _asserts(bug)
    return CrashSignature(
        exception=row.exception,
        message=row.message,
        shapes=wording.shapes(wording.core(row.message)),
        frame=fault.module_path,
        function=fault.function,
        checks=checks,
    )


def _outputs(bug: BugReport) -> list[OutputSignature]:
    """Pasted outputs. Beside a traceback they count only where the report contrasts them with what was expected."""
    remarked = {fence.index for fence in bug.programs if not fence.outputs}
    sentences = [row for row in bug.outputs if row.fence is None or (row.fence in remarked and "\n" not in row.text)]
    blocks = [row for row in bug.outputs if row not in sentences]
    signature = _contrast(
        bug, [row.text for row in blocks if row.role == "observed"], [row.text for row in blocks if row.role == "expected"]
    )
    if signature is None and bug.tracebacks:
        return []
    if signature is None:
        observed = tuple((values.shown(row.text),) for row in sentences if row.role == "observed" and _is_value(row.text))
        expected = tuple((values.shown(row.text),) for row in sentences if row.role == "expected" and _is_value(row.text))
        if not observed or not expected or values.cleaned(observed) == values.cleaned(expected):
            return _remarks(bug, sentences)
        signature = OutputSignature(observed=observed[:1], expected=expected[:1], within_line=True)
    if bug.tracebacks and not signature.expected:
        return []
    return [signature]


def _contrast(bug: BugReport, observed: list[str], expected: list[str]) -> OutputSignature | None:
    seen, wanted = _comparable(observed), _comparable(expected)
    said = {values.clean(line) for fence in bug.programs for line in genuine.constant_lines(fence.text)}
    telling = [shown for chunk, shown in seen.items() if chunk not in wanted and not said.issuperset(chunk)]
    if not telling:
        return None
    missing = [shown for chunk, shown in wanted.items() if chunk not in seen and not said.issuperset(chunk)]
    return OutputSignature(observed=tuple(telling), expected=tuple(missing))


def _comparable(texts: list[str]) -> dict[values.Chunk, values.Chunk]:
    """The chunks of pasted outputs, each once, by what they are compared by."""
    found: dict[values.Chunk, values.Chunk] = {}
    for chunk in (chunk for text in texts for chunk in values.chunks(text)):
        found.setdefault(tuple(map(values.clean, chunk)), chunk)
    return found


def _remarks(bug: BugReport, rows: list[Output]) -> list[OutputSignature]:
    """A value noted beside the very print of what the report is about, where nothing says what was expected instead."""
    about = bug.api[0].rsplit(".", 1)[-1].rstrip("()") if bug.api else ""
    lines = {fence.line + offset: line for fence in bug.programs for offset, line in enumerate(fence.raw.split("\n"))}
    noted = [row for row in rows if row.role == "observed" and row.fence is not None and _is_value(row.text)]
    # A printed truth value is the reporter's own check, as an assertion would be.
    telling = [
        row for row in noted if row.text in {"True", "False"} or (about and about in lines.get(row.line, "").split("#")[0])
    ]
    if bug.symptom is not Symptom.WRONG_VALUE or not telling:
        return []
    return [OutputSignature(observed=tuple((values.shown(row.text),) for row in telling))]


def _is_value(text: str) -> bool:
    return 0 < len(text.strip()) <= 80 and len(text.split()) <= 6


def _warnings(bug: BugReport) -> list[WarningSignature]:
    if bug.tracebacks and bug.symptom is not Symptom.WARNING:
        return []
    if bug.symptom is not Symptom.WARNING:
        return []
    prose = " ".join(
        filter(None, (bug.symptom_quote.text if bug.symptom_quote else "", *(row.quote.text for row in bug.warnings)))
    )
    least = 2 if _REPEATED.search(prose) else 1
    return [
        WarningSignature(category=row.category, message=row.message, at_least=least) for row in bug.warnings[:2] if row.message
    ]


def _hang(bug: BugReport) -> HangSignature:
    busy = bool(bug.symptom_quote and _BUSY.search(bug.symptom_quote.text))
    return HangSignature(bound_s=BUSY_BOUND_S if busy else IDLE_BOUND_S, idle=not busy)


def _checks(bug: BugReport) -> list[CrashSignature]:
    checks = _asserts(bug)
    return [CrashSignature(exception="AssertionError", checks=checks)] if checks else []


def _asserts(bug: BugReport) -> tuple[str, ...]:
    """The assertions of the report's programs; when some are about a reported API, only those about the first such."""
    rows = [(line, about) for fence in bug.programs if fence.role not in _ASIDE for line, about in _program_asserts(fence)]
    for name in (name.rsplit(".", 1)[-1].rstrip("()") for name in bug.api):
        telling = [line for line, about in rows if name and re.search(rf"\b{re.escape(name)}\b", about)]
        if telling:
            return tuple(dict.fromkeys(telling))
    return tuple(dict.fromkeys(line for line, _ in rows))


def _program_asserts(fence: Fence) -> list[tuple[str, str]]:
    """Each assertion with its text and the assignments of the names in it (what it is about)."""
    try:
        tree = ast.parse(fence.text)
    except SyntaxError:
        return []
    assigned: dict[str, str] = {}
    rows: list[tuple[str, str]] = []
    for node in sorted((node for node in ast.walk(tree) if isinstance(node, ast.stmt)), key=lambda node: node.lineno):
        if isinstance(node, ast.Assign):
            assigned.update({target.id: ast.unparse(node) for target in node.targets if isinstance(target, ast.Name)})
        if _is_check(node):
            names = {name.id for name in ast.walk(node) if isinstance(name, ast.Name)}
            rows.append(
                (
                    ast.get_source_segment(fence.text, node) or ast.unparse(node),
                    " ".join(map(str, (ast.unparse(node), *(assigned.get(name, "") for name in names)))),
                )
            )
    return rows


def _is_check(node: ast.stmt) -> bool:
    if isinstance(node, ast.Assert):
        return genuine.is_computed(node.test)
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        name = node.value.func.attr if isinstance(node.value.func, ast.Attribute) else getattr(node.value.func, "id", "")
        return name.startswith(
            ("assert_", "assertEqual", "assertTrue", "assertFalse", "assertAlmost", "assertNot", "assertIn", "assertIs")
        )
    return False


def _nonfinite(bug: BugReport) -> list[NonFiniteSignature]:
    if bug.symptom is not Symptom.NONFINITE or not bug.programs or bug.symptom_quote is None:
        return []
    said = bug.symptom_quote.text.lower()
    return [NonFiniteSignature(values=("nan",) if "nan" in said or "inf" not in said else ("inf",))]
