"""SOURCE → Issue, for every form of source and every mistake."""

import io
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bot.cli import sources
from bot.kernel.bug import Issue
from bot.kernel.errors import UserError
from bot.kernel.settings import Settings

SETTINGS = Settings()
API = {
    "url": "https://api.github.com/repos/acme/pool/issues/7",
    "html_url": "https://github.com/acme/pool/issues/7",
    "repository_url": "https://api.github.com/repos/acme/pool",
    "number": 7,
    "title": "It fails",
    "body": "Text\r\nmore",
    "created_at": "2024-05-01T10:00:00Z",
    "labels": [{"name": "bug"}, {"name": "nn"}],
    "user": {"login": "ann"},
}
REPOSITORY = {"full_name": "acme/pool", "clone_url": "https://github.com/acme/pool.git"}


def kept(folder: Path, content: object, name: str = "issue.json") -> str:
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return str(path)


def test_an_issue_of_the_api_without_its_repository(tmp_path: Path) -> None:
    issue = sources.load(kept(tmp_path, API), SETTINGS)
    assert issue == Issue(
        title="It fails",
        body="Text\r\nmore",
        repository="acme/pool",
        number=7,
        author="ann",
        created_at=datetime(2024, 5, 1, 10, tzinfo=UTC),
        labels=("bug", "nn"),
        url="https://github.com/acme/pool/issues/7",
    )


@pytest.mark.parametrize("key", ["repository_url", "html_url", "url"])
def test_the_repository_is_read_from_any_address(key: str) -> None:
    data = {"title": "t", "body": "b", key: API[key]}
    assert sources.from_object(data, "x").repository == "acme/pool"


def test_a_webhook_delivery(tmp_path: Path) -> None:
    issue = sources.load(
        kept(tmp_path, {"action": "opened", "issue": API, "repository": REPOSITORY, "sender": {}}),
        SETTINGS,
    )
    assert (issue.repository, issue.number, issue.clone_url) == (
        "acme/pool",
        7,
        "https://github.com/acme/pool.git",
    )


def test_what_gh_prints() -> None:
    data = {
        "title": "t",
        "body": "b",
        "url": API["html_url"],
        "createdAt": "2024-05-01T10:00:00Z",
        "author": {"login": "ann"},
    }
    issue = sources.from_object(data, "x")
    assert (issue.author, issue.repository, issue.created_at) == (
        "ann",
        "acme/pool",
        datetime(2024, 5, 1, 10, tzinfo=UTC),
    )


def test_a_body_that_is_null_is_empty() -> None:
    assert sources.from_object({"title": "t", "body": None}, "x").body == ""


@pytest.mark.parametrize(
    "hostile",
    ["ext::sh -c id", "--upload-pack=id", "file:///etc", "https://h/x y", "https://h/$(id)"],
)
def test_a_clone_address_that_could_do_harm_is_dropped(hostile: str) -> None:
    assert (
        sources.from_object(
            API | {"repository": {"full_name": "a/b", "clone_url": hostile}}, "x"
        ).clone_url
        == ""
    )


@pytest.mark.parametrize("stated", ["../../etc", "a/b/c", "a b/c", "-x", ""])
def test_a_repository_name_that_is_none_is_not_believed(stated: str) -> None:
    assert (
        sources.from_object(
            {"title": "t", "body": "b", "repository": {"full_name": stated}}, "x"
        ).repository
        == ""
    )


def test_half_a_character_does_not_survive() -> None:
    assert sources.from_text('{"title": "a\\ud800b", "body": "c\\udfff"}', "x").title == "a?b"


def test_markdown_with_front_lines(tmp_path: Path) -> None:
    text = (
        "# The title #\n\nRepository: acme/pool\nCreated: 2024-05-01\nLabels: bug, nn\n"
        "Number: #7\n\n### Steps\n\n```\n# no\n```\n"
    )
    issue = sources.load(kept(tmp_path, text, "issue.md"), SETTINGS)
    assert issue.title == "The title"
    assert (issue.repository, issue.number, issue.labels) == ("acme/pool", 7, ("bug", "nn"))
    assert issue.created_at == datetime(2024, 5, 1, 23, 59, 59, tzinfo=UTC)
    assert issue.body == "### Steps\n\n```\n# no\n```\n"


def test_front_lines_may_stand_before_the_title() -> None:
    issue = sources.from_markdown(
        "URL: https://github.com/acme/pool/issues/7\nDate: 2024-05-01\n# T\nbody\n"
    )
    assert (issue.title, issue.repository, issue.body) == ("T", "acme/pool", "body\n")


def test_a_comment_in_code_is_no_title() -> None:
    issue = sources.from_markdown("It fails\n\n```python\n# setup\nx = 1\n```\n\n# Real title\n")
    assert issue.title == "Real title"
    assert "# setup" in issue.body


def test_without_a_heading_the_first_line_is_the_title_and_stays() -> None:
    issue = sources.from_markdown("\nIt fails\nCreated: is not a front line here\n")
    assert issue.title == "It fails"
    assert issue.body == "It fails\nCreated: is not a front line here\n"


def test_standard_input_takes_both_forms() -> None:
    assert sources.load("-", SETTINGS, stdin=io.BytesIO(b"# T\nx")).title == "T"
    assert (
        sources.load("-", SETTINGS, stdin=io.BytesIO(json.dumps(API).encode())).title == "It fails"
    )


@pytest.mark.parametrize("data", ["\ufeff# T\nx".encode(), "# T\nx".encode("utf-16"), b"# T\r\nx"])
def test_what_editors_write(data: bytes) -> None:
    issue = sources.load("-", SETTINGS, stdin=io.BytesIO(data))
    assert (issue.title, issue.body) == ("T", "x\n")


def test_the_bundled_example_says_where_and_when() -> None:
    issue = sources.load("example", SETTINGS)
    assert issue.title
    assert issue.repository
    assert issue.created_at
    assert "```python" in issue.body


@pytest.mark.parametrize(
    ("content", "name", "words"),
    [
        ("{not json", "a.json", "is not valid JSON (line 1"),
        ("{not json", "a.txt", "is not valid JSON"),
        ("[" * 200_000, "a.json", "is not valid JSON"),
        ("[{}, {}]", "a.json", "contains a list of 2"),
        ("3", "a.json", "does not contain an issue"),
        ('{"title": 3}', "a.json", "has no title or no body"),
        ('{"title": "x", "body": ["y"]}', "a.json", "has no title or no body"),
        (json.dumps(API | {"pull_request": {"url": "x"}}), "a.json", "is a pull request"),
        ("", "a.md", "is empty"),
        (" \n", "a.json", "is empty"),
        ("a\0b", "a.md", "is a binary file"),
    ],
)
def test_contents_that_are_no_issue(tmp_path: Path, content: str, name: str, words: str) -> None:
    with pytest.raises(UserError) as caught:
        sources.load(kept(tmp_path, content, name), SETTINGS)
    assert words in str(caught.value)
    assert caught.value.fix


def test_places_that_are_no_issue(tmp_path: Path) -> None:
    (tmp_path / "latin.md").write_bytes(b"# T\n\xe9\xe8 caf\xe9\n")
    (tmp_path / "large.md").write_bytes(b"x" * 5_000_001)
    wanted = {
        str(tmp_path / "none.md"): "There is no file",
        str(tmp_path): "is a folder",
        str(tmp_path / "latin.md"): "is not text in UTF-8",
        str(tmp_path / "large.md"): "too large for an issue",
        "x" * 5_000: "cannot be read",
        "a\0b": "cannot be read",
        str(tmp_path / "latin.md" / "x"): "cannot be read",
        "https://gitlab.example/a/b/issues/1": "is not the GitHub host that Reprise uses",
        "https://github.com/a/b": "not the address of an issue",
        "https://github.com/a/b/pull/3": "is a pull request",
        "https://github.com/a/b/issues/x": "not the address of an issue",
    }
    for given, words in wanted.items():
        with pytest.raises(UserError) as caught:
            sources.load(given, SETTINGS)
        assert words in str(caught.value)
        assert caught.value.fix
