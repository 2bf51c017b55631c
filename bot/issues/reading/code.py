"""Programs in a report: pasted without a fence, given to a shell, or in need of mending
before they parse.
"""

import ast
import re
import shlex
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise, takewhile

from packaging.requirements import InvalidRequirement, Requirement

from bot.environment import imports
from bot.issues.reading import python
from bot.issues.reading.markdown import LONGEST_LEAD, CodeBlock, ProseLine, ReportDocument
from bot.issues.reading.python import is_label, is_output, is_prose
from bot.kernel.bug import ScriptFix
from bot.kernel.exception_names import match_exception_line
from bot.kernel.plain_text import indent_of, plain_typography
from bot.kernel.source.syntax import (
    LONGEST_PASTED,
    Evidence,
    attempt,
    bound_names,
    dotted,
    evidence,
    is_call_of,
    is_repr,
    looks_like,
    module_of,
    pasted_tree,
)

# Commands of a shell: programs in `python -c "…"` and here-documents, variables, installs.

_INLINE = re.compile(r"\bpython[\d.]*\s+(?:-\w\s+)*-c\s+(?P<quote>['\"])")
_MOST, _LONGEST_COMMAND = 10, 100_000
_VALUE = r"[\w.,:/=+-]{1,80}|\"[^\"\n]{1,80}\"|'[^'\n]{1,80}'"
_VARIABLE = re.compile(
    rf"(?:^|\s)(?:export |set |%env )?(?P<name>[A-Z][A-Z0-9_]{{2,60}})=(?P<value>{_VALUE})(?=\s|$)",
    re.M,
)
# Variables that libraries read; none that selects programs, files or hosts.
_READING_COMMAND = re.compile(
    r"^(?:KERAS_|JAX_|XLA_|TF_|TORCH_|TORCHDYNAMO_|TORCHINDUCTOR_|PYTORCH_|CUDA_|OMP_|MKL_|KMP_|NCCL_|ACCELERATE_|TOKENIZERS_"
    r"|TRANSFORMERS_|DIFFUSERS_|FLAX_|EQX_|HYDRA_|NUMBA_|PYTHONHASHSEED$|PYTHONOPTIMIZE$|PYTHONWARNINGS$|PL_|DGL)"
)
_PIPED = re.compile(
    r"\b(?:echo|printf)\s+(?:-\w\s+)*(?P<quote>['\"])(?P<code>[^\"']{1,4000}|.{1,4000}?)(?P=quote)"
    r"\s*\|\s*python",
    re.S,
)
_PRINTED_FILE = re.compile(r"^(?P<prompt>[^\n]{0,80}?[$%>] ?)cat \S+\.py[ \t]*\n", re.M)
_HERE = re.compile(r"<<-?\s*['\"]?(?P<end>\w{2,20})['\"]?[^\n]*\n")
_PIP = re.compile(
    r"^\s*(?:[!%$>]\s?)?(?:sudo )?(?:(?:python[\d.]*|py) -m )?(?:uv )?pip[\d.]* "
    r"install\s+(?P<rest>.+?)\s*\\?$"
)
_MAGIC = re.compile(
    r"^\s*(?:%%?[a-zA-Z_]\w*(?:\s.*)?|![A-Za-z./$({~].*|(?:\$|PS>|C:\\>) ?\S.*|(?:mamba|conda) "
    r"(?:install|create"
    r"|activate)\s.*|apt(?:-get)? install\s.*)$"
)
_VALUED = frozenset(
    {
        "-i",
        "--index-url",
        "-f",
        "--find-links",
        "--extra-index-url",
        "-r",
        "--requirement",
        "-c",
        "--constraint",
        "-t",
        "--target",
        "-e",
        "--editable",
    }
)


@dataclass(frozen=True, slots=True)
class Embedded:
    """A program taken out of a command."""

    text: str
    evidence: Evidence
    fixes: tuple[ScriptFix, ...]


def program(text: str) -> Embedded | None:
    """The Python program that a shell block runs, or None."""
    ways = (_of_flag, _of_document, _of_pipe, _of_file) if len(text) <= _LONGEST_COMMAND else ()
    source = next(filter(None, (way(text) for way in ways)), "")

    what = "extracted the program from a shell command"
    why = "it was passed to python on the command line"
    strength = evidence(module_of(source))
    embedded = Embedded(source, strength, (ScriptFix(what=what, why=why),))
    return None if strength == "none" else embedded


def _of_flag(text: str) -> str:
    """The programs of every `-c`, one after the other: a later one uses what an earlier left."""
    parts: list[str] = []
    at = 0
    while len(parts) < _MOST and (match := _INLINE.search(text, at)) is not None:
        quote = match["quote"]
        end = text.find(quote, match.end())
        while end > 0 and text[end - 1] == "\\":
            end = text.find(quote, end + 1)
        if end < 0:
            break
        code, at = text[match.end() : end], end + 1
        unescaped = code.replace('\\"', '"').replace("\\$", "$")
        parts.append((unescaped if quote == '"' else code).strip("\n"))
    return "\n".join(parts)


def _of_document(text: str) -> str:
    match = _HERE.search(text)
    if not match or ("python" not in text and ".py" not in text):
        return ""
    lines = text[match.end() :].split("\n")
    return "\n".join(takewhile(lambda line: line.strip() != match["end"], lines))


def _of_pipe(text: str) -> str:
    match = _PIPED.search(text)
    return match["code"].replace("\\n", "\n") if match else ""


def _of_file(text: str) -> str:
    """A file that a session shows with `cat`, up to its next prompt."""
    match = _PRINTED_FILE.search(text)
    lines = text[match.end() :].split("\n") if match else []
    prompt = match["prompt"].strip() if match else ""
    return "\n".join(takewhile(lambda line: not line.strip().startswith(prompt), lines))


def variables(text: str) -> dict[str, str]:
    """The environment variables that a shell block sets for libraries, such as KERAS_BACKEND."""
    return {
        match["name"]: match["value"].strip("\"'")
        for match in _VARIABLE.finditer(text[:20_000])
        if _READING_COMMAND.match(match["name"])
    }


def requirements_of(line: str) -> tuple[str, ...] | None:
    """What a `pip install` line names, validated, without links; None when the line is no such
    command.
    """
    match = _PIP.match(line) if "pip" in line else None
    if not match:
        return None
    text = re.split(r" #|&&| ; ", match["rest"])[0]
    try:
        words = shlex.split(text)
    except ValueError:
        words = text.split()
    requirements = []
    skip = False
    for word in words:
        if skip or word.startswith("-"):
            skip = not skip and word in _VALUED
        elif requirement := valid(word):
            requirements.append(requirement)
    return tuple(requirements)


def valid(word: str) -> str:
    """A PEP 508 requirement without a link, or ""."""
    try:
        requirement = Requirement(word.strip("'\"`,\\"))
    except InvalidRequirement:
        return ""
    return "" if requirement.url else str(requirement)


def is_magic(line: str) -> bool:
    """A line for the notebook or the shell and not for Python."""
    return len(line) < 2000 and bool(_MAGIC.match(line))


# Programs pasted into the text without a fence.

_START = re.compile(
    r"^\s*(?:import [a-zA-Z_][\w.]*(?: as \w+)?(?:, ?[\w. ]+)?\s*$|from [a-zA-Z_][\w.]* import "
    r"[\w(*, ]+)"
)
_BARE_START = re.compile(
    r"^\s{0,3}(?:[A-Za-z_]\w*(?:\s*,\s*[A-Za-z_]\w*)*\s*=(?!=)\s*\S|[a-z_]\w*(?:\.\w+)+\()"
)
_LONGEST_PROGRAM, _MOST_TRIES, _LEAST = 400, 12, 3
_LONGEST_BARE, _LEAST_BARE = 1000, 2


def lift(document: ReportDocument, home: str = "") -> ReportDocument:
    """The document with unfenced programs moved from its prose to its code; `home` is the module of
    the repository.
    """
    codes = list(document.codes)
    line_numbers: set[int] = set()
    for run in _runs(document.prose, home):
        numbers = tuple(line.number for line in run)
        line_numbers.update(numbers)
        before = [line for line in document.prose if line.number < numbers[0]][-4:]
        leads = [line.text.strip() for line in before if not line.heading and line.text.strip()]
        lead = leads[-1][-LONGEST_LEAD:] if leads else ""
        text = "\n".join(line.text for line in run)
        codes.append(CodeBlock("", text, numbers[0], run[0].headings, lead, numbers))
    prose = tuple(line for line in document.prose if line.number not in line_numbers)
    return replace(document, prose=prose, codes=tuple(sorted(codes, key=lambda code: code.line)))


def _runs(prose: tuple[ProseLine, ...], home: str) -> Iterator[list[ProseLine]]:
    at, tries = 0, 0
    while at < len(prose) and tries < _MOST_TRIES:
        text = prose[at].text
        starts = _START.match(text) or (len(text) < _LONGEST_BARE and _BARE_START.match(text))
        run = _program(prose, at, home) if starts else []
        tries += bool(starts)
        if run:
            yield run
        at += max(1, len(run))


def _program(prose: tuple[ProseLine, ...], at: int, home: str) -> list[ProseLine]:
    """The longest stretch from here that parses, up to a sentence, a section or a block."""
    lines = enumerate(prose[at : at + _LONGEST_PROGRAM], prose[at].number)
    run = [line for _, line in takewhile(lambda pair: not _ends(*pair), lines)]
    for _ in range(8):
        _drop_last(run, blank=True)
        tree = pasted_tree("\n".join(_with_remark(line.text) or line.text for line in run))
        if tree is not None:
            return run if _is_whole(tree, home) else []
        _drop_last(run, blank=False)
    return []


def _is_whole(tree: ast.Module, home: str) -> bool:
    """Whether statements without a fence are a program: some that import, or a few that call what
    can only be of a module that everybody knows by this name, or of the one in question.
    """
    if any(isinstance(node, ast.Import | ast.ImportFrom) for node in ast.walk(tree)):
        count = sum(isinstance(node, ast.stmt) for node in ast.walk(tree))
        return evidence(tree) == "strong" and count >= _LEAST
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and not is_repr(node)]
    owners = {dotted(call.func).partition(".")[0] for call in calls}
    return len(tree.body) >= _LEAST_BARE and not owners.isdisjoint({*imports.MODULES, home} - {""})


def _ends(expected: int, line: ProseLine) -> bool:
    """Whether a line ends a program; `expected` is the number it has without a block between."""
    return (
        line.number != expected
        or bool(re.match(r"^#{2,} \w", line.text))
        or is_label(line.text)
        or "Traceback (most" in line.text
        or (is_prose(line.text) and not _with_remark(line.text))
    )


def _drop_last(run: list[ProseLine], *, blank: bool) -> None:
    while run and blank is not bool(run[-1].text.strip()):
        run.pop()


# Single repairs of a pasted program, chosen by what the parser complains about.

_ELLIPSIS_ARGUMENT = re.compile(r"(?<=[(,])\s*\.\.\.\s*(?=[,)])")
_DEF = re.compile(r"^\s*(?:async\s+)?def\b|^\s*class\b")
_OPENER = re.compile(r"^\s*(?:@|def |class |async def |if __name__)")
_CODE_AGAIN = re.compile(r"(?:import |from \S+ import |def |class |with |for .*:$)")
_TRACE = re.compile(
    r"Traceback \(most recent call last\)|^\s*File \"|^(?:[\w.]+\.)?\w*(?:Error|Exception)\b(?::|$)"
)


@dataclass(frozen=True, slots=True)
class ProgramRepair:
    """A repaired text, the note about it, and output that was set aside."""

    text: str
    fix: ScriptFix
    shown: tuple[tuple[int, str], ...] = ()


def next_repair(text: str, error: SyntaxError) -> ProgramRepair | None:
    """The repair that answers the parser's complaint, or None when none is plainly right."""
    lines = text.split("\n")
    at = min(max((error.lineno or 1) - 1, 0), len(lines) - 1)
    return (
        _print_statements(lines, error.msg or "")
        or _full_stop(lines, at)
        or _remark(lines, at)
        or _prose(lines, at)
        or _tail(lines, at)
        or _placeholder(lines, at)
        or _empty_body(lines, error.msg or "")
        or (_shift(lines, at) if isinstance(error, IndentationError) else None)
    )


def _repaired(lines: list[str], what: str, why: str) -> ProgramRepair:
    return ProgramRepair("\n".join(lines), ScriptFix(what=what, why=why))


_PRINT = re.compile(r"^(?P<before>\s*(?:[^#'\"\n]*[:;]\s*)?)print[ \t]+(?P<what>[^=>\s(].*?),?\s*$")


def _print_statements(lines: list[str], message: str) -> ProgramRepair | None:
    """Write the print statements of Python 2 as calls."""
    if not message.startswith("Missing parentheses in call to 'print'"):
        return None
    matches = [_PRINT.match(line) if len(line) < _LONGEST_BARE else None for line in lines]
    calls = [
        f"{match['before']}print({match['what']})" if match else line
        for line, match in zip(lines, matches, strict=True)
    ]
    what = "wrote the print statements as calls"
    return _repaired(calls, what, "the program is written for Python 2") if any(matches) else None


_STOPPED = re.compile(r"^(?P<code>[^#\n]*[)\]])\.+(?P<rest>\s*(?:#.*)?)$")


def _full_stop(lines: list[str], at: int) -> ProgramRepair | None:
    """Remove the mark that ends a sentence, not a statement: `f(x).  # works`."""
    for place in (at, at - 1):
        match = _STOPPED.match(lines[place]) if place >= 0 else None
        if match and pasted_tree(match["code"].strip()) is not None:
            line = match["code"] + match["rest"]
            what = f"removed the full stop after `{match['code'].strip()[:100]}`"
            new_lines = [*lines[:place], line, *lines[place + 1 :]]
            return _repaired(new_lines, what, "it ends a sentence, not a statement")
    return None


_REMARKED = re.compile(
    r"^(?P<code>\s*\S.{2,300}?[)\]])\s*"
    r"(?P<note>(?:<[<=-]+|[=-]+>|[\u2190\u2192])\s*\S.{0,200}"
    r"|(?<=\s)(?:raises|throws|fails|crashes|breaks|hangs|works|gives|returns|errors)\b.{0,200})$"
)


def _with_remark(line: str) -> str:
    """A line of code with what is said beside it as a comment: `f(x) -> IndexError`, `f(x) raises
    an error`; "" for any other line.
    """
    match = _REMARKED.match(line) if len(line) < _LONGEST_BARE else None
    tree = pasted_tree(match["code"].strip()) if match else None
    is_statement = tree is not None and any(isinstance(node, ast.Call) for node in ast.walk(tree))
    if match is None or not is_statement or pasted_tree(line.strip()) is not None:
        return ""
    return f"{match['code']}  # {match['note']}"


def _remark(lines: list[str], at: int) -> ProgramRepair | None:
    """Make a comment of what is said beside the statement on the line of the complaint."""
    for place in (at, at - 1):
        if place >= 0 and (line := _with_remark(lines[place])):
            what = f"turned the words in `{lines[place].strip()[:100]}` into a comment"
            new_lines = [*lines[:place], line, *lines[place + 1 :]]
            return _repaired(new_lines, what, "they are about the statement, not a part of it")
    return None


def _prose(lines: list[str], at: int) -> ProgramRepair | None:
    """Comment out the sentence at or next to the line of the complaint."""
    for first in (at, at - 1, at + 1):
        if 0 <= first < len(lines) and _is_sentence(lines[first]):
            rest = range(first, len(lines))
            end = next((i for i in rest if not _is_sentence(lines[i])), len(lines))
            comments = [f"{line[: indent_of(line)]}# {line.strip()}" for line in lines[first:end]]
            what = f"commented out: {lines[first].strip()[:120]}"
            new_lines = [*lines[:first], *comments, *lines[end:]]
            return _repaired(new_lines, what, "a sentence, not code")
    return None


def _is_sentence(line: str) -> bool:
    return is_prose(line) and not is_label(line)


def _tail(lines: list[str], at: int) -> ProgramRepair | None:
    """Set aside output that was pasted below the code."""
    near = range(max(0, at - 1), min(len(lines), at + 2))
    label = next((i for i in near if is_label(lines[i])), None)
    cut = _start_of_output(lines, at) if label is None else label
    head, rest = "\n".join(lines[:cut]).rstrip(), lines[cut:]
    tree = pasted_tree(head)
    if not cut or tree is None or evidence(tree) != "strong":
        return None
    if any(map(_CODE_AGAIN.match, rest)) and not any(map(_is_trace, rest)):
        return None
    has_label = is_label(rest[0])
    output = "\n".join(rest[has_label:]).strip("\n")
    fix = ScriptFix(what="removed output below the code", why="it is what the program printed")
    return ProgramRepair(head, fix, ((cut + has_label, output),) if output.strip() else ())


def _is_trace(line: str) -> bool:
    """Whether a line is part of a traceback, or names an exception."""
    return bool(_TRACE.search(line) or match_exception_line(line))


def _start_of_output(lines: list[str], at: int) -> int | None:
    """Where the run of output lines around a line begins."""
    traces = (i for i, line in enumerate(lines) if _is_trace(line))
    trace = next((i for i in traces if not lines[i].lstrip().startswith("#")), None)
    if trace is not None and trace <= at + 1:
        return trace
    rest = [line for line in lines[at:] if line.strip()]
    output = sum(is_output(line) or is_prose(line) for line in rest)
    if not any(map(is_output, lines[at : at + 2])) or output < 0.6 * len(rest):
        return None
    while at > 0 and is_output(lines[at - 1]) and _not_code(lines[at - 1]):
        at -= 1
    return at


def _not_code(line: str) -> bool:
    tree = pasted_tree(line.strip())
    return bool(line.strip()) and (tree is None or evidence(tree) == "none")


def _placeholder(lines: list[str], at: int) -> ProgramRepair | None:
    """`def f(self, ...)` as people write when the arguments do not matter."""
    if not _DEF.match(lines[at]) or not _ELLIPSIS_ARGUMENT.search(lines[at]):
        return None
    arguments = " *args, **kwargs" if "(..." not in lines[at] else "*args, **kwargs"
    line = _ELLIPSIS_ARGUMENT.sub(arguments, lines[at], count=1)
    what = "`...` among parameters became *args, **kwargs"
    return _repaired([*lines[:at], line, *lines[at + 1 :]], what, "an ellipsis is not a parameter")


def _first_code(lines: Iterable[str]) -> str:
    """The first line that is neither blank nor a comment, or ""."""
    return next((line for line in lines if line.strip() and not line.lstrip().startswith("#")), "")


def _empty_body(lines: list[str], message: str) -> ProgramRepair | None:
    """Add `pass` to a definition without a body, before another definition or the end."""
    header = re.search(r"expected an indented block.*on line (\d+)", message)
    if not header:
        return None
    opener = min(int(header[1]), len(lines)) - 1
    depth, following = indent_of(lines[opener]), _first_code(lines[opener + 1 :])
    if following and not (_OPENER.match(following) and indent_of(following) <= depth):
        return None
    codes = enumerate((line.split("#")[0].rstrip() for line in lines[opener:]), opener + 1)
    end = next((after for after, code in codes if code.endswith(":")), opener + 1)
    new_lines = [*lines[:end], " " * (depth + 4) + "pass", *lines[end:]]
    return _repaired(new_lines, "added `pass`", "a definition had no body")


def _shift(lines: list[str], at: int) -> ProgramRepair | None:
    """Move a stretch back to a margin that the lines before it use."""
    depth, before = indent_of(lines[at]), indent_of(_first_code(reversed(lines[:at])))
    indents = {indent_of(line) for line in lines[:at] if line.strip()} | {0}
    nearest = min(indents, key=lambda level: (abs(level - depth), level))
    target = before if depth > before else nearest
    if target == depth:
        return None
    new_lines = [*lines]
    for i in range(at, len(lines)):
        indent = indent_of(lines[i])
        if lines[i].strip() and indent < min(depth, target + 1):
            break
        if lines[i].strip():
            new_lines[i] = " " * max(0, indent + target - depth) + lines[i].lstrip()
    return _repaired(new_lines, "fixed the indentation", "lines were not aligned")


def echoes(text: str, tree: ast.Module) -> tuple[str, tuple[tuple[int, str], ...]]:
    """Comment out values pasted among the code, such as `tensor([1.])`; returns them as well."""
    if not any(isinstance(node, ast.Expr) for node in tree.body) or evidence(tree) != "strong":
        return text, ()
    names, lines = bound_names(tree), text.split("\n")
    echo_list: list[tuple[int, str]] = []
    for before, node in pairwise(tree.body):
        if not isinstance(node, ast.Expr) or not _is_echo(node.value, names):
            continue
        first, end = node.lineno - 1, node.end_lineno or node.lineno
        echo_list.append((first, "\n".join(lines[first:end])))
        plain = isinstance(before, ast.Expr) and not is_call_of(before.value, "print")
        if plain and before.lineno == before.end_lineno:
            lines[before.lineno - 1] = f"print(repr({lines[before.lineno - 1].strip()}))"
        lines[first:end] = ["# " + line for line in lines[first:end]]
    return "\n".join(lines), tuple(echo_list)


def _is_echo(node: ast.expr, names: frozenset[str]) -> bool:
    name_node = node.func if isinstance(node, ast.Call) and is_repr(node) else node
    fits = name_node is not node or getattr(name_node, "id", "") in {"nan", "inf"}
    return isinstance(name_node, ast.Name) and fits and name_node.id not in names


# Makes a pasted program parse again, notes every change, and sets aside what is no program.

_PYTEST = re.compile(r"^[ \t]*E {3,}\S", re.M)
_LINE_NUMBER = re.compile(r"^\s{0,6}(\d{1,4})(?:[:|.)]|\s|$)\s?(.*)$")


@dataclass(frozen=True, slots=True)
class Cleaned:
    """A text after its repairs; `shown` are outputs found in it, by 0-based line of the block."""

    text: str
    fixes: tuple[ScriptFix, ...] = ()
    shown: tuple[tuple[int, str], ...] = ()
    installs: tuple[str, ...] = ()
    evidence: Evidence = "none"
    parses: bool = False
    transcript: bool = False


def clean(raw: str, patience: int = 30) -> Cleaned:
    """Repair what pasting has damaged. A text that is no program comes back without evidence."""
    promising = looks_like(raw) or "In [" in raw or "In[" in raw
    if _PYTEST.search(raw) or not raw.strip() or len(raw) > LONGEST_PASTED or not promising:
        return Cleaned(raw)
    session = python.parse_transcript(raw)
    state = Cleaned(raw)
    if session:
        state = Cleaned(session.code, session.fixes, session.shown, transcript=True)
    state = _dedent(_take_commands(state))
    for step in (_typography, _line_numbers, _tabs, partial(_repair, patience=patience)):
        if pasted_tree(state.text) is None:
            state = step(state)
    tree = pasted_tree(state.text)
    return state if tree is None else _with_tree(state, tree)


def _with_tree(state: Cleaned, tree: ast.Module) -> Cleaned:
    text, printed_lines = echoes(state.text, tree)
    why = "values appear between the lines of code"
    state = _with_fix(state, text, "commented out pasted output", why)
    strength = evidence(pasted_tree(text) or tree)
    return replace(state, shown=(*state.shown, *printed_lines), evidence=strength, parses=True)


def _with_fix(state: Cleaned, text: str, what: str, why: str) -> Cleaned:
    """The state with another text, and a note about it if it is another."""
    if text == state.text:
        return state
    return replace(state, text=text, fixes=(*state.fixes, ScriptFix(what=what, why=why)))


def _take_commands(state: Cleaned) -> Cleaned:
    """Comment out commands for the shell or the notebook."""
    if not re.search(r"^[^\S\n]*+[!%$]|\b(?:pip|conda|apt)\b", state.text, re.M):
        return state
    lines = state.text.split("\n")
    requirements: list[str] = []
    commands: list[str] = []
    text_lines = _within_text(lines)
    for i, line in enumerate(lines):
        if i in text_lines:
            continue
        requirements_in_line = requirements_of(line)
        if requirements_in_line is not None or (is_magic(line) and not _continues(lines, i)):
            requirements += requirements_in_line or ()
            commands.append(line.strip())
            lines[i] = f"{line[: indent_of(line)]}# {line.strip()}"
    what = "commented out " + "; ".join(commands[:3])[:200]
    why = "a command for the notebook or the shell, not Python"
    state = _with_fix(state, "\n".join(lines), what, why)
    return replace(state, installs=tuple(dict.fromkeys(requirements)))


def _within_text(lines: list[str]) -> set[int]:
    """The lines that begin inside a string of several lines: a grammar, a query, a template."""
    lines_in_text, open_quotes = set[int](), ""
    for at, line in enumerate(lines):
        lines_in_text |= {at} if open_quotes else set()
        for quotes in re.findall(r"\"{3}|'{3}", line):
            open_quotes = "" if open_quotes == quotes else open_quotes or quotes
    return lines_in_text


def _continues(lines: list[str], at: int) -> bool:
    """Whether a line that begins with % goes on with the expression before it."""
    before = lines[at - 1].rstrip() if at else ""
    return lines[at].lstrip().startswith("%") and before.endswith(("(", ",", "\\"))


def _dedent(state: Cleaned) -> Cleaned:
    has_mixed_indent = "\t" in state.text and pasted_tree(state.text) is None
    text = textwrap.dedent(state.text.expandtabs(4) if has_mixed_indent else state.text).rstrip()
    after, before = text.split("\n"), state.text.rstrip().split("\n")
    if [line.rstrip() for line in after] == [line.rstrip() for line in before]:
        return replace(state, text=text)
    return _with_fix(state, text, "removed the common indentation", "the whole block was indented")


def _typography(state: Cleaned) -> Cleaned:
    why = "typographic characters are not Python"
    return _with_fix(
        state, plain_typography(state.text), "replaced typographic quotes and spaces", why
    )


def _line_numbers(state: Cleaned) -> Cleaned:
    rows = [_LINE_NUMBER.match(line) for line in state.text.split("\n")]
    numbers = [int(row[1]) for row in rows if row]
    line_count = sum(bool(line.strip()) for line in state.text.split("\n"))
    if len(numbers) < 3 or len(numbers) != line_count or numbers != sorted(set(numbers)):
        return state
    text = textwrap.dedent("\n".join(row[2] if row else "" for row in rows)).strip("\n")
    return _with_fix(state, text, "removed line numbers", "each line began with its number")


def _tabs(state: Cleaned) -> Cleaned:
    text = state.text.expandtabs(4)
    is_parsed = pasted_tree(text) is not None
    return (
        _with_fix(state, text, "tabs to spaces", "tabs and spaces were mixed")
        if is_parsed
        else state
    )


def _repair(state: Cleaned, patience: int) -> Cleaned:
    """Follow the parser's complaints, one small repair at a time."""
    current, texts = state, {state.text}
    for _ in range(patience):
        error = attempt(current.text)
        if not isinstance(error, SyntaxError):
            whole = error is not None and _mostly_code(current.text, state.text)
            return current if whole else state
        repair = next_repair(current.text, error)
        if repair is None or repair.text in texts:
            return state
        texts.add(repair.text)
        fixes = tuple(dict.fromkeys((*current.fixes, repair.fix)))
        echoes = (*current.shown, *repair.shown)
        current = replace(current, text=repair.text, fixes=fixes, shown=echoes)
    return state


def _mostly_code(after: str, before: str) -> bool:
    """Whether a repair kept more lines than it commented out; else the text was mostly prose."""
    original = {line.strip() for line in before.split("\n")}
    lines = [line.strip() for line in after.split("\n") if line.strip()]
    silenced = sum(line.startswith("#") and line not in original for line in lines)
    return 2 * silenced <= len(lines)
