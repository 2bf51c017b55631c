"""One answer of a package index, bounded in size and time: what an index sends is from outside."""

import ssl
import time
from functools import cache
from urllib.parse import urlsplit

import httpx

from bot.errors import IndexUnreachable

MOST_PAGE = 64 * 1024 * 1024
PAGE_S = 60.0
_ACCEPT = (
    "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, "
    "text/html;q=0.1"
)


def fetch(
    url: str, certificate: str, timeout_s: float, most: int, seconds: float, span: str = ""
) -> httpx.Response:
    """The answer of at most so many bytes and seconds, or the `span` of it. Raises
    IndexUnreachable.
    """
    headers = {"Range": span, "Accept-Encoding": "identity"} if span else {"Accept": _ACCEPT}
    host = urlsplit(url).hostname
    try:
        with (
            httpx.Client(
                verify=_trusted(certificate), timeout=timeout_s, follow_redirects=True
            ) as client,
            client.stream("GET", url, headers=headers) as sent,
        ):
            answer = httpx.Response(
                sent.status_code,
                headers={
                    name: sent.headers.get(name, "") for name in ("content-type", "content-range")
                },
                content=_body(sent, most, time.monotonic() + seconds),
                request=sent.request,
            )
    except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
        raise IndexUnreachable(
            f"The package index at {host} does not answer.",
            "Check the network, or set PIP_INDEX_URL to one that does.",
        ) from error
    if answer.is_server_error:
        raise IndexUnreachable(f"The package index at {host} failed.", "Try again later.")
    return answer


@cache
def _trusted(certificate: str) -> ssl.SSLContext:
    """The authorities of a file, else the usual ones."""
    return (
        ssl.create_default_context(cafile=certificate)
        if certificate
        else httpx.create_ssl_context()
    )


def _body(sent: httpx.Response, most: int, end: float) -> bytes:
    body = bytearray()
    for chunk in sent.iter_bytes():
        body += chunk
        if len(body) > most or time.monotonic() > end:
            raise OSError("the answer is too long")
    return bytes(body)
