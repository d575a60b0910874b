#!/usr/bin/env bash
# The image of the tests that compile: the base image's Debian with g++, Catch2, Node.js and Cargo, as a file tree in the data
# folder. Made once (a minute of work, a gigabyte of disk); nothing but those tests uses it.
#
#   scripts/toolchains.sh      exit 3 where it is not there and cannot be made
source "$(dirname "$0")/lib.sh"

TREE="$("$PY" -c 'from envsdk.home import rootfs_dir; print(rootfs_dir("envsdk-toolchains:bookworm"))')"
PACKAGES="python3,procps,util-linux,g++,make,catch2,nodejs,cargo"
RECIPE="2 $SUITE $PACKAGES"  # raise the number when grow_debian changes

make_tree() {
    [[ "$(cat "$TREE/etc/envsdk-toolchains" 2>/dev/null)" != "$RECIPE" ]] || return 0
    local growing="$TREE.making"
    grow_debian "the toolchains' file tree" "$growing" "$PACKAGES" || return 3
    printf '#define CATCH_CONFIG_MAIN\n#include <catch2/catch.hpp>\n' >"$growing/opt/main.cpp" &&
        chroot "$growing" g++ -c -o /opt/catch_main.o /opt/main.cpp && # a minute less for every run of a verifier
        echo "$RECIPE" >"$growing/etc/envsdk-toolchains" ||
        die 4 "the toolchains' file tree could not be furnished" "see the message above"
    rm -rf --one-file-system "$TREE" && mv "$growing" "$TREE"
}

with_lock "$TREE.lock" make_tree
