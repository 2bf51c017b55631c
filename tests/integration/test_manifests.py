"""The Kubernetes manifests against the published schemas of their kinds, KEDA's included."""

import copy
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.node
OBJECTS = [
    part
    for file in sorted((ROOT / "deploy" / "kubernetes").glob("*.yaml"))
    for part in yaml.safe_load_all(file.read_text())
    if part["kind"] != "Kustomization"
]


def refusals(objects: list[dict[str, Any]]) -> list[str]:
    done = subprocess.run(
        ["node", "manifests.mjs"],
        cwd=ROOT / "tests" / "node",
        input="\n".join(map(json.dumps, objects)),
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()


def test_every_manifest_fits_its_schema() -> None:
    assert {each["kind"] for each in OBJECTS} >= {"Deployment", "NetworkPolicy", "ScaledJob"}
    assert refusals(OBJECTS) == []


def test_one_that_does_not_fit_is_named() -> None:
    job = next(copy.deepcopy(each) for each in OBJECTS if each["kind"] == "ScaledJob")
    del job["spec"]["triggers"]
    [line] = refusals([job])
    assert "ScaledJob reprise-run-gpu" in line
    assert "triggers" in line
