"""A patch is moved from where a value is used to the one literal that decides it, as runs show."""

from __future__ import annotations

from time import process_time

import pytest
import yaml

from bot.kernel.training_types import TrainingProgram
from bot.program import literals
from bot.program.hyperparameters import find, program_files
from bot.program.literals import Observation, rewritten, spelled
from bot.training.repair.moving import MovedPatch, Mover
from bot.training.repair.search import edit
from tests.support.plain_runs import run_plainly

LOOP = """\
data = torch.zeros(3)
model = torch.nn.Sequential(torch.nn.Linear(4, HIDDEN), torch.nn.ReLU(), torch.nn.Linear(HIDDEN, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
for epoch in range(EPOCHS):
    for x, y in torch.utils.data.DataLoader(data, batch_size=ROWS):
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
"""
YAML = """\
# what the paper used
training:
  lr: 10.0   # too high?
  epochs: 3
  rows: 16
model: {hidden: 64}
"""
OPTION = (
    "import argparse\nparser = argparse.ArgumentParser()\n"
    "parser.add_argument('--lr', type=float, default=5.0)\nargs = parser.parse_args()\n"
)
READ = "import yaml\ncfg = yaml.safe_load(open('conf/base.yaml'))\n"


def program(
    head: str, *arguments: str, beside: dict[str, str] | None = None, **uses: str
) -> TrainingProgram:
    """The training loop with its numbers given by expressions."""
    text = LOOP
    for name, default in {"RATE": "0.5", "EPOCHS": "2", "ROWS": "8", "HIDDEN": "12"}.items():
        text = text.replace(name, uses.get(name, default))
    files = {"train.py": f"import torch\n{head}{text}", **(beside or {})}
    encoded = {name: text.encode() for name, text in files.items()}
    return TrainingProgram(files=encoded, entry="train.py", arguments=arguments)


def moved(subject: TrainingProgram, **values: str) -> MovedPatch:
    """The program with other values of hyperparameters, by their kinds."""
    mover = Mover(subject, None, run_plainly)
    observed = mover.observe()
    modules = program_files(subject.files, subject.entry)
    every = {x.kind: x for x in find(subject.source, None, modules, observed)}
    return mover.move(tuple(edit(every[kind], to) for kind, to in values.items()), observed)  # type: ignore[index]


def changes(subject: TrainingProgram, **values: str) -> dict[str, list[str]]:
    """The lines that each changed file gets."""
    after = moved(subject, **values).program
    lines = {name: text.decode().splitlines() for name, text in after.files.items()}
    before = {name: text.decode().splitlines() for name, text in subject.files.items()}
    return {
        name: [line for line in lines[name] if line not in before[name]]
        for name in lines
        if lines[name] != before[name]
    }


@pytest.mark.parametrize(
    ("subject", "changed"),
    [
        (program("LR = 10.0\n", RATE="LR"), {"train.py": ["LR = 0.1"]}),
        (program("LR = 10 ** 1\n", RATE="LR"), {"train.py": ["LR = 0.1"]}),
        (program(OPTION, RATE="args.lr"),
         {"train.py": ["parser.add_argument('--lr', type=float, default=0.1)"]}),
        (program(READ, beside={"conf/base.yaml": YAML}, RATE="cfg['training']['lr']"),
         {"conf/base.yaml": ["  lr: 0.1   # too high?"]}),
        (program("import json\ncfg = json.load(open('a.json'))\n", RATE="cfg.get('lr', 1.0)",
                 beside={"a.json": '{\n\t"lr": 10\n}\n'}), {"a.json": ['\t"lr": 0.1']}),
        (program("cfg = {}\n", RATE="cfg.get('lr', 10.0)"),
         {"train.py": ["optimizer = torch.optim.SGD(model.parameters(), lr=cfg.get('lr', 0.1))"]}),
        (program("import tomllib\ncfg = tomllib.load(open('a.toml', 'rb'))\n", RATE="cfg['lr']",
                 beside={"a.toml": "lr = 7.0\n"}), {"a.toml": ["lr = 0.1"]}),
        (program("from conf.base import Config\n", RATE="Config().lr", beside={
            "conf/base.py": "SEED = 7\nclass Config:\n    lr = 7\n", "conf/other.py": "lr = 7\n"}),
         {"conf/base.py": ["    lr = 0.1"]}),
        (program("settings = dict(lr=3.0, momentum=0.9)\n", RATE="0.5").model_copy(update={
            "files": {"train.py": program("settings = dict(lr=3.0, momentum=0.9)\n").files[
                "train.py"].replace(b"lr=0.5", b"**settings")}}),
         {"train.py": ["settings = dict(lr=0.1, momentum=0.9)"]}),
    ],
    ids=["constant", "product", "option", "yaml", "json", "get", "toml", "module", "unpacked"],
)  # fmt: skip
def test_the_literal_that_decides_a_value_is_changed(
    subject: TrainingProgram, changed: dict[str, list[str]]
) -> None:
    assert changes(subject, learning_rate="0.1") == changed


USED = {"train.py": ["optimizer = torch.optim.SGD(model.parameters(), lr=0.1)"]}


@pytest.mark.parametrize(
    "subject",
    [
        program(OPTION, "--lr", "5", RATE="args.lr"),  # the command line decides
        program("LR = 8\n", RATE="LR", ROWS="LR"),  # and the rows of a batch
        program("LR = 5.0\nLR = LR * 2\n", RATE="LR"),
        program("LR = float(input.__name__ == 'input')\n", RATE="LR"),
        program("BASE = 1.0\nLR = BASE * 10\nif LR != 10.0: raise SystemExit\n", RATE="LR"),
    ],
    ids=["command line", "shared", "computed", "no literal", "elsewhere"],
)
def test_what_no_literal_alone_decides_stays_where_it_is_used(subject: TrainingProgram) -> None:
    assert changes(subject, learning_rate="0.1") == USED


def test_each_edit_moves_by_itself() -> None:
    subject = program(
        READ, beside={"conf/base.yaml": YAML}, RATE="cfg['training']['lr']", HIDDEN="HIDDEN",
        ROWS="cfg['training']['rows']", EPOCHS="int(cfg['training']['epochs']) * 1",
    ).model_copy()  # fmt: skip
    files = {**subject.files, "train.py": b"HIDDEN = 20\n" + subject.files["train.py"]}
    subject = subject.model_copy(update={"files": files})
    made = moved(subject, learning_rate="1e-05", units="24", epochs="30", batch_size="4")
    settings = yaml.safe_load(made.program.files["conf/base.yaml"])
    assert settings["training"] == {"lr": 1e-5, "epochs": 30, "rows": 4}
    assert "HIDDEN = 24" in made.program.source
    assert "nn.Linear(4, HIDDEN)" in made.program.source
    assert [(x.file, x.line) for x in made.patch] == [
        ("conf/base.yaml", 3), ("", 1), ("conf/base.yaml", 4), ("conf/base.yaml", 5),
    ]  # fmt: skip


def test_a_word_is_moved_within_its_quotes() -> None:
    source = (
        "import yaml, keras\ncfg = yaml.safe_load(open('c.yaml'))\nmodel = keras.Sequential()\n"
        "model.compile(optimizer=cfg['name'], loss='mse')\nmodel.fit(1, 2, epochs=2)\n"
    )
    files = {"train.py": source.encode(), "c.yaml": b"name: sgd\n"}
    subject = TrainingProgram(files=files, entry="train.py")
    assert changes(subject, optimizer="adam") == {"c.yaml": ["name: adam"]}


def test_a_use_within_an_f_string_hides_no_other() -> None:
    head = 'LR = 10.0\np = [torch.zeros(1)]\nprint(f"{torch.optim.Adam(p, lr=LR)}")\n'
    subject = program(f"ROWS = 20\n{head}", ROWS="ROWS")
    assert changes(subject, batch_size="4") == {"train.py": ["ROWS = 4"]}


def test_a_program_that_fails_keeps_its_patch_where_values_are_used() -> None:
    subject = program("LR = 10.0\nraise SystemExit('no data')\n", RATE="LR")
    assert changes(subject, learning_rate="0.1") == USED


@pytest.mark.parametrize("name", ["rows.csv", ".hidden.json", "pyproject.toml"])
def test_a_file_that_no_pull_request_may_change_stays(name: str) -> None:
    head = f"import re\nrate = float(re.search('[0-9.]+', open('{name}').read())[0])\n"
    assert changes(program(head, beside={name: "7.0\n"}, RATE="rate"), learning_rate="0.1") == USED


def test_a_program_whose_text_shows_all_is_not_run() -> None:
    mover = Mover(program(""), None, lambda _: pytest.fail("it was run"))
    assert mover.observe() == {}


def test_what_a_program_pretends_to_tell_is_bounded() -> None:
    lines = "".join(f"\x1ereprise value {n}Name {n}\n" for n in (1, 1, 2, 10**9))
    many = "".join(f"\x1ereprise value 3Name {n}\n" for n in range(50))
    told = literals.read_observation(f"noise\n{lines}{many}\x1ereprise value 4Name \n")
    assert told == {"1Name": ("1",), "2Name": ("2",), "3Name": ("0", "1", "2")}


@pytest.mark.parametrize(
    ("after", "uses"),
    [
        ({"a": ("2",), "b": ("5",)}, {"a"}),
        ({"a": ("2",), "b": ("6",)}, set()),
        ({"a": ("2",)}, set()),
        ({"a": ("2", "3"), "b": ("5",)}, set()),
        ({"a": ("1",), "b": ("5",)}, set()),
    ],
)
def test_only_the_uses_of_the_patch_may_change(after: Observation, uses: set[str]) -> None:
    assert literals.changed({"a": ("1",), "b": ("5",)}, after, {"a": "2"}) == uses


def test_literals_are_whole_numbers_and_words() -> None:
    text = "a = 10\nb = 10.5\nlr = 1e1  # v10\nc = x10 + 110\nd = 5*2\n"
    lines = [one.line for one in spelled({"a.py": text}, "10.0", "lr")]
    assert lines == [3, 5, 1]
    (word,) = spelled({"a.yaml": "name: 'sgd'\nother: sgdx\n"}, "sgd", "name")
    assert rewritten({"a.yaml": "name: 'sgd'\n"}, [(word, "'adam'")]) == {
        "a.yaml": "name: 'adam'\n"
    }


@pytest.mark.parametrize(
    "text",
    ["1" * 149_000, "1*" * 70_000, "1_" * 70_000, "2 " * 70_000, "- " * 70_000, ".1" * 70_000],
)
def test_hostile_numbers_cost_little(text: str) -> None:
    started = process_time()
    spelled({"a.py": f"x = {text}\n"}, "2.0", "x")
    assert process_time() - started < 5
