"""What a program asks of CUDA, answered on the CPU inside the sandbox, with PyTorch itself; and the
verdicts on programs of a repository that ask for a GPU.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from threading import Event

import pytest

from benchmarks.minimise import environment as torch_environment
from bot.environment import setup_failures
from bot.environment.builder import UvBuilder
from bot.issues import observe
from bot.kernel import launch
from bot.kernel.attempt import Script
from bot.kernel.bug import CrashSignature, Issue
from bot.kernel.environment import Environment
from bot.kernel.job import PROOFS
from bot.kernel.ports import Ports
from bot.kernel.report import IssueReport
from bot.kernel.settings import load
from bot.products.engine import execute
from bot.report.terminal import terminal
from sandbox.port import RunResult
from sandbox.process import ProcessSandbox
from tests.support.fakes import FakeBuilder, ListListener, MemoryJournal
from tests.support.jobs import issue_job, job_options

pytestmark = [pytest.mark.index, pytest.mark.slow]

ANY = CrashSignature(exception="IndexError")


@pytest.fixture(scope="module")
def here() -> Iterator[Environment]:
    builder = UvBuilder(load().cache_dir)
    environment = torch_environment(builder)
    yield environment
    del builder  # as long as it lives, its environments stay


def run(here: Environment, source: str, answer: str) -> RunResult:
    """One run of a program whose CUDA calls are answered."""
    script = Script(files={"a.py": source}, entry="a.py", variables={launch.CUDA: answer})
    options = job_options()
    return ProcessSandbox().run(launch.spec(script, here, options, ANY, 1, "run 1"))


CALLS = {
    "modules": "nn.Linear(2, 2).cuda().to('cuda').to(0).to(gpu).to(device='cuda:1').weight.device.type == 'cpu'",
    "modules made there": "nn.Linear(2, 2, device='cuda').weight.device.type == 'cpu'",
    "tensors": "x.cuda(0, non_blocking=True).to(gpu, torch.float16).to(0).dtype == torch.float16",
    "another's type": "x.to(torch.zeros(1, dtype=torch.float64)).dtype == torch.float64",
    "a leaf stays one": "torch.zeros(2, device=gpu, requires_grad=True).cuda().is_leaf",
    "factories": "{torch.ones(2, device=d).device.type for d in ('cuda', gpu, 1, 'cuda:1', 'mps')} == {'cpu'}",
    "like others": "torch.zeros_like(x, device='cuda').device.type == x.new_ones(2, device=gpu).device.type == 'cpu'",
    "page-locked memory": "torch.empty(2, pin_memory=True).pin_memory().shape == (2,)",
    "meta tensors stay": "torch.zeros(2, device='meta').device.type == 'meta'",
    "names of devices stay": "gpu.type == 'cuda' and gpu.index == 0",
    "loading": "torch.load(saved()).device.type == torch.load(saved(), lambda one, _: one.cuda()).device.type",
    "loading elsewhere": "torch.load(saved(), map_location={'cuda:0': 'cuda:1'}, weights_only=True).shape == (3,)",
    "types": "torch.cuda.FloatTensor(3).type() == x.type('torch.cuda.FloatTensor').type() == 'torch.FloatTensor'",
    "generators": "isinstance(torch.Generator(device=gpu), torch.Generator) and isinstance(torch.default_generator, torch.Generator)",
    "drawing": "torch.randn(2, generator=torch.Generator('cuda').manual_seed(3), device='cuda').shape == (2,)",
    "seeds": "torch.cuda.manual_seed(1) is torch.cuda.manual_seed_all(1) is None",
    "memory": "torch.cuda.memory_allocated() == torch.cuda.max_memory_reserved(gpu) == 0",
    "the machine": "torch.cuda.current_device() == 0 and torch.cuda.get_device_name() == 'CPU'",
    "the state of drawing": "torch.cuda.get_rng_state().shape == torch.get_rng_state().shape",
    "no effect": "torch.cuda.set_device(gpu) is torch.cuda.synchronize() is torch.cuda.empty_cache() is None",
    "peaks": "torch.cuda.reset_peak_memory_stats() is None",
    "several": "nn.DataParallel(nn.Linear(2, 2), device_ids=[0, 1]).cuda()(torch.ones(4, 2).cuda()).shape == (4, 2)",
    "packed": "nn.utils.rnn.pack_padded_sequence(torch.ones(2, 3, 1), torch.tensor([3, 2]), True).cuda().data.shape == (5, 1)",
    "loaders": "[len(b[0].cuda()) for b in DataLoader(TensorDataset(torch.ones(8, 2)), 4, pin_memory=True)] == [4, 4]",
}  # fmt: skip
IDIOMS = """\
import io, sys, warnings
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
warnings.simplefilter("ignore")
gpu, x = torch.device("cuda:0"), torch.randn(3)

def saved():
    file = io.BytesIO()
    torch.save(torch.ones(3), file)
    file.seek(0)
    return file

CALLS = {calls!r}
for name, call in CALLS.items():
    try:
        print(name, eval(call))
    except Exception as error:
        print(name, repr(error))

start, end, stream = torch.cuda.Event(enable_timing=True), torch.cuda.Event(), torch.cuda.Stream()
with torch.cuda.stream(stream), torch.cuda.device(0):
    start.record(); end.record()
torch.cuda.current_stream().wait_stream(stream)
print("events", start.elapsed_time(end) >= 0)
with torch.device("cuda"):
    print("a context", torch.zeros(1).device.type == "cpu")
with torch.device("meta"):
    print("another context", nn.Linear(2, 2).weight.device.type == "meta")
torch.set_default_device("cuda")
print("the default", torch.zeros(1).device.type == "cpu")
torch.set_default_device("cpu")

model = nn.Linear(2, 2).cuda()
optimizer, scaler = torch.optim.SGD(model.parameters(), 0.1), torch.cuda.amp.GradScaler()
with torch.cuda.amp.autocast():
    loss = model(torch.ones(1, 2).cuda()).sum()
scaler.scale(loss).backward(); scaler.step(optimizer); scaler.update()
print("mixed precision", loss.item() == loss.item())

@torch.jit.script
def scripted(x):
    return x + torch.zeros(3) + torch.arange(3)
print("TorchScript", scripted(x).shape == (3,))
"""
COMPILED = """\
import torch
@torch.compile(backend="eager", fullgraph=True)
def compiled(x):
    return x.cuda().to("cuda") + torch.ones(3, device="cuda") + x.new_zeros(3, device="cuda")
print("torch.compile", compiled(torch.ones(3)).tolist() == [2, 2, 2])
"""


def rows(result: RunResult) -> dict[str, str]:
    pairs = (line.rpartition(" ")[::2] for line in result.stdout.splitlines())
    return dict(pairs)


def test_what_a_program_asks_of_cuda_is_answered_on_the_cpu(here: Environment) -> None:
    result = run(here, IDIOMS.format(calls=CALLS), "cpu")
    assert result.exit_code == 0, result.stderr
    assert set(CALLS) < set(rows(result))
    assert {name for name, answer in rows(result).items() if answer != "True"} == set(), (
        result.stdout
    )


def test_a_function_that_is_compiled_asks_too(here: Environment) -> None:
    result = run(here, COMPILED, "cpu")
    assert rows(result) == {"torch.compile": "True"}, result.stderr


@pytest.mark.parametrize("question", ["get_device_capability()", "mem_get_info()"])
def test_how_large_or_new_a_gpu_is_stays_unanswered(here: Environment, question: str) -> None:
    failure = run(here, f"import torch\ntorch.cuda.{question}\n", "available")
    assert setup_failures.recognise("", failure.stderr).hardware == "a GPU"


ASKING = """\
import sys, torch
from torch.utils.data import DataLoader
torch.cuda.is_initialized()
print(torch.cuda.is_available(), torch.cuda.device_count())
print(torch.amp.GradScaler("cuda").is_enabled())
"""


@pytest.mark.parametrize(("answer", "printed"), [("cpu", "False 0"), ("available", "True 1")])
def test_only_the_program_itself_hears_that_there_is_a_gpu(
    here: Environment, answer: str, printed: str
) -> None:
    """PyTorch, which asks as well, goes on without one."""
    assert run(here, ASKING, answer).stdout == f"{printed}\nFalse\n"


def test_a_traceback_shows_no_frame_of_what_answers(here: Environment) -> None:
    source = "import torch\ndef make(n):\n    return torch.zeros(n, device='cuda')\nmake(-1)\n"
    result = run(here, source, "cpu")
    assert "_reprise_cuda.py" in result.stderr, "Python itself shows it"
    failures = observe.observe(result).failures
    for failure in (failures[0], *failures):
        assert [frame.function for frame in failure.frames] == ["<module>", "make"]


TRAIN = """\
import argparse
import torch
from lib.model import build

parser = argparse.ArgumentParser()
parser.add_argument("--size", type=int, default=3)
{option}
args = parser.parse_args()
{check}
model = build(args)
x = torch.randn(4, args.size).cuda()
print(model(x).shape)
"""
MODEL = """\
from torch import nn

def build(args):
    model = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 2))
    return model.to(getattr(args, "device", "cuda"))
"""
BROKEN = """Traceback (most recent call last):
  File "/home/me/repo/train.py", line 12, in <module>
    print(model(x).shape)
  File "/usr/lib/python3.11/site-packages/torch/nn/modules/module.py", line 1501, in _call_impl
    return forward_call(*args, **kwargs)
  File "/usr/lib/python3.11/site-packages/torch/nn/modules/container.py", line 217, in forward
    input = module(input)
  File "/usr/lib/python3.11/site-packages/torch/nn/modules/linear.py", line 114, in forward
    return F.linear(input, self.weight, self.bias)
RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x3 and 4x8)"""


def decide(here: Environment, tree: Path, command: str) -> IssueReport:
    """The report on a command of the tree that fails so on a GPU."""
    there = here.model_copy(update={"commit": "a" * 40, "tree": str(tree)})
    ports = Ports(
        sandbox=ProcessSandbox(),
        builder=FakeBuilder(on_build=lambda _: there),
        journal=MemoryJournal(),
        clock=time.monotonic,
        listener=ListListener(),
        cancel=Event(),
    )
    body = f"```\n{command}\n```\n\n```\n{BROKEN}\n```\n"
    issue = Issue(title="It fails", body=body, repository="acme/repo")
    job = issue_job(issue, max_runs=6, without=PROOFS, repo=str(tree))
    report = execute(job, ports)
    assert isinstance(report, IssueReport)
    return report


def written(tree: Path, *, option: str = "", check: str = "") -> Path:
    (tree / "lib").mkdir()
    (tree / "lib" / "model.py").write_text(MODEL)
    (tree / "train.py").write_text(TRAIN.format(option=option, check=check))
    return tree


ANSWERED = "CUDA calls are answered on the CPU"
PRETENDED = "`torch.cuda.is_available()` answers True to the program"


@pytest.mark.parametrize(
    ("check", "fixes"),
    [
        ("", [ANSWERED]),
        ("assert torch.cuda.is_available()", [ANSWERED, PRETENDED]),
    ],
)  # fmt: skip
def test_a_failure_behind_cuda_calls_is_reproduced_with_the_fix_listed(
    here: Environment, tmp_path: Path, check: str, fixes: list[str]
) -> None:
    report = decide(here, written(tmp_path, check=check), "python train.py --size 3")
    assert report.verdict.kind == "reproduced"
    assert report.script is not None
    assert [fix.what for fix in report.script.fixes] == fixes
    assert f"Changed from the bug report: {ANSWERED}" in " ".join(terminal(report).split())
    assert not report.script.edited, "other commits run their own files"


def test_the_option_of_the_program_comes_first(here: Environment, tmp_path: Path) -> None:
    option = 'parser.add_argument("--device", default="cuda")'
    report = decide(here, written(tmp_path, option=option), "python train.py --size 3")
    assert report.verdict.kind == "reproduced"
    assert report.script is not None
    assert report.script.command == ("train.py", "--size", "3", "--device", "cpu")
    # The program still asks for CUDA elsewhere.
    assert [fix.what for fix in report.script.fixes] == ["--device cpu instead of cuda", ANSWERED]
