"""Numbers beside numbers: where an output prints them, and the verdict on several runs."""

from __future__ import annotations

import pytest

from bot.kernel.attempt import Script
from bot.kernel.paper import Criterion, NumberClaim, PaperQuote, PaperRun
from bot.kernel.statistics import prediction_interval, t_quantile
from bot.kernel.training_types import (
    Layer,
    Optimizer,
    Plan,
    TrainedModel,
    TrainingStep,
    TrainingTrace,
)
from bot.papers import traces
from bot.papers.comparison import compare, decide, printed_value
from bot.papers.evidence import judge, observe
from bot.papers.located import locate
from bot.papers.repository import choose_program


def claim(value: float = 94.2, text: str = "94.2", **more: object) -> NumberClaim:
    fields = {"metric": "accuracy", "is_percent": True, "dataset": "digits", "method": "ours"}
    return NumberClaim(
        title="Table 1, ours, digits", value=value, text=text, quote=PaperQuote(text=text),
        **{**fields, **more},
    )  # fmt: skip


def runs(*values: float | None, **more: object) -> list[PaperRun]:
    return [
        PaperRun(attempt=at + 1, seed=at, value=value, **more) for at, value in enumerate(values)
    ]


@pytest.mark.parametrize(
    ("output", "value"),
    [
        ("test accuracy: 0.9417\n", 94.17),
        ("Accuracy = 94.17%\n", 94.17),
        ("epoch 1 train acc 0.99 val acc 0.91\nfinal test acc 0.9417\n", 94.17),
        ("final test acc 0.9417\ntrain acc 0.999\n", 94.17),
        ("wine test acc 0.80\ndigits test acc 0.9417\niris test acc 0.7\n", 94.17),
        ('{"test_accuracy": 0.9417, "loss": 0.2}\n', 94.17),
        ("| digits | accuracy | 94.17 |\n", 94.17),
        ("test error: 5.83 %\n", 94.17),
        ("accuracy: tensor(0.9417)\n", 94.17),
        ("Top-1 accuracy 94.17 ± 0.20\n", 94.17),
        ("loss: 0.12\n", None),
        ("accuracy improved\n", None),
        ("", None),
    ],
)
def test_the_number_is_found_in_the_output(output: str, value: float | None) -> None:
    printed = printed_value(claim(), output)
    assert (printed.value if printed else None) == (value and pytest.approx(value))


def test_a_printed_spread_comes_in_the_unit_of_the_paper() -> None:
    printed = printed_value(claim(), "mean test accuracy 0.9417 ± 0.0020\n")
    assert printed is not None
    assert (printed.value, printed.spread) == (pytest.approx(94.17), pytest.approx(0.2))


@pytest.mark.parametrize(
    ("paper", "ours", "kind"),
    [
        (claim(), runs(94.1, 94.4, 93.9), "reproduced"),  # in the prediction interval
        (claim(), runs(90.1, 90.4, 89.9), "not_reproduced"),
        (claim(spread=0.5), runs(93.9), "reproduced"),  # within the paper's spread
        (claim(), runs(94.2), "inconclusive"),  # one seed
        (claim(), runs(94.17, 94.17), "reproduced"),  # the same in every run, to the last digit
        (claim(), runs(91.0, 91.0), "not_reproduced"),
        (claim(), runs(91.0), "inconclusive"),
        (claim(), runs(91.0, 93.0), "inconclusive"),
        (claim(spread=0.5), runs(94.2, partial=True), "budget_reached"),
        (claim(spread=0.5), runs(None, problem="failed"), "inconclusive"),
        (claim(), runs(97.0, 97.1, 96.9), "not_reproduced"),  # better is not the same
    ],
)
def test_numbers_decide_the_verdict(paper: NumberClaim, ours: list[PaperRun], kind: str) -> None:
    assert decide(paper, ours).kind == kind


def test_a_partial_run_counts_for_nothing_beside_full_ones() -> None:
    ours = [*runs(94.1, 94.3, 94.2), PaperRun(attempt=4, seed=3, value=50.0, partial=True)]
    assert compare(claim(), ours).runs == 3
    assert decide(claim(), ours).kind == "reproduced"


def test_the_gap_is_relative_to_the_larger_and_one_where_nothing_ran() -> None:
    assert compare(claim(), runs(47.1, 47.1)).gap == pytest.approx(0.5)
    assert compare(claim(), []).gap == 1.0


def test_the_prediction_interval_is_the_textbooks() -> None:
    assert t_quantile(0.975, 4) == pytest.approx(2.776, abs=1e-3)
    assert t_quantile(0.975, 1) == pytest.approx(12.706, abs=1e-3)
    low, high = prediction_interval([1.0, 2.0, 3.0], 1)
    assert (low, high) == (pytest.approx(2 - 4.9683, abs=1e-3), pytest.approx(2 + 4.9683, abs=1e-3))
    assert prediction_interval([1.0, 2.0, 3.0], 5)[1] < high


# Evidence.

TREE = {
    "README.md": b"# A\n\n```\npip install -r requirements.txt\npython prepare_data.py\npython train.py --lr 0.1\n```\n\n"
    b"## Table 2, wine\n\n```\npython train.py --config wine.yaml\n```\n",
    "prepare_data.py": b"print(1)\n",
    "wine.yaml": b"optimizer:\n  weight_decay: 0.01\n",
    "train.py": b"import argparse\nfrom net import build\nparser = argparse.ArgumentParser()\n"
    b"parser.add_argument('--lr', type=float, default=0.01)\nparser.add_argument('--config')\n"
    b"parser.add_argument('--batch-size', type=int, default=16)\nargs = parser.parse_args()\n"
    b"print(args.lr, args.batch_size, load(args.config)['weight_decay'])\n",
    "net.py": b"hidden_size = 32\n\ndef build():\n    return StandardScaler(), Net(dropout=0.1)\n",
}


def script(words: str = "") -> Script:
    chosen = choose_program(TREE, claim(), words)
    assert chosen is not None
    return chosen


def test_the_readmes_command_for_the_claim_is_chosen() -> None:
    assert script().command == ("train.py", "--lr", "0.1")
    wine = choose_program(TREE, claim(dataset="wine"))
    assert wine is not None
    assert wine.command == ("train.py", "--config", "wine.yaml")
    assert choose_program({"README.md": b"text"}, claim()) is None


def test_code_is_located_by_command_configuration_default_and_name() -> None:
    sites = {site.kind: site.located for site in reversed(locate(script(), TREE))}
    assert (sites["learning_rate"].value, sites["learning_rate"].at) == ("0.1", "the command")
    assert (sites["batch_size"].value, sites["batch_size"].at) == ("16", "train.py:6")
    assert (sites["width"].value, sites["width"].at) == ("32", "net.py:1")
    assert (sites["dropout"].value, sites["dropout"].at) == ("0.1", "net.py:4")
    assert (sites["preprocessing"].value, sites["preprocessing"].at) == ("standardised", "net.py:4")
    wine = {site.kind: site for site in locate(script("python train.py --config wine.yaml"), TREE)}
    assert wine["weight_decay"].located.at == "wine.yaml:2"
    changed = wine["weight_decay"].change("1e-05")
    assert changed is not None
    assert changed.files["wine.yaml"] == "optimizer:\n  weight_decay: 1.0e-05\n"


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("args = parse()\nprint(args.lr)\n", "0.1"),
        ("args = parse()\nfit(**vars(args))\n", "0.1"),
        ("args = parse()\ntrainer = library.Trainer(args)\n", "0.1"),
        ("args = parse()\nprint(getattr(args, 'l' + 'r'))\n", "0.1"),
        ("import hydra\nprint(1)\n", "0.1"),
        ("args = parse()\nprint(args)\noptimizer = SGD(0.5)\n", "never read"),
        ("args = parse()\noptimizer = SGD(lr=0.5)\n", "0.5"),
    ],
)
def test_an_option_that_no_code_reads_decides_nothing(code: str, value: str) -> None:
    declared = b"import argparse\nargparse.ArgumentParser().add_argument('--lr', default=0.1)\n"
    tree = {**TREE, "train.py": declared + code.encode()}
    chosen = choose_program(tree, claim(), "python train.py")
    assert chosen is not None
    rows = judge(
        [Criterion(kind="learning_rate", name="x", stated="0.1")], locate(chosen, tree), {}
    )
    assert rows[0].located is not None
    assert rows[0].located.value == value
    assert rows[0].verdict == ("agrees" if value == "0.1" else "contradicts")


def test_a_default_that_its_function_does_not_use_decides_nothing() -> None:
    tree = {**TREE, "train.py": b"def load(test_size=0.25):\n    return int(100 * 0.1)\n"}
    chosen = choose_program(tree, claim(), "python train.py")
    assert chosen is not None
    sites = {site.kind: site.located.value for site in locate(chosen, tree)}
    assert sites["split"] == "never read"


def test_a_layer_is_no_schedule_and_an_array_no_initialisation() -> None:
    code = b"nn.Linear(3, 4)\noptimizer.step()\nnp.zeros(3)\nrng.uniform(0, 1)\nCosineAnnealingLR(o, 9)\n"
    tree = {**TREE, "train.py": code}
    chosen = choose_program(tree, claim(), "python train.py")
    assert chosen is not None
    sites = [(site.kind, site.located.value) for site in locate(chosen, tree)]
    assert ("schedule", "cosine") in sites
    assert not {("schedule", "linear"), ("schedule", "step")} & set(sites)
    assert not any(kind == "initialisation" for kind, _ in sites)


def trace(**more: object) -> TrainingTrace:
    fields = {"rates": (0.1,), "momentum": 0.9, "name": "sgd"}
    optimizer = Optimizer(id="o", **{**fields, **more})  # type: ignore[arg-type]
    layers = (
        Layer(index=0, name="a", type="Linear", units=64, activation="relu"),
        Layer(index=1, name="b", type="Dropout", settings={"p": 0.5}),
        Layer(index=2, name="c", type="Linear", units=10),
    )
    return TrainingTrace(
        optimizers=(optimizer,),
        plans=(Plan(batch_size=32, epochs=5),),
        models=(TrainedModel(id="m", framework="torch", layers=layers),),
        steps=tuple(TrainingStep(optimizer="o", step=at, rate=0.1) for at in range(20)),
    )


def test_what_a_run_used_is_read_from_its_trace() -> None:
    assert observe(trace(), partial=False) == {
        "optimizer": "sgd", "learning_rate": "0.1", "momentum": "0.9", "weight_decay": "0",
        "schedule": "constant", "batch_size": "32", "epochs": "5", "steps": "20",
        "activation": "relu", "width": "64", "layers": "1", "dropout": "0.5",
        "normalisation": "none", "warm_up": "0 steps",
    }  # fmt: skip
    assert {"epochs", "steps", "schedule"}.isdisjoint(observe(trace(), partial=True))
    assert observe(TrainingTrace(), partial=False) == {}


@pytest.mark.parametrize(
    ("rates", "name"),
    [
        ([0.1] * 20, "constant"),
        ([0.1 * (1 - at / 20) for at in range(20)], "linear"),
        ([0.1 * 0.9**at for at in range(30)], "exponential"),
        ([0.1] * 10 + [0.01] * 10 + [0.001] * 10, "step"),
        ([0.05 * (1 + __import__("math").cos(3.14159 * at / 40)) for at in range(41)], "cosine"),
        ([0.02 * at for at in range(5)] + [0.1 * (1 - at / 20) for at in range(20)], "linear"),
    ],
)
def test_a_schedule_is_named_by_its_curve(rates: list[float], name: str) -> None:
    assert traces.shape(rates) == name


def test_a_run_decides_before_the_text_and_several_places_before_nothing() -> None:
    rows = [
        Criterion(kind="learning_rate", name="learning rate", stated="0.1"),
        Criterion(kind="batch_size", name="batch size", stated="32"),
        Criterion(kind="seeds", name="seeds", stated="5"),
    ]
    sites = locate(script(), TREE)
    located = {row.kind: row for row in judge(rows, sites, {})}
    assert (located["learning_rate"].verdict, located["learning_rate"].evidence) == (
        "agrees",
        "located",
    )
    assert located["batch_size"].verdict == "contradicts"
    assert located["seeds"].verdict == "unknown"
    seen = judge(rows, sites, {"learning_rate": "0.2", "batch_size": "32"})
    assert [(row.kind, row.verdict, row.evidence) for row in seen][:2] == [
        ("learning_rate", "contradicts", "observed"),
        ("batch_size", "agrees", "observed"),
    ]
