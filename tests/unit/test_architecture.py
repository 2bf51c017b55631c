"""The house rules that no other tool checks; each rule is also shown a program that breaks it."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from sandbox.probe.training.vocabulary import TORCH_LOSSES

ROOT = Path(__file__).resolve().parents[2]
TOP = {
    "bot",
    "handlers",
    "sandbox",
    "prompts",
    "tests",
    "deploy",
    "pyproject.toml",
    "README.md",
    "CHANGELOG.md",
}
TOP |= {
    "action.yml",
    "mkdocs.yml",
    "benchmarks",
    "docs",
    "LICENSE",
    "Makefile",
    "uv.lock",
    "CONTRIBUTING.md",
    "SECURITY.md",
}
MADE = {"build", "dist", "coverage.xml", "reprise-runs", "site"}
OURS = sorted(
    path
    for room in ("bot", "handlers", "sandbox", "prompts")
    for path in (ROOT / room).rglob("*.py")
)
TESTS = sorted((ROOT / "tests").rglob("*.py"))
PROBE = ROOT / "sandbox" / "probe"

# The boundaries of the command line, of a worker and its jobs, and of a proof or a diagnosis (a verdict
# does not need it); and a forked child, which must not go on as a second parent.
BROAD = {
    "bot/cli/error_boundary.py",
    "bot/app/worker.py",
    "sandbox/guard/spawn.py",
}
BROAD |= {
    "bot/products/issue_training.py",
    "bot/issues/proof/proofs.py",
    "bot/issues/search/reconstruct.py",
}
ENVIRONMENT_READERS = {"bot/kernel/settings.py"}


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


class Parsed:
    """A file's tree and all its nodes, found once for every rule."""

    def __init__(self, source: str | bytes) -> None:
        self.tree = ast.parse(source)
        self.nodes = tuple(ast.walk(self.tree))


def undocumented(file: Parsed, path: str) -> bool:
    return not (ast.get_docstring(file.tree) or "").split("\n", 1)[0].strip()


def reads_the_environment(file: Parsed, path: str) -> bool:
    if path in ENVIRONMENT_READERS:
        return False
    reads = {"environ", "getenv", "environb"}
    asked = (node for node in file.nodes if isinstance(node, ast.Attribute) and node.attr in reads)
    return any(isinstance(node.value, ast.Name) and node.value.id == "os" for node in asked)


def catches_everything(file: Parsed, path: str) -> bool:
    if path in BROAD:
        return False
    broad = {"Exception", "BaseException"}
    for node in file.nodes:
        if isinstance(node, ast.ExceptHandler):
            caught = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
            reraises = any(
                isinstance(each, ast.Raise) and each.exc is None for each in ast.walk(node)
            )
            if not reraises and any(
                each is None or (isinstance(each, ast.Name) and each.id in broad) for each in caught
            ):
                return True
    return False


def passes_a_shell(file: Parsed, path: str) -> bool:
    for node in file.nodes:
        if (
            isinstance(node, ast.keyword)
            and node.arg == "shell"
            and not (isinstance(node.value, ast.Constant) and node.value.value is False)
        ):
            return True
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and (node.value.id, node.attr) == ("os", "system")
        ):
            return True
    return False


def knows_the_keys(file: Parsed, path: str) -> bool:
    words = {
        node.value
        for node in file.nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    return path != "benchmarks/scoring.py" and not words.isdisjoint(
        {"keys", "right_verdicts", "message_regex"}
    )


def parses_unguarded(file: Parsed, path: str) -> bool:
    found = (node for node in file.nodes if isinstance(node, ast.Attribute))
    calls = {(getattr(node.value, "id", ""), node.attr) for node in found}
    return path != "bot/kernel/source/syntax.py" and not calls.isdisjoint(
        {("ast", "parse"), ("cst", "parse_module")}
    )


def spells_a_loss(file: Parsed, path: str) -> bool:
    """One file says what PyTorch calls its losses; it also travels into the sandbox."""
    words = {node.value for node in file.nodes if isinstance(node, ast.Constant)}
    return path.startswith("bot/") and not words.isdisjoint(
        {kind for _, kind, _ in TORCH_LOSSES.values()}
    )


def patches_a_report(file: Parsed, path: str) -> bool:
    """A draft is filled in, where mypy checks every name: `model_copy` takes names as texts."""
    copied = [
        node.value
        for node in file.nodes
        if isinstance(node, ast.Attribute) and node.attr == "model_copy"
    ]
    names = {getattr(each, "id", getattr(each, "attr", "")) for each in copied}
    return any(each.rsplit("_", 1)[-1] == "report" for each in names)


Rule = Callable[[Parsed, str], bool]
RULES: dict[Rule, tuple[str, str]] = {
    undocumented: ("bot/x.py", "import os"),
    reads_the_environment: ("bot/x.py", "'''X.'''\nimport os\nos.environ['HOME']"),
    catches_everything: (
        "bot/x.py",
        "'''X.'''\ntry:\n    pass\nexcept (ValueError, Exception):\n    pass",
    ),
    passes_a_shell: (
        "sandbox/x.py",
        "'''X.'''\nimport subprocess\nsubprocess.run('ls', shell=True)",
    ),
    parses_unguarded: ("bot/issues/x.py", "'''X.'''\nimport ast\nast.parse(text)"),
    spells_a_loss: ("bot/issues/x.py", "'''X.'''\nNAMES = {'mse': 'MSELoss'}"),
    patches_a_report: (
        "bot/issues/x.py",
        "'''X.'''\nreport = self.report.model_copy(update={'notes': ()})",
    ),
    knows_the_keys: ("bot/issues/x.py", "'''X.'''\nfrom pathlib import Path\nPath('keys')"),
}


def public_classes(file: Parsed) -> list[str]:
    classes = [node.name for node in file.tree.body if isinstance(node, ast.ClassDef)]
    return [each for each in classes if not each.startswith("_")]


@cache
def looked_at() -> tuple[dict[Rule, list[str]], dict[str, list[str]]]:
    """The files that break each rule, and those that define each public class; one look for all,
    since the trees of all files are large.
    """
    broken: dict[Rule, list[str]] = {rule: [] for rule in RULES}
    defined: dict[str, list[str]] = {}
    for path in OURS:
        file = Parsed(path.read_bytes())
        for each in public_classes(file):
            defined.setdefault(each, []).append(name(path))
        for rule in RULES if not path.is_relative_to(PROBE) else ():
            broken[rule] += [name(path)] if rule(file, name(path)) else []
    return broken, defined


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_a_house_rule_holds_in_every_file_and_can_be_broken(
    rule: Rule,
) -> None:
    path, bad = RULES[rule]
    assert rule(Parsed(bad), path)
    assert looked_at()[0][rule] == []


def test_the_probe_imports_nothing_of_ours() -> None:
    imports = re.compile(rb"^\s*(?:from|import)\s+(bot|handlers|sandbox|prompts)\b", re.MULTILINE)
    assert imports.search(b"import os\nfrom bot.kernel.ports import Ports")
    assert [name(file) for file in PROBE.rglob("*.py") if imports.search(file.read_bytes())] == []


def test_the_top_level_is_fixed() -> None:
    seen = {
        path.name
        for path in ROOT.iterdir()
        if not path.name.startswith(".") and not path.name.endswith(".egg-info")
    }
    assert seen - MADE - TOP == set()
    assert {"README.md", "LICENSE", "bot", "sandbox", "tests"} <= seen


def test_tests_are_no_package_and_mock_nothing() -> None:
    assert [path for path in TESTS if path.name == "__init__.py"] == []
    words = "unittest" + ".mock"
    assert [name(path) for path in TESTS if words in path.read_text()] == []


def test_no_file_names_a_machine() -> None:
    places = re.compile(r"(?<![\w.])/(?:work/main|root/\.|opt/(?:wheels|pypi))(?:/|\b)")
    assert places.search("find-links = /opt/wheels")
    kept = [ROOT / "Makefile", ROOT / "pyproject.toml", ROOT / "README.md", *OURS, *TESTS]
    allowed = {name(Path(__file__))}
    assert [
        name(path) for path in kept if name(path) not in allowed and places.search(path.read_text())
    ] == []


def test_the_lock_names_public_hosts_only_and_every_dependency() -> None:
    lock = (ROOT / "uv.lock").read_text()
    assert set(re.findall(r"(?:https?|file)://[^/\"]*", lock)) == {
        "https://pypi.org",
        "https://files.pythonhosted.org",
    }
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wanted = {
        canonicalize_name(Requirement(line).name)
        for line in (*project["project"]["dependencies"], *project["dependency-groups"]["dev"])
    }
    assert wanted <= {package["name"] for package in tomllib.loads(lock)["package"]}


def test_no_two_public_classes_share_a_name() -> None:
    assert public_classes(Parsed("class Row: ...\nclass _Row: ...")) == ["Row"]
    assert {key: places for key, places in looked_at()[1].items() if len(places) > 1} == {}
