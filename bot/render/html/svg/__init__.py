"""Pictures of runs as SVG without scripts, in which every outside text is escaped.

Outcomes differ in shape as well as in colour, and each picture says in words what it shows.
"""

from collections.abc import Iterable

from markupsafe import Markup

from bot.models.attempt import Match

WIDTH, LEAST = 780, 300
CHARACTER, STRONG = 7.7, 8.6
"""Pixels of a character in a label, plain and strong."""

MARKS = {
    Match.MATCHED: Markup('<circle r="5"/>'),
    Match.PASSED: Markup('<circle r="4" class="hollow"/>'),
    Match.OTHER: Markup('<path d="M0-6 6 0 0 6-6 0z"/>'),
    Match.SETUP_FAILURE: Markup('<path d="M0-5 6 5-6 5z"/>'),
    Match.UNDECIDED: Markup('<path d="M-4-4 4 4M-4 4 4-4" class="hollow"/>'),
}


def mark(match: Match) -> Markup:
    """The mark of an outcome in a table or a legend."""
    return Markup(
        '<svg class="mark {}" viewBox="-8 -8 16 16" width="16" height="16" aria-hidden="true">'
        "{}</svg>"
    ).format(match.value, MARKS[match])


def placed(match: Match, title: str, x: float, y: float, scale: float) -> Markup:
    """A mark in a picture, with its meaning as its title."""
    return Markup(
        '<g class="{}"><title>{}</title>'
        '<g transform="translate({:.1f} {:.1f}) scale({:.2f})">{}</g></g>'
    ).format(match.value, title, x, y, scale, MARKS[match])


def label(kind: str, x: float, y: float, words: object) -> Markup:
    """A word or a number: "tick" ends at x, "under" is centred on it."""
    return Markup('<text class="{}" x="{:.1f}" y="{:.1f}">{}</text>').format(kind, x, y, words)


def line(kind: str, path: str) -> Markup:
    """A path of our own making."""
    return Markup('<path class="{}" d="{}"/>').format(kind, path)


def picture(
    kind: str,
    size: tuple[float, float],
    title: str,
    said: str,
    parts: Iterable[Markup],
    top: float = 0,
) -> Markup:
    """An SVG announced by its title and description; `kind` keeps their ids apart."""
    return Markup(
        '<svg class="plot {k}" viewBox="0 {y:.0f} {w:.0f} {h:.0f}" width="{w:.0f}" '
        'height="{h:.0f}" role="img" aria-labelledby="{k}-title {k}-desc">'
        '<title id="{k}-title">{t}</title><desc id="{k}-desc">{s}</desc>{p}</svg>'
    ).format(k=kind, y=top, w=size[0], h=size[1], t=title, s=said, p=Markup("").join(parts))
