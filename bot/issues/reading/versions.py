"""Every version that a report names, with its quote; working versions are kept apart."""

import ast
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain, islice, pairwise
from operator import attrgetter
from typing import Literal, NamedTuple

from bot.environment import package_names
from bot.environment.package_names import distribution, is_known, is_word, normal
from bot.issues.reading.code import valid
from bot.issues.reading.markdown import ProseLine, ReportDocument, Sentence, polarity
from bot.kernel.bug import Fence, FenceKind, Issue, Quote, Traceback, VersionClaim
from bot.kernel.plain_text import distinct
from bot.kernel.source.syntax import module_of

# Environment dumps: `collect_env`, `pip list`, conda, tables, `key: version` lines.

VERSION = r"\d{1,4}(?:\.(?:\d{1,8}|[xX*](?![A-Za-z])))+(?:[-._]?(?:alpha|beta|a|b|c|rc|pre|post|dev)(?:[-.]?\d{1,9})?)*(?:\+[\w.]{1,40})?"
_PINNED_LINE = re.compile(
    r"^\s*(?:\[(?:pip3?|conda)\]\s+|[-*]\s+"
    rf"|\d+\.\s+)?[`\"']?(?P<name>[A-Za-z][\w.-]{{0,60}})(?:\[[\w,-]*\])?\s?={{2,3}}\s?(?P<version>{VERSION}|\d{{1,4}})"
)
_CONDA = re.compile(
    rf"^\s*(?:\[conda\]\s+)(?P<name>[A-Za-z][\w.-]{{0,60}})\s+(?P<version>{VERSION})\s"
)
_KEYED = re.compile(
    r"^[\s>#|*•\u2600-\u27bf\U0001f000-\U0001ffff-]{0,30}[`*_\"']{0,3}(?P<key>[A-Za-z][\w "
    r".\-/]{0,40}?)[`*_\"']{0,3}(?:\s+version)?(?:\s?\([^()\n]{1,140}\))?"
    r"[`*_\"']{0,3}\s*(?:[:=|]{1,2}[`*_\"']{0,3}|\s-\s)\s*[`*_\"'<>=v~]{0,4}\s*(?P<rest>\S.{0,80})",
    re.I,
)
_SAYS_VERSION = re.compile(r"[^:=|]{1,60}\bversion[`*_\"']{0,3}\s*[:=]", re.I)
EXAMPLE = re.compile(
    r"[\[(][^\])\n]{0,60}\be\.g\b[^\])\n]{0,120}[\])]", re.I
)  # what a form offers as an example is no claim
_GIT_DESCRIBE = re.compile(r"^v?\d[\w.]*(?:-\w+){0,4}-g[0-9a-f]{7,40}\s+")
AMOUNT = re.compile(
    r"\s?(?:x|\u00d7|times(?! out)|m?s|secs?|(?:milli|micro)?seconds?|min|minutes?|hours?|[KMGT]i?B|percent|fps|[mb]illion|thousand)\b",
    re.I,
)
"""What makes the number before it an amount."""
_AT = re.compile(rf"^v?(?P<version>{VERSION})(?![\w/]|{AMOUNT.pattern})", re.I)
_PYTHON_AND = re.compile(
    r"^[\s*-]{0,8}Python (?:&|and|/) (?P<name>PyTorch|TensorFlow|JAX)(?: versions?)?"
    rf"\s*:\s*(?P<python>3\.[\d.]+)[ ,;/&]+(?P<version>{VERSION})",
    re.I,
)
_COLUMNS = re.compile(
    rf"^\s{{0,4}}(?P<name>[A-Za-z][\w.-]{{0,60}})\s+(?P<version>{VERSION}|\d{{4}}\.\d+)(?:\s.*)?$"
)
_DOTS = re.compile(r"(?: (?:version|info))? \.{3,} (?=\d)")  # as `ds_report` prints it
_PIP_SHOW = re.compile(r"^\s*Name: (?P<name>[A-Za-z][\w.-]{0,60})\s*$")
_PIP_VERSION = re.compile(rf"^\s*Version: (?P<version>{VERSION})\s*$")
_TABLE_HEAD = re.compile(r"^\s*#?\s*(?:package|name)\s+version\b", re.I)
_SECTION = re.compile(
    r"^\s*[*#-]?\s*(?P<name>packages|lightning|versions? of relevant "
    r"libraries|dependencies|libraries"
    r"|relevant libraries)\s*:\s*$",
    re.I,
)
_OTHER_SECTION = re.compile(r"^\s{0,3}[*#]\s*[A-Z]\w*:\s*$")
_BANNER = re.compile(
    r"^\s*(?:Python (?P<python>3\.\d+(?:\.\d+)?)(?: \(| \||$)|.{0,40}\bPython "
    r"(?P<other>3\.\d+\.\d+) \()"
)
# What `sys.version` and `sys.version_info` print, anywhere in a line.
_OWN_VERSION = re.compile(
    r"(?<![\w.])(?P<printed>3\.\d{1,2}\.\d{1,2})\S{0,8} (?:\|[^|\n]{1,60}\| ?)?\((?:main|default|tags|heads|remotes|bpo|v?3\.)[^()\n]{0,120}\)"
    r"|sys\.version_info\(major=(?P<major>3), minor=(?P<minor>\d{1,2})(?:, micro=(?P<micro>\d{1,2}))?"
)
_STARTED_PYTHON = re.compile(r"(?:^|[\s/])python(?P<version>3\.\d{1,2})(?=\s)", re.M)
_NOT_PACKAGES_WORDS = """
version release python-platform os cuda cudnn gcc clang cmake libc glibc driver nvidia-driver kernel platform
processor architecture machine conda
"""
_NOT_PACKAGES = frozenset(_NOT_PACKAGES_WORDS.split())
_MARKS = re.compile(
    r"^(?:Collecting environment information|PyTorch version:|Is debug build:|CUDA used to "
    r"build|OS: |\[pip3?\] "
    r"|\[conda\] |Python platform:|- Platform: |Libc version|GPU models and|\* CUDA:"
    r"|\* (?:Packages|System|Lightning):|#\s*(?:packages in "
    r"environment|Name\s+Version)|Package\s+Version"
    r"|.{0,4}`?\w+`? version(?: \([^)]*\))?:|TensorFlow version|#- \w+)",
    re.I | re.M,
)
_PIN = re.compile(r"^\s*(?:[A-Za-z][\w.\[\],-]*\s*(?:[=<>!~]=?=?.*)?|-\w .*|--.*|#.*)$")


def claims(
    lines: Iterable[tuple[int, str]],
    *,
    inside: bool,
    package_names: frozenset[str] = frozenset(),
    words: frozenset[str] = frozenset(),
) -> Iterator[tuple[str, str, int, str]]:
    """Distribution, version, line number and line of each version in a list.

    `inside` a dump any name counts, elsewhere only known ones and those that a program has `used`:
    of its `words`, which mean something else too, only with a version of three numbers.
    """
    listing, package = False, ""
    for number, line in lines:
        if len(line) > 600 or not line.strip():
            continue
        line = EXAMPLE.sub(" ", line) if "e.g" in line else line
        line = _DOTS.sub(": ", line)
        line = line if line[:5].strip() else "    " + line.lstrip()
        if (own := own_python(line)) and not _BANNER.match(line) and not _KEYED.match(line):
            yield "python", own, number, line.strip()
            continue
        starts = _TABLE_HEAD.match(line) or _SECTION.match(line)
        listing = bool(starts) or (listing and not _OTHER_SECTION.match(line))
        if show := _PIP_SHOW.match(line):
            package = show["name"]
        elif package and (version_line := _PIP_VERSION.match(line)):
            yield distribution(package), version_line["version"], number, line.strip()
        else:
            for name, version in _claims(
                line, inside=inside, listing=listing, package_names=package_names, words=words
            ):
                yield name, version, number, line.strip()


def own_python(line: str) -> str:
    """The version that a line shows as Python itself prints it, or ""."""
    match = _OWN_VERSION.search(line) if "3" in line and "(" in line else None
    if match is None or match["printed"]:
        return match["printed"] if match else ""
    return ".".join(filter(None, (match["major"], match["minor"], match["micro"])))


def _claims(
    line: str, *, inside: bool, listing: bool, package_names: frozenset[str], words: frozenset[str]
) -> list[tuple[str, str]]:
    if pair := _PYTHON_AND.match(line):
        return [("python", pair["python"]), (distribution(pair["name"]), pair["version"])]
    match = _PINNED_LINE.match(line) or _CONDA.match(line)
    if match and ("[" in line[:8] or inside or listing or is_known(match["name"])):
        return [(distribution(match["name"]), match["version"])]
    if banner := _BANNER.match(line):
        return [("python", banner["python"] or banner["other"])]
    keyed = _KEYED.match(line)
    if keyed and (match := _AT.match(_GIT_DESCRIBE.sub("", keyed["rest"]))):
        name = re.sub(r"\bversion$", "", keyed["key"].strip(), flags=re.I).strip()
        plain = normal(name) in words and match["version"].count(".") < 2
        counts = is_known(name) or (normal(name) in package_names and not plain)
        is_one_name = re.search(r"[ /]", name) is None and _is_dumped_package(name)
        says_so = _SAYS_VERSION.match(line) and not is_word(name) and "." in match["version"]
        counts = counts or (is_one_name and (listing or bool(says_so)))
        return [(distribution(name), match["version"])] if counts else []
    match = _COLUMNS.match(line) if inside or listing else None
    if match is None:
        return []
    name, version = match["name"], match["version"]
    plain = normal(name) in words and version.count(".") < 2
    counts = listing or is_known(name) or (normal(name) in package_names and not plain)
    return [(distribution(name), version)] if counts and _is_dumped_package(name) else []


def _is_dumped_package(name: str) -> bool:
    return normal(name) not in _NOT_PACKAGES


def is_dump(text: str) -> bool:
    """Whether a text lists an environment."""
    lines = [line for line in text.split("\n") if line.strip()][:400]
    marks = len(_MARKS.findall("\n".join(lines)))
    claim_list = list(claims(enumerate(lines), inside=True))
    if marks >= 4 or (marks >= 1 and claim_list):
        return True
    names = {name for name, *_ in claim_list}
    has_versions = any(
        version.count(".") >= 2 or name == "python" or "version" in line.lower()
        for name, version, _, line in claim_list
    )
    is_listing = len(claim_list) >= max(2, 0.35 * len(lines)) and len(names) == len(claim_list)
    return is_listing and has_versions and not all(map(_PIN.match, lines))


_VERSION_OF_MODULE = re.compile(r"(?<![\w.])(?P<name>[A-Za-z_]\w*)(?:\.\w+)?\.__version__")
_ALIAS = re.compile(r"\bimport (?P<module>\w+)(?:\.\w+)* as (?P<name>\w+)")
_VERSION_CODE = re.compile(r"(?:>>> ?|In \[\d+\]: ?)?(?:(?:import|from)\s|.*__version__)")
_VERSION_NAMES = frozenset({"__version__", "version", "version_info", "show_versions", "platform"})


def prints_versions(text: str) -> bool:
    """Whether a program does nothing but show the versions that are installed."""
    body = module_of(text).body
    shows = [node for node in body if not isinstance(node, ast.Import | ast.ImportFrom)]
    return bool(shows) and all(isinstance(node, ast.Expr) and _shows(node.value) for node in shows)


def _shows(node: ast.expr) -> bool:
    """Whether an expression is a version, or prints nothing else."""
    match node:
        case ast.Attribute(attr=name) | ast.Call(func=ast.Attribute(attr=name)):
            return name in _VERSION_NAMES
        case ast.JoinedStr(values=parts) | ast.Call(func=ast.Name(id="print" | "repr"), args=parts):
            return any(map(_shows, parts)) and all(
                isinstance(part, ast.Constant) or _shows(part) for part in parts
            )
        case ast.FormattedValue(value=value):
            return _shows(value)
    return False


def printed(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[str, str, int, str]]:
    """The versions that a pasted program of that kind has printed below its code, in the order in
    which it asks for them: distribution, version, line number and line.
    """
    code: list[str] = []
    versions: list[tuple[str, int, str]] = []
    for number, line in lines:
        own = _OWN_VERSION.search(line)
        text = line[: own.start()] if own else line.strip(" '\"")
        if _VERSION_CODE.match(line.strip()):
            code.append(line)
        elif _EXACTS.fullmatch(text):
            versions += [(match["version"], number, line.strip()) for match in _BARE.finditer(text)]
    whole = "\n".join(code)
    modules = {match["name"]: match["module"] for match in _ALIAS.finditer(whole)}
    names = [match["name"] for match in _VERSION_OF_MODULE.finditer(whole)]
    for name, row in zip(names, versions, strict=False) if len(names) == len(versions) else ():
        yield distribution(modules.get(name, name)), *row


def is_requirements(text: str, tag: str) -> bool:
    """Whether a text is a requirements file: most of its lines are pinned requirements."""
    lines = [line.split("#")[0].strip() for line in text.split("\n")[:600]]
    lines = [line for line in lines if line and not line.startswith("-")]
    pin_count = sum(
        bool(re.search(r"[=<>~!]=|[<>@]", line) and valid(re.sub(r" --hash.*| ", "", line)))
        for line in lines
    )
    plain = len(lines) > 1 or tag in {"", "text", "txt", "requirements", "pip"}
    return plain and pin_count >= max(1, 0.7 * len(lines))


# Versions in running text that stand beside the name of their package: a well-known name, or one
# that the report itself shows to be a package's.

_MOST_NAMES = 60
_PLAIN = re.compile(r"[a-z][a-z0-9-]{1,59}")
_INSTALLED_NAME = re.compile(r"[A-Za-z][\w.-]*(?=$|[\[<>=!~;\s])")
_MARK = "[`*\"']{0,3}"
_WORD = (
    r"(?:(?:versi(?:ons?|\u00f3n|one)|vers\u00e3o|ver\.?|releases?)\b|\u0432\u0435\u0440\u0441\u0438\w{1,2}"
    r"|\u7248\u672c?|\u30d0\u30fc\u30b8\u30e7\u30f3|\ubc84\uc804)"
)
_VERSION_MARK = re.compile(rf"{_WORD}|v$|__version__", re.I)
_VERSION = rf"v?(?P<version>{VERSION})(?![A-Za-z0-9_%]|/\d)"
_OTHER = re.compile(
    r"(?<![\w./@)\]-])(?P<tick>`?)(?P<name>[A-Za-z][\w-]{2,60})(?:\[[\w,-]{1,60}\])?"
    rf"(?P<sign>==|`?\s\(?(?P<word>{_WORD}\s)?){_VERSION}",
    re.I,
)
_INTRODUCTION = re.compile(
    r"(?:\b(?:with|using|under|on|mit|avec|con|com)|(?<!\w)\u0441|(?P<installed>\b(?:install\w*"
    r"|packages?|library|(?:up|down)grad\w+ to|pinn\w+ to)))\s+[`*\"']*$",
    re.I,
)
_BESIDE = re.compile(r"[`*\"']*(?:\s|-|@|===?)[`*\"']*")
_DECIMAL = re.compile(r"\d\.0\d+|\d+\.\d{4,}")
_RANGED = re.compile(
    r"(?:>=?|\u2265|<=?|\u2264|~=|!=)\s*v?$|\b(?:at least|requires?|needs?|minimum)\s+\S{0,30}\s*$"
    r"|\b(?:introduced|added|available|supported|new)\s+(?:only\s+)?(?:in|since|from|with)\s+\S{0,30}\s*$",
    re.I,
)
_VERSION_OF = re.compile(r"\d\S*\s+of\s", re.I)
_OWNS = re.compile(r"['\u2019]\w")
_BUILD_ONLY = re.compile(r"\bto build\s*$", re.I)


class NamedVersion(NamedTuple):
    """A package and its version, with where both stand in a text. Not `exact`: a range, or a
    number that says something else.
    """

    name: str
    version: str
    start: int
    end: int
    exact: bool = True


@dataclass(frozen=True)
class Packages:
    """What a report may mean by the name of a package: the repository's (`own`, "" without one)
    and the `others` that its programs import, it installs or its tracebacks run through.
    `words` are those of them that mean something else too. `patterns` match all these names, and
    the ones that many people know.
    """

    own: str
    others: frozenset[str]
    words: frozenset[str]
    patterns: tuple[str, ...]
    programs: tuple[ast.Module, ...]

    def nearest(self, text: str) -> str:
        """The distribution of the last name in a text, "" without one."""
        matches = [match for pattern in self.patterns for match in _name(pattern).finditer(text)]
        last = max(matches, key=lambda match: match.end(), default=None)
        return package_names.distribution(last[0]) if last is not None else ""

    @property
    def listed(self) -> frozenset[str]:
        """The names that count where an environment is listed."""
        return self.others | {self.own} - {""}

    @cached_property
    def variables(self) -> frozenset[str]:
        """The names that the programs give a meaning of their own."""
        nodes = chain.from_iterable(map(ast.walk, self.programs))
        return frozenset(package_names.normal(name) for node in nodes if (name := _variable(node)))


def of_report(own: str, fences: Sequence[Fence], tracebacks: Sequence[Traceback]) -> Packages:
    """The packages of a report."""
    trees = tuple(module_of(fence.text) for fence in fences if fence.kind is FenceKind.PROGRAM)
    modules = (
        name for tree in trees for node in ast.walk(tree) for name in _imported_modules(node)
    )
    frames = (frame.package for row in tracebacks for frame in row.frames)
    tops = (module.partition(".")[0] for module in chain(modules, frames))
    outside = (name for name in tops if name not in sys.stdlib_module_names)
    installs = chain.from_iterable(fence.installs for fence in fences)
    names_installed = (match[0] for match in map(_INSTALLED_NAME.match, installs) if match)
    others = dict.fromkeys(
        filter(_is_lesser_known, map(package_names.normal, chain(outside, names_installed)))
    )
    names_to_match = tuple(others)[:_MOST_NAMES]
    patterns = (
        package_names.in_prose(own),
        *((package_names.one_of(names_to_match),) if names_to_match else ()),
    )
    words = frozenset(filter(package_names.is_word, names_to_match)) - {own}
    return Packages(own, frozenset(names_to_match), words, patterns, trees)


def _is_lesser_known(name: str) -> bool:
    return bool(_PLAIN.fullmatch(name)) and not package_names.in_any_prose(name)


def _imported_modules(node: ast.AST) -> list[str]:
    """The modules that a statement imports, those beside the program left out."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and not node.level:
        return [node.module or ""]
    return []


def _variable(node: ast.AST) -> str:
    match node:
        case ast.Name(id=name) | ast.arg(arg=name) | ast.Attribute(attr=name):
            return name
        case ast.keyword(arg=str(name)) | ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            return name
    return ""


def find_named_versions(text: str, packages: Packages) -> Iterator[NamedVersion]:
    """The versions that stand beside a name."""
    matches = [
        match for pattern in packages.patterns for match in _name_pattern(pattern).finditer(text)
    ]
    matches.sort(key=lambda match: match.start())
    for match in matches:
        yield _row(match, exact=_is_exact(text, match) and not _is_number(match, packages))
    patterns = packages.patterns if _VERSION_OF.search(text) else ()
    behind = (match for pattern in patterns for match in _of_name(pattern).finditer(text))
    others = [match for match in behind if not _meets(match, matches)]
    matches += others
    is_pinned = any("==" in match[0] for match in matches)
    others += [
        match
        for match in _OTHER.finditer(text)
        if not _meets(match, matches)
        and _is_package_name(text, match, packages, is_listed=is_pinned)
    ]
    for match in others:
        yield _row(match, exact=_is_exact(text, match))


def _row(match: re.Match[str], *, exact: bool) -> NamedVersion:
    name = package_names.distribution(match["name"])
    return NamedVersion(name, match["version"], *match.span(), exact=exact)


def _meets(match: re.Match[str], others: Sequence[re.Match[str]]) -> bool:
    return any(match.start() < one.end() and one.start() < match.end() for one in others)


def _is_exact(text: str, match: re.Match[str]) -> bool:
    """Whether a named version is in use: no range, no build tool, no possessive, no amount."""
    version = match.start("version")
    return not (
        _BUILD_ONLY.search(text[max(0, match.start() - 20) : match.start()])
        or _RANGED.search(text[max(0, version - 40) : version])
        or _OWNS.match(text, match.end())
        or AMOUNT.match(text, match.end())
    )


def _is_number(match: re.Match[str], packages: Packages) -> bool:
    """Whether the number behind a lesser known name may be a value of it, such as its loss."""
    name, version = package_names.normal(match["name"]), match["version"]
    between = match.string[match.end("name") : match.start("version")]
    lesser = name in packages.others and package_names.distribution(name) != packages.own
    if not lesser or version.count(".") > 1 or _VERSION_MARK.search(between):
        return False
    plain = _BESIDE.fullmatch(between) and not _DECIMAL.fullmatch(version)
    return name in packages.words or not plain


def _is_package_name(
    text: str, match: re.Match[str], packages: Packages, *, is_listed: bool
) -> bool:
    """Whether a name that nothing else shows to be a package's is one: it is pinned, or it stands
    in backticks, and the number can be no value. `listed`: beside other pins.
    """
    version, is_pinned = match["version"], match["sign"] == "=="
    if version.count(".") == 2:
        is_well_formed = is_pinned or bool(match["tick"])
    elif version.count(".") == 1 and is_pinned:
        before = _INTRODUCTION.search(text[max(0, match.start() - 40) : match.start()])
        value = version.startswith("0.") or "_" in match["name"] or _DECIMAL.fullmatch(version)
        is_well_formed = is_listed or (
            before is not None and (bool(before["installed"]) or not value)
        )
    else:
        is_well_formed = version.count(".") == 1 and bool(match["tick"] and match["word"])
    name = package_names.normal(match["name"])
    return is_well_formed and not package_names.is_word(name) and name not in packages.variables


@lru_cache(maxsize=64)
def _name_pattern(name: str) -> re.Pattern[str]:
    return re.compile(
        rf"(?<![A-Za-z0-9_./@-])(?P<name>{name})(?:\.__version__)?{_MARK},?\s{{0,3}}"
        rf"(?:[(\uff08]\s?)?(?:{_WORD}\s?)?(?:is\s|was\s|at\s)?{_MARK}(?:===?|[:=@|-])?\s?"
        rf"{_MARK}{_VERSION}",
        re.I,
    )


@lru_cache(maxsize=64)
def _of_name(name: str) -> re.Pattern[str]:
    return re.compile(
        rf"(?<![\w.])(?:{_WORD}\s{_MARK}|(?=v\d)){_VERSION}{_MARK}\s+of\s+(?:the\s+)?{_MARK}"
        rf"(?P<name>{name})(?![\w-])",
        re.I,
    )


@lru_cache(maxsize=64)
def _name(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w./-])(?:{name})(?![\w-])", re.I)


_DIGIT = re.compile(r"\d")
_BARE = re.compile(rf"(?<![\w.=/#:-])v?(?P<version>{VERSION})(?![\w/%-])")
_ON_MOVING = re.compile(
    r"\b(?:on|from|in|with|using|at)\s+(?:the\s+)?(?:current\s+|latest\s+)?[`'\"]?(?P<version>master|main|nightly"
    r"|(?-i:HEAD))[`'\"]?\b(?! (?:issue|problem|thread|process|loop|idea|goal|menu))",
    re.I,
)
_SITE_PYTHON = re.compile(r"[/\\](?:python|Python)(?P<a>3)\.?(?P<b>\d{1,2})[/\\]")
_LABEL = re.compile(rf"^(?:ver(?:sion)?s?|v|affects?)[\s:/-]*v?(?P<version>{VERSION})$", re.I)
_EXACT = re.compile(
    rf"^\s*[-*]?\s*(?:\[[xX]\]\s*)?[`\"'*]*(?:v|version)?\s?(?P<version>{VERSION})\s*(?:\(.*\))?[`\"'*.]*$",
    re.I,
)
_EXACTS = re.compile(rf"[\s`*-]*(?:v?{VERSION}(?:[\s,;`]+|\Z)){{1,6}}")
_BEFORE_NOISE = re.compile(
    r"(?:cuda|cudnn|ubuntu|debian|centos|windows|macos|os "
    r"x|rocm|driver|glibc|gcc|llama|gpt|qwen|http|ipv4|arxiv|section"
    r"|figure|table|fedora|nvidia|mistral|gemma|yolov?|phi|resnet|opset|rhel|android|ios)[\s:=v/-]*$",
    re.I,
)
_OWNER = re.compile(r"(?<![\w-])(?P<name>[A-Z][A-Z0-9]{1,20})[`*\"']{0,3} $")  # "RDT 1.21.0"
_BEFORE_VERSION = re.compile(
    r"\b(?:versions?|releases?|up "
    r"to|since|in|on|to|from|until|before|after|downgrad\w+|upgrad\w+|and)\s+[`\"']*$",
    re.I,
)
_PLAINLY = re.compile(
    r"(?:^|[.,;(]\s*|\b(?:pip|package|library|lib|in|on|using|with|for|the|current|latest|installed|my)\s+)versions?(?:\s+(?:is|was))?\s*[=(]?\s*[`\"']*$",
    re.I,
)
_OF_VERSIONS = re.compile(
    r"\bversion|\brelease|up to|since|downgrad|upgrad|works? (?:in|on|with)|worked (?:in|on|with)",
    re.I,
)
_MOVING_FIELD = re.compile(
    r"[-*\s]*\b(?P<version>master|main|nightly|latest|HEAD|trunk)(?: branch| version| release| "
    r"commit)?\b\W*",
    re.I,
)
_REQUIREMENT = re.compile(rf"(?P<name>[\w.-]+)(?:\[[^\]]*\])?\s*===?\s*(?P<version>{VERSION})$")
_FORM_WORDS = re.compile(
    r"\b(?:versions?|your|the|which|what|of|installed|info(?:rmation)?)\b|[?:]", re.I
)
_ORDER = {
    FenceKind.ENVIRONMENT: 0,
    FenceKind.OUTPUT: 1,
    FenceKind.LOG: 1,
    FenceKind.SHELL: 1,
    FenceKind.REQUIREMENTS: 2,
}
_WHICH = attrgetter("name", "version")
Source = Literal["dump", "requirements", "traceback", "text", "label"]
_TRACEBACK = "Traceback (most recent call last)"


def find_versions(
    issue: Issue,
    document: ReportDocument,
    words: Sequence[Sentence],
    fences: Sequence[Fence],
    tracebacks: Sequence[Traceback],
) -> tuple[tuple[VersionClaim, ...], tuple[VersionClaim, ...]]:
    """The versions that are in use or fail, and those that work.

    What machines printed comes first, then what people typed, then labels.
    """
    package = package_names.of_repository(issue.repository)
    packages = of_report(package, fences, tracebacks)
    claims: list[VersionClaim] = [
        *_from_fences(fences, packages),
        *_from_prose_dumps(document, packages),
    ]
    claims.sort(key=lambda claim: claim.source == "text")
    good = _of_good_runs(claims, fences, packages)
    claims = [claim for claim in claims if claim not in good]
    claims.extend(_from_forms([*document.prose, *_fenced_lines(document, fences)], package))
    # A number that stands alone belongs to the package beside which it stands elsewhere.
    sentences = (Sentence(issue.title, 0, ()), *words)
    readings = [_read_sentence(sentence, packages) for sentence in sentences]
    names_by_version = {
        row.version.rstrip("."): row.name for reading in readings for row in reading.pairs
    }
    names_by_version |= {
        claim.version: claim.name for claim in reversed(claims) if claim.source == "dump"
    }
    claims_in_dumps = {(claim.quote.line, claim.name) for claim in claims if claim.source == "dump"}
    for claim, verdict in chain.from_iterable(
        _from_sentence(r, packages, names_by_version) for r in readings
    ):
        if verdict == "good":
            good.append(claim)
        elif (claim.quote.line, claim.name) not in claims_in_dumps:
            claims.append(claim)
    claims += [*_from_tracebacks(tracebacks, document), *_from_labels(issue, package)]
    return distinct(claims, _WHICH), distinct(good, _WHICH)


def _of_good_runs(
    claims: Sequence[VersionClaim], fences: Sequence[Fence], packages: Packages
) -> list[VersionClaim]:
    """Versions that a run printed which did not fail, where one that failed printed others."""
    failed = [fence for fence in fences if _TRACEBACK in fence.raw]
    bad = {(claim.name, claim.version) for fence in failed for claim in _from_dump(fence, packages)}
    names_of_bad = {name for name, _ in bad}
    line_numbers = {
        line
        for fence in fences
        if fence.kind is not FenceKind.PROGRAM
        for line in range(fence.line, fence.line + fence.raw.count("\n") + 1)
    }
    return [
        claim
        for claim in claims
        if claim.name in names_of_bad and (claim.name, claim.version) not in bad
        if claim.quote.line in line_numbers
    ]


def _claim(name: str, version: str, source: Source, quote: Quote) -> VersionClaim:
    return VersionClaim(name=name, version=version.rstrip("."), source=source, quote=quote)


def _from_fences(fences: Sequence[Fence], packages: Packages) -> Iterator[VersionClaim]:
    for fence in sorted(fences, key=lambda fence: _ORDER.get(fence.kind, 3)):
        if fence.kind in _ORDER:
            yield from _from_dump(fence, packages)
        if fence.kind is FenceKind.SHELL and (match := _STARTED_PYTHON.search(fence.raw)):
            place = fence.line + fence.raw[: match.start("version")].count("\n")
            quote = Quote(text=match[0].strip(), line=place)
            yield _claim("python", match["version"], "requirements", quote)
        for match in filter(None, map(_REQUIREMENT.match, fence.installs)):
            lines = enumerate(fence.raw.split("\n"), fence.line)
            place = next((number for number, line in lines if match[0] in line), fence.line)
            name, quote = (
                package_names.distribution(match["name"]),
                Quote(text=match[0], line=place),
            )
            yield _claim(name, match["version"], "requirements", quote)


def _from_dump(fence: Fence, packages: Packages) -> Iterator[VersionClaim]:
    inside = fence.kind in {FenceKind.ENVIRONMENT, FenceKind.REQUIREMENTS}
    source: Source = "requirements" if fence.kind is FenceKind.REQUIREMENTS else "dump"
    lines = enumerate(fence.raw.split("\n"), fence.line)
    names = packages.listed if inside else frozenset[str]()
    rows = claims(lines, inside=inside, package_names=names, words=packages.words)
    for name, version, number, text in rows:
        if inside or version.count(".") >= 2 or "version" in text.lower():
            yield _claim(name, version, source, Quote(text=text[:300], line=number))
    for name, version, number, text in printed(enumerate(fence.raw.split("\n"), fence.line)):
        yield _claim(name, version, source, Quote(text=text[:300], line=number))


def _from_prose_dumps(document: ReportDocument, packages: Packages) -> Iterator[VersionClaim]:
    lines = ((line.number, line.text) for line in document.prose if not line.heading)
    rows = claims(lines, inside=False, package_names=packages.others, words=packages.words)
    for name, version, number, text in rows:
        # No machine prints a wildcard.
        source: Source = "text" if version.lower().endswith(("x", "*")) else "dump"
        yield _claim(name, version, source, Quote(text=text[:300], line=number))


def _fenced_lines(document: ReportDocument, fences: Sequence[Fence]) -> Iterator[ProseLine]:
    """The lines of blocks that are no program, under the headings that they stand below."""
    headings = [line for line in document.prose if line.heading]
    for fence in fences:
        above = [line for line in headings if line.number < fence.line]
        if above and fence.kind is not FenceKind.PROGRAM:
            for number, text in enumerate(fence.raw.split("\n")[:6], fence.line):
                yield ProseLine(text, number, (above[-1].text.strip("# "),))


def _from_forms(lines: Sequence[ProseLine], package: str) -> Iterator[VersionClaim]:
    """Fields of issue forms: a heading that asks for a version and the few words under it. Below
    one that asks for several, the numbers stand in the order of its names; Python's, that of
    `sys.version`, is told by its form.
    """
    left: dict[str, list[str]] = {}
    for line in lines:
        heading = line.headings[-1] if line.headings and not line.heading else ""
        is_version_heading = len(heading) <= 80 and re.search(r"\bversions?\b", heading, re.I)
        names = _heading_names(heading) if is_version_heading else []
        quote = Quote(text=line.text.strip()[:300], line=line.number)
        if len(names) > 1:
            rest = left.setdefault(heading, [name for name in names if name != "python"])
            text = (
                line.text[: match.start()]
                if (match := _OWN_VERSION.search(line.text))
                else line.text
            )
            for number in _BARE.finditer(text) if _EXACTS.fullmatch(text) else ():
                if rest:
                    yield _claim(rest.pop(0), number["version"], "text", quote)
            continue
        name = ([*names, package][0]) if is_version_heading else ""
        fields = re.split(r"[,;]\s+", line.text) if name and len(line.text) <= 80 else ()
        for field in fields:
            if match := _EXACT.match(field) or _MOVING_FIELD.fullmatch(field.strip()):
                yield _claim(name, match["version"], "text", quote)


def _heading_names(heading: str) -> list[str]:
    """The packages and Python, as far as a heading names them."""
    words = re.split(r"[\s/,&+]+", _FORM_WORDS.sub(" ", heading).strip())
    pairs = map(" ".join, pairwise(words))
    names = [
        package_names.distribution(name)
        for name in (*pairs, *words)
        if package_names.is_known(name) or name.lower() == "python"
    ]
    return list(dict.fromkeys(names))


class _SentenceVersions(NamedTuple):
    """A sentence without what it offers as an example, and the versions beside names in it."""

    sentence: Sentence
    text: str
    pairs: tuple[NamedVersion, ...]


def _read_sentence(sentence: Sentence, packages: Packages) -> _SentenceVersions:
    text = EXAMPLE.sub(" ", sentence.text)
    pairs = find_named_versions(text, packages) if _DIGIT.search(text) else ()
    return _SentenceVersions(sentence, text, tuple(pairs))


def _from_sentence(
    reading: _SentenceVersions, packages: Packages, names_by_version: dict[str, str]
) -> Iterator[tuple[VersionClaim, str]]:
    """Claims of a sentence, each with "good", "bad" or ""."""
    sentence, text, pairs = reading
    pairs_and_spans = [
        (pair.name, pair.version, pair.start, pair.end) for pair in pairs if pair.exact
    ]
    pairs_and_spans += [
        (_bare_name(text, match, packages, names_by_version), match["version"], *match.span())
        for match in _BARE.finditer(text)
        if not any(pair.start <= match.start() < pair.end for pair in pairs)
    ]
    if moving := _ON_MOVING.search(text):
        pairs_and_spans.append((packages.own, moving["version"].lower(), *moving.span()))
    for name, version, start, end in pairs_and_spans:
        if name:
            yield _claim(name, version, "text", sentence.quote), polarity(text, start, end)


def _bare_name(
    text: str, match: re.Match[str], packages: Packages, names_by_version: dict[str, str]
) -> str:
    """The package that a number without a name is a version of, or ""."""
    before = text[max(0, match.start() - 40) : match.start()]
    is_judged = polarity(text, match.start(), match.end()) and _versionlike(text, match)
    if _BEFORE_NOISE.search(before[-20:]) or not (is_judged or _PLAINLY.search(before)):
        return ""
    if owner := _OWNER.search(before):
        return package_names.distribution(owner["name"])
    near = text[max(0, match.start() - 200) : match.start()]
    return names_by_version.get(match["version"]) or packages.nearest(near) or packages.own


def _versionlike(text: str, match: re.Match[str]) -> bool:
    """Whether a bare number is a version, by its form or by the words before it."""
    version, dots = match["version"], match["version"].count(".")
    before = text[max(0, match.start() - 40) : match.start()]
    is_well_formed = dots >= 2 or version.endswith(("x", "*", "X")) or match[0].startswith("v")
    announced = _BEFORE_VERSION.search(before) and _OF_VERSIONS.search(before)
    return (dots < 3 or "dev" in version) and bool(is_well_formed or announced)


def _from_tracebacks(
    tracebacks: Sequence[Traceback], document: ReportDocument
) -> Iterator[VersionClaim]:
    """The version of Python in the path of an installed file, once for each traceback."""
    for traceback in tracebacks:
        places = (
            (match, line)
            for frame in traceback.frames
            if (match := _SITE_PYTHON.search(frame.path))
            for line in range(max(1, traceback.line), len(document.lines) + 1)
            if frame.path in document.lines[line - 1]
        )
        for match, line in islice(places, 1):
            quote = Quote(text=document.lines[line - 1].strip()[:300], line=line)
            yield _claim("python", f"{match['a']}.{match['b']}", "traceback", quote)


def _from_labels(issue: Issue, package: str) -> Iterator[VersionClaim]:
    for label in issue.labels if package else ():
        if match := _LABEL.match(label.strip()):
            yield _claim(package, match["version"], "label", Quote(text=label, source="label"))
