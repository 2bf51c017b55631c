"""The curves of a training run as panels: loss, gradient norms, update ratios, dead units.

Colours and sizes are attributes, so that the picture is the same on a page, light or dark, in a
file of its own and as PNG.
"""

from collections.abc import Iterator, Sequence

from markupsafe import Markup

from bot.models.diagnosis import Curve
from bot.render.html.svg import WIDTH, picture
from bot.render.phrases.diagnosis import PANELS, curves_line
from bot.render.scales import Scale, number, scale
from bot.text.sanitize import clip

_PANEL, _HEIGHT, _LEFT, _RIGHT, _TOP, _FOOT = WIDTH / 2, 226, 58, 14, 62, 36
_NAME, _GREY = 24, "#7a828c"
_STYLES = (
    ("#3584d6", ""), ("#d9722e", "7 3"), ("#2f9e6b", "2 3"), ("#9a6fd0", "9 3 2 3"),
)  # fmt: skip
Place = tuple[float, float]


def training(curves: Sequence[Curve]) -> Markup:
    """The picture; nothing without curves."""
    panels = [(name, [one for one in curves if one.panel == name]) for name in PANELS]
    panels = [(name, lines) for name, lines in panels if any(one.points for one in lines)]
    if not panels:
        return Markup()
    last = max(point[0] for _, lines in panels for one in lines for point in one.points)
    parts: list[Markup] = []
    for at, (name, lines) in enumerate(panels):
        corner = (at % 2 * _PANEL, float(at // 2 * _HEIGHT))
        parts += _panel(name, lines, corner, scale((0.0, last)))
    size = (WIDTH if len(panels) > 1 else _PANEL, float(_HEIGHT * ((len(panels) + 1) // 2)))
    return picture("training", size, "The training run", curves_line(curves), parts)


def standalone(drawn: str) -> str:
    """A picture as a file of its own, on white paper."""
    head, _, rest = str(drawn).partition(">")
    head = head.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
    return f'{head}><rect width="100%" height="100%" fill="#ffffff"/>{rest}\n'


def _panel(name: str, lines: Sequence[Curve], corner: Place, across: Scale) -> Iterator[Markup]:
    values = [value for one in lines for _, value in one.points]
    up = Scale(0.0, 1.0) if name == "dead" else scale(values, positive=name != "loss")
    x, y = corner
    words = PANELS[name] + (", log scale" if up.log else "")
    yield _text(words, (x + _LEFT, y + 18), "start", weight="600")
    yield from _axes(corner, across, up, percent=name == "dead")
    for at, one in enumerate(lines[: len(_STYLES)]):
        yield _legend(one.name, at, corner)
        yield _line(one, at, corner, across, up)


def _axes(corner: Place, across: Scale, up: Scale, *, percent: bool) -> Iterator[Markup]:
    x, y = corner
    left, right, base = x + _LEFT, x + _PANEL - _RIGHT, y + _HEIGHT - _FOOT
    for value in up.ticks:
        level = base - up.at(value) * (_HEIGHT - _FOOT - _TOP)
        yield _rule(f"M{left:.1f} {level:.1f}H{right:.1f}")
        words = f"{100 * value:.0f} %" if percent else number(value)
        yield _text(words, (left - 6, level + 4), "end")
    for value in across.ticks:
        place = left + across.at(value) * (right - left)
        yield _rule(f"M{place:.1f} {base:.1f}V{base + 4:.1f}")
        yield _text(number(value), (place, base + 17), "middle")
    yield _text("step", (right, base + 31), "end")


def _line(one: Curve, at: int, corner: Place, across: Scale, up: Scale) -> Markup:
    x, y = corner
    width, height = _PANEL - _LEFT - _RIGHT, _HEIGHT - _FOOT - _TOP
    places = [
        (x + _LEFT + across.at(step) * width, y + _TOP + (1 - up.at(value)) * height)
        for step, value in one.points
    ]
    if len(places) == 1:  # a line of one point is invisible
        places.append((places[0][0] + 3, places[0][1]))
    path = "L".join(f"{left:.1f} {top:.1f}" for left, top in places)
    return _stroke(f"M{path}", at)


def _legend(name: str, at: int, corner: Place) -> Markup:
    x, y = corner[0] + _LEFT + at % 2 * 160, corner[1] + 36 + at // 2 * 15
    words = _text(clip(name, _NAME), (x + 28, y), "start")
    return _stroke(f"M{x:.1f} {y - 4:.1f}H{x + 22:.1f}", at) + words


def _text(words: str, place: Place, anchor: str, weight: str = "400") -> Markup:
    return Markup(
        '<text x="{:.1f}" y="{:.1f}" text-anchor="{}" font-size="12" font-weight="{}" '
        'font-family="DejaVu Sans, Verdana, sans-serif" fill="{}">{}</text>'
    ).format(*place, anchor, weight, _GREY, words)


def _rule(path: str) -> Markup:
    return Markup('<path d="{}" stroke="{}" stroke-opacity="0.35" fill="none"/>').format(
        path, _GREY
    )


def _stroke(path: str, at: int) -> Markup:
    colour, dashes = _STYLES[at]
    return Markup(
        '<path d="{}" stroke="{}" stroke-width="1.8" stroke-dasharray="{}" '
        'stroke-linejoin="round" fill="none"/>'
    ).format(path, colour, dashes or "none")
