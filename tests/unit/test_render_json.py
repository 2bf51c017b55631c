"""report.json: what is published, and that its schema says so."""

import json
import math
from importlib.resources import files
from pathlib import Path
from typing import get_args

import pytest
from jsonschema import Draft202012Validator, ValidationError

from bot.kernel.bug import AnySignature, OutputSignature, signature_hash
from bot.kernel.job import Note
from bot.kernel.report import IssueReport
from bot.report import schema
from bot.report.report_json import SignatureOut, report_json, report_text

REPORTS = Path(__file__).parent.parent / "golden" / "reports"
NAMES = sorted(path.stem for path in REPORTS.glob("*.json"))
VALIDATOR = Draft202012Validator(json.loads(schema.text()))
TOP = {
    "schema",
    "issue",
    "verdict",
    "signature",
    "environment",
    "script",
    "attempts",
    "claims",
    "bisect",
    "minimized",
    "diagnosis",
    "patch",
}
TOP |= {"plan", "cost", "seconds", "sandbox", "versions"}


def load(name: str) -> IssueReport:
    return IssueReport.model_validate_json((REPORTS / f"{name}.json").read_text(encoding="utf-8"))


def test_the_shipped_schema_is_the_one_the_types_imply() -> None:
    shipped = files("bot.report").joinpath("report.schema.json").read_text(encoding="utf-8")
    assert shipped == schema.generate(), "python -m bot.report.schema writes it anew"
    Draft202012Validator.check_schema(json.loads(shipped))


@pytest.mark.parametrize("name", NAMES)
def test_reports_of_every_kind_validate(name: str) -> None:
    VALIDATOR.validate(json.loads(report_text(load(name))))


@pytest.mark.parametrize("name", NAMES)
def test_every_promised_field_is_there(name: str) -> None:
    data = report_json(load(name))
    assert set(data) >= TOP
    assert data["schema"] == 1
    assert set(data["issue"]) == {"repository", "number", "title", "url"}
    assert set(data["verdict"]) >= {
        "kind",
        "runs",
        "failures",
        "interval",
        "determinism",
        "control",
        "reason",
    }
    assert (
        data["cost"].items() >= {"calls": load(name).cost.calls, "usd": load(name).cost.usd}.items()
    )
    assert set(data["versions"]) == {"reprise", "prompts", "models"}
    assert data["patch"] is None
    assert (data["diagnosis"] is None) == (load(name).diagnosis is None)
    assert (data["bisect"] is None, data["minimized"] is None) == (
        load(name).bisection is None,
        load(name).reduced is None,
    )


def test_a_reproduced_report_in_full() -> None:
    report = load("reproduced")
    data = report_json(report)
    verdict = data["verdict"]
    assert (
        verdict["control"].items() >= {"type": "none", "runs": 0, "failures": 0, "p": None}.items()
    )
    assert (verdict["runs"], verdict["failures"], verdict["interval"]) == (2, 2, [0.158, 1.0])
    assert data["signature"]["hash"] == report.signature_hash
    assert data["signature"]["exception"] == "RuntimeError"
    assert {
        "name": "pool",
        "version": "0.3.1",
        "rung": "issue",
        "why": "the report says 0.3.1",
    } in data["environment"]["packages"]
    assert data["script"]["path"] == "repro.py"
    assert data["script"]["lines"] == 5, "blank lines do not count"
    assert [attempt["purpose"] for attempt in data["attempts"]] == ["search", "confirm", "confirm"]


def test_a_proof_in_full() -> None:
    report = load("reproduced-with-proof")
    data = report_json(report)
    VALIDATOR.validate(data)
    assert data["minimized"] == {
        "lines_before": 32,
        "lines_after": 4,
        "tests": 214,
        "seconds": 31.4,
        "ended": "complete",
        "original_sha256": report.attempts[0].script,
        "resumed": 0,
    }
    assert data["bisect"]["first_bad"]["at"] == "0.2.4"
    assert data["bisect"]["fixed_among"] == ["0.3.2", "0.3.3"]
    assert (
        data["verdict"]["control"].items()
        >= {"type": "fixed-version", "what": "pool 0.3.3", "paired_failures": 5}.items()
    )


def test_fields_that_do_not_apply_are_null() -> None:
    data = report_json(load("needs_info"))
    assert [
        data["verdict"][name] for name in ("runs", "failures", "interval", "determinism", "control")
    ] == [None] * 5
    assert data["signature"] is data["environment"] is data["script"] is data["sandbox"] is None
    assert len(data["verdict"]["details"]["items"]) == 3


def test_nan_and_infinities_survive_as_strings() -> None:
    report = load("reproduced")
    signature = OutputSignature(observed=(("nan",),), rtol=math.nan, atol=math.inf)
    odd = report.model_copy(
        update={
            "signature": signature,
            "signature_hash": signature_hash(signature),
            "seconds": {"total": -math.inf},
        }
    )
    text = report_text(odd)
    data = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert (data["signature"]["rtol"], data["signature"]["atol"], data["seconds"]["total"]) == (
        "NaN",
        "Infinity",
        "-Infinity",
    )
    VALIDATOR.validate(data)


def test_the_schema_refuses_what_is_not_a_report() -> None:
    data = report_json(load("reproduced"))
    wrong = [
        data | {"schema": 2},
        data | {"verdict": data["verdict"] | {"kind": "maybe"}},
        {"schema": 1},
    ]
    wrong.append({name: value for name, value in data.items() if name != "cost"})
    for each in wrong:
        with pytest.raises(ValidationError):
            VALIDATOR.validate(each)


def test_the_schema_lets_later_additions_pass() -> None:
    data = report_json(load("reproduced"))
    VALIDATOR.validate(data | {"later": 1, "verdict": data["verdict"] | {"later": 1}})


def test_credentials_are_removed_and_lone_surrogates_do_not_break_the_file() -> None:
    report = load("reproduced")
    issue = report.issue.model_copy(update={"title": "token ghp_" + "a" * 36 + " and hunter22"})
    text = report_text(
        report.model_copy(update={"issue": issue, "notes": (Note(kind="run", text="x\ud800y"),)}),
        secrets=("hunter22",),
    )
    assert "ghp_a" not in text
    assert "hunter22" not in text
    assert json.loads(text)["notes"] == ["x?y"]


def test_a_models_part_is_published_with_its_price() -> None:
    data = report_json(load("reproduced-by-model"))
    VALIDATOR.validate(data)
    assert data["script"]["author"] == "model"
    assert data["plan"]["hypothesis"] == "bias is dropped"
    assert data["plan"]["inferred"] == ["observation"]
    assert len(data["plan"]["changes"]) == 3
    assert data["cost"] == {
        "calls": 5,
        "input_tokens": 4285,
        "output_tokens": 349,
        "usd": 0.02,
        "estimated": False,
    }
    assert set(data["versions"]["prompts"]) == {"refine", "act"}
    assert data["versions"]["models"] == ["writer-1"]


def test_a_model_that_gave_up_is_published_with_its_questions() -> None:
    plan = report_json(load("needs_info-after-model"))["plan"]
    assert plan["given_up"] == "the layer does what the report asks for"
    assert plan["questions"] == ["Which layer, and with which arguments?"]


def test_without_a_model_there_is_no_plan() -> None:
    data = report_json(load("reproduced"))
    assert data["plan"] is None
    assert data["script"]["author"] == "reporter"


def test_the_shipped_schema_of_a_papers_report_is_the_one_of_the_types() -> None:
    assert schema.paper_schema_text() == schema.generate_paper_schema()


def test_every_kind_of_signature_can_be_published() -> None:
    types = get_args(get_args(AnySignature)[0])
    kinds = {get_args(each.model_fields["kind"].annotation)[0] for each in types}
    assert kinds == {*get_args(SignatureOut.model_fields["kind"].annotation)}
