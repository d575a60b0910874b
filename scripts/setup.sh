#!/usr/bin/env bash
# Everything that demo and test need, made ahead: .venv, system packages, Docker engine, base image, the small model.
# An engine that this starts keeps running; `make clean` ends it.
source "$(dirname "$0")/lib.sh"

scripts/venv.sh
scripts/machine.sh
scripts/engine.sh start || note "going on without Docker: bubblewrap will be used"
scripts/base_image.sh || warn "there is no base image: the bundled tasks that need a sandbox cannot run"
say "making the small model"
HF_HUB_OFFLINE=1 "$PY" - <<'PYTHON' >&2
from trainer.models import small_model_dir, tiny_model_dir

def tell(line: str) -> None:
    print("   ", line, flush=True)

tell(f"model: {small_model_dir(progress=tell)}")
tiny_model_dir(progress=tell)
PYTHON
if scripts/engine.sh ours; then note "the Docker engine keeps running; make clean stops it"; fi
say "ready: make demo, make test; or source .venv/bin/activate, then envsdk --help"
