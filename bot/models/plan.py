"""What a model proposes: the claim it read, the plan, and its next actions. All of it is data; none of it decides."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from bot.models.base import Record
from bot.models.signature import AnySignature


class Pin(Record):
    """A version that the report implies. `quoted` when the words that say so stand in the report."""

    name: str
    version: str
    quote: str = ""
    quoted: bool = False


class Refined(Record):
    """The gaps of a report, filled. `signature` is what will count (None when nothing can be checked, then `questions` says
    what is missing); `inferred` names the parts that the report does not say in so many words; `api` are dotted names of the
    code in question; `needs_contrast` when the signature is weak enough that a twin which must not fail has to be run too.
    """

    claim: str
    signature: AnySignature | None = None
    inferred: tuple[str, ...] = ()
    api: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    pins: tuple[Pin, ...] = ()
    questions: tuple[str, ...] = ()
    needs_contrast: bool = False


class Plan(Record):
    """What is going to be tried, told before anything runs. `prompt` is the id of the prompt that asked for it."""

    hypothesis: str
    steps: tuple[str, ...] = ()
    counts: str = ""
    context: int = 0
    prompt: str = ""


class Search(Record):
    """Look for words or names in the sources at hand."""

    action: Literal["search"] = "search"
    query: str = Field(max_length=300)


class Read(Record):
    """Read lines of a source file."""

    action: Literal["read"] = "read"
    path: str = Field(max_length=300)
    start: int = Field(1, ge=1)
    end: int = Field(80, ge=1)


class Probe(Record):
    """Run a snippet in the sandbox to learn something; it can prove nothing."""

    action: Literal["probe"] = "probe"
    code: str = Field(max_length=8_000)


class Write(Record):
    """The whole program, and a twin that differs in the reported point only and must not fail."""

    action: Literal["write"] = "write"
    program: str = Field(max_length=40_000)
    contrast: str = Field("", max_length=40_000)
    change: str = Field("", max_length=400)


class Edit(Record):
    """Replace lines `start` to `end` (1-based, inclusive; `end` = `start` - 1 inserts) of the last program or its twin."""

    action: Literal["edit"] = "edit"
    file: Literal["program", "contrast"] = "program"
    start: int = Field(ge=1)
    end: int = Field(ge=0)
    text: str = Field(max_length=20_000)
    change: str = Field("", max_length=400)


class GiveUp(Record):
    """Stop, with the reason and what only the reporter can tell."""

    action: Literal["give_up"] = "give_up"
    reason: str = Field(max_length=600)
    questions: tuple[str, ...] = ()


class Patch(Record):
    """The smallest change of a failing program that should make the failure go away, as a model proposes it. No edits: it knows
    of none, and `why` says so.
    """

    why: str = Field("", max_length=600)
    edits: tuple[Edit, ...] = ()


Action = Annotated[Search | Read | Probe | Write | Edit | GiveUp, Field(discriminator="action")]


class Reconstruction(Record):
    """What a model's part in a run was: what it read out of the report, what it planned, and what each try was told."""

    refined: Refined | None = None
    plans: tuple[Plan, ...] = ()
    contexts: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()
    given_up: str = ""
