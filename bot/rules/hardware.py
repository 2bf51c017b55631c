"""Failures that only certain hardware can show, told from the report's own words."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HardwareRule:
    """A pattern over an exception and its message, and what must be there for it to arise."""

    id: str
    pattern: re.Pattern[str]
    needs: str


RULES: tuple[HardwareRule, ...] = (
    HardwareRule("cuda-oom", re.compile(r"CUDA out of memory|HIP out of memory|CUDA_ERROR_OUT_OF_MEMORY|ResourceExhaustedError.*GPU", re.I | re.S), "a GPU"),
    HardwareRule("cuda-error", re.compile(r"CUDA error|CUDA_ERROR_|device-side assert|illegal memory access|cuDNN|CUDNN_STATUS|cuBLAS|CUBLAS_STATUS|cusolver", re.I), "a GPU"),
    HardwareRule("cuda-device", re.compile(r"\bcuda:\d|found at least two devices|\bon (?:the )?(?:cuda|gpu)\b(?! is not)", re.I), "a GPU"),
    HardwareRule("nccl", re.compile(r"\bNCCL\b|ncclSystemError|ncclUnhandled", re.I), "several GPUs"),
    HardwareRule("triton", re.compile(r"triton\.(?:compiler|runtime)\.\w*(?:Error|Resources)|OutOfResources: out of resource", re.I), "a GPU"),
    HardwareRule("mps", re.compile(r"\bMPS backend\b|MPSNDArray|MPSGraph", re.I), "an Apple GPU"),
    HardwareRule("tpu", re.compile(r"\bTPU (?:backend|device)|libtpu", re.I), "a TPU"),
)  # fmt: skip


def demanded(exception: str, message: str) -> HardwareRule | None:
    """The hardware without which this failure cannot arise, or None."""
    text = f"{exception}: {message}"
    return next((rule for rule in RULES if rule.pattern.search(text)), None)
