"""Mutants of a paper's implementation: each mutator changes what one hyperparameter comes to in any
program, so that nothing of a mutant is stored.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from bot.kernel.paper import CriterionKind
from bot.papers.criterion_kinds import KINDS

Kind = CriterionKind | str
"""The kind that a mutant changes, "" for none."""
Tree = Mapping[str, str]
_OPTIMIZERS = {"SGD": "RMSprop", "Adam": "Adagrad", "AdamW": "NAdam", "RMSprop": "SGD"}
_ACTIVATIONS = {"ReLU": "Tanh", "Tanh": "ReLU", "GELU": "Tanh"}
_LOSSES = {"CrossEntropyLoss": "MultiMarginLoss", "MSELoss": "L1Loss", "L1Loss": "MSELoss"}
_SCHEDULERS = re.compile(r"\w*LR|\w*WarmRestarts")
_FACTORS: dict[str, float] = {
    "learning_rate": 5.0, "weight_decay": 20.0, "dropout": 2.5, "split": 0.4, "momentum": 0.5,
    "kernel": 5 / 3,
}  # fmt: skip
"""By what a number is multiplied, 2 for all others."""
CONSEQUENCES: dict[str, frozenset[str]] = {
    "schedule": frozenset(("warm_up", "learning_rate")),
    "warm_up": frozenset(("schedule", "learning_rate")),
    "epochs": frozenset(("schedule", "steps")),
    "batch_size": frozenset(("steps", "schedule")),
    "normalisation": frozenset(("order",)),
    "optimizer": frozenset(("momentum", "weight_decay")),
    "seeds": frozenset(),
}
"""What else such a change makes wrong: told of, it is no false alarm."""


@dataclass(frozen=True)
class Mutant:
    """One change: the kind of hyperparameter that it makes wrong, "" for none, and the new text of
    the file.
    """

    kind: Kind
    what: str
    file: str
    text: str
    runs: int = 1


@dataclass(frozen=True)
class Module:
    """A file of a program with its syntax tree."""

    path: str
    text: str
    tree: ast.Module

    def source(self, node: ast.AST) -> str:
        """The text of a node."""
        return ast.get_source_segment(self.text, node) or ""

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        """Where a node begins and ends."""
        starts = [0]
        for line in self.text.splitlines(keepends=True):
            starts.append(starts[-1] + len(line))

        def at(line: int, column: int) -> int:
            row = self.text[starts[line - 1] : starts[line]]
            return starts[line - 1] + len(row.encode()[:column].decode())

        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return at(node.lineno, node.col_offset), at(node.end_lineno, node.end_col_offset)

    def replaced(self, node: ast.expr | ast.stmt, new: str) -> str:
        """The text with another one in place of a node."""
        start, end = self.span(node)
        return self.text[:start] + new + self.text[end:]

    def without_line(self, node: ast.stmt) -> str:
        """The text with `pass` in place of a statement."""
        return self.replaced(node, "pass")

    def calls(self, *names: str) -> Iterator[ast.Call]:
        """The calls of what has one of these names."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call) and _name(node.func) in names:
                yield node


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def mutants(tree: Tree) -> Iterator[Mutant]:
    """Every mutant of a program, each text once."""
    texts = set[tuple[str, str]]()
    for path in sorted(tree):
        for mutant in _of_file(path, tree[path]):
            if mutant.text != tree[path] and (path, mutant.text) not in texts:
                texts.add((path, mutant.text))
                yield mutant


def _of_file(path: str, text: str) -> Iterator[Mutant]:
    if path.endswith((".json", ".yaml", ".yml")):
        yield from _of_configuration(path, text)
    elif path.endswith(".py"):
        module = Module(path, text, ast.parse(text))
        for mutator in MUTATORS:
            for kind, what, new in mutator(module):
                yield Mutant(kind, what, path, new, runs=2 if kind == "seeds" else 1)


Change = tuple[Kind, str, str]
"""Kind, what was changed, and the new text of the file."""


def _kind_of(name: str) -> CriterionKind | None:
    plain = name.lower().replace("-", "_").lstrip("_")
    rows = (row for row in KINDS if row.codes is not None and row.codes.fullmatch(plain))
    return next((row.kind for row in rows), None)


def _other(kind: str, value: float) -> str:
    new = value * _FACTORS.get(kind, 2.0) if value else 0.05
    return f"{new:.6g}" if new != int(new) or isinstance(value, float) else str(int(new))


# Numbers: of a configuration, of an option, of a call.


def _of_configuration(path: str, text: str) -> Iterator[Mutant]:
    for match in re.finditer(r"[\"']?(\w+)[\"']?\s*:\s*(\d+(?:\.\d+)?(?:e-?\d+)?)", text):
        kind = _kind_of(match[1])
        if kind is None:
            continue
        new = _other(kind, json.loads(match[2]))
        yield Mutant(
            kind, f"{match[1]} {new}", path, text[: match.start(2)] + new + text[match.end(2) :]
        )


def changed_defaults(module: Module) -> Iterator[Change]:
    """Another default of an option or a parameter."""
    for call in module.calls("add_argument"):
        first = call.args[0] if call.args else None
        kind = _kind_of(str(first.value).lstrip("-")) if isinstance(first, ast.Constant) else None
        value = next((row.value for row in call.keywords if row.arg == "default"), None)
        if kind is not None and value is not None and (number := _number(value)) is not None:
            new = _other(kind, number)
            yield kind, f"default {new} of {module.source(first)}", module.replaced(value, new)  # type: ignore[arg-type]
    for node in ast.walk(module.tree):
        if isinstance(node, ast.FunctionDef):
            names = node.args.args[len(node.args.args) - len(node.args.defaults) :]
            for name, default in zip(names, node.args.defaults, strict=True):
                kind, number = _kind_of(name.arg), _number(default)
                if kind is not None and number is not None:
                    new = _other(kind, number)
                    yield kind, f"default {new} of {name.arg}", module.replaced(default, new)


def _number(node: ast.expr) -> float | int | None:
    value = node.value if isinstance(node, ast.Constant) else None
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def overridden_arguments(module: Module) -> Iterator[Change]:
    """A number in place of what a call is given, or a multiple of it."""
    for node in ast.walk(module.tree):
        if not isinstance(node, ast.Call) or _name(node.func) in {"add_argument", "main"}:
            continue
        for row in node.keywords:
            kind = _kind_of(row.arg or "")
            if kind is None or kind == "split":
                continue
            if (number := _number(row.value)) is not None:
                new = _other(kind, number)
            else:
                source = module.source(row.value)
                new = f"{source} * 3" if kind not in {"momentum", "dropout"} else "0.5"
            yield kind, f"{row.arg}={new}", module.replaced(row.value, new)


def dropped_arguments(module: Module) -> Iterator[Change]:
    """Momentum or weight decay left out."""
    for call in module.calls(*_OPTIMIZERS):
        for row in call.keywords:
            if row.arg == "weight_decay" and _name(call.func) == "AdamW":
                # Left out, AdamW has one of its own.
                yield row.arg, "no weight_decay", module.replaced(row.value, "0.0")
            elif row.arg in {"momentum", "weight_decay"}:
                start, end = module.span(row.value)
                begin = module.text.rindex(row.arg, 0, start)
                rest = module.text[end:]
                rest = rest[re.match(r"\s*,?", rest).end() :]  # type: ignore[union-attr]
                yield row.arg, f"no {row.arg}", module.text[:begin] + rest


# What is called.


def _renamed(module: Module, names: Mapping[str, str], kind: Kind) -> Iterator[Change]:
    for call in module.calls(*names):
        old = _name(call.func)
        source = module.source(call.func)
        new = source[: len(source) - len(old)] + names[old]
        if kind != "optimizer":
            # All of the kind: one of several alone is none of the paper's either way.
            text = re.sub(rf"\b{old}\(", f"{names[old]}(", module.text)
        else:
            text = module.replaced(call.func, new)
        yield kind, f"{names[old]} instead of {old}", text


def other_optimizer(module: Module) -> Iterator[Change]:
    """Another optimizer."""
    yield from _renamed(module, _OPTIMIZERS, "optimizer")


def other_activation(module: Module) -> Iterator[Change]:
    """Another activation everywhere."""
    yield from _renamed(module, _ACTIVATIONS, "activation")


def other_loss(module: Module) -> Iterator[Change]:
    """Another loss."""
    yield from _renamed(module, _LOSSES, "loss")


def other_normalisation(module: Module) -> Iterator[Change]:
    """Another normalisation, or none."""
    for call in module.calls("BatchNorm2d"):
        width = module.source(call.args[0])
        yield (
            "normalisation",
            "GroupNorm instead of BatchNorm2d",
            module.replaced(call, f"nn.GroupNorm(4, {width})"),
        )
        yield "normalisation", "no BatchNorm2d", module.replaced(call, "nn.Identity()")


def other_initialisation(module: Module) -> Iterator[Change]:
    """Another initialisation, or the library's own."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            name = _name(node.value.func)
            if re.fullmatch(r"(?:kaiming|xavier)_\w+_", name):
                yield "initialisation", f"no {name}", module.without_line(node)
                weight = module.source(node.value.args[0])
                other = "xavier_uniform_" if name.startswith("kaiming") else "kaiming_normal_"
                new = f"nn.init.{other}({weight})"
                yield "initialisation", f"{other} instead of {name}", module.replaced(node, new)


def dropped_layers(module: Module) -> Iterator[Change]:
    """Dropout or an activation left out of a sequence; a hidden layer more."""
    for call in module.calls("Sequential"):
        rows = [row for row in call.args if isinstance(row, ast.Call)]
        for row in [one for one in rows if _name(one.func) == "Dropout"][:1]:
            yield "dropout", "one Dropout left out", module.replaced(row, "nn.Identity()")
        inner = [one for one in rows if _name(one.func) == "Linear"][1:-1]
        for row in inner[:1]:
            source = module.source(row)
            yield (
                "layers",
                "one hidden layer more",
                module.replaced(row, f"{source}, nn.ReLU(), {source}"),
            )


def swapped_order(module: Module) -> Iterator[Change]:
    """The activation before the normalisation."""
    pattern = re.compile(r"(self\.act)\((self\.norm)\(((?:[^()]|\([^()]*\))*)\)\)")
    if match := pattern.search(module.text):
        new = f"{match[2]}({match[1]}({match[3]}))"
        yield (
            "order",
            "activation before normalisation",
            module.text[: match.start()] + new + module.text[match.end() :],
        )


# The loop.


def dropped_steps(module: Module) -> Iterator[Change]:
    """The scheduler never stepped, gradients not clipped."""
    for node in ast.walk(module.tree):
        if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
            continue
        source, name = module.source(node.value), _name(node.value.func)
        if name == "step" and "sched" in source:
            yield "schedule", "scheduler never stepped", module.without_line(node)
        if name == "clip_grad_norm_":
            yield "clipping", "no clipping", module.without_line(node)
            limit = node.value.args[1]
            yield "clipping", "another limit", module.replaced(limit, "0.1")


def other_schedule(module: Module) -> Iterator[Change]:
    """Steps or a line in place of the schedule."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call) and _SCHEDULERS.fullmatch(_name(node.func)):
            optimizer, base = (
                module.source(node.args[0]),
                module.source(node.func).rpartition(".")[0],
            )
            for what, new in (
                ("steps", f"{base}.StepLR({optimizer}, 60, 0.1)"),
                ("a line", f"{base}.LinearLR({optimizer}, 1.0, 0.01, 200)"),
            ):
                yield (
                    "schedule",
                    f"{what} instead of {_name(node.func)}",
                    module.replaced(node, new),
                )


def other_warm_up(module: Module) -> Iterator[Change]:
    """No warm-up, or one of another length."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Compare) and "warm" in module.source(node):
            yield "warm_up", "no warm-up", module.replaced(node, "False")
    for call in module.calls("rate"):
        for argument in call.args:
            source = module.source(argument)
            if "warm" in source:
                yield "warm_up", "a longer warm-up", module.replaced(argument, f"2 * {source}")


def other_epochs(module: Module) -> Iterator[Change]:
    """Half of the epochs; batches of another size."""
    for call in module.calls("range"):
        argument = call.args[-1]
        if "epochs" in module.source(argument):
            yield (
                "epochs",
                "half of the epochs",
                module.replaced(argument, f"{module.source(argument)} // 2"),
            )
    for call in module.calls("split"):
        if call.args and "batch" in module.source(call.args[0]):
            yield "batch_size", "batches of 8", module.replaced(call.args[0], "8")


def fixed_seed(module: Module) -> Iterator[Change]:
    """One seed for every run, wherever one is set."""
    pattern = re.compile(r"(manual_seed|default_rng|load)\((?:args\.)?seed\)")
    if pattern.search(module.text) and "add_argument" in module.text:
        yield "seeds", "the seed is fixed", pattern.sub(r"\1(0)", module.text)


# The data.


def other_preprocessing(module: Module) -> Iterator[Change]:
    """Inputs that are not scaled."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            right = _number(node.right)
            if right in {16.0, 255.0}:
                yield "preprocessing", "not scaled", module.replaced(node, module.source(node.left))
        if isinstance(node, ast.Assign) and re.search(r"-\s*mean\)\s*/\s*std", module.source(node)):
            yield "preprocessing", "not standardised", module.without_line(node)


def other_split(module: Module) -> Iterator[Change]:
    """A share of test data that nothing sets."""
    for call in module.calls("int"):
        source = module.source(call.args[0]) if call.args else ""
        if match := re.search(r"(?:\w+\.)?test_\w+", source):
            yield (
                "split",
                "a tenth held out",
                module.replaced(call.args[0], source.replace(match[0], "0.1")),
            )


# What changes no hyperparameter.


def harmless_changes(module: Module) -> Iterator[Change]:
    """Another style, another seed, more output."""
    for what, before, after in (
        ("another first seed", "manual_seed(args.seed)", "manual_seed(args.seed + 7)"),
        ("in place", "nn.ReLU()", "nn.ReLU(inplace=True)"),
        ("gradients to zero", "zero_grad()", "zero_grad(set_to_none=False)"),
    ):
        if before in module.text:
            yield "", what, module.text.replace(before, after)
    if match := re.search(r"^(\s*)print\(f\"(?:final )?test", module.text, re.MULTILINE):
        at = match.start(1)
        text = f'{module.text[:at]}{match[1]}print("done")\n{module.text[at:].lstrip(chr(10))}'
        yield "", "more output", text


Mutator = Callable[[Module], Iterator[Change]]
MUTATORS: tuple[Mutator, ...] = (
    changed_defaults, overridden_arguments, dropped_arguments, other_optimizer, other_activation,
    other_loss, other_normalisation, other_initialisation, dropped_layers, swapped_order,
    dropped_steps, other_schedule, other_warm_up, other_epochs, fixed_seed, other_preprocessing,
    other_split, harmless_changes,
)  # fmt: skip
