"""Where a repository decides a hyperparameter: in the command, a configuration file, the default of
an option, or its code.
"""

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import PurePosixPath

from bot.environment.imports import apply
from bot.kernel import tree_programs
from bot.kernel.attempt import Script
from bot.kernel.bug import ScriptFix
from bot.kernel.outside_text import clip
from bot.kernel.paper import CriterionKind, LocatedValue
from bot.kernel.source.syntax import module_of, name_of, source_lines
from bot.kernel.training_types import Edit, Hyperparameter, TrainingTrace
from bot.kernel.trees import Tree
from bot.papers.criterion_kinds import KINDS, UNREAD, KindRow, share
from bot.papers.scaling import scalings
from bot.program import hyperparameters
from bot.program.hyperparameters import NotApplicable
from bot.program.modules import ProgramFile
from bot.program.settings import Setting, settings_of, text_of, with_value

_MOST_FILES, _MOST_SITES = 60, 40
_CALLED: tuple[CriterionKind, ...] = (
    "preprocessing", "normalisation", "initialisation", "schedule", "augmentation", "optimizer",
    "loss",
)  # fmt: skip
"""Kinds whose value is what is called: `StandardScaler()`, `CosineAnnealingLR(…)`."""
_NAMED_LIKE: dict[CriterionKind, re.Pattern[str]] = {
    "schedule": re.compile(r"LR$|[Ss]chedul|[Aa]nneal|[Dd]ecay|[Ww]arm|OneCycle"),
    "initialisation": re.compile(
        r"_$|(?i:glorot|xavier|kaiming|lecun|orthogonal|^he_?(?:normal|uniform))"
    ),
}
"""What the name of such a call has beside its value: `nn.Linear` is no linear schedule."""
WHY = "the paper's value"
_UNREAD_RANK = 9
_READ_ANY = {"vars", "getattr", "asdict", "Namespace", "SimpleNamespace", "namedtuple", "locals"}
_SETTINGS_NAMES = {
    "args", "opt", "opts", "options", "cfg", "config", "conf", "hparams", "params", "flags",
    "settings", "hps", "arguments", "namespace",
}  # fmt: skip
_OPTION_LIBRARIES = {
    "click", "typer", "fire", "absl", "hydra", "omegaconf", "simple_parsing", "tyro", "gin",
    "pydantic", "dataclasses", "transformers", "attr", "attrs", "ml_collections", "jsonargparse",
}  # fmt: skip


@dataclass(frozen=True)
class Site:
    """A place that decides a hyperparameter, and the program with another value there, None where
    it cannot be written. Of the sites of a kind those of the lowest `rank` count.
    """

    kind: CriterionKind
    located: LocatedValue
    rank: int
    change: Callable[[str], Script | None] = lambda _: None


def locate(script: Script, tree: Tree, trace: TrainingTrace | None = None) -> tuple[Site, ...]:
    """Every place of a program that decides one of the kinds, the strongest first."""
    sites = [
        *_of_settings(script, tree),
        *_of_program(script, tree, trace),
        *_of_code(script, tree),
    ]
    return tuple(sorted(sites, key=lambda site: site.rank))


def deciding(sites: tuple[Site, ...], kind: CriterionKind) -> list[Site]:
    """The sites of a kind that count: all of the strongest rank, each value once."""
    own = [site for site in sites if site.kind == kind]
    best = [site for site in own if site.rank == own[0].rank]
    return list({site.located.value: site for site in reversed(best)}.values())[::-1]


def _canonical(row: KindRow, text: str) -> str:
    value = row.canonical(text)
    return share(value) if row.kind == "split" else value


# Settings: the command, the files that it names, the defaults of options.


def _of_settings(script: Script, tree: Tree) -> Iterator[Site]:
    settings = next(iter(settings_of(script, tree)), [])
    reads = _names_read(script, tree)
    for setting in settings[:2_000]:
        for row in KINDS:
            if row.codes is None or not row.codes.fullmatch(setting.plain):
                continue
            if value := _canonical(row, setting.value):
                rank = 0 if setting.is_given and not setting.file else 1 if setting.file else 2
                place = LocatedValue(value=value, **_location(setting, script, tree))
                if reads is not None and setting.plain not in reads:
                    yield _unread(row.kind, place)
                    continue
                change = _setting_change(script, tree, setting)
                yield Site(row.kind, place, rank, change)


def _unread(kind: CriterionKind, place: LocatedValue) -> Site:
    """A value that no code reads decides nothing: it counts only where nothing else does."""
    return Site(kind, place.model_copy(update={"value": UNREAD}), _UNREAD_RANK)


def _names_read(script: Script, tree: Tree) -> set[str] | None:
    """The attributes and keys that the code of a program reads; None where it may read any, as
    `**config`, `vars(args)` and the decorators of some libraries do.
    """
    names = set[str]()
    paths = [path for path in tree_programs.reachable([script.entry], tree) if path.endswith(".py")]
    modules = {path: module_of(text_of(path, script, tree)) for path in paths}
    own = {
        node.name
        for module in modules.values()
        for node in ast.walk(module)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    }
    for path, module in modules.items():
        for node in ast.walk(module):
            if _reads_any(node, is_entry=path == script.entry) or _hands_on(node, own):
                return None
            names.add(_name_read(node).lstrip("-").replace("-", "_").lower())
    return names


def _hands_on(node: ast.AST, own: set[str]) -> bool:
    """Whether a call gives all settings to code that is not the repository's."""
    if not isinstance(node, ast.Call):
        return False
    values = [*node.args, *(row.value for row in node.keywords)]
    is_given = any(isinstance(one, ast.Name) and one.id in _SETTINGS_NAMES for one in values)
    return is_given and name_of(node.func).rpartition(".")[2] not in {*own, "print", "str", "repr"}


def _reads_any(node: ast.AST, *, is_entry: bool) -> bool:
    """Whether a node reads settings by no name of its own."""
    match node:
        case ast.Attribute(attr="__dict__" | "items" | "values" | "update" | "copy"):
            return True
        case ast.keyword(arg=None) | ast.Dict(keys=[None, *_]):
            return True
        case ast.Call(func=func):
            return name_of(func).rpartition(".")[2] in _READ_ANY
        case ast.FunctionDef(decorator_list=[_, *_]):
            return is_entry
        case ast.Import(names=modules):
            return any(one.name.partition(".")[0] in _OPTION_LIBRARIES for one in modules)
        case ast.ImportFrom(module=str(module)):
            return module.partition(".")[0] in _OPTION_LIBRARIES
    return False


def _name_read(node: ast.AST) -> str:
    """The attribute or key that a node reads, "" for none."""
    match node:
        case ast.Attribute(attr=name) | ast.Subscript(slice=ast.Constant(value=str(name))):
            return name
        case ast.Call(func=ast.Attribute(attr="get" | "pop"), args=[ast.Constant(value=value), *_]):
            return str(value)
    return ""


def _location(setting: Setting, script: Script, tree: Tree) -> dict[str, str | int]:
    """File and line of a setting; none for the command's own words."""
    if setting.file:
        text = text_of(setting.file, script, tree)
        return {"file": setting.file, "line": text.count("\n", 0, setting.start) + 1}
    if setting.is_given:
        return {}
    names = [name for name in (setting.name, *setting.option.names) if name]
    for path in tree_programs.reachable([script.entry], tree)[:_MOST_FILES]:
        for number, line in enumerate(source_lines(text_of(path, script, tree)), 1):
            if any(re.search(rf"['\"]{re.escape(name)}['\"]", line) for name in names):
                return {"file": path, "line": number}
    return {}


def _setting_change(script: Script, tree: Tree, setting: Setting) -> Callable[[str], Script | None]:
    return lambda value: with_value(script, tree, setting, value, WHY)


# PyTorch and Keras: the hyperparameter locator.


def _of_program(script: Script, tree: Tree, trace: TrainingTrace | None) -> Iterator[Site]:
    entry = script.entry
    if not entry.endswith(".py"):
        return
    source = text_of(entry, script, tree)
    files = {path: data for path, data in tree.items() if path.endswith(".py")}
    modules = hyperparameters.program_files({**files, entry: source.encode()}, entry)
    for one in hyperparameters.find(source, trace, modules):
        for row in KINDS:
            if one.kind not in row.places or one.value == "default":
                continue
            text = (
                "0"
                if one.value == "none" and row.kind in {"weight_decay", "momentum"}
                else one.value
            )
            if value := _canonical(row, text):
                place = LocatedValue(value=value, file=one.file or entry, line=one.line)
                change = _program_change(script, source, trace, modules, one)
                yield Site(row.kind, place, 3, change)


def _program_change(
    script: Script,
    source: str,
    trace: TrainingTrace | None,
    modules: tuple[ProgramFile, ...],
    one: Hyperparameter,
) -> Callable[[str], Script | None]:
    def change(value: str) -> Script | None:
        edit = Edit(parameter=one.id, kind=one.kind, before=one.value, after=value, line=one.line)
        try:
            patched = hyperparameters.patch_program(source, [edit], trace, modules)
        except NotApplicable:
            return None
        what = f"{one.id}: {value} instead of {one.value} in {one.file or script.entry}"
        files = {**script.files, script.entry: patched.source, **patched.files}
        return _edited(script, files, (script.entry, *patched.files), what)

    return change


def _edited(
    script: Script, files: Mapping[str, str], changed: tuple[str, ...], what: str
) -> Script:
    fixes = (*script.fixes, ScriptFix(what=what, why=WHY))
    edited = tuple(dict.fromkeys((*script.edited, *changed)))
    return script.model_copy(update={"files": dict(files), "edited": edited, "fixes": fixes})


# Any code: arguments and names that are called like a hyperparameter, and what is called.


def _of_code(script: Script, tree: Tree) -> Iterator[Site]:
    paths = [path for path in tree_programs.reachable([script.entry], tree) if path.endswith(".py")]
    count = 0
    for path in paths[:_MOST_FILES]:
        text = text_of(path, script, tree)
        module = module_of(text)
        unread = set(_unread_parameters(module))
        for name, node in _named_values(module):
            for site in _sites_of(name, node, script, path, text):
                if id(node) in unread:
                    site = _unread(site.kind, site.located)
                count += 1
                if count <= _MOST_SITES * len(KINDS):
                    yield site
        yield from _of_arithmetic(module, path)


def _of_arithmetic(module: ast.Module, path: str) -> Iterator[Site]:
    """Inputs that the program scales by its own arithmetic; that of statistics which nothing reads
    decides nothing.
    """
    for row in islice(scalings(module), _MOST_SITES):
        place = LocatedValue(value=row.value, file=path, line=row.line)
        site = Site("preprocessing", place, 5)
        yield site if row.is_applied else _unread("preprocessing", place)


def _named_values(module: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    for node in ast.walk(module):
        match node:
            case ast.Call(func=func, keywords=keywords):
                yield "", func
                yield from ((one.arg, one.value) for one in keywords if one.arg)
            case ast.arguments():
                yield from _defaults(node)
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                yield name, value
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                yield name, value
            case ast.Dict(keys=keys, values=values):
                for key, value in zip(keys, values, strict=True):
                    if isinstance(key, ast.Constant) and isinstance(key.value, str):
                        yield key.value, value


def _unread_parameters(module: ast.Module) -> Iterator[int]:
    """The defaults of parameters that their functions never read, by the id of the node."""
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names = {
                row.id for part in node.body for row in ast.walk(part) if isinstance(row, ast.Name)
            }
            if not {"locals", "vars"} & names:
                yield from (id(value) for name, value in _defaults(node.args) if name not in names)


def _defaults(node: ast.arguments) -> Iterator[tuple[str, ast.expr]]:
    """The parameters of a function that have a default."""
    parameters = [*node.posonlyargs, *node.args]
    pairs = [*zip(parameters[len(parameters) - len(node.defaults) :], node.defaults, strict=True)]
    yield from ((one.arg, value) for one, value in pairs)
    for one, value in zip(node.kwonlyargs, node.kw_defaults, strict=True):
        if value is not None:
            yield one.arg, value


def _sites_of(name: str, node: ast.expr, script: Script, path: str, text: str) -> Iterator[Site]:
    if not name:
        yield from _called(node, path)
        return
    plain = name.lower().replace("-", "_").lstrip("_")
    for row in KINDS:
        if row.codes is None or not row.codes.fullmatch(plain):
            continue
        if (literal := _literal(node)) and (value := _canonical(row, literal)):
            place = LocatedValue(value=value, file=path, line=node.lineno)
            yield Site(row.kind, place, 4, _literal_change(script, path, text, node, name))


def _called(node: ast.expr, path: str) -> Iterator[Site]:
    name = name_of(node).rpartition(".")[2]
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])|_", " ", name).strip().lower()
    forms = (spaced, spaced.replace(" ", ""), spaced.partition(" ")[0])
    for row in KINDS:
        if row.kind not in _CALLED or not name:
            continue
        if row.kind in _NAMED_LIKE and not _NAMED_LIKE[row.kind].search(name):
            continue
        usable = forms if row.kind == "initialisation" and name.endswith("_") else forms[:2]
        if value := next(
            filter(None, (row.canonical(form) for form in usable if len(form) > 2)), ""
        ):
            yield Site(row.kind, LocatedValue(value=value, file=path, line=node.lineno), 5)


def _literal(node: ast.expr) -> str:
    """A constant, or a list of them, as the text of a value; "" for anything else."""
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return ""
    if isinstance(value, bool) or value is None:
        return ""
    if isinstance(value, tuple | list) and value and len(value) < 9:
        return ", ".join(f"{item:g}" for item in value if isinstance(item, int | float))
    return f"{value:.10g}" if isinstance(value, float) else str(value)[:60]


def _literal_change(
    script: Script, path: str, text: str, node: ast.expr, name: str
) -> Callable[[str], Script | None]:
    def change(value: str) -> Script | None:
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
        if isinstance(node, ast.Tuple | ast.List) or node.end_lineno != node.lineno:
            return None
        lines = text.splitlines(keepends=True)
        before = sum(len(line) for line in lines[: node.lineno - 1])
        line = lines[node.lineno - 1].encode()
        start = before + len(line[: node.col_offset].decode("utf-8", "replace"))
        end = before + len(line[: node.end_col_offset].decode("utf-8", "replace"))
        new = apply(text, [(start, end, repr(value) if is_text else value)])
        what = f"{name}: {value} instead of {clip(text[start:end], 40)} in {PurePosixPath(path)}"
        return _edited(script, {**script.files, path: new}, (path,), what)

    return change
