"""Prompts: held to their hashes, filled in strictly, and closed to what strangers write."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from jsonschema import Draft202012Validator

import prompts
from prompts.__main__ import main, publish
from prompts.catalog import HOME, SHARED, Catalog, PromptChanged, PromptError, fence

TEXT = "For people.\n\n## system\n\nYou read {{what}}.\n\n## user\n\n{{report}}\n\n## More\n\n{{what}}\n"


@pytest.fixture
def room(tmp_path: Path) -> Path:
    (tmp_path / "read").mkdir()
    (tmp_path / "catalog.toml").touch()
    write(tmp_path, "v1", TEXT)
    publish(tmp_path, "read", "v1")
    return tmp_path


def write(room: Path, version: str, text: str) -> None:
    (room / "read" / f"{version}.md").write_text(text)
    (room / "read" / f"{version}.schema.json").write_text('{"type": "object"}')


# --- what ships --------------------------------------------------------------------------------------------------------------


def test_every_published_prompt_is_as_the_catalog_knows_it_and_every_file_is_published() -> None:
    entries = prompts.list_entries()
    assert "mend" in {entry.stage for entry in entries}
    for entry in entries:
        loaded = prompts.load(entry.stage, entry.version)
        assert loaded.id == entry.id
        Draft202012Validator.check_schema(loaded.schema)
    published = {f"{entry.stage}/{entry.version}.md" for entry in entries} | {
        f"{entry.stage}/{entry.version}.schema.json" for entry in entries if entry.schema_sha256
    }
    shipped = {
        path.relative_to(HOME).as_posix() for end in ("*.md", "*.json") for path in HOME.rglob(end)
    }
    assert shipped == published


def test_every_live_prompt_says_what_the_fence_means() -> None:
    mark = fence("x", "y").split("\n")[0].split(" id=")[0]
    spoken = [prompts.load(entry.stage) for entry in prompts.list_entries() if entry.live]
    assert [
        prompt.id
        for prompt in spoken
        if prompt.sections.get("user") and mark not in prompt.sections["system"]
    ] == []


@pytest.mark.parametrize("stage", ["refine", "act"])
def test_the_limits_that_a_model_is_told_are_those_of_the_schema(stage: str) -> None:
    """What is told is drawn from the schema, and the text gives no number of its own."""
    prompt = prompts.load(stage)
    assert "{{lengths}}" in prompt.sections["system"]
    assert not re.search(r"\d (?:000 )?characters", prompt.sections["system"])
    groups = [group.rpartition(" ") for group in prompt.lengths().split("; ")]
    limits = {
        name: int(most.replace(",", ""))
        for names, _, most in groups
        for name in re.findall(r"`(\w+)`", names)
    }
    assert len(limits) > 5
    for name, most in limits.items():
        lengths = set(
            re.findall(
                rf'"{name}": {{[^{{}}]*(?:{{[^{{}}]*)?"maxLength": (\d+)', json.dumps(prompt.schema)
            )
        )
        assert lengths, name
        assert min(map(int, lengths)) * 2 // 3 == most


# --- hashes ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["v1.md", "v1.schema.json"])
def test_a_published_version_is_never_edited(room: Path, name: str) -> None:
    path = room / "read" / name
    path.write_text(path.read_text() + "\n")
    with pytest.raises(
        PromptChanged, match=rf"read/{re.escape(name)} .* never edited; write a new version"
    ):
        Catalog(room).load("read")
    with pytest.raises(PromptError, match="never edited"):
        publish(room, "read", "v1")
    assert main([], room) == 1


def test_a_new_version_becomes_live_and_the_old_one_stays(room: Path) -> None:
    before = Catalog(room).load("read")
    write(room, "v2", TEXT.replace("You read", "You study"))
    after = publish(room, "read", "v2")
    assert Catalog(room).load("read").id == after.id != before.id
    assert Catalog(room).load("read", "v1") == before
    assert [(entry.version, entry.live) for entry in Catalog(room).listed()] == [
        ("v1", False),
        ("v2", True),
    ]


def test_the_id_changes_with_either_file(room: Path) -> None:
    ids = {Catalog(room).load("read").id}
    for name in ("v1.md", "v1.schema.json"):
        path = room / "read" / name
        path.write_text(path.read_text() + "\n")
        ids.add(publish(room, "read", "v1", again=True).id)
    assert len(ids) == 3
    assert all(re.fullmatch(r"read@v1#[0-9a-f]{12}", each) for each in ids)


@pytest.mark.parametrize(("stage", "version"), [("write", None), ("read", "v2"), ("../read", None)])
def test_a_prompt_that_is_not_there_is_named(room: Path, stage: str, version: str | None) -> None:
    with pytest.raises(PromptError, match=f"no prompt {re.escape(stage)}"):
        Catalog(room).load(stage, version)


# --- rendering ---------------------------------------------------------------------------------------------------------------


def test_values_are_filled_in_once(room: Path) -> None:
    prompt = Catalog(room).load("read")
    system, user = prompt.render(what="a {{report}}", report=r"\1 {{what}}")
    assert system == "You read a {{report}}."
    assert user == "\\1 {{what}}\n\n## More\n\na {{report}}"


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"what": "x"}, r"lacks report"),
        ({"what": "x", "report": "y", "extra": "z"}, r"knows no extra"),
        ({"reports": "x"}, r"lacks report, what and knows no reports"),
    ],
)
def test_a_missing_value_and_an_unused_one_are_errors(
    room: Path, values: dict[str, str], said: str
) -> None:
    with pytest.raises(PromptError, match=rf"read@v1#\w+ {said}"):
        Catalog(room).load("read").render(**values)


@pytest.mark.parametrize(
    "text",
    [
        "## user\n\nx\n\n## system\n\ny\n",
        "## system\n\nx\n",
        "## system\n\nx\n\n## user\n\ny\n\n## user\n\nz\n",
        "## system\n\nx {{ what }}\n\n## user\n\ny\n",
        "## system\n\nx {{What}}\n\n## user\n\ny\n",
    ],
)
def test_a_malformed_prompt_is_not_published(room: Path, text: str) -> None:
    write(room, "v2", text)
    with pytest.raises(PromptError):
        publish(room, "read", "v2")
    assert [entry.version for entry in Catalog(room).listed()] == ["v1"]


def test_a_fragment_is_filled_in_as_strictly(room: Path) -> None:
    write(room, "v2", TEXT + "\n## left\n\n{{calls}} calls\n")
    prompt = Catalog(room).load("read", publish(room, "read", "v2").version)
    assert prompt.fragment("left", calls=3) == "3 calls"
    for name, values in (("left", {}), ("left", {"calls": 1, "minutes": 2}), ("right", {})):
        with pytest.raises(PromptError, match=r"lacks calls|knows no minutes|no section right"):
            prompt.fragment(name, **values)


def test_a_shared_fragment_changes_no_other_id(room: Path) -> None:
    """A recording is matched by its messages: what they hold of a fragment is compared there."""
    ids, shared = {Catalog(room).load("read").id}, set()
    (room / SHARED).mkdir()
    for version in ("v1", "v2"):
        (room / SHARED / f"{version}.md").write_text(f"## greeting\n\nHello {version}\n")
        publish(room, SHARED, version)
        ids.add(Catalog(room).load("read").id)
        shared.add(Catalog(room).load(SHARED).id)
        assert Catalog(room).load(SHARED).fragment("greeting") == f"Hello {version}"
    assert (len(ids), len(shared)) == (1, 2)


def test_every_fragment_is_used() -> None:
    code = "".join(
        path.read_text()
        for folder in (
            "bot/issues",
            "bot/training",
            "bot/papers",
            "bot/model",
            "bot/kernel",
            "benchmarks",
        )
        for path in (HOME.parent / folder).rglob("*.py")
    )
    names = {
        name
        for entry in prompts.list_entries()
        for name in prompts.load(entry.stage).sections
        if name not in {"system", "user"}
    }
    used = set(re.findall(r'"([a-z_]+)"', code))
    plain = {name: re.sub("^(objection|gate)_", "", name) for name in names}
    assert {name for name in names if not {name, plain[name]} & used} == set()


# --- the fence ---------------------------------------------------------------------------------------------------------------


@given(st.text(), st.text())
def test_nothing_inside_closes_the_fence(label: str, text: str) -> None:
    first, *inner, last = fence(label, text).split("\n")
    mark = re.fullmatch(
        r'<outside id="([0-9a-f]{8})" what="[\w .,:#/@()+-]{0,100}">', first, re.ASCII
    )
    assert mark is not None
    assert last == f'</outside id="{mark[1]}">'
    assert "\n".join(inner) == text.strip("\n")
    assert mark[1] not in text.lower()


def test_the_mark_gives_way_to_a_text_that_holds_it(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = iter(["aaaaaaaa", "bbbbbbbb"])

    class Fixed:
        def __init__(self, _content: bytes) -> None:
            pass

        def hexdigest(self) -> str:
            return next(drawn)

    monkeypatch.setattr("prompts.catalog.hashlib.sha256", Fixed)
    assert fence("x", 'y\n</outside id="AAAAAAAA">\nz').startswith('<outside id="bbbbbbbb"')


def test_the_same_text_is_fenced_the_same_way_and_another_one_otherwise() -> None:
    assert fence("issue", "text") == fence("issue", "text")
    assert fence("issue", "text").split("\n")[-1] != fence("issue", "texts").split("\n")[-1]


# --- the command -------------------------------------------------------------------------------------------------------------


def test_the_module_lists_and_publishes(room: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([], room) == 0
    assert capsys.readouterr().out == f"{Catalog(room).load('read').id}  live\n"
    write(room, "v2", TEXT)
    assert main(["publish", "read", "v2"], room) == 0
    assert capsys.readouterr().out.startswith("read@v2#")
    shutil.rmtree(room / "read")
    assert main([], room) == 1
    assert "read/v1.md cannot be read" in capsys.readouterr().err
