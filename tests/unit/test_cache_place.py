"""Where environments are kept: where the user of a run can read them."""

from __future__ import annotations

from pathlib import Path

from bot.settings import cache_place


def test_root_with_a_closed_home_keeps_environments_where_others_may_look(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    own = home / ".cache" / "reprise"
    assert cache_place(own, root=True) == Path("/var/cache/reprise")
    assert cache_place(own, root=False) == own


def test_root_with_an_open_home_keeps_its_own() -> None:
    own = Path("/usr/cache/reprise")
    assert cache_place(own, root=True) == own
