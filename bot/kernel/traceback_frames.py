"""Frames of tracebacks: where the file lies, which package it belongs to, and the boxes in which
rich draws them.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from bot.kernel.bug import Frame, Traceback
from bot.kernel.exception_names import CLASS_LINE, LONE, message

CPYTHON = re.compile(  # people shorten `File "/home/me/` to `.../`
    r"^\s*(?:File \"|(?=\S{1,400}\.py\"?, line \d{1,7}, in \S))"
    r"(?P<path>[^\"\n]{1,500}?)\"?, line (?P<line>\d{1,7})(?:, in "
    r"(?P<function>.{1,200})|(?P<unnamed>, in))?\s*$"
)
_LINKED_PATH = r"\[?(?P<path>[^\]\s(]{1,400})\]?(?:\([^)\s]{0,300}\))?"
_LINK = re.compile(r"\[([^\]\n]{1,400})\]\(https?:[^)\s]{0,600}\)")  # JupyterLab links its frames
NOTEBOOK_CELL = re.compile(  # of VS Code
    r"^\s*\[?(?P<path>[^\]\n(,\"]{1,400}\.ipynb)\]?(?:\([^)\s]{0,600}\))?\s+Cell (?P<cell>\d{1,6})\]?"
    r"(?:\([^)\s]{0,600}\))?(?:,? line (?P<line>\d{1,7})|,? in (?P<function>[^\n]{1,200}))\s*$"
)
_NOTEBOOK = (
    NOTEBOOK_CELL,
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
# `jax/numpy` is no part of numpy.
_NOT_INSIDE = r"(?<!jax/)(?<!jax/_src/)(?<!tensorflow/python/)(?<!keras/src/backend/)"
_CHECKOUT = re.compile(
    rf"(?:.*/|(?=jax/)){_NOT_INSIDE}(?P<module>(?:{_HOMES_OF_FILES})/(?!examples/|tests?/|benchmarks?/|scripts/|docs/|src/)[\w/]+\.py)$"
)

_DOUBLED = re.compile(r"^(\w+)/(?:\1/)+")
"""A package in a folder of its own name."""
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
    # Python 2 names the compiled file.
    plain = re.sub(r"/{2,}", "/", location.replace("\\", "/")).removesuffix(
        "c" * location.endswith(".pyc")
    )
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
        return _DOUBLED.sub(r"\1/", checkout["module"])
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
