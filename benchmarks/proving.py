"""What was proved of a reproduced case, read off its run folder, and whether that agrees with
what its key knows.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from packaging.version import Version

from benchmarks.scoring import Key, printed, shows
from bot.kernel.values import Record

LEVEL = 0.05
MOST_LINES = 20
_VERSION = re.compile(r"(?<![\w.])v?(\d+\.\d+(?:\.\d+)*)(?![\w.]*\w)")
_UP = re.compile(r"\b(?:up\s?grad\w+|update)\b[^.;]*?", re.IGNORECASE)
_DOWN = re.compile(r"\bdowngrad\w+|\buse\b", re.IGNORECASE)
_NEVER = re.compile(r"\bnot (?:fixed|in a release)\b", re.IGNORECASE)


class Proven(Record):
    """The proofs of one case. `named` says whether the bisection agrees with the version that
    the key's `fix_hint` names, None when it names none; `held` whether the smaller program, run
    afresh, prints what the key expects and passes where its control does, None when the key
    holds no pattern and there is no control.
    """

    control: str = "none"
    p: float | None = None
    introduced: str = ""
    fixed: str = ""
    named: bool | None = None
    before: int = 0
    after: int = 0
    held: bool | None = None
    seconds: float = 0.0


class Proofs(Record):
    """What the proofs of all reproduced cases add up to. `controlled` counts controls of another
    type than none, `confirmed` those with p of at most .05, `named` the right ones of
    `nameable`, `slipped` names the cases whose smaller program fails otherwise.
    """

    reproduced: int
    controlled: int
    confirmed: int
    named: int
    nameable: int
    lines_median: float | None
    slipped: tuple[str, ...]


def proven(run: Path, report: dict[str, Any], key: Key) -> Proven | None:
    """The proofs of a finished run; None for one that was not reproduced."""
    verdict = report["verdict"]
    if verdict["kind"] != "reproduced":
        return None
    control, found, reduced = (
        verdict["control"] or {},
        report["bisect"] or {},
        report.get("minimized") or {},
    )
    spent, whole = report["seconds"], (report["script"] or {}).get("lines", 0)
    return Proven(
        control=control.get("type", "none"),
        p=control.get("p"),
        introduced=_at(found, "first_bad", "introduced_among"),
        fixed=_at(found, "first_fixed", "fixed_among"),
        named=named(found, key.fix_hint or ""),
        before=reduced.get("lines_before", whole),
        after=reduced.get("lines_after", whole),
        held=_held(run, report, key),
        seconds=round(sum(spent.get(stage, 0.0) for stage in ("control", "bisect", "minimize")), 1),
    )


def _at(found: dict[str, Any], exact: str, among: str) -> str:
    if found.get(among):
        return f"by {found[among][-1]}"
    return str((found.get(exact) or {}).get("at", ""))


def named(found: dict[str, Any], hint: str) -> bool | None:
    """Whether a bisection over releases agrees with a hint: "upgrade to X" is the first that
    passes, "downgrade to X" the last that does, and what is "not fixed in X" still fails there;
    of several versions the one with the package's name counts. None for a hint without a
    version.
    """
    subject = re.escape(found.get("package") or "")  # a hint may name versions of others beside it
    match = (
        re.search(rf"\b{subject}\s*>=\s*v?(\d+(?:\.\d+)*)", hint) if subject else None
    ) or _VERSION.search(hint)
    if match is None:
        return None
    version = Version(match.group(1))
    if _NEVER.search(hint):
        return bool(found.get("probes")) and not _is(found, "first_fixed", version, "at_most")
    if _UP.search(hint[: match.start()]):
        return _is(found, "first_fixed", version) or _among(found, "fixed_among", version)
    if _DOWN.search(hint[: match.start()]):
        return _is(found, "last_good", version) or _among(found, "introduced_among", version)
    return None


def _is(found: dict[str, Any], name: str, version: Version, how: str = "same") -> bool:
    at = (found.get(name) or {}).get("at")
    if at is None or found.get("over") != "releases":
        return False
    return Version(at) <= version if how == "at_most" else Version(at) == version


def _among(found: dict[str, Any], name: str, version: Version) -> bool:
    return any(Version(at) == version for at in found.get(name) or ())


def _held(run: Path, report: dict[str, Any], key: Key) -> bool | None:
    """Every fresh run of the final program: it prints what the key expects where it fails, and
    does not fail in the control.
    """
    reduced = report.get("minimized")
    if not reduced or reduced["original_sha256"] == report["script"]["sha256"]:
        return None  # nothing was taken away
    final, made = report["script"]["sha256"], report["verdict"]["control"] or {}
    # The report's own variant is another program in the same environment: the smaller program is
    # not run against it.
    control = made.get("environment", "") if made.get("type") != "report-contrast" else ""
    rows = [
        row for row in report["attempts"] if row["script"] == final and row["purpose"] == "minimize"
    ]
    failing = [row for row in rows if row["environment"] != control]
    shown = shows(
        printed(run, [row for row in failing if row["judgement"]["match"] == "matched"]), key
    )
    passing = [
        row["judgement"]["match"] == "passed" for row in rows if row["environment"] == control
    ]
    return None if shown is None and not passing else shown is not False and all(passing)


def add_up(rows: Sequence[tuple[str, Proven]]) -> Proofs | None:
    """The sum over all reproduced cases, None without any."""
    each = [row for _, row in rows]
    return (
        None
        if not rows
        else Proofs(
            reproduced=len(each),
            controlled=sum(row.control != "none" for row in each),
            confirmed=sum(row.p is not None and row.p <= LEVEL for row in each),
            named=sum(row.named is True for row in each),
            nameable=sum(row.named is not None for row in each),
            lines_median=median(row.after for row in each if row.after)
            if any(row.after for row in each)
            else None,
            slipped=tuple(id_ for id_, row in rows if row.held is False),
        )
    )


def told(row: Proven) -> str:
    """One case's proofs in a cell."""
    edges = ", ".join(
        filter(
            None,
            [row.introduced and f"introduced {row.introduced}", row.fixed and f"fixed {row.fixed}"],
        )
    )
    chance = f" p {row.p:.3g}" if row.p is not None else ""
    agrees = {True: " (as known)", False: " (NOT as known)", None: ""}[row.named]
    lines = f"{row.before} → {row.after} lines" + (" SLIPPED" if row.held is False else "")
    return "; ".join(
        filter(None, [f"{row.control}{chance}", edges + agrees if edges or agrees else "", lines])
    )


def lines(proofs: Proofs) -> list[str]:
    """The sums in words."""
    return [
        (
            f"control: {proofs.controlled} of {proofs.reproduced} reproduced, {proofs.confirmed} "
            "of "
            f"them with p of at most {LEVEL}"
        ),
        f"versions as known: {proofs.named} of {proofs.nameable} whose key names one",
        (
            f"lines of the final program: median {proofs.lines_median or 0:g} (target: at most "
            f"{MOST_LINES})"
        ),
        f"slipped to another failure: {', '.join(proofs.slipped) or 'none'}",
    ]
