"""The published tools' rules alone: what each says of a fault that it knows, and of a good run."""

import pytest

from benchmarks.published_tools import TOOLS, autotrainer, codes
from bot.kernel.training_types import Epoch, TrainingTrace
from bot.training.diagnosis.rule import trainings
from tests.support.traces import FLAT, LAYERS, curve, dense, loss, steps, summary, trace, weight

_LINEAR = trace(
    (*LAYERS[:2], dense(2, 32, 10, "")), FLAT, fed=loss(activation="linear", rows_sum_to_one=False)
)
_NAN = trace(losses=[2.3, float("nan"), float("nan")])
_ZEROS = trace((weight(LAYERS[0], std=0.0, mean=0.0), *LAYERS[1:]), curve(2.3, 1.0))
_STILL = trace(losses=[2.3] * 50)


@pytest.mark.parametrize(
    ("tool", "told", "expected"),
    [
        ("DeepLocalize", _NAN, ("LCH",)),
        ("DeepLocalize", _STILL, ("HLR",)),
        ("DeepDiagnosis", _LINEAR, ("ACH(2)",)),
        ("DeepDiagnosis", trace(losses=FLAT, taken=steps([2.3] * 60, ratio=0.5)), ("CPP",)),
        ("UMLAUT", _LINEAR, ("CPP", "ACH(2)")),
        ("UMLAUT", trace(optimizer={"rates": (0.1,)}), ("CPP", "HLR")),
        ("AutoTrainer", trace(losses=[1e4] * 50, fed=loss("mse")), ("ACH(2)",)),
        ("Neuralint", _ZEROS, ("WCI(0)",)),
        ("Neuralint", trace((dense(0, 64, 64, ""), *LAYERS[1:])), ("ARM(0)",)),
        ("Neuralint", _LINEAR, ("ACH(2)", "LCH")),
    ],
)
def test_a_tool_names_what_it_knows(tool: str, told: TrainingTrace, expected: tuple[str, ...]):
    assert codes(tool, told) == expected


@pytest.mark.parametrize("tool", TOOLS)
def test_no_tool_speaks_of_a_good_run(tool: str):
    good = trace(data={"inputs": summary((800, 64), 0.0, 1.0)})
    assert codes(tool, good) == ()
    assert codes(tool, TrainingTrace()) == ()


@pytest.mark.parametrize(
    ("accuracy", "norms", "expected"),
    [
        (0.95, (100.0, 1.0), None),
        (0.4, (100.0, 1.0), "explode"),
        (0.4, (1e-5, 1.0), "vanish"),
        (0.4, (1.0, 1.0), None),
    ],
)
def test_gradients_are_a_symptom_to_autotrainer_where_the_accuracy_is_low(
    accuracy: float, norms: tuple[float, ...], expected: str | None
):
    """As its monitor asks of them only when a training does not converge."""
    rising = tuple(
        Epoch(model="m", epoch=n, step=n, values={"accuracy": accuracy * (n + 1) / 5})
        for n in range(5)
    )
    told = trace(LAYERS[:2], taken=steps([1.0] * 60, norms=norms), epochs=rising)
    assert autotrainer.symptom(trainings(told)[0]) == expected
