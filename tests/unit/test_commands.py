"""The commands of a report, read without a shell, and the programs of a tree that they start."""

import pytest

from bot.cli import options
from bot.issues.reading.issue import read_issue
from bot.issues.reproduce import plan
from bot.kernel import tree_programs
from bot.kernel.bug import Issue
from bot.kernel.commands import read_command
from bot.kernel.errors import UserError
from tests.support.jobs import issue_job

TRACE = """
```
Traceback (most recent call last):
  File "/home/me/repo/tools/train.py", line 3, in <module>
    main()
  File "/home/me/repo/lib/model.py", line 9, in main
    raise ValueError("size 5 is not even")
ValueError: size 5 is not even
```
"""


def commands(block, after=TRACE):
    body = f"I run\n\n```\n{block}\n```\n\nand get\n{after}"
    return read_issue(Issue(title="it fails", body=body)).commands


@pytest.mark.parametrize(
    ("block", "argv", "folder", "variables"),
    [
        ("python train.py --size 5", ("train.py", "--size", "5"), "", {}),
        ("$ python3.10 -u train.py", ("train.py",), "", {}),
        ("(venv) $ python train.py", ("train.py",), "", {}),
        ("git clone https://x/repo.git\ncd repo\npython train.py", ("train.py",), "", {}),
        ("cd repo/tools\npython train.py", ("train.py",), "repo/tools", {}),
        ("git clone https://x/repo\ncd repo/tools && python train.py", ("train.py",), "tools", {}),
        ("export A=1\nB=2 python train.py", ("train.py",), "", {"A": "1", "B": "2"}),
        ("python train.py \\\n  --size 5", ("train.py", "--size", "5"), "", {}),
        ('python train.py --name "two words"', ("train.py", "--name", "two words"), "", {}),
        ("python -m lib.train --size 5", ("-m", "lib.train", "--size", "5"), "", {}),
        ("torchrun --nproc_per_node=2 train.py --x 1", ("train.py", "--x", "1"), "", {}),
        ("python -m torch.distributed.run --nnodes 1 train.py", ("train.py",), "", {}),
        ("accelerate launch --mixed_precision fp16 train.py --x", ("train.py", "--x"), "", {}),
        (
            "pytest tests/test_a.py::test_b -x",
            ("-m", "pytest", "tests/test_a.py::test_b", "-x"),
            "",
            {},
        ),
        ("poetry run python train.py", ("train.py",), "", {}),
        ("python .\\lab1\\train.py -o a\\ b", ("./lab1/train.py", "-o", "a b"), "", {}),
        (
            "python train.py --re 'a\\.b' --c=c\\a.yaml",
            ("train.py", "--re", "a\\.b", "--c=c/a.yaml"),
            "",
            {},
        ),
        ("python train.py > log.txt 2>&1", ("train.py",), "", {}),
        ("pip install -r requirements.txt\npython train.py", ("train.py",), "", {}),
        ("uv run train.py --x 1", ("train.py", "--x", "1"), "", {}),
        ("uv run -m lib.train", ("-m", "lib.train"), "", {}),
        ("srun -p gpu --gres=gpu:1 python -u train.py", ("train.py",), "", {}),
        ("conda run -n env python train.py --x 1", ("train.py", "--x", "1"), "", {}),
        ("%run train.py --x 1", ("train.py", "--x", "1"), "", {}),
        ("python train.py --data <path to data> --x 1", ("train.py", "--data", "path_to_data", "--x", "1"), "", {}),
        ("/opt/envs/a/bin/python -u /home/me/repo/train.py", ("/home/me/repo/train.py",), "", {}),
        (r"C:\envs\a\python.exe D:/repo/train.py", ("D:/repo/train.py",), "", {}),
    ],
)  # fmt: skip
def test_a_command_is_read_as_a_shell_would(block, argv, folder, variables):
    command = commands(block)[0]
    assert (command.argv, command.folder, command.variables) == (argv, folder, variables)


def test_a_command_knows_those_before_it_in_its_folder():
    rows = commands("cd a\npython make.py && python train.py --x 1\ncd b; python other.py")
    before = {row.argv: row.before for row in rows}
    assert before == {
        ("make.py",): (),
        ("train.py", "--x", "1"): (("make.py",),),
        ("other.py",): (),
    }


@pytest.mark.parametrize(
    "block",
    [
        "pip install torch",
        "python -c 'import torch'",
        "python",
        "python --version",
        "nvidia-smi",
        "python train.py 'unclosed",
    ],
)
def test_what_starts_no_program_of_a_tree_is_no_command(block):
    assert commands(block) == ()


@pytest.mark.parametrize("odd", ["\x00", "\ud800", "\x1b[2J"])
def test_what_no_program_can_be_passed_is_no_command(odd):
    """A report's text is cleaned before; an operator's is not."""
    assert read_command(f"python train.py a{odd}") is None


def test_the_command_before_the_traceback_goes_first():
    body = f"```\npython prepare.py\n```\nfirst, then\n\n```\npython train.py\n```\n{TRACE}\nwhile\n\n```\npython ok.py\n```\nworks"
    rows = read_issue(Issue(title="it fails", body=body)).commands
    assert [row.argv[0] for row in rows] == ["train.py", "ok.py", "prepare.py"]


@pytest.mark.parametrize(
    ("text", "argv"),
    [
        ('Upon executing "python main.py", I received an error.', ("main.py",)),
        ("When I run `python3 main.py --x 1` it fails.", ("main.py", "--x", "1")),
        ("I ran \u201cpython -m lib\u201d.", ("-m", "lib")),
    ],
)
def test_a_command_that_the_text_quotes_is_read(text, argv):
    rows = read_issue(Issue(title="KeyError: 'x'", body=text)).commands
    assert [row.argv for row in rows] == [argv]


@pytest.mark.parametrize(
    ("text", "argv", "folder", "variables"),
    [
        ("It breaks.\n\npython fit.py --data x --epochs 3\n\nSee below.",
         ("fit.py", "--data", "x", "--epochs", "3"), "", {}),
        ("**python fit.py --size 5**", ("fit.py", "--size", "5"), "", {}),
        ("*pytest tests/test_fit.py -k loss*", ("-m", "pytest", "tests/test_fit.py", "-k", "loss"), "", {}),
        ("I ran: python tools/fit.py --cfg a.yaml", ("tools/fit.py", "--cfg", "a.yaml"), "", {}),
        ("When I run CUDA_VISIBLE_DEVICES=0 python fit.py --bs 4 it fails with KeyError.",
         ("fit.py", "--bs", "4"), "", {"CUDA_VISIBLE_DEVICES": "0"}),
        ("bash scripts/fit.sh small", ("scripts/fit.sh", "small"), "", {}),
        ("I use the script [python a/fit.py --x b.csv] to run. It fails.", ("a/fit.py", "--x", "b.csv"), "", {}),
        ("1. cd tools\n2. python fit.py", ("fit.py",), "tools", {}),
        ("- python fit.py \\\n   --lr 0.1 \\\n   --name a\n", ("fit.py", "--lr", "0.1", "--name", "a"), "", {}),
        ("python fit.py\n--lr 0.1\n--bs 3\n", ("fit.py", "--lr", "0.1", "--bs", "3"), "", {}),
        ("I use Python 3.8. Running python fit.py --debug gives me an error.", ("fit.py", "--debug"), "", {}),
        ("I executed the command python -m fit.main --x 1, and got", ("-m", "fit.main", "--x", "1"), "", {}),
        ("python fit.py --cfg a.yml (see the README)", ("fit.py", "--cfg", "a.yml"), "", {}),
        ("Execute python fit.py --amp on", ("fit.py", "--amp", "on"), "", {}),
        ("python setup.py develop\npython fit.py", ("fit.py",), "", {}),
        ("python fit.py --x 1 Traceback (most recent call last):", ("fit.py", "--x", "1"), "", {}),
        ("\u8fd0\u884cpython fit.py --w a=2.pt\uff0c\u663e\u793a", ("fit.py", "--w", "a=2.pt"), "", {}),
        ("\u6211\u6267\u884c python fit.py --x 1 \u65f6\u62a5\u9519", ("fit.py", "--x", "1"), "", {}),
        ("I ran /home/me/envs/a/bin/python fit.py --x 1", ("fit.py", "--x", "1"), "", {}),
        ("python fit.py --data <path to data> --x 1",
         ("fit.py", "--data", "path_to_data", "--x", "1"), "", {}),
        ("srun --gres=gpu:1 python -u fit.py --x 1", ("fit.py", "--x", "1"), "", {}),
        ("% python3 fit.py --x 1", ("fit.py", "--x", "1"), "", {}),
        ("fit.py --x 1 -n 2", ("fit.py", "--x", "1", "-n", "2"), "", {}),
        ("\u279c python fit.py", ("fit.py",), "", {}),
    ],
)  # fmt: skip
def test_a_command_that_stands_in_the_text_without_a_mark_is_read(text, argv, folder, variables):
    (command,) = read_issue(Issue(title="it fails", body=text)).commands
    assert (command.argv, command.folder, command.variables) == (argv, folder, variables)
    assert command.quote.line


@pytest.mark.parametrize(
    "text",
    [
        "I use Python 3.8 and pytest 7.0.",
        "It works when I run python fit.py --cpu.",
        "I use fit.main instead of running python fit.py.",
        "python is great, bash is not.",
        "The old python fit.py is gone.",
        "Python version: 3.9\n\nsh: command not found",
        "The file fit.py -a mess- is bad.",
        "\u6211\u6ca1\u6709\u8fd0\u884c python fit.py",
        "\u8fd9\u4e2apython\u7248\u672c\u662f3.8",
    ],
)
def test_a_sentence_about_a_program_is_no_command(text):
    assert read_issue(Issue(title="it fails", body=text)).commands == ()


def test_a_command_in_a_fence_goes_before_one_in_the_text():
    text = "I ran python fit.py first, then\n\n```\npython eval.py\n```\n"
    rows = read_issue(Issue(title="it fails", body=text)).commands
    assert [row.argv for row in rows] == [("eval.py",), ("fit.py",)]


def test_words_in_quotes_are_no_command():
    text = 'Use "python 3.11" or "pip install x", it says "python is not found" and `main.py`.'
    assert read_issue(Issue(title="it fails", body=text)).commands == ()


TREE = {
    "train.py": b"import argparse\nfrom lib.model import build\nimport numpy\n",
    "tools/train.py": b"import torch\n",
    "tools/only.py": b"",
    "lib/__init__.py": b"",
    "lib/model.py": b"import scipy\nfrom .parts import part\nimport lib.other\n",
    "lib/other.py": b"import yaml\n",
    "lib/__main__.py": b"",
    "tests/test_a.py": b"",
}


def proposed(block, after=TRACE, tree=TREE):
    bug = read_issue(Issue(title="it fails", body=f"```\n{block}\n```\n{after}"))
    return tree_programs.propose(tree_programs.commands(bug), tree)


@pytest.mark.parametrize(
    ("block", "entry", "command", "folder"),
    [
        ("python train.py --x 1", "train.py", ("train.py", "--x", "1"), ""),
        ("cd tools\npython train.py", "tools/train.py", ("train.py",), "tools"),
        ("cd elsewhere\npython train.py", "train.py", ("train.py",), ""),
        ("python only.py", "tools/only.py", ("only.py",), "tools"),
        ("python /home/me/tools/only.py", "tools/only.py", ("tools/only.py",), ""),
        ("python -m lib.model", "lib/model.py", ("-m", "lib.model"), ""),
        ("python -m lib", "lib/__main__.py", ("-m", "lib"), ""),
        (
            "pytest tests/test_a.py::t",
            "tests/test_a.py",
            ("-m", "pytest", "tests/test_a.py::t"),
            "",
        ),
        ("python ../../etc/train.py", "train.py", ("train.py",), ""),
    ],
)
def test_a_command_starts_a_file_of_the_tree(block, entry, command, folder):
    script = proposed(block)[0]
    assert (script.entry, script.command, script.folder) == (entry, command, folder)
    assert script.files == {entry: TREE[entry].decode()}


def test_without_a_command_the_outermost_frame_tells_the_file():
    (script,) = proposed("pip install x")
    assert (script.entry, script.command) == ("tools/train.py", ("tools/train.py",))


def test_after_a_command_the_file_in_which_the_traceback_starts_is_tried():
    """The command may start it as another process."""
    commands_of_scripts = [script.command for script in proposed("python train.py --x 1")]
    assert commands_of_scripts == [("train.py", "--x", "1"), ("tools/train.py",)]
    assert [row.command for row in proposed("cd tools; python train.py --x 1")] == [
        ("train.py", "--x", "1")
    ]


def test_a_shell_script_that_the_report_names_tells_the_arguments_of_the_failing_file():
    tree = {**TREE, "run/long.sh": b"for n in 3 4; do\n  python tools/train.py --x $n'_'a\ndone\n"}
    bug = read_issue(Issue(title="it fails", body=f"I ran the file run/long.sh.\n{TRACE}"))
    scripts = tree_programs.propose(tree_programs.commands(bug), tree)
    assert [row.command for row in scripts] == [
        ("tools/train.py", "--x", "3_a"),
        ("tools/train.py",),
    ]


@pytest.mark.parametrize(
    ("text", "argvs"),
    [
        ("python -m lib.train --x 5\n", [("-m", "lib.train", "--x", "5")]),
        ("\nA=1 python3 train.py\n\n", [("train.py",)]),
        ("epoch 1\npython train.py\n", []),
        ("python is slow\n", []),
    ],
)
def test_the_line_above_a_traceback_in_its_block_is_a_command(text, argvs):
    body = f"It fails:\n{TRACE.replace('```', f'```{chr(10)}{text}', 1)}"
    bug = read_issue(Issue(title="it fails", body=body))
    assert [row.argv for row in bug.commands] == argvs


@pytest.mark.parametrize(
    "prompt",
    [
        "(env):/repo/test$",
        "root@host:repo#",
        "/repo$",
        "~/repo$",
        "(base) me@Macs-MBP repo %",
        "[me@node01 repo]$",
        "\u279c  repo git:(main) \u2717",
    ],
)
@pytest.mark.parametrize("is_fenced", [True, False])
def test_a_prompt_marks_a_command(prompt, is_fenced):
    text = f"{prompt} python train.py --x 5\nloading\n{TRACE.replace('```', '')}"
    body = f"```\n{text}\n```" if is_fenced else text
    (command,) = read_issue(Issue(title="it fails", body=body)).commands
    assert command.argv == ("train.py", "--x", "5")


def test_a_quoted_command_is_read_once():
    body = f"1. Run `cd tools && python train.py --x 1`\n{TRACE}"
    (command,) = read_issue(Issue(title="it fails", body=body)).commands
    assert (command.argv, command.folder) == (("train.py", "--x", "1"), "tools")


def test_a_command_in_quotation_marks_ends_with_them():
    body = 'When I enter the command "python train.py --policy rgl ", it appears: IndexError'
    (command,) = read_issue(Issue(title="it fails", body=body)).commands
    assert command.argv == ("train.py", "--policy", "rgl")


@pytest.mark.parametrize(
    ("command", "folder"), [("bash fit.sh", "run"), ("cd run; bash fit.sh", "run")]
)
def test_a_shell_script_runs_in_the_folder_where_the_report_starts_it(command, folder):
    text = b'NOW=$(date +%F)\nOUT="$PWD/../out/$NOW-${SIZE:-5}"\npython ../train.py --out=$OUT\n'
    (script, *_) = proposed(command, tree={**TREE, "run/fit.sh": text})
    assert (script.entry, script.folder) == ("train.py", folder)
    assert script.command == ("../train.py", "--out=./../out/date-5")


def test_an_argument_that_a_shell_script_was_not_given_is_empty():
    (script, *_) = proposed("bash fit.sh", tree={**TREE, "fit.sh": b"python train.py $1 --x 2\n"})
    assert script.command == ("train.py", "--x", "2")


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("python -m torch.distributed.launch --nproc_per_node=1 train.py --x 1", ("--local-rank=0", "--x", "1")),
        ("deepspeed train.py --x 1", ("--local-rank=0", "--x", "1")),
        ("torchrun train.py --x 1", ("--x", "1")),
        ("python train.py --x 1", ("--x", "1")),
    ],
)  # fmt: skip
def test_a_launcher_passes_the_option_of_which_the_report_says_that_it_is_refused(
    command, arguments
):
    issue = Issue(
        title="train.py: error: unrecognized arguments: --local-rank=0", body=f"`{command}`"
    )
    (script,) = tree_programs.propose(tree_programs.commands(read_issue(issue)), TREE)
    assert script.command == ("train.py", *arguments)


def test_a_prompt_of_windows_marks_a_command():
    body = "C:\\Users\\me\\repo>python3 -m lib.train --x 5\nIt fails (ValueError: no size '5')"
    bug = read_issue(Issue(title="it fails", body=body))
    assert [row.argv for row in bug.commands] == [("-m", "lib.train", "--x", "5")]
    assert [row.message for row in bug.tracebacks] == ["no size '5'"]


def test_a_file_that_the_tree_lacks_is_not_guessed():
    assert proposed("python absent.py", after="") == ()


def test_a_command_may_not_change_how_python_or_the_sandbox_starts():
    text = "LD_PRELOAD=x PYTHONPATH=/x REPRISE_TRACE=y REPRISE_CUDA=available KEEP=1 HOME=$HOME python train.py"
    assert proposed(text)[0].variables == {"KEEP": "1"}


def test_what_the_modules_of_the_tree_need_from_elsewhere_is_installed():
    text = tree_programs.imports(proposed("python train.py")[:1], TREE)
    assert set(text.split("\n")) == {"import numpy", "import scipy", "import yaml"}


def test_a_package_beside_a_program_in_a_folder_is_the_repository_s_own():
    tree = {
        "code/__init__.py": b"",
        "code/main.py": b"import torch\nfrom align.util import load\n",
        "code/align/__init__.py": b"",
        "code/align/util.py": b"import scipy\nfrom gnn.layers import Layer\n",
        "code/gnn/layers.py": b"",
    }
    (script,) = proposed("cd code && python main.py", tree=tree)[:1]
    assert tree_programs.imports((script,), tree).split("\n") == ["import torch", "import scipy"]


def test_scripts_differ_by_their_commands():
    one, other = (proposed(f"python train.py --x {n}")[0] for n in (1, 2))
    assert one.digest != other.digest


def test_a_command_of_the_operator_goes_before_those_of_the_report():
    body = f"```\npython train.py\n```\n{TRACE}"
    job = issue_job(Issue(title="it fails", body=body), repo="/clone", command="python a.py --x 1")
    draft = plan(job)
    assert draft.verdict.needs_reader
    assert [row.argv for row in draft.bug.commands] == [("a.py", "--x", "1"), ("train.py",)]


@pytest.mark.parametrize(
    ("command", "repo", "words"),
    [
        ("ls -l", "/clone", "starts no Python program"),
        ("python 'x", "/clone", "starts no Python program"),
        ("python a.py", None, "needs a clone"),
    ],
)
def test_a_command_that_cannot_be_run_is_refused_with_the_next_step(command, repo, words):
    with pytest.raises(UserError, match=words) as raised:
        options.command(command, repo)
    assert raised.value.fix


def test_the_summary_of_a_pytest_run_is_a_command_and_a_failure():
    body = (
        "```\nFAILED test/test_a.py::test_one - KeyError: 'x'\n"
        "FAILED test/test_a.py::TestB::test_two[3-a] - ValueError: size 5\n```\n"
    )
    bug = read_issue(Issue(title="Tests fail", body=body))
    names = ("test/test_a.py::test_one", "test/test_a.py::TestB::test_two[3-a]")
    assert bug.commands[-1].argv == ("-m", "pytest", *names)
    (row,) = bug.tracebacks
    assert (row.exception, row.message) == ("KeyError", "'x'")


def test_of_the_choices_that_a_usage_shows_the_first_is_taken():
    command = read_command("python agg.py [LOAD|TRAIN|EVAL] --mode {a|b} [x] a|b")
    assert command is not None
    assert command.argv == ("agg.py", "LOAD", "--mode", "a", "[x]", "a|b")


def test_a_title_may_be_the_command():
    bug = read_issue(Issue(title="python fit.py --size 3", body="KeyError: 'x'"))
    assert [row.argv for row in bug.commands] == [("fit.py", "--size", "3")]
    assert read_issue(Issue(title="Running python fails", body="KeyError: 'x'")).commands == ()


def test_a_usage_error_names_its_program_and_the_arguments_that_it_refuses():
    body = (
        "I get\n```\nusage: fit.py [-h]\nfit.py: error: unrecognized arguments: --size=3 --b 1\n```"
    )
    (script,) = tree_programs.propose(
        tree_programs.commands(read_issue(Issue(title="It fails", body=body))), {"a/fit.py": b"1"}
    )
    assert script.command == ("a/fit.py", "--size=3", "--b", "1")


def test_of_several_files_of_one_name_it_is_that_with_the_quoted_lines():
    body = (
        "I ran main.py and got\n```\nTraceback (most recent call last):\n"
        '  File "main.py", line 2, in <module>\n    run(5)\nTypeError: run() takes 0 positional '
        "arguments but 1 was given\n```\n"
    )
    bug = read_issue(Issue(title="It fails", body=body))
    tree = {"one/main.py": b"from net import run\nrun()\n", "two/main.py": b"import net\nrun(5)\n"}
    commands = tree_programs.commands(bug)
    assert tree_programs.propose(commands, tree) == ()
    script, *_ = tree_programs.propose(commands, tree, bug.tracebacks)
    assert (script.entry, script.folder, script.command) == ("two/main.py", "two", ("main.py",))
    both = dict.fromkeys(tree, b"import net\nrun(5)\n")
    assert tree_programs.propose(commands, both, bug.tracebacks) == ()
