"""A program of a repository, reproduced from the command line with what its own files pin."""

import json
import os
import subprocess
from pathlib import Path

from tests.e2e.test_cli import reprise
from tests.integration.test_builder import Index, open_to_the_sandbox

REPORT = """# Training fails with a ValueError

Repository: acme/clone
Date: 2024-06-01

```
python tools/train.py --size 5
```

```
Traceback (most recent call last):
  File "/home/me/clone/tools/train.py", line 3, in <module>
    raise ValueError(f"alpha {alpha.version} with beta {beta.version} is too old")
ValueError: alpha 1.0.0 with beta 0.1 is too old
```
"""
TRAIN = """import alpha
import beta
raise ValueError(f"alpha {alpha.version} with beta {beta.version} is too old")
"""


def test_the_pins_of_a_repository_are_installed_and_shown_with_their_lines(tmp_path: Path) -> None:
    """The date alone would take alpha 1.1.0 and beta 0.2."""
    open_to_the_sandbox(tmp_path)
    index = Index(tmp_path)
    for name, version, day in (
        ("alpha", "1.0.0", "2024-01-01"), ("alpha", "1.1.0", "2024-02-01"),
        ("beta", "0.1", "2024-01-01"), ("beta", "0.2", "2024-02-01"),
        ("setuptools", "80.0", "2024-01-01"), ("gamma", "1.0", "2024-01-01"),
    ):  # fmt: skip
        index.wheel(name, version, day)
    clone = tmp_path / "clone"
    (clone / "tools").mkdir(parents=True)
    (clone / "tools" / "train.py").write_text(TRAIN)
    (clone / "requirements.txt").write_text("# the paper's\nalpha==1.0.0\ngamma\n")
    (clone / "poetry.lock").write_text('[[package]]\nname = "beta"\nversion = "0.1"\n')
    dated = {
        **os.environ,
        "GIT_AUTHOR_DATE": "2024-05-01T00:00:00Z",
        "GIT_COMMITTER_DATE": "2024-05-01T00:00:00Z",
    }
    for argv in (
        ("init", "-q", "-b", "main"),
        ("add", "."),
        ("-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-qm", "one"),
    ):
        subprocess.run(("git", *argv), cwd=clone, check=True, env=dated)
    (tmp_path / "report.md").write_text(REPORT)
    done = reprise(
        tmp_path, "reproduce", "report.md", "--sandbox", "process", "--repo", "clone", "--out", "run", "--without", "control,bisect,minimize",
        PIP_INDEX_URL=(index.root / "simple").as_uri(), PIP_CONFIG_FILE="/dev/null", PIP_FIND_LINKS="", REPRISE_CACHE_DIR=str(tmp_path / "cache"),
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    environment = json.loads((tmp_path / "run" / "report.json").read_text())["environment"]
    versions = {row["name"]: row["version"] for row in environment["packages"]}
    assert versions["alpha"] == "1.0.0"
    assert (versions["beta"], versions["gamma"]) == ("0.1", "1.0")
    text = (tmp_path / "run" / "report.md").read_text()
    assert "requirements.txt line 2 says alpha==1.0.0" in text
    assert "poetry.lock line 2 says beta==0.1" in text
    assert "requirements.txt line 3 names it" in text
