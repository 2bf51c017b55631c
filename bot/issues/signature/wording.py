"""Comparing the words of two error messages: tolerant where wording varies, strict where it
is the failure.
"""

import posixpath
import re
from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import pairwise

from bot.kernel.bug import WarningSignature

# How versions of Python word one and the same error. Reports come from other versions than the
# one that runs the program, so both messages are brought to one wording before they are compared.
#
# Source: the messages of Python 3.8 to 3.14; those of 3.11 and 3.13 were recorded side by side
# (`tests/corpus/interpreters`).

_NAME = r"('[^']{1,200}')"
_TABLE = [
    # What `traceback` adds after the message, from 3.10 on; an exception's own text lacks it.
    (rf"[.:]? (?:Or )?[Dd]id you (?:mean|forget to import):? {_NAME}\?(?=\s|$)", ""),
    (
        r" \((?:most likely due to a circular import|consider renaming [^)]{1,300})\)",
        "",
    ),
    (r" and no __dict__ for setting new attributes", ""),
    (
        rf"cannot access local variable {_NAME} where it is not associated with a value",
        r"local variable \1 referenced before assignment",
    ),
    (
        rf"cannot access free variable {_NAME} where it is not associated with a value",
        r"free variable \1 referenced before assignment",
    ),
    (r"\b(max|min)\(\) iterable argument is empty", r"\1() arg is an empty sequence"),
    (
        rf"{_NAME} is an invalid keyword argument for (\w+\(\))",
        r"\2 got an unexpected keyword argument \1",
    ),
    (
        r"\b(\w+)\(\) takes at most (\d+) arguments? \((\d+) given\)",
        r"\1 expected at most \2 arguments, got \3",
    ),
    (r"\bCan't pickle local object\b", "Can't get local object"),
    (r"cannot pickle '(?:_io\.)?(\w+)' instances", r"cannot pickle '\1' object"),
    (r"cannot pickle '_io\.", "cannot pickle '"),
    (r"without an implementation for abstract", "with abstract"),
    (r"\bglobal name (?='\w)", "name "),
    (r"(?<=default argument) '\w+'(?! follows)", ""),
    (
        r"a bytes-like object or a number, not|a bytes-like object or a real number, not",
        "a bytes-like object or a real number, not",
    ),
    (r"must be a string or a number, not", "must be a string or a real number, not"),
    (r"\bcan't set attribute(?: '\w+')?$", "property has no setter"),
    (r"property (?:'\w+' )?of '[^']+' object has no setter", "property has no setter"),
    (r"\btype '(\w+)' is not subscriptable", "'type' object is not subscriptable"),
    (rf"cannot use {_NAME} as an? [\w ]+ \((unhashable type: {_NAME})\)", r"\2"),
    (
        r"\b(?:float (?:floor )?|integer )?(?:division or modulo|division|modulo) by zero",
        "division by zero",
    ),
    (r"(?<=too many values to unpack) \(expected (\d+), got \d+\)", r" (expected \1)"),
    (r"expected a (?:nonnegative|positive|finite) input, got \S+", "math domain error"),
    (r"expected a number between -1 and 1, got \S+", "math domain error"),
    (r" OR one path is relative and the other is absolute\.?", ""),
    (r"(string indices must be integers), not '?\w+'?", r"\1"),
    (r"(?<!\w)u(?=['\"])", ""),
    (r"can't delete attribute(?: '\w+')?$", "property has no deleter"),
    (r"property (?:'\w+' )?of '[^']+' object has no deleter", "property has no deleter"),
    (
        r"arg 2 must be a type, a tuple of types,? or a union",
        "arg 2 must be a type or tuple of types",
    ),
    (
        rf"can't set attributes of built-in/extension type {_NAME}",
        r"cannot set attribute of immutable type \1",
    ),
    (r"cannot set '\w+' attribute of immutable type", "cannot set attribute of immutable type"),
    (
        r"integer argument expected, got (\w+)$|an integer is required \(got type (\w+)\)",
        r"'\1\2' object cannot be interpreted as an integer",
    ),
    (r"\bfloat divmod\(\)|\bfloat modulo$", "division by zero"),
    (
        r"Illegal trailing comma before end of object",
        "Expecting property name enclosed in double quotes",
    ),
    (r"Illegal trailing comma before end of array", "Expecting value"),
    (r"(?<=argument of type )('\w+' is not) a container or iterable", r"\1 iterable"),
    (rf"{_NAME} object can't be awaited", r"object \1 can't be used in 'await' expression"),
    (
        r"obj \([^)]{1,200}\) is not an instance or subtype of type \([^)]{1,200}\)\.?",
        "obj must be an instance or subtype of type",
    ),
]  # fmt: skip
# The same of PyTorch, whose old releases cannot be had for a modern Python.
_SCALAR = r"(?:scalar )?type (?:torch\.)?(\w+?)(?:Tensor)?\b"
_TORCH_TABLE: list[tuple[str, str]] = [
    (
        r"\bsize mismatch, m1: \[(\d+) x (\d+)\], m2: \[(\d+) x (\d+)\](?: at \S+)?",
        r"mat1 and mat2 shapes cannot be multiplied (\1x\2 and \3x\4)",
    ),
    (r"(invalid index of a 0-dim tensor)\. Use [^\n]{1,200}", r"\1"),
    (
        rf"Expected object of {_SCALAR} but (?:got|found) {_SCALAR}(?: for [^\n]{{0,200}})?",
        r"expected scalar type \1 but found \2",
    ),
    (
        r"to have (?:one of the following scalar types: [\w, ]{1,80}|scalar type \w+)(?=; but got)",
        "to have another scalar type",
    ),
    (r"\bbool value of Tensor\b", "Boolean value of Tensor"),
    (r"(?:0D or 1D target tensor expected, )?(multi-target not supported)(?: at \S+)?", r"\1"),
]  # fmt: skip
_REWORDINGS = [(re.compile(pattern), plain) for pattern, plain in (*_TABLE, *_TORCH_TABLE)]
_NAME_LIST = re.compile(r"(abstract methods? )((?:'?\w+'?(?:, )?)+)")

_CHOICES = re.compile(r"\(choose from [^)]{1,1000}\)")


_COUNTS = re.compile(
    r"\b(?P<name>\w+)\(\) takes (?:exactly |at least )?(?P<takes>\d{1,3}|no) arguments? "
    r"\((?P<given>\d{1,3}) given\)"
)
"""How Python 2 counts arguments."""


def _recount(match: re.Match[str]) -> str:
    """The count of Python 2 in the words of Python 3, up to the names of what is missing."""
    takes, count = int(match["takes"].replace("no", "0")), int(match["given"])
    plural = "s" * (abs(takes - count) != 1)
    if count < takes:
        return f"{match['name']}() missing {takes - count} required positional argument{plural}"
    plural, verb = "s" * (takes != 1), "was" if count == 1 else "were"
    return f"{match['name']}() takes {takes} positional argument{plural} but {count} {verb} given"


def canonical(message: str) -> str:
    """A message in the wording that all versions of Python are brought to."""
    message = _COUNTS.sub(_recount, message)
    for pattern, plain in _REWORDINGS:
        message = pattern.sub(plain, message)
    message = _CHOICES.sub(lambda match: match[0].replace("'", ""), message)
    return _NAME_LIST.sub(lambda match: match[1] + match[2].replace("'", ""), message)


# One failure under two classes or in two wordings, the earlier first, and in one that both share.
# What the two name has to be the same.
_CONTEXT = (
    r"TypeError: '[^']{1,200}' object does not support the (?:asynchronous )?context manager"
    r" protocol.*"
)
_NO_FLOAT = r"TypeError: 'float' object cannot be interpreted as an integer"
_NO_SLICE = r"TypeError: unhashable type: 'slice'"
_NO_FILE = (
    r"FileNotFoundError: \[Errno 2\] No such file or directory: "
    r"'(?P<folder>[^'\n]{1,300})/[^'/\n]*'"
)
_NO_FOLDER = r"RuntimeError: Parent directory (?P<folder>\S{1,300}) does not exist\."
_RECLASSED = [
    (re.compile(old), re.compile(new), plain)
    for old, new, plain in (
        # 3.11 gives the class of the object in place of the method that it lacks.
        (r"AttributeError: __a?(?:enter|exit)__", _CONTEXT, "TypeError: no context manager"),
        (_NO_SLICE, r"KeyError: slice\(.*\)", _NO_SLICE),  # 3.12 can hash slices
        (r"ValueError: factorial\(\) only accepts integral values", _NO_FLOAT, _NO_FLOAT),  # 3.10
        (r"ValueError: non-integer .{1,10} for randrange\(\)", _NO_FLOAT, _NO_FLOAT),  # 3.12
        # Python 2, and what 3.5 and 3.6 still had of it.
        (
            r"AttributeError: 'module' object has no attribute '(?P<name>\w+)'",
            r"AttributeError: module '[\w.]+' has no attribute '(?P<name>\w+)'.*",
            r"AttributeError: module has no attribute '\g<name>'",
        ),
        (
            r"ImportError: No module named '?(?P<name>[\w.]+)'?",
            r"ModuleNotFoundError: No module named '(?P<name>[\w.]+)'.*",
            r"ImportError: No module named '\g<name>'",
        ),
        (
            r"ImportError: cannot import name '?(?P<name>\w+)'?",
            r"ImportError: cannot import name '(?P<name>\w+)' from .*",
            r"ImportError: cannot import name '\g<name>'",
        ),
        (
            r"ValueError: need more than (?P<count>\d+) values? to unpack",
            r"ValueError: not enough values to unpack \(expected \d+, got (?P<count>\d+)\)",
            r"ValueError: not enough values to unpack, got \g<count>",
        ),
        (
            r"TypeError: '(?P<kind>\w+)' object has no attribute '__getitem__'",
            r"TypeError: '(?P<kind>\w+)' object is not subscriptable",
            r"TypeError: '\g<kind>' object is not subscriptable",
        ),
        (
            r"TypeError: coercing to Unicode: need string or buffer, (?P<kind>\w+) found",
            r"TypeError: expected str, bytes or os\.PathLike object, not (?P<kind>\w+)",
            r"TypeError: expected a path, not \g<kind>",
        ),
        (
            r"TypeError: (?:cannot concatenate 'str' and '|must be str, not )(?P<kind>\w+)\W?.*",
            r"TypeError: can only concatenate str \(not \"(?P<kind>\w+)\"\) to str",
            r"TypeError: can only concatenate str, not \g<kind>",
        ),
        (
            r"TypeError: unorderable types: (?P<one>\w+)\(\) (?P<sign>\S+) (?P<two>\w+)\(\)",
            r"TypeError: '(?P<sign>\S+)' not supported .* '(?P<one>\w+)' and '(?P<two>\w+)'",
            r"TypeError: \g<one> \g<sign> \g<two> is not supported",
        ),
        (_NO_FILE, _NO_FOLDER, "RuntimeError: Parent directory does not exist"),  # PyTorch 1.13
    )
]


def as_reclassed(reported: tuple[str, str], observed: tuple[str, str]) -> tuple[str, str] | None:
    """The class and message that two failures (class, message) share, where versions of Python
    raise one and the same under two classes or in two quite different wordings; None where they do
    not.
    """
    one, other = (
        f"{name.rsplit('.', 1)[-1]}: {message.strip()}" for name, message in (reported, observed)
    )
    for old, new, plain in _RECLASSED:
        for first, second in ((one, other), (other, one)):
            before, after = old.fullmatch(first), new.fullmatch(second)
            if before and after and _groups(before) == _groups(after):
                name, _, message = after.expand(plain).partition(": ")
                return name, message
    return None


def _groups(match: re.Match[str]) -> dict[str, str]:
    """What two wordings of one message have in common: a folder in whatever form, a name."""
    groups = match.groupdict()
    return {
        name: posixpath.normpath(text) if name == "folder" else text
        for name, text in groups.items()
    }


# Comparing the words of two error messages: tolerant where wording varies, strict where it is the
# failure.
#
# Tolerated: paths, addresses, line numbers, other numbers, the class prefix that Python 3.10 puts
# before a method ("Net.forward()"), names that the program itself defines. Strict: quoted names
# of libraries, operand shapes and dtypes. Source of the distinctions: what varied between report
# and rerun over real issues, and the crash buckets of Issue2Test (arXiv 2503.16320).

_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_PATH = re.compile(r"(?<![\w.])(?:[A-Za-z]:)?(?:[/\\][\w.+@~-]+){2,}[/\\]?")
# A bracket behind a name or another bracket is an index, no shape.
_SHAPE = re.compile(r"\b\d+(?:x\d+)+\b|(?:(?<![\w\]'\"])\[|\()\s*\d+(?:\s*,\s*\d+)*\s*,?\s*[\])]")
_NUMBER = re.compile(r"(?<![\w<])[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?(?![\w>])", re.IGNORECASE)
_QUOTED_NAME = re.compile(r"['\"`]([A-Za-z_][\w.]*)['\"`]")
_AXIS = re.compile(r"\b(?:axis|dim|dimension) (-?\d+)")
_TOKEN = re.compile(r"<\w+>|\w+(?:\.\w+)*|[^\w\s]")
_CURLY = str.maketrans({"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"', "\u00a0": " "})

_SUFFIXES = (
    "csv|json|ya?ml|txt|log|npy|npz|pt|pth|ckpt|bin|h5|hdf5|keras|onnx|safetensors|pkl|pickle|parquet"
    "|png|jpe?g|wav|zip|tar|gz|py|ipynb"
)
_VARYING = (
    (re.compile(r"https?://\S+"), "<url>"),
    (re.compile(r"<class '(?:\w+\.)*(\w+)'>"), r"'\1'"),
    (_PATH, "<path>"),
    (re.compile(rf"(?<![\w./-])[\w+-][\w.+-]*\.(?:{_SUFFIXES})\b"), "<path>"),
    (re.compile(r"\btorch\.cuda\.(?=\w+Tensor\b)"), "torch."),
    (
        re.compile(
            r"\b(?:torch|numpy|np|jnp|jax\.numpy|tf)\.(?=(?:u?int|b?float|complex|bool)\d*\b)"
        ),
        "",
    ),
    (re.compile(r"\bDeviceArray(?=\()"), "Array"),  # as JAX calls it since 0.4
    (re.compile(r"\b(cuda|xla|mps|npu|gpu|cpu):\d+\b", re.IGNORECASE), r"\1"),
    (re.compile(r"0x[0-9a-fA-F]{4,}"), "<addr>"),
    (re.compile(r"\bline \d+\b"), "line <n>"),
    (re.compile(r"\b([A-Z]\w*?)Backward\d*\b"), r"\1"),  # an output, with or without its gradient
    (re.compile(r"\b(?:[A-Za-z_]\w*+\.|<locals>\.)++([A-Za-z_]\w*\(\))"), r"\1"),
    (re.compile(r"\b(?:__main__|main|builtins)\.(\w+)"), "<name>"),
)

# Other names of one class: Python renamed it, or had it twice.
_NEW_NAMES = {
    "error": "PatternError",
    "re.error": "PatternError",
    "re.PatternError": "PatternError",
    "sre_constants.error": "PatternError",
    "IOError": "OSError",
    "EnvironmentError": "OSError",
    "socket.timeout": "TimeoutError",
}

ENOUGH = 0.85
_FEW, _PHRASE, _FORM, _MOST_FURTHER, _MOST_EXCHANGED = 3, 4, 0.7, 20, 2
_WORD = re.compile(r"[a-z]")
_WORDS = re.compile(r"[A-Za-z]{2,}")
FILLERS = {
    *(
        "a",
        "an",
        "the",
        "is",
        "are",
        "was",
        "were",
        "be",
        "can",
        "could",
        "cannot",
        "must",
        "should",
    ),
    *("of", "in", "on", "at", "to", "for", "with", "by", "from", "as", "this", "that", "its", "it"),
}
_Opcode = tuple[str, int, int, int, int]
_MOST_TOKENS = 1500
_FULL_STOP = re.compile(r"(?<=[\w'\"\])])\.$")
_LONGEST_MESSAGE = 8_000


_ELLIPSIS = re.compile(r"\.{3,}|\u2026")


def strip_ansi(text: str) -> str:
    """Text without terminal escape sequences."""
    return _ANSI.sub("", text)


def normalise(message: str, own_names: frozenset[str] = frozenset(), *, reword: bool = True) -> str:
    """A message with everything that may vary replaced by a word in angle brackets; whitespace
    collapsed. Rewordings of the interpreter are undone, unless the message is to stay as it is.
    Of a long message, the beginning counts.
    """
    text = strip_ansi(message[:_LONGEST_MESSAGE]).translate(_CURLY)
    text = canonical(text) if reword else text
    for pattern, word in _VARYING:
        text = pattern.sub(word, text)
    if own_names:
        own = "|".join(map(re.escape, sorted(own_names)))
        text = re.sub(rf"\b(?:{own})\b", "<name>", text)
    return " ".join(text.split())


def axes(message: str) -> set[str]:
    """The numbers of the axes that a message names."""
    return set(_AXIS.findall(message))


def shapes(message: str) -> tuple[str, ...]:
    """The operand shapes in a message, in order, without spaces: "14x7", "(2,3)"; brackets of
    either kind count as the same.
    """
    shape_texts = _SHAPE.findall(_PATH.sub("<path>", strip_ansi(message)))
    return tuple(
        re.sub(r"[\[(](.*?),?[\])]", r"(\1)", "".join(shape.split())) for shape in shape_texts
    )


def core(message: str) -> str:
    """The phrase that must be found again: the first line with at least three words, or all
    lines before it together. A full stop at its end may be that of the sentence around it.
    """
    phrase = ""
    for line in message.splitlines():
        phrase = f"{phrase} {line.strip()}".strip()
        if len(phrase.split()) >= 3:
            break
    return _FULL_STOP.sub("", phrase)


def tokens(text: str) -> list[str]:
    """Words and signs, lower case, numbers as "<n>"."""
    return _TOKEN.findall(_NUMBER.sub("<n>", text).lower())[:_MOST_TOKENS]


def resemblance(
    reported_text: str, observed_text: str, own_names: frozenset[str] = frozenset()
) -> float:
    """How much of the reported core phrase occurs, in order, in the message that was seen: 0 to 1.

    0 as well when a quoted library name of the reported phrase is missing from what was seen. A
    phrase of one or two words must be equal. Reported text that was cut with an ellipsis is
    compared as far as it goes; what one in its middle stands for
    may be anything, but every word beside it has to be there.
    """
    phrase = normalise(_without_hint(core(reported_text)), own_names)
    phrase = phrase.removesuffix("...").removesuffix("\u2026").strip()
    whole = normalise(observed_text, own_names)
    if reported_text.rstrip().endswith(("...", "\u2026")):
        plain = normalise(observed_text, own_names, reword=False)
        whole = plain if plain.startswith(phrase) else whole
    reported_tokens, observed_tokens = (
        tokens(_ELLIPSIS.sub(" ", text)) for text in (phrase, whole)
    )
    if not reported_tokens:
        return 1.0
    if len(reported_tokens) <= 2:  # too short for a resemblance: a key, a number
        return float(
            phrase.lower() in {normalise(core(observed_text), own_names).lower(), whole.lower()}
        )
    names = {name.lower() for name in _QUOTED_NAME.findall(phrase)} - {
        name.lower() for name in own_names
    }
    if any(not re.search(rf"(?<!\w){re.escape(name)}(?!\w)", whole.lower()) for name in names):
        return 0.0
    matcher = SequenceMatcher(None, reported_tokens, observed_tokens, autojunk=False)
    if _exchanged(reported_tokens, observed_tokens, matcher.get_opcodes()):
        return 0.0
    matching_tokens = [
        reported_tokens[at]
        for block in matcher.get_matching_blocks()
        for at in range(block.a, block.a + block.size)
    ]
    words = [word for word in reported_tokens if _WORD.match(word)]
    share_of_words = (
        sum(bool(_WORD.match(token)) for token in matching_tokens) / len(words) if words else 1.0
    )
    if _ELLIPSIS.search(phrase) and share_of_words < 1:
        return 0.0
    return min(len(matching_tokens) / len(reported_tokens), share_of_words)


def _without_hint(phrase: str) -> str:
    """A phrase without the advice behind it, which releases word otherwise."""
    before, _, _ = phrase.partition(" Hint: ")
    return before if len(before.split()) >= _PHRASE else phrase


def _exchanged(
    reported_tokens: list[str], observed_tokens: list[str], opcodes: Sequence[_Opcode]
) -> bool:
    """Whether one or two words stand in the place of as many others: one template, filled in
    otherwise. The value of a `name=value` does not count.
    """
    pairs = [
        (reported_tokens[at - 1 : at], reported_tokens[at], observed_tokens[first + at - start])
        for kind, start, end, first, last in opcodes
        if kind == "replace" and end - start == last - first <= _MOST_EXCHANGED
        for at in range(start, end)
    ]
    return any(
        before != ["="]
        and _WORD.match(one)
        and _WORD.match(other)
        and one.rsplit(".", 1)[-1] != other.rsplit(".", 1)[-1]
        and not {one, other} & FILLERS
        for before, one, other in pairs
    )


def likeness(
    reported_text: str, observed_text: str, own_names: frozenset[str] = frozenset()
) -> float:
    """How far two whole messages say the same: 0 to 1.

    What a library puts around another message ("Exception encountered when calling ...") may be
    missing from what was seen; and no further line may be the same with other words in it.
    """
    likeness_so_far = resemblance(reported_text, observed_text, own_names)
    if likeness_so_far < ENOUGH and len(tokens(core(observed_text))) >= _PHRASE:
        inner = (
            resemblance(observed_text, line, own_names) for line in reported_text.splitlines()[1:]
        )
        likeness_so_far = max([likeness_so_far, *inner])
    apart = likeness_so_far >= ENOUGH and _apart(
        _further(reported_text), _further(observed_text), own_names
    )
    return 0.0 if apart else likeness_so_far


def _further(message: str) -> list[str]:
    """The lines of a message with words in them, but for the first."""
    lines = [line for line in message.splitlines() if len(_WORDS.findall(line)) >= _FEW]
    return lines[1:_MOST_FURTHER]


def _apart(reported_lines: list[str], observed_lines: list[str], own_names: frozenset[str]) -> bool:
    """Whether a reported line was seen with other words in the same form, and not as it is; or none
    was seen among others.
    """
    missing_lines = [
        line
        for line in reported_lines
        if not any(resemblance(line, other, own_names) >= ENOUGH for other in observed_lines)
    ]
    words = [tokens(normalise(other, own_names)) for other in observed_lines]
    near = (
        SequenceMatcher(None, tokens(normalise(line, own_names)), other).ratio()
        for line in missing_lines
        for other in words
    )
    return bool(observed_lines and missing_lines) and (
        missing_lines == reported_lines or any(ratio >= _FORM for ratio in near)
    )


def same_shapes(reported_shapes: tuple[str, ...], observed_text: str) -> bool:
    """Whether the message that was seen contains every reported shape."""
    return Counter(reported_shapes) <= Counter(shapes(observed_text))


def same_exception(reported_name: str, observed_name: str, bases: tuple[str, ...] = ()) -> bool:
    """Whether two exception names mean the same class: the module and a leading underscore do
    not count, a base class does only for names that libraries have moved (the reported one must
    be an ancestor, and not one of the roots). Where the report names no class, the words decide.
    """
    if not reported_name:
        return True
    short, other = (name.rsplit(".", 1)[-1].lstrip("_") for name in (reported_name, observed_name))
    is_renamed = _NEW_NAMES.get(reported_name, reported_name) == _NEW_NAMES.get(
        observed_name, observed_name
    )
    may_have_moved = short not in {"Exception", "BaseException", "Warning"}
    return (
        short == other
        or is_renamed
        or (may_have_moved and short in {base.lstrip("_") for base in bases})
    )


# Warnings among what a program printed, in whatever form its libraries print them.

SHORTEST = 8
"""Characters below which a message stands somewhere by chance."""

_PLACE = re.compile(r"^\s*\S[^\n]{0,300}?\.py:\d+: ")
_CATEGORY = re.compile(r"\b\w*Warning\b")
_LONGEST_WARNING = 4000  # more than any warning has; the comparison is quadratic in it
_QUOTES = re.compile(r"[\s`'\"]+")


def lines(printed_lines: Sequence[str], signature: WarningSignature) -> list[str]:
    """The lines that give the reported warning. The source line that Python prints below a
    warning is no second one.

    A line in a library's own form ("file.py:3: message") need not name the category.
    """
    return [
        line
        for before, line in pairwise(["", *printed_lines])
        if not (line[:1].isspace() and _PLACE.match(before))
        and (signature.category in line or (_PLACE.match(line) and not _CATEGORY.search(line)))
        and _says(line[:_LONGEST_WARNING], signature.message)
    ]


def is_placed(line: str) -> bool:
    """Whether a line is a warning as Python prints it, with the place that it came from."""
    return bool(_PLACE.match(line) and _CATEGORY.search(line))


def nearest(printed_lines: Sequence[str], most: int = 3) -> list[str]:
    """Some lines that look like warnings, to explain why none was the reported one."""
    lines_of_warnings = (
        line.strip() for line in printed_lines if _PLACE.match(line) or _CATEGORY.search(line)
    )
    return list(dict.fromkeys(lines_of_warnings))[:most]


def _says(line: str, message: str) -> bool:
    """Whether the words of a warning agree, as those of an exception do; a part of it, quoted
    alone, has to occur literally.
    """
    part = _QUOTES.sub(" ", message).strip().casefold()
    stands = len(part) >= SHORTEST and part in _QUOTES.sub(" ", line).casefold()
    return stands or resemblance(message, line) >= ENOUGH


# Messages that another release of a library may word otherwise: the same words but for their
# form, or most of the same words.

_FEWEST, _MOST, _NEARLY, _STEM, _SHORT = 5, 0.7, 0.75, 4, 2
_MARKS = re.compile(r"(?<!\w)'|'(?!\w)")


def same_stems(reported_text: str, observed_text: str, own_names: frozenset[str]) -> bool:
    """Whether two messages of some length differ only in the forms of their words ("mismatch",
    "mismatched") and in small words.
    """
    reported_tokens, observed_tokens = (
        _tokens(text, own_names) for text in (reported_text, observed_text)
    )
    if len(reported_tokens) != len(observed_tokens) or len(reported_tokens) < _FEWEST:
        return False
    return all(
        one == other or _related(one, other)
        for one, other in zip(reported_tokens, observed_tokens, strict=True)
    )


def stands_in(reported_text: str, observed_text: str) -> bool:
    """Whether two words, a phrase too short for a resemblance, stand side by side in a message, in
    whatever form ("invalid argument" in "Received invalid argument(s): margins").
    """
    phrase, whole = (tokens(normalise(text)) for text in (core(reported_text), observed_text))
    return len(phrase) == _SHORT and any(
        all(_related(*words) for words in zip(phrase, neighbours, strict=True))
        for neighbours in pairwise(whole)
    )


def is_cut_off(reported_text: str, observed_text: str) -> bool:
    """Whether a message ends within its last quotation, as a title that is cut does, and another
    begins with it ("'Net' object has no attribute 'siz").
    """
    reported = " ".join(reported_text.split())
    is_open = len(_MARKS.findall(reported)) % 2 == 1 and len(reported.split()) >= _FEWEST
    return is_open and " ".join(observed_text.split()).startswith(reported)


def mostly(reported_text: str, observed_text: str, own_names: frozenset[str]) -> bool:
    """Whether most words of a reported message of some length were seen in their order, and little
    else beside them; or nearly all of them, among details that another release adds.
    """
    cores = [core(text) for text in (reported_text, observed_text)]
    names = {*_QUOTED_NAME.findall(cores[0])} - own_names
    if any(not re.search(rf"(?<!\w){re.escape(name)}(?!\w)", observed_text) for name in names):
        return False
    reported_tokens, observed_tokens = (_tokens(text, own_names) for text in cores)
    matcher = SequenceMatcher(None, reported_tokens, observed_tokens, autojunk=False)
    matching_count = sum(block.size for block in matcher.get_matching_blocks())
    if len(reported_tokens) < _FEWEST:
        return len(reported_tokens) == _FEWEST - 1 == matching_count
    longer = max(len(reported_tokens), len(observed_tokens))
    return matching_count >= min(_MOST * longer, _NEARLY * len(reported_tokens))


def _tokens(text: str, own_names: frozenset[str]) -> list[str]:
    all_tokens = tokens(normalise(text, own_names))
    return [token for token in all_tokens if token not in FILLERS]


def _related(one: str, other: str) -> bool:
    """Whether two words share their stem. What negates a word stands before it."""
    short, long = sorted((one, other), key=len)
    return short.isalpha() and long.isalpha() and len(short) >= _STEM and long.startswith(short)
