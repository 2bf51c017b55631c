"""report.json: the published form of a Report, schema 1. Within a version fields are only ever
added.
"""

from collections.abc import Callable, Iterable
from typing import Annotated, Any, Literal

from pydantic import AliasPath, BaseModel, BeforeValidator, ConfigDict, Field

from bot.models.attempt import Attempt, Ended
from bot.models.bisect import Bisection
from bot.models.bug import ScriptFix
from bot.models.dialogue import Reading
from bot.models.environment import BuildStep, Claimed, PinSource
from bot.models.report import Claim, Comparison, Control, Determinism, Report
from bot.models.signature import signature_hash
from bot.render.diagnosis_json import DiagnosisOut
from bot.render.phrases import environment
from bot.render.plain_json import Absent, PublishedData, json_text
from bot.render.repair_json import RepairOut
from bot.rules.reduce.edits import size
from bot.rules.verdicts import KINDS
from bot.text.sanitize import redact

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
    reason: str
    details: dict[str, str | tuple[str, ...]] | None = None


class SignatureOut(BaseModel):
    """What counted as the reported failure, frozen before the runs that it judges. The other
    fields depend on `kind`.
    """

    model_config = ConfigDict(frozen=True, extra="allow", ser_json_inf_nan="strings")

    kind: Literal["crash", "output", "nonfinite", "warning", "hang", "observation", "any"]
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

    lines_before: int
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


def published(report: Report) -> Published:
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
    report: Report, *, secrets: Iterable[str] = (), hide: Callable[[str], str] = str
) -> dict[str, Any]:
    """The published form as plain data, credentials removed, and what `hide` takes out of a text.
    NaN and infinities are strings.
    """
    known = tuple(secrets)
    return published(report).to_json(lambda text: redact(hide(text), known))


def report_text(
    report: Report, *, secrets: Iterable[str] = (), hide: Callable[[str], str] = str
) -> str:
    """report.json as it is written."""
    return json_text(report_json(report, secrets=secrets, hide=hide))


_COMMON = VerdictOut.model_fields.keys() - {"details"}


def _verdict(report: Report) -> dict[str, Any]:
    fields = dict(report.verdict)
    details = {name: value for name, value in fields.items() if name not in _COMMON}
    return fields | {"details": details or None}


def _signature(report: Report) -> SignatureOut | None:
    signed = report.signature
    if signed is None:
        return None
    return SignatureOut(**signed.model_dump(), hash=report.signature_hash or signature_hash(signed))


def _environment(report: Report) -> dict[str, Any] | None:
    built = report.environment
    if built is None:
        return None
    whys = {name: why for name, _, why in environment.decided(report)}
    packages = [dict(each) | {"why": whys.get(each.name, "")} for each in built.packages]
    return dict(built) | {"packages": packages}


def _plan(report: Report) -> dict[str, Any] | None:
    part = report.reconstruction
    return None if part is None else dict(part.refined or ()) | dict(part)
