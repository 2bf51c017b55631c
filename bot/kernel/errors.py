"""The error tree: who has to act.

    RepriseError
    ├── UserError        the person who asked can mend it; one sentence and the next step
    ├── TransientError   trying again later may work (network, rate limit, full disk)
    │   ├── IndexUnreachable
    │   ├── PaperUnreachable
    │   └── ModelUnavailable   no model answers, or none answers as asked
    └── BuildError       the environment could not be built: a verdict (setup_failed), not a defect

Anything else that escapes is a defect of ours. Broad excepts stand at the boundaries only: the job,
HTTP, the CLI, and a proof beside a verdict, which keeps the defect for the report.
"""

from __future__ import annotations

from bot.kernel.dialogue import Usage
from bot.kernel.environment import BuildStep


class RepriseError(Exception):
    """Root of all errors raised on purpose. `fix` is the next step, as a sentence."""

    def __init__(self, message: str, fix: str = "") -> None:
        super().__init__(message)
        self.fix = fix


class UserError(RepriseError):
    """A mistake in what was asked."""


class TransientError(RepriseError):
    """The world did not cooperate; the same request may work later."""


class IndexUnreachable(TransientError):
    """No package index answers."""


class PaperUnreachable(TransientError):
    """arXiv does not answer, or does not give the paper for now."""


class ModelUnavailable(TransientError):
    """No model answers, or none answers as asked; `usage` is what the tries used all the same."""

    def __init__(self, message: str, fix: str = "", usage: Usage | None = None) -> None:
        super().__init__(message, fix)
        self.usage = usage or Usage()


class BuildError(RepriseError):
    """The environment could not be built; `steps` is the ladder of tries with the first cause of
    each.
    """

    def __init__(self, message: str, steps: tuple[BuildStep, ...] = ()) -> None:
        super().__init__(message)
        self.steps = steps


class Stopped(RepriseError):
    """A person or a signal asked to stop."""
