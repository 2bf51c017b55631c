"""Writes down what the watched expressions of a program come to, beside which this file stands as
`_reprise_values.py`. Where all that is `EXPECTED` was seen, the run ends.
"""

import numbers
import os
import sys

EXPECTED = set()
_MOST, _LONGEST = 2000, 60
_reported = set()
_values = set()


def see(key, value):
    """Notes a value, or what a mapping has at its keys, and gives it back."""
    _tell(key, value)
    if hasattr(value, "keys") and hasattr(value, "__getitem__"):
        for name in value.keys():
            _tell(f"{key}:{name}", value[name])
    _values.add(key)
    if EXPECTED and not EXPECTED - _values:
        sys.stdout.flush()
        os._exit(0)
    return value


def _tell(key, value):
    if isinstance(value, bool) or not isinstance(value, (numbers.Real, str)):
        return
    text = value if isinstance(value, str) else repr(float(value))
    new = (key, text) not in _reported and len(_reported) < _MOST
    if new and len(text) <= _LONGEST and text.split() == [text]:
        _reported.add((key, text))
        sys.stderr.write(f"\n\x1ereprise value {key} {text}\n")
        sys.stderr.flush()
