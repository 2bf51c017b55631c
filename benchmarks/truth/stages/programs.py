"""Programs as text: their outline and imports, the fixes that make them run, what they need
installed, and the reductions that the minimizer would try first.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain

from benchmarks.truth.inputs import Inputs, Program
from benchmarks.truth.stages.stage import Stage
from benchmarks.truth.stages.training import changed_lines
from bot.environment import imports, imports as environment_imports, provided
from bot.issues import script_fixes
from bot.issues.reduce import search
from bot.issues.reduce.search import ReductionPass
from bot.issues.signature import data_flow, staged, staged as signature_staged
from bot.kernel.job import EnvironmentOptions
from bot.kernel.source import outline, symbols, training_loops
from bot.kernel.source.syntax import tree_of
from bot.kernel.training_types import TrainingProgram

_ENTRY = "repro.py"
_MOST_VARIANTS = 12
_FIXES = (
    script_fixes.to_cpu, script_fixes.shorten, script_fixes.show_caught, script_fixes.call_entry,
    script_fixes.show_expressions,
)  # fmt: skip


def _texts(inputs: Inputs) -> dict[str, str]:
    programs = inputs.programs.items()
    single = {name: one.files[one.entry].decode() for name, one in programs if len(one.files) == 1}
    return {**inputs.scripts, **single}


def _code(source: str) -> object:
    tree = tree_of(source)
    return {
        "outline": [tuple(segment) for segment in outline.outline(source, _ENTRY)],
        "training": training_loops.training_score(tree) if tree is not None else None,
        "imported": symbols.imported_modules(source),
        "distributions": list(
            map(environment_imports.distribution, symbols.imported_modules(source))
        ),
        "undefined": imports.undefined(source),
        "fixes": {fix.__name__: _fixed(fix, source) for fix in _FIXES},
        "doubt": data_flow.doubt({_ENTRY: source}),
        "endless": staged.endless(source),
        "own_names": signature_staged.own_names(source),
    }


def _fixed(fix: Callable[[str], tuple[str, object]], source: str) -> object:
    text, fixes = fix(source)
    return {"lines": changed_lines(source, text), "fixes": fixes} if text != source else None


def _reductions(source: str) -> object:
    files = {_ENTRY: source}
    facts = search.ProgramFacts(_ENTRY)
    return {make.__name__: _pass(make, files, facts) for make in _PASSES}


_PASSES: tuple[search.Pass, ...] = (search.early, search.coarse, search.fine)


def _pass(make: search.Pass, files: dict[str, str], facts: search.ProgramFacts) -> object:
    groups = make(files, facts)
    nodes = [node.reduction.what for node in chain.from_iterable(groups)]
    variants = ReductionPass.over(files, groups).propose(_MOST_VARIANTS)
    first = [
        {"what": one.what, "lines": changed_lines(files[_ENTRY], one.files.get(_ENTRY, ""))}
        for one in variants[:_MOST_VARIANTS]
    ]
    return {"groups": len(groups), "reductions": nodes, "first": first}


def _environment(program: Program) -> object:
    made = TrainingProgram(
        files=dict(program.files), entry=program.entry, arguments=program.arguments
    )
    return provided.spec(made, EnvironmentOptions())


STAGES = (
    Stage("reductions", _texts, _reductions),
    Stage("code", _texts, _code),
    Stage("environment-of-program", lambda inputs: inputs.programs, _environment),
)
