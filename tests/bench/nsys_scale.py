#!/usr/bin/env python3
"""`rangescope report x.sqlite` against a single-threaded scan through the SQLite library, in the same run.

Usage: nsys_scale.py BUILD_DIR [--nsys PATH] [KERNELS ...]; 100,000, 1,000,000 and 10,000,000 when none is given. Each time is the
best of three; memory is the largest resident set of the whole process. Up to 1,000,000 kernels the regions are compared with a
brute-force count in Python, and with --nsys (2022.4.2) each range and kernel with its `nvtxkernsum`, whose time is printed too.
"""
import argparse
import bisect
import collections
import csv
import glob
import json
import os
import sqlite3
import subprocess
import tempfile
import time

PUSH_POP, DOMAIN, TID = 59, 75, 0xFFFFFF
LARGEST_PROVED = 1_000_000


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


def brute_force(trace):
    """{(domain, path): [kernels, nanoseconds]} of push/pop ranges: every kernel counts in each range open at its call."""
    with sqlite3.connect(trace) as db:
        names = {i: v for i, v in db.execute("select id, value from StringIds")}
        domains = {(t & ~TID, d): n for t, d, n in db.execute(f"select globalTid, domainId, text from NVTX_EVENTS where eventType = {DOMAIN}")}
        ranges = collections.defaultdict(list)
        for start, end, thread, domain, text, text_id in db.execute(
                f"select start, end, globalTid, domainId, text, textId from NVTX_EVENTS where eventType = {PUSH_POP}"):
            name = text if text is not None else names[text_id]
            ranges[thread, domains.get((thread & ~TID, domain), "")].append((start, end if end is not None else 1 << 62, name))
        calls = {(t & ~TID, c): (t, s) for t, c, s in db.execute("select globalTid, correlationId, start from CUPTI_ACTIVITY_KIND_RUNTIME")}
        work = collections.defaultdict(list)
        for pid, correlation, start, end in db.execute("select globalPid, correlationId, start, end from CUPTI_ACTIVITY_KIND_KERNEL"):
            thread, at = calls[pid, correlation]
            work[thread].append((at, end - start))
    found = collections.defaultdict(lambda: [0, 0])
    for (thread, domain), list_ in ranges.items():
        list_.sort(key=lambda r: (r[0], -r[1]))
        starts = [r[0] for r in list_]
        paths, stack = [], []  # of each range, and the ranges around it
        for index, (start, end, name) in enumerate(list_):
            while stack and list_[stack[-1]][1] <= start:
                stack.pop()
            parent = stack[-1] if stack else -1
            paths.append((parent, (paths[parent][1] if stack else ()) + (name,)))
            stack.append(index)
        for at, duration in work[thread]:
            index = bisect.bisect_right(starts, at) - 1
            while index >= 0:
                if list_[index][1] > at:
                    row = found[domain, paths[index][1]]
                    row[0] += 1
                    row[1] += duration
                index = paths[index][0]
    return found


def prove(report, trace, nsys):
    """Raises where a region's kernels are not those of brute force; how many values were compared, and nsys' seconds."""
    regions = {(r["domain"], tuple(r["path"])): r for r in report["regions"]
               if r["process_index"] is None and r["thread"] is None and r["kind"] == "push_pop"}
    truth = brute_force(trace)
    compared = 0
    for key, region in regions.items():
        expected = tuple(truth.get(key, (0, 0)))
        if (region["gpu"]["kernels"], region["gpu"]["kernel_ns"]) != expected:
            raise SystemExit(f"{key}: {region['gpu']['kernels']} kernels, {region['gpu']['kernel_ns']} ns instead of {expected}")
        compared += 1
    if set(truth) - set(regions):
        raise SystemExit(f"missing: {set(truth) - set(regions)}")
    if not nsys:
        return compared, None
    with tempfile.TemporaryDirectory(prefix="rangescope-bench-") as folder:
        start = time.monotonic()
        subprocess.run([nsys, "stats", "--report", "nvtxkernsum", "--format", "csv", "--force-overwrite", "true",
                        "-o", f"{folder}/stats", trace], check=True, stdout=subprocess.DEVNULL)
        took = time.monotonic() - start
        theirs = collections.defaultdict(lambda: [0, 0])
        with open(glob.glob(f"{folder}/stats*.csv")[0], newline="", encoding="utf-8") as f:
            for row in csv.DictReader(f):
                if row["Style"] == "PushPop":
                    name = row["NVTX Range"]
                    sums = theirs[name if ":" in name else ":" + name, row["Kernel Name"]]
                    sums[0] += int(row["Kern Inst"])
                    sums[1] += int(row["Total Time (ns)"])
    ours = collections.defaultdict(lambda: [0, 0])
    for (domain, path), region in regions.items():
        for kernel in region["gpu"]["top_kernels"]:
            for name in (kernel["name"], kernel["short_name"]):
                sums = ours[f"{domain}:{path[-1]}", name]
                sums[0] += kernel["calls"]
                sums[1] += kernel["total_ns"]
    # The JSON report lists the most expensive kernels of a region; a range of several paths is only compared where it has one.
    single = collections.Counter(f"{domain}:{path[-1]}" for domain, path in regions)
    for (name, kernel), sums in ours.items():
        if single[name] == 1 and (name, kernel) in theirs:
            if sums != theirs[name, kernel]:
                raise SystemExit(f"{name}, {kernel}: {sums} instead of nsys' {theirs[name, kernel]}")
            compared += 1
    totals = collections.defaultdict(lambda: [0, 0])
    for (name, _), sums in theirs.items():
        totals[name][0] += sums[0]
        totals[name][1] += sums[1]
    for name, sums in totals.items():
        mine = [sum(region["gpu"][key] for (domain, path), region in regions.items() if f"{domain}:{path[-1]}" == name)
                for key in ("kernels", "kernel_ns")]
        if mine != sums:
            raise SystemExit(f"{name}: {mine} instead of nsys' {sums}")
        compared += 1
    return compared, took


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--nsys", default="")
    parser.add_argument("kernels", nargs="*", type=int)
    arguments = parser.parse_intermixed_args()
    bin_dir = f"{arguments.build}/bin"
    print(f"load average at the start: {os.getloadavg()[0]:.1f}, {os.cpu_count()} processors")
    print(f"{'kernels':>10}{'file':>10}{'scan':>10}{'report':>10}{'ratio':>8}{'memory':>10}")
    for size in arguments.kernels or (100_000, 1_000_000, 10_000_000):
        with tempfile.TemporaryDirectory(prefix="rangescope-bench-", dir=os.environ.get("TMPDIR", "/var/tmp")) as folder:
            trace = os.path.join(folder, "trace.sqlite")
            subprocess.run([f"{bin_dir}/nsys_trace", trace, str(size)], check=True, stdout=subprocess.DEVNULL)
            scan, _ = best([f"{bin_dir}/sqlite_scan", trace])
            report, memory = best([f"{bin_dir}/rangescope", "report", trace, "-f", "json"])
            print(f"{size:>10,}{os.path.getsize(trace) / 1e6:>7.0f} MB{scan:>8.2f} s{report:>8.2f} s{report / scan:>7.2f}x"
                  f"{memory:>7.0f} MB", flush=True)
            if size <= LARGEST_PROVED:
                done = subprocess.run([f"{bin_dir}/rangescope", "report", trace, "-f", "json"], check=True, capture_output=True)
                compared, took = prove(json.loads(done.stdout), trace, arguments.nsys)
                print(f"           equal to brute force{' and nsys' if took else ''}: {compared} values"
                      + (f"; nsys stats took {took:.1f} s, {took / report:.0f}x" if took else ""), flush=True)


if __name__ == "__main__":
    main()
