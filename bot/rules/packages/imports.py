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
    "bs4": "beautifulsoup4",
    "clip": "openai-clip",
    "cv2": "opencv-python-headless",
    "dateutil": "python-dateutil",
    "docx": "python-docx",
    "dotenv": "python-dotenv",
    "eqx": "equinox",
    "faiss": "faiss-cpu",
    "fitz": "pymupdf",
    "git": "gitpython",
    "google.cloud.storage": "google-cloud-storage",
    "google.protobuf": "protobuf",
    "haiku": "dm-haiku",
    "hydra": "hydra-core",
    "ignite": "pytorch-ignite",
    "imblearn": "imbalanced-learn",
    "kerastuner": "keras-tuner",
    "mpl_toolkits": "matplotlib",
    "OpenGL": "pyopengl",
    "open_clip": "open-clip-torch",
    "orbax": "orbax-checkpoint",
    "orbax.checkpoint": "orbax-checkpoint",
    "PIL": "pillow",
    "pkg_resources": "setuptools",
    "pl_bolts": "lightning-bolts",
    "pylab": "matplotlib",
    "pyro": "pyro-ppl",
    "serial": "pyserial",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "skopt": "scikit-optimize",
    "tfds": "tensorflow-datasets",
    "torchnlp": "pytorch-nlp",
    "usb": "pyusb",
    "wx": "wxpython",
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
