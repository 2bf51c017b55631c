import pytest

from bot.issues.signature import values

TOL = {"rtol": 1e-3, "atol": 1e-6}


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("loss: 0.69315", "loss: 0.69314", True),
        ("loss: 0.69315", "loss: 0.70", False),
        ("k=3", "k=4", False),
        ("x = nan", "x = nan", True),
        ("x = nan", "x = 1.0", False),
        ("x = inf", "x = -inf", False),
        ("tensor([1., 2.])", "tensor( [ 1.,2. ] )", True),
        ("<Foo object at 0x7f001122>", "<Foo object at 0x55aabbcc>", True),
        ("v1.0 loads", "v2.0 loads", False),
        ("shape: torch.Size([1, 3])", "shape: (1, 3)", True),
        ("torch.Size([3])", "(3,)", True),
        ("TensorShape([2, 5])", "(5, 2)", False),
    ],
)
def test_lines(one, other, same):
    assert values.same_line(values.clean(one), values.clean(other), **TOL) is same


def test_a_chunk_stands_together_and_its_order_may_differ():
    output = values.lines("start\nmu=1.0\n jax: nan\n jit: nan\nend\n")
    assert values.values_hold(("mu=1.0", "jit:nan", "jax:nan"), output, **TOL) == (1, 4)


def test_lines_far_apart_are_no_chunk():
    output = values.lines("mu=1.0\njax: 1.0\n" + "other\n" * 8 + "mu=9.0\njax: nan\n")
    assert values.values_hold(("mu=1.0", "jax:nan"), output, **TOL) is None


def test_the_next_block_does_not_complete_this_one():
    output = values.lines("mu=1.0\njax: nan\nmu=2.0\njax: 1.0\n")
    assert values.values_hold(("mu=1.0", "jax:1.0"), output, **TOL) is None
    assert values.values_hold(("mu=1.0", "jax:nan"), output, **TOL) == (0, 2)


def test_a_log_line_between_is_passed_over():
    assert values.values_hold(
        ("epoch 1", "loss nan"), values.lines("epoch 1\nsaved to disk\nloss nan"), **TOL
    ) == (0, 3)


def test_paragraphs_are_chunks_and_ellipses_are_left_out():
    assert values.chunks("a\nb\n\n...\n\nc") == (("a", "b"), ("c",))


def test_a_value_is_a_whole_word():
    assert values.within("nan", ["loss nan"], **TOL) == 0
    assert values.within("nan", ["nanny says 3"], **TOL) is None
    assert values.within("1", ["hops: 1"], **TOL) == 0
    assert values.within("1", ["hops: 10"], **TOL) is None


@pytest.mark.parametrize("text", ["", "\r\n\r", "nan " * 50])
def test_odd_output_is_read(text):
    assert isinstance(values.lines(text), list)
