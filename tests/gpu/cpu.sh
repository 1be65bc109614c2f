#!/usr/bin/env bash
# CPU sampling beside real GPU work: what it costs, and where a decode loop's time goes. Usage: cpu.sh BUILD OUT
#
#   BUILD   a build folder with bin/rangescope and lib/librangescope_inject.so
#   OUT     a folder for what is handed back: reports, collapsed chains, costs.txt
#
# Needs Python with PyTorch; transformers, py-spy and nsys are used where they are. About four minutes, short output.
set -uo pipefail
build=$(realpath "$1") out=$2
here=$(dirname "$(realpath "$0")")
mkdir -p "$out"
out=$(realpath "$out")
cd "$out" || exit 1
export XDG_CACHE_HOME=$out/cache
tool=$build/bin/rangescope
sysctl kernel.perf_event_paranoid kernel.yama.ptrace_scope 2>/dev/null

best() {  # NAME command...: the best of three, ms a token
  local name=$1 line least=
  shift
  for _ in 1 2 3; do
    line=$("$@" 2>>"$name.stderr" | sed -n 's/^ms_per_token //p' | tail -n 1)
    [[ -n $line ]] && least=$(printf '%s\n%s\n' "$least" "$line" | grep . | sort -g | head -n 1)
  done
  echo "$name ${least:-failed}" | tee -a costs.txt
}
profile() { "$tool" profile --no-project --sample off -q -o "$1.json" -f json "${@:2}"; }

for mode in eager compiled; do
  program=(python3 "$here/decode.py" "$mode")
  best "$mode-none" "${program[@]}"
  best "$mode-off" profile "$mode-off" --cpu off -- "${program[@]}"
  best "$mode-199" profile "$mode-199" --cpu 199Hz -- "${program[@]}"
  best "$mode-999" profile "$mode-999" --cpu 999Hz -- "${program[@]}"
  "$tool" report latest --cpu decode | tee "$mode-cpu.txt" | head -n 40
  "$tool" report latest -f collapsed -o "$mode.collapsed"
  head -n 12 <("$tool" report latest --width 160) >"$mode-verdict.txt" && cat "$mode-verdict.txt"
  command -v py-spy >/dev/null && best "$mode-py-spy" py-spy record -r 199 -f raw -o "$mode-py-spy.txt" -- "${program[@]}"
  command -v nsys >/dev/null && best "$mode-nsys" nsys profile --sample=process-tree --python-sampling=true -o "$mode-nsys" -f true "${program[@]}"
done
python3 - <<'END'
import json
for mode in ("eager", "compiled"):
    try:
        report = json.load(open(f"{mode}-999.json"))
    except (OSError, ValueError) as error:
        print(mode, "FAIL", error)
        continue
    for region in report["regions"]:
        cpu = region.get("cpu")
        if not cpu or region["process"] is not None:
            continue
        wall, total = region["wall_ns"]["inclusive"], sum(cpu["split"].values())
        good = "PASS" if abs(total - wall) <= 1e-6 * wall + 2 else "FAIL"
        print(mode, region["path"], good, {k: round(v / wall, 3) for k, v in cpu["split"].items()}, "samples", cpu["samples"])
END
