"""Runs a program and fixes setup failures: a missing requirement or import, a missing GPU, too many
iterations.
"""

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

from packaging.utils import canonicalize_name
from packaging.version import Version

from bot.environment import imports, library_names, package_names, specify, versions
from bot.environment.imports import distribution
from bot.environment.setup_failures import FILE_RULES
from bot.issues import missing_inputs, script_fixes
from bot.issues.runner import Runner
from bot.issues.search import (
    missing_weights,
    own_modules,
    program_options,
    reported_statement,
    required_options,
    stand_ins,
    standard_data,
)
from bot.kernel import artifacts, launch, tree_programs
from bot.kernel.attempt import Failure, Judgement, Match, Script, SetupFailure
from bot.kernel.bug import CrashSignature, HangSignature, ScriptFix, TrainingSignature, members_of
from bot.kernel.commands import PYTEST
from bot.kernel.environment import (
    Environment,
    EnvironmentSpec,
    LibraryName,
    PinSource,
    Requirement,
)
from bot.kernel.errors import BuildError
from bot.kernel.session import CompletedRun, SearchResult
from bot.kernel.source import symbols
from bot.kernel.source.syntax import module_of, name_of, nodes
from bot.kernel.trees import Tree, read_tree, tree_files

_PARTS = (
    "",
    ".nn",
    ".data",
    ".utils",
    ".layers",
    ".models",
    ".transforms",
    ".optim",
    ".callbacks",
    ".loader",
    ".functional",
)
MOST_FIXES = 5
_MOST_COMMAND_FIXES = 12
"""A program of a repository has more to get past than a snippet has."""


@dataclass(frozen=True, slots=True)
class Fix:
    """What to run next in place of what failed to start, and a phrase on what is different."""

    spec: EnvironmentSpec
    script: Script
    change: str


def run(
    runner: Runner, spec: EnvironmentSpec, script: Script, change: str, doing: str = ""
) -> SearchResult:
    """Run a program once, and get past what the environment lacks, as long as there is a way; where
    it then still does not get to the reported statement, that alone.
    """
    result = _run(runner, spec, script, change, doing)
    whys = {fix.why for fix in result.script.fixes}
    is_guess = tree_programs.GUESSED in whys and result.judgement.match is Match.PASSED
    is_open = is_guess or result.judgement.match not in {Match.MATCHED, Match.PASSED}
    if reported_statement.ALONE in whys or not is_open:
        return result
    bug, signature = runner.bug, runner.signature
    if script.command:
        tree = read_tree(result.environment.tree)
        alone = reported_statement.run_alone(bug, runner.job.issue, signature, tree, result.script)
    else:
        alone = reported_statement.run_snippet_alone(bug, signature, result.script)
    if alone is None:
        return result
    reached = _run(runner, result.spec, alone, alone.fixes[-1].what)
    return reached if reached.judgement.match is Match.MATCHED else result


def _run(
    runner: Runner, spec: EnvironmentSpec, script: Script, change: str, doing: str = ""
) -> SearchResult:
    environment, seed = runner.build(spec), runner.job.limits.seed
    with runner.stage("search", doing or change):
        completed = runner.run(script, environment, seed, "search", change)
    for _ in range(_MOST_COMMAND_FIXES if script.command else MOST_FIXES):
        fix = next_fix(runner, spec, environment, script, completed)
        if fix is None:
            break
        others = _without_module(runner, spec, environment, script, completed.judgement)
        next_run = _first_built(runner, chain([fix], others))
        if next_run is None:
            break
        fix, environment = next_run
        spec, script = fix.spec, fix.script
        with runner.stage("search", fix.change):
            completed = runner.run(script, environment, seed, "search", fix.change)
    return SearchResult(script, spec, environment, completed)


def _first_built(runner: Runner, fixes: Iterable[Fix]) -> tuple[Fix, Environment] | None:
    for fix in fixes:
        try:
            return fix, runner.build(fix.spec)
        except BuildError as error:
            runner.note(f"{fix.change}: {error}")
    return None


def next_fix(
    runner: Runner,
    spec: EnvironmentSpec,
    environment: Environment,
    script: Script,
    run: CompletedRun,
) -> Fix | None:
    """The next thing to try with this program; None when nothing helps, or nothing has to."""
    failure = run.judgement.setup_failure
    if run.match is Match.MATCHED:
        return None
    if run.match is Match.UNDECIDED:
        ended_by_clock = run.attempt.execution.timed_out
        return _shorter(runner, spec, environment, script) if ended_by_clock else None
    if script.command and (fix := _of_command(runner, spec, environment, script, run.judgement)):
        return fix
    if failure is None:
        return _with_submodule(runner, spec, environment, script, run.judgement) or _beside_jax(
            runner, spec, environment, script, run.judgement
        )
    if failure.module or failure.requirement:
        text = failure.requirement
        if text.startswith("["):
            text = _extended(runner, spec, run.judgement) + text
        fix = _install(runner, spec, environment, script, (failure.module, text))
        return fix or next(_without_module(runner, spec, environment, script, run.judgement), None)
    return _in_program(runner, spec, environment, script, failure)


def _of_command(
    runner: Runner,
    spec: EnvironmentSpec,
    environment: Environment,
    script: Script,
    judgement: Judgement,
) -> Fix | None:
    """What helps a program of a repository: other options, the CPU, another release."""
    if (earlier := _before_refusal(runner, script, judgement)) is not None:
        return _without_options(runner, spec, environment, earlier, script)
    failure, tree = judgement.setup_failure, read_tree(environment.tree)
    if failure is not None and failure.id in FILE_RULES:
        if (fixed := _with_steps(runner, script, tree)) is not script:
            return Fix(spec, fixed, fixed.fixes[-1].what)
        if (fix := _with_folder(spec, environment, script, judgement)) is not None:
            return fix
    if failure is not None and (failure.id in FILE_RULES or failure.id == "offline"):
        return _without_weights(runner, spec, environment, script, judgement)
    if failure is not None and failure.id == "arguments":
        fixed = required_options.with_arguments(script, tree, _text_of(runner))
        return Fix(spec, fixed, fixed.fixes[-1].what) if fixed is not script else None
    home = package_names.import_home(runner.job.issue.repository)
    fixed = own_modules.with_module(script, tree, judgement, home)
    if fixed is script:
        fixed = required_options.as_asked(script, tree, judgement.failure, _text_of(runner))
    if fixed is not script:
        return Fix(spec, fixed, fixed.fixes[-1].what)
    if _lacks_gpu(judgement):
        return _without_gpu(spec, environment, script, judgement)
    return _with_name(runner, spec, environment, script, judgement) or _for_python(
        runner, spec, environment, script, judgement
    )


def _with_steps(runner: Runner, script: Script, tree: Tree) -> Script:
    """The program after the commands that the report starts before it; the very script where it
    has none, or they were run.
    """
    command = next((row for row in runner.bug.commands if row.argv == script.command), None)
    if command is None or script.steps:
        return script
    rows = (
        tree_programs.propose((command.model_copy(update={"argv": argv, "before": ()}),), tree)
        for argv in command.before
    )
    steps = tuple(row[0].command for row in rows if row and row[0].folder == script.folder)
    if not steps:
        return script
    names = ", ".join(f"`python {' '.join(step)}`" for step in steps)
    fix = ScriptFix(what=f"ran {names} before it"[:200], why="the bug report starts them first")
    return script.model_copy(update={"steps": steps, "fixes": (*script.fixes, fix)})


def _without_weights(
    runner: Runner,
    spec: EnvironmentSpec,
    environment: Environment,
    script: Script,
    judgement: Judgement,
) -> Fix | None:
    """The program without the trained weights that it could not load."""
    members = members_of(runner.signature)
    if judgement.failure is None or not missing_weights.may_be_left_out(runner.bug, members):
        return None
    tree, present = read_tree(environment.tree), environment.operator_files.weights
    fixed = missing_weights.without_weights(script, tree, judgement.failure, present)
    return Fix(spec, fixed, fixed.fixes[-1].what) if fixed is not script else None


def _with_folder(
    spec: EnvironmentSpec, environment: Environment, script: Script, judgement: Judgement
) -> Fix | None:
    """The program with the empty folder that it writes to and that git does not keep."""
    path = missing_inputs.folder_to_write(judgement, script, environment)
    if not path:
        return None
    name = f"{path}/.keep"
    fix = ScriptFix(what=f"made the folder `{path}`"[:200], why="the program writes to it")
    update = {
        "files": {**script.files, name: ""},
        "edited": (*script.edited, name),
        "fixes": (*script.fixes, fix),
    }
    return Fix(spec, script.model_copy(update=update), fix.what)


_NO_SUBMODULE = re.compile(
    r"^module '(?P<owner>[A-Za-z]\w{0,60}(?:\.\w{1,60}){0,4})'"
    r" has no attribute '(?P<name>\w{1,60})'"
)


def _with_submodule(
    runner: Runner,
    spec: EnvironmentSpec,
    environment: Environment,
    script: Script,
    judgement: Judgement,
) -> Fix | None:
    """The program with an import of the part of a package that it takes from it: something that the
    reporter's session had imported before, or another release, had loaded it.
    """
    failure = judgement.failure
    last = failure.innermost if failure is not None else None
    match = _NO_SUBMODULE.match(failure.message) if failure is not None else None
    if match is None or last is None or last.package or script.command:
        return None
    module = f"{match['owner']}.{match['name']}"
    names = launch.names_spec(environment, runner.job, ("__name__",), (module,))
    if artifacts.last_row(runner.execute(names).stdout).get("__name__") != module:
        return None
    fixed = _edit(script, *imports.add_imports(script.source, (f"import {module}",)))
    return Fix(spec, fixed, f"importing {module}") if fixed is not script else None


def _in_program(
    runner: Runner,
    spec: EnvironmentSpec,
    environment: Environment,
    script: Script,
    failure: SetupFailure,
) -> Fix | None:
    """What helps in the text of the program."""
    fixed, change = script, ""
    if failure.rewrite == "cpu" and not script.command:
        fixed, change = (
            _edit(script, *script_fixes.to_cpu(script.source)),
            "on the CPU instead of a GPU",
        )
    elif failure.variable:
        fixed = _edit(script, *imports.set_variable(script.source, failure.variable))
        change = f"with a made-up {failure.variable}"
    elif failure.id == "offline" and not script.command and _is_crash(runner):
        fixed = _edit(script, *standard_data.with_random_data(script.source))
        change = "with random values of the form of the data set"
    elif failure.names:
        fixed = _import_names(runner, environment, script, failure.names)
        change = f"importing {', '.join(failure.names)}"
    return Fix(spec, fixed, change) if fixed is not script else None


def _is_crash(runner: Runner) -> bool:
    """Whether a report is about nothing but exceptions."""
    return all(isinstance(member, CrashSignature) for member in members_of(runner.signature))


def with_home(runner: Runner, spec: EnvironmentSpec, script: Script) -> EnvironmentSpec:
    """The spec with the package of the repository itself, where a program leaves names undefined
    and asks for none of it: they are most likely its own.
    """
    home = package_names.import_home(runner.job.issue.repository)
    if not home or not imports.undefined(script.source):
        return spec
    requirement = specify.missing(home, "", runner.bug, spec)
    return runner.matched(specify.add(spec, requirement)) if requirement is not None else spec


def name_imports(runner: Runner, environment: Environment, script: Script) -> Script:
    """A script with the imports it lacks, looked up in the built environment."""
    return _import_names(runner, environment, script, imports.undefined(script.source))


def _edit(script: Script, source: str, fixes: tuple[ScriptFix, ...]) -> Script:
    """A script with a new text and the fixes that made it; the very script when there are none."""
    if not fixes:
        return script
    files, edited = {**script.files, script.entry: source}, (*script.edited, script.entry)
    fixes = (*script.fixes, *fixes)
    return script.model_copy(update={"files": files, "edited": edited, "fixes": fixes})


def _shorter(
    runner: Runner, spec: EnvironmentSpec, environment: Environment, script: Script
) -> Fix | None:
    # How a training ends is nothing that a shorter one shows.
    whole = HangSignature, TrainingSignature
    if any(isinstance(member, whole) for member in members_of(runner.signature)):
        return None
    if script.command:
        fixed = program_options.shorten(script, read_tree(environment.tree))
    else:
        fixed = _edit(script, *script_fixes.shorten(script.source))
    return Fix(spec, fixed, "with fewer iterations") if fixed is not script else None


_GPU_CHECK = re.compile(r"\bcuda\.(?:is_available|device_count)\(")
_ANSWERED = ScriptFix(what="CUDA calls are answered on the CPU", why=script_fixes.NO_GPU)
_PRETENDED = ScriptFix(
    what="`torch.cuda.is_available()` answers True to the program", why=script_fixes.NO_GPU
)


def _lacks_gpu(judgement: Judgement) -> bool:
    """Whether a program of a repository ended for want of a GPU, at a check of its own as well."""
    failure = judgement.setup_failure
    return failure.rewrite == "cpu" if failure is not None else _is_at_check(judgement)


def _is_at_check(judgement: Judgement) -> bool:
    last = judgement.failure.innermost if judgement.failure is not None else None
    return last is not None and not last.package and bool(_GPU_CHECK.search(last.code))


def _without_gpu(
    spec: EnvironmentSpec, environment: Environment, script: Script, judgement: Judgement
) -> Fix | None:
    """The program on the CPU by its own options, else with what it asks of CUDA answered there;
    where it then still asks for a GPU, it is told that there is one.
    """
    answered = script.variables.get(launch.CUDA)
    if answered is None:
        fixed = program_options.to_cpu(script, read_tree(environment.tree))
        if fixed is not script:
            return Fix(spec, fixed, "on the CPU instead of a GPU")
    is_told = answered is not None or _is_at_check(judgement)
    return _answered(spec, script, is_told=is_told) if answered != "available" else None


def _answered(spec: EnvironmentSpec, script: Script, *, is_told: bool) -> Fix:
    fixes = (_ANSWERED,) * (launch.CUDA not in script.variables) + (_PRETENDED,) * is_told
    variables = {**script.variables, launch.CUDA: "available" if is_told else "cpu"}
    fixed = script.model_copy(update={"variables": variables, "fixes": (*script.fixes, *fixes)})
    return Fix(spec, fixed, "; ".join(fix.what for fix in fixes))


_REFUSAL = re.compile(
    r"unrecognized arguments|no such option|unknown .* flag|could not (?:consume|override)",
    re.IGNORECASE,
)


def _before_refusal(runner: Runner, script: Script, judgement: Judgement) -> Script | None:
    """The program before it was given an option that it turns out not to take: what declares one
    may be another program's.
    """
    failure = judgement.setup_failure
    is_usage = failure is not None and failure.id == "arguments"
    if not is_usage and not _REFUSAL.search(judgement.evidence):
        return None
    programs = (runner.attempts.programs[one.script] for one in reversed(runner.attempts))
    earlier = (one for one in programs if one.origin == script.origin)
    fewer = (one for one in earlier if len(one.fixes) < len(script.fixes))
    return next((one for one in fewer if one.command != script.command), None)


def _text_of(runner: Runner) -> str:
    return f"{runner.job.issue.title}\n{runner.job.issue.body}"


def _without_options(
    runner: Runner,
    spec: EnvironmentSpec,
    environment: Environment,
    earlier: Script,
    refused: Script,
) -> Fix | None:
    """What helps the program other than the options that it refused."""
    whys = {fix.why for fix in refused.fixes[len(earlier.fixes) :]}
    if script_fixes.NO_GPU in whys:
        return _answered(spec, earlier, is_told=False)
    if script_fixes.TOO_LONG not in whys:
        tree = read_tree(environment.tree)
        fixed = required_options.with_arguments(refused, tree, _text_of(runner))
        return Fix(spec, fixed, fixed.fixes[-1].what) if fixed is not refused else None
    fixed = program_options.lower_constants(earlier, read_tree(environment.tree))
    return Fix(spec, fixed, "with fewer iterations") if fixed is not earlier else None


def _install(
    runner: Runner,
    spec: EnvironmentSpec,
    environment: Environment,
    script: Script,
    lacking: tuple[str, str],
) -> Fix | None:
    """The program with what it lacks (a module or a requirement) installed and, of a repository's
    program, all else that it imports anywhere and that the environment lacks, if that can be.
    """
    module, text = lacking
    new = specify.missing(module, text, runner.bug, spec)
    if new is None:
        return None
    wider = runner.matched(specify.add(spec, new))
    if script.command and module and environment.tree:
        others = runner.matched(_with_imports(runner, wider, environment, script))
        wider = others if others != wider and _is_buildable(runner, others) else wider
    additions = [
        requirement for requirement in wider.requirements if requirement not in spec.requirements
    ]
    change = f"with {', '.join(item.name + item.specifier for item in additions)} installed"
    return Fix(wider, script, change) if additions else None


def _with_imports(
    runner: Runner, spec: EnvironmentSpec, environment: Environment, script: Script
) -> EnvironmentSpec:
    """The spec with what the program and the modules of the tree that it reaches import."""
    text = tree_programs.imports((script,), read_tree(environment.tree))
    for module in symbols.imported_modules(text):
        new = specify.missing(module, "", runner.bug, spec)
        is_heavy = new is not None and new.name in imports.TENSORFLOW
        if new is not None and not is_heavy and not environment.version(new.name):
            spec = specify.add(spec, new)
    return spec


def _is_buildable(runner: Runner, spec: EnvironmentSpec) -> bool:
    try:
        runner.build(spec)
    except BuildError:
        return False
    return True


def _without_module(
    runner: Runner,
    spec: EnvironmentSpec,
    environment: Environment,
    script: Script,
    judgement: Judgement,
) -> Iterator[Fix]:
    """A program without a module that no distribution gives it here: with a later release of the
    library that asks for it, and that does without; with a module that can be imported, but not
    used, for one that a repository's program imports itself.
    """
    failure = judgement.setup_failure
    if failure is None or not failure.module.isidentifier():
        return
    if judgement.failure is not None and f"'{failure.module}." in judgement.failure.message:
        return  # it is there: this release lacks a module of it
    last = judgement.failure.innermost if judgement.failure is not None else None
    if last is not None and last.package and last.module_path:
        lacking = LibraryName(module=failure.module, importer=last.module_path)
        fix = _at_release(runner, spec, environment, script, lacking)
        yield from [fix] if fix is not None else []
    if not script.command:
        return
    tree = read_tree(environment.tree)
    text = tree_programs.imports((script,), tree)
    if failure.module not in {name.partition(".")[0] for name in symbols.imported_modules(text)}:
        return
    fixed = stand_ins.with_stand_in(script, failure.module, tree)
    # A name that nothing defines may be one that the module would have given.
    is_open = reported_statement.takes_every_name(script, failure.module)
    if fixed is not script and not is_open:
        yield Fix(spec, fixed, fixed.fixes[-1].what)


_IMPORT = re.compile(r"\s*(?:import|from)\s")
_STATED = {PinSource.OPTION, PinSource.ISSUE}


def _with_name(
    runner: Runner,
    spec: EnvironmentSpec,
    environment: Environment,
    script: Script,
    judgement: Judgement,
) -> Fix | None:
    """The program with the newest release of a library that has the name for want of which it
    ended: whoever saw another failure had one. A release that the report states stays.
    """
    failure, setup_failure = judgement.failure, judgement.setup_failure
    if failure is None or (setup_failure is not None and setup_failure.id != "missing-module"):
        return None
    tops = _imported_tops(failure, script, read_tree(environment.tree))
    lacking = library_names.lacking_name(failure.exception, failure.message, tops)
    if lacking is None or (not lacking.module and _is_trees(lacking.name, environment)):
        return None
    last = failure.innermost
    importer = last.module_path if last is not None and last.package and lacking.name else ""
    of_importer = lacking.model_copy(update={"importer": importer})
    for asked_of in (lacking, *([of_importer] if importer and lacking.module else [])):
        if (fix := _at_release(runner, spec, environment, script, asked_of)) is not None:
            return fix
    return None


def _at_release(
    runner: Runner,
    spec: EnvironmentSpec,
    environment: Environment,
    script: Script,
    lacking: LibraryName,
) -> Fix | None:
    """The program with the newest release that has a name or, of an importer, does without it."""
    name, version = runner.ports.builder.providing(
        environment, lacking, runner.job.issue.created_at
    )
    stated = {row.name for row in spec.requirements if row.rung in _STATED and row.specifier}
    versions = {other.version(name) for _, other in runner.environments.values()}
    if not name or name in {*stated, *imports.TORCH_FAMILY} or version in versions:
        return None
    installed = environment.version(name)
    if lacking.importer:
        reason = f"{name} {installed} asks for {lacking}, which is not there"
        words = "does without"
    else:
        reason = f"the program asks for {lacking}, which {name} {installed} does not have"
        words = "has it"
    new = Requirement(name=name, specifier=f"=={version}", rung=PinSource.REPAIR, reason=reason)
    runner.note(f"{reason}; {version} {words}")
    return Fix(specify.add(spec, new), script, f"with {name} {version}, since {reason}"[:200])


def _for_python(
    runner: Runner,
    spec: EnvironmentSpec,
    environment: Environment,
    script: Script,
    judgement: Judgement,
) -> Fix | None:
    """The program with the first release of a library from after its Python's, where an older one
    ended as it was imported, or pytest before it came to a file of ours. A release that the report
    states stays.
    """
    is_pytest = script.command[:2] == PYTEST
    name = _failed_import(environment, judgement, is_pytest=is_pytest)
    stated = {row.name for row in spec.requirements if row.rung in _STATED and row.specifier}
    minor = ".".join(environment.python.split(".")[:2])
    day = versions.RELEASE_DAYS.get(minor)
    if not name or day is None or name in {*stated, *imports.TORCH_FAMILY}:
        return None
    installed = environment.version(name)
    rows = [row for row in runner.ports.builder.history(name) if not (row.yanked or row.prerelease)]
    at = next((at for at, row in enumerate(rows) if row.version == installed), len(rows))
    is_older = at < len(rows) and (uploaded := rows[at].uploaded_at) is not None and uploaded < day
    later = (row for row in rows[at + 1 :] if row.uploaded_at is not None and row.uploaded_at > day)
    version = next(later, None) if is_older else None
    if version is None:
        return None
    reason = f"{name} {installed} is older than Python {minor}"
    new = Requirement(
        name=name, specifier=f"=={version.version}", rung=PinSource.REPAIR, reason=reason
    )
    runner.note(f"{reason}; {version.version} is not")
    return Fix(specify.add(spec, new), script, f"with {name} {version.version}, since {reason}")


def _beside_jax(
    runner: Runner,
    spec: EnvironmentSpec,
    environment: Environment,
    script: Script,
    judgement: Judgement,
) -> Fix | None:
    """The program with a later release of a library that cannot be imported beside a jax that is
    newer than the report, half-way to the day of that jax. A release that is stated stays.
    """
    name = _failed_import(environment, judgement)
    stated = {row.name for row in spec.requirements if row.rung in _STATED and row.specifier}
    if "jaxlib" not in environment.undated or not name or name in {*stated, *imports.JAX}:
        return None
    history, installed = runner.ports.builder.history, environment.version(name)
    days = {row.version: row.uploaded_at for row in history("jax")}
    day = days.get(environment.version("jax"))
    rows = [row for row in history(name) if not (row.yanked or row.prerelease)]
    newer = [row for row in rows if Version(row.version) > Version(installed)]
    then = [row for row in newer if day and row.uploaded_at and row.uploaded_at <= day]
    later = next((row.version for row in then[len(then) // 2 :] or newer), "")
    if not later:
        return None
    reason = f"{name} {installed} cannot be imported beside jax {environment.version('jax')}"
    new = Requirement(name=name, specifier=f"=={later}", rung=PinSource.NEIGHBOUR, reason=reason)
    runner.note(f"{reason}; {later} is tried")
    return Fix(specify.add(spec, new), script, f"with {name} {later}, since {reason}"[:200])


def _failed_import(
    environment: Environment, judgement: Judgement, *, is_pytest: bool = False
) -> str:
    """The distribution of the library that ended as a program imported it, or pytest before it came
    to a file of ours; "" for any other end.
    """
    frames = judgement.failure.frames if judgement.failure is not None else ()
    own = [at for at, frame in enumerate(frames) if not frame.package]
    is_early = is_pytest and bool(frames) and not own
    is_import = is_early or (bool(own) and _IMPORT.match(frames[own[-1]].code) is not None)
    no_importers = {"", "<stdlib>", *imports.JAX}
    importers = [frame for frame in frames if frame.package not in no_importers]
    if judgement.setup_failure is not None or not is_import or not importers:
        return ""
    package = "pytest" if is_early else importers[-1].package
    names = map(canonicalize_name, (distribution(package), package))
    return next((name for name in names if environment.version(name)), "")


def _imported_tops(failure: Failure, script: Script, tree: Tree) -> tuple[str, ...]:
    """The packages that the file of the tree imports in which a program ended."""
    frame = failure.script_frame
    paths = tree_files(frame, tree) if frame is not None else []
    if not paths:
        return ()
    path = max(paths, key=len)
    text = script.files.get(path) or tree[path].decode("utf-8", "replace")
    tops = (name.partition(".")[0] for name in symbols.imported_modules(text))
    return tuple(dict.fromkeys(top for top in tops if top not in imports.TORCH_FAMILY))


def _is_trees(name: str, environment: Environment) -> bool:
    """Whether a class or a function is one of the repository's own."""
    mark = re.compile(rb"^\s*(?:class|def) " + re.escape(name).encode() + rb"\b", re.MULTILINE)
    tree = read_tree(environment.tree)
    return any(path.endswith(".py") and mark.search(text) for path, text in tree.items())


def _extended(runner: Runner, spec: EnvironmentSpec, judgement: Judgement) -> str:
    """The distribution that asks for an extra of its own: the one whose frame raised, else the one
    under test.
    """
    frames = judgement.failure.frames if judgement.failure is not None else ()
    distributions = [distribution(frame.package) for frame in reversed(frames) if frame.package]
    target = specify.under_test(spec, runner.bug, runner.job.issue)
    names = [requirement.name for requirement in spec.requirements]
    name_of_package = next((name for name in distributions if name in names), "")
    return name_of_package or (target.name if target is not None else "")


def _import_names(
    runner: Runner, environment: Environment, script: Script, names: tuple[str, ...]
) -> Script:
    """The script with imports for the names that the environment's packages offer; the very
    script when none does.
    """
    home = package_names.import_home(runner.job.issue.repository)
    # Nobody calls a module.
    functions = {
        name_of(row.func)
        for row in nodes(module_of(script.source), ast.Call)
        if isinstance(row.func, ast.Name)
    }
    lines_by_name = {
        name: f"import {name}"
        if name == home and name not in functions
        else imports.conventional(name, script.source)
        for name in names
    }
    # A letter is no name that a library can be asked for: what has one is a type variable.
    unknown = tuple(
        name for name in names if not lines_by_name[name] and name.isidentifier() and len(name) > 1
    )
    modules_by_name = _locate(runner, environment, script, unknown)
    guesses = [f"from {module} import {name}" for name, module in modules_by_name.items()]
    text, more = imports.add_imports(script.source, tuple(guesses), imports.LOCATED)
    text, fixes = imports.add_imports(text, tuple(lines_by_name.values()))
    return _edit(script, text, (*fixes, *more))


def _locate(
    runner: Runner, environment: Environment, script: Script, names: tuple[str, ...]
) -> dict[str, str]:
    tops = _tops(environment, script) if names else []
    modules = [top + part for part in _PARTS for top in tops]
    if not modules:
        return {}
    result = runner.execute(launch.names_spec(environment, runner.job, names, tuple(modules)))
    modules_by_name = artifacts.last_row(result.stdout)
    # The answer comes out of the sandbox: only what was asked for is taken.
    return {
        name: module
        for name, module in modules_by_name.items()
        if name in names and (module in modules or _is_part(module, tops))
    }


def _is_part(module: str, tops: list[str]) -> bool:
    """Whether a name is that of a module directly below one of these packages."""
    top, _, rest = module.partition(".")
    return top in tops and rest.isidentifier()


def _tops(environment: Environment, script: Script) -> list[str]:
    """Packages to look in: those that the program imports, then those that were asked for."""
    tops: list[str] = []
    for node in ast.walk(module_of(script.source)):
        if isinstance(node, ast.Import):
            tops.extend(alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            tops.append(node.module.split(".")[0])
    package_names = [
        package.name for package in environment.packages if package.rung is not PinSource.DEPENDENCY
    ]
    for name in package_names:
        tops.extend((name.replace("-", "_"), name.replace("-", "")))
    return list(dict.fromkeys(tops))
