"""Criteria that neither the run nor the values in the code decide, judged by a model that reads the
code: with words of the paper and a line of the code, both looked up, or not at all.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import NamedTuple

from bot.kernel import tree_programs
from bot.kernel.attempt import Script
from bot.kernel.dialogue import Question
from bot.kernel.errors import ModelUnavailable
from bot.kernel.markdown import contains
from bot.kernel.outside_text import clean, one_line
from bot.kernel.paper import Criterion, CriterionKind, NumberClaim, Paper, PaperQuote, ReadQuotes
from bot.kernel.redaction import redact
from bot.kernel.source.syntax import module_of
from bot.kernel.trees import Tree
from bot.model.budget import BudgetExceeded, ModelBudget, question
from bot.papers.comparison import paper_text
from bot.papers.evidence import ORDER
from bot.papers.passages import choose_passages, stems
from bot.papers.repository import command_line
from bot.papers.runs import PaperSession
from bot.program.settings import text_of
from prompts import load
from prompts.catalog import fence

_READINGS = 2
_MOST_TOKENS, _MOST_CODE, _MOST_STATEMENTS, _LONGEST_CONFIG = 6_000, 40_000, 40, 8_000
_LEAST_QUOTE = 5
_DEFINITION = re.compile(r"(?: {4}|\t)?(?:async def|def|class)\s")
_REMARK = re.compile(r"(?:^|(?<=\s))[#;](?:\s.*)?$")
"""A comment in a configuration file."""
_NOT_IN_CODE: frozenset[CriterionKind] = frozenset(("seeds", "hardware"))
"""What the runs are given, not what the code does."""
_CONFIGS = {".yaml", ".yml", ".json", ".toml", ".ini", ".cfg", ".gin"}


class _Judgement(NamedTuple):
    verdict: str
    quotes: ReadQuotes


@dataclass(frozen=True)
class CodeText:
    """The files of a program without their comments and docstrings: the lines of each by path, with
    their numbers.
    """

    files: Mapping[str, Sequence[tuple[int, str]]]

    def line_of(self, path: str, quote: str) -> int:
        """The line in which a quotation begins, whatever the blanks in it; 0 where the file does
        not have it.
        """
        words, text, starts = " ".join(quote.split()), "", list[tuple[int, int]]()
        if len(words.replace(" ", "")) < _LEAST_QUOTE:
            return 0
        for number, line in self.files.get(path.removeprefix("./"), ()):
            starts.append((len(text), number))
            text += " ".join(line.split()) + " "
        at = text.find(words)
        return max((number for start, number in starts if start <= at), default=0) if at >= 0 else 0

    def shown(self, about: str, *, is_reversed: bool) -> str:
        """The files as a model reads them; of long ones the definitions that share most words with
        what they are read for.
        """
        pieces = [(path, text) for path, rows in self.files.items() for text in _pieces(rows)]
        texts, parts = [text for _, text in pieces], dict[str, list[str]]()
        for at in choose_passages(texts, stems(about), _MOST_CODE):
            parts.setdefault(pieces[at][0], []).append(texts[at][:_MOST_CODE])
        files = [fence(path, "\n".join(rows)) for path, rows in parts.items()]
        return "\n\n".join(files[::-1] if is_reversed else files)


def _pieces(rows: Sequence[tuple[int, str]]) -> Iterator[str]:
    """The lines of a file with their numbers, cut before each function, method and class."""
    piece = list[str]()
    for number, line in rows:
        if _DEFINITION.match(line) and piece:
            yield redact("\n".join(piece))
            piece = []
        piece.append(f"{number}: {clean(line)}")
    if piece:
        yield redact("\n".join(piece))


def read_code(
    criteria: Sequence[Criterion],
    paper: Paper,
    claim: NumberClaim,
    script: Script,
    tree: Tree,
    session: PaperSession,
    budget: ModelBudget,
) -> tuple[Criterion, ...]:
    """The criteria with what a model reads of those that are unknown. A judgement counts if both of
    two readings have it, each with a quotation of the paper and one of the code. As they are where
    no model is configured. Raises Stopped.
    """
    rows = [row for row in criteria if _is_left(row)][:_MOST_STATEMENTS]
    if not rows or session.ports.model is None or "model" in session.job.without:
        return tuple(criteria)
    code = program_text(script, tree)
    statements = [_words(row, paper) for row in rows]
    readings = list[dict[int, _Judgement]]()
    with session.stage("code", "asking a model to read the code"):
        for number in range(_READINGS):
            try:
                request = ask(rows, statements, claim, script, code, number)
                readings.append(dict(parse(budget.ask(request).data, statements, code)))
            except (BudgetExceeded, ModelUnavailable) as error:
                session.note(f"a model did not read the code: {error}")
                return tuple(criteria)
    judgements = {id(row): _agreed(readings, at) for at, row in enumerate(rows, 1)}
    judged = [_judged(row, judgements.get(id(row))) for row in criteria]
    return tuple(sorted(judged, key=lambda row: ORDER[row.verdict]))


def _is_left(row: Criterion) -> bool:
    is_quoted = bool(row.stated) and row.quote is not None
    return row.verdict == "unknown" and is_quoted and row.kind not in _NOT_IN_CODE


def _agreed(readings: Sequence[dict[int, _Judgement]], statement: int) -> _Judgement | None:
    judgements = [reading.get(statement) for reading in readings]
    verdicts = {row.verdict if row is not None else "unclear" for row in judgements}
    return judgements[0] if len(verdicts) == 1 else None


def _judged(row: Criterion, judgement: _Judgement | None) -> Criterion:
    if judgement is None:
        return row
    update = {"verdict": judgement.verdict, "evidence": "read", "read": judgement.quotes}
    return row.model_copy(update=update)


def _words(row: Criterion, paper: Paper) -> str:
    """What the paper says of a criterion: its sentence, or the row of its table."""
    quote = row.quote or PaperQuote(text="")
    table = next((table for table in paper.tables if table.id == quote.table), None)
    if table is None or quote.row >= len(table.rows):
        return one_line(redact(quote.text))
    return one_line(redact(" ".join(table.rows[quote.row])))


def ask(
    rows: Sequence[Criterion],
    statements: Sequence[str],
    claim: NumberClaim,
    script: Script,
    code: CodeText,
    number: int,
) -> Question:
    """What a model is asked. The second reading has statements and files from the end."""
    is_reversed, prompt = number % 2 == 1, load("compare")
    texts = list[str]()
    for at, (row, words) in enumerate(zip(rows, statements, strict=True), 1):
        quote = row.quote or PaperQuote(text="")
        values = {"name": row.name, "stated": row.stated, "where": quote.sentence or quote.table}
        heading = prompt.fragment("statement", number=at, **values)
        texts.append(heading if words == row.stated else f"{heading}\n{words}")
    return question(
        "reader",
        "compare",
        _MOST_TOKENS,
        claim=fence("number", f"{claim.title}: {claim.metric} {paper_text(claim)}"),
        statements=fence("statements", "\n".join(texts[::-1] if is_reversed else texts)),
        command=fence("command", command_line(script)),
        code=code.shown("\n".join(texts), is_reversed=is_reversed),
    )


def parse(
    data: dict[str, object], statements: Sequence[str], code: CodeText
) -> Iterator[tuple[int, _Judgement]]:
    """What an answer says, as far as both of its quotations stand where it says."""
    rows = data.get("judgements")
    for item in rows if isinstance(rows, list) else []:
        number, path = item["statement"], item["file"].removeprefix("./")
        if item["verdict"] == "unclear" or number > len(statements):
            continue
        line = code.line_of(path, item["code"])
        if line and contains(statements[number - 1], item["paper"]):
            texts = {name: one_line(clean(item[name])) for name in ("paper", "code", "reason")}
            yield number, _Judgement(item["verdict"], ReadQuotes(file=path, line=line, **texts))


# What a model reads of a program.


def program_text(script: Script, tree: Tree) -> CodeText:
    """The files that a program imports, its entry first, and the configuration files that it or its
    command names.
    """
    paths = [path for path in tree_programs.reachable([script.entry], tree) if path.endswith(".py")]
    texts = {path: text_of(path, script, tree) for path in paths}
    words = "\n".join((*script.command, *texts.values()))
    for path in tree:
        pure = PurePosixPath(path)
        is_short = len(tree[path]) <= _LONGEST_CONFIG
        if pure.suffix in _CONFIGS and pure.name in words and is_short:
            texts[path] = text_of(path, script, tree)
    return CodeText({path: tuple(_rows(path, text)) for path, text in texts.items()})


def _rows(path: str, text: str) -> Iterator[tuple[int, str]]:
    """The lines of a file that say something, with their numbers."""
    lines = text.splitlines()
    if path.endswith(".py"):
        bare = _without_comments(text, lines)
    else:
        bare = [_REMARK.sub("", line) for line in lines]
    yield from ((number, line.rstrip()) for number, line in enumerate(bare, 1) if line.strip())


def _without_comments(text: str, lines: Sequence[str]) -> list[str]:
    bare = list(lines)
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT and token.start[0] <= len(bare):
                row, column = token.start
                bare[row - 1] = lines[row - 1][:column]
    except (tokenize.TokenError, SyntaxError):
        return ["" if line.lstrip().startswith("#") else line for line in lines]
    for first, last in _docstrings(module_of(text)):
        bare[first - 1 : last] = [""] * (last - first + 1)
    return bare


def _docstrings(module: ast.Module) -> Iterator[tuple[int, int]]:
    """The first and the last line of each docstring, and of other texts that do nothing."""
    for node in ast.walk(module):
        match node:
            case ast.Expr(value=ast.Constant(value=str()), end_lineno=int(last)):
                yield node.lineno, last
