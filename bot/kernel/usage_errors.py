"""What `argparse` writes when it refuses a command line: the last line on standard error of a
program that then exits with status 2.

Source: `argparse` of Python 3.8 to 3.14, whose `ArgumentParser.error` prints the usage and
`prog: error: message`.
"""

import re
from collections.abc import Sequence

from bot.kernel.traceback_frames import TracebackSpan, span_of

EXIT_STATUS = 2
EXCEPTION = "SystemExit"

_WORDS = (
    r"unrecognized arguments: \S|the following arguments are required: \S|too few arguments$"
    r"|ambiguous option: \S|one of the arguments \S.{0,400} is required"
    r"|argument [^\n:]{1,200}: (?:invalid |expected |not allowed with |ignored explicit )"
    r"|invalid choice: \S"
)
_LINE = re.compile(
    rf"(?:(?<![\w./\\-])(?:[\w./\\-]{{1,200}}\.py(?: [\w-]{{1,40}}){{0,2}}|[\w./\\-]{{1,200}}): )?"
    rf"(?<!\w)error: (?:{_WORDS})[^\n]{{0,2000}}"
)
_SENTENCE = re.compile(
    r"[.!] +[A-Z]|[`*\"\u201d](?=\s|[.,;]|$)|, (?:and|but|so) "
    r"| (?:when|while|if|after|but|and|although|because|even) [A-Za-z]"
)
"""Where the sentence around a message goes on."""
_MARKS = ' \t*_`"\u201d'
_OPTION = re.compile(r"(?<![\w-])--?[A-Za-z][\w-]*")
_REQUIRED = re.compile(r"error: (?:the following arguments are required|too few|one of the)")
_UNRECOGNIZED = re.compile(r"error: unrecognized arguments: (?P<options>.*)")


_IN_SENTENCE = re.compile(
    r"(?<!\w)[Uu]nrecogni[sz]ed arguments?(?: error)?:? {1,3}[`\"]?"
    r"(?P<options>--?[A-Za-z][^\n`\"]{0,400})"
)
_ERROR_AFTER = re.compile(r"[ ,]+(?:errors?|for|in|from|when|while|is|was|are|and)\b.*")


def find_usage_errors(lines: Sequence[str], *, in_prose: bool = False) -> list[TracebackSpan]:
    """The usage errors in lines, each as the exit that it is; in prose, a message ends where the
    sentence goes on.
    """
    return [
        span_of(at, at + 1, EXCEPTION, message)
        for at, line in enumerate(lines)
        if ("error: " in line or (in_prose and "ecogni" in line))
        and (message := usage_error(line, in_prose=in_prose))
    ]


def usage_error(line: str, *, in_prose: bool = False) -> str:
    """The message of the usage error in a line, with the name of its program; "" for none."""
    match = _LINE.search(line[:4000])
    if match is None and in_prose and (sentence := _IN_SENTENCE.search(line[:4000])) is not None:
        options = _ERROR_AFTER.sub("", sentence["options"])
        return f"error: unrecognized arguments: {options}".rstrip(f"{_MARKS}.,;)")
    words = match[0] if match else ""
    end = _SENTENCE.search(words) if in_prose else None
    return words[: end.start() if end else None].rstrip(_MARKS)


def refusing_program(message: str) -> str:
    """The file that a usage error says it comes from, "" where it names none."""
    match = re.match(r"(?P<path>[\w./\\-]{1,200}\.py): error: ", message)
    return match["path"] if match else ""


def is_about_missing(message: str) -> bool:
    """Whether a usage error says that arguments are missing, as any run without them shows."""
    return bool(_REQUIRED.search(message))


def refused_arguments(message: str) -> tuple[str, ...]:
    """The words that a usage error calls unrecognized."""
    match = _UNRECOGNIZED.search(message)
    return tuple(match["options"].split()) if match else ()


def refused_options(message: str) -> tuple[str, ...]:
    """The options that a usage error calls unrecognized."""
    return tuple(_OPTION.findall(" ".join(refused_arguments(message))))
