"""Blocks of research code that an agent writes from their paper, in the layout of
ResearchCodeBench: a folder for each paper with its text, annotated files and unit tests, which
decide.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml
from rich.console import Group
from rich.table import Table
from rich.text import Text
from typing_extensions import override

from benchmarks.fault_runs import environment_of
from bot.app import bootstrap
from bot.kernel import launch, tree_programs
from bot.kernel.attempt import Script
from bot.kernel.bug import AlternativesSignature
from bot.kernel.environment import Environment
from bot.kernel.errors import Stopped, UserError
from bot.kernel.files import write
from bot.kernel.job import ModelLimits, ReproducePaper, RunLimits
from bot.kernel.paper import PaperFiles
from bot.kernel.ports import Model, Ports
from bot.kernel.settings import Settings
from bot.kernel.values import Record
from bot.model.agent import Agent, AgentTask, Workbench, numbered
from bot.model.budget import ModelBudget
from bot.model.cassette import Cassette, Recording
from bot.model.chat import configured
from bot.papers.passages import excerpt, manuscript
from bot.papers.reading.read import read_paper
from bot.papers.workbench import text_files
from bot.report.run_folder import EXCHANGE_FILE, Folder
from prompts import load
from prompts.catalog import fence
from sandbox.port import Limits, RunResult, RunSpec, Sandbox, Workspace

_START = re.compile(r'^\s*#\s*<paper2code\s+name="([^"]+)">\s*$')
_END = re.compile(r'^\s*#\s*</paper2code\s+name="([^"]+)">\s*$')
_TEST, _PAPERS = "paper2code_test.py", "papers.yaml"
_TEXTS = ("paper2code_paper.tex", "paper2code_paper.md")
_STATS = "**/overall_stats.json"
_TEST_S, _IMPORT_S = 600.0, 300.0
_ANY = AlternativesSignature(members=())
_WHOLE, _EXCERPT, _AROUND = 150_000, 30_000, 40
"""Characters of a paper, and of it that a block is shown, chosen by so many lines around it."""
_LIMITS = ModelLimits(max_calls=8, max_tokens=800_000, minutes=120.0)
"""Of one block."""
_IMPORTS = "import runpy, sys; runpy.run_path(sys.argv[1], run_name='block')"


@dataclass(frozen=True, slots=True)
class CodeBlock:
    """One block that is masked: `path` is its file, `lines` how many lines of code it has. `before`
    and `after` are the lines of the file around it, `body` its own; `context` are files that the
    benchmark shows beside it.
    """

    paper: str
    name: str
    path: str
    before: tuple[str, ...]
    body: tuple[str, ...]
    after: tuple[str, ...]
    context: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """Its name in tables and folders."""
        return f"{self.paper}/{re.sub(r'[^A-Za-z0-9_.-]+', '-', self.name)}"

    @property
    def lines(self) -> int:
        """Lines of code, as the benchmark counts them."""
        texts = (line.strip() for line in self.body)
        return sum(bool(text) and not text.startswith("#") for text in texts)

    @property
    def mark(self) -> str:
        """The line that stands in its place."""
        spaces = [len(line) - len(line.lstrip()) for line in self.body if line.strip()]
        return f'{" " * min(spaces, default=0)}# TODO: Implement block "{self.name}"'

    @property
    def masked(self) -> str:
        """The file without it."""
        return _text((*self.before, self.mark, *self.after))

    def in_place(self, text: str) -> str | None:
        """The file with what was written in place of the mark; None where other lines changed."""
        rows = text.splitlines()
        head, tail = len(self.before), len(self.after)
        end = len(rows) - tail
        if rows[:head] != [*self.before] or rows[end:] != [*self.after] or end < head:
            return None
        return None if self.mark in rows[head:end] else _text(rows)


class CodeRow(Record):
    """One block. `error` is why nothing could be tested."""

    id: str
    lines: int = 0
    passed: bool = False
    end: str = ""
    answers: int = 0
    tokens: int = 0
    seconds: float = 0.0
    error: str = ""


class PublishedRate(Record):
    """What a model of the benchmark's own results reached on the same blocks."""

    model: str
    blocks: float
    lines: float


class CodeBench(Record):
    """All blocks; `broken` are papers whose own code does not pass their tests here."""

    rows: tuple[CodeRow, ...]
    published: tuple[PublishedRate, ...] = ()
    broken: tuple[str, ...] = ()

    @property
    def blocks(self) -> float:
        """The share of blocks that pass."""
        return sum(row.passed for row in self.rows) / len(self.rows) if self.rows else 0.0

    @property
    def lines(self) -> float:
        """The share of blocks that pass, weighted by their lines."""
        total = sum(row.lines for row in self.rows)
        return sum(row.lines * row.passed for row in self.rows) / total if total else 0.0


@dataclass(frozen=True, slots=True)
class CodeOptions:
    """How blocks are written: the interpreter that has what the code imports, the model, and where
    runs are kept or recorded exchanges lie.
    """

    sandbox: Sandbox
    settings: Settings
    python: Path
    model: str = ""
    limits: ModelLimits = _LIMITS
    out: Path | None = None
    replay: Path | None = None


# The papers of a folder and their blocks.


def blocks_of(root: Path, only: str = "") -> list[CodeBlock]:
    """The blocks of the papers whose ids begin so, in the order of the files. No other paper is
    opened.
    """
    home = _home(root)
    starts = tuple(part.strip() for part in only.split(",") if part.strip())
    rows = yaml.safe_load((home / _PAPERS).read_text(encoding="utf-8"))
    papers = {
        row["id"]: (_paths(row.get("annotated_file_paths")), _paths(row.get("context_file_paths")))
        for row in rows
    }
    return [
        replace(block, context=tuple(context))
        for paper, (paths, context) in papers.items()
        if (home / paper).is_dir()
        and (not starts or any(one.partition("/")[0] == paper for one in starts))
        for path in paths
        for block in read_blocks(paper, path, (home / paper / path).read_text(encoding="utf-8"))
        if not starts or paper in starts or block.id.startswith(starts)
    ]


def _home(root: Path) -> Path:
    for home in (root, root / "pset"):
        if (home / _PAPERS).is_file():
            return home
    raise UserError(f"{root} has no {_PAPERS}.", "Pass a copy of ResearchCodeBench.")


def _paths(value: object) -> list[str]:
    return [str(one).strip() for one in (value if isinstance(value, list) else [value]) if one]


def read_blocks(paper: str, path: str, text: str) -> Iterator[CodeBlock]:
    """The blocks of an annotated file; marks of others are left out of each."""
    rows = text.splitlines()
    for at, row in enumerate(rows):
        if not (start := _START.match(row)):
            continue
        ends = (
            n
            for n in range(at + 1, len(rows))
            if (end := _END.match(rows[n])) and end[1] == start[1]
        )
        end_line = next(ends, None)
        if end_line is None:
            raise UserError(f"{path} does not close the block {start[1]!r}.", "Check the copy.")
        parts = (rows[:at], rows[at + 1 : end_line], rows[end_line + 1 :])
        before, body, after = (tuple(_unmarked(part)) for part in parts)
        yield CodeBlock(paper, start[1], path, before, body, after)


def _unmarked(rows: Sequence[str]) -> Iterator[str]:
    return (row for row in rows if not _START.match(row) and not _END.match(row))


def _text(rows: Sequence[str]) -> str:
    return "\n".join(rows) + "\n"


# One block: written by the agent, then tested.


@dataclass
class BlockBench(Workbench):
    """A workspace with the file that lacks a block and what it imports, without tests and
    references.
    """

    job: ReproducePaper
    ports: Ports
    environment: Environment
    path: str
    _files: dict[str, str] = field(default_factory=dict)
    _space: Workspace | None = None

    @override
    def start(self, files: Mapping[str, str]) -> None:
        self._files = dict(files)

    @override
    def put(self, files: Mapping[str, str]) -> None:
        self._files |= files
        if self._space is not None:
            self._space.put(_bytes(files))

    @override
    def texts(self) -> dict[str, str]:
        if self._space is not None:
            self._files = text_files(self._space.get("**/*.py").artifacts)
        return dict(self._files)

    @override
    def exec(self, argv: tuple[str, ...], wall_s: float) -> RunResult:
        result = self._opened().exec(argv, wall_s=wall_s, cancel=self.ports.cancel)
        if result.cancelled:
            raise Stopped("stopped on request")
        return result

    @override
    def run(self, *, sampled: bool) -> RunResult:
        return self.exec((self.environment.interpreter, "-c", _IMPORTS, self.path), _IMPORT_S)

    def _opened(self) -> Workspace:
        """The workspace, opened at the first command: a block that needs none has none."""
        if self._space is None:
            limits = replace(Limits(), wall_s=_IMPORT_S)
            spec = launch.workspace_spec(self.environment, self.job, limits, 3_600.0, "block")
            path = self.environment.variables["PYTHONPATH"]
            spec = replace(spec, env={**spec.env, "PYTHONPATH": f".:{path}"})
            self._space = self.ports.sandbox.open(spec)
            self._space.put(_bytes(self._files))
        return self._space

    def close(self) -> None:
        """End the workspace."""
        if self._space is not None:
            self._space.close()


def _bytes(files: Mapping[str, str]) -> dict[str, bytes]:
    return {path: text.encode() for path, text in files.items()}


def write_block(
    block: CodeBlock,
    folder: Path,
    paper: str,
    ports: Ports,
    environment: Environment,
    limits: ModelLimits,
) -> tuple[str | None, CodeRow]:
    """The file with the block that the agent wrote, and how it went; None for no block."""
    started = ports.clock()
    job = ReproducePaper(source=str(folder), model=limits)
    bench = BlockBench(job, ports, environment, block.path)
    files = visible_files(folder, block)
    budget = ModelBudget(ports, limits, started)
    agent = Agent(bench, budget, ports.journal, files=files)
    prompt = load("develop")
    text = prompt.fragment(
        "block_task",
        path=block.path,
        mark=block.mark.strip(),
        lines=block.lines,
        files=numbered(files),
        paper=fence("paper", excerpt(paper, about(block), _EXCERPT)),
    )
    with closing(bench):
        end = agent.work(AgentTask(id="block", text=text, run=prompt.fragment("run_block")))
    code = block.in_place(agent.files.get(block.path, ""))
    usage = budget.usage
    row = CodeRow(
        id=block.id,
        lines=block.lines,
        end=end.kind if end.kind == "submitted" else f"{end.kind}: {end.text}",
        answers=len(agent.steps),
        tokens=usage.input_tokens + usage.output_tokens,
        seconds=ports.clock() - started,
        error="" if code is not None else "the block is not there, or other lines changed",
    )
    return code, row


def about(block: CodeBlock) -> str:
    """What a block is about: its name, its file and the code around it."""
    around = (*block.before[-_AROUND:], *block.after[:_AROUND])
    return "\n".join((block.name, block.path, *around))


def visible_files(folder: Path, block: CodeBlock) -> dict[str, str]:
    """What the agent sees: the file without the block, and what it imports beside it."""
    tree = {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*.py"))
        if path.is_file() and not path.name.startswith("paper2code")
    }
    tree[block.path] = block.masked.encode()
    context = (path for path in block.context if path in tree)
    paths = tree_programs.reachable([block.path, *context], tree)
    return {path: tree[path].decode("utf-8", "replace") for path in paths}


def passes(
    folder: Path, changed: Mapping[str, str], environment: Environment, sandbox: Sandbox
) -> bool:
    """Whether the unit tests of a paper pass with some files in place of its own."""
    texts = {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8", errors="replace")
        for path in sorted(folder.rglob("*.py"))
        if path.is_file()
    }
    job = ReproducePaper(source=str(folder), limits=RunLimits(timeout_s=_TEST_S))
    script = Script(files={**texts, **changed}, entry=_TEST)
    spec: RunSpec = launch.spec(script, environment, job, _ANY, 0, "tests")
    path = environment.variables["PYTHONPATH"]
    spec = replace(spec, env={**spec.env, "PYTHONPATH": f".:{path}"})
    result = sandbox.run(spec)
    count = re.search(r"^Ran (\d+) tests? in", result.stderr, re.MULTILINE)
    return result.exit_code == 0 and count is not None and int(count[1]) > 0


# All blocks.


def run_code(root: Path, blocks: Sequence[CodeBlock], options: CodeOptions) -> CodeBench:
    """Write and test every block. With `out`, what is finished there is taken over."""
    home, environment = _home(root), environment_of(options.python, options.settings)
    papers = list(dict.fromkeys(block.paper for block in blocks))
    broken = [
        paper
        for paper in papers
        if not passes(home / paper, _unmasked(home, paper, blocks), environment, options.sandbox)
    ]
    rows = [
        _row(home / block.paper, block, environment, options)
        for block in blocks
        if block.paper not in broken
    ]
    return CodeBench(
        rows=tuple(rows),
        published=tuple(published(root, {row.id for row in rows})),
        broken=tuple(broken),
    )


def _unmasked(home: Path, paper: str, blocks: Sequence[CodeBlock]) -> dict[str, str]:
    paths = {block.path for block in blocks if block.paper == paper}
    return {path: (home / paper / path).read_text(encoding="utf-8") for path in paths}


def _row(folder: Path, block: CodeBlock, environment: Environment, options: CodeOptions) -> CodeRow:
    path = (options.out or options.settings.runs_dir / "paper-code") / block.id
    finished = path / "row.json"
    if options.out is not None and finished.is_file():
        return CodeRow.model_validate_json(finished.read_bytes())
    with closing(Folder(path)) as kept:
        kept.go_on()
        model = _model(block, options, kept)
        if model is None:
            return CodeRow(id=block.id, lines=block.lines, error="no model, and no recording")
        ports = bootstrap.make_ports(
            options.settings, sandbox=options.sandbox, journal=kept, listener=lambda _: None,
            model=model,
        )  # fmt: skip
        text = _manuscript(folder)
        code, row = write_block(block, folder, text, ports, environment, options.limits)
        if code is not None:
            passed = passes(folder, {block.path: code}, environment, options.sandbox)
            row = row.model_copy(update={"passed": passed})
        write(finished, row.model_dump_json())
    return row


def _model(block: CodeBlock, options: CodeOptions, folder: Folder) -> Model | None:
    if options.replay is not None:
        path = options.replay / block.id / EXCHANGE_FILE
        return Cassette(path) if path.is_file() else None
    model = configured(options.settings, options.model)
    return Recording(model, folder) if model is not None else None


def _manuscript(folder: Path) -> str:
    path = next((folder / name for name in _TEXTS if (folder / name).is_file()), None)
    if path is None:
        raise UserError(f"{folder.name} has no paper.", "Check the copy.")
    source = PaperFiles(name=folder.name, files={path.name: path.read_bytes()})
    return manuscript(source, read_paper(source), _WHOLE)


def published(root: Path, ids: set[str]) -> Iterator[PublishedRate]:
    """What the models of the benchmark's own results reached on these blocks, the best by lines
    first.
    """
    paths = sorted(root.glob(_STATS))
    data: dict[str, Any] = json.loads(paths[-1].read_bytes())["results"] if paths else {}
    totals = dict[str, list[tuple[int, bool]]]()
    for paper in {name.partition("/")[0] for name in ids}:
        for model, results in data.get(paper, {}).get("results", {}).items():
            for name, tries in results["results"].items():
                if CodeBlock(paper, name, "", (), (), ()).id in ids:
                    row = tries[0]
                    pair = (row["snippet_code_line_count"], bool(row["passed"]))
                    totals.setdefault(model, []).append(pair)
    rates = (
        PublishedRate(
            model=model,
            blocks=sum(passed for _, passed in rows) / len(rows),
            lines=sum(count * passed for count, passed in rows) / sum(count for count, _ in rows),
        )
        for model, rows in totals.items()
    )
    yield from sorted(rates, key=lambda rate: -rate.lines)


# The table.


def code_table(bench: CodeBench) -> Group:
    """One row a block, and the rates beside those of the benchmark's own models."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in ("block", "lines", "", "ended", "answers", "tokens", "s", "problem"):
        table.add_column(name, overflow="fold")
    for row in bench.rows:
        mark = Text("passes", "green") if row.passed else Text("fails", "red")
        table.add_row(
            row.id, str(row.lines), mark, row.end, str(row.answers), str(row.tokens),
            f"{row.seconds:.0f}", row.error,
        )  # fmt: skip
    return Group(table, Text(), *(Text(line) for line in code_summary(bench)))


def code_summary(bench: CodeBench) -> Iterator[str]:
    """pass@1 by blocks and by lines, in all and by paper; the best published models after it."""
    yield f"pass@1: {_rates(bench)}"
    papers = dict.fromkeys(row.id.partition("/")[0] for row in bench.rows)
    for paper in papers:
        own = tuple(row for row in bench.rows if row.id.startswith(f"{paper}/"))
        yield f"{paper}: {_rates(CodeBench(rows=own))}"
    for rate in bench.published[:3]:
        yield f"published, {rate.model}: {rate.blocks:.1%} of blocks, {rate.lines:.1%} of lines"
    if bench.broken:
        yield f"left out, its own code fails its tests here: {', '.join(bench.broken)}"


def _rates(bench: CodeBench) -> str:
    passed = sum(row.passed for row in bench.rows)
    return f"{passed} of {len(bench.rows)} blocks ({bench.blocks:.1%}), {bench.lines:.1%} of lines"
