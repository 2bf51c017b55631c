"""The modules that a program imports, and the distributions that they come from."""

import ast
import builtins
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version
from pyflakes import checker, messages

from bot.environment import package_names
from bot.environment.versions import exact_version
from bot.kernel.bug import ScriptFix
from bot.kernel.environment import PinSource, Requirement
from bot.kernel.source import symbols
from bot.kernel.source.syntax import module_of

# Replacing pieces of source text in place, so that the reporter's layout and comments stay.

Edit = tuple[int, int, str]
Positioned = ast.expr | ast.stmt | ast.keyword | ast.arg


_LINE_END = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


def lines(source: str) -> list[str]:
    """The lines of a program with their ends, split only where Python ends a line."""
    return _LINE_END.findall(source)


class Text:
    """Source text by character offset; `ast` counts its columns in UTF-8 bytes."""

    def __init__(self, source: str) -> None:
        self.source = source
        self._lines = lines(source)
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line))

    def offset(self, line: int, column: int) -> int:
        """The character offset of an ast position."""
        text = self._lines[line - 1] if line <= len(self._lines) else ""
        return self._starts[min(line - 1, len(self._lines))] + len(
            text.encode()[:column].decode(errors="ignore")
        )

    def span(self, node: Positioned) -> tuple[int, int]:
        """The first and past-the-end offset of a node."""
        end = node.end_lineno or node.lineno, node.end_col_offset or node.col_offset
        return self.offset(node.lineno, node.col_offset), self.offset(*end)

    def of(self, node: Positioned) -> str:
        """The text of a node."""
        start, end = self.span(node)
        return self.source[start:end]


def apply(source: str, edits: Iterable[Edit]) -> str:
    """Source with the edits made; of overlapping edits only the last in the text is made."""
    result, limit = source, len(source) + 1
    for start, end, new in sorted(set(edits), reverse=True):
        if end <= limit:
            result, limit = result[:start] + new + result[end:], start
    return result


def apply_noted(
    source: str, changes: Sequence[tuple[Edit, str]], why: str
) -> tuple[str, tuple[ScriptFix, ...]]:
    """Source with the changes made, and one note for each distinct description."""
    notes = tuple(
        ScriptFix(what=what, why=why) for what in dict.fromkeys(what for _, what in changes)
    )
    return apply(source, [edit for edit, _ in changes]), notes


# Names that a pasted program uses without importing them.
#
# The conventional ones of the field are known by table; the others are looked up in the built
# environment by the probe (`sandbox/probe/names.py`), the packages that the program imports
# first.

_WHY = "the program uses it but does not import it"
LOCATED = "the program does not import it, and an installed package has it"
"""Why an import is a guess."""
_MODULES = """
np=numpy numpy=numpy pd=pandas pandas=pandas plt=matplotlib.pyplot sns=seaborn tf=tensorflow torch=torch keras=keras jax=jax
jnp=jax.numpy nn=torch.nn F=torch.nn.functional optim=torch.optim tvm=torchvision torchvision=torchvision L=lightning pl=pytorch_lightning
os=os sys=sys re=re math=math json=json time=time random=random copy=copy pickle=pickle itertools=itertools functools=functools
collections=collections warnings=warnings logging=logging pathlib=pathlib tempfile=tempfile traceback=traceback io=io gc=gc typing=typing
dataclasses=dataclasses threading=threading multiprocessing=multiprocessing subprocess=subprocess shutil=shutil glob=glob inspect=inspect
contextlib=contextlib datetime=datetime string=string scipy=scipy einops=einops optax=optax eqx=equinox transformers=transformers
torch_geometric=torch_geometric torchmetrics=torchmetrics sklearn=sklearn dist=torch.distributed mp=torch.multiprocessing
xr=xarray xarray=xarray dask=dask sm=statsmodels.api smf=statsmodels.formula.api xgb=xgboost xgboost=xgboost lgb=lightgbm
lightgbm=lightgbm nx=networkx networkx=networkx tfp=tensorflow_probability hk=haiku gpd=geopandas cv2=cv2 h5py=h5py zarr=zarr
shap=shap optuna=optuna librosa=librosa monai=monai spacy=spacy nltk=nltk polars=polars pyarrow=pyarrow pa=pyarrow ort=onnxruntime
onnx=onnx onnxruntime=onnxruntime tio=torchio timm=timm kornia=kornia flax=flax numpyro=numpyro pyro=pyro gpytorch=gpytorch
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
make_classification=sklearn.datasets make_regression=sklearn.datasets make_blobs=sklearn.datasets make_moons=sklearn.datasets
load_iris=sklearn.datasets load_digits=sklearn.datasets load_wine=sklearn.datasets load_diabetes=sklearn.datasets
load_breast_cancer=sklearn.datasets train_test_split=sklearn.model_selection cross_val_score=sklearn.model_selection
GridSearchCV=sklearn.model_selection KFold=sklearn.model_selection StratifiedKFold=sklearn.model_selection
StandardScaler=sklearn.preprocessing MinMaxScaler=sklearn.preprocessing OneHotEncoder=sklearn.preprocessing
LabelEncoder=sklearn.preprocessing Pipeline=sklearn.pipeline make_pipeline=sklearn.pipeline ColumnTransformer=sklearn.compose
RandomForestClassifier=sklearn.ensemble RandomForestRegressor=sklearn.ensemble GradientBoostingClassifier=sklearn.ensemble
GradientBoostingRegressor=sklearn.ensemble LogisticRegression=sklearn.linear_model LinearRegression=sklearn.linear_model
Ridge=sklearn.linear_model SVC=sklearn.svm DecisionTreeClassifier=sklearn.tree DecisionTreeRegressor=sklearn.tree
KMeans=sklearn.cluster PCA=sklearn.decomposition SimpleImputer=sklearn.impute accuracy_score=sklearn.metrics
f1_score=sklearn.metrics roc_auc_score=sklearn.metrics mean_squared_error=sklearn.metrics
"""


def _table(text: str) -> dict[str, str]:
    return dict(pair.split("=", 1) for pair in text.split())


MODULES, MEMBERS = _table(_MODULES), _table(_MEMBERS)
_LINEN = re.compile(r"\bnn\.(?:compact|nowrap|Dense|Conv)\b(?!\w)|\bflax\b")
_OTHER_RANDOM = {
    "jax": re.compile(r"\brandom\.(?:PRNGKey|fold_in|categorical|truncated_normal)\("),
    "numpy": re.compile(r"\brandom\.(?:rand|randn|default_rng|RandomState|permutation)\("),
}
"""What `random` has only where it is a part of another package."""


@lru_cache(maxsize=64)
def undefined(source: str) -> tuple[str, ...]:
    """Names that a program uses but never defines, by first use (pyflakes); () if unparseable."""
    pyflakes_messages = checker.Checker(module_of(source), filename="program").messages
    kinds = (messages.UndefinedName, messages.UndefinedLocal)
    rows = sorted(
        (message.lineno, message.col, str(message.message_args[0]))
        for message in pyflakes_messages
        if isinstance(message, kinds)
    )
    return tuple(dict.fromkeys(name for _, _, name in rows if not hasattr(builtins, name)))


def conventional(name: str, source: str) -> str:
    """The customary import statement for a name, or "".

    A class of torch is imported only into a program that already mentions torch; `nn` is flax's
    where the program is written for it, `random` that of the package whose functions are called.
    """
    if name == "nn" and _LINEN.search(source):
        return "import flax.linen as nn"
    owners = [package for package, calls in _OTHER_RANDOM.items() if calls.search(source)]
    if name == "random" and owners:
        return f"from {owners[0]} import random"
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
    return add_imports(source, (line,), "a made-up value where only its presence is checked")


def add_imports(
    source: str, statements: tuple[str, ...], why: str = _WHY
) -> tuple[str, tuple[ScriptFix, ...]]:
    """The program with statements added below its docstring and `__future__` imports."""
    lines = source.splitlines()
    missing = tuple(line for line in dict.fromkeys(statements) if line and line not in lines)
    if not missing:
        return source, ()
    at = _first_line(source)
    fixed = "\n".join([*lines[:at], *missing, *lines[at:]]) + "\n"
    return fixed, tuple(ScriptFix(what=f"added `{line}`", why=why) for line in missing)


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


# The modules that a program imports, and the distributions that they come from.
#
# Source: the `top_level.txt` and RECORD of each distribution on the package index. Headless and
# CPU builds are preferred where a project publishes one, because runs happen on machines without
# a display and mostly without an accelerator.

DISTRIBUTIONS: dict[str, str] = {
    "absl": "absl-py",
    "art": "adversarial-robustness-toolbox",
    "attr": "attrs",
    "ax": "ax-platform",
    "bayes_opt": "bayesian-optimization",
    "Box2D": "box2d",
    "Bio": "biopython",
    "bs4": "beautifulsoup4",
    "clip": "openai-clip",
    "Crypto": "pycryptodome",
    "cv2": "opencv-python-headless",
    "dateutil": "python-dateutil",
    "docx": "python-docx",
    "dotenv": "python-dotenv",
    "eqx": "equinox",
    "faiss": "faiss-cpu",
    "ffmpeg": "ffmpeg-python",
    "fitz": "pymupdf",
    "git": "gitpython",
    "google.cloud.storage": "google-cloud-storage",
    "google.protobuf": "protobuf",
    "grpc": "grpcio",
    "haiku": "dm-haiku",
    "hydra": "hydra-core",
    "ignite": "pytorch-ignite",
    "imblearn": "imbalanced-learn",
    "jwt": "pyjwt",
    "kerastuner": "keras-tuner",
    "Levenshtein": "levenshtein",
    "llama_cpp": "llama-cpp-python",
    "MeCab": "mecab-python3",
    "mpl_toolkits": "matplotlib",
    "OpenGL": "pyopengl",
    "open_clip": "open-clip-torch",
    "orbax": "orbax-checkpoint",
    "orbax.checkpoint": "orbax-checkpoint",
    "ot": "pot",
    "PIL": "pillow",
    "pkg_resources": "setuptools",
    "pl_bolts": "lightning-bolts",
    "pptx": "python-pptx",
    "pylab": "matplotlib",
    "pyro": "pyro-ppl",
    "serial": "pyserial",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "skopt": "scikit-optimize",
    "slugify": "python-slugify",
    "sonnet": "dm-sonnet",
    "tfds": "tensorflow-datasets",
    "torchcrf": "pytorch-crf",
    "torchnlp": "pytorch-nlp",
    "tree": "dm-tree",
    "tvm": "apache-tvm",
    "umap": "umap-learn",
    "usb": "pyusb",
    "websocket": "websocket-client",
    "whisper": "openai-whisper",
    "wx": "wxpython",
    "yaml": "pyyaml",
    "zmq": "pyzmq",
}
"""Import names whose distribution is called otherwise; every name not listed here is its own
distribution.
"""

NOT_ON_THE_INDEX = frozenset(
    {
        "google",
        "google.colab",
        "IPython.core.magic",
        "apex",
        "kaggle_secrets",
        "kaggle_datasets",
        "detectron2",
        "mmcv_custom",
    }
)
"""Imported in pasted programs, but not to be had from a package index under that name."""


def distribution(module: str) -> str:
    """The distribution that provides a dotted module name; "" when it is the reporter's own file
    or cannot be had.
    """
    parts = module.split(".")
    for length in range(len(parts), 0, -1):
        prefix = ".".join(parts[:length])
        if prefix in DISTRIBUTIONS:
            return DISTRIBUTIONS[prefix]
        if prefix in NOT_ON_THE_INDEX:
            return ""
    return (
        ""
        if parts[0] in package_names.OWN_FILES or parts[0].startswith("_")
        else canonicalize_name(parts[0])
    )


def guess_distribution(module: str) -> str:
    """The top-level module where nothing but the name says which distribution it means; "" for a
    well-known one.
    """
    name = distribution(module)
    return "" if not name or well_known(name) else module.partition(".")[0]


def well_known(name: str) -> bool:
    """Whether a table has a distribution."""
    tables = {*DISTRIBUTIONS.values(), *package_names.REPOSITORIES.values()}
    return name in tables or package_names.is_known(name)


# Other packages that a distribution needs although its own metadata does not say so, or says so
# too late; each rule with its source.

TORCH_FAMILY: Final = ("torch", "torchvision", "torchaudio", "torchtext")
"""Exempt from the date cut-off: one modern torch serves most old libraries, and old CPU builds
are seldom to be had.
"""

CUDA_ONLY: Final = ("torchvision", "torchaudio", "torchtext", "torchcodec")
"""The compiled parts of these in the index's builds load only beside its CUDA build of torch;
torchvision alone can be imported without them.
"""

FITTED_VISION: Final = "torchvision>=0.4"
"""The releases of torchvision that require one release of torch each."""

TENSORFLOW: Final = (
    "tensorflow",
    "tensorflow-cpu",
    "tensorflow-gpu",
    "tensorflow-intel",
    "tf-nightly",
)
"""The same import package under several names; two of them in one environment overwrite each
other.
"""

JAX: Final = ("jax", "jaxlib")
SHARED_VERSIONS: Final = (
    ("lightning", "pytorch-lightning"),
    ("tensorflow", "tensorflow-cpu"),
    JAX,
)
"""Released together under one number: a version claimed for one holds for the other when nothing
else is said.
"""
LIGHTNING: Final = datetime(2022, 11, 1, tzinfo=UTC)
"""When `lightning` first had the framework; before it was `pytorch-lightning` alone."""

BACKENDS: Final[dict[str, tuple[str, ...]]] = {
    **dict.fromkeys(
        ("flax", "optax", "chex", "dm-haiku", "equinox", "diffrax", "numpyro", "blackjax", "brax"),
        ("jax",),
    ),
    "accelerate": ("torch",),
    "diffusers": ("torch",),
    "segmentation-models-pytorch": ("torch",),
    "skorch": ("torch",),
    "tensorflow-addons": ("tensorflow",),
    "tensorflow-datasets": ("tensorflow",),
    "tensorflow-hub": ("tensorflow",),
    "tensorflow-probability": ("tensorflow", "jax"),
    "tf-keras": ("tensorflow",),
    "torch-geometric": ("torch",),
    "torch-geometric-temporal": ("torch",),
    "transformers": ("torch", "tensorflow", "jax"),
}
"""Frameworks that a distribution imports but leaves to its user to install; the first one when
the program names none. Source: the `install_requires` of each, where the framework is an extra
or absent.
"""

UNDECLARED: Final[dict[str, tuple[str, ...]]] = {"torch": ("numpy",)}
"""Drawn by no metadata and presumed by everyone: torch warns at import without NumPy, and half
of its API needs it.
"""

WINDOWED: Final[dict[str, str]] = {
    "opencv-python": "opencv-python-headless",
    "opencv-contrib-python": "opencv-contrib-python-headless",
}
"""Builds that load a graphics library, which servers and containers lack (`libGL.so.1: cannot open
shared object file`), and the build of the same release without windows.
"""

KERAS_3: Final = datetime(2023, 11, 28, tzinfo=UTC)
"""Release of Keras 3.0, from when on Keras no longer brings or presumes TensorFlow
(keras.io/keras_3).
"""


@dataclass(frozen=True, slots=True)
class VersionBound:
    """A bound on a dependency. It holds for environments whose oldest pinned release is older
    than `until`.
    """

    name: str
    specifier: str
    until: datetime | None
    why: str


BOUNDS: Final = (
    VersionBound(
        "setuptools",
        "<81",
        None,
        "packages from before 2026 import pkg_resources, which setuptools 82 no longer has "
        "(setuptools.pypa.io/history)",
    ),
    VersionBound(
        "numpy",
        "<2",
        datetime(2024, 6, 16, tzinfo=UTC),
        "wheels built before NumPy 2.0 do not work with it (numpy.org/doc/2.0-migration)",
    ),
    VersionBound(
        "protobuf",
        "<3.21",
        datetime(2022, 5, 25, tzinfo=UTC),
        "code generated before protobuf 4 does not work with it (protobuf.dev/news/2022-05-06)",
    ),
)

EXTRAS: Final[dict[str, tuple[str, ...]]] = {"jax": ("cpu",)}
"""Extras to ask for: until 0.4.29 jax named its jaxlib only there, and what needs jax names the
two apart, so that a resolver may pair what does not fit.
"""

TENSORFLOW_CPU: Final = datetime(2019, 9, 30, tzinfo=UTC)
"""From when on TensorFlow publishes a CPU build under a name of its own (release 2.0 and the
later 1.15).
"""

_FOREIGN: Final = (
    "nvidia-",
    "cuda-",
    "pywin",
    "appnope",
    "conda",
    "mkl",
    "intel-",
    "triton",
    "xformers",
    "jax-cuda",
    "xla",
)


def installed_as(name: str, at: datetime | None = None) -> str:
    """The distribution to install for another: the CPU build where there is one."""
    return (
        "tensorflow-cpu" if name == "tensorflow" and (at is None or at >= TENSORFLOW_CPU) else name
    )


def foreign(name: str) -> bool:
    """Whether a package belongs to another machine: drivers, other systems, other package
    managers.
    """
    return name.startswith(_FOREIGN) or name in {"pip", "wheel", "setuptools"}


# The framework behind a library that leaves it to its user: which one the program means, and the
# variable that says so.

_BACKEND = re.compile(r"KERAS_BACKEND\W{1,12}(tensorflow|jax|torch|numpy)\b")
Pin = Callable[[str, str], Requirement]


def add_backend(
    requirements: dict[str, Requirement], source: str, at: datetime | None, pin: Pin
) -> dict[str, str]:
    """Add the frameworks that the wanted distributions need; returns the variables that choose
    between them.
    """
    for name in list(requirements):
        needs = BACKENDS.get(name, ())
        installed_names = [installed_as(need, at) for need in needs]
        if installed_names and not any(name in requirements for name in installed_names):
            requirements[installed_names[0]] = pin(
                installed_names[0], f"{name} needs it and does not install it"
            )
    if "keras" not in requirements:
        return {}
    return _keras(requirements, source, at, pin)


def _keras(
    requirements: dict[str, Requirement], source: str, at: datetime | None, pin: Pin
) -> dict[str, str]:
    tensorflow = installed_as("tensorflow", at)
    three = keras_3(requirements["keras"].specifier, at)
    backend = _backend(source, tensorflow in requirements) if three else "tensorflow"
    name = tensorflow if backend == "tensorflow" else backend
    by_program = " that the program chooses" if _BACKEND.search(source) else ""
    if name not in requirements and name != "numpy":
        requirements[name] = pin(name, f"the backend of Keras{by_program}")
    _same_line(requirements, tensorflow, three)
    return {"KERAS_BACKEND": backend} if three else {}


def _same_line(requirements: dict[str, Requirement], tensorflow: str, three: bool) -> None:
    """Keras 2.4 to 2.15 came out together with TensorFlow of the same minor version."""
    keras, beside = requirements["keras"], requirements.get(tensorflow)
    match = re.fullmatch(r"==2\.(\d+)(?:\.[\w*]+)*", keras.specifier)
    if not three and match and beside is not None and not beside.specifier and int(match[1]) >= 4:
        reason = f"Keras 2.{match[1]} was released with TensorFlow 2.{match[1]}"
        requirements[tensorflow] = Requirement(
            name=tensorflow, specifier=f"==2.{match[1]}.*", rung=PinSource.ISSUE, reason=reason
        )


def _backend(source: str, has_tensorflow: bool) -> str:
    if match := _BACKEND.search(source):
        return match[1]
    modules = () if has_tensorflow else symbols.top_level(source)
    return next((name for name in ("torch", "jax") if name in modules), "tensorflow")


def keras_3(specifier: str, at: datetime | None) -> bool:
    """Whether a Keras requirement means version 3, by its number, else by the day."""
    if exact := exact_version(specifier):
        return Version(exact).major >= 3
    if specifier:
        allowed = SpecifierSet(specifier)
        threes = map(allowed.contains, ("3.0.0", "3.5.0", "3.10.0", "3.15.0"))
        return any(threes) and not specifier.startswith("==2")
    return at is None or at >= KERAS_3
