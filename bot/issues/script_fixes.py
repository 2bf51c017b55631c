"""Small, listed changes to a reporter's program: source in, new source and a ScriptFix for each."""

import ast
import re
from itertools import pairwise

from bot.environment.imports import Edit, Text, apply, apply_noted
from bot.kernel.bug import ScriptFix
from bot.kernel.source.syntax import is_call_of, module_of, name_of

# Adds a missing call of `main()` or of tests, and prints the bare expressions of a transcript.

_FIXTURES = {
    "tmp_path": '__import__("pathlib").Path(__import__("tempfile").mkdtemp())',
    "tmpdir": '__import__("pathlib").Path(__import__("tempfile").mkdtemp())',
    "cleandir": "None",
    "device": '"cpu"',
    "seed": "0",
}
_DEFS = (ast.FunctionDef, ast.AsyncFunctionDef)
_ENTRIES = frozenset({"main", "run", "train", "repro", "reproduce", "demo", "example", "test"})
_INERT = (ast.Import, ast.ImportFrom, ast.ClassDef, ast.Assign, ast.AnnAssign, *_DEFS)


def call_entry(source: str) -> tuple[str, tuple[ScriptFix, ...]]:
    """The program with calls of its `main()` or tests added, if it only defines things."""
    body = module_of(source).body
    inert = all(isinstance(node, _INERT) or _is_docstring(node) for node in body)
    calls = [call for node in body for call in _calls(node)] if inert else []
    if not calls:
        return source, ()
    why = "the bug report's program defines it but never calls it"
    block = "".join(f"    {call}\n" for call in calls)
    return f'{source.rstrip()}\n\n\nif __name__ == "__main__":\n{block}', tuple(
        ScriptFix(what=f"added the call `{call}`", why=why) for call in calls
    )


def _calls(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef):
        entry = node.name in _ENTRIES or node.name.startswith(("test_", "repro_"))
        return _missing_call(node) if entry else []
    if not isinstance(node, ast.ClassDef):
        return []
    if any("TestCase" in ast.unparse(base) for base in node.bases):
        return ['__import__("unittest").main()']
    tests = node.body if node.name.startswith("Test") and not node.bases else []
    return [
        call
        for method in tests
        if isinstance(method, ast.FunctionDef) and method.name.startswith("test")
        for call in _missing_call(method, f"{node.name}().")
    ]


def _missing_call(node: ast.FunctionDef, owner: str = "") -> list[str]:
    """The call of a function or method, if a fixture is known for each required parameter."""
    spec = node.args
    names = [argument.arg for argument in (*spec.posonlyargs, *spec.args)][bool(owner) :]
    required = names[: len(names) - len(spec.defaults)]
    if any(name not in _FIXTURES for name in required):
        return []
    return [f"{owner}{node.name}({', '.join(_FIXTURES[name] for name in required)})"]


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _one_a_line(source: str) -> str:
    """A program whose top-level statements all begin a line."""
    text = Text(source)
    pairs = pairwise(module_of(source).body)
    shared = [(one, other) for one, other in pairs if one.end_lineno == other.lineno]
    return apply(source, [(text.span(a)[1], text.span(b)[0], "\n") for a, b in shared])


def show_expressions(source: str) -> tuple[str, tuple[ScriptFix, ...]]:
    """A transcript whose bare top-level expressions print their value, as the prompt did; in a
    form that the oldest Python reads.
    """
    source = _one_a_line(source)
    text = Text(source)
    edits = [
        (*text.span(node), f"_ = ({text.of(node)})\nif _ is not None:\n    print(repr(_))")
        for node in module_of(source).body
        if isinstance(node, ast.Expr)
        and not _is_docstring(node)
        and not is_call_of(node.value, "print")
    ]
    fix = ScriptFix(
        what="bare expressions print their value", why="the prompt in the bug report printed them"
    )
    return apply(source, edits), (fix,) if edits else ()


# Shows where the exceptions arose that a program catches and reports in words of its own.

_SHOWS = '__import__("traceback").print_exc()'
_OPTIONAL = {"ImportError", "ModuleNotFoundError"}
_REPORTING_CALLS = {
    "print",
    "exit",
    "fail",
    "write",
    "format_exc",
    "exc_info",
    "error",
    "warning",
    "info",
}
_TRACEBACK_CALLS = {"print_exc", "print_exception", "exception"}


def show_caught(source: str) -> tuple[str, tuple[ScriptFix, ...]]:
    """The program with a traceback printed by each of its handlers that reports an exception. How
    it goes on and ends stays the same.
    """
    handlers = (node for node in ast.walk(module_of(source)) if _reports(node))
    text = Text(source)
    edits = [_print_error(text, node) for node in handlers if isinstance(node, ast.ExceptHandler)]
    fix = ScriptFix(
        what="printed the traceback of what the program catches",
        why="its own words do not say where the exception arose",
    )
    return apply(source, edits), (fix,) if edits else ()


def _print_error(text: Text, handler: ast.ExceptHandler) -> Edit:
    first = handler.body[0]
    start = text.span(first)[0]
    before = text.source[:start].rpartition("\n")[2]
    between = "; " if before.strip() else f"\n{before}"
    return start, start, _SHOWS + between


def _reports(node: ast.AST) -> bool:
    """Whether a handler says something about what it caught, without a traceback and without
    raising again. What an optional import raises is no failure.
    """
    if not isinstance(node, ast.ExceptHandler):
        return False
    parts = [part for statement in node.body for part in ast.walk(statement)]
    types = {name_of(part) for part in ast.walk(node.type)} if node.type else set[str]()
    calls = {name_of(part.func) for part in parts if isinstance(part, ast.Call)}
    names = {part.id for part in parts if isinstance(part, ast.Name)}
    silent = node.name not in names and not calls & _REPORTING_CALLS
    has_raise = any(isinstance(part, ast.Raise) for part in parts)
    return not (silent or has_raise or types & _OPTIONAL or calls & _TRACEBACK_CALLS)


# Makes a program fit the machine: on the CPU in place of a GPU (device names, `.cuda()`, device
# counts), or with fewer rounds of a long training.
#
# Used only after a run failed for lack of a GPU, when the reported failure does not need one, or
# took too long.

_DEVICE = re.compile(r"^(?:cuda|gpu|mps|xpu)(?::\d+)?$", re.IGNORECASE)
_TF_DEVICE = re.compile(r"^(/?(?:device:)?)GPU:\d+$", re.IGNORECASE)
_COUNTS = {"devices", "gpus", "num_gpus", "n_gpus", "n_gpu"}
_DROPPED_CALLS = {
    *("synchronize", "empty_cache", "set_device", "manual_seed_all", "ipc_collect"),
    "reset_peak_memory_stats",
}
_REPLACEMENTS = {
    "torch.cuda.amp.autocast": 'torch.autocast("cpu", dtype=torch.bfloat16)',
    "torch.cuda.current_device": '"cpu"',
}
_ROUNDS = re.compile(
    r"^(?:max_|num_|n_|nb_|total_)?(?:epochs?|steps?|iters?|iterations?|updates|timesteps|trials)$",
    re.IGNORECASE,
)
TOO_LONG = "the program did not end in time; fewer rounds of the same work"
FEW = 3
NO_GPU = "no GPU here, and the reported failure does not need one"


def to_cpu(source: str) -> tuple[str, tuple[ScriptFix, ...]]:
    """The program with every request for a GPU turned into one for the CPU, if it still parses."""
    text = Text(source)
    changes = [change for node in ast.walk(module_of(source)) for change in _changes(text, node)]
    new_source, fixes = apply_noted(source, changes, NO_GPU)
    return (new_source, fixes) if module_of(new_source).body else (source, ())


def _changes(text: Text, node: ast.AST) -> list[tuple[Edit, str]]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return _constant(text, node, node.value)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return _scaled_call(text, node, node.func)
    if not isinstance(node, ast.keyword) or node.arg not in _COUNTS:
        return []
    if isinstance(node.value, ast.Constant) and node.value.value in (1, "1", "auto"):
        return []
    return [((*text.span(node.value), "1"), f"{node.arg}={text.of(node.value)} → {node.arg}=1")]


def _constant(text: Text, node: ast.Constant, value: str) -> list[tuple[Edit, str]]:
    device_match = _TF_DEVICE.match(value)
    new = "cpu" if _DEVICE.match(value) else f"{device_match[1]}CPU:0" if device_match else ""
    span = text.span(node)
    if not new or text.source[span[0]] not in "'\"":
        return []
    return [((*span, repr(new).replace("'", '"')), f'"{value}" → "{new}"')]


def _scaled_call(text: Text, node: ast.Call, function: ast.Attribute) -> list[tuple[Edit, str]]:
    owner, span, call_text = text.of(function.value), text.span(node), text.of(node)
    call_text = call_text if len(call_text) <= 60 else f"{call_text[:57]}..."
    if function.attr == "cuda" and owner not in {"torch", "jax"}:
        return [((*span, f"{owner}.cpu()"), f"{call_text} → .cpu()")]
    if owner == "torch.cuda" and function.attr in _DROPPED_CALLS:
        return [((*span, "None"), f"{call_text} left out")]
    new = _REPLACEMENTS.get(text.of(function), "")
    return [((*span, new), f"{call_text} → {new}")] if new else []


def shorten(source: str) -> tuple[str, tuple[ScriptFix, ...]]:
    """The program with its counts of epochs, steps or iterations lowered to 3."""
    text = Text(source)
    changes = [
        ((*text.span(value), str(FEW)), f"{name}: {value.value} → {FEW}")
        for node in ast.walk(module_of(source))
        for name, value in _named_values(node)
        if _ROUNDS.match(name)
        and isinstance(value, ast.Constant)
        and isinstance(value.value, int)
        and value.value > FEW
    ]
    return apply_noted(source, changes, TOO_LONG)


def _named_values(node: ast.AST) -> list[tuple[str, ast.expr]]:
    if isinstance(node, ast.keyword) and node.arg:
        return [(node.arg, node.value)]
    if isinstance(node, ast.Assign):
        return [(target.id, node.value) for target in node.targets if isinstance(target, ast.Name)]
    if not (isinstance(node, ast.For) and isinstance(node.target, ast.Name)):
        return []
    loop = node.iter
    bounds = loop.args if isinstance(loop, ast.Call) and is_call_of(loop, "range") else []
    return [(node.target.id, bounds[0])] if len(bounds) == 1 else []
