"""A package index of files, made on the spot: releases of a small package whose behaviour at
each version is known.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

_BODY = """With {name} {version}{how}:

```python
import {name}

print({name}.fit())
```

```
Traceback (most recent call last):
  File "repro.py", line 3, in <module>
    print({name}.fit())
  File "/usr/lib/python3/site-packages/{name}/__init__.py", line {line}, in fit
    raise {raised}
{error}
```
"""


@dataclass
class Wheels:
    """Pure wheels of one module each, on simple pages (PEP 503) below `root` that name the day
    of each upload.
    """

    root: Path
    _links: dict[str, list[str]] = field(default_factory=dict)

    @property
    def address(self) -> str:
        """What PIP_INDEX_URL is set to."""
        return (self.root / "simple").as_uri()

    def add(self, name: str, version: str, uploaded: datetime, source: str) -> None:
        """Publish a release: `source` is the text of the module, of the same name as the
        distribution.
        """
        file = f"{name}-{version}-py3-none-any.whl"
        data, folder = _wheel(name, version, source), self.root / "simple" / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / file).write_bytes(data)
        digest = hashlib.sha256(data).hexdigest()
        row = (
            f'<a href="{file}#sha256={digest}" '
            f'data-upload-time="{uploaded:%Y-%m-%dT%H:%M:%SZ}">{file}</a>'
        )
        self._links.setdefault(name, []).append(row)
        page = f"<!DOCTYPE html><html><body>{''.join(self._links[name])}</body></html>"
        (folder / "index.html").write_text(page, encoding="utf-8")


def failing(name: str, version: str, line: int, error: str, how: str = "") -> str:
    """The body of a report on a release whose `fit` raises an error ("ValueError: odd") at a
    line of the module; `how` follows the version in its first sentence.
    """
    kind, _, message = error.partition(": ")
    return _BODY.format(
        name=name, version=version, line=line, how=how, error=error, raised=f'{kind}("{message}")'
    )


def _wheel(name: str, version: str, source: str) -> bytes:
    info, buffer = f"{name}-{version}.dist-info", io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as pack:
        pack.writestr(f"{name}/__init__.py", source)
        pack.writestr(
            f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        )
        pack.writestr(
            f"{info}/WHEEL",
            "Wheel-Version: 1.0\nGenerator: reprise\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        pack.writestr(f"{info}/RECORD", "")
    return buffer.getvalue()
