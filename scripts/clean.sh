#!/usr/bin/env bash
# Stop what setup started; remove the environment, caches and the demonstration's files. The data folder (models, base
# image, registry) stays: it is named, for whoever wants it gone too.
source "$(dirname "$0")/lib.sh"

if [[ -x $PY ]] && "$PY" -c 'import envsdk.home' 2>/dev/null; then
    scripts/engine.sh stop || true
    note "kept: $(data_home)"
fi
rm -rf .venv demo docs/_build .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .coverage
find envsdk registry trainer tasks tests benchmarks docs -name __pycache__ -type d -prune -exec rm -rf {} +
say "clean"
