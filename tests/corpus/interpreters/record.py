"""Runs each line of statements.txt and prints what was raised, as JSON: statement → [class, message].

    python3.X record.py > 3.X.json

Tests hold the messages of two versions of Python against each other. Only the standard library is
used, so that any interpreter can run it; "\\n" in a line stands for a line end.
"""

import json
import sys
from pathlib import Path


def raised(source):
    try:
        exec(compile(source, "<statement>", "exec"), {"__name__": "t"})
    except BaseException as error:
        return [type(error).__name__, str(error)]
    return ["", ""]


if __name__ == "__main__":
    lines = Path(__file__).with_name("statements.txt").read_text().splitlines()
    found = {line: raised(line.replace("\\n", "\n")) for line in lines}
    json.dump(found, sys.stdout, indent=0, ensure_ascii=True, sort_keys=True)
    sys.stdout.write("\n")
