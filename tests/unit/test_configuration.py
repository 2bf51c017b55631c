"""The configuration in force: which files count, in which order, and what is said about it."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings, strategies as st
from jsonschema import Draft202012Validator, ValidationError
from typer.testing import CliRunner

from bot.app.configuration import load, merge_layers, parse, problem_key
from bot.app.ports import GoneError, Target, Throttled
from bot.cli import app
from bot.kernel.config import Config, Defaults, LoadedConfig, Origin, Problem, Triggers
from bot.report import replies, schema
from tests.corpus.hostile.corpus import Hostile, load as load_texts
from tests.corpus.hostile.reader import alive
from tests.support.github import FakeGitHub

ROOT = Path(__file__).resolve().parents[2]
PATH = ".github/reprise.yml"
TARGET = Target(installation=1, repository="acme/pool")


def world(**repositories: str | dict[str, str]) -> FakeGitHub:
    """GitHub with the repositories of "acme"; `github` stands for ".github"."""
    github = FakeGitHub()
    for name, held in repositories.items():
        here = github.repository("acme/" + {"github": ".github"}.get(name, name))
        here.files |= {PATH: held} if isinstance(held, str) else held
    return github


def loaded(**repositories: str | dict[str, str]) -> LoadedConfig:
    return load(world(**repositories), TARGET)


def test_without_any_file_the_defaults_hold() -> None:
    assert loaded(pool={}) == LoadedConfig()


def test_a_file_of_the_repository_stands_alone() -> None:
    found = loaded(pool="labels: false", github="author_may_run: false")
    assert found.config == Config(labels=False)
    assert found.source == ("acme/pool:.github/reprise.yml",)


def test_an_empty_file_opts_out_of_the_organisations() -> None:
    assert loaded(pool="# ours\n", github="labels: false").config == Config()


def test_the_organisations_file_counts_where_there_is_none() -> None:
    found = loaded(pool={}, github="labels: false")
    assert found.config == Config(labels=False)
    assert found.origins == {
        "labels": Origin(kind="organisation", file="acme/.github:.github/reprise.yml")
    }


def test_the_organisations_own_repository_is_read_once() -> None:
    github = world(github="enabled: maybe")
    found = load(github, Target(installation=1, repository="acme/.github"))
    assert len(found.problems) == 1
    assert found.config == Config()


def test_extended_values_are_merged_deeply_and_lists_replaced() -> None:
    found = loaded(
        pool="_extends: settings\ntriggers: {labels: [mine]}\ndefaults: {timeout: 20, python:}\n",
        settings="_extends: acme/.github:base.yml\ntriggers: {opened: off, labels: [a, b]}\n"
        "defaults: {runs: 7, python: '3.11'}\n",
        github={
            "base.yml": "labels: false\ndefaults: {runs: 9, timeout: 99}\n",
            PATH: "enabled: false",
        },
    )
    assert found.problems == ()
    assert found.config == Config(
        labels=False,
        triggers=Triggers(opened="off", labels=("mine",)),
        defaults=Defaults(timeout=20, runs=7, python=None),
    )
    assert found.source == (
        "acme/pool:.github/reprise.yml",
        "acme/settings:.github/reprise.yml",
        "acme/.github:base.yml",
    )
    kinds = {key: (origin.kind, origin.file) for key, origin in found.origins.items()}
    assert kinds["defaults.timeout"][0] == "repository"
    assert kinds["defaults.runs"] == ("extended", "acme/settings:.github/reprise.yml")
    assert kinds["labels"] == ("extended", "acme/.github:base.yml")


def test_an_invalid_file_gives_way_to_what_lies_below() -> None:
    found = loaded(pool="labels: false\nnonsense: 1\n", github="author_may_run: false")
    assert found.config == Config(author_may_run=False)
    assert [(each.file, each.line) for each in found.problems] == [
        ("acme/pool:.github/reprise.yml", 2)
    ]


def test_an_invalid_file_that_says_off_is_obeyed() -> None:
    found = loaded(pool="enabled: false\nnonsense: 1\n", github="enabled: true")
    assert not found.config.enabled
    assert found.problems
    assert loaded(pool={}).config.enabled


def test_an_invalid_base_is_left_out() -> None:
    found = loaded(
        pool="_extends: settings\nlabels: false\n",
        settings="private_word: 1\nauthor_may_run: false\n",
    )
    assert found.config == Config(labels=False)
    assert found.problems[0].file == "acme/settings:.github/reprise.yml"
    assert "private_word" not in str(found.problems)


@pytest.mark.parametrize(
    ("extends", "reason"),
    [
        ("other/pool", "another owner"),
        ("nowhere", "does not exist"),
        ("pool", "cycle"),
        ("ACME/Pool", "cycle"),
        ("a b", "must name"),
    ],
)
def test_a_base_that_cannot_be_is_told_and_the_file_itself_applies(
    extends: str, reason: str
) -> None:
    found = loaded(pool=f"labels: false\n_extends: {extends}\n")
    assert found.config == Config(labels=False)
    assert [(each.line, each.key) for each in found.problems] == [(2, "_extends")]
    assert reason in found.problems[0].reason


def test_a_circle_of_two_ends() -> None:
    found = loaded(pool="_extends: a\nlabels: false", a="_extends: pool\nauthor_may_run: false")
    assert found.config == Config(labels=False, author_may_run=False)
    assert [each.file for each in found.problems] == ["acme/a:.github/reprise.yml"]


def test_the_fourth_step_is_one_too_many() -> None:
    chain = {"pool": "_extends: a", "a": "_extends: b", "b": "_extends: c", "c": "labels: false"}
    assert loaded(**chain).config == Config(labels=False)
    longer = loaded(**(chain | {"c": "_extends: d\nlabels: false", "d": "enabled: false"}))
    assert longer.config == Config(labels=False)
    assert "at most 3" in longer.problems[0].reason


def test_errors_of_github_propagate_but_what_is_missing_beside_the_repository_is_absent() -> None:
    github = world(pool={})
    github.fail(Throttled("slow down", 5.0))
    with pytest.raises(Throttled):
        load(github, TARGET)
    github.fail(GoneError("no such repository"))
    with pytest.raises(GoneError):
        load(github, TARGET)

    class Without(FakeGitHub):
        def file(self, target: Target, path: str, most_bytes: int = 65_536) -> str | None:
            if target.repository != "acme/pool":
                raise GoneError("no such repository")
            return super().file(target, path, most_bytes)

    alone = Without()
    alone.repository("acme/pool")
    assert load(alone, TARGET) == LoadedConfig()


def test_a_file_that_is_too_long_is_told() -> None:
    assert "longer than" in loaded(pool="#" * 70_000).problems[0].reason


def test_other_installations_are_not_read() -> None:
    github = world(pool={}, github="labels: false")
    github.repositories["acme/.github"].installation = 2
    assert load(github, TARGET) == LoadedConfig()


def test_the_same_problems_have_the_same_key() -> None:
    one, two = Problem(file="a", line=1, reason="x"), Problem(file="a", line=2, reason="x")
    assert problem_key([]) == ""
    assert problem_key([one, two]) == problem_key([two, one])
    assert problem_key([one]) != problem_key([two])


VALID = st.fixed_dictionaries(
    {},
    optional={
        "labels": st.booleans(),
        "triggers": st.fixed_dictionaries(
            {}, optional={"opened": st.sampled_from(["off", "bugs"]), "labels": st.just(["x"])}
        ),
        "defaults": st.fixed_dictionaries(
            {}, optional={"runs": st.integers(2, 200), "python": st.sampled_from([None, "3.10"])}
        ),
    },
)


@settings(max_examples=60, deadline=None)
@given(st.lists(VALID, max_size=4))
def test_the_strongest_file_that_says_something_decides(held: list[dict[str, object]]) -> None:
    layers = [
        (Origin(kind="extended", file=str(number)), parse(yaml.safe_dump(each), "f").values)
        for number, each in enumerate(held)
    ]
    config, origins = merge_layers(layers)
    for section, key in [("triggers", "opened"), ("defaults", "runs"), ("defaults", "python")]:
        sayers = [number for number, each in enumerate(held) if key in each.get(section, {})]  # type: ignore[operator]
        wanted = (
            held[sayers[0]][section][key] if sayers else getattr(getattr(Config(), section), key)
        )  # type: ignore[index]
        assert getattr(getattr(config, section), key) == wanted
        assert (origins[f"{section}.{key}"].file if sayers else None) == (
            str(sayers[0]) if sayers else None
        )
        assert (f"{section}.{key}" in origins) == bool(sayers)


def test_the_schema_and_the_example_are_those_the_model_implies() -> None:
    shipped = files("bot.report").joinpath("config.schema.json").read_text(encoding="utf-8")
    assert shipped == schema.generate_configuration(), "python -m bot.report.schema writes it anew"
    Draft202012Validator.check_schema(json.loads(shipped))
    assert (ROOT / ".github" / "reprise.example.yml").read_text(
        encoding="utf-8"
    ) == schema.configuration_example(), "python -m bot.report.schema"
    printed = CliRunner().invoke(app.app, ["schema", "--config"])
    assert (printed.exit_code, printed.output) == (0, shipped)


def test_the_example_names_every_key_with_its_default_and_fits_the_schema() -> None:
    parsed = parse(schema.configuration_example(), "example")
    assert parsed.problems == ()
    assert parsed.values.keys() == Config.model_fields.keys()
    assert Config.model_validate(parsed.values) == Config()
    data = yaml.safe_load(schema.configuration_example())
    validator = Draft202012Validator(json.loads(schema.configuration_text()))
    validator.validate(data)
    validator.validate(data | {"_extends": "settings"})
    for wrong in ({"enabeld": True}, {"triggers": {"opened": "always"}}, {"_extends": 3}):
        with pytest.raises(ValidationError):
            validator.validate(wrong)


def test_the_effective_configuration_says_where_each_value_came_from() -> None:
    text = replies.configuration(
        loaded(pool="_extends: settings\nlabels: false\n", settings="defaults: {runs: 7}\n")
    )
    assert "labels: false  # repository: acme/pool:.github/reprise.yml" in text
    assert "  runs: 7  # extended: acme/settings:.github/reprise.yml" in text
    assert "enabled: true  # default" in text
    shown = yaml.safe_load(text.split("```")[1].removeprefix("yaml"))
    assert Config.model_validate(shown) == Config(labels=False, defaults=Defaults(runs=7))
    assert "defaults" in replies.configuration(LoadedConfig())


def test_data_of_a_file_and_of_what_it_extends_come_together() -> None:
    found = loaded(pool="_extends: settings\ndata: {a: m}\n", settings="data: {b: n, a: x}\n")
    assert found.config.data == {"b": "n", "a": "m"}
    text = replies.configuration(found)
    assert 'data: {"b": "n", "a": "m"}  # ' in text
    assert "data: {}  # default" in replies.configuration(loaded(pool="labels: false\n"))


def test_problems_are_told_with_line_and_reason() -> None:
    text = replies.configuration(loaded(pool="enabled: true\ntrigers: {}\n"))
    assert (
        "`acme/pool:.github/reprise.yml`, line 2: `trigers` is unknown. Did you mean `triggers`?"
        in text
    )


@pytest.mark.parametrize(
    "hostile", [each for each in load_texts("outgoing") if not each.fill], ids=lambda each: each.id
)
def test_hostile_keys_and_labels_are_only_shown(hostile: Hostile) -> None:
    for text in (
        json.dumps(hostile.text) + ": 1",
        "triggers: {labels: [" + json.dumps(hostile.text) + "]}",
    ):
        assert alive(replies.configuration(loaded(pool=text))) == []


def test_credentials_that_someone_put_into_the_file_are_not_repeated() -> None:
    secret = "gh" + "p_" + "a1B2" * 9
    for text in (
        f"{secret}: 1",
        f"ignore_authors: [{secret}]",
        f"ignore_authors: [{'x' * 380}, {secret}]",
        f"enabled: {secret}",
    ):
        assert secret[:12] not in replies.configuration(loaded(pool=text))
