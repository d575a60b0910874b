# shellcheck shell=bash
# What every script here starts with: strict mode, where things are, and how they speak. Sourced, never run.
#
# Progress and errors go to stderr, so that a script's stdout stays a result. Scripts are idempotent: run one again after
# an interruption and it goes on from what was finished.
set -euo pipefail

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
PY="$ROOT/.venv/bin/python"
cd "$ROOT"

if [[ -t 2 ]]; then BOLD=$'\e[1m' RED=$'\e[31m' PLAIN=$'\e[0m'; else BOLD="" RED="" PLAIN=""; fi

say() { printf '%s==>%s %s\n' "$BOLD" "$PLAIN" "$*" >&2; }
note() { printf '    %s\n' "$*" >&2; }
warn() { printf '%swarning:%s %s\n' "$RED" "$PLAIN" "$*" >&2; }

# die STATUS MESSAGE [FIX]: the exit codes are the command line's (3: a prerequisite is missing, 4: machinery failed).
die() {
    printf '%serror:%s %s\n' "$RED" "$PLAIN" "$2" >&2
    [[ -z "${3:-}" ]] || printf '    fix: %s\n' "$3" >&2
    exit "$1"
}

have() { command -v "$1" >/dev/null 2>&1; }

# The machine is ours to change: root, and Debian's package manager is here.
may_install() { [[ $EUID -eq 0 ]] && have apt-get && have dpkg; }

# The data folder has one owner, envsdk.home; the shell asks it.
data_home() { "$PY" -c 'from envsdk.home import home; print(home())'; }

# with_lock FILE COMMAND...: one process at a time; says when it has to wait.
with_lock() {
    local file="$1"
    shift
    mkdir -p "$(dirname "$file")"
    if ! have flock; then "$@"; return; fi
    (
        flock -n 9 || { note "waiting for another process that holds $file"; flock 9; }
        "$@" 9>&-
    ) 9>"$file"
}

# grow_debian WHAT TREE PACKAGES: a minimal Debian with the user and the folders that tasks expect, at TREE.
# Status 3 where it cannot be had; what an interrupted run left is removed.
SUITE="bookworm"
grow_debian() {
    local what="$1" tree="$2" packages="$3"
    local mirror="${ENVSDK_DEBIAN_MIRROR:-}" # without one named, debootstrap takes its own default
    [[ $EUID -eq 0 ]] || { warn "$what is not made yet, and only root can make it"; return 3; }
    have debootstrap || { warn "$what is not made yet, and debootstrap is not installed"; return 3; }
    say "making $what with debootstrap (a minute or two, once)"
    mkdir -p "$(dirname "$tree")"
    rm -rf --one-file-system "$tree"
    debootstrap --variant=minbase --include="$packages" "$SUITE" "$tree" ${mirror:+"$mirror"} </dev/null |
        sed -u -n 's/^I: \(Retrieving\|Unpacking the base\|Configuring the base\|Base system\).*/    &/p' |
        awk 'NR % 20 == 1 || /base|Base/' >&2 || {
        tail -n 5 "$tree/debootstrap/debootstrap.log" >&2 2>/dev/null || true
        rm -rf --one-file-system "$tree"
        warn "debootstrap failed with mirror ${mirror:-its default} (ENVSDK_DEBIAN_MIRROR names another)"
        return 3
    }
    # Sandboxes mount a resolv.conf of their own: an image must not carry the build machine's.
    chroot "$tree" useradd --create-home --uid 1000 --shell /bin/sh agent &&
        mkdir -p "$tree/app" "$tree/logs/verifier" "$tree/tests" &&
        chroot "$tree" chown agent:agent /app &&
        rm -rf "$tree"/var/cache/apt/archives/*.deb "$tree"/var/lib/apt/lists/* "$tree"/var/log/*.log &&
        : >"$tree/etc/resolv.conf" ||
        die 4 "$what could not be furnished" "see the message above"
}
