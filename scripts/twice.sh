#!/usr/bin/env bash
# scripts/twice.sh ARGUMENTS...: pytest, and what failed in it once more, alone.
#
# Thousands of tests share a machine with real engines, data bases and a browser; one that fails beside the others and
# passes alone rests on the machine's load or on chance. It is named loudly, as one to mend, and the run goes on. What
# fails again, or more than a handful of failures, is a failed run, and so is a skip that CI refuses, which has an exit
# code of its own (tests/conftest.py). A file named by $UNSTEADY collects the names.
source "$(dirname "$0")/lib.sh"

HANDFUL=5
cache="$(mktemp -d)"
trap 'rm -rf "$cache"' EXIT
trap 'exit 130' INT
failed="$cache/v/cache/lastfailed"
code=0
"$PY" -m pytest -o "cache_dir=$cache" --durations=15 "$@" || code=$?
[[ $code -eq 1 && -s "$failed" ]] || exit "$code"

mapfile -t names < <("$PY" -c 'import json, sys; print(*json.load(open(sys.argv[1])), sep="\n")' "$failed")
if [[ ${#names[@]} -gt $HANDFUL ]]; then exit "$code"; fi
for name in "${names[@]}"; do [[ $name == *::* ]] || exit "$code"; done  # a file or a worker that could not be collected
say "once more, alone: ${names[*]}"
"$PY" -m pytest -o "cache_dir=$cache" --last-failed --last-failed-no-failures none "$@" -n 0
for name in "${names[@]}"; do
    warn "failed beside the others, passed alone: $name"
    [[ -z "${UNSTEADY:-}" ]] || printf '%s\n' "$name" >>"$UNSTEADY"
done
