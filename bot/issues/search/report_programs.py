"""The programs that a report implies, the likeliest first; each is tried until one shows the
failure.
"""

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC

from bot.environment import imports, releases, specify, versions
from bot.issues import confirm as issues_confirm, script_fixes
from bot.issues.confirm import Decision, confirm
from bot.issues.reading import code
from bot.issues.runner import Runner, judging
from bot.issues.search import (
    console_scripts,
    passed_statement,
    program_options,
    recovery,
    reported_statement,
    required_options,
    stand_ins,
    standard_data,
)
from bot.issues.search.commit_fit import commit_without
from bot.issues.signature import freeze, values
from bot.kernel import tree_programs
from bot.kernel.attempt import Match, Script
from bot.kernel.bug import (
    AnySignature,
    BugReport,
    CrashSignature,
    Fence,
    FenceKind,
    NonFiniteSignature,
    Role,
    ScriptFix,
    Symptom,
    members_of,
)
from bot.kernel.environment import EnvironmentSpec, PinSource
from bot.kernel.errors import BuildError, Stopped, TransientError, UserError
from bot.kernel.report import (
    AnyVerdict,
    BudgetReached,
    Claim,
    Comparison,
    DifferentFailure,
    Inconclusive,
    NotReproduced,
    Reproduced,
    SetupFailed,
)
from bot.kernel.session import SearchResult
from bot.kernel.source import symbols, syntax
from bot.kernel.source.syntax import is_call_of, module_of, tree_of
from bot.kernel.tree_programs import GUESSED
from bot.kernel.trees import read_tree

# BugReport → the programs that the report implies, the likeliest first.

MOST = 4
_MOST_LENT = 2
_JOINED_AT_MOST = 200_000
"""Characters of all drafts together: to find the names that a program lacks takes 5 s a million."""
_VERSIONS = re.compile(r"__version__|\bsys\.(?:version|platform)\b|\bplatform\.\w+\(")
_LOADS = re.compile(r"from_pretrained|load_state_dict|create_model|hf_hub_download|get_weight")
_MOST_OF_DAY, _MOST_PATHS = 4, 60
_ASIDE = {Role.FIX, Role.EXPECTED, Role.CONTRAST, Role.SOURCE}


@dataclass(frozen=True, slots=True)
class _Draft:
    text: str
    fences: tuple[int, ...]
    fixes: tuple[ScriptFix, ...]
    score: float
    shows: bool


def propose(
    bug: BugReport, signature: AnySignature, weights: Sequence[str] = ()
) -> tuple[Script, ...]:
    """At most four scripts: single blocks completed by the earlier ones that define what they
    use, and all blocks in order (as in a notebook). Blocks that show a fix, a contrast or the
    library's own source are left out; at most two more scripts take from them what is defined
    nowhere else. What loads `weights`, which are at hand, is left as it is.
    """
    usable = _usable(bug)
    drafts = list(_completed(bug, signature, usable, range(len(usable))))
    if len(usable) > 1:
        whole = _draft(bug, signature, usable)
        drafts.append(replace(whole, score=whole.score - 1.5))
    unique: dict[str, _Draft] = {}
    for draft in sorted(drafts, key=lambda draft: -draft.score):
        unique.setdefault("\n".join(values.lines(draft.text)), draft)
    selection = list(unique.values())[:MOST]
    selection += _lending(bug, signature, usable)
    scripts = (_script(_borrowing(bug, draft)) for draft in selection)
    return tuple(
        _with_variables(bug, _completed_values(bug, signature, one, weights)) for one in scripts
    )


def _completed_values(
    bug: BugReport, signature: AnySignature, script: Script, weights: Sequence[str]
) -> Script:
    """A script with the values that the report leaves open and, for a crash that has nothing to do
    with loading them, a random model in the place of trained ones but these.
    """
    others = (fence for fence in bug.programs if fence.index not in script.fences)
    elsewhere = set[str]().union(*map(_defines, others))
    members = members_of(signature)
    checks = [check for one in members if isinstance(one, CrashSignature) for check in one.checks]
    source, fixes = script_fixes.restore(script.source, checks)
    source, more = script_fixes.restore_names(source, imports.undefined(source))
    fixes = (*fixes, *more)
    names = [name for name in imports.undefined(source) if name not in elsewhere]
    source, more = script_fixes.fill_names(source, names, bug.described)
    fixes = (*fixes, *more)
    if all(isinstance(member, CrashSignature) and member.message for member in members):
        source, more = script_fixes.drop_ellipses(source)
        fixes = (*fixes, *more)
    frames = (frame for row in bug.tracebacks for frame in row.frames)
    loads = any(_LOADS.search(f"{frame.function} {frame.code}") for frame in frames)
    is_crash = all(isinstance(member, CrashSignature) and member.exception for member in members)
    if is_crash and not loads and bug.symptom is not Symptom.SAVE_LOAD:
        source, more = script_fixes.without_weights(source, weights)
        fixes = (*fixes, *more)
    if not fixes:
        return script
    files = {**script.files, script.entry: source}
    return script.model_copy(update={"files": files, "fixes": (*script.fixes, *fixes)})


def _lending(bug: BugReport, signature: AnySignature, usable: list[Fence]) -> list[_Draft]:
    """The blocks that use what only blocks put aside define, each after those."""
    lender_roles = {Role.SOURCE, Role.CONTRAST}
    indices = {fence.index for fence in usable}
    every = [one for one in bug.programs if one.index in indices or one.role in lender_roles]
    if len(every) == len(usable):
        return []
    own = [at for at, fence in enumerate(every) if fence.index in indices]
    drafts = _completed(bug, signature, every, own)
    borrowers = [draft for draft in drafts if not indices.issuperset(draft.fences)]
    return sorted(borrowers, key=lambda draft: -draft.score)[:_MOST_LENT]


def _borrowing(bug: BugReport, draft: _Draft) -> _Draft:
    """A draft with the imports it lacks taken from other blocks of the report, whatever those
    are for.
    """
    lacking = set(imports.undefined(draft.text))
    others = [fence for fence in bug.programs if fence.index not in draft.fences]
    missing_imports = [
        line
        for fence in others
        for line, names_bound in imports.statements(fence.text)
        if names_bound & lacking
    ]
    text, fixes = imports.add_imports(draft.text, tuple(missing_imports))
    return replace(draft, text=text, fixes=(*draft.fixes, *fixes))


def _with_variables(bug: BugReport, script: Script) -> Script:
    """A script that sets the variables which the report's shell commands and sentences set for the
    libraries.
    """
    texts = [fence.raw for fence in bug.fences if fence.kind is FenceKind.SHELL]
    settings = [bug.variables, *map(code.variables, texts)]
    variables = {
        name: value
        for rows in settings
        for name, value in rows.items()
        if name not in script.source
    }
    if not variables:
        return script
    lines = (
        "import os",
        *(f"os.environ[{name!r}] = {value!r}" for name, value in variables.items()),
    )
    source, _ = imports.add_imports(script.source, lines)
    fixes = tuple(
        ScriptFix(what=f"set {name}={value}", why="the bug report sets it")
        for name, value in variables.items()
    )
    return script.model_copy(
        update={"files": {**script.files, script.entry: source}, "fixes": (*script.fixes, *fixes)}
    )


def contrasts(bug: BugReport) -> tuple[Script, ...]:
    """The programs of which the report says that they work; at most one is worth a run."""
    contrast_fences = [
        fence
        for fence in bug.programs
        if fence.role is Role.CONTRAST and "import " in fence.text and _acts(fence.text)
    ]
    drafts = [
        _Draft(fence.text, (fence.index,), fence.fixes, 0.0, shows=False)
        for fence in contrast_fences[:1]
    ]
    return tuple(_script(draft) for draft in drafts)


def _usable(bug: BugReport) -> list[Fence]:
    """The blocks that may be run, each text once; failing those, what looked like quoted source
    but imports and acts.
    """
    texts: dict[str, Fence] = {}
    for fence in bug.programs:
        # "Raises with 0.60 but works with 0.59" stands above the program that fails.
        fails = fence.role is Role.CONTRAST and _fails(bug, fence)
        aside = (fence.role in _ASIDE and not fails) or not fence.text.strip()
        if not aside and (_fails(bug, fence) or not _tells_versions(fence.text)):
            texts.setdefault("\n".join(values.lines(fence.text)), fence)
    rest = [
        fence
        for fence in bug.programs
        if fence.role is Role.SOURCE and "import " in fence.text and _acts(fence.text)
    ]
    return list(texts.values()) or rest


def _fails(bug: BugReport, fence: Fence) -> bool:
    """Whether the next block is the traceback of an exception, as after the command that raised
    it.
    """
    following = next((one for one in bug.fences if one.index == fence.index + 1), None)
    return following is not None and following.kind is FenceKind.TRACEBACK


def _tells_versions(text: str) -> bool:
    """Whether a block only prints versions, as the forms of many projects ask for."""
    body = module_of(text).body
    statements = [node for node in body if not isinstance(node, ast.Import | ast.ImportFrom)]
    return bool(statements) and all(
        isinstance(node, ast.Expr)
        and is_call_of(node.value, "print")
        and _VERSIONS.search(ast.unparse(node))
        for node in statements
    )


def genuine_ones(
    scripts: tuple[Script, ...], signature: AnySignature
) -> tuple[tuple[Script, ...], str]:
    """The scripts that do not stage the reported failure themselves, and, when none is left, the
    line that does.
    """
    members = members_of(signature)
    line_lists = [[freeze.self_made(one.source, member) for member in members] for one in scripts]
    genuine_scripts = tuple(
        one for one, lines in zip(scripts, line_lists, strict=True) if not all(lines)
    )
    return genuine_scripts, "" if genuine_scripts or not line_lists else line_lists[0][0]


def _script(draft: _Draft) -> Script:
    text, fixes = draft.text, draft.fixes
    steps = (script_fixes.show_expressions,) if draft.shows else ()
    for step in (*steps, script_fixes.call_entry, script_fixes.show_caught):
        text, step_fixes = step(text)
        fixes = (*fixes, *step_fixes)
    text, step_fixes = imports.add_imports(
        text, tuple(imports.conventional(name, text) for name in imports.undefined(text))
    )
    blocks = ", ".join(str(index + 1) for index in draft.fences)
    origin = f"block{'s' if len(draft.fences) > 1 else ''} {blocks} of the report"
    return Script(
        files={"repro.py": text.rstrip() + "\n"},
        origin=origin,
        fences=draft.fences,
        fixes=(*fixes, *step_fixes),
    )


def _completed(
    bug: BugReport, signature: AnySignature, fences: list[Fence], indices: Sequence[int]
) -> Iterator[_Draft]:
    """The chosen blocks, each with the earlier blocks (nearest first, as long as they help) that
    define names it uses; as many as the limit of characters allows.
    """
    defined = [_defines(fence) for fence in fences]
    names_used = [frozenset(imports.undefined(fence.text)) for fence in fences]
    room = _JOINED_AT_MOST
    for index in indices:
        parts, lacking = [fences[index]], names_used[index]
        for at in reversed(range(index)):
            if not defined[at].isdisjoint(lacking):
                parts.insert(0, fences[at])
                lacking = (lacking - defined[at]) | names_used[at]
        room -= sum(len(part.text) for part in parts)
        if room < 0:
            return
        yield _draft(bug, signature, parts)


def _draft(bug: BugReport, signature: AnySignature, parts: list[Fence]) -> _Draft:
    text = _text(parts)
    fixes = tuple(fix for part in parts for fix in part.fixes)
    if len(parts) > 1:
        fixes = (
            *fixes,
            ScriptFix(
                what=f"joined {len(parts)} blocks of the report",
                why="the later one uses what the earlier ones define",
            ),
        )
    # A prompt or a notebook cell shows the value of its last expression; a script prints it itself.
    is_printed = bool(bug.outputs) or isinstance(signature, NonFiniteSignature)
    shows = any(part.outputs for part in parts) or (is_printed and "print" not in text)
    return _Draft(
        text, tuple(part.index for part in parts), fixes, _score(bug, signature, parts, text), shows
    )


def _text(parts: list[Fence]) -> str:
    return "\n\n".join(part.text.strip("\n") for part in parts)


def _defines(fence: Fence) -> set[str]:
    names: set[str] = set()
    for node in _statements(fence.text):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
        else:
            names |= {
                part.id for part in syntax.nodes(node, ast.Name) if isinstance(part.ctx, ast.Store)
            }
    return names


def _score(bug: BugReport, signature: AnySignature, parts: list[Fence], text: str) -> float:
    last = parts[-1]
    score = {Role.REPRODUCER: 4.0, Role.OBSERVED: -1.0}.get(last.role, 0.0)
    code = {" ".join(line.split()) for line in text.splitlines()}
    own = {
        " ".join(frame.code.split())
        for row in bug.tracebacks
        for frame in row.frames
        if not frame.package and frame.code
    }
    score += 3.0 * min(len(own & code), 3)
    checks = [
        check
        for member in members_of(signature)
        if isinstance(member, CrashSignature)
        for check in member.checks
    ]
    score += 2.0 * any(check in text for check in checks)
    score += 1.0 * min(sum(name.rsplit(".", 1)[-1].rstrip("()") in text for name in bug.api), 2)
    score += 1.0 * ("import " in text) + 1.0 * _acts(text)
    score += 2.0 * bool(last.outputs) + 2.0 * _fails(bug, last)
    lacking = [name for name in imports.undefined(text) if not imports.conventional(name, text)]
    score -= 0.0 if tree_of(text) else 6.0
    return score - min(len(lacking), 4) - 0.002 * len(code) - 0.01 * last.index


def _acts(text: str) -> bool:
    """Whether a program does anything but define things."""
    inert = (ast.Import, ast.ImportFrom, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    return any(not isinstance(node, inert) for node in _statements(text))


def _statements(text: str) -> list[ast.stmt]:
    tree = tree_of(text)
    return tree.body if tree is not None else []


# The report's own programs → a decision. Each is tried until one shows the failure, which fresh
# runs then confirm; otherwise the other environments that the report may mean are tried.


def decide(runner: Runner, spec: EnvironmentSpec, scripts: tuple[Script, ...]) -> Decision:
    """The verdict on the report's own programs."""
    options = runner.job.environment
    if options.repo and spec.repo is None and not options.for_commands:
        runner.note("the bug report names a release, so the clone was not run; --ref HEAD runs it")
    result = search(runner, _as_quoted(runner, spec), scripts)
    verdict, match = confirm(runner, result)
    verdict = _with_lengths(_as_open(verdict, result.script), result)
    decision = Decision(verdict, runner.bug, runner.signature, result)
    if match is not Match.MATCHED:
        decision = _looked_up(runner, result, _elsewhere(runner, result, decision))
        verdict = passed_statement.if_passed(runner, result, decision.verdict)
        return replace(decision, verdict=verdict)
    note_place(runner)
    contrasts, claims = _contrasts(runner, result)
    facets = tuple(_facets(runner, result, scripts))
    return replace(decision, contrasts=contrasts, claims=claims, facets=facets)


def _looked_up(runner: Runner, result: SearchResult, decision: Decision) -> Decision:
    """The decision where the report's program could not be run, and misses a name that the module
    has in the release which the report names. That it lacks one says nothing of who asks for it.
    """
    script = reported_statement.look_up(runner.signature)
    is_open = isinstance(decision.verdict, Inconclusive | SetupFailed)
    if script is None or not is_open:
        return decision
    top = next(iter(symbols.imported_modules(script.source))).partition(".")[0]
    name = imports.installed_as(imports.distribution(top))
    claims = [row for row in result.environment.claims if row.name == name and row.claimed]
    if not any(versions.fits(result.environment.version(name), row.claimed) for row in claims):
        return decision
    own_result = recovery.run(runner, result.spec, script, "the look-up alone")
    if own_result.judgement.match is not Match.PASSED:
        return decision
    verdict, _ = confirm(runner, own_result)
    return replace(decision, verdict=verdict, result=own_result)


def _facets(
    runner: Runner, result: SearchResult, scripts: tuple[Script, ...]
) -> Iterator[Comparison]:
    """What became of the other complaints of a report of which one was reproduced: each is looked
    for with the programs that did not show that one, then with this.
    """
    members = members_of(runner.signature)
    others = [script for script in scripts if script.digest != result.script.digest]
    for at, member in enumerate(members):
        if at == result.judgement.member:
            continue
        judged_runner = judging(runner, runner.bug, member)
        completed = [
            recovery.run(judged_runner, result.spec, script, "another complaint of the report")
            for script in (*others, result.script)
        ]
        match = next((one for one in completed if one.judgement.match is Match.MATCHED), None)
        reason = completed[-1].judgement.reason
        if match is not None:
            verdict, _ = confirm(judged_runner, match)
            reason = verdict.reason
            if isinstance(verdict, Reproduced):
                reason = f"reproduced as well, in {verdict.failures} of {verdict.runs} runs"
        says = issues_confirm.describe(member)
        yield Comparison(what=issues_confirm.ALSO, reported=says, observed=reason)


def _with_lengths(verdict: AnyVerdict, result: SearchResult) -> AnyVerdict:
    """The verdict on a program that would run far beyond its limit, with what makes it shorter."""
    if not isinstance(verdict, BudgetReached):
        return verdict
    tree = read_tree(result.environment.tree) if result.environment.tree else {}
    names = program_options.lengths(result.script, tree) if result.script.command else ()
    options = " or ".join(f"`{name}`" for name in names[:2])
    advice = f"name a lower {options}" if options else "name fewer epochs or steps"
    return BudgetReached(
        reason=f"{verdict.reason}. To decide it here, {advice} with which it still fails"
    )


def _as_open(verdict: AnyVerdict, script: Script) -> AnyVerdict:
    """The verdict, but no negative one on a program with values that are not the reporter's."""
    why = {
        script_fixes.OPEN,
        script_fixes.UNTRAINED,
        stand_ins.ABSENT,
        standard_data.RANDOM,
        reported_statement.ALONE,
        console_scripts.DOCUMENTED,
        *required_options.WHYS,
    }
    changes = [fix.what for fix in script.fixes if fix.why in why]
    if not isinstance(verdict, NotReproduced | DifferentFailure):
        return verdict
    guesses = [fix.what for fix in script.fixes if fix.why == GUESSED]
    if guesses:
        reason = f"{guesses[0]}, since {GUESSED}: {verdict.reason}"
        return issues_confirm.undecided(verdict, reason)
    if not changes:
        return verdict
    reason = f"the program ran with what is not the reporter's ({'; '.join(changes)[:300]})"
    return issues_confirm.undecided(verdict, reason)


def _as_quoted(runner: Runner, spec: EnvironmentSpec) -> EnvironmentSpec:
    """The spec at the release whose lines the report's traceback quotes, where the report names
    none. One that it names is tried first.
    """
    spec_that_fits = _fit_release(runner, spec, is_pinned=False)
    if spec_that_fits is None:
        return spec
    try:
        runner.build(spec_that_fits)
    except BuildError as error:
        runner.note(f"that release could not be built: {error}")
        return spec
    return spec_that_fits


def _fit_release(
    runner: Runner, spec: EnvironmentSpec, *, is_pinned: bool
) -> EnvironmentSpec | None:
    """The spec at the neighbouring releases that have the lines which the report's traceback
    quotes, of the package under test or, for a program in its tree, of every library on the stack;
    None where the installed ones have them, or no others are known to.
    """
    in_tree = spec.repo is not None and spec.repo.in_place
    if spec.repo is not None and not in_tree:
        return None
    issue, environment, moved_spec = runner.job.issue, runner.build(spec), spec
    for target in specify.quoted_ones(spec, runner.bug, issue):
        frames = releases.quoted_frames(runner.bug, target)
        is_option = target.rung is PinSource.OPTION
        is_other = is_pinned is not bool(versions.exact_version(target.specifier))
        if not frames or is_option or is_other or (in_tree and target.name in imports.TORCH_FAMILY):
            continue
        version = runner.ports.builder.fitting(environment, target.name, frames, issue.created_at)
        if version:
            runner.note(
                f"the quoted traceback fits {target.name} {version}, not "
                f"{environment.version(target.name)}"
            )
            moved_spec = specify.at_version(moved_spec, specify.of_release(target, version))
    return moved_spec if moved_spec is not spec else None


def note_place(runner: Runner) -> None:
    """Note where the failure arose when no library was on the stack."""
    last = runner.attempts.matched()[-1]
    if runner.attempts.programs[last.script].is_repositorys:  # its code is what is under test
        return
    for note in issues_confirm.place(last.judgement):
        runner.note(note)


def search(runner: Runner, spec: EnvironmentSpec, scripts: tuple[Script, ...]) -> SearchResult:
    """Try the candidates in turn until one matches the signature; else the likeliest one, or one
    that passes with more of the report's blocks than it. That another one passes says nothing about
    the report.
    """
    results = list[SearchResult]()
    for index, script in enumerate(scripts):
        runner.say("search", f"trying {script.origin}", index + 1, len(scripts))
        results.append(_pursue(runner, spec, script))
        if results[-1].judgement.match is Match.MATCHED:
            break
        spec = results[-1].spec
    if results[-1].judgement.match is Match.MATCHED:
        return results[-1]
    longer = [
        result
        for result in results
        if result.judgement.match is Match.PASSED
        and {*results[0].script.fences} < {*result.script.fences}
    ]
    is_pass = results[0].judgement.match is Match.PASSED
    return longer[0] if is_pass and longer else results[0]


def _pursue(runner: Runner, spec: EnvironmentSpec, script: Script) -> SearchResult:
    if not script.command:
        spec = recovery.with_home(runner, spec, script)
        script = recovery.name_imports(runner, runner.build(spec), script)
    fixes = "; ".join(fix.what for fix in script.fixes)
    change = f"with {fixes}" if fixes else "as reported"
    return recovery.run(runner, spec, script, change, f"running {script.origin}")


def _earlier_that_day(runner: Runner, result: SearchResult) -> Iterator[EnvironmentSpec]:
    """The spec at the earlier commits of the day of the report, where no more than the day is known
    and where they differ in what the program imports of its tree: the fix may be of that day too.
    """
    issue, environment, spec = runner.job.issue, result.environment, result.spec
    commits, script = runner.ports.commits, result.script
    is_in_tree = spec.repo is not None and spec.repo.in_place and not spec.repo.ref
    if commits is None or spec.repo is None or not is_in_tree or not issue.has_day_only:
        return
    tree = read_tree(environment.tree)
    paths = tree_programs.reachable([script.entry], tree) if script.entry in tree else ()
    day = issue.created_at.date() if issue.created_at is not None else None
    try:
        changes = commits.changes(spec.repo, environment.commit, paths[:_MOST_PATHS], _MOST_OF_DAY)
        for change in changes if paths else ():
            if change.date is None or change.date.astimezone(UTC).date() != day:
                return
            commit = commits.commit(spec.repo, f"{change.id}^").id
            repo = spec.repo.model_copy(update={"ref": commit})
            yield spec.model_copy(update={"repo": repo})
    except (UserError, TransientError):  # a clone that lacks a part of its history
        return


def _passing_row(first_result: SearchResult, result: SearchResult) -> Comparison:
    """What the releases did that were tried first, named by where they differ."""
    before, after = first_result.environment, result.environment
    packages = [x for x in before.packages if x.version != after.version(x.name)]
    stated = [x for x in packages if x.rung is not PinSource.DEPENDENCY]
    changes = [f"{package.name} {package.version}" for package in stated or packages]
    where = ", ".join(changes[:3]) or f"Python {before.python}"
    return Comparison(
        what=f"{issues_confirm.BESIDE}{where}",
        reported="",
        observed=first_result.judgement.reason,
    )


def _may_differ(result: SearchResult) -> bool:
    """Whether other versions could change the outcome: not when something is missing from the
    report, nor when a run takes too long.
    """
    failure = result.judgement.setup_failure
    absent = failure is not None and bool(failure.needs or failure.names or failure.hardware)
    return not absent and not result.run.attempt.execution.timed_out


def _contrasts(
    runner: Runner, result: SearchResult
) -> tuple[tuple[Script, ...], tuple[Claim, ...]]:
    """The variants of the failing program that the report says work and that do, in the same
    environment; and a claim on each.
    """
    working, claims, seed = list[Script](), list[Claim](), runner.job.limits.seed
    for script in contrasts(runner.bug):
        with runner.stage("confirm", f"running {script.origin}, which should work"):
            run = runner.run(script, result.environment, seed, "contrast", "said to work")
            fix = recovery.next_fix(runner, result.spec, result.environment, script, run)
            if fix is not None and fix.spec == result.spec:
                script = fix.script
                run = runner.run(script, result.environment, seed, "contrast", fix.change)
        judgement = run.judgement
        if judgement.match is Match.PASSED:
            working.append(script)
        holds = {Match.PASSED: True, Match.MATCHED: False}.get(judgement.match)
        claims.append(Claim(text=f"{script.origin} works", holds=holds, evidence=judgement.reason))
    return tuple(working), tuple(claims)


def _other_specs(runner: Runner, result: SearchResult) -> Iterator[EnvironmentSpec]:
    """The other environments, the commit without what the report misses before all."""
    yield from _before_addition(runner, result)
    if not _may_differ(result):
        return
    spec_that_fits = _fit_release(runner, result.spec, is_pinned=True)
    yield from [spec_that_fits] if spec_that_fits is not None else []
    yield from _earlier_that_day(runner, result)
    yield from specify.alternatives(result.spec, runner.bug, runner.job.issue, result.environment)
    earlier = specify.month_before(result.spec, result.environment.commit)
    yield from [earlier] if earlier is not None else []


def _before_addition(runner: Runner, result: SearchResult) -> Iterator[EnvironmentSpec]:
    """The spec at the commit before the one that added what the report does not find."""
    repo, environment = result.spec.repo, result.environment
    if repo is None or not repo.in_place or repo.ref:
        return
    tree = read_tree(environment.tree)
    try:
        commit = commit_without(runner, runner.signature, repo, environment.commit, tree)
    except (UserError, TransientError):  # a clone that lacks a part of its history
        return
    if commit is not None:
        ref = repo.model_copy(update={"ref": commit.id})
        yield result.spec.model_copy(update={"repo": ref})


def _versions(result: SearchResult, first_result: SearchResult) -> str:
    """The versions that were tried, and the day of the others where it is another one."""
    text, day = issues_confirm.versions(result.environment), result.spec.exclude_newer
    is_other_day = day is not None and day != first_result.spec.exclude_newer
    return f"{text}, everything else as of {day:%Y-%m-%d}" if is_other_day else text


def _elsewhere(runner: Runner, first_result: SearchResult, decision: Decision) -> Decision:
    """The other environments that the report may mean, when the first did not show the failure."""
    version_texts = [issues_confirm.versions(first_result.environment)]
    for spec in _other_specs(runner, first_result):
        try:
            runner.say("environment", "not observed yet: trying other versions")
            result = _pursue(runner, spec, first_result.script)
        except BuildError as error:
            runner.note(f"an alternative environment could not be built: {error}")
            continue
        except Stopped:
            runner.note("stopped on request while trying other versions")
            break
        version_texts.append(_versions(result, first_result))
        if result.judgement.match is not Match.MATCHED:
            continue
        confirmed, match = confirm(runner, result)
        if match is Match.MATCHED:
            commits = (first_result.environment.commit[:12], result.environment.commit[:12])
            if commits[0] != commits[1]:
                runner.note(f"not observed at commit {commits[0]}, but at {commits[1]}")
            else:
                runner.note(f"not observed with {version_texts[0]}")
            row = _passing_row(first_result, result)
            return replace(decision, verdict=confirmed, result=result, facets=(row,))
    verdict = decision.verdict
    if isinstance(verdict, NotReproduced):
        verdict = verdict.model_copy(update={"versions_tried": tuple(version_texts)})
    return replace(decision, verdict=verdict)
