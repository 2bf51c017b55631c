"""A source index over any store of segments: what goes into it, what a report points at, and
how it ranks.
"""

import ast
import builtins
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice, pairwise
from typing import NamedTuple, Protocol

from bot.kernel.bug import BugReport, FenceKind, Issue, Role
from bot.kernel.environment import Chunk, Origin
from bot.kernel.source import objects, symbols, syntax, training_loops
from bot.kernel.source.outline import Segment, line_starts, normal, outline
from bot.kernel.source.symbols import DefinitionStore
from bot.kernel.source.syntax import tree_of

# What goes into an index for one source: a row per segment, its words in columns of falling
# weight. Words of code and of reports have one form: identifiers are split at capitals, dots and
# underscores, and plain endings are cut.

FORMAT = "2"
"""Changes when equal sources give other rows than before."""

WEIGHTS = (8.0, 3.0, 3.0, 1.0)
"""Weight of a word in the name, the module, the head (signature and docstring), and anywhere."""

_HEAD_LINES = 60
_MAX_WORDS = 3_000
_KEPT_EXPANSIONS = 400_000
_HEAD = re.compile(
    r"""(?s).*?:[ \t]*\n(?:[ \t]*[rRuUbB]*(?P<quote>\"{3}|'{3}).*?(?:(?P=quote)|\Z)[^\n]*)?"""
)


LONGEST_WORD = 60
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]+")
_HUMPS = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z0-9]+|[A-Z]+[0-9]*")
_STOP = frozenset(re.findall(r"\w+", """
    a about after all also always an and any are as at be because been before being both but by can cannot could did do does
    doing don each either else even every few first for from get gets getting got had has have having he her here how however i
    if in into instead is issue it its itself just like ll make may me might more most much must my need no not now of off on
    once one only or other our out over own please same see seem seems should since so some still such than that the their them
    then there these they this those though through to too try trying two under until up use used uses using ve very via want
    was way we well were what when where whether which while who why will with within without would yes yet you your
    behavior behaviour bug code error errors exception expected fail fails failed file following happen happens hi hello help
    line lines problem raise raised raises report reproduce reproduction result results run running script steps thanks thank
    traceback version work working works wrong correct example def class self return import none true false
"""))  # fmt: skip


class IndexRow(NamedTuple):
    """A segment and its words: name, module, head, all."""

    segment: Segment
    columns: tuple[str, str, str, str]


def decode(data: bytes) -> str:
    """The text of a file with plain line ends; invalid UTF-8 is replaced."""
    return normal(data.decode("utf-8", "replace").removeprefix("\ufeff"))


def rows(path: str, text: str) -> Iterator[IndexRow]:
    """One row per segment, in order."""
    starts = line_starts(text)
    module = index_words(dict.fromkeys(identifiers(path.removesuffix(".py"))))
    for segment in outline(text, path, starts):
        begin, end = starts[segment.start - 1], starts[segment.end]
        name = index_words(dict.fromkeys(identifiers(segment.name)))
        head_end = begin
        if segment.kind != "module" and segment.part == 0:
            last = min(segment.end, segment.start + _HEAD_LINES)
            head_match = _HEAD.match(text, begin, starts[last])
            head_end = head_match.end() if head_match else starts[segment.start]
        # A set keeps the index small. Its order is irrelevant: no query uses positions.
        head = set(identifiers(text, begin, head_end))
        words = head.union(identifiers(text, head_end, end))
        if len(words) > _MAX_WORDS:
            words = set(sorted(words)[:_MAX_WORDS])
        yield IndexRow(segment, (name, module, index_words(head), index_words(words)))


def identifiers(text: str, start: int = 0, end: int | None = None) -> list[str]:
    """Identifiers of two characters and more, in order, with repeats."""
    return _IDENTIFIER.findall(text, start, len(text) if end is None else end)


def index_words(names: Iterable[str]) -> str:
    """The words under which identifiers are found, separated by spaces: each whole and in parts."""
    if len(_EXPANSIONS) > _KEPT_EXPANSIONS:
        _EXPANSIONS.clear()
    return " ".join(map(_EXPANSIONS.__getitem__, names))


def query_words(query: str, most: int = 32) -> tuple[str, ...]:
    """The words to look for, each once, in order; stop words are left out unless there are no
    others.
    """
    names = identifiers(query)
    specific = [name for name in names if not is_stop_word(name)]
    words = dict.fromkeys(index_words(specific or names).split())
    selection = (word for word in words if len(word) > 1 and not (specific and word in _STOP))
    return tuple(islice(selection, most))


def is_stop_word(word: str) -> bool:
    """Whether a word is so common in reports that it points at nothing."""
    return word.lower() in _STOP


def stem(word: str) -> str:
    """A plain word without its plural, -ing or -ed: "gradients" and "padded" become "gradient" and
    "pad".
    """
    if len(word) < 4 or not word.isalpha():
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending in ("ing", "ed"):
        root = word.removesuffix(ending)
        if root != word and len(root) > 3 and not root.endswith("e"):
            return root[:-1] if root[-1] == root[-2] and root[-1] not in "sl" else root
    return word


class _Expansions(dict[str, str]):
    """The words of each identifier, kept: ten million occurrences have a few hundred thousand
    forms, and a bounded cache's own bookkeeping would cost more than the look-up.
    """

    def __missing__(self, name: str) -> str:
        self[name] = expansion = _expanded(name)
        return expansion


_EXPANSIONS = _Expansions()


def _expanded(name: str) -> str:
    if len(name) > LONGEST_WORD:
        return ""
    whole = name.lower()
    parts = [stem(part.lower()) for part in _HUMPS.findall(name)]
    return " ".join(dict.fromkeys([whole, stem(whole), *parts]))


# Exact search: where sources hold a text as it is written, and which parts of a message to look
# for.

_PLAIN = re.compile(r"[A-Za-z_][\w.-]*[,;:]?")
_WINDOW = 4
_SHORTEST = 12
_MOST_TEXT = 300
# Words of a message are apart by blanks, or by the seam of two string literals.
_GAP = r"""(?:\s+|[ \t]*["']\s*\n\s*[rbfuRBFU]{0,2}["'][ \t]*)"""


def literal_words(text: str) -> tuple[str, ...]:
    """The words that an index has for every piece that holds the text."""
    names = identifiers(text[:_MOST_TEXT])
    return tuple(dict.fromkeys(name.lower() for name in names))


def literal_pattern(text: str) -> re.Pattern[str]:
    """Matches the text as it is written, as words of their own; a message also where a literal
    is continued on the next line.
    """
    parts = text[:_MOST_TEXT].split()
    start = r"(?<!\w)" if re.match(r"\w", text) else ""
    end = r"(?!\w)" if re.search(r"\w$", text) else ""
    return re.compile(start + _GAP.join(map(re.escape, parts)) + end)


def windows(message: str) -> tuple[str, ...]:
    """Short runs of plain words of a message. What stands between them (numbers, quoted names,
    shapes) may vary, and so may a word next to it.
    """
    texts = [
        " ".join(run[at : at + _WINDOW]).rstrip(",;:.")
        for run in _runs(message)
        for at in range(max(len(run) - _WINDOW, 0) + 1)
    ]
    return tuple(dict.fromkeys(text for text in texts if len(text) >= _SHORTEST and " " in text))


def _runs(message: str) -> Iterator[list[str]]:
    """Plain words that stand next to each other."""
    tokens = message[:_MOST_TEXT].split()
    breaks = [at for at, token in enumerate(tokens) if not _PLAIN.fullmatch(token.rstrip(".!?"))]
    for before, after in pairwise((-1, *breaks, len(tokens))):
        if run := [token.rstrip(".!?") for token in tokens[before + 1 : after]]:
            yield run


# What a report points at: names of code in its words and programs, and the lines of source that
# it quotes or links to.

_PROSE_CHARACTERS = 8_000
_MOST_NAMES = 40
_FENCED_BLOCK = re.compile(r"(?ms)^[ \t]{0,3}(`{3,}|~{3,})[^\n]*\n.*?(?:^[ \t]{0,3}\1|\Z)")
_SURROUNDINGS = re.compile(
    r"(?ims)^#{1,6}[^\n]{0,40}\b(?:versions?|environment|system "
    r"info|collect_env|dependencies)\b[^\n]*\n.*?(?=^#{1,6}\s|\Z)"
)
_ADDRESS = re.compile(r"https?://\S+")
_COMMENTED = re.compile(r"(?s)<!--.*?-->")
_CODE_SPAN = re.compile(r"`([^`\n]{2,160})`")
_CHAIN = re.compile(r"(?<![\w.])[A-Za-z_]\w*(?:\.[A-Za-z_]\w*){0,8}")
_TELLING = re.compile(
    r"(?<![\w./-])(?:[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+|[A-Za-z]\w*_\w+|_+[A-Za-z]\w+|[A-Z]+[a-z0-9]+[A-Z]\w*|[A-Za-z_]\w+(?=\(\)))(?![\w/])"
)
_LINK = re.compile(
    r"https?://[\w.-]{1,100}/(?P<repository>[\w.-]{1,100}/[\w.-]{1,100})/(?:blob|blame|raw)/(?P<rest>[\w./@+%-]{1,400}\.py)"
    r"(?:\?[\w=&]{0,40})?(?:#L(?P<start>\d{1,6})(?:C\d{1,4})?(?:-L?(?P<end>\d{1,6}))?)?"
)
_RAW = re.compile(
    r"https?://raw\.githubusercontent\.com/(?P<repository>[\w.-]{1,100}/[\w.-]{1,100})/(?P<rest>[\w./@+%-]{1,400}\.py)"
)
_BUILTIN = frozenset(dir(builtins)) | {
    "self",
    "cls",
    "nn",
    "np",
    "os",
    "sys",
    "pd",
    "plt",
    "GitHub",
    "PyTorch",
    "README",
}


class Link(NamedTuple):
    """Lines of a file of a repository; `start` is 0 when the link names no line. The ref is the
    first part of the path, or more where a branch has slashes in its name.
    """

    repository: str
    ref: str
    path: str
    start: int
    end: int


class Name(NamedTuple):
    """A name that may refer to code, how much it says, and where it was found."""

    text: str
    weight: float
    where: str


def prose(issue: Issue) -> str:
    """The body's own words: no blocks, comments or addresses, no section on versions, and not
    more than a reader would.
    """
    text = _SURROUNDINGS.sub("\n", _FENCED_BLOCK.sub("\n", _COMMENTED.sub(" ", issue.body)))
    return _ADDRESS.sub(" ", text)[:_PROSE_CHARACTERS]


def code_spans(text: str) -> list[str]:
    """What stands between backticks."""
    return _CODE_SPAN.findall(text)


def names(bug: BugReport, issue: Issue) -> tuple[Name, ...]:
    """Names of code, the most telling first, each once; a name in a program tells more when the
    words speak of it too.
    """
    weights = dict.fromkeys(query_words(prose(issue), 400), 1.0) | dict.fromkeys(
        query_words(issue.title, 100), 2.5
    )
    best: dict[str, Name] = {}
    names_in_programs = (_weigh_by_text(name, weights) for name in _in_programs(bug))
    names_in_text = (
        *_in_words(issue.title, 8.0, "the title"),
        *_in_words(prose(issue), 6.0, "the text"),
        *names_in_programs,
    )
    for name in (*names_in_text, *(Name(text, 4.0, "the report") for text in bug.api)):
        is_telling = (
            name.text not in _BUILTIN and len(name.text) > 2 and not is_stop_word(name.text)
        )
        if is_telling and (name.text not in best or best[name.text].weight < name.weight):
            best[name.text] = name
    return tuple(sorted(best.values(), key=lambda name: -name.weight)[:_MOST_NAMES])


def _weigh_by_text(name: Name, weights: Mapping[str, float]) -> Name:
    own = query_words(name.text.rpartition(".")[2])
    return name._replace(
        weight=name.weight + max((weights.get(word, 0.0) for word in own), default=0.0)
    )


def quoted_lines(bug: BugReport) -> tuple[str, ...]:
    """Lines of source that the report shows, long enough to identify their place."""
    kinds = {FenceKind.PROGRAM, FenceKind.DIFF}
    texts = (fence.text for fence in bug.fences if fence.kind in kinds or fence.role is Role.SOURCE)
    lines = (line.lstrip("+- ").strip() for text in texts for line in text.splitlines()[:400])
    return tuple(
        dict.fromkeys(
            line
            for line in lines
            if len(line) >= 12 and not line.startswith(("import ", "from ", "#"))
        )
    )


def _in_words(text: str, weight: float, where: str) -> Iterator[Name]:
    for code_span in _CODE_SPAN.findall(text):
        chains = _CHAIN.findall(code_span)
        plain = len(chains) == 1 and len(chains[0]) + 3 >= len(code_span)
        for position, chain in enumerate(chains[:8]):
            yield Name(chain, weight if plain or position == 0 else weight / 3, where)
    for chain in _TELLING.findall(_CODE_SPAN.sub(" ", text)):
        yield Name(chain, weight * 0.7, where)


def _in_programs(bug: BugReport) -> Iterator[Name]:
    """What the report's own programs import and call, in full where their imports tell."""
    for fence in bug.programs:
        tree = tree_of(fence.text)
        if tree is None:
            yield from (
                Name(chain, 2.0, "its program") for chain in _TELLING.findall(fence.text)[:40]
            )
            continue
        full_names = _names_imported(tree)
        own = {
            node.name for node in ast.walk(tree) if isinstance(node, syntax.Function | ast.ClassDef)
        }
        classes = objects.objects_of(tree)
        for full in full_names.values():
            yield Name(full, 2.0, "its program")
        for call in syntax.calls(tree):
            head, _, rest = call.partition(".")
            if full := _full_name(call, full_names):
                yield Name(full, 3.0, "its program")
            elif rest and not {head, call.rpartition(".")[0]} & {*own, *classes}:
                yield Name(call.rpartition(".")[2], 1.5, "its program")
        bases = {
            node.name: [*_bases(node, full_names)] for node in syntax.nodes(tree, ast.ClassDef)
        }
        for use in objects.uses(tree, classes):
            full_owner = _full_name(use.owner, full_names)
            for owner in (full_owner,) if full_owner else bases.get(use.owner, ()):
                yield Name(f"{owner}.{use.member}", 4.0, "its program")
        yield from (Name(base, 2.5, "its program") for row in bases.values() for base in row)


def _names_imported(tree: ast.Module) -> dict[str, str]:
    full_names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and not node.level and node.module:
            full_names |= {
                alias.asname or alias.name: f"{node.module}.{alias.name}"
                for alias in node.names
                if alias.name != "*"
            }
        elif isinstance(node, ast.Import):
            full_names |= {alias.asname or alias.name: alias.name for alias in node.names}
    return full_names


def _bases(node: ast.ClassDef, full_names: Mapping[str, str]) -> Iterator[str]:
    names = (_full_name(syntax.dotted(base), full_names) for base in node.bases)
    return filter(None, names)


def _full_name(name: str, full_names: Mapping[str, str]) -> str:
    """What a name stands for by the imports; "" for what is not imported."""
    head = name.partition(".")[0].removesuffix("()")
    full = full_names.get(head, "")
    return f"{full}{name.removeprefix(head)}" if full else ""


def links(text: str) -> Iterator[Link]:
    """The links to Python sources, each once, in order."""
    visited = set()
    for match in sorted(
        [*_LINK.finditer(text), *_RAW.finditer(text)], key=lambda match: match.start()
    ):
        groups = match.groupdict()
        ref, _, path = groups["rest"].partition("/")
        start = int(groups.get("start") or 0)
        link = Link(groups["repository"], ref, path, start, max(int(groups.get("end") or 0), start))
        if path and link not in visited:
            visited.add(link)
            yield link


def installed_file(path: str, files: Sequence[str]) -> str | None:
    """The installed file that a path means: the same, one that ends with it, or one that its own
    end names; None when it is not clear which.
    """
    file_path = path.replace("\\", "/").strip("/")
    if "site-packages/" in file_path:
        file_path = file_path.rpartition("site-packages/")[2]
    parts = [part for part in file_path.split("/") if part not in {"", ".", ".."}]
    for skipped in range(max(len(parts) - 1, 1)):
        ending = "/".join(parts[skipped:])
        matches = [file for file in files if file == ending or file.endswith(f"/{ending}")]
        if ending in matches:
            return ending
        if len(matches) == 1:
            return matches[0]
        if matches:
            return None
    return None


# A source index over any store of segments: the store finds words and names; ranking, symbols and
# calls are worked out here, alike for all stores.

_LOWER = 0.6
_CANDIDATES = 60
_CALLERS = 1_600
_READ_LINES = 2_000
_MOST_SEGMENTS = 400
_SHOWN_WHOLE = 600
_SECONDARY = frozenset({"tests", "test", "testing", "_internal", "benchmarks", "examples"})
_CARRIED = frozenset(
    {
        "_vendor",
        "vendor",
        "_vendored",
        "vendored",
        "third_party",
        "extern",
        "externals",
        "_distutils",
    }
)
_CARRIED_WEIGHT = 0.1


def is_secondary(path: str) -> bool:
    """Whether a file holds tests, examples or what is only for the package's own use."""
    return path.endswith("_test.py") or any(
        part in _SECONDARY or part.startswith("test_") for part in path.split("/")
    )


class Provenance(NamedTuple):
    """Where a file comes from. `main` when its package was asked for, and is no mere dependency."""

    origin: Origin
    package: str
    version: str
    main: bool


class SegmentStore(DefinitionStore, Protocol):
    """The files and segments that an index is built on. All answers are in one fixed order."""

    def paths(self) -> Sequence[str]:
        """Every path, sorted."""

    def provenance(self, path: str) -> Provenance:
        """Where a file comes from."""

    def ranked(self, words: Sequence[str], limit: int) -> Sequence[tuple[Segment, float]]:
        """Segments that contain any of the words, with scores (higher is better), best first."""

    def containing(self, words: Sequence[str], limit: int) -> Sequence[Segment]:
        """Segments that contain all of the words, by path and line."""


class SegmentIndex:
    """A SourceIndex over a store."""

    def __init__(self, store: SegmentStore) -> None:
        self.store = store

    def search(self, query: str, limit: int = 10) -> tuple[Chunk, ...]:
        """Best first; tests and dependencies are ranked lower."""
        words = query_words(query)
        hits = self.store.ranked(words, limit * 3) if words else ()
        scores = {segment: score * self._weight(segment.path) for segment, score in hits}
        best = sorted(
            scores, key=lambda segment: (-round(scores[segment], 6), segment.path, segment.start)
        )
        return self._chunks(best, limit, scores)

    def symbol(self, name: str, limit: int = 5) -> tuple[Chunk, ...]:
        """What the name resolves to, then what ends with it, each with the weight of its file."""
        plain = name.strip().strip(".").removesuffix("()")
        rest = plain.partition(".")[2]
        if len(plain) > 300 or not all(part.isidentifier() for part in plain.split(".")):
            return ()
        segment_lists = (
            symbols.lookup(self.store, one, limit, self._main) for one in (plain, rest) if one
        )
        segments = [*map(self._whole, next(filter(None, segment_lists), ()))]
        weights = {segment: self._weight(segment.path) for segment in segments}
        return self._chunks(segments, limit, weights)

    def literal(self, text: str, limit: int = 5) -> tuple[Chunk, ...]:
        """The main packages first, tests last."""
        words = literal_words(text)
        segments = self.store.containing(words, _CALLERS) if words else ()
        ordered = sorted(segments, key=lambda segment: -self._weight(segment.path))[:_MOST_SEGMENTS]
        pattern = literal_pattern(text)
        hits = ((segment, pattern.search(self._text(segment))) for segment in ordered)
        lines = {
            self._whole(segment): segment.start + hit.string.count("\n", 0, hit.start())
            for segment, hit in islice(((at, hit) for at, hit in hits if hit), limit)
        }
        chunks = ((self._chunk(segment), line) for segment, line in lines.items())
        return tuple(
            chunk.model_copy(update={"focus": line, "score": self._weight(chunk.path)})
            for chunk, line in chunks
            if chunk
        )

    def read(self, path: str, start: int, end: int) -> Chunk | None:
        """At most 2,000 lines. A range that ends past the file is cut, one that begins there is
        None.
        """
        file = installed_file(path, self.store.paths())
        if file is None:
            return None
        first = max(start, 1)
        return self._lines_of(file, first, min(end, first + _READ_LINES - 1))

    def around(self, path: str, line: int) -> Chunk | None:
        """The whole definition where it is short enough to be shown, else the part of it with the
        line.
        """
        file = installed_file(path, self.store.paths())
        segment = self._segment(file, line) if file is not None else None
        chunk = self._chunk(self._whole(segment)) if segment is not None else None
        return chunk and chunk.model_copy(update={"focus": line})

    def callers(self, chunk: Chunk, limit: int = 5) -> tuple[Chunk, ...]:
        """Callers within the same package before others, tests after them."""
        target = self._segment(chunk.path, chunk.start)
        if target is None or not target.name:
            return ()
        name = symbols.callable_name(target)
        package = target.path.partition("/")[0]
        segments = self.store.containing((name.lower(),), _CALLERS)
        ordered = sorted(segments, key=lambda segment: (
            segment.path.partition("/")[0] != package, -self._weight(segment.path),
            segment.path != target.path, segment.path, segment.start))  # fmt: skip
        texts = ((segment, self._text(segment)) for segment in ordered[: _CALLERS // 2])
        calling = [(segment, text) for segment, text in texts if f"{name}(" in text]
        return self._chunks(symbols.callers(self.store, target, calling[:_CANDIDATES]), limit)

    def callees(self, chunk: Chunk, limit: int = 5) -> tuple[Chunk, ...]:
        """Only what is defined in these sources, each whole where it is short enough to be shown."""
        caller = self._segment(chunk.path, chunk.start)
        segments = symbols.callees(self.store, caller, chunk.text) if caller is not None else ()
        return self._chunks(map(self._whole, segments), limit)

    def loops(self, limit: int = 5) -> tuple[Chunk, ...]:
        """Segments with the words of an idiom, judged by their syntax."""
        scores = self._loop_scores
        complete = (segment for segment in scores if scores[segment] > 0)
        best = sorted(complete, key=lambda segment: (-scores[segment], segment.path, segment.start))
        chunks = self._chunks(best, limit, scores)
        return tuple(chunk.model_copy(update={"kind": "loop"}) for chunk in chunks)

    def files(self, prefix: str = "") -> tuple[str, ...]:
        """The paths that begin with `prefix`, sorted."""
        return tuple(path for path in self.store.paths() if path.startswith(prefix))

    @cached_property
    def _loop_scores(self) -> dict[Segment, float]:
        words = training_loops.CANDIDATES
        candidates = dict.fromkeys(
            s for all_ in words for s in self.store.containing(all_, _CANDIDATES)
        )
        return {segment: self._loop(segment) * self._weight(segment.path) for segment in candidates}

    def _loop(self, segment: Segment) -> float:
        tree = syntax.tree_of_lines(self._text(self._with_class(segment)))
        return training_loops.training_score(tree) if tree is not None else 0.0

    def _with_class(self, segment: Segment) -> Segment:
        """The whole class of a step method: the idiom is spread over it."""
        if segment.kind != "method" or not segment.name.endswith(".training_step"):
            return segment
        owner = segment.name.rpartition(".")[0]
        own = [s for s in self.store.segments(segment.path) if f"{s.name}.".startswith(f"{owner}.")]
        return own[0]._replace(end=own[-1].end) if own else segment

    def _weight(self, path: str) -> float:
        parts = path.split("/")
        if any(part in _CARRIED for part in parts):
            return _CARRIED_WEIGHT
        main = self.store.provenance(path).main
        return (1.0 if main else _LOWER) * (_LOWER if is_secondary(path) else 1.0)

    @cached_property
    def _main(self) -> tuple[str, ...]:
        """The top-level names of the packages that were asked for."""
        paths = (path for path in self.store.paths() if self.store.provenance(path).main)
        tops = (path.removeprefix("src/").partition("/")[0].removesuffix(".py") for path in paths)
        return tuple(dict.fromkeys(tops))

    def _segment(self, path: str, line: int) -> Segment | None:
        return next((s for s in self.store.segments(path) if s.start <= line <= s.end), None)

    def _chunks(
        self, segments: Iterable[Segment], limit: int, scores: Mapping[Segment, float] | None = None
    ) -> tuple[Chunk, ...]:
        chunks = (
            chunk.model_copy(update={"score": round(scores[segment], 6) if scores else 0.0})
            for segment in segments
            if (chunk := self._chunk(segment)) is not None
        )
        return tuple(islice(chunks, limit))

    def _chunk(self, segment: Segment) -> Chunk | None:
        text = self._text(segment).rstrip()
        chunk = self._lines_of(segment.path, segment.start, segment.start + text.count("\n"))
        return chunk and chunk.model_copy(update={"kind": segment.kind, "name": segment.dotted})

    def _lines_of(self, path: str, start: int, end: int) -> Chunk | None:
        text = self.store.text(path)
        lines = text.removesuffix("\n").split("\n")[start - 1 : end] if text else []
        origin, package, version, _ = self.store.provenance(path)
        return Chunk(
            path=path, start=start, end=start + len(lines) - 1, text="\n".join(lines),
            origin=origin, package=package, version=version,
        ) if lines else None  # fmt: skip

    def _text(self, segment: Segment) -> str:
        lines = (self.store.text(segment.path) or "").split("\n")
        return "\n".join(lines[segment.start - 1 : segment.end])

    def _whole(self, segment: Segment) -> Segment:
        """The definition that a part belongs to, when it is not too long to be shown."""
        if segment.kind in {"module", "class"}:
            return segment
        segments = self.store.segments(segment.path)
        first = last = segments.index(segment)
        while segments[first].part > 0 and segments[first - 1].name == segment.name:
            first -= 1
        while [s.name for s in segments[last + 1 : last + 2] if s.part > 0] == [segment.name]:
            last += 1
        if segments[first].part or segments[last].end - segments[first].start >= _SHOWN_WHOLE:
            return segment
        return segment._replace(start=segments[first].start, end=segments[last].end, part=0)
