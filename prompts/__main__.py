"""`python -m prompts` lists the published prompts; `publish STAGE VERSION` enters a new one and makes it live."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from prompts.catalog import HOME, Catalog, Entry, PromptError, files, parts, sha256

_HEAD = "# Every published version with the SHA-256 of its two files, written by `python -m prompts publish STAGE VERSION`.\n"


def publish(folder: Path, stage: str, version: str, *, again: bool = False) -> Entry:
    """Enter a version with the hashes of its files and make it live. Raises PromptError when it is published with other files
    already; `again` is for one that nobody has used yet.
    """
    text, schema = files(folder, stage, version)
    entry = Entry(stage, version, sha256(text), sha256(schema), live=True)
    parts(text.read_text(encoding="utf-8"), entry.id)
    known = {(each.stage, each.version): each for each in Catalog(folder).listed()}
    before = known.get((stage, version))
    if before is not None and before.id != entry.id and not again:
        raise PromptError(f"{stage}@{version} is published: a published version is never edited; write a new version")
    known[stage, version] = entry
    _write(folder / "catalog.toml", list(known.values()), {stage: version})
    Catalog(folder).load(stage)
    return entry


def _write(path: Path, entries: list[Entry], live: dict[str, str]) -> None:
    live = {each.stage: each.version for each in entries if each.live} | live
    lines = [_HEAD]
    for stage in sorted(live):
        lines.append(f'[{stage}]\nlive = "{live[stage]}"\n')
        held = sorted((each for each in entries if each.stage == stage), key=lambda each: (len(each.version), each.version))
        lines += [
            f'[{stage}.{each.version}]\nprompt = "{each.prompt_sha256}"\nschema = "{each.schema_sha256}"\n' for each in held
        ]
    path.write_text("\n".join(lines), encoding="utf-8")


def main(argv: list[str] | None = None, folder: Path = HOME) -> int:
    """The command; 1 when a prompt is not as published."""
    parser = argparse.ArgumentParser(prog="python -m prompts", description=__doc__)
    chosen = parser.add_subparsers(dest="verb")
    publishing = chosen.add_parser("publish", help="enter a new version and make it live")
    publishing.add_argument("stage")
    publishing.add_argument("version")
    publishing.add_argument("--again", action="store_true", help="enter it anew: only while nobody has used it")
    asked = parser.parse_args(argv)
    try:
        if asked.verb == "publish":
            sys.stdout.write(f"{publish(folder, asked.stage, asked.version, again=asked.again).id}\n")
            return 0
        for entry in Catalog(folder).listed():
            Catalog(folder).load(entry.stage, entry.version)
            sys.stdout.write(f"{entry.id}{'  live' if entry.live else ''}\n")
    except PromptError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
