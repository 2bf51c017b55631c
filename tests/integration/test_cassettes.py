"""Recorded answers of a model, replayed through the whole pipeline: a real index, real
environments, a real sandbox.
"""

from __future__ import annotations

import json
from pathlib import Path
from threading import Event

import pytest

from benchmarks.scoring import load_key, score
from bot.app import bootstrap
from bot.cli.sources import from_text
from bot.kernel.dialogue import Exchange, ModelAnswer, Question
from bot.kernel.files import read_exchanges
from bot.kernel.job import ReproduceIssue
from bot.kernel.settings import Settings
from bot.model.cassette import Cassette
from bot.report.run_folder import Folder
from prompts import load
from sandbox.port import Sandbox, SandboxUnavailable
from sandbox.select import choose
from tests.support.fakes import ListListener
from tests.support.jobs import issue_job

CASSETTES = Path(__file__).parent.parent / "cassettes"
NAMES = sorted(path.stem for path in CASSETTES.glob("*.jsonl"))
AGAIN = "record again: python -m benchmarks issues tests/cassettes --only {} --fresh --model MODEL --record tests/cassettes"


@pytest.fixture(scope="module")
def sandbox() -> Sandbox:
    """Bubblewrap; the issues are our own, so that a plain process will do where it is missing."""
    try:
        return choose("bwrap")
    except SandboxUnavailable:
        return choose("process")


def job(name: str) -> ReproduceIssue:
    path = CASSETTES / "cases" / f"{name}.json"
    return issue_job(from_text(path.read_text(encoding="utf-8"), path.name))


def test_there_are_cassettes_and_each_has_its_issue_and_its_key() -> None:
    assert NAMES
    for folder in ("cases", "keys"):
        assert sorted(path.stem for path in (CASSETTES / folder).glob("*.json")) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_it_was_recorded_with_the_live_prompts(name: str) -> None:
    used = {each.question.prompt for each in read_exchanges(CASSETTES / f"{name}.jsonl", Exchange)}
    stale = sorted(
        f"{each} (live: {live})"
        for each in used
        if (live := load(each.partition("@")[0]).id) != each
    )
    assert not stale, (
        f"{name} was recorded with other prompts: {', '.join(stale)}; {AGAIN.format(name)}"
    )


@pytest.mark.parametrize("name", NAMES)
def test_no_place_of_the_machine_it_was_recorded_on_stands_in_it(name: str) -> None:
    text = (CASSETTES / f"{name}.jsonl").read_text(encoding="utf-8")
    assert not [
        word for word in ("/home/", "/root/", "/work/", "/Users/", "127.0.0.1") if word in text
    ]


@pytest.mark.index
@pytest.mark.parametrize("name", NAMES)
def test_a_replay_comes_to_the_verdict(name: str, sandbox: Sandbox, tmp_path: Path) -> None:
    cassette, folder = Cassette(CASSETTES / f"{name}.jsonl"), Folder(tmp_path / "run")
    try:
        bootstrap.reproduce(
            job(name),
            Settings(),
            folder,
            listener=ListListener(),
            cancel=Event(),
            sandbox=sandbox,
            model=cassette,
        )
    finally:
        folder.close()
    report = json.loads((tmp_path / "run" / "report.json").read_bytes())
    why = "; ".join([report["verdict"]["reason"], *report["notes"]])
    assert not cassette.missed(), (
        f"{name} asked what is not recorded ({', '.join(cassette.missed())}): {why}; {AGAIN.format(name)}"
    )
    left = ", ".join(f"{each.number} {each.question.prompt}" for each in cassette.unused())
    assert not left, f"{name} holds exchanges that nobody asked for: {left}; {AGAIN.format(name)}"
    judged = score(tmp_path / "run", load_key(CASSETTES, name))
    assert judged.right, f"{report['verdict']['kind']}: {judged.reason or why}"
    assert report["cost"]["calls"] == len(read_exchanges(CASSETTES / f"{name}.jsonl", Exchange))
    wanted = json.loads((CASSETTES / "keys" / f"{name}.json").read_bytes()).get("control")
    assert wanted in {None, report["verdict"]["control"]["type"]}


@pytest.mark.index
def test_a_killed_run_asks_for_nothing_that_it_was_told(sandbox: Sandbox, tmp_path: Path) -> None:
    name, told = "humanize-rounding", 1

    class Dies(Cassette):
        def ask(self, question: Question, *, cancel: Event | None = None) -> ModelAnswer:
            if (
                len(self.unused())
                == len(read_exchanges(CASSETTES / f"{name}.jsonl", Exchange)) - told
            ):
                raise SystemExit  # nobody catches it, as nobody hears of a kill
            return super().ask(question, cancel=cancel)

    def once(cassette: Cassette) -> None:
        folder = Folder(tmp_path / "run")
        try:
            bootstrap.reproduce(
                job(name),
                Settings(),
                folder,
                listener=ListListener(),
                cancel=Event(),
                sandbox=sandbox,
                model=cassette,
            )
        finally:
            folder.close()

    with pytest.raises(SystemExit):
        once(Dies(CASSETTES / f"{name}.jsonl"))
    assert len(read_exchanges(tmp_path / "run" / "exchanges.jsonl", Exchange)) == told
    cassette = Cassette(CASSETTES / f"{name}.jsonl")
    once(cassette)
    assert [each.number for each in cassette.unused()] == list(range(1, told + 1))
    report = json.loads((tmp_path / "run" / "report.json").read_bytes())
    assert report["cost"]["calls"] == len(read_exchanges(CASSETTES / f"{name}.jsonl", Exchange))
    assert score(tmp_path / "run", load_key(CASSETTES, name)).right
