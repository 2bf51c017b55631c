"""What attention is given: whether places see what follows them, which of them are masked, and
whether anything tells one place from another.
"""

from . import program, records, torch_forward
from .core import quiet
from .torch_forward import FORWARD

_MOST_LOOKS, _MOST_NODES, _MOSTLY = 40, 40, 0.95
_BY_PLACE = ("mul", "div", "nativelayernorm", "nativedropout", "relu", "gelu", "addmm", "mm")


class Attention:
    """The looks so far: `open` ones have no mask over places, `inverted` ones mask what is there in
    the place of padding, `placeless` ones read embeddings to which no position was added.
    """

    def __init__(self):
        self.looks = self.open = self.closed = self.inverted = self.placeless = 0
        self.lines = {}


ATTENTION = Attention()


def install():
    """Look at calls while forward passes are looked at."""
    FORWARD.before.append(look)


@quiet("attention")
def look(module, arguments, keywords):
    """Note a call of PyTorch's attention over its own places, in training."""
    if type(module).__name__ != "MultiheadAttention" or ATTENTION.looks >= _MOST_LOOKS:
        return
    values_by_name = dict(
        zip(("query", "key", "value", "key_padding_mask", "", "attn_mask"), arguments)
    )
    values_by_name.update(keywords)
    query = values_by_name.get("query")
    if not records.torch().is_grad_enabled() or query is not values_by_name.get("key"):
        return
    ATTENTION.looks += 1
    if values_by_name.get("attn_mask") is None and not values_by_name.get("is_causal"):
        _note("open")
    else:
        ATTENTION.closed += 1
    if _is_inverted(values_by_name.get("key_padding_mask")):
        _note("inverted")
    if _is_placeless(query):
        _note("placeless")


def _note(name):
    setattr(ATTENTION, name, getattr(ATTENTION, name) + 1)
    ATTENTION.lines.setdefault(name, program.line())


def _is_inverted(mask):
    """Whether a mask of padding is true where codes are, and false where padding is."""
    if not records.is_tensor(mask):
        return False
    hidden = mask if mask.dtype == records.torch().bool else mask < 0
    for module, before, *_ in FORWARD.modules.values():
        if type(module).__name__ != "Embedding" or before is None or before.shape != mask.shape:
            continue
        padding = before == (module.padding_idx or 0)
        if not bool(padding.any()) or bool(padding.all()):
            return False
        of_codes, of_padding = (float(hidden[x].float().mean()) for x in (~padding, padding))
        return of_codes > _MOSTLY and of_padding < 1 - _MOSTLY
    return False


def _is_placeless(tensor):
    """Whether what attention reads comes from an embedding by steps that treat all places alike."""
    node = tensor.grad_fn
    for _ in range(_MOST_NODES):
        if node is None:
            return False
        kind = torch_forward.name(node)
        if kind == "embedding":
            return True
        if kind not in _BY_PLACE and not torch_forward.passes(kind):
            return False
        live = [one for one in torch_forward.parents(node) if not _is_weight(one)]
        if len(live) != 1:
            return False
        (node,) = live
    return False


def _is_weight(node):
    if torch_forward.name(node) == "t":
        node = next(iter(torch_forward.parents(node)), node)
    return torch_forward.name(node) == "accumulategrad"


def facts():
    """What is written down of attention, each a number."""
    if not ATTENTION.looks:
        return {}
    names = ("open", "closed", "inverted", "placeless")
    lines = {"attention_line_" + name: line for name, line in ATTENTION.lines.items()}
    return {**{"attention_" + name: getattr(ATTENTION, name) for name in names}, **lines}
