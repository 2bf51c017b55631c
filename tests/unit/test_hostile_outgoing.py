"""Whatever outside text holds and wherever it stands in a report, the comment made of it only
shows it.
"""

from __future__ import annotations

import json
import re
import time
import unicodedata
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings, strategies as st
from pydantic import ValidationError

from bot.kernel.report import IssueReport
from bot.report.comment import LIMIT, comment, size
from bot.report.terminal import terminal
from tests.corpus.hostile.corpus import Hostile, load
from tests.corpus.hostile.reader import LIVE, alive, read

REPORTS = sorted((Path(__file__).parent.parent / "golden" / "reports").glob("*.json"))
NAMES = [path.stem for path in REPORTS]
TEXTS = load("outgoing")
SHORT = [each for each in TEXTS if not each.fill]
# A wall of 64 KiB in every place of a report is five megabytes to clean.
WHOLE = ["reproduced-with-proof", "setup_failed"]
FOLDS = re.compile(
    r"^(?:Script:|Original script:|Environment: |Evidence(?: \(\d+ claims? in the bug report (?:is|are) wrong\))?$|Runs of the program: |Environment$"
    r"|The model's hypothesis and attempts$|(?:Control|Bisection|Control and bisection)$"
    r"|Diagnosis of the training run: (?:\d findings?|nothing (?:wrong|certain) was found(?: by the rules)?|no diagnosis)(?:, \d faults? named by a model alone)?$)"
)
TABLES = {
    "Reported|Observed|",
    "The bug report says|Installed|",
    "Package|Version|Why this version|",
    "Runs|Purpose|Seed|Result|Seconds|",
}
TABLES |= {"Version|Date|Outcome|Failed|", "Commit|Date|Outcome|Failed|"}
CHANGES = re.compile(
    r"\[Changelog\]\(https?://[A-Za-z0-9.-]+(?::\d+)?(?:/[A-Za-z0-9._~/%+-]*)?(?:#[A-Za-z0-9._-]*)?\)"
)

FOUND = [
    Phase.explicit,
    Phase.reuse,
    Phase.generate,
]  # to make an example smaller takes minutes; the texts have names
KEY = "\0key"
ENTRY = ("script", "entry")
Path_ = tuple[str | int, ...]


def at(value: Any, path: Path_, change: Callable[[str], str]) -> Any:
    """A copy of a value with the text at one place changed. The last step KEY changes the key
    before it.
    """
    if len(path) == 2 and path[1] == KEY:
        return {change(key) if key == path[0] else key: item for key, item in value.items()}
    if not path:
        return change(value)
    if isinstance(value, dict):
        return value | {path[0]: at(value[path[0]], path[1:], change)}
    return [
        at(item, path[1:], change) if index == path[0] else item for index, item in enumerate(value)
    ]


def places(value: Any, path: Path_ = ()) -> Iterator[Path_]:
    """Where a value holds text."""
    if isinstance(value, str):
        yield path
    elif isinstance(value, dict):
        for key, item in value.items():
            yield (*path, key, KEY)
            yield from places(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from places(item, (*path, index))


@cache
def golden(name: str) -> tuple[Any, tuple[Path_, ...]]:
    """A report as data, and every place of it that takes any text at all."""
    data = json.loads((REPORTS[0].parent / f"{name}.json").read_text(encoding="utf-8"))
    free = []
    for path in places(data):
        try:
            IssueReport.model_validate(at(data, path, lambda text: text + "@x y"))
            free.append(path)
        except ValidationError:
            continue
    return data, tuple(free)


def said(value: Any, places: set[Path_], text: str, path: Path_ = ()) -> Any:
    """A copy of a value that says the text in many places."""
    if isinstance(value, dict):
        keys = {key: text + key if (*path, key, KEY) in places else key for key in value}
        return {keys[key]: said(item, places, text, (*path, key)) for key, item in value.items()}
    if isinstance(value, list):
        return [said(item, places, text, (*path, index)) for index, item in enumerate(value)]
    return text if path in places else value


def poisoned(
    name: str, text: str, chosen: Callable[[Path_], bool] = lambda path: True
) -> IssueReport:
    """A report that says the text in every chosen place."""
    data, free = golden(name)
    places = {
        path
        for path in free
        if path != ENTRY and (path[-1] != KEY or path[0] != "script") and chosen(path)
    }
    data = said(data, places, text)
    if ENTRY in free and chosen(ENTRY):
        script = data["script"]
        files = {
            text if key == script["entry"] else key: held for key, held in script["files"].items()
        }
        data = data | {"script": script | {"entry": text, "files": files}}
    return IssueReport.model_validate(data)


def unlinked(body: str) -> str:
    """A comment without the one link to the outside that it may hold: a plain address on words
    of ours.
    """
    return CHANGES.sub("changelog", body)


def checked(body: str, limit: int = LIMIT) -> None:
    """A comment that is inert, whole, short enough and of our own structure."""
    assert alive(unlinked(body)) == []
    seen = read(body)
    assert all(FOLDS.match(summary) for summary in seen.summaries)
    assert set(seen.headers) <= TABLES
    assert seen.text.count("Reprise") >= 1, "the footer stands outside all code and folds"
    assert body.rstrip().endswith("</sub>")
    assert not any(
        unicodedata.category(char) in {"Cc", "Cf", "Cs"} and char != "\n" and char != "\t"
        for char in set(body)
    )
    assert size(body) <= limit


def test_the_places_are_many() -> None:
    _, free = golden("reproduced")
    assert len(free) > 60
    assert {"issue", "signature", "environment", "script", "attempts", "verdict", "comparison"} <= {
        str(path[0]) for path in free
    }
    assert ("verdict", "kind") not in free


def test_every_text_of_a_proof_is_attacked() -> None:
    _, free = golden("reproduced-with-proof")
    reached = {tuple(step for step in path if not isinstance(step, int)) for path in free}
    assert reached >= {
        ("bisection", "package"), ("bisection", "changelog"), ("bisection", "first_bad", "at"), ("bisection", "probes", "at"),
        ("bisection", "probes", "reason"), ("bisection", "probes", "moved"), ("bisection", "skipped", "why"), ("bisection", "notes"),
        ("bisection", "introduced_by", "subject"), ("bisection", "introduced_by", "id"), ("bisection", "fixed_among"),
        ("reduced", "before", "files", "repro.py"), ("reduced", "history", "what"), ("verdict", "control", "what"),
        ("verdict", "control", "moved"), ("control_spec", "python"), ("control_spec", "requirements", "name"), ("claims", "evidence"),
    }  # fmt: skip
    assert {("bisection", "stopped")} <= {
        path for path in golden("reproduced-half-proven")[1] if path[0] == "bisection"
    }


@pytest.mark.parametrize(
    "address",
    [
        "https://x.example/a) @octocat [b](https://y.example",
        "javascript:alert(1)",
        "https://github.com/a/b/issues/1",
    ],
)
def test_a_changelog_that_could_act_is_not_linked(address: str) -> None:
    report = IssueReport.model_validate(golden("reproduced-with-proof")[0])
    assert report.bisection is not None
    body = comment(
        report.model_copy(
            update={"bisection": report.bisection.model_copy(update={"changelog": address})}
        )
    )
    assert alive(body) == []
    assert "](" not in body


@pytest.mark.parametrize("name", NAMES)
def test_a_golden_comment_is_inert(name: str) -> None:
    checked(comment(IssueReport.model_validate(golden(name)[0]), run="acme-pool-41"))


@pytest.mark.parametrize("hostile", SHORT, ids=lambda each: each.id)
def test_a_hostile_text_in_two_reports_is_only_shown(hostile: Hostile) -> None:
    for name in WHOLE:
        checked(comment(poisoned(name, hostile.text), run=hostile.text[:200]))


@pytest.mark.parametrize("hostile", TEXTS, ids=lambda each: each.id)
@pytest.mark.slow  # every text in every report
def test_a_hostile_text_in_every_place_is_only_shown(hostile: Hostile) -> None:
    for name in NAMES if not hostile.fill else WHOLE:
        started = time.process_time()
        body = comment(poisoned(name, hostile.text), run=hostile.text[:200])
        assert time.process_time() - started < 30
        checked(body)


@pytest.mark.parametrize("hostile", SHORT, ids=lambda each: each.id)
def test_a_hostile_text_in_a_terminal_controls_nothing(hostile: Hostile) -> None:
    text = terminal(poisoned("reproduced-with-proof", hostile.text), run="runs/x")
    assert not [
        char for char in text if unicodedata.category(char) in {"Cc", "Cf", "Cs"} and char != "\n"
    ]


@settings(
    max_examples=60, deadline=None, phases=FOUND, suppress_health_check=[HealthCheck.too_slow]
)
@given(
    st.sampled_from(NAMES),
    st.lists(st.sampled_from(SHORT), min_size=1, max_size=3),
    st.sampled_from(
        ["{}", "{}\n{}", "x {} y", "`{}", "{}`", "- {}", "\n\n{}", "{}\\", "[{}](", "a\n{}\nb"]
    ),
    st.randoms(use_true_random=False),
)
@pytest.mark.slow  # 60 random reports
def test_hostile_texts_in_some_places_are_only_shown(
    name: str, several: list[Hostile], frame: str, chance: Any
) -> None:
    text = frame.replace("{}", " ".join(each.text for each in several))
    checked(comment(poisoned(name, text, lambda _: chance.random() < 0.3), run="acme-pool-41"))


@settings(
    max_examples=25, deadline=None, phases=FOUND, suppress_health_check=[HealthCheck.too_slow]
)
@given(
    st.sampled_from(["reproduced", "different_failure", "setup_failed"]),
    st.sampled_from(TEXTS),
    st.sampled_from([9_000, 14_000, 30_000]),
)
@pytest.mark.slow  # 25 random reports of long texts
def test_a_comment_that_was_cut_is_whole(name: str, hostile: Hostile, limit: int) -> None:
    """Short texts are made long, so that the guard has to cut wherever it can."""
    text = (hostile.text + "\n") * (20_000 // (len(hostile.text) + 1) + 1)
    checked(
        comment(
            poisoned(
                name, text, lambda path: path[-1] in {"evidence", "repro.py", "seen", "reported"}
            ),
            limit=limit,
        ),
        limit,
    )


@pytest.mark.parametrize(
    "body",
    [
        "@octocat", "see #12", "a/b#3", "GH-4", "deadbeef1", "https://x.example", "www.x.example", "a@b.example", ":tada:", "$x$",
        "fixes #1", "<b>x</b>", "![x](y)", "[x](y)", "# x", "x\n===", "- [x](y)", "<!-- x -->", "</details>", "<details>", "/merge", "@dependabot merge",
        "`<!-- reprise:run -->`", "```\n<!--reprise:run-->\n```", "```\n/assign\n```", "<p title='x'>y</p>",
    ],
)  # fmt: skip
def test_the_reader_sees_what_acts(body: str) -> None:
    assert alive(body)


def test_the_reader_lets_code_and_plain_words_pass() -> None:
    assert (
        alive(
            "The loss is 0.33333333 of `@octocat #12 https://x.example deadbeef1`; see\n\n```\n@octocat fixes #12\n```\n"
        )
        == []
    )
    assert set(LIVE) >= {"mention", "number", "closing", "commit", "address"}
