"""What prompts show: source code, environments, attempts and what a model has learned."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from itertools import groupby, pairwise
from types import MappingProxyType

from bot.environment import evidence, imports, package_names, versions
from bot.issues.search import contexts as search_contexts, hints
from bot.kernel.attempt import Attempt, Execution
from bot.kernel.dialogue import ReadAction, SearchAction
from bot.kernel.document import sentence
from bot.kernel.environment import (
    Chunk,
    Claimed,
    Context,
    Environment,
    EnvironmentSpec,
    Requirement,
)
from bot.kernel.ports import SourceIndex
from bot.kernel.session import CompletedRun
from bot.kernel.source.outline import beyond, nonempty_lines, size, without_docstrings
from bot.kernel.trees import Tree
from prompts import shared
from prompts.catalog import fence
from sandbox.port import RunResult

# What a model is told of an environment: what was asked for, what was installed, and why; and
# whether the package under test can be imported there.

_MOST, _MOST_WEIGHTS = 12, 30


def describe_environment(spec: EnvironmentSpec, environment: Environment, problem: str = "") -> str:
    """The packages that matter, a line each, inside the fence; `problem` is how their import
    ends where it fails.
    """
    claims = {claim.name: claim for claim in environment.claims}
    rows = [_python(spec, environment, claims.pop("python", None))]
    if date := claims.pop("date", None):
        rows.append(sentence(date.note))
    for requirement in spec.requirements[:_MOST]:
        claim = claims.pop(evidence.claim_name(requirement.name), None)
        rows.append(_requirement_row(spec, environment, requirement, claim))
    rows += [*_claim_rows(spec, list(claims.values())), *_dependencies(spec, environment)]
    weights = ", ".join(environment.operator_files.weights[:_MOST_WEIGHTS])
    rows += [shared("weights_row", names=weights)] if weights else []
    rows += [shared("not_importable", problem=_plain(problem))] if problem else []
    return fence("the environment", "\n".join(rows))


def _python(spec: EnvironmentSpec, environment: Environment, claim: Claimed | None) -> str:
    note = claim.note if claim is not None else ""
    is_as_asked = versions.python_minor(environment.python) == spec.python
    requested_version = "" if is_as_asked else spec.python
    why = _reasons(spec.python_why, note)
    return _row("Python", requested_version, environment.python, why)


def _requirement_row(
    spec: EnvironmentSpec, environment: Environment, requirement: Requirement, claim: Claimed | None
) -> str:
    """A package that is to be installed."""
    stated_version = versions.exact_version(requirement.specifier) or requirement.specifier
    requested_version = (claim.claimed if claim is not None else "") or stated_version
    installed_version = environment.version(requirement.name) or (
        claim.resolved if claim is not None else ""
    )
    note = claim.note if claim is not None else ""
    processor = _processor(spec, requirement.name, requested_version, installed_version)
    why = _reasons(requirement.why, note, processor)
    return _row(requirement.name, requested_version, installed_version, why)


def _claim_rows(spec: EnvironmentSpec, claims: list[Claimed]) -> list[str]:
    """What the report names beside that: a line for each that differs, or for several that do so
    for one reason, and one for the others.
    """
    other = [
        row for row in claims if row.note and (row.claimed or package_names.is_known(row.name))
    ]
    alike = [claim for claim in claims if not claim.note and claim.resolved]
    rows = list(_alike_rows(spec, other))
    listing = ", ".join(f"{claim.name} {claim.resolved}" for claim in alike[:_MOST])
    return [*rows[:_MOST], *([shared("as_reported", packages=listing)] if listing else [])]


def _alike_rows(spec: EnvironmentSpec, claims: list[Claimed]) -> Iterator[str]:
    """A row for all of one reason: names, versions asked for and versions installed, in step."""
    groups = dict[tuple[bool, bool, str], list[Claimed]]()
    for claim in claims[:_MOST]:
        is_requested = claim.claimed not in {"", claim.resolved}
        kind = (bool(claim.resolved), is_requested, _why(spec, claim))
        groups.setdefault(kind, []).append(claim)
    for (is_installed, is_requested, why), group in groups.items():
        if is_installed and not is_requested:
            packages = ", ".join(f"{row.name} {row.resolved}" for row in group)
            yield shared("package_row", packages=packages, why=why)
            continue
        names = ", ".join(row.name for row in group)
        requested = ", ".join(row.claimed for row in group if row.claimed)
        yield _row(names, requested, ", ".join(row.resolved for row in group if row.resolved), why)


def _dependencies(spec: EnvironmentSpec, environment: Environment) -> list[str]:
    """The well-known libraries that came as dependencies, in one line."""
    names_above = {row.name for row in spec.requirements} | {
        claim.name for claim in environment.claims if claim.resolved
    }
    packages = [
        package
        for package in environment.packages
        if package.name not in names_above and package_names.is_known(package.name)
    ]
    listing = ", ".join(f"{package.name} {package.version}" for package in packages[:_MOST])
    return [shared("also_installed", packages=listing)] if listing else []


def _why(spec: EnvironmentSpec, claim: Claimed) -> str:
    return _reasons(claim.note, _processor(spec, claim.name, claim.claimed, claim.resolved))


def _reasons(*texts: str) -> str:
    """Reasons in a row, each once."""
    return "; ".join(dict.fromkeys(filter(None, "; ".join(texts).split("; "))))


def _processor(
    spec: EnvironmentSpec, name: str, requested_version: str, installed_version: str
) -> str:
    """That only builds for the processor were looked at, where that may have decided."""
    family = name in imports.TORCH_FAMILY and spec.device == "cpu"
    plain = installed_version.partition("+")[0]
    return (
        shared("cpu_builds")
        if family
        and installed_version
        and not (requested_version and requested_version in {installed_version, plain})
        else ""
    )


def _row(name: str, requested_version: str, installed_version: str, why: str) -> str:
    if not installed_version:
        return shared("absent_row", name=name, asked=requested_version or "any", why=why)
    if requested_version in {"", installed_version, installed_version.partition("+")[0]}:
        return shared("package_row", packages=f"{name} {installed_version}", why=why)
    return shared(
        "asked_row", name=name, asked=requested_version, version=installed_version, why=why
    )


# What prompts show: source code with line numbers, each piece with its origin and why it was
# taken; and what a model learned from its earlier actions.

_MOST_LINE = 300
_AROUND = 10
MOST_OUTPUT = 3_000  # characters
_FRAMES = 6
_BRIEF = 400  # characters
_MOST_STREAM = 1_800  # characters
_INSTALLED = re.compile(r"(?:/[^\s/\"'`:]+)+/((?:site|dist)-packages/)")
_IMPORTING = re.compile(r"^ *File \"<frozen importlib[^\n]*(?:\n|\Z)", re.MULTILINE)


def show_contexts(context_list: Iterable[Context]) -> str:
    """The contexts in their order."""
    blocks = (
        f"{shared('context', rank=context.rank)}\n{list_pieces(context.chunks)}"
        for context in context_list
    )
    return "\n".join(blocks) or shared("no_context")


def list_pieces(pieces: Iterable[Chunk], *, is_whole: bool = False) -> str:
    """Pieces of sources inside a fence, those of a file below its path, without all but the first
    line of their docstrings; unless whole: then lines that were asked for have them, and
    definitions around the line that was searched for.
    """
    blocks = []
    for _, group in groupby(pieces, key=lambda piece: (piece.path, piece.origin, piece.version)):
        first, *more = group
        package = f" ({first.package} {first.version}".rstrip() + ")" if first.package else ""
        rows = (row for one in (first, *more) for row in _rows(one, is_whole=is_whole))
        blocks.append("\n".join((shared("piece", path=first.path, package=package), *rows)))
    return fence("source code", "\n\n".join(blocks)) if blocks else ""


def _rows(piece: Chunk, *, is_whole: bool) -> Iterable[str]:
    """Which lines a piece has and why it was taken, then these without what all are indented by. A
    number stands where lines are left out.
    """
    lines = piece.text.split("\n")
    visible = set(nonempty_lines(piece.text))
    if is_whole:
        is_near = (
            piece.kind == "lines" or abs(piece.start + at - piece.focus) <= _AROUND
            for at in range(len(lines))
        )
        visible |= {at for at, near in enumerate(is_near) if near and lines[at].strip()}
    first, last = min(visible), max(visible)
    numbers = "-".join(dict.fromkeys(str(piece.start + at) for at in (first, last)))
    yield f"[{': '.join((numbers, *piece.why[:1]))}]"
    indents = (len(lines[at]) - len(lines[at].lstrip()) for at in visible if lines[at].strip())
    indent = min(indents, default=0)
    for before, at in pairwise((first - 1, *sorted(visible))):
        between = lines[before + 1 : at]
        is_gap = any(line.strip() for line in between)
        yield from [f"[{piece.start + at}]"] if is_gap else [""] * len(between)
        yield lines[at][indent : indent + _MOST_LINE].rstrip()


def probe_text(result: RunResult, code: str = "") -> str:
    """What a probe printed and how it ended; without its code the end of it, for later."""
    output = f"{result.stdout}\n{result.stderr}"
    if not code:
        brief = fence("output", _plain(output.strip())[-_BRIEF:])
        return shared("earlier_probe", ended=_ending_text(result), output=brief)
    output = fence("output", _shorten(output))
    return shared("probed", code=fence("probe", code), ended=_ending_text(result), output=output)


def _ending_text(run: RunResult | Execution) -> str:
    """How a run ended."""
    if run.timed_out or run.idle:
        return shared("timed_out", seconds=f"{run.seconds:.0f}")
    if run.oom:
        return shared("out_of_memory")
    if run.signal is not None:
        return shared("signal", signal=run.signal)
    return shared("exit_code", code=run.exit_code)


def refusal_text(objections: Iterable[str]) -> str:
    """Why a program was not run."""
    return shared("refused", objections="\n".join(f"- {objection}" for objection in objections))


def outcome(run: CompletedRun, words: str = "outcome", command: str = "") -> str:
    """What a run did: how it ended, where it failed, and what it printed."""
    judgement, execution = run.judgement, run.attempt.execution
    streams = [_shorten(text, _MOST_STREAM) for text in _streams(run.attempt, run.result)]
    return shared(
        words,
        **({"command": fence("the command", command)} if command else {}),
        ended=_ending_text(execution),
        seconds=f"{execution.seconds:.1f}",
        reason=judgement.reason,
        output=fence(
            "output of the run",
            "\n\n".join(streams) or judgement.evidence or shared("no_output"),
        ),
    )


def earlier(attempt: Attempt) -> str:
    """What is said of a run when another program has taken its place."""
    return shared("earlier_program", reason=attempt.judgement.reason)


def _streams(attempt: Attempt, result: RunResult | None) -> Iterable[str]:
    failure = attempt.judgement.failure
    if failure is not None:
        frames = [
            f'  File "{frame.module_path or frame.path}", line {frame.line}, in {frame.function}\n'
            f"    {frame.code}"
            for frame in failure.frames[-_FRAMES:]
        ]
        yield "\n".join([*frames, f"{failure.exception}: {failure.message}"])
    elif result is not None and result.stderr.strip():
        yield result.stderr
    if result is not None and result.stdout.strip():
        yield shared("standard_output", output=result.stdout)


def show_history(program: str, contrast: str, notes: Sequence[str]) -> str:
    """The last program with line numbers, its twin as far as it differs, and the notes on what was
    tried, each once.
    """
    parts = []
    if program.strip():
        source = fence("program", "\n".join(_numbered(program.splitlines())))
        parts.append(shared("last_program", name="program", source=source))
    if contrast.strip():
        whole = "\n".join(_numbered(contrast.splitlines()))
        changes = "\n".join(_changes(program.splitlines(), contrast.splitlines()))
        words, text = min(
            ("last_contrast", changes), ("last_program", whole), key=lambda row: len(row[1])
        )
        parts.append(shared(words, name="contrast", source=fence("contrast", text)))
    return "\n\n".join(dict.fromkeys([*parts, *notes]))


def _numbered(lines: Sequence[str], start: int = 1) -> Iterator[str]:
    return (f"{at} {line}".rstrip() for at, line in enumerate(lines, start))


def _changes(program: Sequence[str], contrast: Sequence[str]) -> Iterator[str]:
    """The lines of a program that its twin lacks, and in their place those of the twin, with the
    numbers that they have there.
    """
    for tag, start, end, first, last in SequenceMatcher(
        None, program, contrast, autojunk=False
    ).get_opcodes():
        if tag != "equal":
            yield from (f"- {line}" for line in program[start:end])
            yield from (f"+ {line}" for line in _numbered(contrast[first:last], first + 1))


def _shorten(text: str, most: int = MOST_OUTPUT) -> str:
    text = _plain(text.strip())
    if len(text) <= most:
        return text
    return f"{text[: most // 3]}\n[…]\n{text[-most * 2 // 3 :]}"


def _plain(text: str) -> str:
    """An output without the folder of the environment, and without the frames of an import."""
    return _INSTALLED.sub(r"\1", _IMPORTING.sub("", text))


# What a model has learned while it writes a program, as later questions show it: the newest in
# full, the rest in a line each, and no piece of source twice.

_NOTES = 6
_DEFINITIONS = frozenset({"class", "method"})
_MOST_FOUND = 200  # lines


@dataclass(slots=True)
class _Note:
    """Something learned, and the line that is left of it after the next answer."""

    text: str
    brief: str
    fresh: bool = True


@dataclass(slots=True)
class Notebook:
    """The sources in sight, the notes, and the outcome of the last program."""

    contexts: tuple[Context, ...]
    found: tuple[Chunk, ...] = ()
    newest: tuple[Chunk, ...] = ()
    notes: list[_Note] = field(default_factory=list)
    outcome: _Note | None = None
    thought: str = ""
    is_new: bool = True

    def answered(self, relied_on: int, last_thought: str) -> None:
        """The model has seen all of it: what it relies on is shown again, by its number or because
        its thought names what is in it; the rest is only named.
        """
        self.contexts = tuple(
            context
            for context in self.contexts
            if context.rank == relied_on or _is_named(context, last_thought)
        )
        self.thought, self.is_new, self.newest = last_thought, False, ()
        for note in self.notes:
            note.fresh = False

    def tell(self, text: str, brief: str | None = None) -> None:
        """Keep something for the next questions, or what is left of it after the first ("":
        nothing); the oldest is dropped first.
        """
        notes = [note for note in self.notes if note.fresh or note.brief]
        self.notes = [*notes, _Note(text, text if brief is None else brief)][-_NOTES:]

    def ran(self, text: str, brief: str) -> None:
        """Keep what the last program did; of the one before only a line is left."""
        if self.outcome is not None and self.outcome.brief:
            self.tell(self.outcome.brief)
        self.outcome = _Note(text, brief)

    def look_up(
        self,
        sources: SourceIndex | None,
        wish: SearchAction | ReadAction,
        tree: Tree = MappingProxyType({}),
    ) -> None:
        """Carry out a look into the sources; what is in sight already is not shown again."""
        answer = search_contexts.look_up(sources, wish, tree)
        request = search_contexts.request(wish)
        lines = [f"{piece.path} {piece.start}-{piece.end}" for piece in answer.pieces]
        heading = " ".join(filter(None, (answer.remark, shared("found") if lines else "")))
        brief = shared("looked_up", request=request, found=", ".join(lines) or answer.remark)
        self.tell(shared("looked_up", request=request, found=heading), brief)
        self.newest = (*answer.pieces, *self.newest)
        self.found = _within(beyond((*answer.pieces, *self.found), (), 0), size(self.newest))

    def sources(self) -> str:
        """The pieces of source in sight: the files of the last look first, each in its order."""
        pieces = [piece for context in self.contexts for piece in context.chunks]
        visible_parts = [part for piece in pieces for part in without_docstrings(piece)]
        new = [piece for piece in beyond(self.found, visible_parts, 0) if piece.text.strip()]
        paths = list(dict.fromkeys(piece.path for piece in new))
        chunks = sorted(new, key=lambda piece: (paths.index(piece.path), piece.start))
        parts = [shared("found_pieces"), list_pieces(chunks, is_whole=True)] if chunks else []
        if self.contexts or not chunks:
            parts.append(show_contexts(self.contexts))
        return "\n\n".join(parts)

    def history(self, program: str, contrast: str) -> str:
        """The last program and its twin, what was learned, and the last thought."""
        parts = [note.text if note.fresh else note.brief for note in self.notes]
        parts = [part for part in parts if part]
        if self.outcome is not None:
            parts.append(self.outcome.text)
        if self.thought:
            parts.append(shared("earlier_thought", thought=fence("thought", self.thought)))
        return show_history(program, contrast, parts)


def _is_named(context: Context, text: str) -> bool:
    """Whether a text names a definition of a context, a method with its class."""
    names = {hints.short(piece) for piece in context.chunks if piece.kind in _DEFINITIONS}
    return any(re.search(rf"(?<![\w.]){re.escape(name)}(?!\w)", text) for name in names if name)


def _within(pieces: Iterable[Chunk], newest: int) -> tuple[Chunk, ...]:
    """The newest pieces, as many as there is room for: at least what the last answer asked for,
    in lines.
    """
    room = max(_MOST_FOUND, newest)
    newest_pieces: list[Chunk] = []
    for piece in pieces:
        if newest_pieces and size([*newest_pieces, piece]) > room:
            break
        newest_pieces.append(piece)
    return tuple(newest_pieces)
