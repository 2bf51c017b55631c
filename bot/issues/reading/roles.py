"""What a block is, judged by its content, and what it is for, by the words before it."""

import ast
import json
import re
import tomllib
from contextlib import suppress
from itertools import pairwise

from bot.issues.reading import versions
from bot.issues.reading.code import Cleaned
from bot.issues.reading.markdown import CodeBlock
from bot.issues.reading.python import is_prose
from bot.issues.reading.versions import EXAMPLE
from bot.kernel.bug import FenceKind, Role
from bot.kernel.plain_text import indent_of
from bot.kernel.source.syntax import is_test_method, pasted_tree
from bot.kernel.traceback_frames import TracebackSpan

# What a block is, judged by its content; its tag only breaks ties.

_NOTHING = re.compile(
    r"^(?:\W*+(?:_?no response_?|n/?a|none|no|nothing|not applicable|see above|as above|todo|tbd"
    r"|same as above)\W*+|(?=\W*?(?:\.\.|-))\W++)$",
    re.I,
)
_TEMPLATE = re.compile(
    r"(?:\bhere\b|please|e\.g\.|paste|your (?:code|output|error)|insert|fill in|:\s*$|conda`, "
    r"`pip`)",
    re.I,
)
_FILLED_LINE = re.compile(r"^#\s?-.{2,200}:\s*\w")
_DIFF = re.compile(r"^(?:diff --git |@@ -\d|--- (?:a/|\S+\.py)|\+\+\+ (?:b/|\S+\.py))", re.M)
_SHELL = re.compile(
    r"^\s*(?:[$%>!] ?|\(\w+\) ?[$%#]? ?|\w+@\w+[:~].{0,40}[$#] )?(?:[A-Z_][A-Z0-9_]*=\S+ "
    r")*(?:sudo |bash |sh |srun "
    r"|mpirun )?(?:pip3?|conda|mamba|uv|python[\d.]*|torchrun|accelerate"
    r"|deepspeed|git|cd|export|wget|curl|mkdir"
    r"|apt(?:-get)?"
    r"|docker|nvidia-smi|ls|rm|cp|source|make|cmake|pytest|poetry|set|echo|cat|chmod|lightning|tune|transformers-cli"
    r"|CUDA_VISIBLE_DEVICES=\S+|\./\S+\.sh|jupyter|papermill)(?:\s|$)"
    r"|^\s*(?:[$%>!] ?)?(?:bash|sh) \S+\.sh(?:\s|$)"
)
_LOG = re.compile(
    r"^\s*(?:\[?\d{4}[-/]\d\d[-/]\d\d[ T,]|\[?\d\d:\d\d:\d\d|[IWEF]\d{4} "
    r"|(?:INFO|WARNING|ERROR|DEBUG|CRITICAL)\b"
    r"|\[(?:INFO|WARN|ERROR|rank)|Epoch\b|\[?Epoch|Step \d|step \d|.{0,60}\d{1,3}%\||\d+/\d+ \[)"
)
_YAML = re.compile(r"^\s*(?:- )?[\w./-]+:(?:\s.*)?$|^\s*- .+$|^\s*#.*$|^---$")
_MOSTLY = 0.6
_SHELL_TAGS = {"shell", "bash", "sh", "console", "zsh", "cmd", "powershell", ""}
SETTING_TAGS = frozenset({"json", "yaml", "yml", "toml", "ini", "xml", "cfg"})
_CODE_TAGS = frozenset(
    {"python", "py", "python3", "ipython", "pycon", "ipython3", "jupyter", "py3"}
)
_TEXT_TAGS = {
    *("text", "txt", "console", "log", "logs", "plain", "plaintext", "output", "none", "diff"),
    *("json", "yaml", "yml", "toml", "ini", "xml"),
    *("pytb", "c++", "cpp", "c", "cuda", "java", "js", "javascript", "html"),
}


def classify(text: str, tag: str, cleaned: Cleaned, spans: list[TracebackSpan]) -> FenceKind:
    """The kind of a block."""
    if is_empty(text):
        return FenceKind.EMPTY
    if (tag in {"diff", "patch"} and re.search(r"^[+-]", text, re.M)) or len(
        _DIFF.findall(text)
    ) >= 2:
        return FenceKind.DIFF
    lines = [line for line in text.split("\n") if line.strip()]
    if _is_mostly_traceback(lines, spans):
        return FenceKind.TRACEBACK
    if is_program(tag, cleaned):
        # With what it printed; without, an exception may follow that is about the version itself.
        is_listing = versions.prints_versions(cleaned.text) and any(
            versions.printed(enumerate(text.split("\n")))
        )
        return FenceKind.ENVIRONMENT if is_listing else FenceKind.PROGRAM
    if _is_traceback(lines, spans):
        return FenceKind.TRACEBACK
    if versions.is_requirements(text, tag):
        return FenceKind.REQUIREMENTS
    if versions.is_dump(text):
        return FenceKind.ENVIRONMENT
    return FenceKind.CONFIG if _is_config(text, tag) else _lines(lines, text, tag, spans)


def is_program(tag: str, cleaned: Cleaned) -> bool:
    """A program parses and does something; under a tag for other things it must do more."""
    if not cleaned.parses or cleaned.evidence == "none":
        return False
    if cleaned.evidence == "strong":
        return tag not in _TEXT_TAGS or cleaned.transcript or _substantial(cleaned.text)
    assigns = tag in _CODE_TAGS or (tag not in _TEXT_TAGS and "=" in cleaned.text)
    return assigns and not re.search(r"^[^\S\n]*+\[[\w.\"-]+\]\s*$", cleaned.text, re.M)


def _substantial(text: str) -> bool:
    return bool(
        re.search(r"^[^\S\n]*+(?:import |from \w[\w.]* import |def |class |with )", text, re.M)
    )


def is_empty(text: str) -> bool:
    """Blank, a form's default, or a word for "nothing"."""
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    nothing = len(lines) == 1 and len(text) < 60 and _NOTHING.match(lines[0])
    template = len(lines) < 30 and all(
        line.startswith(("#", "//", "<!--"))
        and _TEMPLATE.search(line)
        and not _FILLED_LINE.match(EXAMPLE.sub("", line))
        for line in lines
    )
    return bool(nothing) or template


def _is_mostly_traceback(lines: list[str], spans: list[TracebackSpan]) -> bool:
    """Whether a block starts with frames and has little else: the code in its frames parses."""
    first = spans[0] if spans else None
    if first is None or not first.traceback.frames or not lines:
        return False
    is_frame = lines[0].lstrip().startswith('File "')
    return is_frame and first.end - first.start >= _MOSTLY * len(lines)


def _is_traceback(lines: list[str], spans: list[TracebackSpan]) -> bool:
    covered_lines = sum(span.end - span.start for span in spans)
    return any(span.traceback.frames for span in spans) or (
        bool(spans) and (covered_lines >= _MOSTLY * len(lines) or spans[0].start == 0)
    )


def _is_config(text: str, tag: str) -> bool:
    text_inside = text.strip()
    if tag in SETTING_TAGS:
        return True
    with suppress(ValueError, RecursionError):
        if text_inside[:1] == "{" and len(text_inside) < 200_000:
            value = json.loads(text_inside)
            return isinstance(value, dict) and len(value) > 1
        if re.match(r"\[[\w.\"-]+\]\s*$", text_inside.split("\n")[0]) and len(text_inside) < 50_000:
            return bool(tomllib.loads(text_inside))
    return False


def _nested(lines: list[str]) -> bool:
    """Nested YAML: everything indented is below a key that has no value of its own."""
    above = [a for a, b in pairwise(lines) if indent_of(b) > indent_of(a)]
    keys = all(line.rstrip().endswith(":") or line.lstrip().startswith("- ") for line in above)
    return bool(above) and keys and all(_YAML.match(line[:300]) for line in lines)


def _lines(lines: list[str], text: str, tag: str, spans: list[TracebackSpan]) -> FenceKind:
    total, first = len(lines), lines[0]
    if tag in _SHELL_TAGS and _SHELL.match(first):
        commands = sum(bool(_SHELL.match(line[:300])) for line in lines)
        if commands >= 0.5 * total or tag in {"bash", "sh", "shell"}:
            return FenceKind.SHELL
    if sum(bool(_LOG.match(line[:300])) for line in lines) >= max(1, 0.4 * total):
        return FenceKind.LOG
    if total >= 3 and not spans and _nested(lines):
        return FenceKind.CONFIG
    columns = {line.count(",") for line in lines}
    table = total >= 4 and len(columns) == 1 and min(columns) >= 2
    if tag in {"csv", "tsv"} or (table and not re.search(r"[\[(]", text)):
        return FenceKind.DATA
    code = tag in _CODE_TAGS and _substantial(text)
    if code and sum(map(is_prose, lines)) < 0.5 * total:
        return FenceKind.PROGRAM
    return FenceKind.OUTPUT


# What a block is for, by the words just before it, else by its headings, else by its kind and its
# neighbours.

_PATTERNS: tuple[tuple[Role, re.Pattern[str]], ...] = (
    (
        Role.FIX,
        re.compile(
            r"\b(?:(?:proposed|suggested|potential|possible|quick|simple|temporary|recommended|my|the|a|following"
            r"|expected) (?:fix|solution|patch|workaround|change)(?:es|s)?\b(?! (?:does|did|is "
            r"needed))"
            r"|work-?arounds?\b|fix(?:ed)? (?:by|with|is|it|this|the)|(?:can|could|should) be "
            r"(?:fixed|changed|replaced"
            r"|rewritten|solved|resolved)|should (?:instead )?be(?: instead)?:?$"
            r"|chang(?:e|ed|ing)\b.{0,80}\bto:?$|replac(?:e|ing)\b.{0,80}\b(?:with|by):?$|suggest(?:ion)?\b|solution\b"
            r"|instead,? (?:use|it should)|\bto:$|patch(?:ed)?:?$|alternative(?:ly)?\b)",
            re.I,
        ),
    ),
    (
        Role.SOURCE,
        re.compile(
            r"^in (?:the "
            r")?(?:file|module|function|source|method|class)?\s*[`\[(\"]?[\w./\\-]+\.(?:py|ipynb)\b"
            r"|\b(?:root cause|analysis|cause)\b|\bsource "
            r"code\b|\b(?:current|existing|relevant|actual) (?:implementation"
            r"|code|source|logic)\b"
            r"|\binternally\b|\bimplementation (?:of|in|is)\b|\bimplemented (?:as|in|like)\b|\bis "
            r"defined (?:as|in)\b"
            r"|\b(?:following|these|this|offending|problematic|culprit|relevant) "
            r"(?:lines?|logic|snippet in|check"
            r"|condition|function in)\b"
            r"|\bblob/\w+|\bfrom the "
            r"(?:source|library|docs|documentation)|\bbecause\b.{0,200}:$|\bthe (?:code|logic|check"
            r"|function) (?:in|of|at)\b|\bline "
            r"\d+\b|\bL\d+\b|^\s*#?\s*v?\d+\.\d+(?:\.[\dx]+)?\s*:?$",
            re.I,
        ),
    ),
    (
        Role.CONTRAST,
        re.compile(
            r"\b(?:works? (?:fine|well|correctly|perfectly|as "
            r"expected|ok|properly|without)|(?:this|it|that|following|code"
            r"|version|one|loading|which|setting|call) (?:also |still |now |does "
            r")?(?:works?|passes|succeeds|runs)\b"
            r"|works:$|^\W*(?:works|working|good|passes|passing|correct)\W*$|working "
            r"(?:example|version|code|case)"
            r"|no (?:error|problem|issue|bug|crash)s? (?:when|if|with|in|on"
            r"|occurs?|happens?)\b|does(?: not|n't) "
            r"(?:fail|crash|raise|error|happen|occur)|(?:success|good|correct) case"
            r"|runs (?:fine|without)|passes:?$|for comparison)",
            re.I,
        ),
    ),
    (
        Role.EXPECTED,
        re.compile(
            r"\bexpect(?:ed|ation|s|ing)?\b(?! (?:solution|fix))|\b(?:i|we|one) would "
            r"expect\b|\bdesired\b"
            r"|\bshould (?:have "
            r")?(?:print|output|return|give|be|produce|show|see|yield|look)\w*|\bcorrect (?:output"
            r"|result|behaviou?r|value)|\bground truth\b"
            r"|\berwartet|\battendue?s?\b|\besperad[oa]|期望|预期|期待|ожида|예상|기대",
            re.I,
        ),
    ),
    (
        Role.OBSERVED,
        re.compile(
            r"\b(?:actual|observed)\b|^\W*(?:got|get)\b|\bcurrent(?:ly)? "
            r"(?:behaviou?r|output|result)|\boutputs?\b"
            r"|\bstd(?:out|err)\b|\bleads? to\b|\bshows?\b"
            r"|\berrors?\b|\blogs?\b"
            r"|\btraceback\b|\bstack ?trace\b|\bexceptions?\b|\b(?:i|we|you) "
            r"(?:get|got|see|receive|observe|obtain"
            r"|end up)\b|\bgives?\b"
            r"|\bprints?\b|\breturns?\b|\bresults?(?: in)?\b|\braises?\b|\bthrows?\b|\bfails?(?: "
            r"with)?\b|\bcrash(?:es"
            r"|ed)?\b|\bproduces?\b|\byields?\b|\bmessage\b|\bwarnings?\b|\bconsole\b|\bwrong "
            r"(?:output|result)"
            r"|\btatsächlich|\bobtenue?\b|\bobtenid[oa]|实际|実際|фактич|실제|报错|错误",
            re.I,
        ),
    ),
    (
        Role.REPRODUCER,
        re.compile(
            r"\brepro(?:duc\w*|s)?\b|\bminimal\b|(?:fails?|crash(?:es)?|breaks?|errors?)\b[^:]{0,40}:?$|(?:this|following"
            r"|code|it) (?:\w+ )?(?:fails|crashes|breaks|raises|hangs)\b|\bMWE\b|\bMRE\b"
            r"|\bMCVE\b|\bexamples?\b|\bsnippets?\b|\bcode\b|\bscript\b"
            r"|\bsteps\b|\bsample\b|\bdemo\b|\bnotebook\b|\bcolab\b|\btest "
            r"case\b|\bprogram\b|\bhow to trigger\b"
            r"|\brun(?:ning)? (?:this|the following)\b"
            r"|\bthe following\b|\bto see\b|\bwhen i (?:run|do|try|call)\b|\bI "
            r"(?:run|ran|tried|try|use|used|have|do|did|am)\b"
            r"|\breprodu[kz]|复现|重现|再現|воспроизв|재현",
            re.I,
        ),
    ),
)
_FIX = frozenset({Role.FIX})
_ASIDE = frozenset({Role.FIX, Role.SOURCE, Role.CONTRAST})
_IMPORTS = (ast.Import, ast.ImportFrom)
_DEFS = (ast.FunctionDef, ast.AsyncFunctionDef)
_PROGRAM_ROLES = frozenset({Role.FIX, Role.SOURCE, Role.CONTRAST, Role.REPRODUCER})
_EVIDENCE_ROLES = frozenset({Role.FIX, Role.CONTRAST, Role.EXPECTED, Role.OBSERVED})
_FAILS = re.compile(
    r"\b(?:fail|error|crash|break|broken|does(?: not|n't) "
    r"work|but|however|except|raise|wrong|nan|bug)\w*",
    re.I,
)
_FAILS_FIRST = re.compile(
    r"\b(?:code|snippet|script|example|program|following|this|it)\b(?:\W+\w+){0,2}\W+"
    r"(?:fails?|crash(?:es)?|raises?|throws?|errors?|breaks?|does(?: not|n't) work)\b"
    r".*\b(?:but|while|whereas|(?:al)?though)\b",
    re.I | re.S,
)
"""What is said to fail, before a clause on something else that works."""
_FIRM = re.compile(
    r"\brepro(?:duc\w*|s)?\b|\bMWE\b|\bMRE\b|\bMCVE\b|\bminimal (?:working |reproducible |failing "
    r")?(?:example|code"
    r"|script)|\bstandalone code\b",
    re.I,
)
_SOLVES = re.compile(
    r"^\W*(?:(?:this|that|it|which|the (?:above|code|change|snippet))\s+)?"
    r"(?:(?:should|would|will|seems? to|appears? to)\s+(?:also\s+)?(?:fix|solve|resolve)"
    r"|(?:also\s+|then\s+)?(?:fixe[sd]|solve[sd]|resolve[sd]))\s+(?:the|this|it|my|that)\b",
    re.I,
)
_LIBRARY_FILE = re.compile(
    r"^#\s*(?:file:?\s*)?(?:\S*/)?(?:src|site-packages|lib)/\S+\.py|^#\s*\S+/\S+\.py(?:#L\d+|:\d+)",
    re.I,
)


def role(code: CodeBlock, kind: FenceKind, text: str, before: FenceKind | None) -> Role:
    """The role of a block. `before` is the kind of the block that it directly follows, if any."""
    if kind is FenceKind.DIFF:
        return Role.FIX
    program = kind in {FenceKind.PROGRAM, FenceKind.SHELL}
    excerpt = program and is_excerpt(text)
    allowed = _PROGRAM_ROLES if program else _EVIDENCE_ROLES
    fence_role = _by_lead(code.lead, allowed, program)
    # A paragraph that ends before the block does not lead up to it.
    apart = code.lead.rstrip("*_` ").endswith((".", "?", "!"))
    if fence_role in _ASIDE and kind is FenceKind.PROGRAM and apart and is_whole(text):
        fence_role = Role.UNSTATED
    if fence_role is Role.SOURCE and _by_headings(code.headings[-1:], _FIX) is Role.FIX:
        return Role.FIX
    if fence_role is Role.UNSTATED and excerpt:
        return Role.FIX if _by_headings(code.headings, _FIX) is Role.FIX else Role.SOURCE
    if fence_role is Role.UNSTATED:
        fence_role = _by_headings(code.headings, allowed | ({Role.EXPECTED} if program else set()))
    is_output = before is FenceKind.PROGRAM or kind is FenceKind.TRACEBACK
    if fence_role is Role.UNSTATED and not program and is_output:
        return Role.OBSERVED
    is_quoted = fence_role is Role.REPRODUCER and excerpt and not _FIRM.search(code.lead)
    return Role.SOURCE if is_quoted else fence_role


def is_called_fix(text: str) -> bool:
    """Whether the words after a block call it a fix, as in "should solve the issue"."""
    return bool(_SOLVES.match(text.strip()[:200]))


def is_whole(text: str) -> bool:
    """A program that imports what it needs and does something at its top level."""
    body = tree.body if (tree := pasted_tree(text)) else []
    inert = (*_IMPORTS, ast.FunctionDef, ast.ClassDef)
    return any(isinstance(node, _IMPORTS) for node in body) and not all(
        isinstance(node, inert) for node in body
    )


def _by_lead(lead: str, allowed: frozenset[Role], program: bool) -> Role:
    """The last sentence counts most, then the paragraph (only its firm words, for a paragraph
    says many things).
    """
    sentences = [part for part in re.split(r"(?<=[.!?])\s+|\n", lead.strip()) if part.strip()]
    if not sentences:
        return Role.UNSTATED
    last, rest = sentences[-1].strip()[-400:], " ".join(sentences[-4:])[-1200:]
    fence_role = match(last, allowed)
    if fence_role is Role.CONTRAST and "because" in last and program:
        return Role.SOURCE
    if fence_role is not Role.UNSTATED:
        return fence_role
    if program and _FIRM.search(rest):
        return Role.REPRODUCER
    weighty = frozenset({Role.FIX, Role.CONTRAST})
    return match(rest, weighty) if last.endswith(":") else Role.UNSTATED


def _by_headings(headings: tuple[str, ...], allowed: frozenset[Role]) -> Role:
    for heading in reversed(headings[-3:]):
        firm = Role.REPRODUCER in allowed and _FIRM.search(heading)
        fence_role = Role.REPRODUCER if firm else match(heading, allowed)
        if fence_role is not Role.UNSTATED:
            return fence_role
    return Role.UNSTATED


def match(text: str, allowed: frozenset[Role]) -> Role:
    """The first role, in the order of their weight, whose words occur in a text."""
    firm = Role.REPRODUCER in allowed and _FIRM.search(text)
    if firm and not re.search(r"\bfix|workaround", text, re.I):
        return Role.REPRODUCER
    for candidate, pattern in _PATTERNS:
        match_of_pattern = pattern.search(text) if candidate in allowed else None
        if match_of_pattern and not (
            candidate is Role.CONTRAST
            and (
                _FAILS.search(text[match_of_pattern.end() :])
                or _FAILS_FIRST.search(text[: match_of_pattern.start()])
            )
        ):
            return candidate
    return Role.UNSTATED


def is_excerpt(text: str) -> bool:
    """Library code quoted for reading: a method without its class, or code on an unknown self. A
    test is no such method.
    """
    body = tree.body if (tree := pasted_tree(text)) else []
    body = [node for node in body if not is_test_method(node)]
    methods = bool(body) and all(
        isinstance(node, _DEFS) and node.args.args and node.args.args[0].arg in {"self", "cls"}
        for node in body
    )
    loose = [node for node in body if not isinstance(node, (*_DEFS, ast.ClassDef))]
    uses = any(
        isinstance(part, ast.Return | ast.Raise) or getattr(part, "id", "") == "self"
        for node in loose
        for part in ast.walk(node)
    )
    binds = any(isinstance(node, _IMPORTS) for node in body)
    return bool(_LIBRARY_FILE.match(text)) or methods or (uses and not binds)
