"""Runs the commands that a report starts before its program, then becomes the program.

Started as `python -S _reprise_steps.py STEPS WORD...`: STEPS is a JSON list of what follows the
interpreter in each earlier command, the words are those of the program's own. A step that fails
ends the run, as in a shell. The key that signs traces is for the program alone.
"""

import json
import os
import subprocess
import sys


def main():
    steps, words = json.loads(sys.argv[1]), sys.argv[2:]
    key_path = os.path.join(os.environ.get("REPRISE_TRACE", ""), "key")
    try:
        with open(key_path, "rb") as file:
            key = file.read()
        os.remove(key_path)
    except OSError:
        key = None
    for step in steps:
        code = subprocess.call([sys.executable, *step])
        if code:
            sys.exit(code if code > 0 else 128 - code)
    if key is not None:
        with open(key_path, "wb") as file:
            file.write(key)
    os.execv(sys.executable, [sys.executable, *words])


main()
