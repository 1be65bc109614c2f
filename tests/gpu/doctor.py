#!/usr/bin/env python3
"""rangescope doctor on real programs of a machine with a GPU: what it says, and whether each command that it prints captures something.

    tests/gpu/doctor.py ZOO [WORK]    ZOO: zoo.cu built with nvcc; WORK: work.py, run with this Python, which needs PyTorch then
    BUDGET=140                        seconds in all; what does not fit is left out, and said

rangescope, nsys and ncu are found as rangescope finds them. One line a command; exit code 1 when one captured nothing or a cause is missing.
"""
import glob
import json
import os
import subprocess
import sys
import tempfile
import time

END = time.time() + float(os.environ.get("BUDGET", "140"))
ZOO = [os.path.abspath(sys.argv[1])]
WORK = [sys.executable, os.path.abspath(sys.argv[2])] if len(sys.argv) > 2 else None
SMALL = {"LAYERS": "2", "TOK": "40", "PL": "64"}
ALL = {"ranges", "counters", "nsys", "nsys gated", "ncu range", "ncu app-range", "ncu kernel"}
failures = []


def shell(command, folder, env, limit):
    begin = time.time()
    try:
        done = subprocess.run(["bash", "-c", command], cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace", timeout=limit)
        return done.returncode, done.stdout, time.time() - begin
    except subprocess.TimeoutExpired:
        return "timeout", "", time.time() - begin


def captured(name, folder):
    """What is there now; "" for nothing."""
    def regions(path):
        done = subprocess.run(["rangescope", "report", path, "-f", "json"], capture_output=True, text=True, errors="replace")
        return json.loads(done.stdout) if done.returncode == 0 else None
    if name.startswith("nsys"):
        files = glob.glob(folder + "/rangescope-doctor/nsys/nsys*.*")
        return ", ".join(f"{os.path.basename(f)} of {os.path.getsize(f)} bytes" for f in files)
    if name.startswith("ncu"):
        files = glob.glob(folder + f"/rangescope-doctor/ncu/{name[4:]}.ncu-rep*")
        report = regions(files[0]) if files else None
        return f"{len(report['regions'])} regions" if report and report["regions"] else ""
    files = sorted(glob.glob(folder + "/rangescope-runs/*/report.json"))
    if not files:
        return ""
    with open(files[-1]) as f:
        report = json.load(f)
    top = [r for r in report["regions"] if r["process"] is None and r["occurrences"] > 0]
    if not top or report["findings"]:
        return ""
    values = [m for m in top[0]["metrics"].values() if m["value"] is not None]
    if name == "counters" and not values:
        return ""
    return f"{len(top)} regions, {top[0]['gpu']['kernels'] if top[0]['gpu'] else 0} kernels, {len(values)} metrics"


def look(include, program, env, expected, run=()):
    """The complaints must be those expected; the ways named in `run` must work and capture something."""
    name = f"{include} of {os.path.basename(program[-1])}"
    if time.time() > END:
        print(f"{name}: left out, the time is up")
        return
    environment = dict(os.environ, **env)
    with tempfile.TemporaryDirectory() as folder:
        begin = time.time()
        done = subprocess.run(["rangescope", "doctor", "--json", "--include", include, "--for", "60s", "--", *program], cwd=folder,
                              env=environment, capture_output=True, text=True, errors="replace")
        try:
            answer = json.loads(done.stdout)
        except ValueError:
            failures.append(name)
            print(f"{name}: no answer: {done.stderr[-500:]}")
            return
        said = [f["id"] for f in answer["findings"] if f["verdict"] in ("warn", "fail")]
        if said != expected:
            failures.append(name)
        print(f"{name}: {time.time() - begin:.1f} s, {answer['program']['ended']}: {said}" + ("" if said == expected else f" INSTEAD OF {expected}"))
        for finding in answer["findings"]:
            if finding["id"] in said:
                print(f"    {finding['found'][:400]}")
        for gpu in [r["gpu"] for r in answer["ranges"] if r["gpu"]]:
            print("    " + json.dumps({k: v for k, v in gpu.items() if v}))
        for way in answer["ways"]:
            if not way["works"]:
                print(f"    no   {way['name']}: {way['reason'][:200]}")
            if way["name"] not in run or time.time() > END:
                continue
            code, text, took = shell(way["command"], folder, environment, 60) if way["works"] else ("-", "", 0)
            got = captured(way["name"], folder) if way["works"] else ""
            print(f"    {'ok  ' if got else 'BAD '} {way['name']}: exit code {code}, {took:.1f} s: {got or 'nothing'}", flush=True)
            if not got:
                failures.append(f"{name}, {way['name']}")
                print("        " + way["command"][:700] + "\n        " + " | ".join(text.strip().splitlines()[-5:])[-600:])


look("decode/", ZOO, {}, [], ALL)
look("graph_replay/", ZOO, {}, ["program.graphs_inside"], {"counters", "ncu app-range", "ncu kernel"})
look("main_thread/", ZOO, {}, ["program.work_on_other_threads"], {"ncu kernel"})
look("alloc_async_inside/", [*ZOO, "risky"], {}, ["program.async_allocation"], {"ncu app-range", "ncu kernel"})
look("alloc_inside/", [*ZOO, "risky"], {}, [], {"ncu range"})
look("async/", ZOO, {}, [], {"ncu range"})
look("decode_all/", ZOO, {}, ["program.wrong_domain"])
look("deocde/", ZOO, {}, ["program.unknown_range"])
look("empty/", ZOO, {}, ["program.no_work_inside"])
if WORK:
    look("decode/", WORK, SMALL, ["program.calls_inside"], {"ranges", "counters", "ncu kernel"})
print("all good" if not failures else "failed: " + "; ".join(failures))
sys.exit(1 if failures else 0)
