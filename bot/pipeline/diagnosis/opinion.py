"""A model's second opinion on a diagnosed run, for what a trace cannot know: what the data and
their labels mean, the kind of task, the capacity that it takes.

`build` and `parse` are pure. A fault counts as said only when its quote stands in what the model
was shown. Execution decides whether a run learned: where it is known to have learned on data that
was held out, nobody is asked; where it learned its training data, a model's words are advice.
"""

from collections.abc import Iterator
from dataclasses import replace

from bot.errors import ModelUnavailable, Stopped
from bot.models.diagnosis import (
    Change,
    DiagnosedRun,
    Diagnosis,
    Finding,
    Measurement,
    Opinion,
    SecondOpinion,
    SuspectedFault,
    TrainingProgram,
)
from bot.models.dialogue import ModelAnswer, Question
from bot.models.training import TrainingTrace
from bot.pipeline.diagnosis import run_text
from bot.pipeline.execution.session import Session
from bot.pipeline.reading.report_excerpt import contains, cut
from bot.pipeline.search.model_budget import BudgetExceeded, ModelBudget, question
from bot.rules import diagnosis as rules
from bot.rules.intake import text
from bot.text.sanitize import one_line, redact
from prompts import fence, load

_MOST_TOKENS = 3_000
_MOST_FILES, _MOST_CHARACTERS = 6, 16_000
_WHOLE_RUN = {"HLR", "HNE", "HBS", "LCH", "OCH", "CPP"}


def build(
    trace: TrainingTrace, diagnosis: Diagnosis, program: TrainingProgram, report: str = ""
) -> Question:
    """What the model is asked; `report` is the bug report's text, fenced."""
    return question(
        "writer",
        "opinion",
        _MOST_TOKENS,
        report=report or load("opinion").fragment("no_report"),
        rules=run_text.rules(diagnosis),
        configuration=run_text.configuration(trace),
        trace=run_text.lines(trace),
        program=_program(program),
    )


def parse(
    answer: ModelAnswer, asked: Question, trace: TrainingTrace, found: Diagnosis
) -> tuple[Diagnosis, SecondOpinion]:
    """What the model alone says behind the rules' findings, up to four; behind their advice where
    the run learned its training data.
    """
    said, shown = Opinion.model_validate(answer.data).faults, asked.messages[-1].content
    indices = {layer.index for model in trace.models for layer in model.layers}
    placed = [_placed(fault) for fault in said if contains(shown, fault.quote)]
    sound = [fault for fault in placed if set(fault.layers) <= indices]
    codes = [code for finding in found.findings for code in finding.codes]
    added, agreed = list[Finding](), list[str]()
    for fault in sound:
        agreed += _repeated(fault, codes)
        said_before = [*codes, *(code for each in added for code in each.codes)]
        if (new := _added(fault, said_before)) is not None:
            added.append(new)
    opinion = SecondOpinion(
        model=answer.model,
        prompt=asked.prompt,
        agreed=tuple(dict.fromkeys(agreed)),
        unsupported=len(said) - len(sound),
        usage=answer.usage,
    )
    if rules.success(trace):
        return found.model_copy(update={"advice": (*found.advice, *added)}), opinion
    findings = (*found.findings, *added)[: rules.MOST]
    return found.model_copy(update={"findings": findings}), opinion


def second_opinion(
    run: DiagnosedRun,
    trace: TrainingTrace,
    program: TrainingProgram,
    session: Session,
    budget: ModelBudget,
    report: str = "",
) -> DiagnosedRun:
    """The run with what a model says of it, where one is configured and there is a diagnosis."""
    left_out = "model" in session.job.without
    if session.ports.model is None or left_out or run.undecided:
        return run
    if rules.success(trace) == "held out":
        return _unasked(run, "the run learned its task, on held-out data too")
    asked = build(trace, run.diagnosis, program, report)
    asking = replace(budget, began=session.ports.clock())  # minutes of asking, not of training
    try:
        with session.stage("diagnose", "asking a model for a second opinion"):
            answer = asking.ask(asked)
    except BudgetExceeded as error:
        return _unasked(run, f"it could exceed {error}")
    except Stopped:
        return _unasked(run, "the question was stopped")
    except ModelUnavailable as error:
        missing = SecondOpinion(prompt=asked.prompt, usage=error.usage, missing=str(error))
        return run.model_copy(update={"opinion": missing})
    diagnosis, opinion = parse(answer, asked, trace, run.diagnosis)
    return run.model_copy(update={"diagnosis": diagnosis, "opinion": opinion})


def _unasked(run: DiagnosedRun, why: str) -> DiagnosedRun:
    return run.model_copy(update={"opinion": SecondOpinion(missing=why)})


def _placed(fault: SuspectedFault) -> SuspectedFault:
    """The fault without layers where its type has none."""
    return fault.model_copy(update={"layers": ()}) if fault.fault in _WHOLE_RUN else fault


def _repeated(fault: SuspectedFault, codes: list[str]) -> list[str]:
    """Those of the codes that a fault names; without a layer it names its type anywhere."""
    own = {f"{fault.fault}({layer})" for layer in fault.layers}
    return [x for x in codes if x in own or (not own and x[:3] == fault.fault)]


def _added(fault: SuspectedFault, codes: list[str]) -> Finding | None:
    """What a fault adds to these codes, in a model's words: without what the eye cannot see, and
    without credentials.
    """
    repeated = _repeated(fault, codes)
    layers = tuple(x for x in sorted(set(fault.layers)) if f"{fault.fault}({x})" not in repeated)
    if repeated and not layers:
        return None
    quote, change = _shown(fault.quote).replace("`", "'"), _shown(fault.change)
    return Finding(
        fault=fault.fault,
        layers=layers,
        rule="",
        confidence=0.0,
        message=_shown(fault.reason),
        evidence=(Measurement(name="quoted", value=f"`{quote}`"),),
        change=Change(parameter="", words=change) if change else None,
        by="model",
    )


def _shown(words: str) -> str:
    return one_line(redact(words))


def _program(program: TrainingProgram) -> str:
    """The program and the modules beside it, each in a fence."""
    names = sorted(name for name in program.files if name.endswith(".py"))
    ordered = sorted(names, key=lambda name: name != program.entry)
    blocks = list(_files(program, ordered[:_MOST_FILES]))
    if left := len(ordered) - len(blocks):
        blocks.append(load("opinion").fragment("cut_program", count=left))
    return "\n\n".join(blocks)


def _files(program: TrainingProgram, names: list[str]) -> Iterator[str]:
    left = _MOST_CHARACTERS
    for name in names:
        if left <= 0:
            return
        source = text.readable(program.files[name].decode("utf-8", "replace"))
        shown = cut(redact(source), left)
        left -= len(shown)
        yield fence(f"file {name}", shown)
