"""The settings of a program that have it run on the CPU or end sooner."""

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from bot.environment.imports import apply
from bot.issues import script_fixes
from bot.issues.script_fixes import DEVICE, NO_GPU, TOO_LONG
from bot.kernel.attempt import Script
from bot.kernel.bug import ScriptFix
from bot.program.settings import DeclaredOption, Setting, in_tree, settings_of, text_of


@dataclass(frozen=True, slots=True)
class _Change:
    """A setting with the words, or the text of a file, that replace it."""

    setting: Setting
    words: tuple[str, ...]
    what: str


def to_cpu(script: Script, tree: Mapping[str, bytes]) -> Script:
    """The program with each of its own settings that asks for a GPU asking for the CPU; the very
    script when it has none.
    """
    for settings in settings_of(script, tree):
        changes = [change for one in settings if (change := _cpu_change(one))]
        if changes:
            return _apply(script, tree, changes, NO_GPU)
    return script


def shorten(script: Script, tree: Mapping[str, bytes]) -> Script:
    """The program with less to do by its own settings: one epoch, else few steps and samples, else
    a small batch, else by the counts in its text; the very script when nothing is left to lower.
    """
    narrower_and_wider = list(settings_of(script, tree))
    for level in _LEVELS:
        for settings in narrower_and_wider:
            changes = [change for one in settings if (change := _shorter_change(one, level))]
            if changes:
                return _apply(script, tree, changes, TOO_LONG)
    return lower_constants(script, tree)


def lengths(script: Script, tree: Mapping[str, bytes]) -> tuple[str, ...]:
    """What a program's own settings call the numbers of its epochs and rounds."""
    names = [
        f"{setting.name} in {setting.file}" if setting.file else setting.name
        for settings in settings_of(script, tree)
        for setting in settings
        for level in _LEVELS[:2]
        if _shorter_change(setting, level)
    ]
    return tuple(dict.fromkeys(names))


def lower_constants(script: Script, tree: Mapping[str, bytes]) -> Script:
    """The program with the counts in its own file lowered, and in Python files that it is given;
    the very script when there are none.
    """
    files, fixes, edited = dict(script.files), script.fixes, script.edited
    paths = (in_tree(word, script, tree, (".py",)) for word in script.command[1:])
    for path in dict.fromkeys((script.entry, *filter(None, paths))):
        files[path], more = script_fixes.shorten(text_of(path, script, tree))
        fixes, edited = (*fixes, *more), (*edited, *((path,) if more else ()))
    files = {path: files[path] for path in (*script.files, *edited)}
    update = {"files": files, "fixes": fixes, "edited": tuple(dict.fromkeys(edited))}
    return script.model_copy(update=update) if fixes != script.fixes else script


def _apply(script: Script, tree: Mapping[str, bytes], changes: list[_Change], why: str) -> Script:
    """A script with its settings changed, and a fix for each."""
    words, files = list(script.command), dict(script.files)
    edits = dict[str, list[tuple[int, int, str]]]()
    places = sorted((one.setting.start, at) for at, one in enumerate(changes))
    for _, at in reversed(places):
        change, setting = changes[at], changes[at].setting
        if setting.file:
            text = change.words[0]
            edits.setdefault(setting.file, []).append((setting.start, setting.end, text))
        else:
            words[setting.start : setting.end] = change.words
    for path, rows in edits.items():
        files[path] = apply(text_of(path, script, tree), rows)
    fixes = tuple(ScriptFix(what=what, why=why) for what in dict.fromkeys(c.what for c in changes))
    update = {"command": tuple(words), "files": files, "fixes": (*script.fixes, *fixes)}
    edited = tuple(dict.fromkeys((*script.edited, *edits)))
    return script.model_copy(update={**update, "edited": edited})


# What a setting says about the device, and what says that there is none.

_DEVICES = frozenset({"device", "accelerator", "device_type", "device_name"})
_GPU = re.compile(r"(?:use_|with_|enable_|on_)?(?:cuda|gpu)s?")
_CPU = re.compile(
    r"(?:no|not|disable|without)_?(?:use_)?(?:cuda|gpu)s?|(?:use_|force_|on_)?cpu(?:_?only)?"
)
_COUNTS = frozenset({"gpus", "num_gpus", "n_gpus", "ngpus", "n_gpu", "ngpu", "num_gpu"})
_IDS = frozenset({"gpu", "gpu_id", "gpu_ids", "gpuid", "gpu_idx", "cuda", "cuda_id", "cuda_device"})
_TRUE = frozenset({"true", "yes", "on"})
_FALSE = frozenset({"false", "no", "off", "0"})
_NUMBERS = re.compile(r"\d+(?:\s*,\s*\d+)*")


def _cpu_change(setting: Setting) -> _Change | None:
    option = setting.option
    if option.is_switch or (setting.is_given and setting.head and not setting.value):
        return _cpu_switch(setting)
    new = _cpu_value(setting.plain, setting.value.strip().lower(), option)
    if new is None or new == setting.value or (option.choices and new not in option.choices):
        return None
    return _valued(setting, new)


def _cpu_switch(setting: Setting) -> _Change | None:
    option, name, off = setting.option, setting.plain, setting.option.off
    if setting.is_given:
        words = (off,) if off else ()
        what = f"{off} instead of {setting.name}" if off else f"without {setting.name}"
        return _Change(setting, words, what) if _GPU.fullmatch(name) else None
    if _CPU.fullmatch(name) and option.default != "True":
        return _Change(setting, (setting.name,), f"with {setting.name}")
    if _GPU.fullmatch(name) and option.default == "True" and off:
        return _Change(setting, (off,), f"with {off}")
    return None


def _cpu_value(name: str, value: str, option: DeclaredOption) -> str | None:
    """What stands for the CPU in place of a value; None where that asks for no GPU."""
    is_number = bool(_NUMBERS.fullmatch(value))
    if DEVICE.match(value) or (name == "device" and is_number and "cpu" in option.about):
        return "cpu"
    if name in _DEVICES and not value and option.names:
        return "cpu"
    if _CPU.fullmatch(name) and value in _FALSE:
        return "1" if is_number else "True"
    if _GPU.fullmatch(name) and value in _TRUE:
        return option.false
    if is_number and name in _IDS | _COUNTS and "-1" in option.about:
        return "-1"
    is_count = name in _COUNTS or (_GPU.fullmatch(name) and name not in _IDS)
    return "0" if is_count and value.isdecimal() else None


def _valued(setting: Setting, new: str) -> _Change:
    """A change of a value: `--device cpu instead of cuda`."""
    before = f" instead of {setting.value[:60]}" if setting.value else ""
    if setting.file:
        text = new if setting.quote else new.lower()
        what = f"{setting.name[-80:]}: {text}{before} in {setting.file}"
        return _Change(setting, (f"{setting.quote}{text}{setting.quote}",), what)
    words = (*setting.head, f"{setting.prefix}{new}")
    return _Change(setting, words, f"{shlex.join(words)[:200]}{before}")


# How much a setting lets the program do.

_Level = tuple[tuple[re.Pattern[str], int], ...]
_OF = r"(?:(?:max|num|n|nb|total|train|training|number_of|limit)_?)*"
_EPOCHS = re.compile(rf"{_OF}(?:n?epochs?(?:_decay)?|epoch_num)")
_ROUNDS = re.compile(
    rf"{_OF}n?(?:steps?(?:_per_epoch)?|iters?|iterations?|updates|timesteps|episodes|rounds|trials)"
)
_SAMPLES = re.compile(
    rf"{_OF}(?:(?:val|eval|test)_)?(?:samples|examples|images|batches|sequences|instances|items)"
)
_BATCH = re.compile(r"(?:per_device_)?(?:train(?:ing)?_)?(?:batch_?size|bsz?)")
_LEVELS: tuple[_Level, ...] = (((_EPOCHS, 1),), ((_ROUNDS, 10), (_SAMPLES, 64)), ((_BATCH, 4),))


def _shorter_change(setting: Setting, level: _Level) -> _Change | None:
    target = next((least for names, least in level if names.fullmatch(setting.plain)), None)
    if target is None or setting.option.is_switch:
        return None
    if setting.value:
        number = _number(setting.value)
        is_more = number is not None and (number > target or number < 0)  # -1 is often no limit
        return _valued(setting, str(target)) if is_more else None
    # An option whose default cannot be read may be any number, and None is often no limit.
    return _valued(setting, str(target)) if setting.option.names and not setting.is_given else None


def _number(text: str) -> float | None:
    try:
        value = float(text.replace("_", ""))
    except ValueError:
        return None
    return value if value.is_integer() else None
