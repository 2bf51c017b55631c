"""Where in the user's program something was made, and the loops that a training step stands in."""

import ast
import sys

_MOST_FRAMES = 60
LINES, _MAIN = {}, []


def main_file():
    """The path of the program; Python forgets it before what runs at exit."""
    path = getattr(sys.modules.get("__main__"), "__file__", None)
    if path is not None:
        _MAIN[:] = [path]
    return path or (_MAIN[0] if _MAIN else None)


def line(skip_init=False):
    """The innermost line of the program's main file on the stack; 0 when there is none.
    `skip_init` passes over constructors, which make a model's parts.
    """
    main = main_file()
    frame = sys._getframe(1)
    for _ in range(_MOST_FRAMES):
        if frame is None:
            return 0
        code = frame.f_code
        if code.co_filename == main and not (skip_init and code.co_name == "__init__"):
            return frame.f_lineno
        frame = frame.f_back
    return 0


def remember(thing, skip_init=False):
    """Note where an object is made; a later one at the same address replaces it."""
    LINES[id(thing)] = line(skip_init)


def line_of(thing):
    """The line where an object was made, 0 when that is not known."""
    return LINES.get(id(thing), 0)


def line_of_function(function):
    """The first line of a function of the main file; the one that calls it for any other."""
    code = getattr(getattr(function, "__wrapped__", function), "__code__", None)
    return code.co_firstlineno if code and code.co_filename == main_file() else line()


# The `for` loops of the program's main file that a training step stands in, read from its source:
# how often each runs, where its range can be told without running anything.

_MOST_LOOP_FRAMES, _MOST_SOURCE, _MOST_LOOPS = 80, 1 << 20, 12
_TREES, _LOOP_NAMES = {}, {}


def around():
    """The lengths of the loops around the step that runs now, outermost first; None where a length
    is not known.
    """
    frames, main = [], main_file()
    frame = sys._getframe(1)
    for _ in range(_MOST_LOOP_FRAMES):
        if frame is None:
            break
        if frame.f_code.co_filename == main:
            frames.append(frame)
        frame = frame.f_back
    return [length for frame in reversed(frames) for length in _loops(main, frame)]


def line_and_loops():
    """The line of the program's main file that runs now, 0 for none, and the loops around it,
    outermost first: each "line", with the function that it stands in as "name:line".
    """
    frames, main = [], main_file()
    frame = sys._getframe(1)
    for _ in range(_MOST_LOOP_FRAMES):
        if frame is None:
            break
        if frame.f_code.co_filename == main:
            frames.append(frame)
        frame = frame.f_back
    names = [name for frame in reversed(frames) for name in _loop_names(main, frame)]
    return frames[0].f_lineno if frames else 0, tuple(names[-_MOST_LOOPS:])


def _loop_names(path, frame):
    key = (frame.f_code, frame.f_lineno)
    if key not in _LOOP_NAMES:
        name = "" if frame.f_code.co_name == "<module>" else frame.f_code.co_name + ":"
        lines = [loop.lineno for loop in _enclosing(path, frame)]
        _LOOP_NAMES[key] = tuple("%s%d" % (name, line) for line in lines)
    return _LOOP_NAMES[key]


def tree():
    """The syntax tree of the program's main file, None where it cannot be read."""
    main = main_file()
    return _tree(main) if main else None


def _tree(path):
    if path not in _TREES:
        try:
            with open(path, "rb") as source:
                _TREES[path] = ast.parse(source.read(_MOST_SOURCE))
        except (OSError, SyntaxError, ValueError, TypeError):
            _TREES[path] = None
    return _TREES[path]


def _loops(path, frame):
    names = dict(frame.f_globals)
    names.update(frame.f_locals)
    return [_length(loop, names) for loop in _enclosing(path, frame)]


def _enclosing(path, frame):
    """The loops of a frame's own function around its line, outermost first."""
    tree = _tree(path)
    scope = _scope(tree, frame.f_code) if tree is not None else None
    loops = []
    while scope is not None:
        inner = None
        for child in _statements(scope):
            if child.lineno <= frame.f_lineno <= getattr(child, "end_lineno", child.lineno):
                inner = child
        if isinstance(inner, (ast.For, ast.While)) and inner.lineno < frame.f_lineno:
            loops.append(inner)
        scope = inner
    return loops


def _scope(tree, code):
    """The function of a code object; its first line is that of its first decorator."""
    if code.co_name == "<module>":
        return tree
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == code.co_name:
            first = min([node.lineno] + [one.lineno for one in node.decorator_list])
            if first == code.co_firstlineno:
                return node
    return None


def _statements(node):
    for field in ("body", "orelse", "finalbody", "handlers"):
        for child in getattr(node, field, []) or []:
            if not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                yield child


def _length(loop, names):
    """How often a `for` over a range, or over a progress bar of one, runs."""
    over = getattr(loop, "iter", None)
    if isinstance(over, ast.Call) and over.args:
        name = getattr(over.func, "id", None) or getattr(over.func, "attr", None)
        if name in ("range", "trange"):
            arguments = [_number(one, names) for one in over.args]
            return None if None in arguments or 0 in arguments[2:] else len(range(*arguments))
        if name in ("tqdm", "enumerate", "track"):
            return _length(ast.For(iter=over.args[0]), names)
    return None


def _number(node, names):
    """A whole number that is written out, or the value of a name or an attribute of one."""
    if isinstance(node, ast.Constant):
        value = node.value
    elif isinstance(node, ast.Name):
        value = names.get(node.id)
    elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        value = getattr(names.get(node.value.id), "__dict__", {}).get(node.attr)
    elif isinstance(node, ast.Call) and getattr(node.func, "id", None) == "len":
        array = names.get(getattr(node.args[0], "id", None)) if node.args else None
        value = array.shape[0] if hasattr(array, "shape") and len(array.shape) else None
        value = len(array) if isinstance(array, (list, tuple, range)) else value
    elif isinstance(node, ast.BinOp):
        return _arithmetic(node, names)
    else:
        return None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _arithmetic(node, names):
    left, right = _number(node.left, names), _number(node.right, names)
    if left is None or right is None or abs(left) > 10**12 or abs(right) > 10**12:
        return None
    if isinstance(node.op, ast.Add):
        return left + right
    if isinstance(node.op, ast.Sub):
        return left - right
    if isinstance(node.op, ast.Mult):
        return left * right
    return left // right if isinstance(node.op, ast.FloorDiv) and right else None
