"""A model's second opinion on a diagnosed run, for what a trace cannot know."""

import re
from collections.abc import Iterable, Iterator, Sequence
from statistics import median
from typing import NamedTuple

from bot.kernel import plain_text
from bot.kernel.dialogue import ModelAnswer, Question
from bot.kernel.errors import ModelUnavailable, Stopped
from bot.kernel.markdown import contains, cut
from bot.kernel.outside_text import one_line
from bot.kernel.redaction import redact
from bot.kernel.session import Session
from bot.kernel.training_code import CODE_FAULTS, OTHER_CODE
from bot.kernel.training_types import (
    Change,
    Data,
    DiagnosedRun,
    Diagnosis,
    Edit,
    Finding,
    Layer,
    Loss,
    Measurement,
    Opinion,
    Plan,
    SecondOpinion,
    Summary,
    SuspectedFault,
    TrainingProgram,
    TrainingStep,
    TrainingTrace,
)
from bot.model.budget import BudgetExceeded, ModelBudget, question
from bot.program.line_edits import EditRefused, make_edit
from bot.program.modules import own_modules
from bot.training.diagnosis import rules as diagnosis_rules
from bot.training.diagnosis.rule import Training, number, trainings
from bot.training.phrases import CODE_FAULTS as PHRASES
from prompts import load
from prompts.catalog import fence

# What a prompt shows of a training run: what the rules say, the configuration as it was in the
# run, and some lines of its trace. All of it is fenced: the program can have forged any name in
# it.

_MODELS, _LAYERS, _STEPS, _EPOCHS, _UNSEEN, _ROW = 2, 40, 14, 6, 4, 600
_OUTPUT_LINES = 12
_UNKNOWN = "?"


def rules(diagnosis: Diagnosis) -> str:
    """The findings of the rules, and what could not be seen."""
    rows = [_finding(at, finding) for at, finding in enumerate(diagnosis.findings, 1)]
    rows = rows or [_say("no_finding")]
    rows += [_say("could_not_see", what=what) for what in diagnosis.unseen[:_UNSEEN]]
    return _fence("rules", rows)


def configuration(trace: TrainingTrace) -> str:
    """Models with their layers, losses, optimisers, plans and data."""
    runs = trainings(trace)[:_MODELS]
    rows = [row for at, run in enumerate(runs, 1) for row in _configured(at, run)]
    return _fence("configuration", rows)


def lines(trace: TrainingTrace) -> str:
    """How each model learned, about twenty lines in all: steps from first to last, and the last
    epochs.
    """
    rows = [_learning_row(run) for run in trainings(trace)[:_MODELS]]
    sampled_steps = [step for step in trace.steps if step.weights or step.activations]
    rows += [_step(step) for step in spread_steps(sampled_steps or trace.steps, _STEPS)]
    for epoch in trace.epochs[-_EPOCHS:]:
        values = (f"{name} {_number(value)}" for name, value in epoch.values.items())
        rows.append(_say("epoch_row", epoch=epoch.epoch, values=", ".join(values)))
    return _fence("trace", rows)


def spread_steps(steps: Sequence[TrainingStep], most: int) -> list[TrainingStep]:
    """At most so many steps, the first and the last among them."""
    if len(steps) <= most:
        return list(steps)
    return [steps[at * (len(steps) - 1) // (most - 1)] for at in range(most)]


def _finding(at: int, finding: Finding) -> str:
    numbers = "; ".join(map(_measurement_text, finding.evidence))
    more = [_say("evidence", evidence=numbers)] if numbers else []
    if finding.change is not None:
        more.append(_say("change", change=finding.change.words))
    return _say(
        "finding",
        number=at,
        codes=", ".join(finding.codes),
        rule=finding.rule,
        confidence=f"{finding.confidence:.0%}",
        message=finding.message,
        more=" ".join(more),
    )


def _measurement_text(measurement: Measurement) -> str:
    limit = _say("limit", limit=measurement.limit) if measurement.limit else ""
    return " ".join(
        filter(None, (_say("measured", name=measurement.name, value=measurement.value), limit))
    )


def _configured(at: int, run: Training) -> Iterator[str]:
    yield _say("model_row", number=at, framework=run.model.framework)
    yield from map(_layer, run.layers[:_LAYERS])
    yield from map(_loss, run.losses[:_MODELS])
    if (optimizer := run.optimizer) is not None:
        yield _say(
            "optimizer_row",
            name=optimizer.name,
            rates=", ".join(map(number, optimizer.rates[:4])),
            momentum=number(optimizer.momentum),
            decay=number(optimizer.weight_decay),
        )
    if run.plan is not None:
        yield _plan(run.plan)
    yield from map(_data, filter(None, (run.data, *run.held_out)))


def _layer(layer: Layer) -> str:
    details = [layer.type]
    details += [_say("units", units=layer.units)] if layer.units is not None else []
    if layer.activation:
        details.append(_say("activation", activation=layer.activation))
    if layer.inputs:
        details.append(_say("fed_by", layers=", ".join(map(str, layer.inputs[:4]))))
    if layer.regularizer:
        details.append(_say("regularized", regularizer=layer.regularizer))
    settings = list(layer.settings.items())[:4]
    details += [_say("setting", name=name, value=value) for name, value in settings]
    for weight in layer.weights[:4]:
        start = weight.initial
        mean, std = _number(start.mean), _number(start.std)
        shape = _shape(start)
        details.append(_say("weight", role=weight.role, shape=shape, mean=mean, std=std))
        details += [] if weight.trainable else [_say("frozen")]
    details += [_say("output", tensor=_tensor(layer.output))] if layer.output is not None else []
    return _say("layer_row", index=layer.index, details=", ".join(details))


def _loss(loss: Loss) -> str:
    return _say(
        "loss_row",
        name=loss.name,
        predictions=_tensor(loss.predictions),
        activation=loss.activation or _UNKNOWN,
        targets=_tensor(loss.targets),
        trivial=_number(loss.trivial),
    )


def _plan(plan: Plan) -> str:
    counts = (plan.batch_size, plan.samples, plan.epochs, plan.steps_per_epoch)
    batch, samples, epochs, steps = (_UNKNOWN if x is None else x for x in counts)
    details = [_say("planned", batch=batch, samples=samples, epochs=epochs, steps=steps)]
    if plan.shuffle is not None:
        details.append(_say("shuffled", shuffled=plan.shuffle))
    return _say("plan_row", details=", ".join(details))


def _data(data: Data) -> str:
    details = [_say("data_inputs", inputs=_tensor(data.inputs))]
    details += [_say("ids")] if data.ids else []
    if data.feature_std_ratio is not None:
        details.append(_say("columns", ratio=_number(data.feature_std_ratio)))
    if data.targets is not None:
        details.append(_say("data_targets", targets=_tensor(data.targets)))
    return _say("data_row", part=data.part, details="; ".join(details))


def _tensor(summary: Summary) -> str:
    low, high, mean, std = map(
        _number, (summary.minimum, summary.maximum, summary.mean, summary.std)
    )
    fields = {"shape": _shape(summary), "dtype": summary.dtype, "low": low, "high": high}
    details = [_say("tensor", **fields, mean=mean, std=std)]
    details += [_say("distinct", count=summary.distinct)] if summary.distinct is not None else []
    details += [_say("invalid", share=f"{summary.finite:.2%}")] if summary.finite < 1 else []
    return ", ".join(details)


def _learning_row(run: Training) -> str:
    learning = run.learning
    return _say(
        "learned_row",
        steps=run.updates,
        start=_number(learning.start),
        end=_number(learning.end),
        health=learning.health,
    )


def _step(step: TrainingStep) -> str:
    details = [_say("loss_and_rate", loss=_number(step.loss), rate=_number(step.rate))]
    kernels = [row for row in step.weights if row.role == "kernel" and row.norm is not None]
    if kernels:
        one, other = kernels[0], kernels[-1]
        norms = {"first": _number(one.norm), "last": _number(other.norm)}
        details.append(_say("norms", **norms, one=one.layer, other=other.layer))
    ratios = [row.update_ratio for row in step.weights if row.update_ratio is not None]
    details += [_say("updates", ratio=number(median(ratios)))] if ratios else []
    return _say("step_row", step=step.step, details=", ".join([*details, *_units(step)]))


def _units(step: TrainingStep) -> Iterator[str]:
    """The layer with most dead units, and the one with most saturated ones."""
    for name in ("dead", "saturated"):
        shares = [(getattr(row, name) or 0.0, row.layer) for row in step.activations]
        share, layer = max(shares, default=(0.0, 0))
        if share > 0:
            yield _say(name, share=f"{share:.0%}", layer=layer)


def _shape(summary: Summary) -> str:
    return "x".join(map(str, summary.shape))


def _number(value: float | None) -> str:
    return _UNKNOWN if value is None else number(value)


def _say(fragment: str, /, **values: object) -> str:
    return load("opinion").fragment(fragment, **values)


def _fence(what: str, rows: Iterable[str]) -> str:
    return fence(what, "\n".join(one_line(redact(row))[:_ROW] for row in rows))


# A model's second opinion on a diagnosed run, for what a trace cannot know: what the data and
# their labels mean, the kind of task, the capacity that it takes.
#
# `build` and `parse` are pure. A fault counts as said only when its quote stands in what the
# model was shown. Execution decides whether a run learned: where it is known to have learned on
# data that was held out, nobody is asked; where it learned its training data, a model's words are
# advice.

_MOST_TOKENS = 4_000
_MOST_FILES, _MOST_CHARACTERS = 6, 16_000
_WHOLE_RUN = {"HLR", "HNE", "HBS", "LCH", "OCH", "CPP"}


def build(
    trace: TrainingTrace,
    diagnosis: Diagnosis,
    program: TrainingProgram,
    report: str = "",
    output: str = "",
) -> Question:
    """What the model is asked; `report` is the bug report's text, fenced, `output` what the program
    printed.
    """
    return question(
        "writer",
        "opinion",
        _MOST_TOKENS,
        report=_without_program(report, program) or _say("no_report"),
        rules=rules(diagnosis),
        configuration=configuration(trace),
        trace="\n\n".join(filter(None, (lines(trace), _end_of(output)))),
        program=_program(program),
        code_faults=", ".join(
            f"`{name}` {words}" for name, words in PHRASES.items() if name != OTHER_CODE
        ),
    )


def _without_program(report: str, program: TrainingProgram) -> str:
    """The report without the program that stands below it. A single line is left alone: it could
    be a part of the fence.
    """
    source = redact(program.source).strip()
    return report.replace(source, _say("below")) if "\n" in source else report


def _end_of(output: str) -> str:
    """What the program printed last: the numbers that its author looks at."""
    rows = [row for row in plain_text.readable(output).split("\n") if row.strip()]
    return _fence("end of the output", rows[-_OUTPUT_LINES:]) if rows else ""


def parse(
    answer: ModelAnswer,
    question: Question,
    trace: TrainingTrace,
    diagnosis: Diagnosis,
    program: TrainingProgram,
) -> tuple[Diagnosis, SecondOpinion]:
    """The diagnosis with what the model adds: findings among the rules', up to four in all; behind
    their advice where the run learned its training data. Where it agrees with a rule, its edit is
    one more way to test that rule.
    """
    faults = Opinion.model_validate(answer.data).faults
    texts = _texts(program)
    material = "\n".join((question.messages[-1].content, *texts.values()))
    indices = {layer.index for model in trace.models for layer in model.layers}
    faults_with_layers = [
        _with_layers(fault) for fault in faults if contains(material, fault.quote)
    ]
    sound = [fault for fault in faults_with_layers if set(fault.layers) <= indices]
    findings, additions = list(diagnosis.findings), list[Finding]()
    agreed_codes, refused = list[str](), list[str]()
    for fault in sound:
        location = _location(fault, texts, program.entry)
        refused += [location.refusal] if location.refusal else []
        if (same := _same_code(fault, location, findings)) is not None:
            agreed_codes += findings[same].codes
            findings[same] = _with_edit(findings[same], fault, location)
            continue
        codes = [code for finding in findings for code in finding.codes]
        repeated_codes = _repeated_codes(fault, codes)
        agreed_codes += repeated_codes
        for at, finding in enumerate(findings):
            if set(finding.codes).intersection(repeated_codes):
                findings[at] = _with_edit(finding, fault, location)
        said_before = [*codes, *(code for finding in additions for code in finding.codes)]
        if _same_code(fault, location, additions) is None and (
            new := _additional_finding(fault, said_before, location)
        ):
            additions.append(new)
    opinion = SecondOpinion(
        model=answer.model,
        prompt=question.prompt,
        agreed=tuple(dict.fromkeys(agreed_codes)),
        unsupported=len(faults) - len(sound),
        refused=tuple(refused),
        usage=answer.usage,
    )
    remarks = [x for x in additions if diagnosis_rules.success(trace) and not _is_beside(x)]
    findings += [x for x in additions if x not in remarks]
    unshared = [x for x in findings if _is_unshared(x, opinion)]
    shared = [x for x in findings if x not in unshared]
    update = {
        "findings": diagnosis_rules.ordered(shared),
        "doubts": (*diagnosis.doubts, *unshared),
        "advice": (*diagnosis.advice, *remarks),
    }
    return diagnosis.model_copy(update=update), opinion


def _is_beside(finding: Finding) -> bool:
    """Whether a fault spoils what is measured: a low loss does not speak against it."""
    return finding.fault in diagnosis_rules.BESIDE_TRAINING


def _is_unshared(finding: Finding, opinion: SecondOpinion) -> bool:
    """Whether a rule alone takes a finding to be likely, without being certain: a doubt, until
    trainings confirm it.
    """
    is_agreed = bool(set(finding.codes).intersection(opinion.agreed))
    return finding.by == "rules" and not is_agreed and not diagnosis_rules.is_certain(finding)


# Where in the program a fault is.

_NEAR = 2  # lines between two names of one place
_LINE_NUMBER = re.compile(r"^\s*\d+\| ?")


class _Location(NamedTuple):
    """The line of a fault in the program, 0 where it is none or in another `file`; the edit that
    the model proposes, or why there is none.
    """

    line: int = 0
    file: str = ""
    edit: Edit | None = None
    refusal: str = ""


def _texts(program: TrainingProgram) -> dict[str, str]:
    """The program ("") and the modules that it imports."""
    modules = own_modules(program.files, program.entry)
    return {"": program.source, **{file.name: file.text for file in modules}}


def _location(fault: SuspectedFault, texts: dict[str, str], entry: str) -> _Location:
    file = "" if fault.file in (entry, entry.rpartition("/")[2]) else fault.file
    edit, refusal = None, ""
    if fault.before.strip():
        try:
            edit = make_edit(texts, file, fault.before, fault.after, fault.fault, fault.line)
        except EditRefused as error:
            refusal = f"{fault.fault}: {one_line(str(error))}"
    line = edit.line if edit is not None else _quoted_line(fault, texts.get(file, ""))
    return _Location(line, file if file in texts else "", edit, refusal)


def _quoted_line(fault: SuspectedFault, text: str) -> int:
    """The line that the quote is of, the nearest to that which the model gives; where it quotes no
    line of the program, that one.
    """
    lines = text.split("\n")
    rows = (_LINE_NUMBER.sub("", row) for row in fault.quote.split("\n"))
    first = next((row for row in rows if row.strip()), "")
    places = [at for at, row in enumerate(lines, 1) if contains(row, first)]
    own = fault.line if 0 < fault.line <= len(lines) else 0
    return min(places, key=lambda at: abs(at - own), default=own)


def _same_code(
    fault: SuspectedFault, location: _Location, findings: Sequence[Finding]
) -> int | None:
    """Which of the findings is the same fault that is code: one of the same name, or of the same
    place in the program. A name for any fault names none.
    """
    if fault.fault not in CODE_FAULTS:
        return None
    for at, finding in enumerate(findings):
        names = {finding.fault, *finding.also} & CODE_FAULTS
        lines = (finding.line, location.line)
        is_near = all(lines) and abs(lines[0] - lines[1]) <= _NEAR
        is_same_name = fault.fault in names and fault.fault != OTHER_CODE
        if names and (is_near or (is_same_name and not all(lines))):
            return at
        if is_same_name and finding.by == "rules":
            return at
    return None


def _with_edit(finding: Finding, fault: SuspectedFault, location: _Location) -> Finding:
    if location.edit is None:
        return finding
    change = finding.change or Change(parameter="", words=_plain_text(fault.change))
    change = change.model_copy(update={"edit": location.edit})
    return finding.model_copy(update={"change": change})


def second_opinion(
    run: DiagnosedRun,
    trace: TrainingTrace,
    program: TrainingProgram,
    session: Session,
    budget: ModelBudget,
    report: str = "",
    output: str = "",
) -> DiagnosedRun:
    """The run with what a model says of it, where one is configured and there is a diagnosis. It is
    shown the end of the `output`.
    """
    left_out = "model" in session.job.without
    if session.ports.model is None or left_out or run.undecided:
        return run
    if diagnosis_rules.success(trace) == "held out":
        return _unasked(run, "the run learned its task, on held-out data too")
    question = build(trace, run.diagnosis, program, report, output)
    budget.began = session.ports.clock()  # minutes of asking, not of training
    try:
        with session.stage("diagnose", "asking a model for a second opinion"):
            answer = budget.ask(question)
    except BudgetExceeded as error:
        return _unasked(run, f"it could exceed {error}")
    except Stopped:
        return _unasked(run, "the question was stopped")
    except ModelUnavailable as error:
        missing = SecondOpinion(prompt=question.prompt, usage=error.usage, missing=str(error))
        return run.model_copy(update={"opinion": missing})
    diagnosis, opinion = parse(answer, question, trace, run.diagnosis, program)
    return run.model_copy(update={"diagnosis": diagnosis, "opinion": opinion})


def _unasked(run: DiagnosedRun, why: str) -> DiagnosedRun:
    return run.model_copy(update={"opinion": SecondOpinion(missing=why)})


def _with_layers(fault: SuspectedFault) -> SuspectedFault:
    """The fault without layers where its type has none."""
    is_whole = fault.fault in _WHOLE_RUN or fault.fault in CODE_FAULTS
    return fault.model_copy(update={"layers": ()}) if is_whole else fault


def _repeated_codes(fault: SuspectedFault, codes: list[str]) -> list[str]:
    """Those of the codes that a fault of the study names; without a layer it names its type
    anywhere.
    """
    if fault.fault in CODE_FAULTS:
        return []
    own = {f"{fault.fault}({layer})" for layer in fault.layers}
    return [x for x in codes if x in own or (not own and x[:3] == fault.fault)]


def _additional_finding(
    fault: SuspectedFault, codes: list[str], location: _Location
) -> Finding | None:
    """What a fault adds to these codes, in a model's words: without what the eye cannot see, and
    without credentials.
    """
    repeated_codes = _repeated_codes(fault, codes)
    layers = tuple(
        x for x in sorted(set(fault.layers)) if f"{fault.fault}({x})" not in repeated_codes
    )
    if repeated_codes and not layers:
        return None
    quote, change = _plain_text(fault.quote).replace("`", "'"), _plain_text(fault.change)
    evidence = [Measurement(name="quoted", value=f"`{quote}`")]
    if location.file and location.line:
        evidence.append(Measurement(name="in", value=f"{location.file}:{location.line}"))
    has_change = change or location.edit is not None
    return Finding(
        fault=fault.fault,
        layers=layers,
        rule="",
        confidence=0.0,
        message=_plain_text(fault.reason),
        evidence=tuple(evidence),
        change=Change(parameter="", words=change, edit=location.edit) if has_change else None,
        line=0 if location.file else location.line,
        by="model",
    )


def _plain_text(words: str) -> str:
    return one_line(redact(words))


def _program(program: TrainingProgram) -> str:
    """The program and the modules beside it, each in a fence."""
    names = sorted(name for name in program.files if name.endswith(".py"))
    ordered = sorted(names, key=lambda name: name != program.entry)
    blocks = list(_files(program, ordered[:_MOST_FILES]))
    if omitted_count := len(ordered) - len(blocks):
        blocks.append(load("opinion").fragment("cut_program", count=omitted_count))
    return "\n\n".join(blocks)


def _files(program: TrainingProgram, names: list[str]) -> Iterator[str]:
    remaining = _MOST_CHARACTERS
    for name in names:
        if remaining <= 0:
            return
        source = plain_text.readable(program.files[name].decode("utf-8", "replace"))
        excerpt = cut(_numbered(redact(source)), remaining)
        remaining -= len(excerpt)
        yield fence(f"file {name}", excerpt)


def _numbered(source: str) -> str:
    """A text with the number of each line before it."""
    rows = source.rstrip().split("\n")
    width = len(str(len(rows)))
    return "\n".join(f"{at:>{width}}| {row}" for at, row in enumerate(rows, 1))
