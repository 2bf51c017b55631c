"""A real browser, spoken to over a pair of pipes in the DevTools protocol; nothing but the
standard library.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from select import select
from time import monotonic
from typing import Any

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser") or "chromium"
_FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--hide-scrollbars", "--remote-debugging-pipe",
)  # fmt: skip
_PATIENCE_S = 30.0


class Browser:
    """One tab. `complaints` is what the page's console and the network said since the last
    `open`.
    """

    def __init__(self, read: int, write: int) -> None:
        self._read, self._write, self._rest, self._last = read, write, b"", 0
        self._session = ""
        self.complaints: list[str] = []
        target = self._do("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._do("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._do(f"{domain}.enable")

    def look(self, width: int, height: int, *, dark: bool = False) -> None:
        """Be a window of this size, in light or dark colours."""
        self._do(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._do("Emulation.setEmulatedMedia", features=[scheme])

    def open(self, address: str) -> None:
        """Go to an address and wait until it is loaded."""
        self.complaints = []
        self._loaded = False
        self._do("Page.navigate", url=address)
        deadline = monotonic() + _PATIENCE_S
        while not self._loaded:
            self._hear(deadline)

    def value(self, script: str) -> Any:
        """What an expression is worth on the page."""
        return self._do("Runtime.evaluate", expression=script, returnByValue=True)["result"].get(
            "value"
        )

    def shot(self, path: Path, *, whole: bool = False) -> None:
        """A picture of the window, or of the whole page."""
        data = self._do("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        path.write_bytes(base64.b64decode(data))

    def close(self) -> None:
        """End the browser."""
        self._session = ""
        self._do("Browser.close")

    def _do(self, method: str, **params: Any) -> dict[str, Any]:
        self._last += 1
        asked = {"id": self._last, "method": method, "params": params} | (
            {"sessionId": self._session} if self._session else {}
        )
        os.write(self._write, json.dumps(asked).encode() + b"\0")
        deadline = monotonic() + _PATIENCE_S
        while True:
            answer = self._hear(deadline)
            if answer.get("id") == self._last:
                if "error" in answer:
                    raise AssertionError(f"{method}: {answer['error']}")
                result: dict[str, Any] = answer["result"]
                return result

    def _hear(self, deadline: float) -> dict[str, Any]:
        while b"\0" not in self._rest:
            ready, _, _ = select([self._read], [], [], max(0.0, deadline - monotonic()))
            piece = os.read(self._read, 1 << 20) if ready else b""
            if not piece:
                raise AssertionError("the browser says no more")
            self._rest += piece
        raw, self._rest = self._rest.split(b"\0", 1)
        said: dict[str, Any] = json.loads(raw)
        self._note(said.get("method", ""), said.get("params", {}))
        return said

    def _note(self, method: str, params: dict[str, Any]) -> None:
        match method:
            case "Page.loadEventFired":
                self._loaded = True
            case "Log.entryAdded" if params["entry"]["level"] in {"error", "warning"}:
                self.complaints.append(params["entry"]["text"])
            case "Runtime.exceptionThrown":
                self.complaints.append(str(params["exceptionDetails"].get("text")))
            case "Network.loadingFailed":
                self.complaints.append(
                    f"not loaded: {params.get('errorText')} {params.get('blockedReason', '')}"
                )
            case "Network.responseReceived" if params["response"]["status"] >= 400:
                self.complaints.append(
                    f"{params['response']['status']} from {params['response']['url']}"
                )


@contextmanager
def browser(profile: Path) -> Iterator[Browser]:
    """A browser with a profile of its own, ended whatever happens."""
    (there, write), (read, back) = os.pipe(), os.pipe()
    # Chromium reads what it is asked from descriptor 3 and answers on 4.
    wiring = f'exec "$0" "$@" 3<&{there} 4>&{back}'
    argv = [
        "/bin/bash",
        "-c",
        wiring,
        PROGRAM,
        *_FLAGS,
        f"--user-data-dir={profile}",
        "about:blank",
    ]
    with (profile.parent / "chromium.log").open("wb") as log:
        process = subprocess.Popen(argv, pass_fds=(there, back), stdout=log, stderr=log)
    os.close(there)
    os.close(back)
    try:
        one = Browser(read, write)
        yield one
        one.close()
        process.wait(_PATIENCE_S)
    finally:
        process.kill()
        process.wait()
        os.close(read)
        os.close(write)
