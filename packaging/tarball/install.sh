#!/bin/sh
# Installs hepfs below a folder, or removes it from there.
#
#   ./install.sh [--prefix DIR]               default: ~/.local, for root /usr/local
#   ./install.sh --uninstall [--prefix DIR]   removes the files that an installation there wrote
set -eu
from=$(cd "$(dirname "$0")" && pwd)

usage() { sed -n '2,/^set /s/^# \{0,1\}//p' "$0"; }
fail() { printf 'install.sh: %s\n' "$*" >&2; exit 2; }

prefix=
uninstall=
while [ $# -gt 0 ]; do
    case "$1" in
        --prefix) [ $# -gt 1 ] || fail "--prefix wants a folder"; prefix=$2; shift ;;
        --prefix=*) prefix=${1#*=} ;;
        --uninstall) uninstall=yes ;;
        -h | --help) usage; exit 0 ;;
        *) fail "unknown argument $1; --help lists them" ;;
    esac
    shift
done
if [ -z "$prefix" ]; then
    if [ "$(id -u)" = 0 ]; then prefix=/usr/local; else prefix=$HOME/.local; fi
fi
# Some shells do not expand the tilde of --prefix=~/.local; a path on PATH must be absolute.
case $prefix in
    "~"/*) prefix=$HOME/${prefix#"~/"} ;;
esac
case $prefix in
    /*) ;;
    *) prefix=$PWD/$prefix ;;
esac
# What was installed, a path a line, below the prefix.
list=share/doc/hepfs/installed-files

remove() {
    while IFS= read -r file; do
        rm -f "$prefix/$file"
        # Folders that held nothing else go as well; others stay.
        (cd "$prefix" && rmdir -p "$(dirname "$file")" 2>/dev/null) || true
    done < "$1"
}

if [ -n "$uninstall" ]; then
    [ -f "$prefix/$list" ] || fail "$prefix has no hepfs that this script installed: $list is missing there"
    copy=$(mktemp)
    cat "$prefix/$list" > "$copy"
    remove "$copy"
    rm -f "$copy"
    echo "removed hepfs from $prefix"
    exit 0
fi

mkdir -p "$prefix/share/doc/hepfs"
(cd "$from" && find bin lib sbin share ! -type d | sort && echo "$list") > "$prefix/$list.new"
# Another version may have had files that this one lacks.
if [ -f "$prefix/$list" ]; then
    gone=$(mktemp)
    grep -Fxv -f "$prefix/$list.new" "$prefix/$list" > "$gone" || true
    remove "$gone"
    rm -f "$gone"
fi
(cd "$from" && find bin lib sbin share ! -type d) | while IFS= read -r file; do
    mkdir -p "$prefix/$(dirname "$file")"
    # A running program keeps its file: the new one takes over the name.
    case $file in
        # Units of systemd name the program by its path.
        *.service) sed "s|@PREFIX@|$prefix|" "$from/$file" > "$prefix/$file.new" ;;
        *) cp -P "$from/$file" "$prefix/$file.new" ;;
    esac
    mv -f "$prefix/$file.new" "$prefix/$file"
done
mv -f "$prefix/$list.new" "$prefix/$list"
echo "installed $prefix/bin/hepfs"
case ":$PATH:" in
    *":$prefix/bin:"*) ;;
    *) echo "$prefix/bin is not on PATH: export PATH=\"$prefix/bin:\$PATH\"" ;;
esac
if [ "$(id -u)" = 0 ] && [ ! -e /sbin/mount.hepfs ]; then
    echo "mount(8) finds hepfs after: ln -s $prefix/sbin/mount.hepfs $prefix/sbin/mount.fuse.hepfs /sbin"
fi
