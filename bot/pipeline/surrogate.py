"""A confirmed failure without a version that works → the smallest change of its program with which a model expects it to pass.

`build` and `parse` are pure, and so is `refused`, which holds the change against the rules. None of it decides: a run does.
"""

from __future__ import annotations

import ast
from difflib import unified_diff
from typing import Any

from bot.models.attempt import Failure, Script
from bot.models.dialogue import Message, Question
from bot.models.environment import Environment
from bot.models.plan import Edit, Patch, Refined
from bot.models.signature import CrashSignature, HangSignature, Member, ObservationSignature, OutputSignature, WarningSignature
from bot.pipeline import acting, checks, conclude
from bot.rules.patches import operation as operations
from bot.rules.patches import shape, suppression
from bot.rules.patches.operation import Operation
from bot.rules.signatures import observed, values
from prompts import fence, load

MOST_LINES = 6
MOST_CHARACTERS = 600
_FRAMES = 6
_WIDE = 200


def build(
    report: str,
    member: Member,
    script: Script,
    operation: Operation,
    environment: Environment,
    failure: Failure | None = None,
    history: str = "",
) -> Question:
    """What the writer is asked; `failure` is how a confirming run ended, `history` what became of the last change."""
    prompt = load("surrogate")
    numbered = "\n".join(f"{at:4d}  {line}" for at, line in enumerate(script.source.splitlines(), 1))
    valued = "it changes what the program prints or checks, or works on anything that the operation has given."
    system, user = prompt.render(
        most_lines=str(MOST_LINES),
        most_characters=str(MOST_CHARACTERS),
        after=valued
        if operation.valued
        else "it decides the outcome by itself: by a `raise`, or by a value that stands in for what the operation gives.",
        passes=_passes(member),
        report=report,
        signature=conclude.describe(member),
        program=fence("program", numbered),
        operation=_operation(operation, failure),
        environment=conclude.versions(environment),
        history=history or "No change has been proposed yet.",
    )
    messages = (Message(role="system", content=system), Message(role="user", content=user))
    return Question(role="writer", prompt=prompt.id, messages=messages, answer_schema=prompt.schema, most_tokens=2_000)


def parse(data: dict[str, Any]) -> Patch:
    """The answer as a value."""
    edits = tuple(Edit(**row) for row in data["edits"])
    return Patch(why=" ".join(data["why"].split()), edits=edits)


def patched(script: Script, patch: Patch) -> Script | str:
    """The program with the change made, or why it cannot be; nothing but the program's main file is ever changed."""
    lines, source = len(script.source.splitlines()), script.source
    after = lines + 1
    for edit in sorted(patch.edits, key=lambda each: each.start, reverse=True):
        if edit.end < edit.start - 1 or edit.end >= after:
            return f"Lines {edit.start} to {edit.end} are no lines of the program, or two edits overlap."
        after = edit.start
        source = acting.edited(source, edit)
    files = {**script.files, script.entry: source}
    return script.model_copy(update={"files": files, "origin": "the program with a surrogate patch proposed by a model"})


def refused(before: Script, after: Script, patch: Patch, operation: Operation, refined: Refined, *, device: str) -> str:
    """Why a change may not be run, as one text for whoever proposed it; "" when it may."""
    count = shape.changed_lines(before.source, after.source)
    if not count:
        return "It changes nothing."
    if count > MOST_LINES or sum(len(edit.text) for edit in patch.edits) > MOST_CHARACTERS:
        return f"It is not small: it changes {count} lines ({MOST_LINES} and {MOST_CHARACTERS} characters are the most)."
    known = set(checks.objections(before.source, refined, device=device))
    wrong = [each for each in checks.objections(after.source, refined, device=device) if each not in known]
    if wrong:
        return " ".join(wrong)
    old, new = ast.parse(before.source), ast.parse(after.source)
    kept = operations.kept(operation, new)
    if isinstance(kept, str):
        return f"{kept[:1].upper()}{kept[1:]}."
    return " ".join(suppression.objections(old, new, operation))


def difference(before: Script, after: Script) -> str:
    """The change as a unified diff; lines beyond a width are cut."""
    old, new = before.source.splitlines(), after.source.splitlines()
    rows = unified_diff(old, new, before.entry, before.entry, n=2, lineterm="")
    return "\n".join(row if len(row) <= _WIDE else f"{row[:_WIDE]}\u2026" for row in rows)


def tellable(member: Member) -> bool:
    """Whether a run can show that all is well: where only wrong output is reported, any other output would pass, but for NaN
    and infinities, of which it is known what they are not.
    """
    return not isinstance(member, OutputSignature) or bool(member.expected or odd(member))


def odd(member: OutputSignature) -> tuple[str, ...]:
    """The reported lines with a number that is not finite, without their numbers."""
    rows = (line for chunk in values.cleaned(member.observed) for line in chunk)
    return tuple(values.skeleton(line) for line in rows if values.nonfinite(line))


def _operation(operation: Operation, failure: Failure | None) -> str:
    """The statements that must stay, and the way from there to where it failed."""
    said = [text.splitlines()[0] for text, _ in operation.at[:_FRAMES]]
    rows = [f"  {frame.module_path or frame.path.rsplit('/', 1)[-1]}, in {frame.function}: {frame.code}" for frame in
            (failure.frames[-_FRAMES:] if failure is not None else ())]  # fmt: skip
    told = [f"{failure.exception}: {failure.message[:600]}"] if failure is not None else []
    shown = fence("statements", "\n".join(said))
    return shown + ("\n" + fence("where it failed", "\n".join([*rows, *told])) if failure is not None else "")


def _passes(member: Member) -> str:
    """What a run has to show, as the end of a sentence."""
    match member:
        case CrashSignature():
            return "the program ends normally."
        case OutputSignature(expected=()):
            return f"the numbers in the printed lines `{' / '.join(odd(member))[:300]}` are finite."
        case OutputSignature():
            right = f"{' / '.join(member.expected[0])[:300]} (within {member.rtol:.1%})"
            return f"the program prints what the report says is right, {right}, in the place of what it shows."
        case ObservationSignature():
            return f"`{member.name}` {observed.words(member.right)}."
        case WarningSignature():
            return "the program ends normally, with fewer such warnings than count."
        case HangSignature():
            return "the program comes to its end."
        case _:
            return "the program ends normally and every value it prints is finite."
