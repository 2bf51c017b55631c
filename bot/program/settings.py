"""The settings that a program of a repository runs with: what its command, the configuration files
that it names, and the source that declares its options say (argparse, click, typer, fire, absl,
hydra); nothing of the program is run.
"""

import ast
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import PurePosixPath

import yaml

from bot.kernel import tree_programs
from bot.kernel.attempt import Script
from bot.kernel.bug import ScriptFix
from bot.kernel.source.syntax import module_of, name_of, nodes


@dataclass(frozen=True, slots=True)
class DeclaredOption:
    """An option that a program declares. `default` is "" where it has none or its source does not
    say. A switch takes no value, and `off` turns it off; `false` is the value for no, and a value
    of one that `is_joined` follows "="; `about` is its help, and what the source compares it with.
    """

    names: tuple[str, ...] = ()
    default: str = ""
    choices: tuple[str, ...] = ()
    is_switch: bool = False
    off: str = ""
    is_joined: bool = False
    false: str = "False"
    about: str = ""


@dataclass(frozen=True, slots=True)
class Setting:
    """A value and where it stands: words of the command from `start` to `end`, characters of a
    `file`, or, with both at the command's end, the default of an option that it does not give.
    `head` and `prefix` stand before the value, `quote` on both sides of it.
    """

    name: str
    value: str
    start: int
    end: int
    head: tuple[str, ...] = ()
    prefix: str = ""
    quote: str = ""
    file: str = ""
    option: DeclaredOption = DeclaredOption()

    @property
    def plain(self) -> str:
        """The name without dashes and what it is a part of."""
        return self.name.lstrip("-+").rpartition(".")[2].replace("-", "_").lower()

    @property
    def is_given(self) -> bool:
        """Whether the command or a file states it."""
        return self.end > self.start


def text_of(path: str, script: Script, tree: Mapping[str, bytes]) -> str:
    """A file of a program as it is run: its own version, else that of the tree."""
    return script.files.get(path) or tree[path].decode("utf-8", "replace")


# Where the settings of a program stand.


def settings_of(script: Script, tree: Mapping[str, bytes]) -> Iterator[list[Setting]]:
    """The settings of a program: those of its command line and of the files that it names, with the
    defaults of the options that its own file declares; then with those of the modules it imports,
    which may declare them for programs of their own.
    """
    command = script.command
    if command[:2] == ("-m", "pytest") or script.entry not in tree:
        return
    texts = [text_of(path, script, tree) for path in tree_programs.reachable([script.entry], tree)]
    own, *others = (list(_declared(text)) for text in texts)
    settings = [*_settings_of(command, [*own, *chain.from_iterable(others)])]
    names = {name for setting in settings for name in (setting.name, *setting.option.names)}
    defaults = dict[tuple[str, ...], Setting]()
    for option in (*own, *chain.from_iterable(others)):
        if names.isdisjoint((*option.names, option.off)):
            defaults.setdefault(option.names, _default(option, len(command)))
    words = [*command[1:], *(one.value for one in (*settings, *defaults.values()))]
    files = _config_files((*words, *_hydra_files(script, texts[0])), script, tree)
    values = chain.from_iterable(_values(path, text_of(path, script, tree)) for path in files)
    stated = [_with_group(one, tree) for one in (*settings, *values)]
    if any("add_subparsers" in text for text in texts):
        defaults = {}  # which of the commands takes an option is not read
    yield [*stated, *(one for one in defaults.values() if one.option in own)]
    yield [*stated, *defaults.values()]


def _settings_of(command: tuple[str, ...], options: list[DeclaredOption]) -> Iterator[Setting]:
    """What the words after the program say, declared or not."""
    option_of = {name: option for option in options for name in (*option.names, option.off) if name}
    at = 2 if command[0] == "-m" else 1
    while at < len(command):
        word, start = command[at], at
        at += 1
        name, sign, value = word.partition("=")
        option = option_of.get(name, DeclaredOption())
        if sign and re.fullmatch(r"[-+\w.]+", name):
            yield Setting(name, value, start, at, prefix=f"{name}=", option=option)
        elif word.startswith("-"):
            follows = at < len(command) and not re.match(r"-\D", command[at])
            if follows and not option.is_switch:
                value, at = command[at], at + 1
            yield Setting(word, value, start, at, head=(word,), option=option)


def _default(option: DeclaredOption, end: int) -> Setting:
    """The setting of an option that a command ending at word `end` does not give."""
    name = max(option.names, key=len)
    if option.is_joined and not option.is_switch:
        return Setting(name, option.default, end, end, prefix=f"{name}=", option=option)
    return Setting(name, option.default, end, end, head=(name,), option=option)


def _with_group(setting: Setting, tree: Mapping[str, bytes]) -> Setting:
    """A setting that names a file of its group, as `trainer=gpu` does, may name another one."""
    place = f"{setting.name.removeprefix('defaults.')}/{setting.value}.yaml"
    path = next((path for path in tree if f"/{path}".endswith(f"/{place}")), "")
    if setting.head or not path:
        return setting
    folder = path.removesuffix(f"{setting.value}.yaml")
    stems = (path.removeprefix(folder) for path in tree if path.startswith(folder))
    choices = tuple(stem.removesuffix(".yaml") for stem in stems if "/" not in stem)
    return replace(setting, option=DeclaredOption(choices=choices))


# What a program's source declares.

_PARSED = re.compile(r"HfArgumentParser|simple_parsing|\btyro\b|\bdraccus\b|\bpyrallis\b")
_TRAINING_ARGUMENTS = (
    DeclaredOption(("--num_train_epochs",), "3"),
    DeclaredOption(("--max_steps",)),
)


def _declared(text: str) -> Iterator[DeclaredOption]:
    tree = module_of(text)
    for call in nodes(tree, ast.Call):
        name = name_of(call.func)
        if name == "add_argument":
            yield from _argparse_option(call, text)
        elif name == "option":
            yield from _click_option(call)
        elif name.startswith("DEFINE_"):
            yield from _absl_option(call, name)
    started = _started(tree)
    for function in nodes(tree, ast.FunctionDef):
        if started.get(function.name, "") or any(map(_is_typer, function.decorator_list)):
            yield from _parameters(function, is_fire=started.get(function.name) == "Fire")
    if _PARSED.search(text):
        yield from _fields(tree)
        if "TrainingArguments" in text:
            yield from _TRAINING_ARGUMENTS


_NO_ID = re.compile(r"\.(\w+) *(?:>= *0|< *0|[!=]= *-1)\b")
"""A comparison with -1, which stands for no GPU."""


def _argparse_option(call: ast.Call, text: str) -> Iterator[DeclaredOption]:
    names, keywords = _names(call), _keywords(call)
    action = ast.unparse(keywords["action"]).strip("'\"") if "action" in keywords else "store"
    kind = action.rpartition(".")[2]
    if not names or kind not in {"store", "store_true", "store_false", "BooleanOptionalAction"}:
        return
    default, long = _literal(keywords.get("default")), max(names, key=len)
    off = f"--no-{long.lstrip('-')}" if kind == "BooleanOptionalAction" else ""
    no_id = "-1" if long.lstrip("-").replace("-", "_") in _NO_ID.findall(text) else ""
    option = DeclaredOption(
        names, default, _choices(keywords.get("choices")), kind != "store", off,
        false="" if name_of(keywords.get("type", call)) == "bool" else "False",
        about=f"{_literal(keywords.get('help'))} {no_id}".lower(),
    )  # fmt: skip
    yield from _unless_conditional(option, keywords.get("default"))


def _click_option(call: ast.Call) -> Iterator[DeclaredOption]:
    names, keywords = _names(call), _keywords(call)
    pairs = [name.split("/") for name in names]
    off = next((pair[1].strip() for pair in pairs if len(pair) == 2), "")
    is_switch = bool(off) or _literal(keywords.get("is_flag")) == "True"
    kind = keywords.get("type")
    choices = _choices(kind.args[0]) if isinstance(kind, ast.Call) and kind.args else ()
    option = DeclaredOption(
        tuple(pair[0].strip() for pair in pairs), _literal(keywords.get("default")), choices,
        is_switch, off,
    )  # fmt: skip
    if names:
        yield from _unless_conditional(option, keywords.get("default"))


def _absl_option(call: ast.Call, function: str) -> Iterator[DeclaredOption]:
    texts = [_literal(one) for one in call.args]
    if len(call.args) < 2 or not re.fullmatch(r"\w+", texts[0]):
        return
    is_switch = function in {"DEFINE_bool", "DEFINE_boolean"}
    choices = _choices(call.args[2]) if function == "DEFINE_enum" and len(call.args) > 2 else ()
    off = f"--no{texts[0]}" if is_switch else ""
    option = DeclaredOption((f"--{texts[0]}",), texts[1], choices, is_switch, off, is_joined=True)
    yield from _unless_conditional(option, call.args[1])


def _parameters(function: ast.FunctionDef, *, is_fire: bool) -> Iterator[DeclaredOption]:
    """The parameters of a function that fire or typer makes a command of."""
    rows = function.args
    every = [*rows.posonlyargs, *rows.args]
    pairs: list[tuple[ast.arg, ast.expr | None]] = [
        *zip(every[len(every) - len(rows.defaults) :], rows.defaults, strict=True),
        *zip(rows.kwonlyargs, rows.kw_defaults, strict=True),
    ]
    for parameter, default in pairs:
        name = parameter.arg if is_fire else parameter.arg.replace("_", "-")
        names: tuple[str, ...] = (f"--{name}",)
        if isinstance(default, ast.Call) and name_of(default.func) == "Option":
            names = _names(default) or names
            default = default.args[0] if default.args else None
        text = _literal(default)
        is_switch = text in {"True", "False"} and not is_fire
        off = f"--no-{names[0].lstrip('-')}" if is_switch else ""
        option = DeclaredOption(names, text, (), is_switch, off, is_joined=is_fire)
        yield from _unless_conditional(option, default)


def _fields(tree: ast.Module) -> Iterator[DeclaredOption]:
    """The fields of data classes that a parser makes options of."""
    for node in nodes(tree, ast.ClassDef):
        if any("dataclass" in ast.unparse(one) for one in node.decorator_list):
            for field in node.body:
                if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                    value = field.value
                    if isinstance(value, ast.Call):
                        value = _keywords(value).get("default")
                    text = _literal(value)
                    if text not in {"True", "False"}:
                        yield DeclaredOption((f"--{field.target.id}",), text)


def _started(tree: ast.Module) -> dict[str, str]:
    """The functions that `Fire(f)` or `typer.run(f)` starts, with what starts them."""
    calls = (call for call in nodes(tree, ast.Call) if call.args)
    rows = ((name_of(call.args[0]), ast.unparse(call.func)) for call in calls)
    return {
        function: starter.rpartition(".")[2]
        for function, starter in rows
        if starter in {"Fire", "fire.Fire", "typer.run"}
    }


def _is_typer(decorator: ast.expr) -> bool:
    return isinstance(decorator, ast.Call) and name_of(decorator.func) == "command"


def _unless_conditional(
    option: DeclaredOption, default: ast.expr | None
) -> Iterator[DeclaredOption]:
    """An option, but for one whose default follows what the machine has."""
    if default is None or "is_available" not in ast.unparse(default):
        yield option


def _names(call: ast.Call) -> tuple[str, ...]:
    texts = [_literal(one) for one in call.args]
    return tuple(text for text in texts if re.match(r"--?[A-Za-z]", text))


def _keywords(call: ast.Call) -> dict[str, ast.expr]:
    return {one.arg: one.value for one in call.keywords if one.arg}


def _literal(node: ast.expr | None) -> str:
    """A constant as text; "" for None and for what is no constant."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return f"-{_literal(node.operand)}"
    is_value = isinstance(node, ast.Constant) and node.value is not None
    return str(node.value) if is_value and isinstance(node, ast.Constant) else ""


def _choices(node: ast.expr | None) -> tuple[str, ...]:
    parts = node.elts if isinstance(node, ast.List | ast.Tuple | ast.Set) else []
    return tuple(map(_literal, parts))


# What a configuration file says.

_MOST_CHARACTERS, _MOST_EVENTS, _MOST_FILES = 65_536, 5_000, 8
_ENDS = (".yaml", ".yml", ".json")


def _config_files(words: Iterable[str], script: Script, tree: Mapping[str, bytes]) -> list[str]:
    """The files of the tree among the words, and those that such a file names as its defaults."""
    waiting = list(dict.fromkeys(filter(None, (in_tree(word, script, tree) for word in words))))
    files = list[str]()
    while waiting and len(files) < _MOST_FILES:
        path = waiting.pop(0)
        files.append(path)
        folder = PurePosixPath(path).parent
        for setting in _values(path, text_of(path, script, tree)):
            group = setting.name.removeprefix("defaults.")
            place = (folder / group / f"{setting.value}.yaml").as_posix()
            if group != setting.name and place in tree and place not in (*files, *waiting):
                waiting.append(place)
    return files


def in_tree(
    word: str, script: Script, tree: Mapping[str, bytes], ends: tuple[str, ...] = _ENDS
) -> str:
    """The file of the tree that a word of a command names, "" where it names none."""
    if not word.endswith(ends) or word.startswith("/"):
        return ""
    places = (posixpath.normpath(posixpath.join(folder, word)) for folder in (script.folder, ""))
    return next((place for place in places if place in tree), "")


def _hydra_files(script: Script, text: str) -> Iterator[str]:
    """The configuration that `@hydra.main` names, by its path in the tree."""
    for call in nodes(module_of(text), ast.Call):
        if ast.unparse(call.func) == "hydra.main":
            keywords = _keywords(call)
            folder, name = (_literal(keywords.get(key)) for key in ("config_path", "config_name"))
            file = f"{name.removesuffix('.yaml')}.yaml"
            yield posixpath.normpath(posixpath.join(script.entry, "..", folder, file))


def _values(path: str, text: str) -> Iterator[Setting]:
    """The plain values of a YAML or JSON file, each named by the keys that lead to it. The events
    of the parser are read, not their tree, so that no alias can grow.
    """
    levels = list[_Node]()
    try:
        for event in islice(yaml.parse(text[:_MOST_CHARACTERS], yaml.SafeLoader), _MOST_EVENTS):
            if isinstance(event, yaml.CollectionStartEvent):
                levels.append(_Node(isinstance(event, yaml.MappingStartEvent)))
                continue
            if isinstance(event, yaml.CollectionEndEvent):
                levels.pop()
            elif isinstance(event, yaml.ScalarEvent) and levels and levels[-1].awaits_key:
                levels[-1].key = event.value
                continue
            elif isinstance(event, yaml.ScalarEvent) and event.style in {None, '"', "'"}:
                name = ".".join(level.key for level in levels if level.key)
                marks = (event.start_mark, event.end_mark)
                start, end = (mark.index if mark is not None else 0 for mark in marks)
                yield Setting(name, event.value, start, end, quote=event.style or "", file=path)
            if levels:
                levels[-1].key = None
    except (yaml.YAMLError, ValueError):
        return


@dataclass(slots=True)
class _Node:
    """A mapping or a list of a file, and the key whose value comes next."""

    is_mapping: bool
    key: str | None = None

    @property
    def awaits_key(self) -> bool:
        return self.is_mapping and self.key is None


# A program with another value for a setting.


def with_value(
    script: Script, tree: Mapping[str, bytes], setting: Setting, value: str, why: str
) -> Script:
    """A program with another value for one of its settings: in its command, or in the file that
    states it.
    """
    before = f" instead of {setting.value[:60]}" if setting.value else ""
    if setting.file:
        # YAML reads 1e-05 as a word, and 1.0e-05 as a number.
        value = re.sub(r"^(-?\d+)(?=e[-+]?\d+$)", r"\1.0", value)
        text = text_of(setting.file, script, tree)
        new = f"{setting.quote}{value}{setting.quote}"
        changed_text = text[: setting.start] + new + text[setting.end :]
        what = f"{setting.name[-80:]}: {value}{before} in {setting.file}"
        files = {**script.files, setting.file: changed_text}
        edited = tuple(dict.fromkeys((*script.edited, setting.file)))
        update = {"files": files, "edited": edited}
    else:
        words = (*setting.head, f"{setting.prefix}{value}")
        command = (*script.command[: setting.start], *words, *script.command[setting.end :])
        what = f"{' '.join(words)[:200]}{before}"
        update = {"command": command}
    fix = ScriptFix(what=what, why=why)
    return script.model_copy(update={**update, "fixes": (*script.fixes, fix)})
