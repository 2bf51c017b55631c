"""Files that nobody has committed, as a repository with one commit: code that was written here is
then built and run like any other.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from bot.kernel.errors import UserError
from sandbox import subprocesses
from sandbox.cache import PART, Cache
from sandbox.port import PATH

_DAY = "2000-01-01T00:00:00+00:00"
"""Of every commit, so that equal files make equal commits."""
_IDENTITY = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "reprise"), ("EMAIL", "reprise@localhost"), ("DATE", _DAY))
}
_PLAIN_COMMIT = ("-c", "commit.gpgsign=false", "-c", f"core.hooksPath={os.devnull}")
_ALONE = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0"}


def commit_files(files: Mapping[str, str], cache: Cache) -> Path:
    """A repository in the cache whose only commit has these files; equal files, one repository. It
    stays there as long as `cache` lives. Raises UserError where git cannot make it.
    """
    content = json.dumps(sorted(files.items())).encode()
    name = hashlib.sha256(content).hexdigest()[:20]
    target = cache.folder("written") / name
    with cache.guarded(f"written-{name}"):
        if not target.is_dir():
            work = target.with_name(f"{PART}{name}")
            shutil.rmtree(work, ignore_errors=True)  # a killed process left it
            work.mkdir(mode=0o755)
            try:
                _commit(work, files)
                work.rename(target)
            finally:
                shutil.rmtree(work, ignore_errors=True)
        cache.touch(target, name)
    return target


def _commit(work: Path, files: Mapping[str, str]) -> None:
    for path, text in files.items():
        file = work / path
        is_gits = ".git" in path.lower().split("/")  # its hooks would run here
        if is_gits or not file.resolve().is_relative_to(work.resolve()):
            raise UserError(f"{path!r} leads out of its folder.", "Write it elsewhere.")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8", errors="replace", newline="")
    argvs = (
        ("init", "-q", "--template=", "-b", "main"),
        ("-c", "core.autocrlf=false", "add", "-A", "-f"),
        (*_PLAIN_COMMIT, "commit", "-q", "--allow-empty", "-m", "Written"),
    )
    for argv in argvs:
        git = shutil.which("git") or "git"
        result = subprocesses.run((git, *argv), env={"PATH": PATH, **_ALONE, **_IDENTITY}, cwd=work)
        if result.code:
            raise UserError(f"git cannot keep the code: {result.err.strip()[:200]}", "Check git.")
