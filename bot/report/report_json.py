"""report.json: the published form of a report, schema 1; a diagnosis and a repair as JSON."""

import json
import math
from collections.abc import Callable, Iterable
from importlib import metadata
from typing import Annotated, Any, Literal

from pydantic import AliasPath, BaseModel, BeforeValidator, ConfigDict, Field

from bot.issues import program_phrases
from bot.issues.reduce.edits import size
from bot.issues.verdicts import KINDS
from bot.kernel import files
from bot.kernel.attempt import Attempt, Ended
from bot.kernel.bug import Bisection, ScriptFix, signature_hash
from bot.kernel.dialogue import Reading, Refusal
from bot.kernel.environment import BuildStep, Claimed, Environment, PinSource
from bot.kernel.redaction import redact
from bot.kernel.report import Claim, Comparison, Control, Determinism, IssueReport
from bot.kernel.training_types import (
    Change,
    Curve,
    DiagnosedRun,
    Edit,
    Fault,
    Gain,
    Improvement,
    Interventions,
    Measurement,
    Metric,
    Repair,
    Status,
    Trial,
)

# What the published JSON files share: the base of their classes, and data as JSON can hold it,
# with texts cleaned and NaN and infinities as strings.

Absent = Annotated[str | None, BeforeValidator(lambda text: text or None)]
"""A text that is null where there is none."""


class PublishedData(BaseModel):
    """The base of what report.json and diagnosis.json hold; read from the models themselves."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        from_attributes=True,
        ser_json_inf_nan="strings",
        json_schema_serialization_defaults_required=True,
    )

    def to_json(self, clean: Callable[[str], str]) -> dict[str, Any]:
        """Plain data, every text of it cleaned; names of fields stay."""
        data = self.model_dump(mode="json", by_alias=True)
        return {key: _plain(value, clean) for key, value in data.items()}


def json_text(data: dict[str, Any]) -> str:
    """A file: indented, one final newline, characters as they are."""
    return json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _plain(value: Any, clean: Callable[[str], str]) -> Any:
    match value:
        case float() if not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        case str():
            return clean(value).encode("utf-8", "replace").decode()
        case list():
            return [_plain(item, clean) for item in value]
        case dict():
            return {key: _plain(item, clean) for key, item in value.items()}
    return value


# A diagnosis as JSON: the `diagnosis` of report.json, and diagnosis.json of a program's run.


class FindingOut(PublishedData):
    """A fault, or advice. `codes` are those of the source study: "HLR", or one for each layer,
    "ACH(7)"; a fault that is code has its name, "gradients-not-reset".
    """

    fault: Fault
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
    by: Literal["rules", "model", "runs"] = Field(
        "rules", description="model: only a model names it; runs: only trainings show it."
    )
    status: Status = Field(
        "likely", description="What trainings with the change say; likely: nothing certain."
    )
    gain: Gain | None = Field(
        None, description="The metric without and with the change; null without such trainings."
    )


class OpinionOut(PublishedData):
    """The result of asking a model for a second opinion."""

    model: str
    prompt: str = Field(description="stage@version#sha of the prompt; empty if no model was asked.")
    agreed: tuple[str, ...] = Field(description="Codes that both the rules and the model name.")
    unsupported: int = Field(description="Faults dropped because their quote was never shown.")
    refused: tuple[str, ...] = Field(
        (), description="Why edits that the model proposed were not tried by trainings."
    )
    calls: int = Field(validation_alias=AliasPath("usage", "calls"))
    input_tokens: int = Field(validation_alias=AliasPath("usage", "input_tokens"))
    output_tokens: int = Field(validation_alias=AliasPath("usage", "output_tokens"))
    usd: float = Field(validation_alias=AliasPath("usage", "usd"))
    missing: Absent = Field(description="Why there is no answer.")


class DiagnosisOut(PublishedData):
    """What the training probe observed in one run of the program, and what the rules conclude."""

    findings: tuple[FindingOut, ...] = Field(
        validation_alias=AliasPath("diagnosis", "findings"),
        description="At most four: confirmed ones by what they gained, then the most certain. "
        "Empty: nothing wrong, unless `undecided`.",
    )
    doubts: tuple[FindingOut, ...] = Field(
        (),
        validation_alias=AliasPath("diagnosis", "doubts"),
        description="Guesses that nothing measured decides; only where nothing is likely.",
    )
    advice: tuple[FindingOut, ...] = Field(
        validation_alias=AliasPath("diagnosis", "advice"),
        description="Habits that did no harm in this run.",
    )
    refuted: tuple[FindingOut, ...] = Field(
        (),
        validation_alias=AliasPath("diagnosis", "refuted"),
        description="Findings whose change did not help in trainings.",
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
    interventions: Interventions | None = Field(
        None, description="The trainings that tested the findings; null where there were none."
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


# A repair as JSON: repair.json.


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
    refused: tuple[str, ...] = Field(
        (), description="Why edits that a model proposed were not tried."
    )
    undecided: Absent = Field(description="Why no patch could be tried.")


class RepairFile(PublishedData):
    """repair.json."""

    schema_: Literal[1] = Field(1, alias="schema")
    program: str
    program_sha: str = Field(description="Git's id of the program's text.")
    repair: RepairOut
    version: str


def repair_text(result: Repair, *, program: str, hide: Callable[[str], str]) -> str:
    """repair.json as it is written; `hide` takes credentials out of a text."""
    file = RepairFile(
        program=program,
        program_sha=files.blob(result.source),
        repair=RepairOut.model_validate(result),
        version=metadata.version("reprise"),
    )
    return json_text(file.to_json(hide))


# report.json: the published form of a Report, schema 1. Within a version fields are only ever
# added.

SCHEMA_ID = "urn:reprise:report:1"
DIALECT = "https://json-schema.org/draft/2020-12/schema"


def _changes(fixes: Iterable[ScriptFix]) -> tuple[str, ...]:
    return tuple(f"{fix.what} ({fix.why})" if fix.why else fix.what for fix in fixes)


class IssueOut(PublishedData):
    """Which issue."""

    repository: Absent
    number: int | None
    title: str
    url: Absent


class VerdictOut(PublishedData):
    """The verdict. Fields that a kind does not carry are null; `details` holds what only that
    kind carries.
    """

    kind: str = Field(json_schema_extra={"enum": list(KINDS)})
    runs: int | None = None
    failures: int | None = None
    interval: tuple[float, float] | None = Field(
        None, description="95 % Clopper-Pearson interval of failures over runs."
    )
    determinism: Determinism | None = None
    control: Control | None = None
    at_maximum: bool | None = Field(
        None, description="Of inconclusive: whether only more runs could decide."
    )
    needs_reader: bool | None = Field(
        None,
        description="Of inconclusive: whether nothing was run because the report takes a reader, "
        "a person or a model. Then nothing is asked of the reporter.",
    )
    from_operator: bool | None = Field(
        None,
        description="Of needs_info: whether it is a file or weights that a run asked for and the "
        "host lacks. Then nothing is asked of the reporter.",
    )
    reason: str
    details: dict[str, str | tuple[str, ...]] | None = None


class SignatureOut(BaseModel):
    """What counted as the reported failure, frozen before the runs that it judges. The other
    fields depend on `kind`.
    """

    model_config = ConfigDict(frozen=True, extra="allow", ser_json_inf_nan="strings")

    kind: Literal[
        "crash",
        "output",
        "nonfinite",
        "warning",
        "hang",
        "observation",
        "training",
        "test",
        "any",
    ]
    hash: str = Field(description="SHA-256 of the canonical JSON of the other fields.")


class PackageOut(PublishedData):
    """An installed distribution and what decided its version."""

    name: str
    version: str
    rung: PinSource
    why: str = Field("", description="Why this version, with the evidence for the name.")


class EnvironmentOut(PublishedData):
    """The environment of the runs."""

    python: str
    packages: tuple[PackageOut, ...]
    lock: str
    claims: tuple[Claimed, ...] = ()
    steps: tuple[BuildStep, ...] = ()
    commit: Absent = None


class ScriptOut(PublishedData):
    """The program that was run; `path` is below the run folder."""

    path: str = Field(validation_alias="entry")
    lines: Annotated[int, BeforeValidator(lambda files: size(files)[0])] = Field(
        validation_alias="files", description="Non-blank lines of all files."
    )
    sha256: str = Field(validation_alias="digest")
    origin: str
    author: Literal["reporter", "model"] = Field(
        "reporter", description="Who wrote it. Only its runs decide the verdict."
    )
    changes: Annotated[tuple[str, ...], BeforeValidator(_changes)] = Field(validation_alias="fixes")


class PlanOut(PublishedData):
    """A model's part in the run. All of it is a model's words, and none of it decides: verdicts
    rest on `attempts`.
    """

    readings: tuple[Reading, ...] = Field(
        (), description="How rules and the model read the bug report, where they differ."
    )
    claim: str = Field("", description="What the bug report says, as the model read it.")
    inferred: tuple[str, ...] = Field(
        (), description="Parts of the signature that the bug report does not state literally."
    )
    hypothesis: str = Field(
        "", description="The model's last hypothesis: the lines at fault, or why a run failed."
    )
    contexts: tuple[str, ...] = Field(
        (), description="Pieces of source code that the model was shown, best first."
    )
    changes: tuple[str, ...] = Field(
        (), description="One entry per proposed program, run or refused."
    )
    given_up: str = ""
    questions: tuple[str, ...] = ()
    refusals: tuple[Refusal, ...] = Field(
        (), description="Parts of the model's answers that were refused, changed or left out."
    )


class CostOut(PublishedData):
    """What models cost. `usd` is 0 if the price is unknown; `estimated` says that the provider gave
    no counts.
    """

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float = 0
    estimated: bool = False


class MinimizedOut(PublishedData):
    """The result of the minimization. Blank lines do not count; `original_sha256` is the program
    before, as in `attempts`.
    """

    lines_before: int = Field(description="Of a command in a repository: the lines that ran.")
    lines_after: int
    tests: int = Field(description="Programs tried (since resuming, if `resumed` is not 0).")
    seconds: float
    ended: Ended = Field(description='"complete", or what ended the search.')
    original_sha256: str = Field(validation_alias=AliasPath("before", "digest"))
    resumed: int = Field(
        0, description="Number of lines when a killed run was resumed; 0 if it was not."
    )


class VersionsOut(PublishedData):
    """The versions that wrote this report."""

    reprise: str
    prompts: dict[str, str]
    models: tuple[str, ...] = ()


class Published(PublishedData):
    """The result of reproducing one issue."""

    schema_: Literal[1] = Field(1, alias="schema")
    issue: IssueOut
    verdict: VerdictOut
    signature: SignatureOut | None
    environment: EnvironmentOut | None
    script: ScriptOut | None
    command: Absent = Field(description="Command that runs the script anywhere.")
    command_needs: Absent = Field(
        None, description="What the command does not include, as a sentence."
    )
    comparison: tuple[Comparison, ...]
    attempts: tuple[Attempt, ...]
    claims: tuple[Claim, ...]
    notes: tuple[str, ...]
    bisect: Bisection | None = Field(
        None,
        validation_alias="bisection",
        description="The bisection that found a boundary, else the newest.",
    )
    other_bisections: tuple[Bisection, ...] = Field((), description="Of other packages.")
    minimized: MinimizedOut | None = Field(
        None,
        validation_alias="reduced",
        description="How the script was minimized; null if it was not.",
    )
    diagnosis: DiagnosisOut | None = Field(
        None, description="Of a training run of the program; null if not requested."
    )
    patch: RepairOut | None = Field(
        None,
        validation_alias="repair",
        description="Of its hyperparameters; null if not requested.",
    )
    plan: PlanOut | None = Field(
        None, description="A model's part in the program; null if no model wrote one."
    )
    cost: CostOut = CostOut()
    seconds: dict[str, float] = Field(description='"total" and one entry per stage.')
    sandbox: Literal["docker", "bwrap", "process", "fake"] | None
    versions: VersionsOut


def published(report: IssueReport) -> Published:
    """The published form, typed."""
    own = {
        "verdict": _verdict(report),
        "signature": _signature(report),
        "environment": _environment(report),
        "notes": report.notes_on(),
        "plan": _plan(report),
        "sandbox": report.sandbox or None,
        "versions": {
            "reprise": report.version, "prompts": report.prompts, "models": report.models,
        },
    }  # fmt: skip
    return Published.model_validate(dict(report) | own, extra="ignore")


def report_json(
    report: IssueReport, *, secrets: Iterable[str] = (), hide: Callable[[str], str] = str
) -> dict[str, Any]:
    """The published form as plain data, credentials removed, and what `hide` takes out of a text.
    NaN and infinities are strings.
    """
    secret_values = tuple(secrets)
    return published(report).to_json(lambda text: redact(hide(text), secret_values))


def report_text(
    report: IssueReport, *, secrets: Iterable[str] = (), hide: Callable[[str], str] = str
) -> str:
    """report.json as it is written."""
    return json_text(report_json(report, secrets=secrets, hide=hide))


_COMMON = VerdictOut.model_fields.keys() - {"details"}


def _verdict(report: IssueReport) -> dict[str, Any]:
    fields = dict(report.verdict)
    details = {name: value for name, value in fields.items() if name not in _COMMON}
    return fields | {"details": details or None}


def _signature(report: IssueReport) -> SignatureOut | None:
    signed = report.signature
    if signed is None:
        return None
    return SignatureOut(**signed.model_dump(), hash=report.signature_hash or signature_hash(signed))


def _environment(report: IssueReport) -> dict[str, Any] | None:
    built_environment = report.environment
    if built_environment is None:
        return None
    whys = {name: why for name, _, why in program_phrases.package_rows(report)}
    packages = [
        dict(package) | {"why": whys.get(package.name, "")}
        for package in built_environment.packages
    ]
    return dict(built_environment) | {"packages": packages}


def _plan(report: IssueReport) -> dict[str, Any] | None:
    part = report.reconstruction
    return None if part is None else dict(part.refined or ()) | dict(part)
