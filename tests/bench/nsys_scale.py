#!/usr/bin/env python3
"""`rangescope report x.sqlite` against a single-threaded scan through the SQLite library, in the same run.

Usage: nsys_scale.py BUILD_DIR [KERNELS ...]; 100,000, 1,000,000 and 10,000,000 when none is given. Each time is the best of three;
memory is the largest resident set of the whole process.
"""
import os
import subprocess
import sys
import tempfile
import time


def best(command, runs=3):
    least, memory = None, 0
    for _ in range(runs):
        start = time.monotonic()
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        wall = time.monotonic() - start
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            raise SystemExit(f"{command[0]}: exit code {child.returncode}")
        least = wall if least is None else min(least, wall)
        memory = max(memory, usage.ru_maxrss / 1024)
    return least, memory


def main(build, *sizes):
    print(f"{'kernels':>10}{'file':>10}{'scan':>10}{'report':>10}{'ratio':>8}{'memory':>10}")
    for size in sizes or ("100000", "1000000", "10000000"):
        with tempfile.TemporaryDirectory(prefix="rangescope-bench-", dir=os.environ.get("TMPDIR", "/var/tmp")) as folder:
            trace = os.path.join(folder, "trace.sqlite")
            subprocess.run([f"{build}/bin/nsys_trace", trace, size], check=True, stdout=subprocess.DEVNULL)
            scan, _ = best([f"{build}/bin/sqlite_scan", trace])
            report, memory = best([f"{build}/bin/rangescope", "report", trace, "-f", "json"])
            print(f"{int(size):>10,}{os.path.getsize(trace) / 1e6:>7.0f} MB{scan:>8.2f} s{report:>8.2f} s{report / scan:>7.2f}x"
                  f"{memory:>7.0f} MB", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
