"""The Markdown parser that every reader of a body or comment shares: CommonMark, blocks only."""

from markdown_it import MarkdownIt
from markdown_it.token import Token

_PARSER = MarkdownIt("commonmark").disable(["reference"])
_PARSER.core.ruler.enableOnly(["normalize", "block"])


def block_tokens(text: str) -> list[Token]:
    """The block tokens of a text; the content of an inline token is left unparsed."""
    return _PARSER.parse(text)
