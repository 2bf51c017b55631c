"""The page of a run as it changes: server-sent events, until there is a verdict."""

import asyncio
from collections.abc import AsyncIterator
from threading import BoundedSemaphore
from time import monotonic
from typing import Annotated

from fastapi import APIRouter, Depends, HTTPException, Request
from fastapi.sse import EventSourceResponse, ServerSentEvent

from bot.kernel.journal import ATTEMPTS, LOSSES, USAGE
from bot.kernel.run import LIVE, Run, RunState
from handlers.pages import render_run
from handlers.state import RequestedRun, Web, WebState, find_run

LOOK_S = 1.5
LONGEST_S = 300.0
"""A browser then asks again by itself; one that went away without a word is not kept longer."""

MOST_LISTENERS = 64
_listeners = BoundedSemaphore(MOST_LISTENERS)

router = APIRouter()


async def _place() -> AsyncIterator[None]:
    """A place among the listeners of this process. Raises HTTPException where none is free."""
    if not _listeners.acquire(blocking=False):
        raise HTTPException(503, "Too many pages listen.")
    try:
        yield
    finally:
        _listeners.release()


@router.get("/runs/{run}/live", response_class=EventSourceResponse)
async def follow(
    run: RequestedRun, web: Web, request: Request, _place: Annotated[None, Depends(_place)]
) -> AsyncIterator[ServerSentEvent]:
    """The page whenever something on it has changed, and `end` once the run has ended."""
    name, until = request.path_params["run"], monotonic() + LONGEST_S
    last_signs: tuple[object, ...] = ()
    current: Run | None = run
    while current is not None and current.state in LIVE and monotonic() < until:
        signs = await asyncio.to_thread(_signs, current, web)
        if signs != last_signs:
            text = await asyncio.to_thread(render_run, current, web, name)
            yield ServerSentEvent(raw_data=text)
            last_signs = signs
        await asyncio.sleep(LOOK_S)
        current = await asyncio.to_thread(find_run, name, web.store)
    if current is None or current.state not in LIVE:
        yield ServerSentEvent(raw_data="", event="end")


def _signs(run: Run, web: WebState) -> tuple[object, ...]:
    """What the page of a run depends on, but for its clock, which has minutes."""
    newest = web.store.entries(run.id, ATTEMPTS, last=1)
    ahead = web.store.ahead(run.id) if run.state is RunState.QUEUED else 0
    numbers = [attempt.number for attempt in newest]
    so_far = *web.store.entries(run.id, USAGE, last=1), *web.store.entries(run.id, LOSSES, last=1)
    minute = int(monotonic() // 60)
    return run.state, run.progress, run.cancelled_by, ahead, numbers, so_far, minute
