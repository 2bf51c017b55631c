"""What the report leaves out, written by a model: refine → context → plan → a bounded loop of write, check, run, analyse.

The model proposes; a program counts only when a run of it meets the signature that was frozen before, and the confirming runs
are made elsewhere. See RepGen (arXiv 2512.14990) for the stages; here every generated program is executed.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from bot.errors import BuildError, ModelUnavailable
from bot.models.attempt import Attempt, Match, Script
from bot.models.context import Context
from bot.models.draft import Draft
from bot.models.environment import Environment, EnvironmentSpec, Requirement, Rung
from bot.models.plan import Action, Edit, GiveUp, Plan, Probe, Read, Reconstruction, Refined, Search, Write
from bot.models.report import Claim
from bot.pipeline import acting, analysing, checks, environment, launch, past, planning, quoting, refine, shelves
from bot.pipeline import contexts as contexting
from bot.pipeline.asking import Asking, Spent
from bot.pipeline.confirming import Found
from bot.pipeline.desk import Desk
from bot.ports import Shelf
from bot.rules.packages import imports
from prompts import fence
from sandbox.port import RunResult

_SHOWN = 3_000
_MENDS = 4
_NOTES = 6


@dataclass
class _Bench:
    """What the loop has on the table."""

    desk: Desk
    asking: Asking
    report: str
    refined: Refined
    spec: EnvironmentSpec
    built: Environment
    shelf: Shelf | None = None
    ranked: tuple[Context, ...] = ()
    plan: Plan | None = None
    program: str = ""
    contrast: str = ""
    programs: int = 0
    failed_runs: int = 0
    notes: list[str] = field(default_factory=list)
    last: Found | None = None

    def without(self, part: str) -> bool:
        """Whether a part is left out."""
        return part in self.desk.job.options.without

    def note(self, text: str) -> None:
        """Something for the next prompt; the oldest go first."""
        self.notes = [*self.notes, text][-_NOTES:]


def reconstruct(desk: Desk, draft: Draft, asking: Asking) -> Found | None:
    """A program for a report that has none that runs. None when the model has none either, or a limit was reached: then the
    desk's notes and `asking` say which.
    """
    assert draft.bug is not None
    try:
        bench = _prepared(desk, draft, asking)
        refined = _refined(bench, draft)
        desk.reconstruction = Reconstruction(refined=refined)
        if refined.signature is None:
            return None
        desk.signature, bench.refined = refined.signature, refined
        _completed(bench, draft)
        _plan(bench)
        return _loop(bench)
    except Spent as error:
        desk.spent = str(error)
    except ModelUnavailable as error:
        desk.notes.append(f"no model could be asked: {error}")
    except BuildError as error:
        desk.notes.append(f"the environment for a written program could not be built: {error}")
    return None


def _prepared(desk: Desk, draft: Draft, asking: Asking) -> _Bench:
    """The environment of the day and its sources, before anything is asked: what counts is fixed with the code in sight."""
    assert draft.bug is not None
    spec = draft.spec or environment.specify(draft.bug, desk.job.issue, desk.job.options, "")
    bench = _Bench(
        desk, asking, quoting.report(desk.job.issue, draft.bug), Refined(claim=desk.job.issue.title), spec, desk.build(spec)
    )
    _read_sources(bench, draft, [each.name for each in spec.requirements if each.rung is not Rung.REPAIR])
    return bench


def _refined(bench: _Bench, draft: Draft) -> Refined:
    assert draft.bug is not None
    desk = bench.desk
    if bench.without("refine"):
        return Refined(claim=desk.job.issue.title, signature=draft.signature, inferred=("claim",))
    with desk.stage("intake", "asking a model what the report leaves open"):
        question = refine.build(desk.job.issue, draft.bug, draft.signature, bench.built, bench.ranked)
        answer = bench.asking.ask(question)
    return refine.parse(answer.data, desk.job.issue, draft.signature)


def _completed(bench: _Bench, draft: Draft) -> None:
    """What the model says is needed beside what rules found."""
    wanted = _wanted(bench.refined, bench.spec)
    if not wanted:
        return
    for requirement in wanted:
        bench.spec = environment.add(bench.spec, requirement)
    bench.built = bench.desk.build(bench.spec)
    tops = dict.fromkeys(name.split(".")[0] for name in bench.refined.api)
    _read_sources(bench, draft, [imports.distribution(top) or top for top in tops])


def _read_sources(bench: _Bench, draft: Draft, names: list[str]) -> None:
    desk = bench.desk
    if desk.ports.library is None or bench.without("context") or not names:
        return
    assert draft.bug is not None
    with desk.stage("candidates", "reading the sources of " + ", ".join(names[:3])):
        bench.shelf = desk.ports.library.shelf(bench.built, tuple(dict.fromkeys(names)), cancel=desk.ports.cancel)
        bench.ranked = contexting.contexts(draft.bug, desk.job.issue, bench.shelf)


def _wanted(refined: Refined, spec: EnvironmentSpec) -> list[Requirement]:
    """What the model says is needed beside what rules found; a version only where the report's own words say so."""
    known = {each.name for each in spec.requirements}
    quoted = {pin.name: pin.version for pin in refined.pins if pin.quoted}
    wanted = []
    for name in refined.packages:
        plain = imports.normalise(name)
        if plain in known or plain == "python":
            continue
        version = quoted.get(name.lower(), "")
        reason = f"the report says {version} (read by a model)" if version else "a model says that the program needs it"
        specifier = f"=={version}" if version else ""
        wanted.append(Requirement(name=plain, specifier=specifier, rung=Rung.ISSUE if version else Rung.IMPORT, reason=reason))
    return wanted


def _plan(bench: _Bench) -> None:
    if bench.without("plan"):
        return
    with bench.desk.stage("candidates", "planning the smallest program"):
        answer = bench.asking.ask(planning.build(bench.report, bench.refined, bench.built, bench.ranked))
    question = bench.asking.exchanges[-1].question
    bench.plan, wishes = planning.parse(answer.data, question.prompt)
    titles = tuple(context.title for context in bench.ranked)
    _record(bench, plans=(bench.plan,), contexts=titles)
    for wish in wishes:
        bench.note(_looked(bench, wish))


def _record(bench: _Bench, **changes: object) -> None:
    assert bench.desk.reconstruction is not None
    bench.desk.reconstruction = bench.desk.reconstruction.model_copy(update=changes)


def _looked(bench: _Bench, wish: Search | Read) -> str:
    said = f"search {wish.query!r}" if isinstance(wish, Search) else f"read {wish.path} {wish.start} to {wish.end}"
    bench.desk.say("candidates", f"looking into the sources: {said}")
    return f"You asked to {said}:\n{shelves.look_up(bench.shelf, wish)}"


def _loop(bench: _Bench) -> Found | None:
    options = bench.desk.job.options
    while bench.programs < options.max_attempts:
        history = "" if bench.without("feedback") else _history(bench)
        with bench.desk.stage("candidates", f"writing a program (try {bench.programs + 1} of at most {options.max_attempts})"):
            question = acting.build(
                bench.report, bench.refined, bench.built, bench.plan, bench.ranked, history, bench.asking.left()
            )
            actions = acting.parse(bench.asking.ask(question).data)
        for action in actions:
            if isinstance(action, GiveUp):
                _gave_up(bench, action)
                return bench.last
            if (found := _carried_out(bench, action)) is not None:
                return found
    bench.desk.notes.append(f"{bench.programs} programs of a model did not show the failure")
    return bench.last


def _gave_up(bench: _Bench, action: GiveUp) -> None:
    questions = action.questions or bench.refined.questions
    refined = bench.refined.model_copy(update={"questions": questions})
    _record(bench, given_up=action.reason, refined=refined)
    bench.desk.notes.append(f"the model gave up: {action.reason}")


def _carried_out(bench: _Bench, action: Action) -> Found | None:
    match action:
        case Search() | Read():
            bench.note(_looked(bench, action))
        case Probe():
            bench.note(_probed(bench, action))
        case Write():
            bench.program, bench.contrast = action.program, action.contrast or ""
            return _tried(bench, action.change)
        case Edit():
            changed = acting.edited(bench.program if action.file == "program" else bench.contrast, action)
            if action.file == "program":
                bench.program = changed
            else:
                bench.contrast = changed
            return _tried(bench, action.change)
        case _:
            return None
    return None


def _probed(bench: _Bench, action: Probe) -> str:
    """A snippet is run like a program, and like one it reaches nothing; what it prints proves nothing."""
    if bench.without("probe"):
        return "Probes are not available."
    assert bench.desk.signature is not None
    script = Script(files={"repro.py": action.code}, origin="a model's probe", author="model")
    with bench.desk.stage("search", "running a probe"):
        spec = launch.spec(
            script, bench.built, bench.desk.job.options, bench.desk.signature, bench.desk.job.options.seed, "probe"
        )
        result = bench.desk.execute(spec)
    ended = f"exit code {result.exit_code}" if result.signal is None else f"signal {result.signal}"
    printed = _ends(f"{result.stdout}\n{result.stderr}".strip())
    return f"Your probe\n{fence('probe', action.code)}\nended with {ended} and printed\n{fence('output', printed)}"


def _tried(bench: _Bench, change: str) -> Found | None:
    """Check the program, run it, and what follows from that. One that is refused costs a call and no try."""
    assert bench.desk.reconstruction is not None
    _record(bench, changes=(*bench.desk.reconstruction.changes, change))
    if not bench.without("checks") and (wrong := _objections(bench)):
        bench.desk.say("candidates", "the program was not run: " + wrong[0])
        bench.note("Your last program was not run (nor its twin):\n" + "\n".join(f"- {each}" for each in wrong))
        return None
    bench.programs += 1
    script = Script(files={"repro.py": bench.program}, origin="a program written by a model", author="model")
    found = _run(bench, script, change or "written by a model")
    if found.judgement.match is Match.MET and (why := _confounded(bench, found)):
        bench.note(f"Your program failed as reported, but {why}")
        return None
    if found.judgement.match is Match.MET:
        return found
    bench.last, bench.failed_runs = found, bench.failed_runs + 1
    bench.note(_outcome(bench.desk.attempts[-1], bench.desk.last))
    _analyse(bench)
    return None


def _objections(bench: _Bench) -> list[str]:
    device = bench.desk.job.options.device
    wrong = list(checks.objections(bench.program, bench.refined, device=device))
    if bench.refined.needs_contrast and not bench.contrast.strip() and not bench.without("contrast"):
        wrong.append("It has no twin: `contrast` must be the same program without the reported point, and must not fail.")
    return wrong


def _run(bench: _Bench, script: Script, change: str) -> Found:
    """Run a program once, getting past what the environment lacks as for any other."""
    desk, seed = bench.desk, bench.desk.job.options.seed
    with desk.stage("search", change):
        judgement = desk.run(script, bench.built, seed, "search", change)
    for _ in range(_MENDS):
        step = past.way(desk, bench.spec, script, judgement)
        if step is None:
            break
        bench.spec, script, change = step
        bench.built = desk.build(bench.spec)
        with desk.stage("search", change):
            judgement = desk.run(script, bench.built, seed, "search", change)
    bench.program = script.source
    return Found(script, bench.spec, bench.built, judgement)


def _confounded(bench: _Bench, found: Found) -> str:
    """Why the failure may have another cause than the reported one, "" when the twin passes (or none was called for)."""
    if not bench.contrast.strip() or bench.without("contrast"):
        return ""
    desk = bench.desk
    twin = Script(files={"repro.py": bench.contrast}, origin="its twin without the reported point", author="model")
    with desk.stage("search", "running the twin, which must not fail"):
        judgement = desk.run(twin, found.built, desk.job.options.seed, "contrast", "must not fail")
    last = desk.attempts[-1]
    desk.script = found.script
    if judgement.match is Match.ABSENT and not last.execution.exit_code:
        desk.claims.append(Claim(text="without the reported point it works", holds=True, evidence=judgement.reason))
        return ""
    return f"its twin, which must not fail, did not pass ({judgement.reason}):\n{_outcome(last, desk.last)}"


def _outcome(attempt: Attempt, result: RunResult | None) -> str:
    """What a run did, for the next prompt: how it ended, where it failed, and what it printed."""
    judgement, execution = attempt.judgement, attempt.execution
    ended = "timed out" if execution.timed_out else f"exit code {execution.exit_code}"
    failure = judgement.failure
    shown = []
    if failure is not None:
        frames = [
            f'  File "{frame.module_path or frame.path}", line {frame.line}, in {frame.function}\n    {frame.code}'
            for frame in failure.frames[-6:]
        ]
        shown.append("\n".join([*frames, f"{failure.exception}: {failure.message}"]))
    elif result is not None and result.stderr.strip():
        shown.append(result.stderr)
    if result is not None and result.stdout.strip():
        shown.append(f"standard output:\n{result.stdout}")
    said = "\n\n".join(_ends(each.strip()) for each in shown) or judgement.evidence or "(nothing)"
    return f"The run of your last program ({ended}, {execution.seconds:.1f} s) did not count: {judgement.reason}\n" + fence(
        "output of the run", said
    )


def _ends(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN // 3]}\n[…]\n{text[-_SHOWN * 2 // 3 :]}"


def _analyse(bench: _Bench) -> None:
    """From the second failed run on: why, said apart from the next program."""
    if bench.failed_runs < 2 or bench.without("analysis") or bench.without("feedback"):
        return
    with bench.desk.stage("candidates", "asking why the run did not show it"):
        answer = bench.asking.ask(analysing.build(bench.refined, bench.built, _history(bench)))
    said, names = analysing.parse(answer.data)
    bench.note(said)
    for name in names:
        bench.note(_looked(bench, Search(query=name)))


def _history(bench: _Bench) -> str:
    parts = []
    for name, text in (("program", bench.program), ("contrast", bench.contrast)):
        if text.strip():
            numbered = "\n".join(f"{at:4d}  {line}" for at, line in enumerate(text.splitlines(), 1))
            parts.append(f"Your last {name}:\n{fence(name, numbered)}")
    return "\n\n".join([*parts, *bench.notes])
