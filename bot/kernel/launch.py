"""Program + Environment + seed → RunSpec: how a program is started, the same way every time."""

import json
import secrets
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from importlib import resources
from pathlib import Path, PurePosixPath
from typing import Literal

from bot.kernel.attempt import Script
from bot.kernel.bug import AnySignature, HangSignature, WarningSignature, members_of, trains
from bot.kernel.environment import DataMount, Environment
from bot.kernel.job import JobOptions
from bot.kernel.training_types import TrainingProgram
from bot.kernel.trees import read_tree
from sandbox.port import PATH, Limits, Mount, RunSpec, WorkspaceSpec, overlap

_FOLDER = ".reprise"
PROBES = ("sitecustomize.py", "_reprise_trace.py")
KEY = f"{_FOLDER}/key"
"""What the probe signs its traces with; it is gone before the program starts."""
TRAINING = f"{_FOLDER}/training-*.jsonl"
"""What the training probe writes, a file for each process that trains."""
TRIAL = f"{_FOLDER}/_reprise_trial.py"
"""The file that makes a run one trial of a repair."""
SEARCH_PATH = "PYTHONPATH"
"""The variable of a script with the folders of its tree to look for modules in, by their places in
it.
"""
CUDA = "REPRISE_CUDA"
"""The variable of a script whose CUDA calls are answered on the CPU. With the value "available" its
own files are told that there is a GPU.
"""
CUDA_PROBE = f"{_FOLDER}/_reprise_cuda.py"
"""The file that answers them."""
STEPS = f"{_FOLDER}/_reprise_steps.py"
"""The file that runs other commands before the program."""
SPLIT = "trace-split-"
"""The beginning of the file which says that the rows that a program tests on were split."""
Part = Literal["guide", "held-out", "whole"]
"""Of the rows that a program tests on."""
_TRAINING_MB = 32
_SETS = f"{_FOLDER}/datasets"
"""Prepared data sets, by links: the library writes locks beside what it reads."""
_PLACEHOLDERS = {".gitkeep", ".gitignore", ".keep"}
_GRACE_S = 15.0
_PATIENCE = 3.0
# No run reaches a network, so libraries are told to fail at once instead of retrying; nothing opens
# a window or phones home, and no frame of a traceback is hidden.
_QUIET = {
    "PYTHONUNBUFFERED": "1",
    "PYTHONFAULTHANDLER": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONIOENCODING": "utf-8",
    "MPLBACKEND": "Agg",
    "HF_HUB_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_DATASETS_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "WANDB_MODE": "offline",
    "NEPTUNE_MODE": "offline",
    "SWANLAB_MODE": "offline",
    "CLEARML_OFFLINE_MODE": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "TF_CPP_MIN_LOG_LEVEL": "2",
    "JAX_TRACEBACK_FILTERING": "off",
    "COLUMNS": "200",
}


@cache
def probe(name: str) -> bytes:
    """A file that is copied into the sandbox."""
    return resources.files("sandbox").joinpath("probe", name).read_bytes()


def spec(
    script: Script,
    environment: Environment,
    options: JobOptions,
    signature: AnySignature,
    seed: int,
    label: str,
) -> RunSpec:
    """One run of a script with a seed. A hang is waited for as long as its signature says,
    anything else as long as the options say: longer where the end of a training counts.
    """
    tree = _tree(environment) if script.command and environment.tree else {}
    own_files = {
        name: text.encode("utf-8", "replace")
        for name, text in script.files.items()
        if not tree or name in script.edited  # the others as the commit has them
    }
    files = _with_probe_names({**tree, **own_files})
    if CUDA in script.variables:
        files[CUDA_PROBE] = probe("cuda_on_cpu.py")
    data = data_for(environment, files) if tree else ()
    files = {name: text for name, text in files.items() if not _is_below(name, data)}
    search_paths = _own_search_paths(script) if tree else []
    own_variables = {k: v for k, v in script.variables.items() if k != SEARCH_PATH}
    variables = {**_variables(environment, options, seed), **own_variables}
    if tree and script.command[0] != "-m" and _is_about_imports(signature):
        # Python itself puts only the folder of the script on the path.
        own = [environment.tree, f"{environment.tree}/src"]
        paths = [one for one in variables["PYTHONPATH"].split(":") if one not in own]
        variables["PYTHONPATH"] = ":".join(paths)
    words, up = (*(script.command or (script.entry,)),), ""
    if script.folder:
        up = "../" * len(PurePosixPath(script.folder).parts)
        variables["REPRISE_TRACE"] = up + _FOLDER
        variables["PYTHONPATH"] = up + variables["PYTHONPATH"]
        if "HF_DATASETS_CACHE" in variables:
            variables["HF_DATASETS_CACHE"] = up + variables["HF_DATASETS_CACHE"]
    if search_paths:
        probes, *others = variables["PYTHONPATH"].split(":")
        own_places = [f"{up}{path}" for path in search_paths]
        variables["PYTHONPATH"] = ":".join([probes, *own_places, *others])
    if script.steps:
        files[STEPS] = probe("steps.py")
        words = ("-S", f"{up}{STEPS}", json.dumps(script.steps), *words)
    limit_s = options.limits.training_s if trains(signature) else options.limits.timeout_s
    limits = Limits(wall_s=limit_s, patience=_PATIENCE)
    hang = next(
        (member for member in members_of(signature) if isinstance(member, HangSignature)), None
    )
    if hang is not None:
        idle = hang.bound_s if hang.idle else None
        # The stacks that are printed half-way count as progress: an idle run may take one and a
        # half bounds, after its imports.
        wall = (
            max(options.limits.timeout_s, 1.5 * hang.bound_s + _GRACE_S)
            if hang.idle
            else hang.bound_s + _GRACE_S
        )
        limits = Limits(wall_s=wall, patience=_PATIENCE, idle_s=idle)
        # Early, because what it prints counts as progress and starts the bound anew.
        variables["REPRISE_STACKS_AFTER"] = f"{hang.bound_s / 2:g}"
    if filters := _warning_filters(signature):
        variables["PYTHONWARNINGS"] = filters
    return RunSpec(
        argv=(environment.interpreter, *words),
        files=files,
        links={**_sets(environment), **{one.path: one.source for one in data}},
        env=variables,
        cwd=script.folder,
        mounts=_mounts(environment, *(one.source for one in data)),
        limits=limits,
        artifacts=(f"{_FOLDER}/trace-*.json", f"{_FOLDER}/end-*.json"),
        device=options.environment.device,
        label=label,
    )


def _own_search_paths(script: Script) -> list[str]:
    """The folders of a program's own copy of its tree to look for modules in. The copy differs from
    the commit's files where a fix edited them; beside the program itself it is looked in anyhow.
    """
    folder = PurePosixPath(script.entry).parent
    is_elsewhere = any(not PurePosixPath(path).is_relative_to(folder) for path in script.edited)
    paths = [".", "src"] if is_elsewhere else []
    return [*paths, *filter(None, script.variables.get(SEARCH_PATH, "").split(":"))]


def _is_about_imports(signature: AnySignature) -> bool:
    """Whether the reported failure is that something cannot be imported."""
    names = {getattr(member, "exception", "") for member in members_of(signature)}
    return bool(names & {"ImportError", "ModuleNotFoundError"})


def data_for(environment: Environment, tree: Iterable[str]) -> tuple[DataMount, ...]:
    """The operator's data that a program of a tree gets: all but what would hide a file of it. A
    file that only keeps a folder in git is none.
    """
    files = [path for path in tree if PurePosixPath(path).name not in _PLACEHOLDERS]
    return tuple(
        one
        for one in environment.operator_files.data
        if one.source and not any(overlap(one.path, path) for path in files)
    )


def _sets(environment: Environment) -> dict[str, str]:
    return {f"{_SETS}/{PurePosixPath(path).name}": path for path in environment.operator_files.sets}


def _is_below(path: str, data: tuple[DataMount, ...]) -> bool:
    return any(path.startswith(f"{one.path}/") for one in data)


def _mounts(environment: Environment, *others: str) -> tuple[Mount, ...]:
    """What every run of an environment can read, and what this one can."""
    hub = environment.operator_files.hub
    paths = dict.fromkeys((*environment.mounts, *([hub] if hub else []), *others))
    return tuple(Mount(Path(path)) for path in paths)


def _tree(environment: Environment) -> dict[str, bytes]:
    """The files of the commit, but for any that would lie among those of the probe."""
    files = read_tree(environment.tree)
    return {name: data for name, data in files.items() if not name.startswith(f"{_FOLDER}/")}


def _with_probe_names(files: dict[str, bytes]) -> dict[str, bytes]:
    """The files of a program with the probe beside them."""
    probes = {f"{_FOLDER}/{name}": probe(name) for name in PROBES}
    return {**files, **probes, KEY: secrets.token_hex(16).encode()}


def training_spec(
    program: TrainingProgram, environment: Environment, options: JobOptions, seed: int
) -> RunSpec:
    """One run of a program that also writes down how it trains."""
    run = RunSpec(
        argv=(environment.interpreter, program.entry, *program.arguments),
        files=_with_probe_names(program.files),
        links=_sets(environment),
        env=_variables(environment, options, seed),
        mounts=_mounts(environment),
        artifacts=(f"{_FOLDER}/trace-*.json", f"{_FOLDER}/end-*.json"),
        device=options.environment.device,
        label="training",
    )
    return with_training_probe(run, options.limits.training_s)


def with_training_probe(run: RunSpec, limit_s: float) -> RunSpec:
    """The run with the probe that writes down how it trains, for so many seconds."""
    folder = resources.files("sandbox").joinpath("probe", "training")
    probes = {
        f"{_FOLDER}/_reprise_training/{file.name}": file.read_bytes()
        for file in folder.iterdir()
        if file.name.endswith(".py")
    }
    return replace(
        run,
        files={**run.files, **probes},
        env={**run.env, "REPRISE_TRAINING": "1"},
        limits=replace(run.limits, wall_s=limit_s, artifact_mb=_TRAINING_MB),
        artifacts=(*run.artifacts, TRAINING),
    )


def workspace_spec(
    environment: Environment, options: JobOptions, limits: Limits, total_s: float, label: str
) -> WorkspaceSpec:
    """A workspace whose programs find what an environment has, and the operator's data."""
    variables = _variables(environment, options, options.limits.seed)
    probes = {"PYTHONPATH", "REPRISE_TRACE", "REPRISE_SEED"}
    data = (one.source for one in environment.operator_files.data if one.source)
    return WorkspaceSpec(
        env={name: value for name, value in variables.items() if name not in probes},
        mounts=_mounts(environment, *data),
        limits=limits,
        total_s=total_s,
        device=options.environment.device,
        label=label,
    )


def trial_spec(
    program: TrainingProgram,
    environment: Environment,
    options: JobOptions,
    part: Part,
    seed: int,
    *,
    limit_s: float,
    with_probe: bool,
) -> RunSpec:
    """One training of a repair, on a part of the rows that the program tests on; `probed`, with
    the training probe.
    """
    run = training_spec(program, environment, options, seed)
    unprobed_files = {
        name: text for name, text in run.files.items() if "_reprise_training" not in name
    }
    env = {**run.env, "REPRISE_TRIAL": part}
    if not with_probe:
        env.pop("REPRISE_TRAINING")
    return replace(
        run,
        files={
            **(run.files if with_probe else unprobed_files),
            TRIAL: probe("trial.py"),
        },
        env=env,
        limits=replace(run.limits, wall_s=limit_s),
        label="repair",
    )


def _warning_filters(signature: AnySignature) -> str:
    """What makes a reported warning visible: left alone, Python hides a library's deprecations,
    which the reporter saw, and shows a warning once for each place.
    """
    warning_signatures = [
        member for member in members_of(signature) if isinstance(member, WarningSignature)
    ]
    if not warning_signatures:
        return ""
    return "always" if any(member.at_least > 1 for member in warning_signatures) else "default"


def reached_spec(
    script: Script,
    environment: Environment,
    options: JobOptions,
    signature: AnySignature,
    functions: tuple[tuple[str, str], ...],
) -> RunSpec:
    """One run that also writes down which of the wanted functions (file, name) it enters, which
    lines of the program run, which of its files are opened, and where its modules lie.
    """
    run = spec(script, environment, options, signature, options.limits.seed, "reached")
    return replace(
        run,
        files={**run.files, f"{_FOLDER}/_reprise_reached.py": probe("reached.py")},
        env={**run.env, "REPRISE_WANTED": json.dumps(functions), "REPRISE_TREE": environment.tree},
        artifacts=(f"{_FOLDER}/reached-*.json",),
    )


def names_spec(
    environment: Environment, options: JobOptions, names: tuple[str, ...], modules: tuple[str, ...]
) -> RunSpec:
    """The probe that finds where names can be imported from."""
    return RunSpec(
        argv=(environment.interpreter, "names.py", ",".join(names), ",".join(modules)),
        files={"names.py": probe("names.py")},
        env=_variables(environment, options, 0),
        mounts=_mounts(environment),
        limits=Limits(wall_s=options.limits.timeout_s),
        label="names",
    )


def import_spec(
    environment: Environment, options: JobOptions, names: tuple[str, ...], modules: tuple[str, ...]
) -> RunSpec:
    """The probe that imports what distributions install."""
    run = names_spec(environment, options, names, modules)
    argv = (environment.interpreter, "check_imports.py", *run.argv[2:])
    files = {"check_imports.py": probe("check_imports.py")}
    return replace(run, argv=argv, files=files, label="import")


def _variables(environment: Environment, options: JobOptions, seed: int) -> dict[str, str]:
    variables = {**_QUIET, **environment.operator_files.variables, **environment.variables}
    path = [_FOLDER, *filter(None, [environment.variables.get("PYTHONPATH", "")])]
    variables |= {
        "PYTHONPATH": ":".join(path),
        # What starts `python`, or a console script, means those of its own environment.
        "PATH": f"{PurePosixPath(environment.interpreter).parent}:{PATH}",
        "PYTHONHASHSEED": str(seed % 2**32),
        "REPRISE_TRACE": _FOLDER,
        "REPRISE_SEED": str(seed),
        "OMP_NUM_THREADS": "2",
        # Threads that spin while they wait take the processor from the other runs of a busy host:
        # a small training took five times as long.
        "OMP_WAIT_POLICY": "PASSIVE",
        "KMP_BLOCKTIME": "0",
    }
    if environment.operator_files.sets:
        variables["HF_DATASETS_CACHE"] = _SETS
    if options.environment.device == "cpu":
        variables["CUDA_VISIBLE_DEVICES"] = ""
    return variables
