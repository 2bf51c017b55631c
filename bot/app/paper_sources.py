"""Where papers come from: files of this machine, and arXiv by id, one request every few seconds and
each paper once.
"""

import re
import time
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from threading import Event, Lock

import httpx
from typing_extensions import override

from bot.kernel.errors import PaperUnreachable, Stopped, UserError
from bot.kernel.files import write_bytes
from bot.kernel.paper import PaperFiles
from bot.kernel.ports import Papers
from bot.papers.reading.archives import MOST_BYTES, read_local, unpacked

_ID = re.compile(
    r"(?:arxiv:\s*|https?://(?:www\.|export\.)?arxiv\.org/(?:abs|pdf|html|e-print|src)/)?"
    r"(?P<id>\d{4}\.\d{4,5}|[a-z-]+(?:\.[A-Z]{2})?/\d{7})(?P<version>v\d{1,2})?(?:\.pdf)?/?",
    re.IGNORECASE,
)
_ADDRESS = re.compile(r"https?://")
_GAP_S = 3.0
"""arXiv asks for one request every three seconds: info.arxiv.org/help/api/tou.html."""
_DOWNLOAD = "Download its source in a browser, and pass the file."
_POLL_S = 0.2


def arxiv_id(source: str) -> str:
    """The arXiv id, with its version, that a source names; "" where it names none."""
    match = _ID.fullmatch(source.strip())
    return f"{match['id']}{match['version'] or ''}" if match else ""


class LocalPapers(Papers):
    """Files, folders and archives of this machine."""

    @override
    def fetch(self, source: str, *, cancel: Event | None = None) -> PaperFiles:
        _check(cancel)
        return read_local(Path(source).expanduser())


@dataclass
class ArxivPapers(Papers):
    """The e-prints of arXiv: LaTeX where the authors gave it, else HTML, else PDF. What was fetched
    once is kept in `folder`; requests of all processes that share it keep their distance.
    """

    folder: Path
    url: str = "https://export.arxiv.org"
    timeout_s: float = 30.0
    gap_s: float = _GAP_S
    transport: httpx.BaseTransport | None = None
    _turn: Lock = field(default_factory=Lock, init=False)

    @override
    def fetch(self, source: str, *, cancel: Event | None = None) -> PaperFiles:
        name = arxiv_id(source)
        if not name:
            raise UserError(f"{source[:100]!r} is no arXiv id.", "Write it as 2310.01234.")
        cached = self.folder / f"{name.replace('/', '_')}.bin"
        if not cached.is_file():
            data = self._download(name, cancel)
            self.folder.mkdir(parents=True, exist_ok=True)
            write_bytes(cached, data)
        return unpacked(cached.read_bytes(), f"arXiv-{name.replace('/', '_')}")

    def _download(self, name: str, cancel: Event | None) -> bytes:
        """The source of a paper, else its HTML."""
        for part in ("e-print", "html"):
            status, data = self._get(f"{self.url.rstrip('/')}/{part}/{name}", cancel)
            if status == 200:
                return data
            if status not in {403, 404}:
                reason = "asks to wait" if status == 429 else f"failed with status {status}"
                raise PaperUnreachable(f"arXiv {reason}.", f"Try again later. {_DOWNLOAD}")
        raise UserError(f"arXiv has no source of {name}.", f"Check the id. {_DOWNLOAD}")

    def _get(self, url: str, cancel: Event | None) -> tuple[int, bytes]:
        self._wait(cancel)
        agent = {"User-Agent": f"reprise/{metadata.version('reprise')}"}
        pieces, size = list[bytes](), 0
        try:
            with (
                httpx.Client(
                    timeout=self.timeout_s, transport=self.transport, follow_redirects=True
                ) as client,
                client.stream("GET", url, headers=agent) as answer,
            ):
                for piece in answer.iter_raw():
                    _check(cancel)
                    pieces.append(piece)
                    size += len(piece)
                    if size > MOST_BYTES:
                        limit = MOST_BYTES // 1_000_000
                        raise UserError(f"The paper is larger than {limit} MB.", _DOWNLOAD)
        except httpx.HTTPError as error:
            reason = str(error).strip() or type(error).__name__
            raise PaperUnreachable(f"arXiv cannot be reached: {reason}.", _DOWNLOAD) from None
        finally:
            self._mark.touch()  # the distance counts from the end of a request
        return answer.status_code, b"".join(pieces)

    @property
    def _mark(self) -> Path:
        """A file that every request touches."""
        return self.folder / "last-request"

    def _wait(self, cancel: Event | None) -> None:
        """Wait until the last request is long enough ago, then take the turn."""
        mark = self._mark
        with self._turn:
            self.folder.mkdir(parents=True, exist_ok=True)
            while mark.exists() and 0 <= time.time() - mark.stat().st_mtime < self.gap_s:
                _check(cancel)
                time.sleep(_POLL_S)
            mark.touch()


@dataclass
class PaperSources(Papers):
    """Every source: a path of this machine comes before an id that is written like it."""

    arxiv: Papers
    local: Papers = field(default_factory=LocalPapers)

    @override
    def fetch(self, source: str, *, cancel: Event | None = None) -> PaperFiles:
        if not Path(source).expanduser().exists() and arxiv_id(source):
            return self.arxiv.fetch(source, cancel=cancel)
        if _ADDRESS.match(source):
            raise UserError("Only addresses of arXiv are fetched.", _DOWNLOAD)
        return self.local.fetch(source, cancel=cancel)


def _check(cancel: Event | None) -> None:
    if cancel is not None and cancel.is_set():
        raise Stopped("stopped on request")
