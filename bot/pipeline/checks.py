"""A program that a model wrote, before it is run: what would waste a run or make its outcome worthless."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from bot.models.plan import Refined
from bot.models.signature import ObservationSignature, WarningSignature
from bot.pipeline.signature import members_of
from bot.rules.mends import imports
from bot.rules.signatures import observed, relevance, staged
from bot.rules.signatures.observed import MARK

_REACHES = re.compile(
    r"\b(?:requests|urllib\.request|urlopen|urlretrieve|httpx|aiohttp|socket\.(?:socket|create_connection)|ftplib|wget|gdown|"
    r"hf_hub_download|snapshot_download|load_dataset|subprocess|os\.system|os\.popen|pip\.main)\b"
)
_WEIGHTS = re.compile(
    r"\.from_pretrained\(\s*[\"'][\w.-]+(?:/[\w.-]+)?[\"']|pretrained\s*=\s*True|download\s*=\s*True|weights\s*=\s*[\"']"
)
_PATCHES = re.compile(r"^\s*(?:setattr\(|unittest\.mock|mock\.patch|monkeypatch)")
_CUDA = re.compile(r"\.cuda\(|device\s*=\s*[\"']cuda|\.to\([\"']cuda")
_MOST_LINES = 400


def objections(source: str, refined: Refined, *, device: str) -> tuple[str, ...]:
    """What is wrong with a program, as sentences for whoever wrote it; empty when it may run."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError) as error:
        where = f" (line {error.lineno})" if isinstance(error, SyntaxError) and error.lineno else ""
        return (f"It is no valid Python: {getattr(error, 'msg', type(error).__name__)}{where}.",)
    return tuple(_of(tree, source, refined, device))


def _of(tree: ast.Module, source: str, refined: Refined, device: str) -> Iterator[str]:
    if len(source.splitlines()) > _MOST_LINES:
        yield f"It is longer than {_MOST_LINES} lines."
    if lacking := imports.undefined(source):
        yield f"These names are not defined: {', '.join(lacking[:8])}."
    for pattern, why in ((_REACHES, "there is no network and no other program"), (_WEIGHTS, "nothing can be downloaded")):
        if found := pattern.search(source):
            yield f"It uses `{found[0][:80]}`, but {why}: build what is needed in the program."
    if device == "cpu" and (found := _CUDA.search(source)):
        yield f"It uses `{found[0]}`, but the run has no GPU."
    if patched := _patched(tree, refined.api):
        yield f"It replaces a part of the library (`{patched}`): what it shows then is its own doing."
    assert refined.signature is not None
    if refined.api and not relevance.exercises(source, refined.api):
        yield f"It uses none of {', '.join(refined.api)}, which the report is about."
    for member in members_of(refined.signature):
        if line := staged.staged(source, member):
            observing = isinstance(member, ObservationSignature)
            yield (
                f"Its value is no evidence: {line}." if observing else f"It brings the failure about by itself: `{line[:160]}`."
            )


def _patched(tree: ast.Module, api: tuple[str, ...]) -> str:
    """An assignment to an attribute of an imported module or of a class in question, and the like."""
    tops = {name.split(".")[0] for name in api}
    modules = {
        (alias.asname or alias.name.split(".")[0])
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
        if alias.name.split(".")[0] in tops
    }
    classes = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in tops
        for alias in node.names
        if alias.name[:1].isupper()
    }
    for node in ast.walk(tree):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AugAssign) else []
        for target in targets:
            if isinstance(target, ast.Attribute) and _root(target) in modules | classes and target.attr != "default_dtype":
                return ast.unparse(target)
        if (
            isinstance(node, ast.Call)
            and (_PATCHES.match(ast.unparse(node)[:60]) and node.args)
            and _root(node.args[0]) in modules | classes
        ):
            return ast.unparse(node)[:80]
    return ""


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def twin(refined: Refined) -> str:
    """What the twin has to do, as a clause for prompts."""
    assert refined.signature is not None
    members = members_of(refined.signature)
    if any(isinstance(member, ObservationSignature) for member in members):
        return "it prints its own value under the same name, and what would be right has to hold for it."
    if any(isinstance(member, WarningSignature) for member in members):
        return "it has to end normally, with fewer such warnings than count."
    return "it has to end normally."


def twin_wanted(refined: Refined) -> str:
    """Whether a twin is asked for, as a sentence for prompts."""
    if refined.needs_contrast:
        return (
            "It is required, because the report does not quote the failure: only a twin that passes shows that the reported "
            "point is the cause."
        )
    return 'It is not required for this report: leave it "" unless it is easy.'


def form(refined: Refined) -> str:
    """How the program has to show it, for prompts."""
    assert refined.signature is not None
    observing = [member for member in members_of(refined.signature) if isinstance(member, ObservationSignature)]
    return "\n".join(map(_line, observing)) or "Let the exception or warning arise in the library and escape; catch nothing."


def _line(member: ObservationSignature) -> str:
    said = f'{MARK} {{"{member.name}": value}}'
    how = f'print("{MARK}", json.dumps({{"{member.name}": value}}))'
    where = ", ".join(member.api)
    return (
        f"The program must print exactly one line `{said}`, for example with {how}. The value is the one described above, "
        f"computed from at least one of {where}: from what it returns, from an object it made, or from one handed to it. "
        f"It would be right if `{member.name}` {observed.words(member.right)}."
    )
