"""A program that a model wrote, before it is run: what would waste a run or make its outcome
worthless.
"""

import ast
import re
from collections.abc import Iterator

from bot.models.dialogue import Interpretation
from bot.models.signature import ObservationSignature, members_of
from bot.rules import parsing
from bot.rules.code.syntax import nodes
from bot.rules.script_fixes import imports
from bot.rules.signatures import relevance, staged
from prompts import load

# Calls that fetch; an import alone, or a client with a transport in the process, does not.
_REACHES = re.compile(
    r"\b(?:requests|httpx)\.(?:get|post|put|patch|delete|head|options|request|stream)\s*\("
    r"|\b(?:urllib\.request|urlopen|urlretrieve|socket\.create_connection|ftplib|wget|gdown|"
    r"hf_hub_download|snapshot_download|load_dataset|subprocess|os\.system|os\.popen|pip\.main)\b"
)
_WEIGHTS = re.compile(
    r"\.from_pretrained\(\s*[\"'][\w.-]+(?:/[\w.-]+)?[\"']|pretrained\s*=\s*True|download\s*=\s*True|weights\s*=\s*[\"']"
)
_PATCHES = re.compile(r"^\s*(?:setattr\(|unittest\.mock|mock\.patch|monkeypatch)")
_CUDA = re.compile(r"\.cuda\(|device\s*=\s*[\"']cuda|\.to\([\"']cuda")
MOST_LINES = 400


def objections(source: str, refined: Interpretation, *, device: str) -> tuple[str, ...]:
    """What is wrong with a program, as sentences for whoever wrote it; empty when it may run."""
    try:
        tree = parsing.parse(source)
    except SyntaxError as error:
        where = " " + _objection("line", line=error.lineno) if error.lineno else ""
        return (_objection("syntax", error=error.msg, where=where),)
    return tuple(_of(tree, source, refined, device))


def _of(tree: ast.Module, source: str, refined: Interpretation, device: str) -> Iterator[str]:
    if len(source.splitlines()) > MOST_LINES:
        yield _objection("long", lines=MOST_LINES)
    if lacking := imports.undefined(source):
        yield _objection("undefined", names=", ".join(lacking[:8]))
    for pattern, reason in ((_REACHES, "network"), (_WEIGHTS, "weights")):
        if found := pattern.search(source):
            yield _objection(reason, found=found[0][:80])
    if device == "cpu" and (found := _CUDA.search(source)):
        yield _objection("gpu", found=found[0])
    if patched := _patched(tree, refined.api):
        yield _objection("patched", target=patched)
    if refined.api and not relevance.exercises(source, refined.api):
        yield _objection("unrelated", api=", ".join(refined.api))
    assert refined.signature is not None
    for member in members_of(refined.signature):
        if line := staged.staged(source, member):
            observing = isinstance(member, ObservationSignature)
            yield (
                _objection("constant", line=line)
                if observing
                else _objection("staged", line=line[:160])
            )


def _objection(name: str, /, **values: object) -> str:
    return load("act").fragment(f"objection_{name}", **values)


def _patched(tree: ast.Module, api: tuple[str, ...]) -> str:
    """An assignment to an attribute of an imported module or of a class in question, and the
    like.
    """
    tops = {name.split(".")[0] for name in api}
    modules = {
        (alias.asname or alias.name.split(".")[0])
        for node in nodes(tree, ast.Import)
        for alias in node.names
        if alias.name.split(".")[0] in tops
    }
    classes = {
        alias.asname or alias.name
        for node in nodes(tree, ast.ImportFrom)
        if (node.module or "").split(".")[0] in tops
        for alias in node.names
        if alias.name[:1].isupper()
    }
    ours = modules | classes
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(attr=name, ctx=ast.Store()):
                if name != "default_dtype" and _root(node) in ours:
                    return ast.unparse(node)
            case ast.Call(args=[target, *_]) if _root(target) in ours:
                if _PATCHES.match(ast.unparse(node)[:60]):
                    return ast.unparse(node)[:80]
    return ""


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
