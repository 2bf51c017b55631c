"""Programs as text: their outline and imports, the fixes that make them run, what they need
installed, and the reductions that the minimizer would try first.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain

from benchmarks.truth.inputs import Inputs, Program
from benchmarks.truth.stages.stage import Stage
from benchmarks.truth.stages.training import changed_lines
from bot.models.diagnosis import TrainingProgram
from bot.models.job import EnvironmentOptions
from bot.pipeline.diagnosis import wanted
from bot.rules.code import loops, module_names, outline
from bot.rules.packages import imports as packages
from bot.rules.parsing import tree_of
from bot.rules.reduce import passes
from bot.rules.reduce.search import ReductionPass
from bot.rules.script_fixes import calls, caught, downscale, imports
from bot.rules.signatures import doubts, genuine, staged

_ENTRY = "repro.py"
_MOST_VARIANTS = 12
_FIXES = (
    downscale.to_cpu, downscale.shorten, caught.show_caught, calls.call_entry,
    calls.show_expressions,
)  # fmt: skip


def _texts(inputs: Inputs) -> dict[str, str]:
    programs = inputs.programs.items()
    single = {name: one.files[one.entry].decode() for name, one in programs if len(one.files) == 1}
    return {**inputs.scripts, **single}


def _code(source: str) -> object:
    tree = tree_of(source)
    return {
        "outline": [tuple(segment) for segment in outline.outline(source, _ENTRY)],
        "training": loops.training_score(tree) if tree is not None else None,
        "imported": module_names.imported(source),
        "distributions": list(map(packages.distribution, module_names.imported(source))),
        "undefined": imports.undefined(source),
        "fixes": {fix.__name__: _fixed(fix, source) for fix in _FIXES},
        "doubt": doubts.doubt({_ENTRY: source}),
        "endless": staged.endless(source),
        "own_names": genuine.own_names(source),
    }


def _fixed(fix: Callable[[str], tuple[str, object]], source: str) -> object:
    text, fixes = fix(source)
    return {"lines": changed_lines(source, text), "fixes": fixes} if text != source else None


def _reductions(source: str) -> object:
    files = {_ENTRY: source}
    facts = passes.ProgramFacts(_ENTRY)
    return {make.__name__: _pass(make, files, facts) for make in _PASSES}


_PASSES: tuple[passes.Pass, ...] = (passes.early, passes.coarse, passes.fine)


def _pass(make: passes.Pass, files: dict[str, str], facts: passes.ProgramFacts) -> object:
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
    return wanted.spec(made, EnvironmentOptions())


STAGES = (
    Stage("reductions", _texts, _reductions),
    Stage("code", _texts, _code),
    Stage("environment-of-program", lambda inputs: inputs.programs, _environment),
)
