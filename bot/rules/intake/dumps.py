"""Environment dumps: `collect_env`, `pip list`, conda, tables, `key: version` lines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from bot.rules.intake.installs import valid
from bot.rules.intake.names import distribution, known, normal

VERSION = (
    r"\d{1,4}(?:\.(?:\d{1,8}|[xX*](?![A-Za-z])))+(?:[-._]?(?:alpha|beta|a|b|c|rc|pre|post|dev)[-.]?\d{0,9})*(?:\+[\w.]{1,40})?"
)
_PINNED = re.compile(
    r"^\s*(?:\[(?:pip3?|conda)\]\s+|[-*]\s+"
    rf"|\d+\.\s+)?[`\"']?(?P<name>[A-Za-z][\w.-]{{0,60}})(?:\[[\w,-]*\])?\s?={{2,3}}\s?(?P<version>{VERSION}|\d{{1,4}})"
)
_CONDA = re.compile(rf"^\s*(?:\[conda\]\s+)(?P<name>[A-Za-z][\w.-]{{0,60}})\s+(?P<version>{VERSION})\s")
_KEYED = re.compile(
    r"^[\s>#|*•\u2600-\u27bf\U0001f000-\U0001ffff-]{0,30}[`*_\"']{0,3}(?P<key>[A-Za-z][\w "
    r".\-/]{0,40}?)[`*_\"']{0,3}(?:\s+version)?(?:\s?\([^()\n]{1,140}\))?"
    r"[`*_\"']{0,3}\s*(?:[:=|]{1,2}[`*_\"']{0,3}|\s-\s)\s*[`*_\"'<>=v~]{0,4}\s*(?P<rest>\S.{0,80})",
    re.I,
)
EXAMPLE = re.compile(r"[\[(][^\])\n]{0,60}\be\.g\b[^\])\n]{0,120}[\])]", re.I)  # what a form offers as an example is no claim
_DESCRIBED = re.compile(r"^v?\d[\w.]*(?:-\w+){0,4}-g[0-9a-f]{7,40}\s+")
_AT = re.compile(rf"^v?(?P<version>{VERSION})(?![\w/])")
_PYTHON_AND = re.compile(
    r"^[\s*-]{0,8}Python (?:&|and|/) (?P<name>PyTorch|TensorFlow|JAX)(?: versions?)?"
    rf"\s*:\s*(?P<python>3\.[\d.]+)[ ,;/&]+(?P<version>{VERSION})",
    re.I,
)
_COLUMNS = re.compile(rf"^\s{{0,4}}(?P<name>[A-Za-z][\w.-]{{0,60}})\s+(?P<version>{VERSION}|\d{{4}}\.\d+)(?:\s.*)?$")
_PIP_SHOW = re.compile(r"^\s*Name: (?P<name>[A-Za-z][\w.-]{0,60})\s*$")
_PIP_VERSION = re.compile(rf"^\s*Version: (?P<version>{VERSION})\s*$")
_TABLE_HEAD = re.compile(r"^\s*#?\s*(?:package|name)\s+version\b", re.I)
_SECTION = re.compile(
    r"^\s*[*#-]?\s*(?P<name>packages|lightning|versions? of relevant libraries|dependencies|libraries"
    r"|relevant libraries)\s*:\s*$",
    re.I,
)
_OTHER_SECTION = re.compile(r"^\s{0,3}[*#]\s*[A-Z]\w*:\s*$")
_BANNER = re.compile(r"^\s*(?:Python (?P<python>3\.\d+(?:\.\d+)?)(?: \(| \||$)|.{0,40}\bPython (?P<other>3\.\d+\.\d+) \()")
_NOT_PACKAGES_WORDS = """
version release python-platform os cuda cudnn gcc clang cmake libc glibc driver nvidia-driver kernel platform
processor architecture machine conda
"""
_NOT_PACKAGES = frozenset(_NOT_PACKAGES_WORDS.split())


def claims(lines: Iterable[tuple[int, str]], *, inside: bool) -> Iterator[tuple[str, str, int, str]]:
    """Distribution, version, line number and line of each version. `inside` a dump any name counts, else only known ones."""
    listing = False
    named = ""
    for number, line in lines:
        if len(line) > 600 or not line.strip():
            continue
        line = EXAMPLE.sub(" ", line) if "e.g" in line else line
        line = line if line[:5].strip() else "    " + line.lstrip()
        if _TABLE_HEAD.match(line) or _SECTION.match(line):
            listing = True
        elif _OTHER_SECTION.match(line):
            listing = False
        show, version = _PIP_SHOW.match(line), _PIP_VERSION.match(line)
        if show:
            named = show["name"]
            continue
        if version and named:
            yield distribution(named), version["version"], number, line.strip()
            continue
        pair = _PYTHON_AND.match(line)
        if pair:
            yield "python", pair["python"], number, line.strip()
            yield distribution(pair["name"]), pair["version"], number, line.strip()
            continue
        found = _claim(line, inside=inside, listing=listing)
        if found:
            yield *found, number, line.strip()


def _claim(line: str, *, inside: bool, listing: bool) -> tuple[str, str] | None:
    match = _PINNED.match(line) or _CONDA.match(line)
    if match and ("[" in line[:8] or inside or listing or known(match["name"])):
        return distribution(match["name"]), match["version"]
    banner = _BANNER.match(line)
    if banner:
        return "python", banner["python"] or banner["other"]
    keyed = _KEYED.match(line)
    version = _AT.match(_DESCRIBED.sub("", keyed["rest"])) if keyed else None
    if keyed and version:
        name = re.sub(r"\bversion$", "", keyed["key"].strip(), flags=re.I).strip()
        if known(name) or (listing and normal(name) not in _NOT_PACKAGES and " " not in name):
            return distribution(name), version["version"]
        return None
    columns = _COLUMNS.match(line) if inside or listing else None
    if columns and (listing or known(columns["name"])) and normal(columns["name"]) not in _NOT_PACKAGES:
        return distribution(columns["name"]), columns["version"]
    return None


_MARKS = re.compile(
    r"^(?:Collecting environment information|PyTorch version:|Is debug build:|CUDA used to build|OS: |\[pip3?\] "
    r"|\[conda\] |Python platform:|- Platform: |Libc version|GPU models and|\* CUDA:"
    r"|\* (?:Packages|System|Lightning):|#\s*(?:packages in environment|Name\s+Version)|Package\s+Version"
    r"|.{0,4}`?\w+`? version(?: \([^)]*\))?:|TensorFlow version|#- \w+)",
    re.I | re.M,
)


def is_dump(text: str) -> bool:
    """Whether a text lists an environment."""
    lines = [line for line in text.split("\n") if line.strip()][:400]
    if not lines:
        return False
    marks = len(_MARKS.findall("\n".join(lines)))
    found = list(claims(enumerate(lines), inside=True))
    if marks >= 4 or (marks >= 1 and found):
        return True
    names = [name for name, *_ in found]
    printed = any(version.count(".") >= 2 or name == "python" or "version" in line.lower() for name, version, _, line in found)
    listed = len(found) >= 2 and len(found) >= 0.35 * len(lines) and len(set(names)) == len(names)
    return listed and printed and not _only_pins(lines)


def _only_pins(lines: list[str]) -> bool:
    return all(re.match(r"^\s*(?:[A-Za-z][\w.\[\],-]*\s*(?:[=<>!~]=?=?.*)?|-\w .*|--.*|#.*)$", line) for line in lines)


def is_requirements(text: str, tag: str) -> bool:
    """Whether a text is a requirements file: every line a requirement, most of them with a version."""
    lines = [line.split("#")[0].strip() for line in text.split("\n")[:600]]
    lines = [line for line in lines if line and not line.startswith("-")]
    pinned = [line for line in lines if re.search(r"[=<>~!]=|[<>@]", line) and valid(line.split(" --hash")[0].replace(" ", ""))]
    return (
        bool(lines)
        and len(pinned) >= max(1, 0.7 * len(lines))
        and (len(lines) > 1 or tag in {"", "text", "txt", "requirements", "pip"})
    )
