"""The JSON API for runs, with its own OpenAPI description.

The access rules are those of the run pages: a run's name cannot be guessed and is the only key to
it; a private repository's is signed and expires. So runs are looked up by name; a list is of one
repository, and only for a name that opens it.
"""

from datetime import date, datetime
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, FastAPI, Query, Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, Field

from bot.kernel.errors import TransientError
from bot.kernel.redaction import redact
from bot.kernel.run import Run, RunState
from bot.report.paper_json import PublishedPaper, requested_json
from bot.report.report_json import Published
from handlers.pages import VERSION, pull_number
from handlers.run_list import Before, Verdict, find_list
from handlers.state import (
    UNTRACED,
    ListingRun,
    RequestedRun,
    Web,
    WebState,
    find_run,
    without_folders,
)

MAX_RUNS = 50


class RunStatus(BaseModel):
    """The state of a run."""

    id: str = Field(description="The run's id.")
    url: str = Field(description="The run's page.")
    state: RunState = Field(
        description="waiting (for an approval), queued, running, reported (the comment is still to "
        "come), finished, or failed (a defect of Reprise)."
    )
    repository: str = Field(description="The repository as owner/name.")
    number: int = Field(description="The issue's number.")
    requester: str = Field(description="The login of the person who requested the run.")
    stage: str = Field(description="The stage that a running run has reached.")
    progress: str = Field(description="The last line of progress.")
    verdict: str = Field(description="The kind of the verdict; empty until there is one.")
    seconds: float = Field(description="Compute time used so far, in seconds.")
    pull_request: str = Field(description="The issue's pull request; empty when there is none.")
    created_at: datetime = Field(description="When it was requested.")
    started_at: datetime | None = Field(description="When it was started; null before.")
    finished_at: datetime | None = Field(description="When it ended; null before.")


class RunWithReport(RunStatus):
    """A run and its report."""

    report: Published | PublishedPaper | None = Field(
        description="The contents of report.json; null until it exists."
    )


class RunStatuses(BaseModel):
    """The runs that were found."""

    runs: tuple[RunStatus, ...]


class VerdictsOfDay(BaseModel):
    """How many runs that were requested on a day ended in a verdict."""

    day: date = Field(description="The day (UTC).")
    verdict: str = Field(description="The kind of the verdict; empty for runs without one.")
    runs: int


class RepositoryRuns(BaseModel):
    """A page of a repository's runs, the newest first."""

    repository: str = Field(description="The repository as owner/name.")
    counts: tuple[VerdictsOfDay, ...] = Field(description="All its listed runs.")
    runs: tuple[RunStatus, ...]
    older: str = Field(description="Pass it as `before` for the next page; empty on the last one.")


class ApiError(BaseModel):
    """Why a request failed."""

    detail: str


router = APIRouter(
    responses={503: {"model": ApiError, "description": "The database does not answer."}}
)


@router.get("/runs")
def runs(
    ids: Annotated[list[str], Query(alias="id", max_length=MAX_RUNS)], web: Web
) -> RunStatuses:
    """The status of each run whose id is given. Unknown ids are ignored."""
    ids_and_runs = ((name, find_run(name, web.store)) for name in dict.fromkeys(ids))
    return RunStatuses(
        runs=tuple(RunStatus(**_status(run, web, name)) for name, run in ids_and_runs if run)
    )


@router.get(
    "/runs/{run}",
    responses={403: {"model": ApiError}, 404: {"model": ApiError}},
    response_model=RunWithReport,
)
def run_result(run: RequestedRun, web: Web, request: Request) -> JSONResponse:
    """A run's status and, once it exists, its report, which is JSON already."""
    report, hide = web.store.report(run.id), partial(without_folders, web.settings)
    body = report and requested_json(report, secrets=web.settings.strong_secrets, hide=hide)
    status = RunStatus(**_status(run, web, request.path_params["run"]))
    return JSONResponse(status.model_dump(mode="json") | {"report": body})


@router.get(
    "/runs/{run}/repository", responses={403: {"model": ApiError}, 404: {"model": ApiError}}
)
def repository_runs(
    run: ListingRun, web: Web, request: Request, verdict: Verdict = None, before: Before = None
) -> RepositoryRuns:
    """The runs of a repository, for a name that opens their list."""
    page = find_list(run, request.path_params["run"], web, verdict, before)
    return RepositoryRuns(
        repository=run.request.repository.full_name,
        counts=tuple(VerdictsOfDay(**row.model_dump()) for row in page.counts),
        runs=tuple(RunStatus(**_status(row, web, page.names[row.id])) for row in page.runs),
        older=page.older,
    )


def create(web: WebState) -> FastAPI:
    """The API as a separate application: all its errors are JSON."""
    api = FastAPI(
        title="Reprise runs",
        version=VERSION,
        docs_url=None,  # its scripts come from elsewhere
        redoc_url=None,
        telemetry=UNTRACED,
        exception_handlers={TransientError: _unavailable},
    )
    api.state.web = web
    api.include_router(router)
    return api


async def _unavailable(_request: Request, _error: Exception) -> Response:
    detail = "The database does not answer right now; try again in a minute."
    return JSONResponse({"detail": detail}, 503, {"Retry-After": "30"})


def _status(run: Run, web: WebState, name: str) -> dict[str, Any]:
    request, pull = run.request, pull_number(run, web)
    home = f"{web.settings.github_url}/{request.repository.full_name}"
    return {
        **run.model_dump(include=set(RunStatus.model_fields)),
        "url": f"{web.settings.public_url}/runs/{name}",
        "repository": request.repository.full_name,
        "number": request.number,
        "requester": request.requester,
        "pull_request": f"{home}/pull/{pull}" if pull else "",
        "progress": redact(run.progress, web.settings.strong_secrets),
    }
