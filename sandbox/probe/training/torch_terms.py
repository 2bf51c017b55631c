"""What a loss that the program writes out is made of: vectors that are broadcast against columns,
terms that lead to nothing that is stepped, roots of what may be zero, what first has no value, and
the place of a sequence that it is read from.
"""

from . import program, records, source, torch_forward
from .core import STATE, contained
from .torch_forward import FORWARD

_MOST_NODES, _MOST_LOOKS, _MOST_TERMS, _RANK = 300, 60, 16, 3
_MOST_BROKEN = 4000
_BREAKING = {"log": "_saved_self", "log2": "_saved_self", "log10": "_saved_self",
             "div": "_saved_other"}  # fmt: skip
_RECURRENT = ("LSTM", "GRU", "RNN")
_DISTANCES = ("mseloss", "smoothl1loss", "huberloss", "l1loss", "pow", "abs")


class Terms:
    """What was seen so far. `held` are terms of the last backward pass that the step after it did
    not need; they are idle where no other optimizer steps before the next backward pass.
    """

    def __init__(self):
        self.looks = 0
        self.outer, self.outer_line = "", 0
        self.now, self.held, self.line = [], [], 0
        self.idle, self.useful = {}, {}
        self.ends = self.padded = 0.0
        self.picked = 0
        self.root = None
        self.broken = ""
        self.mask = 0.0


TERMS = Terms()


@contained("terms of losses")
def begin_backward(tensors):
    """A loss is about to be differentiated, at a step that is looked at; no value is read while a
    device records a graph.
    """
    if STATE.capturing():
        return
    for key in TERMS.held:
        TERMS.idle[key] = TERMS.idle.get(key, 0) + 1
    TERMS.now, TERMS.held = [], []
    tensors = tensors if isinstance(tensors, (list, tuple)) else (tensors,)
    root = getattr(tensors[0], "grad_fn", None) if len(tensors) == 1 else None
    if root is None or TERMS.looks >= _MOST_LOOKS:
        return
    TERMS.looks += 1
    TERMS.line = program.line()
    terms = _terms(root)
    if 1 < len(terms) <= _MOST_TERMS:
        TERMS.now = [frozenset(map(id, torch_forward.parameters([one]))) for one in terms]
    if not TERMS.outer:
        _look_for_outer(root)
    _look_for_ends(root)
    _look_for_roots(root)
    if not TERMS.broken and not bool(tensors[0].detach().isfinite().all()):
        TERMS.broken = _first_break(root)
    if not TERMS.mask:
        _look_for_masks(root)
    TERMS.picked += _is_of_picked(root)


@contained("terms of losses")
def end_step(optimizer):
    """A step has ended: terms that lead to none of its parameters may be idle."""
    if not TERMS.now and not TERMS.held:
        return
    own = {id(one) for group in optimizer.param_groups for one in group["params"]}
    TERMS.held = [key for key in TERMS.held if not key[1] & own]
    needed = [term for term in TERMS.now if term & own]
    for term in needed:
        TERMS.useful[(TERMS.line, term)] = True
    if needed:
        TERMS.held += [(TERMS.line, term) for term in TERMS.now if term and not term & own]
    TERMS.now = []


def _terms(root):
    """The terms of a sum, past constant factors."""
    terms, waiting = [], [root]
    while waiting and len(terms) <= _MOST_TERMS:
        node = waiting.pop()
        below = torch_forward.parents(node)
        kind = torch_forward.name(node)
        if kind in ("add", "sub") or (kind in ("mul", "div", "neg") and len(below) == 1):
            waiting += below
        else:
            terms.append(node)
    return terms


# A vector times a column.


def _nodes_above(root):
    """The nodes of a graph between a loss and the layers, the nearest to the loss first."""
    waiting, visited = [root], set()
    while waiting and len(visited) < _MOST_NODES:
        node = waiting.pop(0)
        if node not in visited and node not in FORWARD.known:
            visited.add(node)
            yield node
            waiting += torch_forward.parents(node)


def _look_for_outer(root):
    for node in _nodes_above(root):
        shapes = _operands(node) if torch_forward.name(node) in ("mul", "div") else ()
        shapes = shapes or _compared(node)
        if shapes and _is_outer(*shapes):
            TERMS.outer = " and ".join(str(one) for one in shapes)
            TERMS.outer_line = source.line_of_product(TERMS.line)
            return


def _operands(node):
    """The shapes of two factors, () where one is a number or not known, or both are views of one
    tensor.
    """
    shapes, bases = [], []
    for (parent, number), name in zip(node.next_functions, ("_saved_self", "_saved_other")):
        if parent is None:
            saved = torch_forward.saved_tensor(node, name)
            if not records.is_tensor(saved):
                return ()
            shapes.append(tuple(saved.shape))
        else:
            shapes.append(_shape(parent, number))
            bases.append(_base(parent))
    is_pair = len(shapes) == 2 and None not in shapes  # `mul.Scalar` has one
    return shapes if is_pair and len(set(bases)) == len(bases) else ()


def _shape(node, number):
    variable = getattr(node, "variable", None)
    if variable is not None:
        return tuple(variable.shape)
    metadata = getattr(node, "_input_metadata", ())
    return tuple(metadata[number].shape) if number < len(metadata) else None


def _base(node):
    """The node that views of its result go back to."""
    for _ in range(_MOST_TERMS):
        below = torch_forward.parents(node)
        if len(below) != 1 or not torch_forward.passes(torch_forward.name(node)):
            break
        node = below[0]
    return node


def _compared(node):
    """The shapes of a difference that is squared, where it is each of one against each of others
    and only one side is learned.
    """
    if torch_forward.name(node) != "pow" or getattr(node, "_saved_exponent", 0) != 2:
        return ()
    difference = torch_forward.saved_tensor(node, "_saved_self")
    below = torch_forward.parents(node)
    if difference is None or difference.dim() != 2 or torch_forward.name(below[0]) != "sub":
        return ()
    live = [(one, number) for one, number in below[0].next_functions if one is not None]
    rows, columns = difference.shape
    shape = _shape(*live[0]) if len(live) == 1 else None
    if rows != columns or rows < 2 or shape not in ((rows,), (rows, 1)):
        return ()
    table = difference.detach()
    rest = table - table[:, :1] - table[:1] + table[0, 0]
    if float(rest.abs().max()) > 1e-4 * float(table.abs().max().clamp_min(1e-12)):
        return ()
    return [shape, (rows, 1) if shape == (rows,) else (rows,)]


def _is_outer(one, other):
    """Whether a tensor meets another that has its shape and a further axis of one."""
    few, more = sorted((one, other), key=len)
    return len(few) > 0 and more == (*few, 1) and few[-1] > 1


# Roots.


def _look_for_roots(root):
    """The smallest root between a loss and the layers: its slope has no bound near zero."""
    for node in _nodes_above(root):
        is_root = torch_forward.name(node) == "sqrt"
        value = torch_forward.saved_tensor(node, "_saved_result") if is_root else None
        if records.is_tensor(value) and value.numel():
            low = float(value.detach().min())
            TERMS.root = low if TERMS.root is None else min(low, TERMS.root)


def _first_break(root):
    """The first operation on the way to a loss without a value that had none to give: the logarithm
    of zero, or a division by zero; "none" where it is another.
    """
    waiting, visited, breaks = [root], set(), []
    while waiting and len(visited) < _MOST_BROKEN:
        node = waiting.pop()
        if node in visited:
            continue
        visited.add(node)
        name, saved = torch_forward.name(node), _BREAKING.get(torch_forward.name(node))
        value = torch_forward.saved_tensor(node, saved) if saved else None
        if records.is_tensor(value) and bool((value.detach() == 0).any()):
            breaks.append((node._sequence_nr(), name))
        waiting += torch_forward.parents(node)
    return min(breaks)[1] if breaks else "none"


# Masks.


def _look_for_masks(root):
    """A mask of zeros and one larger number than one, by which shares are multiplied."""
    for node in _nodes_above(root):
        below = torch_forward.parents(node)
        if torch_forward.name(node) == "mul" and len(below) == 1:
            mask = _mask_of(node)
            if mask is not None and _are_shares(_base(below[0]), mask.shape):
                TERMS.mask = float(mask.max())
                return


def _mask_of(node):
    """The other factor of a product, where it is one number in some places and zero elsewhere."""
    for name in ("_saved_self", "_saved_other"):
        value = torch_forward.saved_tensor(node, name)
        if records.is_tensor(value) and value.dim() >= _RANK and not value.requires_grad:
            high = float(value.max())
            if (
                high > 1
                and bool(((value == 0) | (value == high)).all())
                and float(value.min()) == 0
            ):
                return value
    return None


def _are_shares(node, shape):
    value = FORWARD.outputs.get(node)
    if value is None or value.numel() != shape.numel():
        return False
    return 0 <= float(value.min()) and float(value.max()) <= 1


# Values of actions.


def _is_of_picked(root):
    """Whether a distance is between numbers of which one of several outputs was picked for each
    sample, as the value of the action that was taken is.
    """
    waiting, visited = [(root, False)], set()
    while waiting and len(visited) < _MOST_NODES:
        node, is_compared = waiting.pop(0)
        if node in visited or node in FORWARD.known:
            continue
        visited.add(node)
        kind = torch_forward.name(node)
        if is_compared and kind in ("gather", "index"):
            return any(_base(one) in FORWARD.known for one in torch_forward.parents(node))
        is_compared = is_compared or kind in _DISTANCES
        waiting += [(one, is_compared) for one in torch_forward.parents(node)]
    return False


# The last place of a sequence.


def _look_for_ends(root):
    """Whether a recurrent layer is read at its last place, and what stands there."""
    layers = {key: entry[0] for key, entry in FORWARD.modules.items()}
    ids = _ids()
    if ids is None:
        return
    waiting, visited = [root], set()
    while waiting and len(visited) < _MOST_NODES:
        node = waiting.pop(0)
        if node in visited:
            continue
        visited.add(node)
        below = torch_forward.parents(node)
        place = FORWARD.known.get(below[0]) if below else None
        kind = type(layers.get(place)).__name__
        if torch_forward.name(node) == "select" and kind in _RECURRENT:
            _note_end(node, layers[place], ids)
            return
        waiting += below


def _ids():
    """The codes that a network with an embedding was given, and the one that stands for padding."""
    entries = list(FORWARD.modules.values())
    embeddings = [one[0] for one in entries if type(one[0]).__name__ == "Embedding"]
    inputs = [one[1] for one in entries if records.is_tensor(one[1])]
    codes = [one for one in inputs if one.dim() == 2 and not one.is_floating_point()]
    return (codes[0], embeddings[0].padding_idx or 0) if embeddings and codes else None


def _note_end(node, layer, ids):
    codes, padding = ids
    axis = 1 if layer.batch_first else 0
    if getattr(node, "_saved_dim", None) != axis:
        return
    at = getattr(node, "_saved_index", None)
    if at not in (codes.shape[axis] - 1, -1, 2**64 - 1):
        return
    last, first = codes.select(axis, -1), codes.select(axis, 0)
    TERMS.ends += 1
    TERMS.padded += float(((last == padding) & (first != padding)).float().mean())


def facts():
    """What is written down of the terms."""
    fields = {}
    if TERMS.outer:
        fields.update(outer_shapes=TERMS.outer, outer_line=TERMS.outer_line)
    if TERMS.picked:
        fields["picked_values"] = TERMS.picked
    if TERMS.mask:
        fields["mask_high"] = TERMS.mask
    if TERMS.root is not None:
        fields["root_low"] = TERMS.root
    if TERMS.broken:
        fields["broken_by"] = TERMS.broken
    if TERMS.ends:
        fields.update(padded_ends=TERMS.padded / TERMS.ends, ends_line=source.line_of_last())
    idle = [(count, line) for (line, term), count in TERMS.idle.items()
            if (line, term) not in TERMS.useful]  # fmt: skip
    if idle:
        fields["idle_terms"], fields["idle_line"] = max(idle)
    return fields
