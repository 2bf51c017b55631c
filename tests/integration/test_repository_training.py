"""The promise, end to end: an issue about a training of the repository, by the command of its
README → reproduced → first bad commit → one script → diagnosis → proven patch of its configuration
file → draft pull request. Everything but GitHub is real.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
import yaml

from bot.app import bootstrap
from bot.kernel.settings import load
from bot.products import engine
from sandbox.select import choose
from tests.integration.test_pull_requests import NAME, NUMBER, World
from tests.support.stand_in import GitHubServer

README = """# Digits

```
pip install -r requirements.txt
python train.py --config configs/base.yaml
```

reaches 95 % test accuracy.
"""
CONFIG = "model:\n  hidden: 32\noptim:\n  lr: {rate}\n  momentum: 0.9\ntrain:\n  epochs: 6\n"
MODEL = """import torch.nn as nn


class Net(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.fc1 = nn.Linear(64, hidden)
        self.fc2 = nn.Linear(hidden, 10)

    def forward(self, x):
        return self.fc2(self.fc1(x).relu())
"""
DATA = """import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split


def load():
    x, y = load_digits(return_X_y=True)
    parts = train_test_split((x / 16.0).astype("float32"), y, test_size=0.4, random_state=0)
    return [torch.tensor(part) for part in parts]
"""
TRAIN = """import argparse

import torch
import yaml
from digits.data import load
from digits.model import Net


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", required=True)
    args = parser.parse_args()
    with open(args.config) as handle:
        cfg = yaml.safe_load(handle)
    x_train, x_test, y_train, y_test = load()
    model = Net(cfg["model"]["hidden"])
    optim = cfg["optim"]
    optimizer = torch.optim.SGD(model.parameters(), lr=optim["lr"], momentum=optim["momentum"])
    loss_fn = torch.nn.CrossEntropyLoss()
    for epoch in range(cfg["train"]["epochs"]):
        for rows in torch.randperm(len(x_train)).split(32):
            loss = loss_fn(model(x_train[rows]), y_train[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.4f}")
    with torch.no_grad():
        right = model(x_test).argmax(1) == y_test
    print(f"test accuracy: {right.float().mean():.3f}")


if __name__ == "__main__":
    main()
"""
BODY = """The README says 95 %, I get 10 %:

```
$ python train.py --config configs/base.yaml
epoch 0 loss 2.4015
epoch 5 loss 2.7711
test accuracy: 0.100
```

torch 2.13.0, Python 3.11, current main.
"""
TREE = {
    "README.md": README,
    "requirements.txt": "torch==2.13.0\nscikit-learn\npyyaml\n",
    "configs/base.yaml": CONFIG.format(rate=0.05),
    "digits/__init__.py": "",
    "digits/model.py": MODEL,
    "digits/data.py": DATA,
    "train.py": TRAIN,
}


class TrainingRepository(World):
    """A repository of several modules whose last but one commit raised the learning rate."""

    def __init__(self, server: GitHubServer) -> None:
        super().__init__(server)
        server.commit(NAME, TREE, datetime(2026, 1, 1, tzinfo=UTC))
        faulty = {"configs/base.yaml": CONFIG.format(rate=5.0)}
        self.faulty = server.commit(NAME, faulty, datetime(2026, 1, 2, tzinfo=UTC))
        server.commit(NAME, {"NOTES.md": "x\n"}, datetime(2026, 1, 3, tzinfo=UTC))
        here = self.here.issues[NUMBER]
        here.title, here.body = "Accuracy stays at 10 % with the README's command", BODY
        self.title = here.title

    def issue(self):
        update = {"title": self.title, "body": BODY, "created_at": datetime(2026, 1, 4, tzinfo=UTC)}
        return super().issue().model_copy(update=update)

    def _engine(self, job: Any, *, journal: Any, listener: Any, cancel: Any, **_: object):
        sandbox = choose("bwrap")
        ports = bootstrap.make_ports(
            load(), sandbox=sandbox, journal=journal, listener=listener, cancel=cancel
        )
        self.report = engine.execute(job, ports)
        return self.report


@pytest.mark.index
@pytest.mark.nightly  # fifty trainings
def test_a_readme_command_that_does_not_learn_ends_in_a_proven_change_of_its_configuration(
    tmp_path,
):
    with GitHubServer(echo=False) as server:
        world = TrainingRepository(server)
        world.deliver("comment", "reproduce")
        body, report = world.sticky(), world.report
        assert "**Reproduced**" in body
        assert report.bisection is not None
        assert report.bisection.first_bad.at == world.faulty
        assert "without the repository" in body
        assert "from digits" not in report.script.source
        world.deliver("comment", "repair", argument="budget=5x")
        body = world.sticky()
        assert "Diagnosis: HLR" in body
        assert "proven to help:** accuracy" in body
        assert "configs/base.yaml" in body
        assert world.asked() == ""
        assert "M\tconfigs/base.yaml" in world.changed()
        clone = world.cloned(tmp_path / "clone")
        rate = yaml.safe_load((clone / "configs" / "base.yaml").read_text())["optim"]["lr"]
        assert rate < 1.0
        assert world.pulls() == [(13, "open", True)]
