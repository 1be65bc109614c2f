#!/usr/bin/env bash
# The same counters from rangescope and from ncu, on the same programs in the same minutes: values side by side and wall
# times. On a machine with a GPU whose counters may be read. The tables of docs/performance.md come from here.
#
#   tests/gpu/compare.sh BUILD OUT      BUILD: a build folder with bin/rangescope; OUT: an empty folder
#   NCU=/path/to/ncu                    where it is not on PATH
#   PYTHON=/path/to/python3             one with PyTorch and CUDA; without it only the CUDA program is compared
#   COUNTED=/path/to/counted            counted.cu, built; else nvcc builds it
#   CAPTURES=folder                     keep small captures with counters for tests there
set -uo pipefail
[ $# -eq 2 ] || { sed -n '2,10p' "$0"; exit 64; }
here=$(cd "$(dirname "$0")" && pwd); build=$(cd "$1" && pwd); mkdir -p "$2"; out=$(cd "$2" && pwd)
captures=${CAPTURES:+$(mkdir -p "$CAPTURES" && cd "$CAPTURES" && pwd)}; cd "$out" || exit 1
ncu=${NCU:-$(command -v ncu)}; rangescope=$build/bin/rangescope; counted=${COUNTED:-$out/counted}
[ -x "$counted" ] || "${NVCC:-nvcc}" -O2 -std=c++17 -arch=native -I"$here/../../third_party/nvtx3/include" "$here/counted.cu" -o "$counted" || exit 1
# Counts, bytes, FLOPs, rates, shares: one pass would not do.
metrics=gpu__time_duration.sum,dram__bytes.sum,lts__t_bytes.sum,sm__inst_executed.sum,sm__sass_thread_inst_executed_op_ffma_pred_on.sum
metrics+=,sm__throughput.avg.pct_of_peak_sustained_elapsed,dram__throughput.avg.pct_of_peak_sustained_elapsed,sm__ops_path_tensor_src_bf16_dst_fp32.sum
metrics+=,l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum

# timed NAME SECONDS command...: wall time and exit code into times.txt, output into NAME.out
timed() {
  local name=$1 limit=$2 begin end rc; shift 2
  begin=$(date +%s%N); timeout "$limit" "$@" >"$name.out" 2>"$name.err"; rc=$?; end=$(date +%s%N)
  printf '%-30s rc %-3s %6d ms  %s\n' "$name" "$rc" $(((end - begin) / 1000000)) "$(grep -ho 'decode [0-9.]* ms/tok\|"checksum": [-0-9.]*\|"seconds": [0-9.]*' "$name.out" | tr '\n' ' ')" | tee -a times.txt
}
profile() { local name=$1; shift; timed "$name" 100 "$rangescope" profile --no-project -q --output "$out/$name.runs" "$@"; mv "$name".runs/2* "$name" 2>/dev/null; }
counters() { local name=$1; shift; profile "$name" --metrics "$metrics" "$@"; }
replay() { local name=$1; shift; timed "$name" 100 "$ncu" --csv --page raw --print-units base --log-file "$name.csv" --nvtx --clock-control none --metrics "$metrics" "$@"; }

echo "== counted (CUDA)"
timed counted-plain 30 "$counted"
counters counted-range --include copy/ --include fma/ --include layers/ --include graph/ -- "$counted"
counters counted-kernel --per kernel --rounds 1 --include layers/ --include copy/ --include fma/ -- "$counted"
counters counted-graph-kernel --per kernel --rounds 1 --include graph/ -- "$counted"
counters counted-seldom --include seldom/ -- "$counted" 200
counters counted-relaunch --passes relaunch --rounds 1 --include seldom/ -- "$counted" 20
counters counted-sized --bucket-by payload --rounds 1 --include sized/ -- "$counted" 120
counters counted-flush --flush-caches --per kernel --rounds 1 --include layers/ -- "$counted"
if [ -n "$ncu" ]; then
  replay ncu-counted-kernel --nvtx-include 'copy/' --nvtx-include 'fma/' --nvtx-include 'layers/' --launch-count 18 "$counted" 2
  replay ncu-counted-keep --cache-control none --nvtx-include 'layers/' --launch-skip 16 --launch-count 16 "$counted" 3
  # ncu's range replays refuse what is counted by patching the code ("sm__sass_... is not supported in range replay").
  all=$metrics; metrics=${metrics/,sm__sass_thread_inst_executed_op_ffma_pred_on.sum/}
  for range in copy fma layers; do
    replay "ncu-counted-range-$range" --replay-mode range --nvtx-include "$range/" "$counted" 2
    replay "ncu-counted-app-range-$range" --replay-mode app-range --nvtx-include "$range/" "$counted" 2
  done
  metrics=$all
fi
if [ -n "${PYTHON:-}" ]; then
  echo "== work.py (PyTorch)"
  timed work-plain 60 "$PYTHON" "$here/work.py"
  counters work-range --include decode/ --rounds 1 -- "$PYTHON" "$here/work.py"
  counters work-kernel --per kernel --rounds 1 --include decode/ -- "$PYTHON" "$here/work.py"
  if [ -n "$ncu" ]; then
    WARM=0 TOK=2 replay ncu-work-kernel --nvtx-include decode/ --launch-count 30 "$PYTHON" "$here/work.py"
    [ -n "${APP_RANGE:-}" ] && WARM=0 TOK=2 replay ncu-work-app-range --replay-mode app-range --nvtx-include decode/ "$PYTHON" "$here/work.py"
  fi
fi
echo "== values"
python3 "$here/compare.py" "$out"
if [ -n "$captures" ]; then
  echo "== captures"
  small() { local name=$1; shift; profile "capture-$name" "$@"; mkdir -p "$captures/$name"; cp "capture-$name"/native/* "capture-$name"/counters.json "$captures/$name/"; }
  small range --metrics roofline --rounds 2 --include copy/ --include fma/ -- "$counted" 70
  small kernel --metrics quick --per kernel --rounds 1 --include layers/ -- "$counted" 12
  small graph --metrics quick --per both --rounds 1 --include graph/ -- "$counted" 12
  small seldom --metrics roofline --include seldom/ -- "$counted" 30
  du -sk "$captures"
fi
