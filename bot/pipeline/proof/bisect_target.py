"""The clone and the two commits of a bisection: checks that the clone is of the failing package,
and that both commits behave as the user said.
"""

from dataclasses import dataclass

from bot.errors import UserError
from bot.models.attempt import Script
from bot.models.bisect import Commit, Probe
from bot.models.environment import RepoSource
from bot.pipeline.execution.runner import Runner
from bot.pipeline.proof.outcome import Failing
from bot.ports import Commits
from bot.rules.code import module_names
from bot.rules.packages import provided

_SHOWN = 6


@dataclass(frozen=True, slots=True)
class End:
    """One of the two commits, by the name it was given."""

    ref: str
    commit: Commit

    @property
    def words(self) -> str:
        """The name, and the id where that is not what was given."""
        short = self.commit.id[:12]
        return short if self.commit.id.startswith(self.ref) else f"{self.ref} ({short})"


@dataclass(frozen=True, slots=True)
class Subject:
    """What a clone provides of what fails; `tops` are the modules by which the failing program
    gets at it.
    """

    name: str
    tops: tuple[str, ...]
    commits: Commits
    source: RepoSource

    def unbuilt(self, commit: str) -> str:
        """Why nothing can be tested at a commit that only lies on the path; "" when it can.
        Where its modules are not found there, the program would import what is installed. Raises
        as reading the history does.
        """
        found = self.commits.provides(self.source, commit)
        if provided.importable(found, self.name, self.tops):
            return ""
        there = provided.used(found, self.tops, (self.name,))
        return "it could not be built" if there else f"the clone does not provide {self.name} there"


def line(
    commits: Commits, source: RepoSource, good: End, bad: End
) -> tuple[tuple[Commit, ...], bool]:
    """The commits from the older end to the newer one, and whether the bad one is the older.

    Raises UserError when the two are the same, or not on one line.
    """
    if good.commit.id == bad.commit.id:
        raise UserError(
            f"{good.ref} and {bad.ref} are the same commit ({good.commit.id[:12]}).",
            "Name one that passes and one that fails.",
        )
    row = commits.line(source, good.ref, bad.ref)
    if row:
        return (good.commit, *row), False
    row = commits.line(source, bad.ref, good.ref)
    if row:
        return (bad.commit, *row), True
    raise UserError(
        f"Neither {good.ref} nor {bad.ref} is an ancestor of the other.",
        "Name two commits on the same branch.",
    )


def subject(
    runner: Runner,
    commits: Commits,
    source: RepoSource,
    ends: tuple[End, ...],
    failing: Failing,
) -> Subject:
    """What the clone provides of what fails. Raises UserError when that is nothing which the
    failing program uses: every commit would be tested on the installed package, and found alike.
    """
    tops = _tops(runner, failing.script)
    name = ""
    for end in ends:
        found = commits.provides(source, end.commit.id)
        name = provided.used(found, tops, [each.name for each in failing.environment.packages])
        if not name:
            told = (
                found.name or ", ".join((found.on_path or found.built)[:3]) or "no Python package"
            )
            raise UserError(
                f"At {end.words} the clone provides {told}, which the failing program does not "
                "use.",
                f"Pass a clone of a package that it imports: {', '.join(tops[:_SHOWN])}.",
            )
    return Subject(name, tops, commits, source)


def _tops(runner: Runner, script: Script) -> tuple[str, ...]:
    """The top-level modules that the program imports, and those that its failure went through."""
    own = {name.partition("/")[0].removesuffix(".py") for name in script.files}
    named = [top for text in script.files.values() for top in module_names.top_level(text)]
    failures = (attempt.judgement.failure for attempt in runner.attempts.matched())
    frames = [frame.package for failure in failures if failure for frame in failure.frames]
    return tuple(
        top for top in dict.fromkeys((*named, *frames)) if top not in own and top.isidentifier()
    )


def not_as_named(good: End, bad: End, probes: tuple[Probe, ...]) -> str:
    """What the two commits did, when that contradicts the user; "" when it does not, or when one of
    them was not tried.
    """
    outcomes = {probe.at: probe for probe in probes}
    ours, theirs = outcomes.get(good.commit.id), outcomes.get(bad.commit.id)
    if ours is None or theirs is None:
        return ""
    if (ours.outcome, theirs.outcome) == ("fails", "passes"):
        swapped = f"did you mean --good {bad.ref} --bad {good.ref}?"
        return f"{swapped} {good.words} {_did(ours)} and {bad.words} {_did(theirs)}"
    parts = []
    if ours.outcome != "passes":
        parts.append(f"{good.words}, given as good, {_did(ours)}")
    if theirs.outcome != "fails":
        parts.append(f"{bad.words}, given as bad, {_did(theirs)}")
    return "; ".join(parts)


def _did(probe: Probe) -> str:
    match probe.outcome:
        case "fails":
            return f"fails ({probe.failures} of {probe.runs})"
        case "passes":
            return f"passes ({probe.failures} of {probe.runs} failed)"
    return f"could not be tested ({probe.reason or probe.outcome})"
