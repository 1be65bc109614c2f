#!/usr/bin/env bash
# bare.sh CHECKOUT CACHE [demo|test|web] [root|user]: the README's commands in a Debian 12 that has nothing but git.
#
# CACHE/base is a root of `debootstrap --variant=minbase --include=ca-certificates,git bookworm`, made anew after a week. For
# each user (root; then one with sudo) it is copied, the commit that is checked out is cloned into it, and the commands run
# in namespaces of their own (mounts, processes). Of this machine it gets the network's settings alone: resolver, proxies,
# certificates, and where Debian's and npm's packages come from. `web` also asks that the page built there is the
# committed one to the byte, and `test` that no test is skipped because a package is missing. One line a command at the end:
# exit code, time, last line. Exit code: 0 when all ended with 0. Needs root and debootstrap.
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

me=bare
source "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/roots.sh"
[[ -z $(git -C "$checkout" status --porcelain) ]] || say "only what is committed is tried"

base=$cache/base
bootstrap bookworm "$base" ca-certificates,git

# The two lines that the demo ends with work when they are pasted, from any folder; so does an installation of one's own.
pasted='./dev demo | tee /tmp/demo && tail -n 2 /tmp/demo >/tmp/pasted && (cd /tmp && bash -ex /tmp/pasted) &&
  ./dev install && PATH=$HOME/.local/bin:$PATH bash -c "cd / && rangescope --version && python3 -c \"import rangescope\""'
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
    line="./dev $command"
    [[ $command == demo ]] && line=$pasted
    begin=$SECONDS code=0
    inside "$root" "${as[@]}" env HOME="$home" bash -c "set -o pipefail; cd $home/rangescope && $line${check[$command]:-}" \
      >"$cache/$user-$command.log" 2>&1 </dev/null || code=$?
    took=$((SECONDS - begin))
    # With the packages that `dev` installs, nothing may be skipped because one is missing. CUPTI's headers come with CUDA.
    missing='^skipped .*(not installed|not at hand|built without|apt-get install|check\.floor)'
    if [[ $command == test ]] && grep -E "$missing" "$cache/$user-test.log" | grep -v "CUPTI's headers" >&2; then
      code=${code/#0/1}
    fi
    results+=("$user: ./dev $command: exit code $code, $((took / 60)) min $((took % 60)) s: $(tail -n 1 "$cache/$user-$command.log")")
    if ((code != 0)); then ok=1; tail -n 30 "$cache/$user-$command.log" >&2; fi
  done
  rm -rf --one-file-system "$root"
done
printf '%s\n' "${results[@]}"
exit $ok
