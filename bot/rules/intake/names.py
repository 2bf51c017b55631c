"""Names that people write for packages, and the distributions they mean. Only for recognising a
name in text.
"""

import re
from functools import lru_cache

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


ALIASES: dict[str, str] = {
    **{name: name for name in _SAME_NAMES.split()},
    **{normal(name): target for name, target in _OTHER.items()},
}


def distribution(name: str) -> str:
    """The distribution a name means; unknown names are taken as they are."""
    return ALIASES.get(normal(name), normal(name))


def known(name: str) -> bool:
    """Whether a name is one that people write for a package."""
    return normal(name) in ALIASES


def of_repository(repository: str) -> str:
    """The package that a repository is about, by its name; "" when there is no repository."""
    return distribution(repository.rsplit("/", 1)[-1]) if repository else ""


def import_home(repository: str) -> str:
    """The import name that a repository probably has."""
    return repository.rsplit("/", 1)[-1].replace("-", "_").lower()


@lru_cache(maxsize=64)
def in_prose(extra: str = "") -> str:
    """A pattern for names in running text."""
    known = dict.fromkeys([*ALIASES, *([normal(extra)] if extra else [])])
    parts = (re.escape(name).replace(r"\-", r"[-_ ]?") for name in known if name not in _SHORT)
    return "|".join(sorted(parts, key=len, reverse=True))
