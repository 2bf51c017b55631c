"""A reproduced failure → proof: a control that passes, the versions that brought it and took it away, and the smallest program
that shows it. None of them changes the verdict's word, and each ends with what it has when its time is up.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from bot.errors import RepriseError, Stopped
from bot.models.attempt import Match, Script
from bot.models.bisect import Bisection
from bot.models.environment import Environment, EnvironmentSpec, RepoSource
from bot.models.job import PROOFS, Proof
from bot.models.reduced import Ended, Reduced
from bot.models.verdict import ControlType, Reproduced
from bot.pipeline import claimed, environment, patching
from bot.pipeline.asking import Asking
from bot.pipeline.at_hand import Candidate
from bot.pipeline.bisection import bisect_commits, bisect_releases
from bot.pipeline.control import Controlled, control
from bot.pipeline.desk import OUT_OF_TIME, STOPPED, Desk
from bot.pipeline.minimise import confirmed_reference, minimise
from bot.ports import Progress
from bot.rules.reduce.edits import size
from sandbox.port import SandboxError

_SHARE: dict[Proof, float] = {"control": 0.3, "bisect": 0.6, "minimize": 1.0}
"""Of the time that is left when its turn comes; all of it for the last."""

_DOES: dict[Proof, str] = {"control": "run a control", "bisect": "bisect", "minimize": "make the program smaller"}
_MOST_TESTS = 4_000
_WEAK = {"none", "surrogate-patch"}  # a release that works says more
_KINDLY = 0.9  # of a limit: what ends by itself has more to show than what is stopped


def prove(desk: Desk, verdict: Reproduced, wanted: tuple[Proof, ...] = PROOFS, asking: Asking | None = None) -> Reproduced:
    """The verdict with its control; the desk takes up the bisection, the smaller program and what was learned on the way.
    The model of `asking`, if there is one and the options do not leave it out, may propose a control where there is no other.

    The failing program, its environment and its confirming runs are those that the desk holds, as is a bisection that was made
    before: a control may come from it. What cannot be done is a note.
    """
    work = _work(desk, verdict, asking)
    work.do(tuple(proof for proof in PROOFS if proof in wanted))
    return work.verdict


def bisect_clone(desk: Desk, verdict: Reproduced, source: RepoSource, good: str, bad: str) -> tuple[Bisection, Reproduced]:
    """A bisection over the commits of a clone, and the verdict with the control that it offers where there was none. Raises
    UserError when the commits or the clone are not what can be bisected.
    """
    work = _work(desk, verdict)
    with desk.noting("bisect"):
        found = work.commits(source, good, bad)
    return found, work.verdict


def _work(desk: Desk, verdict: Reproduced, asking: Asking | None = None) -> _Work:
    assert desk.script is not None
    assert desk.spec is not None
    assert desk.environment is not None
    mute = desk.ports.model is None or {"model", "surrogate"} & {*desk.job.options.without}
    return _Work(desk, verdict, desk.script, desk.spec, desk.environment, None if mute else asking)


@dataclass(slots=True)
class _Work:
    """The proofs of one failure, in turn."""

    desk: Desk
    verdict: Reproduced
    script: Script
    spec: EnvironmentSpec
    built: Environment
    asking: Asking | None = None
    twin: EnvironmentSpec | None = None
    until: float = field(init=False)

    def __post_init__(self) -> None:
        self.until = self.desk.ports.clock() + 60 * self.desk.job.options.proof_minutes
        self.twin = self.desk.control_spec

    def do(self, wanted: tuple[Proof, ...]) -> None:
        for proof, step, share in self._steps(wanted):
            if self.desk.ports.cancel.is_set():
                with self.desk.noting(proof):
                    self.desk.notes.append(f"{STOPPED} before it could {_DOES[proof]}")
                self.desk.ended(proof, STOPPED)
                return
            self._try(proof, step, share)

    def _steps(self, wanted: tuple[Proof, ...]) -> Iterator[tuple[Proof, Callable[[float], None], float]]:
        """What is done in turn, each with its share of the time that is left then."""
        steps = {"control": self._control, "bisect": self._bisect, "minimize": self._minimise}
        for proof in wanted:
            if proof == "minimize" and self._asks(wanted):
                yield "control", self._patched, _SHARE["control"]
            yield proof, steps[proof], 1.0 if proof == wanted[-1] and not self._asks(wanted) else _SHARE[proof]
        if "minimize" not in wanted and self._asks(wanted):
            yield "control", self._patched, 1.0

    def _asks(self, wanted: tuple[Proof, ...]) -> bool:
        """Whether a model is still to be asked for a control."""
        return self.asking is not None and "control" in wanted and self.verdict.control.type == "none"

    def _try(self, proof: Proof, step: Callable[[float], None], share: float = 1.0) -> None:
        """One proof within its share of the time that is left."""
        with self.desk.noting(proof):
            seconds = share * (self.until - self.desk.ports.clock())
            if seconds <= 0:
                self.desk.notes.append(f"there was no time left to {_DOES[proof]}")
                self.desk.ended(proof, OUT_OF_TIME)
                return
            with self._bounded(proof, seconds):
                step(seconds * _KINDLY)

    @contextmanager
    def _bounded(self, proof: Proof, seconds: float) -> Iterator[None]:
        """What goes wrong with a proof is a note beside the verdict, which stands without it; an error of our own is no
        exception to that.
        """
        desk = self.desk
        try:
            with desk.limited(seconds):
                yield
        except Stopped:
            self._note(proof, f"{desk.why_stopped} before it could {_DOES[proof]}")
            desk.ended(proof, desk.why_stopped)
        except (RepriseError, SandboxError) as error:
            self._note(proof, f"it could not {_DOES[proof]}: {error}")
        except Exception as error:
            self._defect(proof, error)
        finally:
            desk.spec, desk.environment, desk.script = self.spec, self.built, self.script

    def _note(self, proof: Proof, text: str) -> None:
        """Note how a proof went, unless an earlier round of it noted the same."""
        if text not in self.desk.proof_notes.get(proof, ()):
            self.desk.notes.append(text)

    def _defect(self, proof: Proof, error: Exception) -> None:
        """Keep an error of our own: whoever watches hears of it, and the report has its traceback."""
        said = f"it could not {_DOES[proof]}: an internal error ({type(error).__name__}); please report it"
        self._note(proof, said)
        self.desk.defects[proof] = "".join(traceback.format_exception(error))
        self.desk.ports.listener(Progress(stage=proof, text=said))

    def _control(self, seconds: float) -> None:
        assert self.desk.bug is not None
        desk, bug, surrogates = self.desk, self.desk.bug, self._surrogates()
        found = control(
            desk, self.script, self.spec, self.built, bug, bisected=desk.bisection, surrogates=surrogates, seconds=seconds
        )
        self._take(found)

    def _surrogates(self) -> tuple[Candidate, ...]:
        """What the report sets against the failing program, where it did work: the last resort, as it differs in more than one
        version of one package.
        """
        kind: ControlType = "surrogate-patch"
        return tuple(Candidate(kind, each.origin, (self.spec,), script=each) for each in self.desk.contrasts)

    def _patched(self, seconds: float) -> None:
        """The last resort, once no version is left that could be a control."""
        assert self.asking is not None
        assert self.desk.bug is not None
        desk, bug, began = self.desk, self.desk.bug, self.desk.ports.clock()
        with desk.stage("control", "looking for a small patch of the program"):
            found = patching.propose(desk, self.asking, self.script, self.spec, self.built)
        if found is not None:
            left = seconds - (desk.ports.clock() - began)
            twin = control(desk, self.script, self.spec, self.built, bug, surrogates=(found,), versions=False, seconds=left)
            self._take(twin)

    def _bisect(self, seconds: float) -> None:
        desk, began = self.desk, self.desk.ports.clock()
        package = desk.job.options.package or self._at_fault()
        if not package:
            desk.notes.append("nothing was bisected: the report does not tell which package is at fault")
            return
        assert desk.bug is not None
        with desk.stage("bisect", f"bisect: {package}"):
            found = bisect_releases(desk, self.script, self.spec, self.built, package, desk.bug, seconds=seconds)
        if found is None:
            return
        self._keep(found)
        desk.claims.extend(claimed.claims(desk.bug, found, desk.claims))
        left = seconds - (desk.ports.clock() - began)
        if self.verdict.control.type in _WEAK and left > 0 and found.bounded:
            with desk.noting("control"), self._bounded("control", left):
                self._compare(found, left)

    def commits(self, source: RepoSource, good: str, bad: str) -> Bisection:
        """A bisection over commits, then a control with what it found to pass, both within the time for proofs."""
        desk, seconds = self.desk, self.until - self.desk.ports.clock()
        with desk.limited(seconds), desk.stage("bisect", f"bisect: {good} to {bad}"):
            found = bisect_commits(desk, self.script, self.spec, self.built, source, good, bad, seconds=seconds * _KINDLY)
        self._keep(found)
        desk.clone = source
        if self.verdict.control.type in _WEAK and found.bounded and not desk.ports.cancel.is_set():
            self._try("control", lambda left: self._compare(found, left))
        return found

    def _keep(self, found: Bisection) -> None:
        """Take up a bisection; one that was cut short takes no whole one away."""
        desk = self.desk
        desk.ended("bisect", found.stopped)
        if "bisect" not in desk.cut_short or not any(_whole(each, found) for each in (desk.bisection, *desk.other_bisections)):
            desk.keep(found)

    def _compare(self, found: Bisection, seconds: float) -> None:
        """A control with what a bisection found to pass."""
        desk = self.desk
        assert desk.bug is not None
        self._take(control(desk, self.script, self.spec, self.built, desk.bug, bisected=found, seconds=seconds))

    def _at_fault(self) -> str:
        """The package under test, or another one of which the reporter's word that a version works was borne out by a run."""
        assert self.desk.bug is not None
        target = environment.under_test(self.spec, self.desk.bug, self.desk.job.issue)
        ours = target.name if target is not None and self.built.version(target.name) else ""
        told = claimed.borne_out(self.desk.bug, self.desk.claims, self.built)
        return ours if not told or ours in told else told[0]

    def _take(self, found: Controlled) -> None:
        for note in found.notes:
            self._note("control", note)
        told = {claim.text for claim in self.desk.claims}
        self.desk.claims.extend(claim for claim in found.claims if claim.text not in told)
        if found.control.type not in _WEAK:  # else there may still be a version that works
            self.desk.cut_short.pop("control", None)
        self.desk.ended("control", found.ended)
        if found.control.type != "none":
            self.verdict = self.verdict.model_copy(update={"control": found.control})
            self.twin = self.desk.control_spec = None if found.control.type == "surrogate-patch" else found.spec

    def _minimise(self, seconds: float) -> None:
        desk = self.desk
        held = confirmed_reference(desk, self.script, self.built)
        if held is None:
            return
        reference, seeds = held
        earlier = desk.reduced
        with desk.stage("minimize", "making the program smaller"):
            passes = self._passes if self._held_against() else None
            found = minimise(
                desk, self.script, self.built, reference,
                seeds=seeds, control=passes, max_tests=_MOST_TESTS, seconds=seconds,
            )  # fmt: skip
        desk.ended("minimize", _CUT.get(found.ended, ""))
        if desk.gone_on is not None:
            found = found.model_copy(update={"resumed": size(desk.gone_on.files)[0]})
        desk.reduced = found = _since(earlier, found)
        if found.ended in _SAID:
            desk.notes.append(_SAID[found.ended])
        if not found.confirmed:
            desk.notes.append(_UNSURE)
        self.script = found.script

    def _held_against(self) -> bool:
        """Whether there is a control for smaller programs. One that was not found with this very program is tried first."""
        if self.twin is None or (self.verdict.control.type == "none" and not self._passes(self.script)):
            self.twin = self.desk.control_spec = None
        return self.twin is not None

    def _passes(self, script: Script) -> bool:
        """Whether a smaller program still runs through where the control does."""
        assert self.twin is not None
        shown = (self.desk.spec, self.desk.environment, self.desk.script)
        try:
            built = self.desk.build(self.twin)
            seed = self.desk.job.options.seed + 1
            return self.desk.run(script, built, seed, "minimize", "smaller program, control").match is Match.ABSENT
        finally:
            self.desk.spec, self.desk.environment, self.desk.script = shown


_UNSURE = "the smaller program was seen to fail, but it was stopped before it was tested as the first one was"
_SAID: dict[Ended, str] = {
    "unseen": "the program could not be made smaller: the failure did not show again when that was begun",
    "time": "the program may not be as small as it could be: the time for that was up",
    "tests": "the program may not be as small as it could be: the number of tries was used up",
    "stopped": "the program may not be as small as it could be: that was stopped",
}
_CUT: dict[Ended, str] = {"time": OUT_OF_TIME, "stopped": STOPPED}


def _whole(earlier: Bisection | None, found: Bisection) -> bool:
    """Whether there is a bisection over the same that came to its end."""
    return earlier is not None and not earlier.stopped and (earlier.package, earlier.over) == (found.package, found.over)


def _since(earlier: Reduced | None, found: Reduced) -> Reduced:
    """Both tries at one program together; one that was cut short takes nothing back."""
    if earlier is None or earlier.before != found.before:
        return found
    tests, seconds = earlier.tests, earlier.seconds
    steps = (each.model_copy(update={"tests": each.tests + tests, "seconds": each.seconds + seconds}) for each in found.history)
    kept = ("script", "lines_after", "confirmed") if found.ended in _CUT and earlier.lines_after < found.lines_after else ()
    return found.model_copy(
        update={
            "tests": tests + found.tests,
            "runs": earlier.runs + found.runs,
            "seconds": seconds + found.seconds,
            "history": (*earlier.history, *steps),
            "resumed": found.resumed or earlier.resumed,
            **{name: getattr(earlier, name) for name in kept},
        }
    )
