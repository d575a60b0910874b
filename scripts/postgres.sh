#!/usr/bin/env bash
# A private PostgreSQL for the tests: a fresh cluster on a free loopback port, under a user that is not root, gone with
# its data at "stop". Not for keeping anything: durability is off.
#
#   scripts/postgres.sh start FOLDER    prints its URL; exit 3 where PostgreSQL is not installed
#   scripts/postgres.sh stop FOLDER
source "$(dirname "$0")/lib.sh"

FOLDER="${2:?usage: scripts/postgres.sh start|stop FOLDER}"

tool() {
    have "$1" && { command -v "$1"; return; }
    compgen -G "/usr/lib/postgresql/*/bin/$1" | sort -V | tail -n 1 || true
}

# The server refuses to run as root; its package brings a user for it.
unprivileged() {
    if [[ $EUID -eq 0 ]]; then (cd / && setpriv --reuid postgres --regid postgres --clear-groups "$@"); else "$@"; fi
}

start() {
    local initdb pg_ctl port password
    initdb="$(tool initdb)" pg_ctl="$(tool pg_ctl)"
    [[ -n $initdb && -n $pg_ctl ]] || { note "PostgreSQL is not installed"; return 3; }
    if [[ $EUID -eq 0 ]] && ! id postgres >/dev/null 2>&1; then note "no user postgres to run it as"; return 3; fi
    mkdir -p "$FOLDER"
    [[ $EUID -ne 0 ]] || chown postgres: "$FOLDER"
    port="$("$PY" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')"
    password="$("$PY" -c 'import secrets; print(secrets.token_hex(16))')"
    say "starting PostgreSQL on port $port"
    (umask 077 && echo "$password" >"$FOLDER/password")
    [[ $EUID -ne 0 ]] || chown postgres: "$FOLDER/password"
    unprivileged "$initdb" -D "$FOLDER/data" -U envsdk --pwfile "$FOLDER/password" -A scram-sha-256 \
        --no-sync --encoding UTF8 --locale C >"$FOLDER.log" 2>&1 &&
        unprivileged "$pg_ctl" -D "$FOLDER/data" -l "$FOLDER/server.log" -w -s start \
            -o "-p $port -c listen_addresses=127.0.0.1 -c unix_socket_directories=$FOLDER -c fsync=off" \
            </dev/null >>"$FOLDER.log" 2>&1 || {
        warn "PostgreSQL did not start:"
        tail -n 5 "$FOLDER.log" "$FOLDER/server.log" >&2 || true
        return 4
    }
    echo "postgresql+psycopg://envsdk:$password@127.0.0.1:$port/postgres"
}

stop() {
    [[ -d $FOLDER/data ]] || return 0
    say "stopping PostgreSQL"
    unprivileged "$(tool pg_ctl)" -D "$FOLDER/data" -m immediate -w -s stop >/dev/null 2>&1 || true
    rm -rf "$FOLDER" "$FOLDER.log"
}

case "$1" in
    start) start ;;
    stop) stop ;;
    *) die 2 "usage: scripts/postgres.sh start|stop FOLDER" ;;
esac
