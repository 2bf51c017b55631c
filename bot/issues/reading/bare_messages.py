"""Messages of Python's own failures, and of PyTorch's, that a report quotes without their class,
mostly in its title: the words alone say which class it is.
"""

import re
from collections.abc import Iterator, Sequence

from bot.issues.reading.markdown import Sentence
from bot.kernel.bug import Frame, Issue, Traceback

_NAME = r"['\"`\u2018\u2019]{0,2}[\w.]{1,100}['\"`\u2018\u2019]{0,2}"
_COUNT = r"\d{1,3}(?:, got \d{1,3})?"
_OF_PYTORCH = (
    "one of the variables needed for gradient computation has been modified by an inplace",
    r"mat1 and mat2 shapes cannot be multiplied \(\d{1,9}x\d{1,9} and \d{1,9}x\d{1,9}\)",
    r"[Tt]he size of tensor a \(\d{1,9}\) must match the size of tensor b \(\d{1,9}\)",
    "[Ee]lement 0 of tensors does not require grad and does not have a grad_fn",
    "[Tt]rying to backward through the graph a second time",
    "[Bb]oolean value of Tensor with more than one value is ambiguous",
)
_POSITIONAL = "required positional arguments?"
_MESSAGES = tuple(
    (exception, re.compile(rf"(?<![\w'\"]){words}(?![\w])"))
    for exception, words in (
        ("AttributeError", rf"[Mm]odule {_NAME} has no attribute {_NAME}"),
        ("AttributeError", rf"type object {_NAME} has no attribute {_NAME}"),
        ("AttributeError", r"'\w{1,100}' object has no attribute '\w{1,100}'"),
        ("ModuleNotFoundError", r"[Nn]o module named '[\w.]{1,100}'"),
        ("ImportError", rf"[Cc]annot import name {_NAME} from {_NAME}"),
        ("TypeError", r"[\w.]{1,100}\(\) got an unexpected keyword argument '\w{1,100}'"),
        ("TypeError", rf"[\w.]{{1,100}}\(\) missing \d{{1,2}} {_POSITIONAL}: '\w[^\n]{{0,200}}'"),
        ("TypeError", r"'\w{1,100}' object is not (?:callable|iterable|subscriptable)"),
        ("NameError", r"name '\w{1,100}' is not defined"),
        ("UnboundLocalError", r"local variable '\w{1,100}' referenced before assignment"),
        ("ZeroDivisionError", r"(?:integer )?division (?:or modulo )?by zero"),
        ("ValueError", rf"(?:too many|not enough) values to unpack \(expected {_COUNT}\)"),
        ("IndexError", "(?:list|tuple) index out of range"),
        *(("RuntimeError", words) for words in _OF_PYTORCH),
    )
)  # fmt: skip
_UNDEFINED = re.compile(
    r"\b(?:[Nn]o|[Uu]ndefined) (?:variable|name)s? (?:is |was )?"
    r"(?:(?:defined|named|called)(?: as)? )?"
    r"['\"`\u2018\u201c](?P<name>[A-Za-z_]\w{0,80})['\"`\u2019\u201d]"
    r"|['\"`\u2018\u201c](?P<lacking>[A-Za-z_]\w{0,80})['\"`\u2019\u201d]"
    r" (?:is|was) (?:not|never) (?:defined|imported)\b"
)
_NAME_ERROR = re.compile(r"\bname ?errors?\b", re.IGNORECASE)
"""What a report says of a name that nothing defines, beside the name of Python's error."""
_UNEXPECTED = re.compile(
    r"\b[Uu]nexpected (?:keyword )?argument:? ['\"`](?P<name>[A-Za-z_]\w{0,80})"
)
_AT_CODE = re.compile(
    r"\b(?:at|in|on|from) (?:the )?(?:following )?(?:line|statement|code)\b[\s:*]{0,4}"
    r"`(?P<code>[^`\n]{3,300})`"
)
_PLACE = re.compile(
    r"\s{0,3}(?:[@,;]|(?:in|at|on|when|whenever|while|during|after|since|if|but|and|line)\b)"
)
_ELSEWHERE = re.compile(r"\b(?:not|no longer|instead of|rather than|used to|was|were)\b[^.]{0,40}$")
_MOST = 200


def find_bare_messages(issue: Issue, words: Sequence[Sentence]) -> Iterator[Traceback]:
    """The first such message of the title or the text, as an exception without frames."""
    texts = [(issue.title, 0), *((row.text, row.line) for row in words[:_MOST])]
    for text, line in ((text[:2000], line) for text, line in texts):
        for exception, pattern in _MESSAGES:
            match = pattern.search(text)
            if match is not None and not _ELSEWHERE.search(text[: match.start()]):
                message = (
                    match[0][:1].lower() + match[0][1:]
                    if exception == "AttributeError"
                    else match[0]
                )
                yield Traceback(
                    exception=exception, message=message, frames=_frames(text), line=line
                )
                return
    for text, line in texts:
        match = _UNEXPECTED.search(text[:2000])
        if match is not None and not _ELSEWHERE.search(text[: match.start()]):
            message = f"got an unexpected keyword argument '{match['name']}'"
            yield Traceback(exception="TypeError", message=message, frames=(), line=line)
            return
    if any(_NAME_ERROR.search(text[:2000]) for text, _ in texts):
        rows = ((_UNDEFINED.search(text[:2000]), line) for text, line in texts)
        match, line = next((row for row in rows if row[0]), (None, 0))
        if match is not None:
            message = f"name '{match['name'] or match['lacking']}' is not defined"
            yield Traceback(exception="NameError", message=message, frames=(), line=line)


def without_place(row: Traceback) -> Traceback:
    """An exception that a sentence names, its message up to where the sentence tells when or where
    it happens: Python's own ends before.
    """
    name = row.exception.rpartition(".")[2]
    matches = (words.match(row.message) for exception, words in _MESSAGES if exception == name)
    match = next(filter(None, matches), None)
    is_longer = match is not None and _PLACE.match(row.message, match.end())
    return row.model_copy(update={"message": match[0]}) if match and is_longer else row


def _frames(text: str) -> tuple[Frame, ...]:
    """The line of code at which a sentence says that it happens."""
    match = _AT_CODE.search(text)
    return (Frame(path="", code=match["code"].strip()),) if match is not None else ()
