#!/usr/bin/env python3
"""What CPU sampling costs: the same work under `rangescope profile` without and with it, in turns. Usage: cpu_cost.py BIN_DIR [ROUNDS [WAY...]]

CPU time of the program alone (user and system, of a child of the profiled process, so that it counts on a busy machine too), the median of
the rounds beside --cpu off, and what the sampling thread takes of a core while the program has one. Before it, what interrupts take of a
program that does nothing but read the clock (stolen_time, and the same in Python): this moves less than the programs' own time does. BIN_DIR: an optimized build."""
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
BIN = os.path.abspath(sys.argv[1])
ROUNDS = int(sys.argv[2]) if len(sys.argv) > 2 else 7
MEASURE = """import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print("used", used.ru_utime + used.ru_stime)"""
PYTHON = """import json
def leaf(i): return {"number": i, "square": i * i, "text": str(i)}
def work(n): return json.loads(json.dumps([leaf(i) for i in range(n)]))
for _ in range(400): work(2000)"""
DEEP = """import json
def down(depth): return down(depth - 1) if depth else json.loads(json.dumps([{"number": i, "text": str(i)} for i in range(2000)]))
for _ in range(600): down(150)"""
PROGRAMS = {"Python": [sys.executable, "-c", PYTHON], "deep": [sys.executable, "-c", DEEP], "llm": [f"{BIN}/llm", "--requests", "2"]}
GAPS_OF_PYTHON = """import sys, time
def run(depth, seconds, clock=time.perf_counter_ns):
    if depth: return run(depth - 1, seconds)
    last = begin = clock(); stolen = longer = 0
    while last < begin + seconds * 10**9:
        now = clock(); gap = now - last; last = now
        if gap > 1000000: longer += gap
        elif gap > 1000: stolen += gap
    print("stolen", 100 * stolen / (last - begin - longer))
run(int(sys.argv[1]), int(sys.argv[2]))"""
WAYS = {"off": ["--cpu", "off"], "default": [], "199 Hz": ["--cpu", "199Hz"], "999 Hz": ["--cpu", "999Hz"], "199 Hz, counters": ["--cpu", "199Hz", "--cpu-counters", "software"]}

WAYS = {way: WAYS[way] for way in ["off", *sys.argv[3:]]} if sys.argv[3:] else WAYS


def run(folder, options, program):
    """CPU seconds of the program, and of the sampler a second of the program's."""
    done = subprocess.run([sys.executable, f"{HERE}/../tools/sampler_cpu.py", f"{BIN}/rangescope", "profile", "--no-project", "--sample", "off", "-q",
                           *options, "-o", "report.txt", "--", sys.executable, "-c", MEASURE, *program],
                          cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=600)
    used, core = re.search(r"used ([\d.]+)", done.stdout), re.search(r"sampler ([\d.]+) s", done.stderr)
    return (float(used[1]), (float(core[1]) if core else 0) / float(used[1])) if used else (None, 0)


def stolen(folder, language, depth, options):
    """Percent of three seconds that gaps of less than a millisecond take, on one core, below `depth` frames (native ones of 1 KB)."""
    program = ["taskset", "-c", "1", *([f"{BIN}/stolen_time"] if language == "native" else [sys.executable, "-c", GAPS_OF_PYTHON]), str(depth), "3"]
    way = options if options[:1] == ["perf"] else [f"{BIN}/rangescope", "profile", "--no-project", "--sample", "off", "-q", *options, "-o", "report.txt", "--"]
    done = subprocess.run([*way, *program], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=60)
    return float(re.search(r"stolen ([\d.]+)", done.stdout)[1])


GAPS = {**WAYS, **({"perf 199 Hz": ["perf", "record", "-q", "-F", "199", "--call-graph", "dwarf,65528", "-o", "perf.data"]} if shutil.which("perf") else {})}
for language, depth in (("native", 0), ("native", 40), ("Python", 5), ("Python", 60)):
    with tempfile.TemporaryDirectory(prefix="rangescope-bench-") as folder:
        taken = [{way: stolen(folder, language, depth, options) for way, options in GAPS.items()} for _ in range(ROUNDS)]
    for way in GAPS:
        more = [each[way] - each["off"] for each in taken]
        error = statistics.stdev(more) / len(more) ** 0.5 if len(more) > 1 else 0
        print(f"stolen, {depth:2} {language} frames {way:<18}{statistics.median(each[way] for each in taken):7.3f} %  {statistics.mean(more):+.3f} +- {error:.3f}")

for name, program in PROGRAMS.items():
    seconds, cores = {way: [] for way in WAYS}, {way: [] for way in WAYS}
    with tempfile.TemporaryDirectory(prefix="rangescope-bench-") as folder:
        for _ in range(ROUNDS):
            for way, options in WAYS.items():
                used, core = run(folder, options, program)
                if used is not None:
                    seconds[way].append(used)
                    cores[way].append(core)
    if not seconds["off"]:
        raise SystemExit(f"{name} did not run: {' '.join(program[:2])}")
    off = statistics.median(seconds["off"])
    for way, list_of in seconds.items():
        if list_of:
            change = [on / before - 1 for on, before in zip(list_of, seconds["off"])]
            print(f"{name:<8}{way:<18}{statistics.median(list_of):8.3f} s {statistics.median(list_of) / off - 1:+8.2%}  pairs {min(change):+.2%} ... {max(change):+.2%}"
                  f"  sampler {statistics.median(cores[way]):.4f} core")
