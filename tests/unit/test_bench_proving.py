"""The bench's figures on proofs: read off a run folder, held against what a key knows."""

import json

import pytest

from benchmarks.proving import add_up, named, proven, told
from benchmarks.scoring import Expected, Key

FOUND = {
    "over": "releases", "probes": [{}], "first_bad": {"at": "1.4.0"}, "last_good": {"at": "1.3.9"}, "last_bad": {"at": "1.5"},
    "first_fixed": {"at": "1.6.0"}, "introduced_among": [], "fixed_among": [],
}  # fmt: skip


@pytest.mark.parametrize(
    ("hint", "right"),
    [
        ("upgrade to lib 1.6 (verified)", True),
        ("Upgrade to lib 1.6.1 (checked: 3).", False),
        ("downgrade lib to 1.3.9 (verified)", True),
        ("downgrade lib to 1.3.8", False),
        ("Not fixed in 1.5 (checked).", True),
        ("Not fixed in 2.0 (checked).", False),
        ("API misuse: give the model another signature", None),
        ("", None),
    ],
)
def test_a_bisection_is_held_against_the_version_that_a_key_names(
    hint: str, right: bool | None
) -> None:
    assert named(FOUND, hint) is right


def test_of_several_versions_the_one_with_the_packages_name_counts() -> None:
    found = {**FOUND, "package": "lib", "first_fixed": {"at": "3.0.0"}}
    assert named(found, "upgrade to lib>=3 (frame>=2.16); not run here") is True
    assert named(found, "upgrade to frame>=2.16 with lib >= 3.1") is False
    assert named({**found, "package": "frame"}, "upgrade to lib>=3 (frame>=2.16)") is False


def test_without_a_bisection_nothing_agrees() -> None:
    assert named({}, "upgrade to lib 1.6") is False
    assert named({}, "Not fixed in 1.6") is False
    assert (
        named(
            FOUND | {"first_fixed": {"at": "1.7"}, "fixed_among": ["1.6.0", "1.7"]},
            "upgrade to lib 1.6.0",
        )
        is True
    )


def report(**more):
    def row(number, script, environment, match, purpose="minimize"):
        log = {"log": f"logs/{number}.log"}
        return {
            "script": script,
            "environment": environment,
            "purpose": purpose,
            "judgement": {"match": match},
            "execution": log,
        }

    rows = [
        row(1, "long", "bad", "matched", "confirm"),
        row(2, "short", "bad", "matched"),
        row(3, "short", "good", "passed"),
    ]
    return {
        "verdict": {"kind": "reproduced", "control": {"type": "fixed-version", "p": 0.004, "environment": "good"}},
        "bisect": FOUND, "minimized": {"lines_before": 40, "lines_after": 6, "original_sha256": "long"}, "script": {"sha256": "short", "lines": 7},
        "seconds": {"control": 2.0, "minimize": 3.5, "confirm": 9.0}, "attempts": rows, **more,
    }  # fmt: skip


KEY = Key(
    id="A",
    right_verdicts=("reproduced",),
    expected=Expected(message_regex="boom"),
    fix_hint="upgrade to 1.6.0",
)


def kept(tmp_path, text):
    (tmp_path / "logs").mkdir()
    for number in (1, 2, 3):
        (tmp_path / "logs" / f"{number}.log").write_text(text if number == 2 else "boom")
    return tmp_path


def test_what_was_proved_is_read_off_the_folder(tmp_path):
    row = proven(kept(tmp_path, "ValueError: boom"), report(), KEY)
    assert (row.control, row.p, row.introduced, row.fixed, row.named) == (
        "fixed-version",
        0.004,
        "1.4.0",
        "1.6.0",
        True,
    )
    assert (row.before, row.after, row.held, row.seconds) == (40, 6, True, 5.5)
    assert (
        told(row) == "fixed-version p 0.004; introduced 1.4.0, fixed 1.6.0 (as known); 40 → 6 lines"
    )


def test_a_smaller_program_that_prints_something_else_has_slipped(tmp_path):
    row = proven(kept(tmp_path, "ValueError: bang"), report(), KEY)
    assert row.held is False
    assert "SLIPPED" in told(row)
    assert add_up([("A", row)]).slipped == ("A",)


def test_a_smaller_program_that_fails_in_the_control_has_slipped(tmp_path):
    rows = json.loads(json.dumps(report()["attempts"]))
    rows[2]["judgement"]["match"] = "matched"
    assert proven(kept(tmp_path, "boom"), report(attempts=rows), KEY).held is False


def test_a_program_of_which_nothing_went_has_not_slipped(tmp_path):
    whole = {"lines_before": 7, "lines_after": 7, "original_sha256": "long"}
    same = report(
        script={"sha256": "long", "lines": 7}, minimized=whole, attempts=report()["attempts"][:1]
    )
    assert proven(kept(tmp_path, "boom"), same, KEY).held is None


def test_a_contrast_is_no_environment_of_its_own(tmp_path):
    rows = report()["attempts"][:2]
    control = {"type": "report-contrast", "p": 0.004, "environment": "bad"}
    same = report(attempts=rows, verdict={"kind": "reproduced", "control": control})
    assert proven(kept(tmp_path, "boom"), same, KEY).held is True


def test_what_was_not_reproduced_has_no_proofs_and_the_rest_adds_up(tmp_path):
    assert proven(tmp_path, report(verdict={"kind": "needs_info"}), KEY) is None
    assert add_up([]) is None
    rows = [("A", proven(kept(tmp_path, "boom"), report(), KEY))]
    sums = add_up(rows)
    assert (
        sums.reproduced,
        sums.controlled,
        sums.confirmed,
        sums.named,
        sums.nameable,
        sums.lines_median,
    ) == (
        1,
        1,
        1,
        1,
        1,
        6,
    )
