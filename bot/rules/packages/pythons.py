"""Which Python people used when: the release of each minor version (source: PEPs 494 to 745)."""

from datetime import UTC, datetime, timedelta
from typing import Final

RELEASED: Final[dict[str, datetime]] = {
    "3.6": datetime(2016, 12, 23, tzinfo=UTC),
    "3.7": datetime(2018, 6, 27, tzinfo=UTC),
    "3.8": datetime(2019, 10, 14, tzinfo=UTC),
    "3.9": datetime(2020, 10, 5, tzinfo=UTC),
    "3.10": datetime(2021, 10, 4, tzinfo=UTC),
    "3.11": datetime(2022, 10, 24, tzinfo=UTC),
    "3.12": datetime(2023, 10, 2, tzinfo=UTC),
    "3.13": datetime(2024, 10, 7, tzinfo=UTC),
    "3.14": datetime(2025, 10, 7, tzinfo=UTC),
}
SUPPORTED: Final = timedelta(days=5 * 365)
SETTLED: Final = timedelta(days=365)


def usual(at: datetime | None, host: str) -> str:
    """The Python when none is named: the host's own where it was a year old and still supported,
    else the newest settled.
    """
    if at is None or (
        host in RELEASED and RELEASED[host] + SETTLED <= at <= RELEASED[host] + SUPPORTED
    ):
        return host
    settled = [minor for minor, day in RELEASED.items() if day + SETTLED <= at]
    return settled[-1] if settled else next(iter(RELEASED))


def order(minor: str) -> tuple[int, int]:
    """A minor version as numbers, for sorting."""
    major, _, rest = minor.partition(".")
    return int(major), int(rest or 0)


def by_distance(wanted: str, present: tuple[str, ...]) -> tuple[str, ...]:
    """The minors that are present, nearest to the wanted one first; of two equally near the
    newer.
    """
    _, target = order(wanted)
    return tuple(
        sorted(present, key=lambda minor: (abs(order(minor)[1] - target), -order(minor)[1]))
    )
