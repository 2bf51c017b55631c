"""The configuration of a repository, fetched from GitHub and laid over what it builds on.

As in probot's configuration, whose rules GitHub users know: the repository's own
`.github/reprise.yml` stands alone unless it names another repository with `_extends`; the
`.github/reprise.yml` of the organisation's repository named `.github` counts only where the
repository has no file of its own (or only an invalid one). Unlike there, values are merged deeply
and only repositories of the same owner can be built on. Files are read from default branches only.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from bot.models.config import Loaded, Origin, Problem
from bot.rules.configuration.layers import ConfigFile, base, laid
from bot.rules.configuration.parse import EXTENDS, Parsed, parse
from bot.rules.configuration.tree import MOST_CHARACTERS
from bot.service.ports import GitHub, Gone, Target

_MOST_DEEP = 3
_SHARED = ".github"
# Asked for generously: a file that is somewhat too long is answered with the reason instead of
# being taken for none.
_MOST_BYTES = 8 * MOST_CHARACTERS

Kind = Literal["repository", "extended", "organisation"]


def load(github: GitHub, target: Target) -> Loaded:
    """The configuration in force. What is wrong with the files comes back as problems; GitHub's
    errors propagate, but files and repositories beside the target's own that are not there, or
    not for us to see, are absent.
    """
    gathering, mine = _Gathering(github, target), ConfigFile(target.repository)
    own = gathering.follow(mine, "repository")
    if own is None or own.problems:
        shared = ConfigFile(f"{gathering.owner}/{_SHARED}")
        if shared.same != mine.same:
            gathering.follow(shared, "organisation")
    config, origins = laid(gathering.files)
    if own is not None and own.off:
        config = config.model_copy(update={"enabled": False})
        origins = origins | {"enabled": Origin(kind="repository", file=str(mine))}
    source = tuple(origin.file for origin, _ in gathering.files)
    return Loaded(config=config, source=source, problems=tuple(gathering.problems), origins=origins)


def problem_key(problems: Iterable[Problem]) -> str:
    """A short hash of what is wrong, "" when nothing is: whoever answered once under it need not
    answer again.
    """
    told = sorted(problem.model_dump_json() for problem in problems)
    return hashlib.sha256("\n".join(told).encode()).hexdigest()[:16] if told else ""


@dataclass
class _Gathering:
    """The files of one configuration, the strongest first, and what is wrong with them."""

    github: GitHub
    target: Target
    files: list[tuple[Origin, dict[str, Any]]] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    @property
    def owner(self) -> str:
        return self.target.repository.partition("/")[0]

    def follow(self, start: ConfigFile, kind: Kind) -> Parsed | None:
        """Take a file and what it builds on; returns that first file, None when there is none."""
        first = parsed = self._take(start, kind)
        place, seen = start, {start.same}
        while parsed is not None and parsed.extends:
            under = base(parsed.extends, self.owner)
            if isinstance(under, str):
                reason = under
            elif under.same in seen:
                reason = "extends itself in a cycle."
            elif len(seen) > _MOST_DEEP:
                reason = f"makes the chain of files too long: at most {_MOST_DEEP} may be extended."
            elif (following := self._take(under, "extended")) is None:
                reason = "names a file that does not exist or that Reprise cannot read."
            else:
                place, parsed = under, following
                seen.add(under.same)
                continue
            line = parsed.extends_line
            self.problems.append(Problem(file=str(place), line=line, key=EXTENDS, reason=reason))
            break
        return first

    def _take(self, place: ConfigFile, kind: Kind) -> Parsed | None:
        text = self._text(place)
        if text is None:
            return None
        # Whoever reads the answer to a repository may have no right to read other repositories of
        # its owner.
        parsed = parse(text, str(place), quote=kind == "repository")
        self.problems += parsed.problems
        if not parsed.problems:
            self.files.append((Origin(kind=kind, file=str(place)), parsed.values))
        return parsed

    def _text(self, place: ConfigFile) -> str | None:
        own = place.repository == self.target.repository
        where = Target(installation=self.target.installation, repository=place.repository)
        try:
            return self.github.file(where, place.path, _MOST_BYTES)
        except Gone:
            if own:
                raise
            return None
