"""The files of a paper → `Paper`: LaTeX before HTML before Markdown before PDF."""

from pathlib import PurePosixPath
from threading import Event

from bot.kernel.errors import UserError
from bot.kernel.paper import Paper, PaperFiles
from bot.papers.reading import latex_source
from bot.papers.reading.html import read_html
from bot.papers.reading.latex import read_latex
from bot.papers.reading.markdown import read_markdown
from bot.papers.reading.pdf import read_pdf

_KINDS = "A paper is LaTeX, HTML, Markdown or a PDF: a file, a folder or an archive of it."


def read_paper(source: PaperFiles, cancel: Event | None = None) -> Paper:
    """The paper that the files make. Raises UserError where none of them is one."""
    files = source.files
    if latex_source.main_file(files):
        return _checked(read_latex(files), source.name)
    for ends, reader in (
        ((".html", ".htm", ".xhtml"), read_html),
        ((".md", ".markdown"), read_markdown),
    ):
        if path := _best(source, ends):
            return _checked(reader(latex_source.decode(files[path])), source.name)
    if path := _best(source, (".pdf",)):
        return _checked(read_pdf(files[path], PurePosixPath(path).name, cancel), source.name)
    raise UserError(f"{source.name} contains no paper.", _KINDS)


def _best(source: PaperFiles, ends: tuple[str, ...]) -> str:
    """The file that is most likely the paper: by its name, else the largest."""
    paths = [path for path in source.files if path.lower().endswith(ends)]

    def rank(path: str) -> tuple[bool, bool, int]:
        stem = PurePosixPath(path).stem.lower()
        return "paper" in stem, "readme" not in stem, len(source.files[path])

    return max(paths, key=rank, default="")


def _checked(paper: Paper, name: str) -> Paper:
    if not paper.sentences and not paper.tables:
        raise UserError(f"{name} contains no sentence and no table.", _KINDS)
    return paper
