"""Finds tracebacks in any text: of CPython, IPython, pytest and rich, or only their last
line; and deaths by a signal.
"""

import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import islice, takewhile

from bot.kernel.bug import Frame, Traceback
from bot.kernel.plain_text import NUMBER, indent_of, is_value

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
_NOTES = {"SimplifiedTraceback"}


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


# Frames of tracebacks: where the file lies, which package it belongs to, and the boxes in which
# rich draws them.

CPYTHON = re.compile(  # people shorten `File "/home/me/` to `.../`
    r"^\s*(?:File \"|(?=\S{1,400}\.py\"?, line \d{1,7}, in \S))"
    r"(?P<path>[^\"\n]{1,500}?)\"?, line (?P<line>\d{1,7})(?:, in "
    r"(?P<function>.{1,200}))?\s*$"
)
_LINKED_PATH = r"\[?(?P<path>[^\]\s(]{1,400})\]?(?:\([^)\s]{0,300}\))?"
_LINK = re.compile(r"\[([^\]\n]{1,400})\]\(https?:[^)\s]{0,600}\)")  # JupyterLab links its frames
_NOTEBOOK_CELL = re.compile(  # of VS Code
    r"^\s*\[?(?P<path>[^\]\n(,\"]{1,400}\.ipynb)\]?(?:\([^)\s]{0,600}\))?\s+Cell (?P<cell>\d{1,6})\]?"
    r"(?:\([^)\s]{0,600}\))?(?:,? line (?P<line>\d{1,7})|,? in (?P<function>[^\n]{1,200}))\s*$"
)
_NOTEBOOK = (
    _NOTEBOOK_CELL,
    re.compile(
        r"^\s*(?:Cell |Input )In ?\[(?P<cell>[\d ]{0,6})\], (?:line (?P<line>\d+)|in)(?:,? "
        r"in)?\s*(?P<function>.*)$"
    ),
    re.compile(r"^\s*(?:Cell |Input )In ?\[(?P<cell>[\d ]{0,6})\], in (?P<function>.*)$"),
    re.compile(
        r"^\s*File (?P<path>[^\s,][^,\n]{0,400}?):(?P<line>\d+)(?:, in (?P<function>.*))?\s*$"
    ),
    re.compile(r"^\s*File (?P<path>[^\s,\"][^,\n]{0,400}?), in (?P<function>.*)$"),
    re.compile(
        r"^\s*\[?(?P<path><ipython-input[^>\n]{0,80}>)\]?(?:\([^)\s]{0,300}\))?"
        r"(?::(?P<line>\d+),)? in (?P<function>.*)$"
    ),
    re.compile(
        rf"^\s*{_LINKED_PATH}(?::(?P<line>\d+))? in (?P<function><?[\w.<>]+[^\n]{{0,300}}\)?)$"
    ),
)
PYTEST = re.compile(
    r"^(?P<path>[^\s:][^:\n]{0,300}\.py):(?P<line>\d+): ?(?:in "
    r"(?P<function>\S+)|(?P<exc>[A-Z]\w*(?<!Warning)))?\s*$"
)
PYTEST_ERROR = re.compile(r"^\s*E\s{2,}\S")
LIBRARY = re.compile(r".*(?:site|dist)-packages/(?P<module>[^/]+.*)$")
_STDLIB = re.compile(
    r"(?i).*/(?:lib(?:64)?/python3\.\d{1,2}|(?:python3\d{1,2}|(?:ana|mini)conda3(?:/envs/[^/]{1,80})?)/lib)"
    r"/(?!(?:site|dist)-packages/|python3)"
)
_HOMES_OF_FILES = (
    "torch_geometric|torch|torchvision|torchaudio|transformers|lightning|lightning_fabric|pytorch_lightning|keras"
    "|tensorflow|jax|jaxlib|flax|optax|equinox|diffusers|accelerate"
    "|peft|timm|torchmetrics|deepchem|datasets|numpy|scipy|haiku|dgl|monai|kornia|trl|deepspeed|ignite"
)
_CHECKOUT = re.compile(
    rf".*/(?P<module>(?:{_HOMES_OF_FILES})/(?!examples/|tests?/|benchmarks?/|scripts/|docs/|src/)[\w/]+\.py)$"
)

_SIDE = re.compile(r"^\s*[\u2502|]\s?|\s*[\u2502|]\s*$")
_PLACE = re.compile(r"^\s*(?P<path>\S{1,400}\.py):(?P<line>\d{1,7}) in (?P<function>\S+)")
_WRAPPED_LINE = re.compile(r"^\s*\S{1,400}\.py:\d{1,7} in\s*$")
_COMPILED_FRAME = re.compile(
    r"^\s*in (?P<module>[a-z_]\w*(?:\.[a-z_]\w*)+)\.(?P<function>(?:[A-Z]\w*\.)?\w+)"
    r":(?P<line>\d{1,7})\s*$"
)
_CODE_IN_FRAME = re.compile(r"^\s*[\u2771>]\s*\d{1,7}\s*(?:[\u2502|]\s*)*(?P<code>.*?)\s*$")


def frame(path: str, line: str | None, function: str, code: str = "", home: str = "") -> Frame:
    """A frame with its package worked out; `home` is the import name of the repository."""
    location = path.strip().strip("[]")
    plain = re.sub(r"/{2,}", "/", location.replace("\\", "/"))
    site, standard = LIBRARY.match(plain), _STDLIB.match(plain)
    # What runs as a module outside all packages is a script, whatever its folder is called.
    own = "" if standard or function.strip() == "<module>" else _own(plain, home)
    # Cython gives the path below the package, or the bare name of the file.
    cython = plain if plain.endswith((".pyx", ".pxd", ".pxi")) and "/" in plain else ""
    module = site["module"] if site else own or cython
    return Frame(
        path=location,
        package=module.split("/")[0].removesuffix(".py") or ("<stdlib>" if standard else ""),
        module_path=module,
        line=int(line) if line and line.isdigit() and len(line) < 9 else None,
        function=_name(function),
        code=code.strip(),
    )


def _own(path: str, home: str) -> str:
    """The module of a file in a checkout of a known package or of the repository."""
    if checkout := _CHECKOUT.match(path):
        return checkout["module"]
    _, inside, rest = path.rpartition(f"/{home}/")
    own = home and inside and not re.match(r"(?:examples|tests?|benchmarks?|scripts|docs)/", rest)
    return f"{home}/{rest}" if own else ""


def _name(function: str) -> str:
    """`Tmp.__init__(self, x)` as `Tmp.__init__`; `<cell line: 25>()` as `<module>`."""
    text = function.strip()
    return "<module>" if text.startswith("<cell line") else text.split("(")[0].strip()


def notebook(line: str, home: str = "") -> Frame | None:
    """A frame as IPython and Colab print it, or None."""
    if len(line) > 1200 or not (" in " in line or "line " in line or "File " in line):
        return None
    plain_line = _LINK.sub(r"\1", line)
    for match in filter(None, (pattern.match(plain_line) for pattern in _NOTEBOOK)):
        fields = match.groupdict()
        path = fields.get("path")
        if path is None or re.search(r"[/\\~<]|\.(?:py|ipynb)$", path):
            place = path or f"<cell {fields.get('cell', '').strip()}>"
            function = fields.get("function") or "<module>" * place.endswith(".ipynb")
            return frame(place, fields.get("line"), function, home=home)
    return None


@dataclass(frozen=True, slots=True)
class TracebackSpan:
    """A traceback and the half-open range of lines that it covers."""

    traceback: Traceback
    start: int
    end: int


_CLOSING_MARK = re.compile(r"(?<=['\"`)\].!?])[_*]{1,3}$")


def span_of(
    start: int, end: int, exception: str = "", message: str = "", frames: Sequence[Frame] = ()
) -> TracebackSpan:
    """The span of a traceback with these parts. A mark of Markdown that closes what began with
    the title is no part of the message.
    """
    message = _CLOSING_MARK.sub("", message)
    traceback = Traceback(exception=exception, message=message, frames=tuple(frames))
    return TracebackSpan(traceback, start, end)


def rich(lines: Sequence[str], start: int, home: str) -> TracebackSpan:
    """The traceback in the box that opens on line `start`, with the exception below the box."""
    frame_list: list[Frame] = []
    at = start + 1
    while at < len(lines) and not lines[at].lstrip().startswith("\u2570"):
        text = _SIDE.sub("", lines[at])
        if _WRAPPED_LINE.search(text) and at + 1 < len(lines):  # the name did not fit
            text = f"{text.rstrip()} {_SIDE.sub('', lines[at + 1]).strip()}"
        place, code = _PLACE.match(text), _CODE_IN_FRAME.match(text)
        if place:
            frame_list.append(frame(place["path"], place["line"], place["function"], home=home))
        elif compiled_frame := _COMPILED_FRAME.match(text):
            path = compiled_frame["module"].replace(".", "/") + ".pyx"
            frame_list.append(
                frame(path, compiled_frame["line"], compiled_frame["function"], home=home)
            )
        elif code and frame_list and not frame_list[-1].code:
            frame_list[-1] = frame_list[-1].model_copy(update={"code": code["code"]})
        at += 1
    last = lines[at + 1] if at + 1 < len(lines) else None
    match = (LONE.match(last) or CLASS_LINE.match(last)) if last is not None else None
    if match is None:
        return span_of(start, at, frames=frame_list)
    words, end = message(lines, at + 1, match["msg"] or "")
    return span_of(start, end, match["exc"], words, frame_list)


# What TensorFlow's AutoGraph quotes in a message in place of the frames of the code that it made:
# where in the user's and the library's own files it was, and the error behind it.

_TITLE = "in user code:"
_AUTOGRAPH_FRAME = re.compile(
    r"^\s+File \"(?P<path>[^\"\n]{1,500})\", line (?P<line>\d{1,7}), in (?P<function>\S{1,200})"
    r"(?:\s+\*{1,2})?\s*$"
)
_ERROR = re.compile(r"^(?P<indent>\s+)(?:[A-Za-z_][\w.]*: )(?P<message>\S.*)$")


def unfold(message: str) -> tuple[str, tuple[Frame, ...]]:
    """The words of the error behind a message, and the frames quoted before them, outermost first;
    the message as it is, without frames, where it quotes none.
    """
    _, title, rest = message.partition(_TITLE)
    frame_list: list[Frame] = []
    lines = iter(rest.splitlines()) if title else iter(())
    for line in lines:
        if match := _AUTOGRAPH_FRAME.match(line):
            code = next(lines, "")
            frame_list.append(frame(match["path"], match["line"], match["function"], code))
        elif frame_list and (error := _ERROR.match(line)):
            indent = error["indent"]
            more = [line.removeprefix(indent) for line in lines if line.startswith(indent)]
            words = "\n".join([error["message"], *more]).strip()
            deeper, inner = unfold(words)
            return deeper, (*frame_list, *inner)
    return message, ()


# Deaths that Python does not report itself: signals and aborts, as shells and C++ print them.

_SIGNS: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "SIGSEGV",
        re.compile(
            r"Segmentation fault|\bSIGSEGV\b|exit(?:ed with)? code:? "
            r"-?(?:139|11)\b|0xC0000005|access violation",
            re.I,
        ),
    ),
    (
        "SIGFPE",
        re.compile(r"Floating[ -]point exception|\bSIGFPE\b|exit code:? -?(?:136|8)\b", re.I),
    ),
    ("SIGBUS", re.compile(r"Bus error|\bSIGBUS\b", re.I)),
    ("SIGILL", re.compile(r"Illegal instruction|\bSIGILL\b", re.I)),
    (
        "SIGKILL",
        re.compile(
            r"^\s*Killed\s*$|\bSIGKILL\b|exit code:? -?(?:137|9)\b|^\S{0,60}\s*\d{0,8}\s*Killed\s"
        ),
    ),
    (
        "SIGABRT",
        re.compile(
            r"^Aborted\b|\bSIGABRT\b|exit code:? -?(?:134|6)\b|terminate called|Fatal Python "
            r"error: Aborted|^(?:free"
            r"|malloc|corrupted|double "
            r"free|munmap_chunk|realloc)\b.{0,20}(?:\(\)|corruption|unsorted)"
        ),
    ),
)
_WHAT = re.compile(r"^\s*what\(\):\s*(?P<text>.*)$")
_CORE_DUMP = re.compile(r"\(core dumped\)|\bAborted\b")
WORDS = re.compile(
    r"\b(?:seg(?:mentation)?[ -]?fault(?:s|ed|ing)?|SIGSEGV|core dump(?:ed|s)?)\b", re.I
)


def parse_fatal_signal(lines: Sequence[str], at: int) -> tuple[str, str, int]:
    """The signal that a line reports, the words that go with it, and how many lines that took; ("",
    "", 0) when none.
    """
    signs = _SIGNS if len(lines[at]) <= 2000 else ()
    name = next((name for name, pattern in signs if pattern.search(lines[at])), "")
    words, line_count = (lines[at].strip(), 1) if name else ("", 0)
    for k, following in enumerate(lines[at + 1 : at + 6] if name else (), 2):
        if what := _WHAT.match(following):
            words = what["text"].strip()
        if what or _CORE_DUMP.search(following):
            line_count = k
    return name, words, line_count


_HEADER = re.compile(
    r"^(?P<prefix>.{0,400}?)(?P<words>(?:Original |Exception Group )?Traceback \(most recent call "
    r"last\))"
)
_NOTEBOOK_HEADER = re.compile(
    r"^\s*(?P<exc>[A-Za-z_][\w.]{0,120})(?:\s{2,}|(?<=Error)\s|(?<=Exception)\s)"
    r"Traceback \(most recent call last\)"
)
_ARROW = re.compile(  # VS Code links the number
    r"^\s*-+>\s*(?:<a [^>\n]{0,600}>|\[)?(?P<line>\d{1,6})(?:</a>|\](?:\([^)\s]{0,600}\))?)?\s?(?P<code>.*)$"
)
_CODE_BESIDE = re.compile(
    r"^(?P<name><[^>\n]{1,60}>(?:\(\))?|[A-Za-z_][\w.]{0,150})\s+(?P<code>[^\s*].*)$"
)
"""A function and, on the line of its frame, its code."""
_GROUP = re.compile(r"^\s*[+|](?:-+)? ?")
_CARETS = re.compile(r"^[\s~^\u2500-\u257f]*$")
_BEFORE = re.compile(
    r"^\s*(?:\[?(?:rank|Rank )?\d+\]?:\s*|\(\w+ pid=\d+\)\s*|>\s?|#+\s?|!+\s?"
    r"|ERROR:\s*)?(?:[\u2190-\u2bff\U0001f000-\U0001ffff]\ufe0f?\s*)?"
    r"(?:(?:raises?|throws?|fails? with|gives?|[Ee]rror|got|[-=]+>)[:\s]\s*)?"
)
_PYTEST_LINE = re.compile(r"^E(?:\s{2,}(?=\S)|\s*$)")
_NOTEBOOK_FRAME = re.compile(r"\s{0,40}+(?P<path>\S{1,1000}+) in [\w<>.]{1,200}+\(")
_RAISES = re.compile(r"raise (?P<exc>[A-Za-z_][\w.]{0,200})\(")
_NOTEBOOK_STARTS = ("File ", "Cell In", "Input In", "[<ipython", "<ipython")
_PYTEST_SHORT = re.compile(  # `--tb=line`: path.py:12: ValueError: words
    r"^\s*(?P<path>[^\s:][^:\n]{0,300}\.py):(?P<line>\d{1,7}): (?P<error>\S.*)$"
)


def find(
    lines: Sequence[str], *, home: str = "", tight: bool = False, loose: bool = False
) -> list[TracebackSpan]:
    """Every traceback in these lines, in order; causes and contexts are part of what they led to.

    `tight` is for prose, where a message ends with its line. `loose` is for output that a report
    quotes, whose last line may only be likely to name an exception.
    """
    spans: list[TracebackSpan] = []
    at = 0
    while at < len(lines):
        span = _at(lines, at, home, tight) or (_ending(lines, at) if loose else None)
        at = max(span.end, at + 1) if span else at + 1
        if span and span.traceback.exception.rpartition(".")[2] not in {"", *_NOTES}:
            spans.append(_unfold(span))
    return _link(lines, spans)


def _unfold(span: TracebackSpan) -> TracebackSpan:
    """The span with the frames that its message quotes among the others."""
    whole = span.traceback
    words, frames_quoted = unfold(whole.message)
    own = whole.model_copy(update={"message": words, "frames": (*whole.frames, *frames_quoted)})
    return replace(span, traceback=own) if frames_quoted else span


def _at(lines: Sequence[str], at: int, home: str, tight: bool) -> TracebackSpan | None:
    """The traceback that opens on a line, in the first format that the line shows."""
    line = lines[at]
    if len(line) > 20_000 or not line or line.isspace():
        return None
    traceback_format = next((candidate for candidate in FORMATS if candidate.opens(line)), None)
    return (
        traceback_format.read(lines, at, home)
        if traceback_format is not None
        else _last_line(lines, at, tight)
    )


def _ending(lines: Sequence[str], at: int) -> TracebackSpan | None:
    """A last line that only likely names an exception, with no other such line before it."""
    lead = _lead(lines[at])
    match = match_probable_exception(lines[at][len(lead) :])
    if match is None or "#" in lead or lead[:1].isspace():
        return None
    if at and match_probable_exception(lines[at - 1][len(lead) :]):
        return None
    words, end = message(lines, at, match["msg"] or "", lead, tight=True)
    return span_of(at, end, match["exc"], words) if is_end_of_output(lines, end, lead) else None


def _lead(line: str) -> str:
    """What precedes the name of an exception: a rank, a mark, a word such as "raises"."""
    prefix = _BEFORE.match(line)
    return prefix[0] if prefix else ""


def _last_line(lines: Sequence[str], at: int, tight: bool) -> TracebackSpan | None:
    text = lines[at]
    lead = _lead(text)
    match = match_exception_line(text[len(lead) :])
    if match and "Warning" not in match["exc"] and not match["exc"].endswith(".py"):
        words, end = message(lines, at, match["msg"] or "", lead, tight)
        return span_of(at, end, match["exc"], words)
    name, words, line_count = (
        ("", "", 0) if tight and len(text) > 120 else parse_fatal_signal(lines, at)
    )
    return span_of(at, at + line_count, name, words) if name else None


def _cpython(
    lines: Sequence[str], start: int, at: int, prefix: str, home: str
) -> TracebackSpan | None:
    group, has_header = "Exception Group" in lines[start], at > start
    frame_list: list[Frame] = []
    while at < len(lines):
        line = _content(lines[at], prefix, group)
        if match := CPYTHON.match(line):
            name = match["function"] or ""
            if beside := _CODE_BESIDE.match(name):
                name, code, at = beside["name"], beside["code"], at + 1
            else:
                code, at = _code_after(lines, at, prefix, group)
            frame_list.append(frame(match["path"], match["line"], name, code, home))
        elif not line.strip() and not frame_list:
            return None
        elif not line.strip() and not _goes_on(lines, at + 1, prefix):
            return span_of(start, at + 1, frames=frame_list)
        elif not line.strip() or _is_detail(line, frame_list and at - start < 3000):
            at += 1
        else:
            return _read_raised(lines, (start, at), line.strip(), frame_list, has_header, prefix)
    return span_of(start, at, frames=frame_list)


def _content(line: str, prefix: str, group: bool) -> str:
    return _GROUP.sub("", line) if group else without(prefix, line)


def _is_detail(line: str, has_frames: object) -> bool:
    """Whether a line belongs to the frame before it: marks, an ellipsis, or further code."""
    text = line.strip()
    is_shortened = text.startswith("[Previous line repeated") or text == "..."
    return is_shortened or bool(_CARETS.match(text) or (line[:1] in " \t" and has_frames))


def _read_raised(
    lines: Sequence[str],
    place: tuple[int, int],
    text: str,
    frame_list: list[Frame],
    has_header: bool,
    prefix: str,
) -> TracebackSpan:
    """The traceback that the line at the end of `place` closes, if it names an exception."""
    start, at = place
    class_line = CLASS_LINE.match(text)
    is_class_stated = (
        has_header and class_line and class_line["msg"] and is_class(class_line["exc"])
    )
    if class_line is None or not (frame_list or match_exception_line(text) or is_class_stated):
        return span_of(start, at, frames=frame_list)
    words, end = message(lines, at, class_line["msg"] or "", prefix)
    return span_of(start, end, class_line["exc"], words, frame_list)


def _goes_on(lines: Sequence[str], at: int, prefix: str) -> bool:
    """Whether the traceback continues after a blank line."""
    following = next((without(prefix, line) for line in lines[at : at + 3] if line.strip()), "")
    return bool(CPYTHON.match(following) or match_exception_line(following.strip()))


def _code_after(lines: Sequence[str], at: int, prefix: str, group: bool) -> tuple[str, int]:
    """The source line shown under a frame, and the line after what belongs to the frame."""
    line = _content(lines[at + 1], prefix, group) if at + 1 < len(lines) else ""
    class_line = CLASS_LINE.match(line)
    raised_match = LONE.match(line) or (
        class_line and "." in class_line["exc"] and class_line["msg"] is not None
    )
    if not line.strip() or raised_match or CPYTHON.match(line) or TITLE[:-6] in line:
        return "", at + 1
    return ("" if _CARETS.match(line) else line.strip()), at + 2


def _notebook(lines: Sequence[str], start: int, at: int, home: str) -> TracebackSpan | None:
    frame_list: list[Frame] = []
    header = _NOTEBOOK_HEADER.match(lines[start])
    expected = header["exc"].rsplit(".", 1)[-1] if header else ""
    while at < len(lines) and TITLE not in lines[at]:
        line = lines[at]
        arrow = _ARROW.match(line)
        if arrow and frame_list:
            changes = {"line": int(arrow["line"]), "code": arrow["code"].strip()}
            frame_list[-1] = frame_list[-1].model_copy(update=changes)
        elif not arrow and (place := notebook(line, home)):
            frame_list.append(place)
        elif match := _notebook_end(line, expected or _class_raised(frame_list)):
            words, end = message(lines, at, match["msg"] or "")
            return span_of(start, end, match["exc"], words, frame_list)
        at += 1
    return span_of(start, at, expected, "", frame_list)


def _is_notebook_frame(line: str) -> bool:
    """Whether a line is a frame of IPython in a file of Python."""
    match = _NOTEBOOK_FRAME.match(line)
    path = match["path"] if match else ""
    return ".py" in path and any(mark in path for mark in "/\\~")


def _class_raised(frames: Sequence[Frame]) -> str:
    """The class that the innermost frame's line raises, "" where it is no such line."""
    match = _RAISES.match(frames[-1].code) if frames else None
    return match["exc"].rsplit(".", 1)[-1] if match else ""


def _notebook_end(line: str, expected: str) -> re.Match[str] | None:
    """A line that names the exception of the title, or plainly another one."""
    lone = LONE.match(line)
    match = lone or CLASS_LINE.match(line)
    if match is None or line[:1].isspace():
        return None
    if match["exc"].rsplit(".", 1)[-1] == expected:
        return match
    return lone if "Warning" not in match["exc"] else None


def _pytest(lines: Sequence[str], at: int, home: str) -> TracebackSpan | None:
    """The `E` lines of a pytest failure and the places named around them."""
    margin = lines[at][: indent_of(lines[at])]
    rest = (line.removeprefix(margin) for line in islice(lines, at, None))
    words = [line[1:].lstrip() for line in takewhile(_PYTEST_LINE.match, rest)]
    end = at + len(words)
    before = [line.removeprefix(margin) for line in lines[max(0, at - 60) : at]]
    around = [*before, *(line.removeprefix(margin) for line in lines[end : end + 3])]
    places = [match for match in map(PYTEST.match, around) if match]
    class_stated = next((place["exc"] for place in reversed(places) if place["exc"]), "")
    own = CLASS_LINE.match(words[0])
    own = own if own and own["exc"].rpartition(".")[2] == class_stated else None
    match = match_exception_line(words[0]) or match_probable_exception(words[0]) or own
    if not match and not class_stated:
        return None
    frame_list = [frame(m["path"], m["line"], m["function"] or "", home=home) for m in places]
    # The last source line with a mark is the one that failed.
    lines_marked = [line[1:].strip() for line in before[-10:] if line.startswith(">")]
    if frame_list and lines_marked and lines_marked[-1]:
        frame_list[-1] = frame_list[-1].model_copy(update={"code": lines_marked[-1]})
    first = (match["msg"] or "") if match else words[0]
    text = "\n".join([first, *words[1:]]).strip()
    return span_of(at, end, match["exc"] if match else class_stated, text, frame_list)


def _pytest_short(lines: Sequence[str], at: int, home: str) -> TracebackSpan | None:
    """A failure on one line, as pytest prints it with `--tb=line`."""
    place = _PYTEST_SHORT.match(lines[at])
    error = LONE.match(place["error"]) if place else None
    if place is None or error is None:
        return None
    frame_list = [frame(place["path"], place["line"], "", home=home)]
    return span_of(at, at + 1, error["exc"], (error["msg"] or "").strip(), frame_list)


def _link(lines: Sequence[str], spans: list[TracebackSpan]) -> list[TracebackSpan]:
    """The spans, with chained and nested tracebacks put into the one that they belong to."""
    out: list[TracebackSpan] = []
    for span in spans:
        outer = _join(lines, out[-1], span) if out else None
        out[len(out) - bool(outer) :] = [outer or span]
    return out


def _join(lines: Sequence[str], before: TracebackSpan, span: TracebackSpan) -> TracebackSpan | None:
    """Two tracebacks as one, if the first led to the second or holds it in its message."""
    first, second = before.traceback, span.traceback
    between = lines[before.end : span.start]
    if len(between) < 14 and any(map(LINK.search, between)):
        cause = first.model_copy(update={"chained": ()})
        joined_traceback = second.model_copy(
            update={"chained": (*first.chained, cause, *second.chained)}
        )
    elif before.end >= span.start and _is_inner(lines, span.start):
        joined_traceback = first.model_copy(update={"chained": (*first.chained, second)})
    else:
        return None
    return TracebackSpan(joined_traceback, before.start, span.end)


def _is_inner(lines: Sequence[str], start: int) -> bool:
    """Whether a traceback is inside the message of the one before, such as a worker's own."""
    has_title = start > 0 and TITLE in lines[start - 1] and TITLE not in lines[start]
    return has_title or "Original Traceback" in lines[start]


def _read_titled(lines: Sequence[str], at: int, home: str) -> TracebackSpan | None:
    header = _HEADER.match(lines[at])
    prefix = header["prefix"] if header and "Exception Group" not in lines[at] else ""
    return _cpython(lines, at, at + 1, prefix, home)


def _is_short(line: str) -> bool:
    place = _PYTEST_SHORT.match(line)
    error = LONE.match(place["error"]) if place else None
    return bool(error and error["msg"])


@dataclass(frozen=True, slots=True)
class TracebackFormat:
    """A way of printing tracebacks: whether a line `opens` one, and its reader, which gets the
    lines, the place of that line and the import name of the repository.
    """

    name: str
    opens: Callable[[str], object]
    read: Callable[[Sequence[str], int, str], TracebackSpan | None]


FORMATS: tuple[TracebackFormat, ...] = (
    TracebackFormat("rich", lambda line: TITLE in line and "\u2500" in line, rich),
    TracebackFormat(
        "IPython, with its title",
        _NOTEBOOK_HEADER.match,
        lambda lines, at, home: _notebook(lines, at, at + 1, home),
    ),
    TracebackFormat("Python", lambda line: TITLE in line, _read_titled),
    TracebackFormat(
        "Python, without its title",
        CPYTHON.match,
        lambda lines, at, home: _cpython(lines, at, at, "", home),
    ),
    TracebackFormat(
        "IPython",
        lambda line: (
            (line.lstrip().startswith(_NOTEBOOK_STARTS) and notebook(line))
            or _is_notebook_frame(line)
            or (".ipynb" in line and len(line) < 1200 and _NOTEBOOK_CELL.match(line))
        ),
        lambda lines, at, home: _notebook(lines, at, at, home),
    ),
    TracebackFormat("pytest", PYTEST_ERROR.match, _pytest),
    TracebackFormat("pytest --tb=line", _is_short, _pytest_short),
)
"""In this order: a line is read in the first format that it opens."""
