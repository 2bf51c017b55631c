"""What arrives of an answer, streamed or whole: its words, why it ended, and what the provider counted."""

from __future__ import annotations

import json
from time import monotonic
from typing import Any

from bot.adapters.model.counting import estimated
from bot.adapters.model.halts import Lost, Rejected
from bot.models.dialogue import Usage

_MOST_BYTES = 8_000_000
_MOST_TOKENS = 100_000_000
_SSE = "data:"


class Heard:
    """Takes bytes as they come. `alive` is when a word (or a thought) came last; `begun` whether any did;
    `finish` is why the answer ended, and `done` says that nothing follows.
    """

    def __init__(self, asked: str, *, streamed: bool) -> None:
        self._asked = asked
        self.streamed = streamed
        self._rest = b""
        self._size = 0
        self._words: list[str] = []
        self._thoughts = 0
        self._counted: tuple[int, int] | None = None
        self.alive = monotonic()
        self.begun = False
        self.finish = ""
        self.done = False

    def take(self, chunk: bytes) -> None:
        """The next bytes. Raises Lost when they are too many, Rejected when the stream says that it failed."""
        self._size += len(chunk)
        if self._size > _MOST_BYTES:
            raise Lost(f"the answer has more than {_MOST_BYTES // 1_000_000} MB")
        self._rest += chunk
        if self.streamed:
            *lines, self._rest = self._rest.split(b"\n")
            for line in lines:
                self._line(line)

    def close(self) -> None:
        """All bytes are there. Raises Lost when the answer is not whole, Rejected when it is none at all."""
        if self.streamed or self._rest.lstrip().startswith(_SSE.encode()):
            for line in self._rest.split(b"\n"):
                self._line(line)
            if not self.finish:
                raise Lost("the answer broke off")
        elif not self._object(self._rest) or not self.begun:
            if self._rest.lstrip().startswith(b'{"'):
                raise Lost("the answer is not whole")
            raise Rejected(200, "no chat completion")

    @property
    def text(self) -> str:
        """The words so far; thoughts are not among them."""
        return "".join(self._words).encode("utf-8", "replace").decode()

    def usage(self) -> Usage:
        """One call, with the provider's figures where it gave any that can be."""
        if self._counted is not None:
            return Usage(calls=1, input_tokens=self._counted[0], output_tokens=self._counted[1])
        said = estimated(self.text) + self._thoughts // 4
        return Usage(calls=1, input_tokens=estimated(self._asked), output_tokens=said, estimated=True)

    def _line(self, line: bytes) -> None:
        text = line.decode("utf-8", "replace").strip()
        if text.startswith(_SSE):
            said = text.removeprefix(_SSE).strip()
            self.done = self.done or said == "[DONE]"
            self._object(said)

    def _object(self, raw: str | bytes) -> bool:
        try:
            held = json.loads(raw if isinstance(raw, str) else raw.decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            return False
        if not isinstance(held, dict):
            return False
        self._usage(held.get("usage"))
        choices = held.get("choices")
        if isinstance(choices, list) and choices and isinstance(choices[0], dict):
            self._choice(choices[0])
        elif held.get("error"):
            self._failed(held["error"])
        return True

    def _choice(self, choice: dict[str, Any]) -> None:
        message = choice.get("delta") or choice.get("message")
        if isinstance(message, dict):
            content = message.get("content")
            if isinstance(content, list):  # some servers answer in parts
                content = "".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
            if isinstance(content, str):
                self._words.append(content)
            self._thoughts += sum(len(str(message.get(name) or "")) for name in ("reasoning_content", "reasoning"))
            self.begun, self.alive = True, monotonic()
        if choice.get("finish_reason"):
            self.finish = str(choice["finish_reason"])

    def _usage(self, usage: object) -> None:
        if isinstance(usage, dict):
            pair = (usage.get("prompt_tokens"), usage.get("completion_tokens"))
            if all(type(each) is int and 0 <= each < _MOST_TOKENS for each in pair):
                self._counted = pair  # type: ignore[assignment]

    def _failed(self, error: object) -> None:
        if self.begun:
            raise Lost("the answer broke off with an error of the server")
        code, said = (error.get("code"), error.get("message")) if isinstance(error, dict) else (None, error)
        raise Rejected(code if type(code) is int and 400 <= code < 600 else 500, str(said or ""))
