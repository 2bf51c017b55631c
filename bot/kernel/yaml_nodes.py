"""YAML text from outside → its nodes with lines: one plain document of bounded size."""

import yaml
from yaml import events

# YAML text → its nodes with lines. Less than YAML on purpose: no anchors, aliases, tags or second
# documents, and no guessing of types, so that `python: 3.10` stays 3.10 and `opened: off` stays
# off; the reader decides what a word means.

MOST_CHARACTERS = 65_536
_MOST_EVENTS = 5_000
_DEEPEST_NODE = 8
_NULL = "tag:yaml.org,2002:null"


class InvalidYaml(ValueError):
    """The text is not what such a file may be, from `line` on."""

    def __init__(self, reason: str, line: int = 0) -> None:
        super().__init__(reason)
        self.line = line


def parse_yaml(text: str) -> yaml.Node | None:
    """The tree; None when the file holds nothing. Raises InvalidYaml."""
    if len(text) > MOST_CHARACTERS:
        raise InvalidYaml(f"is longer than {MOST_CHARACTERS:,} characters")
    text = text.removeprefix("\ufeff")
    try:
        _check(text)
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except InvalidYaml:
        raise
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise InvalidYaml(_reason(error), mark.line + 1 if mark else 0) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise InvalidYaml("contains a character that YAML does not allow", line) from None
    except (ValueError, OverflowError, RecursionError) as error:
        raise InvalidYaml(f"is not valid YAML: {error}") from None
    return None if root is None or root.tag == _NULL else root


def word(node: yaml.Node) -> str | None:
    """A plain value as it is written; None for a null, a list or a mapping."""
    return node.value if isinstance(node, yaml.ScalarNode) and node.tag != _NULL else None


def line_of(place: yaml.Node | yaml.Event) -> int:
    """The line on which a value begins."""
    return place.start_mark.line + 1 if place.start_mark else 0


def _reason(error: yaml.MarkedYAMLError) -> str:
    problem = error.problem or ""
    if "'\\t'" in problem:
        return "contains a tab: indent YAML with spaces"
    if "mapping values are not allowed" in problem:
        return (
            "is not valid YAML: an unexpected colon (wrong indentation, or text that needs quotes)"
        )
    return f"is not valid YAML: {problem}" if problem else "is not valid YAML"


def _check(text: str) -> None:
    """Refuse what could grow without bound, and what is more than one plain document."""
    depth = documents = 0
    for number, event in enumerate(yaml.parse(text, Loader=yaml.SafeLoader)):
        line = line_of(event)
        depth += isinstance(event, events.CollectionStartEvent) - isinstance(
            event, events.CollectionEndEvent
        )
        documents += isinstance(event, events.DocumentStartEvent)
        if isinstance(event, events.AliasEvent) or getattr(event, "anchor", None):
            raise InvalidYaml("uses an anchor or alias, which Reprise does not support", line)
        if getattr(event, "tag", None):
            raise InvalidYaml("uses a tag, which Reprise does not support", line)
        if depth > _DEEPEST_NODE or number > _MOST_EVENTS:
            raise InvalidYaml("is nested too deeply or too long", line)
        if documents > 1:
            raise InvalidYaml("contains a second document", line)
