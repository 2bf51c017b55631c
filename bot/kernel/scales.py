"""The scale of an axis: from values to places between 0 and 1, and the numbers that stand on it."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

_DECADES, _WIDE, _HUGE = 5, 30.0, 1e100
_STEPS = (1, 2, 2.5, 5, 10)


@dataclass(frozen=True, slots=True)
class Scale:
    """A linear or logarithmic axis; a value outside it is at its end."""

    low: float
    high: float
    log: bool = False

    def at(self, value: float) -> float:
        """The place of a value, 0 for the low end and 1 for the high one."""
        low, high = self._of(self.low), self._of(self.high)
        place = (self._of(max(value, self.low)) - low) / (high - low)
        return min(max(place, 0.0), 1.0)

    def _of(self, value: float) -> float:
        return math.log10(value) if self.log else value

    @property
    def ticks(self) -> tuple[float, ...]:
        """Two to six round values."""
        return _powers(self.low, self.high) if self.log else _round(self.low, self.high)


def scale(values: Iterable[float], *, positive: bool = False) -> Scale:
    """The scale that shows these values: logarithmic when they are `positive` by nature, or by
    chance, and far apart. Zeros are then at its low end.
    """
    finite_values = [_tame(value, positive) for value in values if math.isfinite(value)]
    above = [value for value in finite_values if value > 0]
    apart = bool(above) and (max(above) > _WIDE * min(above) or (positive and 0 in finite_values))
    if apart and (positive or len(above) == len(finite_values)):
        first, last = math.floor(math.log10(min(above))), math.ceil(math.log10(max(above)))
        return Scale(_power(max(first, last - 12)), _power(max(last, first + 1)), log=True)
    low, high = min(finite_values, default=0.0), max(finite_values, default=1.0)
    if high - low <= 1e-12 * max(abs(low), abs(high)):  # a constant is drawn half-way
        return Scale(min(2 * low, 0.0), max(2 * low, 0.0)) if low else Scale(0.0, 1.0)
    return Scale(0.0 if positive or 0 <= low < high / 2 else low, high)


def format_number(value: float) -> str:
    """A value as it stands on an axis: 0.05, 300, 1e-6."""
    text = f"{value:.4g}"
    mantissa, _, power = text.partition("e")
    return f"{mantissa}e{int(power)}" if power else text


def _tame(value: float, positive: bool) -> float:
    """A value with which an axis can be computed: a hostile program may have written it."""
    value_in_range = min(max(value, 0.0 if positive else -_HUGE), _HUGE)
    return value_in_range if abs(value_in_range) > 1 / _HUGE else 0.0


def _power(exponent: int) -> float:
    return 10.0 ** min(max(exponent, -300), 300)


def _powers(low: float, high: float) -> tuple[float, ...]:
    first, last = round(math.log10(low)), round(math.log10(high))
    step = math.ceil((last - first) / _DECADES) or 1
    return tuple(10.0**exponent for exponent in range(first, last + 1, step))


def _round(low: float, high: float) -> tuple[float, ...]:
    rough = (high - low) / 4
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(digit * power for digit in _STEPS if digit * power >= rough * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return tuple(multiple * step for multiple in range(first, last + 1))
