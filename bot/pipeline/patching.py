"""The last resort of a control: a change of the failing program that a model proposes, and that rules and a run let pass.

A model's word decides nothing here. The change is small, it suppresses nothing, and a traced run shows that the operation is
reached and that all is well. What is left is run beside the failing program like any other control. Echo and e-Otter++ use
surrogate fixes in this way; see reproduction.md, "Where the field stands".
"""

from __future__ import annotations

import ast
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources

from pydantic import ValidationError

from bot.errors import ModelUnavailable
from bot.models.attempt import Judgement, Match, Script
from bot.models.bug import Frame
from bot.models.dialogue import Question
from bot.models.environment import Environment, EnvironmentSpec
from bot.models.plan import Patch, Refined
from bot.models.signature import CrashSignature, HangSignature, Member, ObservationSignature, OutputSignature
from bot.pipeline import judge, launch, observe, quoting, surrogate, twins
from bot.pipeline.asking import Asking, Spent
from bot.pipeline.at_hand import Candidate
from bot.pipeline.desk import Desk
from bot.pipeline.observe import Observation
from bot.pipeline.signature import members_of
from bot.rules.patches import often, shape
from bot.rules.patches import operation as operations
from bot.rules.patches.often import Reached
from bot.rules.patches.operation import Operation
from bot.rules.signatures import values
from prompts import fence

WHAT = "surrogate patch proposed by a model"
_TRIES = 2
_FOLDER = ".reprise"
_ANSWER = f"{_FOLDER}/reached.json"


def propose(desk: Desk, asking: Asking, script: Script, spec: EnvironmentSpec, built: Environment) -> Candidate | None:
    """A change of the program that may be run as its control; None when there is none, with a note that says why."""
    try:
        work = _prepared(desk, asking, script, built)
        if isinstance(work, str):
            desk.notes.append(f"no small patch of the program was asked for: {work}")
            return None
        found, why = work.found(), work.why
    except RecursionError:
        found = "the program is nested too deeply to be compared"
    except Spent as error:
        found = f"asking for one would pass {error}"
    except ModelUnavailable as error:
        found = f"no model could be asked: {error}"
    if isinstance(found, str):
        desk.notes.append(f"no control with a {WHAT}: {found}")
        return None
    return Candidate("surrogate-patch", WHAT, (spec,), script=found, patch=surrogate.difference(script, found), why=why)


def _prepared(desk: Desk, asking: Asking, script: Script, built: Environment) -> _Work | str:
    """What there is to work on, or why no patch could be told from a suppressed symptom."""
    assert desk.signature is not None
    seen = _confirmed(desk, script, built)
    if seen is None:
        return "no run that confirms the failure is at hand"
    try:
        ast.parse(script.source)
    except (SyntaxError, ValueError) as error:  # it ran on another Python than ours
        return f"the program cannot be compared ({type(error).__name__})"
    member = members_of(desk.signature)[seen.member]
    if not surrogate.tellable(member):
        return "the report does not say what the output should be, so that any other output would pass for it"
    part = desk.reconstruction.refined if desk.reconstruction is not None else None
    refined = (part or Refined(claim=desk.job.issue.title)).model_copy(update={"signature": desk.signature})
    work = _Work(desk, asking, script, built, seen, member, refined)
    if work.locate():
        return work
    return "it cannot be told in which of its calls the program fails"


def _confirmed(desk: Desk, script: Script, built: Environment) -> Judgement | None:
    """How a confirming run failed, one that tells where before the others."""
    rows = (row for row in desk.attempts if (row.script, row.environment) == (script.digest, built.id))
    met = [row.judgement for row in rows if row.judgement.match is Match.MET]
    return next((each for each in met if each.failure is not None and each.failure.frames), met[0] if met else None)


@dataclass(slots=True)
class _Work:
    """One search for a patch. `seen` is a run that failed as reported, `member` the signature that it met, `why` what the model
    says of the patch that was found.
    """

    desk: Desk
    asking: Asking
    script: Script
    built: Environment
    seen: Judgement
    member: Member
    refined: Refined
    operation: Operation = field(default_factory=lambda: Operation(()))
    entered: Frame | None = None
    failing: tuple[Reached | None] | None = None
    why: str = ""

    def locate(self) -> bool:
        """Find the operation, and the library's function that it enters where the failure was an exception."""
        tree = ast.parse(self.script.source)
        frames = self.seen.failure.frames if self.seen.failure is not None else ()
        own = [at for at, frame in enumerate(frames) if not frame.package and frame.path.endswith(self.script.entry)]
        last = frames[own[-1]] if own else None
        crashed = isinstance(self.member, CrashSignature) and not self.member.checks and last is not None and last.line
        found: Operation | None
        if last is not None and crashed and not last.code.strip().startswith(("assert", "raise")):
            self.entered = next(iter(frames[own[-1] + 1 :]), None)
            found = operations.raising(tree, last.line or 0, self.entered.function if self.entered is not None else "")
        else:
            api = self.member.api if isinstance(self.member, ObservationSignature) else self.refined.api
            api = api or (self.desk.bug.api if self.desk.bug is not None else ())
            found = operations.named(tree, api, self._ran())
        self.operation = found or self.operation
        return found is not None

    def _ran(self) -> Collection[int]:
        """The lines that the failing program runs; of one that hangs all count."""
        if isinstance(self.member, HangSignature):
            return range(1, len(self.script.source.splitlines()) + 1)
        failing = self._failing_reached()
        return failing.lines if failing is not None else ()

    def _failing_reached(self) -> Reached | None:
        """What the failing program reaches up to its failure; None where nothing is heard of it, as where it hangs."""
        if self.failing is None:
            self.failing = (None if isinstance(self.member, HangSignature) else self._traced(self.script)[1],)
        return self.failing[0]

    def found(self) -> Script | str:
        """The changed program, or why there is none."""
        history, why = "", ""
        for turn in range(_TRIES):
            self.desk.say("control", "asking a model for a small patch of the program", turn + 1, _TRIES)
            patch = surrogate.parse(self.asking.ask(self._question(history), self.desk.ports.cancel).data)
            if not patch.edits:
                return f"the model knows of none: {patch.why}"
            after = surrogate.patched(self.script, patch)
            why = after if isinstance(after, str) else self._unfit(after, patch)
            if isinstance(after, Script) and not why:
                self.why = patch.why
                return after
            shown = "\n".join(f"lines {each.start} to {each.end}:\n{each.text}" for each in patch.edits)
            history = f"Your last change was not accepted. {why}\n{fence('the change', shown)}"
        return why[:1].lower() + why[1:].rstrip(".")

    def _question(self, history: str) -> Question:
        assert self.desk.bug is not None
        report = quoting.report(self.desk.job.issue, self.desk.bug)
        failure = self.seen.failure
        return surrogate.build(report, self.member, self.script, self.operation, self.built, failure, history)

    def _unfit(self, after: Script, patch: Patch) -> str:
        """Why a change is no control, "" when it may be run as one."""
        device = self.desk.job.options.device
        if why := surrogate.refused(self.script, after, patch, self.operation, self.refined, device=device):
            return why
        self.desk.say("control", "running the program with the patch, traced")
        seen, reached = self._traced(after)
        return self._unwell(seen, after) or self._unreached(after, reached)

    def _unwell(self, seen: Observation, after: Script) -> str:
        """Why a run does not show that all is well."""
        assert self.desk.signature is not None
        judgement = judge.judge(seen, self.desk.signature, after)
        if judgement.match is Match.MET:
            return f"The program fails as before ({judgement.reason}): {twins.words(judgement)}."
        if judgement.match is Match.UNDECIDED:
            return f"The run decides nothing: {judgement.reason}."
        if judgement.match is not Match.ABSENT or seen.exit_code:
            return f"The program does not come to its end: {twins.words(judgement)}."
        if isinstance(self.member, OutputSignature):
            return "" if _right(self.member, seen, after) else "The program does not print what would be right."
        if not isinstance(self.member, CrashSignature) and not seen.printed and "print" in self.script.source:
            return "The program prints nothing any more."
        return ""

    def _unreached(self, after: Script, reached: Reached | None) -> str:
        """Why a run does not show that the operation was done, as often as in the failing program up to its failure."""
        old, new = ast.parse(self.script.source), ast.parse(after.source)
        if reached is None:
            return "It could not be seen what the program reaches."
        if not isinstance(self.member, OutputSignature) and reached.lines.keys() & shape.handlers(new):
            return "The program ends up in a handler of exceptions of its own."
        return often.objection(old, new, self.operation, self._failing_reached(), reached, self.entered)

    def _traced(self, script: Script) -> tuple[Observation, Reached | None]:
        """One run of a program that notes what it reaches; None for what cannot be read of that."""
        assert self.desk.signature is not None
        options = self.desk.job.options
        plain = launch.spec(script, self.built, options, self.desk.signature, options.seed, "what it reaches")
        result = self.desk.execute(
            replace(
                plain,
                argv=(plain.argv[0], f"{_FOLDER}/reached.py", script.entry, _ANSWER),
                files={**plain.files, f"{_FOLDER}/reached.py": _probe()},
                artifacts=(*plain.artifacts, _ANSWER),
            )
        )
        try:
            reached = Reached.model_validate_json(result.artifacts.get(_ANSWER, b""))
        except ValidationError:
            reached = None
        return observe.observe(result, self.built.roots), reached


def _right(member: OutputSignature, seen: Observation, script: Script) -> bool:
    """Whether a run prints what the report says is right; where it only shows NaN, the same lines with finite numbers."""
    if member.expected and judge.rightly(seen, member):
        return True
    if member.expected:
        right = member.model_copy(update={"observed": member.expected, "expected": ()})
        return judge.judge(seen, right, script).match is Match.MET
    finite = {values.skeleton(line) for line in seen.output if not values.nonfinite(line)}
    return finite.issuperset(surrogate.odd(member))


@cache
def _probe() -> bytes:
    return resources.files("sandbox").joinpath("probe", "reached.py").read_bytes()
