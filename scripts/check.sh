#!/usr/bin/env bash
# Lint, format, types, import arrows, spelling, dead code. Every finding is shown, then the status tells.
source "$(dirname "$0")/lib.sh"

status=0
run() {
    say "$*"
    "$ROOT/.venv/bin/$1" "${@:2}" || status=1
}
run ruff check .
run ruff format --check .
run lint-imports
run mypy
run codespell envsdk registry trainer tasks docs scripts benchmarks README.md CONTRIBUTING.md
run vulture
exit "$status"
