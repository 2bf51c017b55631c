"""A diagnosis as JSON: the `diagnosis` of report.json, and diagnosis.json of a program's run."""

from collections.abc import Callable
from importlib import metadata
from typing import Literal

from pydantic import AliasPath, Field

from bot.models.diagnosis import (
    Change,
    Curve,
    DiagnosedRun,
    FaultType,
    Measurement,
)
from bot.models.environment import Environment
from bot.render.plain_json import Absent, PublishedData, json_text


class FindingOut(PublishedData):
    """A fault, or advice. `codes` are those of the source study: "HLR", or one for each layer,
    "ACH(7)".
    """

    fault: FaultType
    codes: tuple[str, ...]
    layers: tuple[int, ...] = Field(
        description="Keras: index in model.layers. PyTorch: order of the leaf modules in forward."
    )
    message: str
    evidence: tuple[Measurement, ...]
    change: Change | None
    direction: Literal["", "up", "down"]
    rule: str
    source: str
    confidence: float = Field(description="0 if only a model names the fault.")
    line: int = Field(description="Line of the program; 0 if unknown.")
    by: Literal["rules", "model"] = Field(
        "rules", description="model: only a model names it; no rule and no run confirms it."
    )


class OpinionOut(PublishedData):
    """The result of asking a model for a second opinion."""

    model: str
    prompt: str = Field(description="stage@version#sha of the prompt; empty if no model was asked.")
    agreed: tuple[str, ...] = Field(description="Codes that both the rules and the model name.")
    unsupported: int = Field(description="Faults dropped because their quote was never shown.")
    calls: int = Field(validation_alias=AliasPath("usage", "calls"))
    input_tokens: int = Field(validation_alias=AliasPath("usage", "input_tokens"))
    output_tokens: int = Field(validation_alias=AliasPath("usage", "output_tokens"))
    usd: float = Field(validation_alias=AliasPath("usage", "usd"))
    missing: Absent = Field(description="Why there is no answer.")


class DiagnosisOut(PublishedData):
    """What the training probe observed in one run of the program, and what the rules conclude."""

    findings: tuple[FindingOut, ...] = Field(
        validation_alias=AliasPath("diagnosis", "findings"),
        description="At most four, most certain first. Empty: nothing wrong, unless `undecided`.",
    )
    advice: tuple[FindingOut, ...] = Field(
        validation_alias=AliasPath("diagnosis", "advice"),
        description="Habits that did no harm in this run.",
    )
    examined: tuple[str, ...] = Field(validation_alias=AliasPath("diagnosis", "examined"))
    unseen: tuple[str, ...] = Field(validation_alias=AliasPath("diagnosis", "unseen"))
    undecided: Absent = Field(description="Why there is no diagnosis.")
    ended: Literal["completed", "failed", "timed out", "killed"]
    error: Absent
    framework: str
    steps: int
    epochs: int
    seconds: float
    curves: tuple[Curve, ...] = Field(description="The lines of the plot.")
    opinion: OpinionOut | None = Field(
        None, description="A model's second opinion; null where no model is configured."
    )


class DiagnosisFile(PublishedData):
    """diagnosis.json."""

    schema_: Literal[1] = Field(1, alias="schema")
    program: str
    diagnosis: DiagnosisOut
    python: str | None
    packages: dict[str, str]
    sandbox: str
    version: str


def diagnosis_text(
    run: DiagnosedRun,
    *,
    program: str,
    environment: Environment | None,
    sandbox: str,
    hide: Callable[[str], str],
) -> str:
    """diagnosis.json as it is written; `hide` takes credentials out of a text."""
    packages = environment.packages if environment is not None else ()
    file = DiagnosisFile(
        program=program,
        diagnosis=DiagnosisOut.model_validate(run),
        python=environment.python if environment is not None else None,
        packages={package.name: package.version for package in packages},
        sandbox=sandbox,
        version=metadata.version("reprise"),
    )
    return json_text(file.to_json(hide))
