"""Webhook deliveries: signed, tried once within ten seconds, remembered with what came back,
sent again when asked.
"""

from __future__ import annotations

import hashlib
import hmac
import http.client
import json
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

from tests.support.server.events import Event
from tests.support.server.records import HookDelivery, now
from tests.support.server.state import State

TIMEOUT_S = 10.0
_KEPT_ANSWER = 4_000


class Hooks:
    """Sends events to the App's webhook."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._senders = ThreadPoolExecutor(max_workers=4, thread_name_prefix="hooks")

    def deliver(self, event: Event, guid: str | None = None) -> HookDelivery:
        """Deliver now and wait for the answer. Raises ValueError when the App has no webhook."""
        if not self._state.app.webhook:
            raise ValueError("the App has no webhook address")
        one = self._noted(event, guid or str(uuid.uuid4()))
        self._send(one)
        return one

    def later(self, event: Event) -> None:
        """Deliver soon, as GitHub does after a write; nowhere when the App has no webhook."""
        if self._state.app.webhook:
            self._senders.submit(self._send, self._noted(event, str(uuid.uuid4())))

    def again(self, delivery: int) -> None:
        """Send an earlier delivery again, soon: the same id for the receiver, a new one in the
        list.
        """
        with self._state.lock:
            old = next(each for each in self._state.deliveries if each.id == delivery)
            new = HookDelivery(
                self._state.new_id(),
                old.guid,
                old.event,
                old.payload,
                old.raw,
                now(),
                redelivery=True,
            )
            self._state.deliveries.append(new)
        self._senders.submit(self._send, new)

    def close(self) -> None:
        """Send nothing more."""
        self._senders.shutdown(wait=True, cancel_futures=True)

    def _noted(self, event: Event, guid: str) -> HookDelivery:
        raw = json.dumps(event.payload, ensure_ascii=False).encode("utf-8", "replace")
        with self._state.lock:
            one = HookDelivery(self._state.new_id(), guid, event.name, json.loads(raw), raw, now())
            self._state.deliveries.append(one)
            return one

    def _send(self, one: HookDelivery) -> None:
        began = time.monotonic()
        try:
            code, answer = post(self._state.app.webhook, self._headers(one), one.raw)
            status = http.client.responses.get(code, "") if code >= 300 else "OK"
        except TimeoutError:
            code, status, answer = 504, "timed out", ""
        except (OSError, http.client.HTTPException):
            code, status, answer = 502, "failed to connect to host", ""
        one.duration = time.monotonic() - began
        one.answer, one.status_code, one.status = answer, code, status

    def _headers(self, one: HookDelivery) -> dict[str, str]:
        app = self._state.app
        signed = hmac.new(app.secret.encode(), one.raw, hashlib.sha256).hexdigest()
        return {
            "Accept": "*/*",
            "Content-Type": "application/json",
            "User-Agent": "GitHub-Hookshot/044aadd",
            "X-GitHub-Delivery": one.guid,
            "X-GitHub-Event": one.event,
            "X-GitHub-Hook-ID": str(app.id),
            "X-GitHub-Hook-Installation-Target-ID": str(app.id),
            "X-GitHub-Hook-Installation-Target-Type": "integration",
            "X-Hub-Signature-256": f"sha256={signed}",
        }


def post(url: str, headers: dict[str, str], body: bytes) -> tuple[int, str]:
    """One POST without redirects: status, and the start of the answer."""
    parts = urlsplit(url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.hostname or "", parts.port, timeout=TIMEOUT_S)
    try:
        connection.request(
            "POST", parts.path + (f"?{parts.query}" if parts.query else ""), body, headers
        )
        answer = connection.getresponse()
        return answer.status, answer.read(_KEPT_ANSWER).decode("utf-8", "replace")
    finally:
        connection.close()
