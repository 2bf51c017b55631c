"""Where an exception arose: the files, functions and statements that a report quotes."""

import builtins
import re
from collections.abc import Iterable
from itertools import dropwhile
from typing import NamedTuple

from bot.environment import setup_failures
from bot.kernel.attempt import Failure
from bot.kernel.bug import CrashSignature, Place

# Whether an exception arose where the quoted traceback says: by the files and functions of
# libraries in it, wherever they are installed and whatever release they come from.

# What stands on the stack of every call, or of each that a filter has passed on.
_WRAPPERS = {
    *("_wrapped_call_impl", "_call_impl", "wrapper", "wrapped", "inner", "error_handler"),
    *("decorate_context", "reraise_with_filtered_traceback", "_call_with_frames_removed"),
}
# What runs a program for its user, and is on the stack only where it does.
_HOSTS = {"IPython", "ipykernel", "nbclient", "marimo", "streamlit", "pytest", "pluggy", "nose"}
_STANDARD = "<stdlib>"
# Code that a library makes at run time has no file; what a program types or executes has a name.
_GENERATED = re.compile(r"<(?!string>|stdin>|stdlib>|frozen |ipython)[^>]*>", re.I)
_FAR = 60


class _Spot(NamedTuple):
    file: str
    function: str
    line: int | None
    code: str


def same(places: tuple[Place, ...], failure: Failure, *, is_reworded: bool) -> bool:
    """Whether an exception arose in the reported place.

    The stacks have to meet where the library is entered and where the exception is raised: one may
    have frames around those of the other (another caller, a filter, a helper that a release has
    added). What runs the program, as a notebook does, is no library that it enters. A program's own
    function that a library calls is no place in the library. Where the exception is raised in
    another function of the file, as after a change of the library, the same words (`worded`) and a
    line of code in common stand in.
    """
    reported_spots, observed_spots = _reported(places), _observed(failure)
    if not reported_spots or not places[-1].file:
        return True
    if not observed_spots or _ends_in_program(failure):
        return False
    if not any(spot.function in _WRAPPERS for spot in (reported_spots[-1], observed_spots[-1])):
        reported_spots, observed_spots = _unwrap(reported_spots), _unwrap(observed_spots)
    has_shared_entry = _among(reported_spots[0], observed_spots) or _among(
        observed_spots[0], reported_spots
    )
    if not (has_shared_entry or _is_sibling(reported_spots, observed_spots)):
        return False
    if _is_namesake(reported_spots, observed_spots):
        return False
    if _among(reported_spots[-1], observed_spots) or _among(observed_spots[-1], reported_spots):
        return True
    is_moved = is_reworded and reported_spots[-1].file == observed_spots[-1].file
    return is_moved and any(
        row.code and _text_of_spot(row) in map(_text_of_spot, observed_spots)
        for row in reported_spots
    )


def raised_alike(places: tuple[Place, ...], failure: Failure) -> bool:
    """Whether the function that raised an exception is the reported one, whatever led to it."""
    reported_spots, observed_spots = _reported(places), _observed(failure)
    is_inside = bool(reported_spots) and not _ends_in_program(failure)
    return is_inside and _among(reported_spots[-1], observed_spots[-1:])


def _ends_in_program(failure: Failure) -> bool:
    last = next((row for row in failure.frames[::-1] if not _GENERATED.match(row.path)), None)
    return last is not None and not last.package


def _reported(places: tuple[Place, ...]) -> list[_Spot]:
    return _spots((place.file, place.function, place.line, place.code) for place in places)


def _observed(failure: Failure) -> list[_Spot]:
    return _spots(
        (row.module_path or row.package, row.function, row.line, row.code) for row in failure.frames
    )


def _is_sibling(reported_spots: list[_Spot], observed_spots: list[_Spot]) -> bool:
    """Whether two functions of a file lead the same way: `fit` and `fit_transform`."""
    (one, *rest), (other, *more) = reported_spots, observed_spots
    names, others = ([spot[:2] for spot in way] for way in (rest, more))
    return len(rest) > 1 and names == others and one.file == other.file == rest[0].file


def _is_namesake(reported_spots: list[_Spot], observed_spots: list[_Spot]) -> bool:
    """Whether a package is of the same release, by a line that both stacks have, and another
    method of the reported name in one of its files was entered.
    """
    fixed = {_package(spot) for spot in reported_spots if spot.code and spot in observed_spots}
    for spot in (spot for spot in reported_spots if _package(spot) in fixed and spot.line):
        lines = [other.line or 0 for other in observed_spots if other[:2] == spot[:2]]
        if lines and min(abs(line - (spot.line or 0)) for line in lines) > _FAR:
            return True
    return False


def _spots(rows: Iterable[tuple[str, str, int | None, str]]) -> list[_Spot]:
    """The places in libraries, from where the program enters them; those in Python's own only where
    there are no others.
    """
    spots = [
        _Spot(_file(file), function.rsplit(".", 1)[-1], line, " ".join(code.split()))
        for file, function, line, code in rows
        if file
    ]
    entered = [spot for spot in spots if spot.file != _STANDARD] or spots
    return list(dropwhile(lambda spot: _package(spot) in _HOSTS, entered)) or entered


def _unwrap(spots: list[_Spot]) -> list[_Spot]:
    return [spot for spot in spots if spot.function not in _WRAPPERS]


def _package(spot: _Spot) -> str:
    return spot.file.partition("/")[0]


def _text_of_spot(spot: _Spot) -> tuple[str, str, str]:
    return spot.file, spot.function, spot.code


def _file(path: str) -> str:
    """A path as all releases would have it: `numpy/core` for `numpy/_core`."""
    parts = path.removesuffix(".py").replace("\\", "/").split("/")
    return "/".join(re.sub(r"^_+(?=\w)|_impl$", "", part) for part in parts)


def _among(spot: _Spot, others: list[_Spot]) -> bool:
    """Whether a function is among others; pytest does not name each."""
    return any(
        spot.file == other.file
        and (spot.function == other.function or not (spot.function and other.function))
        for other in others
    )


# A failure of which a report gives no words, only the statement of its program that fails.

_REMARK = re.compile(r"\s#.*$", re.M)
# What only a program itself brings about, whatever the library does.
_ALWAYS_OWN = {
    *("NameError", "UnboundLocalError", "SyntaxError", "IndentationError", "AssertionError"),
}
_AROUND = {
    *("ImportError", "ModuleNotFoundError", "OSError", "FileNotFoundError", "PermissionError"),
    *(
        "MemoryError",
        "KeyboardInterrupt",
        "SystemExit",
        "EOFError",
        "TimeoutError",
        "BrokenPipeError",
    ),
    *("ConnectionError", "NotADirectoryError", "IsADirectoryError"),
}
_FROM_C = {"RuntimeError", "NotImplementedError"}
# What a call that cannot be bound, or a name that is not there, raises before any code of the
# library runs, with the name of the callable or its owner.
_UNBOUND = re.compile(
    r"^(?P<name>[\w.<>]{1,200})\(\) (?:missing \d+ required|takes "
    r"|got (?:an unexpected|multiple values|some positional|\d+ unexpected)"
    r"|expected (?:at (?:most|least) )?\d+ arguments?)"
    r"|^'\w{1,100}' is an invalid keyword argument for (?P<function>[\w.]{1,200})\(\)"
    r"|^(?:module|type object) '(?P<owner>[\w.]{1,200})' has no attribute"
    r"|^'(?P<kind>[\w.]{1,200})' object has no attribute"
)
_BUILTIN_KINDS = {"function", "method", "NoneType", "module", "generator", *vars(builtins)}


def fails(
    failure: Failure, signature: CrashSignature, own_names: frozenset[str] = frozenset()
) -> bool:
    """Whether an exception escaped from a library at one of the wanted statements. Without a
    reported class, one that a compiled library raises must be of a kind that Python does not; a
    reported class may arise from what could not be called, unless that is the program's own.
    `own_names` are those that the program defines.
    """
    last = failure.innermost
    name = failure.exception.rsplit(".", 1)[-1]
    if failure.swallowed or last is None or not _at(failure, signature.checks):
        return False
    if setup_failures.recognise(name, failure.message) or (
        not signature.exception and name in _AROUND
    ):
        return False
    if last.package:
        return last.package != "<stdlib>" or bool(signature.exception)
    if not signature.exception:
        return name in _FROM_C and not last.code.strip().startswith("raise")
    # A class that the report names at this very statement needs no frame of the library.
    is_foreign = name not in _ALWAYS_OWN and not _is_own_call(failure, own_names)
    return is_foreign and not last.code.strip().startswith("raise")


def _is_own_call(failure: Failure, own_names: frozenset[str]) -> bool:
    """Whether what could not be called or was not there is the program's own, or one of Python's
    plain kinds (None, a list).
    """
    match = _UNBOUND.match(failure.message)
    parts = next(filter(None, match.groups()), "").split(".") if match else []
    return bool(parts) and (not own_names.isdisjoint(parts) or parts[0] in _BUILTIN_KINDS)


def may_be_at(failure: Failure, statements: tuple[str, ...]) -> bool:
    """Whether an exception came through one of these statements of a program, as far as its frames
    tell.
    """
    return not any(_own_lines(failure)) or _at(failure, statements)


def _at(failure: Failure, statements: tuple[str, ...]) -> bool:
    texts = [_plain(text) for text in statements]
    return any(code in text or text in code for code in _own_lines(failure) for text in texts)


def _own_lines(failure: Failure) -> list[str]:
    """The lines of the program's own that a failure came through."""
    lines = (_plain(frame.code) for frame in failure.frames if not frame.package)
    return [*filter(None, lines)]


def _plain(code: str) -> str:
    return " ".join(_REMARK.sub("", code).split())
