"""What building an environment costs."""

from __future__ import annotations

from typing import Annotated

import typer

from bot.cli.error_boundary import boundary

_USUAL = "requests,click,rich,pydantic,httpx,jinja2,pyyaml,tqdm,attrs,packaging"


def builds(
    packages: Annotated[
        str, typer.Option(help="What to install, separated by commas.", metavar="NAME,...")
    ] = _USUAL,
    rounds: Annotated[int, typer.Option(min=1, help="Builds of each kind.", metavar="N")] = 7,
    as_json: Annotated[bool, typer.Option("--json", help="Print only JSON.")] = False,
) -> None:
    """Compare the build of an environment with plain uv on the same packages.

    Downloads are not counted. Our own byte code is either made (first build) or taken from another
    environment (packages seen before).
    """
    with boundary():
        from benchmarks.builds import measure, summary

        figures = summary(measure(packages.split(","), rounds))
        if as_json:
            typer.echo(figures.model_dump_json(indent=2))
            return
        for name, seconds in figures.median_s.items():
            typer.echo(f"{name}: {seconds:.2f} s, {figures.ratio[name]:.2f} x plain uv")
