"""A paper in PDF → `Paper`: sentences and captions; the cells of its tables are not read."""

import json
import re
import sys
import tempfile
from pathlib import Path
from threading import Event

from bot.kernel.errors import Stopped, UserError
from bot.kernel.paper import Paper
from bot.papers.reading.draft import PaperDraft, without_number
from sandbox import subprocesses
from sandbox.port import SandboxError

_SECONDS, _MEMORY, _LEAST_LETTERS = 120.0, 1 << 30, 400
_HEADING = re.compile(r"^(?:(\d{1,2}(?:\.\d{1,2}){0,2})\.?\s+)?([A-Z][A-Za-z ,:&-]{2,60})$")
_PLAIN_HEADINGS = {"abstract", "introduction", "experiments", "results", "conclusion", "references"}
_CAPTION = re.compile(r"^Table\s+\d{1,3}\s*[:.]")
_REFERENCE = re.compile(r"^\[(\d{1,3})\]\s+(.{10,})")
_SOURCE = "Pass its LaTeX source or HTML instead."


def read_pdf(data: bytes, name: str, cancel: Event | None = None) -> Paper:
    """The paper that a PDF is. Its text is extracted by a process with limits of its own. Raises
    UserError for one that is encrypted, scanned or broken.
    """
    extraction = _extracted(data, cancel)
    pages = [page for page in extraction.get("pages", ()) if isinstance(page, str)]
    if extraction.get("problem") == "encrypted":
        raise UserError(f"{name} is encrypted.", _SOURCE)
    if extraction.get("problem"):
        raise UserError(f"{name} is a broken PDF.", _SOURCE)
    if sum(char.isalpha() for page in pages for char in page) < _LEAST_LETTERS:
        raise UserError(f"{name} contains no text: its pages are pictures.", _SOURCE)
    return _paper_of("\n".join(pages), str(extraction.get("title", "")))


def _extracted(data: bytes, cancel: Event | None) -> dict[str, list[str] | str]:
    with tempfile.TemporaryDirectory(prefix="reprise-pdf-") as folder:
        path = Path(folder) / "paper.pdf"
        path.write_bytes(data)
        program = Path(__file__).with_name("pdf_text.py")
        try:
            completed = subprocesses.run(
                [sys.executable, "-I", program, path],
                env={"PYTHONIOENCODING": "utf-8"},
                cancel=cancel,
                timeout_s=_SECONDS,
                limits=subprocesses.bounds(_MEMORY, 0) | {"RLIMIT_CPU": int(_SECONDS)},
            )
            result = json.loads(completed.out) if completed.code == 0 else {"problem": "broken"}
        except subprocesses.Interrupted:
            raise Stopped("stopped on request") from None
        except (SandboxError, ValueError):
            return {"problem": "broken"}
    return result if isinstance(result, dict) else {"problem": "broken"}


def _paper_of(text: str, title: str) -> Paper:
    draft = PaperDraft("pdf", title=title)
    draft.problems["the cells of tables are not read from a PDF"] = None
    lines = [line.strip() for line in text.splitlines()]
    draft.title = title or next((line for line in lines if len(line) > 8), "")
    paragraph = list[str]()
    for line in [*lines, ""]:
        heading = _HEADING.match(line)
        starts = not line or heading or _CAPTION.match(line) or _REFERENCE.match(line)
        if starts and paragraph:
            _add(draft, paragraph)
            paragraph = []
        if heading and (heading[1] or heading[2].lower() in _PLAIN_HEADINGS):
            draft.add_section(line)
        elif line:
            paragraph.append(line)
    return draft.finish()


def _add(draft: PaperDraft, lines: list[str]) -> None:
    text = re.sub(r"(?<=[a-z])-\n(?=[a-z])", "", "\n".join(lines))
    if _CAPTION.match(text):
        draft.add_table((), (), caption=without_number(text))
    elif match := _REFERENCE.match(text):
        draft.add_reference(match[1], text.partition("]")[2])
    else:
        draft.add_paragraph(text)
