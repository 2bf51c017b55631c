"""Comparing printed values: lines token by token, numbers within a tolerance, NaN and infinities
only with themselves.
"""

import math
import re

from bot.rules.signatures.wording import strip_ansi

_NUMBER = re.compile(
    r"(?<![\w.])[-+]?(?:\d+\.?\d*(?:e[-+]?\d+)?|\.\d+|inf(?:inity)?|nan)(?![\w])", re.IGNORECASE
)
_SHAPE = re.compile(r"\b(?:(?:torch\.)?Size|TensorShape)\(\[([\d,]*)\]\)")
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{4,}")
_MOST_LINES = 5000

Chunk = tuple[str, ...]


def shown(line: str) -> str:
    """A line as a person reads it: without escapes, blanks joined."""
    return " ".join(strip_ansi(line).split())


def clean(line: str) -> str:
    """A line made comparable: without escapes, addresses and superfluous spaces; a shape as the
    tuple that people write for it. Spaces next to brackets and commas do not count.
    """
    text = _ADDRESS.sub("<addr>", strip_ansi(line))
    text = re.sub(r"\s*([\[\](){},:=])\s*", r"\1", text)
    return " ".join(_SHAPE.sub(_as_tuple, text).split())


def _as_tuple(shape: re.Match[str]) -> str:
    sizes = shape[1]
    return f"({sizes},)" if sizes.isdigit() else f"({sizes})"


def lines(text: str) -> list[str]:
    """The non-blank lines of an output, cleaned; a progress bar's carriage returns end lines
    too.
    """
    return list(map(clean, told(text)))


def told(text: str) -> list[str]:
    """The same lines as a person reads them."""
    return list(filter(None, map(shown, re.split(r"[\r\n]+", text)[:_MOST_LINES])))


def cleaned(chunks: tuple[Chunk, ...]) -> tuple[Chunk, ...]:
    """Chunks with their lines made comparable."""
    return tuple(tuple(map(clean, chunk)) for chunk in chunks)


def chunks(text: str) -> tuple[Chunk, ...]:
    """The paragraphs of a pasted output, as a person reads their lines; those that are only an
    ellipsis are left out.
    """
    paragraphs = re.split(r"\n\s*\n", text.replace("\r\n", "\n"))
    found = (
        tuple(line for line in told(paragraph) if line not in {"...", "\u2026"})
        for paragraph in paragraphs
    )
    return tuple(filter(None, found))


def same_number(one: float, other: float, rtol: float, atol: float) -> bool:
    """Equal within either tolerance; NaN equals NaN, an infinity equals itself."""
    if math.isnan(one) or math.isnan(other):
        return math.isnan(one) and math.isnan(other)
    return math.isclose(one, other, rel_tol=rtol, abs_tol=atol)


def same_line(one: str, other: str, rtol: float, atol: float) -> bool:
    """Whether two cleaned lines say the same: equal text between numbers, and equal numbers."""
    pairs = zip(_NUMBER.findall(one), _NUMBER.findall(other), strict=False)
    return one == other or (
        skeleton(one) == skeleton(other)
        and all(_same_text_number(a, b, rtol, atol) for a, b in pairs)
    )


def _same_text_number(one: str, other: str, rtol: float, atol: float) -> bool:
    if set(".en").isdisjoint((one + other).lower()):
        return int(one) == int(other)
    return same_number(float(one), float(other), rtol, atol)


def holds(
    chunk: Chunk, output: list[str], rtol: float, atol: float, slack: int = 3
) -> tuple[int, int] | None:
    """Where an output contains a chunk: (first, past last) line, or None.

    Its lines must occur in order, with at most `slack` foreign lines between them (a log, a
    warning), or all together in another order, which libraries do not promise. A line with the same
    words and another value is not foreign: then the output does not contain the chunk.
    """
    for start in range(len(output)):
        end, size = _in_order(chunk, output, start, rtol, atol, slack), start + len(chunk)
        if end is not None or _permuted(chunk, output[start:size], rtol, atol):
            return start, size if end is None else end
    return None


def _in_order(
    chunk: Chunk, output: list[str], start: int, rtol: float, atol: float, slack: int
) -> int | None:
    at, foreign = start, 0
    for place, wanted in enumerate(chunk):
        while at < len(output) and not same_line(output[at], wanted, rtol, atol):
            if place == 0 or foreign == slack or skeleton(output[at]) == skeleton(wanted):
                return None
            at, foreign = at + 1, foreign + 1
        if at == len(output):
            return None
        at += 1
    return at


def _permuted(chunk: Chunk, window: list[str], rtol: float, atol: float) -> bool:
    rest = list(chunk)
    for line in window:
        hit = next((wanted for wanted in rest if same_line(line, wanted, rtol, atol)), None)
        if hit is None:
            return False
        rest.remove(hit)
    return not rest


def skeleton(line: str) -> str:
    """A cleaned line with its numbers left out."""
    return _NUMBER.sub("#", line)


def written(line: str) -> str:
    """A cleaned line with only how its numbers are written: whole ones as `#`, others as `#.`."""
    return _NUMBER.sub(lambda found: "#." if set(found[0].lower()) & set(".en") else "#", line)


def count(line: str) -> int:
    """How many numbers a line contains."""
    return len(_NUMBER.findall(line))


def numbers(line: str) -> tuple[float, ...]:
    """The numbers of a line, in their order."""
    return tuple(map(float, _NUMBER.findall(line)))


def nonfinite(line: str) -> frozenset[str]:
    """The kinds of non-finite numbers in a line: "nan", "inf"."""
    return frozenset(
        number.lower().lstrip("+-")[:3]
        for number in _NUMBER.findall(line)
        if number[-1].lower() in "nfy"
    )


def within(value: str, output: list[str], rtol: float, atol: float) -> int | None:
    """The first line of the output that contains a short value as a whole word (numbers within
    tolerance), or None.
    """
    wanted = clean(value)
    word = re.compile(r"(?<!\w)" + re.escape(wanted) + r"(?!\w)")
    numeric = _NUMBER.fullmatch(wanted)
    for index, line in enumerate(output):
        numbers = _NUMBER.findall(line) if numeric else ()
        near = any(_same_text_number(wanted, number, rtol, atol) for number in numbers)
        if near or (not numeric and word.search(line)):
            return index
    return None
