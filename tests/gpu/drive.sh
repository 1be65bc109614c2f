#!/usr/bin/env bash
# The pipeline with the real nsys and ncu on a machine with a GPU: the four commands of docs/manual/pipeline.md, the presets,
# the replay ladder, the CUDA workloads and PyTorch. One line each: exit code, seconds, what each stage came to, status.
#
#   tests/gpu/drive.sh RANGESCOPE OUT   RANGESCOPE: the program; OUT: an empty folder
#   PROGRAMS=folder                     with zoo, llm_cuda and shallow_resnet_cuda; zoo is built with nvcc where it is not there
#   PARTS="commands presets ladder workloads llm torch"   what is run
#   NSYS= NCU=                          the tools, where they are not found by themselves
#   PYTHON=/path/to/python3             one with PyTorch and CUDA; without it those lines are left out
#   LIMIT=60 BUDGET=100000              seconds that a stage may take; seconds after which further lines are left out
set -uo pipefail
[ $# -eq 2 ] || { sed -n '2,12p' "$0"; exit 64; }
here=$(cd "$(dirname "$0")" && pwd); rangescope=$(realpath "$(command -v "$1")"); mkdir -p "$2"; out=$(cd "$2" && pwd)
programs=$(cd "${PROGRAMS:-$out}" && pwd); parts=" ${PARTS:-commands presets ladder workloads llm torch} "; cd "$out" || exit 1
[ -z "${NSYS:-}" ] || export RANGESCOPE_NSYS=$NSYS
[ -z "${NCU:-}" ] || export RANGESCOPE_NCU=$NCU
if [ ! -x "$programs/zoo" ]; then
  "${NVCC:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}" -O2 -std=c++17 -arch=native -I"$here/../../third_party/nvtx3/include" "$here/zoo.cu" -o "$programs/zoo" || exit 1
fi
zoo=$programs/zoo cli=pipeline.ncu.ncu_cli failed=0 run_lines=0

field() { sed -n "s/^ *\"$1\": \"\{0,1\}\([^\",]*\).*/\1/p" "$2" | head -1; }

# line NAME WANTED [words...] -- program...: WANTED is the exit code that is right
line() {
  local name=$1 wanted=$2 begin rc tenths run=$out/$1; shift 2
  if [ $SECONDS -gt "${BUDGET:-100000}" ]; then printf '%-20s left out: no time\n' "$name"; return; fi
  run_lines=$((run_lines + 1)); begin=$(date +%s%N)
  "$rangescope" profile --no-project -q "run.dir=$run" "run.timeout=${LIMIT:-60}s" "$@" >"$name.out" 2>"$name.err"; rc=$?
  tenths=$((($(date +%s%N) - begin) / 100000000))
  printf '%-20s rc %s%s %s.%s s  ' "$name" "$rc" "$([ "$rc" = "$wanted" ] || echo " (wanted $wanted)")" $((tenths / 10)) $((tenths % 10))
  [ "$rc" = "$wanted" ] || { failed=$((failed + 1)); echo "$name" >>failing; }
  if [ -f "$run/stages.json" ]; then
    awk -F'"' '/"stage":/{s=$4} /"step":/{p=$4} /"outcome":/{o=$4} /"why":/{w=$4} /"results":/{gsub(/[^0-9]/, "", $3); r=$3; printf "%s%s %s%s%s; ", s, (p == "" ? "" : " " p), o, (w == "" || o == "ok" ? "" : " " w), (r + 0 > 0 ? " " r : "")}' "$run/stages.json"
    [ ! -d "$run/ncu/regions" ] || printf '%s regions; ' "$(ls "$run/ncu/regions" | wc -l)"
    field outcome "$run/status.json"
  else
    echo; grep -v '^{' "$name.err" | head -3
  fi
}
wants() { case $parts in *" $1 "*) echo "== $1";; *) return 1;; esac; }

# commands PREFIX range app-range kernel gated -- program: the four commands as they stand in the manual, and their exit codes
commands() {
  local p=$1 a=$2 b=$3 c=$4 d=$5; shift 6
  line "$p-range" "$a" pipeline.ncu.enable=true $cli.replay_mode=range "$cli.nvtx.include=LLM@*" "$cli.sections=[SpeedOfLight,MemoryWorkloadAnalysis,Occupancy,SchedulerStats]" -- "$@"
  line "$p-app-range" "$b" pipeline.ncu.enable=true $cli.replay_mode=app-range "$cli.nvtx.include=prefill*" -- "$@"
  line "$p-kernel" "$c" pipeline.ncu.enable=true $cli.replay_mode=kernel "$cli.nvtx.include=decode*" "$cli.kernel_name=regex:.*matmul.*" $cli.kernel_name_base=demangled -- "$@"
  line "$p-gated" "$d" +pipeline.nsys.gating_nvtx=true +pipeline.nsys.nvtx_capture=decode -- "$@"
}

if wants commands; then
  commands zoo 0 0 80 0 -- "$zoo"  # no kernel of the zoo is called matmul: 80 is right
  line zoo-kernel-gemm 0 pipeline.ncu.enable=true $cli.replay_mode=kernel "$cli.nvtx.include=decode*" "$cli.kernel_name=regex:.*gemm.*" $cli.kernel_name_base=demangled -- "$zoo"
fi
if wants presets; then  # on the kernels that nsys chose
  for preset in quick standard comprehensive memory; do line "zoo-$preset" 0 --no-native --nsys "ncu=$preset" $cli.nvtx.include=decode -- "$zoo"; done
fi
if wants ladder; then
  line auto-sections 0 pipeline.ncu.enable=true $cli.nvtx.include=decode $cli.set=basic -- "$zoo"
  line auto-native 0 pipeline.ncu.enable=true $cli.nvtx.include=decode "$cli.metrics=[dram__bytes.sum,sm__inst_executed.sum]" -- "$zoo"
  line auto-alloc 0 pipeline.ncu.enable=true $cli.nvtx.include=alloc_async_inside "$cli.metrics=[gpu__time_duration.sum]" --no-native -- "$zoo" risky
  line auto-graph 0 pipeline.ncu.enable=true $cli.nvtx.include=graph_replay $cli.set=basic -- "$zoo"
  line nothing 80 pipeline.ncu.enable=true $cli.replay_mode=kernel $cli.nvtx.include=nosuch/ -- "$zoo"
  line timeout 80 --no-native --no-probe pipeline.ncu.enable=true $cli.replay_mode=kernel run.timeout=3s -- sleep 60
fi
if wants workloads; then
  for workload in llm_cuda shallow_resnet_cuda; do
    [ ! -x "$programs/$workload" ] || line "$workload-quick" 0 --no-native --nsys ncu=quick -- "$programs/$workload"
  done
fi
if [ -x "$programs/llm_cuda" ] && wants llm; then
  commands llm 80 0 0 0 -- "$programs/llm_cuda" --requests 1  # it has no domain LLM: 80 is right
fi
if [ -n "${PYTHON:-}" ] && wants torch; then
  export LAYERS=${LAYERS:-2} TOK=24
  work=("$PYTHON" "$here/work.py") few="$cli.metrics=[gpu__time_duration.sum,dram__bytes.sum]"
  line torch-native 0 pipeline.ncu.enable=true $cli.nvtx.include=decode "$few" -- "${work[@]}"
  export TOK=4
  line torch-gated 0 --no-native +pipeline.nsys.gating_nvtx=true +pipeline.nsys.nvtx_capture=decode -- "${work[@]}"
  line torch-auto 0 --no-native pipeline.ncu.enable=true $cli.nvtx.include=decode "$few" -- "${work[@]}"
  for preset in quick standard comprehensive memory; do line "torch-$preset" 0 --no-native --nsys "ncu=$preset" "$cli.nvtx.include=decode*" -- "${work[@]}"; done
  line torch-range 80 --no-native --no-probe pipeline.ncu.enable=true $cli.replay_mode=range "$cli.nvtx.include=prefill*" -- "${work[@]}"
  line torch-app-range 0 --no-native --no-probe pipeline.ncu.enable=true $cli.replay_mode=app-range "$cli.nvtx.include=prefill*" "$few" -- "${work[@]}"
  line torch-kernel 0 --no-native --no-probe pipeline.ncu.enable=true $cli.replay_mode=kernel "$cli.nvtx.include=decode*" "$cli.kernel_name=regex:.*(gemv|gemm|nvjet).*" $cli.kernel_name_base=demangled $cli.launch_count=5 -- "${work[@]}"
fi
echo "== $run_lines lines, $failed ended otherwise than wanted"
"$rangescope" runs stats --root "$out"
exit $((failed > 0))
