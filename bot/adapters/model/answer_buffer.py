"""The answer of one call as it arrives: its words, why it ended, and the tokens counted."""

import json
from typing import Any

from bot.adapters.model.counting import estimated
from bot.adapters.model.failures import AnswerLost, RequestRejected
from bot.models.dialogue import Usage

_MOST_CHARACTERS = 8_000_000
_MOST_TOKENS = 100_000_000


class AnswerBuffer:
    """Collects the objects of a stream, or one whole answer. `prompt` is the text of the
    question; `opened` is whether the endpoint took it, `begun` whether any part of an answer came,
    `finish` why the answer ended.
    """

    def __init__(self, prompt: str) -> None:
        self._prompt = prompt
        self._words: list[str] = []
        self._size = 0
        self._reasoning = 0
        self._counted: Usage | None = None
        self.opened = self.begun = False
        self.finish = ""

    @property
    def text(self) -> str:
        """The words so far, without the model's reasoning."""
        return "".join(self._words).encode("utf-8", "replace").decode()

    def usage(self) -> Usage:
        """One call, with the provider's figures where they are plausible."""
        return self._counted or Usage(
            calls=1,
            input_tokens=estimated(self._prompt),
            output_tokens=estimated(self.text) + self._reasoning // 4,
            estimated=True,
        )

    def add(self, part: dict[str, Any]) -> None:
        """One chunk of a stream. Raises AnswerLost when the answer is too long, RequestRejected
        when the part is an error.
        """
        choices = part.get("choices")
        if isinstance(choices, list) and choices and isinstance(choices[0], dict):
            self._choice(choices[0])
        elif part.get("error"):
            self.fail(part["error"])
        self._count(part.get("usage"))

    def add_whole(self, content: bytes) -> None:
        """An answer that was not streamed. Raises AnswerLost when it is cut, RequestRejected when
        it is no chat completion.
        """
        text = content.decode("utf-8", "replace").strip()
        try:
            data = json.loads(text)
        except (ValueError, RecursionError):
            if text.startswith('{"'):
                raise AnswerLost("the answer is incomplete") from None
            data = None
        if isinstance(data, dict):
            self.add(data)
        self.end()
        self.finish = self.finish or "stop"

    def end(self) -> None:
        """Nothing follows. Raises RequestRejected when nothing was a chat completion."""
        if not self.begun:
            raise RequestRejected(200, "not a chat completion")

    def fail(self, error: object) -> None:
        """An error inside the answer. Raises AnswerLost after the first word, RequestRejected
        before it.
        """
        if self.begun:
            raise AnswerLost("the server ended the answer with an error")
        details = error if isinstance(error, dict) else {"message": error}
        code = details.get("code")
        status = code if type(code) is int and 400 <= code < 600 else 500
        raise RequestRejected(status, str(details.get("message") or ""))

    def _choice(self, choice: dict[str, Any]) -> None:
        message = choice.get("delta") or choice.get("message")
        if isinstance(message, dict):
            content = message.get("content")
            if isinstance(content, list):  # some servers answer in parts
                parts = (part for part in content if isinstance(part, dict))
                content = "".join(str(part.get("text") or "") for part in parts)
            if isinstance(content, str):
                self._words.append(content)
                self._size += len(content)
            self._reasoning += sum(
                len(str(message.get(name) or "")) for name in ("reasoning_content", "reasoning")
            )
            self.begun = True
        if self._size > _MOST_CHARACTERS:
            raise AnswerLost(f"the answer exceeds {_MOST_CHARACTERS // 1_000_000} MB")
        self.finish = str(choice.get("finish_reason") or self.finish)

    def _count(self, usage: object) -> None:
        figures = usage if isinstance(usage, dict) else {}
        read, written = figures.get("prompt_tokens"), figures.get("completion_tokens")
        if all(type(count) is int and 0 <= count < _MOST_TOKENS for count in (read, written)):
            self._counted = Usage(calls=1, input_tokens=read, output_tokens=written)
