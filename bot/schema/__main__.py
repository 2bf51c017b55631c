"""Writes the schema file anew: `python -m bot.schema`."""

from __future__ import annotations

from pathlib import Path

from bot.schema import generate

Path(__file__).with_name("report.schema.json").write_text(generate(), encoding="utf-8")
