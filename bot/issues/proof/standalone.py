"""A failing program of a repository becomes a script that fails in the same way without it: what
one traced run executed bounds it, and only runs decide.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Self

from bot.environment.imports import apply
from bot.issues.proof.failure_oracle import FailureTest, FreshRuns
from bot.issues.proof.minimise import STAGE, minimise
from bot.issues.reduce.edits import (
    ParsedFile,
    blocks,
    first_line,
    module_name,
    parsed_files,
    size,
    valid,
)
from bot.issues.reduce.failure_identity import FailureIdentity, identity
from bot.issues.runner import Runner
from bot.issues.signature import copied, data_flow
from bot.kernel import artifacts, launch
from bot.kernel.attempt import (
    Failure,
    FaultCode,
    Judgement,
    Match,
    Reached,
    Reduced,
    Script,
    Step,
)
from bot.kernel.bug import Frame
from bot.kernel.environment import Environment
from bot.kernel.source.syntax import Function, module_of, nodes
from bot.kernel.trees import read_tree

_ENTRIES = ("repro.py", "reprise_script.py", "reprise_main.py")
_MAX_FILE, _MAX_TEXT = 64_000, 1_000_000
_MAX_HEAD = 10_000
"""Bytes of a longer text: its first lines may do."""
_MAX_DEPTH = 8
_MAX_SEEDS = 3
_INSTALLED = ("/site-packages/", "/dist-packages/")
_PYTEST = ("-m", "pytest")
_ABSENT = re.compile(
    r"(?:name|variable) '(\w+)' (?:is not defined|referenced before|where it is not)"
)
_Texts = dict[str, str]


_ARGUMENTS_SHARE = 0.2
"""Of the time, for finding arguments that are not needed: each costs a run of the whole program."""


def minimise_program(
    runner: Runner,
    script: Script,
    environment: Environment,
    reference: FailureIdentity,
    *,
    seeds: tuple[int, ...],
    earlier: Script | None,
    max_tests: int,
    seconds: float,
) -> Reduced:
    """The smallest script found that fails as a program of a repository does, without the
    repository; where there is none, the program with fewer arguments. `lines_before` counts the
    lines that ran. Raises Stopped and SandboxError.
    """
    began, clock = runner.ports.clock(), runner.ports.clock
    runner.say(STAGE, "minimizing: looking for what the program runs")
    test = FailureTest(runner.signature, reference)
    until = began + _ARGUMENTS_SHARE * seconds
    shorter, runs = with_fewer_arguments(runner, script, environment, test, until)
    trace = ProgramTrace.of(runner, shorter, environment)
    judgement = _confirmed(runner, shorter, environment, test)
    alone = (
        standalone(runner, shorter, environment, trace, judgement, seeds, reference.rate)
        if judgement is not None
        else None
    )
    lines = len(trace.lines)
    dropped = len(script.command) - len(shorter.command)
    history = [Step(what="drop arguments", lines=lines, tests=runs, seconds=clock() - began)]
    draft = Reduced(
        before=script, script=shorter, tests=runs, runs=runs, seconds=clock() - began,
        lines_before=lines, lines_after=lines, history=tuple(history if dropped else ()),
        mode="single",
    )  # fmt: skip
    if alone is None:
        return draft
    first = alone.script
    what, elapsed = "leave the repository", clock() - began
    history.append(
        Step(what=what, lines=size(first.files)[0], tests=runs + alone.runs, seconds=elapsed)
    )
    reduced = minimise(
        runner, first, alone.environment, alone.identity,
        seeds=seeds, earlier=_as(first, earlier), max_tests=max_tests, seconds=seconds - elapsed,
    )  # fmt: skip
    return _together(draft, history[not dropped :], reduced, alone.runs)


def _as(first: Script, earlier: Script | None) -> Script | None:
    """The script of an earlier try, with what counts as the repository's code now."""
    if earlier is None or earlier.command:
        return None
    return earlier.model_copy(update={"fault_code": first.fault_code})


def _confirmed(
    runner: Runner, script: Script, environment: Environment, test: FailureTest
) -> Judgement | None:
    """The judgement of a run that showed the failure, one with its stack before others."""
    rows = [row.judgement for row in runner.attempts.of(script, environment)]
    matching = [row for row in rows if row.match is Match.MATCHED and test.shows(row, script)]
    return next((row for row in matching if row.failure and row.failure.frames), None) or next(
        iter(matching), None
    )


def _together(draft: Reduced, history: list[Step], reduced: Reduced, runs: int) -> Reduced:
    """What became of a program, from its command to the script."""
    tests, earlier_s = draft.tests + runs, draft.seconds
    steps = (
        step.model_copy(update={"tests": step.tests + tests, "seconds": step.seconds + earlier_s})
        for step in reduced.history
    )
    update = {
        "before": draft.before,
        "lines_before": draft.lines_before,
        "tests": reduced.tests + tests,
        "runs": reduced.runs + draft.runs + runs,
        "seconds": reduced.seconds + earlier_s,
        "history": (*history, *steps),
    }
    # A long copy of the repository tells a reader less than the command.
    if reduced.ended == "unseen" or reduced.lines_after >= draft.lines_before:
        update |= {"script": draft.script, "lines_after": draft.lines_before}
    return reduced.model_copy(update=update)


# What a run of a program executed, opened and imported of its repository.


@dataclass(frozen=True, slots=True)
class ProgramTrace:
    """The lines that ran, the files and folders that were opened, and the modules with their
    files. Paths are those of the tree.
    """

    lines: Reached = frozenset()
    opened: frozenset[str] = frozenset()
    modules: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, runner: Runner, script: Script, environment: Environment) -> Self:
        """What one more run shows, which is not counted."""
        tree = read_tree(environment.tree)
        run = launch.reached_spec(script, environment, runner.job, runner.signature, ())
        lines, opened, modules = set[tuple[str, int]](), set[str](), dict[str, str]()
        for data in runner.execute(run).artifacts.values():
            row = artifacts.parse_record(artifacts.Reached, data)
            if isinstance(row, artifacts.Reached):
                lines |= {one for one in row.lines if one[0] in tree or one[0] in script.files}
                opened |= set(row.opened)
                modules |= {name: path for name, path in row.modules if _is_module(name, path)}
        return cls(frozenset(lines), frozenset(opened), modules)


def _is_module(name: str, path: str) -> bool:
    is_name = all(part.isidentifier() for part in name.split("."))
    return is_name and path.endswith(".py") and not name.startswith("__m")


# Arguments that the failure does not need.


def with_fewer_arguments(
    runner: Runner, script: Script, environment: Environment, test: FailureTest, until: float
) -> tuple[Script, int]:
    """The program with the shortest command found that still fails, and the number of runs."""
    fresh, best = FreshRuns(runner, environment), script
    fixed = _fixed(script)
    groups = list(_groups(script.command[fixed:]))
    every = [*([groups] if len(groups) > 1 else []), *([group] for group in reversed(groups))]
    dropped = set[int]()
    for attempt in every:
        positions = {fixed + at for group in attempt for at in group}
        if runner.ports.clock() > until or positions <= dropped:
            continue
        words = tuple(
            word for at, word in enumerate(script.command) if at not in positions | dropped
        )
        shorter = script.model_copy(update={"command": words})
        if fresh.fails(shorter, test, final=False):
            best, dropped = shorter, dropped | positions
    return best, fresh.count


def _fixed(script: Script) -> int:
    """How many words name what is started."""
    if script.command[:2] == _PYTEST:
        return len(script.command)
    return 2 if script.command[0] == "-m" else 1


def _groups(words: tuple[str, ...]) -> Iterator[list[int]]:
    """The places of each option with its values, and of each other word."""
    group = list[int]()
    for at, word in enumerate(words):
        if group and not word.startswith("-") and words[group[0]].startswith("-"):
            group.append(at)
            continue
        if group:
            yield group
        group = [at]
    if group:
        yield group


# The files that ran, laid out as they are imported.


def without_tree(environment: Environment) -> Environment:
    """The same environment without the clone: nothing of the repository can be imported."""
    tree = environment.tree
    paths = environment.variables.get("PYTHONPATH", "").split(":")
    rest = ":".join(path for path in paths if not f"{path}/".startswith(f"{tree}/"))
    variables = {k: v for k, v in environment.variables.items() if k != "PYTHONPATH"}
    variables |= {"PYTHONPATH": rest} if rest else {}
    mounts = tuple(path for path in environment.mounts if path != tree)
    changes = {"mounts": mounts, "variables": variables, "tree": "", "commit": ""}
    return environment.model_copy(update=changes)


def layouts(
    script: Script, tree: Mapping[str, bytes], trace: ProgramTrace, code: FaultCode | None
) -> Iterator[Script]:
    """Scripts of the files that ran, the likeliest first: with the functions that were never
    entered empty, whole, and with all small texts of the repository beside.
    """
    digests = set[str]()
    for stubs, whole in ((True, False), (False, False), (True, True)):
        files = _files(script, tree, trace, stubs=stubs, whole=whole)
        if files is None:
            return
        entry, texts = files
        update = {"files": texts, "entry": entry, "command": (), "folder": "", "fault_code": code}
        standalone = script.model_copy(update=update)
        if standalone.digest not in digests:
            digests.add(standalone.digest)
            yield standalone


def _files(
    script: Script, tree: Mapping[str, bytes], trace: ProgramTrace, *, stubs: bool, whole: bool
) -> tuple[str, _Texts] | None:
    texts = {**_sources(tree), **script.files}
    rows = list(_places(script, texts, trace))
    entry = next((name for name in _ENTRIES if name not in dict(rows)), "")
    if not entry:
        return None
    result = _Texts()
    for place, path in [*rows, (entry, script.entry)]:
        lines = {line for file, line in trace.lines if file == path}
        text = _pruned(path, texts[path], lines) if stubs and lines else texts[path]
        package = _package(script) if place == entry else _package_of(place)
        result[place] = _absolute(place, text, package)
    result = {path: _resolved(path, text, result) for path, text in result.items()}
    main = _started(script, result[entry])
    if main is None:
        return None
    return entry, {**_data(script, tree, trace, whole=whole), **result, entry: main}


def _places(script: Script, texts: _Texts, trace: ProgramTrace) -> Iterator[tuple[str, str]]:
    """Where each file that ran lies in the script, by the name under which it was imported."""
    files = set[str]()
    for name, path in trace.modules.items():
        if texts.get(path):
            files.add(path)
            yield _place_of(name, path), path
    for path in sorted({path for path, _ in trace.lines if texts.get(path)} - files):
        if path != script.entry:
            yield _nearest(script, path), path


def _decoded(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return ""


def _nearest(script: Script, path: str) -> str:
    """A path as seen from the folder of the entry, where it lies below that."""
    folder = PurePosixPath(script.entry).parent.as_posix()
    return path.removeprefix(f"{folder}/")


def _place_of(name: str, path: str) -> str:
    end = "/__init__.py" if path.endswith("__init__.py") else ".py"
    return name.replace(".", "/") + end


def _package_of(place: str) -> str:
    name = module_name(place)
    return name if place.endswith("__init__.py") else name.rpartition(".")[0]


def _package(script: Script) -> str:
    """The package of the entry: only what `-m` starts has one."""
    if script.command[0] != "-m" or script.command[:2] == _PYTEST:
        return ""
    name = script.command[1]
    return name if script.entry.endswith("__main__.py") else name.rpartition(".")[0]


def _data(script: Script, tree: Mapping[str, bytes], trace: ProgramTrace, *, whole: bool) -> _Texts:
    """The small texts that were opened, wherever a program looks for them: from the folder that it
    is started in, or from that of its own file.
    """
    folders = ("", script.folder, PurePosixPath(script.entry).parent.as_posix(), "src")
    opened, result, room = trace.opened, _Texts(), _MAX_TEXT
    own = {path: text.encode("utf-8", "replace") for path, text in script.files.items()}
    ran = {path for path, _ in trace.lines}
    for path, data in {**tree, **own}.items():
        is_listed = f"{PurePosixPath(path).parent.as_posix()}/" in opened
        is_opened = path in opened or (is_listed and _is_small_text(path, data))
        if path in ran or not (is_opened or (whole and _is_small_text(path, data))):
            continue
        text = _decoded(data if len(data) <= _MAX_FILE else data[:_MAX_HEAD].rpartition(b"\n")[0])
        room -= len(text)
        if not text or room < 0 or "\0" in text:
            continue
        for folder in folders:
            inside = path.removeprefix(f"{folder}/") if folder not in {"", "."} else path
            if not inside.startswith("."):
                result[inside] = text
    return result


def _is_small_text(path: str, data: bytes) -> bool:
    return len(data) <= _MAX_FILE and not path.endswith(".py")


def _pruned(path: str, source: str, ran: set[int]) -> str:
    """A file without the statements that did not run; functions that were not entered are empty."""
    file = _parsed({path: source})
    if file is None:
        return source
    edits = list(_prunes(file, file.tree.body, ran))
    new = apply(source, edits)
    return new if valid(path, new) else source


def _prunes(
    file: ParsedFile, body: list[ast.stmt], ran: set[int]
) -> Iterator[tuple[int, int, str]]:
    idle = [one for one in body if _is_idle(one, ran)]
    for statement in body:
        last = statement.end_lineno or statement.lineno
        if isinstance(statement, Function) and not _ran(statement.body, ran):
            yield from _emptied(file, statement)
        elif statement in idle:
            first = len(idle) == len(body) and statement is body[0]
            filler = " " * statement.col_offset + "pass\n" if first else ""
            own = file.source[file.offset(statement.lineno, 0) : file.span(statement)[0]]
            if not own.strip() and (filler or body[0].lineno != last):
                yield (*file.whole_lines(statement), filler)
        else:
            for inner in blocks(statement):
                yield from _prunes(file, inner, ran)


def _is_idle(statement: ast.stmt, ran: set[int]) -> bool:
    if isinstance(statement, ast.Global | ast.Nonlocal | ast.Pass | Function):
        return False
    last = statement.end_lineno or statement.lineno
    first = first_line(statement)
    return ran.isdisjoint(range(first, last + 1))


def _ran(body: list[ast.stmt], ran: set[int]) -> bool:
    lines = range(body[0].lineno, (body[-1].end_lineno or body[-1].lineno) + 1)
    return not ran.isdisjoint(lines)


def _emptied(file: ParsedFile, function: ast.stmt) -> Iterator[tuple[int, int, str]]:
    body: list[ast.stmt] = getattr(function, "body", [])
    start = file.whole_lines(body[0])[0]
    if body[0].lineno > function.lineno and not isinstance(body[0], ast.Pass):
        own = file.source[file.offset(body[0].lineno, 0) : file.span(body[0])[0]]
        if not own.strip():
            yield start, file.whole_lines(body[-1])[1], " " * body[0].col_offset + "pass\n"


# Imports within the repository: by full names, and from where a name is defined.


def _parsed(files: _Texts) -> ParsedFile | None:
    return next(iter(parsed_files(files)), None)


def _absolute(path: str, source: str, package: str) -> str:
    """A file whose imports are no longer relative to its package."""
    file = _parsed({path: source})
    if file is None:
        return source
    edits = []
    for node in nodes(file.tree, ast.ImportFrom):
        parts = package.split(".") if package else []
        if not node.level or node.level - 1 > len(parts):
            continue
        above = ".".join(parts[: len(parts) - node.level + 1])
        module = ".".join(filter(None, (above, node.module)))
        if module:
            text = ast.unparse(ast.ImportFrom(module=module, names=node.names, level=0))
            edits.append((*file.span(node), text))
    return apply(source, edits)


def _resolved(path: str, source: str, files: _Texts) -> str:
    """A file that imports each name from the module that defines it, not from one between."""
    file = _parsed({path: source})
    if file is None:
        return source
    own = {module_name(name): name for name in files}
    edits = []
    for node in nodes(file.tree, ast.ImportFrom):
        whole = file.source[file.offset(node.lineno, 0) : file.span(node)[0]]
        if node.level or node.module not in own or whole.strip():
            continue
        rows = dict[str, list[ast.alias]]()
        for alias in node.names:
            module, name = _origin(node.module, alias.name, own, files)
            rows.setdefault(module, []).append(
                ast.alias(name, alias.asname or (alias.name if alias.name != name else None))
            )
        texts = [ast.unparse(ast.ImportFrom(module, names, 0)) for module, names in rows.items()]
        if list(rows) != [node.module]:
            edits.append((*file.span(node), f"\n{whole}".join(texts)))
    return apply(source, edits)


def _origin(module: str, name: str, own: dict[str, str], files: _Texts) -> tuple[str, str]:
    """The module of the program that defines a name which another one passes on."""
    for _ in range(_MAX_DEPTH):
        if f"{module}.{name}" in own:
            break
        following = _passed_on(files[own[module]], name)
        if following is None or following[0] not in own:
            break
        module, name = following
    return module, name


def _passed_on(source: str, name: str) -> tuple[str, str] | None:
    file = _parsed({"module.py": source})
    for node in file.tree.body if file is not None else ():
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    return node.module, alias.name
    return None


def _started(script: Script, source: str) -> str | None:
    """The entry with its arguments, or with a call of its test; None where that needs fixtures."""
    file = _parsed({"entry.py": source})
    if file is None:
        return None
    if script.command[:2] == _PYTEST:
        call = _test_call(script, file)
        return f"{source.rstrip()}\n\n{call}\n" if call else None
    words = script.command[_fixed(script) :]
    if not words:
        return source
    future = [node for node in nodes(file.tree, ast.ImportFrom) if node.module == "__future__"]
    start = max((file.whole_lines(node)[1] for node in future), default=0)
    first = file.tree.body[0] if file.tree.body else None
    if not start and first is not None and ast.get_docstring(file.tree):
        start = file.whole_lines(first)[1]
    head = f"import sys\nsys.argv = {[_ENTRIES[0], *words]!r}\n"
    return source[:start] + head + source[start:]


def _test_call(script: Script, file: ParsedFile) -> str:
    names = next((word.split("::")[1:] for word in script.command if "::" in word), [])
    if not names or any("[" in name for name in names):
        return ""
    functions = [node for node in nodes(file.tree, ast.FunctionDef) if node.name == names[-1]]
    most = len(names) - 1  # a method has its object
    plain = len(functions) == 1 and len(functions[0].args.args) == most
    return f"{''.join(f'{name}().' for name in names[:-1])}{names[-1]}()" if plain else ""


# The failure: the same one, and the repository's code that raises it.


@dataclass(frozen=True, slots=True)
class Standalone:
    """A script without the repository, where it runs, what it must show, and what it took."""

    script: Script
    environment: Environment
    identity: FailureIdentity
    runs: int


def standalone(
    runner: Runner,
    script: Script,
    environment: Environment,
    trace: ProgramTrace,
    reference: Judgement,
    seeds: tuple[int, ...],
    rate: float,
) -> Standalone | None:
    """The files that ran as a script that fails as the program did, confirmed by a run; None where
    none does.
    """
    tree, here, runs = read_tree(environment.tree), without_tree(environment), 0
    if _is_of_absence(reference.failure, {**_sources(tree), **script.files}, trace):
        return None
    code = _fault_code(script, tree, trace, reference.failure)
    for candidate in layouts(script, tree, trace, code):
        if code is not None and not copied.is_contained(candidate):
            continue
        for seed in (seeds or (runner.job.limits.seed,))[: 1 if rate == 1.0 else _MAX_SEEDS]:
            run = runner.run(candidate, here, seed, "minimize", "without the repository")
            runs += 1
            if run.match is Match.MATCHED and _is_same(reference, run.judgement, candidate):
                return Standalone(candidate, here, identity(run.judgement, candidate, rate), runs)
    return None


def _sources(tree: Mapping[str, bytes]) -> _Texts:
    return {path: _decoded(data) for path, data in tree.items() if path.endswith(".py")}


def _is_of_absence(failure: Failure | None, sources: _Texts, trace: ProgramTrace) -> bool:
    """Whether a failure is about a name that the program itself binds, elsewhere: any program that
    leaves the binding out fails in the same words.
    """
    match = _ABSENT.search(failure.message) if failure is not None else None
    if match is None:
        return False
    trees = [module_of(sources.get(path, "")) for path in {path for path, _ in trace.lines}]
    return any(match[1] in data_flow.names_in(tree, ast.Store) for tree in trees)


def _is_same(reference: Judgement, judgement: Judgement, script: Script) -> bool:
    """Whether both runs show one failure: its class, its words, and the way to it."""
    one, other = (identity(row, script) for row in (reference, judgement))
    alike = (one.member, one.exception, one.words, one.shapes) == (
        (other.member, other.exception, other.words, other.shapes)
    )
    if reference.failure is None or judgement.failure is None:
        return alike and reference.failure is judgement.failure and one.evidence == other.evidence
    way, same = (_way(row.failure) for row in (reference, judgement) if row.failure is not None)
    return alike and same[-len(way) :] == way if way else alike


def _way(failure: Failure) -> list[tuple[str, str]]:
    """The functions from the program's own first one on, and the code of the last."""
    frames = [frame for frame in failure.frames if frame.package != "<stdlib>"]
    first = next((at for at, frame in enumerate(frames) if not _is_installed(frame)), 0)
    rows = [frame.function.rsplit(".", 1)[-1] for frame in frames[first:]]
    return [*((name, "") for name in rows[:-1]), *((name, frames[-1].code) for name in rows[-1:])]


def _is_installed(frame: Frame) -> bool:
    return any(part in frame.path for part in _INSTALLED)


def _fault_code(
    script: Script, tree: Mapping[str, bytes], trace: ProgramTrace, failure: Failure | None
) -> FaultCode | None:
    """The repository's code that raised, where the innermost frame lies in the repository."""
    frames = failure.frames if failure is not None else ()
    last = next((frame for frame in reversed(frames) if frame.package != "<stdlib>"), None)
    if last is None or last.line is None or _is_installed(last):
        return None
    ends = [path for path in tree if f"/{last.path}".endswith(f"/{path}")]
    for path in sorted(ends, key=len, reverse=True):
        source = script.files.get(path, _decoded(tree[path]))
        rows = source.splitlines()
        if last.line <= len(rows) and rows[last.line - 1].strip()[:500] == last.code.strip():
            ran = frozenset(line for file, line in trace.lines if file == path)
            return copied.fault_code(last.module_path or path, source, last.line, ran)
    return None
