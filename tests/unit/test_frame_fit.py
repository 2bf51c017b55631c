"""The lines that a traceback quotes tell which release was in use."""

import pytest

from bot.environment import releases
from bot.kernel.bug import BugReport, Frame, ReportKind, Traceback
from bot.kernel.environment import PinSource, Requirement


def frame(path: str = "acme/core.py", line: int | None = 2, code: str = "return f(x)") -> Frame:
    package = path.partition("/")[0]
    return Frame(
        path=f"/site-packages/{path}", package=package, module_path=path, line=line, code=code
    )


TEXTS = {"acme/core.py": "def g(x):\n    return f(x)\n"}


@pytest.mark.parametrize(
    ("quoted", "fitting"),
    [
        ((frame(),), 1),
        ((frame(line=1),), 0),
        ((frame(line=99),), 0),
        ((frame(), frame(path="acme/gone.py")), 1),
        ((), 0),
    ],
)
def test_a_frame_fits_where_its_line_stands_at_its_place(
    quoted: tuple[Frame, ...], fitting: int
) -> None:
    assert releases.count(quoted, lambda path: TEXTS.get(path, "")) == fitting


def test_only_frames_of_the_distribution_with_a_line_and_code_are_compared() -> None:
    frames = (
        frame(),
        frame(),
        frame(line=None),
        frame(code=" "),
        frame(path="other/core.py"),
        frame(path="acme/../../etc/passwd.py"),
        frame(path="acme/native.so"),
    )
    cause = Traceback(exception="KeyError", message="", frames=(frame(line=7),))
    trace = Traceback(exception="ValueError", message="", frames=frames, chained=(cause,))
    report = BugReport(kind=ReportKind.BUG, tracebacks=(trace,))
    acme = Requirement(name="acme", rung=PinSource.IMPORT, reason="imported")
    other = acme.model_copy(update={"name": "dm-acme", "modules": ("acme",)})
    for target in (acme, other):
        assert releases.quoted_frames(report, target) == (frame(), frame(line=7))


def test_the_nearest_older_releases_come_first() -> None:
    offered = [f"1.{minor}" for minor in range(20)]
    assert releases.neighbours("1.10", offered) == [
        "1.9",
        "1.8",
        "1.7",
        "1.6",
        "1.5",
        "1.4",
        "1.11",
        "1.12",
    ]
    assert releases.neighbours("1.0", offered) == ["1.1", "1.2"]
    assert releases.neighbours("3.0", offered) == []
