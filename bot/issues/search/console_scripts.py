"""The console scripts that a repository installs, which a report starts without `python`."""

import configparser
import json
import re
from collections.abc import Iterator, Mapping

from bot.environment.provided import read_toml, table
from bot.kernel.attempt import Script
from bot.kernel.bug import BugReport, Issue, ScriptFix
from bot.kernel.commands import read_command
from bot.kernel.trees import Tree
from bot.kernel.usage_errors import refused_arguments

DOCUMENTED = "the bug report names it without arguments, and the README starts it so"
_ENTRY = "reprise_console.py"
_PROGRAM = """import sys

from {module} import {function}

sys.argv[0] = {name}
sys.exit({call}())
"""
_TARGET = re.compile(
    r"(?P<module>[A-Za-z_]\w{0,80}(?:\.\w{1,80}){0,8}):(?P<call>[A-Za-z_]\w{0,80}(?:\.\w{1,80}){0,3})"
)
_IN_SETUP = re.compile(
    rf"['\"](?P<name>[\w.-]{{1,80}})\s*=\s*(?P<target>{_TARGET.pattern})\s*['\"]"
)
_README = re.compile(r"readme(?:\.\w{1,8})?", re.IGNORECASE)
_MOST_TEXT, _MOST_NAMES = 200_000, 60


def read_console_scripts(tree: Tree) -> Mapping[str, str]:
    """The console scripts of a tree, each with its `module:function`."""
    rows = dict[str, str]()
    for reader, path in (
        (_of_setup, "setup.py"),
        (_of_configuration, "setup.cfg"),
        (_of_project, "pyproject.toml"),
    ):
        text = tree.get(path, b"")[:_MOST_TEXT].decode("utf-8", "replace")
        rows |= {name: target for name, target in reader(text) if _TARGET.fullmatch(target)}
    return dict(list(rows.items())[:_MOST_NAMES])


def _of_setup(text: str) -> Iterator[tuple[str, str]]:
    yield from ((row["name"], row["target"]) for row in _IN_SETUP.finditer(text))


def _of_configuration(text: str) -> Iterator[tuple[str, str]]:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(text)
        lines = parser.get("options.entry_points", "console_scripts", fallback="").splitlines()
    except configparser.Error:
        return
    rows = (line.partition("=") for line in lines)
    yield from ((name.strip(), target.strip()) for name, _, target in rows)


def _of_project(text: str) -> Iterator[tuple[str, str]]:
    project = read_toml(text)
    for keys in (("project", "scripts"), ("tool", "poetry", "scripts")):
        rows = table(project, *keys).items()
        yield from ((name, target) for name, target in rows if isinstance(target, str))


def started_scripts(bug: BugReport, issue: Issue, tree: Tree) -> tuple[Script, ...]:
    """The console scripts of the tree that a report starts, as programs at its root: with the
    arguments that it gives or, where it gives none, with those of the README and those that the
    reported error refuses.
    """
    text = f"{issue.title}\n{issue.body}"
    refused = [word for row in bug.tracebacks for word in refused_arguments(row.message)]
    readmes = sorted(path for path in tree if _README.fullmatch(path))
    readme = "\n".join(tree[path][:_MOST_TEXT].decode("utf-8", "replace") for path in readmes)
    rows = [
        (name, target, mention)
        for name, target in read_console_scripts(tree).items()
        if (mention := _mention(name, text)) is not None
    ]
    scripts = list[Script]()
    for name, target, mention in rows[:1]:
        arguments, fixes = mention, tuple[ScriptFix, ...]()
        if not mention:
            documented = _mention(name, readme) or ()
            added = () if {*refused[:1]} <= {*documented} else tuple(refused)
            arguments = (*documented, *added)
            words = " ".join((name, *arguments))
            fixes = (ScriptFix(what=f"started as `{words}`"[:200], why=DOCUMENTED),)
        scripts.append(_script(name, target, arguments, fixes))
    return tuple(scripts)


def _mention(name: str, text: str) -> tuple[str, ...] | None:
    """The arguments behind a script's name in a text, the first that has any; None where the name
    does not stand in it as a command does.
    """
    is_plain = "-" not in name and "_" not in name  # a word of the language as well
    before = r"(?:^|[`$>/])[^\S\n]*" if is_plain else r"(?<![\w./-])(?:[\w./-]{1,80}/)?"
    pattern = rf"{before}{re.escape(name)}(?![\w/-]|\.\w)(?P<rest>(?:\\\n|[^`\n]){{0,600}})"
    rests = [row["rest"].replace("\\\n", " ") for row in re.finditer(pattern, text, re.MULTILINE)]
    if not rests:
        return None
    for rest in rests:
        command = read_command(f"python program.py{rest}") if re.match(r"\s+-", rest) else None
        if command is not None and len(command.argv) > 1:
            return command.argv[1:]
    return ()


def _script(
    name: str, target: str, arguments: tuple[str, ...], fixes: tuple[ScriptFix, ...]
) -> Script:
    module, _, call = target.partition(":")
    function = call.partition(".")[0]
    quoted = json.dumps(name)  # of a file of the repository, which may hold anything
    source = _PROGRAM.format(module=module, function=function, name=quoted, call=call)
    origin = f"the console script `{' '.join((name, *arguments))}`"
    return Script(
        files={_ENTRY: source},
        entry=_ENTRY,
        command=(_ENTRY, *arguments),
        edited=(_ENTRY,),
        origin=origin[:200],
        fixes=fixes,
    )
