"""The arms of the repair bench on a sandbox that answers with what each program would have learned."""

import json
import random
import re
from contextlib import contextmanager

import pytest

from benchmarks.autotrainer_actions import ACTIONS, PresentValues
from benchmarks.repair_arms import ARMS
from bot.environment import provided
from bot.kernel.job import DiagnoseProgram
from bot.kernel.session import Session
from bot.kernel.training_types import Diagnosis, RepairRequest, TrainingProgram
from bot.program import hyperparameters
from bot.training.diagnose import record_run
from bot.training.repair import search as repair_search
from bot.training.repair.repair import changeable, open_trials
from bot.training.repair.search import Search
from bot.training.repair.trials import TRIALS
from sandbox.port import RunResult
from tests.support.traces import dense, loss
from tests.unit.test_pipeline import world
from tests.unit.test_repair import FAULTY, Landscape, by_rate

KERAS = """import keras

model = keras.Sequential([
    keras.layers.Dense(16, activation="relu"),
    keras.layers.Dense(16, activation="relu"),
    keras.layers.Dense(2, activation="softmax"),
])
model.compile(optimizer=keras.optimizers.SGD(learning_rate=50.0), loss="categorical_crossentropy")
model.fit(x_train, y_train, epochs=30, batch_size=32)
print("test accuracy:", model.evaluate(x_test, y_test)[1])
"""
GOOD = [0.3, 0.6, 0.8, 0.9, 0.93]
STUCK = [0.3, 0.301, 0.302, 0.301, 0.302]
JUMPS = [0.3, 0.95, 0.5, 0.94, 0.4, 0.96, 0.3, 0.94]


def told(curve):
    """The trace of a Keras run whose accuracy goes so."""
    layers = (dense(0, 8, 16), dense(1, 16, 16), dense(2, 16, 2, "softmax"))
    fed = loss(predictions=loss().predictions.model_copy(update={"shape": (32, 3)}))
    model = {"kind": "model", "id": "m", "framework": "keras"}
    rows = [
        {**model, "layers": [x.model_dump(mode="json") for x in layers]},
        fed.model_dump(mode="json"),
        *(
            {"kind": "epoch", "model": "m", "epoch": n, "step": 9 * n, "values": {"accuracy": x}}
            for n, x in enumerate(curve)
        ),
        {"kind": "end", "steps": 9 * len(curve), "seconds": 1.0},
    ]
    return "".join(f"{json.dumps(row)}\n" for row in rows).encode()


class Watched(Landscape):
    """A sandbox in which what the probe sees follows from the text, too; forks are impossible."""

    def __init__(self, metric, curve):
        super().__init__(metric)
        self.curve, self.probed = curve, 0

    def __call__(self, spec):
        if any("batch" in word for word in spec.argv):
            return RunResult(exit_code=1)
        result = super().__call__(spec)
        if "REPRISE_TRAINING" in spec.env:
            self.probed += 1
            seen = told(self.curve(spec.files["a.py"].decode()))
            result.artifacts[".reprise/training-7.jsonl"] = seen
        return result


@contextmanager
def begin(landscape, source=KERAS, kept=(), budget=12, arguments=()):
    files = {"a.py": source.encode()}
    program = TrainingProgram(files=files, entry="a.py", arguments=arguments)
    job = DiagnoseProgram(program=program)
    session = Session.begin(job, world(landscape))
    session.ports.journal.fill(TRIALS, kept)
    recorded = record_run(program, provided.spec(program, job.environment), session)
    with open_trials(program, recorded, session, RepairRequest(budget=budget)) as trials:
        yield trials


def found_by(arm, landscape, source=KERAS, **options):
    with begin(landscape, source, **options) as trials:
        patch = ARMS[arm](trials, changeable(trials))
    return {edit.parameter: edit.after for edit in patch}, trials


def set_rate(text):
    return float(re.search(r"rate=([-\d.e]+)", text)[1])


def by_optimizer(text):
    """Learns to show no symptom with Adam, although its accuracy is no better for it."""
    return GOOD if "Adam(" in text else JUMPS


def test_autotrainer_accepts_what_shows_no_symptom() -> None:
    """Its first action against an unstable training is Adam; that nothing is gained is no matter."""
    patch, trials = found_by("autotrainer", Watched(lambda _: 0.5, by_optimizer))
    assert patch == {"optimizer": "adam", "learning_rate": "0.001"}
    assert len([x for x in trials.made.values() if x.patch]) == 1


def test_autotrainer_leaves_a_program_alone_in_which_it_sees_nothing() -> None:
    patch, trials = found_by("autotrainer", Watched(by_rate, lambda _: GOOD), FAULTY)
    assert patch == {}
    assert not any(x.patch for x in trials.made.values())


def test_autotrainer_goes_on_from_the_best_of_other_symptoms() -> None:
    """A smaller rate is stable and still does not converge, until more of it is changed."""

    def curve(text):
        if set_rate(text) >= 1:
            return JUMPS
        return GOOD if re.search("he_|lecun_|glorot_", text) else STUCK

    landscape = Watched(lambda text: 1 / (1 + set_rate(text)), curve)
    patch, _ = found_by("autotrainer", landscape, budget=40)
    assert patch["learning_rate"] == "0.0001"
    assert any(name.startswith("kernel_initializer") for name in patch)


def test_a_training_that_fails_is_no_repair_to_autotrainer() -> None:
    def metric(text):
        if "Adam(" in text:
            raise ZeroDivisionError
        return 0.5

    patch, _ = found_by("autotrainer", Watched(metric, by_optimizer), budget=4)
    assert patch.get("optimizer") != "adam"


def test_autotrainer_stays_within_the_budget_of_trainings() -> None:
    _, trials = found_by("autotrainer", Watched(lambda _: 0.5, lambda _: JUMPS), budget=5)
    assert len([x for x in trials.made.values() if x.patch]) == 5


@pytest.mark.parametrize("arm", ["autotrainer", "bohb", "tpe", "random"])
def test_a_finished_arm_comes_to_the_same_patch_without_a_training(arm) -> None:
    """Kept trials count as they did, with the symptoms that were seen in them."""

    def metric(text):
        return 0.5 + 0.4 / (1 + abs(set_rate(text) - 0.01)) if "rate=" in text else 0.4

    first, again = Watched(metric, lambda _: JUMPS), Watched(metric, lambda _: JUMPS)
    patch, trials = found_by(arm, first, budget=6)
    kept = trials.session.ports.journal.read(TRIALS)
    resumed, _ = found_by(arm, again, kept=tuple(kept), budget=6)
    assert resumed == patch
    assert len(again.runs) == 1  # the recorded one


def test_halving_trains_the_best_of_three_in_full() -> None:
    """The others end after a third of their epochs; what cannot be written takes no time."""
    _, trials = found_by("bohb", Watched(set_rate, lambda _: GOOD), budget=8)
    tried = {}
    for trial in (x for x in trials.made.values() if x.patch):
        edits = {edit.parameter: edit.after for edit in trial.patch}
        epochs = int(edits.pop("epochs", "30"))
        tried.setdefault(tuple(edits.items()), []).append(epochs)
    full = [row for row in tried.values() if len(row) == 2]
    assert len(tried) + len(full) == 8
    assert 2 <= len(full) < len(tried)
    assert all(short == -(-long // 3) for short, long in full)


@pytest.mark.parametrize("source", [KERAS, FAULTY], ids=["keras", "torch"])
@pytest.mark.parametrize(
    "symptom", ["vanish", "explode", "dying_relu", "unstable", "not_converging"]
)
def test_the_actions_against_a_symptom_can_be_written(symptom, source) -> None:
    """Each action that has hyperparameters to change gives a program."""
    found = hyperparameters.find(source)
    now = PresentValues(found, None, random.Random(0))
    patches = [act(now, at) for act, most in ACTIONS[symptom] for at in range(most)]
    written = {hyperparameters.patch_program(source, patch).source for patch in patches if patch}
    assert len(written) > len(ACTIONS[symptom]) / 2


@pytest.mark.parametrize(("printed", "kept"), [("test nll: {}\n", True), ("test f1: {}\n", False)])
def test_the_loss_stays_where_the_metric_has_its_name(printed: str, kept: bool) -> None:
    """What `evaluate` returns first is another number under another loss."""
    landscape = Watched(lambda text: 0.5, lambda text: GOOD)
    landscape.printed = printed
    with begin(landscape) as trials:
        kinds = {x.kind for x in changeable(trials)}
    assert ("loss" not in kinds) is kept
    assert "weight_regularizer" in kinds


def test_the_same_edits_in_another_order_are_the_same_trial() -> None:
    with begin(Watched(lambda _: 0.5, lambda _: GOOD)) as trials:
        found = {x.kind: x for x in changeable(trials)}
        rate = repair_search.edit(found["learning_rate"], "0.5")
        epochs = repair_search.edit(found["epochs"], "7")
        search, made = Search(trials, Diagnosis(), tuple(found.values())), len(trials.made)
        for patch in ((rate, epochs), (epochs, rate)):
            search._try((patch,))
        assert search.tried[rate, epochs] == search.tried[epochs, rate]
        assert len(trials.made) == made + 1
