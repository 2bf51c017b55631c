"""A question holds the sections of a paper that it needs."""

from __future__ import annotations

from bot.kernel.paper import NumberClaim as Claim, Paper, PaperQuote, PaperSection, PaperSentence
from bot.papers.fingerprint import ask, relevant_sentences
from bot.papers.passages import choose_passages, excerpt, stems

FILLER = "The moon has always been there for us to look at. " * 100
TRAINING = "Each update of the weights sees four coins, and the gradients are clipped. "
CLAIM = Claim(
    title="Table 1", metric="accuracy", value=0.9, text="0.9", dataset="coins",
    quote=PaperQuote(text="0.9"),
)  # fmt: skip


def a_paper(*texts: str) -> Paper:
    sections = [PaperSection(id=f"S{at}", title=f"Part {at}") for at in range(1, len(texts) + 1)]
    sentences = [PaperSentence(id=f"S{at}.1", text=text) for at, text in enumerate(texts, 1)]
    return Paper(format="latex", sections=tuple(sections), sentences=tuple(sentences))


def test_names_of_code_are_compared_word_by_word() -> None:
    assert stems("learnedScale min_p of x2") == ["learne", "scale", "min"]
    assert stems("Normalised layers") == stems("normalisation layers")


def test_everything_is_chosen_where_there_is_room_and_else_what_shares_most_words() -> None:
    texts = ["sun " * 50, "rate of the optimizer", "moon " * 50, "optimizer and momentum"]
    query = stems("optimizer momentum rate")
    assert choose_passages(texts, query, 10_000) == (0, 1, 2, 3)
    assert choose_passages(texts, query, 60) == (1, 3)
    assert len(choose_passages(texts, query, 23)) == 1
    assert choose_passages(texts, query, 3) != ()


def test_a_long_paper_is_asked_about_by_the_sections_that_speak_of_training() -> None:
    long = a_paper(*([FILLER] * 6), TRAINING, *([FILLER] * 6))
    assert [row.text for row in relevant_sentences(long, CLAIM)] == [TRAINING]
    text = ask(long, CLAIM, (), 0).messages[-1].content
    assert TRAINING.strip() in text
    assert len(text) < 2_000
    short = a_paper("The moon is there.", TRAINING)
    assert len(list(relevant_sentences(short, CLAIM))) == 2


def test_a_section_that_is_too_long_alone_is_cut() -> None:
    rows = [PaperSentence(id=f"S1.{at}", text=TRAINING * 20) for at in range(1, 40)]
    paper = Paper(
        format="latex", sections=(PaperSection(id="S1", title="Training"),), sentences=tuple(rows)
    )
    assert 0 < len(list(relevant_sentences(paper, CLAIM))) < 20


def test_a_block_is_shown_the_beginning_and_the_sections_that_name_its_code() -> None:
    sections = [f"\\section{{Part {at}}}\n{FILLER}\n" for at in range(9)]
    sections[5] += "The learnable scale alpha multiplies the input of the tanh.\n# a comment\n"
    text = "We propose a thing.\n" + "".join(sections)
    short = excerpt(text, "forward: tanh(self.alpha * x)", 6_500)
    assert short.startswith("We propose a thing.")
    assert "learnable scale alpha" in short
    assert "\\section{Part 5}" in short
    assert "\\section{Part 4}" not in short
    assert len(short) <= 6_500
    assert excerpt(text, "anything", 1_000_000) == text.strip()
    markdown = text.replace("\\section{", "## ").replace("}", "")
    assert "learnable scale alpha" in excerpt(markdown, "tanh alpha", 6_500)
    assert excerpt("moon " * 100, "tanh", 50).startswith("moon")
