#!/usr/bin/env bash
# fetch.sh FOLDER [amd64|arm64]: what a portable build links against, into FOLDER: the sources and packages of sources.txt
# (each checked against its SHA-256), Debian 11's libc as FOLDER/sysroot, the libraries of another architecture as
# FOLDER/libraries, floor.o, and the options that link against them as FOLDER/link. A second run does nothing.
set -euo pipefail
folder=$(readlink -m "${1:?usage: fetch.sh FOLDER}")
here=$(cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")" && pwd)
arch=${2:-$(dpkg --print-architecture)}
die() { printf 'fetch: error: %s\n  hint: %s\n' "$1" "$2" >&2; exit 69; }
case $arch in  # dpkg-architecture would know, but a machine without dpkg-dev has none
  amd64) triple=x86_64-linux-gnu ;;
  arm64) triple=aarch64-linux-gnu ;;
  *) die "there is no portable build for $arch" "amd64 and arm64 have one." ;;
esac
cc=gcc
if [[ $arch != "$(dpkg --print-architecture)" ]]; then
  cc=$triple-gcc
fi

key=$(cat "$here/sources.txt" "$here/floor.c" "$here/fetch.sh" <(echo "$arch") | sha256sum | cut -c1-16)
[[ -f $folder/.stamp && $(<"$folder/.stamp") == "$key" ]] && exit 0
mirror=$(apt-get indextargets --format '$(REPO_URI) $(CODENAME) $(COMPONENT) $(ORIGIN)' 'Created-By: Packages' 2>/dev/null |
  awk '$3 == "main" && $4 == "Debian" && $1 !~ /security/ { print $1; exit }')
mirror=${mirror:-http://deb.debian.org/debian}
rm -rf "$folder"
mkdir -p "$folder/sysroot"
while read -r sum path licence; do
  [[ -z $sum || $sum == \#* ]] && continue
  [[ $path == *_*_a*64.deb && $path != *_"$arch.deb" ]] && continue
  file=$folder/${path##*/}
  python3 -c 'import sys, urllib.request; urllib.request.urlretrieve(*sys.argv[1:])' "${mirror%/}/$path" "$file" ||
    die "$path was not fetched from $mirror ($licence)" "Is the network there? apt-get update shows it."
  printf '%s  %s\n' "$sum" "$file" | sha256sum --check --quiet || die "$file is not what sources.txt names" "Remove it and run again."
  case $file in
    */libc6*.deb | */libgcc-s1*.deb) dpkg-deb -x "$file" "$folder/sysroot" ;;
    *.deb) dpkg-deb -x "$file" "$folder/libraries" ;;
    *) tar -xf "$file" -C "$folder" ;;
  esac
done <"$here/sources.txt"
# libpthread.so and its like lead to /lib: here, to the sysroot's.
find "$folder/sysroot" -type l -lname '/*' | while read -r link; do
  ln -sfn "$(realpath -m --relative-to="$(dirname "$link")" "$folder/sysroot$(readlink "$link")")" "$link"
done
"$cc" -O2 -fPIC -c -o "$folder/floor.o" "$here/floor.c"
# How to link against all that, for every linker's caller (@FOLDER/link). The compiler looks beside itself before it looks below
# a sysroot: -B puts the sysroot's start files and libc first.
libc=$folder/sysroot/usr/lib/$triple
printf '%s\n' "--sysroot=$folder/sysroot" "-B$libc/" "-L$libc" -pthread -static-libstdc++ -static-libgcc "$folder/floor.o" \
  -Wl,--wrap=exp,--wrap=log,--wrap=pow >"$folder/link"
printf %s "$key" >"$folder/.stamp"
