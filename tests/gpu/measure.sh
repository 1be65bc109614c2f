#!/usr/bin/env bash
# What GPU tracing costs and whether it is right, on a machine with a GPU: the figures of docs/performance.md, section "GPU
# tracing". Nothing is installed; results are printed, captures stay in the folder given.
#
#   tests/gpu/measure.sh BUILD OUT      BUILD: a build folder with bin/rangescope; OUT: an empty folder
#   NSYS=/path/to/nsys                  also measures Nsight Systems in the same run
#   PYTHON=/path/to/python3             one with PyTorch and CUDA; without it those parts are left out
#   ROUNDS=5                            how often each way is run; all ways take turns
set -euo pipefail
[ $# -eq 2 ] || { sed -n '2,9p' "$0"; exit 64; }
here=$(cd "$(dirname "$0")" && pwd); build=$(cd "$1" && pwd); mkdir -p "$2"; out=$(cd "$2" && pwd)
rangescope=$build/bin/rangescope; inject=$build/lib/librangescope_inject.so; rounds=${ROUNDS:-5}
nvcc=${NVCC:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}
for program in launch zoo several; do
  [ -x "$out/$program" ] ||
    "$nvcc" -O2 -std=c++17 -arch=native -I"$here/../../third_party/nvtx3/include" "$here/$program.cu" -o "$out/$program"
done

# ranges FOLDER command...: NVTX alone.  traced FOLDER command...: NVTX and CUDA, as `rangescope profile` starts it.
ranges() { local folder=$1; shift; rm -rf "$folder"; mkdir -p "$folder"; RANGESCOPE_DIR=$folder NVTX_INJECTION64_PATH=$inject "$@"; }
traced() { local folder=$1; shift; CUDA_INJECTION64_PATH=$inject ranges "$folder" "$@"; }
whole() { (cd "$out" && "$rangescope" profile -q --output "$out/runs" -- "$@" 2>/dev/null); }
system() { (cd "$out" && "$NSYS" profile --trace=cuda,nvtx -f true -o "$out/nsys" "$@" 2>/dev/null); }
one() {  # NAME command...: name, us a launch, ms of wall time
  local name=$1 begin end text; shift; begin=$(date +%s%N); text=$("$@"); end=$(date +%s%N)
  echo "$name $(grep -o '[0-9.]* us/launch' <<<"$text" | cut -d' ' -f1) $(((end - begin) / 1000000))" >>"$out/launch.txt"
}

echo "== 400,000 launches, $rounds rounds"
rm -f "$out/launch.txt"
for ((i = 0; i < rounds; ++i)); do
  one nothing "$out/launch"
  one ranges ranges "$out/capture" "$out/launch"
  one traced traced "$out/capture" "$out/launch"
  RANGESCOPE_LAUNCH_RECORDS=callback one callbacks traced "$out/capture" "$out/launch"
  one whole whole "$out/launch"
  [ -z "${NSYS:-}" ] || one nsys system "$out/launch"
done
awk '{ n = $1; if (!(n in us) || $2 < us[n]) us[n] = $2; if (!(n in ms) || $3 < ms[n]) ms[n] = $3; if (!seen[n]++) order[++k] = n }
     END { for (i = 1; i <= k; ++i) { n = order[i]
           printf "%-10s best %.2f us a launch, +%.2f; whole command %d ms, %.2fx\n", n, us[n], us[n] - us["nothing"], ms[n], ms[n] / ms["nothing"] } }' "$out/launch.txt"

echo "== captures"
traced "$out/captures/zoo" "$out/zoo" >"$out/zoo.truth.json"
RANGESCOPE_CUDA_GRAPHS=graph traced "$out/captures/graph" "$out/zoo" >/dev/null
traced "$out/captures/launch" "$out/launch" 20 20 >/dev/null
cmp "$out/zoo.truth.json" "$here/../golden/native-gpu/zoo.truth.json" && "$rangescope" report "$out/captures/zoo" -o -
for program in zoo several; do  # as the programs counted themselves
  (cd "$out" && "$rangescope" profile -q --output "$out/truth-$program" -- "$out/$program" >"$out/$program.json")
  python3 "$here/truth.py" "$out/truth-$program"/*/report.json "$out/$program.json"
done
if [ -n "${PYTHON:-}" ]; then
  LAYERS=2 TOK=3 WARM=0 traced "$out/captures/work" "$PYTHON" "$here/work.py" >/dev/null
  for script in autograd mp ddp; do
    traced "$out/captures/$script" "$PYTHON" "$here/$script.py"
    "$rangescope" report "$out/captures/$script" -o - | head -12
  done
  echo "== PyTorch decode, ms a token: the best of 24 generations of 32 tokens"
  export TOK=32 REPEAT=24
  step() { local name=$1; shift; echo "$name $("$@" "$PYTHON" "$here/work.py" | grep -o 'decode [0-9.]*')"; }
  for ((i = 0; i < rounds; ++i)); do
    step nothing env
    step ranges ranges "$out/capture"
    step traced traced "$out/capture"
    [ -z "${NSYS:-}" ] || [ $i -gt 0 ] || step nsys system
  done
fi
rm -rf "$out/capture"
