#!/bin/sh
# Builds the sandbox's base image without a registry: debootstrap, then docker import. Needs root, debootstrap and a Docker daemon.
# Does nothing when the image of this content already exists; DEBIAN_MIRROR chooses another mirror.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
suite=trixie
version=$(cat "$here/packages.txt" "$here/finish.sh" | sha256sum | cut -c1-12)
image="reprise-base:$suite-$version"

if docker image inspect "$image" >/dev/null 2>&1; then
    echo "$image is there already"
    exit 0
fi
root=$(mktemp -d)
trap 'rm -rf --one-file-system "$root"' EXIT INT TERM
packages=$(grep -v '^#' "$here/packages.txt" | paste -sd, -)
# shellcheck disable=SC2086  # an empty mirror must vanish, not become an empty argument
debootstrap --variant=minbase --include="$packages" "$suite" "$root" ${DEBIAN_MIRROR:-}
chmod 755 "$root"
cp "$here/finish.sh" "$root/finish.sh"
chroot "$root" /bin/sh /finish.sh
rm "$root/finish.sh"
tar -C "$root" --numeric-owner --exclude='./proc/*' --exclude='./sys/*' --exclude='./dev/*' -c . |
    docker import --change 'ENV PATH=/usr/local/bin:/usr/bin:/bin' --change 'USER 65534:65534' --change 'WORKDIR /repro' - "$image"
echo "$image is ready"
