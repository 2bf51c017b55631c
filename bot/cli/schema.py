"""`reprise schema`: the published JSON Schemas."""

from typing import Annotated

import typer


def schema(
    config: Annotated[
        bool, typer.Option("--config", help="Print the schema of .github/reprise.yml instead.")
    ] = False,
) -> None:
    """Print the JSON Schema of report.json."""
    from bot import schema as published
    from bot.schema import configuration

    typer.echo(configuration.text() if config else published.text(), nl=False)
