"""What a report asks to install: which claims are believed, what prose means, and what is left
out.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bot.environment import (
    fallbacks,
    imports,
    package_names,
    releases,
    specify,
    specify as environment_specify,
    versions,
    versions as environment_versions,
)
from bot.kernel.bug import (
    BugReport,
    Frame,
    Issue,
    Quote,
    Release,
    ReportKind,
    Traceback,
    VersionClaim,
)
from bot.kernel.environment import (
    Environment,
    EnvironmentSpec,
    Package,
    PinSource,
    RepoSource,
    Requirement,
)
from bot.kernel.errors import UserError
from bot.kernel.job import IssueOptions
from bot.kernel.source import symbols
from tests.support.jobs import job_options

DAY = datetime(2024, 12, 1, tzinfo=UTC)


def claim(name: str, version: str, source: str = "dump") -> VersionClaim:
    return VersionClaim.model_validate(
        {"name": name, "version": version, "source": source, "quote": Quote(text=version)}
    )


def report(*claims: VersionClaim, frames: tuple[str, ...] = ()) -> BugReport:
    trace = Traceback(
        exception="ValueError",
        message="x",
        frames=tuple(Frame(path="p", package=name) for name in frames),
    )
    return BugReport(kind=ReportKind.BUG, versions=claims, tracebacks=(trace,) if frames else ())


def issue(repository: str = "", at: datetime | None = DAY) -> Issue:
    return Issue(title="t", body="b", repository=repository, created_at=at)


def spec(
    source: str,
    *claims: VersionClaim,
    repository: str = "",
    options: IssueOptions | None = None,
    at: datetime = DAY,
) -> EnvironmentSpec:
    return specify.specify(
        report(*claims), issue(repository, at), (options or job_options()).environment, source
    )


def named(found: EnvironmentSpec, name: str) -> Requirement:
    return next(each for each in found.requirements if each.name == name)


def names(found: EnvironmentSpec) -> set[str]:
    return {each.name for each in found.requirements}


@pytest.mark.parametrize(
    ("written", "source", "meant"),
    [
        ("2.12.0+cu126", "dump", "==2.12.0"),
        ("2.4.x", "text", "==2.4.*"),
        ("2.4.*", "requirements", "==2.4.*"),
        ("v1.3.1", "text", "==1.3.1"),
        ("2.4", "text", "==2.4.*"),
        ("2.4", "dump", "==2.4"),
        ("==1.26.4", "requirements", "==1.26.4"),
        (">=2.0, <3", "requirements", "<3,>=2.0"),
        ("2.6.0rc1", "text", "==2.6.0rc1"),
        ("2.3.0a0+6ddf5cf85e.nv24.4", "dump", "==2.3.*"),
        ("2.6.0.dev20250101", "dump", ""),
        ("master", "text", ""),
        ("main branch", "text", ""),
        ("latest", "text", ""),
        ("?", "text", None),
    ],
)
def test_a_version_as_written_means_one_specifier(
    written: str, source: str, meant: str | None
) -> None:
    assert versions.specifier(written, source) == meant


def test_what_a_program_printed_beats_what_a_person_typed() -> None:
    found = spec("import torch", claim("torch", "2.1.0", "text"), claim("torch", "2.3.1", "dump"))
    assert named(found, "torch").specifier == "==2.3.1"
    assert named(found, "torch").rung is PinSource.ISSUE
    assert "2.1.0" in next(each for each in found.claims if each.name == "torch").note


def test_an_option_beats_every_claim() -> None:
    found = spec(
        "import einops",
        claim("einops", "0.6.0"),
        options=job_options(pins=("einops==0.7.0",), python="3.9"),
    )
    assert (named(found, "einops").specifier, named(found, "einops").rung) == (
        "==0.7.0",
        PinSource.OPTION,
    )
    assert found.python == "3.9"


@pytest.mark.parametrize(
    "pin", ["einops=0.7", "x @ https://example.invalid/x.whl", "-r other.txt", "a; os_name=='nt'"]
)
def test_a_pin_that_is_not_a_plain_requirement_is_the_users_error(pin: str) -> None:
    with pytest.raises(UserError):
        spec("", options=job_options(pins=(pin,)))


def test_only_what_is_imported_or_under_test_is_installed() -> None:
    dump = [
        claim(name, "1.0.0")
        for name in ("pandas", "scipy", "requests", "nvidia-cublas-cu12", "pip")
    ]
    found = spec("import torch\nimport os, sys\nfrom .mine import x\nfrom utils import y", *dump)
    assert names(found) == {"torch"}
    assert {each.name for each in found.constraints} == {"pandas", "scipy", "requests"}


def test_the_package_under_test_comes_from_the_repository() -> None:
    found = spec("import torch", repository="Lightning-AI/pytorch-lightning")
    assert named(found, "lightning").rung is PinSource.REPOSITORY
    imported = spec(
        "import pytorch_lightning as pl",
        claim("lightning", "2.5.0"),
        repository="Lightning-AI/pytorch-lightning",
    )
    assert named(imported, "pytorch-lightning").specifier == "==2.5.0"
    assert "lightning" not in names(imported)


def test_a_project_with_two_names_is_the_one_of_the_day_or_of_the_traceback() -> None:
    repository = "Lightning-AI/pytorch-lightning"
    early = spec("import torch", repository=repository, at=datetime(2020, 11, 1, tzinfo=UTC))
    assert names(early) == {"torch", "pytorch-lightning"}
    where, options = issue(repository), job_options().environment
    said = report(frames=("pytorch_lightning",))
    late = specify.specify(said, where, options, "import torch")
    assert "pytorch-lightning" in names(late)
    assert "lightning" not in names(late)


def test_a_guess_from_the_repositorys_name_needs_a_second_sign() -> None:
    assert "example-dl" not in names(spec("import torch", repository="example-org/example-dl"))
    assert "example-dl" in names(
        spec("import torch", claim("example-dl", "1.0"), repository="example-org/example-dl")
    )
    traced = specify.specify(
        report(frames=("example_dl",)),
        issue("example-org/example-dl"),
        job_options().environment,
        "import torch",
    )
    assert "example-dl" in names(traced)


def test_a_name_that_custom_gives_a_package_is_a_sign_of_it() -> None:
    source = "a = np.arange(10)\na.mean(axis=2)"
    assert names(spec(source, repository="numpy/numpy")) == {"numpy"}
    assert "scipy" not in names(spec(source, repository="scipy/scipy"))


@pytest.mark.parametrize(
    ("source", "distribution"),
    [
        ("import cv2", "opencv-python-headless"),
        ("from sklearn.svm import SVC", "scikit-learn"),
        ("from PIL import Image", "pillow"),
        ("import torch_geometric.nn as g", "torch-geometric"),
        ("import tensorflow as tf", "tensorflow-cpu"),
        ("from google.protobuf import text_format", "protobuf"),
        ("m = __import__('einops')", "einops"),
    ],
)
def test_import_names_become_distributions(source: str, distribution: str) -> None:
    assert distribution in names(spec(source))


def test_a_damaged_program_still_shows_its_imports() -> None:
    assert symbols.top_level(
        "import torch, numpy as np\n>>> from einops import rearrange\nprint 'x'\nimport os"
    ) == (
        "torch",
        "numpy",
        "einops",
    )


def test_aliases_in_prose_are_the_same_package() -> None:
    assert [
        package_names.alias(name)
        for name in ("PyTorch", "PyG", "HF transformers", "TF", "tensorflow_gpu")
    ] == [
        "torch",
        "torch-geometric",
        "transformers",
        "tensorflow",
        "tensorflow",
    ]


def test_keras_3_gets_the_backend_that_the_program_chooses() -> None:
    chosen = spec("import os\nos.environ['KERAS_BACKEND'] = 'jax'\nimport keras")
    assert chosen.variables == {"KERAS_BACKEND": "jax"}
    assert "jax" in names(chosen)
    assert spec("import keras").variables == {"KERAS_BACKEND": "tensorflow"}
    assert "tensorflow-cpu" in names(spec("import keras"))


def test_keras_2_brings_the_tensorflow_it_was_released_with() -> None:
    found = spec("import keras", claim("keras", "2.14.0"))
    assert named(found, "tensorflow-cpu").specifier == "==2.14.*"
    assert found.variables == {}
    early = spec("import keras", at=datetime(2023, 6, 1, tzinfo=UTC))
    assert early.variables == {}


def test_a_library_that_leaves_its_framework_to_the_user_gets_one() -> None:
    assert {"transformers", "torch"} <= names(spec("import transformers"))
    assert "torch" not in names(spec("import transformers, jax"))


def test_the_date_is_the_cut_off_and_torch_is_exempt() -> None:
    found = spec("import torch")
    assert found.exclude_newer == DAY
    assert "torch" in found.undated
    assert "2024-12-01" in named(found, "torch").reason


def test_master_means_the_newest_release_of_that_day() -> None:
    found = spec("import einops", claim("einops", "master", "text"))
    assert named(found, "einops").specifier == ""
    assert "master" in named(found, "einops").reason


@pytest.mark.parametrize(
    ("year", "minor"),
    [
        (2017, "3.6"),
        (2020, "3.8"),
        (2021, "3.9"),
        (2022, "3.10"),
        (2024, "3.11"),
        (2026, "3.11"),
        (2029, "3.14"),
    ],
)
def test_the_usual_python_of_a_day(year: int, minor: str) -> None:
    assert environment_versions.usual(datetime(year, 12, 31, tzinfo=UTC), "3.11") == minor


def test_the_python_that_the_report_names_is_asked_for() -> None:
    assert spec("import six", claim("python", "3.12.2(?)", "text")).python == "3.12"


def test_a_clone_is_used_for_what_is_not_released() -> None:
    where = job_options(repo="https://example.invalid/a/einops.git")
    assert (
        spec(
            "import einops",
            claim("einops", "0.7.0"),
            repository="arogozhnikov/einops",
            options=where,
        ).repo
        is None
    )
    unreleased = spec(
        "import einops",
        claim("einops", "main", "text"),
        repository="arogozhnikov/einops",
        options=where,
    )
    assert unreleased.repo is not None
    assert unreleased.repo.url == "https://example.invalid/a/einops.git"
    forced = job_options(repo="./clone", ref="v1")
    local = spec(
        "import einops", claim("einops", "0.7.0"), repository="arogozhnikov/einops", options=forced
    ).repo
    assert local is not None
    assert (local.path, local.ref, local.url) == ("./clone", "v1", "")


def test_a_missing_module_becomes_one_more_requirement() -> None:
    wanted = environment_specify.for_import("yaml")
    assert wanted is not None
    assert (wanted.name, wanted.rung) == ("pyyaml", PinSource.REPAIR)
    assert environment_specify.for_import("utils") is None
    assert environment_specify.for_import("json") is None
    grown = specify.add(spec("import torch"), wanted)
    assert "pyyaml" in names(grown)
    assert (
        named(specify.add(grown, wanted.model_copy(update={"specifier": "<6"})), "pyyaml").specifier
        == "<6"
    )
    assert len(specify.add(grown, wanted).requirements) == len(grown.requirements)


def test_alternatives_are_the_other_claim_and_the_newest_of_that_day() -> None:
    said = report(claim("einops", "0.7.0"), claim("einops", "0.6.1", "text"))
    where = issue("arogozhnikov/einops")
    first = specify.specify(said, where, job_options().environment, "import einops")
    others = specify.alternatives(first, said, where)
    assert [named(each, "einops").specifier for each in others] == ["==0.6.1", ""]


@pytest.mark.parametrize("name", ["jax", "flax", "optax"])
def test_jax_is_asked_for_with_the_build_that_belongs_to_it(name: str) -> None:
    """What needs jax names jaxlib apart, and a resolver may pair two that do not fit."""
    made = specify.specify(report(), issue("acme/net"), job_options().environment, f"import {name}")
    assert named(made, "jax").extras == ("cpu",)


def test_the_modules_of_flax_are_not_those_of_torch() -> None:
    source = (
        "class Net(nn.Module):\n    @nn.compact\n    def __call__(self, x):\n        return x\n"
    )
    assert imports.conventional("nn", source) == "import flax.linen as nn"
    assert imports.conventional("nn", "net = nn.Linear(2, 3)\n") == "import torch.nn as nn"
    assert imports.conventional("nn", "net = nn.Conv2d(2, 3, 1)\n") == "import torch.nn as nn"


def test_the_packages_of_four_weeks_before_keep_what_the_report_names() -> None:
    where = issue("arogozhnikov/einops")
    first = specify.specify(report(), where, job_options().environment, "import einops")
    earlier = specify.month_before(first)
    assert earlier is not None
    assert first.exclude_newer is not None
    assert earlier.exclude_newer == first.exclude_newer - timedelta(days=28)
    assert earlier.requirements == first.requirements
    cloned = first.model_copy(update={"repo": RepoSource(url="/srv/einops.git")})
    assert specify.month_before(cloned) is None
    of_commit = specify.month_before(cloned, "0123abcd")
    assert of_commit is not None
    assert of_commit.repo is not None
    assert of_commit.repo.ref == "0123abcd"
    assert specify.month_before(first.model_copy(update={"exclude_newer": None})) is None


@pytest.mark.parametrize("local", ["", "+cpu"])
def test_the_alternative_without_a_claim_is_the_release_before_what_was_built(local: str) -> None:
    where = issue("arogozhnikov/einops")
    first = specify.specify(report(), where, job_options().environment, "import einops")
    built = Environment(
        id="x",
        python="3.11.7",
        interpreter="p",
        packages=(Package(name="einops", version=f"0.7.0{local}", rung=PinSource.DATE),),
    )
    others = specify.alternatives(first, report(), where, built)
    assert [named(each, "einops").specifier for each in others] == ["<0.7.0"]
    assert specify.alternatives(first, report(), where) == ()


def test_the_neighbour_of_a_release_that_is_gone() -> None:
    offered = ("1.9.5", "2.5.6", "2.6.0", "2.6.1", "2.6.4", "2.7.0", "2.6.2.dev1")
    assert versions.neighbours("2.6.2", offered)[:3] == ["2.6.1", "2.6.0", "2.6.4"]
    assert versions.neighbours("3.0.0", offered)[0] == "2.7.0"
    assert versions.neighbours("3.0.0rc1", ("1.0.0", *offered))[0] == "2.7.0"


def test_the_package_under_test_is_found_by_its_module_too() -> None:
    row = Requirement(
        name="dm-acme", rung=PinSource.IMPORT, reason="imported", modules=("acme",), evidence="x"
    )
    other = Requirement(name="numpy", rung=PinSource.IMPORT, reason="imported")
    asked = EnvironmentSpec(python="3.11", requirements=(other, row))
    assert specify.under_test(asked, report(frames=("acme",)), issue()) == row
    assert specify.under_test(asked, report(), issue("org/acme")) == row


def test_a_guess_from_the_repositorys_name_is_to_be_weighed() -> None:
    for repository in ("example-org/example-dl", "example-org/lib"):
        name = repository.rpartition("/")[2]
        found = spec("import torch", claim(name, "1.0"), repository=repository)
        assert named(found, name).modules == (name.replace("-", "_"),)
    known = spec("import torch", repository="google-deepmind/dm-haiku")
    assert named(known, "dm-haiku").modules == ()


def test_what_has_no_wheel_on_the_day_is_from_soon_after_it_before_it_is_of_any_date():
    """The newest release of all is seldom what goes with the rest of that day."""
    day = datetime(2023, 4, 20, tzinfo=UTC)
    draft = fallbacks.Draft(what="", minor="3.11", requirements=(), exclude_newer=day)
    steps = []
    while (following := fallbacks.of_any_date(draft, ["jax"], "a later {}", "why")) is not None:
        draft = following
        steps.append(draft.windows.get("jax"))
    assert [until and (until - day).days for until in steps] == [183, 730, None]
    assert draft.undated == ("jax",)
    assert draft.notes == (("jax", "why"),)


def test_in_place_of_a_build_that_no_index_has_comes_the_release_before_the_day():
    """The one after it is nearer, and may have the fix."""
    days = {"1.0.0": 40, "1.0.1": 20, "1.1.0": -3}
    history = [
        Release(version=version, uploaded_at=DAY - timedelta(days=days), wheels="linux")
        for version, days in days.items()
    ]
    assert releases.release(history, "1.1.0rc1+13", DAY) == ["1.0.1", "1.0.0", "1.1.0"]
    assert releases.release(history, "1.0.1", DAY)[:2] == ["1.0.1", "1.0.0"]


def test_the_newest_of_a_day_is_the_highest_version_not_the_last_upload():
    """scikit-image 0.14.3 came out after 0.15.0."""
    days = {"0.14.2": 176, "0.14.3": 31, "0.15.0": 101, "0.16.0": -20}
    history = [
        Release(version=version, uploaded_at=DAY - timedelta(days=days), wheels="linux")
        for version, days in days.items()
    ]
    assert releases.release(history, "", DAY) == ["0.15.0", "0.14.3", "0.14.2", "0.16.0"]


def test_another_release_is_built_where_the_one_that_was_does_not_fit():
    text = "Because acme==0.21.0 has no usable wheels and lib>=2 depends on acme==0.21.0"
    asked, built = [], Path("acme-0.24.1-py3-none-any.whl")

    def build(name, draft):
        asked.append(draft.constraints[-1].specifier)
        return Path(f"{name}-0.21.0-py3-none-any.whl")

    world = fallbacks.World(lambda _: (), ("3.11",), build)
    draft = fallbacks.Draft("", "3.11", (), wheels=(built,), notes=(("acme", "built from source"),))
    following = fallbacks.from_source(draft, text, world)
    assert following is not None
    assert [wheel.name.split("-")[1] for wheel in following.wheels] == ["0.24.1", "0.21.0"]
    assert asked == ["==0.21.0"]
    assert following.notes == draft.notes
    assert fallbacks.from_source(following, text, world) is None, "it did not help"


def test_a_build_from_a_folder_gives_way_to_no_release_of_the_index():
    torch = Requirement(name="torch", specifier="==2.13.0+cpu", rung=PinSource.NEIGHBOUR, reason="")
    other = torch.model_copy(update={"name": "acme", "specifier": "==1.1"})
    draft = fallbacks.Draft("", "3.11", (torch, other))
    text = "torch==2.13.0+cpu depends on acme, acme==1.1 has no usable wheels"
    world = fallbacks.World(lambda _: ("1.0", "2.12.0"), ("3.11",), lambda *_: None)
    following = fallbacks._neighbour(draft, text, world)
    assert following is not None
    assert [row.specifier for row in following.requirements] == ["==2.13.0+cpu", "==1.0"]


@pytest.mark.parametrize(
    ("source", "statement"),
    [
        ("key = random.PRNGKey(0)", "from jax import random"),
        ("x = random.randn(3)", "from numpy import random"),
        ("x = random.random()", "import random"),
    ],
)
def test_random_is_that_of_the_package_whose_functions_are_called(source, statement):
    assert imports.conventional("random", source) == statement
