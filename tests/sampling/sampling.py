#!/usr/bin/env python3
"""Sampling by the command line, against the stand-in CUPTI. Usage: sampling.py BIN_DIR LIBCUPTI LIBCUDA SOURCE_DIR

The stand-in driver writes down what it ran, the stand-in CUPTI of the sampling process plays samples of it: 1000 bytes a
block of a grid. The scene `sampled` runs 40 steps of a kernel of 1000 blocks for 4 ms and one of 10 blocks for 2 ms.
"""
import json
import os
import re
import shutil
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
import cases  # noqa: E402
import json_schema  # noqa: E402
import perfetto_reader  # noqa: E402

BIN, CUPTI, CUDA, SOURCE = (os.path.abspath(path) for path in sys.argv[1:5])
TOOL, VICTIM = f"{BIN}/rangescope", f"{BIN}/standin_victim"


class Sampling(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="rangescope-sampling-")
        self.env = {k: v for k, v in os.environ.items() if not k.endswith("_INJECTION64_PATH")}
        self.env.update(RANGESCOPE_CUPTI=CUPTI, LD_LIBRARY_PATH=os.path.dirname(CUDA), STANDIN_RAN=f"{self.folder}/ran")

    def tearDown(self):
        shutil.rmtree(self.folder)

    def profile(self, *words, **env):
        done = cases.run([TOOL, "profile", "--no-project", *words, "--", VICTIM, "sampled"], cwd=self.folder, env={**self.env, **env})
        run = cases.newest_run(f"{self.folder}/rangescope-runs")
        with open(f"{run}/report.json", encoding="utf-8") as f:
            return json.load(f), done, run

    @staticmethod
    def losses(report):
        return {loss["kind"]: loss["detail"] for loss in report["losses"]}

    def test_ranges_and_kernels_have_what_was_sampled(self):
        report, done, run = self.profile("--sample", "500us")
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(f"{SOURCE}/docs/formats/report.schema.json", encoding="utf-8") as f:
            self.assertEqual(json_schema.errors(report, json.load(f)), [])
        step = next(r for r in report["regions"] if r["path"] == ["step"])
        read = step["metrics"]["dram_read_bytes"]
        self.assertEqual((read["source"], read["unit"]), ("sampled", "byte"))
        self.assertAlmostEqual(read["value"], 1_010_000, delta=0.1 * 1_010_000)
        gemm = next(k for k in report["kernels"] if k["calls"] == 40 and k["total_ns"] > 100e6)
        self.assertAlmostEqual(gemm["metrics"]["dram_read_bytes"]["value"], 1_000_000, delta=0.1 * 1_000_000)
        device = report["sampled"][0]
        for total in device["sums"]:
            self.assertAlmostEqual(total["in_ranges"] + total["outside"] + total["idle"], total["total"], delta=1e-6 * total["total"] + 1e-6)
        self.assertIn("by activity", device["clock"])  # the stand-in's timer is 5 s ahead
        self.assertTrue(os.path.exists(f"{run}/native/samples/gpu-0.samples"))

    def test_samples_are_a_table_and_tracks(self):
        report, _, run = self.profile("--sample", "500us")
        steps = [r for r in report["regions"] if r["path"] == ["step"]]
        done = cases.run([TOOL, "query", run, "select sum(value), min(end_ns - start_ns) from samples where metric = 'dram_read_bytes'",
                          "-f", "csv"], cwd=self.folder, env=self.env)
        total, shortest = (float(cell) for cell in done.stdout.splitlines()[1].split(","))
        self.assertAlmostEqual(total, 40 * 1_010_000, delta=0.02 * 40 * 1_010_000)
        self.assertGreater(shortest, 0)
        self.assertEqual(steps[0]["occurrences"], 40)
        # In the samples that a kernel of the timeline covers, bytes were read: clocks agree.
        done = cases.run([TOOL, "query", run, "select count(*) from kernels k where k.end_ns - k.start_ns > 3000000 and not exists (select 1 "
                          "from samples s where s.metric = 'dram_read_bytes' and s.value > 0 and s.start_ns >= k.start_ns and "
                          "s.end_ns <= k.end_ns)", "-f", "csv"], cwd=self.folder, env=self.env)
        self.assertEqual(done.stdout.splitlines()[1], "0", done.stderr)
        done = cases.run([TOOL, "report", run, "-f", "perfetto", "-o", f"{self.folder}/t.pftrace"], cwd=self.folder, env=self.env)
        with open(f"{self.folder}/t.pftrace", "rb") as f:
            unit, values = perfetto_reader.Trace(f.read()).counters["GPU 0 dram_read_bytes"]
        self.assertEqual(unit, "byte/s")
        self.assertTrue(any(value > 100e6 for _, value in values), "1 MB in 4 ms")
        done = cases.run([TOOL, "report", run, "-f", "html", "-o", f"{self.folder}/t.html"], cwd=self.folder, env=self.env)
        with open(f"{self.folder}/t.html", encoding="utf-8") as f:
            self.assertRegex(f.read(), r'"counters":\s*\[\s*\{"title":\s*"GPU 0 ')

    def test_watch_shows_the_last_second_of_the_samples(self):
        done = cases.run([TOOL, "profile", "--watch-every", "100ms", "--", VICTIM, "watched"], cwd=self.folder, env=self.env)
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = [line for line in done.stderr.splitlines() if line.startswith("last second: ")]
        self.assertTrue(lines, done.stderr)
        shares = re.fullmatch(r"last second: GPU 0 SM ([0-9.]+) %", lines[-1])
        self.assertIsNotNone(shares, lines[-1])
        self.assertGreater(float(shares.group(1)), 1)
    def test_light(self):
        report, done, run = self.profile("--light", "--sample", "500us", "--work", "step=8 tokens")
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(f"{SOURCE}/docs/formats/report.schema.json", encoding="utf-8") as f:
            self.assertEqual(json_schema.errors(report, json.load(f)), [])
        self.assertEqual([name for name in os.listdir(f"{run}/native") if name.endswith(".gpu")], [], "CUPTI was in the program")
        step = next(r for r in report["regions"] if r["path"] == ["step"])
        self.assertIsNone(step["gpu"])  # unknown, not 0
        active, read, rate = (step["metrics"][name] for name in ("gpu_active", "dram_read_bytes", "tokens/s"))
        self.assertEqual(active["source"], "sampled over wall time")
        busy = 40 * 6e6 / step["wall_ns"]["inclusive"]  # a busy machine stretches the steps, not the kernels
        self.assertAlmostEqual(active["value"], busy, delta=0.1 * busy)
        self.assertGreater(active["rounds"], 100)
        self.assertTrue(read["min"] <= 1_010_000 <= read["max"], read)
        self.assertAlmostEqual(read["value"], 1_010_000, delta=0.1 * 1_010_000)
        self.assertEqual((rate["rounds"], rate["unit"]), (40, "tokens/s"))
        self.assertTrue(any("kernels, copies and CUDA calls were not recorded" in note for note in report["notes"]))
        self.assertNotIn("no GPU work", done.stderr)
        self.assertNotIn("0 kernel", done.stderr)
        self.assertRegex(done.stderr, r"GPU active")
        again = cases.run([TOOL, "report", run, "-f", "json", "-o", "-"], cwd=self.folder, env=self.env)
        self.assertEqual(next(r for r in json.loads(again.stdout)["regions"] if r["path"] == ["step"])["metrics"]["gpu_active"], active)

    def test_light_refuses_what_needs_cupti(self):
        for words, said in ((["--metrics", "dram__bytes.sum"], "--light keeps CUPTI out"), (["--no-native", "--nsys"], "which is off")):
            done = cases.run([TOOL, "profile", "--no-project", "--light", *words, "--", VICTIM, "sampled"], cwd=self.folder, env=self.env)
            self.assertEqual(done.returncode, 64, done.stderr)
            self.assertIn(said, done.stderr)
            self.assertFalse(os.path.exists(f"{self.folder}/ran"), "the program was started")

    def test_off(self):
        report, done, run = self.profile("--sample", "off")
        self.assertNotIn("sampled", report)
        self.assertFalse(os.path.exists(f"{run}/native/samples"))

    def test_reasons_and_cures(self):
        for fault, words in (("pm_busy", ["busy", "dcgmi"]), ("pm_denied", ["denied", "NVreg_RestrictProfilingToAdminUsers"]),
                             ("pm_old", ["old", "--metrics"])):
            report, done, _ = self.profile(STANDIN_FAULT=fault)
            self.assertEqual(done.returncode, 0, done.stderr)
            detail = self.losses(report)["not_sampled"]
            for word in words:
                self.assertIn(word, detail)
            self.assertNotIn("sampled", report)

    def test_a_sampler_that_fails_on_the_way(self):
        report, done, _ = self.profile("--sample", "500us", STANDIN_FAULT="pm_dies")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("ended before the program did", self.losses(report)["sampling_ended"])

    def test_gaps_are_told(self):
        report, done, _ = self.profile("--sample", "500us", STANDIN_FAULT="pm_gaps")
        self.assertIn("sample_gaps", self.losses(report))
        self.assertGreater(report["sampled"][0]["gaps_ns"], 0)

    def test_a_poll_that_comes_late_loses_nothing(self):
        for interval, at_once in (("500us", 800), ("1ms", 400), ("2ms", 200)):  # an image of another size each
            report, done, _ = self.profile("--sample", interval, STANDIN_FAULT="pm_late")
            self.assertEqual(report["sampled"][0]["gaps_ns"], 0, interval)
            self.assertGreater(report["sampled"][0]["samples"], at_once)

    def test_it_steps_aside_for_the_programs_own_counters(self):
        report, done, run = self.profile("--sample", "500us", "--chip", "GH100", "--metrics", "dram__bytes.sum",
                                        "--include", "step", "--skip-first", "0")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("the program's own counters", self.losses(report)["not_sampled"])
        step = next(r for r in report["regions"] if r["path"] == ["step"])
        self.assertEqual(step["metrics"]["dram__bytes.sum"]["source"], "CUPTI range profiler range")
        self.assertEqual([d["source"] for d in report["sampled"]].count("CUPTI PM sampling"), 1)
        self.assertFalse(os.path.exists(f"{run}/native/samples/aside"))

    def test_a_machine_without_cupti(self):
        report, done, _ = self.profile(RANGESCOPE_CUPTI="/nowhere/libcupti.so")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("sampled", report)
        done = cases.run([TOOL, "profile", "--sample", "1ms", "--", VICTIM], cwd=self.folder,
                         env={**self.env, "RANGESCOPE_CUPTI": "/nowhere/libcupti.so"})
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("CUPTI was not found", done.stderr)

    def test_plan_says_what_one_pass_holds(self):
        plan = lambda *words, **env: cases.run([TOOL, "metrics", "plan", *words], cwd=self.folder, env={**self.env, **env})
        done = plan("--sample", "--chip", "GH100", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        shipped = json.loads(done.stdout)
        self.assertEqual((shipped["schema"], shipped["chip"], shipped["passes"]), ("rangescope.sample_plan/1", "GH100", 1))
        self.assertIn("dram__bytes_read.sum", shipped["metrics"])
        self.assertIn("pcie__read_bytes.sum", shipped["left_out"])  # the stand-in does not know it
        text = plan("--sample", "--metrics", "dram__bytes_read.sum,no__such.sum").stdout
        self.assertIn("GH100: one pass of PM sampling collects 1 counter (CUPTI ", text)
        self.assertIn("another pass:\n  no__such.sum\n", text)
        # Where one pass holds what was asked for by occurrence, sampling is offered.
        self.assertIn("--sample-metrics sm__inst_executed.sum\n", plan("--metrics", "sm__inst_executed.sum").stdout)
        self.assertNotIn("--sample-metrics", plan("--metrics", "sm__inst_executed.sum,pcie__read_bytes.sum").stdout)
        for words, part in ((["--sample", "--chip", "GH10"], "did you mean 'GH100'"), ([], "--sample")):
            done = plan(*words)
            self.assertEqual(done.returncode, 64, done.stderr)
            self.assertIn(part, done.stderr.lower().replace("gh100", "GH100"))

    def test_words_of_the_option(self):
        done = cases.run([TOOL, "profile", "--sample", "often", "--", VICTIM], cwd=self.folder, env=self.env)
        self.assertEqual(done.returncode, 64)
        self.assertIn("auto, off, or a number and a unit", done.stderr)


if __name__ == "__main__":
    cases.main()
