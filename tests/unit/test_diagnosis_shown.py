"""A diagnosis in the terminal, in a comment, as a picture and as JSON."""

import json
import math
from xml.etree import ElementTree

import pytest
from hypothesis import given, strategies as st
from jsonschema import Draft202012Validator

from bot.kernel.scales import format_number, scale
from bot.kernel.training_types import (
    Change,
    Curve,
    DiagnosedRun,
    Diagnosis,
    Edit,
    Finding,
    Gain,
    Interventions,
    Measurement,
    Status,
)
from bot.report import schema
from bot.report.comment import comment, final
from bot.report.report_json import diagnosis_text, report_text
from bot.report.svg import png, standalone, training
from bot.report.terminal import curve_rows, print_document
from bot.training.sections import diagnosis_document
from tests.golden.stages import PAGE, REPORTS
from tests.unit.test_hostile_outgoing import checked
from tests.unit.test_svg import drawn, inside

FINDING = Finding(
    fault="ACH", layers=(1, 3), rule="saturated", confidence=0.9,
    message="the sigmoid is at its bounds", evidence=(Measurement(name="saturated", value="0.98", limit="0.5"),),
    change=Change(parameter="activation", values=("relu",), words="use relu"), source="DeepDiagnosis", line=12,
)  # fmt: skip
CURVES = (
    Curve(panel="loss", name="training", points=tuple((float(at), math.exp(-at / 20)) for at in range(90))),
    Curve(panel="dead", name="layer 1 ReLU", points=((0.0, 0.0), (80.0, 0.5))),
)  # fmt: skip
RUN = DiagnosedRun(
    diagnosis=Diagnosis(findings=(FINDING,), advice=(FINDING.model_copy(update={"fault": "HBS"}),), unseen=("activations",)),
    framework="torch 2.13.0", steps=90, seconds=3.0, curves=CURVES,
)  # fmt: skip
QUIET = DiagnosedRun(diagnosis=Diagnosis(examined=("loss",)), steps=9)
FAILED = DiagnosedRun(
    undecided="the program failed before it trained (ValueError: x)", ended="failed"
)


def text(run: DiagnosedRun, encoding: str = "utf-8") -> str:
    return print_document(diagnosis_document(run, name="a.py", folder="runs/a"), 100, encoding)


def test_a_terminal_shows_findings_with_their_numbers_and_advice_apart() -> None:
    shown = text(RUN)
    assert "1 finding in a.py: PyTorch 2.13.0 trained for 90 steps in 3.0 s." in shown
    assert (
        "1. ACH(1), ACH(3), wrong activation in layers 1 and 3: The sigmoid is at its bounds."
        in shown
    )
    assert "Evidence: saturated 0.98 (limit 0.5)" in shown
    assert shown.index("1. ACH") < shown.index("Advice") < shown.index("batch size")
    assert "Checked:" not in shown
    assert text(RUN, "ascii").isascii()


def test_a_doubt_stands_below_an_answer_that_nothing_is_wrong() -> None:
    guess = FINDING.model_copy(update={"fault": "HLR", "layers": (), "confidence": 0.3})
    diagnosis = Diagnosis(doubts=(guess,), examined=("loss",))
    shown = text(QUIET.model_copy(update={"diagnosis": diagnosis}))
    assert shown.index("Nothing wrong was found") < shown.index("Checked: loss")
    assert shown.index("Checked: loss") < shown.index("Doubts") < shown.index("learning rate")
    assert "1. HLR" not in shown


def with_gain(status: Status, parameter: str, share: float, *after: float) -> Finding:
    """A finding as trainings with another value of a hyperparameter left it."""
    edit = Edit(parameter=parameter, kind="optimizer", before="sgd", after="adam")
    gain = Gain(
        patch=(edit,), metric="accuracy", before=(0.25, 0.5), after=after, p=0.03, share=share
    )
    return FINDING.model_copy(update={"status": status, "gain": gain})


def test_what_trainings_say_of_a_finding_stands_with_it() -> None:
    """Confirmed ones with their gain and what helps alike, refuted ones apart from findings."""
    confirmed, alike = (
        with_gain("confirmed", "a", 0.8, 0.9),
        with_gain("confirmed", "b", 0.75, 0.85),
    )
    alike = alike.model_copy(update={"fault": "OCH", "layers": ()})
    refuted = with_gain("refuted", "c", 0.0, 0.25, 0.5).model_copy(update={"fault": "HBS"})
    unclear = with_gain("likely", "d", 0.0, 0.5)
    diagnosis = Diagnosis(findings=(confirmed, alike, unclear), refuted=(refuted,))
    done = Interventions(
        budget=3, trainings=9, seconds=40.2, epochs=5, missing="the budget was used up"
    )
    run = RUN.model_copy(update={"diagnosis": diagnosis, "interventions": done})
    shown = " ".join(text(run).split())
    assert "wrong activation in layers 1 and 3, confirmed: The sigmoid" in shown
    assert (
        "Confirmed by trainings: accuracy 0.375 ± 0.18 → 0.9 with optimizer adam (1 seed, p = 0.03)"
        in shown
    )
    assert "Helps alike: optimizer" in shown
    assert "Not confirmed by trainings: accuracy 0.375 ± 0.18 → 0.5" in shown
    assert "Refuted by trainings (the change does not help):" in shown
    assert "HBS(1), HBS(3), batch size in layers 1 and 3: accuracy 0.375 ± 0.18 → 0.375" in shown
    assert (
        "9 trainings tested the findings in 40 s, each shortened to 5 epochs; the budget was used up."
        in shown
    )
    data = json.loads(
        diagnosis_text(run, program="a.py", environment=None, sandbox="docker", hide=str)
    )["diagnosis"]
    assert [x["status"] for x in data["findings"]] == ["confirmed", "confirmed", "likely"]
    assert (data["refuted"][0]["status"], data["findings"][0]["gain"]["share"]) == ("refuted", 0.8)
    assert data["interventions"]["trainings"] == 9
    none = Interventions(budget=3, missing="the program prints no metric")
    without = text(RUN.model_copy(update={"interventions": none}))
    assert "No finding was confirmed by trainings: the program prints no metric." in without


def test_what_only_trainings_show_says_so() -> None:
    found = with_gain("confirmed", "a", 0.8, 0.9).model_copy(update={"by": "runs", "rule": ""})
    run = RUN.model_copy(update={"diagnosis": Diagnosis(findings=(found,))})
    assert "1 finding in a.py" in text(run)
    assert "Found by trainings alone" in text(run)


def test_nothing_wrong_and_no_diagnosis_are_answers() -> None:
    assert "Nothing wrong was found in a.py" in text(QUIET)
    assert "Checked: loss." in text(QUIET)
    assert "No diagnosis in a.py: The program failed before it trained (ValueError: x)." in text(
        FAILED
    )
    assert "reprise reproduce" in text(FAILED)


def test_every_answer_names_the_next_step() -> None:
    assert "Next: Run reprise repair a.py to try changes." in text(RUN)
    assert "Next:" not in text(QUIET)
    unbuilt = DiagnosedRun(undecided="No environment could be built: no such package")
    assert "Next: Add missing packages with --with" in text(unbuilt)
    unseen = DiagnosedRun(undecided="no training was observed", seconds=3.0)
    assert "Next: docs/diagnosis.md#limits lists" in text(unseen)
    stopped = RUN.model_copy(update={"ended": "timed out"})
    assert "Next: Allow the program more time with --timeout." in text(stopped)


def test_a_comment_says_the_findings_in_a_line_and_shows_the_picture() -> None:
    report = REPORTS["needs_info"].model_copy(update={"diagnosis": RUN})
    posted = final(report, page=PAGE)
    assert "Diagnosis: ACH(1), ACH(3) (wrong activation in layers 1 and 3)." in posted
    assert f"![Loss, gradients, updates and dead units]({PAGE}/plot.png)" in posted
    assert "plot.png" not in comment(report)


def test_what_a_program_names_is_inert_in_a_comment() -> None:
    hostile = "![x](https://evil.example/p) @octocat <img src=x> fixes #1"
    finding = FINDING.model_copy(update={"message": hostile, "rule": hostile})
    curve = CURVES[0].model_copy(update={"name": "</text><script>1</script>"})
    run = RUN.model_copy(
        update={"diagnosis": Diagnosis(findings=(finding,), unseen=(hostile,)), "curves": (curve,)}
    )
    checked(comment(REPORTS["needs_info"].model_copy(update={"diagnosis": run})))
    assert "<script>" not in training(run.curves)


def test_json_has_the_codes_and_fits_the_published_schema() -> None:
    report = json.loads(report_text(REPORTS["needs_info"].model_copy(update={"diagnosis": RUN})))
    Draft202012Validator(json.loads(schema.text())).validate(report)
    assert report["diagnosis"]["findings"][0]["codes"] == ["ACH(1)", "ACH(3)"]
    alone = json.loads(
        diagnosis_text(RUN, program="a.py", environment=None, sandbox="fake", hide=str)
    )
    assert alone["diagnosis"] == report["diagnosis"]


def test_the_picture_is_whole_alone_and_as_png() -> None:
    picture = standalone(training(CURVES))
    assert ElementTree.fromstring(picture).tag == "{http://www.w3.org/2000/svg}svg"
    assert png(picture).startswith(b"\x89PNG")
    assert training(()) == ""


POINTS = st.lists(
    st.tuples(st.floats(0, 1e9), st.floats(allow_nan=False, allow_infinity=False)),
    min_size=1,
    max_size=30,
)


@given(
    st.lists(
        st.tuples(st.sampled_from(["loss", "gradients", "updates", "dead"]), POINTS),
        min_size=1,
        max_size=5,
    )
)
def test_any_curves_stay_within_their_frame(
    lines: list[tuple[str, list[tuple[float, float]]]],
) -> None:
    curves = [
        Curve.model_validate({"panel": panel, "name": "x", "points": points})
        for panel, points in lines
    ]
    root, frame = drawn(training(curves))
    inside(root, frame)
    assert "nan" not in (root.findtext("desc") or "")
    assert all(len(row) <= 72 for row in curve_rows(curves, 72))


@pytest.mark.parametrize(
    ("values", "log", "ticks"),
    [
        ([0.0, 2.0], False, (0.0, 0.5, 1.0, 1.5, 2.0)),
        ([1e-4, 1.0], True, (1e-4, 1e-3, 1e-2, 1e-1, 1.0)),
        ([2.0], False, (0.0, 1.0, 2.0, 3.0, 4.0)),
        ([-1.0, 100.0], False, (0.0, 50.0, 100.0)),
    ],
)
def test_scales(values: list[float], log: bool, ticks: tuple[float, ...]) -> None:
    found = scale(values)
    assert found.log == log
    assert found.ticks == pytest.approx(ticks)


def test_numbers_on_an_axis_are_short() -> None:
    assert [format_number(value) for value in (0.05, 300.0, 1e-6, 2.5)] == [
        "0.05",
        "300",
        "1e-6",
        "2.5",
    ]
