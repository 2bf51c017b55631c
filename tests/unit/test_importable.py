"""The package under test is imported before a model is asked."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.support.engine import FakeBuilder
from tests.support.model import ScriptedModel
from tests.unit.test_reconstruct import RIGHT, answers, decide, says, write

PROBE = Path("sandbox/probe/check_imports.py")
TRACE = 'Traceback (most recent call last):\n  File "check_imports.py", line 40, in <module>\n'
OLD_NUMPY = "ImportError: numpy.core.multiarray failed to import"


def test_what_rules_know_of_a_failed_import_is_mended_before_a_model_is_asked() -> None:
    tried: list[str] = []

    def imports(spec):
        tried.append(spec.argv[2])
        return says("", 1, TRACE + OLD_NUMPY) if len(tried) == 1 else RIGHT

    model, builder = ScriptedModel(answers(write())), FakeBuilder()
    decide(model, builder=builder, imports=imports)
    assert tried[:2] == ["acme", "acme"]
    asked = {row.name: row.specifier for row in builder.built[-1].requirements}
    assert asked["numpy"] == "<2"
    assert "cannot be imported here" not in model.asked[0].messages[-1].content


def test_a_model_is_told_that_the_package_cannot_be_imported() -> None:
    failed = TRACE + "OSError: libacme.so: cannot open shared object file"
    model = ScriptedModel(answers(write()))
    decide(model, imports=lambda _: says("", 1, failed))
    for question in model.asked[:2]:  # to read the report, and to write a program
        assert "cannot be imported here" in question.messages[-1].content
        assert "OSError: libacme.so" in question.messages[-1].content


def test_the_probe_imports_what_a_distribution_installs() -> None:
    for name, code in (("pyyaml", 0), ("nothing-of-that-name", 0), ("pytest", 0)):
        argv = [sys.executable, str(PROBE), name, "yaml"]
        assert subprocess.run(argv, check=False, capture_output=True).returncode == code
