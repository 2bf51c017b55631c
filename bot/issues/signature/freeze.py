"""BugReport → what will count as the reported failure, frozen before anything runs."""

import ast
import re
from dataclasses import dataclass
from typing import Literal

from bot.issues.signature import references, staged, values, wording
from bot.kernel import exception_names
from bot.kernel.bug import (
    AlternativesSignature,
    AnySignature,
    BugReport,
    CrashSignature,
    FailedTestSignature,
    Fence,
    Frame,
    HangSignature,
    Member,
    NonFiniteSignature,
    Output,
    OutputSignature,
    Place,
    Role,
    Symptom,
    Traceback,
    TrainingSignature,
    WarningSignature,
    members_of,
)
from bot.kernel.exception_names import has_suffix
from bot.kernel.metrics import direction_of
from bot.kernel.plain_text import distinct
from bot.kernel.source.syntax import module_of, name_of

IDLE_BOUND_S = 20.0
BUSY_BOUND_S = 60.0
_MOST_MEMBERS = 6
_MOST_PLACES = 60
_BUSY = re.compile(
    r"infinite loop|100 ?% (?:of )?(?:one )?cpu|cpu (?:usage )?(?:at|is) 100|spins?\b|busy",
    re.IGNORECASE,
)
_REPETITION = re.compile(
    r"\bspam|every (?:step|batch|update|call|iteration|time)|repeated|multiple times|floods?\b"
    r"|again and again",
    re.I,
)
_VALUES = {Symptom.WRONG_VALUE, Symptom.NONFINITE, Symptom.NOT_LEARNING, Symptom.SAVE_LOAD}
_ASSERTIONS = (
    *("assert_", "assertEqual", "assertTrue", "assertFalse"),
    *("assertAlmost", "assertNot", "assertIn", "assertIs"),
)
_ASIDE = {Role.FIX, Role.EXPECTED, Role.CONTRAST, Role.SOURCE}
_VAGUE = {"the", "nan", "inf", "and", "for", "with", "has", "any", "value"}


def freeze(bug: BugReport) -> AnySignature | None:
    """The signature of a report, or None when it shows nothing to compare a run with.

    Its tracebacks, contrasted outputs and warnings; else the checks of its own program; else a hang
    or non-finite values.
    """
    is_missing_error = bug.symptom is Symptom.MISSING_ERROR
    crashes, outputs = () if is_missing_error else _crashes(bug), _outputs(bug)
    members: list[Member] = [*crashes, *outputs, *_warnings(bug)]
    if bug.symptom in _VALUES and any(output.expected for output in outputs):
        # Wrong and right values side by side outweigh an exception logged on the way.
        members = [*outputs]
    if bug.symptom is Symptom.HANG and not crashes:
        busy = bool(bug.symptom_quote and _BUSY.search(bug.symptom_quote.text))
        members = [HangSignature(bound_s=BUSY_BOUND_S if busy else IDLE_BOUND_S, idle=not busy)]
    if not crashes and (training := _training(bug)) is not None:
        members = [training]
    if not members and (tests := [name for one in bug.named_programs for name in one.tests]):
        members = [FailedTestSignature(tests=tuple(tests))]
    if not members and (checks := _asserts(bug)):
        members = [CrashSignature(exception="AssertionError", checks=checks)]
    members = members or [*_nonfinite(bug)]
    if len(members) > 1:
        return AlternativesSignature(members=tuple(members[:_MOST_MEMBERS]))
    return members[0] if members else None


def _crashes(bug: BugReport) -> list[CrashSignature]:
    aside = {fence.index for fence in bug.fences if fence.role in _ASIDE}
    tracebacks = [row for row in bug.tracebacks if row.fence not in aside]
    messages_by_class: dict[str, set[str]] = {}
    crashes: list[CrashSignature] = []
    for row in sorted(tracebacks, key=lambda row: -len(row.frames)):
        crash = _crash(bug, row)
        name = crash.exception.rsplit(".", 1)[-1]
        words = wording.normalise(wording.core(crash.message)).lower()
        messages = messages_by_class.setdefault(name, set())
        # Exceptions such as `queue.Empty` have no message; a ValueError without one was cut.
        complete = row.fence is not None and not has_suffix(crash.exception)
        is_specific = (
            crash.message or crash.frame or crash.checks or crash.exception.startswith("SIG")
        )
        is_covered = any(words in other or (other and other in words) for other in messages)
        if not is_covered and (is_specific or complete):
            messages.add(words)
            crashes.append(crash)
    return crashes


def _crash(bug: BugReport, row: Traceback) -> CrashSignature:
    if row.exception.startswith("SIG"):  # the words are the shell's, not the program's
        return CrashSignature(exception=row.exception)
    third_party = [frame for frame in row.frames if frame.package and frame.package != "<stdlib>"]
    own = [frame.code for frame in row.frames if not frame.package and frame.code]
    # Only the last frame of a stack fails; a remark or a claim may mean several statements.
    own = own if not any(frame.path for frame in row.frames) else own[-1:]
    fault = third_party[-1] if third_party else Frame(path="")
    check = row.exception.rsplit(".", 1)[-1] == "AssertionError"
    unnamed = not row.message and not third_party
    return CrashSignature(
        exception=row.exception,
        message=row.message,
        shapes=wording.shapes(wording.core(row.message)),
        frame=fault.module_path,
        function=fault.function,
        places=tuple(map(_place, row.frames[-_MOST_PLACES:])),
        checks=(tuple(own) or (_asserts if check else _calls)(bug)) if unnamed else row.statements,
    )


def _place(frame: Frame) -> Place:
    """What another run can share with a frame: for the program's own code, that alone."""
    if not frame.package:
        return Place()
    file = frame.module_path or frame.package
    return Place(file=file, function=frame.function, line=frame.line, code=frame.code)


def _outputs(bug: BugReport) -> list[OutputSignature]:
    """Pasted outputs; if there is a traceback, only those contrasted with what was expected."""
    remarked = {fence.index for fence in bug.programs if not fence.outputs}
    sentences: list[Output] = []
    blocks: list[Output] = []
    for row in bug.outputs:
        is_sentence = (row.fence is None or row.fence in remarked) and "\n" not in row.text
        (sentences if is_sentence else blocks).append(row)
    signature = _contrast(bug, _texts(blocks, "observed"), _texts(blocks, "expected"))
    if bug.tracebacks:
        return [signature] if signature and signature.expected else []
    if signature:
        return [signature]
    observed_chunks, expected = (
        tuple((values.clean_display(text),) for text in _texts(sentences, role) if _is_value(text))
        for role in ("observed", "expected")
    )
    if (
        not observed_chunks
        or not expected
        or values.clean_chunks(observed_chunks) == values.clean_chunks(expected)
    ):
        return _remarks(bug, sentences)
    return [OutputSignature(observed=observed_chunks[:1], expected=expected[:1], within_line=True)]


def _texts(rows: list[Output], role: str) -> list[str]:
    return [row.text for row in rows if row.role == role]


def _contrast(bug: BugReport, observed: list[str], expected: list[str]) -> OutputSignature | None:
    observed_chunks, expected_chunks = _comparable(observed), _comparable(expected)
    lines = (line for fence in bug.programs for line in staged.constant_lines(fence.text))
    constant = set(map(values.clean, lines))
    wrong, right = (
        tuple(
            original
            for chunk, original in side.items()
            if chunk not in other and not constant.issuperset(chunk)
        )
        for side, other in ((observed_chunks, expected_chunks), (expected_chunks, observed_chunks))
    )
    return OutputSignature(observed=wrong, expected=right) if wrong else None


def _comparable(texts: list[str]) -> dict[values.Chunk, values.Chunk]:
    """The distinct chunks of pasted outputs, by the form in which they are compared."""
    every = (chunk for text in texts for chunk in values.chunks(text))
    chunks = (chunk for chunk in every if not wording.is_placed(chunk[0]))
    distinct_chunks = distinct(chunks, lambda chunk: tuple(map(values.clean, chunk)))
    return dict(zip(values.clean_chunks(distinct_chunks), distinct_chunks, strict=True))


def _remarks(bug: BugReport, rows: list[Output]) -> list[OutputSignature]:
    """Values noted next to the prints of what the report is about, without an expected value:
    those that are called wrong, if any is.
    """
    about = _last_name(bug.api[0]) if bug.api else ""
    lines = {
        number: line.partition("#")
        for fence in bug.programs
        for number, line in enumerate(fence.raw.split("\n"), fence.line)
    }
    stated = [
        (row, *lines.get(row.line, ("", "", "")))
        for row in rows
        if row.role == "observed" and row.fence is not None and _is_value(row.text)
    ]
    marked = [
        (code, row.text)
        for row, code, _, note in stated
        if references.marked_value(note.strip())[1] == "wrong"
    ]
    if marked:
        return _marked(marked)
    # A printed truth value is the reporter's own check, as an assertion would be; and where the
    # value of another line is called right, this one is not.
    has_right = any(references.mark(note) == "right" for _, _, note in lines.values())
    telling = tuple(
        (values.clean_display(row.text),)
        for row, code, _, note in stated
        if row.text in {"True", "False"}
        or (about and about in code)
        or (has_right and references.mark(note) != "right")
    )
    wrong = bug.symptom is Symptom.WRONG_VALUE and telling
    return [OutputSignature(observed=telling)] if wrong else []


def _marked(marked: list[tuple[str, str]]) -> list[OutputSignature]:
    """Values that comments call wrong. Behind words of its own a print shows a value as a part of
    its line.
    """
    if any(re.search(r"[\"']", code) for code, _ in marked):
        chunks: tuple[values.Chunk, ...] = ((values.clean_display(marked[0][1]),),)
        return [OutputSignature(observed=chunks, within_line=True)]
    chunks = tuple((values.clean_display(text),) for _, text in marked)
    return [OutputSignature(observed=chunks)]


def _last_name(api: str) -> str:
    return api.rsplit(".", 1)[-1].rstrip("()")


def _is_value(text: str) -> bool:
    return 0 < len(text.strip()) <= 80 and len(text.split()) <= 6


def _warnings(bug: BugReport) -> list[WarningSignature]:
    quotes = (bug.symptom_quote, *(row.quote for row in bug.warnings))
    prose = " ".join(quote.text for quote in quotes if quote)
    least = 2 if _REPETITION.search(prose) else 1
    return [
        WarningSignature(category=row.category, message=row.message, at_least=least)
        for row in bug.warnings[:2]
        if row.message and bug.symptom is Symptom.WARNING
    ]


def _asserts(bug: BugReport) -> tuple[str, ...]:
    """The assertions of the report's programs, only those about the first reported API if any."""
    fences = (fence for fence in bug.programs if fence.role not in _ASIDE)
    rows = [row for fence in fences for row in _program_asserts(fence)]
    for name in filter(None, map(_last_name, bug.api)):
        pattern = re.compile(rf"\b{re.escape(name)}\b")
        if matches := dict.fromkeys(line for line, about in rows if pattern.search(about)):
            return tuple(matches)
    return tuple(dict.fromkeys(line for line, _ in rows))


def _calls(bug: BugReport) -> tuple[str, ...]:
    """The one statement of the report's programs that calls the first reported API which they
    call: where an exception of which only the class is told must arise. None if there are several.
    """
    programs = [fence for fence in bug.programs if fence.role not in _ASIDE]
    for name in filter(None, map(_last_name, bug.api)):
        if call_lines := [line for fence in programs for line in _callers(fence.text, name)]:
            return tuple(call_lines) if len(call_lines) == 1 else ()
    return ()


def _callers(text: str, name: str) -> list[str]:
    """The simple statements that call a function or method of this name."""
    simple = (ast.Expr, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return)
    statements = [node for node in ast.walk(module_of(text)) if isinstance(node, simple)]
    calls = (
        node
        for node in statements
        for call in ast.walk(node)
        if isinstance(call, ast.Call) and name_of(call.func) == name
    )
    return [ast.get_source_segment(text, node) or ast.unparse(node) for node in calls]


def _program_asserts(fence: Fence) -> list[tuple[str, str]]:
    """Each assertion with its text and the assignments of the names in it (what it is about)."""
    code_by_name: dict[str, str] = {}
    rows: list[tuple[str, str]] = []
    statements = [node for node in ast.walk(module_of(fence.text)) if isinstance(node, ast.stmt)]
    for node in sorted(statements, key=lambda node: node.lineno):
        code = ast.unparse(node)
        targets = node.targets if isinstance(node, ast.Assign) else []
        code_by_name |= {target.id: code for target in targets if isinstance(target, ast.Name)}
        if _is_check(node):
            names = {name.id for name in ast.walk(node) if isinstance(name, ast.Name)}
            about = [code, *(code_by_name.get(name, "") for name in names)]
            rows.append((ast.get_source_segment(fence.text, node) or code, " ".join(about)))
    return rows


def _is_check(node: ast.stmt) -> bool:
    if isinstance(node, ast.Assert):
        return staged.is_computed(node.test)
    call = node.value if isinstance(node, ast.Expr) else None
    return isinstance(call, ast.Call) and name_of(call.func).startswith(_ASSERTIONS)


def _nonfinite(bug: BugReport) -> list[NonFiniteSignature]:
    """A non-finite value among the prints, unless the report calls that value right."""
    if bug.symptom is not Symptom.NONFINITE or not bug.programs or bug.symptom_quote is None:
        return []
    text = bug.symptom_quote.text
    kind: Literal["nan", "inf"] = (
        "nan" if "nan" in text.lower() or "inf" not in text.lower() else "inf"
    )
    expected = (row.text for row in bug.outputs if row.role == "expected")
    is_right = references.claims_right(text, kind) or any(
        kind in values.nonfinite(line) for row in expected for line in row.splitlines()
    )
    return [] if is_right else [NonFiniteSignature(values=(kind,), labels=_labels(bug, text))]


def _labels(bug: BugReport, quote: str) -> tuple[str, ...]:
    """The words before a printed value that a sentence names, where others are printed too; those
    of all values but the right ones, where the program prints such and labels each.
    """
    programs = (fence for fence in bug.programs if fence.role not in _ASIDE)
    prints = [row for fence in programs for row in references.prints_of(fence.text)]
    rows = [row for row in prints if not row.is_right]
    several = [label for row in rows for label in row.labels if len(row.labels) > 1]
    if labels := [label for label in several if _names(quote, label)]:
        return tuple(dict.fromkeys(labels))
    own = [row.label for row in rows]
    labels = [label for label in own if _names(quote, label)] or (own if all(own) else [])
    return tuple(dict.fromkeys(labels)) if len(labels) < len(prints) else ()


def _names(sentence: str, label: str) -> bool:
    words = [word for word in re.findall(r"[A-Za-z]{3,}", label) if word.lower() not in _VAGUE]
    return bool(words) and all(re.search(rf"\b{word}\b", sentence, re.I) for word in words)


_PRINTS = re.compile(r"\b(?:print|fit|evaluate|log\w*|info)\(")
_UNLEARNED = 0.25  # of the way from the reported value to a perfect one
_SHORT_OF = 0.1  # of an expected value
_GOOD = (
    0.75  # what reaches it may have learned all there is: without a value to expect nobody knows
)


def _training(bug: BugReport) -> TrainingSignature | None:
    complaint = bug.complaint
    others = {Symptom.CRASH, Symptom.NONFINITE, Symptom.HANG}
    if (
        complaint is None
        or not complaint.metric
        or (complaint.reported is None and bug.symptom in others)
    ):
        return None
    programs = "\n".join(fence.text for fence in bug.programs)
    if programs and not _PRINTS.search(programs):  # what nothing prints cannot be compared
        return None
    return training_signature(complaint.metric, complaint.reported, complaint.expected)


def training_signature(
    metric: str, reported: float | None, expected: float | None
) -> TrainingSignature | None:
    """A training that learns too little. A run that fails as reported ends nearer to the reported
    value than to the expected one; where none is expected, a quarter of the way to a perfect
    metric would be learning; where only that is known, a tenth less than expected is too little.
    None where a quality without an upper end, or one that is good already, has no expected value.
    """
    direction = direction_of(metric)
    bound: float | None = None
    if reported is not None and expected is not None:
        bound = (reported + expected) / 2
    elif reported is not None:
        if direction == "max" and not 0 <= reported <= _GOOD:
            return None
        bound = reported + _UNLEARNED * ((1.0 if direction == "max" else 0.0) - reported)
    elif expected is not None:
        bound = expected * (1 - _SHORT_OF if direction == "max" else 1 + _SHORT_OF)
    return TrainingSignature(
        metric=metric, direction=direction, bound=bound, reported=reported, expected=expected
    )


# A line `Name: words` of a report may end an exception or be printed; only a run decides which.


@dataclass(frozen=True, slots=True)
class AlternateReading:
    """What a member of a signature may mean instead, and what else must then be printed."""

    member: Member
    printed: OutputSignature | None = None


def other(member: Member) -> AlternateReading | None:
    """The other meaning of a member: a print for an unsure exception, or the reverse."""
    if isinstance(member, CrashSignature) and _unsure(member):
        line = f"{member.exception}: {member.message}" if member.message else member.exception
        return AlternateReading(OutputSignature(observed=values.chunks(line)))
    if isinstance(member, OutputSignature) and not member.within_line and member.observed:
        return _raised_reading(member)
    return None


def self_made(source: str, member: Member) -> str:
    """The line with which a program itself causes a member in each of its meanings, or ""."""
    reading = None if isinstance(member, CrashSignature) else other(member)
    meanings = (member, reading.member) if reading else (member,)
    lines = [staged.staged(source, meaning) for meaning in meanings]
    return lines[0] if all(lines) else ""


def same(one: AnySignature, other: AnySignature) -> bool:
    """Whether two readings of a report look for the same failure in any of their members."""
    return any(_alike(a, b) for a in members_of(one) for b in members_of(other))


def _alike(one: Member, other: Member) -> bool:
    match one, other:
        case CrashSignature(), CrashSignature():
            have_messages = one.message and other.message
            words = (
                not have_messages
                or wording.resemblance(one.message, other.message) >= wording.ENOUGH
            )
            are_specific = all(side.exception or side.message for side in (one, other))
            return are_specific and wording.same_exception(one.exception, other.exception) and words
        case WarningSignature(), WarningSignature():
            return wording.resemblance(one.message, other.message) >= wording.ENOUGH
    return one == other


def _unsure(member: CrashSignature) -> bool:
    is_specific = member.frame or member.checks or member.exception.startswith("SIG")
    return (
        bool(member.exception)
        and not is_specific
        and not exception_names.has_suffix(member.exception)
    )


def _raised_reading(member: OutputSignature) -> AlternateReading | None:
    """The exception that an output's last line may be; the lines above must be printed first."""
    *above, (*before, last) = member.observed
    match = exception_names.CLASS_LINE.match(last)
    if match is None or not exception_names.could_be(match["exc"]) or "Warning" in match["exc"]:
        return None
    words = (match["msg"] or "").strip()
    if not words and not exception_names.is_class_name(match["exc"]):
        return None  # a single word
    shapes = wording.shapes(wording.core(words))
    crash = CrashSignature(exception=match["exc"], message=words, shapes=shapes)
    rest = (*above, tuple(before)) if before else tuple(above)
    return AlternateReading(crash, member.model_copy(update={"observed": rest}) if rest else None)
