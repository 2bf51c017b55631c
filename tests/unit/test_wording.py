import pytest

from bot.issues.signature import values, wording


@pytest.mark.parametrize(
    ("reported", "seen"),
    [
        (
            "forward() got multiple values for argument 'data'",
            "Net.forward() got multiple values for argument 'data'",
        ),
        (
            "cannot import name 'ops' from 'keras' (/usr/lib/python3.10/keras/__init__.py)",
            "cannot import name 'ops' from 'keras' (/x/y/keras/__init__.py)",
        ),
        ("Expected all tensors to be on 0x7f00aabb", "Expected all tensors to be on 0x55ee1122"),
        (
            "Weights only load failed. This file can still be loaded.\nGLOBAL main.Net",
            "Weights only load failed. This file can still be loaded.\nGLOBAL __main__.Other",
        ),
        ("list index out of range", "list index out of range"),
        (
            "expected mat1 and mat2 to have the same dtype, but got: torch.float32 != float64",
            "expected mat1 and mat2 to have the same dtype, but got: float32 != torch.float64",
        ),
        (
            "Input type (torch.cuda.FloatTensor) and weight type (torch.HalfTensor) should be the same",
            "Input type (torch.FloatTensor) and weight type (torch.HalfTensor) should be the same",
        ),
        (
            "Expected all tensors to be on the same device, but found cuda:1 and cpu",
            "Expected all tensors to be on the same device, but found cuda:0 and cpu",
        ),
        (
            "cannot read the file results_v2.csv: no columns",
            "cannot read the file train.csv: no columns",
        ),
        (
            "Layer of type <class 'keras.src.layers.core.dense.Dense'> cannot be copied",
            "Layer of type <class 'keras.layers.Dense'> cannot be copied",
        ),
        (
            'Error while processing pattern "h i -> i h"...',
            'Error while processing pattern "h i -> i h".\n Input tensor shape: (2, 3)',
        ),
        (
            "Cannot interpret '<StringDtype...>' as a data type",
            "Cannot interpret '<StringDtype(storage='python', na_value=nan)>' as a data type",
        ),
    ],
)
def test_wording_that_varies_is_the_same_failure(reported, seen):
    assert wording.resemblance(reported, seen) >= wording.ENOUGH


@pytest.mark.parametrize(
    ("reported", "seen"),
    [
        ("No module named 'captum'", "No module named 'torch'"),
        ("cannot import name 'ops' from 'keras'", "cannot import name 'layers' from 'keras'"),
        ("mat1 and mat2 shapes cannot be multiplied", "expected scalar type Float but found Half"),
        ("0", "1"),
        ("Input X contains NaN in row 3", "Input y contains NaN in row 3"),
        ("This Ridge instance is not fitted yet", "This Lasso instance is not fitted yet"),
        (
            "add got incompatible shapes for broadcasting",
            "mul got incompatible shapes for broadcasting",
        ),
        (
            "Cannot interpret '<Int64Dtype...>' as a data type",
            "Cannot interpret '<StringDtype(storage='python', na_value=nan)>' as a data type",
        ),
        ("list index out of range", "string index out of range by much"),
    ],
)
def test_another_failure_is_not_the_same(reported, seen):
    assert wording.resemblance(reported, seen) < wording.ENOUGH


def test_names_of_the_program_itself_may_differ_only_when_it_defines_them():
    reported, seen = "'Net' object has no attribute 'fit'", "'Model' object has no attribute 'fit'"
    assert wording.resemblance(reported, seen) < wording.ENOUGH
    assert wording.resemblance(reported, seen, frozenset({"Net", "Model"})) >= wording.ENOUGH


def test_operand_shapes_are_strict_and_bracket_style_is_not():
    assert wording.shapes("mat1 and mat2 shapes cannot be multiplied (14x7 and 16x4)") == (
        "14x7",
        "16x4",
    )
    assert wording.same_shapes(("(2,3)",), "got torch.Size([2, 3])")
    assert not wording.same_shapes(("(2,3)",), "got torch.Size([3, 2])")
    assert not wording.same_shapes(("(2,3)", "(2,3)"), "got [2, 3]")


@pytest.mark.parametrize(
    ("reported", "seen", "bases", "same"),
    [
        ("RuntimeError", "RuntimeError", (), True),
        ("jax.errors.JaxRuntimeError", "_JaxRuntimeError", (), True),
        ("ImportError", "ModuleNotFoundError", ("ImportError",), True),
        ("Exception", "ValueError", ("Exception",), False),
        ("ValueError", "TypeError", ("Exception",), False),
    ],
)
def test_exception_classes(reported, seen, bases, same):
    assert wording.same_exception(reported, seen, bases) is same


def test_a_further_line_with_other_words_in_it_is_another_message():
    head = "Error(s) in loading state_dict for Net:"
    missing = f'{head}\n    Missing key(s) in state_dict: "bias".'
    unexpected = f'{head}\n    Unexpected key(s) in state_dict: "scale".'
    assert wording.likeness(missing, missing) == 1.0
    assert wording.likeness(missing, unexpected) < wording.ENOUGH
    assert wording.likeness(missing, f"{missing}\nSee the documentation for what to do.") == 1.0


def test_what_a_library_puts_around_a_message_may_be_missing():
    inner = "The total size of the tensor must be unchanged. Received: input_shape=(4,)"
    outer = (
        f"Exception encountered when calling Reshape.call().\n\n{inner}\n\nArguments received: x"
    )
    assert wording.likeness(outer, inner) >= wording.ENOUGH
    assert wording.likeness(outer, "The rank of the tensor is not known") < wording.ENOUGH


def test_details_that_another_release_adds_leave_it_undecided():
    reported = "The value argument must be within the support"
    now = "Expected value argument (Tensor of shape (3, 2)) to be within the support (Positive()) of the distribution Normal(), but found invalid values"
    assert wording.mostly(reported, now, frozenset())
    assert not wording.mostly(reported, "The shape argument must be a tuple of ints", frozenset())


@pytest.mark.parametrize(
    ("reported", "observed"),
    [
        ("cannot import name Linear.", "cannot import name 'Linear' from 'utils' (/x/utils.py)"),
        ("'voltage'.", "'voltage'"),
        ("name 'x' is not defined.", "name 'x' is not defined"),
    ],
)
def test_the_full_stop_of_a_sentence_is_no_part_of_a_message(reported: str, observed: str) -> None:
    assert wording.likeness(reported, observed) == 1.0
    assert wording.core("the rest was cut...") == "the rest was cut..."


@pytest.mark.parametrize(
    ("reported", "is_cut"),
    [
        ("'Net' object has no attribute 'siz", True),
        ("'Net' object has no attribute 'width", False),
        ("'Net' object has no attribute 'size'", False),
        ("no attribute 'siz", False),  # too short
        ("it doesn't have the attribute 'siz", False),
    ],
)
def test_a_message_that_is_cut_within_its_quotation_is_the_beginning(
    reported: str, is_cut: bool
) -> None:
    assert wording.is_cut_off(reported, "'Net' object has no attribute 'size'") is is_cut


def test_an_array_of_jax_is_called_otherwise_since_a_later_release() -> None:
    old, new = (
        "a=DeviceArray([1.], dtype=float32) is wrong",
        "a=Array([1.], dtype=float32) is wrong",
    )
    assert wording.resemblance(old, new) == 1.0
    assert values.clean("DeviceArray([1.], dtype=float32)") == values.clean(
        "Array([1.], dtype=float32)"
    )
