"""Import names whose distribution is called otherwise; every name not listed here is its own
distribution.

Source: the `top_level.txt` and RECORD of each distribution on the package index. Headless and CPU
builds are preferred where a project publishes one, because runs happen on machines without a
display and mostly without an accelerator.
"""

from __future__ import annotations

import re

DISTRIBUTIONS: dict[str, str] = {
    "attr": "attrs",
    "Bio": "biopython",
    "bitsandbytes": "bitsandbytes",
    "bs4": "beautifulsoup4",
    "clip": "openai-clip",
    "cv2": "opencv-python-headless",
    "dateutil": "python-dateutil",
    "dgl": "dgl",
    "docx": "python-docx",
    "dotenv": "python-dotenv",
    "eqx": "equinox",
    "fastai": "fastai",
    "faiss": "faiss-cpu",
    "fitz": "pymupdf",
    "git": "gitpython",
    "google.cloud.storage": "google-cloud-storage",
    "google.protobuf": "protobuf",
    "gym": "gym",
    "haiku": "dm-haiku",
    "hydra": "hydra-core",
    "igraph": "igraph",
    "ignite": "pytorch-ignite",
    "imblearn": "imbalanced-learn",
    "keras_contrib": "keras-contrib",
    "keras_core": "keras-core",
    "keras_cv": "keras-cv",
    "keras_hub": "keras-hub",
    "keras_nlp": "keras-nlp",
    "keras_tuner": "keras-tuner",
    "kerastuner": "keras-tuner",
    "lightning_fabric": "lightning-fabric",
    "lightning_utilities": "lightning-utilities",
    "ml_collections": "ml-collections",
    "mpl_toolkits": "matplotlib",
    "MinkowskiEngine": "minkowskiengine",
    "monai": "monai",
    "nibabel": "nibabel",
    "OpenGL": "pyopengl",
    "open_clip": "open-clip-torch",
    "opt_einsum": "opt-einsum",
    "orbax": "orbax-checkpoint",
    "orbax.checkpoint": "orbax-checkpoint",
    "PIL": "pillow",
    "pkg_resources": "setuptools",
    "pl_bolts": "lightning-bolts",
    "pretty_midi": "pretty-midi",
    "pylab": "matplotlib",
    "pyro": "pyro-ppl",
    "pyscf": "pyscf",
    "pytorch_forecasting": "pytorch-forecasting",
    "pytorch_lightning": "pytorch-lightning",
    "pytorch_metric_learning": "pytorch-metric-learning",
    "pytorch_tabnet": "pytorch-tabnet",
    "rdkit": "rdkit",
    "rotary_embedding_torch": "rotary-embedding-torch",
    "sb3_contrib": "sb3-contrib",
    "segmentation_models_pytorch": "segmentation-models-pytorch",
    "sentence_transformers": "sentence-transformers",
    "sentencepiece": "sentencepiece",
    "serial": "pyserial",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "skopt": "scikit-optimize",
    "skorch": "skorch",
    "stable_baselines3": "stable-baselines3",
    "statsmodels": "statsmodels",
    "tensorboardX": "tensorboardx",
    "tensorflow": "tensorflow",
    "tensorflow_addons": "tensorflow-addons",
    "tensorflow_datasets": "tensorflow-datasets",
    "tensorflow_hub": "tensorflow-hub",
    "tensorflow_probability": "tensorflow-probability",
    "tensorflow_text": "tensorflow-text",
    "tf_agents": "tf-agents",
    "tf_keras": "tf-keras",
    "tf2onnx": "tf2onnx",
    "tfds": "tensorflow-datasets",
    "tflearn": "tflearn",
    "torch_cluster": "torch-cluster",
    "torch_geometric": "torch-geometric",
    "torch_geometric_temporal": "torch-geometric-temporal",
    "torch_scatter": "torch-scatter",
    "torch_sparse": "torch-sparse",
    "torch_spline_conv": "torch-spline-conv",
    "torch_xla": "torch-xla",
    "torchnlp": "pytorch-nlp",
    "usb": "pyusb",
    "vector_quantize_pytorch": "vector-quantize-pytorch",
    "vit_pytorch": "vit-pytorch",
    "wx": "wxpython",
    "x_transformers": "x-transformers",
    "yaml": "pyyaml",
    "zmq": "pyzmq",
}

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

LOCAL = frozenset(
    """
    args arguments common conf config configs constants core data data_loader data_utils dataloader dataset defs demo engine
    eval evaluate helper helpers layers lib loader loaders loss losses main metric metrics misc model models modeling module
    modules my_module mymodule nets network networks nn ops options params preprocess preprocessing repro script scripts
    settings solver src test tests tools train trainer training util utils your_module
    """.split()  # noqa: SIM905
)
"""Names a reporter gives files of their own. Distributions under these names exist and are never
what was meant.
"""


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
    return "" if parts[0] in LOCAL or parts[0].startswith("_") else normalise(parts[0])


def normalise(name: str) -> str:
    """A distribution name in the form the index uses (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()
