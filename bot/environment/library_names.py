"""What an exception says that the installed release of a library lacks: a module, a name in one, or
something that a class or a function had.
"""

import re
from collections.abc import Iterable

from bot.kernel.environment import LibraryName

_MODULE = r"[A-Za-z_]\w{0,80}(?:\.\w{1,80}){0,8}"
_NAME = r"\w{1,100}"
_CALLABLE = rf"(?:{_NAME}\.)*?(?P<name>{_NAME})(?:\.__init__)?\(\)"
_IN_MODULES = tuple(
    re.compile(pattern)
    for pattern in (
        rf"^cannot import name '(?P<name>{_NAME})' from '(?P<module>{_MODULE})'",
        rf"^[Mm]odule '?(?P<module>{_MODULE})'? has no attribute '?(?P<name>{_NAME})'?",
        rf"^(?P<module>{_MODULE})\.(?P<name>{_NAME}) (?:was|has been) removed\b",
        rf"^No module named '(?P<module>{_MODULE}\.\w{{1,80}})'$",
    )
)
_OWNER = r"(?:type object )?'(?P<name>[A-Z]\w{0,100})' (?:object )?"
_COUNT = r"(?:from )?\d+ (?:to \d+ )?positional arguments? but (?P<positional>\d{1,2})\b"
_OF_OBJECTS = tuple(
    re.compile(pattern)
    for pattern in (
        rf"^{_OWNER}has no attribute '(?P<attribute>{_NAME})'",
        rf"^{_CALLABLE} got an unexpected keyword argument '(?P<keyword>{_NAME})'",
        rf"^{_CALLABLE} takes {_COUNT}",
    )
)
_OF_LIBRARIES = {"ImportError", "ModuleNotFoundError", "AttributeError", "TypeError"}


def lacking_name(exception: str, message: str, tops: Iterable[str] = ()) -> LibraryName | None:
    """What an exception (its class and message) says that an installed library lacks: a module
    below one that is there, or a name in one; of one of the packages `tops`, an attribute of a
    class or a parameter. None for any other.
    """
    text = message.strip().partition("\n")[0]
    if exception.rsplit(".", 1)[-1] not in _OF_LIBRARIES or "circular import" in text:
        return None
    packages = tuple(tops)
    for pattern in (*_IN_MODULES, *(_OF_OBJECTS if packages else ())):
        if match := pattern.search(text):
            return LibraryName.model_validate({**match.groupdict(default=""), "tops": packages})
    return None
