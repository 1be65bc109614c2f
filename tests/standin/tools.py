#!/usr/bin/env python3
"""The pipeline with the real nsys 2022.4.2 and ncu 2022.3.0 of Debian, on a machine without a GPU.

Usage: tools.py BIN_DIR. The tools are looked for in $RANGESCOPE_TOOLS/bin; without them the test is skipped.
"""
import csv
import json
import os
import shlex
import sqlite3
import subprocess
import unittest

from pipeline_case import HERE, LLM, PipelineCase, cases

TOOLS = os.path.join(os.environ.get("RANGESCOPE_TOOLS", os.path.join(HERE, "..", "..", ".cache", "tools")), "bin")
CLI = "pipeline.ncu.ncu_cli."
# A line that ncu takes ends here without a GPU: it finds no driver (69), or no kernel in a program without CUDA (80).
NO_GPU, TAKEN = ("ncu.no_driver", "ncu.nothing_matched"), (69, 80)


@unittest.skipUnless(os.path.exists(os.path.join(TOOLS, "nsys")), "the real tools are not here (tests/tools/fetch.sh)")
class RealTools(PipelineCase):
    tools = {"RANGESCOPE_NSYS": os.path.join(TOOLS, "nsys"), "RANGESCOPE_NCU": os.path.join(TOOLS, "ncu")}

    def profile(self, *words, **options):
        return cases.past_deaths_of_nsys(lambda: super(RealTools, self).profile(*words, **options))

    def test_nsys_records_the_ranges_of_the_workload(self):
        done = self.profile("pipeline.nsys.enable=true", "pipeline.native.enable=false", env={"RANGESCOPE_TEST_TOKEN": "hush-hush", "TMPDIR": self.folder})
        self.assertEqual(done.returncode, 0, done.stderr)
        counts = {tuple(r["path"]): r["occurrences"] for r in self.json("report.json")["regions"]}
        self.assertEqual(counts[("prefill",)], 1)
        self.assertEqual(counts[("request",)], 1)
        self.assertEqual(counts[("decode", "layer_0", "mlp")], counts[("decode",)])
        database = os.path.join(self.run_dir, "nsys", "nsys.sqlite")
        with open(database, "rb") as f:
            self.assertNotIn(b"hush-hush", f.read(), "the environment stands in the export")
        with sqlite3.connect(database) as db:
            self.assertEqual(db.execute("select count(*) from TARGET_INFO_SYSTEM_ENV where value='<redacted>'").fetchone()[0], 1)

    def test_nsys_gates_on_a_range(self):
        done = self.profile("--nsys", "+pipeline.nsys.gating_nvtx=true", "+pipeline.nsys.nvtx_capture=prefill", "--no-native", env={"TMPDIR": self.folder})
        self.assertEqual(done.returncode, 0, done.stderr)
        paths = {tuple(r["path"]) for r in self.json("report.json")["regions"]}
        self.assertTrue(any(p[0] == "layer_0" or p[:1] == ("prefill",) for p in paths), paths)
        self.assertFalse(any(p[0] == "decode" for p in paths), paths)
        done = self.profile("--nsys", "+pipeline.nsys.gating_nvtx=true", "+pipeline.nsys.nvtx_capture=nosuch", "--no-native", env={"TMPDIR": self.folder})
        self.assertEqual(done.returncode, 80, done.stderr)
        self.assertEqual(self.steps("nsys"), [("profile", "empty", "nsys.never_started")])

    def test_a_dry_run_is_a_script_of_this_nsys(self):
        run = os.path.join(self.folder, "by hand")
        done = self.profile("--nsys", "--run-dir", run, "--dry-run", env={"TMPDIR": self.folder})
        self.assertEqual(done.returncode, 0, done.stderr)
        script = cases.past_deaths_of_nsys(lambda: subprocess.run(
            ["bash", "-e"], input=done.stdout, env=dict(os.environ, TMPDIR=self.folder), cwd="/", capture_output=True, text=True, timeout=600))
        self.assertEqual(script.returncode, 0, script.stderr)
        with sqlite3.connect(os.path.join(run, "nsys", "nsys.sqlite")) as db:
            self.assertEqual(db.execute("select count(*) from NVTX_EVENTS where text='prefill'").fetchone()[0], 1)

    def test_nsys_without_anything_to_record(self):
        # nsys 2022 dies by itself at times where a program ends at once. It is started again then.
        for _ in range(6):
            done = self.profile("--nsys", "--no-native", "--no-probe", program=["true"], env={"TMPDIR": self.folder})
            self.assertEqual(done.returncode, 80, done.stderr)
            outcomes = [step[:2] for step in self.steps("nsys")]
            if outcomes != [("profile", "failed")]:
                break
        self.assertEqual(outcomes, [("profile", "empty")])
        self.assertNotIn("importer", self.json("status.json")["message"])

    def test_ncu_without_a_driver(self):
        if os.path.exists("/dev/nvidiactl"):
            self.skipTest("there is a GPU here")
        done = self.profile("pipeline.ncu.enable=true", CLI + "replay_mode=kernel", "--no-native", "--no-probe")
        self.assertNotEqual(done.returncode, 0)
        why = self.steps()[0][2]
        # The CPU program never calls CUDA; where a stub driver is there ncu says so, else that nothing was profiled.
        self.assertIn(why, NO_GPU, done.stderr)
        self.assertEqual(self.json("status.json")["outcome"], "nothing_captured")

    def test_what_this_ncu_lacks_is_refused(self):
        for words, said in (([CLI + "replay_mode=app-range"], "app-range 2023.1"), (["--set", "brief"], "it has default, detailed"), (["--graph-profiling", "graph", "--replay-mode", "kernel"], "It came with ncu 2023.1"),
                            ([CLI + "metrics=[sm__no_such_thing.sum]"], "knows no metric")):
            with self.subTest(words):
                done = self.profile("pipeline.ncu.enable=true", *words)
                self.assertEqual(done.returncode, 78, done.stderr)
                self.assertIn(said, done.stderr)
                dry = self.profile("pipeline.ncu.enable=true", *words, "--dry-run")
                self.assertEqual((dry.returncode, dry.stderr, dry.stdout), (78, done.stderr, ""))
        done = self.profile("pipeline.ncu.enable=true", "--set", "basic", "--dry-run", CLI + "replay_mode=kernel")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("--set default", done.stdout)

    def test_the_commands_of_the_manual(self):
        if os.path.exists("/dev/nvidiactl"):
            self.skipTest("there is a GPU here: tests/gpu runs them")
        with open(os.path.join(HERE, "..", "..", "docs", "manual", "pipeline.md"), encoding="utf-8") as f:
            text = f.read().split("```sh\n")[1].split("```")[0].replace("\\\n", "")
        lines = [shlex.split(line, comments=True) for line in text.splitlines()]
        # Range replay, app-range (which this ncu lacks), kernel replay, a gate, both tools, both printed only.
        for words, code in zip(lines, (TAKEN, 78, TAKEN, 0, TAKEN, 0), strict=True):
            with self.subTest(" ".join(words)):
                options = words[2:words.index("--")]
                done = self.profile(*options, env={"TMPDIR": self.folder})
                self.assertIn(done.returncode, code if code == TAKEN else (code,), done.stderr)
                if code == TAKEN:
                    self.assertTrue(all(step[1] == "refused" or step[2] in NO_GPU for step in self.steps()), self.steps())

    def test_lines_that_ncu_takes_and_refuses(self):
        if os.path.exists("/dev/nvidiactl"):
            self.skipTest("there is a GPU here")
        kernel, ranges = ["--replay-mode", "kernel"], ["--replay-mode", "range", "--include", "decode"]
        for code, words in ((TAKEN, [*kernel, "--include", "layer*"]), (TAKEN, [*kernel, "--include", "A;B"]), (TAKEN, [*kernel, "--include", "A::A1"]),
                            (TAKEN, [*kernel, "--kernel-name", "*gemm*"]), (TAKEN, [*kernel, "--kernel-id", ":::.*5|3"]),
                            (TAKEN, [*kernel, "--every", "50"]), (TAKEN, [*kernel, "--every", "7"]), (TAKEN, [*kernel, "--launch-count", "1", "pipeline.ncu.ncu_cli.kill=true"]),
                            (TAKEN, ranges), (TAKEN, [*kernel, "ncu=quick"]), (TAKEN, [*kernel, "ncu=standard"]), (TAKEN, [*kernel, "ncu=comprehensive"]),
                            (78, [*kernel, "--set", "brief"]), (78, [*kernel, "--section", "NoSuch"]), (78, [*kernel, "--ncu-metrics", "no_such_metric"]),
                            (78, [*ranges, "--kernel-name", "gemm"]), (78, [*ranges, "--kernel-id", "::gemm:2"]), (78, [*ranges, "--exclude", "A"]),
                            (78, [*ranges, "--every", "50"]), (78, [*kernel, "--range-filter", "::2"]), (78, [*kernel, "--every", "5", "--launch-skip", "3"]),
                            (78, [*kernel, "pipeline.ncu.ncu_cli.kill=true"]), (TAKEN, [*kernel, "--include", "A/,B"])):
            with self.subTest(" ".join(words)):
                done = self.profile("--ncu", "--no-native", "--no-probe", *words, program=["true"])
                self.assertIn(done.returncode, code if code == TAKEN else (code,), done.stderr)
                self.assertEqual([step[2] in NO_GPU for step in self.steps()], [True] if code == TAKEN else [], done.stderr)

    def test_ncu_prints_the_pages_of_a_report(self):
        # Reports need a GPU: this one was recorded, by an ncu whose reports this one still reads.
        run = os.path.join(self.folder, "by hand")
        done = self.profile("--ncu", "--no-native", CLI + "replay_mode=kernel", "--run-dir", run, "--dry-run")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"if [ -e '{run}/ncu/ncu.ncu-rep' ]; then\n", done.stdout)
        os.makedirs(os.path.join(run, "ncu"))
        recorded = os.path.join(HERE, "..", "golden", "ncu", "k_nested.ncu-repz")
        subprocess.run(["zstd", "-qd", recorded, "-o", os.path.join(run, "ncu", "ncu.ncu-rep")], check=True)
        lines = [line for line in done.stdout.splitlines() if " --import " in line]
        self.assertEqual(len(lines), 3, done.stdout)
        for line in lines:
            script = subprocess.run(["bash", "-e", "-c", line], cwd="/", capture_output=True, text=True, timeout=240)
            self.assertEqual((script.returncode, script.stdout), (0, ""), script.stderr)
        with open(os.path.join(run, "ncu", "raw.csv"), newline="") as f:
            units, *results = csv.DictReader(f)
        self.assertEqual((units["gpu__time_duration.sum"], results[0]["gpu__time_duration.sum"]), ("nsecond", "20288"))
        with open(os.path.join(run, "ncu", "details.csv"), newline="") as f:
            rows = list(csv.DictReader(f))
        self.assertEqual([row["ID"] for row in rows if row["Metric Name"] == "gpu__time_duration.sum"], [str(i) for i in range(len(results))])
        with open(os.path.join(run, "ncu", "sections_report.txt")) as f:
            self.assertRegex(f.read(), r"(?m)^ +gpu__time_duration.sum +usecond +20\.29$")

    def test_the_probe_is_kept(self):
        self.profile("--nsys", "--ncu", "--dry-run")
        folder = os.path.join(self.cache, "rangescope", "tools")
        names = sorted(n.split("-")[0] for n in os.listdir(folder))
        self.assertEqual(names, ["ncu", "nsys"])
        for name in os.listdir(folder):
            with open(os.path.join(folder, name)) as f:
                self.assertIn(json.load(f)["version"][0], (2022,))


if __name__ == "__main__":
    cases.main()
