"""The App over fakes: what a delivery leads to, who may, and what is left when something dies in
between.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from threading import Event, Thread
from time import monotonic, sleep, time
from types import SimpleNamespace

import pytest

from bot.app import context, execute_run
from bot.app.context import AppContext, HostPolicy
from bot.app.execute_run import StoreJournal
from bot.app.ports import Hook, Target, Task, Throttled
from bot.app.worker import Service, reap, reconcile
from bot.issues.proof import proofs
from bot.kernel.bug import Issue
from bot.kernel.dialogue import Reconstruction, Usage
from bot.kernel.errors import BuildError, ModelUnavailable, Stopped, TransientError
from bot.kernel.job import PROOFS, Note
from bot.kernel.journal import ATTEMPTS, LOGS
from bot.kernel.ports import Ports
from bot.kernel.run import Choices, Command, Delivery, Repository, RunState
from bot.products.engine import execute as pipeline
from sandbox.port import RunResult
from tests.support import traces
from tests.support.fakes import (
    FakeBuilder,
    FakeGitHub,
    FrozenClock,
    InlineQueue,
    MemoryStore,
    ScriptedModel,
)
from tests.support.sandbox import FakeSandbox
from tests.unit.versioned import broken, built, released

REPOSITORY = Repository(id=7, full_name="acme/lib", clone_url="https://github.com/acme/lib.git")
WHERE = Target(installation=1, repository="acme/lib")
MESSAGE = "mat1 and mat2 shapes cannot be multiplied (14x7 and 16x4)"
BODY = (
    "It fails:\n\n```python\nimport lib\nlib.fit()\n```\n\n"
    f"Error:\n\n```\nRuntimeError: {MESSAGE}\n```\n"
)
TRACE = (
    'Traceback (most recent call last):\n  File "repro.py", line 2, in <module>\n    lib.fit()\n'
    f'  File "/e/lib/python3.11/site-packages/lib/core.py", line 9, in fit\n'
    f"    return f()\nRuntimeError: {MESSAGE}\n"
)
FAILS = RunResult(exit_code=1, stderr=TRACE, seconds=0.1)
NOW = datetime(2026, 1, 2, tzinfo=UTC)


class App:
    """An App on fakes, with one repository, where nothing follows a verdict unless `config` says
    so.
    """

    def __init__(self, program=lambda spec: FAILS, config="defaults:\n  proofs: []\n", **house):
        self.hub = FakeGitHub()
        self.hub.repository("acme/lib").files[".github/reprise.yml"] = config
        self.hub.repository("acme/lib").permissions.update(max="write", tria="triage")
        self.ahead = 0.0
        self.store = MemoryStore(clock=lambda: time() + self.ahead, write_gap_s=0, notify_gap_s=0)
        self.queue = InlineQueue()
        self.program, self.worked, self.clones, self.builder = program, [], [], FakeBuilder
        self.model, self.earlier, self.cancels = None, [], []
        self.house = HostPolicy(
            **{"public_url": "https://reprise.example", "beat_s": 0.02, "lease_s": 5.0, **house}
        )
        self.service = self.another()
        self.guids = 0

    def resume(self, seconds=3600.0):
        """Time passes, and whatever waited for it is looked at."""
        self.ahead += seconds
        reap(self.service.context)
        self.queue.drain(self.service.handle)

    def another(self):
        """Another worker over the same store and queue."""
        return Service(AppContext(self.store, self.queue, self.hub, self._engine, self.house))

    def _engine(self, job, *, journal, listener, cancel, clone, earlier=None):
        self.worked.append(job)
        self.earlier.append(earlier)
        self.clones.append(clone)
        self.cancels.append(cancel)
        clock = FrozenClock(step=0.1)
        ports = Ports(
            FakeSandbox(self.program),
            self.builder(),
            journal,
            clock,
            listener,
            cancel,
            model=self.model,
        )
        return (
            pipeline(job, ports) if earlier is None else proofs.resume_proofs(earlier, job, ports)
        )

    def deliver(
        self,
        trigger="opened",
        *commands,
        sender="reporter",
        body=BODY,
        title="fit fails",
        number=3,
        **more,
    ):
        self.guids += 1
        self.hub.issue("acme/lib", number)
        comment = self.hub.comment("acme/lib", number, sender, "a comment") if commands else None
        issue = Issue(
            title=title,
            body=body,
            repository="acme/lib",
            number=number,
            author="reporter",
            created_at=datetime(2026, 1, 1, tzinfo=UTC),
        )
        kept = Delivery(
            **{
                "guid": f"guid-{self.guids}",
                "event": "issues",
                "action": trigger,
                "trigger": "comment" if commands else trigger,
                "installation": 1,
                "repository": REPOSITORY,
                "issue": issue,
                "sender": sender,
                "comment": comment,
                "commands": commands,
                "received_at": NOW,
                **more,
            }
        )
        assert self.store.claim([kept]) == ("new",)
        self.queue.offer(Task(kind="delivery", id=kept.guid))
        self.queue.drain(self.service.handle)
        return kept

    def ours(self, number=3):
        return [comment.body for comment in self.hub.ours("acme/lib", number)]

    def runs(self, **of):
        return self.store.runs(repository="acme/lib", **of)

    def reactions(self, delivery):
        thing = (
            self.hub.comments[delivery.comment]
            if delivery.comment
            else self.hub.issue("acme/lib", 3)
        )
        return {reaction for login, reaction in thing.reactions if login == self.hub.login}


def resolved(spec):
    """An environment where "1.18.*" has become the one version that it fits."""
    named = (
        each.model_copy(update={"specifier": each.specifier.removesuffix(".*")})
        for each in spec.requirements
    )
    return built(spec.model_copy(update={"requirements": tuple(named)}))


class Versions(App):
    """The same where `lib` fails from 1.17 to 1.19, the report is about 1.18, and everything
    follows the verdict.
    """

    def __init__(self, meet=lambda spec: None, config="", **more):
        fails = broken(17, 19)

        def program(spec):
            meet(spec)
            return fails(spec.env["LIB"])

        super().__init__(program, config, **more)
        self.builder = lambda: FakeBuilder(on_build=resolved, released={"lib": released(40)})

    def deliver(self, *args, **more):
        return super().deliver(*args, **{"body": f"I use lib==1.18.\n\n{BODY}", **more})

    def report(self):
        return self.store.report(self.runs()[0].id)


def command(verb="reproduce", argument="", **choices):
    return Command(
        text=f"/reproduce {verb}", verb=verb, argument=argument, choices=Choices(**choices)
    )


def test_a_new_bug_report_ends_in_one_comment_a_label_and_reactions():
    app = App()
    delivery = app.deliver()
    (body,) = app.ours()
    assert "Reproduced" in body
    assert "https://reprise.example/runs/" in body
    assert app.hub.issue("acme/lib", 3).labels == ["reprise: reproduced"]
    assert app.reactions(delivery) == {"eyes", "+1"}
    (run,) = app.runs()
    assert (run.state, run.verdict, run.request.requester) == (
        RunState.FINISHED,
        "reproduced",
        "reporter",
    )
    assert len(app.store.entries(run.id, ATTEMPTS)) == 3
    assert MESSAGE in app.store.entries(run.id, LOGS)[0].text


READABLE = """`lib.fit` leaves the weights of the second layer untouched when `frozen=True` is passed for the
first one only; they should be updated as those of the third are."""


def test_a_report_that_takes_a_reader_gets_no_public_comment_unless_somebody_asks():
    """Nothing is missing from it for a person, so nothing is asked."""
    app = App()
    delivery = app.deliver(body=READABLE, title="frozen=True of one layer freezes two")
    (run,) = app.runs()
    assert (run.state, run.verdict) == (RunState.FINISHED, "inconclusive")
    assert app.store.report(run.id).needs_reader
    assert app.ours() == []
    assert app.hub.issue("acme/lib", 3).labels == []
    assert app.reactions(delivery) == {"eyes"}
    app.deliver("comment", command(), sender="max", body=READABLE, title="frozen=True")
    (body,) = app.ours()
    assert "Inconclusive" in body
    assert "Please add" not in body
    assert "Add " not in body
    assert app.hub.issue("acme/lib", 3).labels == []


def test_where_the_information_is_missing_for_anybody_it_is_asked_for():
    app = App()
    app.deliver(body="It does not work since the last update, please fix.", title="Loss is wrong")
    (body,) = app.ours()
    assert "Please add" in body


def test_a_feature_request_is_not_answered():
    app = App()
    app.deliver(body="Please add a dark mode.", title="Feature request: dark mode")
    assert (app.ours(), app.runs(), app.hub.writes) == ([], (), [])


def test_a_label_starts_a_run_only_when_the_configuration_names_it():
    app = App()
    app.deliver("labeled", label="bug")
    assert app.runs() == ()
    app = App()
    app.hub.repository("acme/lib").files[".github/reprise.yml"] = "triggers:\n  labels: [Bug]\n"
    app.deliver("labeled", label="bug", sender="tria")
    assert [run.verdict for run in app.runs()] == ["reproduced"]


def test_a_pull_request_needs_a_permission_that_the_answer_names():
    app = App()
    app.deliver()
    delivery = app.deliver("comment", command("pr"), sender="max")
    assert "Contents and Pull requests to read and write" in app.ours()[-1]
    assert app.reactions(delivery) == {"confused"}
    app.deliver("closed")
    assert app.hub.calls.count("writable") == 1, "nothing was opened, nothing is closed"


def test_the_configuration_can_switch_it_off():
    app = App()
    app.hub.repository("acme/lib").files[".github/reprise.yml"] = "enabled: false\n"
    app.deliver()
    app.deliver("comment", command(), sender="max")
    assert (app.runs(), app.hub.writes) == ((), [])


def test_a_broken_configuration_is_told_once_and_the_defaults_apply():
    app = App()
    app.hub.repository("acme/lib").files[".github/reprise.yml"] = "triggers:\n  opend: all\n"
    app.deliver()
    app.deliver(number=4)
    told = [body for number in (3, 4) for body in app.ours(number) if "opend" in body]
    assert len(told) == 1
    assert len(app.runs()) == 2


def test_someone_with_write_permission_may_choose():
    app = App()
    app.deliver("comment", command(python="3.10", pins=("torch==2.1.0",), runs=7), sender="max")
    (job,) = app.worked
    assert (job.environment.python, job.environment.pins, job.limits.max_runs) == (
        "3.10",
        ("torch==2.1.0",),
        7,
    )


def test_the_author_may_run_the_default_command_on_their_own_issue():
    app = App()
    app.deliver("comment", command(), sender="reporter")
    assert [run.verdict for run in app.runs()] == ["reproduced"]


@pytest.mark.parametrize(
    ("sender", "choices"), [("passer-by", {}), ("reporter", {"python": "3.10"}), ("tria", {})]
)
def test_everyone_else_gets_the_plan_and_waits_for_approval(sender, choices):
    app = App()
    app.deliver("comment", command(**choices), sender=sender)
    (run,) = app.runs()
    (plan,) = app.ours()
    assert (run.state, app.worked) == (RunState.WAITING, [])
    assert "lib.fit()" in plan
    assert f"/reproduce approve {run.plan}" in plan
    app.deliver("comment", command("approve", run.plan), sender="passer-by")
    assert app.worked == []
    assert "write permission" in app.ours()[-1]
    approved = app.deliver("comment", command("approve", run.plan), sender="max")
    (run,) = app.runs()
    assert (run.state, run.verdict, run.approved_by) == (RunState.FINISHED, "reproduced", "max")
    assert app.reactions(approved) == {"+1"}


def test_an_approval_of_something_else_approves_nothing():
    app = App()
    app.deliver("comment", command(), sender="passer-by")
    refused = app.deliver("comment", command("approve", "0" * 32), sender="max")
    assert app.worked == []
    assert app.reactions(refused) == {"confused"}


def test_outsiders_can_be_turned_away():
    app = App()
    app.hub.repository("acme/lib").files[".github/reprise.yml"] = "outsiders: ignore\n"
    refused = app.deliver("comment", command(), sender="passer-by")
    assert (app.runs(), app.reactions(refused)) == ((), {"confused"})
    assert "write permission" in app.ours()[0]


def test_permission_that_cannot_be_asked_is_no_permission():
    app = App()
    app.hub.fail(TransientError("GitHub is away"), "permission")
    app.deliver("comment", command(), sender="max")
    assert [run.state for run in app.runs()] == [RunState.WAITING]


def test_what_was_not_understood_is_said():
    app = App()
    wrong = Command(
        text="/reproduce pyton=3",
        verb="",
        problems=("`pyton` is no option; did you mean `python`?",),
    )
    delivery = app.deliver("comment", wrong, sender="max")
    assert app.reactions(delivery) == {"confused"}
    assert "pyton" in app.ours()[0]
    assert app.runs() == ()


@pytest.mark.parametrize(
    ("verb", "words"),
    [
        ("help", "/reproduce bisect"),
        ("config", "proof_minutes: 10  # default"),
        ("status", ""),
        ("repair", "repair"),
    ],
)
def test_questions_are_answered(verb, words):
    app = App()
    app.deliver("comment", command(verb), sender="passer-by")
    assert words in app.ours()[0]
    assert not any(line.startswith("/") for line in app.ours()[0].splitlines())


def test_quotas_hold_and_say_so():
    app = App()
    app.hub.repository("acme/lib").files[".github/reprise.yml"] = "quota:\n  person: 1\n"
    app.deliver("comment", command(), sender="max")
    app.deliver("comment", command(seed=1), sender="max")
    assert len(app.runs()) == 1
    assert "quota.person" in app.ours()[-1]
    app.deliver(number=4)
    assert len(app.runs()) == 2, "another person's quota is their own"
    app = App(daily_runs=0)
    app.deliver()
    assert (app.runs(), app.hub.writes) == ((), []), "nobody asked, nobody is told"


def test_a_verdict_is_followed_by_a_control_a_bisection_and_a_smaller_program():
    app = Versions()
    app.deliver()
    found = app.report()
    assert (found.verdict.kind, found.verdict.control.type) == ("reproduced", "fixed-version")
    assert (found.bisection.first_bad.at, found.bisection.first_fixed.at) == ("1.17", "1.20")
    assert found.reduced is not None
    (body,) = app.ours()
    assert "1.20" in body
    assert len(app.store.entries(app.runs()[0].id, ATTEMPTS)) == len(found.attempts)


@pytest.mark.parametrize(
    ("defaults", "without", "minutes"),
    [
        ("{}", (), 10),
        ("{proofs: []}", PROOFS, 10),
        ("{proof_minutes: 0}", PROOFS, 0),
        ("{proofs: [minimize], proof_minutes: 3}", ("control", "bisect"), 3),
    ],
)
def test_the_configuration_says_what_follows_a_verdict(defaults, without, minutes):
    app = Versions(config=f"defaults: {defaults}\n")
    app.deliver()
    (job,) = app.worked
    assert (job.without, job.proof.minutes) == (without, minutes)
    found = app.report()
    assert [
        found.verdict.control.type == "none",
        found.bisection is None,
        found.reduced is None,
    ] == [proof in without for proof in PROOFS]


@pytest.mark.parametrize("proof", PROOFS)
def test_a_proof_that_is_asked_for_is_the_only_one_and_has_more_time(proof):
    app = Versions(config="defaults:\n  proofs: []\n  runs: 30\n")
    choices = {"package": "lib"} if proof == "bisect" else {}
    app.deliver("comment", command(proof, **choices), sender="max")
    (job,) = app.worked
    assert set(job.without) == set(PROOFS) - {proof}
    assert (job.proof.minutes, job.limits.max_runs, job.proof.package) == (
        30,
        30,
        choices.get("package"),
    )
    found = app.report()
    assert {
        "control": found.verdict.control.type != "none",
        "bisect": found.bisection,
        "minimize": found.reduced,
    }[proof]
    assert (found.bisection is None, found.reduced is None) == (
        proof != "bisect",
        proof != "minimize",
    )
    assert f"Requested by `max` as `/reproduce {proof}`" in app.ours()[0]


TRAINS = """import torch
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(100):
    loss = model(torch.ones(4, 2)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
LEARNS_NOTHING = {
    "title": "The network does not learn",
    "body": f"The loss stays flat whatever I do.\n\n```python\n{TRAINS}```\n",
}


class Trains(App):
    """The same with a program whose loss stays flat; `limits` are the time limits of its runs."""

    def __init__(self, config="", **more):
        super().__init__(self._ran, config, **more)
        self.limits = []

    def _ran(self, spec):
        self.limits.append((spec.label, spec.limits.wall_s))
        trace = traces.trace(losses=traces.FLAT)
        rows = (*trace.models, *trace.losses, *trace.optimizers, *trace.plans, *trace.data)
        lines = "".join(f"{row.model_dump_json()}\n" for row in (*rows, *trace.steps))
        return RunResult(
            exit_code=0, seconds=3.0, artifacts={".reprise/training-7.jsonl": lines.encode()}
        )

    def deliver(self, *args, **more):
        return super().deliver(*args, **{**LEARNS_NOTHING, **more})


def test_a_diagnosis_that_is_asked_for_is_in_the_comment_beside_the_verdict():
    app = Trains()
    delivery = app.deliver("comment", command("diagnose"), sender="max")
    (run,) = app.runs()
    (body,) = app.ours()
    found = app.store.report(run.id).diagnosis.diagnosis
    assert (run.state, run.verdict, run.request.proof) == (
        RunState.FINISHED,
        "reproduced",
        "diagnose",
    )
    # A flat curve alone says that something is wrong, not what.
    assert found.findings == ()
    assert {each.rule for each in found.doubts} == {"loss-stuck"}
    says = (
        "nothing certain was found in the training run; doubts: learning rate, data preprocessing."
    )
    assert f"Diagnosis: {says}" in body
    assert "Requested by `max` as `/reproduce diagnose`" in body
    assert app.reactions(delivery) == {"eyes", "+1"}
    # Once with the probe, and as a complaint over fresh seeds.
    assert app.limits == [("training", 600)] * 3, "a training has its own time limit"


@pytest.mark.parametrize(
    ("config", "choices", "limit"),
    [
        ("", {"timeout_s": 30}, 600),
        ("", {"timeout_s": 1800}, 1800),
        ("defaults: {training_timeout: 60}", {}, 120),
        ("defaults: {training_timeout: 3600, timeout: 10}", {}, 3600),
    ],
)
def test_a_diagnosed_run_has_the_longer_of_two_limits(config, choices, limit):
    app = Trains(config)
    app.deliver("comment", command("diagnose", **choices), sender="max")
    assert app.limits == [("training", limit)] * 3
    assert app.worked[0].limits.timeout_s == choices.get("timeout_s", 10 if "10" in config else 120)


@pytest.mark.parametrize(
    ("config", "choices", "budget"),
    [
        ("", {}, 3),
        ("", {"budget": 5}, 5),
        ("", {"budget": 0}, 0),
        ("defaults: {diagnosis_budget: 0}", {}, 0),
        ("defaults: {diagnosis_budget: 0}", {"budget": 2}, 2),
    ],
)
def test_trainings_that_confirm_findings_have_a_budget(config, choices, budget):
    app = Trains(config)
    app.deliver("comment", command("diagnose", **choices), sender="max")
    assert app.worked[0].training.budget == budget


def test_the_configuration_asks_for_a_diagnosis_and_a_model_for_a_second_opinion():
    def answer(question):
        if not question.prompt.startswith("opinion@"):
            raise ModelUnavailable("not now")
        quote = "The loss stays flat"
        fault = {"fault": "LCN", "layers": [0], "quote": quote, "reason": "x", "change": ""}
        fault |= {"file": "", "line": 0, "before": "", "after": ""}
        return {"purpose": "It classifies.", "faults": [fault]}

    app = Trains("diagnose: true\ndefaults: {proofs: []}\n")
    app.model = ScriptedModel(answer, usd=0.02)
    app.deliver()
    (run,) = app.runs()
    (body,) = app.ours()
    assert "LCN(0) (number of neurons in layer 0, named by a model alone)" in body
    assert run.verdict == "reproduced"
    assert app.store.usage(NOW - timedelta(days=9999)).usd == 0.02


def test_a_run_that_nobody_asked_for_is_not_announced_behind_others():
    app = App()
    offer = app.queue.offer
    app.queue.offer = lambda task, delay_s=0.0: (
        offer(task, delay_s) if task.kind == "delivery" else None
    )
    app.deliver()
    app.deliver("opened", number=8)
    assert [run.state for run in app.runs()] == [RunState.QUEUED] * 2
    assert app.ours() == []


def test_to_say_that_a_run_waits_behind_others_is_no_try():
    app = App()
    offer = app.queue.offer
    app.queue.offer = lambda task, delay_s=0.0: (
        offer(task, delay_s) if task.kind == "delivery" else None
    )
    app.deliver()
    app.deliver("comment", command(), sender="max", number=8)
    waiting = next(run for run in app.runs() if run.request.number == 8)
    assert len(app.hub.ours("acme/lib", 8)) == 1
    assert (waiting.state, waiting.takes) == (RunState.QUEUED, 0)


def test_an_outsider_s_diagnosis_waits_and_is_made_without_a_model():
    app = Trains()
    app.model = ScriptedModel([])
    app.deliver("comment", command("diagnose"), sender="passer-by")
    (run,) = app.runs()
    assert (run.state, app.limits) == (RunState.WAITING, [])
    assert "A diagnosis of the training runs this program once more" in app.ours()[0]
    app.deliver("comment", command("approve", run.plan), sender="max")
    assert app.runs()[0].verdict == "reproduced"
    assert (app.limits, app.model.asked) == ([("training", 600)] * 3, [])


def test_a_proof_goes_on_from_a_run_that_was_reproduced_and_the_comment_keeps_what_was_proven():
    seen = []
    app = Versions(
        lambda spec: seen.append(spec.env["LIB"]), "defaults: {proofs: [control, bisect]}"
    )
    app.deliver()
    first, ran = app.report(), len(seen)
    app.deliver("comment", command("minimize"), sender="max")
    second = app.report()
    assert second.verdict == first.verdict
    assert (second.bisection, second.control_spec) == (first.bisection, first.control_spec)
    assert (first.reduced, second.reduced is None) == (None, False)
    assert second.attempts[: len(first.attempts)] == first.attempts
    assert [attempt.purpose for attempt in second.attempts[len(first.attempts) :]] == [
        "minimize"
    ] * (len(second.attempts) - len(first.attempts))
    assert ran == len(first.attempts), "nothing but what was counted was run"
    newer, older = app.runs()
    assert app.store.entries(newer.id, ATTEMPTS) == second.attempts
    assert app.store.entries(newer.id, LOGS)[:2] == app.store.entries(older.id, LOGS)[:2]
    assert "1.20" in app.ours()[0]


@pytest.mark.parametrize(
    "more",
    [
        {"choices": {"seed": 4}},
        {"body": "lib 1.18 fails, see there.\n\n" + BODY},
        {"verb": "reproduce"},
    ],
)
def test_a_proof_of_something_else_goes_on_from_nothing(more):
    app = Versions(config="defaults: {proofs: [control]}")
    app.deliver()
    asked = command(more.pop("verb", "minimize"), **more.pop("choices", {}))
    app.deliver("comment", asked, sender="max", **more)
    assert app.earlier == [None, None]
    assert [each.purpose for each in app.report().attempts[:3]] == ["search", "confirm", "confirm"]
    assert (app.report().reduced is None) == (asked.verb == "reproduce")


def test_an_approved_proof_does_not_go_on_from_the_program_of_a_model():
    app = Versions(config="defaults: {proofs: []}")
    app.deliver()
    app.deliver("comment", command("minimize"), sender="passer-by")
    waiting, first = app.runs()
    asked = waiting.model_copy(update={"created_at": datetime.now(UTC)})
    assert "model" in asked.request.job.without
    assert execute_run.earlier_journal(app.store, asked, "nobody") is None, (
        "who holds no lease takes nothing over"
    )
    app.deliver("comment", command("approve", asked.plan), sender="max")
    assert app.earlier == [None, app.store.report(first.id)]
    changed = app.report().model_copy(update={"reconstruction": Reconstruction()})
    app.store.replace_report(app.runs()[0].id, changed)
    app.deliver("comment", command("minimize"), sender="passer-by")
    app.deliver("comment", command("approve", app.runs()[0].plan), sender="max")
    assert app.earlier[-1] is None


@pytest.mark.parametrize("sender", ["reporter", "passer-by"])
def test_a_proof_takes_write_permission_or_an_approval_of_just_that(sender):
    app = Versions()
    for asked in (command("bisect", package="lib"), command("bisect"), command("minimize")):
        app.deliver("comment", asked, sender=sender)
    assert ({run.state for run in app.runs()}, app.worked) == ({RunState.WAITING}, [])
    plans = [run.plan for run in app.runs()]
    assert len(set(plans)) == 3
    shown = app.ours()[0]
    assert "as `/reproduce bisect` with `package=lib`" in shown
    assert (
        "at most 30 minutes on: a bisection (the same program, with other releases of `lib`)."
        in shown
    )
    app.deliver("comment", command("approve", plans[2]), sender="max")
    (job,) = app.worked
    assert (job.proof.package, job.without) == ("lib", ("control", "minimize", "model"))
    assert app.store.report(app.runs()[2].id).bisection.first_fixed.at == "1.20"


UNCHECKABLE = {
    "claim": "fit fails",
    "kind": "not_checkable",
    "sign_if_right": False,
    "needs": "",
    "api": [],
    "packages": [],
    "pins": [],
    "quotes": [],
    "crash": None,
    "warning": None,
    "training": None,
    "observation": None,
    "questions": ["Which call fails?"],
}


def test_what_a_model_cost_is_counted_once_and_held_against_the_day():
    app = App(daily_usd=0.3, beat_s=60.0)
    app.model = ScriptedModel(lambda _: UNCHECKABLE, usd=0.25)
    app.hub.lose_answer(TransientError("connection reset"), "create_comment")
    app.deliver(body="lib 1.0 does not fit, it fails with an error.")
    app.resume()
    (run,) = app.runs()
    assert (run.verdict, run.state) == ("needs_info", RunState.FINISHED)
    assert app.store.usage(NOW - timedelta(days=9999)).usd == 0.25
    app.deliver(number=4, body="lib 1.0 does not fit, it fails with an error.")
    app.deliver(number=5)
    assert len(app.runs()) == 2, "0.50 USD are more than the 0.30 of a day"


def test_without_a_limit_dollars_stop_nothing():
    app = App()
    app.model = ScriptedModel(lambda _: UNCHECKABLE, usd=0.9)
    for number in (3, 4, 5):
        app.deliver(number=number, body="lib 1.0 does not fit, it fails with an error.")
    assert len(app.runs()) == 3


@pytest.mark.parametrize("switch", ["all", "acme/lib", "installation:1"])
def test_a_kill_switch_stops_everything_and_says_why_to_who_asks(switch):
    app = App()
    app.store.set_switch(switch, "The lab is closed.")
    app.deliver()
    assert app.hub.writes == []
    app.deliver("comment", command(), sender="max")
    assert app.runs() == ()
    assert "The lab is closed." in app.ours()[0]


def until(condition, within_s=5.0):
    end = monotonic() + within_s
    while not condition():
        assert monotonic() < end, "it did not happen in time"
        sleep(0.01)


class Slow:
    """A program that runs until it is stopped, or told to end."""

    def __init__(self):
        self.began, self.go_on = Event(), Event()

    def __call__(self, spec):
        self.began.set()
        self.go_on.wait(10)
        return FAILS


def working(app, task):
    stop = Event()
    thread = Thread(target=app.service.handle, args=(task, stop))
    thread.start()
    return thread, stop


def start_one(app):
    """A run that is queued, without anyone working on it."""
    kept = app.queue.offer
    app.queue.offer = lambda task, delay_s=0.0: (
        kept(task, delay_s) if task.kind == "delivery" else None
    )
    app.deliver()
    app.queue.offer = kept
    (run,) = app.runs()
    return run


def test_cancel_stops_a_run_and_the_comment_says_who_did():
    slow = Slow()
    app = App(slow)
    run = start_one(app)
    thread, _ = working(app, Task(kind="run", id=run.id))
    assert slow.began.wait(60)
    app.store.cancel("max", run=run.id)
    sleep(0.2)
    slow.go_on.set()
    thread.join(5)
    (run,) = app.runs()
    assert (run.state, run.verdict) == (RunState.FINISHED, "cancelled")
    assert "max" in app.ours()[0]


def test_cancel_by_comment_reaches_a_waiting_run_at_once():
    app = App()
    run = start_one(app)
    delivery = app.deliver("comment", command("cancel"), sender="max")
    assert (app.runs()[0].verdict, app.worked) == ("cancelled", [])
    assert app.reactions(delivery) == {"+1"}
    assert "max" in app.ours()[0]
    assert app.runs()[0].id == run.id


def test_only_those_who_may_can_cancel():
    app = App()
    start_one(app)
    app.deliver("comment", command("cancel"), sender="passer-by")
    assert app.runs()[0].state is RunState.QUEUED
    app.deliver("comment", command("cancel"), sender="reporter")
    assert app.runs()[0].verdict == "cancelled"
    nothing = app.deliver("comment", command("cancel"), sender="max")
    assert app.reactions(nothing) == {"confused"}


def test_uninstalling_and_deleting_end_what_is_under_way():
    app = App()
    start_one(app)
    app.deliver("uninstalled", repository=None, issue=None)
    assert app.runs()[0].verdict == "cancelled"
    app = App()
    start_one(app)
    app.deliver("gone", number=4)
    assert app.runs()[0].state is RunState.QUEUED
    assert len(app.store.history(REPOSITORY)) == 1
    app.deliver("gone")
    assert app.runs()[0].verdict == "cancelled"
    assert app.store.history(REPOSITORY) == (), "what was deleted is listed no more"


@pytest.mark.parametrize("private", [False, True])
def test_the_status_leads_to_all_runs_of_the_repository(private):
    app = App(link_days=3)
    where = REPOSITORY.model_copy(update={"private": private})
    app.deliver(sender="max", repository=where)
    app.queue.drain(app.service.handle)
    app.deliver("comment", command("status"), sender="passer-by", repository=where)
    names = re.findall(
        r"\[All runs of this repository\]\(https://reprise.example/runs/([\w.]+)/repository\)",
        app.ours()[-1],
    )
    (name,), run = names, app.runs()[0]
    assert context.admits(name, run, app.store, time(), "list")
    assert context.admits(name, run, app.store, time(), "run") is not private
    assert context.admits(name, run, app.store, time() + 5 * 86_400, "list") is not private
    assert (name == run.id) is not private


def test_a_worker_that_is_stopped_gives_its_run_back_and_another_goes_on():
    slow = Slow()
    app = App(slow)
    run = start_one(app)
    thread, stop = working(app, Task(kind="run", id=run.id))
    assert slow.began.wait(60)
    stop.set()
    sleep(0.2)
    slow.go_on.set()
    thread.join(5)
    assert app.runs()[0].state is RunState.QUEUED
    app.queue.drain(app.another().handle)
    assert (app.runs()[0].verdict, len(app.ours())) == ("reproduced", 1)


def test_a_dead_workers_run_is_taken_over_and_its_attempts_are_kept():
    app = App(lease_s=0.2, unheard_s=0.1)
    run = start_one(app)
    seen = []

    def dies(spec):
        seen.append(spec)
        if len(seen) == 2:
            raise SystemExit  # the thread is gone, as a killed process would be
        return FAILS

    app.program = dies
    taken = app.store.take_run(run.id, "dead", 0.2)
    assert taken is not None
    with pytest.raises(SystemExit):
        app._engine(
            taken.request.job,
            journal=StoreJournal(app.store, run.id, "dead"),
            listener=lambda progress: None,
            cancel=Event(),
            clone=None,
        )
    assert len(app.store.entries(run.id, ATTEMPTS)) == 1
    assert reap(app.service.context) == 0, "the lease still holds"
    sleep(0.3)
    assert reap(app.service.context) == 1
    ran = len(seen)
    app.queue.drain(app.another().handle)
    assert len(seen) - ran == 2, "the first attempt is not made again"
    assert (app.runs()[0].verdict, len(app.ours())) == ("reproduced", 1)


def test_a_lease_that_ran_out_while_the_store_was_away_is_not_taken_at_once(monkeypatch):
    """Its holder lives, and could not renew it."""
    app = App(lease_s=0.3, unheard_s=0.1)
    run = start_one(app)
    reaping = app.another().ticks()[0]
    assert app.store.take_run(run.id, "alive", 0.3) is not None

    def away(*_arguments, **_options):
        raise TransientError("the database is away")

    with monkeypatch.context() as patch:
        patch.setattr(app.store, "overdue", away)
        sleep(0.4)
        with pytest.raises(TransientError):
            reaping.do()
    reaping.do()
    assert not app.store.beat(run.id, "alive", 0.3).lost
    sleep(0.4)
    reaping.do()
    assert app.store.beat(run.id, "alive", 0.3).lost, "who does not renew it then has died"


class Elsewhere:
    """Halts the first run of a version that is not the reported one: there a proof is under way."""

    def __init__(self):
        self.began, self.go_on, self.halted, self.seen = Event(), Event(), 0, []

    def __call__(self, spec):
        self.seen.append(spec.env["LIB"])
        if spec.env["LIB"] != "1.18" and not self.began.is_set():
            self.began.set()
            self.go_on.wait(10)


def in_a_proof(**house):
    """An App whose run is in the middle of a proof, with its thread and the event that stops its
    worker.
    """
    there = Elsewhere()
    app = Versions(there, "defaults: {proofs: [control, bisect]}", **house)
    run = start_one(app)
    thread, stop = working(app, Task(kind="run", id=run.id))
    assert there.began.wait(60)
    return app, there, thread, stop


def test_cancel_in_the_middle_of_a_proof_leaves_the_verdict_and_says_who_stopped_it():
    app, there, thread, _ = in_a_proof()
    app.store.cancel("max", run=app.runs()[0].id)
    sleep(0.2)
    there.go_on.set()
    thread.join(5)
    (run,) = app.runs()
    assert (run.state, run.verdict) == (RunState.FINISHED, "reproduced")
    notes = app.report().notes_on()
    assert (
        notes[0] == "stopped by max: the verdict is final, but the proofs after it are incomplete"
    )
    assert any(note.startswith("stopped on request") for note in notes[1:])
    (body,) = app.ours()
    assert "**Reproduced" in body
    assert body.rpartition("<sub>")[2].count("stopped by max") == 1
    assert app.hub.issue("acme/lib", 3).labels == ["reprise: reproduced"]


def test_a_worker_that_ends_during_a_proof_releases_the_run_and_another_resumes_it():
    app, there, thread, stop = in_a_proof()
    stop.set()
    sleep(0.2)
    there.go_on.set()
    thread.join(5)
    (run,) = app.runs()
    kept, ran = len(app.store.entries(run.id, ATTEMPTS)), len(there.seen)
    assert (run.state, run.verdict, app.store.report(run.id)) == (RunState.QUEUED, "", None)
    assert kept >= 3
    app.queue.drain(app.another().handle)
    found = app.report()
    assert (found.verdict.control.type, found.bisection.first_fixed.at) == ("fixed-version", "1.20")
    assert not any("stopped" in note for note in found.notes_on())
    assert len(there.seen) - ran == len(found.attempts) - kept, "what was kept is not run again"
    whole = Versions(config="defaults: {proofs: [control, bisect]}")
    whole.deliver()
    assert [each.change for each in found.attempts] == [
        each.change for each in whole.report().attempts
    ]


def test_cancel_while_the_second_worker_goes_on_with_a_proof():
    app, there, thread, stop = in_a_proof()
    stop.set()
    sleep(0.2)
    there.go_on.set()
    thread.join(5)
    there.began.clear()
    there.go_on.clear()
    (run,) = app.runs()
    kept = len(app.store.entries(run.id, ATTEMPTS))
    thread, _ = working(app, Task(kind="run", id=run.id, turn=run.turn))
    assert there.began.wait(60)
    app.store.cancel("max", run=run.id)
    sleep(0.2)
    there.go_on.set()
    thread.join(5)
    (run,) = app.runs()
    assert (run.state, run.verdict) == (RunState.FINISHED, "reproduced")
    assert app.report().notes_on()[0].startswith("stopped by max")
    assert len(app.report().attempts) >= kept


def test_what_a_proof_went_on_from_is_there_for_the_next_worker_and_is_not_counted_twice():
    there = Elsewhere()
    app = Versions(there, "defaults: {proofs: []}")
    app.deliver()
    (first,) = app.runs()
    costly = app.report().model_copy(
        update={
            "cost": Usage(calls=1, usd=0.25),
            "notes": (Note(kind="run", text="stopped by hubot"), Note(kind="run", text="a note")),
            "interrupted": "stopped by hubot",
        }
    )
    app.store.replace_report(first.id, costly)
    kept = app.queue.offer
    app.queue.offer = lambda task, delay_s=0.0: (
        kept(task, delay_s) if task.kind == "delivery" else None
    )
    app.deliver("comment", command("bisect"), sender="max")
    app.queue.offer = kept
    thread, stop = working(app, Task(kind="run", id=app.runs()[0].id))
    assert there.began.wait(60)
    stop.set()
    sleep(0.2)
    there.go_on.set()
    thread.join(5)
    assert app.runs()[0].state is RunState.QUEUED
    ran, had = len(there.seen), len(app.store.entries(app.runs()[0].id, ATTEMPTS))
    app.queue.drain(app.another().handle)
    found = app.report()
    assert (found.bisection.first_fixed.at, found.verdict.control.type) == ("1.20", "fixed-version")
    assert found.attempts[:3] == costly.attempts
    assert len(there.seen) - ran == len(found.attempts) - had
    assert found.notes_on()[0] == "a note"
    assert app.store.usage(NOW - timedelta(days=9999)).usd == 0, "models cost nothing here"


def test_cancel_before_a_proof_has_begun_takes_no_verdict_away():
    app = Versions(config="defaults: {proofs: []}")
    app.deliver()

    def stops(spec, *, cancel=None):
        app.store.cancel("max", run=app.runs()[0].id)
        until(cancel.is_set)
        raise Stopped("the build was cancelled")

    app.builder = lambda: SimpleNamespace(build=stops)
    app.deliver("comment", command("bisect"), sender="max")
    assert [run.verdict for run in app.runs()] == ["cancelled", "reproduced"]
    assert "**Reproduced" in app.ours()[0]
    assert app.hub.issue("acme/lib", 3).labels == ["reprise: reproduced"]


def test_a_proof_of_an_environment_that_is_no_more_begins_anew():
    app = Versions(config="defaults: {proofs: []}")
    app.deliver()
    left = [True]

    def gone_once(spec):
        if left.pop() if left else False:
            raise BuildError("the index has it no more")
        return resolved(spec)

    app.builder = lambda: FakeBuilder(on_build=gone_once, released={"lib": released(40)})
    app.deliver("comment", command("bisect"), sender="max")
    assert [each is not None for each in app.earlier] == [False, True, False]
    assert app.report().bisection.first_fixed.at == "1.20"


def test_a_worker_that_lost_its_lease_in_a_proof_reports_nothing():
    app, there, thread, _ = in_a_proof(beat_s=3600.0)
    (run,) = app.runs()
    app.ahead += 60
    assert reap(app.service.context) == 1
    assert app.store.take_run(run.id, "another", 60.0) is not None
    kept = app.store.entries(run.id, ATTEMPTS)
    there.go_on.set()
    thread.join(5)
    (run,) = app.runs()
    assert (run.state, run.verdict, app.store.report(run.id)) == (RunState.RUNNING, "", None)
    assert app.store.entries(run.id, ATTEMPTS) == kept
    assert not any("Reproduced" in body for body in app.ours())


def test_the_end_of_a_runs_time_in_a_proof_leaves_the_verdict_and_says_so():
    app, there, thread, _ = in_a_proof()
    object.__setattr__(
        app.house, "run_minutes", 0
    )  # its time ends now: where the run has come to by then is certain
    sleep(0.2)
    there.go_on.set()
    thread.join(5)
    (run,) = app.runs()
    assert (run.state, run.verdict) == (RunState.FINISHED, "reproduced")
    assert (
        app.report()
        .notes_on()[0]
        .startswith("stopped at the limit of 0 minutes per job: the verdict is final")
    )
    assert "the verdict is final" in app.ours()[0]


def test_an_answer_lost_on_the_way_makes_no_second_comment():
    app = App(unheard_s=0.0, beat_s=60.0)
    app.hub.lose_answer(TransientError("connection reset"), "create_comment")
    app.deliver()
    assert app.runs()[0].state is RunState.REPORTED
    app.resume()
    assert app.runs()[0].state is RunState.FINISHED
    assert len(app.ours()) == 1
    assert len(app.worked) == 1, "the verdict was kept; only the telling is done again"


def test_github_asking_to_wait_defers_the_telling():
    app = App(beat_s=60.0)
    app.hub.fail(Throttled("secondary limit", 60.0), "create_comment")
    app.deliver()
    assert (app.runs()[0].state, app.ours()) == (RunState.REPORTED, [])
    app.resume()
    assert (app.runs()[0].state, len(app.ours())) == (RunState.FINISHED, 1)


def test_a_deleted_sticky_comment_comes_back_with_the_verdict_only():
    app = App()
    app.deliver()
    (comment,) = app.hub.ours("acme/lib", 3)
    del app.hub.comments[comment.id]
    app.deliver("comment", command(seed=5), sender="max")
    assert len(app.ours()) == 1


def test_a_second_run_of_the_issue_replaces_the_comment():
    app = App()
    app.deliver()
    app.program = lambda spec: RunResult(exit_code=0, stdout="done\n", seconds=0.1)
    app.deliver("comment", command(seed=5), sender="max")
    (body,) = app.ours()
    assert "Not reproduced" in body
    assert app.hub.issue("acme/lib", 3).labels == ["reprise: not reproduced"]


def test_a_defect_of_ours_is_admitted_once():
    app = App()

    def broken(*_, **__):
        raise ZeroDivisionError("our own fault")

    app._engine = broken
    app.service = app.another()
    app.deliver()
    (run,) = app.runs()
    assert run.state is RunState.FAILED
    assert "ZeroDivisionError" in run.error
    (body,) = app.ours()
    assert run.id in body
    assert "ZeroDivisionError" not in body


def test_a_defect_of_ours_in_a_proof_is_logged_and_the_verdict_told(caplog):
    secret = "hunter2-of-the-house"
    app = App(secrets=(secret,))
    engine = app._engine

    def broken(job, **more):
        return engine(job, **more).model_copy(
            update={"defects": {"bisect": f"Traceback: ZeroDivisionError {secret}"}}
        )

    app._engine = broken
    app.service = app.another()
    app.deliver()
    (run,) = app.runs()
    assert run.state is RunState.FINISHED
    (line,) = [
        each.getMessage() for each in caplog.records if "a defect ended bisect" in each.getMessage()
    ]
    assert "Traceback: ZeroDivisionError" in line
    assert secret not in line
    assert app.store.report(run.id).defects == {}


def test_a_private_repository_is_cloned_with_a_token_that_is_kept_nowhere():
    app = App()
    private = REPOSITORY.model_copy(update={"private": True})
    app.deliver(repository=private)
    (clone,) = app.clones
    assert clone is not None
    (run,) = app.runs()
    assert clone.token not in run.model_dump_json() + app.store.report(
        run.id
    ).model_dump_json() + "".join(app.ours())
    app = App()
    app.deliver()
    assert app.clones == [None]


def test_a_run_gets_the_data_that_the_configuration_names_and_the_weights_that_the_issue_names():
    config = "data: {data/mnist: mnist}\ndefaults: {proofs: [], clone: always}\n"
    app = App(config=config, weights=("lib.fit", "org/tiny"))
    app.deliver("comment", command(), sender="passer-by")
    assert "- `mnist` at `data/mnist`" in app.ours()[0]
    assert "- `lib.fit`" in app.ours()[0]
    app.deliver("comment", command(), sender="max")
    options = app.worked[0].environment
    assert (options.data, options.weights) == ({"data/mnist": "mnist"}, ("lib.fit",))


def test_deliveries_that_never_arrived_are_asked_for_again():
    app = App()
    at = datetime.now(UTC) - timedelta(minutes=10)
    known = app.deliver()
    app.hub.deliveries += [
        Hook(id=1, guid="lost", event="issues", ok=False, at=at),
        Hook(id=2, guid=known.guid, event="issues", ok=False, at=at),
        Hook(id=3, guid="fine", event="issues", ok=True, at=at),
        Hook(id=4, guid="under way", event="issues", ok=False, at=datetime.now(UTC)),
        *(Hook(id=5 + n, guid="refused", event="issues", ok=False, at=at) for n in range(5)),
    ]

    def asked():
        return [write.id for write in app.hub.writes if write.what == "redeliver"]

    assert reconcile(app.service.context) == 1
    assert asked() == [1]
    app.service.context.now = lambda: time() + 1800
    reconcile(app.service.context)
    assert 9 in asked(), "what fails again and again is asked for ever more rarely, not given up"
    app.service.context.now = lambda: time() + 70 * 3600
    reconcile(app.service.context)
    assert asked().count(9) == 2
    app.service.context.now = lambda: time() + 72 * 3600
    assert reconcile(app.service.context) == 0, "GitHub no longer has it"


def test_one_of_all_workers_asks_github_for_what_never_arrived():
    app = App()
    services = [Service(app.service.context, reconcile_s=300.0) for _ in range(3)]
    ticks = [tick for one in services for tick in one.ticks() if tick.name == "reconcile"]

    def asked():
        for tick in ticks:
            tick.do()
        return app.hub.calls.count("hooks")

    assert asked() == 1
    app.ahead += 301
    assert asked() == 2


def test_a_delivery_looked_at_twice_is_answered_once():
    app = App()
    app.hub.fail(TransientError("away"), "react")
    delivery = app.deliver("comment", command("help"), sender="passer-by")
    app.resume()
    assert len(app.ours()) == 1
    assert app.reactions(delivery) == {"+1"}


def test_the_next_run_of_an_issue_goes_on_when_the_first_is_done():
    slow = Slow()
    app = App(slow)
    run = start_one(app)
    thread, _ = working(app, Task(kind="run", id=run.id))
    assert slow.began.wait(60)
    app.deliver("comment", command(seed=9), sender="max")
    assert [each.state for each in app.runs()] == [RunState.QUEUED, RunState.RUNNING]
    slow.go_on.set()
    thread.join(5)
    app.queue.drain(app.service.handle)
    assert [each.state for each in app.runs()] == [RunState.FINISHED, RunState.FINISHED]
    assert len(app.ours()) == 1


def test_who_withdraws_their_own_plan_takes_no_verdict_away():
    app = App()
    app.deliver()
    app.deliver("comment", command(python="3.10"), sender="stranger")
    app.deliver("comment", command("cancel"), sender="stranger")
    sticky, plan = app.ours()
    assert "Reproduced" in sticky
    assert "`stranger` withdrew it before approval." in plan
    assert "/reproduce approve" not in plan
    assert app.hub.issue("acme/lib", 3).labels == ["reprise: reproduced"]


def test_a_run_that_was_stopped_before_it_began_takes_no_verdict_away():
    app = App()
    app.deliver()
    app.queue.offer, kept = (
        (lambda task, delay_s=0.0: kept(task, delay_s) if task.kind == "delivery" else None),
        app.queue.offer,
    )
    app.deliver("comment", command(seed=4), sender="max")
    app.queue.offer = kept
    app.deliver("comment", command("cancel"), sender="max")
    assert [run.verdict for run in app.runs()] == ["cancelled", "reproduced"]
    assert "**Reproduced**" in app.ours()[0]


def test_a_later_verdict_names_the_earlier_one_and_who_asked():
    app = App()
    app.deliver()
    app.program = lambda spec: RunResult(exit_code=0, stdout="done\n", seconds=0.1)
    app.deliver("comment", command(seed=5), sender="max")
    (body,) = app.ours()
    assert "Requested by `max`" in body
    assert "an earlier run: reproduced" in body


def test_an_approval_covers_the_options_too_and_equal_requests_are_one():
    app = App(config="")
    app.deliver("comment", command(), sender="stranger")
    app.deliver("comment", command(timeout_s=3600.0, runs=200), sender="stranger")
    plans = [run.plan for run in app.runs()]
    assert len(set(plans)) == 2
    app.deliver("comment", command(), sender="another")
    assert len(app.runs()) == 2, "the same request waits already"
    app.deliver("comment", command("approve", plans[-1]), sender="max")
    (job,) = app.worked
    assert (job.limits.timeout_s, job.limits.max_runs) == (120.0, 40)
    assert job.without == ("model",), "no model may add programs to what was approved"
    approved = [
        body for body in app.ours() if "reprise:plan:" in body and "`max` approved it" in body
    ]
    assert len(approved) == 1


def test_a_kill_switch_holds_what_is_queued_and_lets_people_stop_things():
    app = App()
    run = start_one(app)
    app.store.set_switch("all", "The lab is closed.")
    app.service.handle(Task(kind="run", id=run.id), Event())
    assert (app.runs()[0].state, app.worked) == (RunState.QUEUED, [])
    app.deliver("comment", command("cancel"), sender="max")
    app.queue.drain(app.service.handle)
    assert app.runs()[0].verdict == "cancelled"
    app = App()
    run = start_one(app)
    app.store.set_switch("acme/lib", "closed")
    app.service.handle(Task(kind="run", id=run.id), Event())
    app.store.set_switch("acme/lib", None)
    app.resume()
    assert app.runs()[0].verdict == "reproduced"


def test_one_comment_gets_one_reply():
    app = App()
    delivery = app.deliver(
        "comment", command("help"), command("status"), command("config"), sender="passer-by"
    )
    (body,) = app.ours()
    assert "/reproduce status" in body
    assert "triggers" in body
    assert app.reactions(delivery) == {"+1"}


def test_a_quota_is_told_once_a_day():
    app = App()
    app.hub.repository("acme/lib").files[".github/reprise.yml"] = "quota:\n  person: 0\n"
    for seed in range(3):
        app.deliver("comment", command(seed=seed), sender="max")
    assert len(app.ours()) == 1


def test_who_may_not_write_is_answered_so_often_a_day():
    app = App()
    asked = [app.deliver("comment", command("help"), sender="passer-by") for _ in range(23)]
    assert len(app.ours()) == 20
    assert app.reactions(asked[19]) == {"+1"}
    assert app.reactions(asked[-1]) == set(), "a reaction is a write too"
    for _ in range(23):
        app.deliver("comment", command("help"), sender="max")
    assert len(app.ours()) == 43
    app.deliver("comment", command("help"), sender="another")
    assert len(app.ours()) == 44
    tomorrow = Service(
        AppContext(
            app.store, app.queue, app.hub, app._engine, app.house, now=lambda: time() + 86_400
        )
    )
    app.service = tomorrow
    app.deliver("comment", command("help"), sender="passer-by")
    assert len(app.ours()) == 45


def test_an_outsiders_new_issue_waits_where_authors_may_not_run():
    app = App()
    app.hub.repository("acme/lib").files[".github/reprise.yml"] = "author_may_run: false\n"
    app.deliver()
    assert ([run.state for run in app.runs()], app.worked) == ([RunState.WAITING], [])
    app.hub.repository("acme/lib").permissions["reporter"] = "write"
    app.deliver(number=4)
    assert len(app.worked) == 1
