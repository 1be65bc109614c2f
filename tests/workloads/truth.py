#!/usr/bin/env python3
"""rangescope's report of a workload against what the workload itself counted. Usage: truth.py BIN_DIR"""
import json
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
        """What is taken out is what the program's own clock saw the hooks take, or less."""
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "truth.json")
            report, done = cases.profile(BIN, [f"{BIN}/short_ranges", file])
            self.assertEqual(done.returncode, 0, done.stderr)
            with open(file, encoding="utf-8") as f:
                truth = json.load(f)
        regions = {path: region["wall_ns"] for (_, _, path), region in cases.aggregate(report).items()}
        hooks = truth["with_ns"] - truth["without_ns"]
        outer, empty = regions[("outer",)], regions[("outer", "empty")]
        without = regions[("without", "outer")]
        self.assertLess(without["profiler"], 0.05 * without["inclusive"])
        cost, = (process["profiler"] for process in report["processes"])
        self.assertLess(0, cost["range_own_ns"])
        self.assertLess(cost["range_own_ns"], cost["range_pair_ns"])
        taken = outer["profiler"] / truth["occurrences"]
        self.assertLess(taken / truth["pairs"], cost["range_pair_ns"] + 1)
        self.assertGreater(taken / truth["pairs"], 0.5 * cost["range_pair_ns"], "less where a range was shorter than that")
        self.assertLess(taken, 2 * hooks, "not more than there was, but for a busy machine")
        self.assertGreater(taken, 0.2 * hooks, "most of what there was")
        self.assertAlmostEqual(outer["inclusive"] - outer["exclusive"], empty["inclusive"], delta=1)
        if outer["profiler"] > 0.1 * outer["inclusive"]:  # a busy machine makes ranges longer, and the share smaller
            self.assertIn("profiler_effect", [one["kind"] for one in report["verdict"]])

    def test_output_is_the_program_s_own(self):
        options = ["--layers", "1", "--width", "32", "--tokens", "3"]
        plain = cases.run([f"{BIN}/llm", *options])
        _, done = cases.profile(BIN, [f"{BIN}/llm", *options])
        self.assertIn(plain.stdout, done.stdout)
        bad = cases.run([f"{BIN}/llm", "--bogus"])
        self.assertEqual(bad.returncode, 64)


if __name__ == "__main__":
    cases.main()
