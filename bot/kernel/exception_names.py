"""The lines that name an exception, and how far its message goes."""

import re
import sys
from collections.abc import Sequence

from bot.kernel.plain_text import NUMBER, is_value

# The exceptions of Python and its standard library whose names do not end as those of exceptions
# do, warnings left out.
#
# The list is the same whatever Python runs Reprise; `python tests/stdlib.py` writes it anew.

_NAMES = """
BadGzipFile BadStatusLine BadUsage BadZipFile BdbQuit BrokenExecutor BrokenInterpreterPool BrokenProcessPool
BrokenThreadPool BufferTooShort CannotSendHeader CannotSendRequest Clamped CloseBoundaryNotFoundDefect ConversionSyntax
DivisionByZero DivisionImpossible DivisionUndefined DocTestFailure DomstringSizeErr Empty EndOfBlock Error
ErrorDuringImport ExitNow Fault FirstHeaderLineIsContinuationDefect FloatOperation Full GeneratorExit HeaderDefect
HeaderMissingRequiredValue HierarchyRequestErr ImproperConnectionState Incomplete IncompleteRead IndexSizeErr Inexact
InuseAttributeErr InvalidAccessErr InvalidBase64CharactersDefect InvalidBase64LengthDefect InvalidBase64PaddingDefect
InvalidCharacterErr InvalidContext InvalidDateDefect InvalidHeaderDefect InvalidModificationErr
InvalidMultipartContentTransferEncodingDefect InvalidOperation InvalidStateErr InvalidURL ItemInterpreterDestroyed
LargeZipFile LineTooLong MessageDefect MetadataNotFound MisplacedEnvelopeHeaderDefect MissingHeaderBodySeparatorDefect
MultipartInvariantViolationDefect NamespaceErr NannyNag NoBoundaryInMultipartDefect NoDataAllowedErr
NoModificationAllowedErr NonASCIILocalPartDefect NonPrintableDefect NotConnected NotFoundErr NotSupportedErr
ObsoleteHeaderDefect Overflow ParseEscape QueueEmpty QueueFull QueueShutDown RemoteDisconnected RemoteTraceback
ResponseNotReady Restart Rounded SAXReaderNotAvailable SMTPRecipientsRefused SMTPSenderRefused SMTPServerDisconnected
ShutDown SkipTest StartBoundaryNotFoundDefect StopTokenizing Subnormal SyntaxErr Terminator TimeoutExpired
UndecodableBytesDefect Underflow UnimplementedFileMode UnknownProtocol UnknownTransferEncoding UnsafeMailcapInput
UnsupportedOperation ValidationErr Verbose WrongDocumentErr _GiveupOnFastCopy _GiveupOnSendfile _RemoteTraceback
_ShouldStop _Stop _UnexpectedSuccess _error abort error error_perm error_proto error_reply error_temp gaierror herror
readonly
"""

EXCEPTIONS = frozenset(_NAMES.split())


# The line that names an exception, and how far its message goes.
#
# A name is an exception's either by itself (by its ending, as a class of Python's own library, by
# a module such as `errors`), or only by its position: `pkg.mod.InvalidThing: some words` alone at
# the end of a log. Anything else of the form `Name: words` (`InvalidThing: 3`, `Model: resnet`)
# may be one or the other, which only a run can decide; see `bot.issues.signature.freeze`.

_DOTTED_PREFIX = r"(?:[A-Za-z_]\w{0,60}\.){0,8}"
_CLASS_ENDINGS = (
    r"[A-Za-z_]\w{0,80}?(?:Error|Exception|KeyboardInterrupt|Fault|Failed|Unsupported|StackTrace)|KeyboardInterrupt"
    r"|SystemExit|Exception|StopIteration|StopAsyncIteration|Unsupported"
    r"|(?:Base)?ExceptionGroup|ConstraintViolation\w*|BackendCompilerFailed|Timeout"
)
LONE = re.compile(rf"^(?P<exc>{_DOTTED_PREFIX}(?:{_CLASS_ENDINGS}))(?::(?:\s(?P<msg>.*)|$)|\s*$)")
CLASS_LINE = re.compile(
    rf"^(?P<exc>{_DOTTED_PREFIX}[A-Za-z_]\w{{0,80}})(?::(?:\s?(?P<msg>.*)|$)|\s*$)"
)
INLINE = re.compile(
    rf"(?<![\w./`'\"])(?P<exc>{_DOTTED_PREFIX}[A-Z]\w{{0,60}}(?:Error|Exception)): "
    rf"(?P<msg>[^\s].{{0,2000}})"
)
_SUFFIXED_NAME = re.compile(rf"{_DOTTED_PREFIX}(?:{_CLASS_ENDINGS})")
_CLASS = re.compile(r"_{0,2}[A-Z]\w*[a-z]\w*")
_COMPOUND = re.compile(r"[a-z\d][A-Z]|[A-Z]{2}[a-z]")
_HOMES_OF_EXCEPTIONS = frozenset(
    {"exceptions", "exception", "exc", "excs", "errors", "error", "errors_impl", "errorfactory"}
)
_LOWER = re.compile(r"[a-z]*error|timeout")
_OTHERS = re.compile(r"log(?:s|ger|gers|ging)?|self|cls")
_WORDS = re.compile(r"(?<![^\s('\"`])[A-Za-z][A-Za-z'-]+(?![^\s.,:;!?)'\"`])")
_CODE_LINE = re.compile(r"^\W*\w+\s?=|^lambda\b|\| None\b|\s#\s|[,({\[=|]\s*$")
_FEW = 2
TITLE = "Traceback (most recent call last)"
LINK = re.compile(
    r"During handling of the above exception|The above exception was|The preceding is the "
    r"original exception"
    r"|direct cause of the following"
)
_WRAPS = re.compile(r"\b(?:encountered|occurred|raised) (?:when|while|during) ")
_STOP = re.compile(
    r"^\s*(?:-{10,}|={10,}|\*{10,}|_{10,})\s*$|^For simplicity, JAX has removed|^The stack trace "
    r"below excludes"
    r"|^Traceback \(most recent|^Original Traceback \(most recent"
    r"|^(?:>>> |In ?\[\d*\]:|\$ )|^Process finished with exit code|^Exception ignored in|^Set the "
    r"environment variable HYDRA"
    r"|^\[\w+\d*\]:\[[WIE]\d|^\d{4}-\d\d-\d\d[ T]\d\d:\d\d|^[WIE]\d{4} "
    r"\d\d:|^(?:INFO|DEBUG|WARNING):|^#{1,6} \w"
    r"|^NOTE: If your import|^You can suppress this exception"
    r"|^wandb:|^\+-{5,}|^  warnings\.warn\("
)

_FRAME_LINE = re.compile(r"^\s*File \"[^\"]{1,300}\", line \d{1,7}, in \S")


def match_exception_line(line: str) -> re.Match[str] | None:
    """A line that names an exception in any position, with groups `exc` and `msg`."""
    match = LONE.match(line)
    if match is not None or (":" not in line and "." not in line):
        return match
    match = CLASS_LINE.match(line)
    words = (match["msg"] or "").strip() if match else ""
    if match is None or not is_class_name(match["exc"]) or re.fullmatch(NUMBER, words):
        return None
    # Alone on its line, without a module, it is as well a word.
    return match if "." in match["exc"] or words else None


def match_probable_exception(line: str) -> re.Match[str] | None:
    """A line that names an exception if it is where a program ends: a dotted class (or `error`)
    before some words.
    """
    match = CLASS_LINE.match(line)
    path, _, name = match["exc"].rpartition(".") if match else ("", "", "")
    message_text = (match["msg"] or "") if match else ""
    is_spelled_as_class = _CLASS.fullmatch(name) or _LOWER.fullmatch(name)
    if not path or not is_spelled_as_class or "Warning" in name or path[0].isupper():
        return None
    if (
        any(map(_OTHERS.fullmatch, path.split(".")))
        or is_value(message_text)
        or _CODE_LINE.search(message_text)
    ):
        return None
    return match if len(_WORDS.findall(message_text)) >= _FEW else None


# What JAX raises beside an exception, to say that it hides frames.
HIDDEN_FRAMES_NOTES = {"SimplifiedTraceback"}


def is_class_name(name: str) -> bool:
    """Whether a name by itself is that of an exception."""
    *modules, last = name.split(".")
    if has_suffix(name) or "Warning" in last or any(map(_OTHERS.fullmatch, modules)):
        return has_suffix(name)
    standard = modules[0] in sys.stdlib_module_names if modules else is_compound(last)
    home = not _HOMES_OF_EXCEPTIONS.isdisjoint(modules) and _CLASS.fullmatch(last)
    return bool(home) or (standard and last in EXCEPTIONS)


def has_suffix(name: str) -> bool:
    """Whether a name ends as those of exceptions do."""
    return bool(_SUFFIXED_NAME.fullmatch(name))


def is_class(name: str) -> bool:
    """Whether a name, dotted or not, is spelled as classes are."""
    return bool(_CLASS.fullmatch(name.rpartition(".")[2]))


def could_be(name: str) -> bool:
    """Whether a name is spelled as an exception's may be: a class of a module, or one put
    together of several words. A single word is as well a label.
    """
    return is_class(name) if "." in name else is_compound(name)


def is_compound(name: str) -> bool:
    """Whether a name is that of a class, put together of several words."""
    return bool(_CLASS.fullmatch(name) and _COMPOUND.search(name))


def is_end_of_output(lines: Sequence[str], at: int, prefix: str = "") -> bool:
    """Whether what was printed ends before line `at`."""
    if at >= len(lines):
        return True
    line = without(prefix, lines[at])
    return not line.strip() or bool(LINK.search(line) or _STOP.match(line))


def _is_beyond(line: str, lines: Sequence[str]) -> bool:
    """Whether a line is no part of a message. A frame is one only where the message announces it,
    as AutoGraph's "in user code:" does.
    """
    frame = _FRAME_LINE.match(line) and not any(text.rstrip().endswith(":") for text in lines)
    is_fence = line.strip() and not line.strip().strip("`~")  # one that nobody opened
    return bool(is_fence or LINK.search(line) or _STOP.match(line) or TITLE in line or frame)


def message(
    lines: Sequence[str], start: int, first: str, prefix: str = "", tight: bool = False
) -> tuple[str, int]:
    """The whole message that begins on line `start` with the words `first`, and the line after
    it.
    """
    nested = first.find(TITLE)
    if nested >= 0:
        return first[:nested].rstrip(" :"), start + 1
    message_lines = [first]
    for at in range(start + 1, min(len(lines), start + 400)):
        line = without(prefix, lines[at])
        if _is_beyond(line, message_lines) or _ends_span(message_lines):
            break
        unsaid = message_lines[-1].rstrip().endswith(":") or bool(_WRAPS.search(message_lines[-1]))
        if not line.strip():
            following = (without(prefix, text) for text in lines[at + 1 : at + 4] if text.strip())
            if tight or not _continues(next(following, ""), unsaid and at - start < 4):
                break
        elif (tight and not line[:1].isspace()) or (
            LONE.match(line) and len(message_lines) > 1 and not unsaid
        ):
            break
        message_lines.append(line)
    words = "\n".join(message_lines).strip()[:20_000]
    in_brackets = words.endswith(")") and words.count(")") == words.count("(") + 1
    words = words[:-1] if in_brackets or _ends_span(message_lines) else words
    return words, start + len(message_lines)


def _ends_span(lines: Sequence[str]) -> bool:
    """Whether a message ends with the mark that closes a span around the whole traceback."""
    return lines[-1].rstrip().endswith("`") and sum(line.count("`") for line in lines) % 2 == 1


def _continues(line: str, unsaid: bool) -> bool:
    """Whether a line belongs to the message above a gap; `unsaid` when that announces one."""
    indented = line[:1].isspace() and not line.lstrip().startswith(("File ", "at "))
    return bool(unsaid and line) or indented


def without(prefix: str, line: str) -> str:
    """The line without the prefix that every line of a log carries."""
    plain_prefix = prefix.strip()
    if line.startswith(prefix) or not line.lstrip().startswith(plain_prefix):
        return line.removeprefix(prefix)
    return line.lstrip()[len(plain_prefix) :].removeprefix(" ") if plain_prefix else line
