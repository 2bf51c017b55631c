"""Versions that stand in running text beside the name of a package that few people know: read
where the report itself shows that the name is a package, never where the number may be anything
else.
"""

from __future__ import annotations

import pytest

from bot.issues.reading.issue import read_issue
from bot.kernel.bug import BugReport, Issue

PROGRAM = "import torch\nimport honestlib\n\nhonestlib.fit(torch.ones(3), ratio=2.0)\n"
FRAME = (
    'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\n    fit()\n'
    '  File "/usr/lib/python3.11/site-packages/framelib/core.py", line 3, in fit\n    raise E\n'
    "ValueError: no\n"
)


def report(text: str, program: str = PROGRAM) -> BugReport:
    body = f"{text}\n\n```python\n{program}```\n" if program else text
    return read_issue(Issue(title="fit fails", body=body, repository="acme/pool"))


def versions(found: BugReport) -> set[tuple[str, str]]:
    claims = (*found.versions, *found.works_in)
    return {(claim.name, claim.version) for claim in claims if claim.source != "traceback"}


@pytest.mark.parametrize(
    "text",
    [
        "With honestlib==2.0 it fails.",
        "With `honestlib==2.0` it fails.",
        "With honestlib 2.0, it fails.",
        "It fails on honestlib 2.0.",
        "honestlib 2.0 fails.",
        "Honestlib 2.0 fails.",
        "I use honestlib version 2.0 here.",
        "I use honestlib (version 2.0) here.",
        "I use `honestlib` 2.0 here.",
        "I use **honestlib 2.0** here.",
        "Fails (honestlib v2.0; Linux)",
        "I use honestlib, version 2.0.",
        "I use honestlib release 2.0.",
        "honestlib@2.0 fails",
        "Seen with honestlib-2.0",
        "honestlib versions 2.0",
        "Installed torch and honestlib 2.0 today",
        "I use version 2.0 of honestlib.",
        "Version 2.0 of `honestlib` fails.",
        "Mit honestlib 2.0 bricht es ab.",
        "Mit honestlib Version 2.0 bricht es ab.",
        "Avec honestlib 2.0, ça échoue.",
        "Con honestlib versión 2.0 falla.",
        "Com honestlib versão 2.0 falha.",
        "\u0421 honestlib 2.0 не работает.",
        "\u0412 honestlib версии 2.0 не работает.",
        "使用honestlib 2.0版本时报错。",
        "honestlib 版本 2.0 报错",
        "honestlib\uff08v2.0\uff09报错",
        "My honestlib version is 2.0.",
        "honestlib.__version__ is 2.0",
        "`honestlib.__version__ == '2.0'`",
        "honestlib (v2.0) fails",
        "honestlib 2.0でエラーになります",
        "honestlib バージョン 2.0 で失敗します",
    ],
)
def test_the_name_is_one_that_the_program_imports(text: str) -> None:
    assert versions(report(text)) == {("honestlib", "2.0")}


@pytest.mark.parametrize(
    ("text", "claims"),
    [
        ("on honestlib v2.0.1", {("honestlib", "2.0.1")}),
        ("honestlib 2.0.1.dev3+g12ab", {("honestlib", "2.0.1.dev3+g12ab")}),
        ("honestlib 2.0rc1 fails, honestlib 1.9 works", {("honestlib", "2.0rc1"), ("honestlib", "1.9")}),
        ("honestlib 2.x", {("honestlib", "2.x")}),
        ("honestlib versions 2.0.1 and 2.1.3 fail", {("honestlib", "2.0.1"), ("honestlib", "2.1.3")}),
        ("torch 2.1 and honestlib 2.0", {("torch", "2.1"), ("honestlib", "2.0")}),
        ("It works in honestlib 1.9 but 2.0.1 fails.", {("honestlib", "1.9"), ("honestlib", "2.0.1")}),
        ("Version 1.2 of numpy with honestlib 2.0.", {("numpy", "1.2"), ("honestlib", "2.0")}),
    ],
)  # fmt: skip
def test_versions_beside_others(text: str, claims: set[tuple[str, str]]) -> None:
    assert versions(report(text)) == claims


@pytest.mark.parametrize(
    ("text", "program", "claim"),
    [
        ("Fails with framelib 3.1.\n\n```\n" + FRAME + "```\n", "", ("framelib", "3.1")),
        ("```sh\npip install pinlib torch\n```\n\nFails with pinlib 0.4.", "", ("pinlib", "0.4")),
        ("Fails with gym 0.21.", "import gym\n\ngym.make('x')\n", ("gym", "0.21")),
        ("Fails with my_lib 0.4.", "from my_lib.nn import f\n\nf()\n", ("my-lib", "0.4")),
        ("Fails with my-lib 0.4.", "from my_lib.nn import f\n\nf()\n", ("my-lib", "0.4")),
        ("Fails with clip v1.0.2.", "import clip\n\nclip.load('x')\n", ("clip", "1.0.2")),
        ("Fails with `otherlib==1.2.3`.", PROGRAM, ("otherlib", "1.2.3")),
        ("Fails with otherlib==1.2.3.", PROGRAM, ("otherlib", "1.2.3")),
        ("With otherlib==1.2 it fails.", "", ("otherlib", "1.2")),
        ("After I installed `otherlib==1.2` it fails.", "", ("otherlib", "1.2")),
        ("Mit otherlib==1.2 geht es nicht.", "", ("otherlib", "1.2")),
        ("I have `otherlib` 1.2.3 here.", PROGRAM, ("otherlib", "1.2.3")),
        ("I have `otherlib 1.2.3` here.", PROGRAM, ("otherlib", "1.2.3")),
        ("I have `otherlib` version 1.2 here.", PROGRAM, ("otherlib", "1.2")),
        ("Fails with pool 1.2.", "", ("pool", "1.2")),
        ("Fails with pool 1.2.", "import pool\n\npool.f()\n", ("pool", "1.2")),
        ("Versions:\npool: 1.2", "import pool\n\npool.f()\n", ("pool", "1.2")),
        ("Versions:\nhonestlib: 1.2", PROGRAM, ("honestlib", "1.2")),
        ("Versions:\nclick: 8.1.7", "import click\n\nclick.f()\n", ("click", "8.1.7")),
    ],
)
def test_other_signs_that_a_name_is_a_package(
    text: str, program: str, claim: tuple[str, str]
) -> None:
    assert versions(report(text, program)) == {claim}


@pytest.mark.parametrize(
    "text",
    [
        "Figure 2.0 shows it.", "Section 3.2 of the paper.", "CUDA 12.1 and cuDNN 8.9.", "In batch 2.0 it fails.", "Table 1.5 lists them.",
        "otherlib 2.0 is not here.", "honestlib is 2.0 times slower.", "honestlib 2.5x slower", "honestlib: 2.5 s a step", "honestlib takes 2.5 seconds",
        "honestlib 99.5% of the time", "honestlib 1.5 GB of memory", "honestlib>=2.0 fails", "honestlib ~= 2.0", "It requires honestlib 2.0.", "honestlib 2",
        "honestlib.fit 2.0", "my-honestlib 2.0", "myhonestlib 2.0", "honestlibs 2.0", "x/honestlib 2.0", "honestlib 2.0's API", "honestlib returns 2.0",
        "a loss of 2.0 with honestlib", "`ratio` 2.0.1", "With ratio==2.0 it fails.", "when otherlib==2.0 it fails", "if otherlib == 2.0.", "With dropout==0.5 it fails.",
        "With alpha==2.0 it fails.", "with `dropout` 0.5", "with `momentum` 0.9", "The `otherlib` 2.0", "`batch` 2.0", "`resnet50` v1.5", "`cuda` version 12.1",
        "`gcc 9.4.0`", "`cmake` 3.27.1", "`opset` version 13.0", "`ubuntu` 22.04.1", "With protocol==2.0 it fails.", "Ubuntu 22.04.3", "the driver 535.104.05",
        "We follow [2.0] of honestlib", "lr 0.1 and honestlib", "honestlib with lr 0.1", "Epoch 2.0, loss 0.25", "Equation 3.2.1 says so",
    ],
)  # fmt: skip
def test_numbers_that_are_no_version(text: str) -> None:
    assert versions(report(text)) == set()


@pytest.mark.parametrize(
    ("text", "program"),
    [
        ("gradient clip 0.5", "import clip\n\nclip.load('x')\n"),
        ("gradient `clip` 0.5", "import clip\n\nclip.load('x')\n"),
        ("here is\nclip: 0.5", "import clip\n\nclip.load('x')\n"),
        ("a tree 2.5 high", "import tree\n\ntree.flatten([])\n"),
        ("model 2.0 and utils 1.5", "import model\nimport utils\n\nmodel.f(utils.g())\n"),
        ("helper 2.0", "from .helper import f\n\nf()\n"),
        ("time 2.5, json 1.0", "import time\nimport json\n\nprint(time.time(), json)\n"),
        ("With clip==0.5 it fails.", "import clip\n\nclip.load('x')\n"),
        ("the batch 2.0", "import batch\n\nbatch.run()\n"),
        ("Figure 2.0", "import figure\n\nfigure.run()\n"),
    ],
)
def test_modules_whose_names_are_words_say_more_or_nothing(text: str, program: str) -> None:
    assert versions(report(text, program)) == set()


def test_the_words_are_quoted_exactly() -> None:
    text = "I run it on Linux.\nSince this week, with honestlib==2.0 and\ntorch 2.1, it fails!"
    claims = {claim.name: claim for claim in report(text).versions}
    assert claims["honestlib"].quote.line == 2
    assert claims["honestlib"].quote.text == text.partition("\n")[2].replace("\n", " ")
    assert claims["honestlib"].source == "text"


def test_a_version_that_works_is_kept_apart() -> None:
    found = report("It works in honestlib 1.9 but fails with honestlib 2.0.")
    assert {(claim.name, claim.version) for claim in found.versions} == {("honestlib", "2.0")}
    assert {(claim.name, claim.version) for claim in found.works_in} == {("honestlib", "1.9")}


def test_a_listed_environment_states_the_version_of_the_package_in_question():
    listing = "Python 3.8.3\nNumPy 1.18.5\nSciPy 1.5.0\npool 4.0.0beta\nother 1.2.3\n"
    text = f"It fails since pool 4.0 here.\n\n```python\n{listing}```\n"
    stated = [(claim.name, claim.version, claim.source) for claim in report(text, "").versions]
    assert ("pool", "4.0.0beta", "dump") in stated
    assert not [row for row in stated if row[0] == "other"]
