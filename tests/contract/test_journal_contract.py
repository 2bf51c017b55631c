"""Every journal keeps the same promises: what one process kept of a job, the next one of the
same job goes on from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bot.app.execute_run import StoreJournal
from bot.kernel.bug import Issue
from bot.kernel.errors import Stopped
from bot.kernel.journal import ATTEMPTS, EXCHANGES, LOGS, PROGRAMS
from bot.kernel.ports import Journal
from bot.model.cassette import Recording
from bot.report.run_folder import Folder
from bot.training.repair.trials import TRIALS
from tests.contract.samples import SCRIPT, attempt, exchange, log, new_run, trial
from tests.support.fakes import FrozenClock, MemoryJournal, MemoryStore, ScriptedModel
from tests.support.jobs import issue_job

Process = Callable[[], Journal]
JOB = issue_job(Issue(title="NaN", body="loss is nan"))


@pytest.fixture(params=["memory", "folder", "store"])
def process(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Process]:
    """Makes the journal of one process after the other; each one is killed where the next one
    begins.
    """
    folders: list[Folder] = []
    memory = MemoryJournal()
    clock = FrozenClock()
    store = MemoryStore(clock=clock)
    run = store.add_run(new_run())[0].id

    def folder() -> Journal:
        for each in folders:
            each.close()
        folders.append(Folder(tmp_path / "run"))
        folders[-1].begin(JOB)
        return folders[-1]

    def stored() -> Journal:
        clock.advance(100)
        store.overdue(1000)  # gives back what a dead worker held
        assert store.take_run(run, f"worker {clock.now}", 60) is not None
        return StoreJournal(store, run, f"worker {clock.now}")

    def remembered() -> Journal:
        return memory

    yield {"memory": remembered, "folder": folder, "store": stored}[request.param]
    for each in folders:
        each.close()


def test_what_one_process_kept_the_next_one_reads_in_order(process: Process) -> None:
    first = process()
    assert first.read(ATTEMPTS) == first.read(EXCHANGES) == first.read(LOGS) == ()
    questions = tuple(exchange(number, f"question {number}") for number in (1, 2))
    logs = tuple(log(number, f"printed {number}\n") for number in (1, 2))
    for entry in questions:
        first.append(EXCHANGES, entry)
    first.append(PROGRAMS, SCRIPT)
    for text in logs:
        first.append(LOGS, text)
    for number in (1, 2):
        first.append(ATTEMPTS, attempt(number))
    for seed in (5, 3, 4):
        first.append(TRIALS, trial(seed, "died"))
    again = process()
    assert [each.number for each in again.read(ATTEMPTS)] == [1, 2]
    assert (again.read(EXCHANGES), again.read(LOGS)) == (questions, logs)
    assert again.read(PROGRAMS) == (SCRIPT,)
    assert [each.trial.seed for each in again.read(TRIALS)] == [5, 3, 4]
    again.append(EXCHANGES, exchange(3, "question 3"))
    assert [each.number for each in process().read(EXCHANGES)] == [1, 2, 3]


def test_an_entry_with_the_key_of_an_earlier_one_takes_the_place_of_all_from_there_on(
    process: Process,
) -> None:
    first = process()
    for number in (1, 2, 3, 4):
        first.append(ATTEMPTS, attempt(number))
    again = process()
    again.append(ATTEMPTS, attempt(2, "anew"))
    again.append(ATTEMPTS, attempt(3, "anew"))
    assert [each.judgement.reason for each in again.read(ATTEMPTS)] == ["met", "anew", "anew"]
    assert [each.judgement.reason for each in process().read(ATTEMPTS)] == ["met", "anew", "anew"]


def test_an_answer_that_was_paid_for_is_not_asked_for_again(process: Process) -> None:
    question = exchange(1, "why").question.model_copy(update={"answer_schema": {}})
    told = Recording(ScriptedModel([{"a": 1}], usd=0.5), process()).ask(question)
    nobody = ScriptedModel([])
    assert Recording(nobody, process()).ask(question) == told
    assert nobody.asked == []


def test_a_worker_that_lost_its_run_keeps_nothing_more() -> None:
    clock = FrozenClock()
    store = MemoryStore(clock=clock)
    run = store.add_run(new_run())[0].id
    store.take_run(run, "one", 10)
    late = StoreJournal(store, run, "one")
    clock.advance(20)
    store.overdue(1000)
    assert store.take_run(run, "two", 10) is not None
    with pytest.raises(Stopped, match="taken over"):
        late.append(EXCHANGES, exchange(1, "late"))
    assert store.entries(run, EXCHANGES) == ()
