"""How long the rest of a program takes, by the counters that it prints."""

import re

import pytest

from bot.issues.runner import _FIRST_LOOK_S
from bot.kernel.bug import Issue
from bot.kernel.job import PROOFS
from bot.kernel.plain_text import duration
from bot.kernel.training_progress import TrainingProgress, planned_counts
from sandbox.port import RunResult
from tests.support.jobs import issue_job
from tests.unit.test_pipeline import run, world


def rest(*lines, seconds=10.0, text=""):
    """What is left after lines that come so many seconds apart."""
    now = [0.0]
    progress = TrainingProgress(lambda: now[0], planned_counts(text))
    for line in lines:
        progress.hear("stdout", line)
        now[0] += seconds
    return progress.rest()


@pytest.mark.parametrize(
    ("lines", "says", "seconds"),
    [
        (("Epoch 1/100", "Epoch 2/100", "Epoch 3/100"), "epoch 3 of 100", 970),
        (("epoch: [0/50] loss 2.3", "epoch: [10/50] loss 2.2"), "epoch 10 of 50", 30),
        (("Iteration 100 of 100000", "Iteration 200 of 100000"), "iteration 200 of 100,000", 9970),
        (("  1%|#  | 10/1000 [00:10<16:30]", "  2%|#  | 20/1000 [00:20<16:20]"), "step 20 of 1,000", 960),
        (("\r 1%|# | 1/100 [..]\r 2%|# | 2/100 [..]", " 3%|# | 3/100 [..]"), "step 3 of 100", 640),
        (("1/90 \u2501 9s/step", "2/90 \u2501 9s/step"), "step 2 of 90", 870),
        (("Epoch 1/3", "1/9 [>..]", "2/9 [>..]", "Epoch 2/3", "1/9 [>..]"), "epoch 2 of 3", 0),
    ],
)  # fmt: skip
def test_the_longest_counter_tells_what_is_left(lines, says, seconds):
    found = rest(*lines)
    assert str(found) == says
    assert found.seconds == pytest.approx(seconds, rel=0.02)


@pytest.mark.parametrize(
    "lines",
    [
        ("loss 0.3", "accuracy 3/10"),
        ("Epoch 1/100",),
        ("Epoch 1/100", "Epoch 1/100"),
        ("step 100 of 900", "step 200 of 900", "step 100 of 900"),
        ("2024/05/01 step", "1/2 done", "page 3 of 9"),
    ],
)
def test_other_numbers_tell_nothing(lines):
    assert rest(*lines) is None


@pytest.mark.parametrize(
    ("text", "lines", "says"),
    [
        ("model.learn(total_timesteps=1_000_000)",
         ("|    total_timesteps      | 2048     |", "|    total_timesteps      | 4096     |"),
         "timestep 4,096 of 1,000,000"),
        ("train.py --epochs 100", ("epoch 1 loss 2.1", "epoch 2 loss 2.0"), "epoch 2 of 100"),
        ("num_episodes = 500", ("Episode: 3 Reward: -3", "Episode: 4 Reward: -2"), "episode 4 of 500"),
        ('add_argument("--epochs", type=int, default=90)', ("epoch: 1", "epoch: 2"), "epoch 2 of 90"),
    ],
)  # fmt: skip
def test_a_counter_without_an_end_has_that_of_the_program(text, lines, says):
    assert str(rest(*lines, text=text)) == says


@pytest.mark.parametrize(
    "text", ["", "epochs = 3\nepochs = 9", "epochs = 2 * n", "warmup = 3", "epochs = steps[3]"]
)
def test_what_a_program_does_not_say_tells_nothing(text):
    assert rest("epoch 1 loss 2", "epoch 2 loss 2", text=text) is None


def test_the_speed_of_a_moment_tells_nothing():
    assert rest("Epoch 1/100", "Epoch 2/100", seconds=1.0) is None


@pytest.mark.parametrize(
    ("seconds", "text"), [(40, "40 s"), (5400, "90 min"), (26000, "7 h"), (1e6, "12 days")]
)
def test_a_duration_is_in_the_unit_that_people_use(seconds, text):
    assert duration(seconds) == text


REPORT = Issue(
    title="accuracy stays at 10 %",
    body="The accuracy stays around 10 %.\n\n```python\nimport torch\nfor epoch in range(1000):\n"
    "    loss.backward()\n    optimizer.step()\n    print(epoch, accuracy)\n```\n",
)


def decide(last):
    lines = "".join(f"Epoch {at}/{last} accuracy: 0.1\n" for at in range(1, 9))
    ports = world(lambda spec: RunResult(exit_code=0, stdout=lines, seconds=60.0))
    ports.clock.step = _FIRST_LOOK_S / 8
    return run(issue_job(REPORT, without=PROOFS), ports)


def test_a_training_that_will_not_end_is_stopped_early_and_says_how_long_it_takes():
    report = decide(1000)
    assert report.verdict.kind == "budget_reached"
    assert re.search(r"at epoch \d of 1,000; all of it takes \d+ (?:min|h)", report.verdict.reason)
    assert report.verdict.reason.endswith("name fewer epochs or steps with which it still fails")
    assert len(report.attempts) == 1
    assert decide(20).verdict.kind == "reproduced"


@pytest.mark.parametrize("text", ["epochs = 1__0", "epochs = 1_", "epochs = 1_00_000"])
def test_what_is_no_number_plans_nothing(text):
    """Though it looks like one: the text is a stranger's."""
    assert planned_counts(text) == {}
