"""The settings of a repository's program, read without running it: those that ask for a GPU, and
those that make it run long.
"""

import pytest

from bot.issues import script_fixes
from bot.issues.search import program_options
from bot.kernel.attempt import Script


def program(command, tree):
    words = tuple(command.split())
    entry = f"{words[1].replace('.', '/')}.py" if words[0] == "-m" else words[0]
    return Script(files={entry: tree[entry].decode()}, entry=entry, command=words)


def changed(change, command, files):
    tree = {name: text.encode() for name, text in files.items()}
    return change(program(command, tree), tree)


def argparse(*options):
    rows = "".join(f"parser.add_argument({option})\n" for option in options)
    return f"import argparse\nparser = argparse.ArgumentParser()\n{rows}"


def click(*options):
    rows = "".join(f"@click.option({option})\n" for option in options)
    return f"import click\n@click.command()\n{rows}def main(**options): ...\n"


DEVICE = argparse('"--device", default="cuda", choices=["cuda", "cpu"]')
FUNCTION = "def main(device: str = 'cuda', use_gpu: bool = True, epochs: int = 100): ...\n"


@pytest.mark.parametrize(
    ("source", "words", "expected", "what"),
    [
        (DEVICE, "", "--device cpu", "--device cpu instead of cuda"),
        (DEVICE, "--device cuda", "--device cpu", "--device cpu instead of cuda"),
        (DEVICE, "--device=cuda:0", "--device=cpu", "--device=cpu instead of cuda:0"),
        (argparse('"-d", "--device"'), "-d cuda --lr 1", "-d cpu --lr 1", "-d cpu instead of cuda"),
        (argparse('"--device", default=None'), "", "--device cpu", "--device cpu"),
        (argparse('"--no-cuda", action="store_true"'), "", "--no-cuda", "with --no-cuda"),
        (argparse('"--no_cuda", action="store_false", dest="cuda"'), "", "--no_cuda", "with --no_cuda"),
        (argparse('"--cpu", action="store_true"'), "--lr 1", "--lr 1 --cpu", "with --cpu"),
        (argparse('"--cuda", action="store_true"'), "--cuda --lr 1", "--lr 1", "without --cuda"),
        (argparse('"--cuda", action=argparse.BooleanOptionalAction, default=True'), "", "--no-cuda", "with --no-cuda"),
        (argparse('"--use_gpu", type=str2bool, default=True'), "", "--use_gpu False", "--use_gpu False instead of True"),
        (argparse('"--gpu", type=int, default=0') + "if args.gpu >= 0: net.cuda()\n", "", "--gpu -1", "--gpu -1 instead of 0"),
        (argparse('"--device", default="0", help="a GPU, or CPU"'), "", "--device cpu", "--device cpu instead of 0"),
        (argparse('"--gpu_ids", default="0,1", help="-1 for CPU"'), "", "--gpu_ids -1", "--gpu_ids -1 instead of 0,1"),
        (argparse('"--gpus", type=int, default=2'), "--gpus 1", "--gpus 0", "--gpus 0 instead of 1"),
        (click('"--device", default="cuda"'), "", "--device cpu", "--device cpu instead of cuda"),
        (click('"--cuda/--no-cuda", default=True'), "", "--no-cuda", "with --no-cuda"),
        (click('"--device", type=click.Choice(["cuda", "cpu"])'), "--device cuda", "--device cpu", "--device cpu instead of cuda"),
        (f"import fire\n{FUNCTION}fire.Fire(main)\n", "", "--device=cpu --use_gpu=False", "--device=cpu instead of cuda"),
        (f"import typer\n{FUNCTION}typer.run(main)\n", "", "--device cpu --no-use-gpu", "--device cpu instead of cuda"),
        ("@app.command()\ndef main(card: str = typer.Option('cuda', '--card', '-c')): ...\n", "", "--card cpu", "--card cpu instead of cuda"),
        ("from absl import flags\nflags.DEFINE_string('device', 'cuda', '')\n", "", "--device=cpu", "--device=cpu instead of cuda"),
        ("from absl import flags\nflags.DEFINE_bool('use_gpu', True, '')\n", "", "--nouse_gpu", "with --nouse_gpu"),
        ("import jsonargparse\n", "--trainer.accelerator gpu", "--trainer.accelerator cpu", "--trainer.accelerator cpu instead of gpu"),
        ("import hydra\n", "device=cuda lr=1", "device=cpu lr=1", "device=cpu instead of cuda"),
    ],
)  # fmt: skip
def test_a_program_runs_on_the_cpu_by_its_own_option(source, words, expected, what):
    script = changed(program_options.to_cpu, f"train.py {words}", {"train.py": source})
    assert " ".join(script.command[1:]) == expected
    assert script.fixes[0].what == what
    assert {fix.why for fix in script.fixes} == {script_fixes.NO_GPU}
    assert not script.edited
    tree = {"train.py": source.encode()}
    assert program_options.to_cpu(script, tree) is script, "there is no second change"


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (argparse('"--device", default="cuda", choices=["cuda", "mps"]'), ""),
        (argparse('"--device", default="cuda" if torch.cuda.is_available() else "cpu"'), ""),
        (argparse('"--cuda", action="store_true"'), ""),
        (argparse('"--no-cuda", action="store_true"'), "--no-cuda"),
        (argparse('"--device", default="cpu"', '"--name", default="x"'), "--name mine"),
        (argparse('"--gpus", type=int, default=0'), ""),
        (argparse('"--gpu", type=int, default=0, help="GPU id to use"'), ""),
        (argparse('"--device", type=int, default=0'), ""),
        (argparse('"--device", default="cuda"') + "sub = parser.add_subparsers()\n", ""),
        ("x = 1\n", "trainer=gpu"),
        ("not python (", ""),
    ],
)
def test_an_option_that_says_nothing_of_a_gpu_or_takes_no_cpu_stays(source, words):
    files = {"train.py": source, "conf/trainer/gpu.yaml": "a: 1\n"}
    script = changed(program_options.to_cpu, f"train.py {words}", files)
    assert not script.fixes


def test_an_option_of_a_module_counts_where_the_file_itself_has_none():
    files = {"pkg/train.py": "from .options import parser\n", "pkg/options.py": DEVICE}
    script = changed(program_options.to_cpu, "-m pkg.train", files)
    assert script.command == ("-m", "pkg.train", "--device", "cpu")
    files = {"train.py": f"import other\n{DEVICE}", "other.py": argparse('"--cpu", action="store_true"')}  # fmt: skip
    script = changed(program_options.to_cpu, "train.py", files)
    assert script.command == ("train.py", "--device", "cpu"), "a module may parse for itself"


def test_the_epochs_of_a_module_are_lowered_before_the_batch_of_the_file_itself():
    files = {"train.py": "import opts\n" + argparse('"--batch-size", default=64')}
    files["opts.py"] = argparse('"--epochs", default=90')
    script = changed(program_options.shorten, "train.py", files)
    assert script.command == ("train.py", "--epochs", "1")


CONFIG = """\
# of the paper
model: {device: "cuda:0", layers: 4}
train:
  epochs: 200  # long
  batch_size: 64
  sizes: [1, 2]
  text: |
    device: cuda
use_gpu: true
"""


def test_a_configuration_file_that_the_command_names_is_changed_in_place():
    files = {"train.py": argparse('"--config"'), "configs/a.yaml": CONFIG}
    script = changed(program_options.to_cpu, "train.py --config ./configs/a.yaml", files)
    text = script.files["configs/a.yaml"]
    assert text == CONFIG.replace('"cuda:0"', '"cpu"').replace("use_gpu: true", "use_gpu: false")
    assert script.edited == ("configs/a.yaml",)
    assert {fix.what for fix in script.fixes} == {
        "model.device: cpu instead of cuda:0 in configs/a.yaml",
        "use_gpu: false instead of true in configs/a.yaml",
    }
    script = changed(program_options.shorten, "train.py --config configs/a.yaml", files)
    assert script.files["configs/a.yaml"] == CONFIG.replace("200", "1")
    assert [fix.what for fix in script.fixes] == [
        "train.epochs: 1 instead of 200 in configs/a.yaml"
    ]


def test_json_stays_json():
    files = {"train.py": "", "a.json": '{"no_cuda": false, "device": "cuda", "n_epochs": 50}'}
    script = changed(program_options.to_cpu, "train.py a.json", files)
    assert script.files["a.json"] == '{"no_cuda": true, "device": "cpu", "n_epochs": 50}'


def test_the_files_that_hydra_composes_are_read():
    files = {
        "src/train.py": "@hydra.main(config_path='../conf', config_name='main')\ndef f(): ...\n",
        "conf/main.yaml": "defaults:\n  - _self_\n  - trainer: gpu\nseed: 1\n",
        "conf/trainer/gpu.yaml": "accelerator: gpu\nmax_epochs: 30\n",
        "conf/trainer/cpu.yaml": "accelerator: cpu\n",
    }
    script = changed(program_options.to_cpu, "src/train.py", files)
    assert "trainer: cpu" in script.files["conf/main.yaml"]
    script = changed(program_options.shorten, "src/train.py", files)
    assert script.files["conf/trainer/gpu.yaml"] == "accelerator: gpu\nmax_epochs: 1\n"


LONG = argparse(
    '"--epochs", type=int, default=200', '"--max-steps", type=int', '"--warmup_steps", default=500',
    '"--batch-size", default=256', '"--num_samples", default=100_000', '"--resume-epoch", default=9',
)  # fmt: skip


def test_a_program_is_made_shorter_step_by_step():
    script, tree = changed(program_options.shorten, "train.py", {"train.py": LONG}), {}
    assert script.command == ("train.py", "--epochs", "1")
    assert [fix.what for fix in script.fixes] == ["--epochs 1 instead of 200"]
    tree = {"train.py": LONG.encode()}
    script = program_options.shorten(script, tree)
    assert set(script.command[3:]) == {"--max-steps", "10", "--num_samples", "64"}
    script = program_options.shorten(script, tree)
    assert script.command[-2:] == ("--batch-size", "4")
    assert program_options.shorten(script, tree) is script
    assert {fix.why for fix in script.fixes} == {script_fixes.TOO_LONG}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("--epochs 50 --lr 0.1", "--epochs 1 --lr 0.1"),
        ("--trainer.max_epochs=50", "--trainer.max_epochs=1"),
        ("trainer.max_epochs=50 +train.n_iter=9", "trainer.max_epochs=1 +train.n_iter=9"),
        ("--total-timesteps 1e6", "--total-timesteps 10"),
        ("--num_train_epochs 3.0", "--num_train_epochs 1"),
        ("--max_steps -1 --epochs 1", "--max_steps 10 --epochs 1"),
        ("--epochs 1 --start_epoch 50 --name epochs=3", "--epochs 1 --start_epoch 50 --name epochs=3"),
        ("--epochs many", "--epochs many"),
    ],
)  # fmt: skip
def test_what_the_command_gives_is_lowered_declared_or_not(words, expected):
    script = changed(program_options.shorten, f"train.py {words}", {"train.py": "x = 1\n"})
    assert " ".join(script.command[1:]) == expected


def test_the_counts_in_the_text_of_a_program_and_of_its_python_configuration_come_last():
    files = {"train.py": "EPOCHS = 100\n", "configs/a.py": "runner = dict(max_epochs=12)\n"}
    script = changed(program_options.shorten, "train.py configs/a.py --epochs 9", files)
    assert (script.command[-1], script.edited) == ("1", ())
    tree = {name: text.encode() for name, text in files.items()}
    script = program_options.shorten(script, tree)
    assert script.files == {
        "train.py": "EPOCHS = 3\n",
        "configs/a.py": "runner = dict(max_epochs=3)\n",
    }
    assert set(script.edited) == set(files)
    assert program_options.shorten(script, tree) is script


def test_options_of_the_field_s_parsers_are_known():
    source = (
        "from transformers import HfArgumentParser, TrainingArguments\n"
        "@dataclass\nclass Data:\n    max_train_samples: int = field(default=9000)\n"
    )
    script = changed(program_options.shorten, "train.py", {"train.py": source})
    assert script.command[1:] == ("--num_train_epochs", "1")


@pytest.mark.parametrize(
    "text",
    ["a: [" * 5000, "&a [*a, *a]\n", "? {b: c}\n: epochs\n", "\tx: 1", "epochs: 9\x00", "- - - epochs\n"],
)  # fmt: skip
def test_a_hostile_configuration_file_is_passed_over(text):
    files = {"train.py": "", "a.yaml": text}
    assert not changed(program_options.shorten, "train.py a.yaml", files).fixes


def test_what_makes_a_program_long_is_named():
    source = argparse(
        '"--epochs", type=int, default=100', '"--lr", default=1', '"--batch-size", default=9'
    )
    names = changed(program_options.lengths, "train.py --steps 5000", {"train.py": source})
    assert set(names) == {"--epochs", "--steps"}
    config = {"train.py": source, "c.yaml": "max_epochs: 300\nrate: 3\n"}
    assert "max_epochs in c.yaml" in changed(
        program_options.lengths, "train.py --config c.yaml", config
    )
