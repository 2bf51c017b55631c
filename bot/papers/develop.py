"""The code of a paper that has none: an agent writes it from the paper's text and its fingerprint,
and revises it where the check against the paper finds something else.

What does not fit is a run that fails, a number that is not printed, and a hyperparameter that is
not the paper's. That our number differs from the paper's is no reason to change anything: it would
be tuned, not reproduced.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

from bot.kernel.outside_text import clip, one_line
from bot.kernel.paper import Criterion, NumberClaim, Paper, PaperFiles, WrittenCode
from bot.model.agent import Agent, AgentEnd, AgentStep, AgentTask, numbered
from bot.model.budget import ModelBudget
from bot.papers.comparison import paper_text
from bot.papers.criterion_kinds import UNREAD
from bot.papers.passages import manuscript
from bot.papers.runs import PaperMeasurement, PaperSession
from bot.papers.workbench import DRY_S, ENTRY, PaperWorkbench
from prompts import load
from prompts.catalog import fence

MOST_REVISIONS = 3
_QUOTE, _MOST_DATA = 200, 20


@dataclass
class Developer:
    """Writes and revises one program; `ends` are how its tasks ended."""

    session: PaperSession
    bench: PaperWorkbench
    agent: Agent

    @classmethod
    def begin(cls, session: PaperSession, budget: ModelBudget) -> Self:
        """A developer with an empty workspace, or with what a killed process had written."""
        bench = PaperWorkbench(session, session.job.model.minutes)

        def show(step: AgentStep) -> None:
            names = ", ".join(row.action for row in step.results)
            session.say("code", f"writing the code, step {step.number}: {names}")

        agent = Agent(bench, budget, session.ports.journal, on_step=show)
        return cls(session, bench, agent)

    def write(
        self,
        source: PaperFiles,
        paper: Paper,
        claim: NumberClaim,
        criteria: Sequence[Criterion],
    ) -> AgentEnd:
        """Write the program from the paper. Raises Stopped and SandboxError."""
        text = load("develop").fragment(
            "paper_task",
            metric=f"{claim.metric}: 0.5",
            full=round(self.bench.full_s),
            cpus=2,
            data=self._data(),
            claim=fence("number", f"{claim.title}: {claim.metric} {paper_text(claim)}"),
            criteria=fence("hyperparameters", "\n".join(_stated(criteria))),
            open=_open(criteria),
            paper=fence("paper", manuscript(source, paper)),
        )
        return self.agent.work(self._task("write", text))

    def revise(self, number: int, complaints: Sequence[str]) -> AgentEnd:
        """Revise the program by what does not fit. Raises Stopped and SandboxError."""
        prompt = load("develop")
        rows = "\n".join(f"- {text}" for text in complaints)
        task = prompt.fragment("revise_task", complaints=rows)
        again = prompt.fragment("again", files=numbered(self.agent.files))
        return self.agent.work(self._task(f"revise {number}", f"{task}\n\n{again}"))

    def _task(self, name: str, text: str) -> AgentTask:
        values = {"dry": round(DRY_S), "full": round(self.bench.full_s)}
        run = load("develop").fragment("run_paper", **values)
        return AgentTask(id=name, text=text, run=run, needs_dry_run=True)

    def _data(self) -> str:
        paths = list(self.session.job.environment.data)[:_MOST_DATA]
        return ", ".join(f"`{path}`" for path in paths) or load("develop").fragment("no_data")

    def code(self, end: AgentEnd, revisions: int = 0) -> WrittenCode:
        """What was written so far; `end` is how the last task ended."""
        notes = (step.end.text for step in self.agent.steps if step.end is not None)
        return WrittenCode(
            files=dict(self.agent.files),
            notes=tuple(filter(None, notes)),
            answers=len(self.agent.steps),
            runs=self.agent.runs,
            revisions=revisions,
            ended=end.text if end.kind != "submitted" else "",
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.bench.close()

    @property
    def has_program(self) -> bool:
        """Whether there is something to run."""
        return bool(self.agent.files.get(ENTRY, "").strip())


def _open(criteria: Sequence[Criterion]) -> str:
    """What the paper leaves open, with what a cited work has."""
    rows = list[str]()
    for row in criteria:
        if row.verdict == "open":
            value = row.inherited
            says = f": {value.value} in [{value.work}], {value.where}" if value is not None else ""
            rows.append(f"{row.name}{says}")
    if not rows:
        return load("develop").fragment("nothing_open")
    return fence("open", one_line("; ".join(rows)))


def _stated(criteria: Sequence[Criterion]) -> Iterator[str]:
    for row in criteria:
        if row.stated and row.kind != "method":  # the paper itself says it below
            quote = row.quote
            where = (quote.sentence or quote.table) if quote is not None else ""
            words = f' "{clip(one_line(quote.text), _QUOTE)}"' if quote is not None else ""
            yield f"{row.name}: {row.stated} ({where}){words}"


def complaints_of(measurement: PaperMeasurement, criteria: Sequence[Criterion]) -> tuple[str, ...]:
    """What does not fit: a run that failed or printed no number, and contradictions. The number
    itself is none.
    """
    prompt, rows = load("develop"), list[str]()
    run = measurement.run
    if run.problem or run.partial:
        problem = one_line(run.problem) or "stopped before its end"
        rows.append(prompt.fragment("complaint_problem", problem=fence("problem", problem)))
    for row in criteria:
        if row.verdict == "contradicts":
            rows.append(_contradiction(row))
    return tuple(rows)


def _contradiction(row: Criterion) -> str:
    prompt, located = load("develop"), row.located
    if row.observed is not None:
        evidence = prompt.fragment("evidence_observed", value=row.observed)
    elif row.read is not None:
        evidence = prompt.fragment("evidence_located", at=row.read.at, value=row.read.code)
    else:
        value = located.value if located is not None else UNREAD
        at = located.at if located is not None else ENTRY
        evidence = prompt.fragment("evidence_located", at=at, value=value)
    words = clip(one_line(row.quote.text), _QUOTE) if row.quote is not None else ""
    values = {"name": row.name, "stated": row.stated, "quote": fence("quote", words)}
    return prompt.fragment("complaint_criterion", evidence=evidence, **values)
