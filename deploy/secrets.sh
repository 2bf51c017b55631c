#!/bin/sh
# Makes the passwords that compose.yaml needs, once: nothing has a default. They lie in a folder that only this user may enter;
# the files in it are readable, because the containers' users are others.
set -eu

folder=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)/secrets
if [ -e "$folder" ]; then
    echo "$folder is there already; nothing was changed" >&2
    exit 0
fi
password() { od -An -N24 -tx1 /dev/urandom | tr -d ' \n'; }
umask 077
made=$(mktemp -d "$folder.XXXXXX")
trap 'rm -rf "$made"' EXIT INT TERM
database=$(password)
redis=$(password)
printf '%s' "$database" > "$made/postgres_password"
printf 'postgresql+psycopg://reprise:%s@postgres/reprise' "$database" > "$made/reprise_database_url"
printf 'redis://default:%s@redis:6379/0' "$redis" > "$made/reprise_redis_url"
printf 'requirepass %s\nsave ""\nappendonly no\nmaxmemory-policy noeviction\n' "$redis" > "$made/redis.conf"
chmod 0444 "$made"/*
mv "$made" "$folder"
echo "$folder is ready"
