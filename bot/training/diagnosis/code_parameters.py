"""Faults that keep parameters from learning: the optimizer holds others, a module does not register
its own, they are frozen, or the graph is cut before it reaches them.
"""

from collections.abc import Sequence

from bot.kernel.training_code import Mention, OptimizerUse, ParameterUse, ProgramCode, Unregistered
from bot.training.diagnosis.code_loop import code_sign
from bot.training.diagnosis.learning import BINARY, ENTROPIES
from bot.training.diagnosis.loss_contract import DISTANCES
from bot.training.diagnosis.rule import Rule, Sign, Signs, Training, evidence, in_line

_LEAST_LOOKS, _MOST_NAMES, _LEAST_IDLE = 2, 4, 5
_LEAST_SHARE, _UPHILL = 0.1, 0.9
_LAYERS = frozenset(
    ("Linear", "Conv1d", "Conv2d", "Conv3d", "LSTM", "GRU", "RNN", "Embedding", "Bilinear",
     "ConvTranspose2d", "MultiheadAttention", "Dense", "Conv", "Embed")
)  # fmt: skip
_CUTS = (
    "detach",
    "data",
    "numpy",
    "from_numpy",
    "tensor",
    "item",
    "tolist",
    "argmax",
    "round",
    "stop_gradient",
)
_LEAVES = ("requires_grad", "requires_grad_", "tensor")


def unregistered(training: Training) -> Signs:
    """Modules or tensors in a plain attribute: `parameters()` does not have them."""
    code = training.code
    for one in code.unregistered if code else ():
        if not one.optimized:
            yield _unregistered(training, one)


def _unregistered(training: Training, one: Unregistered) -> Sign:
    what = f"`self.{one.attribute}` of `{one.owner}`"
    if one.kind == "tensor":
        text = f"{what} is a plain tensor, so `parameters()` lacks it and it never learns."
        words = f"Wrap it in `nn.Parameter(...)`{in_line(one.line)}."
    else:
        container = "nn.ModuleDict" if one.kind == "dict" else "nn.ModuleList"
        text = (
            f"{what} is a plain {one.kind}, so `parameters()` lacks its {one.count} modules and"
            " they never learn."
        )
        words = f"Wrap it in `{container}(...)`{in_line(one.line)}."
    return code_sign(training, "not-registered", 0.97, text, words, line=one.line)


def other_parameters(training: Training) -> Signs:
    """The optimizer holds parameters that get no gradient, and those that do are in none."""
    code = training.code
    if code is not None and "applied_to_others" in code.facts:
        yield _applied_to_others(training, code)
        return
    if code is None or any(not x.optimized for x in code.unregistered):
        return
    left_out = [
        x
        for x in code.parameters
        if x.trainable and x.fed and not x.optimizers and not x.changed and x.looked >= _LEAST_LOOKS
    ]
    if not left_out or not code.totals.get("step"):
        return
    blind = next((x for x in code.optimizers if x.steps and x.held and not x.reached), None)
    if blind is not None:
        yield _blind(training, blind, left_out)
    elif any(x.restored for x in left_out):
        return
    elif _share(left_out, code) >= _LEAST_SHARE or _are_of_a_loss(left_out, code):
        yield _incomplete(training, code, left_out)


def _are_of_a_loss(some: Sequence[ParameterUse], code: ProgramCode) -> bool:
    """Whether parameters stand beside the model, in a module of the program's own that holds them
    itself, as the centers of a loss: it has no other, and the optimizer none of it.
    """
    optimized_roots = {x.root for x in code.parameters if x.optimizers}
    own = (x for x in some if "." not in x.name and x.module not in _LAYERS)
    return (
        bool(optimized_roots)
        and all(x.root not in optimized_roots for x in some)
        and len([*own]) == len(some)
    )


def _applied_to_others(training: Training, code: ProgramCode) -> Sign:
    line = code.integer("applied_to_others")
    text = (
        f"The optimizer{in_line(line)} is given the gradients of one model and the variables of"
        " another."
    )
    words = f"Pass the variables that the gradients were computed for{in_line(line)}."
    return code_sign(training, "optimizer-holds-others", 0.97, text, words, line=line, always=True)


def _blind(training: Training, use: OptimizerUse, left_out: Sequence[ParameterUse]) -> Sign:
    text = (
        f"The optimizer{in_line(use.line)} holds {use.held} parameters, and none of them ever gets"
        f" a gradient; the {len(left_out)} of the model that is trained are in no optimizer."
    )
    words = "Make the optimizer after the model that it trains, with `model.parameters()` of that."
    return code_sign(
        training, "optimizer-holds-others", 0.97, text, words, line=use.line,
        measurements=(evidence("parameters with gradients in it", "0", str(use.held)),),
    )  # fmt: skip


def _incomplete(training: Training, code: ProgramCode, left_out: Sequence[ParameterUse]) -> Sign:
    optimizer = next((x for x in code.optimizers if x.steps), OptimizerUse())
    share = _share(left_out, code)
    text = (
        f"{_name_parameters(left_out)} get gradients but are in no optimizer, so they never change"
        f" ({share:.0%} of the weights)."
    )
    words = f"Pass all parameters of the model to the optimizer{in_line(optimizer.line)}."
    return code_sign(training, "optimizer-holds-others", 0.88, text, words, line=optimizer.line)


def _share(some: Sequence[ParameterUse], code: ProgramCode) -> float:
    whole = sum(x.size for x in code.parameters) or 1
    return sum(x.size for x in some) / whole


def _name_parameters(some: Sequence[ParameterUse]) -> str:
    names = [f"`{x.name}`" for x in some[:_MOST_NAMES]]
    more = len(some) - len(names)
    return ", ".join(names) + (f" and {more} more parameters" if more else "")


def frozen(training: Training) -> Signs:
    """Layers that start at random and cannot change."""
    code = training.code
    if code is None:
        return
    if code.facts.get("frozen_model"):
        yield _frozen_model(training, code)
        return
    stuck = [
        x
        for x in code.parameters
        if not x.trainable and x.ran and not x.restored and x.module in _LAYERS and not x.changed
    ]
    # Other roots than those are a target or a measure.
    learning_roots = {x.root for x in code.parameters if x.trainable and x.optimizers}
    trained = {(x.name, x.size) for x in code.parameters if x.changed}  # they may be copied
    stuck = [x for x in stuck if x.root in learning_roots and (x.name, x.size) not in trained]
    if not stuck or _share(stuck, code) < _LEAST_SHARE:
        return
    line = _line_of(code.mentions, ("requires_grad", "requires_grad_"))
    text = (
        f"{_name_parameters(stuck)} are frozen at their random start values"
        f" ({_share(stuck, code):.0%} of the weights)."
    )
    words = f"Let them learn: leave out `requires_grad = False`{in_line(line)}."
    yield code_sign(training, "parameters-frozen", 0.85, text, words, line=line)


def _frozen_model(training: Training, code: ProgramCode) -> Sign:
    line = code.integer("frozen_line")
    text = (
        "The model that is trained has no trainable weights, so its steps change nothing:"
        f" `trainable = False`{in_line(line)} still holds."
    )
    words = "Set `trainable = True` before that model is trained, and `False` again after it."
    return code_sign(training, "parameters-frozen", 0.93, text, words, line=line, always=True)


def cut(training: Training) -> Signs:
    """Parameters that no loss leads back to, although their layers ran."""
    code = training.code
    if code is None or not code.totals.get("backward"):
        return
    if any(x.erased and 2 * x.erased >= x.looked for x in code.optimizers):
        return  # what was reset before the step is missing, too
    ran = [
        x
        for x in code.parameters
        if x.trainable
        and (x.ran or _is_blind(x))
        and x.looked >= _LEAST_LOOKS
        and x.module in _LAYERS
    ]
    unreached = [x for x in ran if not x.fed and not x.in_graph]
    yield from _still_term(training, code)
    if not unreached:
        yield from _idle_term(training, code)
        return
    if not any(x.fed or x.in_graph for x in ran):
        yield _all_cut(training, code)
    elif (mention := _cut_mention(code, unreached)) is not None and not unreached[0].restored:
        text = (
            f"No gradient reaches {_name_parameters(unreached)}: `{mention.name}` in line"
            f" {mention.line} cuts the graph between them and the loss."
        )
        words = f"Remove `{mention.name}` from line {mention.line}."
        yield code_sign(
            training, "graph-cut", 0.9, text, words, line=mention.line,
            measurements=(evidence("layers without gradient", str(len(unreached)), str(len(ran))),),
        )  # fmt: skip


def _still_term(training: Training, code: ProgramCode) -> Signs:
    """A term of a loss that has no gradient whatever the weights are."""
    line, place = code.integer("still_line"), code.integer("still_cut")
    if not line:
        return
    text = (
        f"The loss in line {line} has a term without a gradient: line {place} cuts it off from the"
        " weights, so it is added for nothing."
    )
    words = f"Compute the term from probabilities or outputs, without what line {place} does."
    yield code_sign(training, "graph-cut", 0.88, text, words, line=place, always=True)


def _idle_term(training: Training, code: ProgramCode) -> Signs:
    """A term of a loss that leads to nothing that the step after it changes, each time."""
    times, line = code.integer("idle_terms"), code.integer("idle_line")
    if times < _LEAST_IDLE:
        return
    before = [
        x for x in code.mentions if x.name in _CUTS[:5] and x.line < line
        and x.function == _function_of(code, line)
    ]  # fmt: skip
    cut_line = max((x.line for x in before), default=0)
    text = (
        f"A term of the loss that is differentiated in line {line} leads to no parameter that the"
        " next step changes, so it has no effect."
    )
    what = f"`{next(x.name for x in before if x.line == cut_line)}`" if before else "what cuts it"
    words = f"Compute the term without {what}{in_line(cut_line)}."
    yield code_sign(
        training, "graph-cut", 0.88, text, words, line=cut_line or line, always=True,
        measurements=(evidence("steps without an effect of it", times),),
    )  # fmt: skip


def _is_blind(use: ParameterUse) -> bool:
    """Whether its layer runs at most steps, each time without gradients, for an optimizer that is
    to change it.
    """
    return bool(use.optimizers) and not use.changed and 2 * use.ungraded > use.looked


def _all_cut(training: Training, code: ProgramCode) -> Sign:
    mention = _mention(code.mentions, _LEAVES) or _cut_mention(code, [])
    line = mention.line if mention else code.site("backward").line
    text = (
        "No gradient reaches any parameter: the loss that is differentiated is cut from the model."
    )
    what = f"`{mention.name}`{in_line(line)}" if mention else "what detaches it"
    words = f"Compute the loss from the model's outputs themselves, without {what}."
    return code_sign(training, "graph-cut", 0.96, text, words, line=line)


def _cut_mention(code: ProgramCode, unreached: Sequence[ParameterUse]) -> Mention | None:
    """What cuts the graph: first where it stands beside the name of a layer that gets no gradient,
    then in a forward pass, then before the loss.
    """
    parts = {part for x in unreached for part in x.name.split(".")[:-1]}
    without_gradients = ("no_grad", "inference_mode", "set_grad_enabled")
    beside = [x for x in code.mentions if x.name in (*_CUTS, *without_gradients)]
    backward = code.site("backward").line
    beside_layers = [x for x in beside if parts & set(x.names)]
    inside = [x for x in beside if x.function.startswith(("forward", "encode", "embed"))]
    before = [
        x
        for x in beside
        if x.name in _CUTS[:5] and x.function == _function_of(code, backward) and x.line < backward
    ]
    stops = [x for x in beside if x.name == "stop_gradient"]  # JAX: a cut wherever it stands
    return next(iter([*beside_layers, *inside, *before, *stops]), None)


def _function_of(code: ProgramCode, line: int) -> str:
    return next((x.function for x in code.mentions if x.line == line), "")


def _mention(mentions: Sequence[Mention], names: Sequence[str]) -> Mention | None:
    return next((x for name in names for x in mentions if x.name == name), None)


def _line_of(mentions: Sequence[Mention], names: Sequence[str]) -> int:
    mention = _mention(mentions, names)
    return mention.line if mention else 0


def lost_updates(training: Training) -> Signs:
    """Gradients and steps, but weights that stay what they are."""
    code = training.code
    if code is not None and training.model.framework == "jax":
        yield from _dropped_updates(training, code)
        return
    if code is not None:
        yield from copied_updates(training, code)
    if code is None or not training.rate or any(x.erased for x in code.optimizers):
        return
    for layer in training.learners:
        rows = [x for x in training.changed.get(layer.index, ()) if x.role == "kernel"]
        if len(rows) > _LEAST_LOOKS and all(x.update_ratio == 0 and x.norm for x in rows):
            text = f"Layer {layer.index} gets gradients and steps, but its weights never change."
            words = "Update the weights in place instead of a copy of them."
            yield code_sign(training, "update-lost", 0.8, text, words)
            return


def repeated(training: Training) -> Signs:
    """A container that holds one layer several times, in a run that learned little."""
    code = training.code
    times = code.facts.get("repeated_times") if code else None
    if code is None or not isinstance(times, int) or not training.learning.poor:
        return
    line = code.facts.get("repeated_line")
    line = line if isinstance(line, int) else 0
    text = (
        f"One and the same `{code.facts.get('repeated_layer')}` stands {times} times in a"
        f" container{in_line(line)}: there is one set of weights, not {times}."
    )
    words = f"Make each layer anew{in_line(line)}: `[make() for _ in range(n)]`, not `[layer] * n`."
    yield code_sign(training, "layer-repeated", 0.82, text, words, line=line)


def copied_updates(training: Training, code: ProgramCode) -> Signs:
    """Updates that the program makes itself, of names and not of the parameters behind them."""
    looks, changes, inputs = (code.facts.get(f"own_{x}") for x in ("looks", "changes", "inputs"))
    line = code.integer("own_copies")
    if not isinstance(looks, int) or looks <= _LEAST_LOOKS or changes or inputs or code.optimizers:
        return
    if not line:
        return
    text = (
        f"No parameter changes in {code.totals.get('backward', looks)} backward passes: line"
        f" {line} gives a name a new tensor, and the model keeps the old one."
    )
    words = f"Change the parameter in place in line {line}: `p -= …`, not `p = p - …`."
    yield code_sign(training, "update-lost", 0.95, text, words, line=line)


def uphill(training: Training) -> Signs:
    """Updates that the program makes itself, and that raise the loss."""
    code, loss = training.code, training.loss
    direction = code.facts.get("own_direction") if code else None
    if loss is None or not isinstance(direction, int | float) or direction < _UPHILL:
        return
    if loss.name not in ENTROPIES | BINARY | DISTANCES:
        return  # what grows may be a reward
    line = code.integer("own_lines") if code else 0
    text = (
        f"The program's own updates go up the gradient of `{loss.name}`{in_line(loss.line)}, so the"
        " loss grows: they add it."
    )
    words = "Subtract the gradient times the learning rate."
    yield code_sign(
        training, "step-uphill", 0.95, text, words, line=line,
        measurements=(evidence("cosine of update and gradient", direction, "-1"),),
    )  # fmt: skip


def _dropped_updates(training: Training, code: ProgramCode) -> Signs:
    """A step of JAX returns new parameters, and the program goes on with the old ones."""
    compared, unchanged, updated = (
        code.facts.get(f"jax_{name}") for name in ("compared", "unchanged", "updated")
    )
    if not isinstance(compared, int) or compared < _LEAST_LOOKS or unchanged != compared:
        return
    if not updated:
        return
    line = code.site("step").line
    text = (
        f"Each step starts from the same parameters: what the step{in_line(line)} returns is not"
        " what the next one is given."
    )
    words = (
        f"Keep what it returns: `params, opt_state = step(params, opt_state, …)`{in_line(line)}."
    )
    yield code_sign(
        training, "update-lost", 0.95, text, words, line=line,
        measurements=(evidence("steps with the same parameters", f"{unchanged} of {compared}"),),
    )  # fmt: skip


_SOURCE = "public questions; TrainCheck"
RULES: tuple[Rule, ...] = (
    Rule("not-registered", "code", ("not-registered",), _SOURCE,
         "Layers in a plain list or dictionary, or weights in a plain tensor.", unregistered),
    Rule("optimizer-holds-others", "code", ("optimizer-holds-others",), _SOURCE,
         "Parameters that get gradients and are in no optimizer.", other_parameters),
    Rule("parameters-frozen", "code", ("parameters-frozen",), _SOURCE,
         "Layers that are frozen at their random start values.", frozen),
    Rule("graph-cut", "code", ("graph-cut",), _SOURCE,
         "The graph is cut between the loss and layers that it depends on.", cut),
    Rule("update-lost", "code", ("update-lost",), _SOURCE,
         "Weights that stay the same although they get gradients and steps.", lost_updates),
    Rule("layer-repeated", "code", ("layer-repeated",), "public questions",
         "One layer that stands several times in a container.", repeated),
    Rule("step-uphill", "code", ("step-uphill",), _SOURCE,
         "Updates of the program's own that follow the gradient up.", uphill),
)  # fmt: skip
