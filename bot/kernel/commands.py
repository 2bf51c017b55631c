"""The commands of a text that start a Python program, read without a shell."""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Protocol

from bot.kernel import exception_names
from bot.kernel.bug import Fence, FenceKind, Issue, Quote, ShellCommand

_PLACE = (
    r"(?:[\w.-]{1,40}@[^\s$#%]{1,80}(?: [^\s$#%]{1,80})?\s?[$#%]"  # me@host:~/x$, me@host x %
    r"|\[[\w.-]{1,40}@[^\]$#]{1,120}\]\s?[$#]"  # [me@host x]$
    r"|[~/][^\s$#]{0,120}[$#]"  # ~/x$
    r"|\u279c\s{1,4}(?:(?!python|pytest|torchrun|bash|sh\s|\./)\S{1,80}"  # that of Oh My Zsh
    r"(?:\sgit:\([^)\n]{1,80}\))?(?:\s\u2717)?(?=\s))?"
    r"|PS [^>\n]{1,80}>|[A-Za-z]:[\\/][^>\n]{0,200}>)"
)
PLACE = re.compile(rf"^\s*(?:\([\w.-]{{1,40}}\)[:\s]{{0,3}})?{_PLACE}\s*(?=[A-Za-z])")
"""A prompt that tells where the command was typed."""
_PROMPT = re.compile(rf"^\s*(?:\([\w.-]{{1,40}}\)[:\s]{{0,3}})?(?:{_PLACE}|[$%>!])\s*")
_STARTS = re.compile(
    r"\s*(?:[A-Z_][A-Z0-9_]{0,40}=\S{1,80}\s{1,4}){0,6}"
    r"(?:(?:\"[^\"\n]{1,200}[/\\]|[^\s\"]{1,200}[/\\])?[Pp]ython[\d.]{0,5}(?:\.exe)?\"?"
    r" (?:-u )?(?:-m \w|\S{1,200}\.py\b|\"[^\"\n]{1,300}\.py\")"
    r"|pytest |torchrun |accelerate launch |deepspeed |srun |uv run |poetry run "
    r"|(?:ba)?sh \S{1,200}\.sh\b)"
)
_PLACEHOLDER = re.compile(r"<(\w[\w./-]{0,40}(?: [\w./-]{1,40}){0,6})>")
"""A word that a report has in place of one of the reporter's: `<path to data>`."""
_SEPARATOR = re.compile(r"\s*(?:&&|;|\|\|)\s*")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w{0,60}=.{0,300}", re.S)
_PYTHON = re.compile(r"(?:.*[/\\])?(?:[Pp]ython|python3|py)(?:[\d.]*)(?:\.exe)?")
_PREFIXES = {"sudo", "time", "nohup", "env", "exec", "xvfb-run"}
_RUNNERS = {"poetry", "uv", "pipenv", "rye", "pdm", "hatch", "conda", "srun"}
_LAUNCHERS = {"torchrun", "accelerate", "deepspeed"}
_LAUNCHER_MODULES = {
    "torch.distributed.run",
    "torch.distributed.launch",
    "accelerate.commands.launch",
}
_QUOTED = re.compile(
    r"`([^`\n]{8,400})`|\"([^\"\n]{8,400})\"|\u201c([^\u201d\n]{8,400})\u201d|'([^'\n]{8,200})'"
)
_NOTEBOOKS = {"jupyter", "jupyter-nbconvert", "papermill", "ipython"}
NOTEBOOK = ("-m", "jupyter", "execute")
"""What starts a notebook."""
PYTEST = ("-m", "pytest")
UNITTEST = ("-m", "unittest")
"""What starts tests."""
STATEMENT = "-c"
"""What starts an import statement; the files that a report names beside it follow it."""
_TEST_FILE = re.compile(r"(?:.*/)?(?:test_[\w-]+|[\w-]+_test)\.py")
_SHELL_NAME = re.compile(
    r"\$(?:\{(?P<inner>\w{1,60})(?::?-(?P<default>[^{}$\n]{0,200}))?\}|(?P<plain>\w{1,60}|@))"
)
_SHELL_OUTPUT = re.compile(r"(?:\$\(|`)(?P<program>pwd|date)\b[^()`\n]{0,60}[)`]")
"""What a script takes from the folder that it is started in, or from the clock."""
FAILED = re.compile(
    r"(?:^|`)(?:FAILED|ERROR) ([\w./-]{1,200}\.py(?:::[\w\[\].,=-]{1,200}){0,4})(?: - |[^\S\n]*$)",
    re.ASCII | re.MULTILINE,
)
"""A line of the summary of a pytest run, up to its exception."""
_CHOICE = re.compile(r"^[\[{(<](\w{1,40})(?:\|\w{1,40}){1,8}[\]})>]$")
"""An argument as usages give it, `[train|eval]`: the first will do."""
_NOTEBOOK_NAME = re.compile(
    r"(?:https?://\S{1,120}?/(?:blob|tree)/[\w.-]{1,80}/)?"
    r"((?:[\w.%-]{1,80}/){0,8}[\w.%-]{1,100}\.ipynb)\b",
    re.ASCII,
)
_LOOP = re.compile(
    r"^\s*for (?P<name>\w{1,60}) in [\"']?(?P<first>[\w./+-]{1,200})[\"']?(?=[\s;]|$)"
)
"""A loop of a shell: its first round will do."""
_HOME = re.compile(
    r"^[^\S\n]*cd [^\n]{0,40}\$\(\s*dirname [^\n]{0,40}(?:\$0|BASH_SOURCE)", re.MULTILINE
)
_WINDOWS_PATH = re.compile(r"(?<![^\s\"'=])[\w.:~%-]{0,80}(?:\\[\w.~%-]{1,80}){1,12}(?![\w\\])")
_FILES = (".py", ".sh", ".ipynb", ".yaml", ".yml", ".json", ".exe")
_OPTION = re.compile(r"--?[A-Za-z]")
_CUT = re.compile(r"^(?:\d?>{1,2}|<|\||&|2>&1)")
_MOST, _MOST_LINES, _MOST_WORDS, _MOST_SCRIPT, _FEW = 8, 400, 100, 65_536, 3


class QuotedSentence(Protocol):
    """A sentence, and where it stands."""

    @property
    def text(self) -> str:
        """Its words."""

    @property
    def quote(self) -> Quote:
        """Its text and line."""


def find_commands(
    fences: Sequence[Fence],
    sentences: Sequence[QuotedSentence] = (),
    bare_commands: Sequence[ShellCommand] = (),
) -> tuple[ShellCommand, ...]:
    """The commands that start Python programs, the likeliest first: that whose traceback follows,
    then the later before the earlier, then those that the text quotes, at last those that stand in
    the text without a mark, the later ones first.
    """
    rows = [
        (fence.index, command)
        for fence in fences
        if fence.kind in {FenceKind.SHELL, FenceKind.TRACEBACK, FenceKind.LOG, FenceKind.OUTPUT}
        for command in _of_block(fence)
    ]
    failing = {fence.index - 1 for fence in fences if fence.kind is FenceKind.TRACEBACK}
    failing |= {fence.index for fence in fences if fence.kind is FenceKind.TRACEBACK}
    last = [row for row in reversed(rows) if row[0] in failing]
    ordered = [*last, *(row for row in reversed(rows) if row not in last)]
    commands = [command for _, command in ordered] + list(_in_text(sentences))
    commands += reversed(bare_commands)
    distinct = {(row.argv, row.folder): row for row in reversed(commands)}
    return tuple(reversed(distinct.values()))[:_MOST]


def _in_text(sentences: Sequence[QuotedSentence]) -> Iterator[ShellCommand]:
    for sentence in sentences[:_MOST_LINES]:
        for match in _QUOTED.finditer(sentence.text[:2000]):
            command = read_command(next(filter(None, match.groups())))
            if command is not None:
                yield command.model_copy(update={"quote": sentence.quote})


def read_commands(lines: Sequence[str]) -> tuple[ShellCommand, ...]:
    """The commands of lines, each in the folder that those before it change to."""
    text = "\n".join(lines)
    fence = Fence(index=0, tag="", kind=FenceKind.SHELL, text="", raw=text, line=0)
    return tuple(_of_block(fence))


def read_command(text: str) -> ShellCommand | None:
    """The command in a line, with the folder that a `cd` before it changes to; None where it
    starts no Python program.
    """
    fence = Fence(index=0, tag="", kind=FenceKind.SHELL, text=text, raw=text, line=0)
    return next(_of_block(fence), None)


def fill_placeholders(text: str) -> str:
    """A command with each placeholder as one word: `<path to data>` as `path_to_data`."""
    return _PLACEHOLDER.sub(lambda match: match[1].replace(" ", "_"), text)


def is_test_file(path: str) -> bool:
    """Whether a file is one of tests by its name."""
    return _TEST_FILE.fullmatch(path) is not None


def failing_tests(issue: Issue) -> tuple[ShellCommand, ...]:
    """The tests that the summary of a pytest run lists as failed, as one command."""
    text = issue.body[:_MOST_SCRIPT]
    names = list(dict.fromkeys(match[1] for match in FAILED.finditer(text)))[:_MOST]
    if not names:
        return ()
    quote = Quote(text=names[0][:600])
    return (ShellCommand(argv=("-m", "pytest", *names), quote=quote),)


def notebooks(issue: Issue) -> tuple[str, ...]:
    """The notebooks that a report names, by their paths; a link to one by its path in it."""
    names = _NOTEBOOK_NAME.findall(f"{issue.title}\n{issue.body[:_MOST_SCRIPT]}")
    return tuple(dict.fromkeys(name.replace("%20", " ").lstrip("/") for name in names))[:_FEW]


def goes_home(text: str) -> bool:
    """Whether a shell script changes to the folder that it lies in."""
    return bool(_HOME.search(text[:_MOST_SCRIPT]))


def in_script(text: str, arguments: Sequence[str], folder: str) -> tuple[ShellCommand, ...]:
    """The commands of a shell script that start Python programs, with the values that the script
    itself gives to variables; one whose words depend on anything else is left out.
    """
    values = {str(at): word for at, word in enumerate(arguments, 1)}
    values |= {"@": " ".join(arguments), "PWD": "."}
    lines = []
    for line in re.sub(r"\\[ \t]*\n", " ", text[:_MOST_SCRIPT]).split("\n"):
        if _HOME.match(line):  # the folder is that of the script already
            continue
        line = _SHELL_OUTPUT.sub(lambda match: _OUTPUTS[match["program"]], line)
        plain = _SHELL_NAME.sub(lambda match: _value(match, values), line)
        if assignment := _ASSIGNMENT.fullmatch(plain.strip()):
            name, _, value = assignment[0].partition("=")
            values[name] = value.strip("\"'")
        if loop := _LOOP.match(plain):
            values[loop["name"]] = loop["first"]
        lines.append(plain)
    fence = Fence(index=0, tag="", kind=FenceKind.SHELL, text="", raw="\n".join(lines), line=0)
    commands = [one for one in _of_block(fence) if "$" not in " ".join(one.argv)]
    return tuple(
        one.model_copy(update={"folder": (PurePosixPath(folder) / one.folder).as_posix()})
        if folder
        else one
        for one in commands[:_MOST]
    )


_OUTPUTS = {"pwd": ".", "date": "date"}


def _value(match: re.Match[str], values: Mapping[str, str]) -> str:
    """What stands for a name in a shell script: an argument that was not given is nothing, a name
    that the script does not set stays.
    """
    name = match["inner"] or match["plain"]
    default = "" if name.isdigit() else match[0]
    return values.get(name) or (match["default"] if match["default"] is not None else default)


def _of_block(fence: Fence) -> Iterator[ShellCommand]:
    text = re.sub(r"\\[ \t]*\n", " ", fence.raw)
    folder, root, variables = PurePosixPath(), "", dict[str, str]()
    earlier = list[tuple[str, tuple[str, ...]]]()
    is_shell = fence.kind is FenceKind.SHELL
    is_first = True  # what stands above an output without a prompt is what made it
    for number, whole in enumerate(text.split("\n")[:_MOST_LINES], fence.line):
        line = whole.partition(exception_names.TITLE)[0]  # pasted behind its command
        is_command = is_shell or _PROMPT.match(line) or (is_first and _STARTS.match(line))
        is_first &= bool(is_command or not line.strip())
        if len(line) > 2000 or not is_command:
            continue
        for part in _SEPARATOR.split(_PROMPT.sub("", line)):
            words = _words(part)
            if words[:1] == ["cd"] and len(words) > 1:
                folder = _moved(folder, words[1], root)
            elif words[:2] == ["git", "clone"]:
                root = _clone_name(words[2:])
            elif words[:1] == ["export"]:
                variables |= dict(word.split("=", 1) for word in words[1:] if "=" in word)
            elif command := _command(words):
                argv, own = command
                place = "" if folder == PurePosixPath() else folder.as_posix()
                before = [words for other, words in earlier if other == place and words != argv]
                earlier.append((place, argv))
                yield ShellCommand(
                    argv=argv,
                    before=tuple(dict.fromkeys(before))[-_FEW:],
                    folder=place,
                    variables={**variables, **own},
                    quote=Quote(text=part.strip()[:600], line=number),
                )


def _as_posix(match: re.Match[str]) -> str:
    """The path of a file as Windows writes it, with the slashes of others."""
    return match[0].replace("\\", "/") if match[0].endswith(_FILES) else match[0]


def _words(text: str) -> list[str]:
    try:
        words = shlex.split(_WINDOWS_PATH.sub(_as_posix, fill_placeholders(text)), comments=True)
    except ValueError:
        return []
    if not all(word.isprintable() for word in words):  # a NUL cannot be passed to a program
        return []
    end = next((at for at, word in enumerate(words) if _CUT.match(word)), len(words))
    return [_CHOICE.sub(r"\1", word) for word in words[: min(end, _MOST_WORDS)]]


def _moved(folder: PurePosixPath, target: str, root: str) -> PurePosixPath:
    """The folder after `cd`, below the repository; "" for one outside it."""
    path = PurePosixPath(target)
    if path.is_absolute() or target.startswith("~"):
        return PurePosixPath()
    parts = list(folder.parts)
    for part in path.parts:
        if part == "..":
            del parts[-1:]
        elif part not in {".", root}:
            parts.append(part)
    return PurePosixPath(*parts)


def _clone_name(words: list[str]) -> str:
    places = [word for word in words if not word.startswith("-")]
    if len(places) > 1:
        return places[1]
    return places[0].rstrip("/").rsplit("/", 1)[-1].removesuffix(".git") if places else ""


def _command(words: list[str]) -> tuple[tuple[str, ...], dict[str, str]] | None:
    """What follows the interpreter, and the variables before it; None for another program."""
    variables = dict[str, str]()
    while words:
        first = words[0]
        if _ASSIGNMENT.fullmatch(first):
            name, _, value = first.partition("=")
            variables[name] = value
            words = words[1:]
        elif first in _PREFIXES or (first in _RUNNERS and "python" not in first):
            words = words[1:]
            start = next((at for at, word in enumerate(words) if _is_start(word)), len(words))
            words = words[start:]
            if first in _RUNNERS and words and (words[0] == "-m" or words[0].endswith(".py")):
                words = ["python", *words]
        else:
            break
    argv = _python_arguments(words)
    return (argv, variables) if argv else None


def _is_start(word: str) -> bool:
    """Whether a word behind what runs a command is the beginning of that."""
    is_program = word in {"-m", "pytest", "py.test", "bash", "sh"} or word in _PREFIXES | _LAUNCHERS
    is_file = word.endswith((".py", ".sh")) and not word.startswith("-")
    return is_program or is_file or bool(_PYTHON.fullmatch(word) or _ASSIGNMENT.fullmatch(word))


def _is_program(words: list[str]) -> bool:
    """Whether a file of Python is started by itself: by a path, or with options."""
    has_options = len(words) > 1 and _OPTION.match(words[1]) is not None
    return words[0].endswith(".py") and (words[0].startswith("./") or has_options)


def _python_arguments(words: list[str]) -> tuple[str, ...]:
    if not words:
        return ()
    first, rest = words[0], words[1:]
    if first in {"pytest", "py.test"}:
        return ("-m", "pytest", *rest)
    if first in _NOTEBOOKS and (name := next((w for w in rest if w.endswith(".ipynb")), "")):
        return (*NOTEBOOK, name)
    starts_file = {("bash", ".sh"), ("sh", ".sh"), ("run", ".py")}  # IPython's, without its mark
    if rest and (first, PurePosixPath(rest[0]).suffix) in starts_file:
        return tuple(rest)
    if first.endswith(".sh") or _is_program(words):
        return tuple(words)
    if first in _LAUNCHERS:
        return _launched(rest)
    if not _PYTHON.fullmatch(first):
        return ()
    while rest and rest[0] in {"-u", "-O", "-B", "-W"}:
        rest = rest[2:] if rest[0] == "-W" else rest[1:]
    if rest[:1] == ["-m"] and len(rest) > 1:
        return _launched(rest[2:]) if rest[1] in _LAUNCHER_MODULES else tuple(rest)
    return tuple(rest) if rest and rest[0].endswith(".py") else ()


def _launched(words: list[str]) -> tuple[str, ...]:
    """A launcher starts one process here: the script and its arguments."""
    at = next((at for at, word in enumerate(words) if word.endswith(".py")), len(words))
    return tuple(words[at:])
