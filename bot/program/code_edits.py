"""Edits of code: for each fault that is code and has a mechanical repair, the place in the text
where the trace saw it, and the change that repairs it.

A place is offered wherever the text has the form that the edit needs; whether the fault is there is
for the diagnosis to say, and whether the edit helps for the trainings of a repair.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import libcst as cst

from bot.kernel.training_code import CodeFault, ProgramCode
from bot.kernel.training_types import Loss, TrainingTrace
from bot.program.parsed import ProgramTree
from bot.program.rewriting import HyperparameterPlace, Rewriting, make_place
from bot.program.text import argument, dotted, expression, with_argument

AS_WRITTEN = "as written"
OF_LOSS = frozenset((
    "code(wrong-reduction)", "code(padding-counts)", "code(broadcast-loss)",
    "code(arguments-swapped)",
))  # fmt: skip
"""Edits that change what the loss comes to: no patch where the loss is what is compared. What a
metric is computed from is never edited.
"""


class CodeEdit(NamedTuple):
    """A repair: what it does in words, the line of the whole text, and how it is written."""

    words: str
    line: int
    write: Callable[[Rewriting], None]


Finder = Callable[[ProgramTree, ProgramCode], CodeEdit | None]
_Loop = cst.For | cst.While


def code_places(program: ProgramTree, trace: TrainingTrace | None) -> Iterator[HyperparameterPlace]:
    """A place for each repair of code that the text allows."""
    code = trace.code if trace else None
    if code is None:
        return
    loss = next(iter(trace.losses), None) if trace else None
    edits: dict[CodeFault, CodeEdit | None] = {
        fault: find(program, code) for fault, find in _FINDERS.items()
    }
    edits["wrong-reduction"] = _averaged(program, loss)
    edits["padding-counts"] = _unpadded(program, trace, loss) if trace else None
    edits["broadcast-loss"] = _squeezed(program, loss)
    edits["arguments-swapped"] = _turned(program, code, loss)
    for fault, edit in edits.items():
        if edit is not None:
            place = make_place(
                "code", AS_WRITTEN, edit.line, partial(_write, edit), choices=(edit.words,)
            )
            hyperparameter = place.hyperparameter.model_copy(update={"id": f"code({fault})"})
            yield HyperparameterPlace(hyperparameter, place.write)


def _write(edit: CodeEdit, rewriting: Rewriting, _value: str) -> None:
    edit.write(rewriting)


# Where calls stand.


def _call(program: ProgramTree, name: str, line: int) -> cst.Call | None:
    """The call of a method or function of this name in a line of the program."""
    calls = (x for x in program.called_as(name) if _is_at(program, x, line))
    return next(calls, None)


def _is_at(program: ProgramTree, node: cst.CSTNode, line: int) -> bool:
    return bool(line) and program.traced(program.line(program.statement(node))) <= line <= (
        program.traced(program.line(program.statement(node))) + _height(program, node) - 1
    )


def _height(program: ProgramTree, node: cst.CSTNode) -> int:
    """Lines of the simple statement that holds a node; 1 for the head of a compound one."""
    statement = program.statement(node)
    if not isinstance(statement, cst.SimpleStatementLine):
        return 1
    return program.text(statement).strip().count("\n") + 1


def _loop(program: ProgramTree, name: str) -> _Loop | None:
    """The loop that a trace calls "line" or "function:line"."""
    line = int(name.rpartition(":")[2] or 0)
    loops: tuple[_Loop, ...] = (*program.of(cst.For), *program.of(cst.While))
    return next((x for x in loops if program.traced(program.line(x)) == line), None)


def _first_statement(loop: cst.For | cst.While) -> cst.CSTNode | None:
    body = loop.body
    return body.body[0] if isinstance(body, cst.IndentedBlock) and body.body else None


def _owner(program: ProgramTree, call: cst.Call | None) -> str:
    """What a method is called on, as it is written."""
    func = call.func if call is not None else None
    return program.text(func.value) if isinstance(func, cst.Attribute) else ""


def _optimizer_names(program: ProgramTree, code: ProgramCode) -> list[str]:
    """What the program calls its optimizers: those that step, else those that are made."""
    names = []
    for site in code.sites("step"):
        call = _call(program, "step", site.line)
        owner = _owner(program, call)
        scaled = call.args[0].value if call is not None and call.args else None
        names.append(dotted(scaled) if scaled is not None and dotted(scaled) else owner)
    if not any(names):
        names = [
            name
            for name, values in program.values.items()
            if any(isinstance(x, cst.Call) and _makes_optimizer(program, x) for x in values)
        ]
    return [name for name in dict.fromkeys(names) if name]


def _makes_optimizer(program: ProgramTree, call: cst.Call) -> bool:
    name = program.name(call.func)
    return name.startswith("torch.optim.") and "lr_scheduler" not in name


def _optimizer_call(program: ProgramTree, line: int) -> cst.Call | None:
    return next(
        (
            x
            for x in program.calls
            if _makes_optimizer(program, x) and program.traced(program.line(x)) == line
        ),
        None,
    )


# Loops.


def _reset(program: ProgramTree, code: ProgramCode) -> CodeEdit | None:
    backward = _call(program, "backward", code.site("backward").line)
    names = _optimizer_names(program, code)
    if backward is None or not names:
        return None
    text = "\n".join(f"{name}.zero_grad()" for name in names)
    return CodeEdit(
        f"`{text}` before `backward`".replace("\n", "; "),
        program.line(backward),
        lambda rewriting: rewriting.before(backward, text),
    )


def _moved(
    program: ProgramTree, statement: cst.Call, words: str, put: Callable[[Rewriting, str], None]
) -> CodeEdit:
    text = program.text(statement)

    def write(rewriting: Rewriting) -> None:
        rewriting.remove(statement)
        put(rewriting, text)

    return CodeEdit(f"`{text}` {words}", program.line(statement), write)


def _alone(program: ProgramTree, call: cst.Call | None) -> cst.Call | None:
    """A call that is a whole statement, so that it can be moved."""
    parent = program.parents.get(call) if call is not None else None
    return call if isinstance(parent, cst.Expr) else None


def _reset_first(program: ProgramTree, code: ProgramCode) -> CodeEdit | None:
    backward = _call(program, "backward", code.site("backward").line)
    reset = _alone(program, _call(program, "zero_grad", code.site("zero_grad").line))
    if backward is None or reset is None:
        return None
    return _moved(
        program,
        reset,
        "before `backward`",
        lambda rewriting, text: rewriting.before(backward, text),
    )


def _step(program: ProgramTree, code: ProgramCode) -> CodeEdit | None:
    backward = _call(program, "backward", code.site("backward").line)
    names = _optimizer_names(program, code)
    if backward is None or len(names) != 1 or code.totals.get("step"):
        return None
    text = f"{names[0]}.step()"
    return CodeEdit(
        f"`{text}` after `backward`",
        program.line(backward),
        lambda rewriting: rewriting.after(backward, text),
    )


def _step_inside(program: ProgramTree, code: ProgramCode) -> CodeEdit | None:
    backward = _call(program, "backward", code.site("backward").line)
    step = _alone(program, _call(program, "step", code.site("step").line))
    if backward is None or step is None:
        return None
    if len(code.site("step").loops) >= len(code.site("backward").loops):
        return None
    reset = _alone(program, _call(program, "zero_grad", code.site("zero_grad").line))
    outside = reset is not None and len(code.site("zero_grad").loops) < len(
        code.site("backward").loops
    )

    def put(rewriting: Rewriting, text: str) -> None:
        rewriting.after(backward, text)
        if outside and reset is not None:
            rewriting.remove(reset)
            rewriting.before(backward, program.text(reset))

    return _moved(program, step, "after each `backward`", put)


def _backward(program: ProgramTree, code: ProgramCode) -> CodeEdit | None:
    step = _call(program, "step", code.site("step").line)
    if step is None or code.totals.get("backward"):
        return None
    before = [
        name
        for name, values in program.values.items()
        if any(program.line(x) < program.line(step) for x in values)
        and name.isidentifier()
        and "loss" in name.lower()
    ]
    own = [x for x in before if _assigned_beside(program, x, step)]
    if not own:
        return None
    text = f"{own[-1]}.backward()"
    return CodeEdit(
        f"`{text}` before `step`",
        program.line(step),
        lambda rewriting: rewriting.before(step, text),
    )


def _assigned_beside(program: ProgramTree, name: str, step: cst.Call) -> bool:
    """Whether a name gets its value in the block of the step, before it."""
    block = program.parents.get(program.statement(step))
    return any(
        program.parents.get(program.statement(x)) is block and program.line(x) < program.line(step)
        for x in program.values.get(name, ())
    )


def _schedule(program: ProgramTree, code: ProgramCode) -> CodeEdit | None:
    site = code.site("schedule")
    call = _alone(program, _call(program, "step", site.line))
    if call is None or not site.loops:
        return None
    step = _call(program, "step", code.site("step").line)
    if len(site.loops) >= len(code.site("step").loops):
        inner = _loop(program, site.loops[-1])
        if inner is None or len(site.loops) < 2:
            return None
        return _moved(
            program, call, "after each epoch", lambda rewriting, text: rewriting.after(inner, text)
        )
    if step is None:
        return None
    return _moved(
        program, call, "after each step", lambda rewriting, text: rewriting.after(step, text)
    )


def _clip(program: ProgramTree, code: ProgramCode) -> CodeEdit | None:
    clippings = (x for x in code.clippings if x.kind == "norm" and x.median and x.limit)
    clip = max(clippings, key=lambda x: (x.median or 0) / x.limit, default=None)
    call = _call(program, "clip_grad_norm_", clip.line) if clip else None
    if call is None or clip is None:
        return None
    limit = f"{max(clip.median or 0, clip.limit):.2g}"
    limit = limit if "." in limit or "e" in limit else f"{limit}.0"
    return CodeEdit(
        f"a limit of {limit}",
        program.line(call),
        lambda rewriting: rewriting.change(call, with_argument("max_norm", limit, 1)),
    )


# Parameters.


def _optimizer_later(program: ProgramTree, code: ProgramCode) -> CodeEdit | None:
    """The optimizer is made right before the training loop; or with all parameters of a model."""
    use = next((x for x in code.optimizers if x.steps), None)
    call = _optimizer_call(program, use.line) if use else None
    if call is None or use is None:
        return None
    if use.reached:
        return _whole_model(program, call)
    loops = code.site("backward").loops
    loop = _loop(program, loops[0]) if loops else None
    statement = program.statement(call)
    if loop is None or not isinstance(statement, cst.SimpleStatementLine):
        return None
    if program.function(loop) is not program.function(call) or _is_used_between(
        program, call, loop
    ):
        return None
    text = program.text(statement).strip()

    def write(rewriting: Rewriting) -> None:
        rewriting.remove(call)
        rewriting.before(loop, text)

    return CodeEdit("the optimizer made right before the training loop", program.line(call), write)


def _is_used_between(program: ProgramTree, call: cst.Call, loop: cst.CSTNode) -> bool:
    """Whether what the call makes is used before the loop."""
    names = {
        dotted(target.target)
        for assign in program.of(cst.Assign)
        if assign.value is call
        for target in assign.targets
    }
    after = program.line(call) + _height(program, call)
    return not names or any(
        x.value in names and after <= program.line(x) < program.line(loop)
        for x in program.of(cst.Name)
    )


def _whole_model(program: ProgramTree, call: cst.Call) -> CodeEdit | None:
    """`model.fc.parameters()` becomes `model.parameters()`."""
    first = call.args[0].value if call.args else None
    if not isinstance(first, cst.Call) or not isinstance(first.func, cst.Attribute):
        return None
    owner = dotted(first.func.value)
    root = owner.split(".")[0] if not owner.startswith("self.") else ".".join(owner.split(".")[:2])
    if not owner or root == owner:
        return None
    text = f"{root}.parameters()"
    return CodeEdit(
        f"`{text}` in the optimizer",
        program.line(call),
        lambda rewriting: rewriting.change(first, lambda _: expression(text)),
    )


def _registered(program: ProgramTree, code: ProgramCode) -> CodeEdit | None:
    hidden = [x for x in code.unregistered if not x.optimized and x.line]
    values = [
        (one, assign.value)
        for one in hidden
        for assign in program.of(cst.Assign)
        if program.traced(program.line(assign)) == one.line
        and any(dotted(x.target) == f"self.{one.attribute}" for x in assign.targets)
    ]
    if not values:
        return None
    kinds = {"dict": "torch.nn.ModuleDict", "tensor": "torch.nn.Parameter"}

    def write(rewriting: Rewriting) -> None:
        for one, value in values:
            rewriting.file = program.where(value)
            name = rewriting.named(kinds.get(one.kind, "torch.nn.ModuleList"))
            empty = isinstance(value, cst.List) and not value.elements
            text = "" if empty else program.text(value)
            rewriting.change(value, partial(_put, expression(f"{name}({text})")))

    names = ", ".join(kinds.get(one.kind, "torch.nn.ModuleList") for one, _ in values)
    return CodeEdit(f"wrapped in `{names}`", program.line(values[0][1]), write)


def _put(node: cst.BaseExpression, _before: object) -> cst.BaseExpression:
    return node


def _trainable(program: ProgramTree, code: ProgramCode) -> CodeEdit | None:
    lines = {x.line for x in code.mentions if x.name in ("requires_grad", "requires_grad_")}
    statements = [
        x
        for x in program.of(cst.SimpleStatementLine)
        if program.traced(program.line(x)) in lines and "False" in program.text(x)
    ]
    if not statements:
        return None

    def write(rewriting: Rewriting) -> None:
        for statement in statements:
            rewriting.remove(statement)

    return CodeEdit("all parameters trained", program.line(statements[0]), write)


def _joined(program: ProgramTree, code: ProgramCode) -> CodeEdit | None:
    """Takes away what cuts the graph: `.detach()`, `.data`, or a block without gradients in a
    forward pass.
    """
    inside = [x for x in code.mentions if x.function.startswith(("forward", "encode", "embed"))]
    lines = {name: {x.line for x in inside if x.name == name} for name in ("detach", "data")}
    cuts: list[tuple[cst.BaseExpression, cst.BaseExpression]] = [
        (call, call.func.value)
        for call in program.called_as("detach")
        if program.traced(program.line(call)) in lines["detach"]
        and isinstance(call.func, cst.Attribute)
    ]
    cuts += [
        (node, node.value)
        for node in program.of(cst.Attribute)
        if node.attr.value == "data" and program.traced(program.line(node)) in lines["data"]
    ]
    blocks = [
        x
        for x in program.of(cst.With)
        if program.traced(program.line(x)) in {m.line for m in inside if m.name == "no_grad"}
        and isinstance(x.body, cst.IndentedBlock)
    ]
    if not cuts and not blocks:
        return None

    def write(rewriting: Rewriting) -> None:
        for node, inner in cuts:
            rewriting.change(node, partial(_put, inner))
        for block in blocks:
            rewriting.change(block, lambda updated: cst.FlattenSentinel(updated.body.body))

    first: Any = cuts[0][0] if cuts else blocks[0]
    what = "`no_grad`" if not cuts else "`detach`" if isinstance(cuts[0][0], cst.Call) else "`data`"
    return CodeEdit(f"without {what}", program.line(first), write)


# Modes.


def _training_mode(program: ProgramTree, code: ProgramCode) -> CodeEdit | None:
    loops = code.site("backward").loops
    loop = _loop(program, loops[0]) if loops else None
    first = _first_statement(loop) if loop is not None else None
    names = [_owner(program, _call(program, "eval", site.line)) for site in code.sites("eval")]
    model = next((name for name in names if name), "")
    if first is None or not model:
        return None
    text = f"{model}.train()"
    return CodeEdit(
        f"`{text}` at the start of each epoch",
        program.line(first),
        lambda rewriting: rewriting.before(first, text),
    )


def _evaluation_mode(program: ProgramTree, code: ProgramCode) -> CodeEdit | None:
    mode = next(iter(code.modes), None)
    line = mode.line if mode else 0
    statement = next(
        (
            x
            for x in program.of(cst.SimpleStatementLine)
            if line
            and program.traced(program.line(x))
            <= line
            <= program.traced(program.line(x)) + program.text(x).strip().count("\n")
        ),
        None,
    )
    model = _model_called(program, statement) if statement is not None else ""
    loops = code.site("backward").loops
    loop = _loop(program, loops[0]) if loops else None
    first = _first_statement(loop) if loop is not None else None
    if statement is None or not model or first is None:
        return None

    def write(rewriting: Rewriting) -> None:
        rewriting.before(statement, f"{model}.eval()")
        rewriting.before(first, f"{model}.train()")

    return CodeEdit(f"`{model}.eval()` before the evaluation", program.line(statement), write)


def _model_called(program: ProgramTree, statement: cst.CSTNode) -> str:
    """The name in a statement that is called like a model: no attribute, no function of its own."""
    functions = {x.name.value for x in program.of(cst.FunctionDef)}
    calls = program.within(statement, cst.Call)
    names = [dotted(x.func) for x in calls]
    plain = [
        x
        for x in names
        if x
        and x.count(".") <= x.startswith("self.")
        and x not in functions
        and x in _models(program)
    ]
    return next(iter(plain), "")


def _models(program: ProgramTree) -> set[str]:
    """Names that are given to something that is constructed, or passed to a function."""
    constructed = {
        name
        for name, values in program.values.items()
        if any(isinstance(x, cst.Call) for x in values)
    }
    parameters = {x.name.value for x in program.of(cst.Param)}
    return constructed | parameters


def _dropout(program: ProgramTree, code: ProgramCode) -> CodeEdit | None:
    lines = {x.line for x in code.dropped_out}
    calls = [
        x
        for x in program.called_as("dropout")
        if program.traced(program.line(x)) in lines and program.function(x) is not None
    ]
    if not calls:
        return None

    def write(rewriting: Rewriting) -> None:
        for call in calls:
            rewriting.change(call, with_argument("training", "self.training", 2))

    return CodeEdit("`training=self.training`", program.line(calls[0]), write)


# Data.


def _batch_first(program: ProgramTree, code: ProgramCode) -> CodeEdit | None:
    lines = {x.line for x in code.mentions if x.name in _SEQUENCES}
    calls = [
        x for name in _SEQUENCES for x in program.called_as(name)
        if program.traced(program.line(x)) in lines
    ]  # fmt: skip
    if not calls:
        return None

    def write(rewriting: Rewriting) -> None:
        for call in calls:
            now = argument(call, "batch_first")
            flag = "False" if now is not None and program.text(now) == "True" else "True"
            rewriting.change(call, with_argument("batch_first", flag))

    return CodeEdit("the other `batch_first`", program.line(calls[0]), write)


def _axes(program: ProgramTree, code: ProgramCode) -> CodeEdit | None:
    """The other `batch_first`; or `permute` in the place of a view that swaps axes."""
    use = next((x for x in code.uses if x.name in ("view", "reshape")), None)
    if use is None:
        return _batch_first(program, code)
    call, before = _call(program, use.name, use.line), use.before
    if call is None or len(set(before)) < len(before) - 1 or len(before) != len(use.after):
        return None
    places = list(range(len(before)))
    order: list[int] = []
    for size in use.after:  # of two axes of one size the first comes first
        place = next((x for x in places if before[x] == size), None)
        if place is None:
            return None
        places.remove(place)
        order.append(place)
    axes = ", ".join(map(str, order))
    text = f"{_owner(program, call)}.permute({axes})"
    return CodeEdit(
        f"`permute({axes})`",
        program.line(call),
        lambda rewriting: rewriting.change(call, partial(_put, expression(text))),
    )


def _whole_loader(program: ProgramTree, code: ProgramCode) -> CodeEdit | None:
    """`x, y = next(iter(loader))` at the start of a loop within another goes through the loader."""
    loops = code.site("backward").loops
    loop = _loop(program, loops[-1]) if len(loops) > 1 else None
    first = _first_statement(loop) if loop is not None else None
    if not isinstance(loop, cst.For) or not isinstance(first, cst.SimpleStatementLine):
        return None
    assign = first.body[0]
    if not isinstance(assign, cst.Assign) or len(assign.targets) != 1:
        return None
    following, iterating = assign.value, None
    if isinstance(following, cst.Call) and dotted(following.func) == "next" and following.args:
        iterating = following.args[0].value
    if not isinstance(iterating, cst.Call) or dotted(iterating.func) != "iter":
        return None
    loader, target = iterating.args[0].value, assign.targets[0].target
    over = loop

    def write(rewriting: Rewriting) -> None:
        rewriting.remove(first)
        rewriting.change(over, lambda updated: updated.with_changes(target=target, iter=loader))

    return CodeEdit(f"a loop over `{program.text(loader)}`", program.line(loop), write)


def _averaged(program: ProgramTree, loss: Loss | None) -> CodeEdit | None:
    call = _loss_call(program, loss.line if loss else 0, "reduction")
    if call is None:
        return None
    return CodeEdit(
        '`reduction="mean"`',
        program.line(call),
        lambda rewriting: rewriting.change(call, with_argument("reduction", '"mean"')),
    )


def _loss_call(program: ProgramTree, line: int, name: str) -> cst.Call | None:
    """The call in a line that makes a loss or computes one, that with an argument of a name where
    several do.
    """
    calls = [
        x
        for x in program.calls
        if line
        and program.traced(program.line(x)) == line
        and program.name(x.func).startswith(("torch.nn.", "torch.nn.functional."))
    ]
    return next((x for x in calls if argument(x, name)), next(iter(calls), None))


def _unpadded(program: ProgramTree, trace: TrainingTrace, loss: Loss | None) -> CodeEdit | None:
    call = _loss_call(program, loss.line if loss else 0, "ignore_index")
    if call is None or loss is None or loss.name not in ("cross_entropy", "nll"):
        return None
    ids = [x.settings.get("padding_idx") for model in trace.models for x in model.layers]
    pad = next((x for x in ids if isinstance(x, int) and not isinstance(x, bool)), 0)
    return CodeEdit(
        f"`ignore_index={pad}`",
        program.line(call),
        lambda rewriting: rewriting.change(call, with_argument("ignore_index", str(pad))),
    )


def _squeezed(program: ProgramTree, loss: Loss | None) -> CodeEdit | None:
    """Predictions and targets of one shape, where one of them has an axis of length one more."""
    if loss is None or not loss.call:
        return None
    shapes = (loss.predictions.shape, loss.targets.shape)
    wide = next((at for at, shape in enumerate(shapes) if len(shape) == 2 and shape[1] == 1), None)
    if wide is None or len(shapes[1 - wide]) != 1:
        return None
    calls = [
        x
        for x in program.calls
        if program.traced(program.line(x)) == loss.call and len(x.args) == 2
    ]
    call = next(iter(calls), None)
    if call is None:
        return None
    value = call.args[wide].value
    plain = isinstance(value, cst.Name | cst.Call | cst.Attribute | cst.Subscript)
    text = program.text(value) if plain else f"({program.text(value)})"
    return CodeEdit(
        f"`{text}.squeeze(1)`",
        program.line(call),
        lambda rewriting: rewriting.change(value, partial(_put, expression(f"{text}.squeeze(1)"))),
    )


def _turned(program: ProgramTree, code: ProgramCode, loss: Loss | None) -> CodeEdit | None:
    """The two arguments of a loss in the other order."""
    line = code.integer("swapped_line")
    if loss is not None and loss.settings.get("swapped"):
        line = line or loss.call or loss.line
    calls = [
        x
        for x in program.calls
        if line
        and program.traced(program.line(x)) == line
        and len(x.args) > 1
        and not any(arg.keyword or arg.star for arg in x.args[:2])
    ]
    if len(calls) != 1:
        return None
    call = calls[0]
    first, second = (arg.value for arg in call.args[:2])

    def write(rewriting: Rewriting) -> None:
        rewriting.change(first, partial(_put, second))
        rewriting.change(second, partial(_put, first))

    return CodeEdit("its two arguments swapped", program.line(call), write)


def _bounded(program: ProgramTree, code: ProgramCode) -> CodeEdit | None:
    """A small constant under a root."""
    lines = _places(code, "roots")
    for node in (*program.calls, *program.of(cst.BinaryOperation)):
        if program.traced(program.line(node)) not in lines:
            continue
        inner = _radicand(node)
        if inner is not None:
            text = f"{program.text(inner)} + {_LEAST}"
            if not isinstance(program.parents.get(inner), cst.Arg):
                text = f"({text})"
            return CodeEdit(
                f"`{_LEAST}` under the root",
                program.line(node),
                partial(_change_to, inner, text),
            )
    return None


_LEAST = "1e-8"


def _change_to(node: cst.CSTNode, text: str, rewriting: Rewriting) -> None:
    rewriting.change(node, partial(_put, expression(text)))


def _radicand(node: cst.CSTNode) -> cst.BaseExpression | None:
    """What a root is taken of; None for anything else."""
    if isinstance(node, cst.BinaryOperation):
        is_root = isinstance(node.operator, cst.Power) and isinstance(node.right, cst.Float)
        return node.left if is_root and getattr(node.right, "value", "") in ("0.5", ".5") else None
    if not isinstance(node, cst.Call):
        return None
    if isinstance(node.func, cst.Attribute) and node.func.attr.value == "sqrt":
        return node.args[0].value if node.args else node.func.value
    is_name = isinstance(node.func, cst.Name) and node.func.value == "sqrt"
    return node.args[0].value if is_name and node.args else None


_SEQUENCES = ("LSTM", "GRU", "RNN", "MultiheadAttention", "TransformerEncoderLayer")
# Updates that a program makes itself.


def _places(code: ProgramCode, fact: str) -> tuple[float, ...]:
    value = code.facts.get(fact)
    return tuple(value) if isinstance(value, tuple) else ()


def _subtracted(program: ProgramTree, code: ProgramCode) -> CodeEdit | None:
    lines = _places(code, "own_lines")
    update = next(
        (
            x
            for x in program.of(cst.AugAssign)
            if isinstance(x.operator, cst.AddAssign) and program.traced(program.line(x)) in lines
        ),
        None,
    )
    if update is None:
        return None
    change = partial(cst.CSTNode.with_changes, operator=cst.SubtractAssign())
    return CodeEdit(
        "`-=` for `+=`", program.line(update), lambda rewriting: rewriting.change(update, change)
    )


def _in_place(program: ProgramTree, code: ProgramCode) -> CodeEdit | None:
    lines = _places(code, "own_copies")
    update = next(
        (x for x in program.of(cst.Assign) if program.traced(program.line(x)) in lines), None
    )
    if update is None or len(update.targets) != 1:
        return None
    target, value = program.text(update.targets[0].target), program.text(update.value)
    copy_call = cst.Expr(expression(f"{target}.data.copy_({value})"))
    return CodeEdit(
        f"`{target}` is changed in place",
        program.line(update),
        lambda rewriting: rewriting.change(update, lambda _: copy_call),
    )


_FINDERS: dict[CodeFault, Finder] = {
    "gradients-not-reset": _reset,
    "reset-after-backward": _reset_first,
    "step-never-called": _step,
    "per-epoch-step": _step_inside,
    "backward-never-called": _backward,
    "schedule-stepped-wrong": _schedule,
    "clipping-kills": _clip,
    "optimizer-holds-others": _optimizer_later,
    "not-registered": _registered,
    "parameters-frozen": _trainable,
    "graph-cut": _joined,
    "eval-while-training": _training_mode,
    "train-while-evaluating": _evaluation_mode,
    "dropout-in-evaluation": _dropout,
    "axis-mixed": _axes,
    "same-batch": _whole_loader,
    "step-uphill": _subtracted,
    "update-lost": _in_place,
    "gradient-singular": _bounded,
}
"""The repair of each fault that has one."""
