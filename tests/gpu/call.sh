#!/usr/bin/env bash
# One call on a machine with a GPU: parts of run.py in order, each within a time of its own, all of them within SECONDS.
#
#   tests/gpu/call.sh BUILD OUT SECONDS part:seconds...      attach.Cuda:80 clocks:110
#
# OUT/PART has what a part leaves; its first and last lines say which part, and how it ended (124: its time was over).
set -uo pipefail
[ $# -ge 4 ] || { sed -n '2,6p' "$0"; exit 64; }
here=$(cd "$(dirname "$0")" && pwd); build=$1 out=$2 until=$((SECONDS + $3)); shift 3
for part in "$@"; do
  left=$((until - SECONDS)) most=${part##*:} name=${part%:*} begun=$SECONDS
  ((left >= 10)) || { echo "== $name: no time left"; continue; }
  echo "== $name"
  PYTHONUNBUFFERED=1 timeout -k 5 "$((most < left ? most : left))" python3 "$here/run.py" "$build" "$out/$name" "$name" 2>&1
  echo "== $name: code $?, $((SECONDS - begun)) s"
done
