"""Device, operating system, the calls a report is about, and what it points at that cannot be
had here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Literal

from bot.models.bug import Fence, FenceKind, Missing, Quote, Role
from bot.models.issue import Issue
from bot.rules.intake.document import ReportDocument
from bot.rules.intake.sentences import Sentence
from bot.rules.intake.version_dumps import EXAMPLE

Device = Literal["cpu", "gpu", "tpu", "mps", ""]
_CODE_GPU = re.compile(
    r"\.cuda\(|[\"']cuda(?::\d+)?[\"']|accelerator\s*=\s*[\"'](?:gpu|cuda)[\"']|device_type\s*=\s*[\"']cuda"
    r"|torch\.cuda\.(?!is_available|manual_seed|empty_cache|amp)\w+|/(?:device:)?GPU:\d|[\"']gpu[\"']"
)
_CODE_TPU = re.compile(r"TPUStrategy|torch_xla|accelerator\s*=\s*[\"']tpu[\"']|[\"']tpu[\"']")
_CODE_MPS = re.compile(r"[\"']mps(?::\d+)?[\"']|torch\.mps\.")
_GUARDED = re.compile(r"cuda\.is_available\(\)|if [\w.]+\.is_available|mps\.is_available")
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
            r"?\d{4}|L40S?)\b|\bNCCL\b|multi-?GPU)",
            re.I,
        ),
    ),
)
_OS_FIELD = re.compile(
    r"^[\s#*|-]{0,20}(?:OS(?: Platform(?: and Distribution)?)?|Operating System|Platform|Python "
    r"platform"
    r"|System)(?: \([^)]{0,40}\))?[`*]{0,3}\s*[:|]\s*[`*]{0,3}(?P<os>[A-Za-z][^\n|]{1,80})",
    re.I,
)
_OS_WORD = re.compile(
    r"\b(?P<os>Ubuntu(?: \d\d\.\d\d(?:\.\d)?)?|Debian(?: \d+)?|CentOS(?: \d)?|Windows(?: "
    r"(?:10|11|Server \d+))?"
    r"|mac ?OS(?: [\d.]+| \w+)?|OS X|WSL2?|Linux|Red Hat|Fedora(?: \d+)?|Arch Linux|Rocky Linux)\b",
    re.I,
)
_CODE_WORD = re.compile(r"`([^`\n]{2,80})`")
_DOTTED = re.compile(
    r"(?<![\w./@`-])((?:[A-Za-z_]\w{0,50}\.){1,7}[A-Za-z_]\w{0,60})(?:\(\))?(?![\w/]|\.\w)"
)
_NAME = re.compile(r"^@?(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*$")
_NOT_API = re.compile(
    r"^(?:e\.g|i\.e|etc|github\.com|.*\.(?:py|ipynb|json|yaml|yml|md|txt|csv|pt|pth|ckpt|pkl|com|org|io|ai|html|sh|cpp|cu"
    r"|h|zip|gz|png|log|toml|cfg|lmdb)|none|true|false|nan|inf|cpu|gpu|cuda|main|master|self|python|pip|conda|null|error"
    r"|and|or|not|if|for|in|is|the|with|import|return|def|class|dtype)$",
    re.I,
)
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


def device(
    issue: Issue, words: Sequence[Sentence], fences: Sequence[Fence], document: ReportDocument
) -> tuple[Device, Quote | None]:
    """What the programs ask for, else what the words say, else what was printed."""
    return next(
        chain(_asked(fences, document), _spoken(issue, words), _printed(fences, document)),
        ("", None),
    )


def _asked(fences: Sequence[Fence], document: ReportDocument) -> Iterator[tuple[Device, Quote]]:
    wanted: tuple[tuple[Device, re.Pattern[str]], ...] = (
        ("tpu", _CODE_TPU),
        ("mps", _CODE_MPS),
        ("gpu", _CODE_GPU),
    )
    for fence in fences:
        unmeant = fence.role in {Role.FIX, Role.SOURCE, Role.CONTRAST}
        if fence.kind is not FenceKind.PROGRAM or unmeant or _GUARDED.search(fence.text):
            continue
        for name, pattern in wanted:
            for offset, line in enumerate(fence.raw.split("\n")):
                if pattern.search(line[:2000]) and not line.lstrip().startswith("#"):
                    yield (
                        name,
                        Quote(text=line.strip()[:300], line=_within(fence.line + offset, document)),
                    )


def _spoken(issue: Issue, words: Sequence[Sentence]) -> Iterator[tuple[Device, Quote]]:
    title = Quote(text=issue.title, source="title")
    for text, quote, machine in [
        (issue.title, title, False),
        *((s.text, s.quote, _is_inventory(s)) for s in words),
    ]:
        for name, pattern in _TEXT:
            if pattern.search(text[:2000]) and (name == "cpu" or not machine):
                yield name, quote


def _printed(fences: Sequence[Fence], document: ReportDocument) -> Iterator[tuple[Device, Quote]]:
    for fence in fences:
        if fence.kind not in {FenceKind.ENVIRONMENT, FenceKind.TRACEBACK, FenceKind.OUTPUT}:
            continue
        for offset, line in enumerate(fence.raw.split("\n")[:2000]):
            found = next(
                (name for name, pattern in (_TEXT[0], _TEXT[3]) if pattern.search(line[:2000])),
                None,
            )
            barred = {FenceKind.ENVIRONMENT: "gpu", FenceKind.TRACEBACK: "cpu"}.get(fence.kind)
            if found and found != barred:
                yield (
                    found,
                    Quote(text=line.strip()[:300], line=_within(fence.line + offset, document)),
                )


def _is_inventory(sentence: Sentence) -> bool:
    """A list of what a machine has does not say what the program needs."""
    listed = any(
        re.search(r"\b(?:versions?|environment|system|setup|GPU model)\b", heading, re.I)
        for heading in sentence.headings[-1:]
    )
    return listed or bool(re.search(r"GPU models and|GPU \d+:|used to build", sentence.text))


def _within(line: int, document: ReportDocument) -> int:
    return min(line, len(document.lines))


def system(words: Sequence[Sentence], document: ReportDocument) -> str:
    """The operating system, from a field or from the words."""
    for line in document.lines[:5000]:
        match = _OS_FIELD.match(EXAMPLE.sub(" ", line[:300]))
        named = _OS_WORD.search(match["os"]) if match else None
        if match and named:
            return named["os"] if "uname" in match["os"] else match["os"].strip(" `*")
    for prose in document.prose:
        if (
            prose.headings
            and re.match(r"OS\b|operating system", prose.headings[-1], re.I)
            and _OS_WORD.search(prose.text)
            and not prose.heading
        ):
            return prose.text.strip()[:80]
    for sentence in words:
        match = _OS_WORD.search(EXAMPLE.sub(" ", sentence.text))
        if match:
            return match["os"]
    return ""


def api(issue: Issue, words: Sequence[Sentence]) -> tuple[str, ...]:
    """Names of calls and classes, the title's first."""
    found: dict[str, None] = {}
    for text in [issue.title, *(sentence.text for sentence in words[:80])]:
        for name in [*_ticked(text), *(match[1] for match in _DOTTED.finditer(text[:2000]))]:
            if (
                not _NOT_API.match(name)
                and not re.search(r"(?:Error|Exception|Warning)$", name)
                and len(found) < 20
            ):
                found[name] = None
        if text is issue.title:
            for match in re.finditer(
                r"\b([A-Z][a-z0-9]+(?:[A-Z][A-Za-z0-9]*)+|[a-z]+(?:_[a-z0-9]+)+)\b", text
            ):
                if (
                    not any(match[1] in name for name in found)
                    and not re.search(r"(?:Error|Exception|Warning)$", match[1])
                    and not _NOT_API.match(match[1])
                ):
                    found[match[1]] = None
    return tuple(found)


def _ticked(text: str) -> Iterator[str]:
    for match in _CODE_WORD.finditer(text):
        name = re.split(r"[(\[=\s]", match[1].strip().lstrip("@"), maxsplit=1)[0].strip(".`")
        if _NAME.match(name) and len(name) > 2 and not re.match(r"^\d", name):
            yield name


def missing(document: ReportDocument) -> tuple[Missing, ...]:
    """Links and attachments in the visible text."""
    found: dict[tuple[str, str], Missing] = {}
    for number, line in ((prose.number, prose.text) for prose in document.prose):
        if len(line) > 20_000 or not (
            "http" in line or "data" in line or "<img" in line or "](" in line
        ):
            continue
        taken: list[tuple[int, int]] = []
        for what, pattern in _LINKS:
            for match in pattern.finditer(line):
                if any(
                    start <= match.start() < end or start <= match.end() - 1 < end
                    for start, end in taken
                ):
                    continue
                taken.append(match.span())
                if len(found) < 40:
                    found.setdefault(
                        (what, match[0]),
                        Missing(what=what, quote=Quote(text=match[0][:500], line=number)),
                    )
    return tuple(found.values())
