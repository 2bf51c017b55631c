"""While a delivery is decided nobody else decides: no report, which may be large, is read then."""

from __future__ import annotations

import pytest

from bot.kernel.training_types import Edit, Repair
from bot.report import verbs
from tests.contract.samples import report
from tests.support.fakes import MemoryStore
from tests.unit.test_service import App, command

EDIT = Edit(parameter="learning_rate", kind="learning_rate", before="1", after="0.1", line=1)


class WatchedStore(MemoryStore):
    """Notes each report that is read inside a decision."""

    deciding = False

    def __init__(self, **options):
        super().__init__(**options)
        self.reads = []

    def decide(self, cause, ordinal, act):
        def inside(ledger):
            ledger.deciding = True
            return act(ledger)

        return super().decide(cause, ordinal, inside)

    def report(self, run):
        if self.deciding:
            self.reads.append(run)
        return super().report(run)


class Repaired(App):
    """An App whose issue has one finished run, with a patch, and a plan that waits."""

    def __init__(self, *, proven):
        super().__init__()
        self.store = WatchedStore(write_gap_s=0, notify_gap_s=0)
        self.service = self.another()
        self.deliver("comment", command("repair"), sender="stranger")
        (run,) = self.runs()
        self.store.approve(run.id, "max")
        self.store.take_run(run.id, "w", 60)
        repair = Repair(patch=(EDIT,), proven=proven)
        found = report(stopped=True).model_copy(update={"repair": repair})
        assert self.store.put_report(run.id, "w", found)
        self.store.finish_run(run.id, "w")
        self.deliver("comment", command(seed=9), sender="stranger")
        self.plan = self.runs()[0].plan


@pytest.mark.parametrize("verb", [word.verb for word in verbs.VERBS])
def test_no_command_reads_a_report_while_it_is_decided(verb):
    app = Repaired(proven=True)
    argument = app.plan if verb == "approve" else ""
    app.deliver("comment", command(verb, argument), sender="max")
    assert app.store.reads == []
    assert app.store.counts()["deliveries.failed"] == 0


@pytest.mark.parametrize(
    ("proven", "answer"), [(True, "Contents and Pull requests"), (False, "not proven to help")]
)
def test_whether_a_patch_is_proven_is_known_without_the_report(proven, answer):
    app = Repaired(proven=proven)
    app.deliver("comment", command("pr"), sender="max")
    assert answer in app.ours()[-1]
    assert app.store.reads == []
