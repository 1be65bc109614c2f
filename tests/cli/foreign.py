#!/usr/bin/env python3
"""Recordings of other tools and of several programs: which belong together, and what a run of them leaves.

Usage: foreign.py BIN_DIR. The inputs are those of tests/golden.
"""
import json
import os
import shutil

from commands import VICTIM, cases
from files import GOLDEN, NESTED, ZOO, Files


class Order(Files):
    """The order of inputs changes nothing."""
    WORK = os.path.join(GOLDEN, "nsys", "work.sqlite")  # 1,021 s apart from ZOO, of another program

    def test_recordings_far_apart_are_judged_each_by_itself(self):
        reports = [self.report(ZOO, self.WORK), self.report(self.WORK, ZOO)]
        self.assertEqual(reports[0], reports[1])
        texts = [line["text"] for line in reports[0]["verdict"]]
        for name, file in (("zoo.sqlite", ZOO), ("work.sqlite", self.WORK)):
            alone = [line["text"] for line in self.report(file)["verdict"]]
            together = [text for text in texts if text.startswith(f"in {name}: ")]
            self.assertEqual(together, [f"in {name}: {text}" for text in alone][:len(together)])
            self.assertTrue(together, texts)
        for line in reports[0]["verdict"]:
            if line["region"] is not None and line["path"]:
                self.assertEqual(" > ".join(reports[0]["regions"][line["region"]]["path"]), line["path"])

    def test_runs_one_after_the_other(self):
        for name in ("first", "second"):
            self.assertEqual(self.tool("profile", "-q", f"run.dir={name}", "--", VICTIM).returncode, 0)
        there, back = self.report("first", "second"), self.report("second", "first")
        self.assertEqual(there["run"], back["run"])
        self.assertEqual(there, back)


class ForeignRuns(Files):
    """Folders that llm-perf-opt left."""

    def test_a_run_folder_is_read_as_what_it_is(self):
        for folder in ("nsys", "ncu", "static_analysis"):
            os.makedirs(self.path(f"20251029-161405/{folder}"))
        shutil.copy(ZOO, self.path("20251029-161405/nsys/run.sqlite"))
        self.write("20251029-161405/nsys/run.nsys-rep", b"NVIDIA Tegra Profiler Report 2024@6@2@225-246")
        shutil.copy(os.path.join(GOLDEN, "nsys", "zoo_cuda_gpu_kern_sum.csv"), self.path("20251029-161405/nsys/summary_cuda_gpu_kern_sum.csv"))
        shutil.copy(NESTED, self.path("20251029-161405/ncu/run.ncu-repz"))
        self.write("20251029-161405/metrics.json", b"{}")
        done = self.tool("report", self.path("20251029-161405"), "-f", "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("read from it: nsys/run.sqlite, ncu/run.ncu-repz", done.stderr)
        report, plain = json.loads(done.stdout), self.report(ZOO, NESTED)
        self.assertEqual(report["regions"], plain["regions"])

    def test_tables_alone(self):
        os.makedirs(self.path("old/nsys"))
        shutil.copy(os.path.join(GOLDEN, "nsys", "zoo_cuda_gpu_kern_sum.csv"), self.path("old/nsys/summary_cuda_gpu_kern_sum.csv"))
        self.assertTrue(self.report(self.path("old"))["kernels"])

    def test_operators_of_a_trace_are_a_page_of_the_run(self):
        self.assertEqual(self.tool("runs", "import", os.path.join(GOLDEN, "kineto", "step.json.gz")).returncode, 0)
        with open(os.path.join(self.runs()[-1], "operators.md"), encoding="utf-8") as f:
            page = f.read()
        operators = self.report("latest")["operators"]
        self.assertTrue(operators)
        for row in operators:
            self.assertIn(row["name"].replace("_", "\\_").replace("#", "\\#"), page)


if __name__ == "__main__":
    cases.main()
