#!/usr/bin/env bash
# Installs Reprise from the action's own checkout into $RUNNER_TEMP/reprise: uv by the hashes in
# uv.lock, everything else by uv from the same lock. Needs Python 3.11 or newer on the path.
set -euo pipefail
source=$(cd "$(dirname "$0")/../.." && pwd)
home=${RUNNER_TEMP:?}/reprise
mkdir -p "$home"
python3 -m venv "$home/uv"
python3 - "$source/uv.lock" >"$home/uv.txt" <<'PYTHON'
import sys
import tomllib

with open(sys.argv[1], "rb") as file:
    packages = tomllib.load(file)["package"]
uv = next(package for package in packages if package["name"] == "uv")
print(f"uv=={uv['version']}", *(f"--hash={wheel['hash']}" for wheel in uv["wheels"]))
PYTHON
"$home/uv/bin/pip" install --quiet --disable-pip-version-check --no-deps --only-binary :all: \
    --require-hashes --requirement "$home/uv.txt"
UV_PROJECT_ENVIRONMENT="$home/environment" "$home/uv/bin/uv" sync --quiet --locked --no-dev \
    --no-editable --python "$(command -v python3)" --project "$source"
