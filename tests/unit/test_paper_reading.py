"""Papers in LaTeX, HTML, Markdown and PDF: what is read of them, and what is refused."""

from __future__ import annotations

import io
import tarfile
import time
import unicodedata
import zipfile
from pathlib import Path

import pytest

from bot.kernel.errors import UserError
from bot.kernel.paper import Paper, PaperFiles
from bot.papers.reading import archives
from bot.papers.reading.archives import read_local, unpacked
from bot.papers.reading.draft import split_sentences
from bot.papers.reading.latex import read_latex
from bot.papers.reading.latex_text import plain
from bot.papers.reading.read import read_paper
from tests.support.papers import CORPUS


def latex(body: str, head: str = "", **files: str) -> Paper:
    text = f"\\documentclass{{article}}{head}\\begin{{document}}{body}\\end{{document}}"
    more = {name.replace("_", "."): data.encode() for name, data in files.items()}
    return read_latex({"main.tex": text.encode(), **more})


def page(text: str, name: str = "paper.html") -> Paper:
    return read_paper(PaperFiles(name="paper", files={name: text.encode()}))


def texts(paper: Paper) -> list[str]:
    return [row.text for row in paper.sentences]


# LaTeX.


def test_a_paper_of_several_files_is_one_text() -> None:
    paper = read_paper(read_local(CORPUS / "rff" / "paper"))
    assert paper.title == "RidgeMix: Regression with a Few Hundred Random Waves"
    assert [row.title for row in paper.sections] == [
        "Abstract",
        "Method",
        "Experiments",
        "Conclusion",
    ]
    assert "As Table 1 shows, the two scales help." in texts(paper)
    assert not any("results.py" in text for text in texts(paper))  # a comment
    assert [row.key for row in paper.references] == ["rahimi", "friedman"]
    assert paper.references[0].text.startswith("Rahimi, Ali and Recht, Benjamin. Random Features")
    (table,) = paper.tables
    assert table.rows == (("Linear regression", "2.66 ± 0.10"), ("RidgeMix (ours)", "2.05 ± 0.12"))
    assert (table.number, table.label, table.bold) == (1, "tab:rmse", ((1, 1),))
    assert [row.label for row in paper.formulas] == ["eq:features"]
    cited = next(row for row in paper.sentences if "follow" in row.text)
    assert cited.cites == ("rahimi",)
    assert paper.section_of(cited) == "Experiments"


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (r"$10^{-3}$", "1e-3"),
        (r"$5 \times 10^{-4}$", "5e-4"),
        (r"$5\cdot10^{-4}$", "5e-4"),
        (r"94.2\,\% \pm 0.3", "94.2 % ± 0.3"),
        (r"\textbf{bold} and {\em slanted}", "bold and slanted"),
        (r"na\"{i}ve, Erd\H{o}s", "naïve, Erdős"),
        (r"a~b --- c \& d\_e", "a b — c & d_e"),
        (r"\href{https://a.example}{here}", "here"),
        (r"see \citep[p.~3]{one,two}", "see [one, two]"),
        (r"\unknown[x]{kept}", "kept"),
        (r"\vspace{2em}gone", "gone"),
        (r"$\tanh(\lambda x)$ and $\sum_i x_i$", "tanh(λ x) and Σ_i x_i"),
    ],
)
def test_latex_becomes_plain_text(source: str, text: str) -> None:
    assert unicodedata.normalize("NFC", " ".join(plain(source).split())) == text


def test_macros_with_arguments_and_defaults_are_expanded() -> None:
    head = r"\newcommand{\val}[2][0.1]{#2 $\pm$ #1}\def\ours#1{Net-#1}\newcommand\x{\val[0.3]{94}}"
    assert texts(latex(r"\ours{A} has \x{} and \val{90}.", head)) == [
        "Net-A has 94 ± 0.3 and 90 ± 0.1."
    ]


def test_macros_that_call_themselves_end() -> None:
    head = r"\newcommand{\a}{\b\b\b\b\b\b\b\b}\newcommand{\b}{\a\a\a\a\a\a\a\a}"
    started = time.process_time()
    latex(r"Before. \a After.", head)
    assert time.process_time() - started < 10


def test_spans_fill_the_cells_that_they_cover() -> None:
    paper = latex(r"""\begin{table}\caption{A.}\begin{tabular}{ll|cc}\hline
      & & \multicolumn{2}{c}{Test} \\ Data & Model & Acc. & F1 \\ \hline
      \multirow{2}{*}{digits} & A & 1 & 2 \\ & B & \textbf{3} & \begin{tabular}{c}4\\5\end{tabular} \\ \hline
      \end{tabular}\end{table}""")
    (table,) = paper.tables
    assert table.head == (("", "", "Test", "Test"), ("Data", "Model", "Acc.", "F1"))
    assert table.rows[1][:3] == ("digits", "B", "3")
    assert table.column(2) == "Test Acc."
    assert table.bold == ((1, 2),)


def test_a_list_is_a_sentence_an_item_and_an_abbreviation_ends_none() -> None:
    assert texts(latex(r"\begin{itemize}\item one thing \item two things\end{itemize}")) == [
        "one thing", "two things",
    ]  # fmt: skip
    assert list(split_sentences("We use Adam, e.g. Fig. 2 of Smith et al. We win. So.")) == [
        "We use Adam, e.g. Fig. 2 of Smith et al. We win.", "So.",
    ]  # fmt: skip


def test_code_of_a_footnote_address_is_a_repository() -> None:
    paper = latex(r"Text.\footnote{Code: \url{https://github.com/acme/half_net}.}")
    assert paper.repositories == ("https://github.com/acme/half_net",)


def test_algorithms_and_missing_files_are_kept_and_said() -> None:
    paper = latex(
        r"\input{gone}\begin{algorithm}\caption{Steps}\begin{algorithmic}\STATE $x \gets 1$"
        "\n"
        r"\STATE return\end{algorithmic}\end{algorithm}"
    )
    assert paper.listings[0].caption == "Steps"
    assert paper.problems == ("the file gone is missing",)


def test_an_input_outside_the_paper_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "secret.tex").write_text("SECRET")
    (tmp_path / "paper").mkdir()
    body = "\\documentclass{a}\\begin{document}One. \\input{../secret} \\input{/etc/passwd}\\end{document}"
    (tmp_path / "paper" / "main.tex").write_text(body)
    assert texts(read_paper(read_local(tmp_path / "paper"))) == ["One."]


@pytest.mark.parametrize(
    "body",
    [
        "{" * 200_000,
        "\\begin{tabular}{l}" * 3_000 + "x & y \\\\",
        "$" * 100_001 + "10^" * 20_000,
        "\\begin{table}\\caption{" * 4_000,
        "\\cite{" * 30_000,
        "a " * 300_000 + "learning rate" * 3_000,
        "\\section{" * 20_000,
        "\\multirow{99}{*}{x} & " * 20_000,
    ],
)
def test_hostile_sources_cost_seconds(body: str) -> None:
    started = time.process_time()
    latex(body)
    assert time.process_time() - started < 20


# HTML, Markdown, PDF.


def test_html_tables_get_the_caption_of_their_figure() -> None:
    paper = page(
        "<html><head><title>T</title><script>alert(1)</script></head><body><h1>GateNet</h1>"
        "<h2>Results</h2><p>We win by <math alttext='10^{-3}'><mn>10</mn></math>.</p>"
        "<figure><figcaption>Table 1: Accuracy.</figcaption><table><thead><tr><th>Method</th>"
        "<th colspan='2'>Data</th></tr></thead><tr><td>Ours</td><td><b>94.2</b></td><td>90</td></tr>"
        "</table></figure><figure><img><figcaption>Figure 1: A plot.</figcaption></figure></body></html>"
    )
    (table,) = paper.tables
    assert paper.title == "GateNet"
    assert table.caption == "Accuracy."
    assert table.head == (("Method", "Data", "Data"),)
    assert table.rows == (("Ours", "94.2", "90"),)
    assert table.bold == ((0, 1),)
    assert "We win by 1e-3." in texts(paper)
    assert "Figure 1: A plot." in texts(paper)
    assert not any("alert" in text for text in texts(paper))


def test_markdown_tables_get_the_caption_beside_them() -> None:
    text = "# Title\n\n## Results\n\nTable 1: One.\n\n| A | B |\n|---|---|\n| **x** | 1 |\n\n| C | D |\n|---|---|\n| y | 2 |\n\nTable 2: Two.\n\nEnd.\n"
    paper = page(text, "paper.md")
    assert [(row.caption, row.number, row.rows) for row in paper.tables] == [
        ("One.", 1, (("x", "1"),)),
        ("Two.", 2, (("y", "2"),)),
    ]
    assert paper.tables[0].bold == ((0, 0),)
    assert texts(paper)[-1] == "End."


def pdf(lines: list[str], *, password: str = "") -> bytes:
    """A PDF with one page of text, written by hand and read back by the extractor."""
    from pypdf import PdfReader, PdfWriter

    shown = "".join(f"({line}) Tj T*\n" for line in lines)
    stream = f"BT /F1 12 Tf 14 TL 40 780 Td\n{shown}ET".encode()
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 840] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    out, places = bytearray(b"%PDF-1.4\n"), []
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    start = len(out)
    rows = b"".join(b"%010d 00000 n \n" % place for place in places)
    out += b"xref\n0 6\n0000000000 65535 f \n" + rows
    out += b"trailer << /Size 6 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF" % start
    if not password:
        return bytes(out)
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(bytes(out))))
    writer.encrypt(password, algorithm="RC4-128")
    locked = io.BytesIO()
    writer.write(locked)
    return locked.getvalue()


LINES = [
    "A Title of the Paper", "Abstract", "We reach 94.2 % accuracy on coins with a learn-", "ing rate of 0.1.",
    "2 Experiments", *["We train for ten epochs on a single machine and report the mean."] * 8,
    "Table 1: Accuracy in percent.", "References", "[1] A. Smith. On coins. 2020.",
]  # fmt: skip


def test_a_pdf_gives_sentences_captions_and_references() -> None:
    paper = read_paper(unpacked(pdf(LINES), "paper.pdf"))
    assert "We reach 94.2 % accuracy on coins with a learning rate of 0.1." in texts(paper)
    assert [row.caption for row in paper.tables] == ["Accuracy in percent."]
    assert [row.key for row in paper.references] == ["1"]
    assert "the cells of tables are not read from a PDF" in paper.problems


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (pdf(LINES, password="x"), "is encrypted"),
        (pdf(["1"]), "its pages are pictures"),
        (b"%PDF-1.7\nnothing of the kind", "broken PDF"),
        (b"%PDF-1.7\n" + bytes(range(256)) * 2_000, "broken PDF"),
    ],
    ids=["encrypted", "scanned", "empty", "noise"],
)
def test_a_pdf_that_cannot_be_read_says_why(data: bytes, words: str) -> None:
    with pytest.raises(UserError, match=words) as caught:
        read_paper(unpacked(data, "paper.pdf"))
    assert "LaTeX source" in caught.value.fix


# Archives.


def tar(*members: tuple[tarfile.TarInfo, bytes], mode: str = "w:gz") -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as archive:  # type: ignore[call-overload]
        for info, data in members:
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def member(name: str, kind: bytes = tarfile.REGTYPE, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def zipped(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return out.getvalue()


@pytest.mark.parametrize("mode", ["w:gz", "w", "w:xz"])
def test_an_archive_is_its_readable_files(mode: str) -> None:
    data = tar((member("a/main.tex"), b"x"), (member("a/plot.png"), b"y"), mode=mode)
    assert unpacked(data, "paper").files == {"a/main.tex": b"x"}
    assert unpacked(zipped({"a/main.tex": b"x", "b.exe": b"z"}), "paper").files == {
        "a/main.tex": b"x"
    }


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (tar((member("../main.tex"), b"x")), "leads out"),
        (tar((member("/main.tex"), b"x")), "leads out"),
        (zipped({"a/../../main.tex": b"x"}), "leads out"),
        (tar((member("main.tex", tarfile.SYMTYPE, "/etc/passwd"), b"")), "no plain file"),
        (tar((member("main.tex", tarfile.LNKTYPE, "/etc/passwd"), b"")), "no plain file"),
        (tar((member("main.tex", tarfile.FIFOTYPE), b"")), "no plain file"),
        (zipped({"main.tex": b"a" * 60_000_000}), "unpacks to more than"),
        (tar((member("main.tex"), b"a" * 60_000_000)), "unpacks to more than"),
        (tar((member("plot.png"), b"a" * 60_000_000)), "unpacks to more than"),
        (tar(*((member(f"{number}.png"), b"") for number in range(5_000))), "entries"),
        (zipped({"main.tex": b"x"})[:60], "broken archive"),
        (tar((member("main.tex"), b"x" * 9_000))[:40], "broken archive"),
    ],
    ids=map(str, range(12)),  # the bytes hold the time
)
def test_hostile_archives_are_refused(data: bytes, words: str) -> None:
    with pytest.raises(UserError, match=words):
        unpacked(data, "paper.tar.gz")


def test_links_in_a_folder_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret.tex").write_text("SECRET")
    paper = tmp_path / "paper"
    paper.mkdir()
    (paper / "main.tex").symlink_to(tmp_path / "secret.tex")
    assert read_local(paper).files == {}
    with pytest.raises(UserError, match="contains no paper"):
        read_paper(read_local(paper))


def test_a_folder_is_read_within_its_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archives, "MOST_FILES", 2)
    for number in range(4):
        (tmp_path / f"{number}.tex").write_text("x")
    assert len(read_local(tmp_path).files) == 2


def table_of(body: str) -> Paper:
    return read_latex({"main.tex": rf"\begin{{document}}{body}\end{{document}}".encode()})


DATA = r"\begin{tabular}{lr} Model & Acc \\ \midrule A & 1.0 \\ B & 2.0 \\ \end{tabular}"


def test_a_tabular_that_holds_tables_is_a_layout_of_them() -> None:
    inner = DATA.replace("1.0", "3.0")
    layout = rf"\begin{{tabular}}{{cc}} {DATA} & {inner} \\ \end{{tabular}}"
    paper = table_of(rf"\begin{{table}}\caption{{Both.}}{layout}\end{{table}}")
    assert [row.rows[0] for row in paper.tables] == [("A", "1.0"), ("A", "3.0")]
    assert [(row.number, row.caption) for row in paper.tables] == [(1, "Both."), (1, "Both.")]


def test_a_break_of_line_in_a_cell_is_no_table() -> None:
    cell = r"\begin{tabular}{c} two \\ lines \end{tabular}"
    paper = table_of(rf"\begin{{tabular}}{{lr}} M & V \\ \midrule {cell} & 1.0 \\ \end{{tabular}}")
    assert len(paper.tables) == 1
    assert paper.tables[0].rows[0][1] == "1.0"


def test_parts_of_a_table_share_its_number_and_have_captions_of_their_own() -> None:
    part = r"\begin{subtable}{.4\textwidth}\caption{On %s.}%s\end{subtable}"
    both = part % ("coins", DATA) + part % ("dice", DATA)
    paper = table_of(
        rf"\begin{{table}}\caption{{Accuracy.}}\label{{a}}{both}\end{{table}}"
        rf"\begin{{table}}\caption{{Later.}}\label{{b}}{DATA}\end{{table}} See Table \ref{{b}}."
    )
    assert [(row.number, row.caption) for row in paper.tables] == [
        (1, "Accuracy. On coins."),
        (1, "Accuracy. On dice."),
        (2, "Later."),
    ]
    assert paper.sentences[-1].text == "See Table 2."
    captions = [row.text for row in paper.sentences if ".c." in row.id]
    assert captions == ["Accuracy.", "On coins.", "On dice.", "Later."]


def test_a_caption_of_a_box_begins_a_table() -> None:
    box = r"\begin{minipage}{.4\linewidth}\captionof{table}{%s}\label{%s}%s\end{minipage}"
    paper = table_of(
        rf"\begin{{center}}{box % ('One.', 'a', DATA)} {box % ('Two.', 'b', DATA)}\end{{center}}"
        r" Table~\ref{b} says so."
    )
    assert [(row.number, row.caption) for row in paper.tables] == [(1, "One."), (2, "Two.")]
    assert paper.sentences[-1].text == "Table 2 says so."


def test_pictures_in_a_tabular_are_no_table() -> None:
    pictures = (
        r"\begin{tabular}{cc} \includegraphics{a} & \includegraphics{b} \\ (a) & (b) \end{tabular}"
    )
    paper = table_of(rf"\begin{{figure}}{pictures}\caption{{Two curves.}}\end{{figure}}")
    assert paper.tables == ()
    assert paper.sentences[-1].text == "Two curves."


def test_an_interval_is_no_citation() -> None:
    paper = table_of(r"Pixels lie in $[0, 1]$ as in \citet{adam, sgd}, or are [MASK].")
    assert paper.sentences[0].cites == ("adam", "sgd")
