#!/usr/bin/env bash
# The base image of the bundled tasks: a minimal Debian with Python, made by debootstrap. Its file tree stays in the data
# folder as bubblewrap's root; where an engine answers, the same tree is imported as its image. Beside it a plain one without
# our user and folders, which stands in for public images (python:3, debian:bookworm) where none can be pulled.
#
#   scripts/base_image.sh      exit 3 where neither a tree nor an image can be had
source "$(dirname "$0")/lib.sh"

read -r IMAGE TREE DEBIAN_IMAGE DEBIAN_TREE < <("$PY" -c '
from envsdk.home import BASE_IMAGE, rootfs_dir
from envsdk.sandboxes.aliases import PLAIN_IMAGE
print(BASE_IMAGE, rootfs_dir(), PLAIN_IMAGE, rootfs_dir(PLAIN_IMAGE))')
SUITE="bookworm"
PACKAGES="python3,python3-pytest,procps,util-linux"
# Without a mirror named, debootstrap takes its own default.
MIRROR="${ENVSDK_DEBIAN_MIRROR:-}"
RECIPE_VERSION="1 $SUITE $PACKAGES"  # raise the number when furnish() changes

furnish() {
    local tree="$1"
    chroot "$tree" useradd --create-home --uid 1000 --shell /bin/sh agent &&
        mkdir -p "$tree/app" "$tree/logs/verifier" "$tree/tests" &&
        chroot "$tree" chown agent:agent /app &&
        rm -rf "$tree"/var/cache/apt/archives/*.deb "$tree"/var/lib/apt/lists/* "$tree"/var/log/*.log &&
        : >"$tree/etc/resolv.conf" && # sandboxes mount their own: an image must not carry the build machine's
        echo "$RECIPE_VERSION" >"$tree/etc/envsdk-base"
}

make_tree() {
    [[ "$(cat "$TREE/etc/envsdk-base" 2>/dev/null)" != "$RECIPE_VERSION" ]] || return 0
    [[ $EUID -eq 0 ]] || { warn "the base image is not made yet, and only root can make it"; return 3; }
    have debootstrap || { warn "the base image is not made yet, and debootstrap is not installed"; return 3; }
    local growing="$TREE.making"
    say "making the base image's file tree with debootstrap (about a minute)"
    mkdir -p "$(dirname "$TREE")"
    rm -rf --one-file-system "$growing"  # what an interrupted run left
    debootstrap --variant=minbase --include="$PACKAGES" "$SUITE" "$growing" ${MIRROR:+"$MIRROR"} </dev/null |
        sed -u -n 's/^I: \(Retrieving\|Unpacking the base\|Configuring the base\|Base system\).*/    &/p' |
        awk 'NR % 20 == 1 || /base|Base/' >&2 || {
        tail -n 5 "$growing/debootstrap/debootstrap.log" >&2 2>/dev/null || true
        rm -rf --one-file-system "$growing"
        warn "debootstrap failed with mirror ${MIRROR:-its default} (ENVSDK_DEBIAN_MIRROR names another)"
        return 3
    }
    furnish "$growing" || die 4 "the base image's file tree could not be furnished" "see the message above"
    rm -rf --one-file-system "$TREE" && mv "$growing" "$TREE"
}

make_plain_tree() {
    [[ "$(cat "$DEBIAN_TREE/etc/envsdk-base" 2>/dev/null)" != "$RECIPE_VERSION" ]] || return 0
    local growing="$DEBIAN_TREE.making"
    rm -rf --one-file-system "$growing"
    cp -a --reflink=auto "$TREE" "$growing" &&
        chroot "$growing" userdel agent &&
        rm -rf "$growing/home/agent" "$growing/app" "$growing/logs" "$growing/tests" ||
        die 4 "the plain image's file tree could not be made" "see the message above"
    rm -rf --one-file-system "$DEBIAN_TREE" && mv "$growing" "$DEBIAN_TREE"
}

engine_recipe() { docker image inspect --format '{{index .Config.Labels "envsdk.recipe"}}' "$1" 2>/dev/null; }

import_image() {
    local image="$1" tree="$2"
    have docker && timeout 20 docker version >/dev/null 2>&1 || return 0
    [[ "$(engine_recipe "$image" || true)" != "$RECIPE_VERSION" ]] || return 0
    say "importing $image into the Docker engine"
    tar --numeric-owner -C "$tree" -c . |
        docker import --change 'CMD ["/bin/sh"]' --change "LABEL envsdk.recipe=\"$RECIPE_VERSION\"" - "$image" >&2
}

both() {
    if make_tree; then
        make_plain_tree
        import_image "$IMAGE" "$TREE"
        import_image "$DEBIAN_IMAGE" "$DEBIAN_TREE"
    else have docker && engine_recipe "$IMAGE" >/dev/null || return 3; fi
}

with_lock "$TREE.lock" both
