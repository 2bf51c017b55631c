"""Questions to a job's model, and its budget: checked before each call, counted after it."""

from dataclasses import dataclass, field

from bot.kernel.dialogue import Exchange, Message, ModelAnswer, Question, Role, Usage
from bot.kernel.errors import ModelUnavailable
from bot.kernel.job import ModelLimits
from bot.kernel.ports import Ports
from prompts import load


class BudgetExceeded(Exception):
    """The next call could exceed a limit; the message names the limit."""


def question(role: Role, name: str, most_tokens: int, **values: str) -> Question:
    """The question of a prompt file, filled with values."""
    prompt = load(name)
    system, user = prompt.render(**values)
    return Question(
        role=role,
        prompt=prompt.id,
        messages=(Message(role="system", content=system), Message(role="user", content=user)),
        answer_schema=prompt.schema,
        most_tokens=most_tokens,
    )


@dataclass
class ModelBudget:
    """The model of one job with its budget. `began` is the clock's reading when the job began."""

    ports: Ports
    options: ModelLimits
    began: float
    exchanges: list[Exchange] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    prompts: dict[str, str] = field(default_factory=dict)

    def ask(self, question: Question) -> ModelAnswer:
        """One answer. Raises BudgetExceeded before a call that could exceed a limit,
        ModelUnavailable, Stopped.
        """
        assert self.ports.model is not None
        self._afford(self.ports.model.bound(question))
        number = len(self.exchanges) + 1
        self.prompts[question.prompt.partition("@")[0]] = question.prompt
        try:
            answer = self.ports.model.ask(question, cancel=self.ports.cancel)
        except ModelUnavailable as error:
            self.usage += error.usage
            self.exchanges.append(Exchange(number=number, question=question, error=str(error)))
            raise
        self.usage += answer.usage
        self.exchanges.append(Exchange(number=number, question=question, answer=answer))
        return answer

    @property
    def models(self) -> tuple[str, ...]:
        """The models that answered, each once."""
        names = (row.answer.model for row in self.exchanges if row.answer is not None)
        return tuple(dict.fromkeys(filter(None, names)))

    @property
    def minutes(self) -> float:
        """Minutes since the job began."""
        return (self.ports.clock() - self.began) / 60

    def left(self) -> str:
        """What is left of the budget, as a sentence for the model."""
        calls = self.options.max_calls - self.usage.calls
        minutes = max(0, round(self.options.minutes - self.minutes))
        return load("act").fragment("left", calls=calls, minutes=minutes)

    def _afford(self, most: Usage) -> None:
        options, usage = self.options, self.usage
        if usage.calls + 1 > options.max_calls:
            raise BudgetExceeded(f"the limit of {options.max_calls} model calls per run")
        if usage.usd + most.usd > options.max_cost:
            raise BudgetExceeded(f"the limit of {options.max_cost:g} USD per run")
        if (
            usage.input_tokens + usage.output_tokens + most.input_tokens + most.output_tokens
            > options.max_tokens
        ):
            raise BudgetExceeded(f"the limit of {options.max_tokens} tokens per run")
        if self.minutes > options.minutes:
            raise BudgetExceeded(f"the limit of {options.minutes:g} minutes per run")
