"""Report → its gaps filled by a model: the claim, what will count (frozen before anything runs),
the code it is about.

`build` and `parse` are pure. What the model calls a quote counts as one only when it stands in the
report; everything else is marked inferred. See RepGen (arXiv 2512.14990), section on report
restructuring, and AssertFlip for silent failures.
"""

import re
from typing import Any

from bot.issues.search import prompt_text
from bot.issues.signature import freeze, values, wording
from bot.issues.signature.freeze import IDLE_BOUND_S
from bot.kernel import markdown
from bot.kernel.bug import (
    AnySignature,
    BugReport,
    CrashSignature,
    HangSignature,
    Issue,
    Member,
    ObservationSignature,
    Predicate,
    WarningSignature,
    members_of,
)
from bot.kernel.dialogue import Interpretation, Pin, Question
from bot.kernel.environment import Context
from bot.model.budget import question
from prompts import load
from prompts.catalog import Prompt

_DOTTED_NAME = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*", re.ASCII)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*", re.ASCII)
_VERSION = re.compile(r"\d+(?:\.\d+)*(?:\.\*|(?:\.?(?:a|b|rc|post|dev)\d+)*)", re.ASCII)
_CLASS = re.compile(r"[A-Za-z_][\w.]*", re.ASCII)
_EXCEPTIONS = ("Error", "Exception", "Warning", "Exit", "Interrupt", "StopIteration")


def build(
    issue: Issue,
    bug: BugReport,
    environment: str,
    contexts: tuple[Context, ...] = (),
) -> Question:
    """What the reader is asked; the first context is shown, so that what counts is fixed by
    someone who has seen the code. It is not told how rules read the failure, nor what runs gave.
    `environment` tells what is installed, or why nothing is.
    """
    prompt = load("refine")
    return question(
        "reader",
        "refine",
        2_000,
        repository=issue.repository or prompt.fragment("unstated"),
        date=f"{issue.created_at:%Y-%m-%d}" if issue.created_at else prompt.fragment("unstated"),
        report=markdown.report(issue, bug),
        known=_rules_reading(prompt, bug),
        environment=environment,
        code=prompt_text.show_contexts(contexts[:1]),
    )


def parse(data: dict[str, Any], issue: Issue, rules: AnySignature | None) -> Interpretation:
    """The answer as a value. Where the rules read the same failure, theirs stays, since it holds
    more of the report's own words; an answer that fixes nothing, or rests on no words of the
    report, does not replace theirs either.
    """
    inferred_names: list[str] = []
    api = tuple(name for name in data["api"] if _DOTTED_NAME.fullmatch(name))
    quotes = [words for words in data["quotes"] if markdown.is_quoted(words, issue)]
    if not quotes:
        inferred_names.append("claim")
    signature = _choose_signature(
        _signature(data, issue, api, rules, inferred_names), rules, data, bool(quotes)
    )
    weak = (
        signature is not rules and isinstance(signature, CrashSignature) and not signature.message
    )
    return Interpretation(
        claim=" ".join(data["claim"].split()),
        signature=signature,
        inferred=tuple(inferred_names),
        api=api,
        packages=tuple(name for name in data["packages"] if _NAME.fullmatch(name)),
        pins=tuple(filter(None, (_pin(row, issue) for row in data["pins"]))),
        questions=tuple(" ".join(question.split()) for question in data["questions"]),
        needs_contrast=weak,
        no_bug=quotes[0] if quotes and data["kind"] == "not_a_bug" else "",
    )


def _choose_signature(
    model: Member | None, rules: AnySignature | None, data: dict[str, Any], rests: bool
) -> AnySignature | None:
    """The reading to go by: a model's, unless it agrees with the rules or is void."""
    if data["kind"] == "not_checkable" or (data["kind"] == "not_a_bug" and rests):
        return None
    alike = model is not None and rules is not None and freeze.same(rules, model)
    if data["sign_if_right"]:
        return None if alike else rules
    rests = rests or (isinstance(model, CrashSignature) and bool(model.message))
    return rules if model is None or alike or (rules is not None and not rests) else model


def _rules_reading(prompt: Prompt, bug: BugReport) -> str:
    rows = [
        prompt.fragment("known_symptom", symptom=bug.symptom.value),
        prompt.fragment("known_programs", count=len(bug.programs)),
    ]
    rows += [
        prompt.fragment("known_version", name=claim.name, version=claim.version)
        for claim in bug.versions[:12]
    ]
    rows += [prompt.fragment("known_missing", what=missing.what) for missing in bug.missing[:4]]
    return "\n".join(rows)


def _signature(
    data: dict[str, Any],
    issue: Issue,
    api: tuple[str, ...],
    rules: AnySignature | None,
    inferred_names: list[str],
) -> Member | None:
    match data:
        case {"kind": "hang"}:
            members = members_of(rules) if rules is not None else ()
            hangs = (member for member in members if isinstance(member, HangSignature))
            return next(hangs, HangSignature(bound_s=IDLE_BOUND_S))
        case {"kind": "crash", "crash": dict(row)} if row:
            return _crash(row, issue, api, inferred_names)
        case {"kind": "warning", "warning": dict(row)} if row:
            return _warning(row, issue, inferred_names)
        case {"kind": "observation", "observation": dict(row)} if row:
            return _observation(row, api, inferred_names)
    return None


def _crash(
    row: dict[str, Any], issue: Issue, api: tuple[str, ...], inferred_names: list[str]
) -> CrashSignature | None:
    """A message that the report does not quote is not compared with a run; then only the place
    identifies the failure. Beside a message, a place outside the package in question is left out.
    """
    exception = row["exception"].strip()
    if not _CLASS.fullmatch(exception) or not exception.endswith(_EXCEPTIONS):
        return None
    message = " ".join(row["message"].split())
    if message and not markdown.is_quoted(wording.core(message) or message, issue):
        inferred_names.append("message")
        message = ""
    if not markdown.mentions(exception.rsplit(".", 1)[-1], issue):
        inferred_names.append("exception")
    frame = row["in_file"].strip().lstrip("/")
    if not _in_package(frame, api):
        if not message:
            return None
        frame = ""
    if frame:
        inferred_names.append("place")
    return CrashSignature(
        exception=exception,
        message=message,
        shapes=wording.shapes(wording.core(message)),
        frame=frame,
    )


def amend(row: dict[str, Any], issue: Issue, refined: Interpretation) -> Interpretation | None:
    """The reading with another exception that counts; None for the same or one that cannot."""
    inferred_names: list[str] = []
    signature = _crash(row, issue, refined.api, inferred_names)
    crash = isinstance(refined.signature, CrashSignature)
    if not crash or signature is None or signature == refined.signature:
        return None
    weak = refined.needs_contrast or not signature.message
    kinds = (name for name in refined.inferred if name == "claim")
    changes = {
        "signature": signature,
        "inferred": (*kinds, *inferred_names),
        "needs_contrast": weak,
    }
    return refined.model_copy(update=changes)


def _in_package(path: str, api: tuple[str, ...]) -> bool:
    """A module of the package in question, so that a crash of the program's own making cannot
    count.
    """
    tops = {name.split(".")[0] for name in api}
    return path.endswith(".py") and path.split("/", 1)[0].removesuffix(".py") in tops


def _warning(
    row: dict[str, Any], issue: Issue, inferred_names: list[str]
) -> WarningSignature | None:
    """A category that the report does not name is not asked for: libraries print their warnings
    in forms of their own.
    """
    message, category = " ".join(row["message"].split()), row["category"].strip()
    if len(message) < wording.SHORTEST:
        return None
    if not markdown.is_quoted(message, issue):
        inferred_names.append("message")
    inferred_names.append("at_least")
    warning_class = category if category and markdown.mentions(category, issue) else ""
    return WarningSignature(category=warning_class, message=message, at_least=row["at_least"])


def _observation(
    row: dict[str, Any], api: tuple[str, ...], inferred_names: list[str]
) -> ObservationSignature | None:
    wrong, right = Predicate(**row["wrong"]), Predicate(**row["right"])
    if not api or _overlap(wrong, right):
        return None
    inferred_names.append("observation")
    return ObservationSignature(
        name=row["name"], says=" ".join(row["says"].split()), wrong=wrong, right=right, api=api
    )


def _overlap(wrong: Predicate, right: Predicate) -> bool:
    """Whether a value that one condition names satisfies both: then they distinguish nothing."""
    examples = [
        condition.value for condition in (wrong, right) if condition.op not in {"finite", "nan"}
    ]
    plain = (value for value in examples if not isinstance(value, bool))
    near = [x + step for x in plain if isinstance(x, int | float) for step in (-1.0, 1.0)]
    samples = (*examples, *near, "nan", 0.0, 1.0, True, False)
    return any(
        values.check_holds(wrong, value) and values.check_holds(right, value) for value in samples
    )


def _pin(row: dict[str, Any], issue: Issue) -> Pin | None:
    name, version, quote = row["name"], row["version"], row["quote"]
    if not (_NAME.fullmatch(name) and _VERSION.fullmatch(version)):
        return None
    is_quoted = markdown.is_quoted(quote, issue) and version.rstrip(".*") in quote
    return Pin(name=name.lower(), version=version, quote=quote, quoted=is_quoted)
