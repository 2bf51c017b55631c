"""Answers on the CPU what a program asks of CUDA, in a run that has no GPU.

Copied into the sandbox as `_reprise_cuda.py` for a program that has no option for the CPU; imports
nothing but the standard library and nothing of ours. Only the functions that take a device are
replaced, so that every other frame of a traceback stays what it is; tensors lie where they lie, and
`.cuda()` gives the tensor itself, as `.cpu()` does. With `REPRISE_CUDA=available`, for a program
that ends without a GPU, `torch.cuda.is_available()` is true for the program's own files; libraries
hear the truth, and take the way that works here. How fast, large or new a GPU is stays unanswered:
a failure must not come from an answer. What a version of PyTorch lacks is passed over.
"""

import contextlib
import functools
import os
import sys
import time

_ELSEWHERE = ("cuda", "mps", "xpu")
_FACTORIES = """
    arange as_tensor asarray bartlett_window blackman_window empty empty_like empty_permuted
    empty_quantized empty_strided eye full full_like hamming_window hann_window kaiser_window
    linspace logspace normal ones ones_like rand rand_like randint randint_like randn randn_like
    randperm range scalar_tensor sparse_bsc_tensor sparse_bsr_tensor sparse_compressed_tensor
    sparse_coo_tensor sparse_csc_tensor sparse_csr_tensor tensor tril_indices triu_indices zeros
    zeros_like
""".split()
_METHODS = "new new_empty new_empty_strided new_full new_ones new_tensor new_zeros".split()
_TYPES = "BFloat16 Bool Byte Char Double Float Half Int Long Short".split()
_WITHOUT_EFFECT = """
    empty_cache init ipc_collect manual_seed manual_seed_all reset_accumulated_memory_stats
    reset_max_memory_allocated reset_max_memory_cached reset_peak_memory_stats seed seed_all
    set_device set_per_process_memory_fraction set_rng_state set_rng_state_all set_stream
    synchronize
""".split()
_ANSWERS = {
    **dict.fromkeys(
        (
            "current_device max_memory_allocated max_memory_cached max_memory_reserved "
            "memory_allocated memory_cached memory_reserved utilization"
        ).split(),
        0,
    ),
    "get_device_name": "CPU",
    "get_rng_state_all": [],
    "is_bf16_supported": True,
    "memory_stats": {},
    "memory_summary": "",
}


def on_cpu(value):
    """The CPU for a device that is not here; anything else as it is."""
    if isinstance(value, str):
        return "cpu" if value.partition(":")[0] in _ELSEWHERE else value
    return "cpu" if getattr(value, "type", None) in _ELSEWHERE else value


def _numbered(value):
    """The same where a number stands for a device."""
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return "cpu" if is_number else on_cpu(value)


def _replace(owner, name, make):
    """Put what `make` gives for a function in its place, if there is one."""
    old = getattr(owner, name, None)
    if old is not None:
        try:
            setattr(owner, name, make(old))
        except Exception:
            return


def _constant(value):
    return lambda old: functools.wraps(old)(lambda *arguments, **options: value)


def _factory(function):
    """A function with its device on the CPU, and no page-locked memory."""

    @functools.wraps(function)
    def call(*arguments, **options):
        options.pop("pin_memory", None)
        if "device" in options:
            options["device"] = _numbered(options["device"])
        return function(*map(on_cpu, arguments), **options)

    _keep_scriptable(function, call)
    return call


def _keep_scriptable(function, replacement):
    """Has TorchScript, which knows PyTorch's functions by their identity, know this one too."""
    builtins = getattr(sys.modules.get("torch.jit"), "_builtins", None)
    name = builtins and builtins._find_builtin(function)
    if name:
        builtins._register_builtin(replacement, name)


def _moving(function):
    """`to` of tensors and modules, whose first argument may be the number of a device."""

    @functools.wraps(function)
    def to(self, *arguments, **options):
        if "device" in options:
            options["device"] = _numbered(options["device"])
        return function(
            self, *map(_numbered, arguments[:1]), *map(on_cpu, arguments[1:]), **options
        )

    return to


def _typed(function):
    """A function that takes the name of a type of tensors."""

    @functools.wraps(function)
    def call(*arguments, **options):
        names = (one.replace(".cuda.", ".") if isinstance(one, str) else one for one in arguments)
        return function(*names, **options)

    return call


def _loading(function):
    @functools.wraps(function)
    def load(f, map_location=None, *arguments, **options):
        return function(f, "cpu", *arguments, **options)

    return load


def _generator(own):
    """Random generators, of which that of a GPU is one of the CPU."""

    class Kind(type(own)):
        def __instancecheck__(cls, instance):
            return isinstance(instance, own)

    class Generator(own, metaclass=Kind):
        def __new__(cls, device="cpu"):
            return own.__new__(cls, on_cpu(device))

    return functools.wraps(own, updated=())(Generator)


class _Event:
    """A moment on the CPU."""

    def __init__(self, *_arguments, **_options):
        self._at = 0.0

    def record(self, stream=None):
        self._at = time.perf_counter()

    def elapsed_time(self, end_event):
        return (end_event._at - self._at) * 1000

    def query(self):
        return True

    def wait(self, stream=None):
        """All before it has been done."""

    synchronize = wait


class _Stream:
    """The order in which the CPU works."""

    cuda_stream = 0

    def __init__(self, *_arguments, **_options):
        """There is one alone."""

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        return None

    def record_event(self, event=None):
        event = event or _Event()
        event.record()
        return event

    def query(self):
        return True

    def synchronize(self, _other=None):
        """All before it has been done."""

    wait_event = wait_stream = synchronize


def _is_own(path):
    """Whether a file is the program's own, not one of a library."""
    return "site-packages" not in path and "dist-packages" not in path


def _answering(own_answer):
    """A function that answers so to the files of the program."""

    def make(function):
        @functools.wraps(function)
        def call():
            return own_answer if _is_own(sys._getframe(1).f_code.co_filename) else function()

        return call

    return make


def _torch(torch):
    _remember_factories()
    for owner, names in (
        (torch, _FACTORIES),
        (torch.Tensor, _METHODS),
        (getattr(torch, "fft", None), ("fftfreq", "rfftfreq")),
    ):
        for name in names:
            _replace(owner, name, _factory)
    for owner in (torch.Tensor, torch.nn.Module):
        _replace(owner, "to", _moving)
    for name in ("cuda", "pin_memory"):
        _replace(torch.Tensor, name, _returning_self)
    _replace(torch.Tensor, "record_stream", _constant(None))
    _replace(torch.Tensor, "type", _typed)
    _replace(torch, "set_default_tensor_type", _typed)
    _replace(torch, "Generator", _generator)
    for owner in (torch, torch.jit):
        _replace(owner, "load", _loading)
    _cuda(torch, torch.cuda)


def _remember_factories():
    """Has `with torch.device(...)` and `torch.set_default_device` look up the factories that they
    are for while those are PyTorch's own.
    """
    try:
        from torch.utils import _device
    except ImportError:
        return
    _device._device_constructors()
    _replace(_device.DeviceContext, "__init__", _moving)


def _returning_self(function):
    return functools.wraps(function)(lambda self, *arguments, **options: self)


def _cuda(torch, cuda):
    for name in _WITHOUT_EFFECT:
        _replace(cuda, name, _constant(None))
    for name, value in _ANSWERS.items():
        _replace(cuda, name, _constant(value))
    for name in ("mark", "range_pop", "range_push"):
        _replace(getattr(cuda, "nvtx", None), name, _constant(0))
    for name in _TYPES:
        _replace(cuda, name + "Tensor", lambda _, name=name: getattr(torch, name + "Tensor"))
    for name in ("device", "device_of", "stream"):
        _replace(cuda, name, lambda _: contextlib.nullcontext)
    for name, stand_in in (("Stream", _Stream), ("ExternalStream", _Stream), ("Event", _Event)):
        _replace(cuda, name, lambda _, stand_in=stand_in: stand_in)
    for name in ("current_stream", "default_stream"):
        _replace(cuda, name, lambda _: lambda device=None: _Stream())
    _replace(cuda, "get_rng_state", lambda _: lambda device=None: torch.get_rng_state())
    _replace(cuda, "initial_seed", lambda _: torch.initial_seed)
    if os.environ.get("REPRISE_CUDA") == "available":
        _replace(cuda, "is_available", _answering(True))
        _replace(cuda, "device_count", _answering(1))


def _dynamo(dynamo):
    """Has `torch.compile` take these functions as PyTorch's own."""
    torch = sys.modules["torch"]
    for owner, names in ((torch, _FACTORIES), (torch.Tensor, [*_METHODS, "to"])):
        for name in names:
            if hasattr(owner, name):
                dynamo.allow_in_graph(getattr(owner, name))


HOOKS = {"torch": _torch, "torch._dynamo": _dynamo}
"""What is done to PyTorch once it is imported; TensorFlow and JAX turn to the CPU themselves."""
