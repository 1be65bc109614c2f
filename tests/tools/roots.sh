# Bare Debians as folders, and commands inside them: sourced by bare.sh and packaging/try.sh, which set $cache and say `me`.
say() { printf '%s: %s\n' "$me" "$*" >&2; }
die() { printf '%s: error: %s\n  hint: %s\n' "$me" "$1" "$2" >&2; exit 69; }
[[ $EUID -eq 0 ]] || die "only root can make a root folder" "Run it as root, with sudo"
command -v debootstrap >/dev/null || die "debootstrap is not installed" "apt-get install debootstrap"
mkdir -p "$cache"

# bootstrap SUITE ROOT PACKAGES: a minimal Debian with PACKAGES (comma-separated), made anew after a week.
bootstrap() {
  [[ -f $2.stamp && -z $(find "$2.stamp" -mtime +7) ]] && return 0
  say "making a bare Debian ($1) in $2"
  local uri
  uri=$(apt-get indextargets --format '$(REPO_URI) $(CODENAME) $(COMPONENT) $(ORIGIN)' 'Created-By: Packages' 2>/dev/null |
    awk '$2 == "bookworm" && $3 == "main" && $4 == "Debian" { print $1; exit }')
  rm -rf --one-file-system "$2"
  debootstrap --variant=minbase --include="$3" "$1" "$2" ${uri:+"$uri"} >"$2.log" 2>&1 ||
    die "debootstrap failed" "The whole log is in $2.log"
  : >"$2.stamp"
}

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

# inside ROOT command...: with /proc, a /dev of its own and /tmp, in namespaces that end with the command. The root is a mount
# itself, so that commands can have namespaces of their own.
inside() {
  local at=$1; shift
  unshare --mount --pid --fork --kill-child -- bash -c '
    set -e
    at=$1; shift
    mount --make-rprivate /
    mount --bind "$at" "$at"
    mount -t proc proc "$at/proc"
    mount -t tmpfs -o mode=755 tmpfs "$at/dev"
    for name in null zero full random urandom tty; do : >"$at/dev/$name"; mount --bind "/dev/$name" "$at/dev/$name"; done
    mkdir "$at/dev/pts" "$at/dev/shm"
    mount -t devpts -o newinstance,ptmxmode=0666 devpts "$at/dev/pts"
    ln -s pts/ptmx "$at/dev/ptmx"
    ln -s /proc/self/fd "$at/dev/fd"
    for name in stdin:0 stdout:1 stderr:2; do ln -s "/proc/self/fd/${name#*:}" "$at/dev/${name%:*}"; done
    mount -t tmpfs -o mode=1777 tmpfs "$at/dev/shm"
    mount -t sysfs -o ro sysfs "$at/sys" 2>/dev/null || true
    exec chroot "$at" "$@"' bare "$at" env -i "${environment[@]}" "$@"
}
