"""Names that PyTorch used to have: one modern release of it serves old repositories, whose own
files may import what is gone.
"""

import ast
import re
from collections.abc import Mapping

from bot.issues.search.missing_weights import edit_nodes
from bot.kernel.attempt import Failure, Script
from bot.kernel.source.syntax import module_of, nodes
from bot.kernel.trees import Tree, tree_files

OUT_OF_DATE = "PyTorch does not have it any more"
_MODULE = re.compile(r"^No module named '(?P<module>[\w.]{1,80})'")
_NAMES: Mapping[str, Mapping[str, str]] = {
    "torch._six": {
        "string_classes": "(str, bytes)",
        "int_classes": "int",
        "container_abcs": "__import__('collections.abc').abc",
        "inf": "float('inf')",
        "nan": "float('nan')",
        "PY3": "True",
        "PY37": "True",
    },
    "torchvision.models.utils": {
        "load_state_dict_from_url": "__import__('torch').hub.load_state_dict_from_url",
    },
}
"""The module, and what each of its names was."""


def with_old_names(script: Script, tree: Tree, failure: Failure) -> Script:
    """A program whose import of names that PyTorch had gives what they were; the very script where
    it ended for another reason, or asks for others.
    """
    match = _MODULE.match(failure.message)
    names = _NAMES.get(match["module"], {}) if match is not None else {}
    last = failure.innermost
    paths = tree_files(last, tree) if names and last is not None and not last.package else []
    if match is None or not paths:
        return script
    path = max(paths, key=len)
    text = script.files.get(path) or tree[path].decode("utf-8", "replace")
    imports = [
        node
        for node in nodes(module_of(text), ast.ImportFrom)
        if node.module == match["module"] and all(alias.name in names for alias in node.names)
    ]
    rows = [
        (node, "; ".join(f"{one.asname or one.name} = {names[one.name]}" for one in node.names))
        for node in imports
    ]
    return edit_nodes(script, path, text, rows, OUT_OF_DATE) if rows else script
