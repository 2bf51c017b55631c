"""Faults of modes: training in evaluation mode, evaluating in training mode, and dropout that does
not know the difference.
"""

from bot.kernel.training_code import Mention, ModeUse, ProgramCode
from bot.training.diagnosis.code_loop import code_sign, receiver
from bot.training.diagnosis.rule import Rule, Signs, Training, evidence, in_line

_LEAST_LOOKS, _HALF = 2, 0.5
_MOST_INTERVALS, _SOME = 1 / 3, 3
_PLACE, _LATE = 2, 0.9


def evaluating(training: Training) -> Signs:
    """Layers that should act in training do not."""
    code = training.code
    mode = next(iter(code.modes), None) if code else None
    if code is None or mode is None or mode.evaluating < _LEAST_LOOKS or mode.restored:
        return
    looked = mode.evaluating + mode.training
    if mode.evaluating < _HALF * looked and not mode.first:
        return
    site = next(iter(code.sites("eval")), None)
    line = site.line if site else 0
    model = receiver(code, "eval", line, "model")
    since = f"from step {mode.first} on" if mode.first else "from the first step on"
    acts = "do" if len(mode.layers) > 1 else "does"
    text = (
        f"The model trains in evaluation mode {since}: {_layers(mode)} {acts} not act as in"
        f" training{_after(line)}."
    )
    loops = code.site("backward").loops
    where = f"at the start of the loop in line {loops[0].split(':')[-1]}" if loops else "before it"
    words = f"Call `{model}.train()` {where}."
    if training.model.framework == "keras":
        words = "Pass `training=True` where the training step calls the model."
    yield code_sign(
        training, "eval-while-training", 0.9, text, words, line=line, always=True,
        measurements=(evidence("steps in evaluation mode", f"{mode.evaluating} of {looked}"),),
    )  # fmt: skip


def _after(line: int) -> str:
    return f" after `eval()` in line {line}" if line else ""


def _layers(mode: ModeUse) -> str:
    names = {"Dropout": "dropout", "BatchNorm": "batch normalization"}
    return " and ".join(names.get(x, x) for x in mode.layers) or "a layer"


def training_mode(training: Training) -> Signs:
    """Evaluations while dropout acts and batch norm uses the batch."""
    code = training.code
    mode = next(iter(code.modes), None) if code else None
    if code is None or mode is None or not mode.judged_training or training.in_turns:
        return
    if _is_part_of_training(training, code, mode):
        return
    acts = "act" if len(mode.layers) > 1 else "acts"
    text = (
        f"Evaluations run in training mode{in_line(mode.line)}: {_layers(mode)} {acts} as in"
        " training, so results vary and are too low."
    )
    words = f"Call `model.eval()` before line {mode.line}, and `model.train()` after it."
    yield code_sign(
        training, "train-while-evaluating", 0.88, text, words, line=mode.line, always=True,
        measurements=(
            evidence(
                "evaluations in training mode", f"{mode.judged_training} of {mode.judged}"
            ),
        ),
    )  # fmt: skip


def _is_part_of_training(training: Training, code: ProgramCode, mode: ModeUse) -> bool:
    """Whether passes without gradients are a part of most steps, as a teacher's are, or renew the
    statistics of norms.
    """
    many = mode.judged_intervals > max(_SOME, _MOST_INTERVALS * training.updates)
    return many or any(x.name == "update_bn" for x in code.mentions)


def dropping(training: Training) -> Signs:
    """Functional dropout that also acts in evaluation mode."""
    code = training.code
    for site in code.dropped_out if code else ():
        text = (
            f"Dropout{in_line(site.line)} also acts in evaluation mode, so that evaluations are"
            " random."
        )
        words = f"Pass `training=self.training`{in_line(site.line)}."
        yield code_sign(
            training, "dropout-in-evaluation", 0.92, text, words, line=site.line, always=True,
            measurements=(evidence("calls in evaluation mode", site.calls),),
        )  # fmt: skip
        return


def uncopied(training: Training) -> Signs:
    """A best state that is the model's own tensors: it changes with every further step."""
    code = training.code
    alias = code.integer("kept_alias") if code else 0
    if code is not None and alias and "restored_line" not in code.facts:
        text = (
            f"Line {alias} keeps the best model under a second name, and no copy of it: it goes on"
            " to be trained, so what is judged later is the last model, not the best."
        )
        words = f"Keep a copy: `copy.deepcopy(…)`, in line {alias}."
        yield code_sign(training, "best-not-copied", 0.93, text, words, line=alias, always=True)
    if code is None or "restored_line" not in code.facts:
        return
    restored = code.integer("restored_line")
    mention = next((x for x in code.mentions if _keeps_state(x)), None)
    line = mention.line if mention else restored
    text = (
        f"`load_state_dict`{in_line(restored)} gives the model the very tensors that it has:"
        f" `state_dict()`{in_line(line)} is no copy, so the best weights are lost and the last"
        " ones are judged."
    )
    words = f"Keep a copy: `copy.deepcopy(model.state_dict())`{in_line(line)}."
    yield code_sign(training, "best-not-copied", 0.95, text, words, line=line, always=True)


def incomplete_state(training: Training) -> Signs:
    """A state that is loaded without `strict`, and lacks everything, or, for a model that is not
    trained afterwards, the averages of its normalizations.
    """
    code = training.code
    line = code.integer("gap_all") if code else 0
    if code is not None and line:
        text = (
            f"`load_state_dict`{in_line(line)} loads nothing: no name in the state matches one in"
            " the model, and `strict=False` hides it. The model keeps its random weights."
        )
        words = f"Make the names match (often a prefix), and load with `strict=True`{in_line(line)}"
        yield code_sign(
            training, "state-incomplete", 0.95, text, f"{words}.", line=line, always=True
        )
        return
    averages = code.facts.get("gap_averages") if code else None
    if code is None or not isinstance(averages, tuple) or len(averages) != _PLACE:
        return
    line, step = code.integer("gap_averages"), averages[1]
    if step < _LATE * code.totals.get("step", 0) or not step:
        return  # the averages settle while it is trained further
    text = (
        f"The state that `load_state_dict`{in_line(line)} loads lacks the running averages of batch"
        " normalization: `strict=False` hides it, and the model is evaluated with the initial ones."
    )
    words = "Save `model.state_dict()`, which has buffers beside the parameters."
    yield code_sign(training, "state-incomplete", 0.95, text, words, line=line, always=True)


def _keeps_state(mention: Mention) -> bool:
    """Whether a statement keeps what `state_dict` returns, as it is."""
    elsewhere = {"deepcopy", "clone", "save", "load_state_dict"}
    return mention.name == "state_dict" and not elsewhere & set(mention.names)


_SOURCE = "public questions; TrainCheck"
RULES: tuple[Rule, ...] = (
    Rule("eval-while-training", "code", ("eval-while-training",), _SOURCE,
         "Training in evaluation mode.", evaluating),
    Rule("train-while-evaluating", "code", ("train-while-evaluating",), _SOURCE,
         "Evaluation in training mode, with layers that act otherwise there.", training_mode),
    Rule("dropout-in-evaluation", "code", ("dropout-in-evaluation",), _SOURCE,
         "Functional dropout that also acts in evaluation mode.", dropping),
    Rule("best-not-copied", "code", ("best-not-copied",), "public questions",
         "A best state that is put back and was never a copy.", uncopied),
    Rule("state-incomplete", "code", ("state-incomplete",), "public questions",
         "A loaded state that lacks weights or averages.", incomplete_state),
)  # fmt: skip
