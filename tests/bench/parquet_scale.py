#!/usr/bin/env python3
"""Kernel time by region and rank over the Parquet of a large job, through `rangescope query`. Usage: parquet_scale.py BUILD_DIR [RANKS [KERNELS]]

Five different traces of an inference server (nsys_trace) are exported by rangescope; each becomes every fifth rank, as files of its own.
The sums are proved against the regions' own numbers, which come from another path through the analysis. Needs RANKS x 35 MB of $TMPDIR.
"""
import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

SQL = """select k.rank, r.path, sum(k.ns) as kernel_ns
from (select job, rank, place, sum(duration_ns) as ns from kernels group by all) k
join places p on p.job = k.job and p.rank = k.rank and p.place = k.place
join regions r on r.job = p.job and r.rank = p.rank and r.id = p.region
where r.pid is null group by all order by all"""
KNOWN = """select rank, path, sum(gpu_kernel_ns)::hugeint as kernel_ns from regions where pid is null and gpu_kernel_ns > 0 group by all order by all"""


def run(*words):
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def ask(tool, folder, sql):
    start = time.monotonic()
    child = subprocess.Popen([tool, "query", folder, sql, "-f", "jsonl"], stdout=subprocess.PIPE, text=True, stderr=subprocess.DEVNULL)
    rows = [json.loads(line) for line in child.stdout]
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"query: exit code {child.returncode}")
    return rows, time.monotonic() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main(build, ranks=100, kernels=1000000, different=5):
    tool, ranks, kernels = f"{build}/bin/rangescope", int(ranks), int(kernels)
    with tempfile.TemporaryDirectory(prefix="rangescope-parquet-") as folder:
        job = "job=fleet"
        for seed in range(min(different, ranks)):
            run(f"{build}/bin/nsys_trace", f"{folder}/trace.sqlite", str(kernels), str(seed + 1))
            run(tool, "export", f"{folder}/trace.sqlite", "--to", "parquet", "-o", f"{folder}/one")
            for table in ("kernels", "places", "regions"):
                file, = glob.glob(f"{folder}/one/{table}/*/*/*.parquet")
                for rank in range(seed, ranks, different):
                    os.makedirs(f"{folder}/all/{table}/{job}/rank={rank}")
                    shutil.copyfile(file, f"{folder}/all/{table}/{job}/rank={rank}/{table}.parquet")
        shutil.copy(f"{folder}/one/_rangescope.json", f"{folder}/all")
        size = sum(os.path.getsize(f) for f in glob.glob(f"{folder}/all/kernels/*/*/*.parquet"))
        asked = [ask(tool, f"{folder}/all", SQL) for _ in range(3)]
        rows, wall, processor, memory = min(asked, key=lambda one: one[1])
        known, *_ = ask(tool, f"{folder}/all", KNOWN)
        if rows != known or not rows:
            raise SystemExit("the sums differ from the regions' own")
        print(f"{ranks} ranks x {kernels:,} kernels, {size / 1e6:,.0f} MB of Parquet: kernel time by region and rank ({len(rows):,} rows) in {wall:.2f} s "
              f"(best of three; processor {processor:.2f} s), {memory:.0f} MB; sums proved; load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
