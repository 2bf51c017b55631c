"""Health checks for process supervisors."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter
from fastapi.responses import JSONResponse, PlainTextResponse

from bot.errors import RepriseError
from handlers.state import Web

READY_S = 2.0
router = APIRouter()


@router.get("/healthz")
async def healthz() -> PlainTextResponse:
    """The process answers."""
    return PlainTextResponse("ok\n")


@router.get("/readyz")
async def readyz(web: Web) -> JSONResponse:
    """200, or 503 when the store fails or takes longer than two seconds."""
    try:
        await asyncio.wait_for(asyncio.to_thread(web.store.switches), READY_S)
    except (RepriseError, TimeoutError):
        reason = "the store does not answer"
        return JSONResponse({"status": "waiting", "reason": reason}, 503)
    return JSONResponse({"status": "ready"})
