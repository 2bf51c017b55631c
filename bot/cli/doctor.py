"""`reprise doctor`: what works on this machine and how to fix the rest; `reprise schema` and
`reprise prompts`.
"""

import json
from typing import Annotated

import typer

import prompts as room
from bot.cli.error_boundary import USER, boundary
from bot.kernel.errors import UserError
from bot.kernel.redaction import redact
from bot.kernel.settings import load, secrets


@boundary(secrets=secrets)
def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Check what works on this machine. Prints how to fix the rest."""
    from rich.console import Console

    from bot.cli.checks import as_text, examine

    findings = examine(load())
    if as_json:
        typer.echo(redact(findings.model_dump_json(indent=2)))
    else:
        typer.echo(as_text(findings, Console().width), nl=False)
    raise typer.Exit(0 if findings.ready else USER)


@boundary()
def prompts(
    stage: Annotated[
        str,
        typer.Argument(metavar="[STAGE]", help="Stage whose prompt to print.", show_default=False),
    ] = "",
    version: Annotated[
        str | None,
        typer.Option(help="Version, such as v1. Default: the current version.", metavar="V"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
) -> None:
    """List the prompts, or print one verbatim."""
    typer.echo(_one(stage, version, as_json=as_json) if stage else _all(as_json=as_json))


def _all(*, as_json: bool) -> str:
    entries = room.list_entries()
    if as_json:
        keys = ("id", "stage", "version", "live", "prompt_sha256", "schema_sha256")
        return json.dumps(
            [{key: getattr(entry, key) for key in keys} for entry in entries], indent=2
        )
    widest = max((len(entry.id) for entry in entries), default=0)
    return "\n".join(
        f"{entry.id:{widest}}  {'live' if entry.live else ''}".rstrip() for entry in entries
    )


def _one(stage: str, version: str | None, *, as_json: bool) -> str:
    stages = {entry.stage for entry in room.list_entries() if version in {None, entry.version}}
    if stage not in stages:
        prompt_name = f"{stage} {version}" if version else stage
        raise UserError(
            f"There is no prompt {prompt_name}.",
            f"Stages: {', '.join(sorted({entry.stage for entry in room.list_entries()}))}.",
        )
    prompt = room.load(stage, version)
    if as_json:
        fields = {"id": prompt.id, **prompt.sections, "schema": prompt.schema}
        return json.dumps(fields, indent=2, ensure_ascii=False)
    sections = {**prompt.sections, "answer": json.dumps(prompt.schema, indent=2)}
    return "\n\n".join(
        [prompt.id, *(f"## {name}\n\n{text or '(nothing)'}" for name, text in sections.items())]
    )


def schema(
    config: Annotated[
        bool, typer.Option("--config", help="Print the schema of .github/reprise.yml instead.")
    ] = False,
    paper: Annotated[
        bool, typer.Option("--paper", help="Print the schema of a paper's report.json instead.")
    ] = False,
) -> None:
    """Print the JSON Schema of report.json."""
    from bot.report import schema as report_schema

    text = report_schema.paper_schema_text() if paper else report_schema.text()
    typer.echo(report_schema.configuration_text() if config else text, nl=False)
