"""Every version that a report names, with its words; those said to work are kept apart."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from bot.models.bug import Fence, FenceKind, Quote, Traceback, VersionClaim
from bot.models.issue import Issue
from bot.rules.intake import dumps, names
from bot.rules.intake.document import Document
from bot.rules.intake.polarity import polarity
from bot.rules.intake.sentences import Sentence

_BARE = re.compile(rf"(?<![\w.=/#:-])v?(?P<version>{dumps.VERSION})(?![\w/%-])")
_MOVING = re.compile(r"\b(?P<version>master|main|nightly|latest|HEAD|trunk)(?: branch| version| release| commit)?\b", re.I)
_ON_MOVING = re.compile(
    r"\b(?:on|from|in|with|using|at)\s+(?:the\s+)?(?:current\s+|latest\s+)?[`'\"]?(?P<version>master|main|nightly"
    r"|HEAD)[`'\"]?\b(?! (?:issue|problem|thread|process|loop|idea|goal|menu))",
    re.I,
)
_SITE_PYTHON = re.compile(r"[/\\](?:python|Python)(?P<a>3)\.?(?P<b>\d{1,2})[/\\]")
_LABEL = re.compile(rf"^(?:ver(?:sion)?s?|v|affects?)[\s:/-]*v?(?P<version>{dumps.VERSION})$", re.I)
_EXACT = re.compile(
    rf"^\s*[-*]?\s*(?:\[[xX]\]\s*)?[`\"'*]*(?:v|version)?\s?(?P<version>{dumps.VERSION})\s*(?:\(.*\))?[`\"'*.]*$", re.I
)
_RANGED = re.compile(r"(?:>=?|\u2265|<=?|\u2264|~=|!=)\s*v?$|\b(?:at least|requires?|needs?|minimum)\s+\S{0,30}\s*$", re.I)
_BUILT = re.compile(r"\bto build\s*$", re.I)
_BEFORE_NOISE = re.compile(
    r"(?:cuda|cudnn|ubuntu|debian|centos|windows|macos|os x|rocm|driver|glibc|gcc|llama|gpt|qwen|http|ipv4|arxiv|section"
    r"|figure|table|fedora|nvidia|mistral|gemma|yolov?|phi|resnet|opset|rhel|android|ios)[\s:=v/-]*$",
    re.I,
)


@dataclass(frozen=True, slots=True)
class Found:
    """Claims about what is in use or fails, and about what works."""

    versions: tuple[VersionClaim, ...]
    works_in: tuple[VersionClaim, ...]


@lru_cache(maxsize=64)
def _named(extra: str) -> re.Pattern[str]:
    return re.compile(
        rf"(?<![\w./@-])(?P<name>{names.in_prose(extra)})[`*\"']{{0,3}},?\s{{0,3}}(?:\(\s?)?(?:(?:versions?|ver\.?"
        r"|release)\b\s?)?(?:is\s|was\s|at\s)?"
        rf"[`*\"']{{0,3}}(?:===?|[:=@|-])?\s?[`*\"']{{0,3}}v?(?P<version>{dumps.VERSION})(?![\w%]|/\d)",
        re.I,
    )


def find(
    issue: Issue, document: Document, words: Sequence[Sentence], fences: Sequence[Fence], tracebacks: Sequence[Traceback]
) -> Found:
    """All claims, what machines printed first, then what people typed, then labels."""
    package = names.of_repository(issue.repository)
    used: list[VersionClaim] = [*_from_fences(fences), *_from_prose_dumps(document)]
    used.sort(key=lambda claim: claim.source == "text")
    used.extend(_from_forms(document, package))
    good: list[VersionClaim] = []
    printed = {claim.version: claim.name for claim in reversed(used) if claim.source == "dump"}
    dumped = {(claim.quote.line, claim.name) for claim in used if claim.source == "dump"}
    for sentence in words:
        for claim, verdict in _from_sentence(sentence, package, printed):
            if verdict == "good":
                good.append(claim)
            elif (claim.quote.line, claim.name) not in dumped:
                used.append(claim)
    used.extend(_from_tracebacks(tracebacks, document))
    used.extend(_from_labels(issue, package))
    return Found(_distinct(used, ()), _distinct(good, ()))


def _distinct(claims: Iterable[VersionClaim], without: Iterable[VersionClaim]) -> tuple[VersionClaim, ...]:
    seen = {(claim.name, claim.version) for claim in without}
    out: list[VersionClaim] = []
    for claim in claims:
        if (claim.name, claim.version) not in seen:
            seen.add((claim.name, claim.version))
            out.append(claim)
    return tuple(out)


def _claim(
    name: str, version: str, source: Literal["dump", "requirements", "traceback", "text", "label"], quote: Quote
) -> VersionClaim:
    return VersionClaim(name=name, version=version.rstrip("."), source=source, quote=quote)


def _from_fences(fences: Sequence[Fence]) -> Iterator[VersionClaim]:
    order = {FenceKind.ENVIRONMENT: 0, FenceKind.OUTPUT: 1, FenceKind.LOG: 1, FenceKind.SHELL: 1, FenceKind.REQUIREMENTS: 2}
    for fence in sorted(fences, key=lambda fence: order.get(fence.kind, 3)):
        if fence.kind in {FenceKind.ENVIRONMENT, FenceKind.REQUIREMENTS, FenceKind.OUTPUT, FenceKind.LOG, FenceKind.SHELL}:
            inside = fence.kind in {FenceKind.ENVIRONMENT, FenceKind.REQUIREMENTS}
            lines = enumerate(fence.raw.split("\n"), fence.line)
            for name, version, number, text in dumps.claims(lines, inside=inside):
                if not inside and version.count(".") < 2 and "version" not in text.lower():
                    continue
                source: Literal["requirements", "dump"] = "requirements" if fence.kind is FenceKind.REQUIREMENTS else "dump"
                yield _claim(name, version, source, Quote(text=text[:300], line=number))
        for requirement in fence.installs:
            match = re.match(rf"(?P<name>[\w.-]+)(?:\[[^\]]*\])?\s*===?\s*(?P<version>{dumps.VERSION})$", requirement)
            if match:
                yield _claim(
                    names.distribution(match["name"]),
                    match["version"],
                    "requirements",
                    Quote(text=requirement, line=fence.line),
                )


def _from_prose_dumps(document: Document) -> Iterator[VersionClaim]:
    lines = ((line.number, line.text) for line in document.prose if not line.heading)
    for name, version, number, text in dumps.claims(lines, inside=False):
        written: Literal["text", "dump"] = (
            "text" if version.lower().endswith(("x", "*")) else "dump"
        )  # no machine prints a wildcard
        yield _claim(name, version, written, Quote(text=text[:300], line=number))


def _from_forms(document: Document, package: str) -> Iterator[VersionClaim]:
    """Fields of issue forms: a heading that asks for a version and the few words under it."""
    for line in document.prose:
        if line.heading or not line.headings or not line.text.strip() or len(line.text) > 80:
            continue
        heading = line.headings[-1]
        if not re.search(r"\bversions?\b", heading, re.I) or len(heading) > 80:
            continue
        name = _heading_name(heading) or package
        quote = Quote(text=line.text.strip(), line=line.number)
        for part in re.split(r"[,;]\s+", line.text):
            exact = _EXACT.match(part)
            moving = None if exact else re.fullmatch(r"[-*\s]*" + _MOVING.pattern + r"\W*", part.strip(), re.I)
            match = exact or moving
            if match and name:
                yield _claim(name, match["version"], "text", quote)


def _heading_name(heading: str) -> str:
    plain = re.sub(r"\b(?:versions?|your|the|which|what|of|installed|info(?:rmation)?)\b|[?:]", " ", heading, flags=re.I)
    words = plain.split()
    for size in (2, 1):
        for at in range(len(words) - size + 1):
            if names.known(" ".join(words[at : at + size])):
                return names.distribution(" ".join(words[at : at + size]))
    return ""


def _from_sentence(sentence: Sentence, package: str, printed: dict[str, str]) -> Iterator[tuple[VersionClaim, str]]:
    text = dumps.EXAMPLE.sub(" ", sentence.text)
    if not any(character.isdigit() for character in text) and not _ON_MOVING.search(text):
        return
    spent: list[tuple[int, int]] = []
    for match in _named(package).finditer(text):
        spent.append(match.span())
        if _BUILT.search(text[max(0, match.start() - 20) : match.start()]):
            continue
        name = names.distribution(match["name"])
        if _RANGED.search(text[max(0, match.start("version") - 40) : match.start("version")]) or text[
            match.end() : match.end() + 1
        ] in {"'", "\u2019"}:
            continue
        yield _claim(name, match["version"], "text", sentence.quote), polarity(text, match.start(), match.end())
    for match in _BARE.finditer(text):
        if any(start <= match.start() < end for start, end in spent) or _BEFORE_NOISE.search(
            text[max(0, match.start() - 20) : match.start()]
        ):
            continue
        verdict = polarity(text, match.start(), match.end())
        nearest = printed.get(match["version"]) or _nearest_name(text, match.start(), package) or package
        neutral = _PLAINLY.search(text[max(0, match.start() - 40) : match.start()])
        if nearest and ((verdict and _versionlike(text, match)) or neutral):
            yield _claim(nearest, match["version"], "text", sentence.quote), verdict
    moving = _ON_MOVING.search(text)
    if moving and package:
        verdict = polarity(text, moving.start(), moving.end())
        yield _claim(package, moving["version"].lower(), "text", sentence.quote), verdict


_BEFORE_VERSION = re.compile(
    r"\b(?:versions?|releases?|up to|since|in|on|to|from|until|before|after|downgrad\w+|upgrad\w+|and)\s+[`\"']*$", re.I
)
_PLAINLY = re.compile(
    r"(?:^|[.,;(]\s*|\b(?:pip|package|library|lib|in|on|using|with|for|the|current|latest|installed|my)\s+)versions?\s*[=(]?\s*[`\"']*$",
    re.I,
)
_OF_VERSIONS = re.compile(r"\bversion|\brelease|up to|since|downgrad|upgrad|works? (?:in|on|with)|worked (?:in|on|with)", re.I)


def _versionlike(text: str, match: re.Match[str]) -> bool:
    """A bare number is a version when it has three parts, a wildcard or a v, or follows words that only versions follow."""
    version = match["version"]
    if version.count(".") >= 3 and "dev" not in version:
        return False
    if version.count(".") >= 2 or version.endswith(("x", "*", "X")) or match[0].startswith("v"):
        return True
    before = text[max(0, match.start() - 40) : match.start()]
    return bool(_BEFORE_VERSION.search(before) and _OF_VERSIONS.search(before))


def _nearest_name(text: str, start: int, package: str) -> str:
    pattern = re.compile(rf"(?<![\w./-])(?:{names.in_prose(package)})(?![\w-])", re.I)
    found = [match[0] for match in pattern.finditer(text[max(0, start - 200) : start])]
    return names.distribution(found[-1]) if found else ""


def _from_tracebacks(tracebacks: Sequence[Traceback], document: Document) -> Iterator[VersionClaim]:
    for traceback in tracebacks:
        for frame in traceback.frames:
            match = _SITE_PYTHON.search(frame.path)
            if match:
                line = next(
                    (n for n in range(max(1, traceback.line), len(document.lines) + 1) if frame.path in document.lines[n - 1]),
                    0,
                )
                if line:
                    quote = Quote(text=document.lines[line - 1].strip()[:300], line=line)
                    yield _claim("python", f"{match['a']}.{match['b']}", "traceback", quote)
                    break


def _from_labels(issue: Issue, package: str) -> Iterator[VersionClaim]:
    for label in issue.labels:
        match = _LABEL.match(label.strip())
        if match and package:
            yield _claim(package, match["version"], "label", Quote(text=label, source="label"))
