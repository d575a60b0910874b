#!/usr/bin/env bash
# Install the system packages that sandboxes (and, with "tests", the tests) need. Only where root on Debian or Ubuntu;
# elsewhere it names what is missing and goes on: whoever needs the thing says so again, and how to get it.
#
#   scripts/machine.sh [tests]
source "$(dirname "$0")/lib.sh"

# what is looked for -> the package that brings it; a path is looked for in the library folders
SANDBOXES=(
    "dockerd docker.io" "docker docker.io" "iptables iptables" "debootstrap debootstrap" "bwrap bubblewrap" "ip iproute2"
    "busybox busybox-static" "libnuma.so.1 libnuma1" "libfaketime.so.1 libfaketime" "g++ g++" "git git"
    "setpriv util-linux" "/usr/share/keyrings/debian-archive-keyring.gpg debian-archive-keyring"
)
TESTS=("initdb postgresql" "chromium chromium")

present() {
    case "$1" in
        /*) [[ -e $1 ]] ;;
        *.so.*) compgen -G "/usr/lib/*/$1" >/dev/null || compgen -G "/usr/lib/*/*/$1" >/dev/null ||
            compgen -G "/lib/*/$1" >/dev/null ;;
        initdb) have initdb || compgen -G "/usr/lib/postgresql/*/bin/initdb" >/dev/null ;;
        chromium) have chromium || have chromium-browser || have google-chrome ;;
        *) have "$1" || [[ -x /usr/sbin/$1 || -x /sbin/$1 ]] ;;
    esac
}

wanted=("${SANDBOXES[@]}")
[[ ${1:-} != tests ]] || wanted+=("${TESTS[@]}")
missing=()
for pair in "${wanted[@]}"; do
    present "${pair% *}" || missing+=("${pair#* }")
done
[[ ${#missing[@]} -gt 0 ]] || exit 0

if ! may_install; then
    warn "not installed here, and this is not root on Debian or Ubuntu: ${missing[*]}"
    note "what needs them is skipped or refuses with its own message; as root: apt-get install ${missing[*]}"
    exit 0
fi

say "installing system packages: ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1
apt-get update -q </dev/null >&2 || warn "apt-get update failed; trying with the lists at hand"
install() {
    apt-get install -qy --no-install-recommends -o DPkg::Lock::Timeout=600 -o Dpkg::Use-Pty=0 "$@" </dev/null >&2
}
# All at once is fastest; one by one where a single name does not exist in this release.
install "${missing[@]}" || for package in "${missing[@]}"; do
    install "$package" || warn "apt could not install $package"
done
