"""The last line of an exception told from what else has the form `Name: words`, wherever a
report shows it.
"""

import asyncio
import concurrent.futures.process
import configparser
import http.client
import queue
import subprocess
import sys
import zipfile

import pytest
from hypothesis import given, strategies as st

from bot.issues.reading import issue
from bot.issues.signature import freeze
from bot.kernel import exception_names
from bot.kernel.bug import CrashSignature, Issue, OutputSignature
from bot.kernel.exception_names import is_class_name, match_exception_line, match_probable_exception
from bot.kernel.tracebacks import find
from tests import stdlib

LOADED = (
    asyncio,
    concurrent.futures.process,
    configparser,
    http.client,
    queue,
    subprocess,
    zipfile,
)
PROGRAM = "```python\nimport lib\nprint(lib.value(3))\n```\n"

EXCEPTIONS = [
    "packaging.version.InvalidVersion: Invalid version: 'abc'",
    "zipfile.BadZipFile: File is not a zip file",
    "BadZipFile: File is not a zip file",
    "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB",
    "subprocess.CalledProcessError: Command 'false' returned non-zero exit status 1.",
    "subprocess.TimeoutExpired: Command 'sleep' timed out after 3 seconds",
    "StopIteration: nothing is left",
    "numpy.linalg.LinAlgError: Singular matrix",
    "jsonschema.exceptions.ValidationFailed: 'a' is no number",
    "socket.timeout: timed out",
    "struct.error: unpack requires a buffer of 4 bytes",
    "http.client.IncompleteRead: IncompleteRead(0 bytes read)",
    "concurrent.futures.process.BrokenProcessPool: A process in the pool was terminated abruptly",
    "pyarrow.lib.ArrowInvalid: Could not convert 'a' with type str",
    "cv2.error: OpenCV(4.8.0) color.cpp:182: error: (-215:Assertion failed) in function 'cvtColor'",
    "app.models.User.DoesNotExist: User matching query does not exist.",
    "__main__.Diverged: the loss is no longer finite",
]
OTHERS = [
    "Model: resnet",
    "Epoch: 3",
    "Accuracy: 0.9",
    "Device: cuda",
    "Empty: 3",
    "my.Metric: 0.5",
    "my.Metric: 0.5 1.5",
    "torch.nn.Linear: in_features=3, out_features=4",
    "torch.nn.Linear: 30 parameters",
    "app.logger.Trainer: started the next run",
    "logging.Trainer: started the next run",
    "lib.OldWayWarning: do not do this",
    "torch.FloatTensor",
    "torch.float32",
    "optimizer.lr: 0.1",
    "self.error: something went wrong",
    "collections.OrderedDict: lambda self, value: value,",
    "http://host.Example: the wrong address",
]
SHOWN = {
    "block": "\nOutput:\n\n```\n{}\n```\n",
    "log": "\n```\nEpoch: 3\nLoss: 0.5\n{}\n```\n",
    "log with more": "\n```\nEpoch: 3\n{}\n\nProcess finished with exit code 1\n```\n",
    "prose": "\nIt ends with\n\n{}\n\nand that is all.\n",
    "ticks": "\nThere I see `{}` at the end.\n",
}


def read(body):
    return issue.read_issue(
        Issue(title="lib.value fails", body=PROGRAM + body, repository="acme/lib")
    )


@pytest.mark.parametrize("place", SHOWN)
@pytest.mark.parametrize("line", EXCEPTIONS)
def test_the_last_line_alone_is_the_reported_failure(line, place):
    found = read(SHOWN[place].format(line))
    (traceback,) = found.tracebacks
    assert f"{traceback.exception}: {traceback.message}" == line
    frozen = freeze.freeze(found)
    assert isinstance(frozen, CrashSignature)
    assert f"{frozen.exception}: {frozen.message}" == line


@pytest.mark.parametrize("place", SHOWN)
@pytest.mark.parametrize("line", OTHERS)
def test_what_only_looks_like_it_is_printed_output(line, place):
    found = read(SHOWN[place].format(line))
    assert not any(row.exception or row.message for row in found.tracebacks)
    if place in {"block", "log"} and "Warning" not in line:
        frozen = freeze.freeze(found)
        assert isinstance(frozen, OutputSignature)
        assert frozen.observed[-1][-1] == line


@pytest.mark.parametrize(
    "body",
    [
        "```\npkg.Encoder: two layers deep\npkg.Decoder: two layers deep\n```",
        "```\npkg.Encoder: two layers deep\nready\n```",
        "## pkg.Encoder: two layers are lost\n\nSee above.",
        "- pkg.Encoder: two layers are lost\n- it is slow",
        "lib.Encoder: two layers are lost\n\n```python\nimport lib\nlib.Encoder(2)\n```",
        "```python\nimport pkg\n# pkg.Encoder: two layers deep\npkg.go(3)\n```",
        "```yaml\nmodel: a\npkg.Encoder: two layers deep\n```",
        "The same with torch.nn.Linear: the weights are lost.",
    ],
)
def test_a_class_that_is_talked_about_was_not_raised(body):
    assert not any(row.exception or row.message for row in read(body).tracebacks)


@pytest.mark.parametrize(
    ("body", "exception", "message"),
    [
        (
            "It fails with pkg.mod.Unfit: The value does not fit.",
            "pkg.mod.Unfit",
            "The value does not fit.",
        ),
        ("This raises an InvalidThing: Some words, always", "InvalidThing", "Some words, always"),
        ("It crashes with `InvalidThing: 3`", "InvalidThing", "3"),
        (
            "Then ValueError: Expected input of another size",
            "ValueError",
            "Expected input of another size",
        ),
        (
            "```\nTraceback (most recent call last):\nInvalidThing: it is 3\n```",
            "InvalidThing",
            "it is 3",
        ),
        (
            "```\nTraceback (most recent call last):\n  ...\npkg.InvalidThing: it is 3\n```",
            "pkg.InvalidThing",
            "it is 3",
        ),
        (
            "```\n>       lib.go()\nE       pkg.mod.Unfit: 3\n\ntests/test_a.py:45: Unfit\n```",
            "pkg.mod.Unfit",
            "3",
        ),
    ],
)
def test_the_words_around_it_say_that_it_was_raised(body, exception, message):
    (traceback,) = read(body).tracebacks
    assert (traceback.exception, traceback.message) == (exception, message)


def test_a_block_of_a_program_may_end_with_it():
    found = read("```python\nimport lib\nlib.go()\nzipfile.BadZipFile: File is not a zip file\n```")
    assert [row.exception for row in found.tracebacks] == ["zipfile.BadZipFile"]


def test_an_exception_that_never_has_a_message_counts_without_one():
    frozen = freeze.freeze(read("```\n_queue.Empty\n```"))
    assert isinstance(frozen, CrashSignature)
    assert (frozen.exception, frozen.message) == ("_queue.Empty", "")
    cut = freeze.freeze(read("```\nValueError\n```"))
    assert isinstance(cut, CrashSignature)
    assert cut.checks == ("print(lib.value(3))",), "its message was cut: the call decides"


def subclasses(kind):
    for each in kind.__subclasses__():
        yield each
        yield from subclasses(each)


def test_the_standard_library_says_which_its_exceptions_are():
    roots = {module.__name__ for module in LOADED}
    classes = [
        each
        for each in subclasses(BaseException)
        if each.__module__ in roots and not issubclass(each, Warning)
    ]
    assert {"BadZipFile", "TimeoutExpired", "IncompleteRead", "NoSectionError"} <= {
        each.__name__ for each in classes
    }
    unknown = [
        each
        for each in classes
        if not is_class_name(f"{each.__module__}.{each.__qualname__}") and each.__name__[0] != "_"
    ]
    assert unknown == []
    assert {"OrderedDict", "Path", "Thread", "UserWarning", "Exception1"}.isdisjoint(
        exception_names.EXCEPTIONS
    )
    assert all(not is_class_name(f"{module}.Path") for module in sys.stdlib_module_names)


def test_the_list_covers_the_library_of_this_python():
    assert {"BadZipFile", "TimeoutExpired"} <= (found := stdlib.exceptions(stdlib.SOURCES))
    assert {name for name in found - exception_names.EXCEPTIONS if name[0] != "_"} == set(), (
        "run `python tests/stdlib.py`"
    )


def test_what_is_an_exception_does_not_hang_on_the_library_of_this_python(tmp_path):
    (tmp_path / "gone.py").symlink_to(tmp_path / "nowhere.py")
    elsewhere = f"import sysconfig; sysconfig.get_path = lambda *_: {str(tmp_path)!r}\n"
    code = "from bot.kernel.exception_names import is_class_name; print(is_class_name('zipfile.BadZipFile'))"
    run = subprocess.run([sys.executable, "-c", elsewhere + code], capture_output=True, text=True)
    assert (run.stdout.strip(), run.stderr) == ("True", "")


WORDS = st.lists(
    st.sampled_from(["the", "file", "is", "no", "archive", "value"]), min_size=2, max_size=6
).map(" ".join)
DOTTED = st.builds(
    lambda modules, name: ".".join([*modules, name]),
    st.lists(st.sampled_from(["pkg", "core", "_impl", "a1"]), min_size=1, max_size=4),
    st.sampled_from(["InvalidThing", "NotReady", "Full", "HTTPGone"]),
)
LABELS = st.sampled_from(["Model", "Epoch", "Loss", "GPU", "Device", "BatchSize", "Total", "Val"])
VALUES = st.one_of(
    st.integers(),
    st.floats(),
    st.booleans(),
    st.sampled_from(["cuda", "[1, 2]", "'x'", "(3, 4)", "a b c"]),
)


@given(DOTTED, WORDS, st.lists(st.text(alphabet="abc ", max_size=8), max_size=3))
def test_a_dotted_class_before_words_ends_a_log_and_no_run(name, words, before):
    lines = [*before, f"{name}: {words}"]
    (span,) = find(lines, loose=True)
    assert (span.traceback.exception, span.traceback.message) == (name, words)
    assert (span.start, span.end) == (len(before), len(lines))
    assert find(lines) == [], (
        "what a run prints is an exception by its name or its traceback, not by its place"
    )


@given(LABELS, VALUES)
def test_a_label_is_no_exception(label, value):
    assert match_exception_line(f"{label}: {value}") is None
    assert match_probable_exception(f"{label}: {value}") is None
    assert find([f"{label}: {value}"], loose=True) == []


@given(st.text(max_size=60))
def test_any_line_is_told(line):
    for match in (match_exception_line(line), match_probable_exception(line)):
        assert match is None or line.startswith(match["exc"])


@pytest.mark.parametrize(
    ("title", "message"),
    [
        (
            "ValueError: could not convert string to float when computing values of arrays",
            "could not convert string to float",
        ),
        (
            "ValueError: cannot reshape an array, while training the model",
            "cannot reshape an array",
        ),
        (
            "RuntimeError: Exception encountered when calling the layer x",
            "Exception encountered when calling the layer x",
        ),
        ("TypeError: refused when using it", "refused when using it"),
    ],
)
def test_when_an_error_arises_is_no_part_of_its_message_in_a_title(title, message):
    report = Issue(title=title, body="It fails.\n", repository="acme/lib")
    assert [row.message for row in issue.read_issue(report).tracebacks] == [message]


WISH = "ValueError: f takes no negative size"


@pytest.mark.parametrize(
    ("words", "is_failure"),
    [
        (f"I expected `{WISH}`, but nothing is raised.", False),
        (f"The documentation says that it raises `{WISH}`, but it returns None.", False),
        (f"According to the docs it raises {WISH}", False),
        (f"It does not raise {WISH}", False),
        (f"It should be `{WISH}`.", False),
        (f"It returns nan instead of `{WISH}`.", False),
        (f"Previously it raised `{WISH}`.", False),
        (f"In acme 1.13 this raised `{WISH}`. Since 2.0 it silently prints nan.", False),
        (f"In acme 1.13 this raised `{WISH}`. That is wrong.", True),
        (f"I expected 3 but got `{WISH}`.", True),
        (f"It should return 3, but raises `{WISH}`.", True),
        (f"It should not fail. It raises `{WISH}`.", True),
        (f"It should not raise `{WISH}`.", True),
        (f"It shouldn't raise `{WISH}`.", True),
        (f"If the size does not fit it raises `{WISH}`.", True),
        (f"As expected, `{WISH}` is raised, though with the wrong words.", True),
        (f"Unexpectedly I get {WISH}", True),
    ],
)
def test_an_exception_that_the_report_misses_is_not_its_failure(words, is_failure):
    program = "```python\nimport acme\nacme.f(-1)\n```\n\n"
    found = issue.read_issue(Issue(title="f of a negative size", body=program + words))
    messages = {row.message.rstrip(".") for row in found.tracebacks}
    assert ("f takes no negative size" in messages) is is_failure, messages


def test_an_exception_that_a_title_asks_for_is_not_its_failure():
    body = "```python\nimport acme\nacme.f(-1)\n```\n"
    wishes = issue.read_issue(Issue(title=f"f should raise {WISH}", body=body))
    assert wishes.tracebacks == ()
    fails = issue.read_issue(Issue(title=f"f fails: {WISH}", body=body))
    assert [row.exception for row in fails.tracebacks] == ["ValueError"]


@pytest.mark.parametrize(
    ("section", "is_failure"),
    [
        (f"### Expected behavior\n\n{WISH}\n", False),
        (f"### Expected behavior\n\nIt raises `{WISH}`.\n", False),
        (f"### Expected behavior\n\nIt returns 3, but now it raises `{WISH}`.\n", True),
        (f"### Actual behavior\n\n{WISH}\n", True),
        (f"### Expected vs actual behavior\n\nIt raises `{WISH}`.\n", True),
    ],
)
def test_what_stands_under_what_is_expected_is_not_the_failure(section, is_failure):
    program = "```python\nimport acme\nacme.f(-1)\n```\n\n"
    found = issue.read_issue(Issue(title="f of a negative size", body=program + section))
    assert any(row.exception == "ValueError" for row in found.tracebacks) is is_failure


WARNS = "UserWarning: the size of f is deprecated"


@pytest.mark.parametrize(
    ("words", "is_failure"),
    [
        (f"I expect `{WARNS}`, but nothing is shown.", False),
        (f"In acme 1.13 it printed `{WARNS}`. Now it is silent.", False),
        ('It should warn "the size of f is deprecated", but nothing is shown.', False),
        (f"It prints `{WARNS}`.", True),
        ('It warns "the size of f is deprecated".', True),
    ],
)
def test_a_warning_that_the_report_misses_is_not_its_failure(words, is_failure):
    found = issue.read_issue(Issue(title="f of a negative size", body=words))
    assert bool(found.warnings) is is_failure


@pytest.mark.parametrize(
    ("words", "exception"),
    [
        ("`IndexError` with no message is raised.", "IndexError"),
        ("An acme.FitError is thrown.", "acme.FitError"),
        ("It ends at once. It is an `IndexError`.", "IndexError"),
        ("The exception was a KeyError", "KeyError"),
        ("An IndexError is raised if the size is negative.", None),
        ("An IndexError should be raised.", None),
        ("It does not throw an IndexError.", None),
        ("I expected that an IndexError is raised.", None),
    ],
)
def test_a_class_that_is_raised_is_read_without_its_message(words, exception):
    program = "```python\nimport acme\nacme.f(-1)\n```\n\n"
    found = issue.read_issue(Issue(title="f of a negative size", body=program + words))
    assert [row.exception for row in found.tracebacks] == ([exception] if exception else [])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("it says something like FitError the size of x is below 0", "the size of x is below 0"),
        ("it says FitError x and y differ in size\nexpected: (2, 3)", "x and y differ in size"),
        ('Python just says FitError no dimension is named "p"', 'no dimension is named "p"'),
        ("It says FitError when the size of x is below 0.", None),
        ("The docs say it says FitError the size of x is below 0.", None),
        ("it says FitError again", None),
        ("It should say FitError the size of x is below 0.", None),
    ],
)
def test_a_last_line_that_is_told_without_its_colon(words, message):
    program = "```python\nimport acme\nacme.f(-1)\n```\n\n"
    found = issue.read_issue(Issue(title="f of a negative size", body=program + words))
    assert [row.message for row in found.tracebacks if row.message] == (
        [message] if message else []
    )


def test_a_quotation_that_ends_a_sentence_is_no_part_of_its_message() -> None:
    body = "There occurs \"load(x) TypeError: load() missing 1 required positional argument: 'L'\"."
    (row,) = issue.read_issue(Issue(title="It fails", body=body)).tracebacks
    assert row.message == "load() missing 1 required positional argument: 'L'"
