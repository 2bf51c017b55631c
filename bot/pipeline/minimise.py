"""A confirmed failing program made small: every step is held against the whole failure, and the last confirmed one is kept.

The search (`bot.rules.reduce`) proposes, the trials run many proposals in one sandbox, and only fresh ordinary runs of the
desk confirm what is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from bot.errors import Stopped
from bot.models.attempt import Attempt, Judgement, Match, Script
from bot.models.environment import Environment
from bot.models.reduced import Ended, Mode, Reduced, Step
from bot.models.signature import CrashSignature
from bot.pipeline.desk import Desk
from bot.pipeline.signature import members_of
from bot.pipeline.trials import Trials
from bot.ports import Stage
from bot.rules.reduce import passes, tidy
from bot.rules.reduce.edits import size
from bot.rules.reduce.reached import unreached
from bot.rules.reduce.rejected import Rejected
from bot.rules.reduce.search import Search
from bot.rules.reduce.slip import Reference, reference
from bot.rules.statistics import SequentialTest

STAGE: Stage = "minimize"
PURPOSE = "minimize"
_FRESH = {"confirm", "control"}
_AT_A_TIME: dict[Mode, int] = {"fork": 48, "fresh": 12, "single": 4}
_MOST_RUNS, _SOME_RUNS = 60, 12
_MOST_REJECTED, _MOST_IDLE, _MOST_BACK = 4, 3, 3
_SEEDS = 100_003
_LAST, _MOST_LAST = 4, 0.5  # runs for which time is kept: the last confirmation, its control, the final test; and of the whole
_SLACK_S = 1.0

Control = Callable[[Script], bool]


def confirmed_reference(desk: Desk, script: Script, environment: Environment) -> tuple[Reference, tuple[int, ...]] | None:
    """What the confirming runs of a script showed, with the seeds under which it failed; None when none of them did."""
    runs = [row for row in desk.attempts if row.script == script.digest and row.environment == environment.id]
    fresh = [row for row in runs if row.purpose in _FRESH] or runs
    met = [row for row in fresh if row.judgement.match is Match.MET]
    if not met:
        return None
    judgement = next((row.judgement for row in met if row.judgement.failure and row.judgement.failure.frames), met[0].judgement)
    seeds = tuple(row.execution.seed for row in met if row.execution.seed is not None)
    return reference(judgement, script, len(met) / len(fresh)), seeds


def minimise(
    desk: Desk,
    script: Script,
    environment: Environment,
    held: Reference,
    *,
    seeds: tuple[int, ...] = (),
    control: Control | None = None,
    max_tests: int = 600,
    seconds: float = 300.0,
) -> Reduced:
    """The smallest program found that shows the same failure, confirmed by fresh runs.

    `seeds` are those under which the script failed, the first for every test. `control` says whether a program still passes
    where it should. What a killed process had confirmed is gone on from. Raises SandboxError.
    """
    shown = (desk.script, desk.environment)
    with Trials(desk, environment, held, seeds or (desk.job.options.seed,)) as trials:
        work = _Work(desk, trials, script, control, max_tests, seconds)
        try:
            ended = work.reduce()
        except Stopped:
            ended = "time" if desk.out_of_time else "stopped"
        finally:
            desk.script, desk.environment = shown
    return work.outcome(ended)


@dataclass(slots=True)
class _Work:
    """One reduction on its way. `best` is the last confirmed program, `taken` all of them, `path` the accepted ones since."""

    desk: Desk
    trials: Trials
    script: Script
    control: Control | None
    max_tests: int
    max_seconds: float
    best: Script = field(init=False)
    path: list[Script] = field(default_factory=list)
    taken: list[Script] = field(default_factory=list)
    history: list[Step] = field(default_factory=list)
    confirming: int = 0
    rejected: int = 0
    timid: bool = False
    sure: bool = True
    began: float = field(init=False)

    def __post_init__(self) -> None:
        self.best, self.began = self.script, self.desk.ports.clock()
        signature = self.desk.signature
        assert signature is not None
        # Where the failure is a value, or arises in a statement of the program with few words, other values in the program may
        # well bring about the same one for another reason.
        held = self.trials.held
        self.timid = not isinstance(members_of(signature)[held.member], CrashSignature) or not (held.path or held.shapes)

    def reduce(self) -> Ended:
        """All passes, each confirmed; then the end result by the sequential test."""
        self._say("looking for the failure again")
        self.trials.until = self.began + self.max_seconds - self._reserve()
        left = self.desk.left(PURPOSE, self._fits)
        if left is not None and self._kept(left) and self.trials.settle(left):
            self._take(left)
        elif not (self.trials.settle(self.script) or self._comes_and_goes()):
            return "time" if self._limit() == "time" else "unseen"
        self.trials.gauge(self.best)
        self.timid &= not self.trials.placed
        ended = self._passes()
        return ended if self._finally() else "unseen"

    def _comes_and_goes(self) -> bool:
        """Whether a failure that was there every time so far shows in some runs, and how often it does."""
        test, failures = SequentialTest(), 0
        if self.trials.held.rate < 1 or self._limit() is not None:
            return False
        for runs in range(1, _MOST_RUNS + 1):
            judgement = self.desk.run(self.script, self.trials.environment, self._seed(runs), PURPOSE, "the program again")
            failures += self.trials.holds(judgement, self.script)
            self.confirming += 1
            if (decision := test.decide(failures, runs)) != "undecided" and runs >= _SOME_RUNS:
                self.trials.held = self.trials.held.model_copy(update={"rate": failures / runs})
                return decision == "fails" and failures < runs and self.trials.settle(self.script)
        return False

    def _fits(self, kept: Attempt, script: Script) -> bool:
        """Whether an attempt of a killed process shows the failure and no other (a control's run is in another environment)."""
        return kept.environment == self.trials.environment.id and self.trials.holds(kept.judgement, script)

    def _kept(self, script: Script) -> bool:
        """Whether a program may be the result so far: it fails in fresh ordinary runs, and passes where it should."""
        return self._fails(script, final=False) and (self.control is None or self.control(script))

    def _reserve(self) -> float:
        """Seconds for the runs that come after the search."""
        runs = [row.execution.seconds for row in self.desk.attempts if row.script == self.script.digest]
        each = max(runs, default=0.0) + _SLACK_S
        several = 1.0 if self.trials.held.rate == 1 else 3 / self.trials.held.rate
        return min(_MOST_LAST * self.max_seconds, _LAST * each * several)

    def _passes(self) -> Ended:
        files = dict(self.best.files)
        if idle := unreached(files, self.trials.reached):
            files = self._pass(files, [idle])
        for make in (passes.early, passes.coarse):
            files = self._confirmed(self._settled(files, make))
        while (stop := self._limit()) is None:
            files = self._finely(files)
            after = self._confirmed(files)
            if self._limit() is None and (after == files or self.rejected >= _MOST_REJECTED):
                return "complete"
            files = after
        self._confirmed(files)
        return stop

    def _finely(self, files: dict[str, str]) -> dict[str, str]:
        """Everything that is left, again and again, until nothing goes any more; the smallest program on the way."""
        rejected, seen, smallest, idle, last = Rejected(), set[str](), files, 0, False
        while self._limit() is None:
            seen.add(self._neat(files).digest)
            files = self._pass(files, passes.fine(files, self._about(files)), None if last else rejected)
            smallest, idle = (files, 0) if size(files) < size(smallest) else (smallest, idle + 1)
            # Some edits undo what others do, and some make room for others with a longer program.
            if self._neat(files).digest not in seen and idle < _MOST_IDLE:
                last = False
                continue
            if last or not rejected.skipped:
                break
            files, last = smallest, True  # once more, with all that was left out
        return smallest

    def _settled(self, files: dict[str, str], make: passes.Pass) -> dict[str, str]:
        """A pass again and again, as long as it takes whole lines away."""
        while self._limit() is None:
            before = files
            files = self._pass(before, make(before, self._about(before)))
            if files != before:
                self.trials.refresh(self._with(files))
            if size(files)[0] == size(before)[0]:
                break
        return files

    def _about(self, files: dict[str, str]) -> passes.About:
        stack = self.trials.stacks.get(self._with(files).digest, frozenset())
        return passes.About(self.script.entry, self.trials.seen, self.timid, stack)

    def _pass(self, files: dict[str, str], groups: passes.Groups, rejected: Rejected | None = None) -> dict[str, str]:
        """One search to its end, or to a limit."""
        search = Search.over(files, groups, rejected)
        while self._limit() is None and (found := search.propose(self._width())):
            scripts = [self._with(each.files) for each in found]
            before = search.files
            search.learn(list(zip(found, self.trials.meets(scripts), strict=True)))
            if search.files != before:
                self._accepted(dict(search.files), [each.what for each in found if each.files == search.files])
        return dict(search.files)

    def _accepted(self, files: dict[str, str], what: list[str]) -> None:
        now = self._with(files)
        self.path.append(now)
        lines = size(files)[0]
        spent = self.desk.ports.clock() - self.began
        self.history.append(Step(what=what[0] if what else "", lines=lines, tests=self.trials.tests, seconds=round(spent, 2)))
        first, best = (size(each.files)[0] for each in (self.script, self.best))
        self._say(f"{first} → {lines} lines found" + (f", {best} confirmed" if best < first else ""))

    def _confirmed(self, files: dict[str, str]) -> dict[str, str]:
        """The program after a fresh ordinary run and the control, laid out; else the last one before it for which they hold."""
        neat = self._neat(files)
        if neat.digest == self.best.digest:
            return files
        if self._fails(neat, final=False):
            if self.control is None or self.control(neat):
                self._take(neat)
                return files
            self.timid = True
            self._back(self.control, files)
        else:
            self._back(lambda each: self._fails(each, final=False), files)
            self._doubt(neat)
        self.rejected += 1
        self.trials.known |= {script.digest: False for script in (neat, self._with(files))}
        return dict(self.best.files)

    def _doubt(self, script: Script) -> None:
        """What failed in trials did not in a run of its own: see whether that lies in the seed, else in the way of trying."""
        trials = self.trials
        if trials.held.rate == 1 and trials.each == 1:
            judgement = self.desk.run(script, trials.environment, trials.seed(0), "repeat", "with the seed of the trials")
            self.confirming += 1
            if trials.holds(judgement, script):
                trials.several()
                return
        trials.careful()

    def _back(self, still: Control, files: dict[str, str]) -> None:
        """Bisect what was accepted since the last confirmed program for the last one for which it holds."""
        path = [each for each in self.path if each.files != files]
        low, high = -1, len(path)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if still(path[middle]) else (low, middle)
        if low >= 0 and self._kept(path[low]):
            self._take(path[low])
        self.path = []

    def _with(self, files: Mapping[str, str]) -> Script:
        return self.script.model_copy(update={"files": dict(files)})

    def _neat(self, files: Mapping[str, str]) -> Script:
        return self._with(tidy.formatted(files))

    def _take(self, script: Script) -> None:
        self.best, self.path, self.sure = script, [], False
        self.taken.append(script)

    def _finally(self) -> bool:
        """Whether the end result still fails by the sequential test; if not, the result is the one before it that does, and the
        program as it was given when none of the last ones does.
        """
        # Of results that do come and go, one in thirty is turned down by chance: asked twice, one in a thousand.
        chances = 1 if self.trials.held.rate == 1 else 2
        last = self.taken[: -_MOST_BACK - 1 : -1]
        held = next((each for each in last if any(self._fails(each, final=True) for _ in range(chances))), None)
        self.best, self.sure = held or self.script, True
        return held is not None or not last

    def _fails(self, script: Script, *, final: bool) -> bool:
        """Fresh ordinary runs under new seeds: one where it always fails, else, and at the end, as many as the test needs."""
        always, failures = self.trials.held.rate == 1, 0
        for runs in range(1, _MOST_RUNS + 1):
            seed = self._seed(runs)
            judgement = (self._had(script, seed) if always and final else None) or self.desk.run(
                script, self.trials.environment, seed, PURPOSE, "smaller program"
            )
            failures += self.trials.holds(judgement, script)
            self.confirming += 1
            if always and not final:
                return failures > 0
            decision = SequentialTest().decide(failures, runs) if always else self.trials.decide(failures, runs, 0.02)
            if decision != "undecided":
                return decision == "fails"
        return False

    def _had(self, script: Script, seed: int) -> Judgement | None:
        """What a run of a program under a seed has shown, when there was one: the same run again shows nothing more."""
        mine = self.trials.environment.id
        return next(
            (
                row.judgement
                for row in self.desk.attempts
                if (row.script, row.environment, row.purpose, row.execution.seed) == (script.digest, mine, PURPOSE, seed)
            ),
            None,
        )

    def _seed(self, run: int) -> int:
        return self.desk.job.options.seed + _SEEDS + run

    def _width(self) -> int:
        return max(1, min(_AT_A_TIME[self.trials.mode], self.max_tests - self.trials.tests))

    def _limit(self) -> Ended | None:
        if self.trials.tests >= self.max_tests:
            return "tests"
        return "time" if self.desk.ports.clock() > self.trials.until else None

    def _say(self, text: str) -> None:
        self.desk.say(STAGE, f"minimising: {text}", min(self.trials.tests, self.max_tests), self.max_tests)

    def outcome(self, ended: Ended) -> Reduced:
        """What there is to show, at any moment."""
        return Reduced(
            before=self.script,
            script=self.best,
            tests=self.trials.tests,
            runs=self.trials.runs + self.confirming,
            seconds=self.desk.ports.clock() - self.began,
            lines_before=size(self.script.files)[0],
            lines_after=size(self.best.files)[0],
            history=tuple(self.history),
            mode=self.trials.mode,
            ended=ended,
            confirmed=self.sure,
        )
