"""What in a report leads to which code: words, names, quoted lines."""

import ast
import builtins
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from itertools import islice
from pathlib import PurePosixPath
from typing import NamedTuple

from bot.environment import imports
from bot.kernel.bug import (
    BugReport,
    CrashSignature,
    Frame,
    Issue,
    Symptom,
    Traceback,
    WarningSignature,
    members_of,
)
from bot.kernel.dialogue import Interpretation
from bot.kernel.environment import Chunk
from bot.kernel.ports import SourceIndex
from bot.kernel.source import index, objects, symbols
from bot.kernel.source.index import Name, identifiers, index_words, query_words
from bot.kernel.source.outline import Segment, body, outline, size, without_docstrings
from bot.kernel.source.syntax import docstrings, dotted, tree_of, tree_of_lines
from prompts import shared

# The Python files that a report's words name, and which definitions of such a file to look at.

_FILE = re.compile(r"(?<![\w.@-])/?(?:[\w.-]{1,80}/){0,12}[\w-]{1,80}\.py(?![\w/])")
_PLACE = re.compile(
    rf"""{_FILE.pattern}["'`]?(?:,? (?:on |at |in )?line |:|#L)(?P<after>\d{{1,6}})\b"""
    rf"""|\blines? (?P<before>\d{{1,6}}) (?:in|of) (?:the file )?["'`]?{_FILE.pattern}"""
)
_MOST = 6


def files_named(issue: Issue) -> Iterator[str]:
    """Paths in the title, then in the words of the body, each once."""
    names = _FILE.findall(f"{issue.title}\n{index.prose(issue)}")
    yield from list(dict.fromkeys(names))[:_MOST]


def places_named(text: str) -> Iterator[tuple[str, int]]:
    """The files that a text names with a line, each with it."""
    for match in islice(_PLACE.finditer(text), _MOST):
        (path,) = _FILE.findall(match[0])[:1]
        yield path, int(match["after"] or match["before"])


def telling(path: str, text: str, issue: Issue, most: int) -> Sequence[Segment]:
    """The definitions of a file that share most words with the report."""
    query = set(query_words(f"{issue.title} {index.prose(issue)}", 200))
    lines = text.split("\n")
    worth: dict[Segment, float] = {}
    for segment in outline(text, path):
        own = set(
            index_words(identifiers("\n".join(lines[segment.start - 1 : segment.end]))).split()
        )
        name = set(index_words(identifiers(segment.simple_name)).split())
        worth[segment] = (len(query & own) + 2 * len(query & name)) / (8 + len(own)) ** 0.5
    defined = [segment for segment in worth if segment.kind != "module"] or list(worth)
    return sorted(defined, key=lambda segment: (-worth[segment], segment.start))[:most]


# What the report's words name exactly: definitions, files, arguments, words of messages.

_MESSAGE = re.compile(
    r"""\b\w+(?:Error|Exception|Warning)`?: *(?P<raised>[^\n`]{12,300})"""
    r"""|(?<!\w)["“](?P<quoted>[^"“”\n]{12,300})["”](?!\w)"""
)
_EXCEPTION = re.compile(r"\b[A-Z]\w+(?:Error|Exception|Warning)\b")
_CODE_NAME = re.compile(
    r"(?<![\w.])(?=\w*(?:[a-z]_|[a-z][A-Z]|\w\.[A-Za-z_]|__))[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*",
    re.ASCII,
)
"""A name with an underscore, a dot or a capital inside, as code has it and prose has not."""
_COMMENT = re.compile(r"(?m)^[ \t]*#.*$")
_UNBOUND = re.compile(
    r"\(\) (?:missing \d+ required|got (?:an unexpected|multiple values)|takes .{1,60} positional)"
)
_MANY = 8
_MOST_WINDOWS = 10
_NEARLY = 0.6
_HIT_LINES = 50
_READ_LINES = 2_000
_MOST_PUBLISHED = 20
_ENTRIES = (("__init__",), ("forward", "call", "__call__"), ("build",))
_ENTRY_SHARES = (0.45, 0.6, 0.45)
_FAR = 0.3
_DEEPEST, _MOST_LOCATED = 8, 40
_ELSEWHERE = 0.25
_MODULES = frozenset(module.partition(".")[0] for module in imports.MODULES.values())
_UNCLAIMED = 0.6
_OWN, _OWN_WORDS = 0.4, 0.15
"""Less is the score of code that a package carries along from others, and that of a dependency's
tests.
"""


class Hint(NamedTuple):
    """A piece that something in the report leads to, how strongly, and why; `receiver` is the
    class of the object that it is called on, where that may be a subclass of its own. `is_call`:
    only another piece leads to it, by calling it.
    """

    chunk: Chunk
    weight: float
    why: str
    receiver: str = ""
    is_call: bool = False


def named_definitions(
    names: Sequence[Name], sources: SourceIndex, paths: Sequence[str] = ()
) -> Iterator[Hint]:
    """Definitions of names, a class with its constructor and its call; a name with many
    definitions says little about each, unless the report names the file or the class of one.
    `paths` are the files that it names.
    """
    parts = Counter(part for name in names for part in name.text.split("."))
    words = set(index_words(parts).split())
    for name in names:
        chunks, close = _closest(_definitions(name.text, sources), parts, words, paths)
        close = close or ("." in name.text and len(chunks) == 1)
        if name.text.startswith("__"):  # as many classes have
            chunks = [chunk for chunk in chunks if chunk.name.split(".")[-2] in parts]
        share = _share(name.text, len(chunks)) * (1.0 if close else _FAR)
        why = shared("why_named", name=name.text, where=name.where)
        if wrapped := [*_in_module(name.text, chunks, sources)]:
            yield from (Hint(chunk, name.weight, why) for chunk in wrapped)
            share *= _FAR
        for place, chunk in enumerate(chunks[:3]):
            weight = name.weight * share * chunk.score**2 / (1 + place)
            yield Hint(chunk, weight, why, _receiver(name.text, chunk, sources))
        if len(chunks) == 1 and chunks[0].kind == "class":
            weight = name.weight * share * chunks[0].score ** 2
            yield from _entries(chunks[0], weight, why, sources)


def _definitions(name: str, sources: SourceIndex) -> Sequence[Chunk]:
    """What a name means, and of an object that is called or asked for what it lacks, what does
    the work; "make().run" is a method of what `make` returns.
    """
    owner, _, last = name.rpartition(".")
    if owner.endswith("()"):
        owner = _returned(owner.removesuffix("()"), sources)
        if not owner:  # whose method it is nobody knows, unless there is only one
            only = sources.symbol(last, 2)
            return only if len(only) == 1 and not _is_foreign(only[0], last) else ()
        name = f"{owner}.{last}"
    for member in (*objects.ENTRIES.get(last, ()), last) if owner else ():
        if method := _member(owner, member, sources):
            return [*_overridden(owner, last, member, sources), *method]
    if owner and (owners := _class_of_instance(owner, sources)):
        return [method for one in owners for method in _member(one, last, sources)]
    chunks = [
        piece
        for piece in sources.symbol(name, 5)
        if (piece.kind != "module" or "." in name) and not _is_foreign(piece, name)
    ]
    if chunks or not owner:
        return chunks
    if classes := _published(name, sources):
        return classes
    members = [
        row for one in _published(owner, sources) for row in _member(one.name, last, sources)
    ]
    return members or (_member(owner, "__getattr__", sources) if "__" not in last else ())


def _in_module(name: str, chunks: Sequence[Chunk], sources: SourceIndex) -> Sequence[Chunk]:
    """What a module says of a name that only another package defines: it wraps or registers it."""
    scope, _, last = name.rpartition(".")
    package = scope.partition(".")[0]
    if not scope or not chunks or any(package in chunk.path.split("/")[:2] for chunk in chunks):
        return ()
    paths = symbols.paths_of(scope)
    return [hit for hit in sources.literal(last, _MANY) if hit.path in paths][:2]


def _published(name: str, sources: SourceIndex) -> Sequence[Chunk]:
    """The classes that a package may mean by a name under which it publishes one that is defined
    elsewhere in it: those that share most of the modules.
    """
    *scope, last = name.split(".")
    if not scope or not last[:1].isupper():
        return ()
    shared_parts = {
        chunk: len(set(scope) & set(chunk.name.split(".")[:-1]))
        for chunk in sources.symbol(last, _MOST_PUBLISHED)
        if chunk.kind == "class" and scope[0] in chunk.name.split(".") and chunk.score >= _OWN
    }
    most = max(shared_parts.values(), default=0)
    return [chunk for chunk, count in shared_parts.items() if count == most]


def _class_of_instance(name: str, sources: SourceIndex) -> Sequence[str]:
    """The classes that a module makes an object of this name of, as `norm = norm_gen(name="norm")`
    does.
    """
    last = name.rpartition(".")[2]
    hits = sources.literal(f"{last} =", _MANY) if last.isidentifier() else ()
    owners = list[str]()
    for hit in hits:
        classes_by_name = objects.objects_of(tree_of_lines(hit.text) or ast.Module([], []))
        if hit.kind == "module" and (owner := classes_by_name.get(last, "")):
            classes = sources.symbol(owner, 3)
            owners += [one.name for one in classes if one.kind == "class" and one.path == hit.path]
    return list(dict.fromkeys(owners))


def _is_foreign(chunk: Chunk, name: str) -> bool:
    """Whether a definition is of code that is carried along, an inner one of a dependency that
    merely ends like the name, or shares only a plain word with what a well-known package has.
    """
    parts = chunk.name.split(".")
    inner = any(part.startswith("_") and part not in name for part in parts)
    *scope, last = name.split(".")
    is_plain = last.islower() and "_" not in last
    elsewhere = bool(scope) and scope[0] in _MODULES and not set(scope) & set(parts)
    return chunk.score < _OWN or (chunk.score < 1.0 and inner) or (is_plain and elsewhere)


def _full_names(names: Iterable[Name], packages: Set[str]) -> Iterator[Name]:
    """The names with the package in place of what everybody calls it, such as `np`; unless one of
    the packages here is called so.
    """
    for name in names:
        head, dot, rest = name.text.partition(".")
        package = imports.MODULES.get(head, head) if dot and head not in packages else head
        yield name._replace(text=f"{package}{dot}{rest}") if "." not in package else name


def _returned(function: str, sources: SourceIndex) -> str:
    """The class of what a function returns, by its annotation or what it constructs."""
    for chunk in sources.symbol(function, 3):
        if chunk.kind in {"function", "method"} and (name := objects.returned(chunk.text)):
            module = chunk.name if chunk.kind == "function" else chunk.name.rpartition(".")[0]
            scope = module.rpartition(".")[0]
            classes = [one for one in sources.symbol(f"{scope}.{name}", 1) if one.kind == "class"]
            return next((one.name for one in classes), "")
    return ""


def _member(owner: str, name: str, sources: SourceIndex) -> Sequence[Chunk]:
    """A method of a class or of its bases, nothing that merely ends like it."""
    classes = [chunk for chunk in sources.symbol(owner, 1) if chunk.kind == "class"]
    methods = [method for one in classes for method in sources.symbol(f"{one.name}.{name}", 1)]
    same_package = [method for method in methods if method.package == classes[0].package]
    return [method for method in same_package if method.name.endswith(f".{name}")]


def _overridden(owner: str, name: str, entry: str, sources: SourceIndex) -> Iterator[Chunk]:
    """The method itself beside the one that does its work, where a class has one of its own."""
    own_name = f".{owner.rpartition('.')[2]}.{name}"
    for method in _member(owner, name, sources) if name != entry else ():
        if f".{method.name}".endswith(own_name):
            yield method


def _closest(
    chunks: Sequence[Chunk], parts: Mapping[str, int], words: Set[str], paths: Sequence[str]
) -> tuple[Sequence[Chunk], bool]:
    """Of several definitions of a name those in a file or a class that the report names, else
    those whose class shares words with what it names; none of a dependency beside one of the
    package itself. Also whether anything but the name leads to them, or there is no class.
    """
    worth = {}
    for chunk in chunks:
        owner = chunk.name.rpartition(".")[0].rpartition(".")[2]
        common = words & set(index_words([owner]).split())
        worth[chunk] = (
            chunk.score,
            chunk.path in paths,
            chunk.kind == "method" and owner in parts,
            len(common) if chunk.kind == "method" else 0,
        )
    best = max(worth.values(), default=(0.0, False, False, 0))
    closest = [chunk for chunk in chunks if worth[chunk] == best]
    return closest, any(best[1:]) or any(chunk.kind != "method" for chunk in closest)


def _receiver(name: str, chunk: Chunk, sources: SourceIndex) -> str:
    """The class that a method is named with, where it inherits it."""
    owner = name.rpartition(".")[0]
    if chunk.kind != "method" or not owner:
        return ""
    classes = [one.name for one in sources.symbol(owner, 1) if one.kind == "class"]
    return next(iter(classes or _class_of_instance(owner, sources)), "")


def names_of_reading(refined: Interpretation) -> Iterator[Name]:
    """The names in a model's reading of the report, most specific first, those of which its claim
    does not speak (an entry point, say) behind the others; then those of code in what it claims.
    """
    words = set(identifiers(refined.claim))
    for place, text in enumerate(refined.api[:6]):
        share = 1.0 if text.rpartition(".")[2] in words else _UNCLAIMED
        yield Name(text, 11.0 * 0.8**place * share, shared("reading"))
    names = dict.fromkeys(_CODE_NAME.findall(refined.claim))
    others = [name for name in names if name not in refined.api and not hasattr(builtins, name)]
    for place, text in enumerate(others[:6]):
        yield Name(text, 6.0 * 0.8**place, shared("reading"))


def file_names(issue: Issue, refined: Interpretation | None) -> Iterator[str]:
    """The files that the reading and the report name, as they are written."""
    place = refined.signature if refined is not None else None
    if isinstance(place, CrashSignature) and place.frame:
        yield place.frame
    yield from files_named(issue)


def files(
    issue: Issue,
    sources: SourceIndex,
    hints_before: Iterable[Hint],
    refined: Interpretation | None = None,
) -> Iterator[Hint]:
    """The files that the report or the reading names: what else points into them, else the
    definitions that share most words with the report.
    """
    hints = list(hints_before)
    for text in file_names(issue, refined):
        path = index.installed_file(text, sources.files())
        why = shared("why_file", name=text.rpartition("/")[2])
        inside = [hint for hint in hints if hint.chunk.path == path]
        for hint in inside:
            yield Hint(hint.chunk, hint.weight * 0.5, why)
        if path is not None and not inside:
            yield from _inside(path, issue, sources, why)


def messages(
    bug: BugReport, issue: Issue, sources: SourceIndex, refined: Interpretation | None = None
) -> Iterator[Hint]:
    """Where the literal words of a quoted message stand: the pieces that hold most of them."""
    for message in dict.fromkeys(_quoted_messages(bug, issue, refined)):
        if _UNBOUND.search(message):  # Python's own words, which lead to no library's
            continue
        counts: Counter[tuple[str, int]] = Counter()
        chunks: dict[tuple[str, int], Chunk] = {}
        for words in index.windows(message)[:_MOST_WINDOWS]:
            hits = [hit for hit in sources.literal(words, _MANY) if hit.score >= _OWN]
            pattern = index.literal_pattern(words)
            for chunk in hits if len(hits) < _MANY else ():
                if not any(
                    pattern.search(_COMMENT.sub("", row.text)) for row in without_docstrings(chunk)
                ):
                    continue  # an example in its documentation
                chunks.setdefault((chunk.path, chunk.start), chunk)
                counts[chunk.path, chunk.start] += 1
        most = max(counts.values(), default=0)
        best = [at for at, count in counts.most_common(3) if count >= most * _NEARLY]
        for place, at in enumerate(best):
            share = counts[at] / most * chunks[at].score
            weight = 10.0 * share**2 / (len(best) ** 0.5 + place)
            raising = [*_who_raises(chunks[at], sources)]
            yield from (Hint(chunk, weight, shared("why_message")) for chunk in raising)
            yield Hint(chunks[at], weight * (0.5 if raising else 1.0), shared("why_message"))


def _who_raises(chunk: Chunk, sources: SourceIndex) -> Iterator[Chunk]:
    """Who of its package raises the exception whose own class has the words of a message."""
    owner = _class_of_member(chunk)
    if not _EXCEPTION.fullmatch(owner):
        return
    pattern = _raising(owner)
    for hit in sources.literal(f"{owner}(", _MANY):
        match = pattern.search(hit.text)
        if match is not None and hit.package == chunk.package and hit.score >= _OWN:
            line = hit.start + hit.text.count("\n", 0, match.start())
            yield hit.model_copy(update={"focus": line})


def _class_of_member(chunk: Chunk) -> str:
    """The simple name of the class that a piece belongs to, or is; "" for a function."""
    parts = chunk.name.split(".")
    return {"class": parts[-1:], "method": parts[-2:-1]}.get(chunk.kind, [""])[0]


def _quoted_messages(bug: BugReport, issue: Issue, refined: Interpretation | None) -> Iterator[str]:
    for traceback in bug.tracebacks[:3]:
        yield from (traceback.message for traceback in (traceback, *traceback.chained[:2]))
    yield from (warning.message for warning in bug.warnings[:2])
    signature = refined.signature if refined is not None else None
    for member in members_of(signature) if signature is not None else ():
        if isinstance(member, CrashSignature | WarningSignature):
            yield member.message
    words = f"{issue.title}\n{index.prose(issue)}"
    yield from [text for text in index.code_spans(words) if tree_of(text) is None][:4]
    yield from [match["quoted"] or match["raised"] for match in islice(_MESSAGE.finditer(words), 6)]


def _entries(owner: Chunk, weight: float, why: str, sources: SourceIndex) -> Iterator[Hint]:
    """How an object of a class is made, called and built, in the class or where it inherits it."""
    for place, names in enumerate(_ENTRIES):
        for chunk in next(filter(None, (_member(owner.name, name, sources) for name in names)), ()):
            own = chunk.name.startswith(f"{owner.name}.")
            if own or place < len(_ENTRIES) - 1:
                share = _ENTRY_SHARES[place] * (1.0 if own else 0.4)
                yield Hint(chunk, weight * share, why, owner.name)


def holders(
    names: Iterable[Name], sources: SourceIndex, hints_before: Sequence[Hint]
) -> Iterator[Hint]:
    """Who holds the parts of a name that has no definition, such as an argument. Beside what is
    pointed at exactly only a rare word counts, or one in what is pointed at.
    """
    positions = {(hint.chunk.path, hint.chunk.start) for hint in hints_before}
    exact = _exact(hints_before)
    for name in names:
        for part in _telling_parts(name.text):
            hits = [hit for hit in sources.literal(part, _MANY) if hit.score >= _OWN]
            best = max((hit.score for hit in hits), default=0.0)
            hits = [hit for hit in hits if hit.score == best]  # not those of its dependencies
            rare = 1.0 if len(hits) < 3 else 0.6 if len(hits) < _MANY else 0.3
            for place, chunk in enumerate(hits[:4]):
                if exact and rare < 1.0 and (chunk.path, chunk.start) not in positions:
                    continue
                why = shared("why_word", name=part, where=name.where)
                weight = name.weight * 0.6 * rare * chunk.score / (1 + 0.4 * place)
                yield Hint(chunk, weight, why)


def _telling_parts(name: str) -> Iterator[str]:
    """The parts of a name that tell where it belongs; one of Python's own modules has none."""
    parts = name.replace("()", "").split(".")
    for part in parts if parts[0] not in sys.stdlib_module_names else ():
        if "_" in part.strip("_") or not (part.islower() or part.isupper()):
            yield part


def _inside(path: str, issue: Issue, sources: SourceIndex, why: str) -> Iterator[Hint]:
    whole = sources.read(path, 1, _READ_LINES)
    for place, segment in enumerate(
        telling(path, whole.text, issue, 3) if whole is not None else ()
    ):
        chunk = sources.around(path, segment.start)
        if chunk is not None:
            yield Hint(chunk.model_copy(update={"focus": 0}), 8.0 / (1 + place), why)


def _share(name: str, definitions: int) -> float:
    if "." in name or definitions == 1:
        return 1.0
    plain = name.islower() and "_" not in name
    return 1 / (1 + definitions) if plain else 0.8 if definitions < 4 else 0.5


# BugReport + the available sources → hints: each piece of code that something in the report leads
# to, how strongly, and why.

_FRAMES = 12
_MOST_FOLLOWED = 6
_MOST_STEPS = 24
_UNREACHED = 0.6
_MOST_METHODS, _METHOD_SHARE = 2, 0.4
_LACKING = "object has no attribute"
_LACKING_NAME = re.compile(r"has no attribute ['\"`](\w{4,80})['\"`]")
_GIVING = ("__getattr__", "__getattribute__", "__setattr__", "__post_init__")
_BESIDE, _OF_CALLER = 0.5, 0.95
_SHORT, _THIN = 15, 5
_EXACT = 4.0
_IMPORT = re.compile(r"\bfrom [.\w]+ import \w+(?:, ?\w+)*|^[ \t]*import [.\w]+", re.MULTILINE)
_NO_IMPORT = re.compile(r"\b(?:ImportError|ModuleNotFoundError)\b")
_OPTION = re.compile(r"(?<![\w-])--[A-Za-z][\w-]+")
_DECLARING = "add_argument"
_LEARNING = {Symptom.NOT_LEARNING, Symptom.NONFINITE}


def gather(
    bug: BugReport,
    issue: Issue,
    sources: SourceIndex,
    lineage: Sequence[Chunk] = (),
    refined: Interpretation | None = None,
) -> tuple[Hint, ...]:
    """What the report (and a model's reading of it) points at, what the strongest of these call,
    and training loops; what has similar words only where nothing is pointed at.
    """
    all_files = sources.files()
    packages = {path.partition("/")[0].removesuffix(".py") for path in all_files}
    names_read = names_of_reading(refined) if refined is not None else ()
    names = tuple(_full_names((*names_read, *index.names(bug, issue)), packages))
    paths = [index.installed_file(name, all_files) or "" for name in file_names(issue, refined)]
    hints = [
        *(Hint(chunk, 7.0, shared("why_lineage")) for chunk in lineage),
        *_hints_of_frames(bug, sources),
        *_hints_of_links(bug, issue, sources),
        *_hints_of_places(issue, sources, refined),
        *_hints_of_imports(issue, sources),
        *named_definitions(names, sources, paths),
    ]
    in_clone = any(hint.chunk.origin == "clone" for hint in hints)
    hints += _quieter(messages(bug, issue, sources, refined), in_clone)
    packages = {package.lower() for package in packages}
    undefined = [
        name
        for name in names
        if name.text.lower() not in packages and not _definitions(name.text, sources)
    ]
    hints += holders(undefined, sources, hints)
    hints += files(issue, sources, hints, refined)
    if in_clone or any(hint.chunk.origin == "clone" for hint in hints):
        hints += [*_hints_of_options(issue, sources, paths)]
    goal = _Goal(bug, issue, refined)
    hints += [*_hints_of_methods(sources, hints, goal)]
    if any(_LACKING in message for message in _quoted_messages(bug, issue, refined)):
        hints += [*_hints_of_attributes(sources, hints)]
    calls = [*_hints_of_calls(sources, hints, goal)]
    return (
        *_reached(hints, calls),
        *calls,
        *_quieter(_hints_of_words(bug, issue, sources, hints), in_clone),
        *(_learning(bug, sources) if not _exact(hints) else ()),
    )


def _quieter(hints: Iterable[Hint], in_clone: bool) -> Iterator[Hint]:
    """Hints by words alone: where the report is about the repository's own code, those to installed
    packages count little.
    """
    for hint in hints:
        is_elsewhere = in_clone and hint.chunk.origin == "installed"
        yield hint._replace(weight=hint.weight * _ELSEWHERE) if is_elsewhere else hint


def short(chunk: Chunk) -> str:
    """What a chunk is called in a sentence: a method with its class."""
    return (
        ".".join(chunk.name.split(".")[-2:])
        if chunk.kind == "method"
        else chunk.name.rpartition(".")[2]
    )


def _hints_of_frames(bug: BugReport, sources: SourceIndex) -> Iterator[Hint]:
    """Frames of packages and of the repository's own files, the innermost first."""
    for traceback in bug.tracebacks[:4]:
        for weight, failure in (
            (12.0, traceback),
            *((7.0, cause) for cause in traceback.chained[:2]),
        ):
            innermost = failure.frames[-_MOST_LOCATED:]
            located = (_located(frame, sources) for frame in reversed(innermost))
            inside = islice((frame for frame in located if frame.module_path), _FRAMES)
            for depth, frame in enumerate(inside):
                chunk = _of_frame(frame, sources)
                if chunk is not None:
                    why = (
                        shared("why_frame", exception=_last(failure), depth=depth)
                        if depth
                        else shared("why_raised", exception=_last(failure))
                    )
                    yield Hint(chunk, weight * 0.85**depth, why)


def _located(frame: Frame, sources: SourceIndex) -> Frame:
    """A frame of a file of the repository with the path of that file in it: reports give the one
    on the reporter's machine, where a folder may be called as the package is.
    """
    is_known = frame.module_path and sources.read(frame.module_path, 1, 1) is not None
    if is_known or frame.package == "<stdlib>":
        return frame
    parts = PurePosixPath(frame.path.replace("\\", "/")).parts[-_DEEPEST:]
    for at in range(len(parts)):
        path = "/".join(parts[at:])
        chunk = sources.read(path, 1, 1) if path.endswith(".py") else None
        if chunk is not None and chunk.path == path and chunk.origin == "clone":
            return frame.model_copy(update={"module_path": path})
    return frame


def _of_frame(frame: Frame, sources: SourceIndex) -> Chunk | None:
    """The definition of a frame: where its source line is now, else where its function is, else at
    its line.
    """
    if frame.code:
        line = _line_of((frame.code.strip(),), frame.module_path, frame.line or 1, sources)
        if line:
            return sources.around(frame.module_path, line)
    there = sources.around(frame.module_path, frame.line) if frame.line else None
    last = frame.function.rpartition(".")[2]
    if there is None or not last.isidentifier() or there.name.endswith(f".{last}"):
        return there
    same = [chunk for chunk in sources.symbol(last, 20) if chunk.path == there.path]
    return min(same, key=lambda chunk: abs(chunk.start - (frame.line or 0)), default=there)


def _hints_of_links(bug: BugReport, issue: Issue, sources: SourceIndex) -> Iterator[Hint]:
    """Lines that the report links to; where it quotes them, they are found although they have
    moved.
    """
    lines = index.quoted_lines(bug)
    for link in islice(index.links(issue.body), 8):
        line = _line_of(lines, link.path, link.start or 1, sources) or link.start or 1
        chunk = sources.around(link.path, line)
        if chunk is not None:
            where = shared("linked_line", line=link.start) if link.start else shared("linked_file")
            yield Hint(chunk, 9.0 if link.start else 5.0, shared("why_linked", where=where))


def _hints_of_places(
    issue: Issue, sources: SourceIndex, refined: Interpretation | None
) -> Iterator[Hint]:
    """Lines of files that the report or the claim of a reading names."""
    words = f"{issue.title}\n{index.prose(issue)}"
    claim = refined.claim if refined is not None else ""
    for text, where in ((claim, shared("reading")), (words, "the text")):
        for name, line in places_named(text):
            path = index.installed_file(name, sources.files())
            chunk = sources.around(path, line) if path is not None else None
            if chunk is not None:
                place = f"{name.rpartition('/')[2]} {shared('linked_line', line=line)}"
                yield Hint(chunk, 9.0, shared("why_named", name=place, where=where))


def _hints_of_imports(issue: Issue, sources: SourceIndex) -> Iterator[Hint]:
    """Who of the repository's own files has the import that a report of a failed one quotes."""
    text = f"{issue.title}\n{issue.body}"
    for quoted in dict.fromkeys(_IMPORT.findall(text)) if _NO_IMPORT.search(text) else ():
        hits = [hit for hit in sources.literal(quoted, _MANY) if hit.origin == "clone"]
        for place, hit in enumerate(hits[:2]):
            why = shared("why_word", name=quoted, where="the text")
            yield Hint(hit, 6.0 / (1 + place), why)


def _hints_of_options(issue: Issue, sources: SourceIndex, paths: Sequence[str]) -> Iterator[Hint]:
    """Where the repository's own programs declare the options that the report gives them, else
    where those that it names declare any.
    """
    options = list(dict.fromkeys(_OPTION.findall(f"{issue.title}\n{issue.body}")))[:_MOST]
    declared = [
        (hit, option)
        for option in options
        for hit in sources.literal(option, _MANY)
        if hit.origin == "clone" and _DECLARING in hit.text
    ]
    of_programs = [pair for pair in declared if pair[0].path in paths] or declared
    for hit, option in of_programs[:2]:
        yield Hint(hit, 5.0, shared("why_word", name=option, where="the text"))
    for path in () if of_programs else filter(None, paths):
        whole = sources.read(path, 1, _READ_LINES)
        at = whole.text.find(_DECLARING) if whole is not None and whole.origin == "clone" else -1
        chunk = (
            sources.around(path, whole.text.count("\n", 0, at) + 1) if whole and at >= 0 else None
        )
        if chunk is not None:
            yield Hint(chunk, 2.0, shared("why_file", name=path.rpartition("/")[2]))


def _line_of(lines: Sequence[str], path: str, near: int, sources: SourceIndex) -> int:
    """The line of a file with one of the quoted lines, the nearest to the original place; 0 without
    any.
    """
    best: tuple[int, int] | None = None
    for first in range(1, 12_001, 2_000):
        part = sources.read(path, first, first + 1_999)
        if part is None:
            break
        lines_to_match = set(lines)
        for number, line in enumerate(part.text.split("\n"), first):
            if line.strip() in lines_to_match and (best is None or abs(number - near) < best[0]):
                best = (abs(number - near), number)
    return best[1] if best is not None else 0


def _exact(hints: Sequence[Hint]) -> bool:
    return any(hint.weight >= _EXACT for hint in hints)


def _hints_of_words(
    bug: BugReport, issue: Issue, sources: SourceIndex, hints: Sequence[Hint]
) -> Iterator[Hint]:
    """What the words are like: of the title, of what was raised or warned, of the whole text. On
    their own they count only where nothing else leads to any code.
    """
    exact = _exact(hints)
    positions = {(hint.chunk.path, hint.chunk.start) for hint in hints}
    exception_text = " ".join(
        f"{traceback.exception} {traceback.message[:300]}" for traceback in bug.tracebacks[:2]
    )
    warning_text = " ".join(warning.message[:300] for warning in bug.warnings[:2])
    queries = (
        (issue.title, 5.0, shared("why_title")),
        (exception_text, 4.0, shared("why_error")),
        (warning_text, 5.0, shared("why_warning")),
        (f"{issue.title} {index.prose(issue)}", 4.0, shared("why_text")),
    )
    for words, weight, why in queries:
        similar = sources.search(words, 12) if words.strip() else ()
        hits = [hit for hit in similar if hit.origin == "clone" or not index.is_secondary(hit.path)]
        for place, chunk in enumerate(hits):
            own = chunk.package == hits[0].package and chunk.score >= _OWN_WORDS
            if (own and not hints) or (chunk.path, chunk.start) in positions:
                share = _BESIDE if exact else 1.0
                yield Hint(chunk, weight * share * chunk.score / (1 + 0.2 * place), why)


def words_of(issue: Issue, refined: Interpretation | None) -> Set[str]:
    """The words of the report, and of what a model's reading claims."""
    claim = refined.claim if refined is not None else ""
    return {*query_words(f"{issue.title} {index.prose(issue)}", 200), *query_words(claim, 100)}


class _Goal:
    """What calls are followed to: the words of a quoted message, else the words of the report."""

    def __init__(self, bug: BugReport, issue: Issue, refined: Interpretation | None) -> None:
        texts = dict.fromkeys(_quoted_messages(bug, issue, refined))
        windows = (window for text in texts for window in index.windows(text)[:_MOST_WINDOWS])
        self.patterns = [index.literal_pattern(window) for window in dict.fromkeys(windows)]
        self.patterns += map(_raising, dict.fromkeys(_own_exceptions(bug, issue, refined)))
        lacking = (match[1] for text in texts for match in _LACKING_NAME.finditer(text))
        self.patterns += [re.compile(rf"\.{name}\b(?!\s*=[^=])") for name in dict.fromkeys(lacking)]
        self.words = words_of(issue, refined)
        claim = refined.claim if refined is not None else ""
        spans = " ".join(index.code_spans(f"{issue.title}\n{index.prose(issue)}"))
        self.names = set(identifiers(f"{claim} {spans}"))

    def message(self, text: str) -> int:
        """The line (from 0) of a text that holds words of the message; -1 for none."""
        quoted = {*docstrings(text), *_comments(text)}
        for pattern in self.patterns:
            for hit in pattern.finditer(text):
                line = text.count("\n", 0, hit.start())
                if line not in quoted:
                    return line
        return -1

    def closeness(self, chunk: Chunk) -> float:
        """How much a piece shares with the words of the report: 0.5 for nothing, 1.6 for much."""
        own = set(index_words(identifiers(chunk.text)).split())
        name = set(index_words(identifiers(short(chunk))).split())
        worth = (len(self.words & own) + 4 * len(self.words & name)) / (8 + len(own)) ** 0.5
        is_named = _last_part(chunk) in self.names
        return min(0.5 + 0.4 * float(worth) + 0.5 * is_named, 1.6)


def _hints_of_methods(sources: SourceIndex, hints: Sequence[Hint], goal: _Goal) -> Iterator[Hint]:
    """Of a named class of which nothing but the constructor is pointed at (an object that is handed
    on) the methods that share most words with the report.
    """
    methods = [hint for hint in hints if not hint.chunk.name.endswith(".__init__")]
    owners = {hint.receiver or hint.chunk.name.rpartition(".")[0] for hint in methods}
    classes = _strongest(hint for hint in hints if hint.chunk.kind == "class")
    for hint in classes[:2]:
        own = () if hint.chunk.name in owners else _methods(hint.chunk, sources)
        for method in sorted(own, key=lambda one: -goal.closeness(one))[:_MOST_METHODS]:
            weight = hint.weight * _METHOD_SHARE * goal.closeness(method)
            yield Hint(method, weight, hint.why, hint.chunk.name)


def _hints_of_attributes(sources: SourceIndex, hints: Sequence[Hint]) -> Iterator[Hint]:
    """How the objects of a named class get their attributes, where one of them lacks one."""
    for hint in _strongest(hint for hint in hints if hint.chunk.kind == "class")[:2]:
        for name in _GIVING:
            for method in _member(hint.chunk.name, name, sources):
                yield Hint(method, hint.weight * _METHOD_SHARE, hint.why, hint.chunk.name)


def _methods(owner: Chunk, sources: SourceIndex) -> Iterator[Chunk]:
    """The methods of a class and of its bases in its own package."""
    head = owner.name.rpartition(".")
    bases = symbols.bases(owner.text, head[2])
    inherited = (chunk for base in bases for chunk in sources.symbol(f"{head[0]}.{base}", 1))
    for one in (owner, *(base for base in inherited if base.package == owner.package)):
        text = sources.read(one.path, one.start, one.start + _READ_LINES - 1)
        prefix = f"{one.name.rpartition('.')[2]}."
        for segment in outline(text.text, one.path) if text is not None else ():
            if segment.name.startswith(prefix) and "__" not in segment.name and not segment.part:
                chunk = sources.around(one.path, one.start + segment.start - 1)
                if chunk is not None and _tells(chunk):
                    yield chunk.model_copy(update={"focus": 0})


def _own_exceptions(bug: BugReport, issue: Issue, refined: Interpretation | None) -> Iterator[str]:
    """Names of the exceptions that the report speaks of and that are not Python's own: few places
    raise one. Where a model has read which one escapes, the others are what the report wishes for.
    """
    signature = refined.signature if refined is not None else None
    if isinstance(signature, CrashSignature):
        name = signature.exception.rpartition(".")[2]
        yield from [name] if name and not hasattr(builtins, name) else []
        return
    raised = (traceback.exception.rpartition(".")[2] for traceback in bug.tracebacks[:3])
    mentions = _EXCEPTION.findall(f"{issue.title}\n{index.prose(issue)}")
    yield from (name for name in (*raised, *mentions[:4]) if name and not hasattr(builtins, name))


def _comments(text: str) -> Iterator[int]:
    """The lines (from 0) that are comments."""
    return (at for at, line in enumerate(text.split("\n")) if line.lstrip().startswith("#"))


def _raising(name: str) -> re.Pattern[str]:
    return re.compile(rf"raise\s+(?:\w+\.)*{re.escape(name)}\b")


def _hints_of_calls(sources: SourceIndex, hints: Sequence[Hint], goal: _Goal) -> Iterator[Hint]:
    """What the strongest call in their own package, and what these call, up to where the words of
    the message stand; what they call of another package is rarely at fault.
    """
    strongest = _strongest(hint for hint in hints if hint.why != shared("why_message"))
    waiting = [*strongest]
    visited = {(hint.chunk.path, hint.chunk.start) for hint in strongest}
    for _ in range(_MOST_STEPS):
        if not waiting:
            break
        hint = max(waiting, key=lambda one: one.weight)
        waiting.remove(hint)
        for callee in _callees(sources, hint, goal):
            at = (callee.chunk.path, callee.chunk.start)
            line = goal.message(callee.chunk.text)
            if line >= 0 and at not in visited:
                focused = callee.chunk.model_copy(update={"focus": callee.chunk.start + line})
                yield Hint(focused, _EXACT * 3, shared("why_message"))
            yield callee
            if at not in visited:
                visited.add(at)
                waiting.append(callee)


def _strongest(hints: Iterable[Hint]) -> Sequence[Hint]:
    """The pieces to which most leads, as a hint each."""
    by_place: dict[tuple[str, int], list[Hint]] = {}
    for hint in sorted(hints, key=lambda hint: -hint.weight):
        by_place.setdefault((hint.chunk.path, hint.chunk.start), []).append(hint)
    merged_hints = [
        several[0]._replace(
            weight=sum_weights(several),
            receiver=next((hint.receiver for hint in several if hint.receiver), ""),
        )
        for several in by_place.values()
    ]
    return sorted(merged_hints, key=lambda hint: -hint.weight)[:_MOST_FOLLOWED]


def sum_weights(hints: Sequence[Hint]) -> float:
    """What hints to one piece, the strongest first, are worth together: each counts less than the
    one before.
    """
    return sum(hint.weight * 0.6**place for place, hint in enumerate(hints))


def _callees(sources: SourceIndex, hint: Hint, goal: _Goal) -> Iterator[Hint]:
    """What a piece calls; what a thin one passes on to counts nearly as much as itself."""
    caller = hint.chunk
    why = shared("why_called", caller=short(caller))
    lines = size([caller])
    share = 0.9 if lines <= _THIN else 0.7 if lines <= _SHORT else 0.6
    share = 0.3 if caller.name.endswith(".__init__") else share
    callees = sources.callees(caller, 16) if caller.kind != "class" else ()
    chunks = [chunk for chunk in callees if chunk.package == caller.package]
    for place, chunk in enumerate((*_of_receiver(sources, hint, chunks), *chunks)):
        receiver = _receiver_of_call(hint, chunk)
        override = sources.symbol(f"{receiver}.{_last_part(chunk)}", 1) if receiver else ()
        target = next((one for one in override if one.package == chunk.package), chunk)
        if _last_part(target) == _last_part(caller):  # what super() leads to
            target = chunk
        if not _tells(target):
            continue
        own = 1.5 if target.start != chunk.start or target.path != chunk.path else 1.0
        worth = share * own * goal.closeness(target) / (1 + 0.05 * place)
        yield Hint(target, hint.weight * min(worth, _OF_CALLER), why, receiver, is_call=True)


def _of_receiver(sources: SourceIndex, hint: Hint, callees: Sequence[Chunk]) -> Iterator[Chunk]:
    """The methods that a base calls of its own object, and that only its subclass defines."""
    names = symbols.own_calls(hint.chunk.text) if hint.receiver else ()
    others = {*map(_last_part, callees), _last_part(hint.chunk)}
    for name in [one for one in names if one not in others]:
        yield from _member(hint.receiver, name, sources)


def _tells(chunk: Chunk) -> bool:
    """Whether a callee has a body: a class only where it has attributes, a method only where it
    does more than give back an attribute.
    """
    if chunk.kind == "module" or size(body(chunk)) <= (chunk.kind == "class"):
        return False
    tree = tree_of_lines(chunk.text) if chunk.kind == "method" else None
    return tree is None or not any(map(_gives_attribute, tree.body))


def _gives_attribute(node: ast.stmt) -> bool:
    """Whether all that a method does is to give back an attribute of its object."""
    match node:
        case ast.FunctionDef(body=[*first, ast.Return(value=ast.Attribute() as value)]):
            is_alone = not first or (len(first) == 1 and isinstance(first[0], ast.Expr))
            return is_alone and dotted(value).startswith("self.")
    return False


def _receiver_of_call(hint: Hint, callee: Chunk) -> str:
    """The class whose own methods a call may mean: a base calls those of the subclass."""
    caller = hint.chunk
    if not hint.receiver or callee.kind != "method" or caller.kind != "method":
        return ""
    same_class = callee.name.rpartition(".")[0] == caller.name.rpartition(".")[0]
    return hint.receiver if same_class or _last_part(callee) == _last_part(caller) else ""


def _last_part(chunk: Chunk) -> str:
    return chunk.name.rpartition(".")[2]


def _reached(hints: Sequence[Hint], calls: Sequence[Hint]) -> Iterator[Hint]:
    """The hints; of what holds words of a message that to which no calls lead counts less, where
    they lead to another.
    """
    why = shared("why_message")
    reached = {(hint.chunk.path, hint.chunk.start) for hint in calls if hint.why == why}
    for hint in hints:
        apart = hint.why == why and (hint.chunk.path, hint.chunk.start) not in reached
        yield hint._replace(weight=hint.weight * _UNREACHED) if apart and reached else hint


def _learning(bug: BugReport, sources: SourceIndex) -> Iterator[Hint]:
    if bug.symptom in _LEARNING:
        for place, chunk in enumerate(sources.loops(3)):
            yield Hint(chunk, 2.0 / (1 + place), shared("why_loop"))


def _last(traceback: Traceback) -> str:
    return traceback.exception.rpartition(".")[2] or "error"
