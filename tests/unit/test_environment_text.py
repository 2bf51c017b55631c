"""What a model is told of the environment, and how what it asks for is weighed."""

from __future__ import annotations

from bot.environment import specify
from bot.issues.search import prompt_text
from bot.kernel.environment import (
    Claimed,
    Environment,
    EnvironmentSpec,
    OperatorFiles,
    Package,
    PinSource,
    Requirement,
)


def test_what_was_asked_for_is_told_with_what_was_installed_and_why() -> None:
    wanted = (
        Requirement(
            name="torch",
            specifier="==1.7.0",
            rung=PinSource.ISSUE,
            reason="the report says 1.7.0",
        ),
        Requirement(name="gone", rung=PinSource.IMPORT, reason="the program imports gone"),
    )
    built = Environment(
        id="x",
        python="3.11.9",
        interpreter="python",
        packages=(
            Package(name="torch", version="2.13.0+cpu", rung=PinSource.NEIGHBOUR),
            Package(name="transformers", version="4.49.0", rung=PinSource.DEPENDENCY),
            Package(name="certifi", version="2025.1", rung=PinSource.DEPENDENCY),
        ),
        claims=(
            Claimed(name="torch", claimed="1.7.0", resolved="2.13.0+cpu", note="nearest CPU build"),
            Claimed(name="python", claimed="3.6", resolved="3.11.9", note="3.11, the nearest here"),
            Claimed(name="numpy", claimed="1.19", resolved="1.26.4", note="no wheel for 3.11"),
            Claimed(name="scipy", claimed="1.11.0", resolved="1.11.0"),
        ),
    )
    spec = EnvironmentSpec(python="3.6", python_why="the report says 3.6", requirements=wanted)
    told = prompt_text.describe_environment(spec, built, "ImportError: no _C")
    lines = told.splitlines()
    assert any(
        line.startswith("torch: asked for 1.7.0, installed 2.13.0+cpu: the report says 1.7.0")
        and "nearest CPU build" in line
        and "only builds for the CPU" in line
        for line in lines
    )
    assert "gone: asked for any, not installed: the program imports gone" in lines
    assert "numpy: asked for 1.19, installed 1.26.4: no wheel for 3.11" in lines
    assert "As the report says: scipy 1.11.0" in lines
    assert "Drawn in by these: transformers 4.49.0" in lines
    python = "Python: asked for 3.6, installed 3.11.9: the report says 3.6; 3.11, the nearest here"
    assert python in lines
    assert "ImportError: no _C" in lines


def test_what_a_model_names_is_weighed_by_an_import_of_its_kind_else_by_its_name() -> None:
    found = specify.by_model("acme-tools", "", "", ("torch", "acme_tools.nn"))
    assert found is not None
    assert (found.modules, found.named) == (("acme_tools",), True)
    other = specify.by_model("some-thing", "1.0", "", ("torch",))
    assert other is not None
    assert other.modules == ("some_thing",)
    known = specify.by_model("torch", "", "")
    assert known is not None
    assert known.modules == ()


def test_weights_at_hand_are_told_by_name() -> None:
    files = OperatorFiles(weights=tuple(f"org/model-{number:02}" for number in range(40)))
    built = Environment(id="x", python="3.11.9", interpreter="python", operator_files=files)
    told = prompt_text.describe_environment(EnvironmentSpec(python="3.11"), built)
    assert "as from any hub: org/model-00, org/model-01, " in told
    assert told.count("org/model") == 30
    assert "hub" not in prompt_text.describe_environment(
        EnvironmentSpec(python="3.11"), built.model_copy(update={"operator_files": OperatorFiles()})
    )


def test_that_the_date_was_given_up_is_no_row_of_a_package() -> None:
    note = "releases of any date were allowed"
    claims = (Claimed(name="date", claimed="", resolved="", note=note),)
    row = Requirement(name="torch", rung=PinSource.IMPORT, reason="only this build")
    built = Environment(
        id="x",
        python="3.11.9",
        interpreter="python",
        packages=(Package(name="torch", version="2.0", rung=PinSource.NEIGHBOUR),),
        claims=(*claims, Claimed(name="torch", claimed="", resolved="2.0", note=row.reason)),
    )
    spec = EnvironmentSpec(python="3.11", requirements=(row,))
    told = prompt_text.describe_environment(spec, built)
    assert "Releases of any date were allowed." in told.splitlines()
    assert "date: asked" not in told
    assert told.count("only this build") == 1, "a reason stands once"


def test_packages_that_differ_for_one_reason_share_a_line() -> None:
    why = "conflicts with other requirements"
    claims = (
        Claimed(name="backcall", claimed="0.2.0", resolved="", note=why),
        Claimed(name="certifi", claimed="2021.5", resolved="", note=why),
        Claimed(name="tqdm", claimed="4.61", resolved="4.62", note=why),
    )
    built = Environment(id="x", python="3.11.9", interpreter="python", claims=claims)
    told = prompt_text.describe_environment(EnvironmentSpec(python="3.11"), built)
    assert f"backcall, certifi: asked for 0.2.0, 2021.5, not installed: {why}" in told
    assert f"tqdm: asked for 4.61, installed 4.62: {why}" in told


def test_what_nobody_asked_for_is_named_with_its_version_where_it_is_well_known() -> None:
    why = "had no wheel on the date of the bug report"
    claims = (
        Claimed(name="numpy", claimed="", resolved="1.23.2", note=f"{why}; {why}"),
        Claimed(name="pandas", claimed="", resolved="1.5.0", note=why),
        Claimed(name="markupsafe", claimed="", resolved="2.1.2", note=why),
    )
    built = Environment(id="x", python="3.11.9", interpreter="python", claims=claims)
    spec = EnvironmentSpec(python="3.11", python_why="usual that day")
    problem = 'File "/var/x/lib/python3.11/site-packages/numpy/__init__.py", line 3, in __getattr__'
    told = prompt_text.describe_environment(spec, built, problem).splitlines()
    assert "Python 3.11.9: usual that day" in told
    assert f"numpy 1.23.2, pandas 1.5.0: {why}" in told
    assert not any("markupsafe" in line for line in told)
    assert 'File "site-packages/numpy/__init__.py", line 3, in __getattr__' in told
