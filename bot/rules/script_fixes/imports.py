"""Names that a pasted program uses without importing them.

The conventional ones of the field are known by table; the others are looked up in the built
environment by the probe (`sandbox/probe/names.py`), the packages that the program imports first.
"""

import ast
import builtins
from functools import lru_cache

from pyflakes import checker, messages

from bot.models.bug import ScriptFix
from bot.rules.intake.python import module_of

_WHY = "the program uses it but does not import it"
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


@lru_cache(maxsize=64)
def undefined(source: str) -> tuple[str, ...]:
    """Names that a program uses but never defines, by first use (pyflakes); () if unparseable."""
    found = checker.Checker(module_of(source), filename="program").messages
    kinds = (messages.UndefinedName, messages.UndefinedLocal)
    rows = sorted(
        (message.lineno, message.col, str(message.message_args[0]))
        for message in found
        if isinstance(message, kinds)
    )
    return tuple(dict.fromkeys(name for _, _, name in rows if not hasattr(builtins, name)))


def conventional(name: str, source: str) -> str:
    """The customary import statement for a name, or "".

    A class of torch is imported only into a program that already mentions torch.
    """
    if name in MODULES:
        module = MODULES[name]
        return f"import {module}" if module == name else f"import {module} as {name}"
    module = MEMBERS.get(name, "")
    foreign = module.startswith("torch") and "torch" not in source
    return f"from {module} import {name}" if module and not foreign else ""


def set_variable(source: str, name: str) -> tuple[str, tuple[ScriptFix, ...]]:
    """The program with a made-up value for an environment variable that holds a secret. Some
    libraries count its characters.
    """
    line = f'import os; os.environ.setdefault("{name}", "{"0" * 40}")'
    return add(source, (line,), "a made-up value where only its presence is checked")


def add(
    source: str, statements: tuple[str, ...], why: str = _WHY
) -> tuple[str, tuple[ScriptFix, ...]]:
    """The program with statements added below its docstring and `__future__` imports."""
    lines = source.splitlines()
    wanted = tuple(line for line in dict.fromkeys(statements) if line and line not in lines)
    if not wanted:
        return source, ()
    at = _first_line(source)
    fixed = "\n".join([*lines[:at], *wanted, *lines[at:]]) + "\n"
    return fixed, tuple(ScriptFix(what=f"added `{line}`", why=why) for line in wanted)


def statements(source: str) -> tuple[tuple[str, frozenset[str]], ...]:
    """The absolute imports at the top level of a program, each with the names it binds."""
    return tuple(
        (
            ast.unparse(node),
            frozenset((alias.asname or alias.name).split(".")[0] for alias in node.names),
        )
        for node in module_of(source).body
        if isinstance(node, ast.Import | ast.ImportFrom) and getattr(node, "level", 0) == 0
    )


def _first_line(source: str) -> int:
    at = 0
    for index, node in enumerate(module_of(source).body):
        docstring = (
            index == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        )
        if not docstring and not (isinstance(node, ast.ImportFrom) and node.module == "__future__"):
            break
        at = node.end_lineno or at
    return at
