"""The training probe is armed by an import, also after a library only looked whether there is one."""

import os
import subprocess
import sys
from pathlib import Path

_PROBE = Path(__file__).parents[2] / "sandbox" / "probe" / "training"
_PROGRAM = """
import importlib.util
importlib.util.find_spec("torch")
import torch
from _reprise_training.core import STATE
print(STATE.failed)
"""


def test_a_look_at_a_framework_does_not_disarm(tmp_path: Path):
    (tmp_path / "_reprise_training").symlink_to(_PROBE)
    (tmp_path / "torch.py").write_text("")
    for name in ("sitecustomize.py", "_reprise_trace.py"):
        (tmp_path / name).symlink_to(_PROBE.parent / name)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "REPRISE_TRACE": str(tmp_path)}
    environment |= {"REPRISE_TRAINING": "1"}
    told = subprocess.run(
        [sys.executable, "-c", _PROGRAM],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout.strip() == "{'import of torch': 1}"  # an empty module cannot be watched


def test_the_probe_is_there_before_python_had_a_hook_for_threads(tmp_path: Path) -> None:
    """Python 3.7 has none."""
    folder = _PROBE.parent
    source = (
        "import sys, threading\ndel threading.excepthook\n"
        f"sys.path.insert(0, {str(folder)!r})\nsys.modules.pop('sitecustomize', None)\n"
        "import sitecustomize\nraise KeyError('x')\n"
    )
    environment = {**os.environ, "REPRISE_TRACE": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-S", "-c", source], env=environment, capture_output=True, text=True
    )
    assert "not armed" not in done.stderr
    assert len([*tmp_path.glob("trace-*-main.json")]) == 1
