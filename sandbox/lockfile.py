"""What the resolver decided, read from a lock file of PEP 751, and how large packed wheels are."""

import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit


def sizes(text: str) -> dict[str, int]:
    """The pins ("name==version"), each with the bytes of its largest fitting wheel; 0 where the
    index does not tell.
    """
    packages = tomllib.loads(text).get("packages", [])
    return {
        f"{each['name']}=={each['version']}": max(map(_size, each.get("wheels", ())), default=0)
        for each in packages
    }


def _size(wheel: dict[str, Any]) -> int:
    if "size" in wheel:
        return int(wheel["size"])
    address = urlsplit(wheel.get("url", ""))
    path = wheel.get("path") or (unquote(address.path) if address.scheme == "file" else "")
    try:
        return Path(path).stat().st_size if path else 0
    except OSError:
        return 0


def folder_sizes(folders: Iterable[Path]) -> dict[str, int]:
    """The bytes of the largest wheel of each distribution in some folders."""
    found: dict[str, int] = {}
    for wheel in (file for folder in folders for file in folder.glob("*.whl")):
        name = wheel.name.partition("-")[0].replace("_", "-").lower()
        found[name] = max(found.get(name, 0), wheel.stat().st_size)
    return found
