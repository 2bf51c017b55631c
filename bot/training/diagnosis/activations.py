"""Hidden activations by what they return: missing, saturated, squashing, dead, vanishing.

Sources: UMLAUT (missing activation), Neuralint f009, DeepDiagnosis 3, 4 and 11, AutoTrainer
(vanish, dying ReLU; here units that are zero for whole batches: zero gradients also come from
embeddings).
"""

from itertools import pairwise

from bot.kernel.training_types import FaultType, Layer, WeightStep
from bot.training.diagnosis.loss_contract import copies
from bot.training.diagnosis.rates import rate_sign
from bot.training.diagnosis.rule import (
    UNHARMED,
    Rule,
    Sign,
    Signs,
    Training,
    change,
    evidence,
    kernel,
    label,
    nonlinear,
    recurrent,
)

_DEAD = 0.7
_MISSING = {"badly": 0.75, "partly": 0.7, "fairly": 0.4}
_SATURATED, _FULL = 0.5, 0.8
_ALL = 0.99
_ENOUGH = 8
_SQUASHING = {"softmax": 0.85, "log_softmax": 0.85, "exponential": 0.7}
_SIGMOIDS = ("sigmoid", "hard_sigmoid")
_BOUNDED_FUNCTIONS = (*_SIGMOIDS, "tanh", "softsign", "hard_tanh")
_FUNCTIONS = ("Dot", "Lambda", "Maximum", "Minimum", "Multiply")  # of Keras: known or not, no line
_VANISHED = (1e-3, 1e-4)  # AutoTrainer: first over last gradient, and the first itself


def hidden_sign(
    layer: Layer, confidence: float, message: str, *, also: tuple[FaultType, ...] = ()
) -> Sign:
    """A hidden activation to replace."""
    return Sign(
        "ACH",
        confidence,
        message,
        (layer.index,),
        also,
        (evidence(f"activation of layer {layer.index}", layer.activation or "none"),),
        change(f"activation({layer.index})", ("relu", "gelu"), _advice(layer)),
    )


def _advice(layer: Layer) -> str:
    if not layer.activation:
        return f"Add a relu after {label(layer)}."
    better = "gelu" if layer.activation == "relu" else "relu"
    return f"Replace the `{layer.activation}` in {label(layer)} with {better}."


def hidden_functions(training: Training) -> tuple[Layer, ...]:
    """Layers before the output that apply a function, without recurrent ones and attention."""
    return tuple(
        layer
        for layer in training.layers
        if layer.index not in training.tail
        and nonlinear(layer)
        and not recurrent(layer)
        and "attention" not in layer.type.lower()
    )


def missing(training: Training) -> Signs:
    """Two learning layers with no function between them are one."""
    one_map = _one_map(training)
    if training.model.residual or not (training.learning.doubtful or one_map):
        return
    for layer, after in pairwise(training.learners):
        if recurrent(layer) or _projects(training, after) or _factorised(layer, after):
            continue
        if layer.units is None or _is_low_rank(layer, after):
            continue  # of a class of the program's own, which may apply a function inside
        if not _linear_between(training, layer, after) or _code(training, layer):
            continue
        narrow = layer.units is not None and after.units and layer.units < after.units / 2
        bottleneck = narrow and not one_map
        if bottleneck and not training.learning.poor:
            continue
        is_joined = _is_joined(training, layer, after)
        confidence = (
            0.3 if bottleneck or is_joined else _MISSING.get(training.learning.health, UNHARMED)
        )
        text = f"No activation follows {label(layer)}, so it and the next layer are one linear map."
        yield hidden_sign(layer, confidence, text, also=("ARM",))


def _code(training: Training, layer: Layer) -> bool:
    """Whether a layer returns the code of an autoencoder, which may be linear."""
    units = [x.units for x in training.learners if x.units]
    return copies(training) and layer.units == min(units, default=None)


def _one_map(training: Training) -> bool:
    """Whether all layers make up one linear map, and the run can get no further. Of an autoencoder
    that may be meant: it finds the principal components.
    """
    learning = training.learning
    is_stuck = learning.below(_ALL) and not learning.falling and not copies(training)
    return is_stuck and len(training.hidden) > 1 and not hidden_functions(training)


def _projects(training: Training, layer: Layer) -> bool:
    """Whether a layer makes queries, keys or values for attention, which are linear by design."""
    attending = (x for x in training.layers if "attention" in x.type.lower())
    return any(layer.index in x.inputs for x in attending)


def _factorised(layer: Layer, after: Layer) -> bool:
    """Whether a filter for each channel and a mix of the channels make up one convolution."""
    apart = "depthwise" in layer.type.lower() or layer.settings.get("groups", 1) != 1
    size = after.settings.get("kernel_size")
    return apart and isinstance(size, tuple) and set(size) == {1}


def _is_low_rank(layer: Layer, after: Layer) -> bool:
    """Whether two layers without a bias make up one matrix of low rank, as an adapter's do."""
    first, second = kernel(layer), kernel(after)
    if first is None or second is None or not layer.units or not after.units:
        return False
    has_bias = any(x.role == "bias" for x in (*layer.weights, *after.weights))
    return not has_bias and 2 * layer.units < min(first.fan_in or 0, after.units)


def _is_joined(training: Training, layer: Layer, after: Layer) -> bool:
    """Whether other layers feed the next one too: attention multiplies, a U-Net concatenates."""
    order = training.order
    between = training.layers[order[layer.index] + 1 : order[after.index] + 1]
    return any(len(x.inputs) > 1 for x in between)


def _linear_between(training: Training, layer: Layer, after: Layer) -> bool:
    """Whether nothing but linear maps stands from a layer to the next with a kernel."""
    order = training.order
    between = training.layers[order[layer.index] : order[after.index]]
    if any(nonlinear(x) or x.type in _FUNCTIONS or "attention" in x.type.lower() for x in between):
        return False
    if _is_rectified(between[-1], after):
        return False
    is_followed = any(x.inputs for x in training.layers)
    return not is_followed or any(x.index in after.inputs for x in between)


def _is_rectified(layer: Layer, after: Layer) -> bool:
    """Whether values below zero are gone before the next layer, by a function that is no layer."""
    low = layer.output.minimum if layer.output else None
    least = after.input.minimum if after.input else None
    return low is not None and least is not None and low < 0 <= least


def squashing(training: Training) -> Signs:
    """Softmax or exponential inside a network."""
    for layer in hidden_functions(training):
        strength = _SQUASHING.get(layer.activation)
        if layer.index in training.attention or _weighs_places(training, layer):
            continue
        if (
            layer.activation == "exponential"
            and layer.functional
            and not _feeds_alone(training, layer)
        ):
            continue  # it may be a variance, as in a VAE
        if strength and training.learning.below(0.97):
            text = f"`{layer.activation}` in {label(layer)} lets one unit drown out the others."
            alone = not layer.weights and not layer.functional  # a layer of its own
            yield hidden_sign(layer, strength, text, also=("AAL",) if alone else ())


def _feeds_alone(training: Training, layer: Layer) -> bool:
    """Whether some layer is fed by this one and by no other."""
    return any(x.inputs == (layer.index,) for x in training.layers)


def _weighs_places(training: Training, layer: Layer) -> bool:
    """Whether a function has a single unit, and what follows works on more than that: its values
    weigh places or samples against each other.
    """
    place = training.order[layer.index]
    after = next((kernel(x) for x in training.layers[place + 1 :] if kernel(x)), None)
    return layer.units == 1 and after is not None and (after.fan_in or 0) > 1


def saturated(training: Training) -> Signs:
    """Units of sigmoid or tanh at their bounds, where gradients vanish."""
    for layer in hidden_functions(training):
        share = _typical(training, layer.index, "saturated")
        if share > _SATURATED and training.learning.poor and layer.activation in _BOUNDED_FUNCTIONS:
            text = f"{share:.0%} of the outputs of {label(layer)} are saturated."
            yield hidden_sign(layer, 0.7 if share > _FULL else 0.55, text)


def sigmoid_inside(training: Training) -> Signs:
    """Hidden sigmoids pass on at most a quarter of a gradient."""
    sigmoids = [x for x in hidden_functions(training) if x.activation in _SIGMOIDS]
    if not sigmoids or not training.learning.doubtful:
        return
    others = [x for x in hidden_functions(training) if x.activation not in _BOUNDED_FUNCTIONS]
    if not training.learning.poor and not others:
        return
    faint = vanishing_ratio(training)
    certain = faint is not None and faint < 0.05
    for layer in sigmoids:
        text = f"The sigmoid in {label(layer)} passes on at most a quarter of a gradient."
        weak = 0.45 if training.learning.badly else 0.38 if others else 0.3
        yield hidden_sign(layer, 0.6 if certain or len(sigmoids) > 2 else weak, text)


def vanishing(training: Training) -> Signs:
    """Gradients that are lost on their way to the first layer, with no function to blame."""
    ratio = vanishing_ratio(training)
    if ratio is None or ratio >= _VANISHED[0] or not training.learning.badly:
        return
    first = training.learners[0]
    if any(x.activation in _BOUNDED_FUNCTIONS for x in hidden_functions(training)):
        return
    measurements = (evidence("first over last gradient", ratio, _VANISHED[0]),)
    better = change("layers", ("batch_norm", "residual"), "Add batch norm or residual connections.")
    text = f"Gradients vanish before they reach {label(first)}."
    yield Sign("LAD", 0.3, text, (first.index,), (), measurements, better, symptom=True)


def vanishing_ratio(training: Training) -> float | None:
    """The norm of the first kernel's gradient over the last one's, early in the run."""
    for step in training.steps:
        kernels = [x for x in step.weights if x.role == "kernel" and x.norm is not None]
        if len(kernels) > 1 and _norm(kernels[-1]) > 0:
            return _norm(kernels[0]) / _norm(kernels[-1])
    return None


def _norm(weight: WeightStep) -> float:
    return weight.norm or 0.0


def _dying(training: Training) -> list[Layer]:
    """Layers of which most units end at zero for whole batches, in a run that learned little."""
    if not training.learning.poor or _batch(training) < _ENOUGH:
        return []
    functions = [x for x in hidden_functions(training) if not _lone(training, x)]
    return [x for x in functions if _typical(training, x.index, "dead") >= _DEAD]


def _lone(training: Training, layer: Layer) -> bool:
    """Whether a function has one or two units, which may all be dead by chance."""
    before = reversed(training.layers[: training.order[layer.index] + 1])
    return next((x.units or 0 for x in before if kernel(x)), 0) in (1, 2)


def dead(training: Training) -> Signs:
    """Units that are zero for whole batches from the start."""
    for layer in _dying(training):
        if _first(training, layer.index, "dead") >= _DEAD:
            text = f"Most units of {label(layer)} are zero for every sample."
            yield hidden_sign(layer, 0.4, text)


def killed(training: Training) -> Signs:
    """Units that were alive at the start: steps were too large, the function is but the victim."""
    died = [x for x in _dying(training) if _first(training, x.index, "dead") < _DEAD]
    if died:
        layers = ", ".join(map(label, died))
        text = f"Most units of {layers} died during training: the steps were too large."
        everything = all(_typical(training, x.index, "dead") > 0.95 for x in died)
        yield rate_sign(training, 0.82 if everything else 0.65, False, text, symptom=not everything)


def _batch(training: Training) -> int:
    """How many samples a unit must be zero for to count as dead."""
    shape = training.loss.targets.shape if training.loss else ()
    return shape[0] if shape else 1


def _gradients_of(training: Training, index: int, name: str) -> list[float]:
    values = [getattr(x, name) for x in training.returned.get(index, ())]
    return [x for x in values if x is not None]


def _typical(training: Training, index: int, name: str) -> float:
    """The share in the later half of the sampled steps: its lower quartile, at least three."""
    norms = _gradients_of(training, index, name)
    late = sorted(norms[len(norms) // 2 :])
    return late[len(late) // 4] if len(norms) >= 3 else 0.0


def _first(training: Training, index: int, name: str) -> float:
    return next(iter(_gradients_of(training, index, name)), 0.0)


RULES: tuple[Rule, ...] = (
    Rule("no-activation", "dynamics", ("ACH", "ARM"),
         "UMLAUT (missing activation); Neuralint f009",
         "No activation between two layers.", missing),
    Rule("squashing-inside", "dynamics", ("ACH", "AAL"), "DeepCrime (activation); Reprise",
         "A softmax or exponential inside the network.", squashing),
    Rule("saturated", "dynamics", ("ACH",), "DeepDiagnosis 4",
         "A sigmoid or tanh that is saturated for most inputs.", saturated),
    Rule("sigmoid-inside", "dynamics", ("ACH",), "AutoTrainer (vanish); DeepDiagnosis 11",
         "Hidden sigmoids shrink the gradients of the layers before them.", sigmoid_inside),
    Rule("vanishing-gradient", "dynamics", ("LAD",), "AutoTrainer (vanish); DeepDiagnosis 11",
         "Gradients vanish on their way to the first layer.", vanishing),
    Rule("dead-units", "dynamics", ("ACH",), "AutoTrainer (dying ReLU); DeepDiagnosis 3",
         "Most units of a layer are zero for every sample from the start.", dead),
    Rule("killed-units", "rate", ("HLR",), "AutoTrainer (dying ReLU); DeepDiagnosis 3",
         "Most units of a layer die while training.", killed),
)  # fmt: skip
