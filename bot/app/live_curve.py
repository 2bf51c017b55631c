"""The loss of a program while it trains: bounded, and kept in the journal for the run's page."""

from time import monotonic

from bot.kernel.errors import Stopped, TransientError
from bot.kernel.journal import LOSSES
from bot.kernel.ports import Clock, Journal, TrainingWatch
from bot.kernel.training_trace import HUGE, MOST_POINTS, Point
from bot.kernel.training_types import Curve

_BEHIND = 6  # about three seconds
_WRITE_S = 3.0
_PAUSE_S = 60.0  # a store that fails must not hold up the program that prints


class LiveCurve:
    """The curve so far of the training that goes on: at most `MOST_POINTS` even points and the
    newest. Steps before the last one belong to another optimizer, whose losses are left out, or,
    when only such come, to another training, which begins anew. Numbers come from a hostile
    program: those that cannot be drawn are left out.
    """

    def __init__(self) -> None:
        self._points: list[Point] = []
        self._newest: Point | None = None
        self._stride, self._count, self._behind = 1, 0, 0

    def add(self, step: int, loss: float) -> None:
        """Take the loss of a step."""
        if not (0 <= step < HUGE and abs(loss) < HUGE):  # NaN compares as false
            return
        if self._newest is not None and step < self._newest[0]:
            self._behind += 1
            if self._behind < _BEHIND:
                return
            self._points, self._stride, self._count = [], 1, 0
        self._behind = 0
        self._newest = (float(step), loss)
        if self._count % self._stride == 0:
            self._points.append(self._newest)
        self._count += 1
        if len(self._points) > MOST_POINTS:
            self._points, self._stride = self._points[::2], 2 * self._stride

    @property
    def curve(self) -> Curve:
        """What can be drawn so far."""
        points = self._points
        if self._newest is not None and points[-1] != self._newest:
            points = [*points, self._newest]
        return Curve(panel="loss", name="training", points=tuple(points))


class CurveWriter:
    """Hears losses and keeps their curve in the journal every few seconds. A lost lease or a store
    out of reach does no harm: nothing is raised into the program's run.
    """

    def __init__(self, journal: Journal, clock: Clock = monotonic) -> None:
        self._journal, self._clock, self._live = journal, clock, LiveCurve()
        self._due = clock()

    def __call__(self, step: int, loss: float) -> None:
        """Take a loss, and write the curve when it is time."""
        self._live.add(step, loss)
        curve = self._live.curve if self._clock() >= self._due else None
        if curve is None or not curve.points:
            return
        try:
            self._journal.append(LOSSES, curve)
            wait = _WRITE_S
        except (Stopped, TransientError):
            wait = _PAUSE_S
        self._due = self._clock() + wait


def training_watch(journal: Journal) -> TrainingWatch:
    """Who watches the trainings of an App's run."""
    return TrainingWatch(loss=CurveWriter(journal))
