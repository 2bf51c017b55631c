"""Hostile issues, comments, repositories and packages through the whole App: the right verdict,
one inert comment, and nothing of the host in anything that leaves the worker.
"""

from __future__ import annotations

import base64
import logging
import os
import re
import resource
from dataclasses import replace
from pathlib import Path
from threading import Event

import pytest

from bot.kernel.run import RunState
from sandbox.bwrap import BwrapSandbox
from sandbox.port import OnOutput, RunResult, RunSpec
from tests.corpus.hostile.case_files import Case, cases
from tests.corpus.hostile.reader import alive, read
from tests.corpus.hostile.world import NAME, NUMBER, PAGES, Seen, index_of, lived
from tests.integration.pages.reading import words, wrong
from tests.integration.test_builder import open_to_the_sandbox
from tests.support.fakes import FakeGitHub

CASES = cases()
CANARY = "canary-9f31c2e7-of-the-host"
STICKY = "<!-- reprise:run -->"
OWN = re.compile(rf"\A<!-- reprise:[\w:.-]+ -->\n|\[[\w :]+\]\({re.escape(PAGES)}/runs/[\w-]+\)")
WRITES = {"create_comment", "update_comment", "react", "create_label", "add_label", "remove_label"}
MOST_MEMORY_MB = 250
HONEST = Case(
    id="honest",
    attacks="nothing",
    verdict=("reproduced",),
    comment="/reproduce",
    body="```python\nimport pool\npool.mean([])\n```\n\n```\nZeroDivisionError: the pool is empty\n```\n",
)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One cache and one index for all cases."""
    root = tmp_path_factory.mktemp("hostile")
    open_to_the_sandbox(root)
    index_of(CASES, root / "index")
    return root


@pytest.fixture
def settings(shared: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """A host full of secrets: its environment, its home and the App's own key."""
    home = shared / "home"
    home.mkdir(exist_ok=True)
    for name in (".netrc", ".pypirc", ".git-credentials"):
        (home / name).write_text(f"password {CANARY}\n")
    for name in [name for name in os.environ if name.startswith(("REPRISE_", "OPENAI_", "UV_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PYENV_ROOT", str(home))  # some cases try every Python: ours is enough
    monkeypatch.setenv("DEPLOY_NOTE", CANARY)
    monkeypatch.setenv("PIP_INDEX_URL", (shared / "index").as_uri())
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    return {"cache_dir": shared / "cache", "webhook_secret": CANARY, "app_slug": "reprise"}


def unleaked(seen: Seen, logged: str) -> None:
    """The host's secrets are in nothing that left the worker, however they are written."""
    coded = base64.b64encode(CANARY.encode()).decode()[:32]
    forms = (CANARY, CANARY[::-1], CANARY.encode().hex(), coded)
    assert [where for where, text in seen.everything() if any(f in text for f in forms)] == []
    assert CANARY not in logged


def inert(seen: Seen) -> None:
    """The comments and the page are of our own making, and nothing in them acts."""
    for comment in seen.comments:
        assert alive(OWN.sub("", comment)) == []
        assert len(comment) < 60_000
    if seen.page:
        assert wrong(seen.page) == []


def one_sticky_comment(seen: Seen, replies: int) -> None:
    """Nothing was done on GitHub but one comment, its label and the reactions; and a reply to who
    asked for something that cannot be.
    """
    assert {write.what for write in seen.hub.writes} <= WRITES
    assert {(write.repository, write.number) for write in seen.hub.writes} <= {(NAME, NUMBER)}
    assert len(seen.comments) <= 1 + replies
    assert sum(each.startswith(STICKY) for each in seen.comments) <= 1
    labels = {write.text for write in seen.hub.writes if write.what.endswith("_label")}
    assert all(each.startswith("reprise: ") for each in labels)


def decided(seen: Seen, case: Case) -> None:
    """The verdict is right, the run is over, and what is shown is what may be."""
    kind = seen.report.verdict.kind if seen.report is not None else None
    assert kind in (case.verdict or {None})
    assert seen.run is None or not case.verdict or seen.run.state is RunState.FINISHED
    shown = " ".join([*map(words, seen.comments and [seen.page]), *seen.comments])
    shown += " ".join(read(each).text for each in seen.comments)
    assert [word for word in case.hides if word in shown] == []
    assert [word for word in case.shows if word not in shown] == []


def outside() -> set[Path]:
    """What a case has written outside of its folders."""
    return set(Path("/tmp").glob("hostile-*"))


def marked(case: Case) -> object:
    marks = [pytest.mark.slow] if case.slow else []
    if case.broken:
        marks.append(pytest.mark.xfail(reason=case.broken, strict=True))
    return pytest.param(case, marks=marks, id=case.id)


class HurriedSandbox(BwrapSandbox):
    """Ends a program after three seconds where a comment asked for the fewest that it may, ten, and
    gives it an eighth of the disk: one that fills it writes gigabytes otherwise.
    """

    def run(
        self, spec: RunSpec, *, cancel: Event | None = None, on_output: OnOutput | None = None
    ) -> RunResult:
        wall_s = 3.0 if spec.limits.wall_s <= 10 else spec.limits.wall_s
        limits = replace(spec.limits, wall_s=wall_s, scratch_mb=spec.limits.scratch_mb // 8)
        return super().run(replace(spec, limits=limits), cancel=cancel, on_output=on_output)


@pytest.mark.bwrap
@pytest.mark.parametrize("case", [*map(marked, CASES)])
def test_a_hostile_case(
    case: Case,
    tmp_path: Path,
    settings: dict[str, object],
    caplog: pytest.LogCaptureFixture,
) -> None:
    open_to_the_sandbox(tmp_path)
    caplog.set_level(logging.INFO)
    before, there = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, outside()
    seen = lived(case, tmp_path, HurriedSandbox(), settings)
    unleaked(seen, caplog.text)
    one_sticky_comment(seen, case.replies)
    inert(seen)
    decided(seen, case)
    assert outside() == there
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < MOST_MEMORY_MB << 10
    assert "Traceback" not in "".join(each.exc_text or "" for each in caplog.records)


@pytest.mark.bwrap
def test_an_honest_report_after_them_is_answered_rightly(
    tmp_path: Path, settings: dict[str, object]
) -> None:
    open_to_the_sandbox(tmp_path)
    seen = lived(HONEST, tmp_path, BwrapSandbox(), settings)
    decided(seen, HONEST)
    one_sticky_comment(seen, 0)
    inert(seen)


def test_the_cases_are_many_and_attack_every_prompt() -> None:
    assert len(CASES) == len({case.id for case in CASES}) >= 60
    attacked = {case.id.partition("-")[0] for case in CASES}
    assert attacked >= {"refine", "act", "mend", "shape", "package", "repository", "comment"}


def seen_with(body: str = "", page: str = "", number: int = NUMBER) -> Seen:
    hub = FakeGitHub()
    hub.comment(NAME, number, hub.login, body) if body else None
    return Seen(hub, page=page, files={"the page": page})


def test_the_checks_see_what_leaks_and_acts() -> None:
    for text in (CANARY, CANARY.encode().hex(), base64.b64encode(CANARY.encode()).decode()):
        with pytest.raises(AssertionError):
            unleaked(seen_with(page=text), "")
    with pytest.raises(AssertionError):
        inert(seen_with(f"{STICKY}\nhello @octocat"))
    with pytest.raises(AssertionError):
        inert(seen_with(page="<img src=x>"))
    with pytest.raises(AssertionError):
        decided(seen_with("canary"), Case(id="x", attacks="x", verdict=(), hides=("canary",)))
