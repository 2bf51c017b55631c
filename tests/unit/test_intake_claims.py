"""Versions, outputs, kinds, symptoms and surroundings, each with the words they came from."""

from __future__ import annotations

import pytest

from bot.issues.reading.issue import read_issue
from bot.issues.signature.freeze import freeze
from bot.kernel.bug import (
    BugReport,
    CrashSignature,
    Issue,
    ReportKind,
    Symptom,
    WarningSignature,
)


def report(
    body: str,
    title: str = "Layer",
    repository: str = "acme/acme-nets",
    labels: tuple[str, ...] = (),
) -> BugReport:
    return read_issue(Issue(title=title, body=body, repository=repository, labels=labels))


def used(found: BugReport) -> set[tuple[str, str]]:
    return {(claim.name, claim.version) for claim in found.versions}


def good(found: BugReport) -> set[tuple[str, str]]:
    return {(claim.name, claim.version) for claim in found.works_in}


@pytest.mark.parametrize(
    ("body", "claims"),
    [
        ("torch 2.13.0 CPU", {("torch", "2.13.0")}),
        (
            "PyTorch 2.11, Python 3.10 and keras==2.14.0",
            {("torch", "2.11"), ("python", "3.10"), ("keras", "2.14.0")},
        ),
        ("- PyTorch: 2.12.x\n- Lightning: 2.4.x", {("torch", "2.12.x"), ("lightning", "2.4.x")}),
        (
            "Pytorch Lightning 1.9.5 and PyG v2.3.1",
            {("pytorch-lightning", "1.9.5"), ("torch-geometric", "2.3.1")},
        ),
        (
            "Python version: 3.9.18 (main, Sep 11 2023, 13:41:44)  [GCC 11.2.0]",
            {("python", "3.9.18")},
        ),
        (
            "- `transformers` version: 4.38.2\n- PyTorch version (GPU?): 2.1.0+cu121 (True)\n- Accelerate version: not installed",
            {("transformers", "4.38.2"), ("torch", "2.1.0+cu121")},
        ),
        (
            "[pip3] torch-geometric==2.3.1\n[conda] pytorch                   2.0.1           py3.9_cuda11.7    pytorch",
            {("torch-geometric", "2.3.1"), ("torch", "2.0.1")},
        ),
        (
            "### Keras Version\n\nKeras 2.14.0\n\n### Python version\n\n3.10",
            {("keras", "2.14.0"), ("python", "3.10")},
        ),
        (
            "### What version are you seeing the problem on?\n\nv2.5, master",
            {("acme-nets", "2.5"), ("acme-nets", "master")},
        ),
        (
            "| package | version |\n|---|---|\n| torch | 2.1.1 |\n| Python | 3.8 |",
            {("torch", "2.1.1"), ("python", "3.8")},
        ),
        ("```\nName: jax\nVersion: 0.4.14\n```", {("jax", "0.4.14")}),
        (
            "```\n# Name                    Version                   Build  Channel\npyg                       2.3.0           py310    pyg\npython                    3.10.9          h_cpython    conda-forge\n```",
            {("torch-geometric", "2.3.0"), ("python", "3.10.9")},
        ),
        (
            "* Packages:\n\t- Jinja2:            3.1.6\n\t- torch:             2.12.0+cu126\n* System:\n\t- python:            3.11.15\n\t- release:           10\n\t- version: 10.0.26200",
            {("jinja2", "3.1.6"), ("torch", "2.12.0+cu126"), ("python", "3.11.15")},
        ),
        ("After upgrading RDT 1.21.0 it fails", {("rdt", "1.21.0")}),
        (
            "Fails since the release of RDT 1.21.0 in 0.7.2",
            {("rdt", "1.21.0"), ("acme-nets", "0.7.2")},
        ),
        (
            "```\nDeepSpeed general environment info:\ntorch version .................... 2.1.2+cu121\ndeepspeed info ................... 0.13.1, unknown, unknown\ntorch cuda version ............... 12.1\n```",
            {("torch", "2.1.2+cu121"), ("deepspeed", "0.13.1")},
        ),
        (
            "```\n- OS: Linux-5.10.0-x86_64 # 1 SMP\n- Python: 3.10.12\n- Stable-Baselines3: 2.3.0\n- PyTorch: 2.0.1\n- Gymnasium: 0.28.1\n```",
            {
                ("python", "3.10.12"),
                ("stable-baselines3", "2.3.0"),
                ("torch", "2.0.1"),
                ("gymnasium", "0.28.1"),
            },
        ),
        ("It happens on the main branch.", {("acme-nets", "main")}),
        ("Since 0.7.2 it is broken", {("acme-nets", "0.7.2")}),
        ("This used to work in v0.7.1 and broke since v0.7.2", {("acme-nets", "0.7.2")}),
        ("happens with torch nightly 2.3.0.dev20240105+cpu", {("torch", "2.3.0.dev20240105+cpu")}),
        (
            "Address 192.168.1.10, GPT-2, Ubuntu 22.04, CUDA 12.4, 3-D input, 2024-01-05, see #123, driver 550.54.15, cuDNN 8.9.2",
            set(),
        ),
        ("Since PyTorch >= 2.6 the default changed", set()),
        ("CUDA used to build PyTorch: 11.7", set()),
        ("#- PyTorch Version (e.g., 2.5):", set()),
    ],
)
def test_versions(body: str, claims: set[tuple[str, str]]) -> None:
    assert used(report(body)) == claims


def test_dump_comes_before_words_and_labels_last() -> None:
    found = report(
        "I use torch 2.1.\n\n```\nPyTorch version: 2.0.1\nIs debug build: False\n```",
        labels=("bug", "ver: 2.7.x"),
    )
    assert [(c.name, c.version, c.source) for c in found.versions] == [
        ("torch", "2.0.1", "dump"),
        ("torch", "2.1", "text"),
        ("acme-nets", "2.7.x", "label"),
    ]


@pytest.mark.parametrize(
    ("body", "bad", "fine"),
    [
        (
            "This works in Lightning 2.5.x but OOMs in 2.6.x with no other changes.",
            {("lightning", "2.6.x")},
            {("lightning", "2.5.x")},
        ),
        (
            "* reproduced with `jax==0.7.2`\n* NOT reproducible with `jax==0.7.1` and earlier versions",
            {("jax", "0.7.2")},
            {("jax", "0.7.1")},
        ),
        (
            "I have encountered a new issue in 0.11.4 that has not been a problem up to 0.11.3.",
            {("acme-nets", "0.11.4")},
            {("acme-nets", "0.11.3")},
        ),
        ("It worked before in 1.2.0.", set(), {("acme-nets", "1.2.0")}),
        ("Fails on torch 2.1.0, not on 2.0.1.", {("torch", "2.1.0")}, {("torch", "2.0.1")}),
        ("Downgrading to numpy 1.26.4 fixes it.", set(), {("numpy", "1.26.4")}),
        ("It does not work in 2.6.0.", {("acme-nets", "2.6.0")}, set()),
        ("torch 2.0.1 works fine, torch 2.1.0 crashes", {("torch", "2.1.0")}, {("torch", "2.0.1")}),
    ],
)
def test_versions_that_work(
    body: str, bad: set[tuple[str, str]], fine: set[tuple[str, str]]
) -> None:
    found = report(body)
    assert (used(found), good(found)) == (bad, fine)


@pytest.mark.parametrize(
    ("body", "observed", "expected"),
    [
        ("It returns `nan` instead of `1.0`.", "nan", "1.0"),
        ("prints `[1. 4.]` instead of `[1.5 4.5]`.", "[1. 4.]", "[1.5 4.5]"),
        ("`compute()` returns 2.0 but should be 1.0 after reset", "2.0", "1.0"),
        ("got 3, expected 4", "3", "4"),
        ("I expected 4 but got 3", "3", "4"),
        ("Output: 3\nExpected: 4", "3", "4"),
        ("### Expected behavior\n\n`4`\n\n### Actual behavior\n\n`3`", "3", "4"),
        ("Actual:\n```\nx: 3\n```\nExpected:\n```\nx: 4\n```", "x: 3", "x: 4"),
    ],
)
def test_outputs(body: str, observed: str, expected: str) -> None:
    found = {output.role: output.text for output in report(body).outputs}
    assert found == {"observed": observed, "expected": expected}


def test_output_is_known_by_the_words_the_program_prints() -> None:
    found = report(
        '```python\nimport a\nprint("hops: ", a.f())\n```\n\nSome words between that say nothing.\n\n```\nhops:  1\n```'
    )
    assert [(output.text, output.role) for output in found.outputs] == [("hops:  1", "observed")]


@pytest.mark.parametrize(
    ("title", "body", "labels", "kind"),
    [
        (
            "How to freeze the encoder?",
            "Hi, how can I freeze the encoder of T5? Thanks!",
            (),
            ReportKind.QUESTION,
        ),
        (
            "[Feature request] complex dtypes",
            "It would be nice to support complex inputs.\n\n```python\nm = nn.Bilinear(2, dtype=torch.cfloat)\n```",
            ("feature",),
            ReportKind.FEATURE,
        ),
        (
            "Add cosine restarts",
            "It would be great if it had restarts.",
            ("enhancement",),
            ReportKind.FEATURE,
        ),
        (
            "Typo in docs of AdamW",
            '"decoupld" should be "decoupled"',
            ("module: docs",),
            ReportKind.DOCUMENTATION,
        ),
        (
            "softmax gives nan",
            "Is this right?\n\n```python\nimport torch\nprint(torch.ones(1))  # prints nan\n```",
            ("question",),
            ReportKind.BUG,
        ),
        ("Support for x is broken", "It raises an error.", ("bug",), ReportKind.BUG),
        (
            "Is the largest score not 100?",
            "Strangely I get a score of 105.6. Does anyone know why?",
            (),
            ReportKind.BUG,
        ),
        (
            "qk_norm and kv_heads conflict",
            "There is a conflict when using both.",
            (),
            ReportKind.BUG,
        ),
        ("Loss is wrong", "please fix", ("bug",), ReportKind.BUG),
        (
            "question: two results, one expected",
            "I am stuck in a trivial error: the two calls differ. Can I ask you why?",
            (),
            ReportKind.QUESTION,
        ),
        (
            "[Question] Wrong sum",
            "It is wrong.\n\n```python\nimport torch\nprint(torch.ones(1).sum())\n```",
            (),
            ReportKind.BUG,
        ),
        ("Question answering crashes", "It fails with the reader.", (), ReportKind.BUG),
        ("Please add a fix", "```\nRuntimeError: x\n```", ("enhancement",), ReportKind.BUG),
    ],
)
def test_kind(title: str, body: str, labels: tuple[str, ...], kind: ReportKind) -> None:
    found = report(body, title, labels=labels)
    assert found.kind is kind
    assert kind is ReportKind.BUG or found.kind_quote is not None


@pytest.mark.parametrize(
    ("title", "body", "symptom"),
    [
        ("DataLoader deadlocks", "It never starts, 0 % CPU", Symptom.HANG),
        ("cdf returns nan", "for inf", Symptom.NONFINITE),
        ("OOM", "```\ntorch.OutOfMemoryError: CUDA out of memory.\n```", Symptom.PERFORMANCE),
        ("fit is slow", "10x slower", Symptom.PERFORMANCE),
        ("Loss does not decrease", "it stays at 0.69", Symptom.NOT_LEARNING),
        (
            "load fails",
            "```\n_pickle.UnpicklingError: Weights only load failed.\n```",
            Symptom.SAVE_LOAD,
        ),
        ("load images", "```\nRuntimeError: shape mismatch\n```", Symptom.CRASH),
        ("Spurious lr_scheduler warning", "words", Symptom.WARNING),
        ("f1 is incorrect", "words", Symptom.WRONG_VALUE),
        (
            "f",
            "Got\n```\nx: tensor(0.6)\n```\nExpected\n```\nx: tensor(1.)\n```",
            Symptom.WRONG_VALUE,
        ),
        ("Sometimes NaN loss", "```\nAssertionError: loss is NaN\n```", Symptom.NONFINITE),
        (
            "Shapes in a class",
            (
                "I expected the check to raise an error for B=2, but it runs fine without one.\n"
                "With plain arrays:\n```\nTypeError: B=10\n```"
            ),
            Symptom.MISSING_ERROR,
        ),
        (
            "v_args is ignored",
            (
                "```python\nf(1)  # This fails, as I would expect.\ng(1)  # This should fail.\n```\n"
                "```\nValueError: units\n```"
            ),
            Symptom.MISSING_ERROR,
        ),
        ("Layer(-1) does not raise", "```\nValueError: units\n```", Symptom.MISSING_ERROR),
        (
            "fit",
            "It should not raise an error, but it fails.\n```\nValueError: units\n```",
            Symptom.CRASH,
        ),
        (
            "fit",
            "I expected no error. With 1.0 it runs without errors.\n```\nValueError: units\n```",
            Symptom.CRASH,
        ),
        ("nothing", "nothing at all", Symptom.UNKNOWN),
    ],
)
def test_symptom(title: str, body: str, symptom: Symptom) -> None:
    assert report(body, title).symptom is symptom


def test_warning_as_printed() -> None:
    found = report(
        "Every step prints\n\n```\n/opt/lib/python3.10/site-packages/torch/optim/lr_scheduler.py:143: UserWarning: Detected call of `lr_scheduler.step()` before `optimizer.step()`.\n"
        '  warnings.warn("Detected call")\n```\nand FutureWarning: old thing'
    )
    assert [(w.category, w.message, w.quote.line) for w in found.warnings] == [
        ("UserWarning", "Detected call of `lr_scheduler.step()` before `optimizer.step()`.", 4),
        ("FutureWarning", "old thing", 7),
    ]


def test_warning_in_quotation_marks() -> None:
    found = report('I always get the warning "The dataloader does not have many workers" here')
    assert [(w.category, w.message) for w in found.warnings] == [
        ("", "The dataloader does not have many workers")
    ]


def test_surroundings() -> None:
    found = report(
        "`torch.nn.functional.conv3d` is wrong.\n![shot](https://user-images.githubusercontent.com/1/2.png)\n[a.zip](https://github.com/user-attachments/files/1/a.zip)\n"
        "https://gist.github.com/a/b https://colab.research.google.com/drive/abc https://drive.google.com/file/d/1\n- OS: Windows 11\n\n```python\nimport torch\ntorch.ones(1).cuda()\n```",
        "`Conv3d` with groups",
    )
    assert found.api[:2] == ("Conv3d", "torch.nn.functional.conv3d")
    assert {missing.what for missing in found.missing} == {
        "screenshot",
        "attachment",
        "gist",
        "notebook",
        "data",
    }
    assert found.device == "gpu"


def test_a_machine_with_a_gpu_does_not_ask_for_one() -> None:
    assert (
        report(
            "### Versions\n\nGPU 0: NVIDIA GeForce RTX 4090\nGPU models and configuration: A100"
        ).device
        == ""
    )


def test_a_guarded_device_is_no_demand() -> None:
    assert (
        report(
            '```python\nimport torch\nd = "cuda" if torch.cuda.is_available() else "cpu"\ntorch.ones(1).to(d)\n```'
        ).device
        == ""
    )


@pytest.mark.parametrize(
    ("text", "claims"),
    [
        ("numpy version: 1.19.5, python 3.8", {("numpy", "1.19.5"), ("python", "3.8")}),
        ("Both should be equal. version 2.1.0", {("acme-nets", "2.1.0")}),
        ("should be all ones. pip version (1.1).", {("acme-nets", "1.1")}),
        ("CUDA version 12.4 and driver version 535.1", set()),
        ("`numpy` v1.22.0 broke it. With 1.22.0 it fails, 1.21.9 works.", {("numpy", "1.22.0")}),
    ],
)
def test_a_plain_version_is_the_packages_own(text: str, claims: set[tuple[str, str]]) -> None:
    assert used(report(f"It fails.\n\n{text}")) == claims


def test_words_of_an_error_without_its_class_count() -> None:
    body = "```python\nimport acme\nacme.f([])\n```\nI want a slice, instead I get the error:\n\n`argument 'x': failed to extract enum Slice`"
    frozen = freeze(report(body))
    assert isinstance(frozen, CrashSignature)
    assert (frozen.exception, frozen.message) == (
        "",
        "argument 'x': failed to extract enum Slice",
    )
    assert freeze(report(body.replace("get the error", "want the words"))) is None


def test_versions_that_a_good_run_printed_are_not_in_use() -> None:
    good, bad = (
        "numpy 1.22.0\nok",
        'numpy 1.23.0\nTraceback (most recent call last):\n  File "a.py", line 1, in <module>\nValueError: no',
    )
    body = f"With one version:\n```\n{good}\n```\nWith the other:\n```\n{bad}\n```\n- numpy: 1.23.0"
    assert ("numpy", "1.22.0") not in used(report(body))
    assert ("numpy", "1.23.0") in used(report(body))


def test_an_error_that_the_reporter_wants_is_not_what_counts() -> None:
    body = "```python\nimport acme\nacme.f(x)\n```\nIt should raise, but it silently passes. A list gives:\n```\nTypeError: x is a list\n```"
    assert freeze(report(body)) is None
    assert freeze(report(body.replace("should raise, but it silently passes", "fails"))) is not None


VERSIONS = "\n```python\nprint(np.__version__)\nprint(acme.__version__)\n\n1.26.4\n4.6.0\n```\n"


@pytest.mark.parametrize(
    "rows", ["1.26.4\n4.6.0", "acme: 4.6.0", "acme 4.6.0+cpu\npython = '3.11'"]
)
def test_versions_that_were_printed_are_no_output_of_the_program(rows: str) -> None:
    bug = report(f"`acme.fit(x)` is wrong.\n\n```python\nprint(acme.__version__)\n\n{rows}\n```\n")
    assert bug.outputs == ()


@pytest.mark.parametrize("rows", ["0.5\n1.25", "3\n4", "loss 0.25\n4.6.0"])
def test_values_that_were_printed_are_output(rows: str) -> None:
    program = "```python\nimport acme\nprint(acme.fit(x))\n```"
    bug = report(f"It is wrong.\n\n{program}\n\nOutput:\n```\n{rows}\n```\n")
    assert [output.text for output in bug.outputs] == [rows]


@pytest.mark.parametrize(
    ("title", "body"),
    [
        ("Misleading UserWarning: the layer was fitted with other names", "It is."),
        ("Layer", 'It says "UserWarning: the layer was fitted with other names" at each call.'),
        ("Layer", "It says `a.py:3: UserWarning: the layer was fitted with other names` at times."),
    ],
)
def test_a_warning_in_a_title_or_in_quotation_marks_is_the_failure(title: str, body: str) -> None:
    bug = report(f"{body}\n\n```python\nimport acme\nacme.fit(1)\n```\n{VERSIONS}", title)
    assert [(row.category, row.message) for row in bug.warnings] == [
        ("UserWarning", "the layer was fitted with other names")
    ]
    assert isinstance(freeze(bug), WarningSignature)


OWN = "3.12.10 (main, Apr  9 2025, 08:55:05) [GCC 11.4.0]"
CONDA = "3.9.18 | packaged by conda-forge | (main, Aug 30 2023, 03:49:32)"
INFO = "sys.version_info(major=3, minor=10, micro=6, releaselevel='final', serial=0)"


@pytest.mark.parametrize(
    ("body", "claims"),
    [
        (f"The system has `{OWN}`.", {("python", "3.12.10")}),
        (f"### Python and NumPy Versions:\n\n2.2.6\n{OWN}", {("numpy", "2.2.6"), ("python", "3.12.10")}),
        (f"### Python and NumPy Versions:\n\n1.26.0 {CONDA}", {("numpy", "1.26.0"), ("python", "3.9.18")}),
        (
            f"### Python and NumPy Versions:\n\n```shell\n2.2.6\n{OWN}\n```",
            {("numpy", "2.2.6"), ("python", "3.12.10")},
        ),
        (
            f"### SciPy/NumPy/Python version information\n\n1.9.3 1.23.5 {INFO}",
            {("scipy", "1.9.3"), ("numpy", "1.23.5"), ("python", "3.10.6")},
        ),
        ("### What jax/jaxlib version are you using?\n\n0.4.13 0.4.12", {("jax", "0.4.13"), ("jaxlib", "0.4.12")}),
        ("### Which versions of Python, NumPy?\n\nthe newest ones, 3 of them", set()),
        ("```shell\n$ python3.12 -m venv .venv\n$ pip install nets\n```", {("python", "3.12")}),
    ],
)  # fmt: skip
def test_versions_below_a_heading_for_several_and_those_that_python_prints(
    body: str, claims: set[tuple[str, str]]
) -> None:
    assert used(report(body)) == claims


def test_versions_in_a_title() -> None:
    assert used(report("It fails.", "Import fails with Python 3.12.10")) == {("python", "3.12.10")}
    both = report("It fails.", "Works in numpy 1.26 but fails in numpy 2.0")
    assert (used(both), good(both)) == ({("numpy", "2.0")}, {("numpy", "1.26")})
    assert used(report("It fails.", "Loss is 2.5 after 10 steps")) == set()


WISHES = [
    "The value should also be `1.0` rather than `nan`.",
    "It should be 1.0 instead of nan.",
    "I would expect it to be 1.0 rather than nan.",
    "It must always return 1.0 instead of nan.",
    "I'd like to get 1.0 instead of nan.",
]


@pytest.mark.parametrize("text", WISHES)
def test_the_first_value_of_a_wish_is_the_expected_one(text: str) -> None:
    found = {row.role: row.text for row in report(text).outputs}
    assert found == {"expected": "1.0", "observed": "nan"}


@pytest.mark.parametrize(
    "text",
    [
        "It looks like the result is nan instead of 1.0.",
        "I expected a number, but it returns nan instead of 1.0.",
    ],
)
def test_what_a_wish_says_of_something_else_swaps_nothing(text: str) -> None:
    found = {row.role: row.text for row in report(text).outputs}
    assert found == {"expected": "1.0", "observed": "nan"}


NOTHING = [
    "(no error message)",
    "No error message, just fails silently",
    "No error.",
    "There is no traceback.",
    "no output",
    "No errors were raised",
]


@pytest.mark.parametrize("words", NOTHING)
def test_words_for_no_output_are_no_output(words: str) -> None:
    body = "```python\nimport lib\nprint(lib.f(3))\n```\n\n### Error message\n\n```shell\n"
    assert not report(f"{body}{words}\n```\n").outputs


def test_words_for_no_output_count_where_the_program_prints_them() -> None:
    program = "```python\nimport lib\nlib.f(3)\nprint('no output')\n```\n\nOutput:\n\n"
    assert [row.text for row in report(f"{program}```\nno output\n```\n").outputs] == ["no output"]


@pytest.mark.parametrize("words", ["No module named 'x'", "no errors found: 3", "No improvement"])
def test_other_words_with_no_are_an_output(words: str) -> None:
    body = "```python\nimport lib\nprint(lib.f(3))\n```\n\nOutput:\n\n```\n"
    assert [row.text for row in report(f"{body}{words}\n```\n").outputs] == [words]


ASKED_FOR = [
    (
        (
            "import sys, scipy, numpy; print(scipy.__version__, numpy.__version__, sys.version_info)\n"
            "1.2.1 1.16.2 sys.version_info(major=3, minor=6, micro=5, releaselevel='final', serial=0)"
        ),
        {("scipy", "1.2.1"), ("numpy", "1.16.2"), ("python", "3.6.5")},
    ),
    (
        (
            "import numpy as np\nimport lightgbm\nprint(np.__version__)\nprint(lightgbm.__version__)\n\n"
            "1.26.4\n4.6.0"
        ),
        {("numpy", "1.26.4"), ("lightgbm", "4.6.0")},
    ),
    (
        ">>> import torch\n>>> torch.__version__\n'2.1.0'",
        {("torch", "2.1.0")},
    ),
]


@pytest.mark.parametrize(("text", "claims"), ASKED_FOR)
def test_versions_that_a_pasted_line_asked_for(text: str, claims: set[tuple[str, str]]) -> None:
    found = report(f"```python\n{text}\n```")
    assert used(found) == claims
    assert not found.programs


def test_a_program_that_does_more_than_show_versions_is_one() -> None:
    found = report("```python\nimport torch\nprint(torch.__version__, torch.ones(3))\n```")
    assert found.programs


@pytest.mark.parametrize("text", ["version is 1.11.0", "My version was 1.11.0."])
def test_a_version_without_a_name_is_the_repositorys(text: str) -> None:
    assert used(report(text, repository="pytorch/pytorch")) == {("torch", "1.11.0")}


def test_a_message_goes_on_behind_the_ticks_around_its_call() -> None:
    found = report("I get `TypeError: __init__()` got an unexpected keyword argument 'multiclass'.")
    signature = freeze(found)
    assert isinstance(signature, CrashSignature)
    assert signature.message == "__init__() got an unexpected keyword argument 'multiclass'"
    other = freeze(report("I get `TypeError: f() failed` in every run of my program."))
    assert isinstance(other, CrashSignature)
    assert other.message == "f() failed"


TAKE = "```python\nimport numpy as np\na = np.arange(3)\nnp.take(a, 7)\n```\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("This code raises an IndexError:\n", ""),
        ("", "I get an `IndexError`.\n"),
        ("`np.take` raises an IndexError.\n", ""),
    ],
)
def test_a_class_alone_counts_at_the_statement_that_is_meant(before: str, after: str) -> None:
    signature = freeze(report(before + TAKE + after, title="take"))
    assert isinstance(signature, CrashSignature)
    assert (signature.exception, signature.checks) == ("IndexError", ("np.take(a, 7)",))


@pytest.mark.parametrize(
    "body",
    [
        TAKE + "I expected an IndexError.\n",
        "`np.take` raises an IndexError, as the docs say.\n" + TAKE,
        TAKE + "It raises an IndexError.\n" + TAKE.replace("7", "8"),
        TAKE.replace("np.take(a, 7)", 'd = {"a": 1}\nd["b"]') + "This raises a KeyError.\n",
        TAKE.replace("np.take(a, 7)", 'd = {"a": 1}\nd["b"]  # KeyError'),
    ],
)
def test_a_class_alone_is_no_failure_of_what_the_program_does_itself(body: str) -> None:
    assert freeze(report(body, title="take")) is None


@pytest.mark.parametrize(
    ("sentence", "message"),
    [
        ('"invalid argument" exception', "invalid argument"),
        ("I see the `index out of range` error", "index out of range"),
        ('The "invalid argument" error is expected', None),
        ("`margins` exception", None),
        ("the `raise_errors(x)` error", None),
    ],
)
def test_words_before_the_word_error_are_its_message(sentence: str, message: str | None) -> None:
    rows = report(f"### Current Behavior\n\n{sentence}\n\n{TAKE}", title="take").tracebacks
    assert [row.message for row in rows if not row.exception] == ([message] if message else [])


@pytest.mark.parametrize(
    ("body", "observed", "expected"),
    [
        ("The results would be:\n(3, 2)\n(3, 6)\n", ["(3, 2)\n(3, 6)"], []),
        (
            "It prints:\n\ntensor([[1., 2.],\n        [3., nan]])\n\nExpected output:\n\n[1 2]\n",
            ["tensor([[1., 2.],\n        [3., nan]])"],
            ["[1 2]"],
        ),
        ("Steps:\n1\n2\n", [], []),
    ],
)
def test_values_without_a_fence_below_their_label(
    body: str, observed: list[str], expected: list[str]
) -> None:
    rows = report(TAKE + body, title="take").outputs
    assert [row.text for row in rows if row.role == "observed"] == observed
    assert [row.text for row in rows if row.role == "expected"] == expected


def test_what_a_line_calls_a_version_is_one() -> None:
    found = report("- PyArrow version: 8.0.0\n- `skrub` version: 0.6\n- Bazel version: 3.1.0\n")
    assert used(found) == {("pyarrow", "8.0.0"), ("skrub", "0.6")}


@pytest.mark.parametrize(
    "title",
    [
        "IndexError on take",
        "[BUG] IndexError when taking",
        "BUG: `np.take` IndexError",
        "take gives an IndexError",
    ],
)
def test_a_class_in_a_title_is_that_of_the_only_programs_end(title: str) -> None:
    signature = freeze(report(TAKE, title=title))
    assert isinstance(signature, CrashSignature)
    assert (signature.exception, signature.checks) == ("IndexError", ("np.take(a, 7)",))


@pytest.mark.parametrize(
    "title",
    [
        "Raise a ValueError when the index is negative",
        "No IndexError when taking too much",
        "np.take should give IndexError",
        "ValueError handling in np.take",
    ],
)
def test_a_class_in_a_title_may_be_what_is_asked_for(title: str) -> None:
    assert freeze(report(TAKE, title=title)) is None


WORDS = "index 7 is out of bounds for axis 0 with size 3"


@pytest.mark.parametrize(
    "body",
    [
        f"I get an error saying {WORDS}",
        f"Error message: {WORDS}",
        f"I get this error:\n\n```\n{WORDS}\n```\n",
        f"**IndexError: {WORDS}**",
    ],
)
def test_the_words_of_an_error_without_marks(body: str) -> None:
    signature = freeze(report(f"{TAKE}\n{body}\n", title="take"))
    assert isinstance(signature, CrashSignature)
    assert signature.message == WORDS


@pytest.mark.parametrize(
    "body",
    [
        "Error message: none",
        f"I would expect an error saying that {WORDS}",
        f"Expected error:\n\n```\n{WORDS}\n```\n",
        "### Error message:\n\n```\nNo error message, this code runs fine but should not.\n```\n",
        f"Output:\n\n```\n{WORDS}\n```\n",
    ],
)
def test_words_that_are_no_error(body: str) -> None:
    assert not isinstance(freeze(report(f"{TAKE}\n{body}\n", title="take")), CrashSignature)
