"""How versions of Python word one and the same error. Reports come from other versions than the
one that runs the program, so both messages are brought to one wording before they are compared.

Source: the messages of Python 3.8 to 3.14; those of 3.11 and 3.13 were recorded side by side
(`tests/corpus/interpreters`).
"""

import re

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
]  # fmt: skip
_REWORDED = [(re.compile(pattern), plain) for pattern, plain in _TABLE]
_LISTED = re.compile(r"(abstract methods? )((?:'?\w+'?(?:, )?)+)")


def canonical(message: str) -> str:
    """A message in the wording that all versions of Python are brought to."""
    for pattern, plain in _REWORDED:
        message = pattern.sub(plain, message)
    return _LISTED.sub(lambda match: match[1] + match[2].replace("'", ""), message)
