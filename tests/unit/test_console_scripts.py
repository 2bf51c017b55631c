"""A console script that a report starts is run as the repository defines it."""

import ast
import json

import pytest

from bot.issues.reading.issue import read_issue
from bot.issues.search.console_scripts import DOCUMENTED, read_console_scripts, started_scripts
from bot.kernel.bug import Issue

PROJECT = '[project.scripts]\nacme-train = "acme.train:main"\nfit = "acme.fit:App.run"\n'
TREE = {
    "pyproject.toml": PROJECT.encode(),
    "README.md": b"## Use\n\n    acme-train \\\n    --size 3 \\\n    --gpu_ids 0 1\n",
    "src/acme/train.py": b"def main(): ...\n",
}


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("pyproject.toml", '[project.scripts]\nacme-train = "acme.train:main"\n'),
        ("pyproject.toml", '[tool.poetry.scripts]\nacme-train = "acme.train:main"\n'),
        ("setup.cfg", "[options.entry_points]\nconsole_scripts =\n    acme-train = acme.train:main\n"),
        ("setup.py", "setup(entry_points={'console_scripts': ['acme-train=acme.train:main']})\n"),
    ],
)  # fmt: skip
def test_every_way_to_define_a_console_script_is_read(path: str, text: str) -> None:
    assert read_console_scripts({path: text.encode()}) == {"acme-train": "acme.train:main"}
    assert read_console_scripts({path: b"[broken"}) == {}


@pytest.mark.parametrize(
    ("body", "arguments"),
    [
        ("```\n$ acme-train --size 2 --name 'a b'\nKeyError: 1\n```", ("--size", "2", "--name", "a b")),
        ("I ran `acme-train --size 2` and it fails", ("--size", "2")),
        ("```\n/opt/env/bin/fit --deep 1\n```", ("--deep", "1")),
        ("I run acme-train, and it fails", ("--size", "3", "--gpu_ids", "0", "1")),
        ("unrecognized arguments: --new 4 error for acme-train", ("--size", "3", "--gpu_ids", "0", "1", "--new", "4")),
        ("I get an unrecognized arguments: --gpu_ids 0 1 error for acme-train.", ("--size", "3", "--gpu_ids", "0", "1")),
        ("It does not fit --size 3 well", None),
        ("my-acme-train fails", None),
    ],
)  # fmt: skip
def test_a_script_gets_the_arguments_of_the_report_or_of_the_readme(
    body: str, arguments: tuple[str, ...] | None
) -> None:
    issue = Issue(title="It fails", body=body)
    scripts = started_scripts(read_issue(issue), issue, TREE)
    assert [script.command[1:] for script in scripts] == ([] if arguments is None else [arguments])
    for script in scripts:
        has_own = "--" in body and "unrecognized" not in body
        assert [fix.why for fix in script.fixes] == ([] if has_own else [DOCUMENTED])


def test_a_script_calls_what_its_definition_names() -> None:
    issue = Issue(title="It fails", body="```\n$ fit --x 1\n```")
    (script,) = started_scripts(read_issue(issue), issue, TREE)
    lines = ["from acme.fit import App", 'sys.argv[0] = "fit"', "sys.exit(App.run())"]
    assert [line for line in script.source.splitlines() if line][1:] == lines


def test_a_name_of_a_repository_is_no_code_of_the_program() -> None:
    name = 'fit"; import os; os.abort() #'
    project = f"[project.scripts]\n{json.dumps(name)} = 'acme.fit:run'\n".encode()
    issue = Issue(title="It fails", body=f"```\n$ {name} --x 1\n```")
    (script,) = started_scripts(read_issue(issue), issue, {"pyproject.toml": project})
    calls = [
        ast.unparse(node)
        for node in ast.walk(ast.parse(script.source))
        if isinstance(node, ast.Call)
    ]
    assert calls == ["sys.exit(run())", "run()"]
