"""`python -m prompts` lists the published prompts; `publish STAGE VERSION` enters a new version
and makes it live.
"""

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from prompts.catalog import HOME, Catalog, Entry, PromptError, files, sections, sha256

_HEADER = """\
# Every published version with the SHA-256 of its two files.
# Written by `python -m prompts publish STAGE VERSION`.
"""


def publish(folder: Path, stage: str, version: str, *, again: bool = False) -> Entry:
    """Enter a version with the hashes of its files and make it live. Raises PromptError when it
    is already published with other files; `again` replaces a version that nobody has used yet.
    """
    text, schema = files(folder, stage, version)
    entry = Entry(stage, version, sha256(text), sha256(schema), live=True)
    sections(text.read_text(encoding="utf-8"), entry.id)
    by_version = {(old.stage, old.version): old for old in Catalog(folder).listed()}
    before = by_version.get((stage, version), entry)
    if before.id != entry.id and not again:
        raise PromptError(
            f"{stage}@{version} is published: a published version is never edited; "
            "write a new version"
        )
    for key, old in by_version.items():
        by_version[key] = replace(old, live=old.live and old.stage != stage)
    by_version[stage, version] = entry
    _write(folder / "catalog.toml", list(by_version.values()))
    Catalog(folder).load(stage)
    return next(new for new in Catalog(folder).listed() if new.live and new.stage == stage)


def _write(path: Path, entries: list[Entry]) -> None:
    lines = [_HEADER]
    for stage in sorted({entry.stage for entry in entries}):
        versions = [entry for entry in entries if entry.stage == stage]
        live = next(entry.version for entry in versions if entry.live)
        lines.append(f'[{stage}]\nlive = "{live}"\n')
        for entry in sorted(versions, key=lambda entry: (len(entry.version), entry.version)):
            hashes = f'prompt = "{entry.prompt_sha256}"\nschema = "{entry.schema_sha256}"\n'
            lines.append(f"[{stage}.{entry.version}]\n{hashes}")
    path.write_text("\n".join(lines), encoding="utf-8")


def main(argv: list[str] | None = None, folder: Path = HOME) -> int:
    """Run the command. Returns 1 when a prompt is not as published."""
    parser = argparse.ArgumentParser(prog="python -m prompts", description=__doc__)
    publishing = parser.add_subparsers(dest="verb").add_parser(
        "publish", help="enter a new version and make it live"
    )
    publishing.add_argument("stage")
    publishing.add_argument("version")
    publishing.add_argument(
        "--again", action="store_true", help="replace it: only while nobody has used it"
    )
    arguments = parser.parse_args(argv)
    try:
        if arguments.verb == "publish":
            entry = publish(folder, arguments.stage, arguments.version, again=arguments.again)
            sys.stdout.write(f"{entry.id}\n")
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
