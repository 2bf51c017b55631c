"""Issue → BugReport: blocks of the body with their kinds, and the report's claims with their
quotes.
"""

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from bot.environment import package_names
from bot.issues.reading import (
    code as reading_code,
    exceptions,
    markdown,
    named_programs,
    outputs,
    roles,
    surroundings,
    symptoms,
    training,
    versions,
)
from bot.issues.reading.bare_commands import find_bare_commands
from bot.issues.reading.bare_messages import find_bare_messages, without_place
from bot.issues.reading.code import Cleaned, clean
from bot.issues.reading.inline_code import find_inline_program
from bot.issues.reading.markdown import (
    MOST_BLOCKS,
    CodeBlock,
    ProseLine,
    ReportDocument,
    Sentence,
    sentences,
)
from bot.issues.signature import references
from bot.kernel import commands, plain_text
from bot.kernel.bug import (
    MOST_BODY,
    BugReport,
    Fence,
    FenceKind,
    Issue,
    Output,
    ReportKind,
    Role,
    Symptom,
    Traceback,
    WarningText,
)
from bot.kernel.plain_text import distinct
from bot.kernel.source import training_loops
from bot.kernel.source.syntax import module_of
from bot.kernel.traceback_frames import TracebackSpan
from bot.kernel.tracebacks import find
from bot.kernel.usage_errors import find_usage_errors

# Reads the blocks of a report one after the other, and combines what they show.

_PATIENCE = 500_000
_NEAR = 5
"""Lines after a block: the fence that closes it, blank ones, and the text."""


@dataclass(frozen=True, slots=True)
class FenceReading:
    """A fence with what was found in it: tracebacks by their lines, and the line of the body for
    each of its lines.
    """

    fence: Fence
    spans: tuple[TracebackSpan, ...]
    numbers: tuple[int, ...]
    shown: tuple[tuple[int, str], ...]

    def number(self, line: int) -> int:
        """The line of the body for a line of the block."""
        return self.numbers[min(line, len(self.numbers) - 1)]


def read_blocks(document: ReportDocument, home: str) -> tuple[FenceReading, ...]:
    """Every block of the document, classed, cleaned and given its role."""
    total = sum(len(code.text) for code in document.codes)
    patience = max(1, min(30, _PATIENCE // (total + 1)))
    out: list[FenceReading] = []
    for code in document.codes:
        cleaning = clean(code.text, patience)
        before = out[-1].fence.kind if out and code.adjoining else None
        block = _block(code, cleaning, len(out), before, home)
        if roles.is_called_fix(_line_after(code, document)):
            fix = block.fence.model_copy(update={"role": Role.FIX})
            block = replace(block, fence=fix)
        out.append(block)
    literals = outputs.literals_of([block.fence for block in out if _imports(block.fence)])
    return tuple(
        _as_output(code, block, literals) for code, block in zip(document.codes, out, strict=True)
    )


def _line_after(code: CodeBlock, document: ReportDocument) -> str:
    """The line of text that follows a block at once, "" for none."""
    last = code.numbers[-1]
    near = range(last + 1, last + _NEAR)
    following = (line for line in document.prose if line.number in near and line.text.strip())
    return next((line.text for line in following if not line.heading), "")


def _imports(fence: Fence) -> bool:
    return fence.kind is FenceKind.PROGRAM and "import " in fence.text


def _as_output(code: CodeBlock, block: FenceReading, literals: frozenset[str]) -> FenceReading:
    """`loss = tensor(nan)` is valid Python, but it is what a program of the report prints."""
    fence = block.fence
    is_settled = fence.kind is not FenceKind.PROGRAM or _imports(fence) or block.shown
    if is_settled or not outputs.echoes(fence.raw, literals):
        return block
    role = roles.role(code, FenceKind.OUTPUT, fence.raw, None)
    changes = {"kind": FenceKind.OUTPUT, "role": role, "text": fence.raw}
    return replace(block, fence=fence.model_copy(update=changes | {"fixes": (), "installs": ()}))


def _block(
    code: CodeBlock, cleaned: Cleaned, index: int, before: FenceKind | None, home: str
) -> FenceReading:
    lines = code.text.split("\n")
    embedded = reading_code.program(code.text) if not cleaned.parses else None
    if embedded:
        cleaned = Cleaned(
            embedded.text,
            embedded.fixes,
            evidence=embedded.evidence,
            parses=True,
            installs=cleaned.installs,
        )
    program = roles.is_program(code.tag, cleaned)
    whole = embedded or cleaned.transcript or cleaned.shown or not program
    spans = find(
        lines if whole else _comments(lines),
        home=home,
        loose=bool(whole) and code.tag not in roles.SETTING_TAGS,
    )
    spans = spans or (find_usage_errors(lines) if whole else [])
    kind = roles.classify(code.text, code.tag, cleaned, spans)
    text = cleaned.text if kind is FenceKind.PROGRAM else code.text
    requirements = cleaned.installs or tuple(
        name for line in lines[:2000] for name in reading_code.requirements_of(line) or ()
    )
    fence = Fence(
        index=index,
        tag=code.tag,
        kind=kind,
        role=roles.role(code, kind, text, before),
        text=text,
        raw=code.text,
        line=code.line,
        fixes=cleaned.fixes if kind is FenceKind.PROGRAM else (),
        outputs=tuple(output for _, output in cleaned.shown)
        if cleaned.transcript and kind is FenceKind.PROGRAM
        else (),
        installs=tuple(dict.fromkeys(requirements)),
    )
    return FenceReading(
        fence, tuple(spans), code.numbers, cleaned.shown if kind is FenceKind.PROGRAM else ()
    )


def _comments(lines: Sequence[str]) -> list[str]:
    """Only what the comments of a program say, line by line."""
    return [
        match[1]
        if "#" in line and len(line) < 2000 and (match := re.search(r"#\s?(.*)$", line))
        else ""
        for line in lines
    ]


def tracebacks(
    issue: Issue,
    document: ReportDocument,
    words: Sequence[Sentence],
    readings: Sequence[FenceReading],
) -> tuple[Traceback, ...]:
    """Tracebacks of blocks, then those of the text that say something new, at last the title's."""
    out = [
        span.traceback.model_copy(
            update={"fence": block.fence.index, "line": block.number(span.start)}
        )
        for block in readings
        for span in block.spans
    ]
    home = package_names.import_home(issue.repository)
    programs = "\n".join(
        block.fence.text for block in readings if block.fence.kind is FenceKind.PROGRAM
    )
    # A class without a word, in a comment, is less than the line of the text that has its message.
    classes = {name for traceback in out if _tells(traceback) for name in _classes(traceback)}
    for row in [*exceptions.in_lines(document.prose, home), *exceptions.in_words(words)]:
        candidate = without_place(row) if not row.frames else row
        # A last line adds nothing to a traceback of its class.
        again = candidate in out if candidate.frames else not classes.isdisjoint(_own(candidate))
        if not again and not exceptions.makes(programs, candidate.exception):
            out.append(candidate)
            classes.update(_classes(candidate))
    telling = {name for row in out if _tells(row) for name in _own(row)}
    out = [row for row in out if _tells(row) or telling.isdisjoint(_own(row))]
    fences = [block.fence for block in readings]
    if not any(map(_tells, out)):
        imports = named_programs.find_failing_imports(words, fences)
        out = [row for one in imports for row in one.failures] or out
        out = [*named_programs.find_assertions(issue, words)] or out
    candidates = out or [*exceptions.without_class(words)] or [*exceptions.find_caught(fences)]
    blocks = [*zip(document.codes, fences, strict=True)]
    candidates = candidates or [*exceptions.in_blocks(blocks)]
    candidates = candidates or [*map(without_place, exceptions.in_title(issue, words, fences))]
    if not any(map(_tells, candidates)):
        return tuple([*exceptions.find_remarks(fences)] or candidates)
    remarks = [*exceptions.find_remarks(fences, worded=True)]
    return tuple(_at_remark(row, remarks) for row in candidates)


def _at_remark(row: Traceback, remarks: Sequence[Traceback]) -> Traceback:
    """A message without a stack, with the statements of which remarks say that they fail so."""
    if row.frames or not row.message:
        return row
    same = [one for one in remarks if one.exception in {"", row.exception.rsplit(".", 1)[-1]}]
    statements = (frame.code for one in same for frame in one.frames)
    return row.model_copy(update={"statements": tuple(dict.fromkeys(statements))})


def _tells(row: Traceback) -> bool:
    """Whether a traceback says more than a class and, at most, a statement that may be meant."""
    has_frames = any(frame.path for frame in row.frames)
    return bool(row.message or has_frames or row.exception.startswith("SIG"))


def _own(row: Traceback) -> set[str]:
    return {row.exception.rsplit(".", 1)[-1]}


def _classes(row: Traceback) -> set[str]:
    """The classes of a traceback's exceptions, without their modules."""
    return _own(row).union(*map(_classes, row.chained))


def shown_outputs(
    document: ReportDocument,
    words: Sequence[Sentence],
    readings: Sequence[FenceReading],
    home: str = "",
) -> tuple[Output, ...]:
    """Every output in the order of the body; `home` is the module of the repository."""
    programs = [block.fence for block in readings if block.fence.kind is FenceKind.PROGRAM]
    literals = outputs.literals_of(programs)
    out: list[Output] = []
    for block in readings:
        fence = block.fence
        if fence.kind is FenceKind.PROGRAM:
            out.extend(_pasted(block, home))
            if fence.role in {Role.REPRODUCER, Role.UNSTATED, Role.CONTRAST}:
                out += [*outputs.of_lines(fence, home), *outputs.of_blocks(fence, home)]
        elif output := outputs.from_fence(fence, block.spans, literals, home):
            out.append(output)
    out += [*outputs.from_lines(document.prose), *outputs.from_runs(document.prose)]
    out += [*outputs.from_tables(document.prose, home), *outputs.from_words(words, home)]
    out = [row.model_copy(update={"text": outputs.without_remarks(row.text)}) for row in out]
    out = [output for output in out if not outputs.lists_versions(output.text)]
    out.sort(key=lambda output: output.line)
    return distinct(out, lambda output: (output.text, output.role))


def _pasted(block: FenceReading, home: str) -> Iterator[Output]:
    """Output that stood inside a program's block, less its tracebacks and what is right."""
    right_code = references.right_code(block.fence.text, home)
    rows = block.fence.raw.split("\n")
    for offset, text in block.shown:
        above = next((row for row in reversed(rows[:offset]) if row.strip()), "")
        if references.is_code_of(above, right_code):
            continue
        lines = text.split("\n")
        covered_lines = {i for span in find(lines, loose=True) for i in range(span.start, span.end)}
        remaining_text = "\n".join(
            line for i, line in enumerate(lines) if i not in covered_lines
        ).strip("\n")
        if remaining_text.strip():
            line = block.number(offset)
            yield Output(text=remaining_text, role="observed", fence=block.fence.index, line=line)


def read_warnings(
    title: str,
    document: ReportDocument,
    words: Sequence[Sentence],
    readings: Sequence[FenceReading],
) -> tuple[WarningText, ...]:
    """Every warning quoted, each wording once."""
    rows: list[WarningText] = []
    for block in readings:
        fence = block.fence
        is_printed = fence.kind is not FenceKind.PROGRAM or block.shown or fence.outputs
        if is_printed and fence.role not in {Role.FIX, Role.SOURCE, Role.EXPECTED}:
            rows += exceptions.find_warnings(
                zip(block.numbers, fence.raw.split("\n"), strict=False)
            )
    prose = [(line.number, line.text) for line in document.prose if not line.heading]
    rows += [
        *exceptions.find_warnings(prose),
        *exceptions.title_warnings(title),
        *exceptions.warnings_in_prose(words),
    ]
    return distinct(rows, lambda row: row.message[:200])


def _with_class(
    failures: tuple[Traceback, ...], issue: Issue, words: Sequence[Sentence]
) -> tuple[Traceback, ...]:
    """The failures; where none has a class, Python's own words say which one it is."""
    if any(row.exception or row.frames for row in failures):
        return failures
    bare = tuple(find_bare_messages(issue, words))
    is_same = any(one.message in row.message for one in bare for row in failures)
    return bare if is_same or not failures else failures


def read_issue(issue: Issue) -> BugReport:
    """Read an issue. Pure, linear in the size of the body, and never raises on any text."""
    issue = issue.model_copy(
        update={
            "title": plain_text.line(issue.title),
            "labels": tuple(map(plain_text.line, issue.labels)),
        }
    )
    home = package_names.import_home(issue.repository)
    paper = reading_code.lift(markdown.parse(issue.body), home)
    words = tuple(sentences(paper.prose))
    blocks = read_blocks(paper, home)
    fences = tuple(block.fence for block in blocks)
    traceback_list = _with_class(tracebacks(issue, paper, words, blocks), issue, words)
    outputs = shown_outputs(paper, words, blocks, home)
    # Which of two endings of one program is the wrong one takes a reader.
    contrasted = _contrasted(fences)
    traceback_list = tuple(row for row in traceback_list if row.fence not in contrasted)
    outputs = tuple(row for row in outputs if row.fence not in contrasted)
    warnings = read_warnings(issue.title, paper, words, blocks)
    failing = any(t.message or t.frames for t in traceback_list) or any(
        output.role == "observed" for output in outputs
    )
    runnable = any(
        fence.kind is FenceKind.PROGRAM and fence.role in {Role.REPRODUCER, Role.UNSTATED}
        for fence in fences
    )
    kind, kind_quote = symptoms.kind(issue, words, failing=failing, runnable=runnable)
    if kind is ReportKind.BUG and not traceback_list and not failing:
        traceback_list = tuple(_claims(issue, words, fences))
    if traceback_list and not any(fence.kind is FenceKind.PROGRAM for fence in fences):
        program = find_inline_program(issue, words, home, len(fences))
        fences = (*fences, program) if program is not None else fences
    symptom, symptom_quote = symptoms.symptom(
        issue, words, traceback_list, warnings, outputs, paper.lines
    )
    lines = (ProseLine(text=issue.title, number=0, headings=()), *paper.prose)
    shell_commands = commands.find_commands(fences, words, tuple(find_bare_commands(lines)))
    claims, works_in = versions.find_versions(issue, paper, words, fences, traceback_list)
    complaint = training.find_complaint(issue.title, words)
    program_commands = named_programs.find_named_programs(issue, words, paper.prose, fences)
    if not (shell_commands or program_commands or _trains(fences)):
        complaint = None
    if complaint is not None and kind is ReportKind.QUESTION:  # "why is the result so bad?"
        kind, kind_quote = ReportKind.BUG, None
    return BugReport(
        kind=kind,
        kind_quote=kind_quote,
        symptom=symptom,
        symptom_quote=symptom_quote,
        fences=fences,
        tracebacks=traceback_list,
        warnings=warnings,
        outputs=outputs,
        versions=claims,
        works_in=works_in,
        device=surroundings.device(issue, words, fences),
        cpu_is_right=surroundings.cpu_is_right(issue, words),
        system=surroundings.system(issue, words),
        variables=surroundings.settings(words),
        api=surroundings.api(issue, words),
        missing=surroundings.missing(paper),
        complaint=complaint,
        commands=(*shell_commands, *commands.failing_tests(issue)),
        named_programs=program_commands,
        notebooks=commands.notebooks(issue),
        described=surroundings.described(words, fences),
        unread=tuple(_unread(issue, paper)),
    )


def _contrasted(fences: Sequence[Fence]) -> frozenset[int]:
    """The programs that a report shows twice, with other remarks on how they end."""
    programs = [fence for fence in fences if fence.kind is FenceKind.PROGRAM and "#" in fence.text]
    same_code: dict[str, list[Fence]] = {}
    for fence in programs:
        tree = module_of(fence.text)
        if tree.body:
            same_code.setdefault(ast.dump(tree), []).append(fence)
    return frozenset(
        fence.index
        for rows in same_code.values()
        if len({fence.text.strip() for fence in rows}) > 1
        for fence in rows
    )


def _trains(fences: Sequence[Fence]) -> bool:
    """Whether the programs of the report, alone or together, have a training loop."""
    programs = [fence.text for fence in fences if fence.kind is FenceKind.PROGRAM]
    texts = (*programs, "\n".join(programs))
    return any(training_loops.training_score(module_of(text)) > 0 for text in texts)


def _claims(
    issue: Issue, words: Sequence[Sentence], fences: Sequence[Fence]
) -> Iterator[Traceback]:
    """A crash that the report only claims, unless its title is about something else."""
    if symptoms.of_text(issue.title) in {None, Symptom.CRASH}:
        home = package_names.import_home(issue.repository)
        yield from exceptions.find_claims(issue, words, fences, home)


def _unread(issue: Issue, paper: ReportDocument) -> Iterator[str]:
    """Sentences on what is beyond the limits of a reader."""
    if len(issue.body) > MOST_BODY:
        yield f"Only the first {MOST_BODY:,} characters of the bug report were read."
    if len(paper.lines) >= plain_text.MOST_LINES:
        yield f"Only the first {plain_text.MOST_LINES:,} lines of the bug report were read."
    if paper.blocks > MOST_BLOCKS:
        limit = f"only the first {MOST_BLOCKS} were read"
        yield f"The bug report has {paper.blocks:,} blocks of code; {limit}."
