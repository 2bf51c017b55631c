"""What an exception says that an installed library lacks: a module, or a name in one."""

import re
from dataclasses import dataclass

_MODULE = r"[A-Za-z_]\w{0,80}(?:\.\w{1,80}){0,8}"
_LACKING = tuple(
    re.compile(pattern)
    for pattern in (
        rf"^cannot import name '(?P<name>\w{{1,100}})' from '(?P<module>{_MODULE})'",
        rf"^[Mm]odule '?(?P<module>{_MODULE})'? has no attribute '?(?P<name>\w{{1,100}})'?",
        rf"^(?P<module>{_MODULE})\.(?P<name>\w{{1,100}}) (?:was|has been) removed\b",
        rf"^No module named '(?P<module>{_MODULE}\.\w{{1,80}})'$",
    )
)
_OF_LIBRARIES = {"ImportError", "ModuleNotFoundError", "AttributeError"}


@dataclass(frozen=True, slots=True)
class LibraryName:
    """A name of a module as a program asks for it; without a `name`, the module itself."""

    module: str
    name: str = ""

    def __str__(self) -> str:
        return f"{self.module}.{self.name}".rstrip(".")


def lacking_name(exception: str, message: str) -> LibraryName | None:
    """What an exception (its class and message) says that an installed library lacks: a module
    below one that is there, or a name in one. None for any other.
    """
    text = message.strip().partition("\n")[0]
    if exception.rsplit(".", 1)[-1] not in _OF_LIBRARIES or "circular import" in text:
        return None
    match = next(filter(None, (pattern.search(text) for pattern in _LACKING)), None)
    if match is None:
        return None
    return LibraryName(match["module"], match.groupdict().get("name") or "")
