"""What a repository provides and what a training program needs, read from files; nothing of
it is run.
"""

import ast
import configparser
import re
import sys
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement as Parsed
from packaging.utils import canonicalize_name

from bot.environment import imports, package_names, specify
from bot.environment.imports import distribution
from bot.kernel.bug import Provided
from bot.kernel.environment import EnvironmentSpec, PinSource, Requirement
from bot.kernel.errors import UserError
from bot.kernel.job import EnvironmentOptions
from bot.kernel.source.syntax import module_of, name_of
from bot.kernel.training_types import TrainingProgram

# What a repository provides, read from the names of its files and its metadata; nothing of it is
# run.

METADATA = ("pyproject.toml", "setup.cfg", "setup.py")
_ROOTS = ((), ("src",))  # what is searched for modules where a clone lies on the path
_OURS = {"setup", "conftest", "noxfile"}


def read_layout(paths: Iterable[str], texts: Mapping[str, str]) -> Provided:
    """What a tree of these files provides; `texts` are those of its METADATA. What cannot be
    read is left out.
    """
    files = [PurePosixPath(path) for path in paths if path.endswith(".py")]
    project = read_toml(texts.get("pyproject.toml", ""))
    name = (
        _declared_name(project)
        or _of_cfg(texts.get("setup.cfg", ""))
        or _of_setup(texts.get("setup.py", ""))
    )
    on_path = dict.fromkeys(
        modules for root in _ROOTS for path in files if (modules := _below(path, root))
    )
    builds = bool(
        {"setup.cfg", "setup.py"} & set(texts)
        or {"project", "build-system"} & set(project)
        or table(project, "tool", "poetry")
    )
    built_modules = dict.fromkeys((*on_path, *_outermost(files))) if builds else ()
    return Provided(
        name=canonicalize_name(name), on_path=tuple(on_path), built=tuple(built_modules)
    )


def package_in_use(provided: Provided, modules: Collection[str], names: Collection[str]) -> str:
    """What to call what is provided, where a program uses it: it imports or runs through one of
    these top-level modules, or has one of these distributions installed. "" where it does not.
    """
    distributions = {*names, *filter(None, map(distribution, modules))}
    if provided.name and provided.name in distributions:
        return provided.name
    shared = next(
        (module for module in (*provided.on_path, *provided.built) if module in modules), ""
    )
    return (provided.name or canonicalize_name(shared)) if shared else ""


def importable(provided: Provided, name: str, modules: Collection[str]) -> bool:
    """Whether what is used of it (`called` as `used` has it) can be imported without a build."""
    return any(
        module in modules or name in {distribution(module), canonicalize_name(module)}
        for module in provided.on_path
    )


def _below(path: PurePosixPath, root: tuple[str, ...]) -> str:
    """The top-level module that a file stands for or is in, seen from a root; "" for none."""
    first, *inner = path.parts[len(root) :] or ("",)
    alone = not inner and path.stem not in _OURS
    package = inner[-1:] == ["__init__.py"] and (root or first != "src")
    name = first if inner else path.stem
    is_package = path.parts[: len(root)] == root and first and (alone or package)
    return name if is_package and name.isidentifier() else ""


def _outermost(files: list[PurePosixPath]) -> Iterable[str]:
    """Packages in no other package, wherever they lie: where a build takes them from is its own
    affair.
    """
    folders = {path.parent for path in files if path.name == "__init__.py"}
    return (
        folder.name
        for folder in sorted(folders)
        if folder.parent not in folders and folder.name.isidentifier()
    )


def read_toml(text: str) -> dict[str, Any]:
    """The tables of a TOML text, {} where it is none."""
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError):  # also a number of thousands of digits
        return {}


def table(value: object, *keys: str) -> dict[str, Any]:
    """What stands under keys of nested tables, {} where that is no table."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def strings(value: object) -> list[str]:
    """The strings of a list, [] where it is none."""
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _declared_name(project: dict[str, Any]) -> str:
    tables = (table(project, "project"), table(project, "tool", "poetry"))
    names = (row.get("name") for row in tables)
    return next((name for name in names if isinstance(name, str)), "")


def _of_cfg(text: str) -> str:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(text)
    except configparser.Error:
        return ""
    return parser.get("metadata", "name", fallback="")


def _of_setup(text: str) -> str:
    """The name that setup() is called with, where it is written out, there or in a constant."""
    tree = module_of(text)
    nodes = (
        word.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and name_of(node.func) == "setup"
        for word in node.keywords
        if word.arg == "name"
    )
    constants = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    values = (constants.get(getattr(value, "id", ""), value) for value in nodes)
    names = (value.value for value in values if isinstance(value, ast.Constant))
    return next((name for name in names if isinstance(name, str)), "")


# What a training program needs installed: what it imports, in the versions that it declares.

_BLOCK = re.compile(r"(?m)^# /// script\s*$\n(?P<body>(?:^#(?: .*)?$\n)+?)^# ///\s*$")
_FILE = "requirements.txt"


def spec(program: TrainingProgram, options: EnvironmentOptions) -> EnvironmentSpec:
    """The environment of a program: options, then its `# /// script` block and the
    requirements.txt beside it, then the newest releases of what it imports.
    """
    environment_spec = specify.for_program(options, _imports(program))
    names = {
        requirement.name
        for requirement in environment_spec.requirements
        if requirement.rung is PinSource.OPTION
    }
    for requirement in declared(program):
        if requirement.name not in names:
            environment_spec = specify.add(environment_spec, requirement)
    return environment_spec


def declared(program: TrainingProgram) -> Iterator[Requirement]:
    """The requirements that the program states. Raises UserError for a malformed block."""
    rows = [(text, "its script block") for text in _script_block(program.source)]
    lines = program.files.get(_FILE, b"").decode("utf-8", "replace").splitlines()
    rows += [(line, _FILE) for line in lines]
    for text, where in rows:
        if (requirement := _parse_requirement(text)) is not None:
            yield Requirement(
                name=imports.installed_as(package_names.alias(requirement.name)),
                specifier=str(requirement.specifier),
                extras=tuple(sorted(requirement.extras)),
                rung=PinSource.OPTION,
                reason=f"{where} says {text.strip()}",
            )


def _parse_requirement(text: str) -> Parsed | None:
    """A plain requirement; options, addresses and what is for other machines are left out."""
    try:
        requirement = Parsed(re.sub(r"(?:^|\s)#.*", "", text).strip())
    except InvalidRequirement:
        return None
    elsewhere = requirement.marker is not None and not requirement.marker.evaluate()
    return None if requirement.url or elsewhere else requirement


def _script_block(source: str) -> list[str]:
    match = _BLOCK.search(source)
    if match is None:
        return []
    body = "\n".join(line[2:] for line in match["body"].splitlines())
    try:
        entries = tomllib.loads(body).get("dependencies", [])
    except tomllib.TOMLDecodeError as error:
        raise UserError(
            f"The `# /// script` block of the program is not valid TOML ({error}).",
            "Correct or remove it.",
        ) from None
    return [text for text in entries if isinstance(text, str)] if isinstance(entries, list) else []


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
    files = _reachable_files(PurePosixPath(program.entry), texts)
    ordered = sorted(files, key=lambda path: (str(path) != program.entry, path))
    return "\n\n".join(local.sub(r"\1pass", texts[path]) for path in ordered)


def _reachable_files(
    entry: PurePosixPath, texts: Mapping[PurePosixPath, str]
) -> set[PurePosixPath]:
    """The files that a program imports or names, directly or through others; of a package all.
    Another script of the same folder may need what is of no use here.
    """
    own = {path.parts[0].removesuffix(".py") for path in texts}
    files, waiting = {entry}, {entry}
    while waiting:
        text = texts[waiting.pop()]
        words = {word for line in _IMPORT.findall(text) for word in _named_requirement(line, own)}
        words |= set(_SCRIPT.findall(text))
        more = {path for path in texts if words & _names(path)} - files
        files |= more
        waiting |= more
    return files


def _named_requirement(line: str, own: set[str]) -> list[str]:
    """What an import may take from the files beside the program: nothing of a library, whose name
    a file in some folder may have too.
    """
    parts = [line] if re.search(r"\bimport\b", line) else line.split(",")
    word_lists = (words for part in parts if (words := _WORD.findall(part)))
    return [
        word for words in word_lists if words[0] in own or not _library(words[0]) for word in words
    ]


def _library(module: str) -> bool:
    standard = module in sys.stdlib_module_names
    return standard or imports.well_known(imports.distribution(module))


def _names(path: PurePosixPath) -> set[str]:
    return {part.removesuffix(".py") for part in path.parts}


_IMPORT = re.compile(r"(?m)^[ \t]*(?:from|import)[ \t](.*)$")
_WORD = re.compile(r"\w+")
_SCRIPT = re.compile(r"\b(\w+)\.py\b")
