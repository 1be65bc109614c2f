"""Test drivers in Python: unittest, with the cases counted one by one by summary.py, and rangescope run as a user would."""
import contextlib
import functools
import glob
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

FETCHED = os.path.normpath(f"{os.path.dirname(os.path.abspath(__file__))}/../../.cache/roots/forky/bin")


PATIENCE_S = 300  # for what has to come, on a machine that others keep busy


def as_from_a_shell():
    """Signals and process group as in a terminal: cases stop and end what they start by them.

    What was started by nohup, or in the background of a script, ignores signals. And without a shell that waits for our process group, a
    process that ends while another one is stopped sends SIGHUP to all of the group.
    """
    for number in (signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        os.close(os.open("/dev/tty", os.O_RDWR))
    except OSError:  # else Ctrl-C has to reach us
        if os.getpgrp() != os.getpid():
            os.setpgid(0, 0)


as_from_a_shell()


def until(condition, what=""):
    """The first true answer of condition; fails where none comes for minutes."""
    latest = time.monotonic() + PATIENCE_S
    while not (answer := condition()):
        if time.monotonic() > latest:
            raise AssertionError(f"it did not come: {what or condition}")
        time.sleep(0.01)
    return answer


def contents(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def cpu_s(pid):
    """CPU time of all threads that a process has now."""
    total = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(OSError):  # it has ended
            total += int(contents(f"/proc/{pid}/task/{thread}/schedstat").split()[0]) / 1e9
    return total


def spends(seconds, *pids):
    """Waits until each process has used so much CPU time from now on."""
    before = {pid: cpu_s(pid) for pid in pids}
    for pid in pids:
        until(lambda pid=pid: cpu_s(pid) >= before[pid] + seconds, f"{seconds} s of CPU time of process {pid}")


class Counted(unittest.TextTestResult):
    """Writes a line `pass|fail|skip name` for each case to $RANGESCOPE_CASES; behind what was skipped stands `: why`."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        path = os.environ.get("RANGESCOPE_CASES")
        if path:
            os.makedirs(os.path.dirname(path), exist_ok=True)
        self.out = open(path, "w", encoding="utf-8") if path else None

    def note(self, state, test, why=""):
        if self.out:
            self.out.write(f"{state} {test.id().replace('__main__.', '')}{why}\n")
            self.out.flush()

    def addSuccess(self, test):
        super().addSuccess(test)
        self.note("pass", test)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.note("fail", test)

    def addError(self, test, err):
        super().addError(test, err)
        self.note("fail", test)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.note("skip", test, ": " + " ".join(reason.split()))


def main():
    """Runs the calling module's cases; what stands in sys.argv belongs to the module. In CI a skip is a failure."""
    only = os.environ.get("ONLY_TEST")  # a part of its name
    loader = unittest.TestLoader()
    loader.testNamePatterns = [f"*{only}*"] if only else None
    suite = loader.loadTestsFromModule(sys.modules["__main__"])
    result = unittest.TextTestRunner(resultclass=Counted, verbosity=2).run(suite)
    if not result.wasSuccessful() or not result.testsRun:
        sys.exit(1)
    if result.skipped and os.environ.get("CI"):
        print("in CI nothing may be skipped")
        sys.exit(1)
    sys.exit(77 if len(result.skipped) == result.testsRun else 0)


@functools.cache
def pythons():
    """One CPython a version, of those that are here, `cpython.3.N` to path: those of pythons.sh too. And those with PyTorch."""
    found, real = {}, {}
    ask = "import sys, importlib.util as u; print(sys.implementation.name, *sys.version_info[:2], sep='.', end=' '); print(u.find_spec('torch') is not None)"
    others = (os.path.expanduser("~/.pyenv/versions/3.*/bin/python3"), f"{FETCHED}/python3.*")
    for path in ["/usr/bin/python3", *(path for each in others for path in sorted(glob.glob(each)))]:
        try:
            version, torch = subprocess.run([path, "-c", ask], capture_output=True, text=True, check=True, timeout=300).stdout.split()
        except (OSError, subprocess.SubprocessError):
            continue
        if re.fullmatch(r"cpython\.3\.(9|1\d)", version):
            found.setdefault(version, path)
            if torch == "True":
                real.setdefault(version, path)
    return found, real


def newest_pythons(test):
    """Those that pythons.sh fetches. Skips the test where they are not."""
    found = {version: path for version, path in pythons()[0].items() if version in ("cpython.3.14", "cpython.3.15")}
    if len(found) < 2:
        test.skipTest("CPython 3.14 and 3.15 are not at hand: tests/tools/pythons.sh .cache/roots/forky fetches them")
    return found


def run(argv, **options):
    """The finished process; its output as text. stdin is closed."""
    return subprocess.run([str(a) for a in argv], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, errors="surrogateescape", timeout=PATIENCE_S, **options)


def past_deaths_of_nsys(start):
    """What start() returns, a finished process. The real nsys 2022 dies of an exception of its own at times, where its
    processes miss each other: it is started again then, six times at most."""
    for _ in range(6):
        done = start()
        if done.returncode == 0 or "Dynamic exception type: boost::wrapexcept<QuadDCommon::" not in done.stdout + done.stderr:
            break
    return done


def newest_run(runs):
    """Of a folder of runs, by when they started: names have whole seconds, and process ids behind them."""
    def started_ns(run):
        with open(f"{run}/manifest.json", encoding="utf-8") as file:
            return json.load(file)["start_unix_ns"]

    return max((entry.path for entry in os.scandir(runs) if entry.name[0].isdigit()), key=started_ns)


def profile(bin_dir, command, *options):
    """Profiles command and returns (the JSON report, the finished process)."""
    with tempfile.TemporaryDirectory(prefix="rangescope-test-") as folder:
        done = run([f"{bin_dir}/rangescope", "profile", "--runs", folder, *options, "--", *command])
        runs = sorted(e.path for e in os.scandir(folder) if e.is_dir())
        if len(runs) != 1:
            raise AssertionError(f"{len(runs)} run directories, exit code {done.returncode}\n{done.stdout}\n{done.stderr}")
        report = run([f"{bin_dir}/rangescope", "report", runs[0], "--format", "json"])
        if report.returncode:
            raise AssertionError(f"report: exit code {report.returncode}\n{report.stderr}")
        return json.loads(report.stdout), done


def compared_ranges(comparison):
    """Regions of a comparison that are ranges of the program: not the rows "whole run" and "outside ranges"."""
    return [r for r in comparison["regions"] if "whole_run" not in r and "outside_ranges" not in r]


def aggregate(report):
    """{(domain, kind, path as tuple): region} of the regions over all processes."""
    rows = [r for r in report["regions"] if r.get("process") is None and r.get("thread") is None]
    return {(r["domain"], r["kind"], tuple(r["path"])): r for r in rows}
