"""The agent's loop over a bench in memory: what it may do, how it ends, and that a killed one goes
on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from bot.kernel.dialogue import Question
from bot.kernel.job import ModelLimits
from bot.model.agent import STEPS, Agent, AgentEnd, AgentTask
from bot.model.budget import ModelBudget
from bot.papers.workbench import text_files
from sandbox.port import RunResult, SandboxError
from tests.support.engine import FrozenClock, MemoryJournal
from tests.support.model import Answers, ScriptedModel
from tests.support.papers import paper_ports

TASK = AgentTask(id="write", text="Write it.", run="runs it")
DRY = AgentTask(id="write", text="Write it.", run="runs it", needs_dry_run=True)
CAUSE = {"cause": "a typo", "places": [{"path": "main.py", "line": 1}], "plan": "mend it"}


def fine(_: dict[str, str], sampled: bool) -> RunResult:
    return RunResult(exit_code=0, stdout="accuracy: 0.5\n", seconds=1.0)


@dataclass
class MemoryBench:
    """Files in memory; programs are a function of them."""

    program: Callable[[dict[str, str], bool], RunResult] = fine
    files: dict[str, str] = field(default_factory=dict)
    commands: list[tuple[str, ...]] = field(default_factory=list)
    runs: list[bool] = field(default_factory=list)

    def start(self, files: Mapping[str, str]) -> None:
        self.files = dict(files)

    def exec(self, argv: tuple[str, ...], wall_s: float) -> RunResult:
        self.commands.append(argv)
        if argv[-1] == "break":
            raise SandboxError("it is full")
        return RunResult(exit_code=0, stdout=f"did {argv[-1]}", seconds=0.1)

    def run(self, *, sampled: bool) -> RunResult:
        self.runs.append(sampled)
        return self.program(self.files, sampled)

    def put(self, files: Mapping[str, str]) -> None:
        self.files |= files

    def texts(self) -> dict[str, str]:
        return dict(self.files)


def act(*actions: dict[str, Any]) -> dict[str, Any]:
    return {"thought": "on we go", "actions": list(actions)}


def write(text: str, path: str = "main.py") -> dict[str, Any]:
    return {"action": "write", "path": path, "text": text}


def edit(start: int, end: int, text: str, path: str = "main.py") -> dict[str, Any]:
    return {"action": "edit", "path": path, "start": start, "end": end, "text": text}


def shell(command: str) -> dict[str, Any]:
    return {"action": "shell", "command": command}


SAMPLED = {"action": "run", "sampled": True}
SUBMIT = {"action": "submit", "note": "done so"}


@dataclass
class Worked:
    """An agent with all that it used."""

    agent: Agent
    end: AgentEnd
    model: ScriptedModel
    bench: MemoryBench

    def says(self) -> str:
        """What the last question's last message says."""
        return self.model.asked[-1].messages[-1].content


def work(
    answers: Answers,
    bench: MemoryBench | None = None,
    task: AgentTask = TASK,
    journal: MemoryJournal | None = None,
    **limits: Any,
) -> Worked:
    model, bench = ScriptedModel(answers), bench or MemoryBench()
    journal = journal or MemoryJournal()
    ports = paper_ports(None, journal, model=model, clock=FrozenClock(step=0.01))  # type: ignore[arg-type]
    tries = limits.pop("most_tries", 20)
    options = ModelLimits(**{"max_calls": 40, "max_tokens": 9_000_000, **limits})
    agent = Agent(bench, ModelBudget(ports, options, 0.0), journal, most_tries=tries)
    return Worked(agent, agent.work(task), model, bench)


def test_it_writes_edits_by_line_range_runs_and_submits() -> None:
    done = work(
        [
            act(
                write("a\nb\nc\n"),
                edit(2, 2, "x\ny"),
                edit(1, 0, "top"),
                shell("ls"),
                SAMPLED,
                SUBMIT,
            )
        ]
    )
    assert done.end == AgentEnd(kind="submitted", text="done so")
    assert done.bench.files == {"main.py": "top\na\nx\ny\nc\n"} == done.agent.files
    assert done.bench.commands == [("/bin/sh", "-c", "ls")]
    assert done.bench.runs == [True]


def test_what_follows_a_failed_action_is_not_carried_out() -> None:
    done = work([act(edit(1, 1, "x"), write("y")), act(SUBMIT)])
    assert done.bench.files == {}
    assert "there is no text file" in done.says()
    assert "not carried out" in done.says()


@pytest.mark.parametrize("path", ["../x.py", "/etc/x.py", ".reprise/key", "a/../../x", "a/.git/x"])
def test_no_path_leads_out_of_the_folder(path: str) -> None:
    done = work([act(write("x", path)), act(SUBMIT)])
    assert done.bench.files == {}
    assert "relative, inside the working folder" in done.says()


def test_a_failed_run_is_analysed_before_the_next_edit() -> None:
    def program(files: dict[str, str], _: bool) -> RunResult:
        is_right = files["main.py"] == "right\n"
        return RunResult(exit_code=0 if is_right else 1, stderr="NameError: wrong", seconds=1.0)

    answers = [act(write("wrong\n"), SAMPLED), CAUSE, act(edit(1, 1, "right"), SAMPLED, SUBMIT)]
    done = work(answers, MemoryBench(program))
    stages = [question.prompt.partition("@")[0] for question in done.model.asked]
    assert stages == ["develop", "analyse", "develop"]
    assert "NameError: wrong" in done.model.asked[1].messages[1].content
    assert "1: wrong" in done.model.asked[1].messages[1].content
    assert "a typo" in done.says()
    assert done.end.kind == "submitted"


def test_nothing_is_submitted_without_a_dry_run_of_the_last_edit() -> None:
    first = act(write("a\n"), SAMPLED, edit(1, 1, "b"), SUBMIT)
    done = work([first, act(SAMPLED, SUBMIT)], task=DRY)
    assert "since the last edit no `run`" in done.says()
    assert done.end.kind == "submitted"
    assert len(done.bench.runs) == 2


def test_giving_up_names_what_is_missing() -> None:
    answer = {"action": "give_up", "reason": "no data", "missing": ["the scans of Table 2"]}
    end = work([act(answer)]).end
    assert end == AgentEnd(kind="gave_up", text="no data", missing=("the scans of Table 2",))


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ({"max_calls": 2}, "2 model calls"),
        ({"max_tokens": 30_000}, "30000 tokens"),
        ({"minutes": 0.001}, "0.001 minutes"),
    ],
)
def test_a_limit_ends_it_with_what_was_reached(limits: dict[str, float], words: str) -> None:
    done = work(lambda _: act(write("x" * 4_000), shell("again")), **limits)
    assert done.end.kind == "limit"
    assert words in done.end.text
    if "minutes" not in limits:
        assert done.agent.files == {"main.py": "x" * 4_000}


def test_the_number_of_runs_is_limited() -> None:
    done = work(lambda _: act(write("a"), SAMPLED), most_tries=3)
    assert done.end == AgentEnd(kind="limit", text="the limit of 3 runs per job")
    assert len(done.bench.runs) == 3


def test_a_model_that_never_ends_is_ended() -> None:
    done = work(lambda _: act(shell("ls")), max_calls=1_000)
    assert done.end.text == "the limit of 40 answers per task"


def test_a_sandbox_that_fails_once_is_said_and_one_that_fails_always_is_no_result() -> None:
    done = work([act(shell("break")), act(SUBMIT)])
    assert "it is full" in done.says()
    with pytest.raises(SandboxError):
        work(lambda _: act(shell("break")))


def test_a_killed_agent_goes_on_without_asking_or_running_again() -> None:
    answers = [act(write("a\n")), act(edit(1, 1, "b"), SAMPLED), act(shell("ls"), SUBMIT)]
    whole = work(answers, task=DRY)
    rows = whole.agent.journal.read(STEPS)
    assert len(rows) == 3
    for count in range(4):
        journal = MemoryJournal()
        for row in rows[:count]:
            journal.append(STEPS, row)
        again = work(answers[count:], task=DRY, journal=journal)
        assert again.end == whole.end
        assert again.agent.files == whole.agent.files
        assert again.agent.budget.usage == whole.agent.budget.usage
        assert again.bench.runs == whole.bench.runs[len(whole.bench.runs) * (count > 1) :]
        if count < 3:
            asked, before = again.model.asked[0], whole.model.asked[count]
            assert asked == before


def test_long_results_of_earlier_steps_are_cut() -> None:
    answers = [
        act(write("x\n" * 400), {"action": "read", "path": "main.py", "start": 1, "end": 300})
    ]
    answers += [act(shell("ls"))] * 7 + [act(SUBMIT)]
    done = work(answers)
    first, last = (len(join(question)) for question in (done.model.asked[1], done.model.asked[-1]))
    assert last < first + 4_000
    assert "(cut: an earlier result)" in join(done.model.asked[-1])


def join(question: Question) -> str:
    return "".join(row.content for row in question.messages if row.role != "assistant")


def test_only_text_files_of_some_size_are_kept() -> None:
    rows = {"a.py": b"x", "b.txt": b"\xff", ".hid/x.py": b"x", "big.csv": b"1" * 200_000}
    assert text_files(rows) == {"a.py": "x"}
