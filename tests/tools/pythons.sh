#!/usr/bin/env bash
# pythons.sh DIR: CPython 3.14 and 3.15 of Debian's suite forky under DIR/root, for the tests. DIR/bin/python3.N start them.
#
# Nothing is installed, and no root is needed: apt-get runs with a private source list and private state, and the packages are only
# unpacked (dpkg -x). They need a newer libc than Debian 12's: patchelf makes them name the one that is unpacked with them, and find
# their libraries there. Made anew after a week, as the suite moves; if that fails, those of before stay. Exit code 0: they are there.
set -euo pipefail

versions=(3.14 3.15)
packages=(libc6 libgcc-s1 libstdc++6 libexpat1 zlib1g libffi8 libssl3t64 libzstd1 libbz2-1.0 liblzma5)
for version in "${versions[@]}"; do
  packages+=("python$version-minimal" "libpython$version"{,-minimal,-stdlib,-dev})
done
dir=${1:?usage: pythons.sh DIR}
say() { printf 'pythons: %s\n' "$*" >&2; }

key=$(printf '%s\n' "${packages[@]}" | cat - "${BASH_SOURCE[0]}" | sha256sum | cut -c1-16)
there=false
[[ -f $dir/.stamp && $(<"$dir/.stamp") == "$key" ]] && "$dir/bin/python3.14" -c '' 2>/dev/null && there=true  # not if it was moved
$there && [[ -z $(find "$dir/.stamp" -mtime +7) ]] && exit 0
failed() {
  $there || { say "$1"; exit 1; }
  say "$1: those of before are used"
  exit 0
}
command -v apt-get >/dev/null && command -v dpkg >/dev/null && command -v patchelf >/dev/null || failed "apt-get, dpkg or patchelf is missing"
[[ $(dpkg --print-architecture) == amd64 ]] || failed "only for amd64"

uri=$(apt-get indextargets --format '$(REPO_URI) $(CODENAME) $(COMPONENT) $(ORIGIN)' 'Created-By: Packages' 2>/dev/null |
  awk '$2 == "bookworm" && $3 == "main" && $4 == "Debian" { print $1; exit }')
mkdir -p "$dir"
dir=$(cd -- "$dir" && pwd)
work=$dir/download root=$dir/download/root
rm -rf "$work"
mkdir -p "$work"/{lists/partial,cache/archives/partial,bin} "$root"
trap 'rm -rf "$work"' EXIT
: >"$work/status"
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
option='[arch=amd64]'
[[ -f $keyring ]] && option="[arch=amd64 signed-by=$keyring]"
echo "deb $option ${uri:-http://deb.debian.org/debian} forky main" >"$work/sources.list"
cat >"$work/apt.conf" <<CONF
Dir::Etc::sourcelist "$work/sources.list";
Dir::Etc::sourceparts "-";
Dir::State::lists "$work/lists";
Dir::State::status "$work/status";
Dir::Cache "$work/cache";
APT::Sandbox::User "root";
Acquire::Retries "3";
Acquire::Languages "none";
CONF
export APT_CONFIG=$work/apt.conf

say "fetching CPython ${versions[*]} from Debian forky into $dir (50 MB)"
log=$dir/fetch.log
{ apt-get -q update && cd "$work" && apt-get -q download "${packages[@]}"; } </dev/null >"$log" 2>&1 ||
  { tail -n 5 "$log" >&2; failed "CPython ${versions[*]} cannot be had here (the log is in $log)"; }
for deb in "$work"/*.deb; do dpkg -x "$deb" "$root"; done
find "$root" -name 'libpython*.a' -delete
rm -rf "$root/usr/share"
libraries=$root/usr/lib/x86_64-linux-gnu
[[ -e $root/lib ]] || ln -s usr/lib "$root/lib"
# A program names its loader by an absolute path, which is the one at last.
final=$dir/root/usr/lib/x86_64-linux-gnu
for version in "${versions[@]}"; do
  patchelf --set-interpreter "$final/ld-linux-x86-64.so.2" --force-rpath --set-rpath "$final" "$root/usr/bin/python$version" &&
    patchelf --force-rpath --set-rpath "$final" "$libraries/libpython$version.so.1.0" || failed "patchelf failed"
  ln -s "../root/usr/bin/python$version" "$work/bin/python$version"
done
rm -rf "$dir/root" "$dir/bin" "$dir/.stamp"
mv "$root" "$work/bin" "$dir/"
for version in "${versions[@]}"; do
  "$dir/bin/python$version" -c 'import asyncio, ctypes, threading' >>"$log" 2>&1 || { say "CPython $version does not start here (see $log)"; exit 1; }
done
printf %s "$key" >"$dir/.stamp"
say "ready: $("$dir/bin/python3.14" -V), $("$dir/bin/python3.15" -V)"
