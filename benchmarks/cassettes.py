"""Recorded exchanges of a bench: one file a case, kept as a run makes them, or asked in a
model's place.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from bot.kernel.errors import UserError
from bot.kernel.job import JobOptions
from bot.model.cassette import Cassette
from bot.report.run_folder import EXCHANGE_FILE

Options = TypeVar("Options", bound=JobOptions)


@dataclass(frozen=True, slots=True)
class Cassettes:
    """Where exchanges are kept (`record`) and where they come from (`replay`); None: neither."""

    record: Path | None = None
    replay: Path | None = None

    def __post_init__(self) -> None:
        """A replay is no recording."""
        if self.record is not None and self.replay is not None:
            raise UserError(
                "--record and --replay exclude each other.",
                "Record with a model first, then replay.",
            )
        if self.replay is not None and not self.replay.is_dir():
            raise UserError(f"{self.replay} is no folder of cassettes.", "Make one with --record.")

    def of(self, case: str) -> Cassette | None:
        """The recorded model of a case; None when there is none."""
        path = self.replay / f"{case}.jsonl" if self.replay is not None else None
        return Cassette(path) if path is not None and path.is_file() else None

    def options(self, case: str, options: Options) -> Options:
        """A case without a cassette runs without a model: in a replay nobody else is asked."""
        if (
            self.replay is None
            or (self.replay / f"{case}.jsonl").is_file()
            or "model" in options.without
        ):
            return options
        return options.model_copy(update={"without": ("model", *options.without)})

    def keep(self, case: str, run: Path) -> None:
        """Keep what a finished run asked; a case that asked nothing has no cassette."""
        if self.record is None:
            return
        self.record.mkdir(parents=True, exist_ok=True)
        kept, made = self.record / f"{case}.jsonl", run / EXCHANGE_FILE
        if not made.is_file():
            kept.unlink(missing_ok=True)
            return
        part = kept.with_suffix(".part")
        shutil.copyfile(made, part)
        part.replace(kept)
