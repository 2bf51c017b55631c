"""Runs cases side by side, keeps each in a folder of its own, and holds it against its key once
it is done.
"""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any, Protocol

from benchmarks.causes import cause
from benchmarks.proving import proven
from benchmarks.scoring import load_key, score, touched
from benchmarks.summary import Row
from bot.kernel.errors import UserError
from bot.kernel.ports import Listener

FIGURES = "bench.json"


@dataclass(frozen=True, slots=True)
class Case:
    """One issue of the bench: a file below `cases`; its key lies beside, below `keys`."""

    id: str
    path: Path
    bench: Path


class Reproduce(Protocol):
    """Reproduces one case into a run folder; returns figures to keep beside the report (the
    overhead), maybe none.
    """

    def __call__(self, case: Case, run: Path, listener: Listener) -> dict[str, float]:
        """Leaves report.json in `run`."""
        ...


def find_cases(folder: Path, only: Sequence[str] = ()) -> tuple[Case, ...]:
    """The cases of a bench folder, by id; `only` picks by id or by the beginning of one."""
    found = tuple(
        Case(path.stem, path, folder) for path in sorted((folder / "cases").glob("*.json"))
    )
    if not found:
        raise UserError(
            f"{folder} holds no cases.", "Name a folder with cases/*.json and keys/*.json."
        )
    wanted = tuple(
        each for each in found if not only or any(each.id.startswith(start) for start in only)
    )
    if strangers := [
        start for start in only if not any(each.id.startswith(start) for each in found)
    ]:
        raise UserError(
            f"No case begins with {', '.join(strangers)}.", f"The first one here is {found[0].id}."
        )
    return wanted


def run_cases(
    cases: Sequence[Case],
    out: Path,
    reproduce: Reproduce,
    *,
    jobs: int,
    fresh: bool,
    cancel: Event,
    hear: Callable[[Case], Listener],
) -> Iterator[Row]:
    """Yield a row for each case as it ends; finished reports are kept, and a set flag ends the
    whole.
    """
    todo: list[Case] = []
    for case in cases:
        if not fresh and _finished(out / case.id):
            yield _row(case, out / case.id, kept=True)
        else:
            todo.append(case)
    with ThreadPoolExecutor(max_workers=jobs, thread_name_prefix="bench") as pool:
        running = {
            pool.submit(_one, case, out / case.id, reproduce, hear, cancel): case for case in todo
        }
        while running:
            done, _ = wait(running, timeout=0.2, return_when=FIRST_COMPLETED)
            for future in done:
                row = _ended(running.pop(future), future, out)
                if row is not None:
                    yield row


def _one(
    case: Case, run: Path, reproduce: Reproduce, hear: Callable[[Case], Listener], cancel: Event
) -> None:
    if cancel.is_set():
        return
    run.parent.mkdir(parents=True, exist_ok=True)
    for old in (run / FIGURES, _crash(run.parent, case)):
        old.unlink(missing_ok=True)
    figures = reproduce(case, run, hear(case))
    if figures:
        (run / FIGURES).write_text(json.dumps(figures))


def _ended(case: Case, future: Future[None], out: Path) -> Row | None:
    """A row for what ended by itself; None for what was cancelled before it had a verdict."""
    error = future.exception()
    if error is None:
        return _row(case, out / case.id) if _finished(out / case.id) else None
    key = load_key(case.bench, case.id)
    words = f"{type(error).__name__}: {error}".splitlines()[0]
    _crash(out, case).write_text("".join(traceback.format_exception(error)))
    return Row(
        id=case.id,
        verdict=None,
        right=False,
        kind=key.kind,
        runnable=key.body_has_runnable_code,
        error=words,
    )


def _crash(out: Path, case: Case) -> Path:
    return out / f"{case.id}.crash.txt"


def _finished(run: Path) -> bool:
    try:
        return bool(_report(run)["verdict"]["kind"] != "cancelled")
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _report(run: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((run / "report.json").read_bytes())
    return loaded


def _row(case: Case, run: Path, *, kept: bool = False) -> Row:
    report, key = _report(run), load_key(case.bench, case.id)
    judged = score(run, key)
    figures = json.loads((run / FIGURES).read_bytes()) if (run / FIGURES).exists() else {}
    cost, missed = report.get("cost") or {}, int(figures.get("missed", 0))
    files = touched(case.bench, case.id)
    why = cause(
        report, right=judged.right, false=judged.false_reproduced, touched=files, missed=missed
    )
    return Row(
        id=case.id,
        verdict=report["verdict"]["kind"],
        right=judged.right,
        runs=len(report["attempts"]),
        seconds=report["seconds"].get("total", 0.0),
        calls=cost.get("calls", 0),
        tokens=cost.get("input_tokens", 0) + cost.get("output_tokens", 0),
        usd=cost.get("usd", 0.0),
        author=(report.get("script") or {}).get("author", ""),
        cause=why,
        missed=missed,
        report=str(run / "report.json"),
        kind=key.kind,
        runnable=key.body_has_runnable_code,
        false_reproduced=judged.false_reproduced,
        reason=judged.reason or report["verdict"]["reason"],
        overhead=figures.get("overhead"),
        proven=proven(run, report, key),
        kept=kept,
    )
