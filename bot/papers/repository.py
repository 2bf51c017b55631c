"""The repository of a paper → the program to run: the command that its README gives for the claim,
or the one that a person gave.
"""

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import PurePosixPath

from markdown_it import MarkdownIt

from bot.environment import specify, tree_requirements
from bot.kernel import tree_programs
from bot.kernel.attempt import Script
from bot.kernel.bug import Fence, FenceKind, ShellCommand
from bot.kernel.commands import find_commands, read_command
from bot.kernel.environment import DeclaredDependencies, EnvironmentSpec
from bot.kernel.job import EnvironmentOptions
from bot.kernel.paper import NumberClaim
from bot.kernel.trees import Tree

_README = re.compile(r"(?:docs?/)?readme(?:\.(?:md|markdown|rst|txt))?", re.IGNORECASE)
_LONGEST = 200_000
_SHELL = {"", "sh", "bash", "shell", "console", "zsh", "shell-session", "text"}
_ASIDE = re.compile(
    r"(?:^|[/_.-])(?:test\w*|pytest|setup|demo|download\w*|prepare\w*|plot\w*|visuali\w+|export)(?=[/_.-]|$)",
    re.IGNORECASE,
)
_TRAINS = re.compile(r"train|main|run|experiment|reproduce|eval", re.IGNORECASE)


def readme_of(tree: Tree) -> str:
    """The README of a repository, "" for none."""
    path = min((path for path in tree if _README.fullmatch(path)), key=len, default="")
    return tree[path][:_LONGEST].decode("utf-8", "replace") if path else ""


def choose_program(tree: Tree, claim: NumberClaim | None, command_text: str = "") -> Script | None:
    """The program of the tree that prints the claim: by this command or, without one, by
    that of the README which fits best; None where none starts a program of the tree.
    """
    if command_text:
        command = read_command(command_text)
        rows = [(command, "the command that was given")] if command is not None else []
    else:
        rows = [(row, "the README's command") for row in _ordered(readme_of(tree), claim)]
    for command, origin in rows:
        for script in tree_programs.propose((command,), tree)[:1]:
            return script.model_copy(update={"origin": f"{origin} `{command_line(script)}`"[:200]})
    return None


def command_line(script: Script) -> str:
    """The command of a program as a person would type it."""
    return f"python {' '.join(script.command)}"


def _ordered(readme: str, claim: NumberClaim | None) -> list[ShellCommand]:
    """The commands of a README, the likeliest first: words of the claim in it or in what stands
    before it count, then what trains, then its place.
    """
    words = _words(claim)
    rows = []
    for at, (command, context) in enumerate(_commands(readme)):
        text = " ".join(command.argv).lower()
        hits = sum(2 * (word in text) + (word in context.lower()) for word in words)
        aside = bool(_ASIDE.search(command.argv[0])) or (
            command.argv[:1] == ("-m",)
            and (command.argv[1:2] in {("pytest",), ("pip",), ("venv",)})
        )
        trains = bool(_TRAINS.search(PurePosixPath(command.argv[0]).name))
        rows.append(((aside, -hits, not trains, at), command))
    return [command for _, command in sorted(rows, key=lambda row: row[0])]


def _words(claim: NumberClaim | None) -> list[str]:
    if claim is None:
        return []
    texts = f"{claim.dataset} {claim.method}".lower()
    words = [
        word for word in re.findall(r"[a-z][a-z0-9_-]{2,}", texts) if word not in {"ours", "our"}
    ]
    table = re.match(r"Table \d+", claim.title)
    return [*words, *([table[0].lower()] if table else [])]


def _commands(readme: str) -> Iterator[tuple[ShellCommand, str]]:
    """The commands in the code blocks of a README, each with its heading and the words before."""
    heading, before = "", ""
    tokens = MarkdownIt("commonmark").parse(readme)
    for at, token in enumerate(tokens):
        if token.type == "inline":
            is_heading = tokens[at - 1].type == "heading_open"
            heading, before = (token.content, "") if is_heading else (heading, token.content)
            for code in _inline_codes(token.children or ()):
                if (command := read_command(code)) is not None:
                    yield command, f"{heading} {before}"
        elif token.type in {"fence", "code_block"} and token.info.strip().lower() in _SHELL:
            fence = Fence(
                index=0,
                tag="sh",
                kind=FenceKind.SHELL,
                text=token.content,
                raw=token.content,
                line=0,
            )
            # The likeliest of a report is the last; a README goes from the first to the last.
            for command in reversed(find_commands((fence,))):
                yield command, f"{heading} {before}"


def _inline_codes(children: Sequence[object]) -> Iterator[str]:
    for child in children:
        if getattr(child, "type", "") == "code_inline":
            yield str(getattr(child, "content", ""))[:400]


def declared_by(tree: Tree, script: Script) -> DeclaredDependencies:
    """What the files of a tree ask for."""
    return tree_requirements.for_program(tree, script, readme_of(tree))


def specified(
    script: Script,
    tree: Tree,
    options: EnvironmentOptions,
    declared: DeclaredDependencies,
    at: datetime | None,
) -> EnvironmentSpec:
    """The environment for a program of a tree, as of a day; with the repository where there is
    one.
    """
    source = tree_programs.imports((script,), tree, optional=not declared.requirements)
    spec = specify.for_program(options, source, declared, at)
    return specify.in_place(spec, options) if options.repo else spec
