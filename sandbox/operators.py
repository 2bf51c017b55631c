"""torchvision beside a torch without CUDA, for which the index has no build: makes its import work
without its compiled operators.
"""

from pathlib import Path

_SCHEMAS = {
    "nms": "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms": "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
}
_ADDED = """

# Added by Reprise, not a part of torchvision. The compiled operators of this build load only
# beside a CUDA build of torch, and `_meta_registrations` needs some of them at import. They are
# declared here without a kernel: the import works, and a call of one of them fails.
if not _has_ops():
    import torch.library

"""


def missing(site: Path) -> bool:
    """Whether torchvision is installed there and cannot load its compiled operators, because they
    are linked against the CUDA libraries of torch.
    """
    linked = (b"libtorch_cuda" in path.read_bytes() for path in site.glob("torchvision/_C*.so"))
    return any(linked) and not any(site.glob("torch/lib/libtorch_cuda*"))


def declare(site: Path) -> None:
    """Declare the operators that the import needs, at the end of `torchvision/extension.py`. The
    file is replaced, not written to: the installer's cache may hold a link to it.
    """
    package = site / "torchvision"
    extension, registrations = package / "extension.py", package / "_meta_registrations.py"
    if not (extension.is_file() and registrations.is_file()):
        return
    used = registrations.read_text(encoding="utf-8")
    lines = [
        f'    torch.library.define("torchvision::{name}", "{schema}")\n'
        for name, schema in _SCHEMAS.items()
        if f'"torchvision::{name}"' in used
    ]
    if lines:
        text = extension.read_text(encoding="utf-8")
        extension.unlink()
        extension.write_text("".join((text, _ADDED, *lines)), encoding="utf-8")
