#!/usr/bin/env bash
# The Docker engine: found, or started where root. By hand where there is no systemd: pid file and log under the data
# folder; it lives until stopped or until the machine's job ends. Never touches an engine that it did not start.
#
#   scripts/engine.sh start    exit 0: one answers; 3: none can be had here (bubblewrap is the way then)
#   scripts/engine.sh stop     ends the one that "start" started by hand, if any
source "$(dirname "$0")/lib.sh"

SERVICES="$(data_home)/services"
PID_FILE="$SERVICES/dockerd.pid"
LOG="$SERVICES/dockerd.log"

answers() { have docker && timeout 20 docker version --format '{{.Server.Version}}' >/dev/null 2>&1; }

ours() { [[ -f $PID_FILE ]] && grep -qs dockerd "/proc/$(cat "$PID_FILE")/comm"; }

start() {
    answers && return
    [[ $EUID -eq 0 ]] || { note "no Docker engine answers, and only root can start one"; return 3; }
    have dockerd || { note "no Docker engine answers, and dockerd is not installed"; return 3; }
    if [[ -d /run/systemd/system ]]; then
        say "starting the Docker engine with systemd"
        systemctl start docker >&2 && answers && return
    fi
    say "starting the Docker engine (log: $LOG)"
    mkdir -p "$SERVICES"
    # A session of its own: an interrupt at the terminal must not take the engine away before the sandboxes are closed.
    setsid dockerd --pidfile "$PID_FILE" >"$LOG" 2>&1 </dev/null &
    local child=$! waited=0
    until answers; do
        sleep 0.5
        waited=$((waited + 1))
        if ! kill -0 "$child" 2>/dev/null || [[ $waited -gt 120 ]]; then
            warn "the Docker engine did not come up; the end of $LOG:"
            tail -n 5 "$LOG" >&2 || true
            stop
            return 3
        fi
    done
}

stop() {
    ours || return 0
    local pid waited=0
    pid="$(cat "$PID_FILE")"
    say "stopping the Docker engine that was started here"
    kill "$pid" 2>/dev/null || true
    while kill -0 "$pid" 2>/dev/null; do
        sleep 0.2
        waited=$((waited + 1))
        [[ $waited -lt 150 ]] || kill -9 "$pid" 2>/dev/null || true
    done
    rm -f "$PID_FILE"
}

case "${1:-}" in
    start) with_lock "$SERVICES/engine.lock" start ;;
    stop) with_lock "$SERVICES/engine.lock" stop ;;
    ours) ours ;;
    *) die 2 "usage: scripts/engine.sh start|stop|ours" ;;
esac
