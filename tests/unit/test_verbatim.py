"""What is approved is what runs: a plan shows every program to the last character, or it is not
offered and says which lines are in the way.
"""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings, strategies as st
from markdown_it import MarkdownIt

from bot.kernel.attempt import Script
from bot.kernel.outside_text import CREDENTIAL, HIDDEN, unshowable
from bot.kernel.run import RunPlan
from bot.report import replies, replies as report_replies
from bot.report.comment import size
from tests.golden.stages import PAGE, draft, run

PEM = ("-----BEGIN RSA PRIVATE " + "KEY-----", "-----END RSA PRIVATE " + "KEY-----")
TOKEN = "ghp" + "_" + "a1B2" * 9
CASES = {
    "a key block to its end": (f"import lib\n# {PEM[0]}\nlib.evil()\n# {PEM[1]}\nlib.fit()\n", "lines 2 to 4"),
    "a key block without an end": (f"import lib\n# {PEM[0]}\nlib.evil()\nlib.fit()\n", "lines 2 to 4"),
    "a token": (f"import lib\nlogin('{TOKEN}')\n", "line 2"),
    "two tokens": (f"a = '{TOKEN}'\nb = 2\nc = '{TOKEN}'\n", "lines 1 and 3"),
    "an invisible character": ("import lib\n\nadm\u200bin = 1\n", "line 3"),
    "a direction": ("if True:  # \u202e\n    pass\n", "line 1"),
    "a blank that is none": ("x = 1\nprint('\u00a0')\n", "line 2"),
    "a line end that is none": ("x = 1  # \u2028import os\n", "line 1"),
    "a carriage return": ("import os\rx = 1\ny = 2\n", "line 1"),
    "a colour": ("x = 1\ny = '\x1b[8m'\n", "line 2"),
    "a command to a bot": ("'''\n/approve 1\n'''\n", "line 2"),
    "our marker": ("x = '<!-- reprise:run -->'\n", "line 1"),
    "our marker over two lines": ("x = '''<!--\nreprise:run -->'''\n", "lines 1 to 2"),
    "lines before it": ("\nx = 1\n", "lines 1 to 2"),
    "lines after it": ("x = 1\n\n", "lines 1 to 2"),
    "too long": ("x = 1  # 0123456789\n" * 4_000, "lines 1 to 4000"),
}  # fmt: skip


def program(text: str) -> Script:
    return Script(files={"repro.py": text}, origin="block 1 of the report")


def with_(place: str, text: str) -> RunPlan:
    fine, held = program("print('fine')\n"), program(text)
    return {
        "script": draft(script=held),
        "others": draft(script=fine, others=(fine, held)),
        "contrasts": draft(script=fine, contrasts=(held,)),
        "training": draft(script=None, training=held),
    }[place]


@pytest.mark.parametrize("place", ["script", "others", "contrasts", "training"])
@pytest.mark.parametrize("name", CASES)
def test_what_cannot_be_shown_is_named_by_its_lines(name: str, place: str) -> None:
    text, lines = CASES[name]
    (told,) = report_replies.unshowable_programs(with_(place, text), run().request)
    assert f"`repro.py`, {lines}: " in told
    assert "lock 1 of the report" in told
    assert TOKEN not in told
    titles = {"others": "Script 3, ", "contrasts": "Variant that should work, "}
    assert told.startswith(titles.get(place, "Block 1 of the report, "))
    reply = replies.unshowable_reply((told,))
    assert lines in reply
    assert "approve" not in reply.replace("approval", "")


@pytest.mark.parametrize(
    "text",
    [
        "x = 1\n",
        "x = 1",
        "",
        "print('```')  # ````\n",
        "@decorated\ndef f():\n\treturn 1   \n",
        "x = 'é ½ 漢 \U0001f600'\n",
        "token = os.environ['HF_TOKEN']\n</details>\n<!-- x -->\n",
        "    /reproduce approve\n",
    ],
)
def test_what_can_be_shown_is(text: str) -> None:
    assert unshowable({"repro.py": text}) == ()


@pytest.mark.parametrize(
    "name", ["a`b.py", "/root/x.py", "x\u200b.py", f"{TOKEN}.py", "x" * 101, "a b.py", "../x.py"]
)
def test_a_file_name_that_is_shown_in_another_way_is_named(name: str) -> None:
    (part,) = unshowable({name: "x = 1\n"})
    assert part.lines == ()
    assert str(part) == "`another file`: a file name of unusual characters or length"


def test_every_reason_of_a_file_is_told_and_many_lines_are_short() -> None:
    text = f"a\u200b\n'{TOKEN}'\n" + "fine\nb\u200b\n" * 20
    parts = unshowable({"m.py": "", "repro.py": text})
    assert [(part.reason, len(part.lines)) for part in parts] == [(HIDDEN, 21), (CREDENTIAL, 1)]
    assert str(parts[0]).startswith("`repro.py`, lines 1, 4, 6, 8, 10, 12, 14, 16 and 13 more: ")


ODD = st.sampled_from(
    [*PEM, TOKEN, "password = 'abcdefg123'", "```", "~~~", "</details>", "<!--", " reprise",
     "/approve ", "@bot go", *"\u200b\u202e\u00a0\ufe0f\r\u2028\x00", "\x1b[8m"]
)  # fmt: skip
PLAIN = st.text(st.sampled_from("ab1 \t\n\n#'`=()é\U0001f600"), max_size=40)
TEXTS = st.one_of(
    st.lists(st.one_of(PLAIN, PLAIN, PLAIN, ODD), max_size=6).map("".join),
    PLAIN.map(lambda text: text * 600),
    st.text(max_size=60),
)
SCRIPTS = st.builds(
    lambda text, more: Script(files={"repro.py": text, **more}),
    TEXTS,
    st.dictionaries(st.sampled_from(["a.py", "data/b.json", "/root/c.py"]), TEXTS, max_size=1),
)


def fenced(body: str) -> list[str]:
    """The blocks of code that GitHub shows in a comment."""
    return [each.content for each in MarkdownIt().parse(body) if each.type == "fence"]


@settings(max_examples=150, deadline=None)
@given(
    st.none() | SCRIPTS,
    st.lists(SCRIPTS, max_size=2),
    st.lists(SCRIPTS, max_size=1),
    st.none() | SCRIPTS,
)
def test_a_plan_shows_every_program_to_the_last_character_or_is_not_offered(
    script: Script | None, others: list[Script], contrasts: list[Script], training: Script | None
) -> None:
    drawn = draft(script=script, others=others, contrasts=contrasts, training=training)
    if report_replies.unshowable_programs(drawn, run().request):
        return
    body = report_replies.waiting(drawn, run(), page=PAGE)
    assert size(body) <= 65_536
    shown = fenced(body)
    programs = [*drawn.scripts, *contrasts, *([training] if training else [])]
    for text in (text for each in programs for text in each.files.values()):
        assert (text if text.endswith("\n") else text + "\n") in shown
        assert re.sub(r"\n\Z", "", text) in body


def test_a_path_in_a_file_of_data_is_shown_as_it_is() -> None:
    path = '{"from": "/home/mona/data/x.csv"}\n'
    held = Script(files={"repro.py": "import lib\n", "data/b.json": path})
    assert report_replies.unshowable_programs(draft(script=held), run().request) == ()
    assert path in fenced(report_replies.waiting(draft(script=held), run(), page=PAGE))


def test_every_package_that_would_be_installed_is_shown() -> None:
    spec = draft().spec
    assert spec is not None
    many = tuple(
        spec.requirements[0].model_copy(update={"name": f"package-{number}"})
        for number in range(90)
    )
    drawn = draft(spec=spec.model_copy(update={"requirements": many}))
    assert report_replies.unshowable_programs(drawn, run().request) == ()
    body = report_replies.waiting(drawn, run(), page=PAGE)
    assert all(f"| `package-{number}` |" in body for number in range(90))
