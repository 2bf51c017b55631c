"""Names that a pasted program uses without importing them.

The conventional ones of the field are known by table; the others are looked up in the built environment by the probe
(`sandbox/probe/names.py`), the packages that the program imports first.
"""

from __future__ import annotations

import ast
import builtins

from pyflakes import checker, messages

from bot.models.bug import Mend

_WHY = "the report's program uses the name without importing it"
_MODULES = """
np=numpy numpy=numpy pd=pandas pandas=pandas plt=matplotlib.pyplot sns=seaborn tf=tensorflow torch=torch keras=keras jax=jax
jnp=jax.numpy nn=torch.nn F=torch.nn.functional optim=torch.optim tvm=torchvision torchvision=torchvision L=lightning pl=pytorch_lightning
os=os sys=sys re=re math=math json=json time=time random=random copy=copy pickle=pickle itertools=itertools functools=functools
collections=collections warnings=warnings logging=logging pathlib=pathlib tempfile=tempfile traceback=traceback io=io gc=gc typing=typing
dataclasses=dataclasses threading=threading multiprocessing=multiprocessing subprocess=subprocess shutil=shutil glob=glob inspect=inspect
contextlib=contextlib datetime=datetime string=string scipy=scipy einops=einops optax=optax eqx=equinox transformers=transformers
torch_geometric=torch_geometric torchmetrics=torchmetrics sklearn=sklearn dist=torch.distributed mp=torch.multiprocessing
"""
_MEMBERS = """
Path=pathlib partial=functools reduce=functools lru_cache=functools deepcopy=copy defaultdict=collections namedtuple=collections
OrderedDict=collections Counter=collections dataclass=dataclasses field=dataclasses contextmanager=contextlib nullcontext=contextlib
Any=typing Callable=typing Dict=typing List=typing Optional=typing Tuple=typing Union=typing Literal=typing NamedTuple=typing
Iterable=typing Iterator=typing Sequence=typing Type=typing TypeVar=typing Generic=typing Enum=enum ABC=abc abstractmethod=abc
tqdm=tqdm mock=unittest patch=unittest.mock product=itertools chain=itertools datetime=datetime sleep=time
Tensor=torch DataLoader=torch.utils.data Dataset=torch.utils.data TensorDataset=torch.utils.data IterableDataset=torch.utils.data
random_split=torch.utils.data Subset=torch.utils.data Sampler=torch.utils.data
rearrange=einops repeat=einops einsum=einops
"""


def _table(text: str) -> dict[str, str]:
    return dict(pair.split("=", 1) for pair in text.split())


MODULES, MEMBERS = _table(_MODULES), _table(_MEMBERS)


def undefined(source: str) -> tuple[str, ...]:
    """Names that a program uses and never defines, in order of first use (pyflakes); () when it does not parse."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return ()
    found = checker.Checker(tree, filename="program").messages
    kinds = (messages.UndefinedName, messages.UndefinedLocal)
    rows = sorted(
        (message.lineno, message.col, str(message.message_args[0])) for message in found if isinstance(message, kinds)
    )
    return tuple(dict.fromkeys(name for _, _, name in rows if not hasattr(builtins, name)))


def conventional(name: str, source: str) -> str:
    """The import statement that the field writes for a name, or "". A framework's class is not drawn in from a framework that
    the program does not use.
    """
    if name in MODULES:
        module = MODULES[name]
        return f"import {module}" if module == name else f"import {module} as {name}"
    module = MEMBERS.get(name, "")
    if module.startswith("torch") and "torch" not in source:
        return ""
    return f"from {module} import {name}" if module else ""


def add(source: str, statements: tuple[str, ...]) -> tuple[str, tuple[Mend, ...]]:
    """The program with import statements put first (after its docstring and `from __future__` lines)."""
    wanted = tuple(line for line in dict.fromkeys(statements) if line and line not in source.splitlines())
    if not wanted:
        return source, ()
    lines = source.splitlines()
    at = _first_line(source)
    mended = "\n".join([*lines[:at], *wanted, *lines[at:]]) + "\n"
    return mended, tuple(Mend(what=f"added `{line}`", why=_WHY) for line in wanted)


def statements(source: str) -> tuple[tuple[str, frozenset[str]], ...]:
    """The import statements at the top level of a program, each with the names it binds."""
    try:
        body = ast.parse(source).body
    except SyntaxError:
        return ()
    found = [node for node in body if isinstance(node, ast.Import | ast.ImportFrom) and getattr(node, "level", 0) == 0]
    return tuple(
        (ast.unparse(node), frozenset((alias.asname or alias.name).split(".")[0] for alias in node.names)) for node in found
    )


def _first_line(source: str) -> int:
    body = ast.parse(source).body
    at = 0
    for index, node in enumerate(body):
        docstring = index == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
        if not (docstring or future):
            break
        at = node.end_lineno or at
    return at
