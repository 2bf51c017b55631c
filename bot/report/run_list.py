"""The list of a repository's runs: its page, with the verdicts over time as a picture."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from urllib.parse import urlencode

from markupsafe import Markup

from bot.issues.verdicts import KINDS
from bot.kernel.document import count
from bot.kernel.outside_text import clean, clip, one_line
from bot.kernel.redaction import redact
from bot.kernel.run import LIVE, Run, RunState, VerdictCount
from bot.report.html import aware, templates
from bot.report.replies import STATES, verdict_title
from bot.report.svg import LEAST, WIDTH, label, line, picture

_TITLE = 110


@dataclass(frozen=True, slots=True)
class RunRow:
    """One run. `tone` is the class that colours its `standing`; `took` is "" where it used no
    time yet.
    """

    address: str
    title: str
    tone: str
    standing: str
    moment: str
    took: str
    package: str


@dataclass(frozen=True, slots=True)
class Choice:
    """A link that shows only the runs with one verdict, or all of them."""

    title: str
    runs: int
    address: str
    is_current: bool


@dataclass(frozen=True, slots=True)
class RunListView:
    """The page of a list: `newest` and `older` are addresses of its other pages, "" for none."""

    place: str
    choices: tuple[Choice, ...]
    rows: tuple[RunRow, ...]
    picture: Markup
    newest: str
    older: str


def list_view(
    place: str,
    base: str,
    runs: Sequence[Run],
    counts: Sequence[VerdictCount],
    address_of: Callable[[Run], str],
    *,
    verdict: str | None,
    before: str | None,
    older: str,
    today: date,
    secrets: Iterable[str] = (),
) -> RunListView:
    """A page of the runs of a repository. `base` is the address of the list, `counts` are of all
    its runs, `verdict` and `before` what the page was asked for, `older` the run before which the
    next page begins, "" on the last one.
    """
    hidden = tuple(secrets)

    def address(**query: str | None) -> str:
        words = urlencode({name: value for name, value in query.items() if value})
        return f"{base}?{words}" if words else base

    return RunListView(
        place=place,
        choices=tuple(_choices(counts, verdict, lambda kind: address(verdict=kind))),
        rows=tuple(_row(run, address_of(run), hidden) for run in runs),
        picture=timeline(counts, today),
        newest=address(verdict=verdict) if before else "",
        older=address(verdict=verdict, before=older) if older else "",
    )


def list_page(view: RunListView) -> str:
    """The page of a list of runs."""
    return templates.get_template("list.html").render(view=view)


def _choices(
    counts: Sequence[VerdictCount], verdict: str | None, address: Callable[[str | None], str]
) -> Iterator[Choice]:
    total = sum(row.runs for row in counts)
    yield Choice("All", total, address(None), verdict is None)
    for kind, title, number in _totals(counts):
        yield Choice(title, number, address(kind), verdict == kind)


def is_verdict(name: str) -> bool:
    """Whether a list can be asked for the runs with this verdict."""
    return name in KINDS


def _totals(counts: Sequence[VerdictCount]) -> list[tuple[str, str, int]]:
    """Kind, title and number of each verdict that there is, in the order of the table of kinds."""
    numbers = {kind: sum(row.runs for row in counts if row.verdict == kind) for kind in KINDS}
    return [(kind, KINDS[kind].title, number) for kind, number in numbers.items() if number]


def _row(run: Run, address: str, hidden: tuple[str, ...]) -> RunRow:
    title = redact(clean(one_line(run.request.issue.title)), hidden)
    return RunRow(
        address=address,
        title=f"#{run.request.number} {clip(title, _TITLE)}".strip(),
        tone=_tone(run),
        standing=_standing(run),
        moment=f"{aware(run.created_at).astimezone(UTC):%Y-%m-%d %H:%M}",
        took=_took(run.seconds),
        package=redact(clean(one_line(run.package)), hidden),
    )


def _standing(run: Run) -> str:
    if run.verdict:
        return verdict_title(run) or "Done"
    if run.state is RunState.FINISHED:
        return "Ended without a verdict"
    state = "stopping" if run.cancelled_by and run.state in LIVE else STATES[run.state]
    return state[:1].upper() + state[1:]


def _tone(run: Run) -> str:
    if run.verdict:
        return run.verdict if run.verdict in KINDS else ""
    if run.state in LIVE:
        return "running"
    return "broken" if run.state is RunState.FAILED else "cancelled"


def _took(seconds: float) -> str:
    if seconds < 1:
        return ""
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


# The verdicts over time: a row for each kind with a bar for each day, week or four weeks. The
# words beside a row say what it is, so nothing depends on its colour.

_ROW, _TOP, _BAR, _CHARACTER = 30, 8, 20, 6.9
_MOST_BARS = 45
_STEPS = {1: "a day", 7: "a week", 28: "four weeks"}


@dataclass(frozen=True, slots=True)
class _Axis:
    """The first day of the picture, days and number of its bars, and where they stand."""

    first: date
    days: int
    bars: int
    left: float
    step: float

    def starts(self, bar: int) -> date:
        """The first day of a bar."""
        return self.first + timedelta(days=bar * self.days)


def timeline(counts: Sequence[VerdictCount], today: date) -> Markup:
    """The picture; nothing without a verdict."""
    counted = [row for row in counts if row.verdict in KINDS]
    if not counted:
        return Markup()
    totals = _totals(counted)
    axis = _axis(min(row.day for row in counted), today, [title for _, title, _ in totals])
    heights = _heights(counted, axis)
    most = max(heights.values())
    parts = [
        part
        for place, (kind, title, number) in enumerate(totals)
        for part in _bars(axis, kind, title, number, _TOP + _ROW * place, most, heights)
    ]
    base = _TOP + _ROW * len(totals)
    right = axis.left + axis.step * axis.bars
    ends = (axis.left, axis.first), (max(right, axis.left + 160), today)
    parts += [
        label("tick" if place else "", x, base + 16, day.isoformat())
        for place, (x, day) in enumerate(ends)
    ]
    words = ", ".join(f"{number} {title}" for _, title, number in totals)
    description = f"{words}, from {axis.first} to {today}. A bar is {_STEPS[axis.days]}."
    size = max(LEAST, ends[1][0] + 10), base + 24
    return picture("verdicts", size, "Verdicts over time", description, parts)


def _axis(first: date, today: date, titles: Sequence[str]) -> _Axis:
    span = max((today - first).days, 0) + 1
    days = next((days for days in _STEPS if span <= days * _MOST_BARS), max(_STEPS))
    bars = -(-span // days)
    left = 10 + (4 + max(map(len, titles))) * _CHARACTER
    return _Axis(first, days, bars, left, min(40.0, max(9.0, (WIDTH - left - 10) / bars)))


def _heights(counts: Sequence[VerdictCount], axis: _Axis) -> dict[tuple[str, int], int]:
    """How many runs each bar stands for, by verdict and bar."""
    heights: dict[tuple[str, int], int] = {}
    for row in counts:
        bar = min(max((row.day - axis.first).days // axis.days, 0), axis.bars - 1)
        heights[row.verdict, bar] = heights.get((row.verdict, bar), 0) + row.runs
    return heights


def _bars(
    axis: _Axis,
    kind: str,
    title: str,
    number: int,
    top: float,
    most: int,
    heights: dict[tuple[str, int], int],
) -> Iterator[Markup]:
    base = top + _BAR + 4
    yield label("tick", axis.left - 8, base, f"{title} {number}")
    yield line("rule", f"M{axis.left:.1f} {base + 0.5:.1f}H{axis.left + axis.step * axis.bars:.1f}")
    for bar in range(axis.bars):
        if runs := heights.get((kind, bar), 0):
            height = max(3.0, _BAR * runs / most)
            x, width = axis.left + axis.step * bar + 1, max(3.0, axis.step - 3)
            when = f"{axis.starts(bar)}: {count(runs, 'run')}"
            yield Markup(
                '<g class="{}"><title>{}</title><rect class="share" x="{:.1f}" y="{:.1f}" '
                'width="{:.1f}" height="{:.1f}" rx="1.5"/></g>'
            ).format(kind, f"{title}, {when}", x, base - height, width, height)


def today_of(now: float) -> date:
    """The day (UTC) of a moment in seconds since 1970."""
    return datetime.fromtimestamp(now, UTC).date()
