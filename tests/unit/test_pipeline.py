"""The whole pipeline on fakes: what a report and the runs of its program lead to."""

import json
from datetime import UTC, datetime
from threading import Event

import pytest

from bot.kernel.attempt import Attempt
from bot.kernel.bug import Issue, Release
from bot.kernel.environment import Claimed, Environment, Package, PinSource
from bot.kernel.job import PROOFS, ReproduceIssue
from bot.kernel.journal import ATTEMPTS
from bot.kernel.ports import Ports
from bot.products.engine import execute as run, plan
from sandbox.port import RunResult
from tests.support.fakes import FakeBuilder, FrozenClock, ListListener, MemoryJournal
from tests.support.jobs import issue_job, job_options
from tests.support.sandbox import FakeSandbox

PROGRAM = "import lib\nlib.fit()\n"
MESSAGE = "mat1 and mat2 shapes cannot be multiplied (14x7 and 16x4)"


def issue(body, title="fit fails", labels=()):
    return Issue(
        title=title,
        body=body,
        repository="acme/lib",
        labels=labels,
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
    )


def report(program=PROGRAM, error=f"RuntimeError: {MESSAGE}"):
    return issue(f"It fails:\n\n```python\n{program}```\n\nError:\n\n```\n{error}\n```\n")


def traceback(exception="RuntimeError", message=MESSAGE):
    return (
        'Traceback (most recent call last):\n  File "repro.py", line 2, in <module>\n    lib.fit()\n'
        f'  File "/e/lib/python3.11/site-packages/lib/core.py", line 9, in fit\n    return f()\n{exception}: {message}\n'
    )


def fails(exception="RuntimeError", message=MESSAGE):
    return RunResult(exit_code=1, stderr=traceback(exception, message), seconds=1.0)


OFFLINE = "Couldn't reach the hub: Temporary failure in name resolution"
BARE = job_options(without=PROOFS)
OK = RunResult(exit_code=0, stdout="done\n", seconds=1.0)


def world(program, builder=None, cancel=None):
    return Ports(
        sandbox=FakeSandbox(program),
        builder=builder or FakeBuilder(),
        journal=MemoryJournal(),
        clock=FrozenClock(step=0.1),
        listener=ListListener(),
        cancel=cancel or Event(),
    )


def decide(subject, program, builder=None, **options):
    return run(
        issue_job(subject, **{"without": PROOFS, **options}),
        world(program, builder),
    )


def by_turns(*results):
    """A program whose n-th run ends as the n-th result, the last one for ever."""
    left = list(results)
    return lambda spec: left.pop(0) if len(left) > 1 else left[0]


def test_a_failure_at_every_run_is_reproduced_in_two_fresh_runs():
    found = decide(report(), lambda spec: fails())
    assert (found.verdict.kind, found.verdict.runs, found.verdict.failures) == ("reproduced", 2, 2)
    assert found.verdict.determinism == "deterministic"
    assert [attempt.purpose for attempt in found.attempts] == ["search", "confirm", "confirm"]
    assert len({attempt.execution.seed for attempt in found.attempts}) == 3
    assert len(found.signature_hash) == 64


@pytest.mark.parametrize(
    ("program", "doubt"),
    [
        ("import lib\nprint(lib.__version__)\nlib.fit()\n", ""),
        (
            "import lib\nif lib.__version__ < '2':\n    lib.fit()\n",
            "what the program does depends on a version",
        ),
        ("import lib, os\nlib.fit()\nos._exit(1)\n", "the program can exit"),
    ],
)
def test_a_verdict_says_why_its_program_can_confirm_nothing(program, doubt):
    found = decide(report(program), lambda spec: fails())
    assert found.verdict.kind == "reproduced"
    assert bool(found.verdict.doubt) == bool(doubt)
    assert found.verdict.doubt.startswith(doubt)


@pytest.mark.parametrize(
    ("rung", "kind"), [("neighbour", "inconclusive"), ("repository", "not_reproduced")]
)
def test_a_release_that_is_not_of_the_day_of_the_report_refutes_nothing(rung, kind):
    def of_another_day(spec):
        package = Package(name="lib", version="2.0", rung=PinSource(rung))
        return Environment(id="here", python="3", interpreter="python", packages=(package,))

    subject = report().model_copy(update={"body": f"lib 1.0\n\n{report().body}"})
    found = decide(subject, lambda spec: OK, FakeBuilder(on_build=of_another_day))
    assert found.verdict.kind == kind
    assert ("2.0 may differ" in found.verdict.reason) is (kind == "inconclusive")


@pytest.mark.parametrize(
    ("claimed", "body", "kind"),
    [
        ("2.0", None, "not_reproduced"),
        ("2.1.0.dev0+git2026", None, "inconclusive"),
        ("main", None, "not_reproduced"),
        ("2.0", "This code crashes.", "not_reproduced"),
        ("2.1", "This code crashes.", "inconclusive"),
        ("", "This code crashes.", "inconclusive"),
    ],
)
def test_a_release_that_the_report_does_not_name_refutes_nothing(claimed, body, kind):
    def built(spec):
        package = Package(name="lib", version="2.0", rung=PinSource.ISSUE)
        claims = (Claimed(name="lib", claimed=claimed, resolved="2.0"),) if claimed else ()
        return Environment(
            id="here", python="3", interpreter="python", packages=(package,), claims=claims
        )

    subject = issue(f"{body}\n\n```python\n{PROGRAM}```\n") if body else report()
    subject = subject.model_copy(update={"body": f"lib 2.0\n\n{subject.body}"})
    found = decide(subject, lambda spec: OK, FakeBuilder(on_build=built))
    assert found.verdict.kind == kind


@pytest.mark.parametrize(
    ("body", "result", "kind"),
    [
        (None, OK, "inconclusive"),
        (None, fails(), "reproduced"),
        (f"```python\n{PROGRAM.rstrip()}  # raises an error\n```\n", fails(), "inconclusive"),
    ],
)
def test_what_is_newer_than_the_report_refutes_nothing_nor_confirms_what_is_unsaid(
    body, result, kind
):
    def built(spec):
        package = Package(name="lib", version="2.0", rung=PinSource.DATE)
        late = Package(name="helper", version="3.1", rung=PinSource.DEPENDENCY)
        return Environment(
            id="here", python="3", interpreter="p", packages=(package, late), undated=("helper",)
        )

    subject = issue(body) if body else report()
    found = decide(subject, lambda spec: result, FakeBuilder(on_build=built))
    assert found.verdict.kind == kind
    assert ("helper 3.1" in found.verdict.reason) is (kind == "inconclusive")


@pytest.mark.parametrize(("late", "kind"), [(True, "reproduced"), (False, "different_failure")])
def test_a_library_that_cannot_be_imported_beside_a_later_jax_gives_way(late, kind):
    """Of jaxlib there is no release of before 2023, so an older library may meet a later one."""

    def built(spec):
        line = next((one.specifier for one in spec.requirements if one.name == "lib"), "")
        versions = {"lib": line.removeprefix("==") or "0.3.1", "jax": "0.4.13", "jaxlib": "0.4.13"}
        rung = PinSource.NEIGHBOUR
        return Environment(
            id=versions["lib"],
            python="3.11.2",
            interpreter=versions["lib"],
            packages=tuple(Package(name=n, version=v, rung=rung) for n, v in versions.items()),
            undated=("jax", "jaxlib") if late else (),
        )

    def program(spec):
        if spec.argv[0] != "0.3.1":
            return fails()
        gone = traceback("AttributeError", "'Config' object has no attribute 'omnistaging'")
        ended = gone.replace("    lib.fit()", "    import lib").replace("line 2", "line 1")
        return RunResult(exit_code=1, stderr=ended, seconds=1.0)

    numbers = ("0.3.1", "0.3.2", "0.4.0", "0.4.1", "0.5.0")
    days = [datetime(2022, 1 + at, 1, tzinfo=UTC) for at in range(5)]
    rows = tuple(Release(version=n, uploaded_at=day) for n, day in zip(numbers, days, strict=True))
    released = {"lib": rows, "jax": (Release(version="0.4.13", uploaded_at=days[3]),)}
    found = decide(report(), program, FakeBuilder(on_build=built, released=released))
    assert found.verdict.kind == kind
    assert (found.environment.version("lib") == "0.4.0") is (kind == "reproduced")


@pytest.mark.parametrize(
    ("claimed", "has", "kind"),
    [
        ("2.0", True, "not_reproduced"),
        ("1.0", True, "inconclusive"),
        ("2.0", False, "inconclusive"),
    ],
)
def test_a_name_that_a_module_has_in_the_reported_release_is_not_missing(claimed, has, kind):
    lacks = "AttributeError: module 'toolkit' has no attribute 'Options'"

    def built(spec):
        package = Package(name="toolkit", version="2.0", rung=PinSource.ISSUE)
        claims = (Claimed(name="toolkit", claimed=claimed, resolved="2.0"),)
        return Environment(
            id="here", python="3", interpreter="p", packages=(package,), claims=claims
        )

    def program(spec):
        looks_up = b"print(toolkit.Options)" in b"".join(spec.files.values())
        return OK if has and looks_up else fails("ConnectionError", OFFLINE)

    subject = report("import toolkit\ntoolkit.load('x')\n", lacks)
    found = decide(subject, program, FakeBuilder(on_build=built))
    assert found.verdict.kind == kind


def test_of_programs_that_pass_the_one_with_more_of_the_report_counts():
    body = (
        "This works:\n\n```python\nimport lib\ndata = lib.load()\nlib.fit(data)\n```\n\n"
        "But then:\n\n```python\npart = data[::2]\nlib.fit(part)\n```\n\n"
        f"It fails with\n\n> RuntimeError: {MESSAGE}\n"
    )
    found = decide(issue(body), lambda spec: OK)
    assert found.verdict.kind == "not_reproduced"
    assert "lib.fit(part)" in found.script.source


@pytest.mark.parametrize(("fails_so", "kind"), [(True, "reproduced"), (False, "inconclusive")])
def test_a_well_known_data_set_that_cannot_be_downloaded_is_random(fails_so, kind):
    def program(spec):
        if b"RandomState" not in b"".join(spec.files.values()):
            return fails("Exception", OFFLINE)
        return fails() if fails_so else OK

    source = (
        "import lib\nfrom keras.datasets import mnist\ndata = mnist.load_data()\nlib.fit(data)\n"
    )
    found = decide(report(source), program)
    assert found.verdict.kind == kind
    assert "random values of the same form" in found.script.fixes[0].what


def test_a_part_of_a_package_that_the_program_takes_is_imported():
    lacks = "module 'lib' has no attribute 'sparse'"

    def program(spec):
        source = b"\n".join(spec.files.values()).decode()
        if spec.label == "names":
            return RunResult(exit_code=0, stdout='{"__name__": "lib.sparse"}', seconds=1.0)
        if "import lib.sparse" in source:
            return fails()
        trace = 'Traceback (most recent call last):\n  File "repro.py", line 2, in <module>\n'
        return RunResult(
            exit_code=1,
            stderr=f"{trace}    lib.sparse.fit()\nAttributeError: {lacks}\n",
            seconds=1.0,
        )

    found = decide(report("import lib\nlib.sparse.fit()\n"), program)
    assert found.verdict.kind == "reproduced"
    assert "added `import lib.sparse`" in [fix.what for fix in found.script.fixes]


def test_a_program_that_never_fails_is_not_reproduced_after_nine_runs():
    found = decide(report(), lambda spec: OK)
    assert (found.verdict.kind, found.verdict.runs, found.verdict.failures) == (
        "not_reproduced",
        9,
        0,
    )


def test_a_failure_that_comes_and_goes_is_told_from_one_that_hangs_on_the_seed():
    at_random = decide(report(), by_turns(OK, fails(), OK, fails(), OK, fails()))
    assert at_random.verdict.kind == "reproduced"
    assert at_random.verdict.determinism == "nondeterministic"
    by_seed = decide(report(), lambda spec: fails() if int(spec.env["REPRISE_SEED"]) % 2 else OK)
    assert by_seed.verdict.kind == "reproduced"
    assert by_seed.verdict.determinism == "seed-dependent"
    assert by_seed.verdict.failures < by_seed.verdict.runs


def test_a_failure_said_to_come_and_go_is_run_until_it_does():
    said = report().model_copy(update={"title": "fit fails about one run in three"})
    found = decide(said, by_turns(fails(), fails(), fails(), fails(), OK, fails(), OK, fails(), OK))
    assert (found.verdict.kind, found.verdict.determinism) == ("reproduced", "nondeterministic")
    assert found.verdict.failures < found.verdict.runs
    always = decide(said, lambda spec: fails())
    assert (always.verdict.determinism, always.verdict.runs) == ("deterministic", 9)


def test_the_run_that_found_the_script_counts_for_determinism():
    found = decide(report(), by_turns(OK, fails(), fails(), fails()))
    assert found.verdict.determinism == "nondeterministic"


def test_another_error_is_a_different_failure():
    found = decide(report(), lambda spec: fails("ValueError", "expected a float and got a string"))
    assert found.verdict.kind == "different_failure"
    assert "14x7" in found.verdict.reported
    assert "expected a float" in found.verdict.seen


def test_a_missing_module_is_installed_before_the_verdict():
    builder = FakeBuilder()

    def program(spec):
        installed = any(each.name == "captum" for each in builder.built[-1].requirements)
        return fails() if installed else fails("ModuleNotFoundError", "No module named 'captum'")

    found = decide(report(), program, builder)
    assert found.verdict.kind == "reproduced"
    assert found.environment.version("captum")


def test_an_extra_that_an_error_names_is_that_of_the_package_under_test():
    builder = FakeBuilder()

    def program(spec):
        wanted = {each.name: each.extras for each in builder.built[-1].requirements}
        text = "The codec is missing. Install the `audio` extra."
        return fails() if "audio" in wanted["acmelib"] else fails("ImportError", text)

    subject = report("import acmelib\nacmelib.fit()\n")
    subject = subject.model_copy(update={"repository": "acme/acmelib"})
    found = decide(subject, program, builder)
    assert found.verdict.kind == "reproduced"


def test_a_secret_that_is_only_looked_for_gets_a_made_up_value():
    def program(spec):
        known = "ACME_API_KEY" in spec.files["repro.py"].decode()
        return fails() if known else fails("KeyError", "'ACME_API_KEY'")

    found = decide(report(), program)
    assert found.verdict.kind == "reproduced"
    assert "ACME_API_KEY" in found.script.fixes[0].what
    stubborn = decide(report(), lambda spec: fails("KeyError", "'ACME_API_KEY'"))
    assert stubborn.verdict.kind == "inconclusive"
    assert stubborn.needs_reader
    assert "a program that works without ACME_API_KEY" in stubborn.verdict.reason


QUOTED = """It fails:

```python
import acmelib
acmelib.fit()
```

```
Traceback (most recent call last):
  File "repro.py", line 2, in <module>
    acmelib.fit()
  File "/e/lib/python3.11/site-packages/acmelib/core.py", line 9, in fit
    return f()
RuntimeError: mat1 and mat2 shapes cannot be multiplied (14x7 and 16x4)
```
"""


@pytest.mark.parametrize(
    ("version", "tried"), [("", ["1.0", "0.9"]), ("\nacmelib==0.8.0\n", ["0.8.0", "0.9"])]
)
def test_the_release_whose_lines_the_traceback_quotes_is_run(version, tried):
    subject = issue(QUOTED + version).model_copy(update={"repository": "acme/acmelib"})
    builder = FakeBuilder(lines={"acmelib": "0.9"})

    def program(spec):
        spec = builder.built[-1]
        old = any(each.specifier == "==0.9" for each in spec.requirements)
        return (
            RunResult(
                exit_code=1,
                stderr=traceback()
                .replace("lib.fit", "acmelib.fit")
                .replace("/lib/core", "/acmelib/core"),
                seconds=1.0,
            )
            if old
            else OK
        )

    found = decide(subject, program, builder)
    assert found.verdict.kind == "reproduced"
    assert found.environment.version("acmelib") == "0.9"
    assert any("the quoted traceback fits acmelib 0.9" in note.text for note in found.notes)
    built = [each.version("acmelib") for each in map(builder.build, builder.built[:2])]
    assert built == tried
    rows = [row.observed for row in found.comparison if row.what == f"but with acmelib {tried[0]}"]
    assert rows == (["the reported exception did not occur"] if version else [])


def test_a_program_for_a_gpu_runs_on_the_processor_when_the_failure_allows_it():
    def program(spec):
        code = spec.files["repro.py"].decode()
        return (
            fails("AssertionError", "Torch not compiled with CUDA enabled")
            if "cuda" in code
            else fails()
        )

    found = decide(report('import lib\nlib.fit(device="cuda")\n'), program)
    assert found.verdict.kind == "reproduced"
    assert 'device="cpu"' in found.script.source
    assert any("cpu" in fix.what for fix in found.script.fixes)


def test_what_passes_on_the_processor_only_is_not_refuted():
    def program(spec):
        code = spec.files["repro.py"].decode()
        return (
            fails("AssertionError", "Torch not compiled with CUDA enabled")
            if "cuda" in code
            else OK
        )

    found = decide(report('import lib\nlib.fit(device="cuda")\n'), program)
    assert found.verdict.kind == "needs_hardware"


def test_a_failure_of_the_driver_is_not_looked_for_without_one():
    ports = world(lambda spec: pytest.fail("nothing should run"))
    found = run(
        ReproduceIssue(
            issue=report(
                'import lib\nlib.fit(device="cuda")\n',
                "RuntimeError: CUDA error: device-side assert triggered",
            ),
            **dict(BARE),
        ),
        ports,
    )
    assert found.verdict.kind == "needs_hardware"


@pytest.mark.parametrize(
    "program",
    [
        f'import lib\nraise RuntimeError("{MESSAGE}")\n',
        f'import lib\nprint("RuntimeError: {MESSAGE}")\nraise SystemExit(1)\n',
    ],
)
def test_a_program_that_utters_the_error_itself_is_never_reproduced(program):
    found = decide(report(program), lambda spec: fails())
    assert found.verdict.kind != "reproduced"
    assert not any(
        attempt.purpose == "confirm" and attempt.judgement.match == "matched"
        for attempt in found.attempts
    )


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        (f'raise RuntimeError("{MESSAGE}")', "needs_info"),
        ("lib.fit()", "inconclusive"),
        ("", "inconclusive"),
    ],
)
def test_a_reporter_is_asked_only_where_the_traceback_ends_at_the_programs_own_raise(line, kind):
    """That the words stand in the program may have another cause."""
    program = f'import lib\nlib.fit()\nraise RuntimeError("{MESSAGE}")\n'
    stack = f'Traceback (most recent call last):\n  File "a.py", line 3, in <module>\n    {line}\n'
    error = f"{stack if line else ''}RuntimeError: {MESSAGE}"
    found = decide(report(program, error), lambda spec: fails())
    assert found.verdict.kind == kind
    assert bool(found.verdict.reason.count("itself causes")) is (kind == "needs_info")


def test_a_download_cannot_be_had():
    found = decide(
        report(),
        lambda spec: fails(
            "OSError", "We couldn't connect to 'https://hub.example' to load the files"
        ),
    )
    assert found.verdict.kind == "inconclusive"
    assert found.needs_reader
    assert "synthetic data" in found.verdict.reason
    assert len(found.attempts) == 1


def test_an_environment_that_cannot_be_built_says_why():
    found = decide(
        report("import numpy\nimport lib\nlib.fit()\n"),
        lambda spec: fails(),
        FakeBuilder(failing={"numpy": "no matching distribution"}),
    )
    assert found.verdict.kind == "setup_failed"
    assert "no matching distribution" in found.verdict.reason


def test_a_feature_request_is_not_run():
    ports = world(lambda spec: pytest.fail("nothing should run"))
    found = run(
        issue_job(
            issue(
                "It would be great if `fit` had a callback argument.",
                "Add callbacks",
                ("enhancement",),
            )
        ),
        ports,
    )
    assert found.verdict.kind == "not_a_bug"


def test_nothing_to_go_on():
    found = decide(
        issue("My loss is wrong since the last update, please fix.", "Loss is wrong"),
        lambda spec: OK,
    )
    assert found.verdict.kind == "needs_info"
    assert 1 <= len(found.verdict.items) <= 4


def test_a_run_that_takes_too_long_decides_nothing():
    late = RunResult(exit_code=None, timed_out=True, seconds=120.0)
    found = decide(report(), lambda spec: late)
    assert found.verdict.kind == "inconclusive"


def test_being_stopped_leaves_a_report_of_what_was_done():
    cancel = Event()

    runs = iter(range(9))

    def program(spec):
        if next(runs) == 1:
            cancel.set()
        return fails()

    found = run(ReproduceIssue(issue=report(), **dict(BARE)), world(program, cancel=cancel))
    assert found.verdict.kind == "cancelled"
    assert len(found.attempts) == 1


@pytest.mark.parametrize(("contrast_fails", "holds"), [(False, True), (True, False)])
def test_what_the_report_says_works_is_run_too(contrast_fails, holds):
    body = report().body + "\nThis works fine:\n\n```python\nimport lib\nlib.other()\n```\n"
    found = decide(
        issue(body),
        lambda spec: fails() if contrast_fails or b"fit" in spec.files["repro.py"] else OK,
    )
    assert found.verdict.kind == "reproduced"
    assert [claim.holds for claim in found.claims] == [holds]
    assert "fit" in found.script.source


def test_the_cap_on_runs_is_kept():
    found = decide(report(), by_turns(OK, fails(), OK), max_runs=6)
    confirming = [attempt for attempt in found.attempts if attempt.purpose == "confirm"]
    assert len(confirming) == 6
    assert found.verdict.kind == "inconclusive"


def test_what_a_killed_process_had_kept_is_not_run_again():
    first = world(by_turns(fails()))
    whole = run(ReproduceIssue(issue=report(), **dict(BARE)), first)
    again = world(by_turns(fails()))
    again.journal.fill(ATTEMPTS, whole.attempts[:2])
    resumed = run(ReproduceIssue(issue=report(), **dict(BARE)), again)
    assert len(whole.attempts) == 3
    assert [row.number for row in again.journal.appended if isinstance(row, Attempt)] == [3], (
        "only what was missing is run"
    )
    assert (resumed.verdict, resumed.attempts) == (whole.verdict, whole.attempts)


def test_an_attempt_of_another_program_is_not_taken_for_ours():
    other = run(
        issue_job(report(program="import lib\nlib.other()\n")), world(by_turns(fails()))
    ).attempts
    again = world(by_turns(OK))
    again.journal.fill(ATTEMPTS, other)
    resumed = run(ReproduceIssue(issue=report(), **dict(BARE)), again)
    assert resumed.verdict.kind == "not_reproduced"
    assert again.journal.read(ATTEMPTS) == resumed.attempts


def test_a_plan_shows_what_will_be_run_without_running_it():
    draft = plan(ReproduceIssue(issue=report(), **dict(BARE)))
    done = run(ReproduceIssue(issue=report(), **dict(BARE)), world(by_turns(fails())))
    assert (draft.script, draft.signature) == (done.script, done.signature)
    assert draft.verdict is None
    assert draft.hash == plan(ReproduceIssue(issue=report(), **dict(BARE))).hash
    assert draft.hash != plan(issue_job(report(), pins=("lib==2.0",))).hash
    assert (
        plan(issue_job(issue("Please add a dark mode.", "Feature request: dark mode"))).verdict.kind
        == "not_a_bug"
    )


@pytest.mark.parametrize(("ref", "said"), [(None, True), ("HEAD", False)])
def test_a_clone_that_a_named_release_takes_the_place_of_is_said_not_to_have_run(ref, said):
    named = issue(
        f"It fails with lib 1.4.0:\n\n```python\n{PROGRAM}```\n\nError:\n\n```\nRuntimeError: {MESSAGE}\n```\n"
    )
    found = decide(named, lambda spec: fails(), repo="./lib", ref=ref)
    assert (found.spec.repo is None) is said
    assert (
        any("the clone was not run" in note and "--ref HEAD" in note for note in found.notes_on())
        is said
    )


@pytest.mark.parametrize("end", [OK, fails("KeyError", "'x'")])
def test_a_negative_verdict_needs_a_run_that_reached_the_operation(end):
    ports = world(lambda spec: end)
    ports.sandbox.reaches = False
    found = run(ReproduceIssue(issue=report(), **dict(BARE)), ports)
    assert found.verdict.kind == "inconclusive"
    assert "no run was observed to reach" in found.verdict.reason
    assert found.verdict.runs == len([a for a in found.attempts if a.purpose == "confirm"])
    reached = run(ReproduceIssue(issue=report(), **dict(BARE)), world(lambda spec: end))
    assert reached.verdict.kind in {"not_reproduced", "different_failure"}


def test_a_print_that_shares_words_with_the_error_is_no_staging():
    program = f'import lib\nprint("expect: {MESSAGE}")\nlib.fit()\n'
    error = {
        "exception": "RuntimeError",
        "message": MESSAGE,
        "bases": ["Exception", "BaseException"],
        "frames": [
            {"path": "/e/site-packages/lib/core.py", "line": 9, "function": "fit", "code": ""}
        ],
    }
    row = {"main": True, "where": "main", "error": error}
    failed = RunResult(
        exit_code=1, seconds=1.0, artifacts={".reprise/trace-1-main.json": json.dumps(row).encode()}
    )
    assert decide(report(program), lambda spec: failed).verdict.kind == "reproduced"


@pytest.mark.parametrize(
    ("printed", "kind"),
    [("loss nan", "reproduced"), ("loss 2.0", "not_reproduced"), ("done", "inconclusive")],
)
def test_an_output_that_is_only_absent_refutes_nothing(printed, kind):
    end = RunResult(exit_code=0, stdout=f"{printed}\n", seconds=1.0)
    subject = issue(
        "```python\nimport lib\nprint('loss', lib.fit())\n```\n\nIt prints:\n\n```\nloss nan\n```\n"
    )
    assert decide(subject, lambda spec: end).verdict.kind == kind


@pytest.mark.parametrize(
    ("error", "kind"),
    [("", "inconclusive"), ("\nIt fails with `AssertionError`.\n", "not_reproduced")],
)
def test_a_check_that_nobody_says_fails_refutes_nothing_by_holding(error, kind):
    program = "import lib\nquiet = lib.fit()\nassert quiet in [40, None]\n"
    subject = issue(f"The value of quiet is wrong.\n\n```python\n{program}```\n{error}")
    assert decide(subject, lambda spec: OK).verdict.kind == kind


def test_a_block_that_prints_versions_is_no_program():
    form = "```python\nimport lib, sys\nprint(lib.__version__, sys.version)\n```\n"
    subject = report()
    subject = subject.model_copy(update={"body": f"{form}\n{subject.body}"})
    found = plan(ReproduceIssue(issue=subject, **dict(BARE)))
    assert [script.fences for script in found.scripts] == [(1,)]


def test_that_a_less_likely_program_passes_refutes_nothing():
    """The first block fails on a file that only the reporter has; another one passes."""
    body = (
        "Run this:\n\n```python\nimport lib\nlib.fit(open('mine.bin'))\n```\n\n"
        f"It fails:\n\n```\nRuntimeError: {MESSAGE}\n```\n\n```python\nimport lib\nlib.other()\n```\n"
    )
    lacks = fails("FileNotFoundError", "[Errno 2] No such file or directory: 'mine.bin'")
    found = decide(issue(body), lambda spec: lacks if b"mine.bin" in spec.files["repro.py"] else OK)
    assert found.verdict.kind == "inconclusive"


@pytest.mark.parametrize(("name", "is_imported"), [("Thing", True), ("T", False)])
def test_a_letter_that_a_program_leaves_undefined_is_imported_from_nowhere(name, is_imported):
    def program(spec):
        if spec.label == "names":
            return RunResult(stdout=json.dumps({name: "lib"}), exit_code=0, seconds=0.1)
        return fails()

    found = decide(report(f"import lib\nlib.fit({name})\n"), program)
    assert (
        f"from lib import {name}" in (found.script.source if found.script else "")
    ) is is_imported


@pytest.mark.parametrize(
    ("call", "line"), [("lib(3)", "from lib import lib"), ("lib.fit()", "import lib")]
)
def test_nobody_calls_a_module(call, line):
    def built(spec):
        package = Package(name="lib", version="2.0", rung=PinSource.ISSUE)
        return Environment(id="here", python="3", interpreter="python", packages=(package,))

    def program(spec):
        if spec.label == "names":
            return RunResult(stdout=json.dumps({"lib": "lib"}), exit_code=0, seconds=0.1)
        return fails()

    found = decide(report(f"data = [1, 2]\n{call}\n"), program, FakeBuilder(on_build=built))
    assert line in found.script.source.split("\n")
