#!/usr/bin/env bash
# The pipeline with the real nsys and ncu on a machine with a GPU: the four commands of docs/manual/pipeline.md, the presets,
# the automatic replay ladder and the CUDA workloads, one line each: exit code, seconds, what each stage came to.
#
#   tests/gpu/drive.sh BUILD OUT      BUILD: a build folder with bin/rangescope; OUT: an empty folder
#   NSYS= NCU=                        the tools, where they are not found by themselves
#   PYTHON=/path/to/python3           one with PyTorch and CUDA; without it those lines are left out
#   LIMIT=120                         seconds that a stage may take
set -uo pipefail
[ $# -eq 2 ] || { sed -n '2,9p' "$0"; exit 64; }
here=$(cd "$(dirname "$0")" && pwd); build=$(cd "$1" && pwd); mkdir -p "$2"; out=$(cd "$2" && pwd); cd "$out" || exit 1
[ -z "${NSYS:-}" ] || export RANGESCOPE_NSYS=$NSYS
[ -z "${NCU:-}" ] || export RANGESCOPE_NCU=$NCU
nvcc=${NVCC:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}
[ -x zoo ] || "$nvcc" -O2 -std=c++17 -arch=native -I"$here/../../third_party/nvtx3/include" "$here/zoo.cu" -o zoo || exit 1
cli=pipeline.ncu.ncu_cli; failed=0

# line NAME WANTED [words...] -- program...: WANTED is the exit code that is right
line() {
  local name=$1 wanted=$2 begin end rc run; shift 2
  begin=$(date +%s%N)
  "$build/bin/rangescope" profile --no-project -q "run.dir=$out/$name" "run.timeout=${LIMIT:-120}s" "$@" >"$name.out" 2>"$name.err"; rc=$?
  end=$(date +%s%N); run=$out/$name
  printf '%-22s rc %s%s %6.1f s  ' "$name" "$rc" "$([ "$rc" = "$wanted" ] || echo " (wanted $wanted)")" "$(((end - begin) / 100000000))e-1"
  [ "$rc" = "$wanted" ] || failed=$((failed + 1))
  if [ -f "$run/stages.json" ]; then
    awk -F'"' '/"stage":/{s=$4} /"step":/{p=$4} /"outcome":/{o=$4} /"why":/{w=$4} /"results":/{gsub(/[^0-9]/, "", $3); r=$3; printf "%s%s %s%s%s; ", s, (p == "" ? "" : " " p), o, (w == "" ? "" : " " w), (r + 0 > 0 ? " " r : "")}' "$run/stages.json"; echo
  else
    echo; grep -v '^{' "$name.err" | head -2
  fi
}

echo "== the four commands"
line zoo-range 0 pipeline.ncu.enable=true $cli.replay_mode=range "$cli.nvtx.include=LLM@*" "$cli.sections=[SpeedOfLight,MemoryWorkloadAnalysis,Occupancy,SchedulerStats]" -- ./zoo
line zoo-app-range 0 pipeline.ncu.enable=true $cli.replay_mode=app-range "$cli.nvtx.include=prefill*" -- ./zoo
line zoo-kernel 0 pipeline.ncu.enable=true $cli.replay_mode=kernel "$cli.nvtx.include=decode*" "$cli.kernel_name=regex:.*gemm.*" $cli.kernel_name_base=demangled -- ./zoo
line zoo-gated 0 +pipeline.nsys.gating_nvtx=true +pipeline.nsys.nvtx_capture=decode pipeline.nsys.enable=true -- ./zoo
echo "== presets, on the kernels that nsys chose"
for preset in quick standard comprehensive; do line "zoo-$preset" 0 --nsys "ncu=$preset" $cli.nvtx.include=decode -- ./zoo; done
echo "== the ladder"
line zoo-auto 0 pipeline.ncu.enable=true $cli.nvtx.include=decode $cli.set=basic -- ./zoo
line zoo-auto-alloc 0 pipeline.ncu.enable=true $cli.nvtx.include=alloc_async_inside "$cli.metrics=[gpu__time_duration.sum]" -- ./zoo risky
line zoo-auto-graph 0 pipeline.ncu.enable=true $cli.nvtx.include=graph_replay "$cli.metrics=[gpu__time_duration.sum]" -- ./zoo
line zoo-nothing 80 pipeline.ncu.enable=true $cli.replay_mode=kernel $cli.nvtx.include=nosuch/ -- ./zoo
for workload in llm_cuda shallow_resnet_cuda; do
  [ ! -x "$build/bin/$workload" ] || line "$workload" 0 --nsys ncu=quick -- "$build/bin/$workload"
done
if [ -n "${PYTHON:-}" ]; then
  echo "== PyTorch"
  export LAYERS=${LAYERS:-2} TOK=${TOK:-4}
  line torch-nsys 0 --nsys +pipeline.nsys.gating_nvtx=true +pipeline.nsys.nvtx_capture=decode -- "$PYTHON" "$here/work.py"
  line torch-auto 0 pipeline.ncu.enable=true $cli.nvtx.include=decode "$cli.metrics=[gpu__time_duration.sum,dram__bytes.sum]" $cli.launch_count=20 -- "$PYTHON" "$here/work.py"
  for preset in quick standard; do line "torch-$preset" 0 --nsys "ncu=$preset" "$cli.nvtx.include=decode*" -- "$PYTHON" "$here/work.py"; done
fi
echo "== $failed lines ended otherwise than wanted"
"$build/bin/rangescope" runs stats --root "$out"
exit $((failed > 0))
