"""The file of records, one JSON object a line; and tensors as numbers."""

import json
import math
import os
import sys
import time

from . import numbers
from .core import STATE, is_sampled

# Torch tensors as the numbers of `numbers.py`.

MOST = 16384


def torch():
    return sys.modules["torch"]


def is_tensor(value):
    """A tensor with values: no fake, traced or batched one."""
    if type(value).__name__ not in ("Tensor", "Parameter", "Buffer"):
        return False
    functorch = getattr(torch()._C, "_functorch", None)
    is_wrapped = getattr(functorch, "is_functorch_wrapped_tensor", None)
    return isinstance(value, torch().Tensor) and not (is_wrapped and is_wrapped(value))


def local(tensor):
    """What this process holds of a tensor that is shared out among several."""
    inner = getattr(tensor, "_local_tensor", None)
    if inner is None:
        return tensor
    if inner.shape != tensor.shape:
        STATE.cannot_see("shards of parameters in other processes")
    return inner


def first_tensor(value):
    """The first tensor in what a module takes or returns."""
    if is_tensor(value):
        return value
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        for inner in value:
            tensor = first_tensor(inner)
            if tensor is not None:
                return tensor
    return None


def tensors(value):
    """The tensors that a module takes or returns."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [tensor for one in value for tensor in tensors(one)]
    return [value] if is_tensor(value) else []


def output(value):
    """The first tensor that a module returns, passing over a loss that stands before it."""
    if not isinstance(value, (dict, list, tuple)):
        return first_tensor(value)
    parts = [first_tensor(one) for one in (value.values() if isinstance(value, dict) else value)]
    tensors_present = [one for one in parts if one is not None]
    return next(
        (one for one in tensors_present if one.dim()),
        tensors_present[0] if tensors_present else None,
    )


def flat(tensor, most=MOST):
    """Some elements of a tensor, as doubles on the CPU."""
    tensor = local(tensor.detach())
    if tensor.layout != torch().strided:
        tensor = tensor.to_dense()
    values = tensor.reshape(-1)[:: numbers.stride(tensor.shape, most)]
    return (abs(values) if values.is_complex() else values).cpu().double()


def summary(tensor, most=MOST):
    return numbers.summary(torch(), flat(tensor, most), tensor.shape, tensor.dtype)


def rows(tensor, axis=-1, most=1 << 20):
    """A table with one row for each place and one column for each entry along an axis; what has
    one dimension is a column, unless that axis is named.
    """
    tensor = tensor.detach()
    if tensor.dim() == 0 or (tensor.dim() == 1 and axis == -1):
        tensor, axis = tensor.reshape(-1, 1), -1
    table = tensor.movedim(axis, -1).reshape(-1, tensor.shape[axis])
    fit = max(2, most // max(1, table.shape[1]))
    return table[:: max(1, -(-len(table) // fit))].cpu().double()


def fetch(scalars):
    """The values of scalars, with one wait for each device they are on."""
    numbers_fetched = [None] * len(scalars)
    devices = {}
    for place, scalar in enumerate(scalars):
        if scalar is not None:
            devices.setdefault(scalar.device, []).append(place)
    for places in devices.values():
        stacked = torch().stack([scalars[place].float().reshape(()) for place in places])
        for place, value in zip(places, stacked.tolist()):
            numbers_fetched[place] = value
    return numbers_fetched


# The file of records: one JSON object a line, bounded in size, soon on the disk.

_MOST_BYTES = 7 << 20
_MOST_STEP_BYTES = 6 << 20
_FLUSH_S, _FLUSH_LINES = 0.5, 256
_FRAMEWORKS = ("torch", "keras", "tensorflow", "jax", "flax", "optax", "lightning", "transformers")


class Writer:
    """Appends records. Nothing is written before the first one, so a process that does not train
    leaves no file; a child by fork writes nothing into its parent's.
    """

    def __init__(self):
        self.folder = os.environ.get("REPRISE_TRACE") or "."
        self.lines, self.late = [], []
        self.bytes = 0
        self.flushed = 0.0
        self.begun = False

    def put(self, kind, **fields):
        """Add a record; it is on the disk when this returns, except for a step."""
        if os.getpid() != STATE.pid or (self.bytes > _MOST_BYTES and kind != "end"):
            return
        if not self.begun:
            self.begun = True
            self.put("start", pid=STATE.pid, frameworks=_versions())
        fields["kind"] = kind
        self.lines.append(fields)
        if kind != "step" or len(self.lines) >= _FLUSH_LINES or self._is_due():
            self.flush()

    def step(self, number, fields):
        """Add a step that was sampled or is kept."""
        if self.bytes < _MOST_STEP_BYTES and (fields.get("weights") or is_sampled(number)):
            self.put("step", **fields)

    def flush(self):
        if not self.lines or os.getpid() != STATE.pid:
            return
        lines, self.lines = self.lines, []
        settle(lines)
        data = "".join(_text(line) + "\n" for line in lines).encode()
        self.bytes += len(data)
        self.flushed = time.monotonic()
        path = os.path.join(self.folder, "training-%d.jsonl" % STATE.pid)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            os.write(handle, data)
        finally:
            os.close(handle)
        _show(lines)

    def _is_due(self):
        return time.monotonic() - self.flushed > _FLUSH_S


def _show(lines):
    """Print the last loss for whoever watches the run, when somebody does."""
    losses = [line for line in lines if isinstance(line.get("loss"), float)]
    if losses and os.environ.get("REPRISE_LIVE"):
        last = losses[-1]
        os.write(2, ("\x1ereprise step %d loss %.6g\n" % (last["step"], last["loss"])).encode())


def settle(lines):
    """Fetch the numbers that were left on a device, all at once."""
    places = [(line, key) for line in lines for key in _LOSSES if key in line]
    waiting = [(line, key) for line, key in places if hasattr(line[key], "device")]
    if waiting:
        for (line, key), value in zip(waiting, fetch([line[key] for line, key in waiting])):
            line[key] = value


def _text(line):
    """A record as JSON; most are steps that have only numbers and a name."""
    try:
        return "{%s}" % ", ".join(
            ['"%s": %s' % (key, _SHORT[type(line[key])](line[key])) for key in line]
        )
    except KeyError:
        return json.dumps(plain(line))


def _short(number):
    return "%.8g" % number if math.isfinite(number) else '"%s"' % _name(number)


def plain(value):
    """A value as JSON takes it: numbers short, NaN and infinities as strings."""
    if isinstance(value, float):
        return float("%.8g" % value) if math.isfinite(value) else _name(value)
    if isinstance(value, dict):
        return {str(key)[:200]: plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(inner) for inner in value]
    if isinstance(value, str):
        return value[:500].encode("utf-8", "replace").decode()
    return value


def _name(value):
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _versions():
    versions_by_name = {}
    for name in _FRAMEWORKS:
        version = getattr(sys.modules.get(name), "__version__", None)
        if isinstance(version, str):
            versions_by_name[name] = version
    return versions_by_name


_LOSSES = ("loss", "penalty", "added")
_SHORT = {
    float: _short,
    int: str,
    bool: lambda value: "true" if value else "false",
    type(None): lambda _: "null",
    str: lambda value: json.dumps(plain(value)),
}
WRITER = Writer()
