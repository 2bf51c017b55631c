"""What a prompt shows of a training run: what the rules say, the configuration as it was in the
run, and some lines of its trace. All of it is fenced: the program can have forged any name in it.
"""

from collections.abc import Iterable, Iterator, Sequence
from statistics import median

from bot.models.diagnosis import Diagnosis, Finding, Measurement
from bot.models.training import Data, Layer, Loss, Plan, Summary, TrainingStep, TrainingTrace
from bot.rules.diagnosis.rule import number
from bot.rules.diagnosis.training import Training, trainings
from bot.text.sanitize import one_line, redact
from prompts import fence, load

_MODELS, _LAYERS, _STEPS, _EPOCHS, _UNSEEN, _ROW = 2, 40, 14, 6, 4, 600
_UNKNOWN = "?"


def rules(diagnosis: Diagnosis) -> str:
    """The findings of the rules, and what could not be seen."""
    rows = [_finding(at, each) for at, each in enumerate(diagnosis.findings, 1)]
    rows = rows or [_say("no_finding")]
    rows += [_say("could_not_see", what=what) for what in diagnosis.unseen[:_UNSEEN]]
    return _fenced("rules", rows)


def configuration(trace: TrainingTrace) -> str:
    """Models with their layers, losses, optimisers, plans and data."""
    runs = trainings(trace)[:_MODELS]
    rows = [row for at, run in enumerate(runs, 1) for row in _configured(at, run)]
    return _fenced("configuration", rows)


def lines(trace: TrainingTrace) -> str:
    """How each model learned, about twenty lines in all: steps from first to last, and the last
    epochs.
    """
    rows = [_learned(run) for run in trainings(trace)[:_MODELS]]
    sampled = [step for step in trace.steps if step.weights or step.activations]
    rows += [_step(step) for step in spread(sampled or trace.steps, _STEPS)]
    for epoch in trace.epochs[-_EPOCHS:]:
        values = (f"{name} {_number(value)}" for name, value in epoch.values.items())
        rows.append(_say("epoch_row", epoch=epoch.epoch, values=", ".join(values)))
    return _fenced("trace", rows)


def spread(steps: Sequence[TrainingStep], most: int) -> list[TrainingStep]:
    """At most so many steps, the first and the last among them."""
    if len(steps) <= most:
        return list(steps)
    return [steps[at * (len(steps) - 1) // (most - 1)] for at in range(most)]


def _finding(at: int, finding: Finding) -> str:
    numbers = "; ".join(map(_measured, finding.evidence))
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


def _measured(seen: Measurement) -> str:
    limit = _say("limit", limit=seen.limit) if seen.limit else ""
    return " ".join(filter(None, (_say("measured", name=seen.name, value=seen.value), limit)))


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
    told = list(layer.settings.items())[:4]
    details += [_say("setting", name=name, value=value) for name, value in told]
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
    counted = (plan.batch_size, plan.samples, plan.epochs, plan.steps_per_epoch)
    batch, samples, epochs, steps = (_UNKNOWN if x is None else x for x in counted)
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


def _tensor(seen: Summary) -> str:
    low, high, mean, std = map(_number, (seen.minimum, seen.maximum, seen.mean, seen.std))
    told = {"shape": _shape(seen), "dtype": seen.dtype, "low": low, "high": high}
    details = [_say("tensor", **told, mean=mean, std=std)]
    details += [_say("distinct", count=seen.distinct)] if seen.distinct is not None else []
    details += [_say("invalid", share=f"{seen.finite:.2%}")] if seen.finite < 1 else []
    return ", ".join(details)


def _learned(run: Training) -> str:
    told = run.learning
    return _say(
        "learned_row",
        steps=run.updates,
        start=_number(told.start),
        end=_number(told.end),
        health=told.health,
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


def _shape(seen: Summary) -> str:
    return "x".join(map(str, seen.shape))


def _number(value: float | None) -> str:
    return _UNKNOWN if value is None else number(value)


def _say(fragment: str, /, **values: object) -> str:
    return load("opinion").fragment(fragment, **values)


def _fenced(what: str, rows: Iterable[str]) -> str:
    return fence(what, "\n".join(one_line(redact(row))[:_ROW] for row in rows))
