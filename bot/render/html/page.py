"""Documents → HTML, through templates that escape everything."""

import hashlib
import re
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from bot.render.document import Code, Hyperlink, Preformatted, Strong, Text
from bot.render.html import svg
from bot.render.html.svg import bisection, reduction, runs, training
from bot.render.html.view import RunView
from bot.render.links import elsewhere
from bot.render.phrases.bisection import OUTCOMES
from bot.render.phrases.verdict import interval
from bot.render.sections.attempts import outcome, purpose
from bot.rules.verbs import help_rows
from bot.rules.verdicts import KINDS
from bot.text.sanitize import clip, shorten_paths

REFRESH_S = 6
_HERE = Path(__file__).parent
_TONES = "".join(f".{kind} {{ --tone: var(--{row.tone}); }}\n" for kind, row in KINDS.items())
STYLE = (_HERE / "style.css").read_bytes() + _TONES.encode()
ICON = (_HERE / "icon.svg").read_bytes()
_LINE, _EVIDENCE = 600, 20_000
_TICKED = re.compile(r"`([^`\n]+)`")


def inline(text: Text) -> Markup:
    """Inline text, escaped; `words in backticks` are monospaced."""
    match text:
        case str():
            parts = _TICKED.split(clip(shorten_paths(text), _LINE))
            code = Markup("<code>{}</code>")
            return Markup("").join(
                code.format(part) if at % 2 else escape(part) for at, part in enumerate(parts)
            )
        case Code():
            return Markup("<code>{}</code>").format(clip(shorten_paths(text.text), _LINE))
        case Strong():
            return Markup("<strong>{}</strong>").format(text.text)
        case Hyperlink():
            address, rel = elsewhere(text.url), "noreferrer nofollow noopener"
            return Markup('<a href="{}" rel="{}">{}</a>').format(address, rel, text.text)
    return Markup("").join(map(inline, text))


def code(block: Preformatted) -> str:
    """The text of a code block; only a program is shown whole and with its paths."""
    return block.text if block.language else clip(shorten_paths(block.text), _EVIDENCE)


_templates = Environment(
    loader=FileSystemLoader(_HERE / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    auto_reload=False,
)
_templates.filters.update(inline=inline, code=code, kind=lambda block: type(block).__name__)
_templates.globals.update(
    refresh=0,
    style=hashlib.sha256(STYLE).hexdigest()[:12],
    icon=hashlib.sha256(ICON).hexdigest()[:12],
    svg={
        "mark": svg.mark,
        "runs": runs,
        "bisection": bisection,
        "descent": reduction.descent,
        "training": training.training,
    },
    words={"outcome": outcome, "purpose": purpose, "interval": interval, "outcomes": OUTCOMES},
)


def run_page(view: RunView) -> str:
    """The page of one run; it refreshes itself while the run is live."""
    refresh = REFRESH_S if view.live else 0
    return _templates.get_template("run.html").render(view=view, refresh=refresh)


def landing(counts: dict[str, int], *, off: str, app: str, version: str) -> str:
    """The front page. `counts` is what a store counts, `off` why nothing is run for now, `app`
    the App's address on GitHub.
    """
    verdicts = [(kind, row.title, counts.get(f"verdicts.{kind}", 0)) for kind, row in KINDS.items()]
    return _templates.get_template("landing.html").render(
        off=off,
        app=app,
        version=version,
        commands=help_rows(),
        waiting=counts.get("runs.waiting", 0) + counts.get("runs.queued", 0),
        running=counts.get("runs.running", 0) + counts.get("runs.reported", 0),
        done=counts.get("runs.finished", 0) + counts.get("runs.failed", 0),
        verdicts=[row for row in verdicts if row[2]],
    )


def missing(title: str, text: str) -> str:
    """The page at an address with nothing to show."""
    return _templates.get_template("missing.html").render(title=title, text=text)


def metrics(counts: dict[str, int], switches: int, version: str, *, refused: bool) -> str:
    """The same figures in Prometheus' text format."""
    families = [("deliveries", "state"), ("runs", "state"), ("verdicts", "kind")]
    families += [("pull_requests", "state")]
    lines = []
    for family, label in families:
        lines += _gauge(family, f"{family.replace('_', ' ').capitalize()} stored, by {label}.")
        rows = (name.split(".", 1) for name in sorted(counts) if name.startswith(f"{family}."))
        lines += [
            f'reprise_{family}{{{label}="{_escaped(value)}"}} {counts[f"{family}.{value}"]}'
            for _, value in rows
        ]
    lines += [*_gauge("switches", "Kill switches that are on."), f"reprise_switches {switches}"]
    lines += _gauge("credentials_refused", "1 while GitHub refuses the App's credentials.")
    lines += [f"reprise_credentials_refused {int(refused)}"]
    lines += _gauge("info", "The version of Reprise.")
    return "\n".join([*lines, f'reprise_info{{version="{_escaped(version)}"}} 1']) + "\n"


def _gauge(name: str, what: str) -> list[str]:
    return [f"# HELP reprise_{name} {what}", f"# TYPE reprise_{name} gauge"]


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
