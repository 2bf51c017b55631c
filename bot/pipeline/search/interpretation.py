"""Report → its gaps filled by a model: the claim, what will count (frozen before anything runs),
the code it is about.

`build` and `parse` are pure. What the model calls a quote counts as one only when it stands in the
report; everything else is marked inferred. See RepGen (arXiv 2512.14990), section on report
restructuring, and AssertFlip for silent failures.
"""

import re
from typing import Any

from bot.models.bug import BugReport, Issue
from bot.models.dialogue import Question
from bot.models.environment import Context, Environment
from bot.models.plan import Interpretation, Pin
from bot.models.signature import (
    AnySignature,
    CrashSignature,
    Member,
    ObservationSignature,
    Predicate,
    WarningSignature,
)
from bot.pipeline.confirm import verdicts
from bot.pipeline.reading import report_excerpt
from bot.pipeline.search import prompt_text
from bot.pipeline.search.model_budget import question
from bot.rules.signatures import observed, warned, wording
from prompts import Prompt, load

_DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*", re.ASCII)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*", re.ASCII)
_VERSION = re.compile(r"\d+(?:\.\d+)*(?:\.\*)?", re.ASCII)
_CLASS = re.compile(r"[A-Za-z_][\w.]*", re.ASCII)
_EXCEPTIONS = ("Error", "Exception", "Warning", "Exit", "Interrupt", "StopIteration")


def build(
    issue: Issue,
    bug: BugReport,
    signature: AnySignature | None,
    environment: Environment | None = None,
    ranked: tuple[Context, ...] = (),
) -> Question:
    """What the reader is asked; the first context is shown, so that what counts is fixed by
    someone who has seen the code.
    """
    prompt = load("refine")
    return question(
        "reader",
        "refine",
        2_000,
        repository=issue.repository or prompt.fragment("unstated"),
        date=f"{issue.created_at:%Y-%m-%d}" if issue.created_at else prompt.fragment("unstated"),
        report=report_excerpt.report(issue, bug),
        known=_known(prompt, bug, signature),
        environment=verdicts.versions(environment)
        if environment is not None
        else prompt.fragment("environment_unknown"),
        code=prompt_text.contexts(ranked[:1]),
    )


def parse(data: dict[str, Any], issue: Issue, signature: AnySignature | None) -> Interpretation:
    """The answer as a value. A signature that rules froze from the report's own words stays as
    it is.
    """
    inferred: list[str] = []
    api = tuple(name for name in data["api"] if _DOTTED.fullmatch(name))
    found = signature or _signature(data, issue, api, inferred)
    if not any(report_excerpt.quoted(words, issue) for words in data["quotes"]):
        inferred.append("claim")
    weak = signature is None and isinstance(found, CrashSignature) and not found.message
    return Interpretation(
        claim=" ".join(data["claim"].split()),
        signature=found,
        inferred=tuple(inferred),
        api=api,
        packages=tuple(name for name in data["packages"] if _NAME.fullmatch(name)),
        pins=tuple(
            _pin(row, issue)
            for row in data["pins"]
            if _NAME.fullmatch(row["name"]) and _VERSION.fullmatch(row["version"])
        ),
        questions=tuple(" ".join(question.split()) for question in data["questions"]),
        needs_contrast=weak,
    )


def _known(prompt: Prompt, bug: BugReport, signature: AnySignature | None) -> str:
    rows = [
        prompt.fragment("known_symptom", symptom=bug.symptom.value),
        prompt.fragment("known_programs", count=len(bug.programs)),
    ]
    rows += [
        prompt.fragment("known_version", name=claim.name, version=claim.version)
        for claim in bug.versions[:12]
    ]
    rows += [prompt.fragment("known_missing", what=missing.what) for missing in bug.missing[:4]]
    failure = (
        verdicts.describe(signature)
        if signature is not None
        else prompt.fragment("failure_unknown")
    )
    return "\n".join([*rows, prompt.fragment("known_failure", failure=failure)])


def _signature(
    data: dict[str, Any], issue: Issue, api: tuple[str, ...], inferred: list[str]
) -> Member | None:
    match data:
        case {"kind": "crash", "crash": dict(row)} if row:
            return _crash(row, issue, api, inferred)
        case {"kind": "warning", "warning": dict(row)} if row:
            return _warning(row, issue, inferred)
        case {"kind": "observation", "observation": dict(row)} if row:
            return _observation(row, api, inferred)
    return None


def _crash(
    row: dict[str, Any], issue: Issue, api: tuple[str, ...], inferred: list[str]
) -> CrashSignature | None:
    """A message that the report does not quote is not compared with a run; then only the place
    identifies the failure.
    """
    exception = row["exception"].strip()
    if not _CLASS.fullmatch(exception) or not exception.endswith(_EXCEPTIONS):
        return None
    message = " ".join(row["message"].split())
    if message and not report_excerpt.quoted(wording.core(message) or message, issue):
        inferred.append("message")
        message = ""
    if not report_excerpt.mentions(exception.rsplit(".", 1)[-1], issue):
        inferred.append("exception")
    frame = row["in_file"].strip().lstrip("/") if not message else ""
    if not message and not _in_package(frame, api):
        return None
    if frame:
        inferred.append("place")
    return CrashSignature(
        exception=exception,
        message=message,
        shapes=wording.shapes(wording.core(message)),
        frame=frame,
    )


def _in_package(path: str, api: tuple[str, ...]) -> bool:
    """A module of the package in question, so that a crash of the program's own making cannot
    count.
    """
    tops = {name.split(".")[0] for name in api}
    return path.endswith(".py") and path.split("/", 1)[0].removesuffix(".py") in tops


def _warning(row: dict[str, Any], issue: Issue, inferred: list[str]) -> WarningSignature | None:
    """A category that the report does not name is not asked for: libraries print their warnings
    in forms of their own.
    """
    message, category = " ".join(row["message"].split()), row["category"].strip()
    if len(message) < warned.SHORTEST:
        return None
    if not report_excerpt.quoted(message, issue):
        inferred.append("message")
    inferred.append("at_least")
    named = category if category and report_excerpt.mentions(category, issue) else ""
    return WarningSignature(category=named, message=message, at_least=row["at_least"])


def _observation(
    row: dict[str, Any], api: tuple[str, ...], inferred: list[str]
) -> ObservationSignature | None:
    wrong, right = Predicate(**row["wrong"]), Predicate(**row["right"])
    if not api or _overlap(wrong, right):
        return None
    inferred.append("observation")
    return ObservationSignature(
        name=row["name"], says=" ".join(row["says"].split()), wrong=wrong, right=right, api=api
    )


def _overlap(wrong: Predicate, right: Predicate) -> bool:
    """Whether a value that one condition names satisfies both: then they distinguish nothing."""
    samples = [
        predicate.value for predicate in (wrong, right) if predicate.op not in {"finite", "nan"}
    ]
    numbers = [
        float(value)
        for value in samples
        if isinstance(value, int | float) and not isinstance(value, bool)
    ]
    samples += [number + step for number in numbers for step in (-1.0, 1.0)] + [
        "nan",
        0.0,
        1.0,
        True,
        False,
    ]
    return any(observed.holds(wrong, value) and observed.holds(right, value) for value in samples)


def _pin(row: dict[str, Any], issue: Issue) -> Pin:
    told = (
        report_excerpt.quoted(row["quote"], issue) and row["version"].rstrip(".*") in row["quote"]
    )
    return Pin(name=row["name"].lower(), version=row["version"], quote=row["quote"], quoted=told)
