"""Faults of a training loop: gradients that are not reset or reset too soon, steps that are missing
or too rare, schedules, clipping and accumulation.

Sources: the classes of silent errors that TrainCheck collected, and public questions. Each rule
reads the order in which the calls came, and judges by the gradients that were there.
"""

from collections.abc import Iterator

from bot.kernel.training_code import (
    Clipping,
    CodeFault,
    OptimizerUse,
    ProgramCode,
    Schedule,
)
from bot.kernel.training_types import Measurement
from bot.training.diagnosis.rates import update_ratio
from bot.training.diagnosis.rule import (
    Rule,
    Sign,
    Signs,
    Training,
    change,
    evidence,
    in_line,
    number,
)

_MOST_STALE, _LEAST_LOOKS, _LEAST_GROWTH = 0.8, 3, 1.05
_RARE, _VERY_RARE = 3, 8
_LEAST_CLIP, _TOO_LOW, _TOO_SOON = 0.02, 0.01, 0.5
_LEAST_UPDATE = 1e-4
_NOTHING = 1e-9  # of the highest learning rate
_STILL_COLD = 0.5  # of the learning rate that the optimizer was given
_PLAIN = frozenset(("sgd", "asgd"))
_PER_EPOCH = frozenset(
    ("StepLR", "MultiStepLR", "ExponentialLR", "CosineAnnealingLR", "PolynomialLR", "LinearLR")
)
_PER_BATCH = frozenset(("OneCycleLR", "CyclicLR"))
_METHODS = frozenset(("step", "zero_grad", "backward", "self", "train", "eval"))


def code_sign(
    training: Training,
    fault: CodeFault,
    confidence: float,
    message: str,
    words: str,
    *,
    line: int = 0,
    measurements: tuple[Measurement, ...] = (),
    always: bool = False,
) -> Sign:
    """A fault of code; where the run learned what there was all the same, a habit, unless it
    `always` spoils what is measured. Its change is the repair's edit for it.
    """
    return Sign(
        fault,
        confidence,
        message,
        evidence=measurements,
        change=change(f"code({fault})", ("repaired",), words),
        habit=training.learning.well and not always,
        line=line,
    )


def receiver(code: ProgramCode, name: str, line: int, usual: str) -> str:
    """What a method is called on in a line: "opt" of `opt.step()`."""
    mention = next((x for x in code.mentions if (x.name, x.line) == (name, line)), None)
    names = [x for x in mention.names if x not in _METHODS] if mention else []
    if len(names) != 1:
        return usual
    return f"self.{names[0]}" if mention and "self" in mention.names else names[0]


def _uses(training: Training) -> Iterator[tuple[ProgramCode, OptimizerUse]]:
    if training.code is not None:
        for use in training.code.optimizers:
            yield training.code, use


def not_reset(training: Training) -> Signs:
    """Gradients of earlier steps are still there at every backward pass."""
    for code, use in _uses(training):
        looked = use.looked - 1  # the first step has none before it
        if looked < _LEAST_LOOKS - 1 or use.stale < _MOST_STALE * looked or use.name == "lbfgs":
            continue
        if use.growth is not None and use.growth < _LEAST_GROWTH:
            continue
        backward, reset = code.site("backward"), code.site("zero_grad")
        optimizer = receiver(code, "step", code.site("step").line, "optimizer")
        times = f", {number(use.growth)} times the new one" if use.growth else ""
        often = "never reset"
        if code.totals.get("zero_grad"):
            often = f"reset only {code.totals['zero_grad']} times{in_line(reset.line)}"
        text = (
            f"Gradients are {often} in {use.steps} steps, so that each step follows the sum of"
            f" earlier gradients{times}."
        )
        where = f"before line {backward.line}" if backward.line else "before `backward`"
        call = f"`{optimizer}.zero_grad()`"
        if use.name == "own":
            call = "`p.grad = None` for each parameter"
        yield code_sign(
            training, "gradients-not-reset", 0.95, text, f"Add {call} {where}.",
            line=backward.line,
            measurements=(
                evidence("steps with earlier gradients", f"{use.stale} of {use.looked} looked at"),
                *((evidence("gradient over the new one", use.growth, 1),) if use.growth else ()),
            ),
        )  # fmt: skip
        return


def reset_too_soon(training: Training) -> Signs:
    """Gradients are erased between backward and step."""
    for code, use in _uses(training):
        if use.looked < _LEAST_LOOKS - 1 or use.erased < _MOST_STALE * use.looked:
            continue
        backward, reset = code.site("backward"), code.site("zero_grad")
        optimizer = receiver(code, "zero_grad", reset.line, "optimizer")
        text = (
            f"Gradients are erased before the step: `zero_grad`{in_line(reset.line)} comes after"
            f" `backward`{in_line(backward.line)}, so no step changes anything."
        )
        words = f"Move `{optimizer}.zero_grad()` before `backward`{in_line(backward.line)}."
        yield code_sign(
            training, "reset-after-backward", 0.97, text, words, line=reset.line,
            measurements=(evidence("steps without gradients", f"{use.erased} of {use.looked}"),),
        )  # fmt: skip
        return


def never_stepped(training: Training) -> Signs:
    """Backward passes, and no step of an optimizer."""
    code = training.code
    if code is None or code.totals.get("step") or code.totals.get("backward", 0) < _LEAST_LOOKS - 1:
        return
    if any(x.changed for x in code.parameters) or not code.optimizers:
        return  # the program makes its updates itself
    backward = code.site("backward")
    text = (
        f"No optimizer ever takes a step: `backward` ran {code.totals['backward']} times, and no"
        " parameter changed."
    )
    words = f"Add `optimizer.step()` after `backward`{in_line(backward.line)}."
    yield code_sign(training, "step-never-called", 0.97, text, words, line=backward.line)


def stepped_rarely(training: Training) -> Signs:
    """The optimizer steps in an outer loop, backward runs in an inner one."""
    code = training.code
    if code is None:
        return
    step, backward = code.site("step"), code.site("backward")
    steps, backwards = code.totals.get("step", 0), code.totals.get("backward", 0)
    outside = len(step.loops) < len(backward.loops) and backward.loops[: len(step.loops)] == (
        step.loops
    )
    if not steps or not outside or backwards < _RARE * steps:
        return
    inner_reset = code.site("zero_grad").loops == backward.loops
    if inner_reset and _accumulates(code):
        return  # it is the reset that stands in the wrong loop
    if not inner_reset and (backwards < _VERY_RARE * steps or _accumulates(code)):
        return  # parts of one batch, whose gradients are accumulated
    optimizer = receiver(code, "step", step.line, "optimizer")
    inner = int(backward.loops[-1].rpartition(":")[2])
    text = (
        f"The optimizer steps once for every {backwards // steps} backward passes: `step`"
        f"{in_line(step.line)} is outside the loop{in_line(inner)}."
    )
    words = f"Move `{optimizer}.step()` into the loop, after `backward`{in_line(backward.line)}."
    yield code_sign(
        training, "per-epoch-step", 0.96 if inner_reset else 0.9, text, words, line=step.line,
        measurements=(evidence("steps", steps), evidence("backward passes", backwards)),
    )  # fmt: skip


def reset_within(training: Training) -> Signs:
    """Gradients that are reset before each part of a batch, so that only the last part counts."""
    code = training.code
    if code is None or not _accumulates(code):
        return
    resets, backwards, steps = (code.sites(x) for x in ("zero_grad", "backward", "step"))
    if not len(resets) == len(backwards) == len(steps) == 1:
        return  # several losses may be summed, or several models be reset
    updates, passes = code.totals.get("step", 0), code.totals.get("backward", 0)
    if resets[0].loops != backwards[0].loops or code.totals.get("zero_grad", 0) < passes:
        return
    if not updates or passes < 2 * updates:
        return
    line, parts = resets[0].line, round(passes / updates)
    text = (
        f"Gradients are reset before each of the {parts} parts that a step is made of: `zero_grad`"
        f"{in_line(line)} leaves only those of the last part."
    )
    optimizer = receiver(code, "zero_grad", line, "optimizer")
    words = f"Call `{optimizer}.zero_grad()` once for each step{in_line(steps[0].line)}."
    yield code_sign(
        training, "accumulation-wrong", 0.95, text, words, line=line,
        measurements=(evidence("backward passes", passes), evidence("steps", updates)),
    )  # fmt: skip


def _accumulates(code: ProgramCode) -> bool:
    """Whether most losses are divided before their backward pass, as parts of a batch are."""
    looks, divided = code.facts.get("looks"), code.facts.get("divided")
    if not isinstance(looks, int) or not isinstance(divided, int):
        return False
    return looks > 0 and divided >= _MOST_STALE * looks


def never_backward(training: Training) -> Signs:
    """Steps without a backward pass."""
    for code, use in _uses(training):
        if code.totals.get("backward") or use.looked < _LEAST_LOOKS - 1 or use.reached:
            continue
        if use.empty < use.looked:
            continue
        step = code.site("step")
        text = f"`backward` is never called, so the {use.steps} steps have no gradients to follow."
        words = f"Add `loss.backward()` before `step`{in_line(step.line)}."
        yield code_sign(training, "backward-never-called", 0.96, text, words, line=step.line)
        return


def schedule(training: Training) -> Signs:
    """A scheduler that is stepped at each batch for each epoch, or the other way round, or that
    leaves nothing of the learning rate.
    """
    code = training.code
    if code is None:
        return
    for one in code.schedules:
        sign = (
            _too_fast(training, code, one)
            or _too_slow(training, code, one)
            or _never_warm(training, code, one)
            or _to_nothing(training, one)
            or _of_another(training, code, one)
        )
        if sign is not None:
            yield sign
            return


def _too_fast(training: Training, code: ProgramCode, one: Schedule) -> Sign | None:
    rates = [step.rate for step in training.steps if step.rate is not None]
    steps = code.totals.get("step", 0)
    site = code.site("schedule")
    epochs = training.plan.epochs if training.plan else None
    if one.name not in _PER_EPOCH or not rates or one.steps < _MOST_STALE * steps:
        return None
    if not epochs or steps < _RARE * epochs or len(site.loops) < 2:
        return None
    low = [at for at, rate in enumerate(rates) if rate <= _TOO_LOW * max(rates)]
    if not low or low[0] > _TOO_SOON * len(rates):
        return None
    text = (
        f"`{one.name}` is stepped at each of {one.steps} batches instead of each of {epochs} epochs"
        f"{in_line(site.line)}: after step {low[0]} the learning rate is almost zero."
    )
    name = receiver(code, "step", site.line, "scheduler")
    words = f"Move `{name}.step()` out of the loop over batches, to the end of each epoch."
    return code_sign(
        training, "schedule-stepped-wrong", 0.93, text, words, line=site.line,
        measurements=(evidence("learning rate", f"{number(rates[0])} to {number(min(rates))}"),),
    )  # fmt: skip


def _too_slow(training: Training, code: ProgramCode, one: Schedule) -> Sign | None:
    total, steps = one.settings.get("total_steps"), code.totals.get("step", 0)
    site = code.site("schedule")
    if one.name not in _PER_BATCH or not isinstance(total, int | float) or not one.steps:
        return None
    if total < _RARE * one.steps or steps < _RARE * one.steps:
        return None
    name = receiver(code, "step", site.line, "scheduler")
    text = (
        f"`{one.name}` is made for {number(total)} steps, but is stepped {one.steps} times"
        f"{in_line(site.line)}: the learning rate hardly leaves its start."
    )
    words = f"Move `{name}.step()` into the loop over batches, after `step` of the optimizer."
    return code_sign(training, "schedule-stepped-wrong", 0.93, text, words, line=site.line)


def _never_warm(training: Training, code: ProgramCode, one: Schedule) -> Sign | None:
    """A warm-up of as many steps as the optimizer takes, of which the scheduler takes one for each
    epoch: the run ends before the learning rate is what it was set to.
    """
    rates = [step.rate for step in training.steps if step.rate is not None]
    full = training.optimizer.settings.get("lr") if training.optimizer else None
    if not isinstance(full, int | float) or not rates or not one.steps:
        return None
    if code.totals.get("step", 0) < _RARE * one.steps or rates != sorted(rates):
        return None
    if not rates[0] < rates[-1] <= _STILL_COLD * full:
        return None
    site = code.site("schedule")
    name = receiver(code, "step", site.line, "scheduler")
    text = (
        f"`{one.name}`{in_line(one.line)} is stepped {one.steps} times and is still warming up "
        f"at the end: the learning rate ends at {number(rates[-1])} of {number(full)}."
    )
    words = f"Move `{name}.step()` into the loop over batches, after `step` of the optimizer."
    return code_sign(training, "schedule-stepped-wrong", 0.9, text, words, line=site.line)


def _to_nothing(training: Training, one: Schedule) -> Sign | None:
    """A rate of zero from before the middle of the run to its end: what follows changes nothing."""
    rates = {step.step: step.rate for step in training.steps if step.rate is not None}
    nothing = _NOTHING * max(rates.values(), default=0.0)
    last = max((step for step, rate in rates.items() if rate > nothing), default=-1)
    idle = [step for step in training.steps if step.step > last]
    if not one.steps or last < 0 or len(idle) < _LEAST_LOOKS:
        return None
    if any(row.update_ratio for step in idle for row in step.weights):
        return None  # the rate of other parameters is not zero
    first = idle[0].step
    if first > _TOO_SOON * training.updates:
        return None
    text = (
        f"`{one.name}`{in_line(one.line)} takes the learning rate to zero at step {first} of"
        f" {training.updates}: nothing is learned from there on."
    )
    words = f"Let `{one.name}`{in_line(one.line)} lower the rate more slowly, and not to zero."
    return code_sign(
        training, "schedule-stepped-wrong", 0.93, text, words, line=one.line, always=True,
        measurements=(evidence("learning rate", f"{number(max(rates.values()))} to 0"),),
    )  # fmt: skip


def _of_another(training: Training, code: ProgramCode, one: Schedule) -> Sign | None:
    """A scheduler of an optimizer that never steps, while the rate of the one that does stays."""
    rates = {step.rate for step in training.steps if step.rate is not None}
    if one.optimizer_steps != 0 or one.steps < _LEAST_LOOKS or len(rates) != 1:
        return None
    if code.totals.get("step", 0) < _LEAST_LOOKS:
        return None
    text = (
        f"`{one.name}`{in_line(one.line)} schedules an optimizer that never steps: the learning"
        f" rate of the one that does stays {number(rates.pop())}, though `step` was called"
        f" {one.steps} times."
    )
    words = f"Make the scheduler for the optimizer that is stepped{in_line(one.line)}."
    return code_sign(training, "schedule-stepped-wrong", 0.9, text, words, line=one.line)


def clipped(training: Training) -> Signs:
    """Gradients clipped far below their size, under an optimizer that does not scale them back."""
    code = training.code
    if code is None or not (_follows_size(code) or _hardly_moves(training)):
        return
    for one in code.clippings:
        if one.median and one.kind == "norm" and one.limit < _LEAST_CLIP * one.median:
            yield _clip_sign(training, one)
            return


def _follows_size(code: ProgramCode) -> bool:
    """Whether an optimizer's steps are as long as the gradients; adaptive ones scale them back."""
    return any(x.name in _PLAIN and x.steps for x in code.optimizers)


def _hardly_moves(training: Training) -> bool:
    """Whether an adaptive optimizer does not make up for it: its epsilon is larger still."""
    ratio = update_ratio(training)
    return training.learning.poor and ratio is not None and ratio < _LEAST_UPDATE


def _clip_sign(training: Training, one: Clipping) -> Sign:
    text = (
        f"Gradients are clipped to {number(one.limit)}{in_line(one.line)}, far below their usual"
        f" norm of {number(one.median or 0)}: steps are {number((one.median or 0) / one.limit)}"
        " times too small."
    )
    words = f"Clip at about {number(one.median or 1)}, or not at all."
    return code_sign(
        training, "clipping-kills", 0.85, text, words, line=one.line,
        measurements=(evidence("gradient norm", one.median or 0, one.limit),),
    )  # fmt: skip


_SOURCE = "public questions; TrainCheck"
RULES: tuple[Rule, ...] = (
    Rule("gradients-not-reset", "code", ("gradients-not-reset",), _SOURCE,
         "Gradients are not reset between steps.", not_reset),
    Rule("reset-after-backward", "code", ("reset-after-backward",), _SOURCE,
         "Gradients are reset between backward and step.", reset_too_soon),
    Rule("step-never-called", "code", ("step-never-called",), _SOURCE,
         "Backward passes without a step of the optimizer.", never_stepped),
    Rule("per-epoch-step", "code", ("per-epoch-step",), _SOURCE,
         "The optimizer steps once per epoch instead of once per batch.", stepped_rarely),
    Rule("accumulation-wrong", "code", ("accumulation-wrong",), _SOURCE,
         "Gradients that are accumulated are reset before each part.", reset_within),
    Rule("backward-never-called", "code", ("backward-never-called",), _SOURCE,
         "Steps of the optimizer without a backward pass.", never_backward),
    Rule("schedule-stepped-wrong", "code", ("schedule-stepped-wrong",), _SOURCE,
         "A scheduler is stepped per batch instead of per epoch or the other way round, or ends the"
         " training early.",
         schedule),
    Rule("clipping-kills", "code", ("clipping-kills",), _SOURCE,
         "Gradients are clipped far below their size.", clipped),
)  # fmt: skip
