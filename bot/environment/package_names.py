"""Which distribution a name means: in prose, and as a repository publishes it."""

import re
from collections.abc import Iterable
from functools import lru_cache

from packaging.utils import canonicalize_name

# Names that people write for packages, and the distributions they mean. Only for recognising a
# name in text.

_SAME_NAMES = """
torch torchvision torchaudio torchtext torchmetrics torchdata torchao torchtune torchrl tensordict functorch captum
gpytorch botorch pytorch-lightning lightning lightning-utilities tensorflow keras keras-cv keras-hub keras-nlp
keras-core keras-tuner autokeras tensorboard tensorflow-probability tensorflow-datasets tensorflow-text jax jaxlib
flax optax equinox diffrax chex numpyro distrax transformers diffusers accelerate peft timm trl datasets tokenizers
safetensors huggingface-hub bitsandbytes xformers triton deepspeed vllm onnx onnxruntime einops x-transformers dgl
monai kornia albumentations fastai ultralytics detectron2 mmcv mmengine mmdet sentence-transformers spacy catalyst
omegaconf jsonargparse pydantic protobuf h5py wandb mlflow optuna numpy scipy pandas scikit-learn matplotlib pillow
networkx torch-scatter torch-sparse torch-cluster torch-spline-conv pyg-lib deepchem rdkit stable-baselines3
gymnasium gym ray xgboost lightgbm open-clip-torch segmentation-models-pytorch pytorch-metric-learning
pytorch-forecasting neuralforecast darts gluonts allennlp flair speechbrain nemo-toolkit espnet librosa soundfile
torchio skorch litgpt litdata fairscale apex mxnet paddlepaddle cupy numba sympy tqdm setuptools pip statsmodels
evaluate optimum adapters nncf openvino coremltools opacus foolbox torchattacks python pyro-ppl ml-dtypes
orbax-checkpoint
"""
_OTHER = {
    "pytorch": "torch",
    "py torch": "torch",
    "torch geometric": "torch-geometric",
    "pytorch geometric": "torch-geometric",
    "pyg": "torch-geometric",
    "tf": "tensorflow",
    "tensorflow-cpu": "tensorflow-cpu",
    "tensorflow-gpu": "tensorflow-gpu",
    "tf-nightly": "tf-nightly",
    "tf.keras": "tensorflow",
    "tfp": "tensorflow-probability",
    "tfds": "tensorflow-datasets",
    "lightning fabric": "lightning",
    "lightning ai": "lightning",
    "pl": "pytorch-lightning",
    "huggingface transformers": "transformers",
    "hf transformers": "transformers",
    "huggingface hub": "huggingface-hub",
    "sklearn": "scikit-learn",
    "scikit learn": "scikit-learn",
    "opencv": "opencv-python",
    "opencv-python": "opencv-python",
    "pyro": "pyro-ppl",
    "haiku": "dm-haiku",
    "dm-haiku": "dm-haiku",
    "orbax": "orbax-checkpoint",
    "eqx": "equinox",
    "np": "numpy",
    "py": "python",
    "cpython": "python",
    "python3": "python",
    "ignite": "pytorch-ignite",
    "pytorch-ignite": "pytorch-ignite",
    "hydra": "hydra-core",
    "hydra-core": "hydra-core",
    "pil": "pillow",
    "sb3": "stable-baselines3",
    "deep chem": "deepchem",
    "pytorch-scatter": "torch-scatter",
    "pytorch-sparse": "torch-sparse",
    "pytorch-cluster": "torch-cluster",
}
_SHORT = frozenset(
    {
        "py",
        "np",
        "pl",
        "pil",
        "eqx",
        "pip",
        "ray",
        "gym",
        "adapters",
        "apex",
        "evaluate",
        "catalyst",
    }
)


def normal(name: str) -> str:
    """PEP 503."""
    return re.sub(r"[-_.\s]+", "-", name.strip().lower()).strip("-")


PROSE_ALIASES: dict[str, str] = {
    **{name: name for name in _SAME_NAMES.split()},
    **{normal(name): target for name, target in _OTHER.items()},
}


def distribution(name: str) -> str:
    """The distribution a name means; unknown names are taken as they are."""
    return PROSE_ALIASES.get(normal(name), normal(name))


_OWN_FILES = """
args arguments common conf config configs constants core data data_loader data_utils dataloader dataset defs demo engine
eval evaluate helper helpers layers lib loader loaders loss losses main metric metrics misc model models modeling module
modules my_module mymodule nets network networks nn ops options params preprocess preprocessing repro script scripts
settings solver src test tests tools train trainer training util utils your_module
"""
OWN_FILES = frozenset(_OWN_FILES.split())
"""Names a reporter gives files of their own. Distributions under these names exist and are never
what was meant.
"""

_WORDS = """
alpha api app architecture art atol attention attr axis batch bench beta bias binary bios block bottle box browser build
cell channel chapter chart checkpoint chunk class click client clip cluster code column commit compiler component compute
cost cpu crop database dash decay deep delta dense depth device dict disk distance docker driver drop dropout edge epoch
eps epsilon equation error eta event example factor feature field figure file filter fire firmware flag flow form format
frame function game gamma gate gpu graph grid group head heap height hook host image index input instance item iteration
job kappa kernel key label lambda layer learning length level library limit line linear list local log lr magic map
margin mask matrix max mean memory min mode momentum mu noise norm note nu number object offset omega operator opset
option order output package page parallel parameter part patch path performance phase phi pixel plot point policy pool
port precision probability process protocol psi queue random range rank rate ratio record records region release
request response rho rich row rtol run runtime sample scale schema score section seed sequence server service session
setup shape shard shell sigma size slice source spec speed stage state step storage stream strength stride string system
table tables tag target task tau temp temperature tensor text theta thread threshold time token tol tolerance tool tree
type unit update user value vector version view volume wd weight width window word worker zeta zone current dev develop latest master nightly new old previous stable trunk
bash bazel bert brew bun cargo centos chrome clang clang++ cmake coco conda cublas cuda cudnn debian fedora firefox g++ gcc
git glibc go homebrew imagenet ios java jdk kubernetes libc linux llvm macos make maven mingw mnist mpi msvc mysql nccl
ninja node nodejs npm nvcc nvidia nvidia-smi openmpi openssl osx perl php podman postgres redhat redis resnet rocm ruby
rust squad swift ubuntu visual-studio windows wsl xcode yarn zsh
"""
_BESIDES_PACKAGES = frozenset(_WORDS.split())


def is_word(name: str) -> bool:
    """Whether a number beside a name may be an amount, or the version of what is no package."""
    plain = normal(name)
    return len(plain) < 3 or plain in _BESIDES_PACKAGES or plain.replace("-", "_") in OWN_FILES


def is_known(name: str) -> bool:
    """Whether a name is one that people write for a package."""
    return normal(name) in PROSE_ALIASES


def of_repository(repository: str) -> str:
    """The package that a repository is about, by its name; "" when there is no repository."""
    return distribution(repository.rsplit("/", 1)[-1]) if repository else ""


def import_home(repository: str) -> str:
    """The import name that a repository probably has."""
    return repository.rsplit("/", 1)[-1].replace("-", "_").lower()


def in_any_prose(name: str) -> bool:
    """Whether a name in running text is a package's whoever writes it."""
    return normal(name) in PROSE_ALIASES.keys() - _SHORT


@lru_cache(maxsize=64)
def in_prose(extra: str = "") -> str:
    """A pattern for names in running text."""
    return one_of((*filter(in_any_prose, PROSE_ALIASES), *([normal(extra)] if extra else [])))


def one_of(normalized: Iterable[str]) -> str:
    """A pattern for any of these names, however their parts are joined."""
    parts = {re.escape(name).replace(r"\-", r"[-_ ]?") for name in normalized}
    return "|".join(sorted(parts, key=lambda part: (-len(part), part)))


# Which distribution a repository publishes, and what people call it in prose.
#
# Source: the `name` of each repository's own pyproject.toml or setup.py; the aliases are those of
# the projects' issue templates.

REPOSITORIES: dict[str, str] = {
    "abetlen/llama-cpp-python": "llama-cpp-python",
    "albumentations-team/albumentations": "albumentations",
    "allenai/allennlp": "allennlp",
    "apache/mxnet": "mxnet",
    "apache/tvm": "apache-tvm",
    "arogozhnikov/einops": "einops",
    "atomistic-machine-learning/schnetpack": "schnetpack",
    "benedekrozemberczki/pytorch_geometric_temporal": "torch-geometric-temporal",
    "bitsandbytes-foundation/bitsandbytes": "bitsandbytes",
    "cleverhans-lab/cleverhans": "cleverhans",
    "coqui-ai/tts": "tts",
    "cornellius-gp/gpytorch": "gpytorch",
    "dao-ailab/flash-attention": "flash-attn",
    "deepmind/acme": "dm-acme",
    "deepmind/chex": "chex",
    "deepmind/dm-haiku": "dm-haiku",
    "deepmind/graph_nets": "graph-nets",
    "deepmind/optax": "optax",
    "deepmind/sonnet": "dm-sonnet",
    "deepset-ai/haystack": "haystack-ai",
    "dlr-rm/stable-baselines3": "stable-baselines3",
    "dmlc/dgl": "dgl",
    "dmlc/gluon-cv": "gluoncv",
    "dmlc/gluon-nlp": "gluonnlp",
    "dmlc/xgboost": "xgboost",
    "eleutherai/lm-evaluation-harness": "lm-eval",
    "explosion/spacy": "spacy",
    "facebook/ax": "ax-platform",
    "facebookresearch/esm": "fair-esm",
    "facebookresearch/fairseq": "fairseq",
    "facebookresearch/faiss": "faiss-cpu",
    "facebookresearch/hydra": "hydra-core",
    "facebookresearch/pytorch3d": "pytorch3d",
    "facebookresearch/xformers": "xformers",
    "farama-foundation/gymnasium": "gymnasium",
    "fastai/fastai": "fastai",
    "fepegar/torchio": "torchio",
    "google-deepmind/acme": "dm-acme",
    "google-deepmind/chex": "chex",
    "google-deepmind/dm-haiku": "dm-haiku",
    "google-deepmind/graph_nets": "graph-nets",
    "google-deepmind/optax": "optax",
    "google-deepmind/sonnet": "dm-sonnet",
    "google/flax": "flax",
    "google/jax": "jax",
    "google/orbax": "orbax-checkpoint",
    "hill-a/stable-baselines": "stable-baselines",
    "huggingface/huggingface_hub": "huggingface-hub",
    "huggingface/pytorch-image-models": "timm",
    "huggingface/tokenizers": "tokenizers",
    "influxdata/influxdb-client-python": "influxdb-client",
    "jax-ml/jax": "jax",
    "jdb78/pytorch-forecasting": "pytorch-forecasting",
    "keras-team/autokeras": "autokeras",
    "keras-team/keras": "keras",
    "keras-team/keras-contrib": "keras",
    "keras-team/keras-core": "keras-core",
    "keras-team/keras-cv": "keras-cv",
    "keras-team/keras-hub": "keras-hub",
    "keras-team/keras-io": "keras",
    "keras-team/keras-nlp": "keras-nlp",
    "keras-team/keras-tuner": "keras-tuner",
    "keras-team/tf-keras": "tf-keras",
    "kevinmusgrave/pytorch-metric-learning": "pytorch-metric-learning",
    "kornia/kornia": "kornia",
    "lightning-ai/lightning": "lightning",
    "lightning-ai/metrics": "torchmetrics",
    "lightning-ai/pytorch-lightning": "lightning",
    "lightning-ai/torchmetrics": "torchmetrics",
    "lightning-ai/utilities": "lightning-utilities",
    "microsoft/deepspeed": "deepspeed",
    "microsoft/lightgbm": "lightgbm",
    "microsoft/qlib": "pyqlib",
    "mindee/doctr": "python-doctr",
    "mlfoundations/open_clip": "open-clip-torch",
    "mosaicml/composer": "mosaicml",
    "mosaicml/streaming": "mosaicml-streaming",
    "nvidia-nemo/nemo": "nemo-toolkit",
    "nvidia/nemo": "nemo-toolkit",
    "onnx/onnx": "onnx",
    "onnx/tensorflow-onnx": "tf2onnx",
    "open-mmlab/mmclassification": "mmcls",
    "open-mmlab/mmcv": "mmcv",
    "open-mmlab/mmdetection": "mmdet",
    "open-mmlab/mmsegmentation": "mmsegmentation",
    "openai/clip": "openai-clip",
    "openai/gym": "gym",
    "openai/whisper": "openai-whisper",
    "optuna/optuna": "optuna",
    "paddlepaddle/paddle": "paddlepaddle",
    "patrick-kidger/diffrax": "diffrax",
    "patrick-kidger/equinox": "equinox",
    "patrick-kidger/jaxtyping": "jaxtyping",
    "project-monai/monai": "monai",
    "pyannote/pyannote-audio": "pyannote-audio",
    "pyg-team/pytorch-frame": "pytorch-frame",
    "pyg-team/pytorch_geometric": "torch-geometric",
    "pyro-ppl/numpyro": "numpyro",
    "pyro-ppl/pyro": "pyro-ppl",
    "pythonot/pot": "pot",
    "pytorch/ao": "torchao",
    "pytorch/audio": "torchaudio",
    "pytorch/botorch": "botorch",
    "pytorch/captum": "captum",
    "pytorch/data": "torchdata",
    "pytorch/executorch": "executorch",
    "pytorch/ignite": "pytorch-ignite",
    "pytorch/opacus": "opacus",
    "pytorch/pytorch": "torch",
    "pytorch/rl": "torchrl",
    "pytorch/serve": "torchserve",
    "pytorch/tensordict": "tensordict",
    "pytorch/text": "torchtext",
    "pytorch/torchrec": "torchrec",
    "pytorch/torchtune": "torchtune",
    "pytorch/vision": "torchvision",
    "pytorch/xla": "torch-xla",
    "pytorchlightning/metrics": "torchmetrics",
    "pytorchlightning/pytorch-lightning": "pytorch-lightning",
    "qubvel-org/segmentation_models.pytorch": "segmentation-models-pytorch",
    "qubvel/segmentation_models.pytorch": "segmentation-models-pytorch",
    "run-llama/llama_index": "llama-index",
    "rusty1s/pytorch_geometric": "torch-geometric",
    "rusty1s/pytorch_scatter": "torch-scatter",
    "rusty1s/pytorch_sparse": "torch-sparse",
    "rwightman/pytorch-image-models": "timm",
    "scikit-learn-contrib/imbalanced-learn": "imbalanced-learn",
    "scverse/scvi-tools": "scvi-tools",
    "skorch-dev/skorch": "skorch",
    "sktime/pytorch-forecasting": "pytorch-forecasting",
    "state-spaces/mamba": "mamba-ssm",
    "tensorflow/addons": "tensorflow-addons",
    "tensorflow/agents": "tf-agents",
    "tensorflow/datasets": "tensorflow-datasets",
    "tensorflow/federated": "tensorflow-federated",
    "tensorflow/gnn": "tensorflow-gnn",
    "tensorflow/hub": "tensorflow-hub",
    "tensorflow/io": "tensorflow-io",
    "tensorflow/lattice": "tensorflow-lattice",
    "tensorflow/model-optimization": "tensorflow-model-optimization",
    "tensorflow/models": "tf-models-official",
    "tensorflow/privacy": "tensorflow-privacy",
    "tensorflow/probability": "tensorflow-probability",
    "tensorflow/quantum": "tensorflow-quantum",
    "tensorflow/ranking": "tensorflow-ranking",
    "tensorflow/recommenders": "tensorflow-recommenders",
    "tensorflow/similarity": "tensorflow-similarity",
    "tensorflow/tensorflow": "tensorflow",
    "tensorflow/text": "tensorflow-text",
    "tflearn/tflearn": "tflearn",
    "thu-ml/tianshou": "tianshou",
    "timdettmers/bitsandbytes": "bitsandbytes",
    "torchio-project/torchio": "torchio",
    "tristandeleu/pytorch-meta": "torchmeta",
    "trusted-ai/adversarial-robustness-toolbox": "adversarial-robustness-toolbox",
    "ukplab/sentence-transformers": "sentence-transformers",
    "unit8co/darts": "darts",
}

REPOSITORY_ALIASES: dict[str, str] = {
    "cpython": "python",
    "gnn": "torch-geometric",
    "hf-transformers": "transformers",
    "hugging-face-transformers": "transformers",
    "huggingface-transformers": "transformers",
    "huggingface-datasets": "datasets",
    "lightning-ai": "lightning",
    "opencv": "opencv-python-headless",
    "opencv-python": "opencv-python-headless",
    "pil": "pillow",
    "pyg": "torch-geometric",
    "python-version": "python",
    "pytorch": "torch",
    "pytorch-geometric": "torch-geometric",
    "pytorch-version": "torch",
    "sb3": "stable-baselines3",
    "sklearn": "scikit-learn",
    "spacy-nlp": "spacy",
    "tensorflow-cpu": "tensorflow",
    "tensorflow-gpu": "tensorflow",
    "tensorflow-intel": "tensorflow",
    "tensorflow-macos": "tensorflow",
    "tf": "tensorflow",
    "tf-gpu": "tensorflow",
    "torch-gpu": "torch",
    "torch-lightning": "pytorch-lightning",
    "torchgeometric": "torch-geometric",
    "yaml": "pyyaml",
}


def alias(name: str) -> str:
    """The distribution meant by a name as it is written in prose or in a dump."""
    plain = canonicalize_name("-".join(name.split()))
    return REPOSITORY_ALIASES.get(plain, plain)


def distribution_of(repository: str) -> tuple[str, bool]:
    """The distribution a repository publishes, and whether that is known (else it is the
    repository's own name, a guess).
    """
    key = repository.lower()
    if key in REPOSITORIES:
        return REPOSITORIES[key], True
    name = key.rpartition("/")[2]
    return (canonicalize_name(name.removesuffix(".git")), False) if name else ("", False)
