"""Configuration files beside a program, YAML or JSON: their values as expressions, so that the
program's own lookups lead to them, and where each one stands.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

import libcst as cst
import yaml

from bot.rules.configuration import tree
from bot.rules.hyperparameters.text.expressions import NotApplicable
from bot.rules.hyperparameters.text.numbers import canonical, number

SUFFIXES = (".yaml", ".yml", ".json")
_MOST_FILES = 10
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_WHOLE = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_CONSTANTS = frozenset({"true", "false", "yes", "no", "on", "off", "null", "none", "y", "n"})


class ProgramFile(NamedTuple):
    """A file beside a program: its path from the program's folder, and its text."""

    name: str
    text: str


@dataclass(frozen=True)
class SettingPlace:
    """Where a value stands in its file: characters `start` to `end`, on a 1-based line."""

    file: str
    start: int
    end: int
    line: int
    quote: str = ""


Places = dict[cst.CSTNode, SettingPlace]


def settings_files(
    files: Mapping[str, bytes], texts: Sequence[str], arguments: Sequence[str]
) -> tuple[ProgramFile, ...]:
    """The configuration files beside a program, at first those that its texts or its command line
    name, then the smallest: a name may be computed.
    """
    whole = "\n".join((*texts, *arguments))
    fitting = [
        (name.rpartition("/")[2] not in whole, len(data), name)
        for name, data in files.items()
        if name.endswith(SUFFIXES) and len(data) <= tree.MOST_CHARACTERS
    ]
    found: list[ProgramFile] = []
    for *_, name in sorted(fitting)[:_MOST_FILES]:
        with suppress(UnicodeDecodeError):
            found.append(ProgramFile(name, files[name].decode()))
    return tuple(found)


def dictionary(file: ProgramFile) -> tuple[cst.Dict, Places] | None:
    """What a configuration file holds as a dictionary, and where its values stand; None for one
    that holds none or that cannot be parsed within the budget.
    """
    text = file.text
    if text.startswith("\ufeff") or not file.name.endswith(SUFFIXES):
        return None
    if file.name.endswith(".json"):
        text = text.replace("\t", " ")  # YAML wants no tabs; nothing moves
    try:
        root = tree.read(text)
    except tree.InvalidYaml:
        return None
    if not isinstance(root, yaml.MappingNode):
        return None
    reading = _Reading(ProgramFile(file.name, text), {})
    return reading.mapping(root), reading.places


class _Reading(NamedTuple):
    file: ProgramFile
    places: Places

    def mapping(self, node: yaml.MappingNode) -> cst.Dict:
        return cst.Dict(list(self._elements(node)))

    def _elements(self, node: yaml.MappingNode) -> Iterator[cst.DictElement]:
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode):
                yield cst.DictElement(_quoted(key.value), self._value(value))

    def _value(self, node: yaml.Node) -> cst.BaseExpression:
        if isinstance(node, yaml.MappingNode):
            return self.mapping(node)
        if not isinstance(node, yaml.ScalarNode):
            return cst.Name("None")
        start, end = node.start_mark.index, node.end_mark.index
        written = self.file.text[start:end]
        if not written or node.style not in (None, '"', "'"):
            return cst.Name("None")
        quote = written[0] if written[0] in "\"'" else ""
        found = _quoted(node.value) if quote else _scalar(node.value)
        line = node.start_mark.line + 1
        self.places[found] = SettingPlace(self.file.name, start, end, line, quote)
        return found


def _scalar(text: str) -> cst.BaseExpression:
    """YAML 1.1 takes `1e-3` for a word, its successors and most programs for a number."""
    if text.lower() in _CONSTANTS:
        return cst.Name("None")  # nothing that a hyperparameter is read from
    try:
        value = float(text)
    except ValueError:
        return _quoted(text)
    if not math.isfinite(value):
        return cst.Name("None")
    whole = _WHOLE.fullmatch(text) is not None
    if not text.isascii() or (not whole and not set(text.lower()) & {".", "e"}):
        return cst.Name("None")  # such as 010, which readers take for different numbers
    plain = canonical(abs(value)) if whole else repr(abs(value))
    made: cst.BaseExpression = cst.Integer(plain) if plain.isdigit() else cst.Float(plain)
    return cst.UnaryOperation(cst.Minus(), made) if value < 0 else made


def _quoted(text: str) -> cst.SimpleString:
    return cst.SimpleString(json.dumps(text))


def rewritten(file: ProgramFile, changes: Iterable[tuple[SettingPlace, cst.CSTNode]]) -> str:
    """A file with other values: all else stays. Raises NotApplicable for what is no plain value."""
    text = file.text
    for place, value in sorted(changes, key=lambda each: -each[0].start):
        text = text[: place.start] + _plain(value, place.quote) + text[place.end :]
    return text


def _plain(value: cst.CSTNode, quote: str) -> str:
    known = number(value)
    if known is not None and not quote:
        # A reader of YAML 1.1 takes `1e-05` for a word.
        written = cst.Module([]).code_for_node(value)
        return re.sub(
            r"^(-?\d+)(\.\d+)?e(\d)", r"\1\2e+\3", re.sub(r"^(-?\d+)e", r"\1.0e", written)
        )
    word = value.evaluated_value if isinstance(value, cst.SimpleString) else ""
    if not isinstance(word, str) or not _WORD.fullmatch(word) or word.lower() in _CONSTANTS:
        raise NotApplicable("The value cannot be written into a configuration file.")
    return f"{quote}{word}{quote}"
