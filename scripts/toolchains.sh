#!/usr/bin/env bash
# The image of the tests that compile: the base image's Debian with g++, Catch2, Node.js and Cargo, as a file tree in the data
# folder. Made once (a minute of work, a gigabyte of disk); nothing but those tests uses it.
#
#   scripts/toolchains.sh      exit 3 where it is not there and cannot be made
source "$(dirname "$0")/lib.sh"

TREE="$("$PY" -c 'from envsdk.home import rootfs_dir; print(rootfs_dir("envsdk-toolchains:bookworm"))')"
SUITE="bookworm"
PACKAGES="python3,procps,util-linux,g++,make,catch2,nodejs,cargo"
MIRROR="${ENVSDK_DEBIAN_MIRROR:-}"
RECIPE="1 $SUITE $PACKAGES"

make_tree() {
    [[ "$(cat "$TREE/etc/envsdk-toolchains" 2>/dev/null)" != "$RECIPE" ]] || return 0
    [[ $EUID -eq 0 ]] || { warn "the toolchains' image is not made yet, and only root can make it"; return 3; }
    have debootstrap || { warn "the toolchains' image is not made yet, and debootstrap is not installed"; return 3; }
    local growing="$TREE.making"
    say "making the toolchains' file tree with debootstrap (a minute or two, once)"
    mkdir -p "$(dirname "$TREE")"
    rm -rf --one-file-system "$growing"  # what an interrupted run left
    debootstrap --variant=minbase --include="$PACKAGES" "$SUITE" "$growing" ${MIRROR:+"$MIRROR"} </dev/null |
        awk 'NR % 100 == 1 { print "    " $0 }' >&2 || {
        rm -rf --one-file-system "$growing"
        warn "debootstrap failed with mirror ${MIRROR:-its default} (ENVSDK_DEBIAN_MIRROR names another)"
        return 3
    }
    chroot "$growing" useradd --create-home --uid 1000 --shell /bin/sh agent &&
        mkdir -p "$growing/app" "$growing/logs/verifier" "$growing/tests" &&
        rm -rf "$growing"/var/cache/apt/archives/*.deb "$growing"/var/lib/apt/lists/* &&
        : >"$growing/etc/resolv.conf" &&
        printf '#define CATCH_CONFIG_MAIN\n#include <catch2/catch.hpp>\n' >"$growing/opt/main.cpp" &&
        chroot "$growing" g++ -c -o /opt/catch_main.o /opt/main.cpp && # a minute less for every run of a verifier
        echo "$RECIPE" >"$growing/etc/envsdk-toolchains" ||
        die 4 "the toolchains' file tree could not be furnished" "see the message above"
    rm -rf --one-file-system "$TREE" && mv "$growing" "$TREE"
}

with_lock "$TREE.lock" make_tree
