"""The configuration in force in a repository: which files it came from, and what was wrong with
them.
"""

from __future__ import annotations

from typing import Literal

from bot.models.base import Record
from bot.models.config import Config


class Problem(Record):
    """Something wrong in a configuration file. `line` is 1-based, 0 for the file as a whole;
    `key` is a dotted path, "" when there is none to name; `reason` says what is expected and
    never repeats a value of the file.
    """

    file: str
    line: int = 0
    key: str = ""
    reason: str


class Origin(Record):
    """Where a value came from."""

    kind: Literal["repository", "extended", "organisation"]
    file: str


class Loaded(Record):
    """What applies. `source` names the files that were applied, the strongest first, as
    "owner/name:path"; `origins` says for each key (dotted path) that a file sets which one
    decided it: all others have their default.
    """

    config: Config = Config()
    source: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    origins: dict[str, Origin] = {}

    @property
    def switched_off(self) -> bool:
        """Whether the repository wants to be left alone."""
        return not self.config.enabled
