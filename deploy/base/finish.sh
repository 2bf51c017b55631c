#!/bin/sh
# Runs inside the image's root, for both ways of building it: keeps the supervisor's Python out of PATH and removes what no run needs.
set -eu
mkdir -p /usr/libexec /repro
ln -sf "$(readlink -f /usr/bin/python3)" /usr/libexec/reprise-python
rm -f /usr/bin/python3 /usr/bin/pdb3 /usr/bin/py3compile /usr/bin/py3clean
rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/log/* /usr/share/doc/* /usr/share/man/* /usr/share/locale/*
find / -xdev -perm /6000 -type f -exec chmod a-s {} +
