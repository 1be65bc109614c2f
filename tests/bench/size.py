#!/usr/bin/env python3
"""`rangescope report` of large files: processor time and memory against what has to be kept.

    size.py BUILD_DIR          5 GB of a PyTorch trace, an ncu report of 1 GB, 2,000,000 ranges of different names,
                               folded and each a region, digests of 1,000 ranks, captures of 8 ranks with
                               1,000,000 kernels each
    size.py BUILD_DIR --tenth  a tenth or less of each; exits with 1 where memory is not bounded. Asserts no times

*Kept* are 40 bytes for each range, call and kernel, which a session has whatever the file says of them; of ncu reports the
results' metrics, 32 bytes each; of digests (5,000 regions each) what every rank has of every region, 40 bytes, and 12,000 for
each region. Files are made in $TMPDIR, used and removed. Times are user and system time of the process, which a busy machine
distorts least, and wall time beside them.
"""
import argparse
import importlib.util
import os
import pathlib
import sqlite3
import subprocess
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
REPORT = os.path.join(HERE, "../golden/ncu/k_decode.ncu-repz")
PROGRAM = 30e6  # of memory: the program itself, its buffers and tables
REGION = 1_100  # bytes of memory: a region of a report, and what making it takes


def ncu_maker():
    spec = importlib.util.spec_from_file_location("ncu_report", os.path.join(HERE, "ncu_report.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.make


def kineto(build, path, tenth):
    done = subprocess.run([f"{build}/bin/kineto_trace", path, "100" if tenth else "5000"], check=True, stdout=subprocess.PIPE, text=True)
    return 40 * sum(map(int, done.stdout.split()))


def ncu(_, path, tenth):
    results = 2_000 if tenth else 20_000
    ncu_maker()(REPORT, path, results, 0)
    return 32 * 1_000 * results  # a result of that report has about 1,000 metrics


def names(_, path, tenth):
    """A row for each of very many names that no rule folds: letters alone."""
    count = 200_000 if tenth else 2_000_000

    def name(i):
        return "work_" + "".join(chr(97 + i // 26 ** digit % 26) for digit in range(6))

    with sqlite3.connect(path) as db:
        db.executescript("pragma journal_mode = off; pragma synchronous = off; create table StringIds(id integer primary key, value text);"
                         "create table NVTX_EVENTS(start integer, end integer, eventType integer, globalTid integer, textId integer);")
        db.executemany("insert into StringIds values(?, ?)", ((i + 1, name(i)) for i in range(count)))
        db.executemany("insert into NVTX_EVENTS values(?, ?, 59, 281476987093103, ?)", ((i * 1000, i * 1000 + 500 + i % 97, i + 1) for i in range(count)))
    # The range, its name and a place in the table of names; and the 20,000 regions that a report has at most.
    return count * (40 + 11 + 64) + 20_000 * REGION


def regions(build, path, tenth):
    """The same, and a region for each (--fold-names off)."""
    names(build, path, tenth)
    return (200_000 if tenth else 2_000_000) * (40 + 11 + 64 + REGION)


def digests(build, path, tenth):
    ranks, regions = (100, 5_000) if tenth else (1_000, 5_000)
    subprocess.run([f"{build}/bin/job_digests", path, str(ranks), str(regions)], check=True, stdout=subprocess.DEVNULL)
    # What each rank has of each region, and a region with its sketches.
    return ranks * regions * (24 + 16) + regions * 12_000


def captures(build, path, tenth):
    kernels = 100_000 if tenth else 1_000_000
    subprocess.run([f"{build}/bin/job_captures", path, "8", str(kernels)], check=True, stdout=subprocess.DEVNULL)
    return 40 * 8 * kernels * 2  # each kernel and its call; ranges are a twentieth of them


def report(command):
    """(seconds, bytes) of a program; raises where it fails or needs more than 16 GB."""
    def limit():
        import resource
        resource.setrlimit(resource.RLIMIT_AS, (16 << 30, 16 << 30))

    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, preexec_fn=limit)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"{command}: exit code {child.returncode}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--tenth", action="store_true")
    arguments = parser.parse_args()
    cases = open(os.environ.get("RANGESCOPE_CASES", os.devnull), "w", encoding="utf-8")
    failed = 0
    print(f"{'file':<8}{'size':>12}{'time':>10}{'wall':>10}{'speed':>12}{'kept':>10}{'memory':>10}{'ratio':>8}")
    # What a tenth may take, as a multiple of what is kept.
    for make, most in ((kineto, 2.2), (ncu, 2), (names, 2.5), (regions, 1.3), (digests, 2), (captures, 2.2)):
        with tempfile.TemporaryDirectory(prefix="rangescope-size-") as folder:
            path = os.path.join(folder, {"kineto": "trace.json", "ncu": "big.ncu-rep", "names": "names.sqlite",
                                         "regions": "names.sqlite"}.get(make.__name__, "job"))
            kept = make(arguments.build, path, arguments.tenth)
            files = [path] if os.path.isfile(path) else [f for f in pathlib.Path(path).rglob("*") if f.is_file() and f.suffix != ".json"]
            size = sum(map(os.path.getsize, files))
            start = time.monotonic()
            seconds, memory = report([f"{arguments.build}/bin/rangescope", "report", path, *(["--fold-names", "off"] if make is regions else [])])
            wall = time.monotonic() - start
            floor = report([f"{arguments.build}/bin/job_digests", path])[0] if make is digests else 0
        print(f"{make.__name__:<8}{size / 1e6:>9.0f} MB{seconds:>8.2f} s{wall:>8.2f} s{size / 1e6 / seconds:>7.0f} MB/s"
              f"{kept / 1e6:>7.0f} MB{memory / 1e6:>7.0f} MB{memory / kept:>8.2f}", flush=True)
        if floor:
            print(f"  {seconds / floor:.2f} times as long as reading and unpacking the same bytes, {floor:.2f} s", flush=True)
        bounded = memory < most * kept + PROGRAM
        cases.write(f"{'pass' if bounded else 'fail'} {make.__name__}\n")
        if arguments.tenth and not bounded:
            print(f"  more than {most} x kept + {PROGRAM / 1e6:.0f} MB")
            failed = 1
    return failed


if __name__ == "__main__":
    raise SystemExit(main())
