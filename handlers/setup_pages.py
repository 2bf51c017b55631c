"""The setup flow's pages as HTML, and its form."""

import ipaddress
import secrets
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse

from bot.settings import Settings
from handlers.manifest import EVENTS, GITHUB, WHY

MAX_FORM_BYTES = 16_384
_FORM_TYPE = "application/x-www-form-urlencoded"
_templates = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
)


def setup_page(settings: Settings, page: str, status: int = 200, **values: Any) -> HTMLResponse:
    """A page of the setup flow; scripts, frames and caching are forbidden."""
    nonce, github = secrets.token_urlsafe(16), settings.github_url
    html = _templates.get_template("setup.html").render(
        page=page,
        nonce=nonce,
        events=EVENTS,
        github=urlsplit(github).netloc,
        port=settings.port,
        app_file=settings.app_file,
        permissions=WHY.items(),
        **values,
    )
    return HTMLResponse(html, status, _headers(nonce, github))


def _headers(nonce: str, github: str) -> dict[str, str]:
    return {
        "Content-Security-Policy": (
            f"default-src 'none'; style-src 'nonce-{nonce}'; form-action 'self' {origin(github)}; "
            "frame-ancestors 'none'; base-uri 'none'"
        ),
        "Cache-Control": "no-store",
        "Referrer-Policy": "strict-origin",  # the address holds the key
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
    }


def reachable(address: str, github_url: str) -> bool:
    """Whether GitHub may be able to deliver to an address, as far as the address shows."""
    host = urlsplit(address).hostname or ""
    if host == "localhost" or host.endswith(".localhost"):
        return False
    try:
        ip = ipaddress.ip_address(host)
    except ValueError:
        return True
    return not ip.is_loopback and not ip.is_unspecified and (github_url != GITHUB or ip.is_global)


def origin(address: str) -> str:
    """Scheme, host and port of an address."""
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc}"


async def read_form(request: Request) -> dict[str, str] | None:
    """The fields of a posted form, None when the body is no form or too long."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _FORM_TYPE:
        return None
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_FORM_BYTES:
            return None
    try:
        fields = parse_qs(body.decode("ascii"), max_num_fields=16, errors="strict")
    except ValueError:
        return None
    return {name: values[-1].strip() for name, values in fields.items()}
