"""Losses that a program writes out itself: what autograd's graph keeps says what they compare."""

from . import torch_arrays as arrays, torch_graph as graph
from .torch_forward import FORWARD

_MOST_NODES = 300
_LOGS = ("log", "logsoftmax")
_PICKING = ("index", "gather")


class Expression:
    """A loss by its canonical name, "expression" where it is not known."""

    def __init__(self, name, predictions, targets=None, node=None):
        self.name, self.predictions, self.targets = name, predictions, targets
        self.settings = {}
        self.applied = graph.last_activation(node, FORWARD.known) if node is not None else ""


def read(tensor):
    """The expression behind a loss, before its backward pass; None where no model feeds it."""
    node, kinds = _core(tensor.grad_fn)
    found = _compared(node, kinds) or _entropy(node)
    if found is None:
        given = _outputs(node)
        return Expression("expression", given[0][1], node=given[0][0]) if given else None
    if "sum" in kinds and not {"mean", "div"} & set(kinds):
        found.settings["reduction"] = "sum"
    return found


def penalised(node, loss):
    """The ids of the parameters of which terms are added to a loss that the model does not feed;
    None where what is differentiated is no loss with such terms.
    """
    if node is loss:
        return None
    added = []
    while node is not None and node is not loss:
        if graph.name(node) != "add":
            return None
        terms = graph.parents(node)
        node = _only([one for one in terms if one is loss or _outputs(one)])
        added += [one for one in terms if one is not node]
    return frozenset(map(id, graph.parameters(added))) if node is loss else None


def _core(node):
    """Past reductions, constant factors, and terms that the model does not feed."""
    kinds = []
    for _ in range(_MOST_NODES):
        follow = None if node in FORWARD.outputs else _below(node)
        if follow is None:
            break
        kinds.append(graph.name(node))
        node = follow
    return node, kinds


_REDUCING = ("mean", "sum", "neg", "sqrt", "div")


def _below(node):
    kind, live = graph.name(node), graph.parents(node)
    if kind in ("add", "sub"):
        return _only(live if len(live) == 1 else [one for one in live if _outputs(one)])
    if kind in _REDUCING or (kind == "mul" and not _dims(node, "_saved_other", "_saved_self")):
        return _only(live)
    return _only(live) if graph.passes(kind) and kind not in _PICKING else None


def _only(nodes):
    return nodes[0] if len(nodes) == 1 else None


def _dims(node, *names):
    """The largest rank of what a node keeps."""
    kept = [_saved(node, name) for name in names]
    return max([one.dim() for one in kept if one is not None], default=0)


def _saved(node, name):
    """A tensor that a node keeps for its backward pass, None where it keeps none."""
    kept = graph.saved(node, name)
    return kept.detach() if arrays.is_tensor(kept) else None


def _outputs(node):
    """The outputs of modules that feed a node, nearest first, each with its node."""
    found, waiting, seen = [], [node], set()
    while waiting and len(seen) < _MOST_NODES:
        node = waiting.pop(0)
        if node in seen:
            continue
        seen.add(node)
        if node in FORWARD.outputs:
            found.append((node, FORWARD.outputs[node]))
        elif node not in FORWARD.known:
            waiting += graph.parents(node)
    return found


def _compared(node, kinds):
    """A distance between predictions and targets: its difference is kept, the targets follow."""
    live = graph.parents(node)
    square = graph.name(node) == "pow" and getattr(node, "_saved_exponent", 0) == 2
    square = square or (graph.name(node) == "mul" and len(live) == 2 and live[0] is live[1])
    if not square and graph.name(node) != "abs":
        return None
    difference = _saved(node, "_saved_self")
    if difference is None or graph.name(live[0]) != "sub":
        return None
    fed = [(at, one) for at, (one, _) in enumerate(live[0].next_functions) if one is not None]
    if len(fed) != 1:
        return None
    (place, operand), predictions = fed[0], _value(fed[0][1])
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


def _value(node):
    """What a node returned, where it is kept: by itself, or as the output of a module."""
    for _ in range(_MOST_NODES):
        if node in FORWARD.outputs:
            return FORWARD.outputs[node]
        kept = _saved(node, "_saved_result")
        if kept is not None or not graph.passes(graph.name(node)):
            return kept
        node = _only(graph.parents(node))
        if node is None:
            return None
    return None


def _entropy(node):
    """A logarithm of predictions, times the targets or picked by them."""
    kind, live = graph.name(node), graph.parents(node)
    if kind in _PICKING and live:
        return _picked(node, live[0])
    if kind in ("add", "sub") and len(live) == 2:
        told = [_weighted(one) for one in live]
        names = [one.name for one in told if one is not None]
        return told[0] if names == ["categorical_crossentropy"] * 2 and _as_binary(told) else None
    return _weighted(node)


def _as_binary(told):
    """Whether two terms are those of one probability and of its complement."""
    first, other = told
    same = first.predictions.shape == other.predictions.shape
    if not same or float(abs(first.predictions + other.predictions - 1).max()) > 1e-3:
        return False
    first.name = "bce"
    return True


def _weighted(node):
    """Targets times the logarithm of predictions."""
    while graph.name(node) == "neg" or graph.name(node) == "sum":
        node = graph.parents(node)[0]
    log = _only(graph.parents(node))
    if graph.name(node) != "mul" or log is None or graph.name(log) not in _LOGS:
        return None
    kept = [_saved(node, "_saved_self"), _saved(node, "_saved_other")]
    targets = _only([one for one in kept if one is not None and one.dim()])
    predictions = _logged(log, graph.name(log) == "logsoftmax")
    if targets is None or predictions is None or targets.shape != predictions.shape:
        return None
    name = "nll" if graph.name(log) == "logsoftmax" else "categorical_crossentropy"
    return Expression(name, predictions, targets, log if name == "nll" else _before(log))


def _before(log):
    return _only(graph.parents(log))


def _logged(log, logarithms):
    if graph.name(log) == "logsoftmax":
        return _saved(log, "_saved_result")
    kept = _saved(log, "_saved_self")
    return kept.log() if logarithms and kept is not None else kept


def _picked(node, log):
    if graph.name(log) not in _LOGS:
        return None
    predictions = _logged(log, True)
    targets = _saved(node, "_saved_index")
    if targets is None:
        kept = [one for one in getattr(node, "_saved_indices", ()) if arrays.is_tensor(one)]
        targets = kept[-1] if kept else None
    if predictions is None or targets is None:
        return None
    return Expression("nll", predictions, targets.reshape(-1), log)
