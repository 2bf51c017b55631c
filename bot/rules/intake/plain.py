"""Telling a line of prose, of output or of a log from a line of code."""

import re

from bot.rules.intake.exceptions import lone
from bot.rules.intake.python import tree_of

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
    r"^(?:[#*>\s-]{0,6})(?:(?:the\s+)?(?:actual|expected|current|console|terminal|program|full|sample)?\s*(?:outputs?"
    r"|results?|prints?|error|errors|logs?|gives|returns|"
    r"yields|stdout|stderr|traceback|stack ?trace|error message|which "
    r"gives|raises))\s*(?:is|are)?\s*:?\s*$",
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
    if _MACHINE.search(text) or lone(text):
        return False
    if is_label(line) or _RULE.match(text) or _FILE.match(text):
        return tree_of(text) is None
    bare = _LINK.sub("", text)
    words = _WORD.findall(bare)
    opens, stops = text[0].isupper(), text.endswith((":", "."))
    several = len(words) >= 4 or (len(words) >= 2 and opens and stops)
    letters = sum(map(len, words)) + bare.count(" ")
    common = sum(word.lower() in _COMMON for word in words)
    told = several and letters >= 0.78 * len(bare) and common >= (1 if opens or stops else 2)
    code = _STATEMENT.match(text) and not re.search(r"[.!?]$", text)
    return told and not code and tree_of(text) is None


def is_label(line: str) -> bool:
    """A line like `Output:` that announces what was printed."""
    return bool(line.strip()) and len(line) < 60 and bool(_LABEL.match(line))


def is_output(line: str) -> bool:
    """A line such as programs print: values, tracebacks, progress, logs."""
    return len(line) < 5000 and bool(_OUTPUT.match(line[:400]))
