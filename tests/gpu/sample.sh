#!/usr/bin/env bash
# Sampling on a machine with a GPU: is it right, and what does it cost? The figures of docs/measurements.md, section
# "Sampling". Nothing is installed; results are printed, recordings stay in the folder given.
#
#   tests/gpu/sample.sh BUILD OUT       BUILD: a build folder with bin/rangescope; OUT: an empty folder
#   PYTHON=/path/to/python3             one with PyTorch and CUDA (python3); without PyTorch those parts are left out
#   PARTS="long metrics aside busy record ncu cost"   all of them where not given; ncu needs record of the same folder
set -uo pipefail
[ $# -eq 2 ] || { sed -n '2,9p' "$0"; exit 64; }
here=$(cd "$(dirname "$0")" && pwd); build=$(cd "$1" && pwd); mkdir -p "$2"; out=$(cd "$2" && pwd)
rangescope=$build/bin/rangescope; python=${PYTHON:-python3}; parts=" ${PARTS:-long metrics aside busy record ncu cost} "
nvcc=${NVCC:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}
ldd "$rangescope" | grep -q 'not found' && export LD_LIBRARY_PATH="$build/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"
for program in load counted launch; do
  "$nvcc" -O2 -std=c++17 -arch=native -I"$here/../../third_party/nvtx3/include" "$here/$program.cu" -o "$program" || exit 1
done
torch=1; "$python" -c 'import torch; assert torch.cuda.is_available()' 2>"$work/torch.err" || torch=0
wanted() { [[ $parts == *" $1 "* ]]; }
now() { date +%s%N; }
# record NAME INTERVAL program...: profiles it and keeps the recording.
record() {
  local name=$1 interval=$2; shift 2
  timeout 100 "$rangescope" profile -v --sample "$interval" --runs "$work/runs-$name" -o "$out/$name.txt" -- "$@" \
    >"$out/$name.out" 2>"$out/$name.err"
  local rc=$? run; run=$(ls -d "$work/runs-$name"/*/ | tail -1)
  tar czf "$out/$name.tgz" -C "$run" native report.json 2>>"$out/$name.err"
  cp "$run/report.json" "$out/$name.json"
  echo "$name: rc $rc, $(grep -h RESULT "$out/$name.out" | head -1), $(du -k "$run"native/samples | tail -1 | cut -f1) KiB of samples"
  grep -h -i 'sampl' "$out/$name.err" | head -3
}
nvidia-smi --query-gpu=name,driver_version,clocks.sm,clocks.mem,power.draw --format=csv,noheader

if wanted record; then
  echo "== recordings"
  record load-10k 100us ./load 100
  record load-1k 1ms ./load 300
  record counted-10k 100us ./counted 200
  [ $torch = 0 ] || TOK=32 REPEAT=4 record torch-10k 100us "$python" "$here/work.py"
  [ $torch = 0 ] || TOK=32 REPEAT=4 record torch-5k 200us "$python" "$here/work.py"
  head -30 "$out/load-10k.txt"; [ $torch = 0 ] || head -40 "$out/torch-10k.txt"
fi

# cost NAME PATTERN program...: what the program says of itself, in four ways that take turns.
cost() {
  local name=$1 pattern=$2 way; shift 2
  for round in 1 2 3; do
    for way in none off 1ms 100us; do
      if [ $way = none ]; then "$@" >"$work/said"; else
        timeout 100 "$rangescope" profile -q --sample $way --runs "$work/cost" -- "$@" >"$work/said" 2>"$work/cost.err"; fi
      echo "$name $way $(grep -o "$pattern" "$work/said" | grep -o '[0-9.]*' | head -1)" >>"$out/cost.txt"
      rm -rf "$work/cost"
    done
  done
}
if wanted cost; then
  echo "== cost to the program: best of 3"
  rm -f "$out/cost.txt"
  cost load 'in [0-9.]* s' ./load 300
  cost launch '[0-9.]* us/launch' ./launch
  [ $torch = 0 ] || TOK=32 REPEAT=8 cost torch 'decode [0-9.]*' "$python" "$here/work.py"
  awk '{ k = $1 " " $2; if (!(k in best) || $3 < best[k]) best[k] = $3; if (!seen[k]++) order[++n] = k }
       END { for (i = 1; i <= n; ++i) { split(order[i], p, " "); printf "%-8s %-6s %s  %.3fx\n", p[1], p[2], best[order[i]], best[order[i]] / best[p[1] " none"] } }' "$out/cost.txt"
fi

# sampled NAME SECONDS INTERVAL_NS: the sampling process alone, for so long; what it took of a core, where that went, and
# how many samples of those that were due it has.
counters=("gr__cycles_active.avg.pct_of_peak_sustained_elapsed" "dram__bytes_read.sum|dram__bytes_op_read.sum"
  "dram__bytes_write.sum|dram__bytes_op_write.sum" "dram__read_throughput.avg.pct_of_peak_sustained_elapsed"
  "dram__write_throughput.avg.pct_of_peak_sustained_elapsed" "sm__cycles_active.avg.pct_of_peak_sustained_elapsed"
  "sm__pipe_tensor_cycles_active_realtime.avg.pct_of_peak_sustained_elapsed" "sm__inst_executed_realtime.sum"
  "pcie__read_bytes.sum" "pcie__write_bytes.sum")
sampled() {
  local name=$1 seconds=$2 interval=$3 folder="$work/$1"; mkdir -p "$folder"
  local TIMEFORMAT="%U %S %R"
  { time { sleep "$seconds" | "$rangescope" __sample-devices "$folder" "$interval" 536870912 "${counters[@]}" >"$folder/said"; }; } 2>"$folder/time"
  awk -v n="$name" '{ printf "%s: %.2f core (%s + %s s of CPU in %s s)\n", n, ($1 + $2) / $3, $1, $2, $3 }' "$folder/time"
  awk -v n="$name" -v of="$seconds" -v interval="$interval" \
    '/^cost/ { print n ": " $0; printf "%s: %.1f %% of the samples due from the first to the last; %.2f s of %d before and after them\n", n,
               100 * $2 * interval / ($5 * 1e6), of - $5 / 1e3, of } /^unavailable/ { print n ": " $0 }' "$folder/said"
  ls -l "$folder" | awk -v n="$name" '/gpu-/ { print n ": " $NF " " $5 " bytes" }'
  tar czf "$out/$name.tgz" -C "$work" "$name"
}
if wanted long; then
  echo "== the sampling process alone, the device busy"
  ./load 200000 >"$work/busy.out" & busy=$!
  sampled one-khz 20 1000000
  sampled ten-khz "${LONG:-60}" 100000
  sampled fifty-khz 3 20000
  kill $busy; wait $busy 2>"$work/killed"
fi
if wanted metrics; then
  echo "== what each group of counters costs the sampling process at 10 kHz, the device busy"
  ./load 200000 >"$work/busy.out" & busy=$!
  all=("${counters[@]}")
  for left_out in none 'throughput' 'dram__bytes' 'sm__' 'pcie__' 'gr__'; do
    counters=(); for counter in "${all[@]}"; do [[ $counter == *"$left_out"* ]] || counters+=("$counter"); done
    sampled "without-${left_out//_/}" 6 100000
  done
  counters=("${all[@]}")
  kill $busy; wait $busy 2>"$work/killed"
fi
if wanted busy; then
  echo "== two at once, and counters beside sampling"
  sampled first 6 1000000 & sleep 2.5; sampled second 2 1000000; wait
  (sleep 12 | "$rangescope" __sample-devices "$work" 1000000 1000000 "${counters[@]}" >"$work/said") &
  sleep 2; timeout 60 "$rangescope" profile --sample off --include copy --metrics dram__bytes_read.sum --runs "$work/both" -- ./counted 60 2>&1 | tail -5; wait
fi
if wanted aside; then
  echo "== the sampler steps aside for the program's own counters: one run, both sources"
  timeout 100 "$rangescope" profile -q --sample 1ms --include copy --skip-first 0 --metrics dram__bytes_read.sum,gpu__time_duration.sum \
    --runs "$work/runs-aside" -o "$out/aside.txt" -- ./counted 400 >"$out/aside.out" 2>"$out/aside.err"
  echo "rc $?"; cp "$work"/runs-aside/*/report.json "$out/aside.json"
  "$python" - "$out/aside.json" <<'EOF'
import json, sys
report = json.load(open(sys.argv[1]))
for region in report["regions"]:
    for name, m in region["metrics"].items():
        if "read" in name: print("/".join(region["path"]), name, m["source"], m.get("value"), m.get("absent", ""))
for device in report.get("sampled", []): print(device["source"], device["samples"], "samples, gaps", device["gaps_ns"] * 1e-6, "ms")
for loss in report["losses"]: print("loss", loss["kind"], loss["detail"][:160])
EOF
fi
if wanted ncu && [ $torch = 1 ]; then
  echo "== counters by occurrence, and ncu"
  TOK=32 timeout 100 "$rangescope" profile -q --sample off --include decode \
    --metrics dram__bytes_read.sum,dram__bytes_write.sum,sm__cycles_active.avg.pct_of_peak_sustained_elapsed,sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed,gpu__time_duration.sum \
    --runs "$work/runs-counted" -o "$out/counters.csv" -f csv -- "$python" "$here/work.py" >"$out/counters.out" 2>&1
  cp "$work"/runs-counted/*/report.json "$out/counters.json"
  WARM=0 TOK=1 timeout 240 ncu --csv --page raw --nvtx --nvtx-include decode/ --clock-control none --metrics \
    dram__bytes_read.sum,dram__bytes_write.sum,gpu__time_duration.sum,sm__cycles_active.avg.pct_of_peak_sustained_elapsed,sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed \
    --log-file "$out/ncu.csv" "$python" "$here/work.py" >"$out/ncu.out" 2>&1
  echo "ncu rc $?, $(wc -l <"$out/ncu.csv") lines"
  "$python" - "$out" <<'EOF'
import csv, json, os, sys
out = sys.argv[1]
rows = list(csv.DictReader(line for line in open(f"{out}/ncu.csv", encoding="utf-8") if not line.startswith("==")))
ncu = {}
for row in rows[1:]: ncu.setdefault(row["Kernel Name"], []).append(float(row["dram__bytes_read.sum"].replace(",", "")))
for name in ("torch-10k", "torch-5k"):
    if not os.path.exists(f"{out}/{name}.json"): continue
    report = json.load(open(f"{out}/{name}.json"))
    held = compared = 0
    for kernel in report["kernels"]:
        truth, m = ncu.get(kernel["name"]), kernel.get("metrics", {}).get("dram_read_bytes")
        if not truth or not m or kernel["calls"] < 100 or kernel["duration_ns"]["median"] < 5000 or sum(truth) / len(truth) < 4e6: continue
        truth = sum(truth) / len(truth); compared += 1; held += "absent" not in m and m["min"] <= truth <= m["max"]
        print(f"{name}: {kernel['name'][:60]}: sampled {m.get('value', 0) / 1e6:.2f} MB, ncu {truth / 1e6:.2f} ({100 * (m.get('value', 0) / truth - 1):+.1f} %)")
    print(f"{name}: the interval holds ncu's value for {held} of {compared}")
    def decode(r): return next(x for x in r["regions"] if x["path"][-1] == "decode")["metrics"]
    counted = decode(json.load(open(f"{out}/counters.json"))).get("dram__bytes_read.sum", {})
    print(f"{name}: decode reads {decode(report).get('dram_read_bytes', {}).get('value')} sampled, {counted.get('value')} by range counters {counted.get('absent', '')}")
EOF
  gzip -f "$out/ncu.csv"
fi
ls -l "$out" | awk 'NR > 1 { n += $5 } END { printf "%.1f MB kept\n", n / 1e6 }'
