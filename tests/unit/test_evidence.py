"""An import is matched to a distribution by what the index tells of it."""

import pytest

from bot.environment import evidence
from bot.environment.evidence import ProjectFacts


def known(name: str, *modules: str, project: str = "", mentions: str = "") -> ProjectFacts:
    projects = (project,) if project else ()
    return ProjectFacts(name, frozenset(modules) if modules else None, projects, (mentions,))


def test_the_modules_of_a_wheel_are_read_off_its_files() -> None:
    files = (
        "tool/__init__.py", "tool/inner/deep.py", "single.py", "native.cpython-311-x86_64-linux-gnu.so",
        "tool-1.0.data/purelib/moved/__init__.py", "tool-1.0.data/scripts/run.py", "tool-1.0.dist-info/METADATA",
        "docs/readme.txt",
    )  # fmt: skip
    assert evidence.modules(files) == {
        "tool", "tool.inner", "tool.inner.deep", "single", "native", "moved",
    }  # fmt: skip


def test_the_repositories_that_links_name() -> None:
    links = (
        "https://github.com/Some-Org/Tool/issues",
        "https://www.github.com/some-org/tool.git",
        "https://tool.example.org/a/b",
        "https://gitlab.com/other/thing#readme",
        "https://github.com/alone",
        "http://[broken",
    )
    assert evidence.projects(links) == ("some-org/tool", "other/thing")


@pytest.mark.parametrize(
    ("module", "repository", "candidates", "chosen", "why"),
    [
        ("tool", "org/tool", [known("tool", "tool", project="org/tool")], "tool", "its links name org/tool"),
        ("tool", "Org/Tool", [known("tool", "tool", project="old/tool")], "tool", "its files contain tool"),
        ("tool", "org/tool", [known("tool", "tool", project="old/tool", mentions="org/tool")], "tool", "its files contain tool"),
        ("tool", "acme/tool", [known("tool", "tool", project="the-acme/toolbox")], "tool", "its files contain tool"),
        ("tool", "org/tool", [known("tool", "tool", project="org/elsewhere")], "tool", "its files contain tool"),
        ("tool tool.net", "org/tool", [known("tool", "tool", "tool.net", project="old/tool")], "tool",
         "its files contain tool"),
        ("tool tool.net tool.old", "org/lib", [known("tool", "tool", "tool.net")], "tool", "its files contain tool"),
        ("tool tool.net", "org/tool", [known("tool", "tool", "tool.cli", project="old/tool")], "",
         "the tool on the index has no module tool.net"),
        ("tool tool.net", "org/tool", [known("tool", "tool", "tool.cli", project="org/tool")], "tool",
         "its links name org/tool"),
        ("tool", "org/tool", [known("tool", "tool", project="them/serpent")], "", "the tool on the index belongs to them/serpent"),
        ("tool", "org/dm-tool", [known("tool", "tool", project="them/serpent"), known("dm-tool", "tool", project="org/dm-tool")],
         "dm-tool", "its links name org/dm-tool"),
        ("tool", "org/tool", [known("tool", "other"), known("tool-ml", "tool")], "tool-ml", "its files contain tool"),
        ("tool", "org/lib", [known("tool", "other", project="them/serpent")], "", "the tool on the index has no module tool"),
        ("tool", "org/lib", [known("tool", "tool", project="them/serpent")], "tool", "its files contain tool"),
        ("tool_extras", "org/tool", [known("tool-extras", "tool_extras", project="them/extras")], "tool-extras",
         "its files contain tool_extras"),
        ("tool", "", [known("tool", "tool", project="them/serpent")], "tool", "its files contain tool"),
        ("tool", "org/lib", [known("tool")], "tool", "only its name matches"),
        ("tool", "org/lib", [], "", ""),
    ],
)  # fmt: skip
def test_what_speaks_for_a_distribution_decides(
    module: str, repository: str, candidates: list[ProjectFacts], chosen: str, why: str
) -> None:
    assert evidence.choose(module.split(), repository, candidates) == (chosen, why)


def test_a_distribution_without_modules_of_its_own_may_bring_any() -> None:
    bundle = ProjectFacts("tool", frozenset(), needs=("tool-core",))
    assert evidence.choose(["tool"], "org/lib", [bundle])[0] == "tool"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("dm-haiku", "haiku", True),
        ("pytorch_widgets", "widgets", True),
        ("segment-anything", "segment_anything", True),
        ("abc", "abcdef", False),
        ("serpent", "tool", False),
        ("torch", "pytorch", True),
    ],
)
def test_names_of_one_project_are_alike(one: str, other: str, same: bool) -> None:
    assert evidence.alike(one, other) is same
