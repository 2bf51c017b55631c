"""Searches for a patch: what the diagnosis suggests, the textbook, then steps beside the best."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from bot.kernel.training_types import (
    OPERATORS,
    Change,
    Diagnosis,
    Edit,
    Finding,
    Hyperparameter,
    HyperparameterKind,
    Patch,
)
from bot.program import hyperparameters
from bot.program.text import parse_number
from bot.training.repair.metric import score
from bot.training.repair.trials import FaultyProgram, TrialRequest, Trials

# Patches to try, from what a diagnosis found, the textbook, and steps beside the best so far.
#
# AutoTrainer's table of actions stands behind the rules' suggestions; here they are only tried.

_CERTAIN = 0.5
_KINDS: dict[str, HyperparameterKind] = {"rate": "dropout"}
_ALSO: dict[str, tuple[str, ...]] = {
    "categorical_crossentropy": ("cross_entropy", "sparse_categorical_crossentropy"),
    "sparse_categorical_crossentropy": ("cross_entropy", "categorical_crossentropy"),
    "cross_entropy": ("categorical_crossentropy", "sparse_categorical_crossentropy"),
    "binary_crossentropy": ("bce_logits", "bce"),
    "bce": ("binary_crossentropy",),
    "dense": ("dense_after",),
    "batch_norm": ("batch_norm_after",),
    "remove": ("removed",),
    "none": ("linear", "removed", "default"),
    "glorot": ("glorot_uniform", "xavier_uniform", "default"),
    "he": ("he_uniform", "kaiming_uniform", "default"),
    "glorot_uniform": ("xavier_uniform", "default"),
    "he_normal": ("kaiming_normal", "he_uniform", "default"),
    "he_uniform": ("kaiming_uniform", "default"),
    "zeros": ("default",),
    "labels": ("unscaled",),
    "standardize": ("standardise",),
    "normalize": ("min-max",),
    "normalise": ("min-max",),
}
"""What a rule suggests, as the program's framework may call it."""
_RATES = {"sgd": "0.05", "adagrad": "0.01", "adadelta": "1.0", "adamax": "0.002"}
_RATE = "0.001"
"""Textbook rates of the optimizers: of all others this one."""
_DEFAULTS: dict[HyperparameterKind, str] = {
    "learning_rate": "0.001", "epochs": "1", "batch_size": "32",
}  # fmt: skip
"""Where the program leaves a number to the framework: what steps up and down begin from."""
_TEXTBOOK: tuple[tuple[HyperparameterKind, str], ...] = (
    ("optimizer", "adam"),
    ("preprocessing", "standardise"),
    ("weight_regularizer", "none"),
    ("weight_decay", "0"),
    ("batch_size", "32"),
    ("momentum", "0.9"),
)
_ALIKE = ("unscaled", "both")
_ENDS = ("linear", "softmax", "sigmoid")
_MOST_LOSSES = 5
_LINEAR = ("none", "linear")
_FIRST = 3  # of one kind of structural edit, before others
_OF_LAYERS: tuple[tuple[HyperparameterKind, str], ...] = (
    ("layers", "dense_after"),
    ("layers", "removed"),
    ("dropout", "0"),
)
_WORD = re.compile(r"[a-z_][a-z0-9_-]*")
_NUMBER = re.compile(r"(?<![\w.^,-])(?:\d+(?:,\d{3})*(?:\.\d+)?)(?:e[-+]?\d+)?(?![\w^]|[.,]\d)")
_MOST_WORDED = 4
_MOST_EPOCHS = 10_000


def from_diagnosis(
    diagnosis: Diagnosis, hyperparameters: Sequence[Hyperparameter]
) -> tuple[Patch, ...]:
    """What the findings suggest: the likely ones together, then the lines that a model would
    replace, then each alone, with their first values before their second; last what else a model
    suspects.
    """
    suspects = (*diagnosis.findings, *diagnosis.doubts)
    findings = [finding for finding in suspects if finding.by != "model"]
    suspicions = [finding for finding in diagnosis.findings if finding.by == "model"]
    patches_by_finding = [patches_of(finding, hyperparameters) for finding in findings]
    likely = [
        ways[0]
        for finding, ways in zip(findings, patches_by_finding, strict=True)
        if ways and _is_certain(finding)
    ]
    deep = max(map(len, patches_by_finding), default=0)
    singles = [ways[at] for at in range(deep) for ways in patches_by_finding if at < len(ways)]
    firsts = [ways[0] for ways in patches_by_finding if ways]
    together = [merge_patches(*likely), merge_patches(*firsts)]
    last = [patch for finding in suspicions for patch in patches_of(finding, hyperparameters)]
    lines = [(edit,) for edit in line_edits(diagnosis)]
    return _distinct([*singles[:1], *together, *lines, *singles[1:], *last])


def line_edits(diagnosis: Diagnosis) -> tuple[Edit, ...]:
    """The lines that a model would replace, also where it only agrees with a rule or the run
    learned.
    """
    findings = (*diagnosis.findings, *diagnosis.doubts, *diagnosis.advice)
    edits = (finding.change.edit for finding in findings if finding.change is not None)
    return tuple(dict.fromkeys(edit for edit in edits if edit is not None))


def vetted(diagnosis: Diagnosis, subject: FaultyProgram) -> tuple[Diagnosis, tuple[str, ...]]:
    """The diagnosis without the edits of a model that prove nothing, and why each is refused."""
    refusals: list[str] = []

    def of(finding: Finding) -> Finding:
        edit = finding.change.edit if finding.change is not None else None
        if finding.change is None or edit is None or not (why := subject.refusal(edit)):
            return finding
        refusals.append(f"{edit.operator}: {why}")
        change = finding.change.model_copy(update={"edit": None})
        return finding.model_copy(update={"change": change})

    update = {
        name: tuple(map(of, getattr(diagnosis, name))) for name in ("findings", "doubts", "advice")
    }
    return diagnosis.model_copy(update=update), tuple(refusals)


def elsewhere(
    diagnosis: Diagnosis, hyperparameters: Sequence[Hyperparameter]
) -> tuple[Finding, ...]:
    """The likely findings that no hyperparameter of the program mends."""
    likely = (finding for finding in diagnosis.findings if _is_certain(finding))
    return tuple(finding for finding in likely if not patches_of(finding, hyperparameters))


def moves(
    best: Patch, hyperparameters: Sequence[Hyperparameter], diagnosis: Diagnosis
) -> tuple[Patch, ...]:
    """Patches one step from the best: other values of what it changes already, what the findings
    suggest beside it, then the textbook's values, more epochs, other last activations and losses,
    and each number a step up and down.
    """
    now = [_now(parameter, best) for parameter in hyperparameters]
    changed_parameters = {edit.parameter for edit in best}
    own = [patch for one in now if one.id in changed_parameters for patch in _steps(one)]
    ways = [
        patch
        for finding in (*diagnosis.findings, *diagnosis.doubts)
        for patch in patches_of(finding, hyperparameters)
    ]
    ways += [(edit,) for edit in line_edits(diagnosis)]
    others = [one for one in now if one.id not in changed_parameters]
    longer = [patch for one in others if one.kind == "epochs" for patch in _steps(one)][:2]
    numbers = [patch for one in others for patch in _steps(one)]
    ordered = (*own[:2], *ways, *own[2:], *_textbook(now), *longer, *_contract(now), *numbers)
    steps = [merge_patches(_without_rate(best, patch), patch) for patch in ordered]
    return tuple(patch for patch in _distinct(steps) if patch != best)


def _textbook(now: Sequence[Hyperparameter]) -> Iterator[Patch]:
    """What a textbook would set; what is left to the framework is as good. First of all, data that
    are treated unlike: labels that were scaled, a part that was not.
    """
    unlike = [patch for one in now for to in _ALIKE if (patch := _edit_all((one,), to))]
    yield merge_patches(*unlike)
    yield from unlike
    optimizer = next((one.value for one in now if one.kind == "optimizer"), "")
    usual = (("learning_rate", _RATES.get(optimizer, _RATE)), *_TEXTBOOK)
    for kind, value in usual:
        parameters = [one for one in now if one.kind == kind]
        if kind in {"weight_decay", "weight_regularizer"}:
            parameters = [one for one in parameters if one.value not in {"none", "default"}]
        yield from (_edit_all((one,), value) for one in parameters)
    hidden = [one for one in now if one.kind == "activation"][:-1]
    yield _edit_all(hidden, "relu")  # the last one's function belongs to the loss
    set_ = [one for one in now if one.kind == "kernel_initializer" and one.value != "default"]
    yield _edit_all(set_, "glorot_uniform")


def structural(hyperparameters: Sequence[Hyperparameter]) -> tuple[Patch, ...]:
    """Single edits of what no rule need have suspected. First what rules see worst: layers that are
    missing, activations that are missing, narrow layers, too few epochs. Then the textbook's
    values, other last activations and losses, layers and activations taken out, other rates, and
    repairs of code.
    """
    code = [_edit_all((one,), one.choices[0]) for one in hyperparameters if one.kind == "code"]
    longer = [patch for one in hyperparameters if one.kind == "epochs" for patch in _steps(one)][:1]
    rates = [
        patch for one in hyperparameters if one.kind == "learning_rate" for patch in _steps(one)
    ]
    hidden = [one for one in hyperparameters if one.kind == "activation"][:-1]
    bare = [_edit_all((one,), "relu") for one in hidden if one.value in _LINEAR]
    needless = [_edit_all((one,), "linear") for one in hidden if one.value not in _LINEAR]
    deeper, removed, undropped = (
        [_edit_all((one,), value) for one in hyperparameters if one.kind == kind]
        for kind, value in _OF_LAYERS
    )
    wider = [
        patch for one in hyperparameters if one.kind == "units" for patch in list(_steps(one))[:1]
    ]
    larger = [
        patch for one in hyperparameters if one.kind == "kernel_size" for patch in _steps(one)
    ]
    first = (*deeper[:_FIRST], *bare[:_FIRST], *wider[:_FIRST], *larger[:_FIRST], *longer)
    rest = (*removed, *undropped, *needless, *rates, *deeper, *bare, *wider, *code)
    return _distinct([*first, *_textbook(hyperparameters), *_contract(hyperparameters), *rest])


def _contract(now: Sequence[Hyperparameter]) -> Iterator[Patch]:
    """Other functions of the last layer, and other losses."""
    for end in [one for one in now if one.kind == "activation"][-1:]:
        yield from (_edit_all((end,), value) for value in _ENDS)
    for one in (one for one in now if one.kind == "loss"):
        yield from (_edit_all((one,), value) for value in one.choices[:_MOST_LOSSES])


def _without_rate(best: Patch, step: Patch) -> Patch:
    """The best patch to which a step is added: another optimizer begins with a rate of its own."""
    if all(edit.kind != "optimizer" for edit in step):
        return best
    return tuple(edit for edit in best if edit.kind != "learning_rate")


def merge_patches(*patches: Patch) -> Patch:
    """Patches made together; of edits of one hyperparameter the last counts, against the first's
    `before`. An edit that comes back to where it began is none.
    """
    edits: dict[str, Edit] = {}
    for edit in (edit for patch in patches for edit in patch):
        before = edits[edit.parameter].before if edit.parameter in edits else edit.before
        edits[edit.parameter] = edit.model_copy(update={"before": before})
    return tuple(edit for edit in edits.values() if edit.before != edit.after)


def patches_of(finding: Finding, hyperparameters: Sequence[Hyperparameter]) -> list[Patch]:
    """The patches that a finding suggests, one for each value that can be written; first the one
    that trainings confirmed.
    """
    gain = finding.gain if finding.status == "confirmed" else None
    suggested = [] if gain and finding.by == "runs" else _suggested(finding, hyperparameters)
    return list(_distinct([gain.patch, *suggested])) if gain else suggested


def _is_certain(finding: Finding) -> bool:
    return finding.status == "confirmed" or finding.confidence >= _CERTAIN


def _suggested(finding: Finding, hyperparameters: Sequence[Hyperparameter]) -> list[Patch]:
    change = finding.change
    if change is None:
        return []
    exact: list[Patch] = [(change.edit,)] if change.edit is not None else []
    if finding.by == "model":
        own = [one for one in hyperparameters if one.id == f"code({finding.fault})"]
        repairs = [patch for one in own if (patch := _edit_all((one,), one.choices[0]))]
        return [*exact, *repairs, *_edits_of_words(finding, change.words, hyperparameters)]
    return [*_of_rule(finding, change, hyperparameters), *exact]


def _of_rule(
    finding: Finding, change: Change, hyperparameters: Sequence[Hyperparameter]
) -> list[Patch]:
    if change.parameter.startswith("code("):
        own = [one for one in hyperparameters if one.id == change.parameter]
        return [patch for one in own if (patch := _edit_all((one,), one.choices[0]))]
    name, _, place = change.parameter.partition("(")
    kind = _KINDS.get(name, name)
    parameters = [one for one in hyperparameters if one.kind == kind and _of(one, finding)]
    parameters_of_layer = [
        one for one in parameters if str(one.layer) == place.rstrip(")")
    ] or parameters
    beside = (
        [one for one in parameters if one not in parameters_of_layer]
        if kind == "activation"
        else []
    )
    rest = _edit_all(beside, "relu")  # a value is for the layer that the finding names
    patches = (
        _edit_all(parameters_of_layer if rest else parameters, value) for value in change.values
    )
    return [merge_patches(patch, rest) for patch in patches if patch]


def _edits_of_words(
    finding: Finding, words: str, hyperparameters: Sequence[Hyperparameter]
) -> list[Patch]:
    """What a model's words suggest for the hyperparameters that its fault is about: the values that
    are among them, else a step up and down.
    """
    faults = {finding.fault, *finding.also}
    about = [
        one for one in hyperparameters if OPERATORS.get(one.kind) in faults and _of(one, finding)
    ]
    text = words.lower()
    parameters = [one for one in about if one.kind.replace("_", " ") in text] or about
    numbers = [value.replace(",", "") for value in _NUMBER.findall(text)]
    patches = [
        _edit_all([one for one in parameters if one.kind == kind], value)
        for kind in dict.fromkeys(one.kind for one in parameters)
        for value in dict.fromkeys((*_WORD.findall(text), *numbers))
    ]
    patches += [patch for one in parameters for patch in _steps(one)]
    return [patch for patch in patches if patch][:_MOST_WORDED]


def _of(parameter: Hyperparameter, finding: Finding) -> bool:
    return parameter.layer is None or not finding.layers or parameter.layer in finding.layers


def _edit_all(parameters: Iterable[Hyperparameter], value: str) -> Patch:
    edits = (_edit(one, value) for one in parameters)
    return tuple(edit for edit in edits if edit is not None and not _same(edit))


def _same(edit: Edit) -> bool:
    before, after = parse_number(edit.before), parse_number(edit.after)
    return edit.before == edit.after or (before is not None and before == after)


def _edit(parameter: Hyperparameter, value: str) -> Edit | None:
    """The edit that gives a hyperparameter a value, by the first of its names that fits."""
    names = (value, *_ALSO.get(value, ()))
    return next((edit(parameter, x) for x in names if hyperparameters.writable(parameter, x)), None)


def edit(parameter: Hyperparameter, value: str) -> Edit:
    """The edit that gives a hyperparameter a value."""
    return Edit(
        parameter=parameter.id, kind=parameter.kind, before=parameter.value, after=value,
        line=parameter.line, file=parameter.file,
    )  # fmt: skip


def _steps(parameter: Hyperparameter) -> Iterator[Patch]:
    """A number up and down, as its kind is varied."""
    value = parse_number(
        _DEFAULTS.get(parameter.kind, "") if parameter.value == "default" else parameter.value
    )
    if value is None:
        return
    match parameter.kind:
        case "learning_rate":
            tries: list[float] = [value * 3, value / 3, value * 10, value / 10]
        case "epochs":
            tries = [min(_MOST_EPOCHS, round(value * factor)) for factor in (3, 10, 2)]
        case "batch_size":
            tries = [max(1, value // 4), value * 4]
        case "units":
            tries = [value * 2, value * 4]
        case "kernel_size":
            tries = [value + 2]
        case "dropout" | "weight_decay":
            tries = [0, value / 10]
        case _:
            return
    for number in tries:
        if patch := _edit_all((parameter,), f"{number:.4g}" if number % 1 else f"{number:.0f}"):
            yield patch


def _now(parameter: Hyperparameter, patch: Patch) -> Hyperparameter:
    """A hyperparameter with the value that a patch gives it; edits still name the program's own."""
    value = next((x.after for x in patch if x.parameter == parameter.id), parameter.value)
    return parameter.model_copy(update={"value": value})


def _distinct(patches: Iterable[Patch]) -> tuple[Patch, ...]:
    by_edits: dict[frozenset[tuple[str, str]], Patch] = {}
    for patch in patches:
        key = frozenset((edit.parameter, edit.after) for edit in patch)
        if patch:
            by_edits.setdefault(key, patch)
    return tuple(by_edits.values())


# Searches for a patch on the guide's part: what the diagnosis suggests, then steps beside the
# best, until the budget is used up or there is nothing left to gain.

SEEDS = (1001, 1002, 1003)
"""What patches are chosen with: the first for all, the others for the best."""
_FINALISTS = 3
_CEILING = 0.995  # of a share such as accuracy
_GAIN = 0.01  # of what was gained so far: what a further edit has to bring
_SUGGESTED = 3  # the likeliest finding, all likely ones, all, beside lines that a model replaces;
# the others are steps beside the best
_PATIENCE = 10  # trials that bring nothing
_RESERVE = 0.3  # of the budget, to try the best with more seeds


@dataclass(slots=True)
class Search:
    """The state of a search: which patches were tried with the first seed, best first."""

    trials: Trials
    diagnosis: Diagnosis
    found: Sequence[Hyperparameter]
    tried: dict[Patch, float] = field(default_factory=dict)

    def best(self) -> Patch:
        """The patch that is best on the guide's part. Raises Stopped."""
        self._try(((),))
        suggested = _SUGGESTED + len(line_edits(self.diagnosis))
        self._try_each(from_diagnosis(self.diagnosis, self.found)[:suggested])
        while self._open():
            steps = self._untried(moves(self._leader, self.found, self.diagnosis))
            leader = self._leader
            while self._open() and self._leader == leader and (some := self._next(steps)):
                self._try(some)
            if self._leader == leader:
                break
        return self._chosen()

    @property
    def _leader(self) -> Patch:
        """The best so far. Of those that are nearly as good the one with fewer edits leads."""
        faulty, top = self.tried[()], max(self.tried.values())
        if not math.isfinite(top) or top <= faulty:
            return ()
        margin = _GAIN * (top - faulty) if math.isfinite(faulty) else 0.0
        good = [patch for patch, value in self.tried.items() if value >= top - margin]
        return min(good, key=lambda patch: (len(patch), -self.tried[patch]))

    def _open(self) -> bool:
        """Whether there is budget left, and something to gain."""
        trials = self.trials
        has_time = trials.left_s > _RESERVE * trials.budget_s
        return has_time and self._idle() < _PATIENCE and not self._at_ceiling()

    def _at_ceiling(self) -> bool:
        """Whether the leader is as good as can be, with each seed: one may be luck."""
        leader = self._leader
        if not leader or not self._is_share or self.tried[leader] < _CEILING:
            return False
        self.tried[leader] = self.trials.score(leader, SEEDS)
        return self.tried[leader] >= _CEILING

    def _idle(self) -> int:
        """How many trials were made since the leader was found; 0 without one."""
        leader = self._leader
        return len(self.tried) - 1 - list(self.tried).index(leader) if leader else 0

    @property
    def _is_share(self) -> bool:
        metric = self.trials.subject.metric
        values = [value for value in self.tried.values() if math.isfinite(value)]
        return metric.direction == "max" and all(0 <= value <= 1 for value in values)

    def _try_each(self, patches: Sequence[Patch]) -> None:
        waiting = self._untried(patches)
        while self._open() and (some := self._next(waiting)):
            self._try(some)

    def _untried(self, patches: Sequence[Patch]) -> Iterator[Patch]:
        """Those that can be written and were not tried."""
        for patch in patches:
            if patch not in self.tried and self._applies(patch):
                yield patch

    def _applies(self, patch: Patch) -> bool:
        try:
            self.trials.subject.patched(patch)
        except hyperparameters.NotApplicable:
            return False
        return True

    def _next(self, waiting: Iterator[Patch]) -> tuple[Patch, ...]:
        return tuple(islice(waiting, max(1, self.trials.runs.jobs)))

    def _try(self, patches: Sequence[Patch]) -> None:
        subject = self.trials.subject
        rows = self.trials.run(TrialRequest(patch, SEEDS[0], subject.guide) for patch in patches)
        for patch, row in zip(patches, rows, strict=True):
            self.tried[patch] = score(row.value, subject.metric.direction)

    def _chosen(self) -> Patch:
        """Of the best few the one that is best over all seeds."""
        faulty = self.tried[()]
        leader = self._leader
        better = [x for x in self.tried if x and self.tried[x] > faulty and x != leader]
        finalists = [leader, *sorted(better, key=lambda x: -self.tried[x])][:_FINALISTS]
        if not leader or len(finalists) == 1:
            return leader
        means: dict[Patch, float] = {}
        for patch in finalists:
            if patch == leader or self.trials.left_s > 0:
                means[patch] = self.trials.score(patch, SEEDS)
        return max(means, key=lambda patch: means[patch])
