"""Telling Python from prose, output and transcripts of sessions."""

import ast
import re
from dataclasses import dataclass, field, replace

from bot.kernel.bug import ScriptFix
from bot.kernel.exception_names import match_exception_line
from bot.kernel.source.syntax import Evidence, evidence, is_call_of, pasted_tree

# Telling a line of prose, of output or of a log from a line of code.

_WORD = re.compile(r"[A-Za-z][A-Za-z'\u2019-]*")
_LINK = re.compile(r"https?://\S+|`[^`]*`|\[[^\]\n]*\]\([^)\n]*\)")
_COMMON_WORDS = """
a an the is are was were be been of to in on for with and or not but it this that i we you my our from as at
by if when then than here there so do does did can could should would will has have had which what how note
please output error code above below following get gives after before same works fails
"""
_COMMON = frozenset(_COMMON_WORDS.split())
_STATEMENT = re.compile(
    r"^(?:for|if|while|with|def|class|else|elif|try|except|finally|async|return|import|from|lambda|assert|raise|yield|del"
    r"|global|@|match|case)\b.*[:\\,(]?$"
)
_MACHINE = re.compile(r"\.py:\d+|\b\w+(?:Warning|Error|Exception): |^\[?\d{4}-\d\d-\d\d|\d%\|")
_LABEL = re.compile(
    r"^(?:[#*>\s-]{0,6})(?:(?:the\s+)?(?:actual|expected|current|console|terminal|program|full|sample)?\s*+(?:outputs?"
    r"|results?|prints?|error|errors|logs?|gives|returns|"
    r"yields|stdout|stderr|traceback|stack ?trace|error message|which "
    r"gives|raises))\s*+(?:is|are)?\s*+:?\s*+$",
    re.I,
)
_RULE = re.compile(r"^\s*(?:[-=_*~#]\s?){4,}\s*$")
_FILE = re.compile(r"^\s*(?:file:?\s*)?[\w./-]{1,80}\.(?:py|ipynb|sh|yaml|json)\s*:?\s*$", re.I)
_OUTPUT = re.compile(
    r"^\s*(?:Traceback \(most recent|File "
    r"\"|(?:[\w.]+\.)?\w*(?:Error|Exception|Warning|Interrupt)\b(?::|$)|tensor\("
    r"|array\(|Array\(|torch\.Size\(|Epoch\b|\[?\d{4}-\d\d-\d\d|"
    r"\d+%\||\[[\d., eE+naif\s-]+\]?$|-?\d[\d.,eE+-]*$|nan\b|inf\b|True$|False$|None$|<[\w.]+ "
    r".*>|<class |\(.*\)$|\{.*\}$"
    r"|[\w /()%.'-]{1,40}[:=] ?\S|Segmentation fault|Killed$|Aborted"
    r"|[\w.-]+\s+[-+]?(?:\d[\d.eE+-]*|nan|inf)$|(?:INFO|WARNING|ERROR|DEBUG)\b|.*\d+(?:it|s/it)|\.\.\.$|---+>?\s*\d*)"
)


def is_prose(line: str) -> bool:
    """Plainly a sentence: several words, common ones among them, few signs, and not Python by
    itself.
    """
    text = line.strip()
    if not text or len(text) > 2000 or text.startswith(("#", "@", '"', "'")):
        return False
    if _MACHINE.search(text) or match_exception_line(text):
        return False
    if is_label(line) or _RULE.match(text) or _FILE.match(text):
        return pasted_tree(text) is None
    bare = _LINK.sub("", text)
    words = _WORD.findall(bare)
    opens, stops = text[0].isupper(), text.endswith((":", "."))
    several = len(words) >= 4 or (len(words) >= 2 and opens and stops)
    letters = sum(map(len, words)) + bare.count(" ")
    common = sum(word.lower() in _COMMON for word in words)
    is_readable = several and letters >= 0.78 * len(bare) and common >= (1 if opens or stops else 2)
    code = _STATEMENT.match(text) and not re.search(r"[.!?]$", text)
    return is_readable and not code and pasted_tree(text) is None


def is_label(line: str) -> bool:
    """A line like `Output:` that announces what was printed."""
    return bool(line.strip()) and len(line) < 60 and bool(_LABEL.match(line))


def is_output(line: str) -> bool:
    """A line such as programs print: values, tracebacks, progress, logs."""
    return len(line) < 5000 and bool(_OUTPUT.match(line[:400]))


# Separates transcripts of interactive sessions (doctest, notebook) into code and output.

_DOCTEST = re.compile(r"^\s*>>> ?(?P<code>.*)$")
_MORE = re.compile(r"^\s*\.\.\.(?: (?P<code>.*))?$")
_IN = re.compile(r"^\s*In ?\[[\d ]*\]:(?: |$)(?P<code>.*)$")
_CONTINUED = re.compile(r"^\s*\.{3,}: ?(?P<code>.*)$")
_OUT = re.compile(r"^\s*Out ?\[[\d ]*\]: ?(?P<code>.*)$")
_VALUE_MARK = re.compile(r"^\s*(?:>>(?!>)|={1,2}>|-{1,3}>|Out ?\[[\d ]*\]:) ?(?P<code>\S.*)$")
"""A mark before a value that is shown, in a program without prompts."""
_BANNER = re.compile(
    r"^(?:Python \d\.\d+.*|\[GCC .*|\[Clang .*|Type \"help\".*|IPython \d.*|Type '.*|\$? "
    r"?i?python[\d.]*)\s*$"
)


@dataclass(slots=True)
class PromptEntry:
    """One entry at the prompt, its first line in the block, and what followed it."""

    code: list[str]
    line: int
    shown: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Transcript:
    """A session as a program; `shown` pairs each output with its line in the block."""

    code: str
    shown: tuple[tuple[int, str], ...]
    fixes: tuple[ScriptFix, ...]


def parse_transcript(text: str) -> Transcript | None:
    """The session in a text, or None when it is none."""
    lines = text.split("\n")
    if any(map(_IN.match, lines)):
        return _assemble(_entries(lines, _IN, _CONTINUED))
    if not any(map(_DOCTEST.match, lines)):
        return _from_values(lines) if any(map(_VALUE_MARK.match, lines)) else None
    first = next((line for line in lines if line.strip() and not _BANNER.match(line.strip())), "")
    if not _DOCTEST.match(first):
        return _from_marks(lines)
    return _assemble(_entries(lines, _DOCTEST, _MORE))


def _entries(lines: list[str], start: re.Pattern[str], more: re.Pattern[str]) -> list[PromptEntry]:
    entries: list[PromptEntry] = []
    entering = False
    for number, line in enumerate(lines):
        begin, further, out = start.match(line), more.match(line), _OUT.match(line)
        if begin:
            entries.append(PromptEntry([begin["code"]], number))
            entering = True
        elif entries and entering and further:
            entries[-1].code.append(further["code"] or "")
        elif entries and entering and not out and line.strip() and _unfinished(entries[-1].code):
            entries[-1].code.append(line)
        elif entries:
            entering = entering and not out and not line.strip()
            entries[-1].shown.append(out["code"] if out else line)
    return entries


def _unfinished(code: list[str]) -> bool:
    """Whether an entry pasted without continuation prompts still needs lines."""
    text = "\n".join(code)
    open_ended = _is_open(text) or text.rstrip().endswith((":", "\\"))
    return len(code) < 200 and open_ended and pasted_tree(text) is None


def _assemble(entries: list[PromptEntry]) -> Transcript:
    code: list[str] = []
    outputs: list[tuple[int, str]] = []
    wrapped_count = 0
    for entry in entries:
        text, output = "\n".join(entry.code).rstrip(), "\n".join(entry.shown).strip("\n")
        silent = not output.strip() or "Traceback (most recent" in output
        code.append(text if silent else _printing(text))
        wrapped_count += code[-1] != text
        if output.strip():
            outputs.append((entry.line + len(entry.code), output.rstrip()))
    why = "the block is a transcript of an interactive session"
    fixes = [ScriptFix(what="removed the prompts", why=why)]
    if wrapped_count:
        why = "a prompt shows the value of an expression, a program does not"
        what = f"printed the value of {wrapped_count} expression{'s' if wrapped_count > 1 else ''}"
        fixes.append(ScriptFix(what=what, why=why))
    return Transcript("\n".join(code).strip("\n"), tuple(outputs), tuple(fixes))


def _printing(text: str) -> str:
    """The entry with its only expression printed, as the prompt would have done."""
    tree = pasted_tree(text)
    node = tree.body[0] if tree and len(tree.body) == 1 else None
    if not isinstance(node, ast.Expr) or node.end_lineno != text.count("\n") + 1:
        return text
    expression = ast.get_source_segment(text, node.value)
    prints = is_call_of(node.value, "print", "pprint", "help", "exit", "display")
    return text if prints or expression is None else f"print(repr({expression}))"


def _from_marks(lines: list[str]) -> Transcript | None:
    """A program that marks its output with `>>>`, or a session whose first lines lack a prompt."""
    marks = [(i, match["code"]) for i, line in enumerate(lines) if (match := _DOCTEST.match(line))]
    if any(_evidence_of(code) != "none" for _, code in marks):
        before = "\n".join(lines[: marks[0][0]])
        session = _assemble(_entries(lines, _DOCTEST, _MORE))
        silent = _evidence_of(before) == "none"
        return session if silent else replace(session, code=f"{before}\n{session.code}")
    code = "\n".join("# " + line.strip() if _DOCTEST.match(line) else line for line in lines)
    fix = ScriptFix(what="commented out lines marked >>>", why="they show output, not code")
    outputs = tuple((i, text) for i, text in marks if text.strip())
    return Transcript(code, outputs, (fix,)) if _evidence_of(code) == "strong" else None


def _from_values(lines: list[str]) -> Transcript | None:
    """A program with the values that it shows behind marks such as `Out[3]:`, `>>` or `=>`, each up
    to the end of its brackets.
    """
    code, outputs = list[str](), list[tuple[int, list[str]]]()
    for at, line in enumerate(lines):
        match, last = _VALUE_MARK.match(line), outputs[-1][1] if outputs else []
        is_open = bool(last) and code[-1:] != [lines[at - 1]] and _is_open("\n".join(last))
        if match:
            outputs.append((at, [match["code"].rstrip()]))
        elif is_open:
            last.append(line.rstrip())
        code.append("# " + line.strip() if match or is_open else line)
    fix = ScriptFix(what="commented out values behind marks", why="they show output, not code")
    values = tuple((at, "\n".join(rows)) for at, rows in outputs)
    text = "\n".join(code)
    return Transcript(text, values, (fix,)) if _evidence_of(text) == "strong" else None


def _is_open(text: str) -> bool:
    """Whether a text opens brackets that it does not close."""
    return sum(text.count(mark) for mark in "([{") > sum(text.count(mark) for mark in ")]}")


def _evidence_of(code: str) -> Evidence:
    return evidence(tree) if (tree := pasted_tree(code)) else "none"
