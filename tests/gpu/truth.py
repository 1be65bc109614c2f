"""Holds a run's report against what the program said of itself: occurrences and kernels of every range.

    truth.py REPORT TRUTH       report.json of a run; the JSON that zoo or several printed
"""
import json
import sys

with open(sys.argv[1]) as report, open(sys.argv[2]) as truth:
    regions, wanted = json.load(report)["regions"], json.load(truth)
got = {}
for region in regions:
    entry = got.setdefault(" > ".join(region["path"]), [0, 0])
    entry[0] += region["occurrences"]
    entry[1] += (region["gpu"] or {}).get("kernels", 0)
wrong = 0
for path, count in wanted.items():
    if path == "(none)":
        continue
    if got.get(path) != [count["occurrences"], count["kernels"]]:
        print(f"{path}: {got.get(path)} instead of {count}")
        wrong += 1
print(f"{len(wanted) - wrong} of {len(wanted)} ranges as the program counted them")
sys.exit(wrong > 0)
