"""YAML text → a small tree with lines. Less than YAML on purpose: no anchors, aliases, tags or
second documents, and no guessing of types, so that `python: 3.10` stays 3.10 and `opened: off`
stays off; the model decides what a word means.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import yaml
from yaml import events

MOST_CHARACTERS = 65_536
_MOST_EVENTS = 5_000
_MOST_DEEP = 8
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})


@dataclass(frozen=True, slots=True)
class YamlNode:
    """A value and its line. A mapping keeps its pairs in order, repeated keys too."""

    value: str | list[YamlNode] | list[tuple[YamlNode, YamlNode]] | None
    line: int
    kind: str

    @property
    def pairs(self) -> list[tuple[YamlNode, YamlNode]]:
        """The pairs of a mapping."""
        return [each for each in self.value or () if isinstance(each, tuple)]

    @property
    def items(self) -> list[YamlNode]:
        """The items of a list."""
        return [each for each in self.value or () if isinstance(each, YamlNode)]


class InvalidYaml(ValueError):
    """The text is not what a configuration file may be, from `line` on."""

    def __init__(self, reason: str, line: int = 0) -> None:
        super().__init__(reason)
        self.line = line


def read(text: str) -> YamlNode | None:
    """The tree; None when the file holds nothing. Raises InvalidYaml."""
    if len(text) > MOST_CHARACTERS:
        raise InvalidYaml(f"is longer than {MOST_CHARACTERS:,} characters")
    try:
        return _document(_bounded(text.removeprefix("\ufeff")))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise InvalidYaml(_said(error), mark.line + 1 if mark else 0) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise InvalidYaml("contains a character that YAML does not allow", line) from None


def _said(error: yaml.MarkedYAMLError) -> str:
    said = error.problem or ""
    if "'\\t'" in said:
        return "contains a tab: indent YAML with spaces"
    if "mapping values are not allowed" in said:
        return (
            "is not valid YAML: an unexpected colon (wrong indentation, or text that needs quotes)"
        )
    return f"is not valid YAML: {said}" if said else "is not valid YAML"


def _bounded(text: str) -> Iterator[events.Event]:
    """The events of the text; what could grow without bound is refused while it is read."""
    depth = 0
    for number, event in enumerate(yaml.parse(text, Loader=yaml.SafeLoader)):
        line = _line(event)
        depth += isinstance(event, events.CollectionStartEvent) - isinstance(
            event, events.CollectionEndEvent
        )
        if isinstance(event, events.AliasEvent) or getattr(event, "anchor", None):
            raise InvalidYaml("uses an anchor or alias, which Reprise does not support", line)
        if getattr(event, "tag", None):
            raise InvalidYaml("uses a tag, which Reprise does not support", line)
        if depth > _MOST_DEEP or number > _MOST_EVENTS:
            raise InvalidYaml("is nested too deeply or too long", line)
        yield event


def _document(stream: Iterator[events.Event]) -> YamlNode | None:
    root: YamlNode | None = None
    seen = False
    for event in stream:
        if isinstance(event, events.DocumentStartEvent):
            if seen:
                raise InvalidYaml("contains a second document", _line(event))
            seen = True
            root = _node(next(stream), stream)
    return None if root is None or (root.kind == "scalar" and root.value is None) else root


def _line(event: events.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 0


def _node(event: events.Event, stream: Iterator[events.Event]) -> YamlNode:
    line = _line(event)
    if isinstance(event, events.MappingStartEvent):
        pairs: list[tuple[YamlNode, YamlNode]] = []
        while not isinstance(start := next(stream), events.MappingEndEvent):
            key = _node(start, stream)
            pairs.append((key, _node(next(stream), stream)))
        return YamlNode(pairs, line, "mapping")
    if isinstance(event, events.SequenceStartEvent):
        items: list[YamlNode] = []
        while not isinstance(start := next(stream), events.SequenceEndEvent):
            items.append(_node(start, stream))
        return YamlNode(items, line, "list")
    assert isinstance(event, events.ScalarEvent)
    plain = event.implicit[0]
    return YamlNode(None if plain and event.value in _NULLS else event.value, line, "scalar")
