"""Proofs of a failure that occurs by chance."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from benchmarks.commands.arguments import SandboxName
from bot.cli.error_boundary import OTHER, boundary
from bot.kernel.settings import load


def flaky(
    proof: Annotated[
        Literal["bisect", "minimize"], typer.Option(help="Which proof to measure.")
    ] = "bisect",
    times: Annotated[int, typer.Option(min=1, help="Repetitions.", metavar="N")] = 10,
    rate: Annotated[
        float, typer.Option(min=0.05, max=1, help="Failure rate of the program.", metavar="P")
    ] = 0.3,
    sandbox: SandboxName = "process",
    seed: Annotated[
        int,
        typer.Option(help="Seed for the position of the failure and the first runs.", metavar="N"),
    ] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print only JSON.")] = False,
) -> None:
    """Bisect or minimize an intermittent failure many times. At least nine in ten attempts must
    succeed.
    """
    with boundary():
        import tempfile

        from rich.console import Console

        from benchmarks import flaky_bisection as line, flaky_minimising as smaller
        from bot.environment.builder import UvBuilder
        from sandbox.select import choose

        console, chosen = Console(stderr=True), choose(sandbox)

        def tell(row: line.BisectedRow | smaller.MinimisedRow) -> None:
            console.print(
                f"{proof} {row.seed}: {'right' if row.right else 'WRONG'} after {row.seconds:.0f} s"
            )

        bisected, reduced = list[line.BisectedRow](), list[smaller.MinimisedRow]()
        if proof == "minimize":
            builder = UvBuilder(load().cache_dir)  # as long as it lives, its environments stay
            built = smaller.environment(builder)
            for each in smaller.minimise_flaky(times, chosen, built, rate=rate, seed=seed):
                reduced.append(each)
                tell(each)
        else:
            with tempfile.TemporaryDirectory(prefix="reprise-flaky-") as folder:
                Path(folder).chmod(
                    0o755
                )  # root's runs are given to another user, who must reach the environments in it
                for row in line.bisect_flaky(times, Path(folder), chosen, rate=rate, seed=seed):
                    bisected.append(row)
                    tell(row)
        reduced = smaller.compared(reduced)
        table = smaller.told(reduced) if proof == "minimize" else line.told(bisected)
        lines = [row.model_dump_json() for row in (*bisected, *reduced)]
        right = [row.right for row in bisected] + [row.right for row in reduced]
        typer.echo("\n".join(lines) if as_json else table)
        if sum(right) < 0.9 * len(right):
            raise typer.Exit(OTHER)
