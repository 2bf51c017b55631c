"""What a program of a repository asks for on its command line and the report leaves out: as the
README starts it, else the plainest value of each option that it requires.
"""

import ast
import re
from collections.abc import Iterator, Set
from pathlib import PurePosixPath

from bot.kernel import tree_programs
from bot.kernel.attempt import Failure, Script
from bot.kernel.bug import ScriptFix, ShellCommand
from bot.kernel.commands import read_commands
from bot.kernel.source.syntax import module_of, name_of, nodes
from bot.kernel.trees import Tree

DOCUMENTED = "it asks for arguments, and the README starts it so"
REQUIRED = "it asks for arguments that the bug report does not give"
WHYS = (DOCUMENTED, REQUIRED)
"""Why a program got arguments. What passes with them says nothing."""
_README = re.compile(r"readme(?:\.\w{1,8})?", re.IGNORECASE)
_BLANK = re.compile(r"<[^<>\n]{1,80}>")
"""A word that the reader is to replace; a shell would read a file's name in it."""
_OPEN = re.compile(r"[$\u2026{}]|\.\.\.|^\[|path[_/-]to", re.IGNORECASE)
_BULLET = re.compile(r"^\s*(?:[-*+]\s+|\d{1,2}[.)]\s+)?`*")
_PLAINEST = {"int": "1", "float": "0.1"}
_MOST_README = 100_000
_NAME = re.compile(r"\w{4,60}")
_OPTION = re.compile(r"(?<![\w-])--?[A-Za-z][\w-]{0,60}")
_REFUSAL = re.compile(r"\s*(?:assert|raise|(?:sys\.)?exit|quit)\b")
_MOST_MESSAGE = 400


def with_arguments(script: Script, tree: Tree, report: str = "") -> Script:
    """A program of a tree with the arguments that it asks for: of the README's, those that have
    most words of the report. The very script where neither the README nor its source tells them.
    """
    whys = {fix.why for fix in script.fixes}
    documented = script if DOCUMENTED in whys else _as_documented(script, tree, report)
    if documented is not script or REQUIRED in whys:
        return documented
    return _with_required(script)


def as_asked(script: Script, tree: Tree, failure: Failure | None, report: str = "") -> Script:
    """A program that ended with words of its own about an option which it was not given, as the
    README starts it; the very script where it says nothing of one.
    """
    last = failure.innermost if failure is not None else None
    if failure is None or last is None or last.package or not _REFUSAL.match(last.code):
        return script
    own_words = {word.partition("=")[0] for word in script.command}
    names = _OPTION.findall(failure.message[:_MOST_MESSAGE])
    declared_names = [name for name in names if re.search(rf"[\"']{name}[\"']", script.source)]
    return _as_documented(script, tree, report) if set(declared_names) - own_words else script


def _as_documented(script: Script, tree: Tree, report: str) -> Script:
    names = {word.lower() for word in _NAME.findall(report[:_MOST_README])}
    commands = sorted(_readme_commands(tree), key=lambda command: -_shared(command, names))
    for command in commands:
        scripts = tree_programs.propose((command,), tree)
        if not scripts or scripts[0].entry != script.entry or any(map(_OPEN.search, command.argv)):
            continue
        own = {word.partition("=")[0] for word in script.command[1:] if word.startswith("-")}
        added = _without(scripts[0].command[1:], own)
        if added:
            words = (script.command[0], *added, *script.command[1:])
            return _started(script, words, DOCUMENTED)
    return script


def _shared(command: ShellCommand, names: Set[str]) -> int:
    """How many words of a report the arguments of a command have."""
    text = " ".join(command.argv[1:]).lower()
    return sum(name in text for name in names)


def _readme_commands(tree: Tree) -> Iterator[ShellCommand]:
    """The commands of the READMEs, those nearest to the root first."""
    paths = (path for path in tree if _README.fullmatch(PurePosixPath(path).name))
    for path in sorted(paths, key=lambda path: (path.count("/"), path))[:3]:
        text = _BLANK.sub("{}", tree[path][:_MOST_README].decode("utf-8", "replace"))
        yield from read_commands([_BULLET.sub("", line).rstrip("` ") for line in text.splitlines()])


def _without(words: tuple[str, ...], names: set[str]) -> list[str]:
    """Words without some options and their values."""
    others, is_value = list[str](), False
    for word in words:
        if word.startswith("-"):
            is_value = word.partition("=")[0] in names
        if not is_value:
            others.append(word)
    return others


def _with_required(script: Script) -> Script:
    """A program with the plainest value of each option that its own file requires; the very script
    where one has none.
    """
    command, words = set(script.command), list[str]()
    for call in nodes(module_of(script.source), ast.Call):
        keywords = {one.arg: one.value for one in call.keywords if one.arg}
        if name_of(call.func) != "add_argument" or not _is_true(keywords.get("required")):
            continue
        names = [str(one.value) for one in call.args if isinstance(one, ast.Constant)]
        value = _plainest(keywords.get("choices"), keywords.get("type"))
        if not names or not value:
            return script
        if command.isdisjoint(names):
            words += [max(names, key=len), value]
    return _started(script, (*script.command, *words), REQUIRED) if words else script


def _is_true(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is True


def _plainest(choices: ast.expr | None, kind: ast.expr | None) -> str:
    """The first choice, or the plainest number; "" for a text, which may be any."""
    parts = choices.elts if isinstance(choices, ast.List | ast.Tuple) else []
    if parts and isinstance(parts[0], ast.Constant):
        return str(parts[0].value)
    return _PLAINEST.get(name_of(kind), "") if kind is not None else ""


def _started(script: Script, command: tuple[str, ...], why: str) -> Script:
    fix = ScriptFix(what=f"started as `python {' '.join(command)}`"[:200], why=why)
    return script.model_copy(update={"command": command, "fixes": (*script.fixes, fix)})
