#!/usr/bin/env bash
# bare.sh CHECKOUT CACHE [demo|test|web] [root|user]: the README's commands in a Debian 12 that has nothing but git.
#
# CACHE/base is a root of `debootstrap --variant=minbase --include=ca-certificates,git bookworm`, made anew after a week. For
# each user (root; then one with sudo) it is copied, the commit that is checked out is cloned into it, and the commands run
# in namespaces of their own (mounts, processes). Of this machine it gets the network's settings alone: resolver, proxies,
# certificates, and where Debian's and npm's packages come from. `web` also asks that the page built there is the
# committed one to the byte. One line a command at the end: exit code, time, last line. Exit code: 0 when all ended with
# 0. Needs root and debootstrap.
set -euo pipefail

checkout=${1:?usage: bare.sh CHECKOUT CACHE [demo|test|web] [root|user]}
cache=${2:?usage: bare.sh CHECKOUT CACHE [demo|test|web] [root|user]}
commands=(demo test) users=(root user)
for word in "${@:3}"; do
  case $word in
    demo | test | web) commands=("$word") ;;
    root | user) users=("$word") ;;
    *) printf 'bare: error: unknown word: %s\n  hint: Say demo, test or web, root or user, or nothing for all.\n' "$word" >&2; exit 64 ;;
  esac
done

say() { printf 'bare: %s\n' "$*" >&2; }
die() { printf 'bare: error: %s\n  hint: %s\n' "$1" "$2" >&2; exit 69; }
[[ $EUID -eq 0 ]] || die "only root can make a root folder" "Run it as root: sudo ./dev bare"
command -v debootstrap >/dev/null || die "debootstrap is not installed" "apt-get install debootstrap"
[[ -z $(git -C "$checkout" status --porcelain) ]] || say "only what is committed is tried"

base=$cache/base
mkdir -p "$cache"
if [[ ! -f $base.stamp || -n $(find "$base.stamp" -mtime +7) ]]; then
  say "making a bare Debian 12 in $base"
  uri=$(apt-get indextargets --format '$(REPO_URI) $(CODENAME) $(COMPONENT) $(ORIGIN)' 'Created-By: Packages' 2>/dev/null |
    awk '$2 == "bookworm" && $3 == "main" && $4 == "Debian" { print $1; exit }')
  rm -rf --one-file-system "$base"
  debootstrap --variant=minbase --include=ca-certificates,git bookworm "$base" ${uri:+"$uri"} >"$cache/debootstrap.log" 2>&1 ||
    die "debootstrap failed" "The whole log is in $cache/debootstrap.log"
  : >"$base.stamp"
fi

# The network's settings.
settings() {  # ROOT
  cp -L /etc/resolv.conf /etc/hosts "$1/etc/"
  mkdir -p "$1/usr/local/share/ca-certificates"
  cp -r /usr/local/share/ca-certificates/. "$1/usr/local/share/ca-certificates/" 2>/dev/null || true
  chroot "$1" update-ca-certificates >/dev/null 2>&1
  apt-config dump | grep -E '^Acquire::(https?::(Proxy|Verify)|Check-)' >"$1/etc/apt/apt.conf.d/90network" || true
}
environment=(HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin TERM=dumb LANG=C.UTF-8)
for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY NODE_EXTRA_CA_CERTS SSL_CERT_FILE; do
  if [[ -n ${!name:-} ]]; then environment+=("$name=${!name}"); fi
done
if command -v npm >/dev/null; then environment+=("npm_config_registry=$(npm config get registry 2>/dev/null)"); fi

# inside ROOT command...: with /proc, a /dev of its own and /tmp, in namespaces that end with the command.
inside() {
  local at=$1; shift
  unshare --mount --pid --fork --kill-child -- bash -c '
    set -e
    at=$1; shift
    mount --make-rprivate /
    mount -t proc proc "$at/proc"
    mount -t tmpfs -o mode=755 tmpfs "$at/dev"
    for name in null zero full random urandom tty; do : >"$at/dev/$name"; mount --bind "/dev/$name" "$at/dev/$name"; done
    mkdir "$at/dev/pts" "$at/dev/shm"
    mount -t devpts -o newinstance,ptmxmode=0666 devpts "$at/dev/pts"
    ln -s pts/ptmx "$at/dev/ptmx"
    ln -s /proc/self/fd "$at/dev/fd"
    mount -t tmpfs -o mode=1777 tmpfs "$at/dev/shm"
    mount -t sysfs -o ro sysfs "$at/sys" 2>/dev/null || true
    exec chroot "$at" "$@"' bare "$at" env -i "${environment[@]}" "$@"
}

declare -A check=([web]=' && git diff --exit-code')
results=() ok=0
for user in "${users[@]}"; do
  root=$cache/$user
  rm -rf --one-file-system "$root"
  cp -a --reflink=auto "$base" "$root"
  settings "$root"
  home=/root as=()
  if [[ $user == user ]]; then
    home=/home/user
    as=(runuser -u user --)
    inside "$root" bash -c 'apt-get -q update && apt-get -q install -y --no-install-recommends sudo && useradd -m user &&
      echo "user ALL=(ALL) NOPASSWD: ALL" >/etc/sudoers.d/user' >"$cache/$user.log" 2>&1 </dev/null ||
      die "a user with sudo could not be made" "The whole log is in $cache/$user.log"
  fi
  git clone -q --depth 1 "file://$checkout" "$root$home/rangescope"
  if [[ $user == user ]]; then chroot "$root" chown -R user: "$home/rangescope"; fi
  for command in "${commands[@]}"; do
    say "$user: ./dev $command (its output: $cache/$user-$command.log)"
    begin=$SECONDS code=0
    inside "$root" "${as[@]}" env HOME="$home" bash -c "cd $home/rangescope && ./dev $command${check[$command]:-}" \
      >"$cache/$user-$command.log" 2>&1 </dev/null || code=$?
    took=$((SECONDS - begin))
    results+=("$user: ./dev $command: exit code $code, $((took / 60)) min $((took % 60)) s: $(tail -n 1 "$cache/$user-$command.log")")
    if ((code != 0)); then ok=1; tail -n 30 "$cache/$user-$command.log" >&2; fi
  done
  rm -rf --one-file-system "$root"
done
printf '%s\n' "${results[@]}"
exit $ok
