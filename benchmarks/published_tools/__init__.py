"""The published tools' rules alone, as their sources mean them: what the benchmark compares with.

They share the trace with the diagnosis and nothing of its guards. Layers are by `Layer.index`.
"""

from collections.abc import Callable

from benchmarks.published_tools import autotrainer, deepdiagnosis, deeplocalize, neuralint, umlaut
from bot.kernel.training_types import TrainingTrace
from bot.training.diagnosis.rule import Training, trainings

TOOLS: dict[str, Callable[[Training], tuple[str, ...]]] = {
    "DeepLocalize": deeplocalize.found,
    "DeepDiagnosis": deepdiagnosis.found,
    "UMLAUT": umlaut.found,
    "AutoTrainer": autotrainer.found,
    "Neuralint": neuralint.found,
}


def codes(tool: str, trace: TrainingTrace) -> tuple[str, ...]:
    """The fault codes that a tool's rules name for a trace, in its own order."""
    found = (code for training in trainings(trace) for code in TOOLS[tool](training))
    return tuple(dict.fromkeys(found))
