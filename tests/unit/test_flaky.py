import pytest

from bot.issues.reading import symptoms


@pytest.mark.parametrize(
    "text",
    [
        "Sometimes NaN in the first step",
        "About one run in three it dies",
        "fails 30% of the time",
        "a flaky test",
        "with some seeds",
        "it is nondeterministic",
    ],
)
def test_failures_that_come_and_go(text):
    assert symptoms.says_so(text)


@pytest.mark.parametrize(
    "text",
    [
        "fails at every run",
        "random_split raises ValueError",
        "torch.randn(3) is 3-D",
        "use a random seed of 0",
    ],
)
def test_failures_that_stay(text):
    assert not symptoms.says_so(text)
