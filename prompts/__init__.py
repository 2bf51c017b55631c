"""The voice: one folder a stage, one immutable file a version; `catalog.toml` names the live one and holds every hash.

`load("mend").render(...)` gives what is said; what strangers wrote enters only through `fence`.
"""

from __future__ import annotations

from prompts.catalog import Catalog, Prompt, PromptChanged, PromptError
from prompts.outside import fence

_ours = Catalog()
load = _ours.load
listed = _ours.listed

__all__ = ["Catalog", "Prompt", "PromptChanged", "PromptError", "fence", "listed", "load"]
