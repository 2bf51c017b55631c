"""Failures of the environment that hide the reported one, and the fix of each.

A failed first run is not a verdict. Each rule is data: an id, the exception it may carry, a pattern
over the message (or the output, for programs that catch and print), and the fix. Order is from the
specific to the general. Sources: first failures met while building the benchmark of real issues,
and the import guards of transformers, Lightning, Keras and scikit-learn.
"""

import re
from dataclasses import dataclass
from typing import Any

from bot.kernel.attempt import SetupFailure

_PLAIN = r"[A-Za-z][A-Za-z0-9._-]*"
_NAME = rf"{_PLAIN}(?:\[[A-Za-z0-9,._-]+\])?"
_VERSION = r"(?:[<>=!~]=?[A-Za-z0-9.*+]+(?:,[<>=!~]=?[A-Za-z0-9.*+]+)*)?"
# The command as messages write it; an option that takes a file or an address names no package.
_PIP = r"pip3? install (?:(?!-[recfi] |--(?:req|edit|index|extra|find))--?[\w-]+[ =])*['\"`]?"
_ABSENT = "ImportError ModuleNotFoundError MisconfigurationException"
_DEPENDENCY = re.compile(
    r"Import|Depend|Package|Plugin|Backend|Missing|NotInstalled|NotAvailable|Requirement|Distribution"
)
"""Names of exceptions of a library's own for what is not installed."""
_WORDS = frozenset(
    """
    a all an and any dependencies dependency extra extras following it its latest library module needed newer of one
    optional or package packages plugin required same some the their them these this to version with your
    """.split()  # noqa: SIM905
)
"""What stands behind "install" in a sentence and is the name of nothing."""
# An environment variable that holds a secret, and one whose name alone says so.
_KEY_VARIABLE = r"(?-i:\b([A-Z][A-Z0-9]{0,30}(?:_[A-Z0-9]{1,30}){0,6}_(?:KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS))\b)"
_OWN = r"(?-i:((?:[A-Z0-9]+_)+(?:API|ACCESS|AUTH|SECRET)_(?:KEY|TOKEN)|(?:HF|HUGGING_?FACE)(?:_HUB)?_TOKEN))"
_LACKING = r"environ|\bset\b|missing|required?|not found|did not find|provide|no api[ _]key"
# Looked for from the starts of lines and from words that may be one of the two: from every
# character, a long message would cost quadratic time.
_BOTH = rf"(?:(?m:^)|(?={_LACKING}|(?-i:\b[A-Z])))(?=[\s\S]{{0,400}}?(?:{_LACKING}))[\s\S]{{0,400}}?{_KEY_VARIABLE}"


@dataclass(frozen=True, slots=True)
class SetupFailureRule:
    """`way` names the field of SetupFailure that the first group of `pattern` (or `value`)
    fills.
    """

    id: str
    pattern: re.Pattern[str]
    way: str
    value: str = ""
    only: frozenset[str] = frozenset()


def _rule(name: str, pattern: str, way: str, value: str = "", only: str = "") -> SetupFailureRule:
    return SetupFailureRule(
        name, re.compile(pattern, re.IGNORECASE), way, value, frozenset(only.split())
    )


_GPU = (
    r"not compiled with CUDA|no CUDA GPUs? (?:are|is) available|Found no NVIDIA|No supported gpu backend|(?:CUDA|GPUs?) (?:(?:is|are|was) )?(?:not |un)(?:available|found|detected)"
    r"|CUDA driver (?:version is insufficient|initialization failed)|deserialize object on (?:a )?CUDA device|but CUDA is not available"
    r"|(?:requires?|needs) (?:a |an )?(?:CUDA|GPU)|CUDA(?:Accelerator)? can not run|no (?:CUDA|GPU)(?:[ -](?:capable )?device|s? (?:(?:is|are|was) )?(?:available|found|detected))|Unknown backend:? '?(?:gpu|cuda)"
    r"|Unable to initialize backend '?(?:cuda|gpu)|libcuda\.so|libcudart|torch_cuda_|torch\._C' has no attribute '_cuda_|Expected one of cpu.*cuda"
    r"|not linked with support for (?:cuda|mps)|could not (?:find|satisfy).*device.*gpu|MPS backend|mps.*not available|XPU.*not available"
)
_OFFLINE = (
    r"Temporary failure in name resolution|Name or service not known|getaddrinfo failed|Max retries exceeded|couldn't connect to"
    r"|Network is unreachable|URLError|ConnectionError|offline mode is enabled|LocalEntryNotFound|cannot find the requested files in the"
    r"|NameResolutionError|Connection refused|URL fetch failure|could not connect to|No address associated with hostname"
    r"|Can't load [\w ]+ for '[^'\n]+'\. If you were trying to load it from"
)

_INPUT = "the input file, or the shape and type of what is in it"
_UNCOMPILED = _rule(
    "compiled-operators",
    r"Couldn't load (?:custom C\+\+ ops|the image extension)|operator torchvision::\w+ does not exist|No such operator (?:torchvision|image)::"
    r"|Could not run 'torchvision::|'_OpNamespace' '(?:torchvision|image)' object has no attribute",
    "requirement", "torchvision with its compiled operators",
)  # fmt: skip

RULES: tuple[SetupFailureRule, ...] = (
    _UNCOMPILED,
    _rule("numpy-2-abi", r"compiled using NumPy 1\.x cannot be run|numpy\.core\.multiarray failed to import|numpy\.dtype size changed"
          r"|module 'numpy' has no attribute '(?:float_|Inf|NaN|infty|product|cumproduct|in1d|trapz)'|`np\.\w+` was removed in the NumPy 2", "requirement", "numpy<2"),
    _rule("numpy-aliases", r"module 'numpy' has no attribute '(?:float|int|bool|object|str|complex|long)'", "requirement", "numpy<1.24"),
    _rule("pkg-resources", r"No module named '?pkg_resources", "requirement", "setuptools<81"),
    _rule("distutils", r"No module named '?distutils", "requirement", "setuptools<81"),
    _rule("protobuf", r"Descriptors cannot (?:not )?be created directly|cannot import name 'builder' from 'google\.protobuf", "requirement", "protobuf<3.21"),
    _rule("own-extra", r"pip3? install (?:-e |--editable )?['\"`]?\.(\[[A-Za-z0-9,._-]+\])", "requirement"),
    _rule("pip-extra", rf"{_PIP}({_PLAIN}\[[A-Za-z0-9,._-]+\]{_VERSION})", "requirement", only=_ABSENT),
    _rule("pip-hint", rf"{_PIP}({_NAME}{_VERSION})", "requirement", only=f"{_ABSENT} RuntimeError ValueError OSError AttributeError"),
    _rule("conda-hint", rf"(?:conda|mamba) install (?:-c [\w-]+ |-y )*['\"`]?({_NAME})", "requirement", only=_ABSENT),
    _rule("metadata-hint", rf"No package metadata was found for ['\"`]?({_NAME})", "requirement", only=_ABSENT),
    _rule("distribution-hint", rf"The ['\"`]({_NAME}{_VERSION})['\"`] distribution was not found", "requirement"),
    _rule("extra-hint", r"['\"`]([a-z0-9][a-z0-9_-]*)['\"`] (?:optional )?(?:extra|dependency group)s?\b", "requirement", only=_ABSENT),
    _rule("requirement-hint", rf"['\"`]({_NAME}{_VERSION})['\"`] (?:is |was )?(?:not available|required|not installed|missing)", "requirement",
          only="ImportError ModuleNotFoundError RuntimeError MisconfigurationException"),
    _rule("library-not-found", rf"requires the ['\"`]?({_NAME})['\"`]? (?:library|package)", "module", only="ImportError RuntimeError ValueError"),
    _rule("tabular-hint", rf"(?:missing optional dependency|please install|you must install|requires?|need to install|could not import)(?: the)? ['\"`]?({_NAME})['\"`]?", "module",
          only="ImportError ModuleNotFoundError"),
    _rule("plugin-not-found", rf"\b({_NAME}) (?:is |was )?(?:not found|not installed|could not be (?:found|imported)),? .{{0,120}}?\binstall", "requirement",
          only="ImportError ModuleNotFoundError"),
    _rule("own-guard", rf"(?<![\w.-])({_PLAIN}) (?:is|was|has to be|must be) (?:required|needed|installed|not installed|not available)\b[\s\S]{{0,200}}?\binstall (?:the )?['\"`]?\1(?![\w-])", "module"),
    _rule("missing-module", r"No module named ['\"]?([^\W\d]\w*)(?:\.[\w.]+)?['\"]?", "module"),
    _rule("secret-read", rf"^['\"]?{_OWN}['\"]?$", "variable", only="KeyError"),
    _rule("secret-asked-for", _BOTH, "variable"),
    _rule("hub-token", r"token is required\b.{0,60}\bno token found", "variable", "HF_TOKEN"),
    _rule("wandb-key", r"api_key not configured", "variable", "WANDB_API_KEY"),
    _rule("no-gpu", _GPU, "rewrite", "cpu"),
    _rule("offline", _OFFLINE, "needs", "a program with synthetic data or a random configuration in place of what it downloads"),
    _rule("read-only", r"Read-only file system", "needs", "a program that writes nothing outside its own folder", only="OSError"),
    _rule("no-input", r"EOF when reading a line|reading from stdin while output is captured", "needs", "a program that asks for no input", only="EOFError OSError"),
    _rule("no-display", r"no display name|cannot connect to X server|could not connect to display", "needs", "a program that opens no window"),
    _rule("notebook", r"name '(?:get_ipython|display)' is not defined", "needs", "the program as a script, not as a notebook"),
    _rule("missing-name", r"name '([A-Za-z_]\w*)' is not defined", "names", only="NameError"),
    _rule("missing-file", r"(?:No such file or directory|Not a directory|Unable to (?:open|find)[^:]*|file (?:was )?not found|does not exist)[: ]*[bB]?['\"]?([^'\"\n]{1,200})",
          "needs", _INPUT, only="FileNotFoundError NotADirectoryError OSError NotFoundError"),
    _rule("missing-data", r"Dataset (?:metadata file )?not found(?: or corrupted)?\b|is not present in the root directory|Couldn't find any class folder in"
          r"|Found 0 (?:files|images) in|[^\s;'\"]{1,300}; No such file or directory|Parent directory \S{1,300} does not exist", "needs", _INPUT,
          only="RuntimeError FileNotFoundError NotFoundError"),
    _rule("arguments", r"the following arguments are required|^usage: ", "needs", "the command line the program was started with"),
)  # fmt: skip


FILE_RULES = frozenset({"missing-file", "missing-data"})
"""What ends a program that opens something which is not there."""


def recognise(exception: str, message: str) -> SetupFailure | None:
    """The setup failure that an exception (its bare class name) and its message show, or None."""
    name = exception.rsplit(".", 1)[-1]
    for rule in RULES:
        match = rule.pattern.search(message) if _applies(rule, name) else None
        if match and not _is_word(rule, match):
            return _setup_failure(rule, match)
    return None


def made_here(message: str) -> bool:
    """Whether a failure can only come from how an environment was put together, so that it is not
    the reported one even where the report has the same words.
    """
    return bool(_UNCOMPILED.pattern.search(message))


def _applies(rule: SetupFailureRule, name: str) -> bool:
    """Whether an exception of that name may carry what a rule looks for."""
    own = "ImportError" in rule.only and _DEPENDENCY.search(name) is not None
    return not rule.only or not name or name in rule.only or own


def _is_word(rule: SetupFailureRule, match: re.Match[str]) -> bool:
    is_guess = rule.way in {"module", "requirement"} and not rule.value
    return is_guess and match[1].lower().rstrip(".,;:") in _WORDS


def _setup_failure(rule: SetupFailureRule, match: re.Match[str]) -> SetupFailure:
    value = rule.value or (match.group(1).rstrip(".,;:") if match.groups() else "")
    value = f"[{value}]" if rule.id == "extra-hint" else value
    fields: dict[str, Any] = {rule.way: (value,) if rule.way == "names" else value}
    if rule.way == "rewrite":
        fields["hardware"] = "a GPU"
    if rule.way == "variable":
        fields["needs"] = f"a program that works without {value}"
    return SetupFailure(id=rule.id, what=" ".join(match[0].split())[:200], **fields)


@dataclass(frozen=True, slots=True)
class HardwareRule:
    """A pattern over an exception and its message, and what must be there for it to arise."""

    id: str
    pattern: re.Pattern[str]
    needs: str


HARDWARE: tuple[HardwareRule, ...] = (
    HardwareRule("cuda-oom", re.compile(r"CUDA out of memory|HIP out of memory|CUDA_ERROR_OUT_OF_MEMORY|ResourceExhaustedError.*GPU", re.I | re.S), "a GPU"),
    HardwareRule("cuda-error", re.compile(r"CUDA error|CUDA_ERROR_|device-side assert|illegal memory access|cuDNN|CUDNN_STATUS|cuBLAS|CUBLAS_STATUS|cusolver", re.I), "a GPU"),
    HardwareRule("cuda-device", re.compile(r"\bcuda:\d|found at least two devices|\bon (?:the )?(?:cuda|gpu)\b(?! is not)", re.I), "a GPU"),
    HardwareRule("nccl", re.compile(r"\bNCCL\b|ncclSystemError|ncclUnhandled", re.I), "several GPUs"),
    HardwareRule("triton", re.compile(r"triton\.(?:compiler|runtime)\.\w*(?:Error|Resources)|OutOfResources: out of resource", re.I), "a GPU"),
    HardwareRule("mps", re.compile(r"\bMPS backend\b|MPSNDArray|MPSGraph", re.I), "an Apple GPU"),
    HardwareRule("tpu", re.compile(r"\bTPU (?:backend|device)|libtpu", re.I), "a TPU"),
)  # fmt: skip


def demanded(exception: str, message: str) -> HardwareRule | None:
    """The hardware without which this failure cannot arise, or None."""
    text = f"{exception}: {message}"
    return next((rule for rule in HARDWARE if rule.pattern.search(text)), None)
