"""What a training program needs installed: what it imports, in the versions that it declares."""

import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from packaging.requirements import InvalidRequirement, Requirement as Parsed

from bot.errors import UserError
from bot.models.diagnosis import TrainingProgram
from bot.models.environment import EnvironmentSpec, PinSource, Requirement
from bot.models.job import EnvironmentOptions
from bot.pipeline.environment import specify
from bot.rules.packages import companions, imports, repositories

_BLOCK = re.compile(r"(?m)^# /// script\s*$\n(?P<body>(?:^#(?: .*)?$\n)+?)^# ///\s*$")
_FILE = "requirements.txt"


def spec(program: TrainingProgram, options: EnvironmentOptions) -> EnvironmentSpec:
    """The environment of a program: options, then its `# /// script` block and the
    requirements.txt beside it, then the newest releases of what it imports.
    """
    found = specify.for_program(options, _imports(program))
    asked = {each.name for each in found.requirements if each.rung is PinSource.OPTION}
    for requirement in declared(program):
        if requirement.name not in asked:
            found = specify.add(found, requirement)
    return found


def declared(program: TrainingProgram) -> Iterator[Requirement]:
    """The requirements that the program states. Raises UserError for a malformed block."""
    rows = [(text, "its script block") for text in _script_block(program.source)]
    listed = program.files.get(_FILE, b"").decode("utf-8", "replace").splitlines()
    rows += [(line, _FILE) for line in listed]
    for text, where in rows:
        if (parsed := _parsed(text)) is not None:
            yield Requirement(
                name=companions.installed_as(repositories.alias(parsed.name)),
                specifier=str(parsed.specifier),
                extras=tuple(sorted(parsed.extras)),
                rung=PinSource.OPTION,
                reason=f"{where} says {text.strip()}",
            )


def _parsed(text: str) -> Parsed | None:
    """A plain requirement; options, addresses and what is for other machines are left out."""
    try:
        parsed = Parsed(re.sub(r"(?:^|\s)#.*", "", text).strip())
    except InvalidRequirement:
        return None
    elsewhere = parsed.marker is not None and not parsed.marker.evaluate()
    return None if parsed.url or elsewhere else parsed


def _script_block(source: str) -> list[str]:
    found = _BLOCK.search(source)
    if found is None:
        return []
    body = "\n".join(line[2:] for line in found["body"].splitlines())
    try:
        listed = tomllib.loads(body).get("dependencies", [])
    except tomllib.TOMLDecodeError as error:
        raise UserError(
            f"The `# /// script` block of the program is not valid TOML ({error}).",
            "Correct or remove it.",
        ) from None
    return [text for text in listed if isinstance(text, str)] if isinstance(listed, list) else []


def _imports(program: TrainingProgram) -> str:
    """The text of the entry and of what it names beside it, without the imports of one another."""
    texts = {
        PurePosixPath(name): content.decode("utf-8", "replace")
        for name, content in program.files.items()
        if name.endswith(".py") or name == program.entry
    }
    own = {path.parts[0].removesuffix(".py") for path in texts}
    names = "|".join(sorted(map(re.escape, own)))
    local = re.compile(rf"(?m)^([ \t]*)(?:from|import)[ \t]+(?:{names})\b(?!\s*,).*$")
    used = _used(PurePosixPath(program.entry), texts)
    ordered = sorted(used, key=lambda path: (str(path) != program.entry, path))
    return "\n\n".join(local.sub(r"\1pass", texts[path]) for path in ordered)


def _used(entry: PurePosixPath, texts: Mapping[PurePosixPath, str]) -> set[PurePosixPath]:
    """The files that a program imports or names, directly or through others; of a package all.
    Another script of the same folder may need what is of no use here.
    """
    own = {path.parts[0].removesuffix(".py") for path in texts}
    found, waiting = {entry}, {entry}
    while waiting:
        text = texts[waiting.pop()]
        words = {word for line in _IMPORT.findall(text) for word in _named(line, own)}
        words |= set(_SCRIPT.findall(text))
        more = {path for path in texts if words & _names(path)} - found
        found |= more
        waiting |= more
    return found


def _named(line: str, own: set[str]) -> list[str]:
    """What an import may take from the files beside the program: nothing of a library, whose name
    a file in some folder may have too.
    """
    parts = [line] if re.search(r"\bimport\b", line) else line.split(",")
    found = (words for part in parts if (words := _WORD.findall(part)))
    return [word for words in found if words[0] in own or not _library(words[0]) for word in words]


def _library(module: str) -> bool:
    standard = module in sys.stdlib_module_names
    return standard or imports.well_known(imports.distribution(module))


def _names(path: PurePosixPath) -> set[str]:
    return {part.removesuffix(".py") for part in path.parts}


_IMPORT = re.compile(r"(?m)^[ \t]*(?:from|import)[ \t](.*)$")
_WORD = re.compile(r"\w+")
_SCRIPT = re.compile(r"\b(\w+)\.py\b")
