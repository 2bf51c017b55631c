"""Questions to a model and its answers, typed, counted, and recorded so that a run can be replayed
without a model; and what it proposes. All of it is data; none of it decides a verdict.
"""

from __future__ import annotations

import hashlib
import json
from typing import Annotated, Any, Literal

from pydantic import Field

from bot.kernel.bug import AnySignature
from bot.kernel.values import Record

Role = Literal["reader", "writer"]
"""Which model: the reader (cheap) fills the gaps of a report, the writer (strong) plans and writes
programs.
"""


class Message(Record):
    """One turn of a conversation."""

    role: Literal["system", "user", "assistant"]
    content: str


class Usage(Record):
    """Calls, tokens as the provider counts them (estimated when it does not), and dollars when the
    price is known.
    """

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float = 0.0
    estimated: bool = False

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            calls=self.calls + other.calls,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            usd=self.usd + other.usd,
            estimated=self.estimated or other.estimated,
        )


class Question(Record):
    """One request. `prompt` is id@version#sha of the prompt file; `answer_schema` a JSON Schema
    that the answer must fit; `most_tokens` the longest answer.
    """

    role: Role
    prompt: str
    messages: tuple[Message, ...]
    answer_schema: dict[str, Any]
    most_tokens: int = 4_096

    @property
    def digest(self) -> str:
        """SHA-256 of the question with the id of its prompt: equal questions may share a recorded
        answer.
        """
        content = {
            "prompt": self.prompt,
            "messages": [message.model_dump() for message in self.messages],
            "schema": self.answer_schema,
        }
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


class ModelAnswer(Record):
    """A model's answer as an object that is valid for the question's schema. `mended` when the
    first answer was invalid and the model corrected it once.
    """

    data: dict[str, Any]
    text: str
    model: str = ""
    usage: Usage = Usage()
    seconds: float = 0.0
    mended: bool = False


class Exchange(Record):
    """A question with its answer, or with the error and what it `used`: the unit of recording and
    replay.
    """

    number: int
    question: Question
    answer: ModelAnswer | None = None
    error: str = ""
    used: Usage = Usage()


class Pin(Record):
    """A version that the report implies. `quoted` when the report contains the quote."""

    name: str
    version: str
    quote: str = ""
    quoted: bool = False


class Refusal(Record):
    """Something of a model's or a report's that was refused, changed or left out before a run:
    `gate` is its row in `bot.issues.gates.GATES`, `says` the sentence that the model and the
    readers of the report get.
    """

    gate: str
    says: str


class Interpretation(Record):
    """A report with its gaps filled. `signature` is the failure to look for (None when nothing can
    be checked; then `questions` lists what is missing). `inferred` names the parts that the
    report does not state. `api` are dotted names of the code in question. `needs_contrast` when
    the signature is so weak that a twin which must not fail has to run too. `no_bug` is the
    sentence of the report that shows that it is a question or a request; `needs` is the device,
    service or system, not at hand, without which nothing can be shown. `refusals` are the parts of
    the model's answer that were not taken as it gave them.
    """

    claim: str
    signature: AnySignature | None = None
    inferred: tuple[str, ...] = ()
    api: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    pins: tuple[Pin, ...] = ()
    questions: tuple[str, ...] = ()
    needs_contrast: bool = False
    no_bug: str = ""
    needs: str = ""
    refusals: tuple[Refusal, ...] = ()


class SearchAction(Record):
    """Search the source code for words or names."""

    action: Literal["search"] = "search"
    query: str


class ReadAction(Record):
    """Read lines of a source file."""

    action: Literal["read"] = "read"
    path: str
    start: int = Field(1, ge=1)
    end: int = Field(80, ge=1)


class ProbeAction(Record):
    """Run a snippet in the sandbox to learn something. It proves nothing."""

    action: Literal["probe"] = "probe"
    code: str


class WriteAction(Record):
    """A whole program, and a twin that differs only in the reported point and must not fail."""

    action: Literal["write"] = "write"
    program: str
    contrast: str = ""
    change: str = ""


class EditAction(Record):
    """Replace lines `start` to `end` (1-based, inclusive; `end` = `start` - 1 inserts) of the
    last program or its twin.
    """

    action: Literal["edit"] = "edit"
    file: Literal["program", "contrast"] = "program"
    start: int = Field(ge=1)
    end: int = Field(ge=0)
    text: str
    change: str = ""


class RunAction(Record):
    """Start one of the repository's own programs by a command line."""

    action: Literal["run"] = "run"
    command: str
    change: str = ""


class EnvironmentAction(Record):
    """Install a package, or another version of one ("" for the newest of the day)."""

    action: Literal["environment"] = "environment"
    package: str
    version: str = ""
    reason: str = ""


class AmendAction(Record):
    """Correct the exception that counts, once and before anything has run."""

    action: Literal["amend"] = "amend"
    exception: str
    message: str = ""
    in_file: str = ""
    reason: str = ""


class DocumentedAction(Record):
    """Stop, because the library's own documentation says that it does what the report complains
    of: the words, and the file of the library in which they stand.
    """

    action: Literal["documented"] = "documented"
    path: str
    quote: str
    reason: str = ""


class RefuteAction(Record):
    """Run a program ("" for the last one) that shows that the library is right: by words of its own
    documentation, or by a `contrast` that computes the same value without it.
    """

    action: Literal["refute"] = "refute"
    program: str = ""
    contrast: str = ""
    path: str = ""
    quote: str = ""
    reason: str = ""


class GiveUpAction(Record):
    """Stop, with the reason and questions that only the reporter can answer."""

    action: Literal["give_up"] = "give_up"
    reason: str
    questions: tuple[str, ...] = ()


Action = Annotated[
    SearchAction
    | ReadAction
    | ProbeAction
    | WriteAction
    | EditAction
    | RunAction
    | EnvironmentAction
    | AmendAction
    | DocumentedAction
    | RefuteAction
    | GiveUpAction,
    Field(discriminator="action"),
]


class Refutation(Record):
    """Why a library is right where a program of a model shows the right value: words of its own
    documentation (`quote`, in `path`), or an independent computation that gave the same `value`.
    """

    path: str = ""
    quote: str = ""
    value: str = ""


class Reading(Record):
    """What counts as the failure by one reading of the bug report, with the hash of the signature
    and the result of its runs.
    """

    by: Literal["rules", "model"]
    says: str
    hash: str
    outcome: str = ""


class Reconstruction(Record):
    """A model's part in a run: its reading of the report, the thought behind its last program,
    what it was shown, and the change of each attempt. `readings` are given where a model reads
    the report otherwise than the rules do, or amends a reading before anything has run.
    `documented` are words of the library that describe what the report complains of, `refutation`
    is why the library is right where its last program shows the right value. `refusals` are the
    parts of its answers that were refused, changed or left out, each once.
    """

    readings: tuple[Reading, ...] = ()
    refined: Interpretation | None = None
    hypothesis: str = ""
    contexts: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()
    given_up: str = ""
    documented: str = ""
    refutation: Refutation | None = None
    refusals: tuple[Refusal, ...] = ()
