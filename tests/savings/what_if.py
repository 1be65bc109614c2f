#!/usr/bin/env python3
"""`report --what-if` of recordings whose fix was measured, against what came of it (tests/golden/savings/README.md), in every format.
Usage: what_if.py BIN_DIR SOURCE_DIR"""
import csv
import io
import json
import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
import cases  # noqa: E402
import json_schema  # noqa: E402

TOOL, SOURCE = os.path.join(os.path.abspath(sys.argv[1]), "rangescope"), os.path.abspath(sys.argv[2])
GOLDEN = os.path.join(SOURCE, "tests/golden/savings")


def run(name, changes, *options, code=0):
    words = [TOOL, "report", os.path.join(GOLDEN, name), *options]
    for change in changes:
        words += ["--what-if", change]
    done = subprocess.run(words, capture_output=True, text=True, timeout=cases.PATIENCE_S, env={**os.environ, "COLUMNS": "160"})
    assert done.returncode == code, done.stderr
    return done.stderr if code else done.stdout


def predicted(name, *changes):
    """The JSON report, and what it predicts of the loop."""
    report = json.loads(run(name, changes, "--json"))
    times = {tuple(report["regions"][time["region"]]["path"]): time for time in report["what_if"]["regions"]
             if report["regions"][time["region"]]["process"] is None}
    return report, times[("loop",)]


def saved(time):
    return time["saves_ns"] / time["now_ns"]


class WhatIf(unittest.TestCase):
    def assert_saves(self, name, changes, low, high):
        """Within 10 % of the saving or 5 % of the loop, as savings_test has it."""
        report, loop = predicted(name, *changes)
        allowed = max(0.05, 0.1 * high)
        self.assertGreaterEqual(saved(loop), low - allowed, name)
        self.assertLessEqual(saved(loop), high + allowed, name)
        self.assertFalse(loop["at_most"])
        self.assertLessEqual(loop["after_low_ns"], loop["after_ns"])
        self.assertGreaterEqual(loop["after_high_ns"], loop["after_ns"])
        return report, loop

    def test_what_was_measured_is_what_is_predicted(self):
        for name, changes, low, high in (
                ("layout", ["kernel:nchwToNhwc|nhwcToNchw=0"], 0.30, 0.30),
                ("tf32", ["kernel:f32f32_f32f32_f32=0.1352"], 0.87, 0.87),
                ("copies", ["copies=overlapped"], 0.85, 0.86),
                ("launch", ["launches=graph"], 0.84, 0.88),
                ("transposed", ["kernel:direct_copy_kernel=0"], 0.778, 0.778),
                ("cat", ["kernel:CatArrayBatchedCopy=0.0156"], 0.613, 0.613)):
            with self.subTest(name):
                report, loop = self.assert_saves(name, changes, low, high)
                region = next(r for r in report["regions"] if r["path"] == ["loop"])
                self.assertEqual(region["metrics"]["predicted_wall_ns"]["value"], loop["after_ns"])
                self.assertAlmostEqual(loop["now_ns"], region["wall_ns"]["inclusive"], delta=1)

    def test_the_report_follows_its_schema(self):
        report, _ = predicted("copies", "kernel:cutlass=0.5", "copies=0")
        with open(os.path.join(SOURCE, "docs/formats/report.schema.json"), encoding="utf-8") as file:
            self.assertEqual(json_schema.errors(report, json.load(file)), [])
        self.assertEqual([change["change"] for change in report["what_if"]["changes"]], ["kernel:cutlass=0.5", "copies=0"])

    def test_several_changes_are_one_program(self):
        changes = ["kernel:nchwToNhwc=0", "kernel:nhwcToNchw=0"]
        together = saved(predicted("layout", *changes)[1])
        alone = [saved(predicted("layout", change)[1]) for change in changes]
        self.assertGreater(together, max(alone))
        self.assertLess(together, 1)
        self.assertAlmostEqual(together, sum(alone), delta=0.03)  # the GPU is busy all the time

    def test_the_saving_never_exceeds_the_run(self):
        report, _ = predicted("fusion", "region:loop=0")
        run_time = report["what_if"]["run"]
        self.assertLessEqual(run_time["saves_ns"], run_time["now_ns"])
        self.assertGreater(run_time["saves_ns"], 0)

    def test_table_and_markdown_and_csv(self):
        change = ["kernel:nchwToNhwc|nhwcToNchw=0"]
        table = run("layout", change)
        self.assertRegex(table, r"what if kernel:nchwToNhwc\|nhwcToNchw=0: [\d,]+ kernel executions, [\d.]+ ms")
        self.assertRegex(table, r"the run takes [\d.]+ m?s instead of [\d.]+ m?s \(saves [\d.]+ ± [\d.]+ ms, [\d.]+ %\)")
        self.assertRegex(table, r"(?m)^range .*  predicted  +saves")
        self.assertIn("the run takes", run("layout", change, "-f", "md"))
        rows = list(csv.DictReader(io.StringIO(run("layout", change, "-f", "csv"))))
        loop = next(row for row in rows if row["path"] == "loop")
        self.assertLess(float(loop["metrics.predicted_wall_ns"]), float(loop["wall_ns.inclusive"]))

    def test_without_it_nothing_is_predicted(self):
        report = json.loads(run("layout", [], "--json"))
        self.assertNotIn("what_if", report)
        self.assertNotIn("predicted_wall_ns", report["regions"][0]["metrics"])

    def test_errors_name_the_place_and_what_to_write(self):
        error = run("layout", ["kernel:nchw=fast"], code=64)
        self.assertIn("'fast' is no factor", error)
        self.assertIn("--what-if 'kernel:nchw=fast'", error)
        self.assertIn("0.5 halves the time", error)
        self.assertIn("nchwToNhwcKernel", run("layout", ["kernel:nchwToNhwcKernels=0"], code=80))
        self.assertIn("'step/'", run("layout", ["region:stop=0"], code=80))

    def test_a_recording_without_calls_predicts_nothing(self):
        done = subprocess.run([TOOL, "report", os.path.join(SOURCE, "tests/golden/nsys/cpu.sqlite"), "--what-if", "copies=0"],
                              capture_output=True, text=True, timeout=cases.PATIENCE_S)
        self.assertEqual(done.returncode, 80, done.stderr)
        self.assertIn("has no CUDA calls", done.stderr)


if __name__ == "__main__":
    cases.main()
