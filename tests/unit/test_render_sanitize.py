"""What strangers wrote can be read in a comment and do nothing there."""

import re
import time
import unicodedata
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import example, given, settings, strategies as st
from markdown_it import MarkdownIt

from bot.kernel.attempt import Script
from bot.kernel.bug import ScriptFix
from bot.kernel.job import Note
from bot.kernel.outside_text import clean, code_span, fence, html_text, prose, shorten_paths
from bot.kernel.redaction import redact
from bot.kernel.report import Claim, Comparison, DifferentFailure, IssueReport, NeedsInfo, NotABug
from bot.report.comment import LIMIT, comment, size

REPORTS = Path(__file__).parent.parent / "golden" / "reports"
MARKDOWN = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])

WORDS = "@octocat|@org/team|fixes #12|Closes: #3|resolves owner/repo#7|GH-9|closes GH-9|https://evil.example/x|http://"
MARKS = "![x](https://evil.example/a.png) [x](//evil.example) [x][y] <img/src=x> </details> <!-- --> ` `` ``` ~~~ | \\ # > - 1. ---"
MORE = [
    "www.evil.example",
    "<a href=//x>",
    "$x$",
    "&#64;",
    "&lt;",
    "a@b.example",
    "**",
    "_",
    "x",
    " ",
    "\n",
    "\r",
    "\t",
]
HASHES = ["1a2b3c4d5", "`1a2b3c4d5"]
UNSEEN = ["\u202e", "\u200b", "\x1b[31m", "\x1b]8;;http://evil.example\x07"]
PIECES = st.sampled_from([*WORDS.split("|"), *MARKS.split(), *MORE, *HASHES, *UNSEEN])
NASTY = st.lists(st.one_of(PIECES, st.text(max_size=4)), max_size=12).map("".join)


class Texts(HTMLParser):
    """What GitHub would look at for mentions and references: text outside code, and every
    element.
    """

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.code = self.folds = 0
        self.text = ""
        self.tags: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.folds += tag == "details"
        self.code += tag in {"code", "pre"}

    def handle_endtag(self, tag: str) -> None:
        self.folds -= tag == "details"
        self.code -= tag in {"code", "pre"}

    def handle_data(self, data: str) -> None:
        self.text += data if not self.code else "\x00"

    def handle_comment(self, data: str) -> None:
        self.tags.add("!--")


OURS = {
    "p",
    "code",
    "pre",
    "strong",
    "sub",
    "details",
    "summary",
    "table",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
    "ul",
    "ol",
    "li",
    "blockquote",
}
LIVE = re.compile(
    r"(?<![\w`])@\w|\w@\w|(?<!&)#\d|\bgh-\d|https?://|\bwww\.\w"
    r"|\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?):?\s+(?:[\w.-]+/[\w.-]+)?(?:#\d|gh-\d|https?://)",
    re.IGNORECASE,
)


def inert(markdown: str) -> Texts:
    """Render as GitHub would and check that nothing came alive."""
    assert not [
        char
        for char in markdown
        if unicodedata.category(char) in {"Cf", "Cs"} or (char < " " and char not in "\n\t")
    ]
    found = Texts()
    found.feed(MARKDOWN.render(markdown))
    found.close()
    assert found.tags <= OURS
    assert not LIVE.search(found.text)
    assert found.code == found.folds == 0
    return found


@given(NASTY)
@example("@octocat fixes #12 ![x](https://evil.example/a.png)")
@example("1. <img src=x> `a @b` ``` \\` @c")
@example("`\\`@octocat`")
def test_prose_is_one_inert_line(text: str) -> None:
    line = prose(text)
    assert "\n" not in line
    inert(line)
    inert(f"- {line}")
    inert(f"> {line}")
    assert inert(f"**x**: {line}").tags <= {"p", "strong", "code"}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("introduced in 0123456789ab (2024-05-02)", "introduced in `0123456789ab` (2024-05-02)"),
        (
            "Commits from 0123456789ab to ba9876543210:",
            "Commits from `0123456789ab` to `ba9876543210`:",
        ),
        ("`0123456789ab` 2024-05-02 Faster", "`0123456789ab` 2024-05-02 Faster"),
        ("(deadbeef).", "(`deadbeef`)."),
        ("a@1a2b3c4d5", "a@&#8203;1a2b3c&#8203;4d5"),
        ("\\`1a2b3c4d5", "\\\\\\`1a2b3c&#8203;4d5"),
        ("1048576 of 12345678901", "104857&#8203;6 of 123456&#8203;78901"),
        ("in 1234567A", "in `1234567A`"),
        ("version 1.2345678, sha256:1a2b3c4d5", "version 1.2345678, sha256:`1a2b3c4d5`"),
    ],
)
def test_a_hash_can_be_copied_and_links_nothing(text: str, line: str) -> None:
    assert prose(text) == line
    assert not re.search(r"(?<!\d\.)\b[0-9a-f]{7,40}\b", inert(line).text)


@given(NASTY)
def test_code_span_holds_its_text_and_nothing_else(text: str) -> None:
    span = code_span(text)
    found = inert(span)
    assert found.tags <= {"p", "code"}
    tokens = MARKDOWN.parseInline(span)[0].children or []
    assert [token.type for token in tokens] == (["code_inline"] if span else [])


@given(NASTY, NASTY)
def test_cells_never_break_a_table(left: str, right: str) -> None:
    rows = f"| a | b |\n|---|---|\n| {prose(left, cell=True)} | {code_span(right, cell=True)} |\n"
    inert(rows)
    tokens = MARKDOWN.parse(rows)
    assert [token.type for token in tokens].count("td_open") == 2
    assert tokens[-1].type == "table_close"


@given(NASTY)
def test_a_fence_stays_closed(text: str) -> None:
    tokens = MARKDOWN.parse(f"{fence(text, 'python')}\n\nafter")
    assert [token.type for token in tokens] == [
        "fence",
        "paragraph_open",
        "inline",
        "paragraph_close",
    ]


@given(NASTY)
def test_html_text_is_inert(text: str) -> None:
    found = inert(f"<details><summary>{html_text(text)}</summary>\n\nx\n\n</details>")
    assert found.tags == {"details", "summary", "p"}


def report(name: str) -> IssueReport:
    return IssueReport.model_validate_json((REPORTS / f"{name}.json").read_text(encoding="utf-8"))


def poisoned(text: str) -> list[IssueReport]:
    """Reports with a stranger's words in every place that can hold them."""
    base = report("reproduced")
    assert base.script is not None
    assert base.environment is not None
    attempts = tuple(
        attempt.model_copy(
            update={
                "change": text,
                "origin": text,
                "judgement": attempt.judgement.model_copy(
                    update={"reason": text, "evidence": text}
                ),
            }
        )
        for attempt in base.attempts
    )
    claims = tuple(
        claim.model_copy(update={"name": text, "claimed": text, "note": text})
        for claim in base.environment.claims
    )
    packages = tuple(
        package.model_copy(update={"name": text}) for package in base.environment.packages
    )
    steps = tuple(
        step.model_copy(update={"what": text, "error": text}) for step in base.environment.steps
    )
    full = base.model_copy(
        update={
            "script": Script(
                files={"repro.py": text, "b.py": text}, fixes=(ScriptFix(what=text, why=text),)
            ),
            "command": text,
            "comparison": (Comparison(what=text, reported=text, observed=text),),
            "attempts": attempts,
            "claims": (Claim(text=text, holds=None, evidence=text),),
            "notes": (Note(kind="run", text=text), Note(kind="run", text=text)),
            "environment": base.environment.model_copy(
                update={
                    "claims": claims,
                    "packages": packages,
                    "steps": steps,
                    "commit": text,
                    "python": text,
                }
            ),
        }
    )
    verdicts = (
        base.verdict.model_copy(update={"reason": text}),
        DifferentFailure(
            runs=2, failures=0, interval=(0, 0.8), reason=text, reported=text, seen=text
        ),
        NeedsInfo(reason=text, items=(text, text)),
        NotABug(reason=text, sentence=text),
    )
    return [full.model_copy(update={"verdict": verdict}) for verdict in verdicts]


@settings(max_examples=30, deadline=None)
@given(NASTY)
@example("@octocat fixes #12 https://evil.example ```` </details> <script>x</script> | \u202e")
def test_a_whole_comment_is_inert(text: str) -> None:
    for each in poisoned(text):
        inert(comment(each, run=text))


@settings(max_examples=5, deadline=None)
@given(
    st.one_of(NASTY.filter(bool), st.sampled_from(["`", "\n", "x", "😀", "a\n```\n"])),
    st.sampled_from([100, 20_000]),
)
@example("`", 60_000)
@example("😀", 60_000)
@pytest.mark.slow  # random reports of long texts
def test_any_size_fits_and_every_mark_stays_balanced(piece: str, length: int) -> None:
    text = (piece * (length // len(piece) + 1))[:length]
    for each in poisoned(text)[:1]:
        body = comment(each)
        assert size(body) <= LIMIT
        assert body.rstrip().endswith("</sub>")
        found = inert(body)
        assert {"details", "summary", "sub"} <= found.tags
        assert "Measured in 3 program runs" in found.text


def test_a_cut_keeps_both_ends_of_a_log() -> None:
    base = report("reproduced")
    long = "first line\n" + "middle\n" * 30_000 + "RuntimeError: the last line"
    judged = base.attempts[-1].judgement.model_copy(update={"evidence": long})
    body = comment(
        base.model_copy(
            update={
                "attempts": (
                    *base.attempts[:-1],
                    base.attempts[-1].model_copy(update={"judgement": judged}),
                )
            }
        )
    )
    assert "first line" in body
    assert "RuntimeError: the last line" in body
    assert "characters left out" in body


TOKENS = [
    "ghp_" + "a1B2" * 9,
    "github_pat_" + "a1B2_" * 8,
    "gho_" + "Z9" * 18,
    "sk-" + "a1b2" * 8,
    "sk-proj-" + "a1-b2_" * 6,
    "AKIA" + "A2B3" * 4,
    "hf_" + "aB3d" * 8,
    "xoxb-123456789012-abcdefghijkl",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIB\nabc\n-----END RSA PRIVATE KEY-----",
    "-----BEGIN PRIVATE KEY-----\nMIIB cut off",
]


@pytest.mark.parametrize("token", TOKENS)
def test_what_looks_like_a_credential_goes(token: str) -> None:
    core = token.splitlines()[-1] if "\n" not in token else "MIIB"
    assert core not in redact(f"token={token} end")
    hidden = comment(
        report("needs_info").model_copy(
            update={"verdict": NeedsInfo(reason=f"see {token}", items=())}
        )
    )
    assert core not in hidden
    assert "redacted" in hidden


def test_authorization_and_passwords_in_addresses_go() -> None:
    assert (
        redact("Authorization: Bearer abc123def456ghi789jkl") == "Authorization: Bearer [redacted]"
    )
    assert redact("https://user:hunter2@host/x") == "https://[redacted]@host/x"


@pytest.mark.parametrize(
    "text",
    [
        "a task-based-benchmark-with-dashes",
        "hf_hub_download(repo)",
        "bearer of bad news",
        "sk-learn",
    ],
)
def test_ordinary_words_stay(text: str) -> None:
    assert redact(text) == text


@given(st.text("abcdefXYZ0123456789", min_size=6, max_size=20), NASTY, NASTY)
def test_exact_values_never_survive(secret: str, before: str, after: str) -> None:
    base = report("needs_info")
    hidden = before + secret[:3] + "\u200b" + secret[3:] + after
    body = comment(
        base.model_copy(update={"verdict": NeedsInfo(reason=hidden, items=(hidden,))}),
        secrets=(secret,),
    )
    assert secret not in re.sub(r"`[0-9a-f]{12}`", "", body)


def test_paths_start_where_they_mean_the_same_everywhere() -> None:
    assert (
        shorten_paths('File "/home/me/.venv/lib/python3.11/site-packages/torch/nn/x.py"')
        == 'File ".../site-packages/torch/nn/x.py"'
    )
    assert shorten_paths("/usr/local/lib/python3.10/dist-packages/a.py") == ".../dist-packages/a.py"
    assert shorten_paths("/usr/lib/python3.12/json/decoder.py") == ".../python3.12/json/decoder.py"
    assert shorten_paths(r"C:\Users\me\x.py and /Users/me/y.py") == r"~\x.py and ~/y.py"
    assert (
        shorten_paths("1/2 and a/b/c and https://x.example/home/me/x")
        == "1/2 and a/b/c and https://x.example/home/me/x"
    )


def test_clean_keeps_words_of_every_script_and_drops_what_is_not_seen() -> None:
    assert clean("naïve 模型 привет 😀\ta\r\nb\rc") == "naïve 模型 привет 😀\ta\nb\nc"
    assert (
        clean("\x1b[1;31mred\x1b[0m \x1b]0;title\x07x\u202ey\u2066z\ufeff\u00ad\U000e0041\x00\x08")
        == "red xyz"
    )
    assert clean("a\u2028b\u00a0c\u3164d") == "a\nb cd"


@pytest.mark.parametrize(
    "piece",
    ["/a", "eyJ", "/python3.1", "\x1b]", "://a:", "`", "bearer ", "-----BEGIN PRIVATE KEY-----"],
)
def test_hostile_repetition_costs_no_quadratic_time(piece: str) -> None:
    started = time.process_time()
    text = piece * (40_000 // len(piece))
    shorten_paths(redact(clean(text)))
    prose(text)
    assert time.process_time() - started < 10
