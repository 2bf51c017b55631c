"""Programs inside shell blocks: `python -c "…"` and here-documents."""

from __future__ import annotations

import re
from dataclasses import dataclass

from bot.models.bug import Mend
from bot.rules.intake.python import Evidence, evidence, tree_of

_INLINE = re.compile(r"\bpython[\d.]*\s+(?:-\w\s+)*-c\s+(?P<quote>['\"])")
_MOST = 10
_VALUE = r"[\w.,:/=+-]{1,80}|\"[^\"\n]{1,80}\"|'[^'\n]{1,80}'"
_VARIABLE = re.compile(rf"(?:^|\s)(?:export |set |%env )?(?P<name>[A-Z][A-Z0-9_]{{2,60}})=(?P<value>{_VALUE})(?=\s|$)", re.M)
# What libraries read; never what decides which programs, files or hosts are used.
_READ = re.compile(
    r"^(?:KERAS_|JAX_|XLA_|TF_|TORCH_|TORCHDYNAMO_|TORCHINDUCTOR_|PYTORCH_|CUDA_|OMP_|MKL_|KMP_|NCCL_|ACCELERATE_|TOKENIZERS_"
    r"|TRANSFORMERS_|DIFFUSERS_|FLAX_|EQX_|HYDRA_|NUMBA_|PYTHONHASHSEED$|PYTHONOPTIMIZE$|PYTHONWARNINGS$|PL_|DGL)"
)
_HERE = re.compile(r"<<-?\s*['\"]?(?P<end>\w{2,20})['\"]?[^\n]*\n")


@dataclass(frozen=True, slots=True)
class Embedded:
    """A program taken out of a command."""

    text: str
    evidence: Evidence
    mends: tuple[Mend, ...]


def program(text: str) -> Embedded | None:
    """The Python program that a shell block runs, or None."""
    if len(text) > 100_000:
        return None
    found = _of_flag(text) or _of_document(text)
    tree = tree_of(found) if found else None
    if not found or tree is None or evidence(tree) == "none":
        return None
    mend = Mend(what="took the program out of a shell command", why="it was passed to python on the command line")
    return Embedded(found, evidence(tree), (mend,))


def _of_flag(text: str) -> str:
    """The programs of every `-c`, one after the other: a later command uses what the earlier one has left."""
    parts: list[str] = []
    at = 0
    while len(parts) < _MOST and (match := _INLINE.search(text, at)) is not None:
        end = text.find(match["quote"], match.end())
        while end > 0 and text[end - 1] == "\\":
            end = text.find(match["quote"], end + 1)
        if end < 0:
            break
        code, at = text[match.end() : end], end + 1
        parts.append(code.replace('\\"', '"').replace("\\$", "$").strip("\n") if match["quote"] == '"' else code.strip("\n"))
    return "\n".join(parts)


def _of_document(text: str) -> str:
    match = _HERE.search(text)
    if not match or ("python" not in text and ".py" not in text):
        return ""
    lines = text[match.end() :].split("\n")
    end = next((i for i, line in enumerate(lines) if line.strip() == match["end"]), len(lines))
    return "\n".join(lines[:end])


def variables(text: str) -> dict[str, str]:
    """The environment variables that a shell block sets for the libraries: `KERAS_BACKEND=torch python x.py`, `export …`."""
    found = {match["name"]: match["value"].strip("\"'") for match in _VARIABLE.finditer(text[:20_000])}
    return {name: value for name, value in found.items() if _READ.match(name)}
