import pytest

from bot.rules import setup_failures


@pytest.mark.parametrize(
    ("exception", "message", "field", "value"),
    [
        ("ModuleNotFoundError", "No module named 'captum'", "module", "captum"),
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
        ("AttributeError", "module 'numpy' has no attribute 'bool'", "requirement", "numpy<1.24"),
        ("ModuleNotFoundError", "No module named 'pkg_resources'", "requirement", "setuptools<81"),
        ("AssertionError", "Torch not compiled with CUDA enabled", "rewrite", "cpu"),
        ("MisconfigurationException", "No supported gpu backend found!", "rewrite", "cpu"),
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
        ("ValueError", "expected 3 dims, got 4"),
        ("AssertionError", ""),
    ],
)
def test_failures_that_are_no_setup_failure(exception, message):
    assert setup_failures.recognise(exception, message) is None


def test_every_rule_has_an_id_of_its_own():
    ids = [rule.id for rule in setup_failures.RULES]
    assert len(ids) == len(set(ids))
