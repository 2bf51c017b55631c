"""`.github/reprise.yml` as text: what it may say, and that every mistake is named with its line."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings, strategies as st

from bot.app.configuration import ConfigFile, base, parse
from bot.kernel.config import Config
from bot.kernel.yaml_nodes import MOST_CHARACTERS

FILE = "acme/pool:.github/reprise.yml"
FULL = """\
# ours
_extends: settings
enabled: yes
triggers:
  opened: off
  labels: [needs repro, "3.10"]
author_may_run: false
outsiders: ignore
ignore_authors:
  - someone
defaults: {python: 3.10, timeout: 30, device: gpu}
quota:
"""


def config(text: str) -> Config:
    parsed = parse(text, FILE)
    assert parsed.problems == ()
    return Config.model_validate(parsed.values)


def test_a_whole_file_is_read() -> None:
    found = config(FULL)
    assert parse(FULL, FILE).extends == "settings"
    assert parse(FULL, FILE).extends_line == 2
    assert (found.enabled, found.author_may_run, found.outsiders) == (True, False, "ignore")
    assert found.triggers.labels == ("needs repro", "3.10")
    assert (found.defaults.timeout, found.defaults.device, found.ignore_authors) == (
        30,
        "gpu",
        ("someone",),
    )
    assert found.quota == Config().quota


def test_data_is_a_table_of_the_files_own_words() -> None:
    text = "data:\n  data/mnist: mnist\n  'my set': 3.10\n"
    assert config(text).data == {"data/mnist": "mnist", "my set": "3.10"}


def test_words_mean_what_their_key_says() -> None:
    """YAML 1.1 reads `off` as false and 3.10 as 3.1."""
    found = config(FULL)
    assert found.triggers.opened == "off"
    assert found.defaults.python == "3.10"
    assert config("enabled: off").enabled is False
    assert config("triggers: {opened: 'off'}").triggers.opened == "off"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n\n",
        "# nothing yet\n",
        "---\n",
        "~",
        "null\n",
        "{}",
        "\ufeff",
        "triggers:\nquota: ~\n",
    ],
)
def test_a_file_that_says_nothing_changes_nothing(text: str) -> None:
    parsed = parse(text, FILE)
    assert parsed.problems == ()
    assert Config.model_validate(parsed.values) == Config()


def test_null_unsets_what_may_be_unset() -> None:
    assert parse("defaults:\n  python:\n", FILE).values == {"defaults": {"python": None}}


WRONG = {
    "unknown proof": (
        "defaults:\n  proofs:\n    - control\n    - bisekt\n",
        4,
        "defaults.proofs.1",
        "'control', 'bisect' or 'minimize'",
    ),
    "one proof as a word": ("defaults:\n  proofs: bisect\n", 2, "defaults.proofs", "valid tuple"),
    "too long a proof": (
        "defaults:\n  runs: 9\n  proof_minutes: 61\n",
        3,
        "defaults.proof_minutes",
        "less than or equal to 60",
    ),
    "python that never was": ("defaults:\n  python: '3.1'\n", 2, "defaults.python", "should match"),
    "unknown key": (
        "enabled: true\ntrigers:\n  opened: off\n",
        2,
        "trigers",
        "Did you mean `triggers`",
    ),
    "unknown key in a section": (
        "defaults:\n  runs: 3\n  pyhton: '3.11'\n",
        3,
        "defaults.pyhton",
        "Did you mean `python`",
    ),
    "unknown and unlike any": ("wxyz: 1\n", 1, "wxyz", "use one of `enabled`"),
    "twice": (
        "labels: true\nenabled: true\nlabels: false\n",
        3,
        "labels",
        "set twice, first on line 1",
    ),
    "twice in a section": (
        "quota:\n  person: 1\n  person: 2\n",
        3,
        "quota.person",
        "first on line 2",
    ),
    "extends twice": ("_extends: a\n_extends: b\n", 2, "_extends", "set twice"),
    "wrong choice": (
        "\ntriggers:\n  opened: always\n",
        3,
        "triggers.opened",
        "should be 'off' or 'bugs'",
    ),
    "no number": ("defaults:\n  timeout: soon\n", 2, "defaults.timeout", "valid integer"),
    "too large": (
        "defaults:\n  timeout: 999999\n",
        2,
        "defaults.timeout",
        "less than or equal to 3600",
    ),
    "text for a section": ("triggers: off\n", 1, "triggers", "should be"),
    "list for a section": ("triggers: [off]\n", 1, "triggers", "should be"),
    "text for a list": ("triggers:\n  labels: bug\n", 2, "triggers.labels", "tuple"),
    "a mapping in a list": ("ignore_authors:\n  - a\n  - b: c\n", 3, "ignore_authors.1", "string"),
    "no boolean": ("enabled: perhaps\n", 1, "enabled", "boolean"),
    "data that leads out": ("data:\n  ../x: mnist\n", 1, "data", "inside the repository"),
    "data among the hook's files": ("data:\n  .reprise: mnist\n", 1, "data", "inside the"),
    "data by a path": ("data:\n  data: ../mnist\n", 1, "data", "without a path"),
    "data in data": ("data:\n  a: m\n  a/b: n\n", 1, "data", "in another"),
    "data twice": ("data:\n  a: m\n  a: n\n", 3, "data", "twice, first on line 2"),
    "a list of data": ("data:\n  a: [m]\n", 2, "data.a", "string"),
    "data without a name": ("data:\n  a:\n", 2, "data.a", "string"),
    "text for data": ("data: mnist\n", 1, "data", "dictionary"),
    "extends is no text": ("_extends: [a]\n", 1, "_extends", "must name a repository"),
    "not a mapping": ("- enabled: true\n", 1, "", "keys with values"),
    "plain text": ("hello world\n", 1, "", "keys with values"),
    "tab": ("triggers:\n\topened: off\n", 2, "", "tab"),
    "indentation": ("enabled: true\n  labels: false\n", 2, "", "unexpected colon"),
    "open quote": ("a: 'b\nc: d\n", 3, "", "not valid YAML"),
    "open bracket": ("triggers: {opened: off\n", 2, "", "not valid YAML"),
    "alias": ("ignore_authors: &a [x]\ntriggers:\n  labels: *a\n", 1, "", "anchor or alias"),
    "undefined alias": ("enabled: *a\n", 1, "", "anchor or alias"),
    "tag": ("enabled: !!python/object/apply:os.system ['true']\n", 1, "", "tag"),
    "second document": ("enabled: true\n---\nenabled: false\n", 2, "", "second document"),
    "merge key": ("enabled: true\n<<: {labels: false}\n", 2, "<<", "unknown"),
    "key that is no text": ("? [a, b]\n: c\n", 1, "", "unknown"),
    "control character": ("enabled: true\nlabels: \x07\n", 2, "", "character"),
    "NUL": ("enabled: true\0", 1, "", "character"),
    "too long": ("#" * (MOST_CHARACTERS + 1), 0, "", "longer than"),
    "deep": ("a: " + "[" * 100 + "]" * 100, 1, "", "too deeply"),
    "bomb": ("a: &a [x,x]\nb: &b [*a,*a]\nc: &c [*b,*b]\n", 1, "", "anchor or alias"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_mistake_is_named_with_its_line_and_nothing_applies(name: str) -> None:
    text, line, key, reason = WRONG[name]
    parsed = parse(text, FILE)
    assert parsed.values == {}
    assert parsed.extends == ""
    first = parsed.problems[0]
    assert (first.file, first.line, first.key) == (FILE, line, key)
    assert reason in first.reason


def test_all_mistakes_are_told_in_order() -> None:
    parsed = parse("labels: maybe\nenabeld: true\ndefaults:\n  runs: 1\n", FILE)
    assert [(each.line, each.key) for each in parsed.problems] == [
        (1, "labels"),
        (2, "enabeld"),
        (4, "defaults.runs"),
    ]


def test_off_is_heard_in_an_invalid_file_too() -> None:
    assert parse("enabled: false\nnonsense: 1\n", FILE).off
    assert not parse("enabled: true\nnonsense: 1\n", FILE).off


def test_words_of_a_file_that_may_be_private_are_not_repeated() -> None:
    text = "db_password: hunter2\ntriggers:\n  secret_word: 1\n  opened: hunter3\n"
    text += "data:\n  secret_word:\n"
    told = str(parse(text, FILE, quote=False).problems)
    assert "db_password" not in told
    assert "secret_word" not in told
    assert "hunter" not in told
    assert "triggers.opened" in told
    assert "hunter" not in str(parse(text, FILE).problems)


KEYS = st.sampled_from(
    [
        "enabled",
        "triggers",
        "opened",
        "labels",
        "defaults",
        "python",
        "quota",
        "_extends",
        "x",
        "<<",
        "",
    ]
)
PIECES = st.sampled_from(
    [
        ": ",
        ":",
        "\n",
        "\n  ",
        "\n- ",
        "- ",
        "{",
        "}",
        "[",
        "]",
        ",",
        "'",
        '"',
        "|",
        ">",
        "&a ",
        "*a",
        "!!str ",
        "!<",
        "? ",
        "#",
        "%",
        "---",
        "...",
        "\t",
        "\r\n",
        "\x85",
        "\u2028",
        "true",
        "off",
        "3.10",
        "1e999",
        "0x",
        "~",
        "é",
        "\ud800",
        "\0",
        "\ufeff",
        "@",
        "`",
    ]
)
TEXTS = st.one_of(
    st.text(max_size=200),
    st.lists(st.one_of(KEYS, PIECES, st.text(max_size=3)), max_size=30).map("".join),
)


@settings(max_examples=250, deadline=None)
@given(TEXTS)
def test_any_text_is_read_or_told(text: str) -> None:
    parsed = parse(text, FILE)
    Config.model_validate(parsed.values)
    lines = len(
        text.replace("\r", "\n")
        .replace("\x85", "\n")
        .replace("\u2028", "\n")
        .replace("\u2029", "\n")
        .split("\n")
    )
    for problem in parsed.problems:
        assert 0 <= problem.line <= lines + 1
        assert problem.reason
    assert not (parsed.problems and parsed.values)


@pytest.mark.parametrize(
    "piece",
    [
        "[",
        "{",
        "a: ",
        "- ",
        "? ",
        "'",
        '"',
        "a\n",
        "enabled: true\n",
        "&a ",
        "#",
        "\n",
        "a: [",
        "{a: ",
        "!",
        "|\n",
        " ",
    ],
)
def test_time_is_bounded(piece: str) -> None:
    started = time.process_time()
    parse((piece * MOST_CHARACTERS)[:MOST_CHARACTERS], FILE)
    assert time.process_time() - started < 15


@pytest.mark.parametrize(
    ("written", "place"),
    [
        ("settings", ConfigFile("acme/settings")),
        (" .github ", ConfigFile("acme/.github")),
        ("ACME/settings", ConfigFile("acme/settings")),
        ("settings:shared/other.yaml", ConfigFile("acme/settings", "shared/other.yaml")),
        ("acme/settings:x.yml", ConfigFile("acme/settings", "x.yml")),
    ],
)
def test_what_can_be_built_on(written: str, place: ConfigFile) -> None:
    assert base(written, "acme") == place


@pytest.mark.parametrize(
    "written",
    [
        "other/settings",
        "a/b/c",
        "https://x.example/a",
        "..",
        "acme/..",
        "a:../b.yml",
        "a:/b.yml",
        "a:b.json",
        "a:",
        "a b",
        "a\nb",
        "x" * 300,
    ],
)
def test_what_cannot_be_built_on(written: str) -> None:
    assert isinstance(base(written, "acme"), str)
