"""What a report and its program show as right: the values of a reference library, and those under
a label or a name such as `expected`. They are no part of a failure.
"""

import ast
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from bot.issues.signature import data_flow, values
from bot.kernel.plain_text import VALUE, bare
from bot.kernel.source.syntax import dotted, is_call_of, module_of, name_of, nodes, statements

# Words that call a value right or wrong.

_LIBRARY = r"(?:numpy|np|scipy|math)\b(?:\.\w+)*"
_RIGHT_NAME = (
    r"(?:expected|reference|ref|target|ground[ _-]?truth|gt|truth|golden|should be|want(?:ed)?)"
)
_WRONG = re.compile(
    r"(?:\b(?:bugs?|buggy|wrong|incorrect|unexpected|bad|broken)"
    r"|(?:\bnot|n't) (?:as )?(?:correct|expected|right|fine|ok))\b|\u274c",
    re.I,
)
_RIGHT = re.compile(
    r"\b(?:correct(?:ly)?|expected|right|as it should|fine|ok|good|reference|ground truth"
    rf"|{_LIBRARY})\b|\u2705",
    re.I,
)
_MARKED = re.compile(
    rf"^(?P<value>{VALUE})\s*(?:<+[-=]*|[-=]+>?|[,;:(\u2190]|$|\s)\s*(?P<words>\D[^\n]{{0,60}}?)?[).!]*$",
    re.I,
)
_MARKED_BEFORE = re.compile(rf"^(?P<words>[^\d\n:]{{2,30}}):\s*(?P<value>{VALUE})[.!]?$", re.I)

Mark = Literal["right", "wrong", ""]


def mark(words: str) -> Mark:
    """What a remark calls a value; "" where it calls it neither, or both."""
    wrong, right = bool(_WRONG.search(words)), bool(_RIGHT.search(_WRONG.sub("", words)))
    return "" if wrong is right else "wrong" if wrong else "right"


def marked_value(note: str) -> tuple[str, Mark]:
    """The value that a comment states and what it calls that value: `inf  <- correct`."""
    match = _MARKED.match(note) or _MARKED_BEFORE.match(note)
    return (bare(match["value"]), mark(match["words"] or "")) if match else ("", "")


_SUBJECT = re.compile(
    rf"(?<!unlike )(?<!than )(?<!from )(?<!to )(?<!with )(?<!of )`?\b(?:{_LIBRARY}|the reference"
    r"(?: implementation)?)(?:\([^()]{0,40}\))?`?\s+(?:correctly |also |itself |just |already )?$",
    re.I,
)


def is_about_reference(before: str, home: str = "") -> bool:
    """Whether words before a verb make a reference library its subject: "NumPy returns". `home` is
    the library that the report is about.
    """
    return home not in NUMERIC and bool(_SUBJECT.search(before))


def claims_right(sentence: str, kind: Literal["nan", "inf"]) -> bool:
    """Whether a sentence calls a non-finite value what is right: "NumPy returns inf"."""
    value = r"nans?" if kind == "nan" else r"-?inf(?:s|inity)?"
    turns = r"\b(?:but|and|or|got|gets?|while|whereas|not|never|rather|instead)\b|n't"
    between = rf"(?:(?!{turns})[^.,;]){{0,40}}?"
    subject = rf"(?:{_LIBRARY}|(?:the )?(?:reference|ground truth|target))"
    return any(
        re.search(pattern, sentence, re.I)
        for pattern in (
            rf"\b(?:should|expect(?:ed|s)?|supposed to|correctly|must)\b{between}\b{value}\b",
            rf"(?<!unlike )(?<!than )(?<!compared to )(?<!from )\b{subject}{between}\b{value}\b",
            rf"\b{value}\b`?[^.,;]{{0,20}}\b(?:as|like|in|from|with)\s+(?:in |does )?`?{subject}",
        )
    )


# Labelled lines of a pasted output.

_LABEL_OF_LIBRARY = re.compile(rf"^\W*(?:with |in |from |using )?{_LIBRARY}", re.I)
_LABEL_OF_RIGHT = re.compile(rf"^\W*(?:the )?(?:{_RIGHT_NAME}|correct)\b", re.I)
_LABELLED_LINE = re.compile(
    rf"^\W*(?:the )?(?:(?:with |in |from |using )?{_LIBRARY}|{_RIGHT_NAME}|correct)"
    r"(?:[ _](?:outputs?|results?|values?|gives|says|returns))?\s{0,8}[:=]\s*(?P<value>\S.*)$",
    re.I,
)
_OTHER_WORDS = re.compile(r"\b(?:got|actual|ours?|observed|vs|but|torch|jax|tf)\b", re.I)
NUMERIC = frozenset({"numpy", "scipy", "math", "mpmath", "statistics", "cmath", "np"})
"""Libraries that another one's values are compared with."""


def is_labelled_right(line: str, home: str) -> bool:
    """Whether a printed line has a label such as `expected:` or `numpy:`, and no other value.
    `home` is the library that the report is about.
    """
    match = _LABELLED_LINE.match(line) if len(line) < 1000 else None
    foreign = home not in NUMERIC or not _LABEL_OF_LIBRARY.match(line)
    return bool(match and foreign and not _OTHER_WORDS.search(line))


def lines_left(lines: Sequence[str], home: str) -> list[bool]:
    """For each line whether it is left when those of right values are taken out, with the lines
    over which such an array goes on.
    """
    left, is_right, depth = list[bool](), False, 0
    for line in lines:
        is_right = is_right if depth else is_labelled_right(line, home)
        depth = _depth_after(line, depth)
        left.append(not is_right)
    return left


def _depth_after(line: str, depth: int) -> int:
    """How many brackets are open after a line: an array goes on over several."""
    return max(0, depth + sum(map(line.count, "[(")) - sum(map(line.count, "])")))


# Prints of a program.

_FRAMEWORKS = frozenset(
    {"torch", "tensorflow", "jax", "keras", "paddle", "mxnet", "cupy", "flax", "sklearn", "pandas"}
)
_INPUTS = {
    *("array", "asarray", "zeros", "ones", "arange", "linspace", "full", "eye", "empty", "rand"),
    *("randn", "randint", "normal", "uniform", "random", "default_rng", "RandomState", "seed"),
    *("manual_seed", "PRNGKey", "key", "tensor", "as_tensor", "from_numpy", "constant"),
    *("standard_normal", "integers", "choice", "split", "zeros_like", "ones_like", "Generator"),
    *("float32", "float64", "float16", "int32", "int64", "convert_to_tensor", "Series"),
    *("DataFrame", "set_printoptions"),
}
_FORMS = {
    *("item", "tolist", "detach", "cpu", "numpy", "float", "int", "round", "list", "repr", "str"),
    *("asarray", "array", "to", "astype", "squeeze", "flatten", "reshape", "map", "ravel"),
    "double",
}
_CHECKS = {
    *("allclose", "isclose", "array_equal", "equal", "all", "any", "isnan", "isfinite", "isinf"),
    *("isinstance", "hasattr", "max_abs_diff", "is_nan", "is_inf"),
}
_LONGEST = 20_000
"""Characters of a program that is analysed; the data flow of longer ones takes too long."""
_NAMED_RIGHT = re.compile(
    r"^(?:expected|reference|ref|target|gt|ground_?truth|truth|golden)(?:_(?:out|output|result|value"
    r"|val|res|y|values|outputs|results)s?)?\d?$|^\w{1,20}_(?:expected|reference|ref|gt|true)$",
    re.I,
)
_NAMED_LIBRARY = re.compile(r"^(?:numpy|np|scipy)(?:_\w+)?$|_(?:numpy|np|scipy)$", re.I)


@dataclass(frozen=True, slots=True)
class Print:
    """A print of a program: its code, the words its line begins with and those before each of its
    values, whether all that it shows is right, and whether it stands at the top level.
    """

    code: str
    label: str
    labels: tuple[str, ...]
    is_right: bool
    is_plain: bool


@lru_cache(maxsize=128)
def prints_of(source: str, home: str = "") -> tuple[Print, ...]:
    """The prints of a program in the order of its text, those of bare expressions too."""
    tree = module_of(source if len(source) <= _LONGEST else "")
    if not any(is_call_of(node, "print") for node in ast.walk(tree)):
        return ()
    origins = _Origins(tree, home)
    calls = (
        (node.value, node in tree.body)
        for node in statements(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
        if is_call_of(node.value, "print") and node.value.args
    )
    ordered = sorted(calls, key=lambda row: (row[0].lineno, row[0].col_offset))
    return tuple(
        Print(
            code=_code(ast.unparse(call)),
            label=label_of(call),
            labels=tuple(_labels_of(call)),
            is_right=origins.is_right(call),
            is_plain=is_top and not call.keywords and "\\n" not in ast.unparse(call),
        )
        for call, is_top in ordered
    )


def right_code(source: str, home: str) -> frozenset[str]:
    """The prints of right values in a program, and what a transcript shows them for."""
    rows = [row.code for row in prints_of(source, home) if row.is_right]
    inner = (re.sub(r"^print\((?:repr\((.*)\)|(.*))\)$", r"\1\2", row) for row in rows)
    return frozenset((*rows, *inner))


def is_code_of(line: str, codes: frozenset[str]) -> bool:
    """Whether a line of a program is one of these pieces of code."""
    plain = re.sub(r"^\s*(?:>>> ?|In ?\[[\d ]*\]: ?)?", "", line)
    body = module_of(plain).body if codes else []
    return len(body) == 1 and _code(ast.unparse(body[0])) in codes


def _code(text: str) -> str:
    return " ".join(text.split())


def label_of(call: ast.Call) -> str:
    """The literal words that a print's line begins with."""
    first = call.args[0]
    first = first.left if isinstance(first, ast.BinOp) else first
    first = first.values[0] if isinstance(first, ast.JoinedStr) and first.values else first
    text = first.value if isinstance(first, ast.Constant) else ""
    return re.split(r"[{%\n]", text)[0].strip() if isinstance(text, str) else ""


def _labels_of(call: ast.Call) -> Iterator[str]:
    """The literal words of a print that have a letter."""
    for argument in call.args:
        parts = argument.values if isinstance(argument, ast.JoinedStr) else [argument]
        for part in parts:
            text = part.value if isinstance(part, ast.Constant) else ""
            if isinstance(text, str) and (label := text.strip(" ,;:=()|\t\n")):
                yield from [label] if re.search(r"[A-Za-z]", label) else []


def stretches(label: str, line: str, labels: Sequence[str]) -> Iterator[str]:
    """What a line shows under a label: up to the next of the labels, from each place where it
    stands.
    """
    others = "|".join(re.escape(other) for other in labels if other != label)
    for match in re.finditer(rf"(?<!\w){re.escape(label)}(?!\w)", line):
        rest = line[match.end() :]
        following = re.search(rf"(?<!\w)(?:{others})(?!\w)", rest) if others else None
        yield rest[: following.start()] if following else rest


class _Origins:
    """Which names of a program hold what the library in question computed, and which another's."""

    def __init__(self, tree: ast.Module, home: str) -> None:
        imported = {name: root for node in ast.walk(tree) for name, root in _imports(node)}
        roots = set(imported.values())
        references = NUMERIC if home not in NUMERIC else frozenset[str]()
        if home in _FRAMEWORKS | NUMERIC and home in roots:
            references |= (_FRAMEWORKS | NUMERIC) - {home, "jax" if home == "flax" else ""}
        own = {name for name, root in imported.items() if root not in references}
        flows = [
            *data_flow.assignment_flows(tree),
            *data_flow.block_flows(tree),
            *data_flow.call_flows(tree),
        ]
        holders = own | data_flow.tainted_names(flows, lambda node: _is_name(node, own))
        others = set(imported) - own
        other_holders = others | data_flow.tainted_names(flows, lambda node: _is_name(node, others))
        self._own = holders
        self._others = other_holders - holders
        flows += _use_flows(tree)
        self._own_results = data_flow.tainted_names(flows, self._computes)
        assignments = data_flow.assignment_flows(tree)
        self._other_results = data_flow.tainted_names(assignments, self._refers)
        self._is_compared = bool(own and others) and any(map(self._computes, ast.walk(tree)))

    def _computes(self, node: ast.AST) -> bool:
        return _is_computing_call(node, self._own)

    def _refers(self, node: ast.AST) -> bool:
        return _is_computing_call(node, self._others)

    def is_right(self, call: ast.Call) -> bool:
        """Whether all the values of a print are right, by what computed them, by their names or by
        the label before them.
        """
        value_nodes = [part for argument in call.args for part in _values_in(argument)]
        text = " ".join(
            str(node.value) for node in nodes(call, ast.Constant) if isinstance(node.value, str)
        )
        if not value_nodes or any(map(_is_check, value_nodes)) or _OTHER_WORDS.search(text):
            return False
        label = label_of(call)
        if _LABEL_OF_RIGHT.match(label) and not label.lower().lstrip().startswith("correct"):
            return True
        labelled = bool(_LABEL_OF_LIBRARY.match(label) or _LABEL_OF_RIGHT.match(label))
        return all(self._is_right_value(value, is_labelled=labelled) for value in value_nodes)

    def _is_right_value(self, value: ast.expr, *, is_labelled: bool) -> bool:
        name = _name_in(value)
        if _NAMED_RIGHT.match(name):
            return True
        if data_flow.depends_on(value, self._computes, self._own_results):
            return False
        is_reference = data_flow.depends_on(value, self._refers, self._other_results)
        return (
            is_labelled or (self._is_compared and is_reference) or bool(_NAMED_LIBRARY.search(name))
        )


def _imports(node: ast.AST) -> Iterator[tuple[str, str]]:
    """The names that a statement imports, each with the package that it comes from."""
    for alias in node.names if isinstance(node, ast.Import | ast.ImportFrom) else ():
        module = (node.module or "") if isinstance(node, ast.ImportFrom) else alias.name
        root, bound = module.partition(".")[0], alias.asname or alias.name.partition(".")[0]
        if root in NUMERIC or root not in sys.stdlib_module_names:
            yield bound, root


def _use_flows(tree: ast.Module) -> Iterator[data_flow.Flow]:
    """What calls whose result is not used may change: what they are given, and what they are a
    method of.
    """
    for node in nodes(tree, ast.Expr):
        call = node.value
        if isinstance(call, ast.Call) and not is_call_of(call, "print"):
            names = set[str]().union(*map(data_flow.names_in, call.args))
            owner = data_flow.names_in(call.func)
            yield names | owner, call


def _is_name(node: ast.AST, names: set[str]) -> bool:
    return isinstance(node, ast.Name) and node.id in names


def _is_computing_call(node: ast.AST, names: set[str]) -> bool:
    """Whether a call computes something with these names, and does not just make or convert an
    array.
    """
    if not isinstance(node, ast.Call) or name_of(node.func) in _INPUTS | _FORMS:
        return False
    base: ast.AST = node.func
    while isinstance(base, ast.Attribute | ast.Call | ast.Subscript):
        base = base.func if isinstance(base, ast.Call) else base.value
    return isinstance(base, ast.Name) and base.id in names


def _values_in(argument: ast.expr) -> Iterator[ast.expr]:
    """The values in an argument of a print, without its words."""
    if isinstance(argument, ast.JoinedStr):
        yield from (part.value for part in argument.values if isinstance(part, ast.FormattedValue))
    elif not isinstance(argument, ast.Constant) or not isinstance(argument.value, str):
        yield argument


def _is_check(value: ast.expr) -> bool:
    """Whether a value says how two others compare."""
    is_call = isinstance(value, ast.Call) and name_of(value.func) in _CHECKS
    return is_call or any(
        isinstance(node, ast.Compare | ast.BoolOp | ast.Not | ast.Sub) for node in ast.walk(value)
    )


def _name_in(value: ast.expr) -> str:
    """The name whose value is shown, in whatever form."""
    while True:
        match value:
            case ast.Call(func=ast.Attribute(value=inner, attr=attr)) if attr in _FORMS:
                value = inner
            case ast.Call(func=ast.Name(id=form), args=[inner, *_]) if form in _FORMS:
                value = inner
            case ast.Subscript(value=inner):
                value = inner
            case _:
                return dotted(value)


# Which printed lines are those of right values.


def right_lines(source: str, output: Sequence[str]) -> tuple[frozenset[int], frozenset[int]]:
    """The printed lines, by their place, that show what is right, and those that may show it: by
    the labels of the program's prints, or by their order where each prints one line.
    """
    prints = prints_of(source)
    if not any(row.is_right for row in prints):
        return frozenset(), frozenset()
    if len(prints) == len(output) and all(map(_fits, prints, output)):
        return frozenset(at for at, row in enumerate(prints) if row.is_right), frozenset()
    right, unsure, sides, depth = set[int](), set[int](), {False}, 0
    for at, line in enumerate(output):
        sides = sides if depth else _sides(line, prints)
        depth = _depth_after(line, depth)
        if True in sides:
            (unsure if False in sides else right).add(at)
    return frozenset(right), frozenset(unsure)


def _fits(row: Print, line: str) -> bool:
    return row.is_plain and line.startswith(values.clean(row.label))


def _sides(line: str, prints: Sequence[Print]) -> set[bool]:
    """Whether the prints that a line may come from show what is right."""
    labelled = [row for row in prints if row.label and line.startswith(values.clean(row.label))]
    longest = max((len(row.label) for row in labelled), default=0)
    rows = [row for row in labelled if len(row.label) == longest] or [
        row for row in prints if not row.label
    ]
    return {row.is_right for row in rows} or {False}
