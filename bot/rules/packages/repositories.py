"""Which distribution a repository publishes, and what people call it in prose.

Source: the `name` of each repository's own pyproject.toml or setup.py; the aliases are those of the
projects' issue templates.
"""

from packaging.utils import canonicalize_name

REPOSITORIES: dict[str, str] = {
    "albumentations-team/albumentations": "albumentations",
    "allenai/allennlp": "allennlp",
    "apache/mxnet": "mxnet",
    "arogozhnikov/einops": "einops",
    "dlr-rm/stable-baselines3": "stable-baselines3",
    "dmlc/dgl": "dgl",
    "dmlc/xgboost": "xgboost",
    "deepmind/dm-haiku": "dm-haiku",
    "deepmind/optax": "optax",
    "explosion/spacy": "spacy",
    "facebookresearch/fairseq": "fairseq",
    "facebookresearch/hydra": "hydra-core",
    "facebookresearch/pytorch3d": "pytorch3d",
    "facebookresearch/xformers": "xformers",
    "farama-foundation/gymnasium": "gymnasium",
    "fastai/fastai": "fastai",
    "google-deepmind/dm-haiku": "dm-haiku",
    "google-deepmind/optax": "optax",
    "google/flax": "flax",
    "google/jax": "jax",
    "google/orbax": "orbax-checkpoint",
    "huggingface/pytorch-image-models": "timm",
    "huggingface/tokenizers": "tokenizers",
    "jax-ml/jax": "jax",
    "keras-team/autokeras": "autokeras",
    "keras-team/keras": "keras",
    "keras-team/keras-core": "keras-core",
    "keras-team/keras-contrib": "keras",
    "keras-team/keras-cv": "keras-cv",
    "keras-team/keras-hub": "keras-hub",
    "keras-team/keras-io": "keras",
    "keras-team/keras-nlp": "keras-nlp",
    "keras-team/keras-tuner": "keras-tuner",
    "keras-team/tf-keras": "tf-keras",
    "kevinmusgrave/pytorch-metric-learning": "pytorch-metric-learning",
    "kornia/kornia": "kornia",
    "lightning-ai/lightning": "lightning",
    "lightning-ai/pytorch-lightning": "lightning",
    "lightning-ai/torchmetrics": "torchmetrics",
    "lightning-ai/metrics": "torchmetrics",
    "lightning-ai/utilities": "lightning-utilities",
    "microsoft/deepspeed": "deepspeed",
    "microsoft/lightgbm": "lightgbm",
    "mlfoundations/open_clip": "open-clip-torch",
    "onnx/onnx": "onnx",
    "onnx/tensorflow-onnx": "tf2onnx",
    "open-mmlab/mmcv": "mmcv",
    "open-mmlab/mmdetection": "mmdet",
    "openai/clip": "openai-clip",
    "openai/gym": "gym",
    "openai/whisper": "openai-whisper",
    "optuna/optuna": "optuna",
    "patrick-kidger/diffrax": "diffrax",
    "patrick-kidger/equinox": "equinox",
    "patrick-kidger/jaxtyping": "jaxtyping",
    "pyg-team/pytorch_geometric": "torch-geometric",
    "pyg-team/pytorch-frame": "pytorch-frame",
    "pyro-ppl/numpyro": "numpyro",
    "pyro-ppl/pyro": "pyro-ppl",
    "pytorch/audio": "torchaudio",
    "pytorch/ao": "torchao",
    "pytorch/botorch": "botorch",
    "pytorch/ignite": "pytorch-ignite",
    "pytorch/pytorch": "torch",
    "pytorch/rl": "torchrl",
    "pytorch/tensordict": "tensordict",
    "pytorch/text": "torchtext",
    "pytorch/torchtune": "torchtune",
    "pytorch/vision": "torchvision",
    "pytorchlightning/metrics": "torchmetrics",
    "pytorchlightning/pytorch-lightning": "pytorch-lightning",
    "qubvel-org/segmentation_models.pytorch": "segmentation-models-pytorch",
    "qubvel/segmentation_models.pytorch": "segmentation-models-pytorch",
    "rwightman/pytorch-image-models": "timm",
    "scikit-learn-contrib/imbalanced-learn": "imbalanced-learn",
    "sktime/pytorch-forecasting": "pytorch-forecasting",
    "skorch-dev/skorch": "skorch",
    "state-spaces/mamba": "mamba-ssm",
    "tensorflow/addons": "tensorflow-addons",
    "tensorflow/agents": "tf-agents",
    "tensorflow/datasets": "tensorflow-datasets",
    "tensorflow/probability": "tensorflow-probability",
    "tensorflow/tensorflow": "tensorflow",
    "tflearn/tflearn": "tflearn",
    "ukplab/sentence-transformers": "sentence-transformers",
}

ALIASES: dict[str, str] = {
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
    return ALIASES.get(plain, plain)


def distribution_of(repository: str) -> tuple[str, bool]:
    """The distribution a repository publishes, and whether that is known (else it is the
    repository's own name, a guess).
    """
    key = repository.lower()
    if key in REPOSITORIES:
        return REPOSITORIES[key], True
    name = key.rpartition("/")[2]
    return (canonicalize_name(name.removesuffix(".git")), False) if name else ("", False)
