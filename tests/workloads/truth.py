#!/usr/bin/env python3
"""rangescope's report of a workload against what the workload itself counted. Usage: truth.py BIN_DIR"""
import json
import math
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
import cases  # noqa: E402

BIN = sys.argv[1]


class Truth(unittest.TestCase):
    def check(self, workload, *options):
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "truth.json")
            command = [f"{BIN}/{workload}", *options, f"--truth={file}"]
            report, done = cases.profile(BIN, command)
            self.assertEqual(done.returncode, 0, done.stderr)
            with open(file, encoding="utf-8") as f:
                truth = json.load(f)
        want = {(r["domain"], r["kind"], tuple(r["path"])): r["occurrences"] for r in truth["regions"]}
        regions = cases.aggregate(report)
        self.assertEqual({key: r["occurrences"] for key, r in regions.items()}, want)
        for (domain, kind, path), region in regions.items():
            wall = region["wall_ns"]
            self.assertGreaterEqual(wall["inclusive"], wall["exclusive"])
            self.assertGreaterEqual(wall["exclusive"], 0)
            children = [r["wall_ns"]["inclusive"] for (d, k, p), r in regions.items()
                        if d == domain and k == kind and p[:-1] == path]
            self.assertAlmostEqual(wall["inclusive"] - wall["exclusive"], sum(children), delta=1 + 1e-9 * wall["inclusive"])
        self.assertEqual([loss for loss in report["losses"] if loss["severity"] != "info"], [])
        return want

    def test_llm(self):
        self.check("llm", "--layers", "3", "--width", "64", "--tokens", "20", "--requests", "3")

    def test_llm_threads(self):
        self.check("llm", "--layers", "2", "--width", "64", "--tokens", "30", "--requests", "16", "--threads", "4")

    def test_shallow_resnet(self):
        ran = self.check("shallow_resnet", "--batches", "5", "--blocks", "4", "--batch", "2")
        self.assertEqual(ran[("", "push_pop", ("warmup",))], 1)

    def test_recording_of_short_ranges_is_no_time_of_theirs(self):
        """Each empty range loses what recording one takes, or its whole length, and the range around it the rest.

        How near that cost is to what the hooks take on this machine is measured by tests/bench (`pair_cost`).
        """
        with tempfile.TemporaryDirectory() as folder:
            done = cases.run([f"{BIN}/rangescope", "profile", "-q", f"run.dir={folder}/run", "--", f"{BIN}/short_ranges"])
            self.assertEqual(done.returncode, 0, done.stderr)
            report = json.loads(cases.run([f"{BIN}/rangescope", "report", f"{folder}/run", "-f", "json"]).stdout)
            cost, = (process["profiler"] for process in report["processes"])
            self.assertLess(0, cost["range_own_ns"])
            self.assertLess(cost["range_own_ns"], cost["range_pair_ns"])
            # As std::lround does it: round() takes a half to the even number, 22.5 to 22.
            own, pair = (math.floor(cost[name] + 0.5) for name in ("range_own_ns", "range_pair_ns"))
            asked = cases.run([f"{BIN}/rangescope", "query", f"{folder}/run", "-f", "csv", "select name, count(*), "
                               f"sum(end_ns - start_ns), sum(min(end_ns - start_ns, {own})) from ranges group by name"])
        recorded = {name: [int(number) for number in numbers]
                    for name, *numbers in (line.split(",") for line in asked.stdout.splitlines()[1:])}
        count, length, inside = recorded["empty"]
        outer_count = recorded["outer"][0] // 2  # the other half is without ranges
        regions = {path: region for (_, _, path), region in cases.aggregate(report).items()}
        self.assertEqual({path: region["occurrences"] for path, region in regions.items()},
                         {("outer",): outer_count, ("outer", "empty"): count, ("without",): 1, ("without", "outer"): outer_count})
        outer, empty = (regions[path]["wall_ns"] for path in (("outer",), ("outer", "empty")))
        self.assertAlmostEqual(outer["inclusive"] - outer["exclusive"], empty["inclusive"], delta=1)
        self.assertEqual(empty["inclusive"] + empty["profiler"], length)
        taken = inside + count * (pair - own) + outer_count * own
        if outer["profiler"] == 0:  # a busy machine can make ranges so long that it is not worth it
            self.assertEqual(empty["profiler"], 0)
            self.assertLessEqual(inside, 0.05 * length)
            self.assertLessEqual(taken, 0.05 * outer["inclusive"])
        else:
            self.assertEqual((empty["profiler"], outer["profiler"]), (inside, taken))
        without = regions[("without", "outer")]["wall_ns"]
        self.assertIn(without["profiler"], (0, outer_count * own))
        if outer["profiler"] > 0.1 * (outer["inclusive"] + outer["profiler"]):
            self.assertIn("profiler_effect", [verdict["kind"] for verdict in report["verdict"]])

    def test_output_is_the_program_s_own(self):
        options = ["--layers", "1", "--width", "32", "--tokens", "3"]
        plain = cases.run([f"{BIN}/llm", *options])
        _, done = cases.profile(BIN, [f"{BIN}/llm", *options])
        self.assertIn(plain.stdout, done.stdout)
        bad = cases.run([f"{BIN}/llm", "--bogus"])
        self.assertEqual(bad.returncode, 64)


if __name__ == "__main__":
    cases.main()
