"""What a run lacked that only the operator or the reporter has: a file that the program opens, the
weights that it loads; and what of the operator's it did get.
"""

import posixpath
import re
from collections.abc import Iterator, Mapping

from bot.environment import missing
from bot.environment.setup_failures import FILE_RULES
from bot.issues import triage
from bot.issues.observe import flatten
from bot.kernel import launch
from bot.kernel.attempt import Failure, Judgement, Script
from bot.kernel.bug import Issue
from bot.kernel.environment import Environment
from bot.kernel.report import AnyVerdict, NeedsInfo
from bot.kernel.session import SearchResult
from bot.kernel.trees import read_tree

WRITES = re.compile(
    r"\bopen\(.*['\"][wax]\+?b?\+?['\"]|\.(?:save\w*|to_(?:csv|json|pickle|parquet)|dump|mkdir)\("
)
"""Code that writes a file."""
_HOME = re.compile(r"^(?:/home/|/Users/|[A-Za-z]:\\+Users\\)")
_ABSOLUTE = re.compile(r"^(?:/|[A-Za-z]:\\)")
_LONGEST, _LARGEST = 4_000, 200_000  # of a message in characters, of a file in bytes
_TEXTS = (".py", ".yaml", ".yml", ".json", ".toml", ".sh")
_DATA_SET = re.compile(r"/datasets/(?:\w+/)*(?P<module>\w+)\.py (?:(?P<owner>[A-Z]\w*)\.)?")
"""A frame in the data sets of a library: the file, and the class of the method."""
_WORD = re.compile(r"[\w./-]+")
_PROVIDE = "an operator can provide it with `data:` in .github/reprise.yml"


def lacking(result: SearchResult, issue: Issue) -> AnyVerdict | None:
    """The verdict on a program that a missing file or missing weights ended; None where the run
    does not show which.
    """
    judgement, script, environment = result.judgement, result.script, result.environment
    failure = judgement.setup_failure
    if failure is not None and failure.id in FILE_RULES and script.command and environment.tree:
        return _without_file(judgement, script, environment, issue)
    is_offline = failure is not None and failure.id == "offline"
    name = _weights(judgement) if is_offline else ""
    if not name:
        is_elsewhere = failure is not None and failure.id == "read-only"
        has_none = is_offline or is_elsewhere  # it downloads to a folder beside the clone
        return _without_data_set(judgement, script, environment) if has_none else None
    if name in environment.operator_files.weights:
        reason = f"the operator's cache of weights has `{name}`, but not every file of it"
        return triage.needs_reader(reason)
    reason = (
        f"the program loads the weights `{name}`, which are not at hand; an operator can put them "
        "into REPRISE_HUB_DIR"
    )
    if not script.command:  # a program of a report's own may do with random ones
        return triage.needs_reader(reason)
    return NeedsInfo(reason=reason, items=(f"the weights `{name}`",), from_operator=True)


def _without_data_set(
    judgement: Judgement, script: Script, environment: Environment
) -> AnyVerdict | None:
    """The verdict on a repository's program that a library of data sets could not serve."""
    rows = (
        _DATA_SET.search(f"/{frame.module_path} {frame.function}")
        for failure in _failures(judgement)
        for frame in failure.frames
        if frame.package
    )
    match = next(filter(None, rows), None)
    if match is None or not (script.command and environment.tree):
        return None
    name = match["owner"] or match["module"]
    reason = f"the program downloads the data set `{name}`, which is not available here; {_PROVIDE}"
    return NeedsInfo(reason=reason, items=(f"the data set `{name}`",), from_operator=True)


def _without_file(
    judgement: Judgement, script: Script, environment: Environment, issue: Issue
) -> AnyVerdict | None:
    path = missing.in_tree(_path(judgement), script.folder)
    tree = read_tree(environment.tree)
    if not path or any(name == path or name.startswith(f"{path}/") for name in tree):
        return None
    if _HOME.match(path) and path in f"{issue.title}\n{issue.body}":
        reason = f"the program opens `{path}`, a file of the reporter's own"
        return NeedsInfo(reason=reason, items=(f"`{path}`, or a program that makes one like it",))
    if _is_written(judgement):
        reason = f"the program writes to `{path}`, whose folder the repository does not contain"
        return triage.needs_reader(reason)
    reason = _why(path, environment, tree)
    return NeedsInfo(reason=reason, items=(f"`{path}`",), from_operator=True)


def folder_to_write(judgement: Judgement, script: Script, environment: Environment) -> str:
    """The folder, by its place in the tree, that a program ended for want of as it wrote a file;
    "" where it was no such failure, or the folder is there.
    """
    path = missing.in_tree(_path(judgement), script.folder)
    if not path or not _is_written(judgement) or _ABSOLUTE.match(path):
        return ""
    is_folder = any("Parent directory" in message for message in _messages(judgement))
    folder = path if is_folder else posixpath.dirname(path)
    names = {*read_tree(environment.tree), *script.files}
    is_there = any(name.startswith(f"{folder}/") for name in names)
    return "" if not folder or is_there or folder.startswith("..") else folder


def _is_written(judgement: Judgement) -> bool:
    """Whether a program ended where it writes a file."""
    frame = judgement.failure.script_frame if judgement.failure is not None else None
    return frame is not None and bool(WRITES.search(frame.code))


def _why(path: str, environment: Environment, tree: Mapping[str, bytes]) -> str:
    if _ABSOLUTE.match(path):
        return f"the program opens `{path}`, which lies outside the repository"
    opens = f"the program opens `{path}`, which the repository does not contain"
    data = environment.operator_files.data
    one = next((row for row in data if f"{path}/".startswith(f"{row.path}/")), None)
    if one is None:
        return f"{opens}; {_PROVIDE}"
    if one in launch.data_for(environment, tree):
        return f"the program opens `{path}`, which the operator's `{one.name}` does not contain"
    if not one.source:
        return f"{opens}; the configuration names `{one.name}` for it, which this worker lacks"
    return f"{opens}; the repository's own files at `{one.path}` hide the operator's `{one.name}`"


def _failures(judgement: Judgement) -> list[Failure]:
    return flatten((judgement.failure,)) if judgement.failure is not None else []


def _messages(judgement: Judgement) -> list[str]:
    what = judgement.setup_failure.what if judgement.setup_failure is not None else ""
    return [*(failure.message[:_LONGEST] for failure in _failures(judgement)), what]


def _path(judgement: Judgement) -> str:
    """The missing file as the program asked for it, "" where nothing says it."""
    frame = judgement.failure.script_frame if judgement.failure is not None else None
    return missing.path_in(_messages(judgement), frame.code if frame is not None else "")


def _weights(judgement: Judgement) -> str:
    """The name of the weights that a run could not load, "" where nothing says it."""
    codes = [
        frame.code
        for failure in _failures(judgement)
        for frame in reversed(failure.frames)
        if not frame.package
    ]
    return missing.weights_in(_messages(judgement), codes)


def data_notes(environment: Environment, tree: Mapping[str, bytes]) -> Iterator[str]:
    """What programs of a tree get of the operator's data, and what not and why."""
    yield from environment.operator_files.problems
    mounts = launch.data_for(environment, tree)
    for one in environment.operator_files.data:
        if one.source and one not in mounts:
            why = f"the repository has files at `{one.path}`"
            yield f"the data `{one.name}` for `{one.path}` is left out: {why}"
    if names := ", ".join(f"`{one.name}` at `{one.path}`" for one in mounts):
        yield f"the operator's data, which programs can only read: {names}"


def weights_note(script: Script, environment: Environment) -> str:
    """The weights of the operator's cache that a program names, as a sentence; "" for none."""
    weights = environment.operator_files.weights
    in_tree = weights and script.command and environment.tree
    tree = read_tree(environment.tree) if in_tree else {}
    words = (
        {*script.command, *_WORD.findall("\n".join(script.files.values()))} if weights else set()
    )
    for name, data in tree.items():
        if name.endswith(_TEXTS) and len(data) <= _LARGEST:
            words.update(_WORD.findall(data.decode("utf-8", "replace")))
    names = [f"`{name}`" for name in weights if name in words]
    return f"weights from the operator's cache: {', '.join(names[:10])}" if names else ""
