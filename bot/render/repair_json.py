"""A repair as JSON: repair.json."""

from collections.abc import Callable
from importlib import metadata
from typing import Literal

from pydantic import Field

from bot.models.repair import Edit, Improvement, Metric, Repair, Trial
from bot.render.plain_json import Absent, PublishedData, json_text
from bot.rules.regression import diffs


class RepairOut(PublishedData):
    """The smallest patch that was found, with its measurements."""

    proven: bool = Field(description="A significant gain on seeds that the search did not use.")
    metric: Metric | None
    patch: tuple[Edit, ...]
    diff: str
    improvement: Improvement | None = Field(description="Faulty and patched, seed by seed.")
    held_out_rows: bool = Field(description="The proof used test rows that the search did not.")
    seed_independent: bool = Field(description="Every training is the same, whatever its seed.")
    trainings: int = Field(description="Number for the search and the minimization.")
    confirmations: int = Field(description="Number for the proof.")
    budget: float = Field(description="Time for the search, as a multiple of `training_seconds`.")
    seconds: float
    training_seconds: float = Field(description="Time of one training of the faulty program.")
    tried: tuple[Trial, ...]
    undecided: Absent = Field(description="Why no patch could be tried.")


class RepairFile(PublishedData):
    """repair.json."""

    schema_: Literal[1] = Field(1, alias="schema")
    program: str
    program_sha: str = Field(description="Git's id of the program's text.")
    repair: RepairOut
    version: str


def repair_text(found: Repair, *, program: str, hide: Callable[[str], str]) -> str:
    """repair.json as it is written; `hide` takes credentials out of a text."""
    file = RepairFile(
        program=program,
        program_sha=diffs.blob(found.source),
        repair=RepairOut.model_validate(found),
        version=metadata.version("reprise"),
    )
    return json_text(file.to_json(hide))
