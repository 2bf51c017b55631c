"""What a repository's files ask to be installed: each kind of file, which of them count for a
command, and what hostile ones end in.
"""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime

import pytest

from bot.environment import dependency_files, specify, tree_requirements
from bot.kernel.attempt import Script
from bot.kernel.bug import BugReport, Issue, Quote, ReportKind, VersionClaim
from bot.kernel.environment import DeclaredDependencies, EnvironmentSpec, PinSource
from tests.support.jobs import job_options

Files = dict[str, str | bytes]


def read(
    files: Files, folder: str = "", command: str = "", words: str = ""
) -> DeclaredDependencies:
    tree = {
        path: text if isinstance(text, bytes) else text.encode() for path, text in files.items()
    }
    return tree_requirements.read_dependencies(tree, folder, command.split(), words)


def rows(declared: DeclaredDependencies) -> list[str]:
    return [
        f"{row.name}{f'[{chr(44).join(row.extras)}]' if row.extras else ''}{row.specifier}"
        for row in declared.requirements
    ]


def pins(declared: DeclaredDependencies) -> list[str]:
    return [f"{row.name}{row.specifier}" for row in declared.constraints]


REQUIREMENTS = """\
# what training needs
numpy==1.19.5  # old

torch==1.7.1+cu110
Pillow>=8.0; python_version >= "3"
pywin32==300; sys_platform == "win32"
scikit_learn[alldeps] >= 0.24, \\
    <1.1
-r more/base.txt
-c bounds.txt
-e .
--extra-index-url https://example.com/simple
git+https://github.com/acme/tool.git#egg=tool
opencv-python
./local/package
"""


def test_a_requirements_file_with_what_it_names_in_the_tree() -> None:
    declared = read(
        {
            "requirements.txt": REQUIREMENTS,
            "more/base.txt": "-r ../requirements.txt\nrich\n",
            "bounds.txt": "urllib3<2\n",
        }
    )
    assert rows(declared) == [
        "numpy==1.19.5", "torch==1.7.1", "pillow>=8.0", "scikit-learn[alldeps]<1.1,>=0.24",
        "opencv-python-headless", "rich",
    ]  # fmt: skip
    assert pins(declared) == ["urllib3<2"]
    assert [row.reason for row in declared.requirements][:4:3] == [
        "requirements.txt line 2 says numpy==1.19.5",
        "requirements.txt line 7 says scikit-learn<1.1,>=0.24",
    ]
    assert declared.requirements[-1].reason == "more/base.txt line 2 names it"
    assert declared.requirements[0].rung is PinSource.REPOSITORY
    assert len(declared.notes) == 1
    assert "requirements.txt line 13: git+https" in declared.notes[0]


def test_what_pip_freeze_wrote_bounds_and_installs_nothing() -> None:
    many = [f"package{number}==1.{number}" for number in range(30)]
    declared = read({"requirements.txt": "\n".join([*many, "numpy"])})
    assert (rows(declared), len(pins(declared))) == ([], 30)
    few = read({"requirements.txt": "\n".join(many[:10])})
    assert (len(rows(few)), pins(few)) == (10, [])
    hashed = read({"requirements.txt": "alpha==1.0 --hash=sha256:00 \\\n  --hash=sha256:11\n"})
    assert (rows(hashed), pins(hashed)) == ([], ["alpha==1.0"])


def test_a_file_that_windows_wrote_is_read() -> None:
    assert rows(read({"requirements.txt": "alpha==1.0\r\nbeta\r\n".encode("utf-16")})) == [
        "alpha==1.0",
        "beta",
    ]


PYPROJECT = """\
[project]
name = "acme-train"
requires-python = ">=3.9,<3.12"
dependencies = ["numpy>=1.21", "acme-data @ git+https://example.com/x"]

[project.optional-dependencies]
test = ["pytest-xdist"]
atari = ["ale-py==0.8.1", "acme-train[video]"]
video = ["moviepy"]

[dependency-groups]
dev = ["ruff"]
ml = ["torch>=2"]
[tool.uv]
default-groups = ["dev", "ml"]
"""


@pytest.mark.parametrize(
    ("command", "words", "more"),
    [
        ("train.py", "", []),
        ("dqn_atari.py", "", ["moviepy", "ale-py==0.8.1"]),
        ("train.py", "I ran `pip install -e .[video]`", ["moviepy"]),
        ("train.py", "uv sync --extra video", ["moviepy"]),
        ("-m pytest tests", "", ["pytest-xdist", "pytest"]),
    ],
)
def test_extras_and_groups_count_where_the_command_or_the_report_names_them(
    command: str, words: str, more: list[str]
) -> None:
    declared = read({"pyproject.toml": PYPROJECT}, "", command, words)
    assert sorted(rows(declared)) == sorted(["numpy>=1.21", "torch>=2", *more])
    assert declared.requirements[0].reason == "pyproject.toml line 4 says numpy>=1.21"
    assert (declared.pythons, declared.python_why) == (
        ("3.9", "3.10", "3.11"),
        "pyproject.toml line 3 says Python >=3.9,<3.12",
    )


def test_dependencies_that_setuptools_takes_from_a_file() -> None:
    dynamic = '[tool.setuptools.dynamic]\ndependencies = {file = ["deps/run.txt"]}\n'
    assert rows(read({"pyproject.toml": dynamic, "deps/run.txt": "alpha"})) == ["alpha"]


POETRY = """\
[tool.poetry]
name = "acme"
[tool.poetry.dependencies]
python = "^3.8"
numpy = "^1.21.0"
alpha = "~1.4"
beta = "1.2.3"
gamma = "*"
delta = {version = ">=2,<3", extras = ["fast"], markers = "sys_platform == 'linux'"}
zeta = {git = "https://example.com/zeta.git"}
old = "^0.2.3"
eta = [{version = "^1", python = "<3.9"}]
theta = {version = "1.*", optional = true}
[tool.poetry.extras]
more = ["theta"]
[tool.poetry.group.dev.dependencies]
black = "*"
[tool.poetry.group.plots.dependencies]
seaborn = "*"
"""


def test_poetry_and_its_lock() -> None:
    lock = (
        '[[package]]\nname = "numpy"\nversion = "1.22.1"\noptional = false\n\n'
        '[[package]]\nname = "zeta"\nversion = "1.0"\n\n[package.source]\ntype = "git"\n\n'
        '[[package]]\nname = "drawn"\nversion = "3.1"\n'
    )
    declared = read({"pyproject.toml": POETRY, "poetry.lock": lock})
    assert rows(declared) == [
        "numpy<2,>=1.21.0", "alpha<1.5,>=1.4", "beta==1.2.3", "gamma", "delta[fast]<3,>=2",
        "old<0.3,>=0.2.3", "eta<2,>=1", "seaborn",
    ]  # fmt: skip
    assert pins(declared) == ["numpy==1.22.1", "drawn==3.1"]
    assert declared.constraints[1].reason == "poetry.lock line 14 says drawn==3.1"
    assert declared.requirements[2].reason == "pyproject.toml line 7 says beta==1.2.3"
    assert declared.pythons[0] == "3.8"
    assert "theta==1.*" in rows(read({"pyproject.toml": POETRY}, "", "train.py --more"))


def test_what_a_lock_resolved_twice_is_no_pin() -> None:
    block = '[[package]]\nname = "{}"\nversion = "{}"\nsource = {{ {} }}\n'
    registry = 'registry = "https://pypi.org/simple"'
    lock = "version = 1\n" + "".join(
        block.format(*row)
        for row in [
            ("numpy", "1.26", registry), ("numpy", "2.0", registry), ("acme", "1", 'virtual = "."'),
            ("alpha", "1.5", registry), ("torch", "2.9", registry),
        ]
    )  # fmt: skip
    assert pins(read({"uv.lock": lock})) == ["alpha==1.5", "torch==2.9"]


def test_a_pipfile_and_its_lock() -> None:
    pipfile = '[packages]\nalpha = "*"\nbeta = {version = ">=1"}\n[dev-packages]\nblack = "*"\n[requires]\npython_version = "3.8"\n'
    lock = json.dumps(
        {"default": {"alpha": {"version": "==1.5"}}, "develop": {"black": {"version": "==22"}}}, indent=1
    )  # fmt: skip
    declared = read({"Pipfile": pipfile, "Pipfile.lock": lock})
    assert (rows(declared), pins(declared)) == (["alpha", "beta>=1"], ["alpha==1.5"])
    assert declared.constraints[0].reason == "Pipfile.lock line 3 says alpha==1.5"
    assert (declared.pythons, declared.python_why) == (("3.8",), "Pipfile line 7 says Python 3.8")


def test_setup_cfg() -> None:
    text = "[options]\npython_requires = >=3.8\ninstall_requires =\n  alpha>=1\n  beta\n[options.extras_require]\ntests = pytest-cov\n"
    declared = read({"setup.cfg": text})
    assert rows(declared) == ["alpha>=1", "beta"]
    assert declared.requirements[0].reason == "setup.cfg line 4 says alpha>=1"
    assert "pytest-cov" in rows(read({"setup.cfg": text}, "", "-m pytest"))


SETUP = "from setuptools import setup\n"


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ('setup(install_requires=["alpha>=1", "beta"])', ["alpha>=1", "beta"]),
        ('REQUIRED = ["alpha"]\nREQUIRED += ("beta",)\nsetup(install_requires=REQUIRED + ["eta"])', ["alpha", "beta", "eta"]),
        ('REQUIRED = ["alpha"]\nREQUIRED.append("beta")\nsetuptools.setup(install_requires=list(REQUIRED))', []),
        ('setup(install_requires=open("requirements.txt").read().splitlines())', ["rho==1"]),
        ('with open(os.path.join(here, "requirements.txt"), encoding="utf-8") as f:\n    lines = [line.strip() for line in f]\nsetup(install_requires=lines)', ["rho==1"]),
        ('def parse():\n    with open("requirements.txt") as f:\n        return f.read().split("\\n")\nsetup(install_requires=parse())', ["rho==1"]),
        ('def parse(path): ...\nsetup(install_requires=parse("./requirements.txt"))', ["rho==1"]),
        ('kw = dict(install_requires=["alpha"])\nsetup(**kw)', ["alpha"]),
        ('kw = {"install_requires": ["alpha"]}\nsetup(**kw)', ["alpha"]),
        ('extras = {"run": ["alpha"], "test": ["beta"]}\nsetup(install_requires=extras["run"])', ["alpha"]),
        ('setup(install_requires="alpha\\nbeta")', ["alpha", "beta"]),
        ('setup(install_requires=open("../../etc/requirements.txt").readlines())', []),
        ("setup(install_requires=[os.environ['X']])", []),
        ("setup(", []),
    ],
)  # fmt: skip
def test_a_setup_py_is_looked_at_and_never_run(text: str, result: list[str]) -> None:
    files: Files = {"setup.py": SETUP + text, "reqs/requirements-x.txt": "no", "lib/x.py": ""}
    files |= {"requirements.txt": "rho==1"} if "requirements.txt" in text else {}
    if "../.." in text:
        del files["requirements.txt"]
    assert rows(read(files)) == result


def test_what_setup_py_says_of_python_and_its_line() -> None:
    text = (
        SETUP
        + 'setup(\n  name="acme", python_requires="~=3.8",\n  install_requires=["alpha==2"],\n)'
    )
    declared = read({"setup.py": text})
    assert declared.requirements[0].reason == "setup.py line 4 says alpha==2"
    assert declared.python_why == "setup.py line 3 says Python ~=3.8"


CONDA = """\
name: acme
channels: [pytorch, conda-forge]
dependencies:
  - python=3.8.5
  - pytorch::pytorch=1.7
  - cudatoolkit=10.2
  - numpy=1.19.2
  - conda-forge::pandas >=1.1,<2
  - opencv=4.5.1
  - libgcc-ng
  - librosa
  - pip
  - pip:
    - einops==0.3.0
    - -r more.txt
    - -e .
"""


def test_an_environment_of_conda() -> None:
    declared = read({"environment.yaml": CONDA, "more.txt": "rich\n"})
    assert rows(declared) == [
        "torch==1.7.*", "numpy==1.19.2", "pandas<2,>=1.1", "opencv-python-headless==4.5.1.*",
        "librosa", "einops==0.3.0", "rich",
    ]  # fmt: skip
    assert declared.requirements[0].reason == "environment.yaml line 5 says torch==1.7.*"
    assert (declared.pythons, declared.python_why) == (
        ("3.8",),
        "environment.yaml line 4 says Python 3.8",
    )


def test_an_export_of_conda_only_bounds() -> None:
    lines = "\n".join(f"  - package{number}=1.{number}.0=py38_0" for number in range(5))
    declared = read({"environment.yml": f"dependencies:\n{lines}\n"})
    assert (rows(declared), pins(declared)[0]) == ([], "package0==1.0.0")


def test_the_lines_of_a_readme_and_an_image_install_where_no_file_does() -> None:
    readme = (
        "# Acme\n\n```\nconda install pytorch=1.13 torchvision -c pytorch -c nvidia\n"
        "$ pip install --upgrade alpha 'beta>=2' # both\npip install -e .\n```\n"
        "Then `pip install gamma` and pip install nothing of this.\n"
    )
    image = "FROM python:3.8-slim\nRUN apt-get install -y git && \\\n    pip install delta==1.0\n"
    declared = read({"README.md": readme, "docker/Dockerfile": image})
    assert rows(declared) == [
        "delta==1.0",
        "torch==1.13.*",
        "torchvision",
        "alpha",
        "beta>=2",
        "gamma",
    ]
    assert declared.requirements[1].reason == "README.md line 4 says torch==1.13.*"
    assert (declared.pythons, declared.python_why) == (
        ("3.8",),
        "docker/Dockerfile line 1 says Python 3.8",
    )
    beside = read({"README.md": readme, "requirements.txt": "alpha\nbeta==1\n"})
    assert rows(beside) == ["alpha", "beta==1"]
    assert pins(beside) == ["torch==1.13.*"]


WORKFLOW = """\
jobs:
  unit:
    strategy:
      matrix:
        python-version: ["3.8", 3.9, "3.10"]
    steps:
      - uses: actions/setup-python@v4
        with: {python-version: "${{ matrix.python-version }}"}
"""


@pytest.mark.parametrize(
    ("files", "pythons"),
    [
        ({".github/workflows/test.yml": WORKFLOW}, ("3.8", "3.9", "3.10")),
        ({".github/workflows/test.yml": WORKFLOW, "pyproject.toml": PYPROJECT}, ("3.9", "3.10")),
        ({".github/workflows/test.yml": WORKFLOW, ".python-version": "3.12.1\n"}, ("3.12",)),
        ({".github/workflows/publish.yml": WORKFLOW}, ()),
        ({"runtime.txt": "python-3.7.9"}, ("3.7",)),
        ({"requirements.txt": "python==3.6.12\nalpha"}, ("3.6",)),
        ({"setup.cfg": "[options]\npython_requires = >=2.7, !=3.0.*\n"}, tuple(specify.versions.RELEASE_DAYS)),
        ({"setup.cfg": "[options]\npython_requires = whatever\n"}, tuple(specify.versions.RELEASE_DAYS)),
    ],
)  # fmt: skip
def test_the_pythons_that_a_repository_allows(files: Files, pythons: tuple[str, ...]) -> None:
    assert read(files).pythons == pythons


@pytest.mark.parametrize(
    ("files", "folder", "command", "words", "result"),
    [
        ({"requirements.txt": "top", "a/requirements.txt": "near"}, "a/b", "", "", ["near", "top"]),
        ({"requirements.txt": "top", "a/requirements.txt": "near"}, "", "", "", ["top"]),
        ({"requirements/base.txt": "alpha", "requirements/dev.txt": "beta"}, "", "", "", ["alpha"]),
        ({"requirements.txt": "alpha", "requirements-test.txt": "beta"}, "", "-m pytest", "", ["alpha", "beta", "pytest"]),
        ({"requirements.txt": "alpha", "requirements-atari.txt": "beta"}, "", "run_atari.py", "", ["alpha", "beta"]),
        ({"requirements.txt": "alpha", "requirements-gpu.txt": "beta"}, "", "x.py", "pip install -r requirements-gpu.txt", ["beta", "alpha"]),
        ({"requirements_all.txt": "alpha", "README.md": "`pip install -r requirements_all.txt`"}, "", "", "", []),
        ({"deps/run.txt": "alpha", "README.md": "`pip install -r deps/run.txt`"}, "", "", "", ["alpha"]),
        ({"env/linux.yml": "dependencies: [alpha]", "README.md": "conda env create -f env/linux.yml"}, "", "", "", ["alpha"]),
        ({"bonus/requirements-extra.txt": "alpha"}, "bonus", "", "", ["alpha"]),
        ({"requirements.txt": "black\nsphinx\njupyterlab\nalpha"}, "", "", "", ["alpha"]),
    ],
)  # fmt: skip
def test_which_files_count_for_a_command(
    files: Files, folder: str, command: str, words: str, result: list[str]
) -> None:
    assert rows(read(files, folder, command, words)) == result


def test_the_modules_of_the_tree_never_come_from_the_index() -> None:
    files: Files = {
        "utils/__init__.py": "",
        "model.py": "",
        "requirements.txt": "utils\nacme-train\nmodel\nalpha",
    }
    files["pyproject.toml"] = PYPROJECT
    declared = read(files)
    assert rows(declared) == ["alpha", "numpy>=1.21", "torch>=2"]
    assert {"utils", "acme-train", "model"} <= set(declared.own)


DEEP = "[" * 5_000
BOMB = "a: &a [x, x]\nb: &b [*a, *a]\ndependencies: [*b]\n"


@pytest.mark.parametrize(
    "files",
    [
        {"requirements.txt": "-r requirements.txt\n-r ../../../etc/passwd\n-r /etc/passwd\n"},
        {"requirements.txt": "a" * 3_000_000},
        {"requirements.txt": "\\\n" * 200_000 + "x"},
        {"requirements.txt": b"\xff\xfe\x00"},
        {"requirements.txt": "-r a.txt", "a.txt": "-r b.txt", "b.txt": "-r a.txt"},
        {"pyproject.toml": f"a = {DEEP}"},
        {"pyproject.toml": '[project]\ndependencies = "alpha"\n[tool]\npoetry = 1\n'},
        {"pyproject.toml": '[tool.poetry.group]\na = 1\n[project.optional-dependencies]\nx = 3\n'},
        {"Pipfile.lock": DEEP},
        {"Pipfile.lock": '{"default": {"alpha": 3, "beta": {"version": 4}}}'},
        {"uv.lock": '[[package]]\nname = "x"\n' * 100_000},
        {"environment.yml": BOMB},
        {"environment.yml": "dependencies: !!python/object/apply:os.system [id]"},
        {"environment.yml": f"dependencies: {DEEP}"},
        {"environment.yml": "dependencies: {a: b}\n"},
        {".github/workflows/test.yml": DEEP},
        {"setup.py": SETUP + "setup(install_requires=" + "[" * 3_000 + ")"},
        {"setup.py": SETUP + "\n".join(f"a{n} = a{n + 1}" for n in range(20_000)) + "\nsetup(install_requires=a0)"},
        {"setup.py": SETUP + "a = a + a\nsetup(install_requires=a)"},
        {"setup.py": "raise SystemExit(open('/etc/passwd').read())"},
        {"setup.cfg": "[options\ninstall_requires = x"},
        {"setup.py": SETUP + "\n".join(f"a{n} = {'[' * 90}a{n + 1}{']' * 90}" for n in range(60)) + "\nsetup(install_requires=a0)"},
        {"README.md": "\n" * 900_000 + "#"},
        {"README.md": "-r" * 400_000},
        {"requirements.txt": "alpha; " + "(" * 5_000},
        {"requirements.txt": "alpha; python_version ~= 'x'\nbeta; os_name > 'x'"},
        {"requirements.txt": "alpha===$x"},
        {"pyproject.toml": f"[project]\nname = 'x'\ndependencies = []\nversion = {'9' * 9_000}"},
        {"pyproject.toml": f"[tool.poetry.dependencies]\nalpha = '1{' ' * 900_000}'"},
        {"pyproject.toml": "[project.optional-dependencies]\n" + "\n".join(f"train{n} = ['p{n}']" for n in range(40_000))},
        {"README.md": "pip install " + "x " * 200_000},
        {"README.md": "pip install 'unclosed\n" * 5_000},
        {"Dockerfile": "RUN pip install $(curl https://example.com)\n"},
    ],
)  # fmt: skip
def test_hostile_files_end_in_little_and_soon(files: Files) -> None:
    started = time.process_time()
    declared = read(files)
    assert time.process_time() - started < 20
    assert len(declared.requirements) <= 61
    assert all("passwd" not in str(row) and "$" not in row.name for row in declared.requirements)


def test_a_list_without_end_is_cut() -> None:
    text = "\n".join(f"package{number}" for number in range(9_000))
    assert len(rows(read({"requirements.txt": text}))) == dependency_files.MOST_ENTRIES


# In a spec: options, then the report, then locks, then files, then the date.

DAY = datetime(2021, 3, 1, tzinfo=UTC)
SOURCE = "import numpy\nimport pandas\nimport helper\nimport magic"


def spec(
    files: Files, *claims: tuple[str, str], source: str = SOURCE, **options: object
) -> EnvironmentSpec:
    versions = tuple(
        VersionClaim(name=name, version=version, source="dump", quote=Quote(text=version))
        for name, version in claims
    )
    bug = BugReport(kind=ReportKind.BUG, versions=versions)
    issue = Issue(title="t", body="b", repository="acme/helper", created_at=DAY)
    environment = job_options(**options).environment
    return specify.specify(bug, issue, environment, source, read({"helper.py": "", **files}))


def pinned(spec: EnvironmentSpec) -> dict[str, tuple[str, str]]:
    return {row.name: (row.specifier, row.rung.value) for row in spec.requirements}


LOCK = '[[package]]\nname = "numpy"\nversion = "1.20.0"\n\n[[package]]\nname = "drawn"\nversion = "3"\n\n[[package]]\nname = "torch"\nversion = "1.7"\n'


def test_options_come_before_the_report_locks_files_and_the_date() -> None:
    files: Files = {"requirements.txt": "numpy>=1.18\ntqdm==4.1\nrich\n", "poetry.lock": LOCK}
    rows = pinned(spec(files))
    assert rows == {
        "numpy": ("==1.20.0", "repository"), "pandas": ("", "import"), "magic": ("", "import"),
        "tqdm": ("==4.1", "repository"), "rich": ("", "import"),
    }  # fmt: skip
    rows = pinned(spec(files, ("numpy", "1.19.5"), ("tqdm", "4.0")))
    assert (rows["numpy"], rows["tqdm"]) == (("==1.19.5", "issue"), ("==4.0", "issue"))
    rows = pinned(spec(files, ("numpy", "1.19.5"), pins=("numpy==1.17", "rich")))
    assert (rows["numpy"], rows["rich"]) == (("==1.17", "option"), ("", "option"))
    del files["poetry.lock"]
    assert pinned(spec(files))["numpy"] == (">=1.18", "repository")


def test_a_lock_bounds_what_is_drawn_but_for_torch() -> None:
    built = spec({"poetry.lock": LOCK}, ("drawn", "2.0"))
    assert [f"{row.name}{row.specifier}" for row in built.constraints] == ["drawn==2.0"]
    built = spec({"poetry.lock": LOCK})
    assert [(row.name, row.reason) for row in built.constraints] == [
        ("drawn", "poetry.lock line 6 says drawn==3")
    ]


def test_the_name_in_a_file_stands_for_the_guess_from_an_import() -> None:
    rows = pinned(spec({"requirements.txt": "python-magic==0.4.24"}))
    assert rows["python-magic"] == ("==0.4.24", "repository")
    assert "magic" not in rows


def test_tensorflow_is_its_processor_build_where_there_was_one() -> None:
    files: Files = {"requirements.txt": "tensorflow-gpu==2.4.0\n"}
    assert pinned(spec(files))["tensorflow-cpu"] == ("==2.4.0", "repository")


@pytest.mark.parametrize(
    ("files", "options", "claims", "python"),
    [
        ({}, {}, (), "3.8"),
        ({".python-version": "3.7"}, {}, (), "3.7"),
        ({".python-version": "3.7"}, {}, (("python", "3.6.9"),), "3.6"),
        ({".python-version": "3.7"}, {"python": "3.9"}, (), "3.9"),
        ({"setup.cfg": "[options]\npython_requires = >=3.6\n"}, {}, (), "3.8"),
        ({"setup.cfg": "[options]\npython_requires = >=3.9\n"}, {}, (), "3.9"),
    ],
)
def test_the_python_of_the_repository_comes_after_the_reports(
    files: Files, options: dict[str, str], claims: tuple[tuple[str, str], ...], python: str
) -> None:
    assert spec(files, *claims, **options).python == python


def test_the_files_of_a_programs_own_folder_count() -> None:
    tree = {"tools/train.py": b"", "tools/requirements.txt": b"alpha", "setup.py": b""}
    program = Script(
        files={"tools/train.py": ""}, entry="tools/train.py", command=("tools/train.py",)
    )
    declared = tree_requirements.for_program(tree, program, "")
    assert rows(declared) == ["alpha"]
