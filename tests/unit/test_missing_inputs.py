"""What ended a run because only the operator or the reporter has it, as one sentence."""

import time

import pytest

from bot.environment import setup_failures
from bot.issues.confirm import absent_module
from bot.issues.missing_inputs import lacking, weights_note
from bot.kernel.attempt import Attempt, Execution, Failure, Judgement, Match, Script
from bot.kernel.bug import Frame, Issue
from bot.kernel.environment import (
    DataMount,
    Environment,
    EnvironmentSpec,
    OperatorFiles,
    Package,
    PinSource,
)
from bot.kernel.session import CompletedRun, SearchResult

PROGRAM = Script(files={"tools/train.py": ""}, entry="tools/train.py", command=("tools/train.py",))
SNIPPET = Script(files={"repro.py": ""})
ABSENT = "which the repository does not contain; an operator can provide it with `data:` in .github/reprise.yml"


@pytest.fixture
def verdict(tmp_path):
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "train.py").write_text("")

    def of(exception, message, code="load()", script=PROGRAM, body="", frames=(), **files):
        failure = Failure(
            exception=exception,
            message=message,
            frames=(Frame(path="/repro/train.py", line=1, function="main", code=code), *frames),
        )
        recognised = setup_failures.recognise(exception, message)
        assert recognised is not None, "no setup failure"
        judgement = Judgement(match=Match.SETUP_FAILURE, reason="", failure=failure, setup_failure=recognised)  # fmt: skip
        environment = Environment(id="e", python="3", interpreter="python", tree=str(tmp_path), operator_files=OperatorFiles(**files))  # fmt: skip
        attempt = Attempt(number=1, purpose="search", script="", origin="", environment="e", execution=Execution(exit_code=1, seconds=1), judgement=judgement)  # fmt: skip
        result = SearchResult(script, EnvironmentSpec(python="3"), environment, CompletedRun(attempt))  # fmt: skip
        return lacking(result, Issue(title="", body=body))

    return of


@pytest.mark.parametrize(
    ("exception", "message", "path"),
    [
        ("FileNotFoundError", "[Errno 2] No such file or directory: 'data/train.bin'", "data/train.bin"),
        ("FileNotFoundError", "[Errno 2] No such file or directory: './data/train set.bin'", "data/train set.bin"),
        ("FileNotFoundError", "[Errno 2] No such file or directory: '/repro/data'", "data"),
        ("FileNotFoundError", "[Errno 2] No such file or directory: '/tmp/reprise-run-0123456789abcdef/work/data'", "data"),
        ("FileNotFoundError", "[Errno 2] No such file or directory: b'data'", "data"),
        ("NotADirectoryError", "[Errno 20] Not a directory: './data/train.txt'", "data/train.txt"),
        ("OSError", "[Errno 2] Unable to open file (unable to open file: name = 'x.h5', errno = 2, error message = 'No such file or directory', flags = 0, o_flags = 0)", "x.h5"),
        ("FileNotFoundError", "[Errno 2] Unable to synchronously open file (unable to open file: name = 'a/x.h5', errno = 2, error message = 'No such file or directory', flags = 0, o_flags = 0)", "a/x.h5"),
        ("FileNotFoundError", "[Errno 2] File b'table.csv' does not exist: b'table.csv'", "table.csv"),
        ("FileNotFoundError", "Unable to find '/repro/data/x.csv'", "data/x.csv"),
        ("FileNotFoundError", "Couldn't find any class folder in data/train.", "data/train"),
        ("RuntimeError", "Found 0 files in subfolders of: data/train\nSupported extensions are: .jpg", "data/train"),
        ("RuntimeError", "The archive ILSVRC2012_devkit_t12.tar.gz is not present in the root directory or is corrupted. You need to download it externally and place it in data/imagenet.", "data/imagenet"),
        ("NotFoundError", "{{function_node __wrapped__}} data/train.tfrecord; No such file or directory [Op:IteratorGetNext]", "data/train.tfrecord"),
    ],
)  # fmt: skip
def test_the_path_is_the_one_that_the_program_asked_for(verdict, exception, message, path):
    found = verdict(exception, message)
    assert (found.kind, found.from_operator) == ("needs_info", True)
    assert found.items == (f"`{path}`",)
    assert found.reason == f"the program opens `{path}`, {ABSENT}"


@pytest.mark.parametrize(
    "code",
    ["train = datasets.MNIST('./data', train=True)", 'CIFAR10(root="data", download=False)'],
)
def test_a_data_set_of_torchvision_is_named_by_the_call(verdict, code):
    message = "Dataset not found or corrupted. You can use download=True to download it"
    assert "opens `data`, which" in verdict("RuntimeError", message, code).reason


def test_a_path_is_relative_to_the_folder_that_the_program_started_in(verdict):
    script = PROGRAM.model_copy(update={"folder": "tools"})
    message = "[Errno 2] No such file or directory: '../data/x'"
    assert "opens `data/x`" in verdict("FileNotFoundError", message, script=script).reason
    message = message.replace("..", "/repro")
    assert "opens `data/x`" in verdict("FileNotFoundError", message, script=script).reason


MISSING = "[Errno 2] No such file or directory: 'data/x'"


@pytest.mark.parametrize(
    ("mount", "words"),
    [
        (DataMount(path="data", name="set", source="/srv/set"), "which the operator's `set` does not contain"),
        (DataMount(path="data", name="set"), "names `set` for it, which this worker lacks"),
        (DataMount(path="tools", name="set", source="/srv/set"), ABSENT),
        (DataMount(path="dat", name="set", source="/srv/set"), ABSENT),
    ],
)  # fmt: skip
def test_what_the_configuration_has_is_not_asked_for_again(verdict, mount, words):
    found = verdict("FileNotFoundError", MISSING, data=(mount,))
    assert words in found.reason
    assert (ABSENT in found.reason) is (words == ABSENT)


def test_a_file_that_the_tree_has_or_that_is_written_is_no_data(verdict):
    other = "[Errno 2] No such file or directory: 'tools/train.py'"
    assert verdict("FileNotFoundError", other) is None
    found = verdict("FileNotFoundError", MISSING, "with open(path, 'w') as file:")
    assert found.reason == "the program writes to `data/x`, whose folder the repository does not contain"  # fmt: skip


def test_only_a_file_that_the_report_shows_to_be_the_reporters_own_is_asked_for(verdict):
    message = "[Errno 2] No such file or directory: '/home/me/set/x.bin'"
    found = verdict("FileNotFoundError", message, body="python train.py --data /home/me/set/x.bin")
    assert found.kind == "needs_info"
    assert found.items == ("`/home/me/set/x.bin`, or a program that makes one like it",)
    assert not found.from_operator
    found = verdict("FileNotFoundError", message)
    assert found.from_operator
    assert "outside the repository" in found.reason


def test_a_snippet_has_no_repository(verdict):
    assert verdict("FileNotFoundError", MISSING, script=SNIPPET) is None


@pytest.mark.parametrize(
    ("exception", "message", "code", "name"),
    [
        ("OSError", "We couldn't connect to 'https://huggingface.co' to load this file, couldn't find it in the cached files and it looks like bert-base-uncased is not the path to a directory containing a file named config.json.", "", "bert-base-uncased"),
        ("OSError", "We couldn't connect to 'https://huggingface.co' to load the files, and couldn't find them in the cached files.", 'model = AutoModel.from_pretrained("org/tiny-model", x=1)', "org/tiny-model"),
        ("OfflineModeIsEnabled", "Cannot reach https://huggingface.co/org/tiny/resolve/main/config.json: offline mode is enabled.", "", "org/tiny"),
        ("OfflineModeIsEnabled", "Cannot reach https://huggingface.co/api/models/org/tiny/revision/main: offline mode is enabled.", "", "org/tiny"),
        ("OSError", "Can't load tokenizer for 'gpt2-x'. If you were trying to load it from 'https://huggingface.co/models', make sure", "", "gpt2-x"),
        ("LocalEntryNotFoundError", "Cannot find the requested files in the disk cache and outgoing traffic has been disabled.", 'hf_hub_download(repo_id="org/tiny", filename="x")', "org/tiny"),
        ("URLError", "<urlopen error [Errno -3] Temporary failure in name resolution>", "net = models.resnet18(weights='DEFAULT')", "resnet18"),
        ("URLError", "<urlopen error [Errno -3] Temporary failure in name resolution>", "net = models.vgg16(pretrained=True)", "vgg16"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("script", [PROGRAM, SNIPPET])
def test_weights_that_are_not_here_are_named(verdict, exception, message, code, name, script):
    found = verdict(exception, message, code, script)
    if script is PROGRAM:
        assert (found.items, found.from_operator) == ((f"the weights `{name}`",), True)
    else:
        assert found.needs_reader
    assert found.reason == f"the program loads the weights `{name}`, which are not at hand; an operator can put them into REPRISE_HUB_DIR"  # fmt: skip
    part = verdict(exception, message, code, script, weights=(name,))
    assert part.reason == f"the operator's cache of weights has `{name}`, but not every file of it"


def test_a_download_that_is_no_weights_is_left_to_the_general_words(verdict):
    message = "<urlopen error [Errno -3] Temporary failure in name resolution>"
    assert verdict("URLError", message, "urlretrieve(url)") is None


def test_weights_of_the_operators_are_noted_where_a_program_names_them(tmp_path):
    (tmp_path / "train.py").write_text('AutoModel.from_pretrained("org/tiny")')
    files = OperatorFiles(weights=("org/tiny", "org/tiny-2", "tiny"))
    environment = Environment(id="e", python="3", interpreter="python", tree=str(tmp_path), operator_files=files)  # fmt: skip
    note = "weights from the operator's cache: `org/tiny`"
    assert weights_note(PROGRAM, environment) == note
    assert weights_note(SNIPPET, environment) == ""
    loading = Script(files={"repro.py": 'f("org/tiny")'})
    assert weights_note(loading, environment) == note


def test_a_long_message_costs_no_time(verdict):
    long = "x" * 20_000
    for message in (f"{MISSING} {long}", f"{long} 'data/x'; No such file or directory"):
        started = time.process_time()
        setup_failures.recognise("NotFoundError", message)
        verdict("FileNotFoundError", f"{MISSING}{message}")
        assert time.process_time() - started < 2


@pytest.mark.parametrize(
    ("message", "packages", "words"),
    [
        ("No module named 'torch._six'", {"torch": "2.13.0+cpu"}, "`torch._six`, which torch 2.13.0+cpu does not have"),
        ("No module named 'torch._six'", {}, ""),
        ("No module named 'torch'", {"torch": "2.13.0+cpu"}, ""),
    ],
)  # fmt: skip
def test_a_module_that_an_installed_release_lacks_is_no_missing_package(message, packages, words):
    failure = Failure(exception="ModuleNotFoundError", message=message)
    judgement = Judgement(match=Match.SETUP_FAILURE, reason="", failure=failure, setup_failure=setup_failures.recognise("ModuleNotFoundError", message))  # fmt: skip
    rows = tuple(Package(name=name, version=version, rung=PinSource.DATE) for name, version in packages.items())  # fmt: skip
    environment = Environment(id="e", python="3", interpreter="python", packages=rows)
    attempt = Attempt(number=1, purpose="search", script="", origin="", environment="e", execution=Execution(exit_code=1, seconds=1), judgement=judgement)  # fmt: skip
    verdict = absent_module(SearchResult(SNIPPET, EnvironmentSpec(python="3"), environment, CompletedRun(attempt)))  # fmt: skip
    assert (verdict is None) is (not words)
    if verdict is not None:
        assert verdict.kind == "inconclusive"
        assert words in verdict.reason


@pytest.mark.parametrize(
    ("path", "function", "name"),
    [
        ("torchvision/datasets/cifar.py", "CIFAR10.download", "CIFAR10"),
        ("keras/src/datasets/mnist.py", "load_data", "mnist"),
        ("torchvision/models/_api.py", "WeightsEnum.get_state_dict", ""),
    ],
)
def test_a_data_set_that_a_library_downloads_is_named(verdict, path, function, name):
    frame = Frame(
        path=f"/e/{path}", package=path.partition("/")[0], module_path=path, function=function
    )
    message = "<urlopen error [Errno -3] Temporary failure in name resolution>"
    row = verdict("URLError", message, "main()", frames=(frame,))
    place = "[Errno 30] Read-only file system: '../../data'"
    assert verdict("OSError", place, "main()", frames=(frame,)) == row
    if not name:
        assert row is None
        return
    assert (row.items, row.from_operator) == ((f"the data set `{name}`",), True)
    assert verdict("URLError", message, "main()", SNIPPET, frames=(frame,)) is None
