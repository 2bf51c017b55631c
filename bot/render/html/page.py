"""Values → HTML, through templates that escape everything and know no variable that is not given."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from bot.render.html.view import RunView
from bot.render.words import TITLES
from bot.rules.verbs import help_rows

REFRESH_S = 6
_HERE = Path(__file__).parent
STYLE = (_HERE / "style.css").read_bytes()
ICON = (_HERE / "icon.svg").read_bytes()

_TICKED = re.compile(r"`([^`\n]+)`")


def ticked(text: str) -> Markup:
    """Escaped text in which `words in backticks` are monospaced."""
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if at % 2 else escape(part) for at, part in enumerate(_TICKED.split(text))
    )


_templates = Environment(
    loader=FileSystemLoader(_HERE / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    auto_reload=False,
)
_templates.filters["ticked"] = ticked
_templates.globals.update(refresh=0, style=hashlib.sha256(STYLE).hexdigest()[:12], icon=hashlib.sha256(ICON).hexdigest()[:12])


def run_page(view: RunView) -> str:
    """The page of one run; it renews itself while the run is live."""
    return _templates.get_template("run.html").render(view=view, refresh=REFRESH_S if view.live else 0)


def landing(counts: dict[str, int], *, off: str, app: str, version: str) -> str:
    """The front page. `counts` is what a store counts, `off` why nothing is run for now, `app` the App's address on GitHub."""
    verdicts = [(kind, title, counts.get(f"verdicts.{kind}", 0)) for kind, title in TITLES.items()]
    return _templates.get_template("landing.html").render(
        off=off,
        app=app,
        version=version,
        commands=help_rows(),
        waiting=counts.get("runs.waiting", 0) + counts.get("runs.queued", 0),
        running=counts.get("runs.running", 0) + counts.get("runs.reported", 0),
        done=counts.get("runs.finished", 0) + counts.get("runs.failed", 0),
        verdicts=[each for each in verdicts if each[2]],
    )


def missing(title: str, text: str) -> str:
    """What is said where there is nothing to show."""
    return _templates.get_template("missing.html").render(title=title, text=text)


def metrics(counts: dict[str, int], switches: int, version: str) -> str:
    """The same figures in Prometheus' text format."""
    lines = []
    for family, label in (("deliveries", "state"), ("runs", "state"), ("verdicts", "kind")):
        lines += [f"# HELP reprise_{family} {family.capitalize()} kept here, by {label}.", f"# TYPE reprise_{family} gauge"]
        mine = {name.partition(".")[2]: value for name, value in counts.items() if name.partition(".")[0] == family}
        lines += [f'reprise_{family}{{{label}="{_value(name)}"}} {value}' for name, value in sorted(mine.items())]
    lines += ["# HELP reprise_switches Kill switches that are thrown.", "# TYPE reprise_switches gauge"]
    lines += [f"reprise_switches {switches}"]
    lines += ["# HELP reprise_info Which Reprise this is.", "# TYPE reprise_info gauge"]
    lines += [f'reprise_info{{version="{_value(version)}"}} 1']
    return "\n".join(lines) + "\n"


def _value(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
