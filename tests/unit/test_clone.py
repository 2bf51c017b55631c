"""What a clone holds beside its commits: told, and neither built nor run."""

from __future__ import annotations

import os
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bot.environment.git import Git
from bot.kernel.environment import RepoSource
from bot.kernel.errors import UserError
from sandbox.cache import Cache

IDENTITY = ("-c", "user.name=t", "-c", "user.email=t@example.invalid", "-c", "commit.gpgsign=false")


def git(where: Path, *argv: str) -> str:
    env = {"PATH": os.environ["PATH"], "HOME": str(where), "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(
        ["git", *IDENTITY, *argv], cwd=where, env=env, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    where = tmp_path / "clone"
    where.mkdir()
    git(where, "init", "-q", "-b", "main")
    for text in ("one\n", "two\n"):
        (where / "a.py").write_text(text, encoding="utf-8")
        git(where, "add", "-A")
        git(where, "commit", "-qm", text)
    return where


def changed(clone: Path, ref: str = "", commit: str = "") -> bool:
    source = RepoSource(url="", path=str(clone), ref=ref, commit=commit)
    found = Git(Cache(clone.parent / "cache"), dict(os.environ)).checkout(source, None)
    assert (found.tree / "a.py").read_text(encoding="utf-8") in {"one\n", "two\n"}, (
        "what is built is the commit"
    )
    return found.changed


@pytest.mark.parametrize("staged", [True, False])
def test_changes_that_are_not_committed_are_told(clone: Path, staged: bool) -> None:
    assert not changed(clone)
    (clone / "a.py").write_text("changed\n", encoding="utf-8")
    if staged:
        git(clone, "add", "-A")
    index = (clone / ".git" / "index").read_bytes()
    assert changed(clone)
    assert changed(clone, ref="main")
    assert (clone / ".git" / "index").read_bytes() == index
    git(clone, "commit", "-qam", "three")
    (clone / "a.py").write_text("two\n", encoding="utf-8")
    git(clone, "commit", "-qam", "four")
    assert not changed(clone)


def test_another_commit_that_was_asked_for_is_not_told(clone: Path) -> None:
    (clone / "a.py").write_text("changed\n", encoding="utf-8")
    first = git(clone, "rev-parse", "HEAD^")
    assert not changed(clone, ref=first)
    assert not changed(clone, commit=first)


def test_what_was_never_added_and_what_only_has_another_time_is_no_change(clone: Path) -> None:
    (clone / "notes.txt").write_text("mine\n", encoding="utf-8")
    os.utime(clone / "a.py", (1, 1))
    assert not changed(clone)


def test_a_worktree_of_its_own_has_an_index_of_its_own(clone: Path) -> None:
    git(clone, "worktree", "add", "-q", "-b", "side", "../side")
    side = clone.parent / "side"
    assert not changed(side)
    (side / "a.py").write_text("changed\n", encoding="utf-8")
    assert changed(side)
    assert not changed(clone)


def test_looking_for_changes_runs_nothing_of_the_clone(clone: Path) -> None:
    ran = clone.parent / "ran"
    (clone / ".gitattributes").write_text("*.py filter=own diff=own\n", encoding="utf-8")
    git(clone, "add", "-A")
    git(clone, "commit", "-qm", "attributes")
    for name in ("filter.own.clean", "diff.own.command", "diff.own.textconv", "core.fsmonitor"):
        git(clone, "config", name, f"touch {ran}; cat")
    (clone / "a.py").write_text("changed\n", encoding="utf-8")
    assert changed(clone)
    assert not ran.exists()


def test_a_clone_without_the_files_of_other_commits_is_enough(clone: Path) -> None:
    """`git clone --filter=blob:none` has only the files of what is checked out."""
    partial = clone.parent / "partial"
    (clone / "weights.bin").write_bytes(bytes(range(256)) * 40)
    git(clone, "add", "-A")
    git(clone, "commit", "-qm", "weights")
    git(clone, "config", "uploadpack.allowFilter", "true")
    git(clone.parent, "clone", "-q", "--filter=blob:none", f"file://{clone}", str(partial))
    git(partial, "remote", "remove", "origin")
    source = RepoSource(url="", path=str(partial))
    checkout = Git(Cache(clone.parent / "cache"), dict(os.environ)).checkout(source, None)
    assert (checkout.tree / "a.py").read_text(encoding="utf-8") == "two\n"
    with pytest.raises(UserError, match="cannot be cloned"):
        changed(partial, ref="HEAD~2")
    small = clone.parent / "small"
    limit = ("--bare", "--filter=blob:limit=1k", f"file://{clone}", str(small))
    git(clone.parent, "clone", "-q", *limit)
    git(small, "remote", "remove", "origin")
    source = RepoSource(url="", path=str(small))
    checkout = Git(Cache(clone.parent / "other"), dict(os.environ)).checkout(source, None)
    assert checkout.missing == ("weights.bin",)
    assert [path.name for path in checkout.tree.iterdir()] == ["a.py"]


def test_what_a_partial_clone_lacks_is_fetched_from_nowhere(clone: Path) -> None:
    """Its configuration may name a program for that."""
    partial, ran = clone.parent / "partial", clone.parent / "ran"
    git(clone, "config", "uploadpack.allowFilter", "true")
    git(clone.parent, "clone", "-q", "--bare", "--filter=tree:0", f"file://{clone}", str(partial))
    git(partial, "config", "remote.origin.uploadpack", f"touch {ran}; git-upload-pack")
    with pytest.raises(UserError):
        changed(partial)
    with pytest.raises(UserError):
        changed(partial, ref="0" * 40)
    assert not ran.exists()


def test_finding_the_commit_of_a_day_checks_no_signature(clone: Path) -> None:
    """A partial clone is read where it is, and its configuration may name a program for that."""
    ran, program = clone.parent / "ran", clone.parent / "gpg"
    program.write_text(f"#!/bin/sh\ntouch {ran}\n", encoding="utf-8")
    program.chmod(0o755)
    git(clone, "checkout", "-q", "-b", "other", "HEAD^")
    git(clone, "commit", "-q", "--allow-empty", "-m", "three")
    git(clone, "checkout", "-q", "main")
    git(clone, "merge", "-q", "--no-ff", "-m", "four", "other")
    head, *rest = git(clone, "cat-file", "commit", "HEAD").partition("\n\n")
    signature = "gpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----"
    signed = clone.parent / "signed"
    signed.write_text("".join((f"{head}\n{signature}", *rest, "\n")), encoding="utf-8")
    git(clone, "update-ref", "HEAD", git(clone, "hash-object", "-t", "commit", "-w", str(signed)))
    git(clone, "config", "uploadpack.allowFilter", "true")
    partial = clone.parent / "partial"
    git(clone.parent, "clone", "-q", "--filter=blob:none", f"file://{clone}", str(partial))
    git(partial, "remote", "remove", "origin")
    git(partial, "config", "log.showSignature", "true")
    git(partial, "config", "gpg.program", str(program))
    git(partial, "log", "-1")
    assert ran.exists(), "git itself would start it"
    ran.unlink()
    reader = Git(Cache(clone.parent / "cache"), dict(os.environ))
    source = RepoSource(url="", path=str(partial))
    with pytest.raises(UserError):
        reader.checkout(source, datetime(2000, 1, 1, tzinfo=UTC))
    assert not ran.exists()
