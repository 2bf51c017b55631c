"""What a repository decides, in `.github/reprise.yml`: each key with its default (the published
JSON Schema comes from this), and which files decided what.
"""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from bot.kernel.job import PROOFS, DataPaths, Proof
from bot.kernel.training_types import DIAGNOSIS_BUDGET
from bot.kernel.values import Record

PYTHON = r"^3\.([6-9]|1[0-5])$"
REF = re.compile(r"(?!.*\.\.)\w[\w./@+~^-]{0,200}", re.ASCII)  # of a clone: a branch, tag or commit
"""A minor version of Python that programs of today's reports may need, whether or not this host
has it.
"""


def _check_names(data: dict[str, str]) -> dict[str, str]:
    """Raise ValueError for what names nothing that lies directly in the operator's folder."""
    for name in data.values():
        if not is_data_name(name):
            raise ValueError("each name must be that of a folder, file or archive, without a path")
    return data


def is_data_name(name: str) -> bool:
    """Whether data of the operator's may have this name."""
    return name.isprintable() and 0 < len(name) <= 100 and not re.search(r"^\.|[/\\]", name)


class Triggers(Record):
    """When Reprise starts automatically."""

    opened: Literal["off", "bugs"] = Field(
        "bugs",
        description=(
            "New issues: off, or bugs (reproduces issues that look like bugs; ignores questions "
            "and feature requests)."
        ),
    )
    labels: tuple[str, ...] = Field(
        (), max_length=20, description="Labels that start a run when they are added to an issue."
    )


class Defaults(Record):
    """The options of a run that a command does not override."""

    device: Literal["cpu", "gpu"] = Field("cpu", description="Device to run on.")
    python: str | None = Field(
        None, pattern=PYTHON, description="Python version. Default: what the bug report implies."
    )
    timeout: int = Field(
        120, ge=10, le=3600, description="Time limit for one run of the program, in seconds."
    )
    training_timeout: int = Field(
        600,
        ge=10,
        le=3600,
        description=(
            "Time limit for a run that is diagnosed, or whose last metric counts, in seconds; the "
            "other limit applies if it is longer. What the program did until then is diagnosed."
        ),
    )
    diagnosis_budget: float = Field(
        DIAGNOSIS_BUDGET,
        ge=0,
        le=100,
        description=(
            "Time for trainings that confirm the findings of a diagnosis, as a multiple of the "
            "program's own run time, within the limit of the run that is diagnosed; 0: none."
        ),
    )
    runs: int = Field(40, ge=2, le=200, description="Maximum number of confirming runs.")
    clone: Literal["auto", "always", "never"] = Field(
        "auto",
        description=(
            "Install this repository from a clone. auto: only if it is private or ref= is given; "
            "else a clone is used for its own commands and modules."
        ),
    )
    proofs: tuple[Proof, ...] = Field(
        PROOFS,
        max_length=len(PROOFS),
        description=(
            "Proofs to run after a failure is reproduced: any of control, bisect, minimize. "
            "[] runs none."
        ),
    )
    proof_minutes: int = Field(10, ge=0, le=60, description="Total minutes for these proofs.")


class Quota(Record):
    """Daily limits (UTC). The host's own limits also apply."""

    person: int = Field(
        10,
        ge=0,
        le=10_000,
        description="Maximum runs per person per day, and as many new plans.",
    )
    repository: int = Field(
        50, ge=0, le=100_000, description="Maximum runs per day in this repository."
    )
    plans: int = Field(
        20,
        ge=0,
        le=100_000,
        description=(
            "Maximum new plans per day in this repository. A plan counts as a run only once it "
            "is approved."
        ),
    )
    minutes: int = Field(
        240, ge=0, le=1_000_000, description="Maximum compute minutes per day in this repository."
    )


class Config(Record):
    """`.github/reprise.yml`."""

    enabled: bool = Field(
        True, description="false: Reprise ignores this repository, including commands."
    )
    triggers: Triggers = Field(Triggers(), description="When Reprise starts automatically.")
    author_may_run: bool = Field(
        True, description="The author of an issue may comment a plain /reproduce, without options."
    )
    outsiders: Literal["approve", "ignore"] = Field(
        "approve",
        description=(
            "People without write permission. approve: post the plan and wait for approval. "
            "ignore: refuse their commands."
        ),
    )
    labels: bool = Field(True, description="Puts the verdict on the issue as a label.")
    ignore_authors: tuple[str, ...] = Field(
        (), max_length=100, description="Users whose issues and commands Reprise ignores."
    )
    defaults: Defaults = Field(
        Defaults(), description="Default options for a run; a command can override them."
    )
    data: Annotated[DataPaths, AfterValidator(_check_names)] = Field(
        {},
        max_length=20,
        description=(
            "Data that programs of this repository read, by its path in the repository: the name "
            "of a folder, file or archive that the operator of the worker keeps in "
            "REPRISE_DATA_DIR, such as {data/mnist: mnist}. Runs can only read it."
        ),
    )
    diagnose: bool = Field(
        False,
        description=(
            "Diagnoses the training of bug reports that contain a training program and no "
            "exception, after the verdict. Where only the training can decide, it runs anyway."
        ),
    )
    pull_request: Literal["off", "auto"] = Field(
        "off",
        description=(
            "Opens a draft pull request with a regression test or a proven patch after a run that "
            "someone with write permission asked for or approved. off: only on /reproduce pr."
        ),
    )
    quota: Quota = Field(Quota(), description="Daily limits.")


class Problem(Record):
    """Something wrong in a configuration file. `line` is 1-based, 0 for the file as a whole;
    `key` is a dotted path, "" when there is none to name; `reason` says what is expected and
    never repeats a value of the file.
    """

    file: str
    line: int = 0
    key: str = ""
    reason: str


class Origin(Record):
    """Where a value came from."""

    kind: Literal["repository", "extended", "organisation"]
    file: str


class LoadedConfig(Record):
    """What applies. `source` names the files that were applied, the strongest first, as
    "owner/name:path"; `origins` says for each key (dotted path) that a file sets which one
    decided it: all others have their default.
    """

    config: Config = Config()
    source: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    origins: dict[str, Origin] = {}
