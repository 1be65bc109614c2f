"""What the cases of cpu.py share: the programs' arguments, and a recording of one with its report."""
import json
import os
import shutil
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
import cases  # noqa: E402
import json_schema  # noqa: E402

BIN, SHARES, CLIENT, SOURCE, PMU = (os.path.abspath(path) for path in sys.argv[1:6])
TOOL = f"{BIN}/rangescope"
HERE = os.path.dirname(os.path.abspath(__file__))


def line_of(file, text):
    with open(f"{HERE}/{file}", encoding="utf-8") as f:
        return next(number for number, line in enumerate(f, 1) if text in line)


def kernel_allowed():
    with open("/proc/sys/kernel/perf_event_paranoid", encoding="utf-8") as f:
        return os.geteuid() == 0 or int(f.read()) < 2


def stolen_s():
    with open("/proc/stat", encoding="ascii") as file:
        return int(file.readline().split()[8]) / os.sysconf("SC_CLK_TCK")


CACHE = tempfile.TemporaryDirectory(prefix="rangescope-cpu-cache-")  # names of functions: read once for all cases


class Profiled(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="rangescope-cpu-")
        self.env = {k: v for k, v in os.environ.items() if not k.endswith("_INJECTION64_PATH")}
        self.env["XDG_CACHE_HOME"] = CACHE.name

    def tearDown(self):
        shutil.rmtree(self.folder)

    def profile(self, *command, rate="999Hz", expect=0, options=(), env=None):
        """Report and what the program printed of itself; self.stolen_s: what the host took from the cores meanwhile, in which a thread
        runs for its samples and waits for its CPU time."""
        self.rate, before_s = int(rate.removesuffix("Hz")), stolen_s()
        done = cases.run([TOOL, "profile", "--no-project", "--sample", "off", "--cpu", rate, *options, "-o", "report.txt", "--", *command],
                         cwd=self.folder, env={**self.env, **(env or {})})
        self.stolen_s = stolen_s() - before_s
        if done.returncode == 77 and "perf_event" in done.stderr:
            self.skipTest(done.stderr.strip())
        self.assertEqual(done.returncode, expect, done.stderr)
        with open(f"{self.run_folder()}/report.json", encoding="utf-8") as f:
            report = json.load(f)
        with open(f"{SOURCE}/docs/formats/report.schema.json", encoding="utf-8") as f:
            self.assertEqual(json_schema.errors(report, json.load(f)), [])
        self.assertEqual([loss for loss in report["losses"] if loss["severity"] == "error"], [])
        truth = next((json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")), {})
        return report, truth

    def run_folder(self):
        return cases.newest_run(f"{self.folder}/rangescope-runs")

    def report_as(self, *words):
        done = cases.run([TOOL, "report", "latest", *words], cwd=self.folder, env=self.env)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    @staticmethod
    def region(report, *path):
        return next(r for r in report["regions"] if r["path"] == list(path) and r["process"] is None)

    def assert_adds_up(self, report):
        for region in report["regions"]:
            if "cpu" not in region:
                continue
            wall = region["wall_ns"]["inclusive"]
            self.assertAlmostEqual(sum(region["cpu"]["split"].values()), wall, delta=1e-6 * wall + 2, msg=region["path"])
            self.assertAlmostEqual(sum(part["ns"] for part in region["cpu"]["parts"]), wall, delta=1e-6 * wall + 2)

    @staticmethod
    def totals(region):
        """Share of the samples by function, with what it calls."""
        all_ns = sum(f["self_ns"] for f in region["cpu"]["functions"])
        return {f["name"]: f["total_ns"] / all_ns for f in region["cpu"]["callers"]}

    def assert_sampled(self, samples, cpu_ms, stretches=1):
        """As many samples as CPU time has periods, in so many stretches of it."""
        due, edges = cpu_ms / 1000 * self.rate, 2 + 2 * stretches
        self.assertLessEqual(samples, 1.02 * due + edges)
        self.assertGreaterEqual(samples, 0.95 * due - edges - self.stolen_s * self.rate)

    def assert_waits(self, region, truth_ns):
        """It waited, or stood in line for a core, while it had no CPU time."""
        waiting = region["cpu"]["split"]["waiting"]
        self.assertAlmostEqual(waiting, truth_ns, delta=0.03 * region["wall_ns"]["inclusive"] + 1e9 * self.stolen_s)

    def chains(self):
        """(functions from the root on, samples) of each chain."""
        for line in self.report_as("-f", "collapsed").splitlines():
            chain, count = line.rsplit(" ", 1)
            yield chain.split(";"), int(count)

    def waiting(self, report, name):
        """Share of each kind of waiting; being preempted is the machine's."""
        parts = {p["name"]: p["ns"] for p in self.region(report, name)["cpu"]["parts"] if p["kind"] == "waiting" and p["name"] != "preempted"}
        return {kind: ns / sum(parts.values()) for kind, ns in parts.items()}
