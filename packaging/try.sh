#!/usr/bin/env bash
# try.sh PACKAGES CACHE: what `./dev package` made, used as a stranger would: in bare roots of Debian 11, 12 and 13 (made by
# debootstrap below CACHE, with Python and no compiler) the tarball is unpacked, the wheel goes into a venv, the .deb is
# installed, upgraded over itself and removed, and leaves nothing; each has to profile a C++, a Python and an MPI program (try.py;
# two ranks under that Debian's Open MPI, 4.1.0 to 5.0). A line for each. Exit code: 0 when all worked. Needs root and debootstrap.
set -euo pipefail
packages=$(readlink -f "${1:?usage: try.sh PACKAGES CACHE}")
cache=$(readlink -m "${2:?usage: try.sh PACKAGES CACHE}")
here=$(cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")" && pwd)
me=try
source "$here/../tests/tools/roots.sh"

tried() {  # NAME ROOT command...
  local name=$1 root=$2 begin=$SECONDS; shift 2
  if inside "$root" "$@" >"$cache/try.log" 2>&1 </dev/null; then
    say "$name: $(tail -n 1 "$cache/try.log"), $((SECONDS - begin)) s"
  else
    say "$name: FAILED"; tail -n 20 "$cache/try.log" >&2; ok=1
  fi
}

mapfile -t names < <(cd "$here/../python/rangescope" && find . -name '*.py' ! -name __init__.py -printf '%P\n' | sed 's/\.py$//; s,/,.,g' | sort)
((${#names[@]} >= 7)) || die "the package python/rangescope is not there" "Run it in a checkout"
ok=0
for suite in bullseye bookworm trixie; do
  base=$cache/$suite root=$cache/$suite-try
  bootstrap "$suite" "$base" python3,python3-venv,openmpi-bin
  rm -rf --one-file-system "$root"
  cp -a --reflink=auto "$base" "$root"
  mkdir -p "$root/try"
  cp "$packages"/* "$here/try.py" "$root/try/"
  g++ -O2 -std=c++17 -I"$here/../include" -c "$here/try.cpp" -o "$cache/program.o"
  g++ "$cache/program.o" "@${PORTABLE:?PORTABLE names the folder of packaging/fetch.sh}/link" -lm -ldl -o "$root/try/program"
  mpicc.openmpi -O2 -I"$here/../third_party/nvtx3/include" -c "$here/../tests/jobs/mpi_program.c" -o "$cache/program.o"
  g++ "$cache/program.o" "@$PORTABLE/link" "$(mpicc.openmpi --showme:libdirs)/libmpi.so" -Wl,--allow-shlib-undefined -ldl -o "$root/try/program-mpi"
  tried "$suite: tarball" "$root" bash -ec 'cd /try; tar xzf rangescope-*.tar.gz; exec python3 try.py /try/rangescope-*/bin/rangescope /try/program "$@"' try "${names[@]}"
  tried "$suite: wheel" "$root" bash -ec 'cd /try; python3 -m venv v; v/bin/pip install -q --no-index rangescope-*.whl
    v/bin/python -c "import rangescope; assert rangescope.backend == \"none\""; exec v/bin/python try.py /try/v/bin/rangescope /try/program "$@"' try "${names[@]}"
  tried "$suite: deb" "$root" bash -ec 'cd /try; files() { find / -xdev -path /proc -prune -o -path /try -prune -o -path /var/lib/dpkg -prune -o \
      -path "/var/log/*" -prune -o -path "/var/cache/*" -prune -o -path "/tmp/*" -prune -o -path "/root/*" -prune -o -path "*/__pycache__*" -prune -o -print | sort; }
    files >before; dpkg -i rangescope_*.deb; dpkg -i rangescope_*.deb; python3 -c "import rangescope"
    python3 try.py /usr/bin/rangescope /try/program "$@" >tried; dpkg -P rangescope; files >after; diff before after; tail -n 1 tried' try "${names[@]}"
  rm -rf --one-file-system "$root"
done
exit $ok
