"""Runs a program in bubblewrap as a worker without any rights would: another user, no control
group.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import typing_extensions

import sandbox

NOBODY = 65534
_DRIVER = """
import dataclasses, json, sys
from pathlib import Path
from sandbox.bwrap import BwrapSandbox
from sandbox.port import Limits, Mount, RunSpec, WorkspaceSpec
asked = json.load(sys.stdin)
home = asked["home"]
spec = RunSpec(
    (home + "/bin/python", "program.py"), files={"program.py": asked["source"].encode()},
    env={"LD_LIBRARY_PATH": home + "/lib"}, mounts=(Mount(Path(home)),),
    limits=Limits(**asked["limits"]),
)
box = BwrapSandbox()
if asked["space"]:
    given = WorkspaceSpec(env=spec.env, mounts=spec.mounts, limits=spec.limits)
    with box.open(given) as space:
        ends = [space.exec((home + "/bin/python", "-c", source)) for source in asked["space"]]
        done = {"ends": [dataclasses.asdict(end) | {"artifacts": {}} for end in ends]}
else:
    done = dataclasses.asdict(box.run(spec))
print(json.dumps({**done, "artifacts": {}, "health": box.check().detail}))
"""


def run(
    home: Path, folder: Path, source: str, space: Sequence[str] = (), **limits: object
) -> Mapping[str, Any]:
    """The result as a dictionary, with the sandbox's own words on itself as `health`. `home` is an
    interpreter and `folder` a place that every user may read. The programs of `space` run in one
    workspace instead, whose results are `ends`.
    """
    package = folder / "sandbox"
    if not package.exists():
        shutil.copytree(Path(sandbox.__file__).parent, package)
        shutil.copy2(typing_extensions.__file__, folder)
        subprocess.run(["chmod", "-R", "a+rX", str(folder)], check=True)
    bounds = {"wall_s": 20, **limits}
    asked = {"home": str(home), "source": source, "space": space, "limits": bounds}
    user = NOBODY if os.geteuid() == 0 else None
    done = subprocess.run(
        [str(home / "bin" / "python"), "-c", _DRIVER],
        input=json.dumps(asked),
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(folder), "LD_LIBRARY_PATH": f"{home}/lib"},
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
        user=user,
        group=user,
        extra_groups=None if user is None else [],
    )
    assert done.returncode == 0, done.stderr
    told: Mapping[str, Any] = json.loads(done.stdout)
    return told
