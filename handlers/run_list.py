"""The list of a repository's runs, for whoever has a name that opens it."""

import time
from dataclasses import dataclass
from functools import partial
from typing import Annotated

from fastapi import APIRouter, HTTPException, Query, Request
from starlette.responses import HTMLResponse, Response

from bot.app import context
from bot.kernel.run import Run, VerdictCount
from bot.report import run_list
from handlers.pages import PAGE
from handlers.state import ListingRun, Web, WebState

PAGE_RUNS = 25
Verdict = Annotated[str | None, Query(max_length=40)]
Before = Annotated[str | None, Query(max_length=64)]


@dataclass(frozen=True)
class RunList:
    """A page of the list with the names of its runs; `older` is the run before which the next
    page begins, "" on the last one.
    """

    runs: tuple[Run, ...]
    names: dict[str, str]
    counts: tuple[VerdictCount, ...]
    older: str


def find_list(
    run: Run, list_name: str, web: WebState, verdict: str | None, before: str | None
) -> RunList:
    """A page of the list that a run's name has opened. Raises HTTPException for what is no
    verdict.
    """
    if verdict is not None and not run_list.is_verdict(verdict):
        raise HTTPException(404, "There is no such verdict.")
    repository, store = run.request.repository, web.store
    runs = store.history(repository, verdict=verdict, before=before, limit=PAGE_RUNS + 1)
    rows = runs[:PAGE_RUNS]
    names = {row.id: context.name_in_list(row, list_name, store) for row in rows}
    older = rows[-1].id if len(runs) > PAGE_RUNS else ""
    return RunList(rows, names, store.verdict_counts(repository), older)


router = APIRouter()
_get = partial(router.api_route, methods=["GET", "HEAD"])


@_get("/runs/{run}/repository")
def list_page(
    run: ListingRun, web: Web, request: Request, verdict: Verdict = None, before: Before = None
) -> Response:
    """The list of a repository's runs."""
    name = request.path_params["run"]
    page = find_list(run, name, web, verdict, before)
    view = run_list.list_view(
        run.request.repository.full_name,
        f"/runs/{name}/repository",
        page.runs,
        page.counts,
        lambda row: f"/runs/{page.names[row.id]}",
        verdict=verdict,
        before=before,
        older=page.older,
        today=run_list.today_of(time.time()),
        secrets=web.settings.strong_secrets,
    )
    return HTMLResponse(run_list.list_page(view), headers=PAGE)
