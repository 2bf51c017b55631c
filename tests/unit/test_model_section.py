"""A model's part as people see it: marked, priced, inert, and never taken for a finding."""

from pathlib import Path

import pytest

from bot.issues import program_phrases, sections
from bot.kernel.attempt import Attempt, Execution, Judgement, Match
from bot.kernel.dialogue import Interpretation, Reading, Reconstruction, Usage
from bot.kernel.report import IssueReport
from bot.report.comment import comment
from bot.report.terminal import terminal
from tests.corpus.hostile.reader import alive, read

REPORTS = Path(__file__).parent.parent / "golden" / "reports"
HOSTILE = "@everyone <img src=x onerror=alert(1)> </details> | [x](http://evil.example) #1 `@b`"


def load(name: str) -> IssueReport:
    return IssueReport.model_validate_json((REPORTS / f"{name}.json").read_text(encoding="utf-8"))


def test_a_program_of_a_model_is_marked_before_it_is_shown() -> None:
    text = comment(load("reproduced-by-model"))
    mark = "The bug report contains no conclusive program, so a model (writer-1) wrote this one. Only its runs decide the verdict."
    assert text.index("| failure |") < text.index(mark) < text.index("`repro.py`, 4 lines:")
    assert " ".join(terminal(load("reproduced-by-model")).split()).count(mark) == 1


def test_a_program_of_the_reporter_bears_no_mark() -> None:
    report = load("reproduced")
    assert (
        program_phrases.model_mark(report),
        program_phrases.model_claim(report),
        sections.parts(report),
        program_phrases.cost(report),
    ) == ("", "", (), "")
    assert "model" not in comment(report).replace("No model was used", "")


@pytest.mark.parametrize(
    ("used", "said"),
    [
        (
            Usage(calls=1, input_tokens=900, output_tokens=100, usd=0.0),
            "model: 1 call, 1,000 tokens, price unknown",
        ),
        (
            Usage(calls=2, input_tokens=1, output_tokens=1, usd=0.0042),
            "model: 2 calls, 2 tokens, 0.0042 USD",
        ),
        (
            Usage(calls=2, input_tokens=9, usd=1.5, estimated=True),
            "model: 2 calls, about 9 tokens, 1.50 USD",
        ),
    ],
)
def test_the_price_is_said_or_said_to_be_unknown(used: Usage, said: str) -> None:
    report = load("reproduced-by-model").model_copy(update={"cost": used})
    assert program_phrases.cost(report) == said
    assert said in comment(report)


def test_each_proposal_stands_with_what_became_of_it() -> None:
    told = dict(sections.parts(load("reproduced-by-model")))
    ends = (
        " (not run; rejected by the checks)",
        ": `key_bias` has the right value (run 1)",
        ": `key_bias` was observed as reported (run 2)",
    )
    proposed = told["Programs proposed"]
    assert [line.endswith(end) for line, end in zip(proposed, ends, strict=True)] == [True] * 3


def run(
    number: int, script: str, match: Match, purpose: str = "search", change: str = "", code: int = 0
) -> Attempt:
    execution = Execution(exit_code=code, seconds=1.0, seed=0)
    origin = (
        "a program written by a model"
        if purpose == "search"
        else "its twin without the reported point"
    )
    judgement = Judgement(match=match, reason=f"reason {number}")
    return Attempt(
        number=number, purpose=purpose, script=script, origin=origin, environment="e", execution=execution,
        judgement=judgement, change=change,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("match", "code", "spoke"), [(Match.PASSED, 0, "passed"), (Match.OTHER, 1, "did not pass")]
)
def test_a_twin_is_heard(match: Match, code: int, spoke: str) -> None:
    runs = (run(1, "a", Match.MATCHED, change="first"), run(2, "b", match, "contrast", code=code))
    part = Reconstruction(changes=("first",))
    report = load("reproduced-by-model").model_copy(
        update={"attempts": runs, "reconstruction": part}
    )
    assert sections.parts(report) == (
        (
            "Programs proposed",
            (f"first: reason 1 (run 1); its contrast program, which must not fail, {spoke}",),
        ),
    )


def test_changes_without_words_and_many_of_them() -> None:
    runs = tuple(
        run(number, str(number), Match.PASSED, change="written by a model") for number in (1, 2)
    )
    part = Reconstruction(changes=("", "", *(f"change {number}" for number in range(20))))
    report = load("reproduced-by-model").model_copy(
        update={"attempts": runs, "reconstruction": part}
    )
    lines = dict(sections.parts(report))["Programs proposed"]
    assert lines[:3] == (
        "written by a model: reason 1 (run 1)",
        "written by a model: reason 2 (run 2)",
        "change 0 (not run; rejected by the checks)",
    )
    assert (len(lines), lines[-1]) == (13, "10 more")


def test_why_code_was_shown_keeps_its_own_code() -> None:
    part = Reconstruction(contexts=("pkg.mod.name: `pkg.name` in the reading", "pkg/mod.py"))
    report = load("reproduced-by-model").model_copy(update={"reconstruction": part})
    assert dict(sections.parts(report))["Source code it was shown"] == (
        "`pkg.mod.name`: `pkg.name` in the reading",
        "`pkg/mod.py`",
    )


def test_what_a_model_says_can_only_be_read() -> None:
    refined = Interpretation(
        claim=HOSTILE, inferred=(HOSTILE,), api=(HOSTILE,), questions=(HOSTILE, HOSTILE)
    )
    readings = tuple(
        Reading(by=by, says=HOSTILE, hash="ab12" * 16, outcome=HOSTILE) for by in ("rules", "model")
    )
    part = Reconstruction(
        readings=readings,
        refined=refined,
        hypothesis=HOSTILE,
        contexts=(HOSTILE,),
        changes=(HOSTILE,),
        given_up=HOSTILE,
    )
    report = load("reproduced-by-model").model_copy(
        update={"reconstruction": part, "models": (HOSTILE,)}
    )
    text = comment(report)
    assert alive(text) == []
    assert len(read(text).summaries) == len(read(comment(load("reproduced-by-model"))).summaries)


def test_provenance_says_what_was_measured_and_whose_the_program_is() -> None:
    assert program_phrases.provenance(load("reproduced-by-model")).endswith(
        "Every figure was measured; a model wrote the program."
    )
    after = program_phrases.provenance(load("needs_info-after-model"))
    assert after.endswith("Every figure was measured; a model read the bug report too.")
    unrun = load("needs_info-after-model").model_copy(update={"attempts": ()})
    assert program_phrases.provenance(unrun) == "Nothing was run. A model read the bug report."
    assert program_phrases.provenance(load("reproduced")).endswith("No model was used.")
