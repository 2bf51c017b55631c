from __future__ import annotations

import time
from typing import get_args

import pytest
from hypothesis import given, strategies as st

from bot.kernel.run import Choices, Verb
from bot.report.verbs import OPTIONS, VERBS, help_rows
from handlers.commands import MOST_COMMANDS, added_commands, parse


def verbs(body: str) -> list[str]:
    return [command.verb for command in parse(body)]


def problems(body: str) -> str:
    (command,) = parse(body)
    return " ".join(command.problems)


@pytest.mark.parametrize(("given", "budget"), [("5x", 5), ("0", 0), ("0x", 0), ("100x", 100)])
def test_a_diagnosis_has_a_budget_for_trainings(given, budget):
    (command,) = parse(f"/reproduce diagnose budget={given}")
    assert (command.problems, command.choices.budget) == ((), budget)


@pytest.mark.parametrize(
    "body",
    [
        "/reproduce", "  /reproduce", "/Reproduce", "thanks!\n/reproduce\nplease", "a\r\n\r\n/reproduce\r\n", "/reproduce\n--\nsent from my phone",
        "> it fails\n\n/reproduce", "```\nx\n```\n/reproduce", "<details>\nlog\n</details>\n\n/reproduce", "see `a` and `b\n/reproduce", "a \\`b\n/reproduce\n`c`",
        "<!-- a -->\n/reproduce", "- a\n\n/reproduce", "/reproduce\u00a0", "a <!-- never closed\n/reproduce",
    ],
)  # fmt: skip
def test_a_line_of_the_authors_own_is_a_command(body: str) -> None:
    (command,) = parse(body)
    assert (command.verb, command.choices, command.problems) == ("reproduce", Choices(), ())


@pytest.mark.parametrize(
    "body",
    [
        "", "reproduce", "please /reproduce", "/reproduces", "/reproduce.", "//reproduce", "`/reproduce`", "`/reproduce` does it", "```\n/reproduce\n```",
        "~~~sh\n/reproduce\n~~~", "```\n/reproduce", "    /reproduce", "\t/reproduce", "a\n    /reproduce", "> /reproduce", ">/reproduce", "> a\n/reproduce",
        "- /reproduce", "1. a\n\n   /reproduce", "# /reproduce", "<!-- /reproduce -->", "<!--\n/reproduce\n-->", "a <!--\n/reproduce\n--> b", "<pre>\n/reproduce\n</pre>",
        "a `b\n/reproduce\nc` d", "a ``b ` \n/reproduce\n`` c", "<details>\n\n/reproduce\n\n</details>", "<details>\n\n<details>\n\n</details>\n\n/reproduce",
        "<blockquote>\n\n/reproduce\n\n</blockquote>", "<div>\n/reproduce\n</div>", "[a]: /reproduce", "> > a\n> /reproduce", "- a\n/reproduce",
    ],
)  # fmt: skip
def test_code_quotations_lists_folds_and_comments_hold_none(body: str) -> None:
    assert parse(body) == ()


def test_options_are_typed() -> None:
    (command,) = parse(
        "/reproduce python=3.11 torch=2.1.0 Keras==3.3.3 tensorflow=2.16.* jax=0.4.30 numpy=1.26.4 transformers=4.41.0rc1 lightning=2.3.0+cu118"
        " device=GPU runs=20 seed=0 ref=feature/x-1 timeout=5m"
    )
    assert command.problems == ()
    assert command.choices == Choices(
        python="3.11",
        pins=(
            "torch==2.1.0", "keras==3.3.3", "tensorflow==2.16.*", "jax==0.4.30", "numpy==1.26.4", "transformers==4.41.0rc1", "lightning==2.3.0",
        ),
        device="gpu", runs=20, seed=0, ref="feature/x-1", timeout_s=300.0,
    )  # fmt: skip


@pytest.mark.parametrize(
    "option",
    [
        "python=2.7", "python=3", "python=3.1", "python=3.5", "python=3.16", "python=3.1.1", "python=3.11.", "python=3.x", "python=३.११", "torch=latest", "torch=>=2", "torch=2.1;os_name", "torch=https://x/y.whl", "numpy=", "device=tpu",
        "runs=1", "runs=201", "runs=-3", "runs=1e2", "runs=٣", "seed=-1", "seed=4294967296", f"seed={'9' * 200}", "ref=--upload-pack=x", "ref=a..b", "ref=", "ref=refs/pull/7/head", "ref=pull/7/merge", "ref=refs/remotes/origin/pull/7/head",
        "timeout=9", "timeout=3601", "timeout=61m", "timeout=5h",
    ],
)  # fmt: skip
def test_a_value_out_of_its_range_is_answered_with_what_may_stand_there(option: str) -> None:
    said = problems(f"/reproduce {option}")
    key = option.partition("=")[0]
    assert "is not understood" in said
    assert f"`{key}=` takes {next(each.values for each in OPTIONS if each.key == key)}" in said


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("/reproduce pyton=3.11", "`pyton` is not an option; the closest one is `python=`."),
        ("/reproduce pytorch=2", "the closest one is `torch=`."),
        ("/reproduce tf=2.16", "the closest one is `tensorflow=`."),
        ("/reproduce zzz=1", "`zzz` is not an option."),
        ("/reproduce python", "needs a value: write it as `python=3.11`."),
        ("/reproduce stats", "`stats` is not a command; the closest one is `/reproduce status`."),
        ("/reproduce stop", "the closest one is `/reproduce cancel`."),
        ("/reproduce hlep", "the closest one is `/reproduce help`."),
        ("/reproduce xyzzy", "`xyzzy` is neither a command nor an option."),
        (
            "/reproduce minimise",
            "`minimise` is not a command; the closest one is `/reproduce minimize`.",
        ),
        ("/reproduce bisekt", "the closest one is `/reproduce bisect`."),
        ("/reproduce contrl", "the closest one is `/reproduce control`."),
        ("/reproduce package=torch", "`package=` works only with `/reproduce bisect`."),
        (
            "/reproduce minimize package=torch",
            "`package=` works only with `/reproduce bisect`.",
        ),
        (
            "/reproduce bisect pakage=torch",
            "`pakage` is not an option; the closest one is `package=`.",
        ),
        ("/reproduce bisect package", "needs a value: write it as `package=torch`."),
        ("/reproduce seed=1 seed=2", "`seed=` is given twice."),
        ("/reproduce status runs=3", "`/reproduce status` takes no options, such as `runs=3`."),
        ("/reproduce approve", "takes the whole hash of a waiting plan"),
        ("/reproduce approve 0123456789ab", "copy it from the comment that shows the plan"),
        ("/reproduce approve 0123456789ab", "ask for the run again with `/reproduce`"),
        (f"/reproduce approve {'a' * 31}", "takes the whole hash of a waiting plan"),
        (f"/reproduce approve {'a' * 31}g", "takes the whole hash of a waiting plan"),
        (f"/reproduce approve {'a' * 32} 9", "takes the whole hash of a waiting plan"),
        (f"/reproduce approve {'a' * 65}", "takes the whole hash of a waiting plan"),
        ("/reproduce " + "x" * 600, "too long for a command"),
        ("/reproduce " + "a " * 20, "too long for a command"),
    ],
)
def test_a_mistake_is_answered_with_the_closest_valid_word(line: str, said: str) -> None:
    assert said in problems(line)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "-torch",
        "torch-",
        "torch==2",
        "torch[extra]",
        "tör",
        "\u212aeras",
        "x" * 101,
        "https://x/y",
    ],
)
def test_what_is_bisected_is_named_as_distributions_are(name: str) -> None:
    (command,) = parse(f"/reproduce bisect package={name}")
    assert command.choices.package is None
    assert command.problems


def test_a_proof_takes_the_options_of_a_run() -> None:
    (command,) = parse(
        "/reproduce bisect package=PyTorch_Lightning torch=2.1.0 python=3.6.15 runs=20"
    )
    assert command.problems == ()
    assert command.verb == "bisect"
    assert command.choices == Choices(
        package="pytorch-lightning", pins=("torch==2.1.0",), python="3.6.15", runs=20
    )
    for proof in ("control", "minimize"):
        (command,) = parse(f"/reproduce {proof} seed=3")
        assert (command.verb, command.choices, command.problems) == (proof, Choices(seed=3), ())


def test_what_is_not_understood_has_no_verb() -> None:
    assert verbs("/reproduce xyzzy") == [""]
    assert verbs("/reproduce seed=x") == ["reproduce"]


def test_a_strangers_word_cannot_end_its_quotation() -> None:
    assert problems("/reproduce a`@everyone`b").count("`@") == 0


def test_a_row_is_all_that_a_verb_needs_to_be_read() -> None:
    assert {word.verb for word in VERBS} == set(get_args(Verb))
    for word in VERBS:
        argument = " " + "deadbeef" * 4 if word.verb == "approve" else ""
        (command,) = parse(f"/reproduce {word.verb}{argument}")
        assert (command.verb, command.problems) == (word.verb, ())
        for alias in word.aliases:
            assert problems(f"/reproduce {alias}").endswith(f"`/reproduce {word.verb}`.") or (
                word.verb == "reproduce"
            )


def test_a_row_is_all_that_an_option_needs_to_be_read() -> None:
    for option in OPTIONS:
        (command,) = parse(f"/reproduce {option.only} {option.example}")
        assert command.problems == ()
        field = "pins" if option.package else option.field or option.key
        assert getattr(command.choices, field) != getattr(Choices(), field)
        for alias in option.aliases:
            assert f"closest one is `{option.key}=`" in problems(
                f"/reproduce {option.only} {alias}=1"
            )


def test_the_help_lists_every_verb() -> None:
    assert [usage.split()[1] for usage, _ in help_rows()][1:] == [word.verb for word in VERBS][1:]


def test_an_approval_names_its_plan() -> None:
    (command,) = parse(f"/reproduce approve `{'DEADBEEF' * 4}`")
    assert (command.verb, command.argument, command.problems) == ("approve", "deadbeef" * 4, ())


def test_a_plain_word_after_a_verb_without_arguments_does_no_harm() -> None:
    (command,) = parse("/reproduce cancel please")
    assert (command.verb, command.problems) == ("cancel", ())


def test_at_most_five_commands_and_a_word_on_the_rest() -> None:
    commands = parse("\n".join(f"/reproduce seed={n}" for n in range(9)))
    assert [command.choices.seed for command in commands[:MOST_COMMANDS]] == [0, 1, 2, 3, 4]
    (rest,) = commands[MOST_COMMANDS:]
    assert (rest.verb, rest.problems) == (
        "",
        ("A comment may contain 5 commands; the 4 after them were ignored.",),
    )


def test_the_same_line_twice_is_asked_once() -> None:
    assert verbs("/reproduce\n/reproduce\n/reproduce  ") == ["reproduce"]


@pytest.mark.parametrize(
    ("before", "after", "new"),
    [
        ("/reproduce", "/reproduce\nand a typo mended", []),
        ("/reproduce", "/reproduce\n/reproduce status", ["status"]),
        ("/reproduce  seed=1", "/reproduce seed=1", []),
        ("/reproduce seed=1", "/reproduce seed=2", ["reproduce"]),
        ("no command", "/reproduce", ["reproduce"]),
        ("```\n/reproduce\n```", "/reproduce", ["reproduce"]),
        ("/reproduce", "no more", []),
        (
            "\n".join(f"/reproduce seed={n}" for n in range(9)),
            "\n".join(f"/reproduce seed={n}" for n in range(9)),
            [],
        ),
    ],
)
def test_an_edit_runs_only_what_is_new(before: str, after: str, new: list[str]) -> None:
    assert [command.verb for command in added_commands(before, after)] == new


LINES = st.sampled_from(
    [
        "/reproduce",
        "/reproduce seed=1",
        "> /reproduce",
        "```",
        "~~~",
        "    x",
        "<!--",
        "-->",
        "<details>",
        "</details>",
        "",
        "- a",
        "`",
        "text",
        "\t",
        "---",
    ]
)


@given(st.one_of(st.text(), st.lists(LINES).map("\n".join)))
def test_no_text_raises_and_an_unchanged_one_asks_for_nothing(body: str) -> None:
    assert len(parse(body)) <= MOST_COMMANDS + 1
    assert added_commands(body, body) == ()
    for command in parse(body):
        assert command.text.lower().startswith("/reproduce")
        assert command.verb or command.problems


@given(st.lists(LINES).map("\n".join))
def test_nothing_inside_a_fence_is_a_command(body: str) -> None:
    assert parse("`````\n" + body.replace("`````", "") + "\n`````") == ()


HOSTILE = {
    "fence": "```\n", "backticks": "`` ` ", "comments": "<!--", "quotes": "> ", "lists": "- ", "folds": "<details>\n\n", "escapes": "\\", "commands": "/reproduce x=1\n",
    "words": "/reproduce " + "a=b " * 70 + "\n", "paragraphs": "a\n", "cdata": "<![CDATA[", "brackets": "[", "carriage returns": "\r", "headings": "/reproduce\n---\n",
}  # fmt: skip


@pytest.mark.parametrize("shape", [*HOSTILE, "lazy quotes"])
def test_the_longest_comment_github_takes_costs_little(shape: str) -> None:
    body = "> " * 19 + "a\n" * 40_000 if shape == "lazy quotes" else HOSTILE[shape] * 65_536
    begun = time.process_time()
    parse(body[:65_500] + "\n\n/reproduce\n")
    assert (
        time.process_time() - begun < 10
    )  # it takes 0.2 s at most; quadratic work would take minutes


@pytest.mark.parametrize("given", ["accuracy", "Energy:min", "score:MAX"])
def test_a_metric_may_say_which_way_is_better(given: str) -> None:
    (command,) = parse(f"/reproduce repair metric={given}")
    assert (command.choices.metric, command.problems) == (given.lower(), ())


@pytest.mark.parametrize("given", ["energy:lower", "energy:", ":min", "a:min:max", "@someone"])
def test_a_metric_is_a_name_and_a_direction_alone(given: str) -> None:
    assert "metric" in problems(f"/reproduce repair metric={given}")


@pytest.mark.parametrize(
    ("rest", "command"),
    [
        ("command=python train.py --epochs 1", "python train.py --epochs 1"),
        ('command="python -m pkg.main --lr 0.1"', "python -m pkg.main --lr 0.1"),
        ("command=bash run.sh " + "a " * 30 + "b", "bash run.sh " + "a " * 30 + "b"),
    ],
)
def test_the_rest_of_a_line_is_the_command_to_run(rest: str, command: str) -> None:
    (read,) = parse(f"/reproduce seed=3 {rest}")
    assert (read.problems, read.choices.command, read.choices.seed) == ((), command, 3)


@pytest.mark.parametrize("rest", ["command=", "command=rm -rf .", "command=ls; true"])
def test_what_starts_no_python_program_is_no_command_to_run(rest: str) -> None:
    (read,) = parse(f"/reproduce {rest}")
    assert read.choices.command is None
    assert read.problems
