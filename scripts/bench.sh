#!/usr/bin/env bash
# Run a benchmark by name, with its own options; without a name, list them with what they measure.
#
#   scripts/bench.sh [NAME [OPTION...]]
source "$(dirname "$0")/lib.sh"

if [[ $# -eq 0 ]]; then
    say 'benchmarks: make bench ARGS="NAME --help"'
    for program in benchmarks/*.py; do
        grep -q '__main__' "$program" || continue
        printf '    %-24s %s\n' "$(basename "$program" .py)" "$(sed -n '1s/^"""//p' "$program")"
    done
    exit 0
fi
[[ -f benchmarks/$1.py ]] || die 2 "no benchmark $1" "make bench lists them"
exec "$PY" "benchmarks/$1.py" "${@:2}"
