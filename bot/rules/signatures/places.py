"""Whether an exception arose where the quoted traceback says: by the files and functions of
libraries in it, wherever they are installed and whatever release they come from.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

from bot.models.attempt import Failure
from bot.models.signature import Place

# What stands on the stack of every call, or of each that a filter has passed on.
_WRAPPERS = {
    *("_wrapped_call_impl", "_call_impl", "wrapper", "wrapped", "inner", "error_handler"),
    *("decorate_context", "reraise_with_filtered_traceback", "_call_with_frames_removed"),
}
_STANDARD = "<stdlib>"


class _Spot(NamedTuple):
    file: str
    function: str
    code: str


def same(places: tuple[Place, ...], failure: Failure, *, worded: bool) -> bool:
    """Whether an exception arose in the reported place.

    The stacks have to meet where the library is entered and where the exception is raised: one may
    have frames around those of the other (another caller, a filter, a helper that a release has
    added). A program's own function that a library calls is no place in the library. Where the
    exception is raised in another function of the file, as after a change of the library, the same
    words (`worded`) and a line of code in common stand in.
    """
    reported = _spots((place.file, place.function, place.code) for place in places)
    if not reported or not places[-1].file:
        return True
    last = failure.innermost
    seen = _spots(
        (row.module_path or row.package, row.function, row.code) for row in failure.frames
    )
    if not seen or (last is not None and not last.package):
        return False
    if not any(spot.function in _WRAPPERS for spot in (reported[-1], seen[-1])):
        reported, seen = _unwrapped(reported), _unwrapped(seen)
    if not (_among(reported[0], seen) or _among(seen[0], reported)):
        return False
    if _among(reported[-1], seen) or _among(seen[-1], reported):
        return True
    moved = worded and reported[-1].file == seen[-1].file
    return moved and any(row.code and row in seen for row in reported)


def _spots(rows: Iterable[tuple[str, str, str]]) -> list[_Spot]:
    """The places in libraries; those in Python's own only where there are no others."""
    found = [
        _Spot(_file(file), function.rsplit(".", 1)[-1], " ".join(code.split()))
        for file, function, code in rows
        if file
    ]
    return [spot for spot in found if spot.file != _STANDARD] or found


def _unwrapped(spots: list[_Spot]) -> list[_Spot]:
    return [spot for spot in spots if spot.function not in _WRAPPERS]


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
