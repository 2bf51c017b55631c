"""What a release consists of, built as the workflow builds it; nothing is published."""

import hashlib
import json
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = "deploy/release/build.sh"
PARTS = ("bot", "handlers", "sandbox", "prompts", "deploy/release")
FILES = ("pyproject.toml", "uv.lock", "README.md", "LICENSE", "CHANGELOG.md")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A copy of what a release is built from."""
    copy = tmp_path / "source"
    for part in PARTS:
        shutil.copytree(ROOT / part, copy / part, ignore=shutil.ignore_patterns("__pycache__"))
    for name in FILES:
        shutil.copy(ROOT / name, copy / name)
    return copy


def build(source: Path, tag: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [source / BUILD, tag, source.parent / "out"], capture_output=True, text=True, timeout=300
    )


def test_a_release_has_its_files_notes_and_checksums(source: Path) -> None:
    done = build(source, "v0.1.0")
    assert done.returncode == 0, done.stderr
    out = source.parent / "out"
    sums = dict(
        reversed(line.split("  ")) for line in (out / "SHA256SUMS").read_text().splitlines()
    )
    assert set(sums) == {
        "reprise-0.1.0-py3-none-any.whl",
        "reprise-0.1.0.tar.gz",
        "reprise-0.1.0.cdx.json",
    }
    for name, digest in sums.items():
        assert hashlib.sha256((out / name).read_bytes()).hexdigest() == digest
    assert "### Reproduce a bug report" in (out / "notes.md").read_text()
    parts = json.loads((out / "reprise-0.1.0.cdx.json").read_text())["components"]
    assert {"fastapi", "pydantic", "openai"} <= {part["name"] for part in parts}
    with zipfile.ZipFile(out / "reprise-0.1.0-py3-none-any.whl") as wheel:
        assert "bot/report/live.js" in wheel.namelist()


def test_a_tag_that_is_not_the_version_is_refused(source: Path) -> None:
    done = build(source, "v9.9.9")
    assert done.returncode == 1
    assert "v9.9.9 is not v0.1.0" in done.stderr
    assert not (source.parent / "out").exists()


def test_a_version_without_notes_is_refused(source: Path) -> None:
    project = source / "pyproject.toml"
    project.write_text(project.read_text().replace('version = "0.1.0"', 'version = "0.2.0"', 1))
    done = build(source, "v0.2.0")
    assert done.returncode == 1
    assert "no section 0.2.0" in done.stderr
