"""The losses that the training probe prints while a program runs: a marked line on its standard
error, taken out again before anyone reads that.
"""

import re
from collections.abc import Callable
from dataclasses import replace

from sandbox.port import OnOutput, RunResult, Stream

_MARK = re.compile(r"\x1ereprise step (\d{1,12}) loss (-?[0-9.e+-]{1,30})\n")
_MOST_KEPT = 200


def listener(on_loss: Callable[[int, float], None]) -> OnOutput:
    """Listens to what a run prints, which comes in pieces, for the losses in it."""
    kept = ""

    def heard(stream: Stream, text: str) -> None:
        nonlocal kept
        if stream != "stderr":
            return
        kept += text
        for mark in _MARK.finditer(kept):
            if (loss := _number(mark[2])) is not None:
                on_loss(int(mark[1]), loss)
        start = kept.rfind("\x1e")
        whole = start < 0 or "\n" in kept[start:] or len(kept) - start > _MOST_KEPT
        kept = "" if whole else kept[start:]

    return heard


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def without_marks(result: RunResult) -> RunResult:
    """The result with the program's own output alone."""
    return replace(result, stderr=_MARK.sub("", result.stderr))
