"""Tracebacks in every dress they come in."""

from __future__ import annotations

import textwrap

import pytest

from bot.issues.reading.issue import read_issue
from bot.kernel import traceback_frames
from bot.kernel.bug import BugReport, FenceKind, Issue, Symptom
from bot.kernel.traceback_frames import frame
from bot.kernel.tracebacks import FORMATS, TracebackFormat, find


def report(body: str, title: str = "It breaks", repository: str = "pytorch/pytorch") -> BugReport:
    return read_issue(Issue(title=title, body=body, repository=repository))


def fenced(text: str, **options: str) -> BugReport:
    return report(f"```\n{text}\n```", **options)


CHAINED = """$ python train.py --lr 1e-3
2024-03-01 10:00:00,123 INFO starting
Traceback (most recent call last):
  File "/home/me/miniconda3/envs/x/lib/python3.11/site-packages/peft/config.py", line 197, in _get_peft_type
    config_file = hf_hub_download(
                  ^^^^^^^^^^^^^^^^
huggingface_hub.errors.HFValidationError: Repo id must be in the form 'namespace/repo_name': './out/x'.

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "train.py", line 12, in <module>
    model = PeftModel.from_pretrained(base, "./out/x")
  File "/home/me/miniconda3/envs/x/lib/python3.11/site-packages/peft/peft_model.py", line 325, in from_pretrained
    PeftConfig._get_peft_type(
  [Previous line repeated 3 more times]
ValueError: Can't find 'adapter_config.json' at './out/x'
"""


def test_chained() -> None:
    found = fenced(CHAINED)
    (traceback,) = found.tracebacks
    assert (traceback.exception, traceback.message) == (
        "ValueError",
        "Can't find 'adapter_config.json' at './out/x'",
    )
    assert traceback.line == 4
    assert [(f.package, f.module_path, f.line, f.function) for f in traceback.frames] == [
        ("", "", 12, "<module>"),
        ("peft", "peft/peft_model.py", 325, "from_pretrained"),
    ]
    assert [c.exception for c in traceback.chained] == ["huggingface_hub.errors.HFValidationError"]
    assert traceback.chained[0].frames[0].code == "config_file = hf_hub_download("
    assert found.symptom is Symptom.SAVE_LOAD


def test_worker_with_its_own_traceback_and_windows_paths() -> None:
    base = "C:\\Users\\me\\AppData\\Local\\Programs\\Python\\Python39\\Lib\\site-packages\\torch\\utils\\data"
    found = fenced(
        f'Traceback (most recent call last):\n  File "a.py", line 3, in <module>\n    next(iter(dl))\n  File "{base}\\dataloader.py", line 633, in __next__\n    data = self._next_data()\n'
        "RuntimeError: Caught RuntimeError in DataLoader worker process 0.\nOriginal Traceback (most recent call last):\n"
        f'  File "{base}\\_utils\\collate.py", line 141, in collate\n    return torch.stack(batch, 0, out=out)\nRuntimeError: stack expects each tensor to be equal size, but got [3, 4] at entry 0\n'
    )
    (traceback,) = found.tracebacks
    assert traceback.message == "Caught RuntimeError in DataLoader worker process 0."
    assert traceback.frames[-1].module_path == "torch/utils/data/dataloader.py"
    assert traceback.chained[0].message.startswith("stack expects each tensor")
    assert ("python", "3.9", "traceback") in {(v.name, v.version, v.source) for v in found.versions}


def test_filtered_by_jax() -> None:
    found = fenced(
        "jax._src.traceback_util.UnfilteredStackTrace: TypeError: scan carry must match\n\nThe stack trace below excludes JAX-internal frames.\n"
        "The preceding is the original exception that occurred, unmodified.\n\n--------------------\n\nThe above exception was the direct cause of the following exception:\n\n"
        'Traceback (most recent call last):\n  File "/tmp/a.py", line 9, in <module>\n    jax.lax.scan(f, 0, xs)\nTypeError: scan carry must match, got PyTreeDef(*).\n--------------------\n'
        "For simplicity, JAX has removed its internal frames from the traceback of the following exception. Set JAX_TRACEBACK_FILTERING=off to include these."
    )
    (traceback,) = found.tracebacks
    assert traceback.message == "scan carry must match, got PyTreeDef(*)."
    assert traceback.chained[0].exception.endswith("UnfilteredStackTrace")


def test_ranks_are_kept_apart() -> None:
    found = fenced(
        '[rank0]: Traceback (most recent call last):\n[rank0]:   File "/v/lib/python3.12/site-packages/torch/nn/parallel/distributed.py", line 1639, in forward\n[rank0]:     inputs = self._pre_forward()\n'
        "[rank0]: RuntimeError: Expected to have finished reduction.\n[rank0]: \tIf you already have done the above, then...\n"
        '[rank1]: Traceback (most recent call last):\n[rank1]:   File "/w/t.py", line 5, in <module>\n[rank1]:     main()\n[rank1]: RuntimeError: other\n'
    )
    first, second = found.tracebacks
    assert (
        first.message
        == "Expected to have finished reduction.\n\tIf you already have done the above, then..."
    )
    assert first.frames[0].code == "inputs = self._pre_forward()"
    assert (second.message, second.chained) == ("other", ())


def test_colab() -> None:
    found = fenced(
        "---------------------------------------------------------------------------\nIndexError                                Traceback (most recent call last)\n"
        "[<ipython-input-4-1d7a9e4a3c22>](https://localhost:8080/#) in <cell line: 5>()\n      3 \n      4 model = f()\n----> 5 model.generate(torch.zeros(2), return_timestamps=True)\n\n2 frames\n"
        "[/usr/local/lib/python3.10/dist-packages/transformers/models/whisper/generation_whisper.py](https://localhost:8080/#) in generate(self, input_features, **kwargs)\n"
        "    411         # 3. Make sure\n--> 412         self._set_return_timestamps(return_timestamps)\n    413 \n\nIndexError: index 1 is out of bounds for dimension 0 with size 1\n\n"
        "---------------------------------------------------------------------------\nNOTE: If your import is failing due to a missing package, you can\nmanually install dependencies using either !pip or !apt.\n"
    )
    (traceback,) = found.tracebacks
    assert traceback.message == "index 1 is out of bounds for dimension 0 with size 1"
    assert [(f.line, f.function, f.module_path, f.code) for f in traceback.frames] == [
        (5, "<module>", "", "model.generate(torch.zeros(2), return_timestamps=True)"),
        (
            412,
            "generate",
            "transformers/models/whisper/generation_whisper.py",
            "self._set_return_timestamps(return_timestamps)",
        ),
    ]


def test_ipython_with_colours() -> None:
    found = fenced(
        "\x1b[0;31m-----------------------------\x1b[0m\n\x1b[0;31mValueError\x1b[0m                      Traceback (most recent call last)\nCell \x1b[0;32mIn[3], line 2\x1b[0m\n"
        "\x1b[1;32m      1\x1b[0m x = 1\n\x1b[0;32m----> 2\x1b[0m model.fit(x)\n\nFile \x1b[0;32m~/venv/lib/python3.11/site-packages/keras/src/utils/traceback_utils.py:122\x1b[0m, in \x1b[0;36mfilter_traceback\x1b[0;34m(*args)\x1b[0m\n"
        "\x1b[0;32m--> 122\x1b[0m     \x1b[38;5;28;01mraise\x1b[39;00m e\n\n\x1b[0;31mValueError\x1b[0m: Unrecognized data type: x=1"
    )
    (traceback,) = found.tracebacks
    assert traceback.message == "Unrecognized data type: x=1"
    assert traceback.frames[-1].module_path == "keras/src/utils/traceback_utils.py"
    assert traceback.frames[0].code == "model.fit(x)"


def test_pytest() -> None:
    found = fenced(
        "    def test_forward():\n        m = dc.models.GCN()\n>       assert m.predict(ds).shape == (3, 1)\nE       AssertionError: assert (3, 2) == (3, 1)\nE         At index 1 diff: 2 != 1\n\ndeepchem/models/tests/test_gcn.py:45: AssertionError"
    )
    (traceback,) = found.tracebacks
    assert traceback.exception == "AssertionError"
    assert traceback.frames[-1].code == "assert m.predict(ds).shape == (3, 1)"
    assert traceback.frames[-1].line == 45


def test_exception_group() -> None:
    found = fenced(
        '  + Exception Group Traceback (most recent call last):\n  |   File "/a.py", line 3, in <module>\n  |     main()\n  | ExceptionGroup: many (2 sub-exceptions)\n  +-+---------------- 1 ----------------\n    | ValueError: one\n    +------------------------------------'
    )
    assert found.tracebacks[0].exception == "ExceptionGroup"
    assert found.tracebacks[0].frames[0].line == 3


def test_message_over_several_lines() -> None:
    found = fenced(
        'Traceback (most recent call last):\n  File "a.py", line 3, in <module>\n    m.load_state_dict(s)\nRuntimeError: Error(s) in loading state_dict for Net:\n\tMissing key(s) in state_dict: "a". \n\tUnexpected key(s) in state_dict: "b". \n\nafterwards I pressed enter'
    )
    assert found.tracebacks[0].message.count("\n") == 2
    assert "pressed" not in found.tracebacks[0].message


@pytest.mark.parametrize(
    ("words", "exception"),
    [
        ("one of the variables needed for gradient computation has been modified by an inplace operation", "RuntimeError"),
        ("mat1 and mat2 shapes cannot be multiplied (4x10 and 84x10)", "RuntimeError"),
        ("too many values to unpack (expected 4)", "ValueError"),
        ("list index out of range", "IndexError"),
    ],
)  # fmt: skip
def test_words_that_only_one_class_has_tell_it(words: str, exception: str) -> None:
    body = f"When I run main.py an error occurs: {words}. Why?"
    (row,) = read_issue(Issue(title="It fails", body=body)).tracebacks
    assert row.exception == exception
    assert words.startswith(row.message)


def test_a_function_that_markdown_took_for_a_tag_is_the_module() -> None:
    body = 'File "D:/repo/main.py", line 22, in\nrun()\nFile "a.py", line 3, in run\nKeyError: None'
    (row,) = read_issue(Issue(title="it fails", body=body)).tracebacks
    places = [(frame.path, frame.line, frame.function) for frame in row.frames]
    assert places == [("D:/repo/main.py", 22, "<module>"), ("a.py", 3, "run")]


def test_two_in_one_log() -> None:
    one = "Traceback (most recent call last):\n  File \"a.py\", line 3, in <module>\n    f()\nKeyError: 'a'\n"
    found = fenced(f"INFO: start\n{one}INFO: again\n{one.replace('KeyError', 'ValueError')}")
    assert [t.exception for t in found.tracebacks] == ["KeyError", "ValueError"]


@pytest.mark.parametrize(
    ("text", "exception", "message"),
    [
        (
            "terminate called after throwing an instance of 'c10::Error'\n  what():  it failed\nAborted (core dumped)",
            "SIGABRT",
            "it failed",
        ),
        ("Segmentation fault (core dumped)", "SIGSEGV", "Segmentation fault (core dumped)"),
        (
            "Floating point exception (core dumped)",
            "SIGFPE",
            "Floating point exception (core dumped)",
        ),
        ("loading\nKilled", "SIGKILL", "Killed"),
        (
            "Process finished with exit code 139 (interrupted by signal 11: SIGSEGV)",
            "SIGSEGV",
            "Process finished with exit code 139 (interrupted by signal 11: SIGSEGV)",
        ),
        ("AssertionError", "AssertionError", ""),
        (
            "torch.cuda.OutOfMemoryError: CUDA out of memory.",
            "torch.cuda.OutOfMemoryError",
            "CUDA out of memory.",
        ),
        (
            "torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised:\nAssertionError: x\n\nSet TORCH_LOGS",
            "torch._dynamo.exc.BackendCompilerFailed",
            "backend='inductor' raised:\nAssertionError: x",
        ),
        (
            "  File \"x.py\", line 3\n    foo(\n       ^\nSyntaxError: '(' was never closed",
            "SyntaxError",
            "'(' was never closed",
        ),
    ],
)
def test_last_lines(text: str, exception: str, message: str) -> None:
    (traceback,) = fenced(text).tracebacks
    assert (traceback.exception, traceback.message) == (exception, message)


@pytest.mark.parametrize(
    ("body", "title", "exception", "message", "line"),
    [
        (
            "See `RuntimeError: \"add_cpu\" not implemented for 'ComplexHalf'` there",
            "x",
            "RuntimeError",
            "\"add_cpu\" not implemented for 'ComplexHalf'",
            1,
        ),
        (
            "I see\n\nNotImplementedError: no rule for platform cpu\n\nhere",
            "x",
            "NotImplementedError",
            "no rule for platform cpu",
            3,
        ),
        (
            "gives IndexError: index out of range in self",
            "x",
            "IndexError",
            "index out of range in self",
            1,
        ),
        (
            "see title",
            "ValueError: Expected input batch_size (32) to match target batch_size (16).",
            "ValueError",
            "Expected input batch_size (32) to match target batch_size (16).",
            0,
        ),
        ("Calling it raises a `NotImplementedError` on CPU", "x", "NotImplementedError", "", 1),
        ("nothing", "eigh segfaults on large input", "SIGSEGV", "", 0),
    ],
)
def test_in_words(body: str, title: str, exception: str, message: str, line: int) -> None:
    (traceback,) = report(body, title).tracebacks
    assert (traceback.exception, traceback.message, traceback.line) == (exception, message, line)


def test_frames_of_a_checkout_belong_to_the_repository() -> None:
    found = fenced(
        'Traceback (most recent call last):\n  File "/src/acme-nets/acme_nets/layers/conv.py", line 3, in f\n    g()\nValueError: x',
        repository="acme/acme-nets",
    )
    assert found.tracebacks[0].frames[0].module_path == "acme_nets/layers/conv.py"


def test_a_comment_may_hold_the_error() -> None:
    found = report(
        "```python\nimport torch\ntorch.ones(2).view(3)  # RuntimeError: shape '[3]' is invalid for input of size 2\n```"
    )
    assert found.tracebacks[0].message == "shape '[3]' is invalid for input of size 2"
    assert found.tracebacks[0].line == 3


def test_code_that_raises_is_no_traceback() -> None:
    assert report('```python\nimport torch\nraise RuntimeError("x: y")\n```').tracebacks == ()


@pytest.mark.parametrize(
    ("path", "package"),
    [
        ("/usr/lib/python3.11/json/decoder.py", "<stdlib>"),
        (r"C:\Users\me\AppData\Local\Programs\Python\Python311\Lib\json\decoder.py", "<stdlib>"),
        ("/opt/conda/lib/python3.10/statistics.py", "<stdlib>"),
        ("/opt/conda/lib/python3.10/site-packages/torch/nn/functional.py", "torch"),
        ("/home/me/lib/python3/mine.py", "lib"),
        ("/home/me/src/lib/core.py", "lib"),
    ],
)
def test_the_standard_library_is_nobodys_package(path, package):
    assert traceback_frames.frame(path, "3", "decode", home="lib").package == package


def test_a_script_in_a_folder_named_as_the_library_is_a_script():
    path = "/home/me/lib/try_it.py"
    assert traceback_frames.frame(path, "3", "<module>", home="lib").package == ""
    assert traceback_frames.frame(path, "3", "decode", home="lib").package == "lib"


FAILURE = """\
______________________________ test_two_steps ______________________________

    def test_two_steps():
        import torch
        trainer = Trainer(steps=2)
>       trainer.fit(torch.zeros(2))

tests/test_trainer.py:12:
_ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _

self = <acme.trainer.Trainer object at 0x7f>, batch = tensor([0., 0.])

    def fit(self, batch):
        from torch import nn
        layer = nn.Linear(3, 3)
>       return layer(batch) * self.scale
E       RuntimeError: mat1 and mat2 shapes cannot be multiplied (1x2 and 3x3)
E       in step 1

acme/trainer.py:30: RuntimeError"""


@pytest.mark.parametrize("margin", ["", "  ", "    ", "        "])
@pytest.mark.parametrize("fence", ["```\n", ""])
def test_a_failure_of_pytest_is_read_with_any_margin_and_without_a_fence(
    margin: str, fence: str
) -> None:
    pasted = textwrap.indent(FAILURE, margin)
    found = report(f"It fails:\n\n{fence}{pasted}\n{fence}\nI have no idea why it does this.")
    assert [block.kind for block in found.fences] == [FenceKind.TRACEBACK]
    (traceback,) = found.tracebacks
    assert traceback.exception == "RuntimeError"
    assert traceback.message.endswith("(1x2 and 3x3)\nin step 1")
    assert [(frame.path, frame.line) for frame in traceback.frames] == [
        ("tests/test_trainer.py", 12),
        ("acme/trainer.py", 30),
    ]
    assert traceback.frames[-1].code == "return layer(batch) * self.scale"


def test_a_program_before_an_unfenced_failure_of_pytest_stays_a_program() -> None:
    program = "import torch\nfrom acme import Trainer\ntrainer = Trainer(steps=2)\nprint(trainer)"
    found = report(f"{program}\n\n{FAILURE}\n")
    assert [block.kind for block in found.fences] == [FenceKind.PROGRAM, FenceKind.TRACEBACK]
    assert found.fences[0].text == program


def test_source_that_is_quoted_without_a_failure_is_no_failure() -> None:
    quoted = (
        "    def fit(self, batch):\n        return batch\n\nIt should return the batch there.\n"
    )
    found = report(f"{quoted}\n> it does\n\nE   ValueError: x\n\nacme/trainer.py:30: ValueError")
    assert FenceKind.TRACEBACK not in [block.kind for block in found.fences]


@pytest.mark.parametrize("fence", ["```\n", ""])
def test_a_failure_on_one_line(fence: str) -> None:
    """As `pytest --tb=line` prints it."""
    line = "/src/acme/tests/test_trainer.py:12: ValueError: shapes differ"
    (traceback,) = report(f"It fails:\n\n{fence}{line}\n{fence}").tracebacks
    assert (traceback.exception, traceback.message) == ("ValueError", "shapes differ")
    assert [(frame.line, frame.path) for frame in traceback.frames] == [(12, line.split(":")[0])]


@pytest.mark.parametrize("text", ["UserWarning: deprecated", "error: Name 'x' is not defined", "3"])
def test_another_line_with_a_place_is_no_failure(text: str) -> None:
    assert fenced(f"acme/trainer.py:30: {text}").tracebacks == ()


IN_USER_CODE = """Traceback (most recent call last):
  File "x.py", line 10, in <module>
    data.map(augment)
  File "/tmp/__autograph_generated_file1abc.py", line 11, in tf__augment
    retval_ = ag__.converted_call(ag__.ld(augment), (x,), None, fscope)
TypeError: in user code:

    File "x.py", line 5, in augment  *
        return layer(x)
    File "/opt/v/lib/python3.11/site-packages/acme_cv/layers/choice.py", line 77, in call  **
        return tf.switch_case(i, branches)

    TypeError: all branches must have
    the same structure: {}
"""


def test_what_autograph_quotes_in_a_message_are_frames_and_the_error_behind_them():
    [span] = find(IN_USER_CODE.format("a dict").splitlines())
    assert span.traceback.message == "all branches must have\nthe same structure: a dict"
    last = span.traceback.frames[-1]
    assert (last.module_path, last.function, last.line) == ("acme_cv/layers/choice.py", "call", 77)
    assert last.code == "return tf.switch_case(i, branches)"


def test_a_message_that_only_says_in_user_code_stays_as_it_is():
    [span] = find(["ValueError: in user code: nothing is quoted"])
    assert span.traceback.message == "in user code: nothing is quoted"


def test_a_frame_that_jupyterlab_links_is_known_by_its_file_and_line():
    place = r"~\envs\Lib\site-packages\acme\nn.py:728](http://localhost:8888/lab/tree/envs/acme/nn.py#line=727)"
    text = f"File [{place}, in Model.__init__(self, config)\n    727 x = 1\n--> 728 self.run(x)\n\nValueError: no run\n"
    [span] = find(text.splitlines())
    [frame] = span.traceback.frames
    assert (frame.module_path, frame.function, frame.line) == ("acme/nn.py", "Model.__init__", 728)


FORM_SAMPLES = {
    "rich": """\
\u256d\u2500\u2500 Traceback (most recent call last) \u2500\u2500\u256e
\u2502 /home/me/train.py:3 in fit             \u2502
\u2570\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u256f
ValueError: no rows""",
    "IPython, with its title": """\
ValueError                                Traceback (most recent call last)
Cell In[4], line 3
----> 3 fit()
ValueError: no rows""",
    "Python": """\
Traceback (most recent call last):
  File "train.py", line 3, in fit
    step()
ValueError: no rows""",
    "Python, without its title": """\
  File "train.py", line 3, in fit
    step()
ValueError: no rows""",
    "IPython": """\
Cell In[4], line 3, in fit()
----> 3 step()
ValueError: no rows""",
    "pytest": """\
>       step()
E       ValueError: no rows

train.py:3: ValueError""",
    "pytest --tb=line": "/home/me/train.py:3: ValueError: no rows",
    "VS Code": """\
Exception has occurred: ValueError
(note: full exception trace is shown but execution is paused at: fit)
no rows
  File "train.py", line 3, in fit
    step()""",
}


def test_every_format_has_a_sample() -> None:
    assert list(FORM_SAMPLES) == [form.name for form in FORMATS]


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
def test_a_row_is_all_that_a_format_needs_to_be_read(form: TracebackFormat) -> None:
    lines = FORM_SAMPLES[form.name].splitlines()
    first = next(line for line in lines if any(each.opens(line) for each in FORMATS))
    assert next(each for each in FORMATS if each.opens(first)) is form
    (span,) = find(lines)
    assert (span.traceback.exception, span.traceback.message) == ("ValueError", "no rows")
    assert span.traceback.frames[-1].line == 3


@pytest.mark.parametrize("mark", ["_", "*"])
def test_a_traceback_in_italics_is_read_without_its_marks(mark):
    body = (
        "It fails, triggering error\n\n"
        f'  {mark}File "C:\\Python38\\site-packages\\darts\\timeseries.py", line 1243, in head\n'
        "    return self.__class__(self._xa)\n"
        f"{mark}ValueError: The time dimension must be indexed{mark}\n"
    )
    bug = read_issue(Issue(title="x", body=body, repository="unit8co/darts"))
    (row,) = bug.tracebacks
    assert (row.exception, row.message) == ("ValueError", "The time dimension must be indexed")
    assert [frame.function for frame in row.frames] == ["head"]
    assert all(claim.version != "head" for claim in bug.versions)


def test_frames_of_ipython_without_a_title_end_in_the_class_that_is_raised() -> None:
    body = (
        "How to use it?\n```\n"
        "~/conda/lib/python3.8/site-packages/flaxen/core/scope.py in variable(self, col, *init)\n"
        "    716       if not self.is_mutable(col):\n"
        "--> 718           raise errors.CollectionNotFound(col, self.path)\n"
        "    719         raise errors.VariableNotFound(col)\n"
        "\nCollectionNotFound: There is no mean in the collection.\n```\n"
    )
    (traceback,) = report(body).tracebacks
    assert traceback.exception == "CollectionNotFound"
    assert traceback.message == "There is no mean in the collection."
    assert traceback.frames[-1].module_path == "flaxen/core/scope.py"


def test_an_open_file_in_words_is_no_frame() -> None:
    body = "Look at src/train.py in the folder (it is short). ValueError is what I see.\n"
    assert all(not row.frames for row in report(body).tracebacks)


def test_a_mark_that_closes_an_italic_traceback_is_no_part_of_its_message() -> None:
    body = (
        "I get:\n\n_Traceback (most recent call last):\n"
        '  File "/medusa/train.py", line 28, in <module>\n    from utils.loader import Joint\n'
        "ModuleNotFoundError: No module named 'utils.loader'_\n\nThanks!"
    )
    (traceback,) = report(body).tracebacks
    assert traceback.message == "No module named 'utils.loader'"


@pytest.mark.parametrize("end", ["", "\nValueError: no rows"])
def test_what_a_debugger_shows_is_one_traceback(end):
    (span,) = find((FORM_SAMPLES["VS Code"] + end).split("\n"))
    assert span.end == 5 + bool(end)


def test_a_debuggers_exception_needs_no_frames():
    (span,) = find(
        ["Exception has occurred: AttributeError", "module 'x' has no attribute 'y'", ""]
    )
    found = span.traceback
    assert (found.exception, found.message) == ("AttributeError", "module 'x' has no attribute 'y'")


def test_a_compiled_file_of_python_2_is_called_as_its_source():
    lines = [
        "/env/lib/python2.7/site-packages/dask/array/core.pyc in repeat(a, axis)",
        "----> 3 x",
        "",
    ]
    (span,) = find([*lines, "IndexError: no"])
    assert span.traceback.frames[0].module_path == "dask/array/core.py"


@pytest.mark.parametrize(
    ("path", "module"),
    [
        ("jax/numpy/lax_numpy.py", "jax/numpy/lax_numpy.py"),
        ("/Users/me/jax/jax/numpy/lax_numpy.py", "jax/numpy/lax_numpy.py"),
        ("/b/tensorflow/python/keras/engine/base.py", "tensorflow/python/keras/engine/base.py"),
        ("/home/me/pytorch/torch/nn/functional.py", "torch/nn/functional.py"),
        ("datasets/voc.py", ""),
    ],
)
def test_a_part_of_a_checkout_is_no_other_package(path, module):
    assert frame(path, "3", "fit").module_path == module


def test_an_error_in_mixed_emphasis_is_read_without_it():
    body = "I got:\n**_IndexError: list index out of range_**\nand `__init__` is fine.\n"
    (row,) = read_issue(Issue(title="x", body=body, repository="a/b")).tracebacks
    assert (row.exception, row.message) == ("IndexError", "list index out of range")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("The error is: `Module instance is frozen outside of setup method.` Odd.",
         ["Module instance is frozen outside of setup method."]),
        ("The full error message was `the window of the scheduler is closed`.",
         ["the window of the scheduler is closed"]),
        ("The error is `a - b + c * d`, far more than the tolerance.", []),
    ],
)  # fmt: skip
def test_what_a_sentence_calls_the_error_is_its_message(body, message):
    assert [row.message for row in read_issue(Issue(title="x", body=body)).tracebacks] == message
