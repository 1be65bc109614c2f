#!/usr/bin/env python3
"""Every command on every golden, and on a native capture of 4 GiB, in a process of at most 2 GiB.

    within_memory.py BUILD_DIR --test   the goldens
    within_memory.py BUILD_DIR          a capture of 4 GiB as well; prints times and peaks
    within_memory.py BUILD_DIR WHAT...  that alone, and of its commands those that begin with one of these

The limit is RLIMIT_DATA: heap and private memory of each process, not the file that is mapped; with the capture of
4 GiB, and where root runs this, a memory control group holds it as well, page cache included, and gives the peak. A
command may refuse an input in words; it may not die by a signal, run out of memory or call it a bug of its own. Without
--test a file of 4 GiB is made in $TMPDIR, used and removed; a command that writes every range of it is ended
after MOST_S, by which time it has long come to what it holds in memory.
"""
import concurrent.futures
import glob
import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
GOLDEN = os.path.join(HERE, "..", "golden")
LIMIT = 2 << 30
MOST_S = 240
GROUPS = ("/sys/fs/cgroup/memory", "/sys/fs/cgroup")  # version 1, and 2
FORMATS = "table json jsonl csv md html perfetto openmetrics collapsed speedscope".split()
KNOWN = {0, 65, 66, 69, 80, 81, 82}
FAILED = ("out of memory", "a bug in rangescope", "terminate called", "bad_alloc")


def goldens():
    """What a reader takes: files, and folders of captures."""
    found = [path for pattern in ("native/*.rstrace", "nsys/*.sqlite", "nsys/*.csv", "nsys/stats/*/*", "ncu/*.ncu-repz", "kineto/step*")
             for path in glob.glob(os.path.join(GOLDEN, pattern))]
    found += [path for pattern in ("native-cpu/*", "native-gpu/*", "samples/*") for path in glob.glob(os.path.join(GOLDEN, pattern))
              if os.path.isdir(path)]
    return sorted(os.path.normpath(path) for path in found)


def commands(path, out, formats):
    """(what it is, words); `out` is a name for files that is the caller's alone."""
    for form in formats:
        yield f"report -f {form}", ["report", path, "-f", form, "-o", f"{out}.{form}"]
    yield "compare", ["compare", path, path]
    yield "gate", ["gate", path, "-b", path]
    yield "query", ["query", path, "select count(*) from regions"]
    yield "export", ["export", path, "--to", "sqlite", "-o", f"{out}.sqlite"]
    yield "export --to jsonl", ["export", path, "--to", "jsonl", "--table", "ranges", "-o", f"{out}.rows"]
    if not os.path.exists(f"{path}/manifest.json"):  # a run is none to import
        yield "import", ["runs", "import", path, "--runs", f"{out}.runs"]


class Group:
    """A control group of LIMIT bytes for one command; None in its place where none can be made."""

    def __init__(self, root):
        first = root == GROUPS[0]
        self.path = os.path.join(root, f"rangescope-{os.getpid()}")
        os.mkdir(self.path)
        self.write("memory.limit_in_bytes" if first else "memory.max", LIMIT)
        self.peak_name = "memory.max_usage_in_bytes" if first else "memory.peak"

    @classmethod
    def make(cls):
        for root in GROUPS:
            try:
                return cls(root)
            except OSError:
                pass
        return None

    def write(self, name, value):
        with open(os.path.join(self.path, name), "w", encoding="ascii") as f:
            f.write(str(value))

    def end(self):
        with open(os.path.join(self.path, self.peak_name), encoding="ascii") as f:
            peak = int(f.read())
        os.rmdir(self.path)
        return peak


def run(tool, words, folder, group=None, most_s=None):
    """(exit code, seconds, bytes at the peak, what it printed last)"""
    def limited():
        if group:
            group.write("cgroup.procs", os.getpid())
        resource.setrlimit(resource.RLIMIT_DATA, (LIMIT, LIMIT))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    begin = time.monotonic()
    with tempfile.TemporaryFile() as err:
        child = subprocess.Popen([tool, *words], cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=err, preexec_fn=limited)
        timer = threading.Timer(most_s or 1e6, lambda: os.kill(child.pid, signal.SIGTERM))
        timer.daemon = True
        timer.start()
        _, status, usage = os.wait4(child.pid, 0)
        timer.cancel()
        child.returncode = os.waitstatus_to_exitcode(status)
        err.seek(max(0, err.seek(0, os.SEEK_END) - 2000))
        return child.returncode, time.monotonic() - begin, usage.ru_maxrss * 1024, err.read().decode(errors="replace")


def problem(code, said):
    if code not in KNOWN:
        return f"exit code {code}: {said.strip()[-200:]}"
    return next((words for words in FAILED if words in said), "")


def all_goldens(tool, folder):
    paths = goldens()
    kinds, jobs = set(), []
    for number, path in enumerate(paths):
        kind = os.path.relpath(path, GOLDEN).split(os.sep)[0], os.path.splitext(path)[1]
        formats = ("table", "json") if kind in kinds else FORMATS  # all of them once a kind
        kinds.add(kind)
        jobs += [(path, what, words) for what, words in commands(path, os.path.join(folder, str(number)), formats)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        done = list(pool.map(lambda job: run(tool, job[2], folder), jobs))
    wrong = [f"{what} {os.path.relpath(path, GOLDEN)}: {why}" for (path, what, _), (code, _, _, said) in zip(jobs, done) if (why := problem(code, said))]
    read = {path for (path, what, _), (code, *_) in zip(jobs, done) if code == 0 and what == "report -f json"}
    if len(read) < len(paths) * 3 // 4:
        wrong.append(f"only {len(read)} of {len(paths)} goldens are read")
    print(f"{len(paths)} goldens, {len(read)} of them read, {len(jobs)} commands, {len(wrong)} wrong; the peak is "
          f"{max(peak for _, _, peak, _ in done) / 1e6:.0f} MB")
    return wrong


def four_gigabytes(build, tool, folder, chosen):
    path = os.path.join(folder, "42.0.rstrace")
    subprocess.run([os.path.join(build, "bin", "big_capture"), path, "4295"], check=True, stdout=subprocess.DEVNULL)
    wrong = []
    for what, words in commands(path, os.path.join(folder, "big"), FORMATS):
        if chosen and not what.startswith(tuple(chosen)):
            continue
        group = Group.make()
        code, wall, peak, said = run(tool, words, folder, group, MOST_S)
        grouped = f", {group.end() / 1e6:.0f} with the page cache" if group else ""
        interrupted = wall >= MOST_S and code in (143, -signal.SIGTERM)
        why = "" if interrupted else problem(code, said)
        print(f"{what:<24}{wall:>8.1f} s{peak / 1e6:>8.0f} MB{grouped}  {'ended' if interrupted else f'exit code {code}'}  {why}", flush=True)
        wrong += [f"{what}: {why}"] if why else []
        for name in os.listdir(folder):
            if name.startswith("big."):
                subprocess.run(["rm", "-rf", os.path.join(folder, name)], check=True)
    return wrong


def main(build, *words):
    tool = os.path.join(os.path.abspath(build), "bin", "rangescope")
    with tempfile.TemporaryDirectory(prefix="rangescope-memory-") as folder:
        wrong = [] if words and words != ("--test",) else all_goldens(tool, folder)
        if words != ("--test",):
            wrong += four_gigabytes(build, tool, folder, words)
    print(*wrong, sep="\n")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
