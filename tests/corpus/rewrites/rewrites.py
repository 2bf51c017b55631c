"""One bug report in the many forms in which people write it.

Every form says the same: the same failure of the same program under the same versions. What is read
from it must be the same too.
"""

import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from bot.kernel.bug import Issue

SITE = "/usr/lib/python3.10/site-packages/"


@dataclass(frozen=True)
class IssueReport:
    """The parts of a bug report."""

    name: str
    repository: str
    title: str
    prose: str
    program: str
    versions: dict[str, str]
    frames: list[str] = field(default_factory=list)
    exception: str = ""
    message: str = ""
    shown: str = ""
    expected: str = ""

    @property
    def last(self) -> str:
        return f"{self.exception}: {self.message}" if self.message else self.exception

    @property
    def places(self) -> list[tuple[str, str, str, str]]:
        """(path, line, function, code) of each frame."""
        rows = [frame.split("|", 3) for frame in self.frames]
        return [(SITE + a if "/" in a else f"/home/ann/{a}", b, c, d) for a, b, c, d in rows]


def reports() -> list[IssueReport]:
    """The reports of reports.toml."""
    data = tomllib.loads(Path(__file__).with_name("reports.toml").read_text())
    return [IssueReport(**row) for row in data["report"]]


def traceback(report: IssueReport) -> str:
    """What Python prints."""
    if not report.frames:
        return report.shown
    rows = [
        f'  File "{path}", line {line}, in {function}\n    {code}\n'
        for path, line, function, code in report.places
    ]
    return "Traceback (most recent call last):\n" + "".join(rows) + report.last


def _ipython(report: IssueReport) -> str:
    if not report.frames:
        return report.shown
    name = report.exception.rsplit(".", 1)[-1]
    title = f"{'-' * 75}\n{name}{'Traceback (most recent call last)':>{75 - len(name)}}\n"
    rows = [
        f"{f'Cell In[3], line {line}' if '/home' in path else f'File {path}:{line}, in {function}(self)'}\n"
        f"      {int(line) - 1} # before\n----> {line} {code}\n\n"
        for path, line, function, code in report.places
    ]
    last = f"{name}: {report.message}" if report.message else f"{name}: "
    return title + "".join(rows) + last


def _colab(report: IssueReport) -> str:
    if not report.frames:
        return report.shown
    name = report.exception.rsplit(".", 1)[-1]
    title = f"{'-' * 75}\n{name}{'Traceback (most recent call last)':>{75 - len(name)}}\n"
    rows = [
        (
            f"<ipython-input-3-0c4ad2> in <cell line: {line}>()\n"
            if "/home" in path
            else f"{path} in {function}(self, x)\n"
        )
        + f"      {int(line) - 1} \n----> {line} {code}\n\n"
        for path, line, function, code in report.places
    ]
    return title + "".join(rows) + (f"{name}: {report.message}" if report.message else f"{name}: ")


def _rich(report: IssueReport) -> str:
    if not report.frames:
        return report.shown
    width = 100
    inside = []
    for path, line, function, code in report.places:
        place = f"{path}:{line} in {function}"
        inside += ["", *(place[at : at + 96] for at in range(0, len(place), 96)), ""]
        inside += [f"  {int(line) - 1} # before", f"❱ {line} {code}"]
    box = "\n".join(f"│ {row:<{width - 4}} │" for row in inside[1:])
    head = "╭─────────────────────────────── Traceback (most recent call last) ────────────────────────────────╮"
    name = report.exception.rsplit(".", 1)[-1]
    last = f"{name}: {report.message}" if report.message else name
    return f"{head}\n{box}\n╰{'─' * (width - 2)}╯\n{last}"


def _pytest(report: IssueReport) -> str:
    if not report.frames:
        return report.shown
    rows = []
    for path, line, function, code in report.places[:-1]:
        name = path.removeprefix("/home/ann/")
        rows.append(f">   {code}\n\n{name}:{line}: in {function}\n" + "_ " * 40 + "\n")
    path, line, _, code = report.places[-1]
    first, *more = report.last.splitlines()
    marked = "\n".join([f"E   {first}", *(f"E   {row}" for row in more)])
    end = f"{path}:{line}: {report.exception.rsplit('.', 1)[-1]}"
    return "".join(rows) + f"\n    def checked():\n>       {code}\n{marked}\n\n{end}"


def _windows(report: IssueReport) -> str:
    text = traceback(report)
    home = "C:\\Users\\Ann B\\AppData\\Local\\Programs\\Python\\Python310\\Lib\\site-packages\\"
    text = text.replace("/home/ann/", "C:\\Users\\Ann B\\Desktop\\")
    return re.sub(
        re.escape(SITE) + r"([\w/.]+)", lambda found: home + found[1].replace("/", "\\"), text
    )


def _shortened(report: IssueReport) -> str:
    """Without the frames between the reporter's and the last."""
    if len(report.frames) < 2:
        return traceback(report)
    head, *between, last = re.split(r"(?m)^(?=  File )", traceback(report))
    return "".join([head, *between[:1], "  ...\n", last])


def _prompted(report: IssueReport) -> str:
    """The program as it stands at the prompts of Python."""
    rows, open_block = [], False
    for line in report.program.strip("\n").splitlines():
        inside = line[:1].isspace()
        if open_block and not inside:
            rows += ["..."] if line else []
        rows += [f"... {line}" if inside else f">>> {line}"] if line else []
        open_block = inside if line else False
    return "\n".join(rows)


def _celled(report: IssueReport) -> str:
    first, *rest = report.program.strip("\n").splitlines()
    return "\n".join([f"In [1]: {first}", *(f"   ...: {line}".rstrip() for line in rest)])


def _fence(text: str, tag: str = "") -> str:
    return f"```{tag}\n{text.strip(chr(10))}\n```\n"


def _versions(report: IssueReport) -> str:
    return "".join(f"- {name}: {number}\n" for name, number in report.versions.items())


def body(
    report: IssueReport,
    program: str = "",
    failure: str = "",
    prose: str | None = None,
    words: tuple[str, str, str, str] = ("To reproduce", "Actual", "Expected", "Versions"),
) -> str:
    """The report with some of its parts in another form."""
    steps, actual, wanted, versions = words
    expected = f"### {wanted}\n\n{_fence(report.expected)}\n" if report.expected else ""
    return (
        f"{report.prose if prose is None else prose}\n\n"
        f"### {steps}\n\n{program or _fence(report.program, 'python')}\n"
        f"### {actual}\n\n{failure or _fence(traceback(report))}\n"
        f"{expected}### {versions}\n\n{_versions(report)}"
    )


def _template(report: IssueReport) -> str:
    checks = (
        "- [x] I have searched the issues\n- [X] I use the latest release\n- [ ] I can send a fix\n"
    )
    return (
        "<!-- Thank you for the report! Please fill in every part. -->\n\n"
        f"### Please confirm\n\n{checks}\n### What happened?\n\n{body(report)}\n"
        "### Anything else?\n\n_No response_\n\n### Would you like to help?\n\n- [ ] Yes\n"
    )


def _translated(report: IssueReport) -> str:
    prose = "Beim Aufruf tritt der unten gezeigte Fehler auf. Erwartet wird das Gegenteil."
    words = ("Schritte zur Reproduktion", "Tatsächliches Verhalten", "Erwartet", "Versionen")
    return body(report, prose=prose, words=words)


def _chinese(report: IssueReport) -> str:
    words = ("复现步骤", "实际结果", "期望结果", "版本信息")
    return body(report, prose="运行下面的代码会出错。", words=words)


def _unfenced(report: IssueReport) -> str:
    expected = f"\n\nExpected:\n\n{_fence(report.expected)}" if report.expected else ""
    return (
        f"{report.prose}\n\nCode:\n\n{report.program.strip()}\n\n"
        f"Output:\n\n{_fence(traceback(report))}{expected}\n{_versions(report)}"
    )


def _indented(report: IssueReport) -> str:
    def block(text: str) -> str:
        return re.sub("(?m)^(?=.)", "    ", text.strip("\n")) + "\n"

    return body(report, block(report.program), block(traceback(report)))


def _session(report: IssueReport) -> str:
    expected = f"### Expected\n\n{_fence(report.expected)}\n" if report.expected else ""
    both = _fence(f"{_prompted(report)}\n{traceback(report)}", "pycon")
    return f"{report.prose}\n\n{both}\n{expected}{_versions(report)}"


def _folded(report: IssueReport) -> str:
    failure = f"<details><summary>Log</summary>\n\n{_fence(traceback(report))}\n</details>\n"
    return body(report, failure=failure)


def _reversed(report: IssueReport) -> str:
    expected = f"Expected:\n\n{_fence(report.expected)}\n" if report.expected else ""
    return (
        f"{report.prose}\n\nI get this:\n\n{_fence(traceback(report))}\n{expected}"
        f"with this program:\n\n{_fence(report.program, 'python')}\n{_versions(report)}"
    )


def _shown_as(form: Callable[[IssueReport], str], tag: str = "") -> Callable[[IssueReport], str]:
    return lambda report: body(report, failure=_fence(form(report), tag))


REWRITES: dict[str, Callable[[IssueReport], str]] = {
    "at Python's prompts": lambda report: body(report, _fence(_prompted(report), "pycon")),
    "prompts without a tag": lambda report: body(report, _fence(_prompted(report))),
    "in IPython's cells": lambda report: body(report, _fence(_celled(report), "python")),
    "one session": _session,
    "no tag": lambda report: body(report, _fence(report.program)),
    "another tag": lambda report: body(report, _fence(report.program, "Python3")),
    "tildes": lambda report: body(report).replace("```", "~~~"),
    "program not fenced": _unfenced,
    "indented blocks": _indented,
    "IPython's traceback": _shown_as(_ipython),
    "Colab's traceback": _shown_as(_colab),
    "rich's traceback": _shown_as(_rich, "bash"),
    "pytest's traceback": _shown_as(_pytest),
    "some frames left out": _shown_as(_shortened),
    "paths of Windows": _shown_as(_windows, "pytb"),
    "a log before it": _shown_as(lambda report: f"INFO: start\nINFO: go\n{traceback(report)}"),
    "ranks": _shown_as(lambda report: re.sub("(?m)^", "[rank0]: ", traceback(report))),
    "a template": _template,
    "German": _translated,
    "Chinese": _chinese,
    "no prose": lambda report: body(report, prose=""),
    "cut prose": lambda report: body(report, prose=report.prose[: len(report.prose) // 2]),
    "folded log": _folded,
    "failure first": _reversed,
    "CRLF": lambda report: body(report).replace("\n", "\r\n"),
    "quoted": lambda report: re.sub("(?m)^", "> ", body(report)),
    "a listed step": lambda report: body(
        report, "1. Run\n" + re.sub("(?m)^", "   ", _fence(report.program, "python"))
    ),
}


TRACED = {"a log before it", "ranks"}
"""Forms of a traceback; before a printed value the same words would be output."""


def forms(report: IssueReport) -> list[str]:
    """The forms that a report can take."""
    return [form for form in REWRITES if report.frames or form not in TRACED]


def issue(report: IssueReport, form: str = "") -> Issue:
    """A report as an issue, plain or in one of the forms."""
    text = REWRITES[form](report) if form else body(report)
    return Issue(title=report.title, body=text, repository=report.repository)
