#!/bin/sh
# Runs inside the image's root, for both ways of building it: keeps the supervisor's Python out of PATH, resolves localhost and the
# own name without /etc/hosts (Docker writes none for a container without a network), and removes what no run needs.
set -eu
mkdir -p /usr/libexec /repro
ln -sf "$(readlink -f /usr/bin/python3)" /usr/libexec/reprise-python
rm -f /usr/bin/python3 /usr/bin/pdb3 /usr/bin/pydoc3* /usr/bin/pygettext3* /usr/bin/py3compile /usr/bin/py3clean /usr/bin/py3versions
sed -i 's|^hosts:.*|hosts: files myhostname dns|' /etc/nsswitch.conf
sed -i 's|^nobody:.*|repro:x:65534:65534::/tmp/home:/bin/sh|' /etc/passwd
rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/log/* /usr/share/doc/* /usr/share/man/* /usr/share/locale/*
find / -xdev -perm /6000 -type f -exec chmod a-s {} +
