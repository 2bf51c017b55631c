"""What hardening costs at the start of a sandbox."""

from __future__ import annotations

from typing import Annotated

import typer

from bot.cli.error_boundary import boundary


def sandbox_starts(
    runs: Annotated[
        int, typer.Option(min=1, help="Number of starts of each kind.", metavar="N")
    ] = 15,
    as_json: Annotated[bool, typer.Option("--json", help="Print only JSON.")] = False,
) -> None:
    """Compare the start of a hardened container with a plain one, and with bubblewrap."""
    with boundary():
        from benchmarks import sandbox as starts

        raise typer.Exit(starts.main(["--runs", str(runs), *(["--json"] if as_json else [])]))
