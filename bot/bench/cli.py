"""`reprise bench`: a folder of issues against their keys, what the hardening costs, and what a kill leaves behind."""

from __future__ import annotations

import json
from pathlib import Path
from threading import Event
from typing import Annotated, Literal

import typer

from bot.errors import UserError
from bot.exits import OTHER, boundary, stoppable
from bot.models.job import PARTS, Options, Part
from bot.settings import host, load

# Everything heavy is imported inside the commands, as in `bot.cli`.

app = typer.Typer(help="Measure Reprise against work whose answer is known.", no_args_is_help=True)


_Sandbox = Annotated[Literal["auto", "docker", "bwrap", "process"], typer.Option(help="What runs the code.")]
_Only = Annotated[
    str, typer.Option(help="Ids, or beginnings of ids, with commas between.", metavar="ID,...", show_default=False)
]
_Kept = Annotated[Path | None, typer.Option(help="Keeps a run folder a case; finished ones are not run again.", metavar="DIR")]
_Each = Annotated[Literal["each", "docker", "bwrap", "process"], typer.Option(help="One sandbox, or each that works.")]


@app.command()
def issues(
    folder: Annotated[Path, typer.Argument(help="Holds cases/*.json and keys/*.json.", metavar="DIR", show_default=False)],
    only: _Only = "",
    jobs: Annotated[int, typer.Option(min=1, help="Cases at a time.", metavar="N")] = 1,
    sandbox: _Sandbox = "auto",
    out: _Kept = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Run finished cases again.")] = False,
    overhead: Annotated[bool, typer.Option("--overhead", help="Also run each final script bare, and compare.")] = False,
    model: Annotated[str | None, typer.Option(help="Model that writes what the reports leave out.", metavar="NAME")] = None,
    max_cost: Annotated[float, typer.Option(help="Most dollars a case.", min=0, metavar="USD")] = 1.0,
    max_tokens: Annotated[int, typer.Option(help="Most tokens a case.", min=1_000, metavar="N")] = 200_000,
    max_calls: Annotated[int, typer.Option(help="Most calls a case.", min=1, metavar="N")] = 16,
    max_attempts: Annotated[int, typer.Option(help="Most programs a case.", min=1, max=50, metavar="N")] = 6,
    minutes: Annotated[float, typer.Option(help="A model is not asked after this many.", min=0.1, metavar="M")] = 20,
    without: Annotated[
        list[str] | None,
        typer.Option(help=f"Parts to leave out: {', '.join(PARTS)}.", metavar="PART,...", show_default=False),
    ] = None,
    record: Annotated[Path | None, typer.Option(help="Keeps each case's exchanges as ID.jsonl.", metavar="DIR")] = None,
    replay: Annotated[
        Path | None, typer.Option(help="Recorded exchanges stand in for the model; without any, none is asked.", metavar="DIR")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON alone.")] = False,
) -> None:
    """Run a folder of issues and hold each verdict against its key."""
    with boundary():
        from rich.console import Console

        from bot import choices
        from bot.bench.board import Board
        from bot.bench.cassettes import Cassettes
        from bot.bench.reproducing import reproducer
        from bot.bench.runner import find_cases, run_cases
        from bot.bench.summary import Row, summarise
        from bot.bench.tables import issues_table
        from sandbox.select import choose

        settings, cancel = load(), Event()
        cases = find_cases(folder, [each for each in only.split(",") if each])
        kept = out or settings.runs_dir / "bench"
        cassettes = Cassettes(record=record, replay=replay)
        options = Options(
            sandbox=sandbox, model=model, max_cost=max_cost, max_tokens=max_tokens, max_calls=max_calls,
            max_attempts=max_attempts, minutes=minutes, without=choices.parts(*without or ()),
        )  # fmt: skip
        rows: list[Row] = []
        board = Board(Console(stderr=True), len(cases))
        with stoppable(cancel), board:
            work = reproducer(settings, options, choose(sandbox), cancel, cassettes=cassettes, overhead=overhead)
            for row in run_cases(cases, kept, work, jobs=jobs, fresh=fresh, cancel=cancel, hear=board.listener):
                rows.append(row)
                board.ended(row)
        bench = summarise(rows)
        if as_json:
            typer.echo(bench.model_dump_json(indent=2))
        else:
            console = Console()
            Console(width=None if console.is_terminal else 160).print(issues_table(bench))
        if cancel.is_set():
            raise typer.Exit(OTHER)


@app.command()
def ablation(
    folder: Annotated[Path, typer.Argument(help="Holds cases/*.json and keys/*.json.", metavar="DIR", show_default=False)],
    replay: Annotated[Path, typer.Option(help="Recorded exchanges, a file a case.", metavar="CASSETTES", show_default=False)],
    parts: Annotated[
        str, typer.Option(help=f"Parts to leave out in turn, of {', '.join(PARTS)}.", metavar="PART,...", show_default=False)
    ] = "",
    only: _Only = "",
    jobs: Annotated[int, typer.Option(min=1, help="Cases at a time.", metavar="N")] = 1,
    sandbox: _Sandbox = "auto",
    out: _Kept = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Run finished cases again.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON alone.")] = False,
) -> None:
    """Leave each part out in turn, with recorded answers: what each is worth, where the answers still fit."""
    with boundary():
        from rich.console import Console

        from bot import choices
        from bot.bench import ablation as leaving
        from bot.bench.board import Board
        from bot.bench.cassettes import Cassettes
        from bot.bench.reproducing import reproducer
        from bot.bench.runner import find_cases, run_cases
        from bot.bench.summary import Row
        from sandbox.select import choose

        settings, cancel, cassettes, hands = load(), Event(), Cassettes(replay=replay), choose(sandbox)
        found = find_cases(folder, [each for each in only.split(",") if each])
        cases = [case for case in found if cassettes.tape(case.id) is not None]
        if not cases:
            raise UserError(f"{replay} holds no cassette of a case of {folder}.", "Record some: reprise bench issues --record.")

        def run(without: tuple[Part, ...], place: Path) -> list[Row]:
            rows, board = list[Row](), Board(Console(stderr=True), len(cases))
            work = reproducer(settings, Options(sandbox=sandbox, without=without), hands, cancel, cassettes=cassettes)
            with board:
                for row in run_cases(cases, place, work, jobs=jobs, fresh=fresh, cancel=cancel, hear=board.listener):
                    rows.append(row)
                    board.ended(row)
            return rows

        with stoppable(cancel):
            rows = leaving.ablate(run, out or settings.runs_dir / "ablation", choices.parts(parts) or PARTS)
        if as_json:
            typer.echo(json.dumps([row.model_dump(mode="json") for row in rows], indent=2))
        else:
            Console().print(leaving.ablation_table(rows))
        if cancel.is_set():
            raise typer.Exit(OTHER)


@app.command("sandbox")
def sandbox_starts(
    runs: Annotated[int, typer.Option(min=1, help="Starts of each kind.", metavar="N")] = 15,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON alone.")] = False,
) -> None:
    """Compare the start of a hardened container with a plain one, and with bubblewrap."""
    with boundary():
        from sandbox import overhead as starts

        raise typer.Exit(starts.main(["--runs", str(runs), *(["--json"] if as_json else [])]))


@app.command()
def killing(
    times: Annotated[int, typer.Option(min=1, help="Kills in each sandbox.", metavar="N")] = 20,
    sandbox: _Each = "each",
    seed: Annotated[int, typer.Option(help="Chooses the moments.", metavar="N")] = 0,
) -> None:
    """Kill the command line at random moments; nothing may be left, and the next run must succeed."""
    with boundary():
        from rich.console import Console

        from bot.bench.containers import containers_of
        from bot.bench.killing import Kill, kill_runs
        from bot.bench.tables import kills_table

        console, kills = Console(stderr=True), list[Kill]()
        for name in _working() if sandbox == "each" else (sandbox,):
            console.print(f"{name}: warming up, then {times} kills")
            for kill in kill_runs(name, times, containers_of(name), seed=seed):
                kills.append(kill)
                console.print(f"  killed after {kill.after_s:.2f} s: {'clean' if kill.clean else 'NOT CLEAN'}")
        Console().print(kills_table(kills))
        if not all(kill.clean for kill in kills):
            raise typer.Exit(OTHER)


@app.command()
def deliveries(
    count: Annotated[int, typer.Option(min=1, help="Deliveries in all.", metavar="N")] = 200,
    duplicates: Annotated[float, typer.Option(min=0, max=0.9, help="Part of them that repeats others.", metavar="P")] = 0.3,
    kills: Annotated[int, typer.Option(min=0, help="Kills of web and worker processes.", metavar="N")] = 50,
    rate: Annotated[float, typer.Option(min=0.1, help="Deliveries a second.", metavar="R")] = 2.0,
    sandbox: _Sandbox = "auto",
    database: Annotated[str, typer.Option(help="A database's address; default a new SQLite file.", metavar="URL")] = "",
    openapi: Annotated[
        Path | None, typer.Option(help="GitHub's api.github.com.json: every request is held against it.", metavar="FILE")
    ] = None,
    seed: Annotated[int, typer.Option(help="Chooses moments and victims.", metavar="N")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON alone.")] = False,
) -> None:
    """Kill the App's processes while deliveries stream in: each must end in exactly one run and one comment."""
    with boundary():
        from rich.console import Console

        from bot.bench import deliveries as storms  # a web server and a database, which no other bench needs

        console, settings = Console(stderr=True), load()
        plan = storms.Plan(
            deliveries=count, duplicates=duplicates, kills=kills, rate=rate, sandbox=sandbox, database=database, seed=seed,
            openapi=openapi, cache=settings.cache_dir, environ=host(),
        )  # fmt: skip
        outcome = storms.storm(plan, lambda text: console.print(text))
        typer.echo(outcome.model_dump_json(indent=2) if as_json else storms.told(outcome))
        if not outcome.right:
            raise typer.Exit(OTHER)


@app.command()
def context(
    folder: Annotated[
        Path | None,
        typer.Argument(help="Holds cases/*.json and keys/*.json: is the file that matters ranked first?", metavar="[DIR]"),
    ] = None,
    tree: Annotated[
        Path | None, typer.Option(help="The root of an environment: how fast is it indexed and asked?", metavar="PATH")
    ] = None,
    packages: Annotated[str, typer.Option(help="Distributions of the tree, with commas between.", metavar="NAME,...")] = (
        "torch,transformers"
    ),
    only: Annotated[
        str, typer.Option(help="Ids, or beginnings of ids, with commas between.", metavar="ID,...", show_default=False)
    ] = "",
    answers: Annotated[
        Path | None, typer.Option(help="Maps ids to the files that matter, where keys do not say.", metavar="FILE")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON alone.")] = False,
) -> None:
    """Measure the index of sources, and where the file that a fix touched stands in what it finds."""
    with boundary():
        from bot.adapters import source
        from bot.adapters.builder import UvBuilder
        from bot.adapters.library import SqliteLibrary
        from bot.bench import context as contexts  # builds environments
        from bot.bench.runner import find_cases
        from sandbox.select import choose

        if folder is None and tree is None:
            raise UserError("There is nothing to measure.", "Name a folder of cases, or --tree.")
        if tree is not None:
            figures = contexts.indexed(tree, [each for each in packages.split(",") if each])
            typer.echo(figures.model_dump_json(indent=2) if as_json else contexts.told(figures))
        if folder is not None:
            settings = load()
            builder, library = UvBuilder(settings.cache_dir, sandbox=choose("auto")), SqliteLibrary(settings.cache_dir)
            places = [
                contexts.placed(each, source.load(str(each.path), settings), builder, library, answers)
                for each in find_cases(folder, [start for start in only.split(",") if start])
            ]
            shown = "\n".join(each.model_dump_json() for each in places) if as_json else contexts.told_places(places)
            typer.echo(shown)


@app.command()
def minimize(
    only: Annotated[str, typer.Option(help="Names, with commas between.", metavar="NAME,...", show_default=False)] = "",
    tools: Annotated[
        str, typer.Option(help="Which tools, with commas between: reprise, lithium, shrinkray.", metavar="NAME,...")
    ] = "reprise,lithium",
    minutes: Annotated[float, typer.Option(help="shrinkray is stopped after this many a case.", min=0.1, metavar="M")] = 15,
    sandbox: _Sandbox = "process",
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON alone.")] = False,
) -> None:
    """Make failing training scripts small, beside general reducers with the same oracle."""
    with boundary():
        from rich.console import Console

        from bot.adapters.builder import UvBuilder
        from bot.bench import minimise as smaller
        from sandbox.select import choose

        chosen, console = choose(sandbox), Console(stderr=True)
        builder = UvBuilder(load().cache_dir)
        built, rows = smaller.environment(builder), list[smaller.Row]()
        for name, (script, signature) in smaller.cases([each for each in only.split(",") if each]).items():
            say = lambda text: console.print(text, markup=False, highlight=False)  # noqa: E731
            rows += smaller.reduced(
                name, script, signature, (chosen, builder), built, say, smaller.known(tools), most_s=60 * minutes
            )
        typer.echo("\n".join(row.model_dump_json() for row in rows) if as_json else smaller.told(rows))


@app.command()
def flaky(
    proof: Annotated[Literal["bisect", "minimize"], typer.Option(help="What is done with the failure.")] = "bisect",
    times: Annotated[int, typer.Option(min=1, help="Repetitions.", metavar="N")] = 10,
    rate: Annotated[float, typer.Option(min=0.05, max=1, help="How often the program fails.", metavar="P")] = 0.3,
    sandbox: _Sandbox = "process",
    seed: Annotated[int, typer.Option(help="Chooses where the failure lies, and the first seeds.", metavar="N")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON alone.")] = False,
) -> None:
    """Prove a failure that comes by chance, again and again; nine times in ten must end rightly."""
    with boundary():
        import tempfile

        from rich.console import Console

        from bot.adapters.builder import UvBuilder
        from bot.bench import flaky_bisection as line
        from bot.bench import flaky_minimising as smaller
        from sandbox.select import choose

        console, chosen = Console(stderr=True), choose(sandbox)

        def tell(row: line.Row | smaller.Row) -> None:
            console.print(f"{proof} {row.seed}: {'right' if row.right else 'WRONG'} after {row.seconds:.0f} s")

        bisected, reduced = list[line.Row](), list[smaller.Row]()
        if proof == "minimize":
            built = smaller.environment(UvBuilder(load().cache_dir))
            for each in smaller.minimise_flaky(times, chosen, built, rate=rate, seed=seed):
                reduced.append(each)
                tell(each)
        else:
            with tempfile.TemporaryDirectory(prefix="reprise-flaky-") as folder:
                Path(folder).chmod(0o755)  # root's runs are given to another user, who must reach the environments in it
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


def _working() -> tuple[str, ...]:
    from sandbox.port import SandboxUnavailable
    from sandbox.select import survey

    names = tuple(name for name, health in survey().items() if health.works)
    if not names:
        raise SandboxUnavailable("no sandbox works here")
    return names
