"""`python -m benchmarks faults` with a model: asked over HTTP and recorded, then replayed without one."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from benchmarks.cassettes import Cassettes
from benchmarks.fault_runs import Bench, find, run
from benchmarks.faults import FaultBench, summarise
from bot.kernel.settings import Settings
from bot.kernel.training_types import Epoch
from sandbox.process import ProcessSandbox
from tests.support import traces
from tests.support.endpoint import FakeEndpoint, says
from tests.support.jobs import program_options

PROGRAM = "import keras\nlabels = labels[::-1]\nmodel.fit(inputs, labels)\n"
OPINION = {
    "purpose": "It classifies digits.",
    "faults": [
        {"fault": "CPP", "layers": [], "file": "", "line": 0, "before": "", "after": "", "quote": "labels = labels[::-1]",
         "reason": "Labels are reversed, inputs are not.", "change": "Leave them."},
        {"fault": "HBS", "layers": [], "file": "", "line": 0, "before": "", "after": "", "quote": "batch_size=4096", "reason": "x", "change": ""},
    ],
}  # fmt: skip


@pytest.fixture
def bench(tmp_path: Path) -> Path:
    """Two recorded programs: one whose loss stays flat, and one that learned."""
    for name, losses in (("flat", traces.FLAT), ("good", traces.GOOD)):
        case = {
            "title": "It stays at 10 %",
            "body": "Why?",
            "program": PROGRAM,
            "framework": "keras",
        }
        written(tmp_path / "cases" / f"{name}.json", json.dumps(case))
        written(tmp_path / "keys" / f"{name}.json", json.dumps({"ground_truth": ["CPP", "HNE"]}))
        values = {"accuracy": 0.99, "val_accuracy": 0.98}
        trace = traces.trace(losses=losses)
        rows = (*trace.models, *trace.losses, *trace.optimizers, *trace.plans, *trace.data)
        lines = [row.model_dump_json() for row in (*rows, *trace.steps)]
        lines += (
            [Epoch(model="m", epoch=0, step=499, values=values).model_dump_json()]
            if name == "good"
            else []
        )
        out = tmp_path / "out" / name
        written(out / "training-1.jsonl", "\n".join(lines))
        written(out / "figures.json", '{"seconds": 1.0, "error": ""}')
        written(out / ".reprise", "")
    return tmp_path


def test_a_key_with_an_unknown_code_is_one_sentence(bench: Path) -> None:
    written(bench / "keys" / "flat.json", json.dumps({"ground_truth": ["no-such-fault"]}))
    plain = Bench(Settings(), program_options(), ProcessSandbox(), bench / "out")
    rows = {row.id: row for row in run(find(bench), plain, jobs=1)}
    assert rows["flat"].error == ("the key of flat is unclear: 'no-such-fault' is no fault code")
    assert rows["good"].error == ""
    assert summarise(rows.values()).summary.errors == ("flat",)


def written(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def judged(folder: Path, url: str, **cassettes: Path) -> FaultBench:
    settings = Settings(model_url=url, model_structured="json_schema")
    options = program_options(model="by-hand")
    kept = Cassettes(**cassettes)
    whole = Bench(settings, options, ProcessSandbox(), folder / "out", cassettes=kept)
    return summarise(run(find(folder), whole, 1))


def test_what_a_model_adds_is_told_apart_and_a_replay_is_the_same(bench: Path) -> None:
    cassettes = bench / "cassettes"
    with FakeEndpoint([says(json.dumps(OPINION), usage=(900, 80))]) as endpoint:
        first = judged(bench, endpoint.url, record=cassettes)
        assert len(endpoint.asked) == 1, "nobody is asked about a run that learned"
        assert "It stays at 10 %" in json.dumps(endpoint.asked[0].body)
    flat, good = first.cases
    assert flat.tools["model"] == ("CPP",)
    assert flat.found == ("CPP",)
    assert flat.tools["rules"] == (), "a flat curve alone is a doubt"
    assert "1 fault dropped for lack of evidence" in flat.opinion
    assert (flat.usage.calls, flat.usage.input_tokens, first.summary.usage.output_tokens) == (
        1,
        900,
        80,
    )
    assert (good.found, good.tools["model"]) == ((), ())
    assert "the run learned its task" in good.opinion
    assert [path.name for path in cassettes.iterdir()] == ["flat.jsonl"]

    (bench / "out" / "flat" / "exchanges.jsonl").unlink()
    again = judged(bench, "http://127.0.0.1:9/v1", replay=cassettes)
    assert again.cases[0] == flat
    assert again.cases[1].opinion == "", "a case without a recording runs without a model"


def test_a_recording_of_another_question_is_no_answer(bench: Path) -> None:
    with FakeEndpoint([says(json.dumps(OPINION))]) as endpoint:
        judged(bench, endpoint.url, record=bench / "cassettes")
    case = bench / "cases" / "flat.json"
    case.write_text(case.read_text().replace("Why?", "How?"))
    found = judged(bench, "http://127.0.0.1:9/v1", replay=bench / "cassettes").cases[0]
    assert found.found == found.tools["rules"]
    assert "There is no recorded answer" in found.opinion


def test_a_folder_that_a_run_left_is_used_again(bench: Path) -> None:
    program = "raise ValueError('no data')\n"
    case = {"title": "x", "body": "x", "program": program, "framework": "torch"}
    written(bench / "cases" / "fails.json", json.dumps(case))
    written(bench / "keys" / "fails.json", json.dumps({"ground_truth": ["CPP"]}))
    sandbox, python = ProcessSandbox(), Path(sys.executable)
    first = Bench(Settings(), program_options(), sandbox, bench / "out", python, fresh=True)
    only = find(bench, ["fails"])
    settings = Settings(model_url="http://127.0.0.1:9/v1")
    model, kept = program_options(model="nobody"), Cassettes(record=bench / "cassettes")
    asked = Bench(settings, model, sandbox, bench / "out", python, cassettes=kept)
    for each in (first, first, asked):
        (row,) = run(only, each, 1)
        assert "ValueError: no data" in row.error
        assert row.usage.calls == 0, "there is nothing to have an opinion on"
