"""Watches losses: functions, losses that a program writes out itself, what they are fed, and the
loss of each step.
"""

import sys

from . import numbers, program, records, source, torch_calls, torch_forward, torch_terms
from .core import STATE, quiet
from .numbers import floor, trivial
from .records import WRITER
from .torch_forward import FORWARD
from .vocabulary import OF_CLASSES, TORCH_LOSSES

# Losses that a program writes out itself: what autograd's graph keeps says what they compare.

_MOST_NODES = 300
_LOGS = ("log", "logsoftmax")
_PICKING = ("index", "gather")


class Expression:
    """A loss by its canonical name, "expression" where it is not known."""

    def __init__(self, name, predictions, targets=None, node=None):
        self.name, self.predictions, self.targets = name, predictions, targets
        self.settings = {}
        self.applied = (
            torch_forward.last_activation(node, FORWARD.known) if node is not None else ""
        )


def read_expression(tensor):
    """The expression behind a loss, before its backward pass; None where no model feeds it."""
    node, kinds = _core(tensor.grad_fn)
    expression = _compare(node, kinds) or _entropy(node)
    if expression is None:
        outputs_of_node = _outputs(node)
        return (
            Expression("expression", outputs_of_node[0][1], node=outputs_of_node[0][0])
            if outputs_of_node
            else None
        )
    if "sum" in kinds and not {"mean", "div"} & set(kinds):
        expression.settings["reduction"] = "sum"
    return expression


def penalised(node, loss):
    """The ids of the parameters of which terms are added to a loss that the model does not feed;
    None where what is differentiated is no loss with such terms.
    """
    if node is loss:
        return None
    terms_added = []
    while node is not None and node is not loss:
        if torch_forward.name(node) != "add":
            return None
        terms = torch_forward.parents(node)
        node = _only([one for one in terms if one is loss or _outputs(one)])
        terms_added += [one for one in terms if one is not node]
    return frozenset(map(id, torch_forward.parameters(terms_added))) if node is loss else None


def _core(node):
    """Past reductions, constant factors, and terms that the model does not feed."""
    kinds = []
    for _ in range(_MOST_NODES):
        follow = None if node in FORWARD.outputs else _below(node)
        if follow is None:
            break
        kinds.append(torch_forward.name(node))
        node = follow
    return node, kinds


_REDUCING = ("mean", "sum", "neg", "sqrt", "div")


def _below(node):
    kind, live = torch_forward.name(node), torch_forward.parents(node)
    if kind in ("add", "sub"):
        return _only(live if len(live) == 1 else [one for one in live if _outputs(one)])
    if kind in _REDUCING or (kind == "mul" and not _dims(node, "_saved_other", "_saved_self")):
        return _only(live)
    return _only(live) if torch_forward.passes(kind) and kind not in _PICKING else None


def _only(nodes):
    return nodes[0] if len(nodes) == 1 else None


def _dims(node, *names):
    """The largest rank of what a node keeps."""
    saved_tensors = [_saved_tensor(node, name) for name in names]
    return max([one.dim() for one in saved_tensors if one is not None], default=0)


def _saved_tensor(node, name):
    """A tensor that a node keeps for its backward pass, None where it keeps none."""
    value = torch_forward.saved_tensor(node, name)
    return value.detach() if records.is_tensor(value) else None


def _outputs(node):
    """The outputs of modules that feed a node, nearest first, each with its node."""
    outputs_in_graph, waiting, visited = [], [node], set()
    while waiting and len(visited) < _MOST_NODES:
        node = waiting.pop(0)
        if node in visited:
            continue
        visited.add(node)
        if node in FORWARD.outputs:
            outputs_in_graph.append((node, FORWARD.outputs[node]))
        elif node not in FORWARD.known:
            waiting += torch_forward.parents(node)
    return outputs_in_graph


def _compare(node, kinds):
    """A distance between predictions and targets: its difference is kept, the targets follow."""
    live = torch_forward.parents(node)
    square = torch_forward.name(node) == "pow" and getattr(node, "_saved_exponent", 0) == 2
    square = square or (torch_forward.name(node) == "mul" and len(live) == 2 and live[0] is live[1])
    if not square and torch_forward.name(node) != "abs":
        return None
    difference = _saved_tensor(node, "_saved_self")
    if difference is None or torch_forward.name(live[0]) != "sub":
        return None
    operands = [(at, one) for at, (one, _) in enumerate(live[0].next_functions) if one is not None]
    if len(operands) != 1:
        return None
    (place, operand), predictions = operands[0], _value_of(operands[0][1])
    if predictions is None:
        return None
    if predictions.numel() == difference.numel():
        predictions = predictions.reshape(difference.shape)
    targets = _whole(predictions - difference if place == 0 else predictions + difference)
    name = "mae" if not square else "rmse" if "sqrt" in kinds else "mse"
    return Expression(name, predictions, targets, operand)


def _whole(targets):
    """Whole numbers as they were before the difference was rounded."""
    near = targets.round()
    slack = 1e-5 * float(near.abs().max().clamp_min(1.0))
    return near if float((targets - near).abs().max()) <= slack else targets


def _value_of(node):
    """What a node returned, where it is kept: by itself, as the output of a module, or by what the
    last product of matrices was made of.
    """
    for _ in range(_MOST_NODES):
        if node in FORWARD.outputs:
            return FORWARD.outputs[node]
        value = _saved_tensor(node, "_saved_result")
        if value is None and torch_forward.name(node) in (*_PRODUCTS, "add"):
            return _linear(node)
        if value is not None or not torch_forward.passes(torch_forward.name(node)):
            return value
        node = _only(torch_forward.parents(node))
        if node is None:
            return None
    return None


_PRODUCTS = {"mm": ("_saved_self", "_saved_mat2"), "mv": ("_saved_self", "_saved_vec"),
             "addmm": ("_saved_mat1", "_saved_mat2")}  # fmt: skip


def _linear(node):
    """A product of matrices, or a sum of one and a bias, computed once more."""
    kind, parts = torch_forward.name(node), [one for one, _ in node.next_functions]
    if kind == "add":
        values = [_factor(None, one) for one in parts]
    else:
        names = _PRODUCTS[kind]
        values = [_factor(_saved_tensor(node, n), one) for n, one in zip(names, parts[-2:])]
    if len(values) != 2 or any(one is None for one in values):
        return None
    return values[0] + values[1] if kind == "add" else values[0] @ values[1]


def _factor(saved, node):
    """A factor that is kept, a variable as it is, or one turned over."""
    if saved is not None or node is None:
        return saved
    if torch_forward.name(node) in _PRODUCTS:
        return _linear(node)
    if torch_forward.name(node) == "t":
        turned = _factor(None, torch_forward.parents(node)[0])
        return None if turned is None else turned.t()
    variable = getattr(node, "variable", None)
    return variable.detach() if records.is_tensor(variable) else None


def _entropy(node):
    """A logarithm of predictions, times the targets or picked by them."""
    kind, live = torch_forward.name(node), torch_forward.parents(node)
    if kind in _PICKING and live:
        return _picked(node, live[0])
    if kind in ("add", "sub") and len(live) == 2:
        expressions = [_weighted(one) for one in live]
        names = [one.name for one in expressions if one is not None]
        return (
            expressions[0]
            if names == ["categorical_crossentropy"] * 2 and _as_binary(expressions)
            else None
        )
    return _weighted(node)


def _as_binary(expressions):
    """Whether two terms are those of one probability and of its complement."""
    first, other = expressions
    same = first.predictions.shape == other.predictions.shape
    if not same or float(abs(first.predictions + other.predictions - 1).max()) > 1e-3:
        return False
    first.name = "bce"
    return True


def _weighted(node):
    """Targets times the logarithm of predictions."""
    while torch_forward.name(node) == "neg" or torch_forward.name(node) == "sum":
        node = torch_forward.parents(node)[0]
    log = _only(torch_forward.parents(node))
    if torch_forward.name(node) != "mul" or log is None or torch_forward.name(log) not in _LOGS:
        return None
    saved_tensors = [_saved_tensor(node, "_saved_self"), _saved_tensor(node, "_saved_other")]
    targets = _only([one for one in saved_tensors if one is not None and one.dim()])
    predictions = _predictions_of(log, torch_forward.name(log) == "logsoftmax")
    if targets is None or predictions is None or targets.shape != predictions.shape:
        return None
    name = "nll" if torch_forward.name(log) == "logsoftmax" else "categorical_crossentropy"
    return Expression(name, predictions, targets, log if name == "nll" else _before(log))


def _before(log):
    return _only(torch_forward.parents(log))


def _predictions_of(log, logarithms):
    if torch_forward.name(log) == "logsoftmax":
        return _saved_tensor(log, "_saved_result")
    value = _saved_tensor(log, "_saved_self")
    return value.log() if logarithms and value is not None else value


def _picked(node, log):
    if torch_forward.name(log) not in _LOGS:
        return None
    predictions = _predictions_of(log, True)
    targets = _saved_tensor(node, "_saved_index")
    if targets is None:
        indices = [one for one in getattr(node, "_saved_indices", ()) if records.is_tensor(one)]
        targets = indices[-1] if indices else None
    if predictions is None or targets is None:
        return None
    return Expression("nll", predictions, targets.reshape(-1), log)


# Watches loss functions: what they are fed, and the loss of each step.

NAMES = {function: (name, logits) for name, (function, _, logits) in TORCH_LOSSES.items()}
NAMES.update({
    "gaussian_nll_loss": ("gaussian_nll", None),
    "cosine_embedding_loss": ("cosine_embedding", None),
    "margin_ranking_loss": ("margin_ranking", None),
    "triplet_margin_loss": ("triplet_margin", None),
    "ctc_loss": ("ctc", None),
})  # fmt: skip
_TURNS = {"huber": "delta", "smooth_l1": "beta"}
_SETTINGS = ("reduction", "label_smoothing", "ignore_index", "log_input", "full", "delta", "beta")
_WEIGHTS, _MOST_WEIGHTS = (
    {"cross_entropy": "weight", "nll": "weight", "bce_logits": "pos_weight"},
    64,
)
_LOOKS, _MOST_USES = 3, 100
_LEAST_ROWS, _MOSTLY = 8, 0.9


class LossUse:
    """One use of a loss function in the program, for a model that may be dropped."""

    def __init__(self, model):
        self.model = model
        self.looks = 0
        self.fields = self.wanted = None
        self.models = set()


class Losses:
    """The losses since the last step, and each use of a loss function."""

    def __init__(self):
        self.backward = []
        self.scaled = {}
        self.last = None
        self.values = []
        self.node = self.penalty = self.added = None
        self.penalised = None
        self.uses = {}
        self.pending = []
        self.wanted, self.idle = True, False
        self.quiet_until = 0  # no step before this one is sampled, and none is only counted
        self.targets = None
        self.compared = []
        self.any = False
        self.told = {}


LOSSES = Losses()


class Judged:
    """What loss functions returned without gradients since the last step, left on the device."""

    def __init__(self):
        self.begin(0)

    def begin(self, steps):
        self.steps = steps
        self.calls = self.rows = 0
        self.last = self.total = self.weighted = 0.0


JUDGED = Judged()


def watch(name):
    """A patch of a loss function in `torch.nn.functional`."""

    def make(original):
        def loss_function(*args, **kwargs):
            result = original(*args, **kwargs)
            if LOSSES.idle and getattr(result, "requires_grad", True):
                return result
            if not _compiling():
                if not getattr(result, "requires_grad", True):
                    _note_targets(args, kwargs, result)
                elif not LOSSES.idle:
                    _note_call(name, args, kwargs, result)
            return result

        loss_function.__prepare_scriptable__ = lambda: original
        return loss_function

    return make


def _compiling():
    return sys.modules["torch"].compiler.is_compiling()


@quiet("loss functions")
def _note_call(name, args, kwargs, result):
    if not records.is_tensor(result):
        return
    if result.dim() == 0:
        # By its value: what the program adds in place is none of the function's.
        LOSSES.values.append(result.item() if result.is_cpu else result.detach().clone())
        del LOSSES.values[:-256]
    if not LOSSES.wanted:
        return
    LOSSES.node = result.grad_fn if result.dim() == 0 else LOSSES.node
    arguments = list(args) + [kwargs[key] for key in ("input", "target") if key in kwargs]
    if len(arguments) > 1:
        _look(name, arguments[0], arguments[1], kwargs, result)


@quiet("losses of evaluations")
def _note_targets(args, kwargs, result):
    if not records.is_tensor(result) or result.dim() or not STATE.steps:
        return
    if JUDGED.steps != STATE.steps:
        JUDGED.begin(STATE.steps)
    target = args[1] if len(args) > 1 else kwargs.get("target")
    rows = len(target) if records.is_tensor(target) and target.dim() else 1
    JUDGED.calls, JUDGED.rows = JUDGED.calls + 1, JUDGED.rows + rows
    JUDGED.last = _loss_value(result)
    JUDGED.total = JUDGED.last + JUDGED.total
    JUDGED.weighted = JUDGED.last * rows + JUDGED.weighted


def finish():
    """Tell what the last evaluation came to, as a program may sum it up."""
    if not JUDGED.calls:
        return
    last, total, weighted = map(float, (JUDGED.last, JUDGED.total, JUDGED.weighted))
    mean, by_rows = total / JUDGED.calls, weighted / JUDGED.rows
    WRITER.put("evaluation", losses=[last, total, mean, by_rows, total / JUDGED.rows])


def _look(name, predictions, targets, kwargs, result):
    if not (records.is_tensor(predictions) and records.is_tensor(targets)):
        return
    where, construction_line = _place()
    use = _use(name, construction_line or where)
    torch_forward.close(predictions)
    canonical, logits = NAMES[name]
    LOSSES.targets = (targets.detach(), _targets(canonical, predictions, targets))
    LOSSES.compared.append(targets.detach())
    del LOSSES.compared[:-16]
    if use.looks < _LOOKS:
        use.looks += 1
        layers = torch_forward.FORWARD.known
        activation = (
            torch_forward.last_activation(predictions.grad_fn, layers)
            if predictions.grad_fn
            else ""
        )
        use.fields, use.wanted = describe(canonical, predictions, targets, activation)
        settings = _settings(canonical, kwargs)
        if canonical == "cross_entropy" and _compares_itself(predictions, targets):
            settings["self_compared"] = True
        if targets.requires_grad and not predictions.requires_grad:
            settings["swapped"] = True
        use.fields.update(
            from_logits=logits,
            settings=settings,
            line=construction_line or where,
            call=where,
        )
    LOSSES.pending.append(use)
    del LOSSES.pending[:-16]


def _compares_itself(predictions, targets):
    """Whether scores of a batch against itself have each row's score of itself as the largest, one
    constant, while none of the targets is the row itself.
    """
    rows = len(predictions)
    if predictions.shape != (rows, rows) or targets.shape != (rows,) or rows < _LEAST_ROWS:
        return False
    own, places = predictions.detach().diagonal(), records.torch().arange(rows)
    spread = float(own.max() - own.min())
    most = predictions.detach().amax(1)
    is_largest = float((own >= most - 1e-4 * most.abs()).float().mean()) > _MOSTLY
    return (
        is_largest
        and spread <= 1e-3 * abs(float(own.mean()))
        and not bool((targets.cpu() == places).any())
    )


def _use(name, line):
    """The use of a loss in one line for one model; another may live where one was dropped."""
    model = torch_forward.FORWARD.last
    key = (name, line, id(model and model()))
    loss_use = LOSSES.uses.get(key)
    if loss_use is None or (loss_use.model is not None and loss_use.model() is None):
        loss_use = LOSSES.uses[key] = LossUse(model)
    while len(LOSSES.uses) > _MOST_USES:
        del LOSSES.uses[next(iter(LOSSES.uses))]
    return loss_use


def _place():
    """The line of the call and, for a loss module, that where it was made."""
    frame, construction_line = sys._getframe(5), 0
    for _ in range(12):
        if frame is None:
            break
        module = frame.f_locals.get("self") if frame.f_code.co_name == "forward" else None
        if type(module).__module__ == "torch.nn.modules.loss":
            construction_line = program.line_of(module)
            break
        frame = frame.f_back
    return program.line(), construction_line


def _settings(name, arguments):
    kinds = (str, int, float, bool)
    settings = {key: arguments[key] for key in _SETTINGS if isinstance(arguments.get(key), kinds)}
    weights = arguments.get(_WEIGHTS.get(name))
    if records.is_tensor(weights) and 0 < weights.numel() <= _MOST_WEIGHTS:
        settings["weights"] = weights.detach().reshape(-1).tolist()
    return settings


def _axis(name, predictions):
    return min(1, predictions.dim() - 1) if name in OF_CLASSES else -1


def _targets(name, predictions, targets):
    """A table of targets: a column of labels, or a row for each place."""
    if targets.dim() and targets.shape == predictions.shape:
        return records.rows(targets, _axis(name, predictions), 1 << 16)
    return records.rows(targets.reshape(-1), most=1 << 16)


def describe(name, predictions, targets, activation):
    """The fields of a loss, and a table of its targets."""
    table = records.rows(predictions, _axis(name, predictions))
    fields = {
        "name": name,
        "activation": activation or numbers.activation(records.torch(), table),
        "predictions": records.summary(predictions),
        "targets": {"shape": [], "dtype": ""},
        "rows_sum_to_one": numbers.rows_sum_to_one(table),
        "columns_sum_to_one": numbers.columns_sum_to_one(records.torch(), table),
    }
    if targets is None:
        return fields, ()
    wide = targets.dim() > 0 and targets.shape == predictions.shape
    target_table = _targets(name, predictions, targets)
    fields["targets"] = records.summary(targets)
    fields["one_hot"] = wide and numbers.is_one_hot(target_table)
    fields["integer_targets"] = numbers.is_integral(target_table.reshape(-1))
    return fields, target_table


def targets_told(canonical, target_table, integral, settings):
    """What the targets alone say: the shares of the classes and the loss of the best constant."""
    shares = numbers.shares(target_table, integral)
    weights, turn = settings.get("weights", ()), settings.get(_TURNS.get(canonical), 1.0)
    if canonical in OF_CLASSES:  # the mean is over the weights of the samples
        whole = sum(share * weight for share, weight in zip(shares, weights))
        weights = [weight / whole for weight in weights] if whole else ()
    return {
        "class_shares": shares,
        "trivial": trivial(canonical, target_table, shares, weights, turn),
        "floor": floor(canonical, target_table),
    }


def settle(model):
    """At a step of a model's optimiser: write down the losses that it was trained with."""
    for use in LOSSES.pending:
        if use.fields is not None and model not in use.models:
            use.models.add(model)
            LOSSES.told[model] = use.fields
            if len(use.wanted):
                with_targets(model, use.wanted)
            else:
                WRITER.put("loss", model=model, **use.fields)
    LOSSES.pending.clear()


def with_targets(model, target_table):
    """Write a model's loss again once more of its targets were seen."""
    fields = LOSSES.told.get(model)
    if fields is not None and len(target_table):
        integral = numbers.is_integral(target_table.reshape(-1))
        settings = fields.get("settings", {})
        fields_of_targets = targets_told(fields["name"], target_table, integral, settings)
        WRITER.put("loss", model=model, **fields, **fields_of_targets)


def backward(original):
    """A patch of `torch.autograd.backward`, which `Tensor.backward` calls too."""

    def backward(tensors, *args, **kwargs):
        if not LOSSES.wanted:
            LOSSES.targets = None  # those of an earlier step belong to no later one
        if LOSSES.idle:
            torch_calls.count("backward")
            if _retains(args, kwargs):
                torch_calls.CALLS.kept_graphs += 1
            return original(tensors, *args, **kwargs)
        if _compiling():
            return original(tensors, *args, **kwargs)
        begin_backward(tensors, _retains(args, kwargs))
        result = original(tensors, *args, **kwargs)
        if torch_calls.CALLS.looking:
            torch_calls.end_backward()
        return result

    return backward


def begin_backward(tensors, retained):
    """A loss is about to be differentiated, of which something is written down."""
    _backward(tensors)
    if LOSSES.wanted:
        _look_back(tensors)
    torch_calls.begin_backward(tensors, retained)
    if torch_calls.CALLS.looking:
        torch_terms.begin_backward(tensors)


def _retains(args, kwargs):
    """Whether a backward pass keeps its graph."""
    return kwargs.get("retain_graph", args[1] if len(args) > 1 else None)


@quiet("backward")
def _backward(tensors):
    for tensor in _scalars(tensors):
        scaled_loss = LOSSES.scaled.pop(id(tensor), None)
        LOSSES.backward.append(_loss_value(tensor if scaled_loss is None else scaled_loss))
        LOSSES.any = True
    del LOSSES.backward[:-256]


def _scalars(tensors):
    scalars = tensors if isinstance(tensors, (list, tuple)) else (tensors,)
    return [one for one in scalars if records.is_tensor(one) and one.numel() == 1]


@quiet("losses written out")
def _look_back(tensors):
    """What the program itself adds to a loss function, or computes in the place of one."""
    for tensor in _scalars(tensors):
        if LOSSES.pending:
            LOSSES.penalised = penalised(tensor.grad_fn, LOSSES.node)
        elif tensor.grad_fn is not None:
            LOSSES.penalised = None
            _written_out(tensor)


def _written_out(tensor):
    line, LOSSES.targets = program.line(), None
    use = _use("", line)
    torch_forward.close(tensor)
    expression = read_expression(tensor)
    if expression is None:
        return
    if expression.targets is not None:
        target_table = _targets(expression.name, expression.predictions, expression.targets)
        LOSSES.targets = (expression.targets, target_table)
    if use.looks < _LOOKS:
        use.looks += 1
        parts = (expression.name, expression.predictions, expression.targets, expression.applied)
        use.fields, use.wanted = describe(*parts)
        where = source.line_of_loss(line)
        use.fields.update(settings=expression.settings, line=where, call=where)
    LOSSES.pending.append(use)


def _loss_value(tensor):
    return tensor.item() if tensor.is_cpu else tensor.detach().reshape(())


def take():
    """The loss of this step: the mean over its backward passes, or, when there was none, what the
    loss function last returned. `LOSSES.penalty` is what the program added to that of parameters,
    `LOSSES.added` of outputs.
    """
    LOSSES.penalty = LOSSES.added = None
    if len(LOSSES.backward) == len(LOSSES.values) == 1:
        rest = LOSSES.backward[0] - LOSSES.values[0]
        if LOSSES.penalised is not None:
            LOSSES.penalty = rest
        elif not isinstance(rest, float) or rest:
            LOSSES.added = rest
    if LOSSES.backward:
        LOSSES.last = _mean(LOSSES.backward, LOSSES.values)
    elif LOSSES.values:
        LOSSES.last = LOSSES.values[-1]
    LOSSES.backward, LOSSES.values, LOSSES.node = [], [], None
    LOSSES.scaled.clear()
    return LOSSES.last


def _mean(losses, values):
    mean = sum(losses) / len(losses) if len(losses) > 1 else losses[0]
    if len(losses) == 1 or len(values) != len(losses):
        return mean
    # Accumulated gradients: a loss that the program has divided by their number is told whole.
    raw = sum(values) / len(values)
    near = abs(mean * len(losses) - raw) <= 1e-3 * abs(raw)
    return raw if near else mean
