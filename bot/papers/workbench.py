"""Where an agent writes the program of a paper: a workspace of the sandbox that has what the
requirements of the program name.
"""

import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self
from uuid import uuid4

from typing_extensions import override

from bot.kernel import launch
from bot.kernel.attempt import Script
from bot.kernel.environment import Environment, EnvironmentSpec
from bot.kernel.errors import BuildError, Stopped
from bot.model.agent import Workbench
from bot.papers.repository import declared_by, specified
from bot.papers.runs import PaperSession
from prompts import load
from prompts.catalog import fence
from sandbox.port import WORKDIR, Limits, RunResult, SandboxError, Workspace

ENTRY = "main.py"
_ENDS = (".py", ".txt", ".md", ".toml", ".yaml", ".yml", ".json", ".cfg", ".ini", ".csv", ".sh")
_PATTERNS = tuple(f"**/*{end}" for end in _ENDS)
_LARGEST, _MOST_BYTES, _MOST_FILES = 100_000, 600_000, 60
DRY_S = 120.0
_LONGEST_S = 900.0


def text_files(artifacts: Mapping[str, bytes]) -> dict[str, str]:
    """The files that are text, as far as an agent and the journal keep them."""
    texts, room = dict[str, str](), _MOST_BYTES
    for path in sorted(artifacts, key=lambda path: (not path.endswith(".py"), path)):
        data = artifacts[path]
        hidden = any(part.startswith((".", "__pycache__")) for part in path.split("/"))
        if hidden or len(data) > _LARGEST or len(data) > room or len(texts) == _MOST_FILES:
            continue
        with suppress(UnicodeDecodeError):
            texts[path] = data.decode("utf-8")
            room -= len(data)
    return texts


@dataclass
class PaperWorkbench(Workbench):
    """Opens the workspace at the first command, and anew whenever the program needs something else;
    what lies in it moves along. `minutes` are for everything in it.
    """

    session: PaperSession
    minutes: float
    _files: dict[str, str] = field(default_factory=dict)
    _space: Workspace | None = None
    _environment: Environment | None = None
    _spec: EnvironmentSpec | None = None
    _problem: str = ""
    _folder: str = ""
    _kept: tempfile.TemporaryDirectory[str] | None = None
    _archive: Path | None = None
    """What the workspace started with, which it reads as long as it is open."""

    @property
    def full_s(self) -> float:
        """Seconds for one whole run: a third of the time for all."""
        return min(_LONGEST_S, 20 * self.session.job.minutes)

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
            self._files = text_files(self._space.get(*_PATTERNS).artifacts)
        return dict(self._files)

    @override
    def exec(self, argv: tuple[str, ...], wall_s: float) -> RunResult:
        self._prepare()
        if self._problem or self._space is None:
            says = load("develop").fragment("not_installed", reason=fence("error", self._problem))
            return RunResult(exit_code=1, stderr=says)
        cancel = self.session.ports.cancel
        result = self._space.exec(argv, wall_s=wall_s, cancel=cancel)
        if result.cancelled:
            raise Stopped(self.session.context.interruption)
        return self._plain(result)

    @override
    def run(self, *, sampled: bool) -> RunResult:
        self._prepare()
        python = self._environment.interpreter if self._environment is not None else "python"
        more = ("--dry-run",) if sampled else ()
        return self.exec((python, ENTRY, *more), DRY_S if sampled else self.full_s)

    def close(self) -> None:
        """End the workspace."""
        if self._space is not None:
            self._space.close()
            self._space = None
        if self._kept is not None:
            self._kept.cleanup()
            self._kept = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # The environment and the workspace that has it.

    def _prepare(self) -> None:
        """Have a workspace with what the program needs by now."""
        tree = _bytes(self._files)
        script = Script(files={ENTRY: self._files.get(ENTRY, "")}, entry=ENTRY, command=(ENTRY,))
        options = self.session.job.environment.model_copy(update={"repo": None})
        spec = specified(script, {ENTRY: b"", **tree}, options, declared_by(tree, script), None)
        if spec == self._spec:
            return
        self._spec, self._problem = spec, ""
        try:
            environment = self.session.build(self.session.matched(spec))
        except BuildError as error:
            self._problem = str(error)
            return
        if self._environment is None or environment.id != self._environment.id:
            self._move(environment)

    def _move(self, environment: Environment) -> None:
        """Open a workspace with an environment, and bring along what lies in the one before."""
        limits = replace(Limits(), wall_s=max(DRY_S, self.full_s), artifact_mb=8)
        spec = launch.workspace_spec(
            environment, self.session.job, limits, 60 * self.minutes, "develop"
        )
        before, archive = self._archive, self._snapshot()
        if archive is not None:
            spec = replace(spec, start=archive)
        self._space, self._environment = self.session.ports.sandbox.open(spec), environment
        if before is not None:
            before.unlink(missing_ok=True)
        if archive is None:
            self._space.put(_bytes(self._files))
            self._link_data(environment)
        self._folder = self._space.exec(("/bin/pwd",)).stdout.strip()

    def _snapshot(self) -> Path | None:
        """What lies in the workspace, which is closed; None where there is none."""
        if self._space is None:
            return None
        if self._kept is None:
            cache = self.session.ports.cache
            self._kept = tempfile.TemporaryDirectory(prefix="reprise-workspace-", dir=cache)
            Path(self._kept.name).chmod(0o755)  # another user reads it inside
        self._archive = Path(self._kept.name) / f"{uuid4().hex}.tar"
        self._space.snapshot(self._archive)
        self._space.close()
        self._space = None
        return self._archive

    def _link_data(self, environment: Environment) -> None:
        assert self._space is not None
        for one in environment.operator_files.data:
            if one.source:
                folder = one.path.rpartition("/")[0] or "."
                self._space.exec(("/bin/mkdir", "-p", "--", folder))
                if self._space.exec(("/bin/ln", "-s", "--", one.source, one.path)).exit_code:
                    raise SandboxError(f"the data {one.path} cannot be shown")

    def _plain(self, result: RunResult) -> RunResult:
        """The result with the folder called the same in every sandbox."""
        if self._folder in {"", "/", WORKDIR}:
            return result
        stdout, stderr = (
            stream.replace(self._folder, WORKDIR) for stream in (result.stdout, result.stderr)
        )
        return replace(result, stdout=stdout, stderr=stderr)


def _bytes(files: Mapping[str, str]) -> dict[str, bytes]:
    return {path: text.encode("utf-8", "replace") for path, text in files.items()}
