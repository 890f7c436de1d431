#!/bin/sh
# debian.sh [SUITE] [FOLDER]: `./dev demo` and `./dev test` in a folder of another
# Debian, which debootstrap makes; by default Debian 13. As root: it enters the folder.
# What pip and apt are told on this machine they are told there.
set -eu
cd "$(dirname "$0")/.."
suite=${1:-trixie}
folder=${2:-build/$suite}
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
packages=python3,python3-venv,git,ca-certificates

inside() {
    chroot "$folder" /usr/bin/env -i HOME=/srv LANG=C.UTF-8 \
        PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        sh -c "cd /srv/tree && $1"
}

leave() {
    for place in dev/pts dev/shm dev proc; do
        ! mountpoint -q "$folder/$place" || umount "$folder/$place"
    done
}

[ -x "$folder/usr/bin/python3" ] ||
    debootstrap --variant=minbase --include=$packages "$suite" "$folder"
cp -L /etc/resolv.conf /etc/hosts "$folder/etc/"
[ ! -e /etc/pip.conf ] || cp -L /etc/pip.conf "$folder/etc/"
certificates=usr/local/share/ca-certificates
mkdir -p "$folder/$certificates"
[ ! -d "/$certificates" ] || cp -RL "/$certificates/." "$folder/$certificates/"
inside true 2>/dev/null || git clone -q . "$folder/srv/tree"
git -C "$folder/srv/tree" pull -q
trap leave EXIT
mount --bind /proc "$folder/proc"
mount --bind /dev "$folder/dev"
mount --bind /dev/shm "$folder/dev/shm"
mount --bind /dev/pts "$folder/dev/pts"
inside update-ca-certificates >/dev/null
inside './dev demo && ./dev test'
