"""The text of a PDF on standard output, as JSON: run as a program of its own, within limits."""

import json
import sys

_MOST_PAGES, _MOST_TEXT = 120, 4_000_000


def extract(path: str) -> dict[str, object]:
    """The pages of a PDF as text, its title, and why there are none."""
    from pypdf import PdfReader
    from pypdf.errors import PyPdfError

    try:
        reader = PdfReader(path)
        if reader.is_encrypted and not reader.decrypt(""):
            return {"problem": "encrypted"}
        pages, room = [], _MOST_TEXT
        for page in list(reader.pages)[:_MOST_PAGES]:
            text = (page.extract_text() or "")[:room]
            room -= len(text)
            pages.append(text)
        title = (reader.metadata.title if reader.metadata else "") or ""
    except (
        PyPdfError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        IndexError,
        RecursionError,
    ):
        return {"problem": "broken"}
    return {"pages": pages, "title": str(title)}


if __name__ == "__main__":
    json.dump(extract(sys.argv[1]), sys.stdout)
