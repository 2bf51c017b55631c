"""A training of a repository that learns too little becomes one script without the repository: the
code that ran, merged. Nothing that ran is taken out, or the training would fail for another reason.
"""

import ast
from collections.abc import Iterator, Mapping

from bot.issues.proof.failure_oracle import PURPOSE
from bot.issues.proof.minimise import STAGE
from bot.issues.proof.standalone import ProgramTrace, layouts, without_tree
from bot.issues.reduce import inline, statements
from bot.issues.reduce.edits import apply_reductions, parsed_files, size
from bot.issues.runner import Runner
from bot.kernel.attempt import Match, Reduced, Script, Step
from bot.kernel.environment import Environment
from bot.kernel.trees import read_tree

_MOST_LINES = 150
"""A longer copy of the repository tells a reader less than its command."""
_SEEDS = 2
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_MERGED = "leave the repository"


def merge_training(
    runner: Runner, script: Script, environment: Environment, seeds: tuple[int, ...]
) -> Reduced:
    """The script of what a training ran, confirmed by runs under seeds for which the training
    failed; the training itself where none is short enough or fails as it does. Raises Stopped and
    SandboxError.
    """
    began, clock = runner.ports.clock(), runner.ports.clock
    runner.say(STAGE, "minimizing: looking for what the training runs")
    trace = ProgramTrace.of(runner, script, environment)
    lines, here, runs = len(trace.lines), without_tree(environment), 0
    for candidate in _candidates(script, read_tree(environment.tree), trace):
        for seed in seeds[:_SEEDS]:
            run = runner.run(candidate, here, seed, PURPOSE, "without the repository")
            runs += 1
            if run.match is not Match.MATCHED:
                break
        else:
            return _reduced(script, candidate, lines, runs, clock() - began)
    return _reduced(script, script, lines, runs, clock() - began)


def _candidates(script: Script, tree: Mapping[str, bytes], trace: ProgramTrace) -> Iterator[Script]:
    """Scripts of the files that ran, each merged as far as it goes, then as the files lie."""
    digests = set[str]()
    for layout in layouts(script, tree, trace, None):
        merged = _merged(layout.files, layout.entry)
        for files in (*([] if _binds_twice(merged) else [merged]), dict(layout.files)):
            candidate = layout.model_copy(update={"files": files})
            if candidate.digest not in digests and _code_lines(files) <= _MOST_LINES:
                digests.add(candidate.digest)
                yield candidate


def _merged(files: Mapping[str, str], entry: str) -> dict[str, str]:
    """The files with each module in the one that imports it, without comments."""
    merged = apply_reductions(files, statements.comments(files)) or dict(files)
    merged = inline.without_idle_modules(merged, entry)
    while True:
        edits = inline.modules(parsed_files(merged), entry)
        smaller = next(filter(None, (apply_reductions(merged, [edit]) for edit in edits)), None)
        if smaller is None:
            break
        merged = smaller
    empty = {path for path, text in merged.items() if path.endswith(".py") and not text.strip()}
    return statements.format_files({p: text for p, text in merged.items() if p not in empty})


def _binds_twice(files: Mapping[str, str]) -> bool:
    """Whether merged modules define one name twice: one of them would take the other's place."""
    for file in parsed_files(files):
        names = [node.name for node in file.tree.body if isinstance(node, _DEFINITIONS)]
        if len(set(names)) < len(names):
            return True
    return False


def _code_lines(files: Mapping[str, str]) -> int:
    return size({path: text for path, text in files.items() if path.endswith(".py")})[0]


def _reduced(before: Script, script: Script, ran: int, runs: int, seconds: float) -> Reduced:
    after = ran if script is before else _code_lines(script.files)
    step = Step(what=_MERGED, lines=after, tests=runs, seconds=seconds)
    return Reduced(
        before=before, script=script, tests=runs, runs=runs, seconds=seconds, lines_before=ran,
        lines_after=after, history=() if script is before else (step,), mode="single",
    )  # fmt: skip
