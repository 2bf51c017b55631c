"""What prompts show: source code, environments, attempts and what a model has learned."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
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
    rows += [shared("not_importable", problem=problem)] if problem else []
    return fence("the environment", "\n".join(rows))


def _python(spec: EnvironmentSpec, environment: Environment, claim: Claimed | None) -> str:
    note = claim.note if claim is not None else ""
    why = "; ".join(filter(None, (spec.python_why, note)))
    return shared("python_row", asked=spec.python, version=environment.python, why=why)


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
    why = "; ".join(dict.fromkeys(filter(None, (requirement.why, note, processor))))
    return _row(requirement.name, requested_version, installed_version, why)


def _claim_rows(spec: EnvironmentSpec, claims: list[Claimed]) -> list[str]:
    """What the report names beside that: a line for each that differs, or for several that do so
    for one reason, and one for the others.
    """
    other = [claim for claim in claims if claim.note]
    alike = [claim for claim in claims if not claim.note and claim.resolved]
    rows = list(_alike_rows(spec, other))
    listing = ", ".join(f"{claim.name} {claim.resolved}" for claim in alike[:_MOST])
    return [*rows[:_MOST], *([shared("as_reported", packages=listing)] if listing else [])]


def _alike_rows(spec: EnvironmentSpec, claims: list[Claimed]) -> Iterator[str]:
    """A row for all of one reason: names, versions asked for and versions installed, in step."""
    groups = dict[tuple[bool, str], list[Claimed]]()
    for claim in claims[:_MOST]:
        groups.setdefault((bool(claim.resolved), _why(spec, claim)), []).append(claim)
    for (_, why), group in groups.items():
        unstated = "any" if len(group) > 1 else ""
        names = ", ".join(row.name for row in group)
        requested = ", ".join(row.claimed or unstated for row in group)
        installed = ", ".join(row.resolved for row in group if row.resolved)
        yield _row(names, requested, installed, why)


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
    processor = _processor(spec, claim.name, claim.claimed, claim.resolved)
    return "; ".join(filter(None, (claim.note, processor)))


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
    if not requested_version:
        return shared("package_row", name=name, version=installed_version, why=why)
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


def show_contexts(context_list: Iterable[Context]) -> str:
    """The contexts in their order."""
    blocks = []
    for context in context_list:
        blocks += [
            shared("context", rank=context.rank, title=context.title),
            list_pieces(context.chunks),
        ]
    return "\n\n".join(blocks) or shared("no_context")


def list_pieces(pieces: Iterable[Chunk], *, is_whole: bool = False) -> str:
    """Pieces of sources with line numbers, neighbours of one file inside one fence, without all
    but the first line of their docstrings; unless whole: then lines that were asked for have them,
    and definitions around the line that was searched for.
    """
    blocks = []
    for _, group in groupby(pieces, key=lambda piece: (piece.path, piece.origin, piece.version)):
        first, *more = group
        package = f", {first.package} {first.version}".rstrip() if first.package else ""
        label = shared("piece", origin=first.origin, path=first.path, package=package)
        rows = (row for one in (first, *more) for row in _rows(one, is_whole=is_whole))
        blocks.append(fence(label, "\n".join(rows)))
    return "\n\n".join(blocks)


def _rows(piece: Chunk, *, is_whole: bool) -> Iterable[str]:
    """Why a piece was taken, and its lines."""
    if piece.why:
        yield f"[{piece.why[0]}]"
    lines = piece.text.split("\n")
    width = len(str(piece.end))
    visible = set(nonempty_lines(piece.text))
    for at, line in enumerate(lines):
        near = piece.kind == "lines" or abs(piece.start + at - piece.focus) <= _AROUND
        if at not in visible and not (is_whole and near and line.strip()):
            continue
        yield f"{piece.start + at:{width}d}  {lines[at][:_MOST_LINE]}"


def probe_text(result: RunResult, code: str = "") -> str:
    """What a probe printed and how it ended; without its code the end of it, for later."""
    output = f"{result.stdout}\n{result.stderr}".strip()
    if not code:
        brief = fence("output", output[-_BRIEF:])
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
    streams = [_shorten(text.strip()) for text in _streams(run.attempt, run.result)]
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
    """The last program and its twin with line numbers, and the notes on what was tried."""
    parts = []
    for name, text in (("program", program), ("contrast", contrast)):
        if text.strip():
            numbered_lines = "\n".join(
                f"{at:4d}  {line}" for at, line in enumerate(text.splitlines(), 1)
            )
            parts.append(shared("last_program", name=name, source=fence(name, numbered_lines)))
    return "\n\n".join([*parts, *notes])


def _shorten(text: str) -> str:
    if len(text) <= MOST_OUTPUT:
        return text
    return f"{text[: MOST_OUTPUT // 3]}\n[…]\n{text[-MOST_OUTPUT * 2 // 3 :]}"


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

    def tell(self, text: str, brief: str = "") -> None:
        """Keep something for the next questions; the oldest is dropped first."""
        self.notes = [*self.notes, _Note(text, brief or text)][-_NOTES:]

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
