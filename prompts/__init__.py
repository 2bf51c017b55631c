"""Every word that a model reads: one folder a stage, one immutable file a version. `shared` holds
fragments of several stages; `catalog.toml` names the live versions and holds every hash.

`load("mend").render(...)` returns the two messages of a question, `load("act").fragment(...)` a
sentence inside them. Text from outside enters only through `fence`.
"""

from functools import cache

from prompts.catalog import SHARED, Catalog, Prompt, PromptChanged, PromptError, fence

_ours = Catalog()
load = cache(_ours.load)
list_entries = _ours.listed


def shared(name: str, /, **values: object) -> str:
    """A fragment that several stages use."""
    return load(SHARED).fragment(name, **values)


__all__ = [
    "Catalog",
    "Prompt",
    "PromptChanged",
    "PromptError",
    "fence",
    "list_entries",
    "load",
    "shared",
]
