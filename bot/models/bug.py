"""The issue as its author wrote it, and as it has been read: every field says which words it came
from.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Literal

from bot.models.base import Record

MOST_BODY = 65_536
"""Characters of an issue's body, GitHub's own limit. What is beyond them is not read."""


class Issue(Record):
    """A bug report before anyone has read it. `repository` is "owner/name", or "" when the
    source does not say.
    """

    title: str
    body: str
    repository: str = ""
    number: int | None = None
    author: str = ""
    created_at: datetime | None = None
    labels: tuple[str, ...] = ()
    url: str = ""
    clone_url: str = ""


class Quote(Record):
    """Words of the issue and where they stand. `line` is 1-based in the body, 0 for the title
    and labels.
    """

    text: str
    source: Literal["title", "body", "label", "option"] = "body"
    line: int = 0


class ReportKind(StrEnum):
    """What the author wants."""

    BUG = "bug"
    QUESTION = "question"
    FEATURE = "feature"
    DOCUMENTATION = "documentation"


class Symptom(StrEnum):
    """The class of failure that is reported."""

    CRASH = "crash"
    NONFINITE = "nonfinite"
    NOT_LEARNING = "not_learning"
    WRONG_VALUE = "wrong_value"
    SAVE_LOAD = "save_load"
    PERFORMANCE = "performance"
    HANG = "hang"
    WARNING = "warning"
    MISSING_ERROR = "missing_error"
    UNKNOWN = "unknown"


class FenceKind(StrEnum):
    """What a block of text is, judged by its content and not by its tag."""

    PROGRAM = "program"
    TRACEBACK = "traceback"
    OUTPUT = "output"
    LOG = "log"
    SHELL = "shell"
    ENVIRONMENT = "environment"
    REQUIREMENTS = "requirements"
    CONFIG = "config"
    DIFF = "diff"
    DATA = "data"
    EMPTY = "empty"


class Role(StrEnum):
    """What a block is for, judged by the heading and the words before it."""

    REPRODUCER = "reproducer"
    OBSERVED = "observed"
    EXPECTED = "expected"
    FIX = "fix"
    CONTRAST = "contrast"
    SOURCE = "source"
    UNSTATED = "unstated"


class ScriptFix(Record):
    """One small repair made to the reporter's program, in words a reader can check."""

    what: str
    why: str


class Fence(Record):
    """One block of the issue. `text` is cleaned (prompts stripped, dedented, prose set aside)
    and `fixes` say how; `raw` is verbatim.

    For a transcript (doctest, notebook) `outputs` holds what its author saw, in order.
    """

    index: int
    tag: str
    kind: FenceKind
    role: Role = Role.UNSTATED
    text: str
    raw: str
    line: int
    fixes: tuple[ScriptFix, ...] = ()
    outputs: tuple[str, ...] = ()
    installs: tuple[str, ...] = ()


class Frame(Record):
    """One frame of a reported traceback. `package` is the top-level import name when the file
    lies in site-packages (or is a notebook's or script's own: ""); `module_path` is the path
    from there on, e.g. "torch/nn/modules/linear.py".
    """

    path: str
    package: str = ""
    module_path: str = ""
    line: int | None = None
    function: str = ""
    code: str = ""


class Traceback(Record):
    """A Python traceback found in the report. `exception` is as printed (possibly dotted);
    frames run outermost to innermost and may be empty when only the last line was pasted.
    `chained` are the exceptions printed before it (causes and contexts).
    """

    exception: str
    message: str
    frames: tuple[Frame, ...] = ()
    chained: tuple[Traceback, ...] = ()
    fence: int | None = None
    line: int = 0


class WarningText(Record):
    """A warning quoted in the report; `category` may be "" when only the words were given."""

    category: str
    message: str
    quote: Quote


class VersionClaim(Record):
    """A version the report names. `name` is the normalised distribution name, or "python";
    `version` is as written, e.g. "2.4.x", "2.12.0+cu126", "master". `source` ranks it: what a
    program printed is worth more than what a person typed.
    """

    name: str
    version: str
    source: Literal["option", "dump", "requirements", "traceback", "text", "label"]
    quote: Quote


class Output(Record):
    """Text that the author says was, or should have been, printed."""

    text: str
    role: Literal["observed", "expected"]
    fence: int | None = None
    line: int = 0


class Missing(Record):
    """Something the report points at that cannot be had here: an attachment, a screenshot, a
    gist, a hub checkpoint.
    """

    what: Literal["attachment", "screenshot", "gist", "notebook", "link", "data"]
    quote: Quote


class BugReport(Record):
    """What intake makes of an issue. Pure data; nothing in it is guessed without a quote.
    `unread` are sentences on what of the issue is beyond a limit.
    """

    kind: ReportKind
    kind_quote: Quote | None = None
    symptom: Symptom = Symptom.UNKNOWN
    symptom_quote: Quote | None = None
    fences: tuple[Fence, ...] = ()
    tracebacks: tuple[Traceback, ...] = ()
    warnings: tuple[WarningText, ...] = ()
    outputs: tuple[Output, ...] = ()
    versions: tuple[VersionClaim, ...] = ()
    works_in: tuple[VersionClaim, ...] = ()
    device: Literal["cpu", "gpu", "tpu", "mps", ""] = ""
    api: tuple[str, ...] = ()
    missing: tuple[Missing, ...] = ()
    unread: tuple[str, ...] = ()

    @property
    def programs(self) -> tuple[Fence, ...]:
        """The blocks that are Python programs or parts of one."""
        return tuple(fence for fence in self.fences if fence.kind is FenceKind.PROGRAM)
