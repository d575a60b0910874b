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
PACKAGES="python3,python3-pytest,procps,util-linux"
RECIPE_VERSION="1 $SUITE $PACKAGES"  # raise the number when grow_debian changes

make_tree() {
    [[ "$(cat "$TREE/etc/envsdk-base" 2>/dev/null)" != "$RECIPE_VERSION" ]] || return 0
    local growing="$TREE.making"
    grow_debian "the base image's file tree" "$growing" "$PACKAGES" || return 3
    echo "$RECIPE_VERSION" >"$growing/etc/envsdk-base"
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
