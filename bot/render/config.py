"""The configuration in force as a reply: every value with its source, and what is wrong."""

import json
from collections.abc import Iterable, Iterator

from pydantic import BaseModel

from bot.models.config import Loaded, Origin, Problem
from bot.render.document import BulletList, Paragraph, Preformatted
from bot.render.markdown import print_blocks
from bot.render.phrases import shown
from bot.text.sanitize import clip, one_line, redact

_SHOWN = 10
_WIDE = 400


def configuration(loaded: Loaded) -> str:
    """The answer to `/reproduce config`."""
    head = "No configuration file applies here; these are the defaults:"
    if loaded.source:
        head = f"The configuration in force here, from {_files(loaded.source)}:"
    values = Preformatted("\n".join(_lines(loaded.config, loaded.origins)), "yaml")
    wrong = [problems(loaded.problems)] if loaded.problems else []
    return "\n\n".join([print_blocks([Paragraph(head), values]), *wrong])


def problems(found: Iterable[Problem]) -> str:
    """What is wrong, and what follows from it."""
    rows = list(found)
    files = _files(dict.fromkeys(problem.file for problem in rows))
    title = f"Reprise ignores {files}: one mistake invalidates the whole file."
    items = shown(tuple(map(_sentence, rows)), _SHOWN)
    return print_blocks([Paragraph(title), BulletList("", items)])


def _files(names: Iterable[str]) -> str:
    return ", ".join(f"`{_inert(name)}`" for name in names)


def _inert(text: str) -> str:
    return clip(redact(one_line(text)).replace("`", ""), 120)


def _sentence(problem: Problem) -> str:
    line = f", line {problem.line}" if problem.line else ""
    what = f"`{_inert(problem.key)}` " if problem.key else "the file "
    return f"`{_inert(problem.file)}`{line}: {what}{problem.reason}"


def _lines(
    values: BaseModel, origins: dict[str, Origin], before: str = "", indent: str = ""
) -> Iterator[str]:
    for name in type(values).model_fields:
        value, key = getattr(values, name), f"{before}{name}"
        if isinstance(value, BaseModel):
            yield f"{indent}{name}:"
            yield from _lines(value, origins, f"{key}.", indent + "  ")
        else:
            text = clip(redact(one_line(json.dumps(value, ensure_ascii=False))), _WIDE)
            yield f"{indent}{name}: {text}  # {_origin(origins.get(key))}"


def _origin(origin: Origin | None) -> str:
    return "default" if origin is None else f"{origin.kind}: {clip(one_line(origin.file), 120)}"
