"""Device, operating system, the calls a report is about, values that it only describes, and
links and attachments that are not available here.
"""

import math
import re
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Literal

from bot.environment import imports
from bot.issues.reading.code import variables
from bot.issues.reading.markdown import ReportDocument, Sentence
from bot.kernel.bug import Described, Fence, FenceKind, Issue, Missing, Quote, Role
from bot.kernel.plain_text import distinct

Device = Literal["cpu", "gpu", "tpu", "mps", ""]
_CODE: tuple[tuple[Device, re.Pattern[str]], ...] = (
    ("tpu", re.compile(r"TPUStrategy|torch_xla|accelerator\s*=\s*[\"']tpu[\"']|[\"']tpu[\"']")),
    ("mps", re.compile(r"[\"']mps(?::\d+)?[\"']|torch\.mps\.")),
    (
        "gpu",
        re.compile(
            r"\.cuda\(|[\"']cuda(?::\d+)?[\"']|accelerator\s*=\s*[\"'](?:gpu|cuda)[\"']|device_type\s*=\s*[\"']cuda"
            r"|torch\.cuda\.(?!is_available|manual_seed|empty_cache|amp)\w+|/(?:device:)?GPU:\d|[\"']gpu[\"']"
        ),
    ),
)
_GUARD = re.compile(r"cuda\.is_available\(\)|if [\w.]+\.is_available|mps\.is_available")
_TEXT: tuple[tuple[Device, re.Pattern[str]], ...] = (
    (
        "cpu",
        re.compile(
            r"\b(?:on|with|using|only|the) (?:the )?CPU\b|\bCPU[- ]only\b|\bCPU backend\b"
            r"|\bdevice(?: info)?[=:] ?[\"']?cpu\b|\bbackend: ?cpu\b|\bJAX_PLATFORMS=cpu|^torch "
            r"[\w.+]+ CPU$",
            re.I,
        ),
    ),
    ("mps", re.compile(r"\b(?:MPS|Apple Silicon|M[1-4] (?:Mac|Pro|Max|chip)|Metal)\b")),
    ("tpu", re.compile(r"\bTPUs?\b(?! available| cores: ?0)")),
    (
        "gpu",
        re.compile(
            r"\b(?:CUDA (?:error|out of memory)|on (?:a |an |the |my )?(?:single |multi-?|\d+ ?x? "
            r"?)?(?:GPUs?|A100|H100"
            r"|V100|T4|RTX|CUDA)\b|(?:A100|H100|V100|RTX ?\w?\d{4}|GTX "
            r"?\d{4}|L40S?)\b|\bNCCL\b|multi-?GPU"
            r"|CUDNN_STATUS\w*|cuDNN error|cuda_dnn\.cc|CUBLAS_STATUS\w*|DNN library init)",
            re.I,
        ),
    ),
)
# Kinds of block that show what a run did, each with the device of which it says nothing.
_PRINTED_DEVICES = {
    FenceKind.ENVIRONMENT: "gpu",
    FenceKind.TRACEBACK: "cpu",
    FenceKind.OUTPUT: "",
    FenceKind.LOG: "",
}
_SETTING = re.compile(r"`([A-Z][A-Z0-9_]{2,60}=[^`\s]{1,100})`")
_UNSET = re.compile(r"\b(?:without|unset|unless|instead of|fix\w*|works?|workaround)\b", re.I)
_CODE_WORD = re.compile(r"`([^`\n]{2,80})`")
_DOTTED_NAME = re.compile(
    r"(?<![\w./@`-])((?:[A-Za-z_]\w{0,50}\.){1,7}[A-Za-z_]\w{0,60})(?:\(\))?(?![\w/]|\.\w)"
)
_NAME = re.compile(r"^@?(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*$")
_NOT_API = re.compile(
    r"^(?:e\.g|i\.e|etc|github\.com|.*\.(?:py|ipynb|json|yaml|yml|md|txt|csv|pt|pth|ckpt|pkl|com|org|io|ai|html|sh|cpp|cu"
    r"|h|zip|gz|png|log|toml|cfg|lmdb)|none|true|false|nan|inf|cpu|gpu|cuda|main|master|self|python|pip|conda|null|error"
    r"|and|or|not|if|for|in|is|the|with|import|return|def|class|dtype|(?-i:.*(?:Error|Exception|Warning)))$",
    re.I,
)
_COMPOUND = re.compile(r"\b([A-Z][a-z0-9]+(?:[A-Z][A-Za-z0-9]*)+|[a-z]+(?:_[a-z0-9]+)+)\b")
_MOST_NAMES, _MOST_MISSING = 20, 40
_LINKS: tuple[
    tuple[Literal["attachment", "screenshot", "gist", "notebook", "link", "data"], re.Pattern[str]],
    ...,
] = (
    (
        "screenshot",
        re.compile(
            r"!\[[^\]\n]{0,200}\]\([^)\s]{4,500}\)|<img\s[^>\n]{0,600}>|https?://(?:user-images\.githubusercontent\.com"
            r"|github\.com/(?:user-attachments/assets|[\w.-]+/[\w.-]+/assets))/\S{4,300}",
            re.I,
        ),
    ),
    (
        "attachment",
        re.compile(
            r"(?:\[[^\]\n]{1,200}\]\()?https?://github\.com/(?:user-attachments/files|[\w.-]+/[\w.-]+/files)/[^\s)]{2,300}\)?"
        ),
    ),
    (
        "gist",
        re.compile(
            r"https?://gist\.github(?:usercontent)?\.com/[^\s)>\]]{2,300}|https?://pastebin\.com/[^\s)>\]]{2,100}"
        ),
    ),
    (
        "notebook",
        re.compile(
            r"https?://(?:colab\.research\.google\.com|(?:www\.)?kaggle\.com|nbviewer\.org|colab\.to)/[^\s)>\]]{1,300}"
            r"|https?://[^\s)>\]]{4,300}\.ipynb\b"
        ),
    ),
    (
        "data",
        re.compile(
            r"https?://(?:drive\.google\.com|(?:www\.)?dropbox\.com|1drv\.ms|zenodo\.org|figshare\.com"
            r"|huggingface\.co/datasets|mega\.nz|we\.tl)/[^\s)>\]]{1,300}|\b(?:my|our|the) (?:own "
            r"|private |internal "
            r"|proprietary |custom )(?:data(?:set)?s?|corpus)\b",
            re.I,
        ),
    ),
    (
        "link",
        re.compile(
            r"https?://(?:github\.com/[\w.-]+/[\w.-]+/?(?=[\s)>\]]|$)|github\.com/[\w.-]+/[\w.-]+/(?:tree"
            r"|blob)/[^\s)>\]]{2,300}|huggingface\.co/(?!docs|blog)[^\s)>\]]{3,200})"
        ),
    ),
)


def device(issue: Issue, words: Sequence[Sentence], fences: Sequence[Fence]) -> Device:
    """What the programs ask for, else what the words say, else what was printed."""
    return next(
        chain(
            _requested_devices(fences), _devices_in_prose(issue, words), _devices_in_output(fences)
        ),
        "",
    )


def _requested_devices(fences: Sequence[Fence]) -> Iterator[Device]:
    for fence in fences:
        unmeant = fence.role in {Role.FIX, Role.SOURCE, Role.CONTRAST}
        if fence.kind is not FenceKind.PROGRAM or unmeant or _GUARD.search(fence.text):
            continue
        lines = [line for line in fence.raw.split("\n") if not line.lstrip().startswith("#")]
        for name, pattern in _CODE:
            if any(pattern.search(line[:2000]) for line in lines):
                yield name


def _devices_in_prose(issue: Issue, words: Sequence[Sentence]) -> Iterator[Device]:
    sentences = ((sentence.text, _is_inventory(sentence)) for sentence in words)
    for text, machine in chain([(issue.title, False)], sentences):
        for name, pattern in _TEXT:
            if pattern.search(text[:2000]) and (name == "cpu" or not machine):
                yield name


def _devices_in_output(fences: Sequence[Fence]) -> Iterator[Device]:
    for fence in fences:
        lines = fence.raw.split("\n")[:2000] if fence.kind in _PRINTED_DEVICES else ()
        for line in lines:
            device_names = (
                name for name, pattern in (_TEXT[0], _TEXT[3]) if pattern.search(line[:2000])
            )
            if (device := next(device_names, None)) and device != _PRINTED_DEVICES[fence.kind]:
                yield device


def _is_inventory(sentence: Sentence) -> bool:
    """A list of what a machine has does not say what the program needs."""
    heading = sentence.headings[-1] if sentence.headings else ""
    return bool(
        re.search(r"\b(?:versions?|environment|system|setup|GPU model)\b", heading, re.I)
        or re.search(r"GPU models and|GPU \d+:|used to build", sentence.text)
    )


_SYSTEM = re.compile(
    r"\b(?:on|under|in) (?:a |my )?(?:(?P<windows>Windows\b)|(?:mac ?OS|OS ?X|Mac|Apple Silicon)\b)"
    r"|^\[(?:(?P<tag>Windows)|macOS)\]",
    re.I,
)
_LINUX = re.compile(r"\b(?:linux|ubuntu|debian|every(?:where| platform)|all platforms)\b", re.I)


def settings(words: Sequence[Sentence]) -> dict[str, str]:
    """The variables for libraries that sentences say were set: with `TORCH_LOGS=1`."""
    texts = (row.text[:2000] for row in words if not _UNSET.search(row.text[:2000]))
    return variables("\n".join(setting for text in texts for setting in _SETTING.findall(text)))


def system(issue: Issue, words: Sequence[Sentence]) -> Literal["Windows", "macOS", ""]:
    """The operating system, other than Linux, on which a sentence says that it happens."""
    sentences = (row.text[:2000] for row in words if not _is_inventory(row))
    for text in chain([issue.title], sentences):
        match = _SYSTEM.search(text)
        if match and (not _LINUX.search(text) or re.search(_FINE, text, re.I)):
            return "Windows" if match["windows"] or match["tag"] else "macOS"
    return ""


_FINE = (
    r"(?<!not )(?<!n't )\b(?:works?|fine|right|ok|as expected|correct(?:ly)?|passes"
    r"|no (?:nans?|issues?|problems?|errors?)|does(?: not|n't) (?:happen|occur|fail|show))\b"
)
_ELSEWHERE = r"\b(?:GPUs?|CUDA|MPS|TPUs?|Metal|XPU)\b"
_TURN = rf"\b(?:but|while|whereas|although|not|neither|also|both|too)\b|{_ELSEWHERE}"
_CLAUSE = rf"(?:(?!{_TURN})[^.;\n]){{0,50}}"
_CPU = r"\b(?:(?:on|with|using|for) (?:the |a |my )?)?CPU\b"
_RIGHT_ON_CPU = re.compile(
    rf"{_FINE}{_CLAUSE}{_CPU}|{_CPU}{_CLAUSE}{_FINE}"
    rf"|(?<!not )\bonly (?:\w+ )?(?:on|with|using) (?:the |an? )?{_ELSEWHERE}"
    rf"|\bon (?:the |an? )?{_ELSEWHERE} only\b",
    re.I,
)
_DIFFERS = re.compile(r"\b(?:inconsisten|differ|mismatch|discrepan|disagree|diverg)", re.I)


def cpu_is_right(issue: Issue, words: Sequence[Sentence]) -> Quote | None:
    """The first sentence that calls right what a CPU gives, or says that it gives something else
    than another device.
    """
    title = Quote(text=issue.title, source="title")
    rows = chain([(issue.title, title)], ((row.text, row.quote) for row in words))
    return next((quote for text, quote in rows if _is_about_devices(text[:2000])), None)


def _is_about_devices(text: str) -> bool:
    names = (re.search(name, text, re.I) for name in (r"\bCPU\b", _ELSEWHERE))
    return bool(_RIGHT_ON_CPU.search(text)) or (bool(_DIFFERS.search(text)) and all(names))


def api(issue: Issue, words: Sequence[Sentence]) -> tuple[str, ...]:
    """Names of calls and classes, the title's first."""
    names = [*dict.fromkeys(_names_in(issue.title))][:_MOST_NAMES]
    for name in _COMPOUND.findall(issue.title):
        if not _NOT_API.match(name) and not any(name in other for other in names):
            names.append(name)
    names_in_text = chain.from_iterable(_names_in(sentence.text) for sentence in words[:80])
    return tuple(dict.fromkeys(chain(names, names_in_text)))[: max(_MOST_NAMES, len(names))]


def _names_in(text: str) -> Iterator[str]:
    code_spans = (
        re.split(r"[(\[=\s]", code.strip().lstrip("@"), maxsplit=1)[0].strip(".`")
        for code in _CODE_WORD.findall(text)
    )
    names = (name for name in code_spans if len(name) > 2 and _NAME.match(name))
    dotted_names = _DOTTED_NAME.findall(text[:2000])
    return (name for name in chain(names, dotted_names) if not _NOT_API.match(name))


def missing(document: ReportDocument) -> tuple[Missing, ...]:
    """Links and attachments in the visible text."""
    by_text: dict[tuple[str, str], Missing] = {}
    for prose in document.prose:
        spans: list[range] = []
        has_link = any(mark in prose.text for mark in ("http", "data", "<img", "]("))
        for what, pattern in _LINKS if has_link and len(prose.text) <= 20_000 else ():
            for match in pattern.finditer(prose.text):
                if any(match.start() in span or match.end() - 1 in span for span in spans):
                    continue
                spans.append(range(*match.span()))
                quote = Quote(text=match[0][:500], line=prose.number)
                by_text.setdefault((what, match[0]), Missing(what=what, quote=quote))
    return tuple(by_text.values())[:_MOST_MISSING]


# Values that a program uses without making them, as the words of the report describe them.

_ARRAY = re.compile(
    r"(?<![\w.`])`?(?P<name>[A-Za-z_]\w{0,30})`?\s*(?:(?:is|are|has|have|being|with|of|in|a|an|the|any"
    r"|some|random|float|float32|real|dense|input|tensors?|arrays?|batch|matrix|:|=)[\s:=]++){1,8}"
    r"(?:shape|size)\s*(?:is|:|=|of)?\s*`?(?:torch\.Size)?[(\[]{1,2}(?P<sizes>\d{1,5}(?:\s*,\s*\d{1,5}){0,5}),?[)\]]",
    re.I,
)
_MODEL = re.compile(
    r"\b(?:any|some|arbitrary|whatever|simple|every)\b[^.`]{0,24}`?\b(?:model|module|network|nn\.Module"
    r"|nn\.Linear|layer)\b",
    re.I,
)
_MODEL_NAME = re.compile(r"`(?P<name>model|net|network|module|layer)`")
_MOST_NUMBERS = 1_000_000
_COMMENT = re.compile(r"#+\s*(\S.*)$")


def described(words: Sequence[Sentence], fences: Sequence[Fence]) -> tuple[Described, ...]:
    """The arrays whose shape, and the models whose kind, a sentence or a comment gives, of those
    that a program uses and does not make.
    """
    programs = [fence for fence in fences if fence.kind is FenceKind.PROGRAM]
    comments = (
        (match[1], fence.line + at)
        for fence in programs
        for at, line in enumerate(fence.raw.split("\n")[:2000])
        if (match := _COMMENT.search(line[:500]))
    )
    texts = chain(((row.text[:2000], row.line) for row in words), comments)
    rows = [row for text, line in texts for row in _described_in(text, line)]
    names = {name for fence in programs if rows for name in _open_names(fence.text)}
    return distinct((row for row in rows if row.name in names), lambda row: row.name)[:_MOST_NAMES]


def _open_names(source: str) -> Iterator[str]:
    """The names that a program uses and does not define, or sets to `...`."""
    yield from imports.undefined(source)
    yield from re.findall(r"^\s*(\w+)\s*=\s*\.\.\.", source, re.M)


def _described_in(text: str, line: int) -> Iterator[Described]:
    quote = Quote(text=text[:300], line=line)
    for match in _ARRAY.finditer(text):
        sizes = tuple(map(int, match["sizes"].split(",")))
        if math.prod(sizes) <= _MOST_NUMBERS:
            yield Described(name=match["name"], kind="array", sizes=sizes, quote=quote)
    model = _MODEL_NAME.search(text) if _MODEL.search(text) else None
    if model:
        yield Described(name=model["name"], kind="model", quote=quote)
