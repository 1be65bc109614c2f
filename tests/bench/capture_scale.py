#!/usr/bin/env python3
"""`rangescope report` of a native capture of very many short ranges: time, memory, and its numbers against the truth.

    capture_scale.py BUILD_DIR [MEGABYTES ...]   captures of that size each (300 4295); 16 bytes a range
    capture_scale.py BUILD_DIR --test            one of 100 MB; exits with 1 where a number is wrong or memory grows
                                                 with the file. Asserts no times

Files are made in $TMPDIR, used and removed.
"""
import json
import os
import subprocess
import sys
import tempfile
import time

MOST_MEMORY = 1e9  # whatever the size


def wrong(report, truth):
    """What differs: sums and counts are exact, median and 95th percentile within the error that the report states."""
    regions = {region["path"][-1]: region for region in report["regions"] if region["process"] is None}
    for path in truth:
        region = regions[path["name"]]
        wall = region["wall_ns"]
        error = region.get("unlisted", {}).get("quantile_error", 0)
        if region["occurrences"] != path["occurrences"]:
            yield f"{path['name']}: {region['occurrences']} occurrences, not {path['occurrences']}"
        for name in ("inclusive", "exclusive", "min", "max"):
            if wall[name] != path[name]:
                yield f"{path['name']}: {name} {wall[name]}, not {path[name]}"
        for name in ("median", "p95"):
            if abs(wall[name] - path[name]) > error * path[name] + 1e-6:
                yield f"{path['name']}: {name} {wall[name]}, not {path[name]} within {error}"


def main():
    build, *sizes = sys.argv[1:]
    failed = 0
    print(f"{'capture':>10}{'ranges':>14}{'time':>10}{'wall':>10}{'memory':>10}  numbers")
    for size in (100,) if "--test" in sizes else map(int, sizes or ("300", "4295")):
        with tempfile.TemporaryDirectory(prefix="rangescope-capture-") as folder:
            path, out = os.path.join(folder, "42.0.rstrace"), os.path.join(folder, "report.json")
            made = subprocess.run([f"{build}/bin/big_capture", path, str(size)], check=True, stdout=subprocess.PIPE, text=True)
            truth = json.loads(made.stdout)
            start = time.monotonic()
            child = subprocess.Popen([f"{build}/bin/rangescope", "report", path, "-f", "json", "-o", out])
            _, status, usage = os.wait4(child.pid, 0)
            wall = time.monotonic() - start
            if os.waitstatus_to_exitcode(status):
                raise SystemExit(f"exit code {os.waitstatus_to_exitcode(status)}")
            with open(out, encoding="utf-8") as file:
                differences = list(wrong(json.load(file), truth))
            bytes_ = os.path.getsize(path)
        memory = usage.ru_maxrss * 1024
        ranges = sum(path["occurrences"] for path in truth)
        print(f"{bytes_ / 1e6:>7.0f} MB{ranges:>14,}{usage.ru_utime + usage.ru_stime:>8.2f} s{wall:>8.2f} s{memory / 1e6:>7.0f} MB"
              f"  {'as counted' if not differences else '; '.join(differences)}", flush=True)
        failed |= bool(differences) or memory > MOST_MEMORY
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
