"""Failures that a report names outside a traceback: in running text, in comments of a
program, in what a program catches.
"""

import ast
import builtins
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from bot.issues.reading.markdown import CodeBlock, ProseLine, Sentence
from bot.issues.signature import data_flow, references, staged
from bot.kernel import tracebacks
from bot.kernel.bug import Fence, FenceKind, Frame, Issue, Quote, Role, Traceback, WarningText
from bot.kernel.exception_names import (
    CLASS_LINE,
    INLINE,
    could_be,
    is_class_name,
    match_exception_line,
    match_probable_exception,
)
from bot.kernel.plain_text import is_value
from bot.kernel.source.syntax import bound_names, is_call_of, module_of, name_of, tree_of
from bot.kernel.tracebacks import WORDS
from bot.kernel.usage_errors import EXCEPTION, find_usage_errors, usage_error

# Warnings that a report quotes.

_PRINTED_WARNING = re.compile(
    r"(?:^|[\s(`\"\[])(?:(?P<path>[^\s`:]{1,300}\.py):(?P<line>\d{1,6}): "
    r"?)?(?P<category>(?:[a-z_]\w*\.){0,5}[A-Z]\w{0,40}Warning): ?(?P<message>[^\n]{3,2000})"
)
_QUOTED_WARNING = re.compile(
    r"(?<!\w)(?:`(?P<a>[^`\n]{12,400})`|\"(?P<b>[^\"\n]{12,400})\"|\u201c(?P<c>[^\u201d\n]{12,400})\u201d)"
)


def find_warnings(lines: Iterable[tuple[int, str]]) -> Iterator[WarningText]:
    """Warnings as Python prints them, with the lines that their message runs over."""
    rows = list(lines)
    for at, (number, text) in enumerate(rows):
        match = _PRINTED_WARNING.search(text) if "Warning" in text and len(text) <= 20_000 else None
        if not match:
            continue
        before, after = text[: match.start("category")].rstrip("` *"), text[match.end("category") :]
        if is_wished(before, after):
            continue
        message = match["message"].strip()
        before = text[: match.start("category")]
        mark = '"' if match[0].startswith('"') else "`"
        closing = message.find(mark) if mark in before else -1
        message = message[:closing] if closing > 0 else message
        for place, (following, more) in enumerate(rows[at + 1 : at + 12], number + 1):
            if following != place or message.endswith(".") or not _goes_on(more):
                break
            message += "\n" + more.strip()
        quote = Quote(text=text.strip()[:600], line=number)
        yield WarningText(category=match["category"], message=message.strip(), quote=quote)


def title_warnings(title: str) -> Iterator[WarningText]:
    """A warning with its message in a title."""
    for row in find_warnings([(0, title)]):
        yield row.model_copy(update={"quote": Quote(text=title[:600], source="title", line=0)})


def _goes_on(line: str) -> bool:
    """Whether a line can continue the message of the warning above it."""
    other = _PRINTED_WARNING.search(line) or re.match(r"```|Traceback|#|\w+Error", line)
    return not other and re.match(r"[A-Z\"'`(]?[a-z\"'`(]", line) is not None


def warnings_in_prose(words: Sequence[Sentence]) -> Iterator[WarningText]:
    """Words in quotation marks that a sentence calls a warning."""
    for sentence, following in _with_following(words):
        names_warning = re.search(r"\bwarn(?:ing|ings|s)?\b", sentence.text, re.I)
        for match in _QUOTED_WARNING.finditer(sentence.text) if names_warning else ():
            message = match["a"] or match["b"] or match["c"]
            if is_wished(sentence.text[: match.start()], following):
                continue
            if message.count(" ") >= 3 and "Warning:" not in message and "(" not in message[:20]:
                yield WarningText(category="", message=message.strip(), quote=sentence.quote)


# Exceptions in running text: a whole traceback without a fence, a ticked last line, a name in the
# title.

_CODE_SPAN = re.compile(r"`{1,3}\s*([^`\n]{1,2000}?)\s*`{1,3}")  # short ones too: ticks go in pairs
_QUOTED_TEXT = re.compile(
    r"`{1,3}\s*(?P<code>[^`\n]{1,2000}?)\s*`{1,3}"
    r"|(?<![\w=(\[])[\"\u201c](?P<words>[^\"\u201c\u201d\n`]{12,400})[\"\u201d]"
)
_RAISED_CLASS = re.compile(
    r"\b(?:rais(?:es|ed|ing)|throws?|thrown|fails? with|failed with|failing with|crash(?:es|ed)? "
    r"with|gets?|got"
    r"|results? in|ends? (?:up )?(?:in|with)|leads? to|gives?|causes?|produces?)"
    r"\s+(?:an?\s+|the\s+)?(?:\w+\s+){0,3}?"
    r"`?((?:[a-z_]\w*\.)*[A-Z]\w*(?:Error|Exception))\b`?",
)

_CLASS_RAISED = re.compile(
    r"(?<![\w.])`?((?:[a-z_]\w*\.)*[A-Z]\w*(?:Error|Exception))`?(?: with no (?:message|text))?"
    r" (?:is|was|gets) (?:raised|thrown)\b(?! (?:if|when(?:ever)?|unless|for|only)\b)"
    r"|\b(?:[Ii]t|[Tt]his|which|[Tt]he (?:error|exception)) (?:is|was) an? "
    r"`?((?:[a-z_]\w*\.)*[A-Z]\w*(?:Error|Exception))\b(?! if)"
)
_CLASS_OF_TITLE = re.compile(
    r"(?:^|[\s:\]])`?((?:[a-z_]\w*\.)*[A-Z]\w*(?:Error|Exception))`?"
    r"(?=\s+(?:when|while|if|in|on|for|from|with|after|during|using|calling|at|by|because|due)\b|\s*$)"
)
"""A class that a title names: "KeyError when selecting nothing"."""
_REQUEST = re.compile(r"\b(?:raise|throw|add|missing|wants?|needs?|use|custom|document)\b", re.I)
_CLASS_ALONE = re.compile(r"^\W{0,6}((?:[a-z_]\w*\.)*[A-Z]\w*(?:Error|Exception))\W{0,6}$")
_LINK = re.compile(r"<?https?://\S+")
_VERB = (
    r"\b(?:rais(?:es|ed|ing)|throws?|thrown|(?:fail|crash|die)(?:s|d|ed|es)? "
    r"with|error|exception):?\s+(?:an?\s+|the\s+)?"
)
_CALLED_ERROR = re.compile(
    r"\b(?:gets?|got|getting|gives?|gave|see|seeing|throws?|raises?|raised"
    r"|fails? with|following|this|with)"
    r"\s+(?:me\s+)?(?:the\s+|an\s+|this\s+|following\s+|with\s+)*error(?:\s+message)?:?\s*$",
    re.I,
)
_CALLED_FAILURE = re.compile(
    r"\b(?:throws?|raises?|raised|complains?"
    r"|(?:fail|crash|die|error|stop)(?:s|ed|d|es)?(?: out)? with"
    r"|the (?:full |whole |exact )?(?:error|exception)(?: message)? (?:is|was|reads|says))"
    r"(?:\s+that)?[:,]?\s*$",
    re.I,
)
_SAYS = r"(?:saying|stating|says|reads|(?:that|which) (?:says|states|reads))"
_SAID_ERROR = re.compile(
    rf"\berror(?: message)?(?: I (?:get|got|see))?,? {_SAYS}(?: that)?[:,]?"
    r" (?P<words>[^`\n]{12,400})$"
    r"|^\W{0,4}(?:the )?(?:error(?: message)?|exception)\W{0,3}: ?(?P<more>[^`\n]{12,400})$",
    re.I,
)
"""Words of an error that a sentence gives without marks around them."""
_MOST_ERROR_LINES = 3
_NAMED_ERROR = re.compile(r"[\s:-]{0,3}(?:errors?|exceptions?)\b", re.I)
"""What follows the words of an error: "invalid argument" exception."""
_BEFORE = re.compile(rf"{_VERB}$", re.I)
_NAME_IN_PROSE = re.compile(
    rf"(?P<said>{_VERB})?(?<![\w./`'\"])(?P<exc>(?:[a-z_]\w{{0,60}}\.){{0,8}}[A-Z]\w{{0,80}}): "
    rf"(?P<msg>\S.{{0,2000}})"
)
_HEARSAY = re.compile(
    r"\b(?:[Ii]t|[Pp]ython|[Tt]erminal|[Cc]onsole|[Nn]otebook) (?:just |only )?"
    r"(?:says?|said|prints?|printed|shows?|showed)(?: me)?(?: something like)? "
    r"(?P<exc>(?:[a-z_]\w*\.)*[A-Z]\w*(?:Error|Exception)) "
    r"(?P<msg>(?!(?:when|whenever|if|every|each|because|as|after|before|and|but|or|for|in|on|at"
    r"|with|from|while|during|again|instead|should|must|is|was|here|there|since|so)\b)"
    r"\w[^\n`]{0,2000})"
)
"""A last line that is told without its colon."""

_ON = r"(?:(?!\b(?:but|yet|however|though|while|whereas|got|instead)\b)[^.;,]){0,60}$"
_WISHED = re.compile(
    rf"(?:\b(?:docs?|documentation|docstring) (?:says?|states?|claims?|promises)\b"
    rf"|\baccording to the (?:docs?|documentation)\b|(?<!as )\bexpect(?:s|ed|ing)?\b){_ON}"
    r"|\b(?:should|must|would|ought to|supposed to|used to|no longer|never|(?:do|does|did)"
    r"(?: not|n't))"
    r" (?:(?!not\b)\w+ ){0,2}?(?:be|raise|throw|give|fail|report|get|return|say|produce|error|end"
    rf"|warn|print|show|see)\b{_ON}"
    r"|\b(?:instead of|rather than)(?: \w+){0,2} ?$"
    rf"|\b(?:previously|formerly|earlier|in the past|used to)\b{_ON}",
    re.I,
)
_FORMER = re.compile(
    r"\b(?:in|until|before|with|up to|on)\b[^.;]{0,25}\d+\.\d[\w.]*[^.;]{0,20}"
    r"\b(?:raised|threw|gave|failed with|got|printed|warned|showed)\b[^.;]{0,20}$",
    re.I,
)
_SINCE = re.compile(r"\b(?:now|since|silently|no longer|newer|latest|nothing)\b", re.I)


_RIGHTLY = re.compile(
    r"[^.;\n]{0,40}\b(?:as (?:\w+ ){0,3}?"
    r"(?:docs?|document\w*|expected|intended|desired|should|must)"
    r"|correctly|rightly|properly|is (?:expected|right|correct|fine))\b",
    re.I,
)


def is_right(after: str) -> bool:
    """Whether the words after an exception say that it is raised as it should be."""
    return bool(_RIGHTLY.match(after))


def is_wished(before: str, following: str) -> bool:
    """Whether the words before an exception say that it should be raised, or was in the past:
    then it is what the report misses. `following` is the sentence after it.
    """
    is_former = bool(_FORMER.search(before)) and bool(_SINCE.search(following))
    return is_former or bool(_WISHED.search(before))


_EXPECTED_HEADING = re.compile(
    r"\W*(?:the )?(?:expected|desired)\b(?!.*\b(?:actual|vs|and)\b)", re.I
)
_TURN = re.compile(r"\b(?:but|instead|got|get|actually|however|currently|now)\b", re.I)


def _is_expectation(row: Sentence | ProseLine) -> bool:
    """Whether a sentence or line stands under a heading such as "Expected behavior", and does not
    turn to what happens.
    """
    heading = row.headings[-1] if row.headings else ""
    return bool(_EXPECTED_HEADING.match(heading)) and not _TURN.search(row.text)


def _with_following(words: Sequence[Sentence]) -> Iterator[tuple[Sentence, str]]:
    """The sentences, each with the text of the next."""
    texts = [*(sentence.text for sentence in words[1:]), ""]
    yield from zip(words, texts, strict=False)


_EMPHASIS = re.compile(r"^\s{0,3}([*_]{1,4})(?=[^\s*_])(.*[^\s*_])[*_]{1,4}\s*$")
"""A line that is all bold or in italics."""


def in_lines(prose: Sequence[ProseLine], home: str) -> Iterator[Traceback]:
    """Tracebacks in the text itself."""
    lines = [_EMPHASIS.sub(r"\2", re.sub(r"^\s{0,3}>\s?", "", line.text)) for line in prose]
    for span in tracebacks.find(lines, home=home, tight=True, loose=True):
        traceback, line = span.traceback, prose[span.start]
        telling = traceback.frames or traceback.message or traceback.exception.startswith("SIG")
        if not traceback.frames and _is_expectation(line):
            continue
        if telling and (is_class_name(traceback.exception) or not line.heading):
            yield traceback.model_copy(update={"line": line.number})
    yield from _hearsay(prose)
    for span in find_usage_errors([line.text for line in prose], in_prose=True):
        yield span.traceback.model_copy(update={"line": prose[span.start].number})


def _hearsay(prose: Sequence[ProseLine]) -> Iterator[Traceback]:
    for line in prose:
        match = _HEARSAY.search(line.text) if "Error" in line.text or "Exc" in line.text else None
        if not match or _is_expectation(line) or is_wished(line.text[: match.start("exc")], ""):
            continue
        message = _unquoted(match["msg"]).rstrip(".!")
        if len(message.split()) > _LEAST_WORDS and not _LINK.search(message):
            yield Traceback(exception=match["exc"], message=message, line=line.number)


def without_class(words: Sequence[Sentence]) -> Iterator[Traceback]:
    """Messages in ticks or quotation marks that the words around them call an error, without its
    class.
    """
    before = ""
    for sentence, following in _with_following(words):
        for quote in _QUOTED_TEXT.finditer(sentence.text):
            text_before = f"{before} {sentence.text[: quote.start()]}"
            message = (quote["code"] or quote["words"]).strip()
            called = _CALLED_ERROR.search(text_before) or (
                _CALLED_FAILURE.search(text_before) and tree_of(message) is None
            )
            after = sentence.text[quote.end() :]
            is_named = _NAMED_ERROR.match(after) and tree_of(message) is None
            is_named = is_named and not is_right(after)
            fewest = 2 if is_named else 4
            called = (called or is_named) and not is_wished(text_before, following)
            if called and len(message.split()) >= fewest and " " in message[:40]:
                yield Traceback(
                    exception="", message=message, line=sentence.line_at(quote.start() + 1)
                )
        if words_match := _SAID_ERROR.search(sentence.text[:2000]):
            message = _unquoted(words_match["words"] or words_match["more"]).rstrip(".!")
            if len(message.split()) > _LEAST_WORDS and not is_wished(
                sentence.text[: words_match.start()], following
            ):
                yield Traceback(exception="", message=message, line=sentence.line)
        before = sentence.text[-80:]


def in_blocks(blocks: Sequence[tuple[CodeBlock, Fence]]) -> Iterator[Traceback]:
    """Blocks of nothing but the words of an error, by the words before them, without its class."""
    for code, fence in blocks:
        lines = [line.strip() for line in fence.raw.split("\n") if line.strip()]
        is_words = fence.kind is FenceKind.OUTPUT and 0 < len(lines) <= _MOST_ERROR_LINES
        if not is_words or fence.role not in {Role.OBSERVED, Role.UNSTATED}:
            continue
        lead, message = code.lead[-200:], " ".join(lines)
        is_error = bool(_CALLED_ERROR.search(lead) or _CALLED_FAILURE.search(lead))
        is_error = is_error and not is_wished(lead, "")
        if is_error and len(message.split()) > _LEAST_WORDS and not is_value(message):
            yield Traceback(exception="", message=message, fence=fence.index, line=fence.line)


def in_words(words: Sequence[Sentence]) -> Iterator[Traceback]:
    """Last lines quoted within a sentence, each with its line in the body."""
    for sentence, following in _with_following(words):
        if ": " not in sentence.text or _is_expectation(sentence):
            continue
        quotes = [
            (
                match["exc"],
                _whole(match["msg"].strip(), sentence.text[code_span.end() :]),
                code_span.start(1),
            )
            for code_span in _CODE_SPAN.finditer(sentence.text)
            if (match := _message_in_code(code_span[1], sentence.text[: code_span.start()]))
            and match["msg"]
            and "Warning" not in match["exc"]
        ]
        plain = None if quotes else INLINE.search(sentence.text) or _plain(sentence.text)
        if plain:
            quotes = [(plain["exc"], _unquoted(plain["msg"]), plain.start("exc"))]
        for exception, message, start in quotes:
            if _LINK.fullmatch(message):  # "ends in a TypeError: <where the check stands>"
                continue
            if is_wished(sentence.text[:start].rstrip("` *"), following):
                continue
            yield Traceback(exception=exception, message=message, line=sentence.line_at(start))


_CALL_NAME = re.compile(r"[\w.]+\(\)")
_UNBOUND = re.compile(
    r"\s*((?:got (?:an unexpected|multiple|some|\d)|missing \d|takes (?:\d|no|exactly|at|from))"
    r"[^.;\n`]{0,200})"
)


def _whole(message: str, following: str) -> str:
    """A message of which only the name of the call is in ticks, with what Python says of it."""
    rest = _UNBOUND.match(following) if _CALL_NAME.fullmatch(message) else None
    return f"{message} {rest[1].strip(' ,!?')}" if rest else message


def _message_in_code(text: str, before: str) -> re.Match[str] | None:
    """A piece of code that is the last line of an exception, by itself or by the words before
    it.
    """
    match = CLASS_LINE.match(text) if _BEFORE.search(before) else None
    return (
        match_exception_line(text)
        or match_probable_exception(text)
        or (match if match and could_be(match["exc"]) else None)
    )


def _plain(text: str) -> re.Match[str] | None:
    """A class before its message, where the name or the words before it say that it was raised."""
    for match in _NAME_IN_PROSE.finditer(text):
        if is_class_name(match["exc"]) or (match["said"] and could_be(match["exc"])):
            return match
    return None


def _unquoted(words: str) -> str:
    """A message without the marks around it; quotes that belong to it come in pairs."""
    words = words.strip(" `*")
    for mark in "\"'":
        if words.count(mark) % 2:
            words = re.sub(rf"{mark}[.,;!]$", "", words).strip(mark)
    in_brackets = words.endswith(")") and words.count(")") == words.count("(") + 1
    return (words[:-1] if in_brackets else words).strip()


def makes(programs: str, name: str) -> bool:
    """Whether programs call what has this name, as they do with a class that they use: then a
    line `pkg.Thing: words` is about it. A name that can be nothing but an exception's stays one.
    """
    call_pattern = rf"(?<!raise )\b(?:[a-z_]\w*\.)*{re.escape(name.rpartition('.')[2])}\s*\("
    only = is_class_name(name) or name.startswith("SIG")
    return not only and re.search(call_pattern, programs) is not None


_OCCASION = re.compile(
    r"(?<!encountered)(?<!occurred)(?<!raised),? (?:when|while|during) "
    r"(?:\w+ing|i|you|we|the|a|an) ",
    re.I,
)
_LEAST_WORDS = 3


def _without_occasion(message: str) -> str:
    """The message of a title without the words of its author after it that tell when it arises."""
    occasion = _OCCASION.search(message)
    words = message[: occasion.start()] if occasion else message
    return (words if len(words.split()) >= _LEAST_WORDS else message).strip(" `")


def in_title(
    issue: Issue, words: Sequence[Sentence], fences: Sequence[Fence]
) -> Iterator[Traceback]:
    """The title's exception; without one, a class that the title or a sentence says was raised,
    without its message, at the one statement that this can mean.
    """
    match = match_exception_line(issue.title.strip(" `")) or INLINE.search(issue.title)
    if match and match["msg"] and not is_wished(issue.title[: match.start("exc")], ""):
        yield Traceback(exception=match["exc"], message=_without_occasion(match["msg"]), line=0)
        return
    if usage := usage_error(issue.title, in_prose=True):
        yield Traceback(exception=EXCEPTION, message=usage, line=0)
        return
    rows = [(issue.title, 0), *((row.text, row.line) for row in words[:40])]
    for text, line in rows:
        verb_match = _RAISED_CLASS.search(text) or _CLASS_RAISED.search(text)
        raised_match = verb_match or _class_alone(text, line)
        name = next(filter(None, raised_match.groups()), "") if raised_match else "SIGSEGV"
        group = (raised_match.lastindex or 0) if raised_match else 0
        if raised_match and (
            is_wished(text[: raised_match.start(group)], "")
            or is_right(text[raised_match.end(group) :])
        ):
            continue
        if raised_match or WORDS.search(text):
            before = text[: raised_match.start()] if raised_match else ""
            programs = _programs_of(fences) if raised_match else []
            # What a title or a line names, it means; else the end of the only program.
            is_about_all = not (line and verb_match) and not _CALLED.search(text)
            ends_with = _ANY_WORDS if is_about_all else _WHOLE_OR_I
            claims = _claimed(text, before, programs, ends_with=ends_with)
            fence, codes = next(claims, (None, list[str]()))
            frames = tuple(
                Frame(path="", code=code)
                for code in codes
                if fence is not None and _may_be_librarys(code, fence)
            )
            yield Traceback(exception=name, message="", frames=frames, line=line)
            return


def _class_alone(text: str, line: int) -> re.Match[str] | None:
    """A class that a title names, or that is all of a line of the text."""
    match = _CLASS_ALONE.search(text) if line else _CLASS_OF_TITLE.search(text)
    before = text[: match.start(1)] if match else ""
    is_request = _NO_CLAIM.search(before) or _REQUEST.search(before)
    return None if is_request else match


def _may_be_librarys(code: str, fence: Fence) -> bool:
    """Whether a statement works with anything that may be of a library: what the program imports or
    computes with that, or what nothing in it defines.
    """
    tree = module_of(fence.text)
    own = bound_names(tree) - staged.library_values(tree) | {*dir(builtins)}
    return not data_flow.names_in(module_of(code), ast.Load) <= own


# Remarks in a program that say which statement fails: `# raises ValueError`, `# <- crashes`.

_REMARK = re.compile(r"^(?P<code>[^#]*)#+\s*(?P<note>\S.*)$")
_CLASS = (
    r"(?<![\w./])(?P<exc>(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception))\b"
    r"(?::\s+(?P<msg>\S.*))?"
)
_FAILS = (
    r"\b(?:fails?|crash(?:es)?|raises|throws?|breaks|boom|does(?: not|n't) work)\b"
    r"|\b(?:errors?|crash|fail(?:ure)?)(?: (?:here|out)\b|!|$)"
    r"|\b(?:exception|error|failure)s? (?:is|are|gets?) (?:raised|thrown)\b"
    r"|\b(?:raised|thrown|occurs?|happens?) here\b"
)
_SILENT = re.compile(r"^\s*#+\s*(?P<code>[^#\s][^#]*?)\s+#+\s*(?P<note>\S.*)$")
_FAILURE_WORDS = re.compile(rf"{_CLASS}|(?i:{_FAILS})")
_DENIED = re.compile(
    r"\b(?:no|not|never|without|should|would|could|might|may|can|expect\w*|used to|instead|when"
    r"|if|until|avoids?|prevents?|handles?|catch\w*|ignores?|suppress\w*)\b|n't\b",
    re.I,
)
_ELSEWHERE = re.compile(
    r"\?|\b(?:works?|worked|fixed|expected|if|when|unless|only|for|in|on|with|without)\b", re.I
)
_WORKS = re.compile(r"(?<!not )(?<!n't )\b(?:works?|okay|ok|fine|passes|succeeds)\b|\u2705", re.I)
_MOST_USERS = 6
_LONGEST, _MOST_REMARKED_LINES, _MOST = 160, 3000, 2
_ROLES = {Role.REPRODUCER, Role.UNSTATED, Role.OBSERVED}
_ACTIVE = (ast.Call, ast.BinOp, ast.Subscript, ast.Attribute, ast.Compare)
_SIMPLE = (
    *(ast.Expr, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return, ast.Delete, ast.Assert),
)
_HEADED_STATEMENTS = (ast.For, ast.With, ast.If, ast.While)


def find_remarks(fences: Sequence[Fence], *, worded: bool = False) -> Iterator[Traceback]:
    """The failures that remarks name, each at its statement: on its line, or alone above or below
    it. The class is "" where the remark gives none. Unless the error is `worded` elsewhere, the
    statement has to use something of a library.
    """
    program_fences = (row for row in fences if row.kind is FenceKind.PROGRAM and row.role in _ROLES)
    yield from islice((row for fence in program_fences for row in _of(fence, worded)), _MOST)


def _of(fence: Fence, worded: bool) -> Iterator[Traceback]:
    tree, lines = module_of(fence.text), fence.text.split("\n")
    for at, line in enumerate(lines[:_MOST_REMARKED_LINES]):
        match = _REMARK.match(line) if "#" in line and len(line) < 1000 else None
        silent = _silent_statement(line) if match and not match["code"].strip() else None
        traceback = _traceback_of_note((silent or match)["note"]) if match else None
        if match is None or traceback is None or match["code"].count('"') % 2:
            continue
        following = lines[at + 1] if at + 1 < len(lines) else ""
        number = at + 1 if match["code"].strip() else at + 2 if following.strip() else at
        code = silent["code"] if silent else _statement(tree, lines, number)
        if code and (worded or traceback.message or _may_be_librarys(code, fence)):
            is_assert = not traceback.exception and code.startswith("assert ")
            update = {"frames": (Frame(path="", code=code),), "fence": fence.index}
            yield traceback.model_copy(
                update=update | ({"exception": "AssertionError"} if is_assert else {})
            )


def _silent_statement(line: str) -> re.Match[str] | None:
    """A statement that is commented out, with a remark behind it; it says nothing of the
    statements around it.
    """
    match = _SILENT.match(line)
    body = module_of(match["code"]).body if match else []
    return match if body and isinstance(body[0], _SIMPLE) and _acts(body[0]) else None


def _traceback_of_note(note: str) -> Traceback | None:
    """The failure that a remark names; None where it names none, denies one, expects one or sets
    a condition.
    """
    matches = list(_FAILURE_WORDS.finditer(note)) if len(note) <= _LONGEST else []
    if not matches or _DENIED.search(note[: matches[0].start()]):
        return None
    match_of_class = next((match for match in matches if match["exc"]), matches[-1])
    words = (match_of_class["msg"] or "").strip()
    rest = "" if words else note[matches[-1].end() :]
    exception = match_of_class["exc"] or ""
    return None if _ELSEWHERE.search(rest) else Traceback(exception=exception, message=words)


def _statement(tree: ast.Module, lines: list[str], number: int) -> str:
    """The lines of the statement on a line: what it calls, or the head of a block. For a value
    that is only given a name, the statements that use it or what is made of it: any may fail.
    """
    for node in ast.walk(tree):
        if isinstance(node, _SIMPLE) and node.lineno <= number <= (node.end_lineno or node.lineno):
            users = [node] if _acts(node) else _users(tree, node)
            return "\n".join(_lines_of(user, lines) for user in users[:_MOST_USERS])
        if isinstance(node, _HEADED_STATEMENTS) and node.lineno == number:
            return lines[number - 1].strip()
    return ""


def _acts(node: ast.AST) -> bool:
    return any(isinstance(part, _ACTIVE) for part in ast.walk(node))


def _lines_of(node: ast.stmt, lines: list[str]) -> str:
    return "\n".join(line.strip() for line in lines[node.lineno - 1 : node.end_lineno])


def _users(tree: ast.Module, node: ast.stmt) -> list[ast.stmt]:
    """The later statements that do something with the names which a statement binds, or with what
    such statements bind.
    """
    names = set(data_flow.names_in(node, ast.Store))
    later = [
        part for part in ast.walk(tree) if isinstance(part, _SIMPLE) and part.lineno > node.lineno
    ]
    users = list[ast.stmt]()
    for other in sorted(later, key=lambda part: part.lineno):
        if names & data_flow.names_in(other, ast.Load):
            users += [other] if _acts(other) else []
            names |= data_flow.names_in(other, ast.Store)
    return users


# Failures that a sentence claims of a call or of the program, without an error's text:
# "`f(x)` crashes". The class is "", as for a remark.

_CLAIM = re.compile(
    r"\b(?:crashes|crash|is crashing|errors out|blows up|does(?: not|n't) run"
    r"|(?:raises|throws|gives|triggers|results in|ends in) an? (?:\w+ )?(?:error|exception|crash)"
    r"(?! of\b)"
    r"|an? (?:\w+ )?(?:error|exception) (?:occurs|occurred|arises|arose|happens|happened|appears"
    r"|pops up|(?:is|was|gets) (?:raised|thrown))"
    r"|fails? to (?P<does>\w+)"
    r"|fails(?! silently| to ))\b",
    re.I,
)
_NO_CLAIM = re.compile(
    r"\b(?:no|not|never|without|should|would|could|might|may|expect\w*|used to|instead|previously"
    r"|older|earlier|avoids?|prevents?|handles?|unless|whether|another|tests?|assert\w*|sometimes)\b|n't\b",
    re.I,
)
_WHOLE = re.compile(
    r"\b(?:this|it|following|code|script|snippet|program|example|last (?:line|statement|call))\b"
    r"(?:\W+\w+){0,4}\W*$",
    re.I,
)
_ANY_WORDS = re.compile("")
_WHOLE_OR_I = re.compile(rf"{_WHOLE.pattern}|\b(?:i|we|you|one)\W*$", re.I)
_CALLED = re.compile(r"`([^`\n]{2,120})`|(?<![\w./@-])((?:[A-Za-z_]\w*\.)+[A-Za-z_]\w*)")
_WHOLE_WORK = {"run", "start", "load", "build", "compile", "import", "execute", "parse"}
_MOST_CLAIMS = 20


def find_claims(
    issue: Issue, words: Sequence[Sentence], fences: Sequence[Fence], home: str
) -> Iterator[Traceback]:
    """The first failure that the title or a sentence claims, at the one statement that it can
    mean: what it names and one statement alone calls, else the end of the only program. That
    another library than `home` fails is no claim.
    """
    programs = _programs_of(fences)
    texts = [(issue.title, 0), *((row.text, row.line) for row in words[:_MOST_CLAIMS])]
    for text, line in ((text[:2000], line) for text, line in texts):
        match = _CLAIM.search(text)
        before = text[: match.start()] if match else ""
        if match is None or _NO_CLAIM.search(before) or text.rstrip().endswith("?"):
            continue
        if is_right(text[match.end() :]):
            continue
        if references.is_about_reference(f"{before} ", home):
            continue
        does = match["does"] or ""
        if does and does.lower() not in _WHOLE_WORK:
            # "`make()` fails to sample": at what is called so, or nowhere.
            text, before = f"`{does}`", f"`{does}`"
        for fence, codes in _claimed(text, before, programs):
            frames = tuple(Frame(path="", code=code) for code in codes)
            yield Traceback(exception="", message="", frames=frames, fence=fence.index, line=line)
            return


def _programs_of(fences: Sequence[Fence]) -> list[Fence]:
    return [fence for fence in fences if fence.kind is FenceKind.PROGRAM and fence.role in _ROLES]


def _claimed(
    text: str, before: str, programs: Sequence[Fence], ends_with: re.Pattern[str] = _WHOLE
) -> Iterator[tuple[Fence, list[str]]]:
    """The statements that a claim may mean, the surest first; the end of the only program where the
    words `before` it are about all of it.
    """
    names = [match[1] or match[2] for match in _CALLED.finditer(before)][::-1]
    for piece in names or [match[1] or match[2] for match in _CALLED.finditer(text)]:
        hits = [
            (fence, node)
            for fence in programs
            for node in _statements(fence)
            if _means(node, piece)
        ]
        if len(hits) == 1:
            fence, node = hits[0]
            lines, tree = fence.text.split("\n"), module_of(fence.text)
            is_made = re.search(r"(?:^|\.)[A-Z]\w*$", piece.split("(")[0].strip())
            users = _users(tree, node) if is_made and isinstance(node, ast.Assign) else []
            yield fence, [_lines_of(one, lines) for one in (node, *users)]
    ends = [rows[-1] for fence in programs if (rows := _statements(fence))]
    is_meant = len(ends) == 1 and any(_means(ends[0], piece) for piece in names)
    if is_meant or (len(ends) == 1 and ends_with.search(before)):
        fence = next(fence for fence in programs if _statements(fence))
        yield fence, [_lines_of(ends[0], fence.text.split("\n"))]


def _statements(fence: Fence) -> list[ast.stmt]:
    """What a program does, in its functions too, without what a remark says works."""
    lines = fence.text.split("\n")
    nodes = (node for node in ast.walk(module_of(fence.text)) if isinstance(node, _SIMPLE))
    acting = (node for node in nodes if _acts(node) and not isinstance(node, ast.Assert))
    works = (
        node
        for node in acting
        if not _WORKS.search(lines[(node.end_lineno or 1) - 1].partition("#")[2])
    )
    return sorted(works, key=lambda node: node.lineno)


def _means(node: ast.stmt, piece: str) -> bool:
    """Whether a statement holds a piece of code, or calls what it names."""
    if "(" in piece and not piece.rstrip().endswith(("()", "(...)", "(…)")):
        return _plain_code(piece) in _plain_code(ast.unparse(node))
    name = piece.partition("(")[0].strip().rpartition(".")[2]
    return any(isinstance(part, ast.Call) and name_of(part.func) == name for part in ast.walk(node))


def _plain_code(text: str) -> str:
    return re.sub(r"\s+", "", text).replace('"', "'")


# Exceptions that a program of the report catches and prints in words of its own.

_MOST_CAUGHT_LINES = 200
_FEWEST_WORDS = 3
_PRINTERS = {FenceKind.OUTPUT, FenceKind.LOG, FenceKind.TRACEBACK}
_ROOTS = {"", "Exception", "BaseException"}


def find_caught(fences: Sequence[Fence]) -> Iterator[Traceback]:
    """What lines of pasted output tell of an exception, by the prints in the handlers of the
    report's programs.
    """
    programs = [fence for fence in fences if fence.kind is FenceKind.PROGRAM]
    forms = [form for fence in programs for form in _forms(module_of(fence.text))]
    for fence in fences if forms else ():
        lines = fence.raw.split("\n")[:_MOST_CAUGHT_LINES] if fence.kind in _PRINTERS else ()
        for number, line in enumerate(lines, fence.line):
            rows = (_row(form, kind, line) for form, kind in forms)
            if row := next(filter(None, rows), None):
                yield row.model_copy(update={"fence": fence.index, "line": number})


def _row(form: re.Pattern[str], kind: str, line: str) -> Traceback | None:
    match = form.fullmatch(line.strip()) if len(line) < 1000 else None
    words = match["words"].strip() if match else ""
    exception = (match.groupdict().get("kind") or kind) if match else ""
    enough = len(words.split()) >= (1 if exception else _FEWEST_WORDS)
    return Traceback(exception=exception, message=words) if enough else None


def _forms(tree: ast.Module) -> Iterator[tuple[re.Pattern[str], str]]:
    """How each print in a handler shows the exception, and the class that the handler catches."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler) and node.name:
            kind = name_of(node.type) if node.type else ""
            calls = (part for statement in node.body for part in ast.walk(statement))
            for call in calls:
                if isinstance(call, ast.Call) and is_call_of(call, "print"):
                    pattern = r"\s*".join(_pattern(part, node.name) for part in call.args)
                    has_kind = "<kind>" in pattern or _labels(call)
                    if has_kind and pattern.count("<words>") == 1 and pattern.count("<kind>") <= 1:
                        yield re.compile(pattern), "" if kind in _ROOTS else kind


def _labels(call: ast.Call) -> bool:
    """Whether a print has words of its own, by which its lines are known."""
    return any(
        isinstance(part, ast.Constant) and re.search(r"[A-Za-z]{3}", str(part.value))
        for part in ast.walk(call)
    )


def _pattern(node: ast.expr, name: str) -> str:
    """A regular expression for what printing an expression shows of the exception `name`."""
    match node:
        case ast.Constant(value=value):
            return re.escape(str(value).strip())
        case ast.JoinedStr(values=values):
            return r"\s*".join(_pattern(value, name) for value in values)
        case ast.FormattedValue(value=value):
            return _pattern(value, name)
        case ast.Call(func=ast.Name(id="str"), args=[value]):
            return _pattern(value, name)
        case ast.Name(id=target) if target == name:
            return "(?P<words>.+)"
        case ast.Attribute(value=ast.Call(func=ast.Name(id="type")), attr="__name__"):
            return r"(?P<kind>\w+)"
    return ".*?"
