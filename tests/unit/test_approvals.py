"""An approval is for one plan, and that plan shows all that will run: what an outsider may try."""

from __future__ import annotations

import hashlib
import re
from types import SimpleNamespace

import pytest
from sqlalchemy import update

from bot.app import requests
from bot.app.store.tables import runs
from bot.kernel.errors import TransientError
from bot.kernel.run import RunState
from handlers.commands import parse
from tests.unit.test_decisions import again
from tests.unit.test_service import BODY, App, command
from tests.unit.test_verbatim import PEM, TOKEN

EVIL = BODY.replace("lib.fit()", "lib.fit(steal=True)")
OWNER_APPROVES = "outsiders: approve\nauthor_may_run: false\ndefaults:\n  proofs: []\n"


def hash_in(body: str) -> str:
    return re.search(r"`/reproduce approve ([0-9a-f]+)`", body)[1]


def says(app: App, line: str, **more):
    return app.deliver("comment", *parse(line), **{"sender": "max", **more})


@pytest.fixture
def colliding(monkeypatch):
    """An outsider has searched until all their plans begin with the same 12 digits."""

    def sha256(data):
        return SimpleNamespace(hexdigest=lambda: "0" * 12 + hashlib.sha256(data).hexdigest()[12:])

    monkeypatch.setattr(requests, "hashlib", SimpleNamespace(sha256=sha256))


@pytest.mark.usefixtures("colliding")
def test_an_approval_from_the_mail_does_not_run_a_plan_that_took_its_place():
    app = App()
    app.deliver("comment", command(seed=1), sender="stranger")
    (mailed,) = app.ours()
    app.deliver("comment", command("cancel"), sender="stranger")
    app.deliver("comment", command(seed=2), sender="stranger", body=EVIL)
    harmless, evil = app.ours()
    assert "withdrew it before approval" in harmless
    assert "steal" not in harmless
    assert "steal" in evil
    assert hash_in(evil) != hash_in(mailed)
    says(app, f"/reproduce approve {hash_in(mailed)}")
    assert app.worked == []
    assert "is not the hash of a waiting plan" in app.ours()[-1]
    says(app, f"/reproduce approve {hash_in(mailed)[:12]}")
    assert app.worked == []
    says(app, f"/reproduce approve {hash_in(evil)}")
    assert [job.limits.seed for job in app.worked] == [2]
    assert "withdrew it before approval" in app.ours()[0], "its comment stays as it was"


@pytest.mark.usefixtures("colliding")
def test_two_plans_that_wait_are_two_comments():
    app = App()
    for seed in (1, 2):
        app.deliver("comment", command(seed=seed), sender="stranger")
    first, second = app.ours()
    says(app, f"/reproduce approve {hash_in(second)}")
    assert [job.limits.seed for job in app.worked] == [2]
    assert app.ours()[0] == first


def test_the_whole_hash_is_shown_and_nothing_shorter_will_do():
    app = App()
    app.deliver("comment", command(), sender="stranger")
    whole = hash_in(app.ours()[0])
    assert len(whole) == 32
    says(app, "/reproduce status")
    assert hash_in(app.ours()[-1]) == whole
    for digits in (12, 31):
        says(app, f"/reproduce approve {whole[:digits]}")
        assert "copy it from the comment that shows the plan" in app.ours()[-1]
    says(app, f"/reproduce approve {whole[:31]}{'0' if whole[31] != '0' else '1'}")
    assert "is not the hash of a waiting plan" in app.ours()[-1]
    assert app.worked == []


def test_the_same_request_again_has_another_hash_which_a_redelivery_keeps():
    app = App()
    app.deliver("comment", command(), sender="stranger")
    app.deliver("comment", command("cancel"), sender="stranger")
    app.hub.fail(TransientError("502"), "create_comment")
    asked = app.deliver("comment", command(), sender="stranger", digest="a" * 64)
    app.resume()
    shown = hash_in(app.ours()[-1])
    again(app, asked)
    new, old = app.runs()
    assert (new.plan, old.plan != new.plan) == (shown, True)
    assert [hash_in(body) for body in app.ours() if "Waiting" in body] == [shown]


def planned_otherwise(monkeypatch):
    """A newer version of Reprise makes another program of the same issue."""
    usual = requests.plan_job

    def plan(job):
        made = usual(job)
        return made.model_copy(update={"others": (made.script,)})

    monkeypatch.setattr(requests, "plan_job", plan)


def test_a_plan_that_a_newer_version_makes_otherwise_is_not_approved(monkeypatch):
    app = App()
    app.deliver("comment", command(), sender="stranger")
    planned_otherwise(monkeypatch)
    says(app, f"/reproduce approve {hash_in(app.ours()[0])}")
    app.queue.drain(app.service.handle)
    assert app.worked == []
    assert "The plan has changed" in app.ours()[1]
    assert "`Reprise (its plan has changed)` withdrew it" in app.ours()[0]


def test_asking_again_replaces_a_plan_that_nobody_can_approve(monkeypatch):
    app = App()
    app.deliver("comment", command(), sender="stranger")
    planned_otherwise(monkeypatch)
    app.deliver("comment", command(), sender="stranger")
    app.queue.drain(app.service.handle)
    stale, new = app.ours()
    assert "withdrew it before approval" in stale
    says(app, f"/reproduce approve {hash_in(new)}")
    assert len(app.worked) == 1


def test_a_plan_of_an_earlier_version_is_asked_for_again():
    """Its hash had no part of the run's id, and its comment showed 12 digits of it."""
    app = App()
    app.deliver("comment", command(), sender="stranger")
    (old,) = app.runs()
    with app.store._db.writing() as connection:
        connection.execute(update(runs).values(plan=old.request.plan))
    assert app.runs()[0].plan == old.request.plan
    says(app, f"/reproduce approve {old.request.plan[:12]}")
    assert "ask for the run again with `/reproduce`" in app.ours()[-1]
    app.deliver("comment", command(), sender="another")
    app.queue.drain(app.service.handle)
    new, before = app.runs()
    assert (before.verdict, new.state) == ("cancelled", RunState.WAITING)
    with app.store._db.writing() as connection:
        connection.execute(update(runs).where(runs.c.id == new.id).values(plan=new.request.plan))
    says(app, f"/reproduce approve {new.request.plan}")
    app.queue.drain(app.service.handle)
    assert app.worked == []
    assert "The plan has changed. Ask for the run again" in app.ours()[-1]


def issue(program: str) -> str:
    return BODY.replace("lib.fit()\n", program, 1)


HIDDEN = f"# {PEM[0]}\nlib.steal()\n# {PEM[1]}\nlib.fit()\n"


@pytest.mark.parametrize(
    ("body", "line"),
    [
        (issue(HIDDEN), "lines 2 to 4"),
        (issue(f"lib.fit()\n# {PEM[0]}\nlib.steal()\n"), "lines 3 to 4"),
        (issue(f"lib.fit('{TOKEN}')\n"), "line 2"),
        (issue("lib.fit('\u00a0')\n"), "line 2"),
        (issue("lib.fit()\n" + "lib.step(1, 2, 3, 4)\n" * 2_900), "too long"),
        (
            BODY.replace("```python\nimport lib\nlib.fit()\n```", "<pre>import lib\nlib.fit('&#x202e;')</pre>"),
            "line 2",
        ),
        (f"{BODY}\nThis works fine:\n\n```python\nimport lib\n{HIDDEN}```\n", "Variant that should work"),
        (f"{BODY}\nAlso:\n\n```python\nimport lib\nlib.fit(2)\n{HIDDEN}```\n", "Script "),
    ],
    ids=["key", "endless key", "token", "blank", "long", "bidi", "contrast", "others"],
)  # fmt: skip
def test_a_plan_that_hides_what_runs_is_not_offered(body, line):
    app = App()
    asked = app.deliver("comment", command(), sender="stranger", body=body)
    (told,) = app.ours()
    assert app.runs() == ()
    assert app.reactions(asked) == {"confused"}
    assert "Not offered for approval" in told
    assert line in told
    assert "/reproduce approve" not in told
    assert TOKEN not in told
    app.deliver("comment", command(), sender="stranger")
    assert "Waiting for approval" in app.ours()[-1], "asked again without it"


def test_the_plan_of_a_new_issue_that_hides_what_runs_is_refused_in_a_comment_of_limited_number():
    app = App(config=OWNER_APPROVES)
    opened = app.deliver(body=issue(HIDDEN), digest="a" * 64)
    again(app, opened)
    (told,) = app.ours()
    assert "`repro.py`, lines 2 to 4: what looks like a credential" in told
    for number in range(4, 30):
        app.deliver(body=issue(HIDDEN), number=number)
    assert sum(len(app.ours(number)) for number in range(3, 30)) == 20
    assert app.runs() == ()


COMMANDED = """```
cd tools
python train.py --size 5 --name "two words"
```

```
Traceback (most recent call last):
  File "/home/me/lib/tools/train.py", line 5, in <module>
    raise ValueError("size 5 is not even")
ValueError: size 5 is not even
```
"""


def test_a_plan_shows_the_commands_of_the_repository_and_is_for_these_alone():
    app = App()
    app.deliver("comment", command(), sender="stranger", body=COMMANDED, title="It fails")
    (plan,) = app.ours()
    assert "`python train.py --size 5 --name 'two words'` in `tools`" in plan
    other = COMMANDED.replace("--size 5", "--size 7")
    app.deliver("comment", command(), sender="stranger", body=other, title="It fails")
    assert hash_in(app.ours()[-1]) != hash_in(plan)


def test_a_plan_shows_the_commands_that_may_run_before_another():
    app = App()
    body = COMMANDED.replace("python train.py", "python prepare.py --all\npython train.py")
    app.deliver("comment", command(), sender="stranger", body=body, title="It fails")
    (plan,) = app.ours()
    program = "`python train.py --size 5 --name 'two words'` in `tools`"
    assert f"{program}, after `python prepare.py --all`" in plan
    other = body.replace("--all", "--none")
    app.deliver("comment", command(), sender="stranger", body=other, title="It fails")
    assert hash_in(app.ours()[-1]) != hash_in(plan)


@pytest.mark.parametrize(
    ("setting", "choices", "clone"),
    [
        ("auto", {}, (True, True)),
        ("auto", {"ref": "main"}, (True, False)),
        ("always", {}, (True, False)),
        ("never", {}, (False, False)),
    ],
)
def test_a_public_clone_is_for_commands_unless_it_is_asked_for(setting, choices, clone):
    app = App(config=f"defaults:\n  proofs: []\n  clone: {setting}\n")
    app.deliver("comment", command(**choices), sender="max")
    environment = app.worked[-1].environment
    assert (bool(environment.repo), environment.for_commands) == clone
