"""A program of a repository without the trained weights that it loads and nobody here has, where
the reported failure does not need them: its models keep their random ones.
"""

import ast
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from bot.issues import script_fixes
from bot.issues.script_fixes import UNTRAINED
from bot.kernel.attempt import Failure, Script
from bot.kernel.bug import BugReport, CrashSignature, Member, ScriptFix, Symptom
from bot.kernel.source.syntax import module_of, name_of, nodes, source_lines
from bot.kernel.trees import Tree, tree_files

_LOADS = re.compile(
    r"from_pretrained|load_state_dict|create_model|hf_hub_download|get_weight|load_"
)
_LOADERS = frozenset(
    ("load", "load_url", "load_file", "load_state_dict_from_url", "hf_hub_download", "torch_load")
)
_WITH_BACKBONE = re.compile(
    r"(?:fcn|deeplabv3|lraspp|fasterrcnn|maskrcnn|keypointrcnn|retinanet|fcos|ssd)(?:lite)?\d*_\w+"
)
"""The models of torchvision whose backbone is a trained one unless a call says otherwise."""
_TAKES = "load_state_dict"
_KEYWORDS: Mapping[str, str] = {"pretrained": "False", "weights": "None"}
_Edit = tuple[ast.stmt | ast.expr, str]


def may_be_left_out(bug: BugReport, members: tuple[Member, ...]) -> bool:
    """Whether the reported failure has nothing to do with trained weights."""
    frames = (frame for row in bug.tracebacks for frame in row.frames)
    loads = any(_LOADS.search(f"{frame.function} {frame.code}") for frame in frames)
    crashes = all(isinstance(member, CrashSignature) and member.exception for member in members)
    words = " ".join(member.message for member in members if isinstance(member, CrashSignature))
    about = _LOADS.search(words) or "No such file" in words or "state_dict" in words
    return crashes and not loads and not about and bug.symptom is not Symptom.SAVE_LOAD


def without_weights(
    script: Script, tree: Tree, failure: Failure, present: Collection[str] = ()
) -> Script:
    """A program that ended as it loaded weights, without what loads them there, but for weights of
    a hub that are `present`; the very script where that line loads none, or other code uses what it
    loads.
    """
    for frame in reversed(failure.frames):
        paths = [] if frame.package else tree_files(frame, tree)
        if not paths or frame.line is None:
            continue
        path = max(paths, key=len)
        text = script.files.get(path) or tree[path].decode("utf-8", "replace")
        edits = _edits(module_of(text), frame.line)
        if edits:
            return edit_nodes(script, path, text, edits)
        new_text, fixes = script_fixes.without_weights(text, present)
        return _with_file(script, path, new_text, fixes) if fixes else script
    return script


def _edits(module: ast.Module, line: int) -> list[_Edit]:
    """What to put in the place of which nodes, so that a line loads no weights."""
    scope, statement = _statement_at(module, line)
    if statement is None:
        return []
    calls = list(nodes(statement, ast.Call))
    is_loading = any(name_of(call.func) in _LOADERS for call in calls)
    if is_loading and _is_taking(statement):
        return [(statement, "pass")]
    if is_loading and isinstance(statement, ast.Assign):
        return _without_name(scope, statement)
    return [
        (keyword.value, new)
        for call in calls
        for keyword in call.keywords
        if (new := _KEYWORDS.get(keyword.arg or "", "")) and ast.unparse(keyword.value) != new
    ] or [(call, _without_backbone(call)) for call in calls if _has_backbone(call)]


def _has_backbone(call: ast.Call) -> bool:
    """Whether a call of torchvision loads the weights of a backbone that it does not mention."""
    return bool(_WITH_BACKBONE.fullmatch(name_of(call.func))) and all(
        keyword.arg is not None and "backbone" not in keyword.arg for keyword in call.keywords
    )


def _without_backbone(call: ast.Call) -> str:
    keyword = ast.keyword("weights_backbone", ast.Constant(None))
    return ast.unparse(ast.Call(call.func, call.args, [*call.keywords, keyword]))


def _without_name(scope: ast.AST, statement: ast.Assign) -> list[_Edit]:
    """Without an assignment and the statements that give its value to models; nothing where any
    other uses it.
    """
    target = statement.targets[0]
    if not isinstance(target, ast.Name) or len(statement.targets) > 1:
        return []
    users = [
        node
        for node in _simple_statements(scope)
        if node is not statement and any(row.id == target.id for row in nodes(node, ast.Name))
    ]
    if not users or not all(map(_is_taking, users)):
        return []
    return [(statement, "pass"), *((node, "pass") for node in users)]


def _is_taking(statement: ast.stmt) -> bool:
    """Whether a statement does no more than give a model its weights."""
    node = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(node, ast.Call) and name_of(node.func) == _TAKES


def _simple_statements(scope: ast.AST) -> Iterator[ast.stmt]:
    for node in nodes(scope, ast.stmt):
        if not any(isinstance(part, ast.stmt) for part in ast.iter_child_nodes(node)):
            yield node


def _statement_at(module: ast.Module, line: int) -> tuple[ast.AST, ast.stmt | None]:
    """The simple statement on a line, and the function around it or the module."""
    scope: ast.AST = module
    for node in nodes(module, ast.FunctionDef):
        if node.lineno <= line <= (node.end_lineno or 0):
            scope = node
    matches = (
        node for node in _simple_statements(scope) if node.lineno <= line <= (node.end_lineno or 0)
    )
    return scope, next(matches, None)


def edit_nodes(
    script: Script,
    path: str,
    text: str,
    edits: Sequence[tuple[ast.stmt | ast.expr, str]],
    why: str = UNTRAINED,
) -> Script:
    """The program with other text for some nodes of a file, whose lines stay in their places."""
    lines, fixes = source_lines(text), list[ScriptFix]()
    for node, new in sorted(edits, key=lambda edit: -edit[0].lineno):
        first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
        head = lines[first].encode()[: node.col_offset].decode()
        tail = lines[last].encode()[node.end_col_offset :].decode()
        lines[first : last + 1] = [head + new + tail, *[""] * (last - first)]
        what = f"`{new}` in place of `{ast.unparse(node)[:100]}` in {path}"
        fixes.insert(0, ScriptFix(what=what, why=why))
    return _with_file(script, path, "\n".join(lines) + "\n", fixes)


def _with_file(script: Script, path: str, text: str, fixes: Iterable[ScriptFix]) -> Script:
    update = {
        "files": {**script.files, path: text},
        "edited": tuple(dict.fromkeys((*script.edited, path))),
        "fixes": (*script.fixes, *fixes),
    }
    return script.model_copy(update=update)
