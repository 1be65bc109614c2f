#!/usr/bin/env bash
# CPU sampling beside real GPU work: what it costs, and where a decode loop's time goes. Usage: cpu.sh BUILD OUT [SECONDS]
#
#   BUILD     a build folder with bin/rangescope and lib/librangescope_inject.so (optimized)
#   OUT       a folder for what is handed back: reports, collapsed chains, costs.txt
#   SECONDS   after so many no further step begins (150)
#
# Needs Python with PyTorch; transformers, py-spy and nsys are used where they are. A line PASS, FAIL or SKIP a check.
set -uo pipefail
build=$(realpath "$1") out=$2 seconds=${3:-150}
here=$(dirname "$(realpath "$0")")
mkdir -p "$out" && out=$(realpath "$out") && cd "$out" || exit 1
export XDG_CACHE_HOME=$out/cache TORCHINDUCTOR_CACHE_DIR=$out/cache/inductor
tool=$build/bin/rangescope
echo "perf_event_paranoid $(cat /proc/sys/kernel/perf_event_paranoid 2>/dev/null)," \
  "ptrace_scope $(cat /proc/sys/kernel/yama/ptrace_scope 2>/dev/null || echo none), $(nproc) cores"
python3 -c 'import torch; torch.cuda.init()' 2>torch.stderr || { echo "SKIP no PyTorch with a GPU: $(tail -n 1 torch.stderr)"; exit 0; }
if ! "$tool" profile --no-project --sample off -q --cpu 199Hz -o allowed.json -f json -- true 2>allowed.stderr && grep -q perf_event allowed.stderr; then
  echo "SKIP $(head -n 1 allowed.stderr)"
  exit 0
fi

# NAME command...: ms a token of the fastest block of tokens, to costs.txt
run() {
  local name=$1 line
  shift
  ((SECONDS < seconds)) || { echo "SKIP $name: no time left"; return 1; }
  line=$("$@" 2>>"$name.stderr" | sed -n 's/^ms_per_token //p' | tail -n 1)
  echo "$name ${line:-failed}" >>costs.txt
}
profile() { timeout 60 python3 "$here/../tools/sampler_cpu.py" "$tool" profile --no-project --sample off -q -o "$1.json" -f json "${@:2}"; }

: >costs.txt
eager=(timeout 60 python3 "$here/decode.py" eager) compiled=(timeout 60 python3 "$here/decode.py" compiled)
for _ in 1 2; do
  run eager-none "${eager[@]}"
  run eager-off profile eager-off --cpu off -- "${eager[@]}"
  run eager-199 profile eager-199 --cpu 199Hz -- "${eager[@]}"
done
run eager-counters profile eager-counters --cpu 199Hz --cpu-counters clock,software -- "${eager[@]}"
run eager-999 profile eager-999 --cpu 999Hz -- "${eager[@]}" && {
  "$tool" report latest --cpu decode >eager-cpu.txt 2>>eager-999.stderr
  "$tool" report latest -f collapsed -o eager.collapsed 2>>eager-999.stderr
}
command -v py-spy >/dev/null && run eager-py-spy py-spy record -r 199 -f raw -o eager-py-spy.txt -- "${eager[@]}"
command -v nsys >/dev/null && run eager-nsys nsys profile --sample=process-tree --python-sampling=true -o eager-nsys -f true "${eager[@]}"
for _ in 1 2; do
  run compiled-off profile compiled-off --cpu off -- "${compiled[@]}"
  run compiled-199 profile compiled-199 --cpu 199Hz -- "${compiled[@]}"
done
[[ -s compiled-199.json ]] && "$tool" report latest --cpu decode >compiled-cpu.txt 2>>compiled-199.stderr

python3 - <<'END'
import json
import re

costs = {}
for line in open("costs.txt"):
    name, value = line.split()
    if value != "failed":
        costs.setdefault(name, []).append(float(value))
print("ms a token:", ", ".join(f"{name} {min(list):.3f}" for name, list in costs.items()))


def say(name, good, text):
    print("PASS" if good else "FAIL", name, text)


for mode, rate, most in (("eager", 199, 0.01), ("eager", 999, 0.03), ("compiled", 199, 0.01)):
    off, on = costs.get(f"{mode}-off"), costs.get(f"{mode}-{rate}")
    if not off or not on:
        print("SKIP", f"cost-{mode}-{rate}", "not measured")
        continue
    change, noise = min(on) / min(off) - 1, max(max(list) / min(list) - 1 for list in (off, on))
    if change > most and min(len(off), len(on)) < 2:
        print("SKIP", f"cost-{mode}-{rate}", f"{change:+.2%}, without a repeat to say how much is noise")
        continue
    say(f"cost-{mode}-{rate}", change <= max(most, noise), f"{change:+.2%} (repeats differ by {noise:.2%})")
for name in ("eager-999", "compiled-199"):
    try:
        report = json.load(open(f"{name}.json"))
        region = next(r for r in report["regions"] if r["path"][-1] == "decode" and r["process"] is None)
        cpu, wall = region["cpu"], region["wall_ns"]["inclusive"]
    except (OSError, ValueError, StopIteration, KeyError) as error:
        print("SKIP", name, repr(error))
        continue
    total = sum(cpu["split"].values())
    say(f"adds-up-{name}", abs(total - wall) <= 1e-6 * wall + 2, " ".join(f"{k} {v / wall:.1%}" for k, v in cpu["split"].items()) + f", {cpu['samples']} samples")
    launch = sum(p["ns"] for p in cpu["parts"] if p["kind"] == "cuda" and p["name"] == "launch")
    say(f"launch-{name}", launch > 0, f"{launch / wall:.1%} of wall time, {launch / max(1, (region.get('gpu') or {}).get('kernels', 0)):.0f} ns a kernel")
    python = [f["name"] for f in cpu["callers"] if f["python"]]
    say(f"python-{name}", bool(python), ", ".join(python[:3]))
try:
    core = re.findall(r"([\d.]+) core", open("eager-199.stderr").read())
    say("core-199", max(map(float, core)) < 0.1, f"the sampler took {', '.join(core)} of a core")
except (OSError, ValueError) as error:
    print("SKIP core-199", repr(error))
try:
    report = json.load(open("eager-counters.json"))
    region = next(r for r in report["regions"] if r["path"][-1] == "decode" and r["process"] is None)
    counted = {name: m["value"] for name, m in region["metrics"].items() if name.startswith("cpu_") and m["value"] is not None}
    say("counters", "cpu_page_faults" in counted, " ".join(f"{name} {value:.4g}" for name, value in counted.items()))
    for loss in report["losses"]:
        if loss["kind"] in ("cpu_not_counted", "cpu_counters_shared"):
            print("SKIP", loss["detail"])
except (OSError, ValueError, StopIteration, KeyError) as error:
    print("SKIP counters", repr(error))
try:
    lines = [line.rsplit(" ", 1) for line in open("eager.collapsed") if line.startswith("decode")]
    cut, every = sum(int(n) for chain, n in lines if "(cut)" in chain), sum(int(n) for _, n in lines)
    say("chains", cut < 0.05 * every, f"{cut} of {every} samples have a chain that was cut")
except OSError:
    print("SKIP chains")
END
head -n 14 eager-cpu.txt 2>/dev/null
echo "took $SECONDS s"
