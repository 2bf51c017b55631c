"""A general reducer's interestingness test: whether a program still shows the failure that the
settings file describes.

lithium calls it, others start it: `python -m benchmarks.interesting SETTINGS PROGRAM` exits with 0
when it does, else 1.
"""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.minimise import OracleSettings, interesting as shows
from sandbox.process import ProcessSandbox

_ORACLES: dict[str, OracleSettings] = {}


def interesting(arguments: list[str], _prefix: str) -> bool:
    """Called by lithium with the settings file and the program."""
    settings, program = arguments[-2:]
    oracle = _ORACLES.setdefault(
        settings, OracleSettings.model_validate_json(Path(settings).read_bytes())
    )
    return shows(oracle, Path(program).read_text("utf-8"), ProcessSandbox())


if __name__ == "__main__":
    raise SystemExit(not interesting(sys.argv[1:], ""))
