"""What a failed run lacks: a package, or a file or weights, by what its messages say."""

import posixpath
import re
from collections.abc import Iterable

from bot.environment import setup_failures, specify
from bot.kernel import endings
from bot.kernel.environment import EnvironmentSpec, Requirement
from bot.kernel.outside_text import one_line
from sandbox.port import RunResult

_PATHS = tuple(
    re.compile(pattern)
    for pattern in (
        r"(?:No such file or|Not a) directory: [bB]?(['\"])(?P<path>.+?)\1",
        r"unable to open file: name = '(?P<path>[^']+)'",  # h5py
        r"[Ff]ile [bB]?'(?P<path>[^']+)' does not exist",  # pandas
        r"Unable to find '(?P<path>[^']+)'",  # datasets
        r"Couldn't find any class folder in (?P<path>\S+?)\.?(?:\s|$)",  # torchvision
        r"Found 0 (?:files|images) in(?: subfolders of)?:? (?P<path>\S+?)\.?(?:\s|$)",
        r"present in the root directory .* place it in (?P<path>\S+?)\.?(?:\s|$)",
        r"(?P<path>[^\s;'\"]{1,300}); No such file or directory",  # TensorFlow
        r"Parent directory (?P<path>\S{1,300}) does not exist",  # torch
    )
)
_ARGUMENT = re.compile(r"\(\s*(?:\w+\s*=\s*)?['\"](?P<path>[^'\"]+)['\"]")
"""The first argument of a call, a text: where a data set of torchvision is looked for."""
_WORKDIR = re.compile(r"^(?:/repro|/\S*/reprise-run-[0-9a-f]{16}/work)(?:/|$)")
_ABSOLUTE = re.compile(r"^(?:/|[A-Za-z]:\\)")

_HUB_NAME = r"(?P<name>[A-Za-z0-9][\w.-]*(?:/[\w.-]+)?)"
_WEIGHTS = tuple(
    re.compile(pattern)
    for pattern in (
        rf"https?://[\w.]+/(?:api/models/)?{_HUB_NAME}/(?:resolve|tree|revision)/",
        rf"looks like {_HUB_NAME} is not the path to a directory",
        rf"Can't load [\w ]+ for '{_HUB_NAME}'",
        rf"^(?:\w*Error: )?{_HUB_NAME} is not a local folder and is not a valid model identifier",
        rf"Cannot load model {_HUB_NAME}: ",  # diffusers
    )
)
_LOADS = (
    re.compile(rf"(?:from_pretrained|hf_hub_download|snapshot_download)\(\s*(?:\w+\s*=\s*)?['\"]{_HUB_NAME}['\"]"),
    re.compile(r"(?P<name>\w+)\([^()]*(?:pretrained\s*=\s*True|weights\s*=\s*(?!None)[\w'\"])"),
)  # fmt: skip


def path_in(messages: Iterable[str], code: str) -> str:
    """The missing file as a program asked for it: by what messages say of it, else by the line of
    `code` that failed. "" where nothing says it.
    """
    for message in messages:
        for pattern in _PATHS:
            if match := pattern.search(message):
                return match["path"].replace("\\\\", "\\")
    match = _ARGUMENT.search(code)
    return match["path"] if match is not None else ""


def in_tree(path: str, folder: str) -> str:
    """A path by its place in the tree, in whose folder the program started; as it is where it is
    none.
    """
    inside = _WORKDIR.sub("", path)
    if not path or (inside == path and _ABSOLUTE.match(path)):
        return one_line(path)[:200]
    joined = posixpath.normpath(posixpath.join(folder if inside == path else "", inside))
    return one_line(joined)[:200]


def weights_in(messages: Iterable[str], codes: Iterable[str]) -> str:
    """The name of the weights that a program could not load, by messages or by the lines of code
    that failed. "" where nothing says it.
    """
    for message in messages:
        for pattern in _WEIGHTS:
            if match := pattern.search(message):
                return match["name"]
    matches = (pattern.search(code) for code in codes for pattern in _LOADS)
    return next((match["name"] for match in matches if match), "")


def requirement_of(result: RunResult, spec: EnvironmentSpec) -> Requirement | None:
    """What to install before a program that ended so can run; None where that is not it."""
    traceback = endings.failure(result)
    setup_failure = (
        setup_failures.recognise(traceback.exception, traceback.message) if traceback else None
    )
    if setup_failure is None or not (setup_failure.module or setup_failure.requirement):
        return None
    return specify.missing(setup_failure.module, setup_failure.requirement, None, spec)
