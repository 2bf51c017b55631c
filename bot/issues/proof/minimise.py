"""A confirmed failing program made small: every step is tested for the whole failure, and the last
confirmed program is kept.

The search (`bot.issues.reduce`) proposes, the oracle tests many proposals in one sandbox, and only
fresh ordinary runs confirm what is kept.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from bot.issues.proof.failure_oracle import PURPOSE, BatchRunner, FailureTest, FreshRuns, Oracle
from bot.issues.reduce import search, statements
from bot.issues.reduce.edits import size
from bot.issues.reduce.failure_identity import FailureIdentity, identity
from bot.issues.reduce.search import ReductionPass, RejectedReductions
from bot.issues.reduce.statements import unreached
from bot.issues.runner import Runner
from bot.kernel.attempt import Ended, Match, Mode, Reduced, Script, Step
from bot.kernel.environment import Environment
from bot.kernel.errors import Stopped
from bot.kernel.job import Interruption
from bot.kernel.ports import Stage

STAGE: Stage = "minimize"
_CONFIRMING = {"confirm", "control"}
_AT_A_TIME: dict[Mode, int] = {"fork": 48, "fresh": 12, "single": 4}
_MAX_UNCONFIRMED, _MAX_IDLE, _MAX_BACK = 4, 3, 3
Control = Callable[[Script], bool]


def confirmed_identity(
    runner: Runner, script: Script, environment: Environment
) -> tuple[FailureIdentity, tuple[int, ...]] | None:
    """What the confirming runs of a script showed, with the seeds under which it failed; None
    when none of them did.
    """
    runs = runner.attempts.of(script, environment)
    fresh = [row for row in runs if row.purpose in _CONFIRMING] or runs
    failed = [row for row in fresh if row.judgement.match is Match.MATCHED]
    if not failed:
        return None
    judgements = [row.judgement for row in failed]
    best = next((one for one in judgements if one.failure and one.failure.frames), judgements[0])
    seeds = tuple(row.execution.seed for row in failed if row.execution.seed is not None)
    return identity(best, script, len(failed) / len(fresh)), seeds


def minimise(
    runner: Runner,
    script: Script,
    environment: Environment,
    identity: FailureIdentity,
    *,
    seeds: tuple[int, ...] = (),
    control: Control | None = None,
    earlier: Script | None = None,
    max_tests: int = 600,
    seconds: float = 300.0,
) -> Reduced:
    """The smallest program found that shows the same failure, confirmed by fresh runs.

    `seeds` are those under which the script failed, the first for every test. `control` says
    whether a program still passes where it should. Goes on from what a killed process had
    confirmed, else from `earlier`, the result of an earlier try. Raises SandboxError.
    """
    with oracle_of(runner, environment, identity, seeds) as oracle:
        fresh = FreshRuns(runner, environment)
        work = Minimisation(runner, oracle, fresh, script, control, earlier, max_tests, seconds)
        try:
            ending = work.reduce()
        except Stopped:
            expired = runner.context.interruption is Interruption.OUT_OF_TIME
            ending = "time" if expired else "stopped"
    return work.outcome(ending)


def oracle_of(
    runner: Runner, environment: Environment, identity: FailureIdentity, seeds: tuple[int, ...] = ()
) -> Oracle:
    """The oracle for a confirmed failure."""
    batch = BatchRunner(runner, environment, runner.signature)
    return Oracle(
        batch, FailureTest(runner.signature, identity), seeds or (runner.job.limits.seed,)
    )


@dataclass(slots=True)
class Minimisation:
    """One reduction under way. `best` is the last confirmed program, `confirmed` all of them,
    `path` the accepted ones since.
    """

    runner: Runner
    oracle: Oracle
    fresh: FreshRuns
    script: Script
    control: Control | None
    earlier: Script | None
    max_tests: int
    max_seconds: float
    best: Script = field(init=False)
    path: list[Script] = field(default_factory=list)
    confirmed: list[Script] = field(default_factory=list)
    history: list[Step] = field(default_factory=list)
    unconfirmed: int = 0
    resumed: int = 0
    keep_values: bool = False
    final: bool = True
    began: float = field(init=False)

    def __post_init__(self) -> None:
        self.best, self.began = self.script, self.runner.ports.clock()
        self.keep_values = self.oracle.test.depends_on_values

    def reduce(self) -> Ended:
        """All passes, each confirmed; then the end result by the sequential test."""
        self._say("looking for the failure again")
        oracle, test = self.oracle, self.oracle.test
        reserve_s = self.fresh.reserve_s(self.script, test, self.max_seconds)
        oracle.runner.until = self.began + self.max_seconds - reserve_s
        earlier_result = self._left()
        if (
            earlier_result is not None
            and self._is_kept(earlier_result)
            and oracle.settle(earlier_result)
        ):
            self._take(earlier_result)
        elif not (oracle.settle(self.script) or self._is_intermittent()):
            return "time" if self._limit() == "time" else "unseen"
        oracle.measure_rate(self.best)
        self.keep_values &= not oracle.knows_origin
        ending = self._passes()
        return ending if self._finally() else "unseen"

    def _left(self) -> Script | None:
        """The program to go on from, when there was an earlier try."""
        test = self.oracle.test
        smallest = self.runner.attempts.resumable(
            PURPOSE, lambda row, script: self.fresh.fits(row, script, test)
        )
        self.resumed = size(smallest.files)[0] if smallest is not None else 0
        script = smallest or self.earlier
        if script is not None:
            lines = size(script.files)[0]
            self.runner.say(STAGE, f"continuing from {lines} lines, confirmed earlier")
        return script

    def _is_intermittent(self) -> bool:
        """Whether a failure that came every time so far comes in some runs only."""
        oracle = self.oracle
        if not oracle.test.always or self._limit() is not None:
            return False
        rate = self.fresh.intermittent_rate(self.script, oracle.test)
        if rate is None:
            return False
        oracle.test = oracle.test.with_rate(rate)
        return oracle.settle(self.script)

    def _is_kept(self, script: Script) -> bool:
        """Whether a program may be the result so far: it fails in fresh ordinary runs, and
        passes where it should.
        """
        return self._fails(script) and (self.control is None or self.control(script))

    def _passes(self) -> Ended:
        files = dict(self.best.files)
        if idle := unreached(files, self.oracle.runner.coverage.reached):
            files = self._pass(files, [idle])
        for make in (search.early, search.coarse):
            files = self._confirm(self._repeated(files, make))
        while (stop := self._limit()) is None:
            files = self._finely(files)
            after = self._confirm(files)
            if self._limit() is None and (after == files or self.unconfirmed >= _MAX_UNCONFIRMED):
                return "complete"
            files = after
        self._confirm(files)
        return stop

    def _finely(self, files: dict[str, str]) -> dict[str, str]:
        """What is left, again and again, until nothing goes; the smallest program on the way."""
        rejected, digests, smallest, idle, last = RejectedReductions(), set[str](), files, 0, False
        while self._limit() is None:
            digests.add(self._neat(files).digest)
            reductions = search.fine(files, self._facts(files))
            files = self._pass(files, reductions, None if last else rejected)
            smallest, idle = (files, 0) if size(files) < size(smallest) else (smallest, idle + 1)
            # Some reductions undo what others do, some make room for others with a longer program.
            if self._neat(files).digest not in digests and idle < _MAX_IDLE:
                last = False
                continue
            if last or not rejected.skipped:
                break
            files, last = smallest, True  # once more, with all that was left out
        return smallest

    def _repeated(self, files: dict[str, str], make: search.Pass) -> dict[str, str]:
        """A pass again and again, as long as it takes whole lines away."""
        while self._limit() is None:
            before = files
            files = self._pass(before, make(before, self._facts(before)))
            if files != before:
                self.oracle.refresh(self._with(files))
            if size(files)[0] == size(before)[0]:
                break
        return files

    def _facts(self, files: dict[str, str]) -> search.ProgramFacts:
        stack = self.oracle.stacks.get(self._with(files).digest, frozenset())
        every = self.oracle.runner.coverage.tensors
        # What the program itself computes may be what its failing statement is about.
        tensors = every if self.oracle.test.identity.path else [t for t in every if not t.text]
        return search.ProgramFacts(self.script.entry, tuple(tensors), self.keep_values, stack)

    def _pass(
        self,
        files: dict[str, str],
        groups: search.Groups,
        rejected: RejectedReductions | None = None,
    ) -> dict[str, str]:
        search = ReductionPass.over(files, groups, rejected)
        while self._limit() is None and (variants := search.propose(self._width())):
            fails = self.oracle.fails([self._with(variant.files) for variant in variants])
            if search.learn(list(zip(variants, fails, strict=True))):
                descriptions = (
                    variant.what for variant in variants if variant.files == search.files
                )
                self._accept(dict(search.files), next(descriptions, ""))
        return dict(search.files)

    def _accept(self, files: dict[str, str], what: str) -> None:
        self.path.append(self._with(files))
        elapsed, lines = round(self.runner.ports.clock() - self.began, 2), size(files)[0]
        self.history.append(Step(what=what, lines=lines, tests=self.oracle.tests, seconds=elapsed))
        first, best = size(self.script.files)[0], size(self.best.files)[0]
        confirmed = f", {best} confirmed" if best < first else ""
        self._say(f"{first} → {lines} lines found{confirmed}")

    def _confirm(self, files: dict[str, str]) -> dict[str, str]:
        """The program, laid out, after a fresh ordinary run and the control; else the last one
        before it for which they hold.
        """
        neat = self._neat(files)
        if neat.digest == self.best.digest:
            return files
        fails = self._fails(neat)
        if fails and (self.control is None or self.control(neat)):
            self._take(neat)
            return files
        if fails and self.control is not None:
            self.keep_values = True
            self._go_back(self.control, files)
        else:
            self._go_back(self._fails, files)
            self._doubt(neat)
        self.unconfirmed += 1
        self.oracle.verdicts |= {one.digest: False for one in (neat, self._with(files))}
        return dict(self.best.files)

    def _doubt(self, script: Script) -> None:
        """What failed for the oracle did not in a run of its own: see whether that is due to the
        seed, else to the way of running.
        """
        oracle = self.oracle
        if oracle.test.always and oracle.seeds_each == 1:
            seed, change = oracle.seed(0), "with the seed of the trials"
            if oracle.test.shows(self.fresh.run(script, seed, change, "repeat"), script):
                oracle.use_several_seeds()
                return
        oracle.use_fresh_processes()

    def _go_back(self, still: Control, files: dict[str, str]) -> None:
        """Bisect what was accepted since the last confirmed program for the last one for which
        it holds.
        """
        path = [script for script in self.path if script.files != files]
        low, high = -1, len(path)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if still(path[middle]) else (low, middle)
        if low >= 0 and self._is_kept(path[low]):
            self._take(path[low])
        self.path = []

    def _with(self, files: Mapping[str, str]) -> Script:
        return self.script.model_copy(update={"files": dict(files)})

    def _neat(self, files: Mapping[str, str]) -> Script:
        return self._with(statements.format_files(files))

    def _take(self, script: Script) -> None:
        self.best, self.path, self.final = script, [], False
        self.confirmed.append(script)

    def _finally(self) -> bool:
        """Whether the end result still fails by the sequential test; if not, the result is the
        one before it that does, and the program as it was given when none of the last ones does.
        """
        # One in thirty intermittent results is turned down by chance: asked twice, one in a
        # thousand.
        chances = 1 if self.oracle.test.always else 2
        last = self.confirmed[: -_MAX_BACK - 1 : -1]
        passing = (one for one in last if any(self._fails(one, final=True) for _ in range(chances)))
        confirmed_script = next(passing, None)
        self.best, self.final = confirmed_script or self.script, True
        return confirmed_script is not None or not last

    def _fails(self, script: Script, *, final: bool = False) -> bool:
        return self.fresh.fails(script, self.oracle.test, final=final)

    def _width(self) -> int:
        most = _AT_A_TIME[self.oracle.runner.mode]
        return max(1, min(most, self.max_tests - self.oracle.tests))

    def _limit(self) -> Ended | None:
        if self.oracle.tests >= self.max_tests:
            return "tests"
        return "time" if self.oracle.runner.late else None

    def _say(self, text: str) -> None:
        test_count = min(self.oracle.tests, self.max_tests)
        self.runner.say(STAGE, f"minimizing: {text}", test_count, self.max_tests)

    def outcome(self, ending: Ended) -> Reduced:
        """What there is to show, at any moment."""
        return Reduced(
            before=self.script,
            script=self.best,
            tests=self.oracle.tests,
            runs=self.oracle.runner.runs + self.fresh.count,
            seconds=self.runner.ports.clock() - self.began,
            lines_before=size(self.script.files)[0],
            lines_after=size(self.best.files)[0],
            history=tuple(self.history),
            mode=self.oracle.runner.mode,
            resumed=self.resumed,
            ended=ending,
            confirmed=self.final,
        )
