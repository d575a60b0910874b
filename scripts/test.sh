#!/usr/bin/env bash
# All tests, the fast ones first; arguments go to pytest. Called through scripts/with.sh.
source "$(dirname "$0")/lib.sh"

if [[ $# -gt 0 ]]; then exec "$PY" -m pytest "$@"; fi

UNSTEADY="$(mktemp)"
export UNSTEADY
trap 'rm -f "$UNSTEADY"' EXIT
trap 'exit 130' INT  # pytest ends an interrupt in order, and bash would go on to the next suite
scripts/toolchains.sh || note "going on without the toolchains: their tests are skipped"
say "making the small models"
"$PY" -c 'from trainer.models import small_model_dir, tiny_model_dir; small_model_dir(progress=print); tiny_model_dir(progress=print)' >&2
status=0
# A vLLM engine takes every core and gigabytes of memory: those tests run one at a time, after all others.
say "tests without an inference engine, two at a time"
scripts/twice.sh -n 2 --dist loadgroup -m "not vllm" || status=$?
say "tests with a real inference engine, one at a time"
scripts/twice.sh -m vllm || status=$?
[[ ! -s "$UNSTEADY" ]] || warn "to mend, since they passed only alone: $(paste -sd ' ' "$UNSTEADY")"
[[ $status -eq 0 ]] && say "all tests passed" || warn "tests failed"
exit "$status"
