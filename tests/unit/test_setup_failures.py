import time

import pytest

from bot.environment import setup_failures


@pytest.mark.parametrize(
    ("exception", "message", "field", "value"),
    [
        ("ModuleNotFoundError", "No module named 'captum'", "module", "captum"),
        (
            "AttributeError",
            "module 'torch._C' has no attribute '_cuda_setDevice'",
            "rewrite",
            "cpu",
        ),
        ("ModuleNotFoundError", "No module named 'p\u00f6ol.core'", "module", "p\u00f6ol"),
        ("ModuleNotFoundError", "No module named 'torch_scatter.utils'", "module", "torch_scatter"),
        (
            "ImportError",
            "Trainer requires accelerate: Please run `pip install accelerate>=0.26.0`",
            "requirement",
            "accelerate>=0.26.0",
        ),
        (
            "ModuleNotFoundError",
            "`CLI` needs it. Run `pip install -U 'jsonargparse[signatures]>=4.27'`",
            "requirement",
            "jsonargparse[signatures]>=4.27",
        ),
        (
            "ImportError",
            "This function requires the sentencepiece library but it was not found",
            "module",
            "sentencepiece",
        ),
        (
            "BoostingError",
            "pyarrow-lite is needed for tables. You have to install pyarrow-lite and start again.",
            "module",
            "pyarrow-lite",
        ),
        ("AttributeError", "module 'numpy' has no attribute 'bool'", "requirement", "numpy<1.24"),
        (
            "TypeError",
            "Descriptors cannot not be created directly.",
            "requirement",
            "protobuf<3.21",
        ),
        ("TypeError", "Descriptors cannot be created directly.", "requirement", "protobuf<3.21"),
        ("RuntimeError", "Parent directory out/a does not exist.", "id", "missing-data"),
        ("ModuleNotFoundError", "No module named 'pkg_resources'", "requirement", "setuptools<81"),
        ("AssertionError", "Torch not compiled with CUDA enabled", "rewrite", "cpu"),
        ("MisconfigurationException", "No supported gpu backend found!", "rewrite", "cpu"),
        ("RuntimeError", "CUDA is not available.", "rewrite", "cpu"),
        ("ValueError", "fp16 on a GPU is required, but CUDA unavailable", "rewrite", "cpu"),
        ("RuntimeError", "no CUDA-capable device is detected", "rewrite", "cpu"),
        ("", "Training needs a GPU", "rewrite", "cpu"),
        ("", "No GPU found, exiting", "rewrite", "cpu"),
        ("", "GPU not found", "rewrite", "cpu"),
        ("NameError", "name 'Tensor' is not defined", "names", ("Tensor",)),
        (
            "FileNotFoundError",
            "[Errno 2] No such file or directory: 'train.csv'",
            "id",
            "missing-file",
        ),
        ("", "requests.exceptions.ConnectionError: Max retries exceeded with url", "id", "offline"),
        ("EOFError", "EOF when reading a line", "id", "no-input"),
        (
            "RuntimeError",
            (
                "Couldn't load custom C++ ops. This can happen if your PyTorch and torchvision versions "
                "are incompatible, or if you had errors while compiling torchvision from source."
            ),
            "id",
            "compiled-operators",
        ),
        ("RuntimeError", "operator torchvision::nms does not exist", "id", "compiled-operators"),
        (
            "NotImplementedError",
            "Could not run 'torchvision::nms' with arguments from the 'CPU' backend.",
            "id",
            "compiled-operators",
        ),
        (
            "DependencyNotInstalled",
            'Box2D is not installed, run `pip install swig` and `pip install "gymnasium[box2d]"`',
            "requirement",
            "gymnasium[box2d]",
        ),
        ("ImportError", "Run pip install --user --pre acme-audio", "requirement", "acme-audio"),
        ("ImportError", "Install it: conda install -c conda-forge acme", "requirement", "acme"),
        ("ImportError", "Run `pip install -e '.[audio]'` first", "requirement", "[audio]"),
        ("ImportError", "Install acme with the `audio` extra", "requirement", "[audio]"),
        (
            "PackageNotFoundError",
            "No package metadata was found for acme-core",
            "requirement",
            "acme-core",
        ),
        (
            "DistributionNotFound",
            "The 'acme>=1.2' distribution was not found and is required by the application",
            "requirement",
            "acme>=1.2",
        ),
        ("ImportError", "This requires the `acme` package to be installed", "module", "acme"),
        ("ImportError", "Could not import acme python package", "module", "acme"),
        ("KeyError", "'OPENAI_API_KEY'", "variable", "OPENAI_API_KEY"),
        (
            "OpenAIError",
            "The api_key client option must be set by setting the OPENAI_API_KEY variable",
            "variable",
            "OPENAI_API_KEY",
        ),
        (
            "ValidationError",
            "1 validation error for Chat\n  Did not find acme_api_key, please add `ACME_API_KEY`",
            "variable",
            "ACME_API_KEY",
        ),
        ("RuntimeError", "Please export HF_TOKEN first: it is required", "variable", "HF_TOKEN"),
        (
            "LocalTokenNotFoundError",
            "Token is required (`token=True`), but no token found.",
            "variable",
            "HF_TOKEN",
        ),
        (
            "UsageError",
            "api_key not configured (no-tty). call wandb.login(key=[your_api_key])",
            "variable",
            "WANDB_API_KEY",
        ),
    ],
)
def test_setup_failures_and_their_fixes(exception, message, field, value):
    found = setup_failures.recognise(exception, message)
    assert found is not None
    assert getattr(found, field) == value


@pytest.mark.parametrize(
    ("exception", "message"),
    [
        ("RuntimeError", "mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)"),
        ("ImportError", "cannot import name 'ops' from 'keras'"),
        ("KeyError", "'train.csv'"),
        ("KeyError", "'PAD_TOKEN_ID'"),
        ("KeyError", "'PAD_TOKEN'"),
        ("ValueError", "the pad_token is not set"),
        ("ImportError", "Please install the package first"),
        ("ImportError", "run pip install -r requirements.txt"),
        ("ValueError", "PRNG_KEY has shape (2,), expected (4,)"),
        ("ValueError", "expected 3 dims, got 4"),
        ("AssertionError", ""),
    ],
)
def test_failures_that_are_no_setup_failure(exception, message):
    assert setup_failures.recognise(exception, message) is None


def test_every_rule_has_an_id_of_its_own():
    ids = [rule.id for rule in setup_failures.RULES]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("piece", ["ab cd ", "Ab cd ", "environ ", "set A"])
def test_a_long_message_costs_no_quadratic_time(piece):
    started = time.process_time()
    setup_failures.recognise("RuntimeError", piece * (60_000 // len(piece)))
    assert time.process_time() - started < 2


def test_a_secret_that_is_named_late_in_a_long_message_is_found():
    message = "x" * 900 + " the variable MY_API_KEY " + "y" * 300 + " is not set"
    failure = setup_failures.recognise("RuntimeError", message)
    assert failure is not None
    assert failure.variable == "MY_API_KEY"
