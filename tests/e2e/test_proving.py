"""`reprise control`, `bisect` and `minimize` on the folder of a real run: what they find, what
they leave, their mistakes.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.test_cli import COMMAND, Here, environment, here, mistake, reprise
from tests.e2e.test_verdicts import TORCH

__all__ = ["here"]

BOX = ("--sandbox", "process")
LONG = '''import numpy as np
import opt_einsum as oe


class Query:
    """What is asked."""

    def __init__(self, rank):
        self.rank = rank
        self.values = np.ones((0,) * rank)

    def shape(self):
        return self.values.shape


def total(values):
    return sum(v * 2 for v in values)


def contract(query):
    spec = [Ellipsis]
    print("contracting", total([1, 2, 3]))
    return oe.contract_expression(query.shape(), spec)


if __name__ == "__main__":
    contract(Query(4))
'''
TINY = """# scale(2) raises a ZeroDivisionError

```python
from tiny import scale

for factor in (1, 2):
    print(scale(factor))
```

```
Traceback (most recent call last):
  File "a.py", line 4, in <module>
    print(scale(factor))
  File "tiny/__init__.py", line 2, in scale
    return 1 / (2 - factor)
ZeroDivisionError: division by zero
```
"""


def wrong(done: subprocess.CompletedProcess[str], words: str) -> None:
    """A mistake that only shows once something was run."""
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert words in done.stderr.splitlines()[-1]


def report(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "report.json").read_text())
    return found


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was reproduced, and nothing more."""
    place = tmp_path_factory.mktemp("bare")
    left_out = ("--without", "control,bisect", "--without", "minimize")
    done = reprise(place, "reproduce", "example", *BOX, *left_out, "--out", "run")
    assert done.returncode == 0, done.stderr
    found = report(place / "run")
    assert (found["verdict"]["control"]["type"], found.get("bisection"), found.get("reduced")) == (
        "none",
        None,
        None,
    )
    return place / "run"


@pytest.fixture
def run(bare: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(bare, tmp_path / "run"))


@pytest.mark.index
@pytest.mark.slow  # every proof
def test_each_proof_is_added_to_the_run(run: Path, tmp_path: Path) -> None:
    before = report(run)
    done = reprise(tmp_path, "control", "run", *BOX)
    assert done.returncode == 0, done.stderr
    control = report(run)["verdict"]["control"]
    assert (control["type"], control["failures"], control["paired_failures"]) == (
        "fixed-version",
        0,
        control["runs"],
    )
    assert control["p"] <= 0.05
    assert done.stdout.startswith("Bug confirmed: p = 0.004")
    assert "Next: Run reprise bisect run " in done.stdout

    stopped_bisection(tmp_path, signal.SIGINT)
    assert report(run)["verdict"]["control"] == control, "what was found before stays"
    done = reprise(tmp_path, "bisect", "run", *BOX)  # what is left in the folder is the same
    assert done.returncode == 0, done.stderr
    found = report(run)
    assert (found["bisect"]["first_fixed"]["at"], found["bisect"]["last_bad"]["at"]) == (
        "3.4.0",
        "3.3.0",
    )
    assert found["verdict"]["control"] == control, "what was found before stays"
    assert "fixed in 3.4.0" in done.stdout
    assert "│" in done.stdout
    assert "Bug confirmed" not in done.stdout, "of the bisection alone"
    assert found["attempts"][: len(before["attempts"])] == before["attempts"]

    wrong(
        reprise(tmp_path, "bisect", "run", *BOX, "--package", "no-such-thing"),
        "no-such-thing is not installed",
    )

    done = reprise(tmp_path, "minimize", "run", *BOX, "--json")
    assert done.returncode == 0, done.stderr
    smaller = json.loads(done.stdout)
    assert smaller["script"]["lines"] < before["script"]["lines"]
    assert smaller["script"]["lines"] <= 8
    program = (run / "repro.py").read_text()
    assert "contract_expression" in program
    assert sum(map(bool, map(str.strip, program.splitlines()))) == smaller["script"]["lines"]
    assert smaller["minimized"]["lines_after"] == smaller["script"]["lines"]


@pytest.mark.index
@pytest.mark.slow  # six commands, two of them minimise
def test_a_program_of_ones_own_is_made_smaller_beside_a_run(run: Path, tmp_path: Path) -> None:
    (tmp_path / "long.py").write_text(LONG)
    kept = report(run)
    done = reprise(tmp_path, "minimize", "long.py", "--signature", "run", *BOX, "--out", "small")
    assert done.returncode == 0, done.stderr
    program = (tmp_path / "small" / "repro.py").read_text()
    assert "contract_expression" in program
    assert "total" not in program
    assert len(program.splitlines()) <= 20
    assert report(run) == kept, "the run it was held against is as it was"
    for line in program.strip().splitlines():
        assert f"    {line}".rstrip() in done.stdout.splitlines(), "the program is on the screen"
    own = report(tmp_path / "small")
    assert not {each["script"] for each in own["attempts"]} & {
        each["script"] for each in kept["attempts"]
    }
    assert all(
        (tmp_path / "small" / each["execution"]["log"]).is_file() for each in own["attempts"]
    )

    again = reprise(tmp_path, "minimize", "long.py", "--signature", "run", *BOX, "--out", "small")
    assert again.returncode == 0, again.stderr
    assert "continuing from" in again.stderr
    assert (tmp_path / "small" / "repro.py").read_text() == program
    (tmp_path / "other.py").write_text(LONG.replace("4", "3"))
    whole = report(tmp_path / "small")
    done = reprise(tmp_path, "minimize", "other.py", "--signature", "run", *BOX, "--out", "small")
    mistake(done, "small already contains the result of another job.")
    assert report(tmp_path / "small") == whole

    (tmp_path / "fine.py").write_text("import opt_einsum\nprint(opt_einsum.__version__)\n")
    for out in ([], ["--out", "none"]):
        wrong(
            reprise(tmp_path, "minimize", "fine.py", "--signature", "run", *BOX, *out),
            "does not fail as that run did",
        )
    assert not (tmp_path / "none").exists()
    assert not (tmp_path / "reprise-runs").exists()


@pytest.mark.index
@pytest.mark.nightly  # a third minimisation of one program
def test_a_copy_elsewhere_is_a_run_of_its_own(run: Path, tmp_path: Path) -> None:
    kept = report(run)
    done = reprise(tmp_path, "minimize", "run", *BOX, "--out", "copy", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["minimized"]["lines_after"] < kept["script"]["lines"]
    assert all(
        (tmp_path / "copy" / each["execution"]["log"]).is_file() for each in found["attempts"]
    )
    assert report(run) == kept


@pytest.mark.index
def test_a_stop_says_what_it_had_and_how_to_go_on(run: Path, tmp_path: Path) -> None:
    stopped_bisection(tmp_path, signal.SIGTERM)
    assert report(run)["verdict"]["kind"] == "reproduced"


def stopped_bisection(tmp_path: Path, number: signal.Signals) -> None:
    argv = [*COMMAND, "bisect", "run", *BOX]
    process = subprocess.Popen(
        argv, cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )  # fmt: skip
    assert process.stderr is not None
    while "building" not in process.stderr.readline():
        assert process.poll() is None
    process.send_signal(number)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 3
    assert said.startswith("Bisection: stopped on request.")
    assert "could not be tested" not in said
    assert "Next: Run reprise bisect run --sandbox process to resume." in said.splitlines()


@pytest.mark.index
def test_time_that_is_up_is_no_success_either(run: Path, tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text("import time\n\ntime.sleep(2)\n" + LONG)
    done = reprise(
        tmp_path,
        "minimize",
        "slow.py",
        "--signature",
        "run",
        *BOX,
        "--minutes",
        "0.1",
        "--out",
        "small",
    )
    assert done.returncode == 3, done.stderr
    assert done.stdout.startswith("Minimal script: the time limit was reached.")
    assert (
        "Next: Run reprise minimize small --minutes 0.2 --sandbox process to resume."
        in done.stdout.splitlines()
    )
    assert report(tmp_path / "small")["minimized"]["ended"] == "time"


@pytest.mark.index
@pytest.mark.slow  # killed and continued twice
def test_killed_at_any_moment_it_goes_on_from_what_was_confirmed(run: Path, tmp_path: Path) -> None:
    (tmp_path / "long.py").write_text(LONG)
    argv = [*COMMAND, "minimize", "long.py", "--signature", "run", *BOX, "--out", "small", "--json"]
    attempts = tmp_path / "small" / "attempts.jsonl"
    lines: list[str] = []
    chance = random.Random(5)
    for _ in range(2):
        process = subprocess.Popen(
            argv,
            cwd=tmp_path,
            env=environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        until = time.monotonic() + chance.uniform(1.5, 4)
        while process.poll() is None and time.monotonic() < until:
            time.sleep(0.05)
        if process.poll() is not None:
            break  # it was done before: the next one would begin anew
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        now = attempts.read_text().splitlines(keepends=True) if attempts.exists() else []
        whole = [line for line in now if line.endswith("\n")]
        assert whole[: min(len(lines), 2)] == lines[:2], "what was confirmed is not done again"
        lines = whole
    done = subprocess.run(
        argv, cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=180
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["script"]["lines"] <= 20


def cloned(tmp_path: Path) -> list[str]:
    """A clone of seven commits that breaks in the fifth, a tag after that, and a run of a report
    on its last one.
    """
    clone, ids = tmp_path / "clone", []
    (clone / "tiny").mkdir(parents=True)
    for number in range(7):
        body = "return 1 / (2 - factor)" if number >= 4 else "return factor"
        (clone / "tiny" / "__init__.py").write_text(
            f"def scale(factor):\n    {body}\n\nCHANGE = {number}\n"
        )
        ids.append(committed(clone, f"change {number}"))
    subprocess.run(("git", "tag", "v1.2", ids[5]), cwd=clone, check=True)
    (tmp_path / "tiny.md").write_text(TINY)
    done = reprise(
        tmp_path, "reproduce", "tiny.md", *BOX, "--repo", "clone", "--out", "run", "--without", "control,bisect,minimize"
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return ids


@pytest.mark.slow  # a whole bisection
def test_the_commit_that_brought_it_is_named(tmp_path: Path) -> None:
    ids = cloned(tmp_path)
    commits = ("--repo", "clone", "--good", "HEAD~6", "--bad")
    done = reprise(tmp_path, "bisect", "run", *BOX, *commits, "HEAD")
    assert done.returncode == 0, done.stderr
    said = f'tiny: introduced in {ids[4][:12]} "change 4" ('
    assert done.stdout.startswith(said)
    told = report(tmp_path / "run")
    found = told["bisect"]
    assert (found["over"], found["first_bad"]["at"], found["first_bad"]["subject"]) == (
        "commits",
        ids[4],
        "change 4",
    )
    assert (found["last_good"]["at"], found["package"], found["first_bad"]["first_in"]) == (
        ids[3],
        "tiny",
        "v1.2",
    )
    control = told["verdict"]["control"]
    assert (control["type"], control["what"]) == ("last-good-version", f"tiny at {ids[3][:12]}")
    assert control["p"] <= 0.05
    for name in ("report.json", "report.md"):
        text = (tmp_path / "run" / name).read_text()
        assert str(tmp_path) not in text, "where the clone lies is nobody's business"
    wrong(reprise(tmp_path, "bisect", "run", *BOX, *commits, "no-such"), "no-such")


COMMAND_REPORT = """# train.py fails for odd sizes

```
cd clone
python train.py --size 5
```

```
Traceback (most recent call last):
  File "/home/me/clone/train.py", line 3, in <module>
    print(build(int(sys.argv[-1])))
  File "/home/me/clone/lib/model.py", line 3, in build
    raise ValueError(f"size {size} is not even")
ValueError: size 5 is not even
```
"""


@pytest.mark.slow  # a bisection
def test_a_command_of_a_repository_is_reproduced_and_its_commit_is_named(tmp_path: Path) -> None:
    clone, ids = tmp_path / "clone", []
    (clone / "lib").mkdir(parents=True)
    main = "import sys, torch\nfrom lib.model import build\ntorch.Tensor().cuda()\nprint(build(int(sys.argv[-1])))\n"
    raises = '    if size % 2:\n        raise ValueError(f"size {size} is not even")\n'
    (clone / "torch.py").write_text(TORCH)
    for number in range(4):
        body = raises if number >= 2 else ""
        (clone / "train.py").write_text(f"{main}# {number}\n")
        (clone / "lib" / "model.py").write_text(f"def build(size):\n{body}    return size\n")
        ids.append(committed(clone, f"change {number}"))
    (tmp_path / "report.md").write_text(COMMAND_REPORT)
    less = ("--without", "minimize")
    done = reprise(
        tmp_path, "reproduce", "report.md", *BOX, *less, "--repo", "clone", "--out", "run"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    words = " ".join(done.stdout.split())
    assert f"In the repository at commit {ids[3][:12]}: python train.py --size 5" in words
    assert f'introduced in {ids[2][:12]} "change 2"' in words
    assert f"0 of 5 failed with train.py at {ids[1][:12]}" in words
    assert "no library's Python code" not in (tmp_path / "run" / "report.md").read_text()
    assert "Changed from the bug report: CUDA calls are answered on the CPU" in words
    assert report(tmp_path / "run")["script"]["path"].endswith("train.py")
    commits = ("--repo", "clone", "--good", ids[0], "--bad", "HEAD")
    done = reprise(tmp_path, "bisect", "run", *BOX, *commits)
    assert done.returncode == 0, done.stderr
    assert f'introduced in {ids[2][:12]} "change 2"' in done.stdout


@pytest.mark.nightly  # several bisections
def test_commits_that_do_not_do_as_is_said_of_them(tmp_path: Path) -> None:
    """No boundary is named, and the exit code is that of what could not be told."""
    ids = cloned(tmp_path)
    short = [each[:12] for each in ids]

    def asked(good: str, bad: str) -> tuple[int, str, Any]:
        done = reprise(
            tmp_path,
            "bisect",
            "run",
            *BOX,
            "--repo",
            "clone",
            "--good",
            good,
            "--bad",
            bad,
            "--json",
        )
        return done.returncode, done.stderr.splitlines()[-1], json.loads(done.stdout)["bisect"]

    meant = f"did you mean --good {ids[0]} --bad HEAD? HEAD ({short[6]}) fails (2 of 2) and {short[0]} passes (0 of "
    done = reprise(
        tmp_path, "bisect", "run", *BOX, "--repo", "clone", "--good", "HEAD", "--bad", ids[0]
    )
    found = report(tmp_path / "run")["bisect"]
    assert (done.returncode, found["first_bad"], found["first_fixed"]) == (3, None, None)
    assert (done.stdout + done.stderr).count("did you mean") == 1
    assert meant in " ".join((done.stdout + done.stderr).split())
    assert f"Next: Run reprise bisect run --repo clone --good {ids[0]} --bad HEAD " in done.stdout
    wrong(
        reprise(
            tmp_path, "bisect", "run", *BOX, "--repo", "clone", "--good", "HEAD", "--bad", ids[6]
        ),
        "the same commit",
    )
    code, said, _ = asked("v1.2", "HEAD")
    assert (code, said) == (
        3,
        f"No commit was identified: v1.2 ({short[5]}), given as good, fails (2 of 2).",
    )
    code, said, found = asked("HEAD~6", "HEAD~4")
    assert (code, found["ends"] in said) == (3, True)
    assert f"HEAD~4 ({short[2]}), given as bad, passes (0 of " in said

    other = tmp_path / "other"
    (other / "small").mkdir(parents=True)
    for number in range(3):
        (other / "small" / "__init__.py").write_text(f"CHANGE = {number}\n")
        committed(other, f"change {number}")
    done = reprise(
        tmp_path, "bisect", "run", *BOX, "--repo", "other", "--good", "HEAD~2", "--bad", "HEAD"
    )
    wrong(
        done,
        "the clone provides small, which the failing program does not use. Pass a clone of a package that it imports: tiny.",
    )


def committed(clone: Path, subject: str) -> str:
    who = ("-c", "user.name=a", "-c", "user.email=a@b.example")
    for argv in (("init", "-q"), ("add", "-A"), (*who, "commit", "-qm", subject)):
        subprocess.run(("git", *argv), cwd=clone, check=True, capture_output=True)
    return subprocess.run(
        ("git", "rev-parse", "HEAD"), cwd=clone, check=True, capture_output=True, text=True
    ).stdout.strip()


MISTAKES = [
    (["control", "nowhere"], "nowhere is not the folder of a finished run."),
    (["bisect", "nowhere", "--good", "a"], "Give --repo, --good and --bad together."),
    (
        ["bisect", "nowhere", "--repo", ".", "--good", "a", "--bad", "b", "--package", "x"],
        "cannot be bisected in one command.",
    ),
    (
        ["bisect", "nowhere", "--repo", ".", "--good", "--output=x", "--bad", "b"],
        "is not a branch, tag or commit.",
    ),
    (["minimize", "a.py"], "Name a run folder with --signature"),
    (["minimize", "no.py", "--signature", "run"], "no.py is not a program."),
    (["minimize", "empty", "--signature", "run"], "empty is not a program."),
    (["minimize", "latin.py", "--signature", "run"], "latin.py is not UTF-8 text."),
    (["minimize", "a.py", "--signature", "empty"], "empty is not the folder of a finished run."),
]


@pytest.mark.parametrize(("argv", "words"), MISTAKES)
def test_mistakes_are_one_sentence(tmp_path: Path, here: Here, argv: list[str], words: str) -> None:
    (tmp_path / "a.py").write_text("print(1)\n")
    (tmp_path / "latin.py").write_bytes(b"# caf\xe9\n")
    (tmp_path / "empty").mkdir()
    mistake(here(*argv, *BOX), words)
    assert not (tmp_path / "reprise-runs").exists()


def test_help_stays_quick() -> None:
    code = "import sys; import bot.cli.app; print([m for m in sys.modules if m.split('.')[0] in {'rich', 'sqlalchemy', 'docker'} or m.startswith('bot.issues.reproduce')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
