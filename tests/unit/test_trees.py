"""The files of a tree for a run: no link is followed, and a giant one is cut."""

from pathlib import Path

import pytest

from bot.kernel import trees


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    secret = tmp_path / "secret.txt"
    secret.write_text("outside")
    root = tmp_path / "tree"
    (root / "lib").mkdir(parents=True)
    (root / ".git").mkdir()
    (root / ".git" / "config").write_text("[core]")
    (root / "a.py").write_text("1")
    (root / "lib" / "b.py").write_text("2")
    (root / "link.txt").symlink_to(secret)
    (root / "linked").symlink_to(tmp_path)
    return root


def test_only_regular_files_inside_are_read(tree: Path) -> None:
    assert trees.read_tree(str(tree)) == {"a.py": b"1", "lib/b.py": b"2"}


def test_no_folder_is_not_the_current_one() -> None:
    assert trees.read_tree("") == {}


@pytest.mark.parametrize(("name", "limit"), [("MOST_FILES", 1), ("MOST_BYTES", 1)])
def test_a_giant_tree_is_cut(
    tree: Path, monkeypatch: pytest.MonkeyPatch, name: str, limit: int
) -> None:
    monkeypatch.setattr(trees, name, limit)
    trees.read_tree.cache_clear()
    assert trees.read_tree(str(tree)) == {"a.py": b"1"}
    trees.read_tree.cache_clear()
