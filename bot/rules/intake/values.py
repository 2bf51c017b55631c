"""Short values in words: a number, a tensor, a shape, a quoted or ticked piece."""

from __future__ import annotations

import re

NUMBER = r"[-+]?(?:\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|\.\d+|nan|NaN|inf|Inf|infinity)"
VALUE = (
    r"(?:`[^`\n]{1,120}`|(?:tensor|array|Array|torch\.Size|TensorShape)\([^\n]{1,200}?\)+|\[[^\]\n]{1,160}\]+"
    r"|\((?:\d+,? "
    rf"?){{1,6}}\)|\"[^\"\n]{{1,80}}\"|'[^'\n]{{1,80}}'|True|False|None|{NUMBER}(?![\w/]|\.\d))"
)
_WHOLE = re.compile(rf"^(?:{VALUE}|<class '[\w.]+'>)$")


def is_value(text: str) -> bool:
    """Whether a text is a value and nothing more."""
    return len(text) < 400 and bool(_WHOLE.match(text.strip().rstrip(".,;")))


def bare(text: str) -> str:
    """A value without the ticks or the full stop around it."""
    stripped = text.strip().rstrip(".,;") if not text.strip().endswith("...") else text.strip()
    return (
        stripped[1:-1].strip()
        if len(stripped) > 2 and stripped[0] == stripped[-1] == "`"
        else stripped
    )
