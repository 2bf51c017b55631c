"""A bounded loop in which a model writes a program: write, check, run, think again."""

from __future__ import annotations

import ast
import copy
import functools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Literal

from packaging.specifiers import SpecifierSet
from pydantic import TypeAdapter

from bot.environment import evidence, imports, releases, specify, versions
from bot.issues import confirm
from bot.issues.gates import refuse
from bot.issues.runner import Runner, judging
from bot.issues.search import contexts, interpretation, prompt_text, recovery, refutation
from bot.issues.search.prompt_text import Notebook
from bot.issues.signature import staged, values
from bot.issues.signature.values import MARK
from bot.kernel import launch, markdown, tree_programs
from bot.kernel.attempt import BESIDE, FALSE_STARTS, Match, Script
from bot.kernel.bug import (
    AnySignature,
    CrashSignature,
    HangSignature,
    ObservationSignature,
    TrainingSignature,
    WarningSignature,
    members_of,
    signature_hash,
)
from bot.kernel.dialogue import (
    Action,
    AmendAction,
    DocumentedAction,
    EditAction,
    EnvironmentAction,
    GiveUpAction,
    Interpretation,
    ProbeAction,
    Question,
    ReadAction,
    Reading,
    Reconstruction,
    Refusal,
    Refutation,
    RefuteAction,
    RunAction,
    SearchAction,
    WriteAction,
)
from bot.kernel.environment import (
    Context,
    Environment,
    EnvironmentSpec,
    PinSource,
    Requirement,
)
from bot.kernel.errors import BuildError
from bot.kernel.outside_text import one_line
from bot.kernel.ports import SourceIndex
from bot.kernel.report import Claim
from bot.kernel.session import CompletedRun, SearchResult
from bot.kernel.source import symbols, syntax
from bot.kernel.source.syntax import nodes, root_name
from bot.kernel.trees import Tree
from bot.model.budget import ModelBudget, question
from prompts import load, shared
from prompts.catalog import fence

# A program that a model wrote, before it is run: what would waste a run or make its outcome
# worthless.

# Calls that fetch; an import alone, or a client with a transport in the process, does not.
_REACHES = re.compile(
    r"\b(?:requests|httpx)\.(?:get|post|put|patch|delete|head|options|request|stream)\s*\("
    r"|\b(?:urllib\.request|urlopen|urlretrieve|socket\.create_connection|ftplib|wget|gdown|"
    r"hf_hub_download|snapshot_download|subprocess|os\.system|os\.popen|pip\.main)\b"
)
# What several libraries call so, some for files of their own.
_HUB_DATA = re.compile(r"\bload_dataset\b")
_HUBS = frozenset({"datasets", "seaborn", "evaluate"})
_WEIGHTS = re.compile(
    r"\.from_pretrained\(\s*[\"'][\w.-]+(?:/[\w.-]+)?[\"']|\bpretrained\s*=\s*True|\bdownload\s*=\s*True"
    r"|\bweights\s*=\s*[\"']"
)
_NAMES = re.compile(r"[A-Za-z0-9][\w-]*(?:[./][\w-]+)*(?<!\.)")
_PATCHES = re.compile(r"^\s*(?:setattr\(|unittest\.mock|mock\.patch|monkeypatch)")
_CUDA = re.compile(r"\.cuda\(|device\s*=\s*[\"']cuda|\.to\([\"']cuda")
MOST_LINES = 400
_MOST_LINES_OF_FILE, _SHORTEST_QUOTE = 20_000, 20
WITHDRAWN = "-"
"""In place of a version: what a model asked for of the package no longer holds."""


def objections(
    source: str,
    refined: Interpretation,
    *,
    device: str,
    weights: Sequence[str] = (),
    files: Tree = MappingProxyType({}),
) -> tuple[Refusal, ...]:
    """What is wrong with a program, for whoever wrote it; empty when it may run. It may load
    `weights`, and run what the repository's `files` define in place of naming what is called.
    """
    try:
        tree = syntax.parse(source)
    except SyntaxError as error:
        line = load("act").fragment("objection_line", line=error.lineno) if error.lineno else ""
        return (refuse("syntax", error=error.msg, where=f" {line}".rstrip()),)
    return tuple(_of(tree, source, refined, device, weights, files))


def _of(
    tree: ast.Module,
    source: str,
    refined: Interpretation,
    device: str,
    weights: Sequence[str],
    files: Tree,
) -> Iterator[Refusal]:
    if len(source.splitlines()) > MOST_LINES:
        yield refuse("long", lines=MOST_LINES)
    if lacking := imports.undefined(source):
        yield refuse("undefined", names=", ".join(lacking[:8]))
    code = ast.unparse(tree)  # a comment may say what it does not do
    if match := _REACHES.search(code) or _hub_data(code):
        yield refuse("network", found=match[0][:80])
    if call := next(_absent_weights(code, weights), ""):
        yield refuse("weights", found=call[:80])
    if device == "cpu" and (match := _CUDA.search(code)):
        yield refuse("gpu", found=match[0])
    if target := _patched_target(tree, refined.api):
        yield refuse("patched", target=target)
    modules = symbols.imported_modules(source)
    imports_it = bool(set(modules) & set(refined.api)) or _runs_files(tree, modules, files)
    if refined.api and not (imports_it or staged.exercises(source, refined.api)):
        yield refuse("unrelated", api=", ".join(refined.api))
    assert refined.signature is not None
    for member in members_of(refined.signature):
        if line := staged.staged(source, member):
            observing = isinstance(member, ObservationSignature)
            yield refuse("constant" if observing else "staged", line=line[:160])


def _runs_files(tree: ast.Module, modules: Sequence[str], files: Tree) -> bool:
    """Whether a program imports a module of the repository, or opens a notebook of it."""
    texts = {str(one.value).removeprefix("./") for one in nodes(tree, ast.Constant)}
    is_notebook = any(text.endswith(".ipynb") and text in files for text in texts)
    tops = {name.partition(".")[0] for name in modules}
    return is_notebook or any(tree_programs.provides(top, files) for top in tops)


def _hub_data(source: str) -> re.Match[str] | None:
    """A data set that is loaded from a hub, not from files that the program has."""
    tops = {name.partition(".")[0] for name in symbols.imported_modules(source)}
    is_remote = bool(tops & _HUBS) and "data_files" not in source
    return _HUB_DATA.search(source) if is_remote else None


def _absent_weights(source: str, weights: Sequence[str]) -> Iterator[str]:
    """What a program loads of weights that are not at hand: by the name in the call, or else by
    that of the model before it.
    """
    for match in _WEIGHTS.finditer(source):
        start = source.rfind("\n", 0, match.start()) + 1
        text = match[0] if match[0].startswith(".") else source[start : match.end()]
        names = _NAMES.findall(text)
        if not {*names, *(name.rpartition(".")[2] for name in names)} & set(weights):
            yield match[0]


def _patched_target(tree: ast.Module, api: tuple[str, ...]) -> str:
    """An assignment to an attribute of an imported module or of a class in question, and the
    like.
    """
    tops = {name.split(".")[0] for name in api}
    modules = {
        (alias.asname or alias.name.split(".")[0])
        for node in nodes(tree, ast.Import)
        for alias in node.names
        if alias.name.split(".")[0] in tops
    }
    classes = {
        alias.asname or alias.name
        for node in nodes(tree, ast.ImportFrom)
        if (node.module or "").split(".")[0] in tops
        for alias in node.names
        if alias.name[:1].isupper()
    }
    ours = modules | classes
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(attr=name, ctx=ast.Store()):
                if name != "default_dtype" and root_name(node) in ours:
                    return ast.unparse(node)
            case ast.Call(args=[target, *_]) if root_name(target) in ours:
                if _PATCHES.match(ast.unparse(node)[:60]):
                    return ast.unparse(node)[:80]
    return ""


# What a model is asked while it writes a program, and its answers as values. Pure.


@functools.cache
def _schema(absent: frozenset[str]) -> dict[str, Any]:
    """The schema of an answer without some of the actions."""
    schema = copy.deepcopy(load("act").schema)
    items = schema["properties"]["actions"]["items"]
    items["anyOf"] = [
        one for one in items["anyOf"] if one["properties"]["action"]["const"] not in absent
    ]
    return schema


_RULED = ("edit", "amend", "documented", "refute")
_actions: TypeAdapter[tuple[Action, ...]] = TypeAdapter(tuple[Action, ...])


def action_question(
    report: str,
    refined: Interpretation,
    environment: str,
    sources: str,
    history: str,
    exceeded: str,
    limit_s: float,
    *,
    is_first: bool = True,
    is_amendable: bool = True,
    has_program: bool = False,
    tree: str = "",
) -> Question:
    """What the writer is asked next, with the actions that are possible now. A run is stopped
    after `limit_s` seconds; `tree` are the files of the repository that programs run in, "" for
    none.
    """
    prompt = load("act")
    is_crash = isinstance(refined.signature, CrashSignature)
    possible = {
        "run": bool(tree),
        "edit": has_program,
        "amend": is_amendable and is_crash,
        "documented": not is_crash,
        "refute": isinstance(refined.signature, ObservationSignature),
    }
    absent = frozenset(name for name, is_possible in possible.items() if not is_possible)
    rules = (prompt.fragment(name) for name in _RULED if name not in absent)
    refusals = "\n".join(f"- {row.says}" for row in refined.refusals) if is_first else ""
    next_question = question(
        "writer",
        "act",
        6_000,
        report=report,
        form=_form(refined),
        taken=prompt.fragment("taken", refusals=refusals) if refusals else "",
        tree=tree and prompt.fragment("in_tree", tree=tree, program=BESIDE),
        contexts=sources,
        history=history or prompt.fragment("no_history"),
        left=exceeded,
        limit=f"{limit_s:g}",
        lines=str(MOST_LINES),
        actions=str(prompt.schema["properties"]["actions"]["maxItems"]),
        lengths=prompt.lengths(),
        read_lines=str(contexts.MOST_LINES),
        output=f"{prompt_text.MOST_OUTPUT:,}",
        sometimes="".join(f"\n{rule}" for rule in rules),
        **_failure(refined, environment),
        **_twin(refined),
    )
    return next_question.model_copy(update={"answer_schema": _schema(absent)})


def parse_actions(data: dict[str, Any]) -> tuple[tuple[Action, ...], tuple[Action, ...]]:
    """The actions up to and with the first program, and those after it."""
    actions = _actions.validate_python(data["actions"])
    starts = WriteAction | EditAction | RunAction | RefuteAction
    programs = (at for at, one in enumerate(actions) if isinstance(one, starts))
    end = next(programs, len(actions)) + 1
    return actions[:end], actions[end:]


def edit_text(text: str, edit: EditAction) -> str:
    """A program with lines replaced. An edit beyond its end is appended; lines are 1-based and
    inclusive.
    """
    lines = text.splitlines()
    start = min(edit.start, len(lines) + 1) - 1
    end = max(start, min(edit.end, len(lines)))
    return "\n".join([*lines[:start], *edit.text.rstrip("\n").splitlines(), *lines[end:]]) + "\n"


def _failure(refined: Interpretation, environment: str) -> dict[str, str]:
    """The claim, what counts as the failure, and where the program will run."""
    assert refined.signature is not None
    return {
        "claim": refined.claim,
        "signature": confirm.describe(refined.signature),
        "environment": environment,
    }


def _twin(refined: Interpretation) -> dict[str, str]:
    """What the twin has to do, and whether the model has to write one."""
    assert refined.signature is not None
    kinds = {type(member) for member in members_of(refined.signature)}
    warning_words = shared("twin_warning" if WarningSignature in kinds else "twin_crash")
    return {
        "twin": shared("twin_observation") if ObservationSignature in kinds else warning_words,
        "contrast_rule": shared("twin_required" if refined.needs_contrast else "twin_optional"),
    }


def _form(refined: Interpretation) -> str:
    """How the program has to show the failure."""
    assert refined.signature is not None
    prompt = load("act")
    lines = [
        prompt.fragment(
            "form_observation",
            mark=MARK,
            name=member.name,
            api=", ".join(member.api),
            right=values.words(member.right),
        )
        for member in members_of(refined.signature)
        if isinstance(member, ObservationSignature)
    ]
    lines += [
        prompt.fragment("form_training", metric=member.metric)
        for member in members_of(refined.signature)
        if isinstance(member, TrainingSignature)
    ]
    return "\n".join(lines) or prompt.fragment("form_escape")


FindSources = Callable[[Environment, list[str]], tuple[SourceIndex | None, tuple[Context, ...]]]
"""An environment and the names of packages → their sources, and what of these to show."""


@dataclass(frozen=True, slots=True)
class Material:
    """What a model is shown: the report (`again` when it has read it), the environment, with how
    an import of the package under test ends there where it fails (`problem`), and the sources that
    bear on it. Where programs run in a repository, its `tree` and a list of its `files`.
    """

    report: str
    again: str
    spec: EnvironmentSpec
    environment: Environment
    sources: SourceIndex | None = None
    contexts: tuple[Context, ...] = ()
    names: tuple[str, ...] = ()
    read: FindSources | None = None
    problem: str = ""
    tree: Tree = field(default_factory=dict)
    files: str = ""

    def moved(
        self, spec: EnvironmentSpec, environment: Environment, more: tuple[str, ...]
    ) -> Material:
        """The material of another environment: its sources, with those of `more` packages, are
        read anew; where that fails, the old ones stay.
        """
        names = tuple(dict.fromkeys((*self.names, *more)))
        new = replace(self, spec=spec, environment=environment, names=names, problem="")
        sources_and_contexts = (
            self.read(environment, list(names)) if self.read is not None else (None, ())
        )
        return (
            replace(new, sources=sources_and_contexts[0], contexts=sources_and_contexts[1])
            if sources_and_contexts[1]
            else new
        )


@dataclass(slots=True)
class Reconstructed:
    """A model's part in a run, kept up to date while it goes on. `result` is its last program, None
    when there is none; `exceeded` names the limit that ended its work. `amendable` says whose
    reading counts, as long as the model may amend it.
    """

    result: SearchResult | None = None
    signature: AnySignature | None = None
    record: Reconstruction | None = None
    claims: list[Claim] = field(default_factory=list)
    exceeded: str = ""
    stopped: bool = False
    amendable: Literal["", "rules", "model"] = ""

    def update(self, **changes: object) -> None:
        """Replace fields of the record."""
        self.record = (self.record or Reconstruction()).model_copy(update=changes)

    def refuse(self, refusals: Iterable[Refusal]) -> None:
        """Keep what was not taken of the model's answers, each once."""
        before = self.record.refusals if self.record is not None else ()
        self.update(refusals=tuple(dict.fromkeys((*before, *refusals))))


def reading(by: Literal["rules", "model"], signature: AnySignature, outcome: str = "") -> Reading:
    """Someone's reading of the report, as the report lists it."""
    says, digest = confirm.describe(signature), signature_hash(signature)
    return Reading(by=by, says=says, hash=digest, outcome=outcome)


def write_program(
    runner: Runner,
    budget: ModelBudget,
    refined: Interpretation,
    material: Material,
    reconstruction: Reconstructed,
) -> SearchResult | None:
    """The first program that fails as reported, else the last one; None when none was run."""
    reconstruction.update(contexts=tuple(context.title for context in material.contexts))
    notebook = Notebook(material.contexts)
    if material.tree and runner.attempts:
        last = CompletedRun(runner.attempts[-1])
        command = " ".join(("python", *runner.attempts.programs[last.attempt.script].command))
        notebook.ran(prompt_text.outcome(last, "own_outcome", command), "")
    spec = material.spec
    return _Writer(
        runner, budget, refined, material, reconstruction, spec, notebook, first=spec
    ).loop()


@dataclass(slots=True)
class _Writer:
    """The program at hand, and what the model has learned from the tries so far. `first` is what
    was asked for before it changed anything, `additions` the packages that it has asked for since.
    """

    runner: Runner
    budget: ModelBudget
    refined: Interpretation
    material: Material
    written: Reconstructed
    spec: EnvironmentSpec
    notebook: Notebook
    first: EnvironmentSpec
    program: str = ""
    contrast: str = ""
    programs: int = 0
    last: SearchResult | None = None
    additions: set[str] = field(default_factory=set)

    @property
    def environment(self) -> Environment:
        """Where the next program runs."""
        return self.runner.build(self.spec)

    def without(self, part: str) -> bool:
        """Whether a part is left out."""
        return part in self.runner.job.without

    def loop(self) -> SearchResult | None:
        """Ask for actions and carry them out, until a program fails as reported or none is left
        to try.
        """
        while self.programs < self.runner.job.model.max_attempts:
            for action in self._actions():
                if isinstance(action, GiveUpAction):
                    self._give_up(action)
                    return self.last
                if isinstance(action, DocumentedAction) and self._is_documented(action):
                    return None
                if (result := self._carry_out(action)) is not None:
                    return result
        self.runner.note(f"{self.programs} programs written by a model did not show the failure")
        return self.last

    def _actions(self) -> tuple[Action, ...]:
        most = self.runner.job.model.max_attempts
        text = f"writing a program (try {self.programs + 1} of at most {most})"
        with self.runner.stage("candidates", text):
            first = self.notebook.is_new
            question = action_question(
                self.material.report if first else self.material.again,
                self.refined,
                prompt_text.describe_environment(
                    self.spec,
                    self.environment,
                    self.material.problem,
                    self.runner.ports.builder.history,
                ),
                self.notebook.sources(),
                ""
                if self.without("feedback")
                else self.notebook.history(self.program, self.contrast),
                self.budget.left(),
                self.runner.job.limits.timeout_s,
                is_first=first,
                is_amendable=bool(self.written.amendable),
                has_program=bool(self.program),
                tree=self.material.files,
            )
            data = self.budget.ask(question).data
        hypothesis = " ".join(data["thought"].split())
        self.notebook.answered(data["context"], hypothesis)
        self.written.update(hypothesis=hypothesis)
        actions, rest = parse_actions(data)
        if rest:
            self._refuse("after_program", names=", ".join(one.action for one in rest))
        return actions

    def _refuse(self, gate: str, /, **values: object) -> None:
        """Tell the model, and the readers of the report, what was not done and why."""
        refusal = refuse(gate, **values)
        self.written.refuse((refusal,))
        self.notebook.tell(refusal.says)

    def _give_up(self, action: GiveUpAction) -> None:
        questions = action.questions or self.refined.questions
        refined = self.refined.model_copy(update={"questions": questions})
        self.written.update(given_up=action.reason, refined=refined)
        self.runner.note(f"the model gave up: {action.reason}")

    def _is_documented(self, action: DocumentedAction) -> bool:
        """Whether the library says so itself."""
        quote = " ".join(action.quote.split())
        if self._says(action.path, quote):
            self.written.update(documented=quote)
            return True
        self._refuse("undocumented", path=one_line(action.path)[:200])
        return False

    def _says(self, file: str, quote: str) -> bool:
        """Whether words stand in what the file says, and it belongs to the code in question."""
        packages = {name.split(".")[0] for name in self.refined.api}
        path, sources = file.strip().lstrip("/"), self.material.sources
        own = tree_programs.read_lines(path, 1, _MOST_LINES_OF_FILE, self.material.tree)
        whole = contexts.read_whole(sources, path) if sources is not None else ""
        text = refutation.documentation(path, own.text if own is not None else whole)
        top = path.split("/", 1)[0].removesuffix(".py")
        is_own = top in packages or path in self.material.tree
        return is_own and len(quote) >= _SHORTEST_QUOTE and markdown.contains(text, quote)

    def _refute(self, action: RefuteAction) -> SearchResult | None:
        """Run a program that is to show that the library is right. The result where it does, and
        where it shows the failure after all.
        """
        program, quote = action.program or self.program, " ".join(action.quote.split())
        job, bug = self.runner.job, self.runner.bug
        wrong = [
            *refutation.refusals(action, program, self.refined, bug, job.issue, self.environment)
        ]
        if quote and not self._says(action.path, quote):
            wrong.append(refuse("undocumented", path=one_line(action.path)[:200]))
        if wrong:
            self.written.refuse(wrong)
            self.notebook.tell("\n".join(row.says for row in wrong))
            return None
        before, self.program, self.contrast = self.last, program, ""
        if (result := self._try(action.reason)) is not None:
            return result
        last = self.last
        if last is None or last is before or last.judgement.match is not Match.PASSED:
            return None
        value = self._reference(action.contrast, last) if action.contrast.strip() else ""
        if action.contrast.strip() and not value:
            return None
        path = action.path.strip() if quote else ""
        self.written.update(refutation=Refutation(path=path, quote=quote, value=value))
        return last

    def _reference(self, contrast: str, result: SearchResult) -> str:
        """The value that a computation without the library gives too; "" where it does not."""
        signature, job = self.runner.signature, self.runner.job
        assert isinstance(signature, ObservationSignature)
        script = self._script(contrast, "a computation without the library")
        with self.runner.stage("search", "computing the value without the library"):
            reference = self.runner.execute(
                launch.spec(
                    script, result.environment, job, signature, job.limits.seed, "reference"
                )
            )
        own = result.run.result.stdout if result.run.result is not None else ""
        lines = (text.splitlines() for text in (own, reference.stdout))
        value, why = refutation.difference(signature, *lines)
        if why:
            self._refuse("refute_reference", reason=why)
        return value

    def _carry_out(self, action: Action) -> SearchResult | None:
        match action:
            case SearchAction() | ReadAction():
                self._look_up(action)
            case ProbeAction():
                self._probe(action)
            case EnvironmentAction():
                self._change(action)
            case AmendAction():
                self._amend(action)
            case WriteAction():
                self.program, self.contrast = action.program, action.contrast
            case RunAction():
                return self._start(action)
            case RefuteAction():
                return self._refute(action)
            case EditAction(file="program"):
                self.program = edit_text(self.program, action)
            case EditAction():
                self.contrast = edit_text(self.contrast, action)
        return self._try(action.change) if isinstance(action, WriteAction | EditAction) else None

    def _look_up(self, wish: SearchAction | ReadAction) -> None:
        self.runner.say("candidates", f"looking into the sources: {contexts.request(wish)}")
        self.notebook.look_up(self.material.sources, wish, self.material.tree)

    def _amend(self, action: AmendAction) -> None:
        """Judge by another exception from now on, once and only before anything has run."""
        reconstruction, old, by = self.written, self.refined.signature, self.written.amendable
        has_run = bool(self.runner.attempts)
        name = action.exception.rsplit(".", 1)[-1]
        # What the runs so far ended with may not become what counts.
        if not by or old is None or (has_run and name in FALSE_STARTS):
            return self._refuse("amend_late")
        issue = self.runner.job.issue
        tree = self.material.tree
        new_reading = interpretation.amend(action.model_dump(), issue, self.refined, tree)
        if isinstance(new_reading, tuple):
            reconstruction.refuse(new_reading)
            return self.notebook.tell(
                shared("not_amended", reasons="; ".join(row.says for row in new_reading))
            )
        assert new_reading.signature is not None
        when = "any run came past its imports" if has_run else "anything had run"
        why = f"amended before {when}: {' '.join(action.reason.split())}"
        readings = reconstruction.record.readings if reconstruction.record is not None else ()
        earlier = readings[:-1] if by == "model" else readings
        additions = (reading(by, old, why), reading("model", new_reading.signature))
        reconstruction.update(readings=(*earlier, *additions), refined=new_reading)
        reconstruction.refuse(new_reading.refusals)
        reconstruction.signature, reconstruction.amendable, self.refined = (
            new_reading.signature,
            "",
            new_reading,
        )
        self.runner = judging(self.runner, self.runner.bug, new_reading.signature)
        says = confirm.describe(new_reading.signature)
        changes = "; ".join(row.says for row in new_reading.refusals)
        return self.notebook.tell(shared("amended", signature=says, changes=changes))

    def _change(self, action: EnvironmentAction) -> None:
        """Build the environment with another package or version. What the host asked for stays,
        and so does what the report states, unless it names the new version too.
        """
        if action.package.strip().lower() == "python":
            return self._change_python(action)
        is_withdrawn = action.version.strip() == WITHDRAWN
        version = "" if is_withdrawn else action.version
        addition = specify.by_model(action.package, version, action.reason, self._imported())
        if addition is None:
            return self._refuse("package_name", package=repr(action.package[:80]))
        base = self._as_first(addition.name)
        if is_withdrawn:
            return self._go_back(base, addition.name)
        present = next((row for row in base.requirements if row.name == addition.name), None)
        is_in_report = bool(action.version) and self._is_in_report(action, addition.name)
        fixed = {PinSource.OPTION} if is_in_report else {PinSource.OPTION, PinSource.ISSUE}
        if present is not None and present.rung in fixed and self._has(present):
            version = present.specifier.removeprefix("==")
            reason = present.reason
            return self._refuse(
                "stated_version", package=present.name, version=version, reason=reason
            )
        present_version = self.environment.version(addition.name)
        if present_version and not action.version and addition.name not in self.additions:
            return self._tell_present(addition.name, present_version)
        spec, notes = self.runner.ports.builder.matched(specify.add(base, addition))
        if refusals := [note for note in notes if note.startswith(f"{addition.name} ")]:
            return self._not_installed(addition.name, "the index", refusals[0])
        try:
            environment = self.runner.build(spec)
        except BuildError as error:
            return self._not_installed(addition.name, "the builder", str(error))
        return self._take(action, addition, spec, environment)

    def _take(
        self,
        action: EnvironmentAction,
        addition: Requirement,
        spec: EnvironmentSpec,
        environment: Environment,
    ) -> None:
        """Go on with an environment that was built for what a model asked for, where it has it."""
        version = environment.version(addition.name)
        if not version:
            return self._not_installed(addition.name, "the environment", "it is left out")
        public = version.partition("+")[0]
        is_as_asked = bool(action.version) and SpecifierSet(addition.specifier).contains(
            public, prereleases=True
        )
        if environment.lock == self.environment.lock and not action.version:
            return self._tell_present(addition.name, version)
        if environment.lock == self.environment.lock and not is_as_asked:
            stays = f"{addition.name} {version} is what can be had here"
            request = f"{addition.name} {action.version}"[:80]
            return self._not_installed(request, "the environment", stays)
        before = self.environment
        self.additions.add(addition.name)
        self._move(spec, environment, addition.name)
        if action.version and not is_as_asked:
            note = next((row.note for row in environment.claims if row.name == addition.name), "")
            why = note or "what can be had here"
            fields = {"name": addition.name, "asked": action.version, "version": version}
            self.notebook.tell(shared("asked_row", why=why, **fields))
        else:
            self.notebook.tell(shared("installed", name=addition.name, version=version), "")
        return self._tell_moved(before, addition.name)

    def _as_first(self, name: str) -> EnvironmentSpec:
        """What is asked for now, with a package as it was before a model asked for it."""
        if name not in self.additions:
            return self.spec
        first = tuple(row for row in self.first.requirements if row.name == name)
        rows = tuple(row for row in self.spec.requirements if row.name != name)
        return self.spec.model_copy(update={"requirements": (*rows, *first)})

    def _go_back(self, spec: EnvironmentSpec, name: str) -> None:
        """Take back what a model asked for."""
        if name not in self.additions:
            return self._refuse("withdrawn", package=name)
        before = self.environment
        self.additions.discard(name)
        self._move(spec, self.runner.build(spec))
        version = self.environment.version(name) or shared("not_there")
        self.notebook.tell(shared("taken_back", name=name, version=version))
        return self._tell_moved(before, name)

    def _change_python(self, action: EnvironmentAction) -> None:
        """Build the environment for another Python, unless the host or the report says which."""
        request, minor = f"Python {action.version}"[:80], versions.python_minor(action.version)
        if not action.version:
            return self._tell_present("Python", self.environment.python)
        stated = evidence.gather_claims(self.runner.bug).get("python", [])
        is_other = all(versions.python_minor(claim.version) != minor for claim in stated)
        if self.runner.job.environment.python or (stated and is_other):
            version, reason = self.environment.python, self.spec.python_why
            return self._refuse("stated_version", package="python", version=version, reason=reason)
        minors = self.runner.ports.builder.pythons()
        if minor not in minors:
            return self._refuse("python", request=request, pythons=", ".join(minors))
        why = f"a model asked for it: {action.reason}".removesuffix(": ")
        changed = self.spec.model_copy(update={"python": minor, "python_why": why})
        spec, _ = self.runner.ports.builder.matched(changed)
        try:
            environment = self.runner.build(spec)
        except BuildError as error:
            return self._not_installed(request, "the builder", str(error))
        if versions.python_minor(environment.python) != minor:
            stays = f"Python {environment.python} is what can be had here"
            return self._not_installed(request, "the environment", stays)
        before = self.environment
        self._move(spec, environment)
        self.notebook.tell(shared("installed", name="Python", version=environment.python), "")
        return self._tell_moved(before, "")

    def _tell_present(self, name: str, version: str) -> None:
        """Say that what is asked for is there, and which version."""
        self.notebook.tell(shared("installed_already", name=name, version=version), "")

    def _tell_moved(self, before: Environment, name: str) -> None:
        """Say which of the packages that were asked for have another version than before, beside
        the one that was changed.
        """
        for row in self.spec.requirements:
            version = self.environment.version(row.name)
            if row.name != name and version and before.version(row.name) not in {"", version}:
                self.notebook.tell(shared("installed", name=row.name, version=version), "")

    def _is_in_report(self, action: EnvironmentAction, name: str) -> bool:
        """Whether the report names a version, in whatever form ("4.0.0beta" for 4.0.0b0)."""
        claims = evidence.gather_claims(self.runner.bug).get(evidence.claim_name(name), [])
        is_claimed = any(releases.same(claim.version, action.version) for claim in claims)
        return is_claimed or markdown.mentions(action.version, self.runner.job.issue)

    def _has(self, stated: Requirement) -> bool:
        """Whether the release that is stated is what is installed: one that no index has is not."""
        version = self.environment.version(stated.name)
        return bool(stated.specifier and version) and SpecifierSet(stated.specifier).contains(
            version, prereleases=True
        )

    def _not_installed(self, package: str, source: str, reason: str) -> None:
        says = refuse("not_installed", package=package, reason=one_line(reason)[:300])
        self.written.refuse((says,))
        text = fence(source, reason[:400])
        self.notebook.tell(shared("gate_not_installed", package=package, reason=text))

    def _imported(self) -> tuple[str, ...]:
        """What the program imports, and the names that the report is about."""
        return (*symbols.imported_modules(self.program), *self.refined.api)

    def _move(self, spec: EnvironmentSpec, environment: Environment, *more: str) -> None:
        """Go on in another environment, with the sources as they are there."""
        self.spec, before = spec, self.material
        if environment.id == before.environment.id:
            return
        self.material = before.moved(spec, environment, more)
        self.notebook.contexts = self.material.contexts

    def _probe(self, action: ProbeAction) -> None:
        """Run a snippet like a program. What it prints proves nothing."""
        if self.without("probe"):
            return self._refuse("no_probes")
        self.written.amendable = ""
        job = self.runner.job
        script = self._script(action.code, "a model's probe")
        with self.runner.stage("search", "running a probe"):
            spec = launch.spec(
                script, self.environment, job, self.runner.signature, job.limits.seed, "probe"
            )
            result = self.runner.execute(spec)
        text = prompt_text.probe_text(result, action.code)
        return self.notebook.tell(text, prompt_text.probe_text(result))

    def _try(self, change: str) -> SearchResult | None:
        """Check the program and run it. One that is refused costs a call and no try."""
        record = self.written.record or Reconstruction()
        self.written.update(changes=(*record.changes, change))
        if not self.without("checks") and (refusals := self._objections()):
            self.written.refuse(refusals)
            wrong = [refusal.says for refusal in refusals]
            self.runner.say("candidates", "the program was not run: " + wrong[0])
            brief = shared("earlier_refused", objection=wrong[0])
            self.notebook.tell(prompt_text.refusal_text(wrong), brief)
            return None
        script = self._script(self.program, "a program written by a model")
        return self._run(script, change or "written by a model")

    def _script(self, source: str, origin: str) -> Script:
        """A program of the model's, beside the files of the repository where it runs in one."""
        if self.material.tree:
            return tree_programs.beside(source, origin)
        return Script(files={"repro.py": source}, origin=origin, author="model")

    def _start(self, action: RunAction) -> SearchResult | None:
        """Start one of the repository's own programs."""
        script = tree_programs.of_command(action.command, self.material.tree)
        if script is None:
            self._refuse("command", command=one_line(action.command)[:200])
            return None
        record = self.written.record or Reconstruction()
        self.written.update(changes=(*record.changes, action.change))
        return self._run(script, action.change or "started by a model")

    def _run(self, script: Script, change: str) -> SearchResult | None:
        """Run a program, and count it as a try; the result where it shows the failure."""
        self.programs += 1
        result = recovery.run(self.runner, self.spec, script, change)
        if not (script.is_repositorys and result.judgement.is_false_start):
            self.written.amendable = ""
        self._move(result.spec, result.environment)
        if not script.is_repositorys:
            self.program = result.script.source
        if result.judgement.match is Match.MATCHED:
            why = "" if script.is_repositorys else self._confounded(result)
            if not why:
                return result
            self.notebook.ran(why, why.partition("\n")[0])
            return None
        self.last = result
        self.notebook.ran(prompt_text.outcome(result.run), prompt_text.earlier(result.run.attempt))
        return None

    def _objections(self) -> list[Refusal]:
        device = self.runner.job.environment.device
        weights = self.environment.operator_files.weights
        files = self.material.tree
        wrong = list(
            objections(self.program, self.refined, device=device, weights=weights, files=files)
        )
        if (
            self.refined.needs_contrast
            and not self.contrast.strip()
            and not self.without("contrast")
        ):
            wrong.append(refuse("no_twin"))
        return wrong

    def _confounded(self, result: SearchResult) -> str:
        """A note that the failure may have another cause than the reported one; "" when the twin
        passes or none is needed. A twin that was not asked for and ends otherwise is no reason.
        """
        if not self.contrast.strip() or self.without("contrast"):
            return ""
        origin = "the contrast program, without the reported point"
        twin = self._script(self.contrast, origin)
        seed = self.runner.job.limits.seed
        with self.runner.stage("search", "running the contrast program, which must not fail"):
            run = self.runner.run(twin, result.environment, seed, "contrast", "must not fail")
        judgement = run.judgement
        passed = run.match is Match.PASSED and not run.attempt.execution.exit_code
        hang = self.refined.signature
        if isinstance(hang, HangSignature) and run.attempt.execution.seconds > hang.bound_s / 2:
            passed = False  # what ends a little sooner tells no hang from a slow program
        same = judgement.match is Match.MATCHED  # what counts does not tell the two apart
        if passed or not (same or self.refined.needs_contrast):
            text, evidence = "without the reported point it works", judgement.reason
            self.written.claims.append(Claim(text=text, holds=passed or None, evidence=evidence))
            return ""
        if same:
            self.refined = self.refined.model_copy(update={"needs_contrast": True})
        self.written.refuse((refuse("twin", reason=judgement.reason),))
        return shared("confounded", reason=judgement.reason, outcome=prompt_text.outcome(run))
