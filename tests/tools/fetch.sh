#!/usr/bin/env bash
# fetch.sh DIR: puts the real nsys 2022.4.2 and ncu 2022.3.0 of Debian's non-free component under DIR, for the tests.
#
# Nothing is installed: apt-get runs with a private source list and private state, found from the system's own Debian
# source, and the packages are only unpacked (dpkg -x). DIR/bin/{nsys,ncu,QdstrmImporter} start them. The libraries that
# the importer of nsys lacks on a bare machine are unpacked beside it. Exit code 0: they are there. 1: they cannot be had.
set -euo pipefail

packages=(nsight-systems nsight-systems-target nsight-compute nsight-compute-target
  libssh-4 libpfm4 libgssapi-krb5-2 libkrb5-3 libk5crypto3 libkrb5support0 libcom-err2 libkeyutils1 libssl3)
dir=${1:?usage: fetch.sh DIR}
say() { printf 'tools: %s\n' "$*" >&2; }

key=$(printf '%s\n' "${packages[@]}" | cat - "${BASH_SOURCE[0]}" | sha256sum | cut -c1-16)
[[ -f $dir/.stamp && $(<"$dir/.stamp") == "$key" ]] && exit 0
command -v apt-get >/dev/null && command -v dpkg >/dev/null || { say "no apt-get here"; exit 1; }
[[ $(dpkg --print-architecture) == amd64 ]] || { say "only for amd64"; exit 1; }

uri=$(apt-get indextargets --format '$(REPO_URI) $(CODENAME) $(COMPONENT) $(ORIGIN)' 'Created-By: Packages' 2>/dev/null |
  awk '$2 == "bookworm" && $3 == "main" && $4 == "Debian" { print $1; exit }')
[[ -n $uri ]] || uri=$(apt-get indextargets --format '$(REPO_URI) $(SUITE)' 'Created-By: Packages' 2>/dev/null | awk 'NR == 1 { print $1 }')
[[ -n $uri ]] || { say "this system has no Debian source to ask"; exit 1; }

mkdir -p "$dir"
dir=$(cd -- "$dir" && pwd)
work=$dir/download
rm -rf "$work" "$dir/root" "$dir/bin" "$dir/.stamp"
mkdir -p "$work"/{lists/partial,cache/archives/partial} "$dir/root" "$dir/bin"
trap 'rm -rf "$work"' EXIT
: >"$work/status"  # what is installed here may be newer than all of this source
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
option='[arch=amd64]'
[[ -f $keyring ]] && option="[arch=amd64 signed-by=$keyring]"
echo "deb $option $uri bookworm main non-free" >"$work/sources.list"
# apt reads its options from a file, so that paths with spaces stay one word.
cat >"$work/apt.conf" <<EOF
Dir::Etc::sourcelist "$work/sources.list";
Dir::Etc::sourceparts "-";
Dir::State::lists "$work/lists";
Dir::State::status "$work/status";
Dir::Cache "$work/cache";
APT::Sandbox::User "root";
Acquire::Retries "3";
Acquire::Languages "none";
EOF
export APT_CONFIG=$work/apt.conf

say "fetching nsys 2022.4.2 and ncu 2022.3.0 from Debian non-free into $dir (370 MB, once)"
log=$dir/fetch.log
if ! { apt-get -q update && cd "$work" && apt-get -q download "${packages[@]}"; } </dev/null >"$log" 2>&1; then
  tail -n 5 "$log" >&2
  say "they cannot be had here (the log is in $log)"
  exit 1
fi
for deb in "$work"/*.deb; do dpkg -x "$deb" "$dir/root"; done
# Of the package nsight-compute only the section files are needed, without which ncu collects nothing.
rm -rf "$dir/root/usr/share" "$dir"/root/usr/lib/nsight-compute/{host,extras}

wrapper() {  # NAME PATH-UNDER-ROOT: a start script that needs no LD_LIBRARY_PATH from outside
  cat >"$dir/bin/$1" <<EOF
#!/bin/sh
# Written by tests/tools/fetch.sh
root=\$(dirname "\$(dirname "\$(readlink -f "\$0")")")/root
$3exec "\$root/$2" "\$@"
EOF
  chmod +x "$dir/bin/$1"
}
wrapper nsys usr/lib/nsight-systems/bin/nsys ''
wrapper ncu "$(cd "$dir/root" && echo usr/lib/x86_64-linux-gnu/nsight-compute/target/*/ncu)" ''
wrapper QdstrmImporter usr/lib/nsight-systems/host-linux-x64/QdstrmImporter \
  'export LD_LIBRARY_PATH="$root/usr/lib/x86_64-linux-gnu${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
'
"$dir/bin/nsys" --version >>"$log" 2>&1 && "$dir/bin/ncu" --version >>"$log" 2>&1 || { say "they do not start here (see $log)"; exit 1; }
printf %s "$key" >"$dir/.stamp"
say "ready: $("$dir/bin/nsys" --version | head -n 1)"
