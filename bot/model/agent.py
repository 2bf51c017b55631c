"""An agent that works on files in a sandbox: a model is asked for its next actions, which are
carried out there, until it submits, gives up, or reaches a limit. The journal keeps every step.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import PurePosixPath
from typing import Any, Literal, Protocol

from bot.kernel.dialogue import Message, Question, Usage
from bot.kernel.errors import ModelUnavailable
from bot.kernel.journal import EntryKind
from bot.kernel.outside_text import clean
from bot.kernel.ports import Journal
from bot.kernel.redaction import redact
from bot.kernel.values import Record
from bot.model.budget import BudgetExceeded, ModelBudget, question
from prompts import load
from prompts.catalog import fence
from sandbox.port import RunResult, SandboxError

MOST_OUTPUT = 6_000
"""Characters of an output that the model reads: the beginning and, twice as long, the end."""
MOST_TRIES = 20
_MOST_STEPS, _MOST_TOKENS, _ANALYSIS_TOKENS = 40, 16_000, 1_500
_MOST_READ, _MOST_SHOWN = 300, 60_000
_WHOLE_RESULTS = 6
"""Of so many last steps the results stay whole."""
_SHORTENED = 600
_SHELL_S = 120.0
_MOST_SANDBOX_ERRORS = 3


class Workbench(Protocol):
    """Where an agent works: a folder in a sandbox, and the program that it is about. `start` fills
    it before anything else; what a method cannot do raises SandboxError.
    """

    def start(self, files: Mapping[str, str]) -> None:
        """Open it with these files."""

    def exec(self, argv: tuple[str, ...], wall_s: float) -> RunResult:
        """Run a command in it."""

    def run(self, *, sampled: bool) -> RunResult:
        """Run the program, on a sample or as a whole."""

    def put(self, files: Mapping[str, str]) -> None:
        """Write files."""

    def texts(self) -> dict[str, str]:
        """Its text files."""


class AgentTask(Record):
    """What an agent has to do. `id` is its key in the journal, `run` says what the action of that
    name does. A task that `needs_dry_run` is submitted after a sampled run that ended well.
    """

    id: str
    text: str
    run: str
    needs_dry_run: bool = False


class AgentEnd(Record):
    """How the work on a task ended, and the model's or the limit's words; `missing` is what a model
    that gave up did not have.
    """

    kind: Literal["submitted", "gave_up", "limit"]
    text: str = ""
    missing: tuple[str, ...] = ()


class ActionResult(Record):
    """What came of one action, as the model reads it; `is_failed_run` where the program failed,
    `is_refused_run` where it may not run any more.
    """

    action: str
    says: str
    failed: bool = False
    is_failed_run: bool = False
    is_refused_run: bool = False


class AgentStep(Record):
    """One answer of a model and what came of it. `analysis` came before the answer. `files` are the
    texts that changed, `removed` those that are gone; `runs` counts those of the program so far.
    """

    number: int
    task: str
    answer: dict[str, Any]
    results: tuple[ActionResult, ...]
    analysis: dict[str, Any] | None = None
    files: dict[str, str] = {}
    removed: tuple[str, ...] = ()
    has_dry_run: bool = False
    runs: int = 0
    usage: Usage = Usage()
    end: AgentEnd | None = None


STEPS = EntryKind("steps", AgentStep, lambda step: str(step.number))


class AgentEnded(Exception):
    """The work on a task is over; `end` says how."""

    def __init__(self, end: AgentEnd) -> None:
        super().__init__(end.text)
        self.end = end


class TriesExceeded(BudgetExceeded):
    """The program was run as often as it may be."""


@dataclass
class Agent:
    """Works on one task after the other on one bench; `files` are the texts as they are now. What a
    killed process has kept in the journal is taken over without asking or running anything.
    """

    bench: Workbench
    budget: ModelBudget
    journal: Journal
    files: dict[str, str] = field(default_factory=dict)
    steps: list[AgentStep] = field(default_factory=list)
    on_step: Callable[[AgentStep], None] = lambda _: None
    most_tries: int = MOST_TRIES
    _started: bool = False
    _errors: int = 0

    def __post_init__(self) -> None:
        self._kept = {step.number: step for step in self.journal.read(STEPS)}

    def work(self, task: AgentTask) -> AgentEnd:
        """Work on a task to its end. Raises Stopped and SandboxError."""
        own = list[AgentStep]()
        try:
            for _ in range(_MOST_STEPS):
                step = self._kept_step(task) or self._live_step(task, own)
                own.append(step)
                self.on_step(step)
                if step.end is not None:
                    return step.end
        except (BudgetExceeded, ModelUnavailable) as error:
            return AgentEnd(kind="limit", text=str(error))
        return AgentEnd(kind="limit", text=f"the limit of {_MOST_STEPS} answers per task")

    @property
    def runs(self) -> int:
        """How often the program was run."""
        return self.steps[-1].runs if self.steps else 0

    # A step: taken over, or asked for and carried out.

    def _kept_step(self, task: AgentTask) -> AgentStep | None:
        step = self._kept.get(len(self.steps) + 1)
        if step is None or step.task != task.id or self._started:
            return None
        self.files = {**self.files, **step.files}
        self.files = {path: text for path, text in self.files.items() if path not in step.removed}
        self.budget.usage += step.usage
        self.steps.append(step)
        return step

    def _live_step(self, task: AgentTask, own: list[AgentStep]) -> AgentStep:
        usage = self.budget.usage
        if not self._started:
            self.bench.start(self.files)
            self._started = True
        if self.runs >= self.most_tries and any(row.is_refused_run for row in _last(own)):
            raise TriesExceeded(f"the limit of {self.most_tries} runs per job")
        analysis = self._analysed(own)
        messages = tuple(_conversation(task, own, analysis, self._left()))
        answer = self.budget.ask(_question(messages)).data
        before = dict(self.files)
        turn = _Turn(self, task, has_dry_run=bool(own) and own[-1].has_dry_run)
        results = tuple(turn.results(answer["actions"]))
        step = AgentStep(
            number=len(self.steps) + 1,
            task=task.id,
            answer=answer,
            results=results,
            analysis=analysis,
            files={path: text for path, text in self.files.items() if before.get(path) != text},
            removed=tuple(sorted(before.keys() - self.files.keys())),
            has_dry_run=turn.has_dry_run,
            runs=self.runs + turn.runs,
            usage=_difference(self.budget.usage, usage),
            end=turn.end,
        )
        self.journal.append(STEPS, step)
        self.steps.append(step)
        return step

    def _analysed(self, own: list[AgentStep]) -> dict[str, Any] | None:
        """The cause of a run that failed in the last step, asked for before any edit."""
        failed_run = next((row for row in _last(own) if row.is_failed_run), None)
        if failed_run is None:
            return None
        request = question(
            "writer",
            "analyse",
            _ANALYSIS_TOKENS,
            what=f"`{failed_run.action}`",
            output=failed_run.says,
            files=numbered(self.files),
        )
        return self.budget.ask(request).data

    def _left(self) -> str:
        options, usage = self.budget.options, self.budget.usage
        return load("develop").fragment(
            "left",
            calls=max(0, options.max_calls - usage.calls),
            minutes=max(0, round(options.minutes - self.budget.minutes)),
            tries=max(0, self.most_tries - self.runs),
        )

    def guarded(self, act: Callable[[], ActionResult], action: str) -> ActionResult:
        """What an action says. A sandbox may fail once or twice and go on."""
        try:
            result = act()
        except SandboxError as error:
            self._errors += 1
            if self._errors >= _MOST_SANDBOX_ERRORS:
                raise
            reason = fence("error", clean(str(error)))
            says = load("develop").fragment("no_sandbox", reason=reason)
            return ActionResult(action=action, says=says, failed=True)
        self._errors = 0
        return result


class _Turn:
    """The actions of one answer."""

    def __init__(self, agent: Agent, task: AgentTask, *, has_dry_run: bool) -> None:
        self.agent, self.task = agent, task
        self.has_dry_run, self.runs = has_dry_run, 0
        self.end: AgentEnd | None = None

    def results(self, actions: list[dict[str, Any]]) -> Iterator[ActionResult]:
        """What came of each action; those behind one that failed are not carried out."""
        failed = False
        for action in actions:
            name = action["action"]
            if failed:
                yield ActionResult(action=name, says=load("develop").fragment("skipped"))
                continue
            try:
                result = self.agent.guarded(partial(getattr(self, f"_{name}"), action), name)
            except AgentEnded as ended:
                self.end = ended.end
                yield ActionResult(action=name, says=load("develop").fragment("done"))
                return
            failed = result.failed
            yield result

    def _read(self, action: dict[str, Any]) -> ActionResult:
        path, text = _plain(action["path"]), self.agent.files.get(_plain(action["path"]))
        if text is None:
            return _failed("read", "no_file", path=_fenced_path(action["path"]))
        start = action["start"]
        end = min(action["end"], start + _MOST_READ - 1, len(text.splitlines()))
        says = _says("lines_of", path, text, start, end)
        return ActionResult(action="read", says=says)

    def _write(self, action: dict[str, Any]) -> ActionResult:
        path = _plain(action["path"])
        if not path:
            return _failed("write", "bad_path")
        self._put(path, action["text"])
        return ActionResult(action="write", says=load("develop").fragment("done"))

    def _edit(self, action: dict[str, Any]) -> ActionResult:
        path, start, end = _plain(action["path"]), action["start"], action["end"]
        text = self.agent.files.get(path)
        if text is None:
            return _failed("edit", "no_file", path=_fenced_path(action["path"]))
        lines = text.splitlines()
        if not start - 1 <= end <= len(lines):
            values = {"path": path, "count": len(lines), "start": start, "end": end}
            return _failed("edit", "no_lines", **values)
        new = action["text"].splitlines()
        edited = "\n".join([*lines[: start - 1], *new, *lines[end:]]) + "\n"
        self._put(path, edited)
        last = start + len(new) - 1
        lines_near = (max(1, start - 3), min(last + 3, len(edited.splitlines())))
        return ActionResult(action="edit", says=_says("lines_now", path, edited, *lines_near))

    def _shell(self, action: dict[str, Any]) -> ActionResult:
        argv = ("/bin/sh", "-c", action["command"])
        result = self.agent.bench.exec(argv, _SHELL_S)
        self._refresh()
        says = output_of(result)
        return ActionResult(action="shell", says=says, failed=result.exit_code != 0)

    def _run(self, action: dict[str, Any]) -> ActionResult:
        if self.agent.runs + self.runs >= self.agent.most_tries:
            says = load("develop").fragment("no_runs")
            return ActionResult(action="run", says=says, failed=True, is_refused_run=True)
        self.runs += 1
        sampled = action["sampled"]
        result = self.agent.bench.run(sampled=sampled)
        self._refresh()
        failed = result.exit_code != 0
        self.has_dry_run = (self.has_dry_run or sampled) and not failed
        name = "run, sampled" if sampled else "run"
        says = output_of(result)
        return ActionResult(action=name, says=says, failed=failed, is_failed_run=failed)

    def _submit(self, action: dict[str, Any]) -> ActionResult:
        if self.task.needs_dry_run and not self.has_dry_run:
            return _failed("submit", "no_dry_run")
        raise AgentEnded(AgentEnd(kind="submitted", text=clean(action["note"])))

    def _give_up(self, action: dict[str, Any]) -> ActionResult:
        missing = tuple(clean(text) for text in action["missing"])
        raise AgentEnded(AgentEnd(kind="gave_up", text=clean(action["reason"]), missing=missing))

    def _put(self, path: str, text: str) -> None:
        self.agent.bench.put({path: text})
        self.agent.files = {**self.agent.files, path: text}
        self.has_dry_run = False

    def _refresh(self) -> None:
        self.agent.files = self.agent.bench.texts()


# What the model reads.


def _question(messages: tuple[Message, ...]) -> Question:
    prompt = load("develop")
    return Question(
        role="writer",
        prompt=prompt.id,
        messages=messages,
        answer_schema=prompt.schema,
        most_tokens=_MOST_TOKENS,
    )


def _conversation(
    task: AgentTask, steps: list[AgentStep], analysis: dict[str, Any] | None, left: str
) -> Iterator[Message]:
    """The task, then each answer with its results; those of earlier steps are shortened."""
    prompt = load("develop")
    values = {"characters": str(MOST_OUTPUT), "run": task.run}
    system, first = prompt.render(task=task.text, left=left if not steps else "…", **values)
    yield Message(role="system", content=system)
    yield Message(role="user", content=first)
    analyses = [*(step.analysis for step in steps), analysis][1:]
    for at, (step, after) in enumerate(zip(steps, analyses, strict=True)):
        answer = json.dumps(step.answer, ensure_ascii=False)
        yield Message(role="assistant", content=answer)
        is_recent = len(steps) - at <= _WHOLE_RESULTS
        says = _results(step, after, shortened=not is_recent)
        is_last = at == len(steps) - 1
        text = prompt.fragment("results", results=says, left=left if is_last else "…")
        yield Message(role="user", content=text)


def _results(step: AgentStep, analysis: dict[str, Any] | None, *, shortened: bool) -> str:
    prompt, parts = load("develop"), list[str]()
    for number, row in enumerate(step.results, 1):
        is_long = shortened and len(row.says) > _SHORTENED
        says = prompt.fragment("past_answer") if is_long else row.says
        parts.append(prompt.fragment("result", number=number, action=row.action, says=says))
    if analysis is not None:
        text = fence("analysis", clean(json.dumps(analysis, ensure_ascii=False)))
        parts.append(prompt.fragment("analysis", analysis=text))
    return "\n\n".join(parts)


def output_of(result: RunResult) -> str:
    """How a program ended and what it printed, as the model reads it."""
    prompt = load("develop")
    streams = (("stdout", result.stdout), ("stderr", result.stderr))
    parts = [fence(name, _middle_out(clean(redact(text)))) for name, text in streams if text]
    stopped = prompt.fragment("killed") if result.oom else ""
    if result.timed_out or result.idle:
        stopped = prompt.fragment("stopped")
    code = result.exit_code if result.exit_code is not None else f"(signal {result.signal})"
    return prompt.fragment(
        "ended",
        code=code,
        seconds=f"{result.seconds:.1f}",
        stopped=f"{stopped}",
        output="\n".join(parts),
    )


def _middle_out(text: str) -> str:
    if len(text) <= MOST_OUTPUT:
        return text
    head = MOST_OUTPUT // 3
    return f"{text[:head]}\n…\n{text[-(MOST_OUTPUT - head) :]}"


def numbered(files: Mapping[str, str]) -> str:
    """Text files with line numbers, each between marks; of many the first."""
    parts, room = list[str](), _MOST_SHOWN
    for path in sorted(files, key=lambda path: (not path.endswith(".py"), path)):
        if room <= 0:
            break
        text = _lines(files[path], 1, len(files[path].splitlines()))
        parts.append(fence(path, text[:room]))
        room -= len(text)
    return "\n\n".join(parts)


def _says(name: str, path: str, text: str, start: int, end: int) -> str:
    rows = fence(path, _lines(text, start, end))
    values = {"count": len(text.splitlines())} if name == "lines_of" else {}
    return load("develop").fragment(name, path=path, start=start, end=end, text=rows, **values)


def _lines(text: str, start: int, end: int) -> str:
    rows = text.splitlines()[start - 1 : end]
    return "\n".join(f"{number}: {clean(row)}" for number, row in enumerate(rows, start))


def _failed(action: str, name: str, **values: object) -> ActionResult:
    says = load("develop").fragment(name, **values)
    return ActionResult(action=action, says=says, failed=True)


def _fenced_path(path: str) -> str:
    """A path as a model wrote it."""
    return fence("path", clean(path))


def _plain(path: str) -> str:
    """A path below the working folder, "" for any other."""
    pure = PurePosixPath(path.removeprefix("./"))
    is_bad = pure.is_absolute() or ".." in pure.parts or "\\" in path or not path.isprintable()
    hidden = any(part.startswith(".") for part in pure.parts)
    return "" if is_bad or hidden or not pure.parts else pure.as_posix()


def _last(steps: list[AgentStep]) -> tuple[ActionResult, ...]:
    return steps[-1].results if steps else ()


def _difference(now: Usage, before: Usage) -> Usage:
    return Usage(
        calls=now.calls - before.calls,
        input_tokens=now.input_tokens - before.input_tokens,
        output_tokens=now.output_tokens - before.output_tokens,
        usd=now.usd - before.usd,
        estimated=now.estimated,
    )
