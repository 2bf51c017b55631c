"""The programs that a report names in words without a command: a script that was run, tests that
fail, an import that fails.
"""

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from bot.issues.reading.markdown import ProseLine, Sentence, polarity
from bot.kernel.bug import Fence, Frame, Issue, Quote, ShellCommand, Traceback
from bot.kernel.commands import PYTEST, STATEMENT, is_test_file, read_command
from bot.kernel.source.syntax import module_of

_MOST, _MOST_SENTENCES, _MOST_LINES = 3, 300, 400
_BEFORE, _AFTER, _MOST_AFTER = 90, 60, 600
_MARKS = r"[\s:*_`\"'\u201c\u201d(\[<>-]*"
_PATH = re.compile(
    r"(?<![\w./\\~@-])(?P<path>(?:[A-Za-z]:[\\/])?[\w./\\~@%+-]{1,300}\.(?:py|sh|ipynb))"
    r"(?![A-Za-z0-9/\\-]|_\w|\.\w)"
)
_FILLERS = (
    r"(?:the|this|that|these|your|a|an|my|our|file|script|code|program|notebook|example|demo"
    r"|following|python|shell|bash|it|from|with|of|in|just|only|simply|directly|provided|official"
    r"|train(?:ing)?|test|eval(?:uation)?|inference|main|cell|named|called|both|on)"
)
_RUN = re.compile(
    r"\b(?:r[ua]n|running|runs|re-?ran|re-?run|execut(?:e|es|ed|ing)|launch(?:ed|ing)?"
    r"|start(?:ed|ing)?|invok(?:ed?|ing)|us(?:ed|ing)|tr(?:y|ied|ying)|call(?:ed|ing)?"
    rf"|train(?:ed|ing)?|evaluat(?:ed|ing)|test(?:ed|ing)?)(?:{_MARKS}\b{_FILLERS}\b){{0,6}}{_MARKS}$",
    re.IGNORECASE,
)
_FAILS = re.compile(
    r"^[\s`*_\"'\u201d)\]]*(?:\([^)\n]{0,200}\)\s*)?(?:script |file |notebook |code |program ){0,2}"
    r"(?:always |still |now |also |just ){0,2}"
    r"(?:fail(?:s|ed)?|crash(?:es|ed)?|rais(?:es|ed)|throws?|threw|gives?|gave|errors?|breaks?"
    r"|reports?|ends? (?:in|with)|exits?|stops?|does(?: not|n't) (?:work|run|start)|results? in)\b",
    re.IGNORECASE,
)
_INSIDE = re.compile(
    r"\b(?:in|from|inside|error in|bug in|line \d{1,6} (?:of|in))"
    rf"(?:{_MARKS}\b{_FILLERS}\b){{0,4}}{_MARKS}$",
    re.IGNORECASE,
)
_NOT_RUN = re.compile(
    r"\b(?:not|never|without|instead of|rather than|before|don't|didn't|cannot find|can't find"
    r"|could not find|missing|lacks?|there is no|no)\b[^.!?,;]{0,30}$",
    re.IGNORECASE,
)
_ARGUMENTS = re.compile(
    r"^[\s`*_\"')\]]*(?:(?:script|file|code|program)\s)?(?:with|using)\b(?:\s(?:the|these|this|following"
    r"|arguments?|args|options?|flags?|parameters?|params|settings?)\b){0,4}:?\s{0,2}"
    r"[`\"](?P<words>--?[A-Za-z][^`\"\n]{0,400})[`\"]",
    re.IGNORECASE,
)
"""The arguments that the words behind a file quote."""
_FRAME = re.compile(r"[\s>]*File \"(?P<path>[^\"\n]{1,300}\.py)\", line \d{1,6}, in <module>")
_COMMAND = re.compile(
    r"(?:\b(?:[Pp]ython[\d.]*|bash|sh|torchrun|launch|pytest|pip|source|cat|vim?|cp|mv)\s+(?:-\S+\s+){0,6}"
    r"|File [\"'])$"
)


def find_named_programs(
    issue: Issue,
    sentences: Sequence[Sentence],
    prose: Sequence[ProseLine],
    fences: Sequence[Fence],
) -> tuple[ShellCommand, ...]:
    """The programs that a report names, each as the command that starts it without arguments:
    the tests and the imports of which it says that they fail, then the files that were run, those
    of which it says that they fail, and those in which something happens.
    """
    rows = [
        row
        for sentence in _texts(issue, sentences, prose)
        for row in _scripts(sentence.text, sentence.quote)
    ]
    rows += _cut_tracebacks(prose)
    for fence in fences:
        match = _PATH.fullmatch(fence.raw.strip()) if len(fence.raw) < 400 else None
        if match is not None:
            rows.append((0, _start(match["path"], Quote(text=match["path"], line=fence.line))))
    ordered = list(find_failing_tests(issue, sentences))
    ordered += [row.command for row in find_failing_imports(sentences, fences)]
    ordered += [command for _, command in sorted(rows, key=lambda row: row[0])]
    distinct = {command.argv: command for command in reversed(ordered)}
    return tuple(reversed(distinct.values()))[:_MOST]


def _texts(
    issue: Issue, sentences: Sequence[Sentence], prose: Sequence[ProseLine]
) -> Iterator[Sentence]:
    """The title and the sentences; and lines that only name a file, with the words above them:
    one in bold is read as a heading.
    """
    yield Sentence(issue.title[:500], 0, ())
    yield from sentences[:_MOST_SENTENCES]
    above = ""
    for line in prose[:_MOST_LINES]:
        plain = line.text.strip()[:500]
        if line.heading and _PATH.fullmatch(plain.strip("*_`#: ")):
            yield Sentence(f"{above} {plain}", line.number, line.headings)
        above = plain[-_BEFORE:] or above


def _scripts(text: str, quote: Quote) -> Iterator[tuple[int, ShellCommand]]:
    for match in _PATH.finditer(text):
        start, end = match.span("path")
        before, after = text[max(0, start - _BEFORE) : start], text[end : end + _AFTER]
        is_installed = "-packages/" in match["path"].replace("\\", "/")
        if is_installed or _COMMAND.search(before) or _NOT_RUN.search(before):
            continue
        signs = (_RUN.search(before), _FAILS.match(after), _INSIDE.search(before))
        rank = next((at for at, sign in enumerate(signs) if sign), None)
        if rank is not None:
            is_italic = after.startswith("_")
            arguments = _ARGUMENTS.match(text[end : end + _MOST_AFTER])
            words = arguments["words"] if arguments else ""
            yield rank, _start(match["path"].removeprefix("_" * is_italic), quote, words)


def _cut_tracebacks(prose: Sequence[ProseLine]) -> Iterator[tuple[int, ShellCommand]]:
    """The file in which a traceback of the text starts, which may lack its last line."""
    for line in prose[:_MOST_LINES]:
        match = _FRAME.match(line.text[:600])
        if match is not None and "-packages/" not in match["path"]:
            quote = Quote(text=line.text.strip()[:600], line=line.number)
            yield 0, _start(match["path"], quote)
            return


def _start(path: str, quote: Quote, words: str = "") -> ShellCommand:
    plain = path.replace("\\", "/").replace("%20", " ")
    command = read_command(f"python program.py {words}") if words else None
    arguments = command.argv[1:] if command is not None else ()
    return ShellCommand(argv=(plain, *arguments), source="named", quote=quote)


# Imports of which the words say that they fail, without the error.

_IMPORT = re.compile(
    r"(?<![\w.])(?:from\s+(?P<module>\.{0,3}[A-Za-z_]\w{0,60}(?:\.\w{1,60}){0,8}|\.{1,3})\s+import"
    r"\s+\(?\s*(?P<names>[A-Za-z_]\w{0,60}(?:\s+as\s+\w{1,60})?"
    r"(?:\s*,\s*[A-Za-z_]\w{0,60}(?:\s+as\s+\w{1,60})?){0,20})"
    r"|\bimport(?:ing)? (?:of )?[`'\"]?(?P<member>[A-Za-z_]\w{0,60})[`'\"]? from (?:the )?[`'\"]?"
    r"(?P<home>[A-Za-z_]\w{0,60}(?:\.\w{1,60}){1,8})"
    r"|import\s+(?P<dotted>[A-Za-z_]\w{0,60}(?:\.[A-Za-z_]\w{0,60}){1,8}))(?![\w.]*\()"
)
_IMPORT_FAILS = re.compile(
    r"\b(?:import ?errors?|errors? (?:is|was|are|were) (?:related to|with|about|from) the\b"
    r"|ModuleNotFoundError|fail(?:s|ed|ing)?|not work(?:ing)?|errors? out"
    r"|(?:un|in)able to (?:import|find|locate|see)|(?:gives?|raises?|throws?) an? \w{0,20} ?error"
    r"|(?:can ?not|can't|could not|couldn't|do not|don't|did not|didn't|does not|doesn't) (?:be )?"
    r"(?:import|find|locate|see|exist|contain|have|work)\w*"
    r"|(?:is|are|was|were) (?:not|never) (?:found|defined|there|in|included|available|present)"
    r"|(?:is|are|was|were) missing|isn't|aren't|nowhere|no such)\b",
    re.IGNORECASE,
)
_PASSES = re.compile(
    r"\b(?:works?|fixe[sd]|solve[sd]|instead|should be|change[sd]? to|use)\b", re.I
)
_MOST_NAMES = 4


@dataclass(frozen=True, slots=True)
class FailingImport:
    """An import that fails: the statement, the files named beside it, and where the report says
    so.
    """

    statement: str
    files: tuple[str, ...]
    quote: Quote

    @property
    def command(self) -> ShellCommand:
        """What runs the statement."""
        argv = (STATEMENT, self.statement, *self.files)
        return ShellCommand(argv=argv, source="named", quote=self.quote)

    @property
    def failures(self) -> Iterator[Traceback]:
        """How it fails: a name that its module lacks, or a module that its package lacks. That a
        package is not installed is no failure of the repository.
        """
        (node,) = module_of(self.statement).body
        line = self.quote.line
        module = (node.module or "") if isinstance(node, ast.ImportFrom) else ""
        is_relative = isinstance(node, ast.ImportFrom) and node.level > 0
        names = [row.name for row in node.names] if isinstance(node, ast.ImportFrom) else []
        end = f" from '{module}'" if module and not is_relative else ""
        for name in names[:_MOST_NAMES]:
            words = f"cannot import name '{name}'{end}"
            yield Traceback(exception="ImportError", message=words, line=line)
        dotted = [module] if names else [row.name for row in getattr(node, "names", ())]
        for path in dotted:
            if "." in path and not is_relative:
                words = f"No module named '{path}'"
                yield Traceback(exception="ModuleNotFoundError", message=words, line=line)


def find_failing_imports(
    sentences: Sequence[Sentence], fences: Sequence[Fence]
) -> tuple[FailingImport, ...]:
    """The imports of which a sentence, or the one after it, says that they fail; a block of one
    statement is read as a part of the words around it.
    """
    nothing = Sentence("", 0, ())
    rows = [
        row
        for sentence, following in pairwise([*sentences[:_MOST_SENTENCES], nothing])
        if (
            row := _failing_import(
                sentence.text, f"{sentence.text} {following.text}", sentence.quote
            )
        )
    ]
    for fence in fences:
        if len(fence.raw) < 400 and _IMPORT.search(fence.raw) and fence.raw.count("\n") < _MOST:
            last = fence.line + fence.raw.count("\n")
            near = (row.text for row in sentences if fence.line - 5 <= row.line <= last + 4)
            quote = Quote(text=fence.raw.strip(), line=fence.line)
            if row := _failing_import(fence.raw, " ".join(near), quote):
                rows.append(row)
    distinct = {row.statement: row for row in reversed(rows)}
    return tuple(reversed(distinct.values()))[:_MOST]


def _failing_import(text: str, around: str, quote: Quote) -> FailingImport | None:
    match = _IMPORT.search(text) if "import" in text else None
    if match is None or _PASSES.search(text[: match.start()]):
        return None
    # What the statement itself holds says nothing ("from errors import x").
    if not _IMPORT_FAILS.search(around.replace(match[0], " ")):
        return None
    names = " ".join((match["names"] or match["member"] or "").split())
    module = match["module"] or match["home"]
    plain = f"from {module} import {names}" if names else f"import {match['dotted']}"
    body = module_of(plain).body
    if len(body) != 1 or not isinstance(body[0], ast.Import | ast.ImportFrom):
        return None
    paths = (path["path"] for path in _PATH.finditer(around[:3000]))
    files = [path.replace("\\", "/") for path in paths if path.endswith(".py")]
    return FailingImport(ast.unparse(body[0]), tuple(dict.fromkeys(files))[:_MOST], quote)


# Tests of which the words say that they fail.

_TEST = re.compile(
    r"(?<![\w/.])(?:(?P<path>[\w./\\-]{1,200}\.py)::)?(?P<name>(?:Test\w{1,80}(?:::|\.))?test_\w{1,100})"
    r"(?![\w/]|\.(?:py|sh|ipynb))"
)
_TEST_FAILS = re.compile(
    r"\b(?:fail(?:s|ed|ing|ures?)?|do(?:es)?(?: not|n't) pass|not pass(?:ing)?|broken|flaky)\b",
    re.I,
)
_NO_FAILURE = re.compile(
    r"\b(?:should|would|must|could|expected to|supposed to|xfail\w*)\b[^.]{0,40}\bfail"
    r"|\badd(?:ed|ing|s)? (?:an? |the |some )?(?:new |regression )?tests?\b|\?\s*$",
    re.I,
)
_ASSERTION = re.compile(r"`\s*(?P<code>assert\b[^`\n]{3,300})`")
_MOST_TESTS = 8


def find_failing_tests(issue: Issue, sentences: Sequence[Sentence]) -> Iterator[ShellCommand]:
    """The tests that a report says fail, as one command for all: by their ids where it names their
    file.
    """
    names, paths, quote = (
        dict[str, str](),
        list[str](),
        Quote(text=issue.title[:600], source="title"),
    )
    for sentence in _sentences_of_tests(issue, sentences):
        matches = [
            match
            for match in _TEST.finditer(sentence.text)
            if polarity(sentence.text, *match.span()) != "good"
        ]
        if matches and not names:
            quote = sentence.quote
        files = (match["path"].replace("\\", "/") for match in _PATH.finditer(sentence.text))
        paths += [path for path in files if is_test_file(path)]
        for match in matches:
            names.setdefault(match["name"].replace(".", "::"), match["path"] or "")
    if not names:
        return
    rows = list(names.items())[:_MOST_TESTS]
    path = paths[0] if paths else ""
    ids = [f"{own or path}::{name}" for name, own in rows if own or path]
    by_name = ("-k", " or ".join(name.rpartition("::")[2] for name, _ in rows))
    argv = (*PYTEST, *ids) if len(ids) == len(rows) else (*PYTEST, *by_name)
    yield ShellCommand(argv=argv, source="named", quote=quote)


def _sentences_of_tests(issue: Issue, sentences: Sequence[Sentence]) -> Iterator[Sentence]:
    """The sentences that name failing tests, and the items of a list that one of them opens."""
    is_list = False
    title = Sentence(issue.title[:500], 0, ())
    for sentence in [title, *sentences[:_MOST_SENTENCES]]:
        fails = _TEST_FAILS.search(sentence.text) and not _NO_FAILURE.search(sentence.text)
        is_item = is_list and _TEST.search(sentence.text)
        if fails or is_item:
            yield sentence
        is_list = bool(is_item or (fails and sentence.text.rstrip().endswith(":")))


def find_assertions(issue: Issue, sentences: Sequence[Sentence]) -> Iterator[Traceback]:
    """The assertions that the words about failing tests quote."""
    if not any(find_failing_tests(issue, sentences)):
        return
    for sentence in sentences[:_MOST_SENTENCES]:
        for match in _ASSERTION.finditer(sentence.text):
            body = module_of(match["code"].strip()).body
            if len(body) == 1 and isinstance(body[0], ast.Assert):
                frames = (Frame(path="", code=match["code"].strip()),)
                yield Traceback(
                    exception="AssertionError", message="", frames=frames, line=sentence.line
                )
