"""Stability: rules read one list every time, and a model's readings are compared by their sets."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.paper_stability import StabilityOptions, answers, mean_jaccard, run_stability
from bot.kernel.paper import Criterion, PaperQuote
from bot.kernel.settings import Settings
from tests.support.endpoint import FakeEndpoint, says
from tests.support.papers import CORPUS, run_here
from tests.support.sandbox import FakeSandbox

PATHS = [CORPUS / "rff", CORPUS / "momentum"]


def row(kind: str, value: str) -> tuple[str, str, str]:
    return kind, value, "unknown"


def test_the_index_is_that_of_all_pairs() -> None:
    one, two = frozenset({row("a", "1"), row("b", "2")}), frozenset({row("a", "1")})
    assert mean_jaccard([one, one, one]) == 1.0
    assert mean_jaccard([one, two]) == 0.5
    assert mean_jaccard([one, two, frozenset()]) == pytest.approx(0.5 / 3)
    assert mean_jaccard([frozenset(), frozenset()]) == 1.0
    stated = Criterion(kind="loss", name="loss", stated="mse")
    assert answers([stated, Criterion(kind="seeds", name="seeds")]) == {("loss", "mse", "unknown")}
    quote = PaperQuote(text="We draw two scales, and then one.", sentence="S1.1")
    ways = [
        Criterion(kind="method", name="waves", stated=words, quote=quote)
        for words in ("We draw two scales", "two scales, and then one")
    ]
    assert answers(ways[:1]) == answers(ways[1:]) == {("method", "S1.1", "unknown")}


def stable_kinds() -> list[tuple[str, str]]:
    key = json.loads((CORPUS / "rff" / "expected.json").read_text())
    return list(key["criteria"].items())


def options(tmp_path: Path, **more: object) -> StabilityOptions:
    settings = Settings(**{"cache_dir": tmp_path / "cache", **more})  # type: ignore[arg-type]
    return StabilityOptions(3, FakeSandbox(run_here), settings)


def test_rules_read_the_same_every_time(tmp_path: Path) -> None:
    bench = run_stability(PATHS, options(tmp_path))
    assert [one.jaccard for one in bench.rows] == [1.0, 1.0]
    assert all(one.criteria >= 5 and not one.by_model for one in bench.rows)
    assert sum(one.tokens for one in bench.rows) == 0


def test_a_model_is_asked_anew_each_time_and_its_exchanges_are_replayed(tmp_path: Path) -> None:
    """Of three times two readings the last says something else; the code is read alike."""
    entry = {"kind": "width", "value": "200", "sentence": "S1.2", "quote": "two scales"}
    sentences = iter([[entry]] * 4 + [[]] * 2)
    said = []

    def answer(body: dict[str, Any]) -> object:
        if "hold the code" in body["messages"][0]["content"]:
            return says(json.dumps({"judgements": []}))
        said.append(next(sentences))
        return says(json.dumps({"criteria": said[-1]}))

    with FakeEndpoint(answer) as endpoint:  # type: ignore[arg-type]
        asked = replace(
            options(tmp_path, model_url=endpoint.url), model="by-hand", out=tmp_path / "out"
        )
        bench = run_stability(PATHS[:1], asked)
        assert len(endpoint.asked) == 12
    (only,) = bench.rows
    assert (only.by_model, only.unstable) == (1, ("width: 200",))
    count = len(stable_kinds())
    assert only.jaccard == pytest.approx((1 + 2 * count / (count + 1)) / 3)
    again = replace(options(tmp_path), model="by-hand", replay=tmp_path / "out")
    assert run_stability(PATHS[:1], again).rows == bench.rows
    assert len(list((tmp_path / "out").glob("rff/*/exchanges.jsonl"))) == 3
