"""What is tried first, by what the program's text and the diagnosis say."""

from bot.kernel.training_types import Change, Diagnosis, FaultType, Finding
from bot.program.hyperparameters import find
from bot.training.repair import search

UNLIKE = """\
import keras
from data import x_train, x_test, y_train, y_test

x_train = x_train / 255
y_train = y_train / 255
model = keras.Sequential([keras.layers.Dense(10, activation="softmax")])
model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(x_train, y_train, epochs=10)
print("accuracy:", model.evaluate(x_test, y_test)[1])
"""


def test_data_that_are_treated_unlike_are_mended_first_together() -> None:
    """Labels that were scaled and a part that was not: either alone may show no gain."""
    first, *rest = search.moves((), find(UNLIKE), Diagnosis())
    assert sorted(edit.after for edit in first) == ["both", "unscaled"]
    assert [[edit.after for edit in patch] for patch in rest[:2]] in (
        [["both"], ["unscaled"]],
        [["unscaled"], ["both"]],
    )


def test_likely_findings_that_no_hyperparameter_mends_are_told_apart() -> None:
    loss = Change(parameter="loss", values=("categorical_crossentropy",), words="Use it.")
    shape = Change(parameter="targets", words="Give both the same shape.")
    mended, elsewhere, unlikely = (
        Finding(fault=fault, rule="r", confidence=sure, message="m", change=change)
        for fault, sure, change in (("LCH", 0.9, loss), ("CPP", 0.9, shape), ("CPP", 0.3, shape))
    )
    found = Diagnosis(findings=(mended, elsewhere, unlikely))
    assert search.elsewhere(found, find(UNLIKE)) == (elsewhere,)


def test_a_models_words_are_tried_for_what_its_fault_is_about() -> None:
    """Its values first, else a step; a fault that no hyperparameter is about suggests nothing."""

    def suspected(fault: FaultType, words: str, *layers: int) -> list[dict[str, str]]:
        change = Change(parameter="", words=words)
        finding = Finding(
            fault=fault,
            rule="",
            confidence=0.0,
            message="m",
            change=change,
            layers=layers,
            by="model",
        )
        made = search.from_diagnosis(Diagnosis(findings=(finding,)), find(UNLIKE))
        return [{edit.parameter: edit.after for edit in patch} for patch in made]

    assert suspected("ACH", "Use a Sigmoid activation, not ReLU", 0)[0] == {
        "activation(0)": "sigmoid"
    }
    assert suspected("OCH", "SGD with momentum")[0] == {"optimizer": "sgd"}
    assert suspected("HLR", "Lower the rate to 1e-4.")[0] == {"learning_rate": "1e-4"}
    assert suspected("HLR", "Lower the rate.")[0]["learning_rate"] == "0.003"
    assert suspected("CPP", "Divide x_test as well") == []
    assert suspected("LCF", "Use 3 x 3") == []
