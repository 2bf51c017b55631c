"""Compares the exceptions of a run with a crash signature: class, words, shapes, place, and whether
the program itself raised it on purpose.
"""

import builtins
import re
from collections.abc import Iterator

from bot.environment import setup_failures
from bot.issues.judgements import matched, passed, undecided
from bot.issues.observe import Observation, flatten
from bot.issues.signature import copied, locations, staged, wording
from bot.kernel import exception_names, usage_errors
from bot.kernel.attempt import Evidence, Failure, Judgement, Script
from bot.kernel.bug import (
    CrashSignature,
    Frame,
)
from bot.kernel.tree_programs import GUESSED

# Compares an exception with a crash signature: class, words, shapes, place, and whether the
# program itself raised it on purpose.

_STRICT = 0.95


def weigh(
    failure: Failure, signature: CrashSignature, script: Script, names: frozenset[str]
) -> tuple[Evidence, ...]:
    """What each piece of an exception of the reported class says, up to the first that speaks
    against it.
    """
    evidence: list[Evidence] = []
    for piece in _pieces(failure, signature, script, names):
        evidence.append(piece)
        if not piece.agrees:
            break
    return tuple(evidence)


def _pieces(
    failure: Failure, signature: CrashSignature, script: Script, names: frozenset[str]
) -> Iterator[Evidence]:
    yield Evidence(what="class", says=_class(failure, signature))
    if signature.checks and not signature.message:
        yield _check_evidence(failure, signature, names)
        return
    alike = wording.likeness(signature.message, failure.message, names)
    yield from _words(failure, signature, alike, names)
    is_copy = copied.is_repositorys(failure, script)
    if is_copy:  # the way to it is shorter now
        signature = signature.model_copy(update={"places": signature.places[-1:]})
    yield from _where(failure, signature, worded=_is_worded(signature.message, alike))
    # What the repository under test raises is its own failure, not a staged one.
    if not (script.is_repositorys or is_copy) and _by_itself(failure, signature, script):
        says = "the program itself raises or prints this error"
        yield Evidence(what="origin", agrees=False, says=says)
    if signature.checks and not locations.may_be_at(failure, signature.checks):
        says = "it was not raised by the reported statement"
        yield Evidence(what="check", agrees=False, says=says)


def _class(failure: Failure, signature: CrashSignature) -> str:
    one, other = (name.rsplit(".", 1)[-1] for name in (signature.exception, failure.exception))
    return other if one in {other, ""} else f"{other}, reported as {one}"


def _words(
    failure: Failure, signature: CrashSignature, alike: float, names: frozenset[str]
) -> Iterator[Evidence]:
    is_specific = signature.message or signature.frame or signature.exception.startswith("SIG")
    if failure.message.strip() and not is_specific:
        yield Evidence(what="words", agrees=False, says="the reported exception has no message")
    elif signature.message:
        agrees = (
            alike >= wording.ENOUGH
            or _is_restyled(failure, signature, names)
            or wording.is_cut_off(signature.message, failure.message)
            or (
                wording.stands_in(signature.message, failure.message)
                and (is_placed(failure, signature) or _may_be_anywhere(failure, signature))
            )
        )
        says = "" if agrees else f"the message differs (similarity {alike:.2f})"
        yield Evidence(what="words", agrees=agrees, score=alike, says=says)
    reported_axes, observed_axes = wording.axes(signature.message), wording.axes(failure.message)
    same = wording.same_shapes(signature.shapes, failure.message)
    axes = not reported_axes or not observed_axes or bool(reported_axes & observed_axes)
    if signature.shapes or not axes:
        observed_shapes = ", ".join(wording.shapes(failure.message)) or "none"
        shapes = ", ".join(signature.shapes)
        says = f"the operand shapes differ: {shapes} reported, {observed_shapes} observed"
        says = shapes if same else says
        says = says if axes else "it concerns another axis"
        yield Evidence(what="shapes", agrees=same and axes, says=says)


def _is_restyled(failure: Failure, signature: CrashSignature, names: frozenset[str]) -> bool:
    """Whether a class of the library's own, in its place, has the words in other forms only."""
    own = not hasattr(builtins, failure.exception.rsplit(".", 1)[-1])
    alike = own and wording.same_stems(signature.message, failure.message, names)
    return alike and is_placed(failure, signature)


def _may_be_anywhere(failure: Failure, signature: CrashSignature) -> bool:
    """Whether a report gives nothing but words, and a library ended the program."""
    last = failure.innermost
    is_librarys = last is not None and last.package not in {"", "<stdlib>"}
    has_more = signature.exception or signature.frame or signature.places
    is_ours = setup_failures.recognise(failure.exception, failure.message) is not None
    return is_librarys and not (has_more or failure.swallowed or is_ours)


def is_placed(failure: Failure, signature: CrashSignature) -> bool:
    """Whether an exception arose in the library where the report says."""
    return any(piece.agrees for piece in _where(failure, signature, worded=False))


def may_be_reworded(failure: Failure, signature: CrashSignature, names: frozenset[str]) -> bool:
    """Whether an exception of the reported class and other words may be the reported one: it
    arose in its place or, where the report shows none, has most of its words.
    """
    where = list(_where(failure, signature, worded=False))
    mostly = wording.mostly(signature.message, failure.message, names)
    return where[0].agrees if where else mostly


def _where(failure: Failure, signature: CrashSignature, *, worded: bool) -> Iterator[Evidence]:
    location = signature.frame or (signature.places and signature.places[-1].file)
    if not location or not failure.frames:
        return
    if signature.places:
        agrees = locations.same(signature.places, failure, is_reworded=worded)
    else:  # only a file is known; for words that are plain enough its package will do
        top = signature.frame.partition("/")[0]
        agrees = any(
            frame.module_path == signature.frame or (worded and frame.package == top)
            for frame in failure.frames
        )
    place = f"{location} {signature.function}".strip()
    elsewhere = f"it was not raised in {location}"
    if locations.raised_alike(signature.places, failure):
        elsewhere = f"{place} was reached in another way than in the bug report"
    says = place if agrees else elsewhere
    yield Evidence(what="place", agrees=agrees, says=says)


def _is_worded(message: str, alike: float) -> bool:
    """Whether the words alone identify a failure."""
    return alike >= _STRICT and len(wording.tokens(wording.core(message))) >= 4


def _check_evidence(failure: Failure, signature: CrashSignature, names: frozenset[str]) -> Evidence:
    if signature.exception.rsplit(".", 1)[-1] == "AssertionError":
        agrees, other = _is_check(failure, signature.checks), "a different assertion failed"
    else:
        agrees, other = (
            locations.fails(failure, signature, names),
            "it was not raised by the reported statement",
        )
    return Evidence(what="check", agrees=agrees, says=signature.checks[0] if agrees else other)


def _is_check(failure: Failure, checks: tuple[str, ...]) -> bool:
    texts = [" ".join(check.split()) for check in checks]
    codes = [
        " ".join(frame.code.split()) for frame in failure.frames if not frame.package and frame.code
    ]
    return any(code in text or text in code for text in texts for code in codes[-2:])


def _by_itself(failure: Failure, signature: CrashSignature, script: Script) -> bool:
    last = failure.innermost
    is_raised = last is not None and not last.package and last.code.strip().startswith("raise")
    if last is not None and is_raised:
        own = staged.raised_by_itself(script.source, last.line, last.code)
        if signature.frame or own:
            return True
    words = signature.message or failure.message
    is_printed = not failure.bases  # read off the output: only the probe tells of base classes
    is_self_made = staged.self_made(script.source, signature.exception, words, prints=is_printed)
    return bool(is_self_made)


_LEVEL = re.compile(r"\b(?:ERROR|CRITICAL|WARNING|Error|Warning|E\d{4})\b")


def judge_crash(observation: Observation, signature: CrashSignature, script: Script) -> Judgement:
    """Whether one of a run's exceptions is the reported one; undecided where it may be that in
    other words or at another statement.
    """
    names = staged.own_names(script.source)
    closest: tuple[Evidence, ...] = ()
    reworded_failure: Failure | None = None
    elsewhere: Failure | None = None
    for failure in (
        *flatten(observation.failures),
        *_logged_failures(observation, signature),
        *_exit_failures(observation, signature),
    ):
        failure = _placed(failure, signature, script)
        alike = _in_one_class(failure, signature)
        if alike is None or setup_failures.made_here(failure.message):
            continue
        if _is_bare_line(failure) and signature.places and not staged.handles(script.source):
            continue
        evidence = weigh(*alike, script, names)
        if evidence[-1].agrees:
            # Only the probe tells of base classes: this one was read off what was printed.
            is_caught = failure.swallowed and not failure.bases
            how = "was caught, and printed or logged" if is_caught else "was raised"
            judgement = matched(f"{failure.exception} {how}", last_line(failure), failure)
            return judgement.model_copy(update={"weighed": evidence})
        closest = max(closest, evidence, key=len)
        is_elsewhere = evidence[-1].what == "check" and bool(signature.message)
        if is_elsewhere or (_names_only_class(signature) and not failure.swallowed):
            elsewhere = failure
        if evidence[-1].what == "words" and may_be_reworded(failure, signature, names):
            reworded_failure = failure
    if reworded_failure is not None or elsewhere is not None:
        return _doubtful(signature, closest, reworded_failure, elsewhere)
    if signature.checks and not (signature.exception or signature.message):
        if not (observation.exit_code or observation.escaped or observation.timed_out):
            return passed("the statement that is said to fail did not fail")
        inconclusive = undecided("the bug report names a statement that fails, but not how")
        return inconclusive.model_copy(update={"weighed": closest, "failure": observation.escaped})
    why = closest[-1].says if closest else "the reported exception did not occur"
    return passed(why).model_copy(update={"weighed": closest})


def _names_only_class(signature: CrashSignature) -> bool:
    """Whether a class and a statement are all that is known; an assertion is its own place."""
    name = signature.exception.rsplit(".", 1)[-1]
    only = bool(signature.checks) and not signature.message
    return only and name not in {"", "AssertionError"}


def _doubtful(
    signature: CrashSignature,
    closest: tuple[Evidence, ...],
    reworded_failure: Failure | None,
    elsewhere: Failure | None,
) -> Judgement:
    """A run with the reported class, whose words or statement are others: another release may word
    it otherwise, and the statement may be one that rules have guessed.
    """
    failure = reworded_failure or elsewhere
    assert failure is not None
    if reworded_failure is not None:
        where = " in the same place" if is_placed(reworded_failure, signature) else ""
        why = f"the same exception arose{where}, with another message"
    else:
        why = "the reported exception arose at another statement than the bug report seems to mean"
    inconclusive = undecided(why, last_line(failure))
    return inconclusive.model_copy(update={"weighed": closest, "failure": failure})


def _placed(failure: Failure, signature: CrashSignature, script: Script) -> Failure:
    """A failure whose frames in code of the repository under test are named as its own."""
    if script.command:
        return _in_tree(failure, signature, script)
    return copied.with_places(failure, script) if script.fault_code is not None else failure


def _in_tree(failure: Failure, signature: CrashSignature, script: Script) -> Failure:
    """A failure whose frames in files of the repository are called as the report calls them: it
    may have them below a folder of the repository's name. What lies beside a program of ours is
    the repository's, not the program's own.
    """
    files = [signature.frame, *(place.file for place in signature.places)]
    rows = [(frame, _reported_file(frame, files, script)) for frame in failure.frames]
    frames = tuple(
        frame.model_copy(update={"module_path": file, "package": file.partition("/")[0]})
        if file
        else frame
        for frame, file in rows
    )
    return failure.model_copy(update={"frames": frames})


def _reported_file(frame: Frame, files: list[str], script: Script) -> str:
    if frame.package:
        return ""
    ends = ((file, file.partition("/")[2] or file) for file in files if file)
    file = next((file for file, end in ends if f"/{frame.path}".endswith(f"/{end}")), "")
    is_program = script.is_repositorys or frame.path.endswith(script.entry)
    return file or ("" if is_program else frame.path.lstrip("/"))


def _in_one_class(
    failure: Failure, signature: CrashSignature
) -> tuple[Failure, CrashSignature] | None:
    """Both as they are compared: in the words of one version of Python where another raises the
    same failure under another class or in others; None where the classes differ otherwise.
    """
    shared = wording.as_reclassed(
        (signature.exception, signature.message), (failure.exception, failure.message)
    )
    if shared is None:
        alike = wording.same_exception(signature.exception, failure.exception, failure.bases)
        return (failure, signature) if alike else None
    both = {"exception": shared[0], "message": shared[1]}
    return failure.model_copy(update=both), signature.model_copy(update=both | {"shapes": ()})


def _is_bare_line(failure: Failure) -> bool:
    """Whether all that is known is a printed line. Where the report shows the place, such a line
    tells of the failure only if the program prints what it catches: anything may print a line.
    """
    return failure.swallowed and not failure.bases and not failure.frames


def _logged_failures(observation: Observation, signature: CrashSignature) -> list[Failure]:
    """The exceptions that lines of a log name, for a report that shows no more of one either."""
    lines = (line for line in observation.errors.splitlines() if _LEVEL.search(line))
    matches = (exception_names.INLINE.search(line) for line in lines if not signature.places)
    return [
        Failure(exception=match["exc"], message=match["msg"], swallowed=True)
        for match in matches
        if match is not None
    ]


def _exit_failures(observation: Observation, signature: CrashSignature) -> list[Failure]:
    """The exit that a command-line tool asked for: Python shows no traceback of it, the last line
    that the tool wrote says why.
    """
    lines = [line.strip() for line in observation.errors.splitlines() if line.strip()]
    if (
        observation.escaped is not None
        or not observation.exit_code
        or not lines
        or not signature.message
    ):
        return []
    if usage_errors.usage_error(signature.message):
        messages = [row.traceback.message for row in usage_errors.find_usage_errors(lines)]
        is_refusal = messages and observation.exit_code == usage_errors.EXIT_STATUS
        lines = messages if is_refusal else []
    return [Failure(exception=usage_errors.EXCEPTION, message=line) for line in lines[-1:]]


def says_nothing(signature: CrashSignature, script: Script, *, is_match: bool) -> str:
    """Why a run says nothing about a reported usage error: arguments are missing from whatever is
    started without them, and what a command does not pass cannot be refused.
    """
    message = usage_errors.usage_error(signature.message)
    if is_match and usage_errors.is_about_missing(message):
        is_guess = any(fix.why == GUESSED for fix in script.fixes)
        return "the program was started without arguments, which it asks for" if is_guess else ""
    if not is_match and script.command:
        options = usage_errors.refused_options(message)
        passed_options = {word.partition("=")[0] for word in script.command}
        if options and passed_options.isdisjoint(options):
            return f"the command does not pass {options[0]}, which the reported error refuses"
    return ""


def last_line(failure: Failure) -> str:
    """The last line of an exception's traceback."""
    return f"{failure.exception}: {failure.message}" if failure.message else failure.exception
