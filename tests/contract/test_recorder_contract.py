"""Every recorder keeps the same promises: what one process kept of a job, the next one of the
same job goes on from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bot.adapters.model.cassette import Recording
from bot.adapters.run_folder.folder import Folder
from bot.errors import Stopped
from bot.models.bug import Issue
from bot.models.job import Job
from bot.ports import Recorder
from bot.service.recording import StoreRecorder
from sandbox.port import RunResult
from tests.contract.samples import SCRIPT, attempt, exchange, new_run
from tests.support.fakes import FrozenClock, MemoryRecorder, MemoryStore, ScriptedModel

Process = Callable[[], Recorder]
JOB = Job(issue=Issue(title="NaN", body="loss is nan"))


@pytest.fixture(params=["memory", "folder", "store"])
def process(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Process]:
    """Makes the recorder of one process after the other; each one is killed where the next one
    begins.
    """
    folders: list[Folder] = []
    memory: list[MemoryRecorder] = []
    clock = FrozenClock()
    store = MemoryStore(clock=clock)
    run = store.add_run(new_run())[0].id

    def folder() -> Recorder:
        for each in folders:
            each.close()
        folders.append(Folder(tmp_path / "run"))
        folders[-1].begin(JOB)
        return folders[-1]

    def stored() -> Recorder:
        clock.advance(100)
        store.overdue(1000)  # gives back what a dead worker held
        assert store.take_run(run, f"worker {clock.now}", 60) is not None
        return StoreRecorder(store, run, f"worker {clock.now}")

    def remembered() -> Recorder:
        last = memory[-1] if memory else MemoryRecorder()
        earlier = {
            **{each.number: each for each in last.earlier},
            **{each.number: each for each in last.attempts},
        }
        programs, told = {**last.programs, **last.scripts}, (*last.told, *last.asked)
        memory.append(MemoryRecorder(earlier=tuple(earlier.values()), programs=programs, told=told))
        return memory[-1]

    yield {"memory": remembered, "folder": folder, "store": stored}[request.param]
    for each in folders:
        each.close()


def keep(recorder: Recorder, number: int) -> None:
    recorder.log(number, SCRIPT, RunResult(exit_code=1, stdout="out", stderr="", seconds=1.0))
    recorder.attempt(attempt(number).model_copy(update={"script": SCRIPT.digest}))


def test_attempts_are_recalled_by_the_next_process_with_their_programs(process: Process) -> None:
    first = process()
    assert (first.recall(1), first.program(1)) == (None, None)
    for number in (1, 2):
        keep(first, number)
    again = process()
    assert [again.recall(number) is not None for number in (1, 2, 3)] == [True, True, False]
    assert (again.program(2), again.program(3)) == (SCRIPT, None)


def test_what_a_model_was_asked_is_told_to_the_next_process(process: Process) -> None:
    first = process()
    assert first.exchanges() == ()
    for number in (1, 2):
        first.exchange(exchange(number, f"question {number}"))
    again = process()
    assert again.exchanges() == (exchange(1, "question 1"), exchange(2, "question 2"))
    again.exchange(exchange(3, "question 3"))
    assert [each.number for each in process().exchanges()] == [1, 2, 3]


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
    late = StoreRecorder(store, run, "one")
    clock.advance(20)
    store.overdue(1000)
    assert store.take_run(run, "two", 10) is not None
    with pytest.raises(Stopped, match="taken over"):
        late.exchange(exchange(1, "late"))
    assert store.exchanges(run) == ()
