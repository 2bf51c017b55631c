"""The references of a LaTeX paper: `thebibliography`, a .bbl file beside it, or its .bib files."""

import re
from collections.abc import Iterator, Mapping

from bot.papers.reading.latex_source import braced, decode, without_comments
from bot.papers.reading.latex_text import plain

Entry = tuple[str, str, str]
"""Key, text and address."""
_ITEM = re.compile(r"\\bibitem\s*(?:\[[^\]]{0,400}\])?\s*\{([^{}\n]{1,100})\}")
_RECORD = re.compile(r"@(\w{3,20})\s*\{\s*([^\s,{}]{1,100})\s*,")
_FIELD = re.compile(r"(?:^|[,\n{])\s*(\w{2,20})\s*=\s*(?:(?=\{)|\"([^\"]{0,2000})\"|(\d{1,8}))")
_URL = re.compile(r"https?://[^\s{}\"'<>\\]{1,300}")
_BIB_FILES = re.compile(r"\\(?:bibliography|addbibresource)\s*(?:\[[^\]]*\])?\{([^{}]{1,300})\}")
_MOST = 1_000


def entries(files: Mapping[str, bytes], body: str) -> Iterator[Entry]:
    """The references of a document with this body, those of its own text first."""
    own = [body, *(decode(data) for path, data in files.items() if path.endswith(".bbl"))]
    for text in own:
        yield from _items(without_comments(text))
    names = {name.strip() for names in _BIB_FILES.findall(body) for name in names.split(",")}
    for path, data in sorted(files.items()):
        if path.endswith(".bib") and (not names or _stem(path) in {*map(_stem, names)}):
            yield from _records(decode(data))


def _stem(path: str) -> str:
    return path.rpartition("/")[2].removesuffix(".bib")


def _items(text: str) -> Iterator[Entry]:
    matches = list(_ITEM.finditer(text))[:_MOST]
    for at, match in enumerate(matches):
        end = matches[at + 1].start() if at + 1 < len(matches) else match.end() + 2_000
        raw = text[match.end() : end].partition("\\end{thebibliography}")[0]
        url = _URL.search(raw)
        yield match[1], plain(raw.replace("\\newblock", " ")), url[0] if url else ""


def _records(text: str) -> Iterator[Entry]:
    for number, match in enumerate(_RECORD.finditer(text)):
        if number >= _MOST:
            return
        if match[1].lower() in {"string", "comment", "preamble"}:
            continue
        inside = braced(text, text.index("{", match.start()))[0][:20_000]
        fields = dict(_fields(inside))
        parts = [fields.get(name, "") for name in ("author", "title", "year")]
        parts.append(f"arXiv:{fields['eprint']}" if _is_arxiv(fields) else "")
        url = _URL.search(fields.get("url", "") or fields.get("howpublished", ""))
        yield match[2], ". ".join(plain(part) for part in parts if part), url[0] if url else ""


def _is_arxiv(fields: Mapping[str, str]) -> bool:
    kind = fields.get("archiveprefix", "") or fields.get("eprinttype", "") or "arxiv"
    return bool(fields.get("eprint")) and kind.lower() == "arxiv"


def _fields(text: str) -> Iterator[tuple[str, str]]:
    for match in _FIELD.finditer(text):
        opens = text[match.end() : match.end() + 1] == "{"
        value = braced(text, match.end())[0] if opens else match[2] or match[3] or ""
        yield match[1].lower(), value
