"""The builder against a package index made of files: dates, neighbours, clones, builds from
source, the cache and its locks.
"""

from __future__ import annotations

import hashlib
import io
import os
import platform
import shutil
import signal
import subprocess
import sys
import tarfile
import threading
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from itertools import takewhile
from pathlib import Path

import pytest

from bot.environment import setup_failures
from bot.environment.builder import UvBuilder
from bot.environment.git import Git
from bot.kernel.bug import Frame
from bot.kernel.environment import (
    Claimed,
    Environment,
    EnvironmentSpec,
    LibraryName,
    PinSource,
    RepoSource,
    Requirement,
)
from bot.kernel.errors import BuildError, IndexUnreachable, Stopped, UserError
from bot.kernel.settings import Settings
from sandbox import indexes, interpreters
from sandbox.cache import Cache
from sandbox.port import RunSpec
from sandbox.process import ProcessSandbox

HOST = f"{sys.version_info.major}.{sys.version_info.minor}"
SPRING, SUMMER = datetime(2024, 3, 1, tzinfo=UTC), datetime(2024, 6, 1, tzinfo=UTC)


class Index:
    """A simple index of files with upload dates."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.links: dict[str, list[str]] = {}

    def wheel(
        self,
        name: str,
        version: str,
        day: str,
        requires: tuple[str, ...] = (),
        tag: str = "py3-none-any",
        files: dict[str, str] | None = None,
    ) -> None:
        plain = name.replace("-", "_")
        info = f"{plain}-{version}.dist-info"
        meta = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n" + "".join(
            f"Requires-Dist: {r}\n" for r in requires
        )
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as pack:
            for path, text in {"__init__.py": f"version = {version!r}\n", **(files or {})}.items():
                pack.writestr(f"{plain}/{path}", text)
            pack.writestr(f"{info}/METADATA", meta)
            pack.writestr(
                f"{info}/WHEEL",
                f"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: {tag}\n",
            )
            pack.writestr(f"{info}/RECORD", "")
        self._add(name, f"{plain}-{version}-{tag}.whl", buffer.getvalue(), day)

    def source(self, name: str, version: str, day: str) -> None:
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w:gz") as pack:
            for file, text in project(name, version).items():
                entry = tarfile.TarInfo(f"{name}-{version}/{file}")
                entry.size = len(text.encode())
                pack.addfile(entry, io.BytesIO(text.encode()))
        self._add(name, f"{name}-{version}.tar.gz", buffer.getvalue(), day)

    def _add(self, name: str, file: str, data: bytes, day: str) -> None:
        folder = self.root / "simple" / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / file).write_bytes(data)
        digest = hashlib.sha256(data).hexdigest()
        link = f'<a href="{file}#sha256={digest}" data-upload-time="{day}T00:00:00Z">{file}</a>'
        self.links.setdefault(name, []).append(link)
        page = "<!DOCTYPE html><html><body>" + "".join(self.links[name]) + "</body></html>"
        (folder / "index.html").write_text(page, encoding="utf-8")


def project(name: str, version: str) -> dict[str, str]:
    """A project that builds itself, with a back end of its own: nothing has to be fetched."""
    backend = f"""
import os, zipfile
def build_wheel(directory, config_settings=None, metadata_directory=None):
    name = "{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(directory, name), "w") as pack:
        pack.writestr("{name}/__init__.py", "secret = " + repr(os.environ.get("REPRISE_TEST_SECRET")) + "\\n")
        pack.writestr("{name}-{version}.dist-info/METADATA", "Metadata-Version: 2.1\\nName: {name}\\nVersion: {version}\\n")
        pack.writestr("{name}-{version}.dist-info/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        pack.writestr("{name}-{version}.dist-info/RECORD", "")
    return name
def get_requires_for_build_wheel(config_settings=None):
    return []
"""
    pyproject = f'[project]\nname = "{name}"\nversion = "{version}"\n[build-system]\nrequires = []\nbuild-backend = "back"\nbackend-path = ["."]\n'
    return {
        "pyproject.toml": pyproject,
        "back.py": backend,
        f"{name}/__init__.py": "",
        "PKG-INFO": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
    }


def open_to_the_sandbox(root: Path) -> None:
    """The sandbox's own user may look into a folder of pytest's."""
    for folder in (root, *takewhile(lambda each: "pytest-" in str(each), root.parents)):
        folder.chmod(0o755)


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> tuple[Index, Path]:
    """One index and one cache for all tests; the sandbox's own user must be able to look inside."""
    root = tmp_path_factory.mktemp("builder")
    open_to_the_sandbox(root)
    index = Index(root)
    for version, day in (
        ("1.0.0", "2024-01-01"),
        ("1.0.1", "2024-02-01"),
        ("1.1.0", "2024-05-01"),
        ("2.0.0", "2025-01-01"),
    ):
        index.wheel("alpha", version, day, requires=("beta",))
    index.wheel("beta", "0.1", "2024-01-01")
    index.wheel("beta", "0.2", "2024-04-01")
    index.wheel("needs-new", "1.0", "2024-01-01", requires=("newer>=2",))
    index.wheel("newer", "2.0", "2025-01-01")
    index.wheel("grown", "0.1", "2023-01-01")
    index.wheel("grown", "1.0", "2024-02-01", requires=("newer>=2",))
    index.wheel("jealous", "0.1", "2023-01-01")
    index.wheel("jealous", "1.0", "2024-02-01", requires=("alpha==1.0.0",))
    index.wheel("stuck", "0.1", "2023-01-01")
    index.wheel("stuck", "1.0", "2024-02-01", requires=("newer>=99",))
    index.wheel(
        "tied",
        "1.0",
        "2024-01-01",
        requires=("newer>=99",),
        tag=f"cp{HOST.replace('.', '')}-none-any",
    )
    index.wheel("elsewhere", "1.0", "2024-01-01", tag="cp399-none-any")
    own = f"cp{HOST.replace('.', '')}-cp{HOST.replace('.', '')}-manylinux_2_17_x86_64"
    for name in ("aged", "stale"):
        index.wheel(name, "1.0", "2018-01-01", tag=own.replace(HOST.replace(".", ""), "399"))
        index.wheel(name, "1.1", "2023-01-01", tag=own)
        index.wheel(name, "2.0", "2023-06-01", tag=own)
    for number in range(30):
        following = (f"chain{number + 1}",) if number < 29 else ()
        day = "2024-01-01" if number == 0 else "2025-01-01"
        index.wheel(f"chain{number}", "1.0", day, requires=following)
    index.wheel("wants-delta", "1.0", "2024-01-01", requires=("delta<2",))
    index.source("delta", "1.0", "2024-01-01")
    index.source("delta", "2.0", "2024-02-01")
    index.wheel("early", "1.0.dev1", "2023-01-01")
    index.source("early", "1.0", "2024-01-01")
    index.wheel("picky", "1.0", "2024-01-01", requires=("alpha==1.0.1",))
    index.source("gamma", "3.1", "2024-01-01")
    index.wheel("renamed", "1.0", "2024-01-01", files={"__init__.py": "old = 1\n"})
    index.wheel("renamed", "2.0", "2024-02-01", files={"__init__.py": "new = 1\n"})
    index.wheel("setuptools", "80.0", "2025-01-01")
    return index, root / "cache"


@pytest.fixture
def builder(places: tuple[Index, Path]) -> UvBuilder:
    return fresh_builder(places)


def fresh_builder(places: tuple[Index, Path], **environ: str) -> UvBuilder:
    index, cache = places
    own = {
        "PIP_INDEX_URL": (index.root / "simple").as_uri(),
        "PIP_CONFIG_FILE": "/dev/null",
        "HOME": str(index.root),
    }
    return UvBuilder(
        cache,
        ProcessSandbox(),
        environ={"PATH": os.environ["PATH"], **own, **environ},
        torch_index=False,
    )


def wanted(name: str, specifier: str = "", rung: PinSource = PinSource.IMPORT) -> Requirement:
    return Requirement(name=name, specifier=specifier, rung=rung, reason="test")


def spec(
    *requirements: Requirement, at: datetime | None = SPRING, **more: object
) -> EnvironmentSpec:
    return EnvironmentSpec.model_validate(
        {"python": HOST, "requirements": requirements, "exclude_newer": at, **more}
    )


def says(environment: Environment, code: str) -> str:
    """What a program prints in the environment, seen by the sandbox."""
    run = RunSpec((environment.interpreter, "-c", code), env=environment.variables)
    result = ProcessSandbox().run(run)
    assert result.exit_code == 0, result.stderr
    return result.stdout.strip()


def test_the_date_decides_and_a_claim_beats_it(builder: UvBuilder) -> None:
    dated = builder.build(spec(wanted("alpha")))
    assert (dated.version("alpha"), dated.version("beta")) == ("1.0.1", "0.1")
    assert {each.name: each.rung for each in dated.packages}["alpha"] is PinSource.DATE
    assert {each.name: each.rung for each in dated.packages}["beta"] is PinSource.DEPENDENCY
    claimed = builder.build(spec(wanted("alpha", "==2.0.0", PinSource.ISSUE)))
    assert (claimed.version("alpha"), claimed.version("beta")) == ("2.0.0", "0.1")
    assert "alpha" in claimed.undated
    assert (
        "alpha" not in builder.build(spec(wanted("alpha", "==1.0.0", PinSource.ISSUE))).undated
    ), "pinned, and of before the day"
    assert says(dated, "import alpha, beta; print(alpha.version, beta.version)") == "1.0.1 0.1"


def test_the_package_under_test_is_of_that_day_although_its_dependency_is_not(
    builder: UvBuilder,
) -> None:
    repository = PinSource.REPOSITORY
    built = builder.build(spec(wanted("grown", rung=repository)))
    assert (built.version("grown"), built.version("newer")) == ("1.0", "2.0")
    assert "newer" in {each.name for each in built.claims}
    none = builder.build(spec(wanted("stuck", rung=repository)))
    assert none.version("stuck") == "0.1", "better an older release than none"


def test_so_is_what_the_program_imports_unless_that_costs_another_its_release(
    builder: UvBuilder,
) -> None:
    built = builder.build(spec(wanted("alpha"), wanted("grown"), wanted("jealous")))
    assert (built.version("grown"), built.version("newer")) == ("1.0", "2.0")
    assert (built.version("alpha"), built.version("jealous")) == ("1.0.1", "0.1")
    assert {each.name: each.rung for each in built.packages}["grown"] is PinSource.DATE
    none = builder.build(spec(wanted("stuck")))
    assert none.version("stuck") == "0.1"
    assert not any("date cut-off" in step.what for step in none.steps), "the day stays"


def test_the_second_time_it_is_warm_and_fast(
    places: tuple[Index, Path], builder: UvBuilder
) -> None:
    first = builder.build(spec(wanted("beta")))
    again = fresh_builder(places).build(spec(wanted("beta")))
    assert again.warm
    assert again.seconds < 1.0
    assert (again.id, again.packages, again.lock) == (first.id, first.packages, first.lock)


def test_a_release_that_is_gone_gives_way_to_its_neighbour(builder: UvBuilder) -> None:
    claims = (Claimed(name="alpha", claimed="1.0.2", resolved=""),)
    built = builder.build(spec(wanted("alpha", "==1.0.2", PinSource.ISSUE), claims=claims))
    alpha = next(each for each in built.packages if each.name == "alpha")
    assert (alpha.version, alpha.rung) == ("1.0.1", PinSource.NEIGHBOUR)
    assert (built.claims[0].claimed, built.claims[0].resolved) == ("1.0.2", "1.0.1")
    assert built.claims[0].is_absent
    assert built.steps[0].error
    assert not built.steps[-1].error
    there = (Claimed(name="alpha", claimed="1.0.0", resolved=""),)
    built = builder.build(spec(wanted("alpha", "==1.0.1", PinSource.ISSUE), claims=there))
    assert (built.claims[0].note, built.claims[0].is_absent) == ("differs", False)


@pytest.mark.parametrize(
    ("asked", "version"), [("1.1.0rc2", "1.1.0"), ("1.1.0.dev3", "1.0.1"), ("2.0.1rc1", "1.0.1")]
)
def test_a_candidate_that_is_gone_gives_way_to_its_release(
    builder: UvBuilder, asked: str, version: str
) -> None:
    """Although that came out after the day; what is in development is of before it."""
    built = builder.build(spec(wanted("alpha", f"=={asked}", PinSource.ISSUE)))
    assert built.version("alpha") == version


def test_bounds_go_before_requirements(builder: UvBuilder) -> None:
    bound = Requirement(name="beta", specifier="==9.9", rung=PinSource.ISSUE, reason="claimed")
    built = builder.build(
        spec(
            wanted("alpha"),
            constraints=(bound,),
            claims=(Claimed(name="beta", claimed="9.9", resolved=""),),
        )
    )
    assert built.version("beta") == "0.1"
    assert "the resolver chose the version" in built.claims[0].note
    kept = builder.build(
        spec(
            wanted("alpha"),
            at=SUMMER,
            constraints=(bound.model_copy(update={"specifier": "==0.1"}),),
        )
    )
    assert (kept.version("alpha"), kept.version("beta")) == ("1.1.0", "0.1")


def test_a_guessed_name_that_no_index_has_is_left_out(builder: UvBuilder) -> None:
    built = builder.build(spec(wanted("beta"), wanted("no-such-thing")))
    assert built.version("beta") == "0.1"
    assert any("no-such-thing" in each.name for each in built.claims)
    with pytest.raises(BuildError, match="no-such-thing") as failure:
        builder.build(spec(wanted("no-such-thing", "==1", PinSource.OPTION)))
    assert failure.value.steps


@pytest.mark.pythons
@pytest.mark.slow  # real builds for two versions of Python
def test_the_cause_is_that_of_the_python_that_was_asked_for(places: tuple[Index, Path]) -> None:
    own = {name: os.environ[name] for name in ("HOME", "PYENV_ROOT") if name in os.environ}
    assert len(interpreters.discover({"PATH": os.environ["PATH"], **own})) > 1, (
        "there is no second Python here"
    )
    with pytest.raises(BuildError, match="depend on newer>=99") as failure:
        fresh_builder(places, **own).build(spec(wanted("tied", "==1.0", PinSource.OPTION)))
    assert "newer" not in failure.value.steps[-1].error, "the last Python had a reason of its own"


def test_a_dependency_newer_than_the_report_is_let_in(builder: UvBuilder) -> None:
    built = builder.build(spec(wanted("needs-new")))
    assert built.version("newer") == "2.0"
    assert built.undated == ("newer", "setuptools"), (
        "not what the date admits; the index has no older build tool"
    )
    assert any(each.name == "newer" for each in built.claims)


@pytest.mark.parametrize(
    ("code", "before", "fits"),
    [
        ("version = '1.0.0'", SPRING, "1.0.0"),
        ("version = '1.0.1'", SPRING, ""),
        ("version = '1.1.0'", SUMMER, ""),
        ("version = '2.0.0'", SUMMER, ""),
        ("version = '9.9'", None, ""),
    ],
)
def test_the_release_whose_lines_a_traceback_quotes(
    builder: UvBuilder, code: str, before: datetime | None, fits: str
) -> None:
    built = builder.build(spec(wanted("alpha"), at=before or SUMMER))
    frame = Frame(path="x", package="alpha", module_path="alpha/__init__.py", line=1, code=code)
    assert builder.fitting(built, "alpha", (frame,), before) == fits


def test_the_release_that_has_a_name_which_the_installed_one_lacks(builder: UvBuilder) -> None:
    built = builder.build(spec(wanted("renamed")))
    assert built.version("renamed") == "2.0"
    assert builder.providing(built, LibraryName(module="renamed", name="old"), SPRING) == (
        "renamed",
        "1.0",
    )
    assert builder.providing(built, LibraryName(module="renamed", name="other"), SPRING) == ("", "")
    assert builder.providing(built, LibraryName(module="unheard_of", name="old"), SPRING) == (
        "",
        "",
    )


def test_what_comes_as_source_is_built_in_the_sandbox_without_secrets(
    places: tuple[Index, Path],
) -> None:
    built = fresh_builder(places, REPRISE_TEST_SECRET="s3cret").build(spec(wanted("gamma")))
    assert built.version("gamma") == "3.1"
    assert says(built, "import gamma; print(gamma.secret)") == "None"


def test_without_a_sandbox_nothing_is_built_from_source(
    places: tuple[Index, Path], tmp_path: Path
) -> None:
    builder = fresh_builder(places)
    builder.sandbox, builder.cache = None, tmp_path
    with pytest.raises(BuildError) as failure:
        builder.build(spec(wanted("gamma")))
    assert any("no sandbox" in step.error for step in failure.value.steps)


X86 = pytest.mark.skipif(
    platform.machine() != "x86_64", reason="elsewhere the usual torch is taken"
)
TORCH = {
    "library.py": """defined = set()

def define(name, schema):
    defined.add(name)

def register_fake(name):
    if name not in defined:
        raise RuntimeError(f"operator {name} does not exist")
    return lambda function: function
""",
}
VISION = {
    "__init__.py": "from . import extension, _meta_registrations\n",
    "_C.so": "libtorch_cuda.so",
    "extension.py": "def _has_ops():\n    return False\n",
    "_meta_registrations.py": """import torch.library

@torch.library.register_fake("torchvision::nms")
def meta_nms(dets, scores, iou_threshold): ...
""",
}


def with_local_torch(root: Path, *fitting: str) -> UvBuilder:
    """A builder whose only CPU build of torch is a wheel in a folder, with an index that has
    torchvision for other releases of torch, and the `fitting` ones for this.
    """
    open_to_the_sandbox(root)
    index = Index(root / "own")
    tag = f"cp{HOST.replace('.', '')}-cp{HOST.replace('.', '')}-linux_x86_64"
    index.wheel("torch", "9.0+cpu", "2025-01-01", tag=tag, files=TORCH)
    index.wheel("numpy", "1.0", "2018-01-01", tag="cp310-cp310-manylinux_2_17_x86_64")
    index.wheel("numpy", "1.26", "2024-01-01")
    index.wheel("setuptools", "80.0", "2025-01-01")
    releases = {"0.2": "", "8.0": "==8.0", "10.0": "==10.0", **dict.fromkeys(fitting, "==9.0")}
    for version, bound in releases.items():
        needs = (f"torch{bound}",)
        index.wheel("torchvision", version, "2025-01-01", requires=needs, files=VISION)
    index.wheel("torchaudio", "9.0", "2025-01-01", requires=("torch==9.0",))
    index.wheel("timm", "1.0", "2024-01-01", requires=("torch", "torchvision", "torchaudio"))
    return fresh_builder((index, root / "cache"), PIP_FIND_LINKS=str(index.root / "simple/torch"))


@X86
def test_stale_pins_of_the_repository_give_way_together(builder: UvBuilder) -> None:
    of_files = PinSource.REPOSITORY
    asked = (wanted("aged", "==1.0", of_files), wanted("stale", "<1.1", of_files))
    built = builder.build(spec(wanted("beta"), *asked, wanted("gamma", "==3.1", of_files)))
    assert [(each.name, each.version, each.rung) for each in built.packages[:1]] == [
        ("aged", "1.1", PinSource.NEIGHBOUR)
    ]
    assert (built.version("stale"), built.version("gamma")) == ("1.1", "3.1")
    notes = {claim.name: claim.note for claim in built.claims}
    assert notes["aged"] == f"==1.0 has no wheel for Python {HOST}; 1.1 is nearest"
    assert notes["stale"] == f"<1.1 has no wheel for Python {HOST}; 1.1 is nearest"
    assert notes["gamma"] == "built from source", "what never had a wheel"
    assert sum("nearest releases" in step.what for step in built.steps) == 1
    with pytest.raises(BuildError, match="aged"):
        builder.build(spec(wanted("aged", "==1.0", PinSource.OPTION)))


def test_pins_of_the_repository_that_contradict_each_other_give_way(builder: UvBuilder) -> None:
    asked = (
        wanted("picky", "==1.0", PinSource.OPTION),
        wanted("alpha", "==1.0.0", PinSource.REPOSITORY),
    )
    built = builder.build(spec(*asked))
    assert (built.version("alpha"), built.version("picky")) == ("1.0.1", "1.0")
    assert "conflicts" in {claim.name: claim.note for claim in built.claims}["alpha"]


@X86
@pytest.mark.pythons
def test_where_torch_is_at_hand_for_one_python_no_other_is_tried(tmp_path: Path) -> None:
    own = {name: os.environ[name] for name in ("HOME", "PYENV_ROOT") if name in os.environ}
    builder = with_local_torch(tmp_path)
    builder.environ = {**builder.environ, **own}
    built = builder.build(
        spec(wanted("torch"), wanted("numpy", "==1.0", PinSource.REPOSITORY), at=None)
    )
    assert built.version("torch") == "9.0+cpu"
    assert not any("with Python" in step.what for step in built.steps)


def test_the_date_is_given_up_where_it_keeps_too_much_away(builder: UvBuilder) -> None:
    built = builder.build(spec(wanted("chain0")))
    assert built.version("chain29") == "1.0"
    assert any("without the date" in step.what for step in built.steps)


def test_a_build_is_of_a_release_that_its_dependent_allows(builder: UvBuilder) -> None:
    built = builder.build(spec(wanted("wants-delta"), at=SUMMER))
    assert built.version("delta") == "1.0"


def test_a_guess_with_nothing_but_a_pre_release_is_left_out(builder: UvBuilder) -> None:
    built = builder.build(spec(wanted("beta"), wanted("early")))
    assert (built.version("beta"), built.version("early")) == ("0.1", "")
    assert "omitted" in {claim.name: claim.note for claim in built.claims}["early"]


@X86
@pytest.mark.parametrize(
    "asked", [(wanted("torch"), wanted("torchvision", "==8.0", PinSource.ISSUE)), (wanted("timm"),)]
)
def test_torchvision_is_imported_without_operators_that_need_cuda(
    tmp_path: Path, asked: tuple[Requirement, ...]
) -> None:
    built = with_local_torch(tmp_path, "9.5").build(spec(*asked))
    assert (built.version("torch"), built.version("torchvision")) == ("9.0+cpu", "9.5")
    assert not built.version("torchaudio")
    assert says(built, "import torchvision; print('imported')") == "imported"
    note = {claim.name: claim.note for claim in built.claims}["torchvision"]
    assert "without its compiled operators" in note
    assert "without its compiled operators" in built.steps[-1].error
    assert ("claimed 8.0, the release for torch 9.0+cpu is 9.5" in note) == (len(asked) > 1)


@X86
def test_torchvision_is_left_out_where_no_release_fits_the_torch_at_hand(tmp_path: Path) -> None:
    built = with_local_torch(tmp_path).build(spec(wanted("torch"), wanted("torchvision")))
    assert not built.version("torchvision")
    assert {claim.name: claim.note for claim in built.claims}["torchvision"].startswith("omitted")


@X86
@pytest.mark.index
@pytest.mark.slow  # installs torch
def test_the_real_torchvision_is_imported_beside_a_cpu_torch_from_a_folder() -> None:
    builder = UvBuilder(Settings().cache_dir, ProcessSandbox(), torch_index=False)
    if not any(indexes.read_indexes(builder.environ).folders):
        pytest.skip("no folder of wheels is configured")
    built = builder.build(spec(wanted("torch"), wanted("torchvision"), at=None))
    assert "without its compiled operators" in built.steps[-1].error
    program = """import torch, torchvision
print(torchvision.models.resnet18().eval()(torch.zeros(1, 3, 32, 32)).shape[1])
try:
    torchvision.ops.nms(torch.zeros(1, 4), torch.zeros(1), 0.5)
except RuntimeError as error:
    print(error)
"""
    shape, error = says(built, program).splitlines()
    assert shape == "1000"
    assert setup_failures.made_here(error)


def test_wheels_for_another_python_only_end_in_a_reason(builder: UvBuilder) -> None:
    with pytest.raises(BuildError, match="elsewhere"):
        builder.build(spec(wanted("elsewhere", "==1.0", PinSource.OPTION)))


def test_no_answer_from_the_index_is_not_the_reports_fault(places: tuple[Index, Path]) -> None:
    builder = fresh_builder(places, PIP_INDEX_URL="http://127.0.0.1:9/simple")
    with pytest.raises(IndexUnreachable):
        builder.build(spec(wanted("beta"), at=SUMMER))


def test_builders_at_once_make_one_environment(places: tuple[Index, Path]) -> None:
    asked = spec(wanted("alpha"), wanted("beta"), at=SUMMER)
    with ThreadPoolExecutor(4) as pool:
        built = list(pool.map(lambda _: fresh_builder(places).build(asked), range(4)))
    assert len({each.id for each in built}) == 1
    assert says(built[0], "import alpha; print(alpha.version)") == "1.1.0"


def test_an_unfinished_environment_is_built_again_and_swept(
    places: tuple[Index, Path], builder: UvBuilder
) -> None:
    built = builder.build(spec(wanted("alpha", "==1.0.0", PinSource.ISSUE)))
    root = places[1] / "envs" / built.id
    (root / ".complete").unlink()
    shutil.rmtree(root / "lib")
    again = builder.build(spec(wanted("alpha", "==1.0.0", PinSource.ISSUE)))
    assert not again.warm
    assert says(again, "import alpha; print(alpha.version)") == "1.0.0"
    (places[1] / "envs" / "half").mkdir()
    assert Cache(places[1]).sweep() >= 1
    assert not (places[1] / "envs" / "half").exists()
    assert root.exists()


def test_the_cache_is_readable_by_others_and_byte_code_is_there(
    places: tuple[Index, Path], builder: UvBuilder
) -> None:
    built = builder.build(spec(wanted("beta")))
    package = Path(built.interpreter).parent.parent / f"lib/python{HOST}/site-packages/beta"
    assert list((package / "__pycache__").glob("*.pyc"))
    for path in (places[1], package, package / "__init__.py", *map(Path, built.mounts)):
        assert path.stat().st_mode & 0o004


def test_a_request_to_stop_stops(builder: UvBuilder) -> None:
    stop = threading.Event()
    stop.set()
    with pytest.raises(Stopped):
        builder.build(spec(wanted("alpha", "==1.1.0", PinSource.ISSUE)), cancel=stop)


def test_a_helper_dies_with_whoever_started_it() -> None:
    code = "from sandbox import subprocesses; print('up', flush=True); subprocesses.run(['/bin/sleep', '313.7'], env={})"
    parent = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]
    )
    assert parent.stdout is not None
    parent.stdout.readline()
    until(lambda: len(sleepers()) == 1)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    until(lambda: not sleepers())


def sleepers() -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes()
        except OSError:
            continue
        if line.startswith(b"/bin/sleep\x00313.7"):
            found.append(path.parent.name)
    return found


def until(holds: object) -> None:
    deadline = time.monotonic() + 10
    while not holds():  # type: ignore[operator]
        assert time.monotonic() < deadline
        time.sleep(0.02)


def git(where: Path, *argv: str, day: str = "2024-01-10T00:00:00Z") -> str:
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(where),
        "GIT_AUTHOR_DATE": day,
        "GIT_COMMITTER_DATE": day,
        "GIT_CONFIG_NOSYSTEM": "1",
    }
    identity = (
        "-c",
        "user.name=t",
        "-c",
        "user.email=t@example.invalid",
        "-c",
        "commit.gpgsign=false",
    )
    return subprocess.run(
        ["git", *identity, *argv], cwd=where, env=env, check=True, capture_output=True, text=True
    ).stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Two commits, a tag, a hook and a link that points outside."""
    where = tmp_path / "repo"
    where.mkdir()
    git(where, "init", "-q", "-b", "main")
    for name, text in project("delta", "1.0").items():
        (where / name).parent.mkdir(exist_ok=True)
        (where / name).write_text(text, encoding="utf-8")
    (where / "outside").symlink_to("/etc/passwd")
    git(where, "add", ".")
    git(where, "commit", "-qm", "one")
    git(where, "tag", "v1.0")
    (where / "pyproject.toml").write_text(
        project("delta", "1.1")["pyproject.toml"], encoding="utf-8"
    )
    (where / "back.py").write_text(project("delta", "1.1")["back.py"], encoding="utf-8")
    git(where, "commit", "-qam", "two", day="2024-05-10T00:00:00Z")
    hook = where / ".git/hooks/post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n", encoding="utf-8")
    hook.chmod(0o755)
    return where


def test_a_clone_is_built_at_the_newest_commit_of_that_day(
    builder: UvBuilder, repository: Path
) -> None:
    asked = spec(wanted("delta"), wanted("beta"), repo=RepoSource(url="", path=str(repository)))
    built = builder.build(asked)
    assert built.commit == git(repository, "rev-parse", "v1.0")
    assert {each.name: (each.version, each.rung) for each in built.packages}["delta"] == (
        "1.0",
        PinSource.REPOSITORY,
    )
    assert built.cloned == "delta"
    assert says(built, "import delta, beta; print(delta.secret)") == "None"
    later = builder.build(
        spec(wanted("delta"), at=SUMMER, repo=RepoSource(url="", path=str(repository)))
    )
    assert later.version("delta") == "1.1"
    tagged = builder.build(
        spec(wanted("delta"), at=SUMMER, repo=RepoSource(url="", path=str(repository), ref="v1.0"))
    )
    assert tagged.version("delta") == "1.0"


def test_a_clone_stands_for_what_was_guessed_for_its_modules(
    builder: UvBuilder, repository: Path
) -> None:
    guess = wanted("alpha").model_copy(update={"modules": ("delta",)})
    built = builder.build(spec(guess, repo=RepoSource(url="", path=str(repository))))
    assert built.cloned == "delta"
    assert built.version("alpha") == ""


def test_a_clone_that_is_no_package_goes_on_the_path_with_its_requirements(
    builder: UvBuilder, tmp_path: Path
) -> None:
    where = tmp_path / "research"
    where.mkdir()
    git(where, "init", "-q", "-b", "main")
    (where / "net.py").write_text("import beta\nanswer = 42\n", encoding="utf-8")
    (where / "requirements.txt").write_text(
        "beta  # needed\n--extra-index-url x\n-e .\n", encoding="utf-8"
    )
    git(where, "add", ".")
    git(where, "commit", "-qm", "one")
    built = builder.build(spec(repo=RepoSource(url="", path=str(where))))
    assert says(built, "import net; print(net.answer)") == "42"
    assert any(Path(mount, "net.py").exists() for mount in built.mounts)
    assert built.cloned == ""


def test_a_checkout_runs_and_follows_nothing(repository: Path, tmp_path: Path) -> None:
    checkout = Git(Cache(tmp_path / "cache"), dict(os.environ)).checkout(
        RepoSource(url="", path=str(repository)), None
    )
    assert not (tmp_path / "ran").exists()
    assert not (checkout.tree / "outside").is_symlink()
    assert "root:" not in (checkout.tree / "outside").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "ref", ["--upload-pack=touch x", "-x", "a..b", "main; id", "no-such-branch", "HEAD~9"]
)
def test_a_reference_cannot_be_an_option_or_missing(
    repository: Path, tmp_path: Path, ref: str
) -> None:
    with pytest.raises(UserError):
        Git(Cache(tmp_path / "cache"), dict(os.environ)).checkout(
            RepoSource(url="", path=str(repository), ref=ref), None
        )


@pytest.mark.parametrize(
    "url",
    ["ext::sh -c id", "--upload-pack=id", "file:///etc", "ssh://host/x", "https://host/$(id)"],
)
def test_only_https_addresses_are_cloned(tmp_path: Path, url: str) -> None:
    with pytest.raises(UserError):
        Git(Cache(tmp_path / "cache"), dict(os.environ)).checkout(RepoSource(url=url), None)
