"""BugReport → the programs that the report implies, the likeliest first."""

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from bot.models.attempt import Script
from bot.models.bug import BugReport, Fence, FenceKind, Role, ScriptFix
from bot.models.signature import AnySignature, CrashSignature, members_of
from bot.rules.code import syntax
from bot.rules.intake import shell
from bot.rules.intake.python import is_call_of, module_of
from bot.rules.parsing import tree_of
from bot.rules.script_fixes import calls, caught, imports
from bot.rules.signatures import readings, values

MOST = 4
_LENT = 2
_JOINED_AT_MOST = 200_000
"""Characters of all drafts together: to find the names that a program lacks takes 5 s a million."""
_VERSIONS = re.compile(r"__version__|\bsys\.(?:version|platform)\b|\bplatform\.\w+\(")
_ASIDE = {Role.FIX, Role.EXPECTED, Role.CONTRAST, Role.SOURCE}


@dataclass(frozen=True, slots=True)
class _Draft:
    text: str
    fences: tuple[int, ...]
    fixes: tuple[ScriptFix, ...]
    score: float
    shows: bool


def propose(bug: BugReport, signature: AnySignature) -> tuple[Script, ...]:
    """At most four scripts: single blocks completed by the earlier ones that define what they
    use, and all blocks in order (as in a notebook). Blocks that show a fix, a contrast or the
    library's own source are left out; at most two more scripts take from them what is defined
    nowhere else.
    """
    usable = _usable(bug)
    drafts = list(_completed(bug, signature, usable, range(len(usable))))
    if len(usable) > 1:
        whole = _draft(bug, signature, usable)
        drafts.append(replace(whole, score=whole.score - 1.5))
    unique: dict[str, _Draft] = {}
    for draft in sorted(drafts, key=lambda draft: -draft.score):
        unique.setdefault("\n".join(values.lines(draft.text)), draft)
    chosen = list(unique.values())[:MOST]
    chosen += _lending(bug, signature, usable)
    return tuple(_with_variables(bug, _script(_borrowing(bug, draft))) for draft in chosen)


def _lending(bug: BugReport, signature: AnySignature, usable: list[Fence]) -> list[_Draft]:
    """The blocks that use what only blocks put aside define, each after those."""
    lent = {Role.SOURCE, Role.CONTRAST}
    kept = {fence.index for fence in usable}
    every = [one for one in bug.programs if one.index in kept or one.role in lent]
    if len(every) == len(usable):
        return []
    own = [at for at, fence in enumerate(every) if fence.index in kept]
    drafts = _completed(bug, signature, every, own)
    found = [draft for draft in drafts if not kept.issuperset(draft.fences)]
    return sorted(found, key=lambda draft: -draft.score)[:_LENT]


def _borrowing(bug: BugReport, draft: _Draft) -> _Draft:
    """A draft with the imports it lacks taken from other blocks of the report, whatever those
    are for.
    """
    lacking = set(imports.undefined(draft.text))
    others = [fence for fence in bug.programs if fence.index not in draft.fences]
    found = [
        line
        for fence in others
        for line, bound in imports.statements(fence.text)
        if bound & lacking
    ]
    text, fixes = imports.add(draft.text, tuple(found))
    return replace(draft, text=text, fixes=(*draft.fixes, *fixes))


def _with_variables(bug: BugReport, script: Script) -> Script:
    """A script that sets the variables which the report's shell commands set for the libraries."""
    texts = [fence.raw for fence in bug.fences if fence.kind is FenceKind.SHELL]
    found = {
        name: value
        for text in texts
        for name, value in shell.variables(text).items()
        if name not in script.source
    }
    if not found:
        return script
    lines = ("import os", *(f"os.environ[{name!r}] = {value!r}" for name, value in found.items()))
    source, _ = imports.add(script.source, lines)
    fixes = tuple(
        ScriptFix(what=f"set {name}={value}", why="the bug report's command sets it")
        for name, value in found.items()
    )
    return script.model_copy(
        update={"files": {**script.files, script.entry: source}, "fixes": (*script.fixes, *fixes)}
    )


def contrasts(bug: BugReport) -> tuple[Script, ...]:
    """The programs of which the report says that they work; at most one is worth a run."""
    found = [
        fence
        for fence in bug.programs
        if fence.role is Role.CONTRAST and "import " in fence.text and _acts(fence.text)
    ]
    drafts = [
        _Draft(fence.text, (fence.index,), fence.fixes, 0.0, shows=False) for fence in found[:1]
    ]
    return tuple(_script(draft) for draft in drafts)


def _usable(bug: BugReport) -> list[Fence]:
    """The blocks that may be run, each text once; failing those, what looked like quoted source
    but imports and acts.
    """
    texts: dict[str, Fence] = {}
    for fence in bug.programs:
        aside = fence.role in _ASIDE or not fence.text.strip()
        if not aside and (_fails(bug, fence) or not _tells_versions(fence.text)):
            texts.setdefault("\n".join(values.lines(fence.text)), fence)
    rest = [
        fence
        for fence in bug.programs
        if fence.role is Role.SOURCE and "import " in fence.text and _acts(fence.text)
    ]
    return list(texts.values()) or rest


def _fails(bug: BugReport, fence: Fence) -> bool:
    """Whether the next block is the traceback of an exception, as after the command that raised
    it.
    """
    following = next((one for one in bug.fences if one.index == fence.index + 1), None)
    return following is not None and following.kind is FenceKind.TRACEBACK


def _tells_versions(text: str) -> bool:
    """Whether a block only prints versions, as the forms of many projects ask for."""
    body = module_of(text).body
    told = [node for node in body if not isinstance(node, ast.Import | ast.ImportFrom)]
    return bool(told) and all(
        isinstance(node, ast.Expr)
        and is_call_of(node.value, "print")
        and _VERSIONS.search(ast.unparse(node))
        for node in told
    )


def genuine_ones(
    scripts: tuple[Script, ...], signature: AnySignature
) -> tuple[tuple[Script, ...], str]:
    """The scripts that do not stage the reported failure themselves, and, when none is left, the
    line that does.
    """
    members = members_of(signature)
    found = [[readings.self_made(one.source, member) for member in members] for one in scripts]
    kept = tuple(one for one, lines in zip(scripts, found, strict=True) if not all(lines))
    return kept, "" if kept or not found else found[0][0]


def _script(draft: _Draft) -> Script:
    text, fixes = draft.text, draft.fixes
    shown = (calls.show_expressions,) if draft.shows else ()
    for step in (*shown, calls.call_entry, caught.show_caught):
        text, made = step(text)
        fixes = (*fixes, *made)
    text, made = imports.add(
        text, tuple(imports.conventional(name, text) for name in imports.undefined(text))
    )
    blocks = ", ".join(str(index + 1) for index in draft.fences)
    origin = f"block{'s' if len(draft.fences) > 1 else ''} {blocks} of the report"
    return Script(
        files={"repro.py": text.rstrip() + "\n"},
        origin=origin,
        fences=draft.fences,
        fixes=(*fixes, *made),
    )


def _completed(
    bug: BugReport, signature: AnySignature, fences: list[Fence], chosen: Sequence[int]
) -> Iterator[_Draft]:
    """The chosen blocks, each with the earlier blocks (nearest first, as long as they help) that
    define names it uses; as many as the limit of characters allows.
    """
    defined = [_defines(fence) for fence in fences]
    used = [frozenset(imports.undefined(fence.text)) for fence in fences]
    room = _JOINED_AT_MOST
    for index in chosen:
        parts, lacking = [fences[index]], used[index]
        for at in reversed(range(index)):
            if not defined[at].isdisjoint(lacking):
                parts.insert(0, fences[at])
                lacking = (lacking - defined[at]) | used[at]
        room -= sum(len(part.text) for part in parts)
        if room < 0:
            return
        yield _draft(bug, signature, parts)


def _draft(bug: BugReport, signature: AnySignature, parts: list[Fence]) -> _Draft:
    text = _text(parts)
    fixes = tuple(fix for part in parts for fix in part.fixes)
    if len(parts) > 1:
        fixes = (
            *fixes,
            ScriptFix(
                what=f"joined {len(parts)} blocks of the report",
                why="the later one uses what the earlier ones define",
            ),
        )
    # A prompt or a notebook cell shows the value of its last expression; a script prints it itself.
    shows = any(part.outputs for part in parts) or (bool(bug.outputs) and "print" not in text)
    return _Draft(
        text, tuple(part.index for part in parts), fixes, _score(bug, signature, parts, text), shows
    )


def _text(parts: list[Fence]) -> str:
    return "\n\n".join(part.text.strip("\n") for part in parts)


def _defines(fence: Fence) -> set[str]:
    names: set[str] = set()
    for node in _statements(fence.text):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
        else:
            names |= {
                part.id for part in syntax.nodes(node, ast.Name) if isinstance(part.ctx, ast.Store)
            }
    return names


def _score(bug: BugReport, signature: AnySignature, parts: list[Fence], text: str) -> float:
    last = parts[-1]
    score = {Role.REPRODUCER: 4.0, Role.OBSERVED: -1.0}.get(last.role, 0.0)
    code = {" ".join(line.split()) for line in text.splitlines()}
    own = {
        " ".join(frame.code.split())
        for row in bug.tracebacks
        for frame in row.frames
        if not frame.package and frame.code
    }
    score += 3.0 * min(len(own & code), 3)
    checks = [
        check
        for member in members_of(signature)
        if isinstance(member, CrashSignature)
        for check in member.checks
    ]
    score += 2.0 * any(check in text for check in checks)
    score += 1.0 * min(sum(name.rsplit(".", 1)[-1].rstrip("()") in text for name in bug.api), 2)
    score += 1.0 * ("import " in text) + 1.0 * _acts(text)
    score += 2.0 * bool(last.outputs) + 2.0 * _fails(bug, last)
    lacking = [name for name in imports.undefined(text) if not imports.conventional(name, text)]
    score -= 0.0 if tree_of(text) else 6.0
    return score - min(len(lacking), 4) - 0.002 * len(code) - 0.01 * last.index


def _acts(text: str) -> bool:
    """Whether a program does anything but define things."""
    inert = (ast.Import, ast.ImportFrom, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    return any(not isinstance(node, inert) for node in _statements(text))


def _statements(text: str) -> list[ast.stmt]:
    tree = tree_of(text)
    return tree.body if tree is not None else []
