#!/usr/bin/env bash
# Gives one of GitHub's own runners bubblewrap and user namespaces, which it lacks. A self-hosted
# machine is left as it is: `reprise doctor` says what it needs.
set -euo pipefail
[ "${RUNNER_ENVIRONMENT:-}" = github-hosted ] || exit 0
if ! command -v bwrap >/dev/null; then
    sudo apt-get update -qq
    sudo apt-get install -qq -y --no-install-recommends bubblewrap >/dev/null
fi
if [ -e /proc/sys/kernel/apparmor_restrict_unprivileged_userns ]; then
    sudo sysctl --quiet --write kernel.apparmor_restrict_unprivileged_userns=0
fi
