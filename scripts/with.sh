#!/usr/bin/env bash
# Run a command with the environment set up and the named services up; end afterwards what was started for it.
#
#   scripts/with.sh [sandboxes] [postgres] [browser] -- COMMAND...
#
# A service that cannot be had here is named and left out: the command decides what it can do without.
source "$(dirname "$0")/lib.sh"

wants=" "
while [[ $# -gt 0 && $1 != -- ]]; do
    wants+="$1 "
    shift
done
[[ $# -gt 1 ]] || die 2 "usage: scripts/with.sh [sandboxes] [postgres] [browser] -- COMMAND..."
shift
wanted() { [[ $wants == *" $1 "* ]]; }

engine_is_ours="" scratch=""
# The exit status is the command's, whatever clearing up does.
clear_up() {
    local status=$?
    trap '' INT TERM
    if [[ -n $scratch ]]; then
        scripts/postgres.sh stop "$scratch/postgres" || true
        rm -rf "$scratch"
    fi
    [[ -z $engine_is_ours ]] || scripts/engine.sh stop || true
    exit "$status"
}
trap clear_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

scripts/venv.sh
if wanted postgres || wanted browser; then scripts/machine.sh tests
elif wanted sandboxes; then scripts/machine.sh; fi

if wanted sandboxes; then
    scripts/engine.sh ours && was_up=yes || was_up=""
    if scripts/engine.sh start; then
        if [[ -z $was_up ]] && scripts/engine.sh ours; then engine_is_ours=yes; fi
    else
        note "going on without Docker"
    fi
    scripts/base_image.sh || note "going on without the base image"
fi

if wanted postgres && [[ -z ${ENVSDK_TEST_POSTGRES:-} ]]; then
    scratch="$(mktemp -d "${TMPDIR:-/tmp}/envsdk-services.XXXXXX")"
    chmod 755 "$scratch"
    if ENVSDK_TEST_POSTGRES="$(scripts/postgres.sh start "$scratch/postgres")"; then export ENVSDK_TEST_POSTGRES
    else unset ENVSDK_TEST_POSTGRES; note "going on without PostgreSQL"; fi
fi

export PATH="$ROOT/.venv/bin:$PATH" HF_HUB_OFFLINE="${HF_HUB_OFFLINE:-1}"
"$@"
