#!/usr/bin/env python3
"""A budget for tracing by the command line, against the stand-in CUPTI. Usage: overhead.py BIN_DIR LIBCUPTI SOURCE_DIR

The scene `steps` runs one, two and three kernels of 10 us in turn: 20 us a step.
"""
import json
import os
import shutil
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
import cases  # noqa: E402
import json_schema  # noqa: E402

BIN, CUPTI, SOURCE = os.path.abspath(sys.argv[1]), sys.argv[2], sys.argv[3]
TOOL, VICTIM = f"{BIN}/rangescope", f"{BIN}/standin_victim"
STEPS = 6000  # a few hundred milliseconds; more where a busy machine leaves the budget no room in them


class Overhead(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="rangescope-overhead-")
        self.env = {k: v for k, v in os.environ.items() if not k.endswith("_INJECTION64_PATH")}
        self.env["RANGESCOPE_CUPTI"] = CUPTI

    def tearDown(self):
        shutil.rmtree(self.folder)

    def tool(self, *words):
        return cases.run([TOOL, *words], cwd=self.folder, env=self.env)

    def budgeted(self, steps):
        """The report of so many steps, what was printed, and the regions `main` and `step`."""
        done = self.tool("profile", "--no-project", "--strict", "--overhead", "2%", "--cpu", "off", "--sample", "off", "--run-dir", f"run-{steps}",
                         "--", VICTIM, "steps", str(steps))
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(f"{self.folder}/run-{steps}/report.json", encoding="utf-8") as f:
            report = json.load(f)
        return (report, done.stderr, *(next(r for r in report["regions"] if r["path"][-1] == name) for name in ("main", "step")))

    def test_totals_are_estimated_and_counts_are_exact(self):
        for steps in (STEPS, 8 * STEPS, 64 * STEPS):
            report, printed, main, step = self.budgeted(steps)
            traced = step["gpu"].get("recorded_occurrences") or 0
            if traced > 20:
                break
        with open(f"{SOURCE}/docs/formats/report.schema.json", encoding="utf-8") as f:
            self.assertEqual(json_schema.errors(report, json.load(f)), [])
        self.assertEqual(step["occurrences"], steps)
        busy = step["metrics"]["gpu_busy_estimate"]
        self.assertTrue(step["gpu"]["partial"] and 5 < traced < steps / 2, traced)
        self.assertEqual(busy["rounds"], traced)
        self.assertIn(f"estimated from {traced:,} of {steps:,} instances in ", busy["source"])
        # 95 % would be wrong once in twenty runs: three times the interval is not.
        self.assertLess(abs(busy["value"] - steps * 20000), 1.5 * (busy["max"] - busy["min"]) + 1, busy)
        self.assertLess(busy["max"] - busy["min"], busy["value"])
        self.assertEqual(main["metrics"]["gpu_busy_estimate"]["absent"], "none of its instances was traced completely")
        self.assertTrue(any("tracing took" in note and "allowed" in note for note in report["notes"]), report["notes"])
        self.assertIn("GPU busy, est.", printed)
        self.assertIn(" each", printed)

    def test_words_and_what_it_does_not_go_with(self):
        for words, said in ((["--overhead", "often"], "not a share between"), (["--overhead", "0"], "not a share between"),
                            (["--overhead", "1%", "--light"], "--light traces no GPU work"),
                            (["--overhead", "1%", "--metrics", "dram__bytes.sum"], "both choose what is traced")):
            done = self.tool("profile", "--no-project", *words, "--", VICTIM, "nothing")
            self.assertEqual(done.returncode, 64, done.stderr)
            self.assertIn(said, done.stderr)


if __name__ == "__main__":
    cases.main()
