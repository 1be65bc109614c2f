#!/usr/bin/env python3
"""`./dev bench`: the benchmark programs, then whole processes plain, under rangescope and under the real nsys 2022.4.2, then
reports of a million events, then large files (size.py, capture_scale.py, nsys_scale.py, snapshot_scale.py: 8 GB of $TMPDIR), then queries
over many ranks' Parquet (parquet_scale.py, where DuckDB is).

Everything is measured in this one run on this machine. Each whole-process row is the best of three; wall time includes what
the tool does before the program starts and after it ends, but not nsys's import and export. A report's time and memory are
those of the whole program that makes the events and writes it. Usage: run.py BUILD_DIR [FILTER]
"""
import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOOLS = os.environ.get("RANGESCOPE_TOOLS", os.path.join(HERE, "..", "..", ".cache", "tools"))


def wrap(tool, bin_dir, folder, command):
    """The command line that runs command under tool."""
    if tool == "rangescope":
        return [f"{bin_dir}/rangescope", "profile", "--runs", f"{folder}/runs", "--", *command]
    if tool == "nsys 2022.4.2":
        return [f"{TOOLS}/bin/nsys", "profile", "--trace=nvtx", "--sample=none", "--cpuctxsw=none", "-f", "true", "-o",
                f"{folder}/nsys", *command]
    return command


def timed(tool, bin_dir, folder, command):
    start = time.monotonic()
    done = subprocess.run(wrap(tool, bin_dir, folder, command), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, env=dict(os.environ, TMPDIR=folder))
    if done.returncode:
        raise SystemExit(f"{tool}: exit code {done.returncode}\n{done.stdout}")
    return time.monotonic() - start


def estimated_pair(folder):
    """What rangescope itself takes a push and pop to cost, and subtracts: to compare with what the program saw."""
    run, = glob.glob(f"{folder}/runs/*/report.json")
    with open(run, encoding="utf-8") as f:
        return json.load(f)["processes"][0]["profiler"]["range_pair_ns"]


def whole_processes(bin_dir):
    tools = ["nothing", "rangescope"]
    if os.path.exists(f"{TOOLS}/bin/nsys"):
        tools.append("nsys 2022.4.2")
    else:
        print("nsys is not at hand (tests/tools/fetch.sh): left out")
    print(f"\n{'profiler':<16}{'push+pop':>12}{'two clocks':>12}{'ratio':>8}{'pair_cost':>12}{'llm':>10}{'subtracted':>12}")
    for tool in tools:
        best, llm, subtracted = None, None, ""
        for _ in range(3):
            with tempfile.TemporaryDirectory(prefix="rangescope-bench-") as folder:
                out = os.path.join(folder, "cost.json")
                wall = timed(tool, bin_dir, folder, [f"{bin_dir}/pair_cost", out])
                with open(out, encoding="utf-8") as f:
                    cost = json.load(f)
                if best is None or cost["pair_ns"] < best[0]:
                    best = (cost["pair_ns"], cost["two_clocks_ns"], wall)
                    subtracted = f"{estimated_pair(folder):.1f} ns" if tool == "rangescope" else ""
                wall = timed(tool, bin_dir, folder, [f"{bin_dir}/llm"])
                llm = wall if llm is None else min(llm, wall)
        print(f"{tool:<16}{best[0]:>9.1f} ns{best[1]:>9.1f} ns{best[0] / best[1]:>7.2f}x{best[2]:>10.2f} s{llm:>8.2f} s{subtracted:>12}")


def reports(bin_dir, events=1000000):
    """Time and memory of writing reports of so many events; of the HTML page also those of opening it, where a browser is."""
    print(f"\n{'report':<16}{'events':>12}{'written in':>12}{'memory':>10}{'file':>10}")
    with tempfile.TemporaryDirectory(prefix="rangescope-bench-") as folder:
        for form in ("html", "perfetto"):
            start = time.monotonic()
            child = subprocess.Popen([f"{bin_dir}/make_pages", folder, str(events), form])
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
            if child.returncode:
                raise SystemExit(f"make_pages: exit code {child.returncode}")
            wall = time.monotonic() - start
            size = max(os.path.getsize(path) for path in glob.glob(f"{folder}/big.*") if not path.endswith("html") or form == "html")
            print(f"{form:<16}{events:>12,}{wall:>10.2f} s{usage.ru_maxrss / 1024:>7.0f} MB{size / 1e6:>7.1f} MB")
        playwright = os.path.join(HERE, "../../web/node_modules/playwright-core")
        if not (shutil.which("node") and shutil.which("chromium") and os.path.isdir(playwright)):
            print("no browser at hand (./dev web): the page was not opened")
            return
        done = subprocess.run(["node", f"{HERE}/../browser/open_time.mjs", os.path.abspath(playwright), shutil.which("chromium"),
                               f"{folder}/big.html"], check=True, stdout=subprocess.PIPE, text=True)
        opened = json.loads(done.stdout)
        print(f"opened in {opened['open_ms'] / 1e3:.2f} s (best of 5), slowest zoom step {opened['slowest_zoom_step_ms']} ms, "
              f"JavaScript heap {opened['heap_bytes'] / 1e6:.0f} MB")


def main(build, only=""):
    for program in sorted(glob.glob(f"{build}/bin/*_bench")):
        if only in program:
            print(f"\n{os.path.basename(program)}", flush=True)
            subprocess.run([program], check=True)
    if only in "whole_processes":
        whole_processes(f"{build}/bin")
    if only in "reports":
        reports(f"{build}/bin")
    for script in ("size", "capture_scale", "within_memory", "nsys_scale", "snapshot_scale", "parquet_scale"):
        if script == "parquet_scale" and not os.path.exists(f"{build}/lib/libduckdb.so"):
            continue
        if only in script:
            subprocess.run([sys.executable, f"{HERE}/{script}.py", build], check=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
