"""Report → its gaps filled by a model: the claim, what will count (frozen before anything runs),
the code it is about.

`build` and `parse` are pure. What the model calls a quote counts as one only when it stands in the
report; everything else is marked inferred. See RepGen (arXiv 2512.14990), section on report
restructuring, and AssertFlip for silent failures.
"""

import json
import math
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from packaging.version import InvalidVersion, Version

from bot.environment import releases
from bot.issues import confirm
from bot.issues.gates import VOID, refuse
from bot.issues.reading.markdown import polarity
from bot.issues.search import prompt_text
from bot.issues.search.report_text import report_text
from bot.issues.signature import freeze, values, wording
from bot.issues.signature.freeze import BUSY_BOUND_S
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
    Release,
    TrainingSignature,
    VersionClaim,
    WarningSignature,
    members_of,
)
from bot.kernel.dialogue import Interpretation, Message, Pin, Question, Refusal
from bot.kernel.environment import Context
from bot.kernel.outside_text import one_line
from bot.kernel.source.outline import fit_chunks, module_of
from bot.model.budget import question
from prompts import load
from prompts.catalog import Prompt

_DOTTED_NAME = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*", re.ASCII)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*", re.ASCII)
_VERSION = re.compile(
    r"\d+(?:\.\d+)*(?:\.\*|(?:[-_.]?(?:alpha|beta|a|b|c|rc|preview|pre|post|dev)(?:[-_.]?\d+)?)*)",
    re.ASCII | re.I,
)
_NUMBERS = re.compile(r"\d+(?:\.\d+)+")
_CLASS = re.compile(r"[A-Za-z_][\w.]*", re.ASCII)
_LINES_BESIDE_FRAMES = 40


@dataclass(slots=True)
class _Notes:
    """What a reading adds to the report's words, and what of it was not taken; and the files of
    the repository that programs run in.
    """

    tree: Collection[str] = ()
    inferred: list[str] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)

    def refuse(self, gate: str, /, **values: object) -> None:
        """Note something that is not taken as the model gave it."""
        self.refusals.append(refuse(gate, **values))


def build(
    issue: Issue,
    bug: BugReport,
    environment: str,
    contexts: tuple[Context, ...] = (),
    tree: str = "",
) -> Question:
    """What the reader is asked; the first context is shown, so that what counts is fixed by
    someone who has seen the code. It is not told how rules read the failure, nor what runs gave.
    `environment` tells what is installed, or why nothing is, and `tree` what the repository has
    where programs run in it.
    """
    prompt = load("refine")
    return question(
        "reader",
        "refine",
        2_000,
        repository=issue.repository or prompt.fragment("unstated"),
        date=f"{issue.created_at:%Y-%m-%d}" if issue.created_at else prompt.fragment("unstated"),
        report=report_text(issue, bug),
        known=_rules_reading(prompt, bug),
        lengths=prompt.lengths(),
        environment=environment,
        tree=tree and prompt.fragment("in_tree", tree=tree),
        code=prompt_text.show_contexts(_excerpt(context, bug) for context in contexts[:1]),
    )


def _excerpt(context: Context, bug: BugReport) -> Context:
    """What a reader needs of the sources: all that was taken, or the strongest pieces where the
    report quotes the failure with its frames, since then its own words fix what counts.
    """
    if not any(row.frames for row in bug.tracebacks):
        return context
    strongest = sorted(context.chunks, key=lambda chunk: -chunk.score)
    visible = fit_chunks(strongest, _LINES_BESIDE_FRAMES)
    paths = list(dict.fromkeys(chunk.path for chunk in context.chunks))
    ordered = sorted(visible, key=lambda chunk: (paths.index(chunk.path), chunk.start))
    return context.model_copy(update={"chunks": tuple(ordered)})


def ask_again(first: Question, answer: str, refined: Interpretation) -> Question:
    """The question once more, after an answer of which nothing is left to look for."""
    refusals = "\n".join(f"- {refusal.says}" for refusal in refined.refusals)
    text = load("refine").fragment("again", refusals=refusals)
    turns = (Message(role="assistant", content=answer), Message(role="user", content=text))
    return first.model_copy(update={"messages": (*first.messages, *turns)})


def is_void(refined: Interpretation) -> bool:
    """Whether a gate has left nothing of the failure that a model named."""
    return any(refusal.gate in VOID for refusal in refined.refusals)


def parse(
    data: dict[str, Any],
    issue: Issue,
    rules: AnySignature | None,
    tree: Collection[str] = (),
    works_in: tuple[VersionClaim, ...] = (),
    history: Callable[[str], tuple[Release, ...]] = lambda _: (),
) -> Interpretation:
    """The answer as a value. Where the rules read the same failure, theirs stays, since it holds
    more of the report's own words; an answer that fixes nothing, or rests on no words of the
    report, does not replace theirs either. What is not taken is in its refusals. `tree` are the
    files of the repository that programs run in, `works_in` the versions that do not fail,
    `history` the releases of a distribution.
    """
    notes = _Notes(tree=tree)
    api = tuple(_valid_names(data["api"], _DOTTED_NAME, "api", notes))
    api = (*api, *_STARTERS) if tree else api
    packages = tuple(_valid_names(data["packages"], _NAME, "package", notes))
    quotes = [words for words in data["quotes"] if markdown.is_quoted(words, issue)]
    for words in data["quotes"]:
        if words not in quotes:
            notes.refuse("quote", quote=one_line(words)[:120])
    if not quotes:
        notes.inferred.append("claim")
    model = _signature(data, issue, api, notes)
    signature = _choose_signature(model, rules, data, bool(quotes), notes)
    weak = signature is not rules and (
        isinstance(signature, HangSignature)
        or (isinstance(signature, CrashSignature) and not signature.message)
    )
    pins = tuple(filter(None, (_pin(row, issue, works_in, history, notes) for row in data["pins"])))
    return Interpretation(
        claim=" ".join(data["claim"].split()),
        signature=signature,
        inferred=tuple(notes.inferred),
        api=api,
        packages=packages,
        pins=pins,
        questions=tuple(" ".join(question.split()) for question in data["questions"]),
        needs_contrast=weak,
        no_bug=quotes[0] if quotes and data["kind"] == "not_a_bug" else "",
        needs=" ".join(data["needs"].split()) if data["kind"] == "elsewhere" else "",
        refusals=tuple(notes.refusals),
    )


def _valid_names(
    names: list[str], form: re.Pattern[str], gate: str, notes: _Notes
) -> Iterator[str]:
    for name in names:
        if form.fullmatch(name):
            yield name
        else:
            notes.refuse(gate, name=one_line(name)[:80])


_STARTERS = ("runpy.run_path", "runpy.run_module")
"""What starts a program of a repository from another one."""
# Not the points of numbers, nor the signs that give a number another value.
_PUNCTUATION = re.compile(r"[\s;:!?'\"`]|(?<!\d)[.,]|[.,](?!\d)")
_UNCHECKABLE = {"not_checkable", "elsewhere"}


def _choose_signature(
    model: Member | None,
    rules: AnySignature | None,
    data: dict[str, Any],
    rests: bool,
    notes: _Notes,
) -> AnySignature | None:
    """The reading to go by: a model's, unless it agrees with the rules or is void."""
    if data["kind"] in _UNCHECKABLE or (data["kind"] == "not_a_bug" and rests):
        return None
    if data["kind"] == "not_a_bug":
        notes.refuse("request")
    rules = _restored(rules, model)
    alike = model is not None and rules is not None and freeze.same(rules, model)
    if data["sign_if_right"]:
        notes.refuse("sign_if_right")
        return None if alike else rules
    rests = rests or (isinstance(model, CrashSignature) and bool(model.message))
    if model is None:
        return rules
    if alike and rules is not None and _is_vague(rules) and not _is_vague(model):
        return model
    if alike and rules is not None and _loses(model, rules):
        notes.refuse("same_reading")
    elif not alike and rules is not None and not rests:
        notes.refuse("unfounded", signature=confirm.describe(rules))
    return rules if alike or (rules is not None and not rests) else model


def _restored(rules: AnySignature | None, model: Member | None) -> AnySignature | None:
    """The rules' reading with the message that a model quotes in place of one that was cut short,
    or is the same but for punctuation.
    """
    if not isinstance(rules, CrashSignature) or not isinstance(model, CrashSignature):
        return rules
    part, whole = (_PUNCTUATION.sub("", row.message).lower() for row in (rules, model))
    is_longer = bool(part) and "\n" not in rules.message and whole.startswith(part)
    if not is_longer or not freeze.same(rules, model):
        return rules
    return rules.model_copy(update={"message": model.message, "shapes": model.shapes})


def _loses(model: Member, rules: AnySignature) -> bool:
    """Whether words or a place that a model gave are not among those that count."""
    members = [row for row in members_of(rules) if isinstance(row, CrashSignature)]
    if not isinstance(model, CrashSignature) or not members:
        return model not in members_of(rules)
    words = any(wording.core(model.message) in row.message for row in members)
    files = {file for row in members for file in (row.frame, *(one.file for one in row.places))}
    return not words or bool(model.frame and model.frame not in files)


def _is_vague(signature: AnySignature) -> bool:
    """Whether an exception is known by its class alone, at a statement that rules have guessed."""
    if not isinstance(signature, CrashSignature):
        return False
    return bool(signature.checks) and not (signature.message or signature.frame)


def _rules_reading(prompt: Prompt, bug: BugReport) -> str:
    rows = [
        prompt.fragment("known_symptom", symptom=bug.symptom.value),
        prompt.fragment("known_programs", count=len(bug.programs)),
    ]
    rows += [
        prompt.fragment("known_version", name=claim.name, version=claim.version)
        for claim in bug.versions[:12]
    ]
    whats = dict.fromkeys(missing.what for missing in bug.missing)
    rows += [prompt.fragment("known_missing", what=what) for what in [*whats][:4]]
    return "\n".join(rows)


def _signature(
    data: dict[str, Any],
    issue: Issue,
    api: tuple[str, ...],
    notes: _Notes,
) -> Member | None:
    match data:
        case {"kind": "hang"}:
            # At work or idle: a twin that ends tells what never ends from what takes its time.
            return HangSignature(bound_s=BUSY_BOUND_S, idle=False)
        case {"kind": "crash", "crash": dict(row)} if row:
            return _crash(row, issue, api, notes)
        case {"kind": "warning", "warning": dict(row)} if row:
            return _warning(row, issue, notes)
        case {"kind": "observation", "observation": dict(row)} if row:
            return _observation(row, api, notes)
        case {"kind": "training", "training": dict(row)} if row:
            return _training(row, issue, notes)
        case {"kind": "crash" | "warning" | "observation" | "training" as kind}:
            notes.refuse("row", kind=kind)
    return None


_UNBOUND = re.compile(
    r"\(\) (?:got (?:an unexpected keyword argument|multiple values for)"
    r"|missing \d+ required|takes (?:no|from|\d+) )"
)


def _crash(
    row: dict[str, Any], issue: Issue, api: tuple[str, ...], notes: _Notes
) -> CrashSignature | None:
    """A message that the report does not quote is not compared with a run; then only the place
    identifies the failure. Beside a message, a place outside the package in question is left out.
    """
    exception = row["exception"].strip()
    name = exception.rsplit(".", 1)[-1]
    is_class = _CLASS.fullmatch(exception) and (name != name.lower() or exception in issue.body)
    if not is_class:
        notes.refuse("class", name=one_line(exception)[:80])
        return None
    message = " ".join(row["message"].split())
    if message and not markdown.is_quoted(wording.core(message) or message, issue):
        notes.inferred.append("message")
        notes.refuse("message", message=message[:200])
        message = ""
    if not markdown.mentions(name, issue):
        notes.inferred.append("exception")
    frame = row["in_file"].strip().lstrip("/")
    frame = frame if frame in notes.tree else _as_path(frame)
    if frame and not _in_package(frame, api) and frame not in notes.tree:
        packages = ", ".join(sorted({name.split(".")[0] for name in api})) or "a package in `api`"
        notes.refuse("file", file=one_line(frame)[:120], packages=packages)
        frame = ""
    if frame and _UNBOUND.search(message):
        notes.refuse("file_unbound", file=one_line(frame)[:120])
        frame = ""
    if not (frame or message):
        notes.refuse("sign")
        return None
    if frame:
        notes.inferred.append("place")
    return CrashSignature(
        exception=exception,
        message=message,
        shapes=wording.shapes(wording.core(message)),
        frame=frame,
    )


def amend(
    row: dict[str, Any], issue: Issue, refined: Interpretation, tree: Collection[str] = ()
) -> Interpretation | tuple[Refusal, ...]:
    """The reading of a crash with another exception that counts, or why it cannot be changed so."""
    notes = _Notes(tree=tree)
    signature = _crash(row, issue, refined.api, notes)
    if signature is None:
        return tuple(notes.refusals)
    if signature == refined.signature:
        return (*notes.refusals, refuse("amend_same"))
    kinds = (name for name in refined.inferred if name == "claim")
    place = module_of(signature.frame) if signature.frame else ""
    is_covered = any(name == place or name.startswith(f"{place}.") for name in refined.api)
    changes = {
        "signature": signature,
        "api": refined.api if is_covered or not place else (*refined.api, place),
        "inferred": (*kinds, *notes.inferred),
        "needs_contrast": refined.needs_contrast or not signature.message,
        "refusals": tuple(notes.refusals),
    }
    return refined.model_copy(update=changes)


def _as_path(text: str) -> str:
    """The path of a file below the folder in which packages lie: of a module that is given by its
    dotted name, and of a file by where it lies on a machine or in a `src` layout.
    """
    path = text.replace("\\", "/").rpartition("site-packages/")[2].removeprefix("src/")
    is_module = "/" not in path and not path.endswith(".py") and "." in path
    return f"{path.replace('.', '/')}.py" if is_module else path


def _in_package(path: str, api: tuple[str, ...]) -> bool:
    """A module of the package in question, so that a crash of the program's own making cannot
    count.
    """
    tops = {name.split(".")[0] for name in api}
    return path.endswith(".py") and path.split("/", 1)[0].removesuffix(".py") in tops


def _warning(row: dict[str, Any], issue: Issue, notes: _Notes) -> WarningSignature | None:
    """A category that the report does not name is not asked for: libraries print their warnings
    in forms of their own.
    """
    message, category = " ".join(row["message"].split()), row["category"].strip()
    if len(message) < wording.SHORTEST:
        notes.refuse("short_warning", least=wording.SHORTEST)
        return None
    if not markdown.is_quoted(message, issue):
        notes.inferred.append("message")
    notes.inferred.append("at_least")
    if category and not markdown.mentions(category, issue):
        notes.refuse("category", category=one_line(category))
        category = ""
    return WarningSignature(category=category, message=message, at_least=row["at_least"])


def _observation(
    row: dict[str, Any], api: tuple[str, ...], notes: _Notes
) -> ObservationSignature | None:
    wrong, right = Predicate(**row["wrong"]), Predicate(**row["right"])
    if not api:
        notes.refuse("value_of")
        return None
    if (both := _overlap(wrong, right)) is not None:
        notes.refuse("overlap", value=json.dumps(both))
        return None
    notes.inferred.append("observation")
    return ObservationSignature(
        name=row["name"], says=" ".join(row["says"].split()), wrong=wrong, right=right, api=api
    )


def _training(row: dict[str, Any], issue: Issue, notes: _Notes) -> TrainingSignature | None:
    """A value that the report does not give is not compared with."""
    reported, expected = (_stated(row[name], issue, notes) for name in ("reported", "expected"))
    metric = one_line(row["metric"]).lower()
    signature = freeze.training_signature(metric, reported, expected)
    if signature is None:
        notes.refuse("metric", metric=metric)
    return signature


def _stated(value: float | None, issue: Issue, notes: _Notes) -> float | None:
    """A number that the report gives, as it is or as a percentage."""
    if value is None:
        return None
    text = f"{issue.title}\n{issue.body}".replace(",", ".")
    numbers = [float(number) for number in re.findall(r"\d+(?:\.\d+)?|\.\d+", text)]
    if any(math.isclose(value, one) or math.isclose(value, one / 100) for one in numbers):
        return value
    notes.refuse("number", value=f"{value:g}")
    return None


def _overlap(wrong: Predicate, right: Predicate) -> Any:
    """A value for which both conditions hold, so that they distinguish nothing; None without."""
    examples = [
        condition.value for condition in (wrong, right) if condition.op not in {"finite", "nan"}
    ]
    plain = (value for value in examples if not isinstance(value, bool))
    near = [x + step for x in plain if isinstance(x, int | float) for step in (-1.0, 1.0)]
    samples = (*examples, *near, "nan", 0.0, 1.0, True, False)
    return next(
        (
            value
            for value in samples
            if values.check_holds(wrong, value) and values.check_holds(right, value)
        ),
        None,
    )


def _pin(
    row: dict[str, Any],
    issue: Issue,
    works_in: tuple[VersionClaim, ...],
    history: Callable[[str], tuple[Release, ...]],
    notes: _Notes,
) -> Pin | None:
    # The build of a stated version, 2.4.0+cu121, is the host's to choose.
    name, text, quote = row["name"], row["version"].partition("+")[0], row["quote"]
    version = _as_packaged(text)
    if not (_NAME.fullmatch(name) and version):
        notes.refuse("pin", name=one_line(name), version=one_line(text))
        return None
    at = quote.find(text.rstrip(".*"))
    says = polarity(quote, at, at + len(text)) if at >= 0 else ""
    is_good = any((one.name, one.version) == (name.lower(), text) for one in works_in)
    if says == "good" or (is_good and says != "bad"):
        notes.refuse("pin_works", name=name, version=version)
        return None
    is_quoted = markdown.is_quoted(quote, issue) and (
        at >= 0 or _is_meant(version, quote, history(name), issue.created_at)
    )
    if not is_quoted:
        notes.refuse("pin_quote", name=name, version=version)
    return Pin(name=name.lower(), version=version, quote=quote, quoted=is_quoted)


def _as_packaged(text: str) -> str:
    """A version as indexes write it ("4.0.0beta": "4.0.0b0"), "" for what is none."""
    if not _VERSION.fullmatch(text):
        return ""
    try:
        return str(Version(text)) if re.search(r"[A-Za-z]", text) else text
    except InvalidVersion:
        return ""


def _is_meant(
    version: str, quote: str, history: tuple[Release, ...], before: datetime | None
) -> bool:
    """Whether a release of before the report is what it means by a number that no release has:
    all numbers but one of each stand in the other in a row (0.13.2 for "13.2.2").
    """
    release = next((row for row in history if row.version == version), None)
    day = release and release.uploaded_at
    if release is None or (before and day and day > before):
        return False
    texts = [text for text in _NUMBERS.findall(quote) if _has_in_common(text, version)]
    return any(not any(releases.same(text, row.version) for row in history) for text in texts)


def _has_in_common(text: str, version: str) -> bool:
    one, other = text.split("."), version.split(".")
    length = max(2, len(one) - 1, len(other) - 1)
    rows = [one[at : at + length] for at in range(len(one) - length + 1)]
    return any(other[at : at + length] in rows for at in range(len(other) - length + 1))
