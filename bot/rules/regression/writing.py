"""A regression test's files: the program of a run in a test function, marked as an expected
failure.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from bot.models.attempt import Script
from bot.models.pull_request import ProposedFile, TestLayout
from bot.rules.regression import inline
from bot.rules.regression.checks import Check

HEAD, BY = "# A regression test for ", ", made by Reprise from "
"""What the first line of every test begins with and holds."""

_REDIRECTED = (
    "with contextlib.redirect_stdout(io.StringIO()) as captured, "
    "contextlib.redirect_stderr(captured):"
)
_CAPTURES = {
    "output": (
        ("import contextlib", "import io"),
        _REDIRECTED,
        ("output = captured.getvalue()",),
    ),
    "caught": (
        ("import warnings",),
        "with warnings.catch_warnings(record=True) as captured:",
        (),
    ),
}
_BEFORE = frozenset({"captured", "contextlib", "io", "warnings"})
_AFTER = frozenset({"json", "math", "re"})
"""What a test uses before and after the program: that must not mean something else by it."""

_PATH = ("import runpy", "from pathlib import Path")


@dataclass(frozen=True, slots=True)
class TestedIssue:
    """What a test is about: `slug` names it, such as "issue_12", `reason` marks it ("#12")."""

    slug: str
    reason: str
    strict: bool
    author: str


def files(
    script: Script, check: Check, layout: TestLayout, subject: TestedIssue, globs: Iterable[str]
) -> tuple[ProposedFile, ...]:
    """The test first, then the program where it needs a file of its own."""
    depth = 8 if layout.framework == "unittest" else 4
    within = " " * (depth + (4 if check.sees else 0))
    alone = len(script.files) == 1
    held = inline.body(script.source, within) if alone else None
    if held is not None and check.sees and inline.rebinds(script.source, _BEFORE, _AFTER):
        held = None
    beside = () if held is not None else _beside(script, layout, subject, tuple(globs))
    if held is None:
        held = f'{within}runpy.run_path({_located(beside)}, run_name="__main__")'
    imports = {*check.imports, *(_PATH if beside else ())}
    text = _text(held, check, layout, subject, imports)
    return ProposedFile(path=_at(layout, layout.name.format(subject.slug)), text=text), *beside


def _located(beside: tuple[ProposedFile, ...]) -> str:
    """The program's path as an expression: a folder with `__main__.py`, or the one file."""
    parts = beside[0].path.split("/")
    name = parts[-2] if parts[-1] == "__main__.py" else parts[-1]
    return f'str(Path(__file__).with_name("{name}"))'


def _beside(
    script: Script, layout: TestLayout, subject: TestedIssue, globs: tuple[str, ...]
) -> tuple[ProposedFile, ...]:
    """The program's own files, under names that no collector takes for tests."""
    name = f"{subject.slug}_program"
    if len(script.files) == 1:
        taken = any(fnmatchcase(f"{name}.py", glob) for glob in (*globs, "test*.py"))
        suffix = "txt" if taken else "py"
        return (ProposedFile(path=_at(layout, f"{name}.{suffix}"), text=_ended(script.source)),)
    main = ProposedFile(path=_at(layout, f"{name}/__main__.py"), text=_ended(script.source))
    others = ((path, text) for path, text in sorted(script.files.items()) if path != script.entry)
    return main, *(
        ProposedFile(path=_at(layout, f"{name}/{path}"), text=_ended(text)) for path, text in others
    )


def _text(
    held: str, check: Check, layout: TestLayout, subject: TestedIssue, imports: set[str]
) -> str:
    framework = layout.framework
    wanted, opened, after = _CAPTURES.get(check.sees, ((), "", ()))
    every = {*imports, *wanted, *(["import unittest"] if framework == "unittest" else [])}
    plain = sorted(line for line in every if line.startswith("import "))
    named = sorted(line for line in every if line.startswith("from "))
    indent = " " * (8 if framework == "unittest" else 4)
    body = [f"{indent}{opened}"] if opened else []
    body += [f'{indent}    warnings.simplefilter("always")'] if check.sees == "caught" else []
    body += [held, *(f"{indent}{line}" for line in (*after, *check.asserts))]
    head = [f"{HEAD}{subject.reason}{BY}{subject.author}.", *_told(check)]
    first = [*plain, *named, *(["", "import pytest"] if framework == "pytest" else [])]
    blank = [""] if first[0] == "" else ["", ""]
    return "\n".join(
        [*head, *blank[1:], *first, "", "", *_marked(check, layout, subject), *body, ""]
    )


def _told(check: Check) -> list[str]:
    return [
        "# It fails until the bug is fixed. Then remove the mark: the test has to pass.",
        f"# Reported: {check.says}",
    ]


def _marked(check: Check, layout: TestLayout, subject: TestedIssue) -> list[str]:
    function = layout.function.format(subject.slug)
    if layout.framework == "pytest":
        reason = ascii(subject.reason).replace("'", '"')
        mark = f"raises={check.raises}, strict={subject.strict}, reason={reason}"
        return [f"@pytest.mark.xfail({mark})", f"def {function}():"]
    title = "".join(part.capitalize() for part in subject.slug.split("_"))
    return [
        f"class {title}Test(unittest.TestCase):",
        f"    @unittest.expectedFailure  # until {subject.reason} is fixed",
        f"    def test_{subject.slug}(self):",
    ]


def _at(layout: TestLayout, name: str) -> str:
    return f"{layout.folder}/{name}" if layout.folder else name


def _ended(text: str) -> str:
    return text.replace("\r\n", "\n").rstrip("\n") + "\n"
