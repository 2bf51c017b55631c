"""Who is asked for what: only where something is missing for anybody."""

import pytest

from bot.issues.reproduce import plan
from bot.kernel.bug import Issue
from tests.support.fakes import ScriptedModel
from tests.support.jobs import issue_job
from tests.unit.test_reconstruct import OWN, answers, decide, issue, refined, says, write


def verdict(body, title="Something is wrong", **options):
    return plan(issue_job(Issue(title=title, body=body, repository="acme/lib"), **options)).verdict


@pytest.mark.parametrize(
    ("title", "body"),
    [
        ("Loss is wrong", "After the last update my loss is wrong, please fix. It worked before."),
        ("done", "when i merge the model and train a new one it will raise these exceptions"),
        (
            "done",
            "### Tasks\n\n- [ ] a task in the `examples` folder (give the details below)\n\nas info",
        ),
        ("It does not work", ""),
        ("lib.fit fails", "See title."),
        ("Please help", "```\nPython 3.11\ntorch 2.1.0\nLinux\n```\n"),
    ],
)
def test_information_that_nobody_has_is_asked_for(title, body):
    assert verdict(body, title).kind == "needs_info"


@pytest.mark.parametrize(
    ("title", "body"),
    [
        (
            "bias",
            "The `bias` argument of `acme.nn.Layer` is not passed on to `lin_key`, so it stays.",
        ),
        ("It fails", "```\npython train.py --size 5\n```\nends in an error on my machine."),
        ("It fails", "It ends in `ValueError: size 5 is not even` for me."),
        ("Wrong value", "```python\nprint(lib.total([1, 2]))\n```\nis wrong for lists."),
        (
            "ResNet",
            "`ResNet.forward` drops the last batch when the loader is shuffled, see its code.",
        ),
        (
            "It fails",
            "The cell\n\n```\n%run notebook.ipynb\n```\nfails for me with the new release.",
        ),
    ],
)
def test_what_a_reader_could_act_on_is_no_question(title, body):
    found = verdict(body, title)
    assert found is None or (found.kind == "inconclusive" and found.needs_reader), found


def test_a_failure_of_the_graphics_processor_is_not_refuted_without_one():
    body = (
        "```python\nimport jax.numpy as jnp\nprint(jnp.dot(jnp.ones(3), jnp.ones(3)))\n```\n\n"
        "```\nE external/xla/cuda_dnn.cc:461] Could not create cudnn handle: CUDNN_STATUS_INTERNAL_ERROR\n"
        "jax.errors.SimplifiedTraceback: For simplicity, JAX has removed its internal frames.\n```\n"
    )
    title = "XlaRuntimeError: FAILED_PRECONDITION: DNN library initialization failed."
    draft = plan(issue_job(Issue(title=title, body=body, repository="jax-ml/jax")))
    assert draft.bug.device == "gpu"
    assert all("Simplified" not in row.exception for row in draft.bug.tracebacks)


ELSEWHERE = {"kind": "elsewhere", "observation": None, "needs": "Windows with an NVIDIA driver"}


@pytest.mark.parametrize("runs", [says("fine"), says("", 1, "ZeroDivisionError: division by zero")])
@pytest.mark.parametrize("subject", [issue(), issue(OWN)])
def test_what_shows_only_on_another_system_is_neither_asked_for_nor_refuted(runs, subject):
    """What a run here does says nothing about a system that is not at hand."""
    model = ScriptedModel(answers(write(), first=refined(**ELSEWHERE)))
    report = decide(model, lambda _: runs, subject)
    assert report.verdict.kind == "needs_hardware"
    assert report.verdict.needs == ("Windows with an NVIDIA driver",)
    assert len(model.asked) == 1


def test_a_model_s_questions_are_asked_where_it_finds_nothing_to_check():
    asks = refined(kind="not_checkable", observation=None, questions=["Which model do you load?"])
    report = decide(ScriptedModel(answers(write(), first=asks)), lambda _: says("fine"))
    assert report.verdict.kind == "needs_info"
    assert report.verdict.items == ("Which model do you load?",)


def test_what_rules_miss_is_not_asked_for_where_a_model_reads_it():
    vague = issue("After the last update my loss is wrong, please fix.", "Loss is wrong")
    assert verdict(vague.body, vague.title).kind == "needs_info"
    report = decide(ScriptedModel(answers(write())), lambda _: says("fine"), vague, max_attempts=1)
    assert report.verdict.kind == "inconclusive"
    assert report.needs_reader


def test_lines_of_code_that_a_report_links_can_be_read():
    body = "https://github.com/acme/net/blob/05632f9f8e0d/net/unet.py#L188\n\nI think it is wrong."
    found = verdict(body)
    assert found.kind == "inconclusive"
    assert found.needs_reader


def test_a_training_that_does_not_converge_is_no_question():
    body = "I ran the script as it is. Can you please advise why this is the case?"
    assert verdict(body, "The script does not converge").kind != "not_a_bug"


@pytest.mark.parametrize(
    "body",
    [
        "`pip install -r requirements.txt` ends with an error on Python 3.10, see the picture.",
        "When I run the first notebook, a name is not defined in cell 20.",
    ],
)
def test_what_the_repository_itself_has_is_nothing_to_ask_for(body):
    found = verdict(body, "It fails")
    assert found.kind == "inconclusive"
    assert found.needs_reader
