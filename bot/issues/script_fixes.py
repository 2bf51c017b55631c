"""Small, listed changes to a reporter's program: source in, new source and a ScriptFix for each."""

import ast
import re
from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise

from bot.environment.imports import Edit, Text, apply, apply_noted
from bot.kernel.bug import Described, ScriptFix
from bot.kernel.source.syntax import (
    dotted,
    is_call_of,
    is_test_method,
    module_of,
    name_of,
    nodes,
)

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
    calls = calls or (_only_root(body) if inert else [])
    if not calls:
        return source, ()
    why = "the bug report's program defines it but never calls it"
    block = "".join(f"    {call}\n" for call in calls)
    return f'{source.rstrip()}\n\n\nif __name__ == "__main__":\n{block}', tuple(
        ScriptFix(what=f"added the call `{call}`", why=why) for call in calls
    )


def _calls(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef):
        if is_test_method(node):
            case = '__import__("unittest").TestCase'
            case_type = f'type("Case", ({case},), {{"{node.name}": {node.name}}})'
            return [f'{case_type}("{node.name}").debug()']
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


def _only_root(body: Sequence[ast.stmt]) -> list[str]:
    """The call of the one function that nothing in the program uses: what it is all for."""
    names = {node.id for part in body for node in ast.walk(part) if isinstance(node, ast.Name)}
    functions = [node for node in body if isinstance(node, ast.FunctionDef)]
    roots = [node for node in functions if node.name not in names and not node.decorator_list]
    return _missing_call(roots[0]) if len(roots) == 1 and _does_more(roots[0]) else []


def _does_more(node: ast.FunctionDef) -> bool:
    """Whether a function does anything but return a value, as one quoted from a library does."""
    return any(not isinstance(part, ast.Return) and not _is_docstring(part) for part in node.body)


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

DEVICE = re.compile(r"^(?:cuda|gpu|mps|xpu)(?::\d+)?$", re.IGNORECASE)
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
    new = "cpu" if DEVICE.match(value) else f"{device_match[1]}CPU:0" if device_match else ""
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


# Gives values to names that a program uses and nothing defines, where the report or the custom of
# its libraries says of what kind they are; and makes a model of random weights where the program
# would load some that are not here.

FILLED = "# filled in"
"""Ends the line that gives a name such a value. A failure that arises there is no reported one."""
OPEN = "the bug report leaves the value open"
UNTRAINED = "its weights are not available here, and the reported failure does not need them"


def fill_names(
    source: str, names: Sequence[str], described: Sequence[Described]
) -> tuple[str, tuple[ScriptFix, ...]]:
    """The program with values for the names that it lacks, or that it sets to `...`."""
    tree, text = module_of(source), Text(source)
    ellipses = {
        node.targets[0].id: node
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
        if isinstance(node.value, ast.Constant) and node.value.value is Ellipsis
    }
    values = {name: _value_of(tree, name, described) for name in (*names, *ellipses)}
    lines = {name: f"{name} = {value}" for name, value in values.items() if value}
    first = next((node for node in tree.body if not _is_head(node)), None)
    if first is None or not lines:
        return source, ()
    decorators = getattr(first, "decorator_list", [])
    start = text.offset(min(node.lineno for node in (first, *decorators)), 0)
    missing = "".join(f"{line}  {FILLED}\n" for name, line in lines.items() if name not in ellipses)
    edits = [
        (*text.span(node), f"{lines[name]}  {FILLED}")
        for name, node in ellipses.items()
        if name in lines
    ]
    return apply(source, [*edits, (start, start, missing)]), tuple(
        ScriptFix(what=f"filled in `{line}`", why=OPEN) for line in lines.values()
    )


def _is_head(node: ast.stmt) -> bool:
    return isinstance(node, ast.Import | ast.ImportFrom) or _is_docstring(node)


def _value_of(tree: ast.Module, name: str, described: Sequence[Described]) -> str:
    """An expression for a name, or "" where neither the report nor custom says what it is."""
    if name == "device":
        return '"cpu"'
    if name == "config":
        return _config_for(tree)
    torch, jax, numpy = (_owner(tree, package) for package in ("torch", "jax", "numpy"))
    if name in {"rng", "key"} and (jax or (numpy and name == "rng")):
        return f"{jax}.random.PRNGKey(0)" if jax else f"{numpy}.random.default_rng(0)"
    match = next((row for row in described if row.name == name), None)
    if match is not None and match.kind == "array":
        return _array(tree, ", ".join(map(str, match.sizes)))
    size = next((row.sizes[-1] for row in described if row.sizes), 4)
    return f"{torch}.nn.Linear({size}, {size})" if match is not None and torch else ""


def _array(tree: ast.Module, sizes: str) -> str:
    """Random numbers in the array type of the first framework that a program imports."""
    if torch := _owner(tree, "torch"):
        return f"{torch}.randn({sizes})"
    if jax := _owner(tree, "jax"):
        return f"{jax}.random.normal({jax}.random.PRNGKey(0), ({sizes},))"
    if tensorflow := _owner(tree, "tensorflow"):
        return f"{tensorflow}.random.normal(({sizes},))"
    numpy = _owner(tree, "numpy") or '__import__("numpy")'
    return f"{numpy}.random.default_rng(0).standard_normal(({sizes},))"


def _owner(tree: ast.Module, package: str) -> str:
    """What a program can call a package that it imports anything of, or ""."""
    is_used = False
    for node in ast.walk(tree):
        for alias in node.names if isinstance(node, ast.Import | ast.ImportFrom) else ():
            module = (node.module or "") if isinstance(node, ast.ImportFrom) else alias.name
            is_used = is_used or module.split(".")[0] == package
            if isinstance(node, ast.Import) and alias.name == package and node in tree.body:
                return alias.asname or package
    return f'__import__("{package}")' if is_used else ""


_ELLIPSIS_TAKEN = re.compile(r"\b(?:pydantic|typer|fastapi|attrs?)\b")


def drop_ellipses(source: str) -> tuple[str, tuple[ScriptFix, ...]]:
    """The program without `...` among the arguments of its calls, where it stands for some that do
    not matter.
    """
    tree, text = module_of(source), Text(source)
    changes = list[tuple[Edit, str]]()
    for call in [] if _ELLIPSIS_TAKEN.search(source) else nodes(tree, ast.Call):
        parts: list[ast.expr | ast.keyword] = [*call.args, *call.keywords]
        arguments = sorted(parts, key=text.span)
        for at, one in enumerate(arguments):
            value = one.value if isinstance(one, ast.keyword) else one
            if not isinstance(value, ast.Constant) or value.value is not Ellipsis:
                continue
            start, end = text.span(one)
            if at + 1 < len(arguments):
                end = text.span(arguments[at + 1])[0]
            elif at:
                start = text.span(arguments[at - 1])[1]
            what = f"left out `...` among the arguments of `{ast.unparse(call.func)[:60]}`"
            changes.append(((start, end, ""), what))
    return apply_noted(source, changes, OPEN)


def restore(source: str, statements: Sequence[str]) -> tuple[str, tuple[ScriptFix, ...]]:
    """The program with these statements where they stand commented out, as in one whose working
    variant alone was left to run.
    """
    lines = [(f"`{code[:120]}`", re.escape(code) + r"(?:[^\S\n]+#.*)?") for code in statements]
    return _uncomment(source, lines, "the bug report says that it fails")


def restore_names(source: str, names: Sequence[str]) -> tuple[str, tuple[ScriptFix, ...]]:
    """The program with the lines that define these names where it only has them in comments."""
    lines = [(f"of `{name}`", re.escape(name) + r"[^\S\n]*=(?!=)[^\n]+") for name in names]
    return _uncomment(source, lines, "the program uses the name, and defines it in a comment only")


def _uncomment(
    source: str, lines: Sequence[tuple[str, str]], why: str
) -> tuple[str, tuple[ScriptFix, ...]]:
    """The program with the first comment that is such a line (its words, its pattern) as code."""
    fixes = list[ScriptFix]()
    for words, pattern in lines:
        commented = rf"^([^\S\n]*)#+[^\S\n]*({pattern})$"
        restored_source = re.sub(commented, r"\1\2", source, count=1, flags=re.M)
        if restored_source != source and module_of(restored_source).body:
            source = restored_source
            fixes.append(ScriptFix(what=f"restored the commented-out line {words}", why=why))
    return source, tuple(fixes)


_SMALL = (
    "hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=4, "
    "intermediate_size=64"
)
_NO_MODEL = re.compile(
    r"Tokenizer|Processor|Extractor|Config|Pipeline|Scheduler|^(?:TF|Flax|T5|Whisper|GPTNeo(?!X))"
)
_HUB_NAME = re.compile(r"^[A-Za-z0-9][\w.-]*(?:/[\w.-]+)?$")
_LOADING = {
    *("torch_dtype", "dtype", "device_map", "low_cpu_mem_usage", "revision", "cache_dir", "token"),
    *("use_auth_token", "local_files_only", "use_safetensors", "force_download", "resume_download"),
    *("pretrained_model_name_or_path", "config"),
}
_DECISIVE = {
    *("quantization_config", "load_in_8bit", "load_in_4bit", "trust_remote_code", "subfolder"),
    *("state_dict", "from_tf", "from_flax", "gguf_file", "variant", "adapter_kwargs", None),
}
_UNTRAINED = {"pretrained": "False", "weights": "None"}
_MODEL_TYPES = (
    *("distilbert", "roberta", "albert", "electra", "deberta", "bert", "gpt_neox", "gpt2", "bart"),
    *("opt", "llama", "mistral", "qwen2", "gemma", "phi", "vit", "bloom"),
)


def without_weights(
    source: str, present: Collection[str] = ()
) -> tuple[str, tuple[ScriptFix, ...]]:
    """The program with a random model of the same class in the place of each that it would load
    from a hub. What it has saved itself it loads as before, and so the weights that are `present`.
    """
    tree, text = module_of(source), Text(source)
    calls = [call for call in nodes(tree, ast.Call) if not _is_present(tree, call, present)]
    changes = [change for call in calls for change in _untrained(tree, text, call)]
    ends = set[int]()
    for call in calls if "save_pretrained" not in source else ():
        if new := _random_model(tree, text, call):
            changes.append(((*text.span(call), new), _random_note(text, call)))
            ends.add(call.end_lineno or 0)
    endings = (
        text.span(node)[1]
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign | ast.Expr) and node.end_lineno in ends
    )
    marks = [(at, at, f"  {FILLED}") for at in endings if _ends_line(source, at)]
    _, fixes = apply_noted(source, changes, UNTRAINED)
    if not fixes:
        return source, ()
    return apply(source, [*(edit for edit, _ in changes), *marks]), fixes


def _is_present(tree: ast.Module, call: ast.Call, present: Collection[str]) -> bool:
    """Whether a call loads weights of one of these names, or makes the model that they are of."""
    words = {word.arg: word.value for word in call.keywords}
    first = call.args[0] if call.args else words.get("pretrained_model_name_or_path")
    return bool(present) and bool({_text_value(tree, first), name_of(call.func)} & {*present})


def _ends_line(source: str, at: int) -> bool:
    """Whether nothing but a comment follows on a line."""
    return not source[at:].partition("\n")[0].partition("#")[0].strip()


def _random_note(text: Text, call: ast.Call) -> str:
    code, owner = (
        " ".join(text.of(call).split()),
        ast.unparse(call.func).removesuffix(".from_pretrained"),
    )
    code = code if len(code) <= 60 else f"{code[:57]}..."
    return f"{code} → a small {owner} with random weights"


def _random_model(tree: ast.Module, text: Text, call: ast.Call) -> str:
    """What makes a random model where `X.from_pretrained("name")` would load one, or ""."""
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    words = {word.arg: word.value for word in call.keywords}
    if owner is None or name_of(call.func) != "from_pretrained" or _DECISIVE & set(words):
        return ""
    first = call.args[0] if call.args else words.get("pretrained_model_name_or_path")
    name = _text_value(tree, first)
    if _is_foreign(tree, owner) or len(call.args) > 1 or not _HUB_NAME.match(name):
        return ""
    options = [f"{word}={text.of(value)}" for word, value in words.items() if word not in _LOADING]
    small = ", ".join((_SMALL, *options))
    model, dtype = text.of(owner), words.get("torch_dtype", words.get("dtype"))
    config = text.of(words["config"]) if "config" in words else ""
    if name_of(owner).startswith("Auto"):
        kind = _model_type(name)
        transformers = f'__import__("transformers").AutoConfig.for_model("{kind}", {small})'
        config = config or (transformers if kind else "")
        random_model = f"{model}.from_config({config})" if config else ""
    else:
        random_model = f"{model}({config or f'{model}.config_class({small})'})"
    is_cast = dtype is not None and not isinstance(dtype, ast.Constant)
    cast = f".to({text.of(dtype)})" if dtype is not None and is_cast else ""
    return f"{random_model}{cast}.eval()" if random_model else ""


def _model_type(name: str) -> str:
    plain = name.rpartition("/")[2].lower().replace("-", "_")
    kinds = (kind for kind in _MODEL_TYPES if re.match(rf"{kind}(?![a-z])", plain))
    return next(kinds, "")


def _is_foreign(tree: ast.Module, owner: ast.expr) -> bool:
    """Whether a class is no model of transformers, by the imports of the program."""
    module = _origin(tree, owner)
    return module.split(".")[0] != "transformers" or bool(_NO_MODEL.search(name_of(owner)))


def _origin(tree: ast.Module, node: ast.expr) -> str:
    """The module from which the first name of a dotted one is imported, or ""."""
    first = dotted(node).split(".")[0]
    for statement in ast.walk(tree):
        if isinstance(statement, ast.Import | ast.ImportFrom):
            module = (statement.module or "") if isinstance(statement, ast.ImportFrom) else ""
            for alias in statement.names:
                if first and (alias.asname or alias.name.split(".")[0]) == first:
                    return module or alias.name
    return ""


def _text_value(tree: ast.Module, node: ast.expr | None) -> str:
    """A text that stands where a node does, or that a name is given once."""
    if isinstance(node, ast.Name):
        values = [
            row.value
            for row in tree.body
            if isinstance(row, ast.Assign) and isinstance(row.targets[0], ast.Name)
            if row.targets[0].id == node.id
        ]
        node = values[0] if len(values) == 1 else None
    is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
    return str(node.value) if is_text and isinstance(node, ast.Constant) else ""


def _untrained(tree: ast.Module, text: Text, call: ast.Call) -> Iterator[tuple[Edit, str]]:
    """The changes that ask a model of torchvision or timm for no trained weights."""
    words = [word for word in call.keywords if word.arg in _UNTRAINED]
    if not words or _origin(tree, call.func).split(".")[0] not in {"torchvision", "timm"}:
        return
    for word in words:
        new = _UNTRAINED[word.arg or ""]
        is_none = isinstance(word.value, ast.Constant) and not word.value.value
        if not is_none:
            what = f"{word.arg}={text.of(word.value)} → {word.arg}={new}"
            yield (*text.span(word.value), new), what


def _config_for(tree: ast.Module) -> str:
    """A small configuration of the class of transformers that the program gives its `config`."""
    owners = [
        node.func
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and not _is_foreign(tree, node.func)
        if any(isinstance(part, ast.Name) and part.id == "config" for part in node.args)
    ]
    is_plain = owners and not name_of(owners[0]).startswith("Auto")
    return f"{ast.unparse(owners[0])}.config_class({_SMALL})" if is_plain else ""
