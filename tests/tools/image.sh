#!/usr/bin/env bash
# image.sh CHECKOUT CACHE: the lines of the Dockerfile where there is no Docker. FROM is a bare root of debootstrap, RUN a
# command in it; COPY takes the commit that is checked out (what else lies there, .dockerignore leaves out), or files of an
# earlier stage. At last the image runs what the Dockerfile's first comment says. Exit code: 0 when all ended with 0. Needs
# root and debootstrap.
set -euo pipefail
checkout=$(readlink -f "${1:?usage: image.sh CHECKOUT CACHE}")
cache=$(readlink -m "${2:?usage: image.sh CHECKOUT CACHE}")
me=image
source "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/roots.sh"
file=$checkout/Dockerfile

left=$(git -C "$checkout" ls-files --others --ignored --exclude-standard --directory | sed 's,/$,,' |
  grep -vxE "$(sed 's,[.],\\.,g; s,^[*][*]/,(.*/)?,' "$checkout/.dockerignore" | paste -sd'|')" || true)
[[ -z $left ]] || die "COPY would take what git ignores: $left" "Add it to .dockerignore"
bootstrap bookworm "$cache/debian" ca-certificates
declare -A stages=()
root='' at=/ entry=''
run() {
  say "$*"
  inside "$root" sh -c "cd $at && $*" >"$cache/image.log" 2>&1 </dev/null || { tail -n 30 "$cache/image.log" >&2; die "$* failed" "The log is $cache/image.log"; }
}
while read -r word rest; do
  case $word in
    '' | '#'*) ;;
    FROM)
      [[ $rest =~ ^debian:12(\ AS\ ([a-z]+))?$ ]] || die "FROM $rest" "Only debian:12 is known here"
      root=$cache/image-${#stages[@]} at=/
      stages[${BASH_REMATCH[2]:-last}]=$root
      rm -rf --one-file-system "$root"
      cp -a --reflink=auto "$cache/debian" "$root"
      settings "$root" ;;
    WORKDIR) at=$rest ;;
    RUN) run "$rest" ;;
    COPY)
      read -r from what to <<<"$rest"
      if [[ $from == --from=* ]]; then
        from=${stages[${from#--from=}]}$what
        if [[ -d $from ]]; then cp -a "$from/." "$root$to"; else cp -a "$from" "$root$to"; fi
      else
        [[ "$from $what" == '. /src' && -z $to ]] || die "COPY $rest" "Only . is copied here"
        git clone -q --depth 1 "file://$checkout" "$root$what"
      fi ;;
    ENTRYPOINT) entry=$(python3 -c 'import json, shlex, sys; print(shlex.join(json.loads(sys.argv[1])))' "$rest") ;;
    *) die "the Dockerfile has a $word" "Teach tests/tools/image.sh" ;;
  esac
done < <(sed -e ':more' -e '/\\$/{N;s/\\\n *//;b more' -e '}' "$file")
at=/root
words=$(sed -nE 's/.*`docker run --rm rangescope ([^`]*)`.*/\1/p' "$file")
run "$entry ${words:?no command in the first comment of the Dockerfile}"
grep -E 'decode|whole run' "$cache/image.log" || die "no table" "The output is $cache/image.log"
for stage in "${stages[@]}"; do rm -rf --one-file-system "$stage"; done
