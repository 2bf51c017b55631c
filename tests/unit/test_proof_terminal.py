"""What `reprise control`, `bisect` and `minimize` print: the proof that was asked for, and
nothing of the others.
"""

import pytest

from bot.issues.phrases import next_step, standing
from bot.kernel.attempt import Match, Script, Step
from bot.kernel.bug import Bisection, Commit, Point, Probe, Skipped
from bot.kernel.environment import PinSource, Requirement
from bot.kernel.job import Interruption
from bot.kernel.report import Control
from bot.report.terminal import ProofRequest, proof_terminal, terminal
from tests.golden.stages import REPORTS

PROVED = REPORTS["reproduced-with-proof"]
HIDDEN = "\u202e"


def shown(proof, report=PROVED, width=100, encoding="utf-8", **told):
    request = ProofRequest(
        proof=proof, run="runs/x", again=f"reprise {proof} runs/x", **{"before": PROVED, **told}
    )
    return proof_terminal(report, request, width=width, encoding=encoding)


def without(report=PROVED, **more):
    return report.model_copy(update=more)


def test_a_control_is_a_table_of_both_sides():
    text = shown("control")
    rows = [" ".join(line.split()) for line in text.splitlines()]
    assert "Bug confirmed: p = 0.004 (Fisher's exact test, one-sided)." in rows
    assert "as reported (pool 0.3.1) 5 5" in rows
    assert "control (pool 0.3.3, fixed-version) 0 5" in rows
    assert "numpy 1.26.4 → 2.0.0" in text
    assert "32 → 4" not in text
    assert "fixed in" not in text
    assert "runs/x/report.md" in text


def test_a_control_that_was_not_found_says_what_was_tried():
    verdict = PROVED.verdict.model_copy(update={"control": Control()})
    text = shown(
        "control", without(verdict=verdict), notes=("no control with pool 0.4: it fails there too",)
    )
    assert text.startswith("No control: no version was found in which this program passes.")
    assert "no control with pool 0.4: it fails there too" in text
    assert "reprise control runs/x" in text


def test_a_bisection_is_its_boundaries_and_the_row_of_marks():
    text = shown("bisect")
    assert "introduced" in text.splitlines()[0]
    assert "│" in text
    assert "✗ fails, ✓ passes" in text
    assert f"{len(PROVED.bisection.probes)} releases tried" in text
    assert "Changelog: https://pool.example.org" in text
    assert "Fisher" not in text
    assert "o passes" in shown("bisect", encoding="ascii")


def test_the_commit_that_brought_it_is_told_with_its_subject():
    found_ = Bisection(
        package="/a/clone", over="commits", bad="b" * 40, first_bad=Point(at="b" * 40, subject="Fold the heads"),
        last_good=Point(at="a" * 40), introduced_by=(Commit(id="b" * 40, subject="Fold the heads"),),
        probes=(Probe(at="a" * 40, outcome="passes", runs=5), Probe(at="b" * 40, outcome="fails", runs=2, failures=2)),
    )  # fmt: skip
    text = shown("bisect", without(bisection=found_))
    assert 'clone: introduced in bbbbbbbbbbbb "Fold the heads".' in text
    assert "2 commits tried, 7 runs counted" in text


def test_the_bisection_that_was_made_is_shown_though_another_comes_first():
    other = Bisection(
        package="numpy",
        bad="1.26.4",
        oldest="fails",
        probes=(Probe(at="1.26.4", outcome="fails", runs=5),),
    )
    both = without(other_bisections=(other,))
    assert shown("bisect", both).startswith("numpy: ")
    assert shown("bisect", both, before=both, package="numpy").startswith("numpy: "), (
        "it brought nothing new"
    )
    assert shown("bisect", both, before=both).startswith("pool: ")


def test_the_smaller_program_is_shown_whole_with_what_it_took():
    text = shown("minimize", width=40)
    assert text.splitlines()[0].startswith("32 → ")
    for line in PROVED.script.source.splitlines():
        assert f"    {line}".rstrip() in text.splitlines(), "no line is cut or broken"
    assert PROVED.command in text
    assert (
        f"Original: runs/x/scripts/{PROVED.reduced.before.digest[:12]}/repro.py"
        in text.splitlines()
    )
    assert "Fisher" not in text
    assert "fixed in" not in text


def test_a_long_program_ends_with_how_much_more_there_is():
    source = "\n".join(f"x{at} = {at}" for at in range(80))
    text = shown("minimize", without(script=Script(files={"repro.py": source})))
    assert "x59 = 59" in text
    assert "x60" not in text
    assert "20 more lines" in text


def test_what_a_program_hides_is_not_printed():
    text = shown(
        "minimize", without(script=Script(files={"repro.py": f"print('\x1b[2J{HIDDEN}a')\n"}))
    )
    assert "\x1b" not in text
    assert HIDDEN not in text


def test_that_it_was_gone_on_with_is_said_of_the_counts():
    reduced = PROVED.reduced.model_copy(update={"resumed": 9})
    assert "since it resumed at 9 lines" in " ".join(
        shown("minimize", without(reduced=reduced)).split()
    )


@pytest.mark.parametrize("proof", ["control", "bisect", "minimize"])
def test_a_stop_says_so_first_and_ends_with_the_command_that_goes_on(proof):
    cut = without(cut_short={proof: Interruption.STOPPED})
    lines = shown(proof, cut, notes=("stopped on request while a control was run",)).splitlines()
    assert "stopped on request. Result of an earlier run:" in lines[0]
    step = next(line for line in lines if line.startswith("Next: "))
    assert step.startswith(f"Next: Run reprise {proof} runs/x ")
    assert not any("while a control was run" in line for line in lines), "said once"
    other = without(
        cut,
        bisection=None,
        reduced=None,
        verdict=PROVED.verdict.model_copy(update={"control": Control()}),
    )
    assert "Nothing has been found yet." in shown(proof, other, before=other).splitlines()[0]


def test_a_search_that_was_cut_short_says_nothing_of_the_versions_it_did_not_try():
    none = without(
        verdict=PROVED.verdict.model_copy(update={"control": Control()}),
        bisection=None,
        control_spec=None,
    )
    assert (
        standing(none)
        == "Symptom observed: the program was not compared with a version that works."
    )
    cut = without(none, cut_short={"control": Interruption.OUT_OF_TIME})
    assert standing(cut) == "Symptom observed: the search for a working version was stopped early."


def test_runs_of_smaller_programs_that_passed_are_told_where_no_control_was_made():
    spec = PROVED.spec.model_copy(update={"requirements": (requirement("0.3.1"),)})
    run = PROVED.attempts[0].model_copy(update={"purpose": "minimize"})
    passed = run.model_copy(
        update={
            "environment": "twin",
            "judgement": run.judgement.model_copy(update={"match": Match.PASSED}),
        }
    )
    none = without(
        verdict=PROVED.verdict.model_copy(update={"control": Control()}),
        bisection=None,
        spec=spec,
        control_spec=spec.model_copy(update={"requirements": (requirement("0.3.3"),)}),
        attempts=(run, passed, passed, run.model_copy(update={"environment": "twin"}), passed),
    )
    said = (
        "1 of 4 smaller programs failed with pool 0.3.3, but they were not compared in paired runs"
    )
    assert standing(none) == f"Symptom observed: {said}."
    assert next_step(none, "x").startswith("Run reprise control x")
    for nothing in ({"control_spec": None}, {"attempts": none.attempts[:1]}):
        assert "the program was not compared with a version that works" in standing(
            without(none, **nothing)
        )
        assert "to find a version in which" in next_step(without(none, **nothing))


def requirement(version):
    return Requirement(name="pool", specifier=f"=={version}", rung=PinSource.OPTION, reason="")


def test_what_was_found_and_not_confirmed_is_told_beside_the_result():
    step = Step(what="", lines=3, tests=9, seconds=1.0)
    cut = PROVED.reduced.model_copy(
        update={"ended": "stopped", "lines_after": 4, "history": (step,)}
    )
    said = "it was stopped; the last result (3 lines) is not confirmed."
    assert said in " ".join(shown("minimize", without(reduced=cut)).split())
    for whole in ({"ended": "complete"}, {"lines_after": 3}):
        assert "not confirmed" not in shown(
            "minimize", without(reduced=cut.model_copy(update=whole))
        )


def test_a_release_that_was_not_settled_is_undecided_and_not_untestable():
    probes = (
        Probe(at="1.0", outcome="fails", runs=5, failures=5),
        Probe(at="1.1", outcome="undecided", runs=2),
    )
    skipped = (Skipped(at="1.1", why="undecided"),)
    half = Bisection(
        package="pool", bad="1.0", probes=probes, skipped=skipped, stopped="stopped on request"
    )
    text = shown("bisect", without(bisection=half, cut_short={"bisect": Interruption.STOPPED}))
    assert "pool: no boundary found yet." in text
    assert "1.1: so far, 0 of 2 runs failed as reported" in text
    assert "could not be tested" not in text
    assert "could not be tested" not in terminal(without(bisection=half))
    assert text.count("stopped on request") == 1


def test_two_commits_that_were_swapped_end_with_the_command_that_takes_them_the_other_way_round():
    rows = (
        Probe(at="a" * 40, outcome="fails", runs=2, failures=2),
        Probe(at="b" * 40, outcome="passes", runs=5),
    )
    made = Bisection(
        package="pool",
        over="commits",
        bad="b" * 40,
        probes=rows,
        ends="did you mean --good b --bad a? a fails",
    )
    swapped = "reprise bisect runs/x --repo clone --good b --bad a"
    text = shown("bisect", without(bisection=made, reduced=None), swapped=swapped)
    assert f"Next: Run {swapped} to swap the two." in text
    assert text.count("did you mean") == 1
    as_said = made.model_copy(update={"probes": rows[::-1], "bad": "a" * 40, "ends": ""})
    assert "Next: Run reprise minimize" in shown(
        "bisect", without(bisection=as_said, reduced=None), swapped=swapped
    )


def test_the_next_step_is_the_proof_that_is_still_open():
    assert "Next: Run reprise bisect runs/x " in shown("control", without(bisection=None))
    assert "Next: Run reprise minimize runs/x " in shown("bisect", without(reduced=None))
    bare = PROVED.verdict.model_copy(update={"control": Control()})
    assert "Next: Run reprise control runs/x " in shown("minimize", without(verdict=bare))
    assert "Next: Turn the script into a regression test." in shown("minimize")


def test_the_whole_report_names_its_folder_and_what_was_cut_short():
    bare = PROVED.verdict.model_copy(update={"control": Control()})
    assert "reprise control 'a run'" in " ".join(
        terminal(without(verdict=bare), run="a run").split()
    )
    cut = terminal(without(cut_short={"minimize": Interruption.OUT_OF_TIME}), run="runs/x")
    assert "Next: Run reprise minimize runs/x to resume the unfinished work" in cut
