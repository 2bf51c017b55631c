#!/usr/bin/env bash
# deploy/release/build.sh TAG [OUT]: what a release consists of, in OUT (default: dist): the wheel, the source archive, the SBOM of
# what is installed with them, the notes and the checksums. Nothing is published. Refuses a tag that is not the version, and a
# version without notes.
set -euo pipefail
cd "$(dirname "$0")/../.."
tag=${1:?usage: deploy/release/build.sh TAG [OUT]}
out=${2:-dist}
uv=$(command -v uv || echo .venv/bin/uv)
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' pyproject.toml)
fail() { printf '%s\n' "$*" >&2; exit 1; }

[ "$tag" = "v$version" ] || fail "The tag $tag is not v$version, the version in pyproject.toml. Change one of them."
rm -rf "$out"
mkdir -p "$out"
awk -v version="$version" '
    /^## / { inside = $2 == version }
    inside && !/^## / { print }
' CHANGELOG.md >"$out/notes.md"
grep -q '[^[:space:]]' "$out/notes.md" || fail "CHANGELOG.md has no section $version. Write what changed."
"$uv" build --quiet --out-dir "$out"
rm -f "$out/.gitignore"
"$uv" export --quiet --locked --no-dev --format cyclonedx1.5 --output-file "$out/reprise-$version.cdx.json" >/dev/null
(cd "$out" && sha256sum -- reprise-* >SHA256SUMS)
printf 'Built in %s:\n' "$out"
cat "$out/SHA256SUMS"
