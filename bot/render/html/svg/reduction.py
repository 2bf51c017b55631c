"""A minimization as steps down: lines of the program over the programs tried."""

from markupsafe import Markup

from bot.models.attempt import Reduced
from bot.render.html.svg import label, line, picture
from bot.render.phrases.program import reduced_line, seconds

_LEFT, _TOP, _BASE, _RIGHT, _WIDTH = 40, 20, 118, 290, 300


def descent(reduced: Reduced) -> Markup:
    """The picture; nothing when nothing was removed."""
    if not reduced_line(reduced):
        return Markup()
    tests = max([reduced.tests, 1, *(step.tests for step in reduced.history)])
    down = (_BASE - _TOP) / max(reduced.lines_before, 1)
    end = _BASE - down * reduced.lines_after
    dot = Markup('<circle class="dot" cx="{}" cy="{:.1f}" r="4"/>').format(_RIGHT, end)
    took = f"{tests} programs tried, {seconds(reduced):.0f} s"
    parts = [
        line("rule", f"M{_LEFT} {_BASE}H{_RIGHT}M{_LEFT} {_TOP}V{_BASE}"),
        line("fall", _stairs(reduced, (_RIGHT - _LEFT) / tests, down)),
        dot,
        label("tick strong", _LEFT - 6, _TOP + 4, reduced.lines_before),
        label("tick strong", _RIGHT - 2, end - 9, reduced.lines_after),
        label("tick", _LEFT - 6, _BASE + 4, 0),
        label("", _LEFT + 6, _TOP - 5, "lines"),
        label("tick", _RIGHT, _BASE + 18, took),
    ]
    said = f"{reduced_line(reduced)} after {took}."
    title = "The program as it became smaller"
    return picture("descent", (_WIDTH, _BASE + 26), title, said, parts)


def _stairs(reduced: Reduced, across: float, down: float) -> str:
    path, lines = f"M{_LEFT} {_BASE - down * reduced.lines_before:.1f}", reduced.lines_before
    for step in reduced.history:
        if step.lines != lines:
            path += f"H{_LEFT + across * step.tests:.1f}V{_BASE - down * step.lines:.1f}"
            lines = step.lines
    return f"{path}V{_BASE - down * reduced.lines_after:.1f}H{_RIGHT}"
