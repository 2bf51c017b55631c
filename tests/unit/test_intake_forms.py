"""Whole reports as the forms of well-known projects shape them, written for these tests."""

from __future__ import annotations

import time

from bot.issues.reading.issue import read_issue
from bot.issues.search.report_text import report_text
from bot.kernel.bug import BugReport, FenceKind, Issue, Role, Symptom


def report(
    body: str,
    title: str = "It breaks",
    repository: str = "acme/acme-nets",
    labels: tuple[str, ...] = (),
) -> BugReport:
    return read_issue(Issue(title=title, body=body, repository=repository, labels=labels))


def used(found: BugReport) -> list[tuple[str, str]]:
    return [(claim.name, claim.version) for claim in found.versions]


def sides(found: BugReport) -> list[tuple[str, str]]:
    return [(output.role, output.text) for output in found.outputs]


def test_metrics_form_with_folded_sample() -> None:
    found = report(
        "## 🐛 Bug\n\nThe value is off.\n\n### To Reproduce\n\n<!-- If you have a code sample, please provide it -->\n\n<details>\n  <summary>Code sample</summary>\n\n```python\n"
        "# Ideally attach a minimal code sample.\nimport torch\nfrom torchmetrics.retrieval import RetrievalMAP\nm = RetrievalMAP()\nprint(m(torch.tensor([0.1])))\n# tensor(0.5000)\n```\n\n</details>\n\n"
        "### Expected behavior\n\n`tensor(1.)`\n\n### Environment\n\n- TorchMetrics version (and how you installed TM, e.g. `conda`, `pip`, build from source): 1.2.0 (pip)\n"
        "- Python & PyTorch Version (e.g., 1.0): 3.10.9, 2.0.1\n- Any other relevant information such as OS (e.g., Linux): macOS 13\n"
    )
    assert used(found) == [("torchmetrics", "1.2.0"), ("python", "3.10.9"), ("torch", "2.0.1")]
    assert sides(found) == [("observed", "tensor(0.5000)"), ("expected", "tensor(1.)")]
    assert found.fences[0].role is Role.REPRODUCER


def test_placeholders_of_a_form_are_no_claims() -> None:
    found = report(
        '**To Reproduce**\n1. `pip install timm==0.9.2`\n2. run\n```\nimport timm\nprint(timm.create_model("x"))\n```\n\n**Desktop (please complete the following information):**\n - OS: [e.g. Ubuntu 18.04]\n'
        " - This repository version [e.g. pip 0.3.1 or commit ref]\n - PyTorch version w/ CUDA/cuDNN [from `conda list`, e.g. 1.7.0 py3.8_cuda11.0.221_cudnn8.0.3_0]\n"
    )
    assert used(found) == [("timm", "0.9.2")]


def test_filled_template_in_a_fence_is_an_environment() -> None:
    found = report(
        "### Environment\n\n```\n#- Lightning Component (e.g. Trainer, LightningModule): Trainer\n#- PyTorch Lightning Version (e.g., 1.5.0): 1.9.4\n#- PyTorch Version (e.g., 2.0): 1.13\n#- Python version (e.g., 3.9): 3.9\n"
        "#- OS (e.g., Linux): Linux\n#- CUDA/cuDNN version:\n```"
    )
    assert found.fences[0].kind is FenceKind.ENVIRONMENT
    assert used(found) == [("pytorch-lightning", "1.9.4"), ("torch", "1.13"), ("python", "3.9")]


def test_described_build_and_capture_form() -> None:
    found = report(
        "**System information**.\n\n- OS Platform and Distribution (e.g., Linux Ubuntu 16.04): Linux Ubuntu 20.04\n- TensorFlow version (use command below): v2.8.0-rc1-32-g3f878cff5b6 2.8.0\n- Python version: 3.8.10\n- GPU model and memory: Tesla T4\n"
    )
    assert used(found) == [("tensorflow", "2.8.0"), ("python", "3.8.10")]
    assert found.device == ""


def test_scheduler_form_with_emoji_and_checkout_path() -> None:
    found = report(
        "### Reproduction\n\n```python\nfrom diffusers import EulerDiscreteScheduler\ns = EulerDiscreteScheduler()\n```\n\n### Logs\n\n```shell\nTraceback (most recent call last):\n"
        '  File "/home/u/diffusers/src/diffusers/schedulers/scheduling_euler.py", line 500, in step\n    sigma = self.sigmas[self.step_index]\n            ~~~~~~~~~~~^^^^^^^^^^^^^^^^^\nIndexError: index 4 is out of bounds\n```\n\n'
        "### System Info\n\n- 🤗 Diffusers version: 0.30.0\n- Python version: 3.10.12\n- PEFT version: not installed\n- Using GPU in script?: <fill in>\n",
        repository="huggingface/diffusers",
    )
    assert used(found) == [("diffusers", "0.30.0"), ("python", "3.10.12")]
    assert found.tracebacks[0].frames[0].module_path == "diffusers/schedulers/scheduling_euler.py"
    assert found.tracebacks[0].frames[0].code == "sigma = self.sigmas[self.step_index]"


def test_boxed_traceback() -> None:
    found = report(
        "```\n╭───────────────── Traceback (most recent call last) ─────────────────╮\n│ /home/u/train.py:12 in main                                         │\n│                                                                     │\n│    11 │   model = f()                                               │\n"
        "│ ❱  12 │   accelerator.prepare(model)                                │\n│ /opt/lib/python3.10/site-packages/accelerate/accelerator.py:1211 in prepare │\n│ ❱ 1211 │   │   │   raise ValueError(                                │\n╰─────────────────────────────────────────────────────────────────────╯\n"
        "ValueError: You can't train a model with CPU offload.\n```"
    )
    (traceback,) = found.tracebacks
    assert traceback.message == "You can't train a model with CPU offload."
    assert [(f.module_path, f.line, f.function, f.code) for f in traceback.frames] == [
        ("", 12, "main", "accelerator.prepare(model)"),
        ("accelerate/accelerator.py", 1211, "prepare", "raise ValueError("),
    ]
    assert found.device == ""


def test_sections_and_a_table_of_results() -> None:
    found = report(
        "## Steps to Reproduce\n\n```python\nimport jax.numpy as jnp\nx = jnp.array([0, 4])\n\n# Output:\n# int32\nprint(jnp.unwrap(x).dtype)\n```\n\n## Results\n\n| Input | Expected | Actual |\n|---|---|---|\n| `[0, 4]` | 1.5 | nan |\n| `[1]` | 2 | 2 |\n\n"
        "## Root Cause\n\nIn `jax/_src/numpy/lax_numpy.py`:\n\n```python\ndef unwrap(p, discont=None):\n    return ufuncs.diff(p)\n```\n\n## Suggested Fix\n\n```python\ndd = ufuncs.diff(p).astype(p.dtype)\n```\n\n## Environment\n\n- JAX version: 0.4.35\n- Python: 3.12.3\n- Device: CPU\n"
    )
    assert [fence.role for fence in found.fences] == [Role.REPRODUCER, Role.SOURCE, Role.FIX]
    assert sides(found) == [("observed", "int32"), ("expected", "1.5"), ("observed", "nan")]
    assert found.symptom is Symptom.NONFINITE


def test_one_program_works_and_the_other_fails() -> None:
    code = "```python\nimport torch\nprint(torch.nn.Conv2d(1, 1, 1))\n```\n"
    found = report(
        f"#### Works\n\n{code}\n#### Fails\n\n{code}\nOutput:\n\n    tensor([[[[nan]]]])\n",
        "Conv2d output differs",
    )
    assert [fence.role for fence in found.programs] == [Role.CONTRAST, Role.REPRODUCER]
    assert sides(found) == [("observed", "tensor([[[[nan]]]])")]


def test_environment_printed_by_the_library() -> None:
    found = report(
        "```python\nfrom flax import nnx\nprint(nnx.mean)  # [0.] but should be [0.01]\n```\n```\njax.print_environment_info()\njax:    0.4.31\nnumpy:  2.0.1\npython: 3.11.9 (main, Apr  6 2024) [GCC 11.4.0]\njax.devices (1 total, 1 local): [CpuDevice(id=0)]\n"
        "platform: uname_result(system='Linux', node='x', release='5.15.0', machine='x86_64')\n```"
    )
    assert used(found) == [("jax", "0.4.31"), ("numpy", "2.0.1"), ("python", "3.11.9")]
    assert sides(found) == [("observed", "[0.]"), ("expected", "[0.01]")]


def test_session_whose_value_is_echoed() -> None:
    found = report(
        '```\n>>> import deepchem as dc\n>>> f = dc.feat.RDKitDescriptors()\n>>> f.featurize("CCX")\nFailed to featurize datapoint 0, CCX.\narray([], shape=(1, 0), dtype=float64)\n```\n* DeepChem version: 2.6.1\n* RDKit version (optional): 2021.9.4\n* PyTorch version (optional):'
    )
    assert used(found) == [("deepchem", "2.6.1"), ("rdkit", "2021.9.4")]
    assert found.programs[0].text.endswith('print(repr(f.featurize("CCX")))')


def test_words_in_another_language() -> None:
    found = report(
        '请问怎么解决\n\n```python\nfrom ultralytics import YOLO\nYOLO("x.yaml").train(device=0)\n```\n\n报错如下\n```\n  File "D:\\anaconda\\envs\\y\\lib\\site-packages\\ultralytics\\nn\\modules\\conv.py", line 288, in forward\n    return torch.cat(x, self.d)\n'
        "RuntimeError: Sizes of tensors must match except in dimension 1.\n```\nPython-3.9.16 torch-2.0.0+cu118"
    )
    assert found.tracebacks[0].frames[0].module_path == "ultralytics/nn/modules/conv.py"
    assert found.fences[1].role is Role.OBSERVED
    assert used(found) == [("python", "3.9.16"), ("torch", "2.0.0+cu118")]


def test_install_and_here_document() -> None:
    found = report(
        "```sh\npip install transformers==4.41.0\ncat > run.py << EOF\nfrom transformers import Trainer\nTrainer()\nEOF\npython run.py\n```\n\nResult:\n\n> AttributeError: 'NoneType' object has no attribute 'keys'\n"
    )
    assert found.programs[0].text == "from transformers import Trainer\nTrainer()"
    assert found.programs[0].installs == ("transformers==4.41.0",)
    assert found.tracebacks[0].message == "'NoneType' object has no attribute 'keys'"
    assert used(found) == [("transformers", "4.41.0")]


def test_growing_numbers_are_an_output() -> None:
    found = report(
        "```python\nimport torch\nprint(1)\n```\n```\n120.3\n130.5\n```",
        "Memory leak in interpolate",
    )
    assert found.symptom is Symptom.PERFORMANCE
    assert sides(found) == [("observed", "120.3\n130.5")]


def test_plain_exception_and_values_in_words() -> None:
    found = report(
        '```\nTraceback (most recent call last):\n  File "a.py", line 3, in <module>\n    go()\nException: bad thing\nhappened twice\n```\nI expect `True` but it returns `False`.'
    )
    assert found.tracebacks[0].message == "bad thing\nhappened twice"
    assert sides(found) == [("expected", "True"), ("observed", "False")]


def test_nothing_to_go_on() -> None:
    found = report(
        "After the last update my loss is wrong, please fix.", "Loss is wrong", labels=("bug",)
    )
    assert (found.fences, found.tracebacks, found.outputs, found.versions, found.missing) == (
        (),
        (),
        (),
        (),
        (),
    )
    assert found.symptom is Symptom.WRONG_VALUE


def test_a_line_of_blanks_in_a_form_costs_nothing() -> None:
    subject = Issue(title="It breaks", body=f"### Logs\n\n{' ' * 60_000}x\n", repository="a/b")
    bug, began = read_issue(subject), time.process_time()
    report_text(subject, bug)
    assert time.process_time() - began < 2


def test_a_model_is_not_shown_what_a_form_holds_and_nobody_filled_in() -> None:
    body = """### Describe the bug

It fails.

## Which part?

- [x] training
- [ ] inference

### Expected

#### In words

nothing

### Logs

```shell

```

### Additional context

_No response_

### Checklist

- [x] I have read the documentation
- [X] I have searched"""
    subject = Issue(title="It breaks", body=body, repository="acme/acme-nets")
    text = report_text(subject, read_issue(subject))
    for answer in ("It fails.", "Which part?", "- [x] training", "### Expected", "In words"):
        assert answer in text
    for rest in ("inference", "Logs", "shell", "Additional", "Checklist", "searched"):
        assert rest not in text
