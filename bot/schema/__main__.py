"""Writes the schema files and the example configuration anew: `python -m bot.schema`."""

from pathlib import Path

from bot.schema import configuration, generate

here = Path(__file__)
here.with_name("report.schema.json").write_text(generate(), encoding="utf-8")
here.with_name("config.schema.json").write_text(configuration.generate(), encoding="utf-8")
example = here.parents[2] / ".github" / "reprise.example.yml"
if example.parent.is_dir():  # a checkout, not an installed copy
    example.write_text(configuration.example(), encoding="utf-8")
