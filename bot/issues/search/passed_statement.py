"""An error that the code of a repository alone decides, and a program that goes past the statement
of which the report tells it: whatever ends the program later, that error does not arise there.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from bot.issues import confirm
from bot.issues.observe import flatten
from bot.issues.runner import Runner
from bot.issues.search import reported_statement
from bot.kernel import launch
from bot.kernel.attempt import Script
from bot.kernel.bug import BugReport, CrashSignature, members_of
from bot.kernel.commands import STATEMENT
from bot.kernel.report import AnyVerdict, NotReproduced, Reproduced
from bot.kernel.session import SearchResult
from bot.kernel.source import symbols
from bot.kernel.source.syntax import source_lines
from bot.kernel.statistics import interval
from bot.kernel.tree_programs import GUESSED, reachable
from bot.kernel.trees import Tree, read_tree, tree_files

_SYNTAX = frozenset(("SyntaxError", "IndentationError", "TabError"))
_IMPORT = frozenset(("ImportError", "ModuleNotFoundError"))
_UNDEFINED = re.compile(r"^(?:global )?name '\w{1,100}' is not defined")
_PYTHON_2 = re.compile(r"^no module named [\w.]{1,200}\W?$", re.IGNORECASE)
"""Later Pythons put the name in quotation marks."""


@dataclass(frozen=True, slots=True)
class _Statement:
    """The lines of a file that have the reported code; without one, all of them."""

    path: str
    code: str
    lines: frozenset[int]


def if_passed(runner: Runner, result: SearchResult, verdict: AnyVerdict) -> AnyVerdict:
    """The verdict, or that the report is not reproduced where a run of the program goes past its
    statement.
    """
    environment, script = result.environment, result.script
    if isinstance(verdict, NotReproduced | Reproduced) or not (script.command and environment.tree):
        return verdict
    members = members_of(runner.signature)
    member = members[0] if len(members) == 1 else None
    tree = read_tree(environment.tree)
    if not isinstance(member, CrashSignature):
        return verdict
    statement = next(_statements(runner.bug, member, script, tree), None)
    if statement is None or not _is_passed(runner, result, statement):
        return verdict
    where = f"`{statement.code[:80]}`" if statement.code else f"`{statement.path}`"
    runs = sum(
        one.script == script.digest and one.environment == environment.id for one in runner.attempts
    )
    reason = f"the program goes past {where} with Python {environment.python}{_remark(member)}"
    after = f"what ended it later is not what the bug report describes: {verdict.reason}"
    return NotReproduced(
        runs=runs,
        failures=0,
        interval=interval(0, runs),
        reason=reason,
        checked=(reason, after),
        versions_tried=(confirm.versions(environment),),
    )


def _remark(member: CrashSignature) -> str:
    if _PYTHON_2.match(member.message):
        return "; the reported message is in the words of Python 2"
    name = member.exception.rpartition(".")[2]
    return "; an older Python may be unable to read that file" if name in _SYNTAX else ""


def _statements(
    bug: BugReport, member: CrashSignature, script: Script, tree: Tree
) -> Iterator[_Statement]:
    """The statement that raises the error by the report, where code alone decides that it does: of
    a name, of a module of the tree or of Python's own, of the grammar.
    """
    name = member.exception.rpartition(".")[2]
    is_import = name in _IMPORT
    if not (
        is_import or name in _SYNTAX or (name == "NameError" and _UNDEFINED.match(member.message))
    ):
        return
    whys = {fix.why for fix in script.fixes}
    if reported_statement.ALONE in whys:
        return
    for code, paths in _codes(bug, script, tree):
        for path in paths:
            text = script.files.get(path) or tree.get(path, b"").decode("utf-8", "replace")
            rows = [at for at, row in enumerate(source_lines(text), 1) if _plain(row) == code]
            if not code or not rows or (is_import and not _is_known(code, script, tree)):
                continue
            if name in _SYNTAX:
                every = frozenset(range(1, text.count("\n") + 2))
                yield _Statement(path, "", every)
                return
            # Other arguments than the reporter's may not enter a block.
            is_inside = source_lines(text)[rows[0] - 1][:1].isspace()
            if not (is_inside and GUESSED in whys):
                yield _Statement(path, code, frozenset(rows))


def _codes(bug: BugReport, script: Script, tree: Tree) -> Iterator[tuple[str, list[str]]]:
    """The code of the report's innermost frames, and of the imports that it names, each with the
    files that may have it.
    """
    files = {**tree, **{path: text.encode() for path, text in script.files.items()}}
    reachable_files = [*reachable([script.entry], files)]
    for row in bug.tracebacks:
        for frame in [one for one in row.frames if one.code.strip()][-1:]:
            yield _plain(frame.code), tree_files(frame, tree) if frame.path else reachable_files
    for command in bug.named_programs:
        if command.argv[0] == STATEMENT:
            yield _plain(command.argv[1]), reachable_files


def _plain(text: str) -> str:
    return " ".join(text.split())


def _is_known(code: str, script: Script, tree: Tree) -> bool:
    """Whether an import asks for a module that Python brings, or for one of the tree, which the
    program finds without help of ours.
    """
    tops = {name.partition(".")[0] for name in symbols.imported_modules(code)}
    own = {part.removesuffix(".py") for one in tree for part in one.split("/")}
    added = any(path not in tree for path in script.edited if path != script.entry)
    has_help = added or launch.SEARCH_PATH in script.variables
    return not tops or (tops <= own and not has_help)


def _is_passed(runner: Runner, result: SearchResult, statement: _Statement) -> bool:
    """Whether a run executes a statement and does not end there."""
    failure = result.judgement.failure
    frames = (frame for one in flatten((failure,)) for frame in one.frames) if failure else ()
    if statement.code and any(
        f"/{frame.path}".endswith(f"/{statement.path}") and _plain(frame.code) == statement.code
        for frame in frames
    ):
        return False
    runner.say("confirm", f"checking whether a run gets past the reported line of {statement.path}")
    run = runner.execute(
        launch.reached_spec(result.script, result.environment, runner.job, runner.signature, ())
    )
    _, lines = confirm.functions_reached(run, statement.path)
    return bool(lines & statement.lines)
