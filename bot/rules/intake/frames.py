"""Single frames of tracebacks: where the file lies, and which package it belongs to."""

from __future__ import annotations

import re

from bot.models.bug import Frame

CPYTHON = re.compile(r"^\s*File \"(?P<path>[^\"\n]{1,500})\", line (?P<line>\d{1,7})(?:, in (?P<function>.{1,200}))?\s*$")
_LINKED = r"\[?(?P<path>[^\]\s(]{1,400})\]?(?:\([^)\s]{0,300}\))?"
_NOTEBOOK = (
    re.compile(r"^\s*(?:Cell |Input )In ?\[(?P<cell>[\d ]{0,6})\], (?:line (?P<line>\d+)|in)(?:,? in)?\s*(?P<function>.*)$"),
    re.compile(r"^\s*(?:Cell |Input )In ?\[(?P<cell>[\d ]{0,6})\], in (?P<function>.*)$"),
    re.compile(r"^\s*File (?P<path>[^\s,][^,\n]{0,400}?):(?P<line>\d+)(?:, in (?P<function>.*))?\s*$"),
    re.compile(r"^\s*File (?P<path>[^\s,\"][^,\n]{0,400}?), in (?P<function>.*)$"),
    re.compile(
        r"^\s*\[?(?P<path><ipython-input[^>\n]{0,80}>)\]?(?:\([^)\s]{0,300}\))?(?::(?P<line>\d+),)? in (?P<function>.*)$"
    ),
    re.compile(rf"^\s*{_LINKED}(?::(?P<line>\d+))? in (?P<function><?[\w.<>]+[^\n]{{0,300}}\)?)$"),
)
PYTEST = re.compile(
    r"^(?P<path>[^\s:][^:\n]{0,300}\.py):(?P<line>\d+): ?(?:in (?P<function>\S+)|(?P<exc>[A-Z]\w*(?<!Warning)))?\s*$"
)
_SITE = re.compile(r".*(?:site|dist)-packages/(?P<module>[^/]+.*)$")
_STDLIB = re.compile(r"(?i).*/(?:lib(?:64)?/python3\.\d{1,2}|python3\d{1,2}/lib)/(?!(?:site|dist)-packages/)")
_HOMES = (
    "torch_geometric|torch|torchvision|torchaudio|transformers|lightning|lightning_fabric|pytorch_lightning|keras"
    "|tensorflow|jax|jaxlib|flax|optax|equinox|diffusers|accelerate"
    "|peft|timm|torchmetrics|deepchem|datasets|numpy|scipy|haiku|dgl|monai|kornia|trl|deepspeed|ignite"
)
_CHECKOUT = re.compile(rf".*/(?P<module>(?:{_HOMES})/(?!examples/|tests?/|benchmarks?/|scripts/|docs/|src/)[\w/]+\.py)$")


def frame(path: str, line: str | None, function: str, code: str = "", home: str = "") -> Frame:
    """A frame with its package worked out; `home` is the import name of the repository, for files of a checkout."""
    shown = path.strip().strip("[]")
    plain = shown.replace("\\", "/")
    module = ""
    site = _SITE.match(plain)
    if site:
        module = site["module"]
    elif not _STDLIB.match(plain):
        checkout = _CHECKOUT.match(plain)
        module = checkout["module"] if checkout else _own(plain, home)
    package = module.split("/")[0].removesuffix(".py") if module else "<stdlib>" if _STDLIB.match(plain) else ""
    number = int(line) if line and line.isdigit() and len(line) < 9 else None
    return Frame(path=shown, package=package, module_path=module, line=number, function=_name(function), code=code.strip())


def _own(path: str, home: str) -> str:
    if not home or f"/{home}/" not in path:
        return ""
    rest = path.rsplit(f"/{home}/", 1)[1]
    return "" if re.match(r"(?:examples|tests?|benchmarks?|scripts|docs)/", rest) else f"{home}/{rest}"


def _name(function: str) -> str:
    """`Tmp.__init__(self, x)` as `Tmp.__init__`; `<cell line: 25>()` as `<module>`."""
    text = function.strip()
    if text.startswith("<cell line"):
        return "<module>"
    return text.split("(")[0].strip() if "(" in text else text


def notebook(line: str, home: str = "") -> Frame | None:
    """A frame as IPython and Colab print it, or None."""
    if len(line) > 1200 or not (" in " in line or "line " in line or "File " in line):
        return None
    for pattern in _NOTEBOOK:
        match = pattern.match(line)
        if match:
            found = match.groupdict()
            path = found.get("path") or f"<cell {found.get('cell', '').strip()}>"
            if "path" in found and not re.search(r"[/\\~<]|\.py$", path):
                continue
            return frame(path, found.get("line"), found.get("function") or "", home=home)
    return None
