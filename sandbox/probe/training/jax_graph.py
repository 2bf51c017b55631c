"""Runs the graph of a training step once more, beside the program, and gives back its marked values
and the layers that the graph shows: products of an input with a parameter.
"""

from . import program
from .jax_marks import jax, mark_of

_MOST_VALUES, _MOST_LAYERS, _MOST_DEPTH = 1 << 14, 200, 40
_ACTIVATIONS = {
    "relu": "relu", "relu6": "relu6", "tanh": "tanh", "logistic": "sigmoid", "sigmoid": "sigmoid",
    "silu": "silu", "swish": "silu", "gelu": "gelu", "elu": "elu", "selu": "selu", "celu": "celu",
    "leaky_relu": "leaky_relu", "softplus": "softplus", "soft_sign": "softsign",
    "softmax": "softmax", "log_softmax": "log_softmax", "hard_tanh": "hardtanh",
    "_softmax": "softmax", "mish": "mish",
    "log_sigmoid": "log_sigmoid", "erf": "gelu", "erfc": "gelu", "squareplus": "squareplus",
}  # fmt: skip
_INSIDE = ("jit", "pjit", "closed_call", "core_call", "remat", "remat2", "checkpoint",
           "custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr")  # fmt: skip
_CARRYING = (
    "add", "sub", "mul", "div", "max", "min", "neg", "add_any", "reshape", "squeeze", "transpose",
    "broadcast_in_dim", "expand_dims", "convert_element_type", "concatenate", "slice",
    "reduce_max", "reduce_window_max", "reduce_sum", "reduce_window_sum", "pad", "select_n",
    "dynamic_slice", "stop_gradient", "copy", "name", "reduce_window", "integer_pow", "rsqrt",
    "gather", "pow", "reduce_mean", "custom_jvp_call",
)  # fmt: skip


class GraphLayer:
    """A product with a parameter: `kind` is Dense, Conv or Embed; `rows` are the path of its
    parameter, the sizes and what follows it.
    """

    def __init__(self, kind, parameter, fans):
        self.kind, self.kernel, self.bias = kind, parameter, None
        self.fans = fans
        self.activation = ""
        self.inputs = ()


class GraphLook:
    """What a run of the graph gives: `values` by kind and key, and the layers in their order."""

    def __init__(self):
        self.values, self.layers = {}, []
        self.used, self.cubed, self.gates = set(), set(), {}
        self.fed = None
        self.is_picked = self.is_judged = self.has_sums = False
        self.sides = {}
        self.outer, self.outer_line = (), 0

    def put(self, kind, key, value):
        self.values.setdefault((kind, key), value)

    @property
    def is_swapped(self):
        """Whether a loss has targets that are learned, and predictions that are not."""
        return any(
            one.get("target") and one.get("prediction") is False for one in self.sides.values()
        )


class Tracks:
    """Where each variable comes from: a parameter, or a layer and what was applied to it since.
    `learned` variables depend on a parameter in any way.
    """

    def __init__(self):
        self.parameters, self.layers = {}, {}
        self.learned = set()

    def is_learned(self, variable):
        return _is_variable(variable) and (variable in self.learned or variable in self.parameters)

    def hand_on(self, variable, other):
        """What is known of a variable holds for another."""
        if _is_variable(variable):
            for places in (self.parameters, self.layers):
                if variable in places:
                    places[other] = places[variable]
            if variable in self.learned:
                self.learned.add(other)

    def layer(self, variable):
        return self.layers.get(variable) if _is_variable(variable) else None


def _is_variable(variable):
    return not hasattr(variable, "val")


def kinds_in(jaxpr, depth=0):
    """The kinds of marks in a graph, each with how often."""
    counts = {}
    for equation in jaxpr.eqns:
        mark = mark_of(equation)
        if mark is not None:
            counts[mark[0]] = counts.get(mark[0], 0) + 1
        for inner in _graphs_of(equation) if depth < _MOST_DEPTH else ():
            for kind, count in kinds_in(inner, depth + 1).items():
                counts[kind] = counts.get(kind, 0) + count
    return counts


def _graphs_of(equation):
    graphs = []
    for value in equation.params.values():
        for one in value if isinstance(value, (tuple, list)) else (value,):
            inner = getattr(one, "jaxpr", one)
            if hasattr(inner, "eqns"):
                graphs.append(inner)
    return graphs


def rounds(jaxpr, depth=0):
    """How many steps a graph makes: the length of the compiled loop that differentiates, 1 without
    one, 0 where it differentiates in a loop of unknown length or a branch.
    """
    for equation in jaxpr.eqns:
        mark = mark_of(equation)
        if mark is not None and mark[0] == "gradient":
            return 1
        for inner in _graphs_of(equation) if depth < _MOST_DEPTH else ():
            if "gradient" not in kinds_in(inner):
                continue
            if equation.primitive.name == "scan":
                return int(equation.params["length"]) * rounds(inner, depth + 1)
            return rounds(inner, depth + 1) if equation.primitive.name in _INSIDE else 0
    return 0


def loss_output(jaxpr):
    """The place of the loss among what a graph returns, None where it returns none: through calls
    that only hand it on.
    """
    names = _loss_variables(jaxpr)
    places = [at for at, one in enumerate(jaxpr.outvars) if _is_variable(one) and one in names]
    return places[0] if places else None


def _loss_variables(jaxpr):
    marked = set()
    for equation in jaxpr.eqns:
        mark = mark_of(equation)
        if mark is not None and mark[0] == "loss":
            marked.update(equation.outvars)
        elif equation.primitive.name == "scan":
            body, carried = equation.params["jaxpr"].jaxpr, equation.params["num_carry"]
            at = loss_output(body)
            if at is not None and at >= carried:
                marked.add(equation.outvars[at])
        elif equation.primitive.name in (*_INSIDE, "copy", "convert_element_type", "name"):
            if equation.primitive.name in ("copy", "convert_element_type", "name"):
                if _is_variable(equation.invars[0]) and equation.invars[0] in marked:
                    marked.update(equation.outvars)
                continue
            for inner in _graphs_of(equation)[:1]:
                at = loss_output(inner)
                if at is not None and at < len(equation.outvars):
                    marked.add(equation.outvars[at])
    return marked


def run(closed, arguments):
    """Evaluate a closed graph; its look, with small arrays for values. Called under `jax.jit`."""
    look = GraphLook()
    tracks = Tracks()
    _evaluate(closed.jaxpr, closed.consts, arguments, look, tracks, 0)
    return look


def _evaluate(jaxpr, consts, arguments, look, tracks, depth):
    values = dict(zip(jaxpr.constvars, consts))
    values.update(zip(jaxpr.invars, arguments))

    def value_of(variable):
        return values[variable] if _is_variable(variable) else variable.val

    for equation in jaxpr.eqns:
        inputs = [value_of(one) for one in equation.invars]
        mark = mark_of(equation)
        if mark is not None:
            _note_mark(mark, equation, inputs[0], look, tracks)
            outputs = inputs
        else:
            outputs = _apply(equation, inputs, look, tracks, depth)
        values.update(zip(equation.outvars, outputs))
    return [value_of(one) for one in jaxpr.outvars]


def _note_mark(mark, equation, value, look, tracks):
    kind, key = mark
    source, out = equation.invars[0], equation.outvars[0]
    if kind == "parameter" and _is_variable(source):
        tracks.parameters[source] = tracks.parameters[out] = key
    elif _is_variable(source):
        _carry(equation, tracks)
    if tracks.is_learned(source):
        tracks.learned.add(out)
    if kind == "prediction":
        layer = tracks.layer(source)
        look.fed = layer if look.fed is None else look.fed
    if kind in ("prediction", "target"):
        look.sides.setdefault(key, {})[kind] = tracks.is_learned(source)
    look.is_judged = look.is_judged or kind == "loss"
    look.put(kind, key, _small(kind, value))


def _small(kind, value):
    """What is kept of a marked value: some numbers of gradients and updates, else some rows."""
    if kind in ("gradient", "update"):
        return _numbers(value)
    if kind == "values":
        return value.astype("float32").mean()
    return some_rows(value)


def _numbers(value):
    jnp = jax().numpy
    flat = value.astype("float32").reshape(-1)
    zero = (flat == 0).mean() if flat.size else jnp.zeros(())
    return jnp.stack([jnp.sqrt((flat**2).sum()), jnp.abs(flat).mean(), zero])


def some_rows(value):
    """At most as many entries as are looked at, in whole rows where there are rows."""
    size = 1
    for one in value.shape[1:]:
        size *= one
    if value.ndim == 0:
        return value
    most = max(2, _MOST_VALUES // max(1, size))
    return value[:: max(1, -(-value.shape[0] // most))]


def _apply(equation, inputs, look, tracks, depth):
    name = equation.primitive.name
    called = _name_of_call(equation)
    is_activation = called in _ACTIVATIONS
    if name in _INSIDE and depth < _MOST_DEPTH:
        outputs = _inside(equation, inputs, look, tracks, depth, is_activation)
    elif name == "scan" and depth < _MOST_DEPTH and kinds_in(equation.params["jaxpr"].jaxpr):
        outputs = _scan(equation, inputs, look, depth)
    else:
        outputs = _bind(equation, inputs)
        outputs = outputs if equation.primitive.multiple_results else [outputs]
    _follow(equation, inputs, outputs, called, look, tracks)
    return outputs


def _bind(equation, inputs):
    params = equation.primitive.get_bind_params(equation.params)
    functions, params = params if isinstance(params, tuple) else ((), params)
    return equation.primitive.bind(*functions, *inputs, **params)


def _name_of_call(equation):
    name = equation.params.get("name") if equation.primitive.name in _INSIDE else None
    if name is None and equation.primitive.name == "custom_jvp_call":
        return ""
    return str(name if name is not None else equation.primitive.name)


def _inside(equation, inputs, look, tracks, depth, is_activation):
    """The graph of a call, evaluated in place; variables inside know where they come from."""
    closed = next(
        equation.params[key]
        for key in ("jaxpr", "call_jaxpr", "fun_jaxpr")
        if key in equation.params
    )
    inner = getattr(closed, "jaxpr", closed)
    if is_activation:  # what it is made of is no activation of its own
        return _evaluate(
            inner, getattr(closed, "consts", ()), inputs, GraphLook(), Tracks(), depth + 1
        )
    for outer, variable in zip(equation.invars, inner.invars):
        tracks.hand_on(outer, variable)
    outputs = _evaluate(inner, getattr(closed, "consts", ()), inputs, look, tracks, depth + 1)
    for variable, outer in zip(inner.outvars, equation.outvars):
        tracks.hand_on(variable, outer)
    return outputs


def _scan(equation, inputs, look, depth):
    """A loop of the graph: the marks of each round come back in a row."""
    params = equation.params
    constant, carried = params["num_consts"], params["num_carry"]
    closed = params["jaxpr"]
    inner = GraphLook()

    def body(carry, rows):
        inner.__init__()
        arguments = [*inputs[:constant], *carry, *rows]
        outputs = _evaluate(closed.jaxpr, closed.consts, arguments, inner, Tracks(), depth + 1)
        return outputs[:carried], (outputs[carried:], list(inner.values.values()))

    state, (rows, marks) = jax().lax.scan(
        body,
        list(inputs[constant : constant + carried]),
        list(inputs[constant + carried :]),
        length=params["length"],
        reverse=params["reverse"],
    )
    is_training = any(kind == "gradient" for kind, _ in inner.values)
    for (kind, key), value in zip(inner.values, marks):
        look.put(kind, key, value if is_training else value[-1])
    look.layers = look.layers or inner.layers
    look.fed = inner.fed if look.fed is None else look.fed
    look.is_judged = look.is_judged or inner.is_judged
    look.has_sums = look.has_sums or inner.has_sums
    if not look.outer:
        look.outer, look.outer_line = inner.outer, inner.outer_line
    return [*state, *rows]


def _carry(equation, tracks):
    layers = [tracks.layer(one) for one in equation.invars]
    layers = [one for one in layers if one is not None]
    if layers:
        for out in equation.outvars:
            tracks.layers.setdefault(out, max(layers))
    paths = [tracks.parameters.get(one) for one in equation.invars if _is_variable(one)]
    if len(equation.invars) == 1 and paths and paths[0] is not None:
        for out in equation.outvars:
            tracks.parameters.setdefault(out, paths[0])


def _follow(equation, inputs, outputs, called, look, tracks):
    """Layers, their biases and activations, as the values go through an equation."""
    name = equation.primitive.name
    _follow_loss(equation, inputs, look, tracks)
    if name in ("dot_general", "conv_general_dilated", "gather") and len(equation.invars) > 1:
        if _make_layer(equation, inputs, outputs, look, tracks):
            return
    layers = [tracks.layer(one) for one in equation.invars]
    layers = [one for one in layers if one is not None]
    if name == "gather" and look.fed is None and tracks.layer(equation.invars[0]) is not None:
        look.is_picked = True  # one output of several, as the value of an action
    applied = _ACTIVATIONS.get(called, "relu" if _is_cut_at_zero(equation) else "")
    if applied and layers:
        _activate(max(layers), applied, outputs, look)
        look.gates[equation.outvars[0]] = equation.invars[0]
        for out in equation.outvars:
            tracks.layers[out] = max(layers)
        return
    if layers:
        _note_parts(equation, layers, look)
    if name == "add" and layers:
        paths = [tracks.parameters.get(one) for one in equation.invars if _is_variable(one)]
        path = next((one for one in paths if one is not None), None)
        layer = look.layers[max(layers)]
        if path is not None and layer.bias is None and path not in look.used:
            layer.bias = path
            look.used.add(path)
    if name in _CARRYING or name in _INSIDE:
        _carry(equation, tracks)


def _follow_loss(equation, inputs, look, tracks):
    """What depends on a parameter, and what happens to it before the loss is there."""
    if any(map(tracks.is_learned, equation.invars)):
        tracks.learned.update(equation.outvars)
    if not look.is_judged:
        branches = [tracks.layer(one) for one in equation.invars]
        is_sum = equation.primitive.name == "add" and None not in branches
        is_sum = is_sum and len(getattr(equation.outvars[0].aval, "shape", ())) > 1
        look.has_sums = look.has_sums or is_sum
        _note_outer(equation, look, tracks)
        _note_root(equation, inputs, look)


_OF_EACH = ("sub", "mul", "div", "add", "max", "min")


def _note_outer(equation, look, tracks):
    """A column that meets a row, of which only one is learned: each value of one meets all of the
    other.
    """
    if equation.primitive.name not in _OF_EACH or look.outer:
        return
    shapes = [tuple(getattr(one.aval, "shape", ())) for one in equation.invars]
    rows = max(shapes[0], default=0)
    if rows < 2 or sorted(shapes) != [(1, rows), (rows, 1)]:
        return
    if sum(map(tracks.is_learned, equation.invars)) == 1:
        look.outer, look.outer_line = ((rows,), (rows, 1)), line_of(equation)


def _note_root(equation, inputs, look):
    if equation.primitive.name == "sqrt" and getattr(inputs[0], "size", 0):
        look.put("root", str(line_of(equation)), inputs[0].min())


def line_of(equation):
    """The innermost line of the program's main file that made an equation; 0 where JAX does not
    tell.
    """
    try:
        frames = equation.source_info.traceback.frames
    except AttributeError:  # another version of JAX, or none was kept
        return 0
    main = program.main_file()
    return next((int(one.line_num) for one in frames if one.file_name == main), 0)


def _activate(number, applied, outputs, look):
    """A function is applied to what a layer returns; the first one counts."""
    layer = look.layers[number]
    if not layer.activation and look.fed is None:
        layer.activation = "gelu" if applied == "tanh" and number in look.cubed else applied
        look.put("output", str(number), some_rows(outputs[0]))


def _note_parts(equation, layers, look):
    """Activations that are written out: the cube in that of a gelu, a product with a sigmoid."""
    name = equation.primitive.name
    if name == "integer_pow" and equation.params.get("y") == 3:
        look.cubed.add(max(layers))
    one, other = equation.invars if len(equation.invars) == 2 else (None, None)
    if name == "mul" and other is not None and _gates(one, other, look):
        layer = look.layers[layers[0]]
        layer.activation = "silu" if layer.activation == "sigmoid" else layer.activation


def _gates(one, other, look):
    """Whether one of two variables is the function of the other."""
    if not (_is_variable(one) and _is_variable(other)):
        return False
    return look.gates.get(one) is other or look.gates.get(other) is one


def _is_cut_at_zero(equation):
    literals = [one.val for one in equation.invars if not _is_variable(one)]
    return equation.primitive.name == "max" and any(float(one) == 0.0 for one in literals)


def _make_layer(equation, inputs, outputs, look, tracks):
    paths = [tracks.parameters.get(one) if _is_variable(one) else None for one in equation.invars]
    at = next((at for at, path in enumerate(paths[:2]) if path is not None), None)
    if at is None or paths[at] in look.used or len(look.layers) >= _MOST_LAYERS:
        return False
    name = equation.primitive.name
    if name == "gather" and at != 0:
        return False
    kernel, other = inputs[at], equation.invars[1 - at]
    kind = {"dot_general": "Dense", "conv_general_dilated": "Conv", "gather": "Embed"}[name]
    layer = GraphLayer(kind, paths[at], _fans(equation, kernel, at))
    before = tracks.layer(other)
    layer.inputs = (before,) if before is not None else ()
    if before is None:
        look.put("input", kind, some_rows(inputs[1 - at]))
    look.used.add(paths[at])
    look.layers.append(layer)
    number = len(look.layers) - 1
    for out in equation.outvars:
        tracks.layers[out] = number
    return True


def _fans(equation, kernel, at):
    """How many inputs each unit of a layer has, and how many units each input."""
    shape = kernel.shape
    size = 1
    for one in shape:
        size *= one
    if equation.primitive.name == "dot_general":
        contracted = equation.params["dimension_numbers"][0][at]
        fan_in = 1
        for axis in contracted:
            fan_in *= shape[axis]
        return fan_in, size // max(1, fan_in)
    if equation.primitive.name == "conv_general_dilated":
        axis = equation.params["dimension_numbers"].rhs_spec[0]
        outputs, inputs = shape[axis], shape[equation.params["dimension_numbers"].rhs_spec[1]]
        return size // max(1, outputs), size // max(1, inputs)
    return None, None
