"""The modules that a program imports, and the distributions that they come from.

Source: the `top_level.txt` and RECORD of each distribution on the package index. Headless and CPU
builds are preferred where a project publishes one, because runs happen on machines without a
display and mostly without an accelerator.
"""

from packaging.utils import canonicalize_name

from bot.rules.intake import names
from bot.rules.packages import repositories

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
        if parts[0] in names.OWN_FILES or parts[0].startswith("_")
        else canonicalize_name(parts[0])
    )


def guessed(module: str) -> str:
    """The top-level module where nothing but the name says which distribution it means; "" for a
    well-known one.
    """
    name = distribution(module)
    return "" if not name or well_known(name) else module.partition(".")[0]


def well_known(name: str) -> bool:
    """Whether a table has a distribution."""
    tables = {*DISTRIBUTIONS.values(), *repositories.REPOSITORIES.values()}
    return name in tables or names.known(name)
