#!/usr/bin/env python3
"""The whole ladder with stand-in nsys and ncu (this folder) that replay what 2025.3.1 printed and left on an H200.

Usage: ladder.py BIN_DIR
"""
import csv
import json
import os
import shlex
import shutil
import signal
import subprocess

from pipeline_case import BIN, HERE, LLM, PipelineCase, cases
from terminal import PATIENCE_S, soon, state

NCU = ["pipeline.ncu.enable=true"]
CLI = "pipeline.ncu.ncu_cli."
INCLUDE = [CLI + "nvtx.include=decode"]


def printed_by_ncu(name):
    return subprocess.run(["zstd", "-dc", os.path.join(HERE, "..", "golden", "ncu", name + ".zst")], check=True, capture_output=True, text=True).stdout


class Ladder(PipelineCase):
    tools = {"RANGESCOPE_NCU": os.path.join(HERE, "ncu"), "RANGESCOPE_NSYS": os.path.join(HERE, "nsys")}

    def test_range_works(self):
        done = self.profile(*NCU, *INCLUDE, plan={"range": "r_decode"})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.steps(), [("native", "refused", ""), ("range (one instance)", "ok", ""), ("range", "ok", "")])
        trial, whole = self.calls()
        self.assertEqual(trial[trial.index("--launch-count") + 1], "1")
        self.assertEqual(trial[trial.index("--kill") + 1], "yes")
        self.assertNotIn("--launch-count", whole)
        self.assertNotIn("--app-replay-mode", whole)
        # decode was seen as a push/pop range, so only that form is passed
        self.assertEqual([whole[i + 1] for i, w in enumerate(whole) if w == "--nvtx-include"], ["decode/"])
        for name in ("config.yaml", "inputs.yaml", "report.json", "report.md", "kernels.md", "summary.md", "ncu/cmd.txt",
                     "ncu/ncu.ncu-rep", "cmd.txt"):
            self.assertTrue(self.has(name), name)
        consolidated = self.json("ncu/regions/report.json")
        regions = [r["folder"] for r in consolidated["regions"]]
        self.assertEqual(sorted(regions), sorted(set(os.listdir(os.path.join(self.run_dir, "ncu", "regions"))) - {"report.json", "report.md"}))
        self.assertTrue(any(r.startswith("decode") for r in regions), regions)
        for region in regions:
            for name in ("sections.txt", "metrics.csv", "report.json"):
                self.assertTrue(self.has(f"ncu/regions/{region}/{name}"), f"{region}/{name}")
        self.assertIn("gpu__time_duration.sum", self.text(f"ncu/regions/{regions[0]}/metrics.csv"))
        listed = {r["region"]: r for r in consolidated["regions"]}
        self.assertEqual((listed["decode"]["folder"], listed["decode"]["alias"]), ("decode", "decode"))
        self.assertGreater(listed["decode"]["values"]["gpu__time_duration.sum"], 0)
        self.assertIn("| decode | [decode](decode/sections.txt) |", self.text("ncu/regions/report.md"))
        decode = [r for r in self.json("report.json")["regions"] if r["path"] == ["decode"]][0]
        self.assertIn("gpu__time_duration.sum", decode["metrics"])
        self.assertEqual(self.json("status.json")["outcome"], "ok")

    def test_recordings_of_old_runs_are_compressed(self):
        done = self.profile("--nsys", *NCU, *INCLUDE, CLI + "replay_mode=range", plan={"range": "r_decode"})
        self.assertEqual(done.returncode, 0, done.stderr)
        first = self.run_dir
        done = self.profile("--compress", "older-than 0s")
        self.assertIn("run.compress: " + first + ": 2 files", done.stderr)
        self.assertFalse(os.path.exists(os.path.join(first, "nsys", "nsys.nsys-rep")))
        self.assertTrue(os.path.exists(os.path.join(first, "nsys", "nsys.nsys-rep.zst")))
        self.assertTrue(os.path.exists(os.path.join(first, "ncu", "ncu.ncu-repz")))
        for words in (["runs", "verify"], ["report"]):
            done = cases.run([os.path.join(BIN, "rangescope"), *words, first], cwd=self.folder, env=os.environ)
            self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("decode", done.stdout)
        done = self.profile("--compress", "7d", program=["true"])
        self.assertEqual(done.returncode, 64, done.stderr)

    def test_every_nth_occurrence(self):
        done = self.profile(*NCU, *INCLUDE, "--every", "50", plan={"range": "r_decode"})
        self.assertEqual(done.returncode, 0, done.stderr)
        for call in self.calls():
            self.assertEqual(call[call.index("--range-filter") + 1], "::^(1|.*(01|51))$")
        self.assertIn("ncu counts the instances of the ranges, and measures 1, 51, 101 ...", done.stderr)
        for extra, part in ((["--range-filter", "::2"], "range_filter and ranges.every both choose"), (["--replay-mode", "kernel", "--kernel-id", ":::2"], "--every is :::^(1|.*(01|51))$")):
            words = INCLUDE if "--range-filter" in extra else []
            done = self.profile(*NCU, *words, "--every", "50", *extra)
            self.assertEqual(done.returncode, 78, done.stderr)
            self.assertIn(part, done.stderr)

    def test_unsupported_call_goes_on_to_app_range(self):
        done = self.profile(*NCU, *INCLUDE, plan={"range": "r_alloca", "app-range": "ar_decode"})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.steps(), [("native", "refused", ""), ("range (one instance)", "failed", "ncu.unsupported_api"), ("app-range", "ok", "")])
        self.assertIn("cuMemAllocAsync", done.stderr)
        self.assertTrue(all("Unsupported API" not in line for line in done.stdout.splitlines()))

    def test_down_to_the_kernels(self):
        done = self.profile(*NCU, *INCLUDE, plan={"range": "r_graph", "app-range": "r_miss", "kernel": "k_decode"})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([s[:2] for s in self.steps()], [("native", "refused"), ("range (one instance)", "failed"), ("app-range", "empty"), ("kernel", "ok")])

    def test_a_failure_is_told_once(self):
        # Said by the tool twice, judged, recorded as a stage, found, and left out of the table: the reader is told once, with the cure.
        unsupported = ("the range holds a CUDA call that range replay cannot replay", "Use replay mode app-range or kernel.")
        missed = ("none of that name held GPU work on the launching thread", "Check the name and the domain, leave the slash out")
        held = ("another tool holds the GPU's performance counters", "Stop it (for DCGM: dcgmi profiling --pause), or wait.")
        for words, plan, told in (
                ([], {"range": "r_graph", "app-range": "r_miss", "kernel": "k_miss"}, unsupported + missed),
                ([CLI + "replay_mode=range"], {"range": "r_graph"}, unsupported),
                (["--no-native", CLI + "replay_mode=range"], {"range": "r_graph"}, unsupported),
                (["--no-native", "--no-probe", CLI + "replay_mode=kernel"], {"kernel": "busy"}, held),
                ([CLI + "replay_mode=kernel", "--to", "report.json", "--format", "json"], {"kernel": "busy"}, held),
                (["-q", CLI + "replay_mode=kernel"], {"kernel": "busy"}, held)):
            with self.subTest(words):
                done = self.profile(*NCU, *INCLUDE, *words, plan=plan)
                self.assertNotEqual(done.returncode, 0, done.stderr)
                for text in told:
                    self.assertEqual((done.stdout + done.stderr).count(text), 1, (text, done.stderr))
                    self.assertIn(text, json.dumps(self.stages))

    def test_a_single_mode_is_not_left(self):
        done = self.profile(*NCU, *INCLUDE, CLI + "replay_mode=range", plan={"range": "r_graph", "kernel": "k_decode"})
        self.assertEqual(done.returncode, 80, done.stderr)
        self.assertEqual(self.steps(), [("range", "failed", "ncu.unsupported_api")])
        self.assertIn("cuGraphLaunch", self.json("status.json")["message"])
        self.assertIn("app-range", done.stderr)

    def test_exit_code_0_with_nothing_is_empty(self):
        for recording, why in (("k_miss", "ncu.only_push_pop"), ("k_semi", "ncu.only_start_end"), ("norep", "empty")):
            with self.subTest(recording):
                done = self.profile(*NCU, *INCLUDE, CLI + "replay_mode=kernel", plan={"kernel": recording})
                self.assertEqual(done.returncode, 80, done.stderr)
                self.assertEqual(self.steps(), [("kernel", "empty", why)])
                self.assertFalse(self.has("ncu/regions"))

    def test_a_kernel_filter_that_matches_nothing_is_named(self):
        done = self.profile("--nsys", "--no-native", *NCU, *INCLUDE, CLI + "replay_mode=kernel", CLI + "kernel_name=regex:.*matmul.*", plan={"kernel": "k_miss"})
        self.assertEqual(done.returncode, 80, done.stderr)
        finding = next(f for f in self.json("status.json")["findings"] if f["id"] == "program.no_such_kernel")
        self.assertRegex(finding["found"], r"none of them chosen: gemm_like\b.*, softmax_like\b")

    def test_the_summary_is_for_people(self):
        done = self.profile("--nsys", "--no-native", *NCU, *INCLUDE, CLI + "replay_mode=kernel", plan={"kernel": "k_decode"})
        self.assertEqual(done.returncode, 0, done.stderr)
        page = self.text("summary.md")
        self.assertEqual(page.count("  - try: "), sum(1 for v in self.json("report.json")["verdict"] if v["advice"]), page)
        rows = [line.split("|") for line in page.splitlines() if line.startswith("| ") and "█" in line]
        shares = [float(row[2].split()[-2].lstrip("<")) for row in rows if row[1].strip() != "whole run" and "&nbsp;" not in row[1]]
        self.assertTrue(shares and sum(shares) <= 100, page)  # nothing is counted twice
        self.assertIn("kernel gemm\\_like", page)  # what bounds it, from ncu's numbers
        self.assertNotIn("Not measured", page)

    def test_a_report_that_is_none(self):
        done = self.profile(*NCU, CLI + "replay_mode=kernel", plan={"kernel": "garbage"})
        self.assertEqual(done.returncode, 80, done.stderr)
        self.assertIn("its report cannot be read", done.stderr)
        status = self.json("status.json")
        self.assertIn("its report cannot be read", status["message"])
        self.assertNotIn("left no report", status["message"])
        self.assertNotIn("\\nhint", status["message"])

    def test_busy_counters_are_tried_again(self):
        done = self.profile(*NCU, *INCLUDE, CLI + "replay_mode=kernel", plan={"kernel": ["busy", "k_nested"]})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.steps(), [("kernel", "failed", "ncu.counters_held"), ("kernel", "ok", "")])
        done = self.profile(*NCU, *INCLUDE, CLI + "replay_mode=kernel", "run.retries=0", plan={"kernel": "busy"})
        self.assertEqual(done.returncode, 69)
        self.assertEqual(len(self.steps()), 1)

    def test_unknown_metric_ends_the_ladder(self):
        done = self.profile(*NCU, *INCLUDE, CLI + "metrics=[gpu__time_duration.sum]", plan={"range": "badmetric"})
        self.assertEqual(done.returncode, 78, done.stderr)
        self.assertEqual(self.steps()[-1], ("range (one instance)", "failed", "ncu.unknown_metric"))

    def test_mistakes_are_found_before_the_program_starts(self):
        marker = os.path.join(self.folder, "started")
        program = ["touch", marker]
        for words, said in ((["--set", "brief"], "it has basic, detailed, full"), (["--section", "SpeedOfLigth"], "--section SpeedOfLight"),
                            ([CLI + "replay_mode=rnage"], "'range'"), (["pipeline.ncu.top_k=1"], "pipeline.ncu.top_n"),
                            ([CLI + "replay_mode=range", "--kernel-name", "x"], "Use replay mode kernel"), (["--ncu-args", "--kernel-replay-mode"], "has no option"),
                            ([CLI + "metrics=[dram__byte.sum]"], "dram__bytes"), ([CLI + "nvtx.include=A@B@C/"], "A@B@C"), (["--kernel-id", "5::10::2", CLI + "replay_mode=kernel"], "--launch-skip 5")):
            with self.subTest(words):
                done = self.profile(*NCU, *words, program=program, plan={})
                self.assertIn(done.returncode, (64, 78), done.stderr)
                self.assertIn(said, done.stderr)
                self.assertFalse(os.path.exists(marker))
                self.assertIsNone(self.run_dir)

    def test_nsys_chooses_the_kernels_for_ncu(self):
        done = self.profile("pipeline.nsys.enable=true", *NCU, CLI + "nvtx.include=[decode/,prefill/]", CLI + "replay_mode=kernel", "pipeline.ncu.top_n=2", plan={"kernel": "k_roof"})
        self.assertEqual(done.returncode, 0, done.stderr)
        call = self.calls()[0]
        self.assertEqual(call[call.index("--kernel-name-base") + 1], "function")
        self.assertRegex(call[call.index("--kernel-name") + 1], r"^regex:\^\([a-z_]+\|[a-z_]+\)\$$")
        self.assertEqual([s["outcome"] for s in self.stages], ["ok", "ok", "ok"])
        self.assertTrue(self.has("nsys/nsys.sqlite"))
        folders = os.listdir(os.path.join(self.run_dir, "ncu", "kernels"))
        gemm = next(folder for folder in folders if folder.startswith("gemm_like"))
        self.assertEqual(sorted(os.listdir(os.path.join(self.run_dir, "ncu", "kernels", gemm))), ["details.csv", "durations.svg"])
        self.assertTrue(self.has("ncu/kernels/roofline.svg"))
        head, *rows = self.text("nsys/kernels.csv").splitlines()
        self.assertEqual(head, "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name")
        self.assertGreater(len(rows), 1)
        self.assertAlmostEqual(sum(float(row.split(",")[0]) for row in rows), 100, delta=0.1 * len(rows))
        regions = self.json("report.json")["regions"]
        decode = [r for r in regions if r["path"] == ["decode"]][0]
        self.assertEqual(decode["gpu"]["kernels"], 24)
        self.assertIn("gemm\\_like", self.text("kernels.md"))

    def test_kernels_of_a_file_are_measured(self):
        table = os.path.join(HERE, "..", "golden", "nsys", "zoo_cuda_gpu_kern_sum.csv")
        done = self.profile(*NCU, CLI + "replay_mode=kernel", "--ncu-top-kernels", table, plan={"kernel": "k_roof"})
        self.assertEqual(done.returncode, 0, done.stderr)
        call = self.calls()[0]
        self.assertEqual(call[call.index("--kernel-name-base") + 1], "function")
        self.assertIn("gemm_like", call[call.index("--kernel-name") + 1])
        kept = os.path.join(self.folder, "kept.yaml")
        shutil.copy(os.path.join(self.run_dir, "ncu", "kernels.yaml"), kept)
        self.assertRegex(self.text("ncu/kernels.yaml"), r"Kernel #1 - .* of GPU time, \d+ calls")
        # the list of a run is the input of the next one
        done = self.profile(*NCU, CLI + "replay_mode=kernel", "--ncu-top-kernels", kept, plan={"kernel": "k_roof"})
        self.assertEqual(done.returncode, 0, done.stderr)
        again = self.calls()[-1]
        self.assertEqual(again[again.index("--kernel-name") + 1], call[call.index("--kernel-name") + 1])
        self.assertIn("Kernel #1 - ", done.stderr)
        self.assertEqual(self.text("ncu/kernels.yaml"), open(kept).read())

    def test_kernels_of_an_edited_list(self):
        edited = os.path.join(self.folder, "edited.yaml")
        with open(edited, "w") as f:
            f.write("kernels:\n  - name: gemm_like(float*)\n    regex: '.*gemm_.*'\n    description: all products\n"
                    "  - name: 'scale(float*, int)'\n    regex: '^scale\\(float\\*,\\ int\\)$'\n")
        done = self.profile(*NCU, CLI + "replay_mode=kernel", "--ncu-top-kernels", edited, plan={"kernel": "k_roof"})
        self.assertEqual(done.returncode, 0, done.stderr)
        call = self.calls()[0]
        self.assertEqual(call[call.index("--kernel-name-base") + 1], "demangled")
        self.assertTrue(call[call.index("--kernel-name") + 1].startswith("regex:.*gemm_.*|^scale"), call)
        self.assertIn("gemm_like (all products)", done.stderr)

    def test_a_list_that_is_not_there(self):
        done = self.profile(*NCU, "--ncu-top-kernels", "none.yaml", plan={})
        self.assertEqual(done.returncode, 66, done.stderr)
        self.assertIn("none.yaml", done.stderr)

    def test_kernels_side_by_side(self):
        done = self.profile("pipeline.nsys.enable=true", *NCU, *INCLUDE, CLI + "replay_mode=kernel", plan={"kernel": "k_roof"})
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(os.path.join(self.run_dir, "ncu", "metrics", "kernels.csv"), newline="") as f:
            rows = list(csv.DictReader(f))
        counters = {kernel["name"]: kernel for kernel in self.json("report.json")["kernel_counters"]}
        self.assertEqual([row["kernel"] for row in rows], list(counters))
        for row in rows:
            points = [point for point in counters[row["kernel"]]["roofline"] if point["level"] == "dram"]
            if points:
                self.assertAlmostEqual(float(row["flop_per_byte"]), max(points, key=lambda point: point["flops"])["intensity"])
        scatter = self.text("ncu/metrics/kernel_roofline.svg")
        self.assertEqual(scatter.count("<circle"), sum(point["level"] == "dram" and point["intensity"] > 0 and point["flop_per_s"] > 0
                                                       for kernel in counters.values() for point in kernel["roofline"]))

    def test_ncu_writes_its_own_pages(self):
        done = self.profile(*NCU, *INCLUDE, CLI + "replay_mode=kernel", plan={"kernel": "k_decode"}, env={"STANDIN_REPORT": ".ncu-repz"})
        self.assertEqual(done.returncode, 0, done.stderr)
        for name, recorded in (("raw.csv", "raw_base.csv"), ("details.csv", "details_base.csv"), ("sections_report.txt", "details.txt")):
            self.assertEqual(self.text("ncu/" + name), printed_by_ncu("k_decode_" + recorded), name)
        # each kernel has its rows of them, and none is lost
        with open(os.path.join(self.run_dir, "ncu", "details.csv"), newline="") as f:
            expected = list(csv.DictReader(f))
        kernels = os.path.join(self.run_dir, "ncu", "kernels")
        found = []
        for folder in sorted(set(os.listdir(kernels)) - {"roofline.svg"}):
            with open(os.path.join(kernels, folder, "details.csv"), newline="") as f:
                rows = list(csv.DictReader(f))
            self.assertEqual(len({row["Kernel Name"] for row in rows}), 1, folder)
            found += rows
        self.assertEqual(len({row["Kernel Name"] for row in found}), 2)
        self.assertEqual(sorted(found, key=lambda row: int(row["ID"])), expected)
        written = [shlex.split(line) for line in self.text("ncu/cmd.txt").splitlines() if "--import" in line]
        self.assertEqual([line[line.index("--page"):] for line in written],
                         [["--page", page, *units, "--log-file", os.path.join(self.run_dir, "ncu", name)] for page, units, name in
                          (("raw", ["--csv", "--print-units", "base"], "raw.csv"), ("details", ["--csv", "--print-units", "base"], "details.csv"),
                           ("details", [], "sections_report.txt"))])

    def test_pages_that_ncu_cannot_write_fail_no_run(self):
        done = self.profile(*NCU, *INCLUDE, CLI + "replay_mode=kernel", plan={"kernel": "k_decode", "import": "fails"})
        self.assertEqual(done.returncode, 0, done.stderr)
        for name in ("raw.csv", "details.csv", "sections_report.txt"):
            self.assertIn(f"{name} of ncu's report is missing: ncu --import left none (exit code 1): ==ERROR== Failed to load report file", done.stderr)
            self.assertFalse(self.has("ncu/" + name))
        self.assertEqual(self.json("status.json")["outcome"], "ok")
        self.assertFalse(self.has("ncu/kernels"))
        self.assertTrue(self.has("ncu/regions/decode/metrics.csv"))

    def test_pages_that_are_not_wanted(self):
        done = self.profile(*NCU, *INCLUDE, CLI + "replay_mode=kernel", CLI + "export.csv=false", CLI + "export.sections=false", plan={"kernel": "k_decode"})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("--import", self.text("ncu/cmd.txt"))
        self.assertFalse(self.has("ncu/kernels"))

    def test_a_dry_run_is_a_script_that_runs(self):
        run = os.path.join(self.folder, "run by hand")
        done = self.profile("--nsys", *NCU, "--include", "A*", "--exclude", "B", "--run-dir", run, "--dry-run", plan={"kernel": "k_decode"})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, "(?m)^# not tried: ncu, range: .*: ncu refuses --nvtx-exclude in replay mode range$")
        self.assertNotIn("tried on one", done.stdout)
        environment = dict(os.environ, STANDIN_PLAN=os.path.join(self.folder, "plan.json"))
        script = subprocess.run(["bash", "-e"], input=done.stdout, env=environment, cwd="/", capture_output=True, text=True, timeout=600)
        self.assertEqual(script.returncode, 0, script.stderr)
        for name in ("native", "nsys/nsys.sqlite", "ncu/ncu.ncu-rep", "ncu/raw.csv", "ncu/details.csv", "ncu/sections_report.txt"):
            self.assertTrue(os.path.exists(os.path.join(run, name)), name + script.stdout)

    def test_a_dry_run_refuses_what_a_run_refuses(self):
        for words in (["--set", "brief"], ["--kernel-id", "5::10::2", CLI + "replay_mode=kernel"], ["--include", "A@B@C/"], [CLI + "metrics=[dram__byte.sum]"],
                      ["--replay-mode", "range", "--include", "A", "--exclude", "B"], ["--range-filter", "1:2", "--include", "A"], ["+pipeline.nsys.trace=[cuda,cudann]", "--nsys"]):
            with self.subTest(words):
                run, dry = (self.profile(*NCU, *words, *more) for more in ([], ["--dry-run"]))
                self.assertNotEqual(run.returncode, 0)
                self.assertEqual((dry.returncode, dry.stderr, dry.stdout), (run.returncode, run.stderr, ""))
        for more in ([], ["--dry-run"]):
            done = cases.run([f"{BIN}/rangescope", "profile", *more, "--", "no-such-program"], cwd=self.folder)
            self.assertEqual(done.returncode, 66, done.stderr)

    def test_totals_and_means_have_columns_of_their_own(self):
        done = self.profile(*NCU, "--no-native", "--no-probe", CLI + "replay_mode=kernel", "--include", "decode/", plan={"kernel": "k_decode"})
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = [[cell.strip() for cell in line.split("|")] for line in self.text("ncu/regions/report.md").splitlines() if line.startswith("|")]
        decode = dict(zip(rows[0], [row for row in rows if row[1] == "decode"][0]))
        self.assertEqual((decode["kernels"], decode["kernel time"], decode["measured each"]), ("24", "266.2 us", "44.34 us"))
        values = {r["region"]: r for r in self.json("ncu/regions/report.json")["regions"]}["decode"]["values"]
        self.assertEqual((values["gpu.kernel_ns"], values["gpu__time_duration.sum"]), (266176, 44336))

    def test_unknown_metrics_are_left_out_where_asked(self):
        metrics = CLI + "metrics=[dram__bytes.sum,dram__no_such_thing.sum]"
        self.assertEqual(self.profile(*NCU, metrics, CLI + "replay_mode=kernel").returncode, 78)
        done = self.profile(*NCU, metrics, CLI + "replay_mode=kernel", "--skip-unknown", plan={"kernel": "k_decode"})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("--metrics dram__bytes.sum ", self.text("ncu/cmd.txt"))
        self.assertTrue([n for n in self.json("report.json")["notes"] if "dram__no_such_thing.sum" in n and "left out" in n])

    def test_sets_and_sections_of_the_installed_ncu(self):
        sets, sections = (cases.run([f"{BIN}/rangescope", "metrics", "list", what], env=dict(os.environ, **self.tools), cwd=self.folder).stdout.splitlines() for what in ("sets", "sections"))
        self.assertIn("basic (default): LaunchStats, Occupancy, SpeedOfLight, WorkloadDistribution", sets)
        self.assertIn("MemoryWorkloadAnalysis", sections)

    def test_nsys_failures_are_told_apart(self):
        for case, code, why in (("never", 80, "nsys.never_started"), ("stream", 69, "nsys.report"), ("badexport", 65, "nsys.report")):
            with self.subTest(case):
                done = self.profile("--nsys", "--no-native", env={"STANDIN_NSYS": case})
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertEqual(self.steps("nsys"), [("profile", "empty" if case == "never" else "failed", why)])
        self.profile("--nsys", "--no-native", env={"STANDIN_NSYS": "stream"})
        self.assertIn("libdw.so.1", self.json("status.json")["message"])

    def test_gating_is_translated(self):
        done = self.profile("+pipeline.nsys.gating_nvtx=true", "+pipeline.nsys.nvtx_capture=LLM@decode", "--nsys", "--no-native")
        self.assertEqual(done.returncode, 0, done.stderr)
        command = self.text("nsys/cmd.txt")
        self.assertIn("--nvtx-capture=decode@LLM", command)
        self.assertIn("NSYS_NVTX_PROFILER_REGISTER_ONLY=0", command)
        self.assertIn("--capture-range-end=stop ", command)

    def test_a_gate_switches_nsys_on(self):
        done = self.profile("+pipeline.nsys.gating_nvtx=true", "+pipeline.nsys.nvtx_capture=decode")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("pipeline.nsys.gating_nvtx asks for a recording by Nsight Systems: pipeline.nsys.enable=true", done.stderr)
        self.assertEqual([(s["stage"], s["outcome"]) for s in self.stages], [("native", "ok"), ("nsys", "ok")])
        self.assertIn("--nvtx-capture=decode", self.text("nsys/cmd.txt"))
        self.assertIn("by: implied by pipeline.nsys.gating_nvtx", self.text("inputs.yaml").replace("'", ""))
        # whoever switched nsys off, or chose another collector, has decided; but it is said that nothing comes of the key
        for words in (["--no-nsys"], ["collector=native"]):
            done = self.profile("+pipeline.nsys.gating_nvtx=true", *words)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("nsys is off, so there is no use for pipeline.nsys.gating_nvtx; add --nsys", done.stderr)
            self.assertFalse(self.has("nsys"))

    def test_keys_of_a_tool_that_is_off(self):
        done = self.profile("--replay-mode", "range", "--set", "full")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("ncu is off, so there is no use for pipeline.ncu.ncu_cli.replay_mode, pipeline.ncu.ncu_cli.set; add --ncu", done.stderr)

    def test_a_repeated_capture_is_read_whole(self):
        done = self.profile("--no-native", "+pipeline.nsys.gating_nvtx=true", "+pipeline.nsys.nvtx_capture=decode", "--capture-range-end", "repeat:2", env={"STANDIN_NSYS": "repeat"})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(self.has("nsys/nsys.1.sqlite") and self.has("nsys/nsys.2.sqlite"))
        self.assertIn("left 2 reports, which are read together", done.stderr)
        decode = [r for r in self.json("report.json")["regions"] if r["path"] == ["decode"] and r.get("process") is None]
        self.assertEqual(sum(r["occurrences"] for r in decode), 12)  # six in each of the two recordings

    def test_kernels_of_other_threads(self):
        done = self.profile("--nsys", "--no-native", *NCU, CLI + "nvtx.include=backward", CLI + "replay_mode=kernel", plan={"kernel": "k_workerp"}, env={"STANDIN_NSYS": "autograd"})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("so push_pop_scope=process is passed", done.stderr)
        call = self.calls()[0]
        self.assertEqual(call[call.index("--nvtx-push-pop-scope") + 1], "process")
        done = self.profile("--nsys", "--no-native", *NCU, CLI + "nvtx.include=step", CLI + "replay_mode=kernel", plan={"kernel": "k_workerp"}, env={"STANDIN_NSYS": "autograd"})
        self.assertIn("ncu sees those only with push_pop_scope=process", done.stderr)
        self.assertNotIn("--nvtx-push-pop-scope", self.calls()[-1])

    def test_native_counters_are_refused_with_the_reason(self):
        if os.path.exists("/proc/driver/nvidia/gpus"):
            self.skipTest("there is a GPU here")
        done = self.profile(*NCU, *INCLUDE, CLI + "metrics=[gpu__time_duration.sum]", plan={"range": "r_decode"})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.steps()[0][:2], ("native", "refused"))
        self.assertIn("no hardware counters: there is no NVIDIA GPU in this machine", self.stages[1]["message"])
        # without ncu they are all that was asked for: times are there, and --strict wants the counters
        done = self.profile("--nsys", "--metrics", "gpu__time_duration.sum", "--include", "decode", "--strict")
        self.assertEqual(done.returncode, 66, done.stderr)
        self.assertIn("there is no NVIDIA GPU", done.stderr)

    def test_metric_groups_are_metrics_to_ncu(self):
        done = self.profile(*NCU, "--no-native", "--no-probe", CLI + "replay_mode=kernel", CLI + "metrics=[cache,sm__inst_executed.sum]", program=["true"], plan={"kernel": "k_nested"})
        self.assertEqual(done.returncode, 0, done.stderr)
        call = self.calls()[0]
        self.assertEqual(call[call.index("--metrics") + 1], "dram__bytes.sum,sm__inst_executed.sum")
        # the stand-in knows four metrics
        self.assertIn("metric group 'cache': this ncu lacks 4 of its 5 counters: l1_sectors, l1_hits, l2_sectors, l2_hits", done.stderr)

    def test_a_program_that_fails_stops_the_pipeline(self):
        done = self.profile(*NCU, program=["sh", "-c", "exit 7"], plan={"kernel": "k_decode"})
        self.assertEqual(done.returncode, 7)
        self.assertIn("the program failed even without nsys and ncu", self.json("status.json")["message"])
        self.assertEqual(self.json("status.json")["outcome"], "program_failed")

    def test_output_of_tool_and_program_are_apart(self):
        done = self.profile(*NCU, "--no-native", "--no-probe", CLI + "replay_mode=kernel", program=["sh", "-c", "echo out; echo err >&2"], plan={"kernel": "k_nested"})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.text("ncu/ncu.stdout"), "out\n")
        self.assertEqual(self.text("ncu/ncu.stderr"), "err\n")
        self.assertIn("==PROF==", self.text("ncu/ncu.log"))
        self.assertEqual([line for line in done.stdout.splitlines() if line == "out"], ["out"])

    def test_without_a_look_both_forms_are_given(self):
        self.profile(*NCU, "--no-native", "--no-probe", *INCLUDE, CLI + "replay_mode=kernel", plan={"kernel": "k_decode"})
        call = self.calls()[0]
        self.assertEqual([call[i + 1] for i, w in enumerate(call) if w == "--nvtx-include"], ["decode/", "decode"])

    def test_the_time_limit_ends_the_whole_group(self):
        for limit in ("1s", "10s", "100s"):  # a tool that has not started its child yet, on a busy machine, gets longer
            done = self.profile(*NCU, "--no-native", "--no-probe", CLI + "replay_mode=kernel", f"run.timeout={limit}", plan={"kernel": "hang"})
            self.assertEqual(done.returncode, 80, done.stderr)
            self.assertEqual(self.steps(), [("kernel", "failed", "ncu.timeout")])
            if self.child():
                break
        self.gone()

    def test_sigterm_leaves_a_whole_run_directory(self):
        plan = os.path.join(self.folder, "plan.json")
        with open(plan, "w") as f:
            f.write('{"kernel": "hang"}')
        argv = [os.path.join(BIN, "rangescope"), "profile", "--no-project", *NCU, "--no-native", "--no-probe", CLI + "replay_mode=kernel", "--", "true"]
        running = subprocess.Popen(argv, cwd=self.folder, env=self.environment(STANDIN_PLAN=plan), stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.assertTrue(soon(self.child), "ncu does not come")
        running.send_signal(signal.SIGTERM)
        running.communicate(timeout=PATIENCE_S)
        self.assertEqual(running.returncode, 128 + signal.SIGTERM)
        root = os.path.join(self.folder, "rangescope-runs")
        self.run_dir = os.path.join(root, os.listdir(root)[0])
        self.assertEqual(self.json("status.json")["outcome"], "interrupted")
        self.gone()

    def child(self):
        """The pid of the child of a tool that hangs; nothing where it has not come so far."""
        path = os.path.join(self.folder, "plan.json.pid")
        if not os.path.exists(path):
            return None
        with open(path) as f:
            return int(f.read())

    def gone(self):
        self.assertTrue(soon(lambda: not state(self.child())), f"process {self.child()} of the tool's group still runs")

    def test_run_keep_and_stats(self):
        for _ in range(3):
            self.profile(*NCU, "--no-native", "--no-probe", CLI + "replay_mode=kernel", "run.keep=2", program=["true"], plan={"kernel": "k_nested"})
        self.assertEqual(len(os.listdir(os.path.join(self.folder, "rangescope-runs"))), 2)
        done = cases.run([os.path.join(BIN, "rangescope"), "runs", "stats"], cwd=self.folder)
        self.assertRegex(done.stdout, r"ncu +ncu 2025\.3\.1 +kernel +2 +0 +0")

    def test_flags_are_aliases_of_keys(self):
        self.profile("--ncu", "--no-native", "--no-probe", "--replay-mode", "kernel", "--nvtx-include", "decode/", "--section", "SpeedOfLight,Occupancy", "--launch-count", "3",
                     "--kernel-name", "regex:.*matmul.*", "--kernel-name-base", "demangled", "--metrics", "dram__bytes.sum", program=["true"], plan={"kernel": "k_nested"})
        call = " ".join(self.calls()[0])
        for words in ("--nvtx-include decode/", "--section SpeedOfLight --section Occupancy", "--launch-count 3", "--kernel-name-base demangled --kernel-name regex:.*matmul.*", "--metrics dram__bytes.sum"):
            self.assertIn(words, call)
        self.assertIn("by: 'argument ", self.text("inputs.yaml"))

    def test_presets(self):
        for preset, words in (("quick", "--set basic"), ("standard", "--set roofline"), ("comprehensive", "--set full"), ("memory", "--section MemoryWorkloadAnalysis"),
                              ("compute", "--section WarpStateStats"), ("high", "--set detailed")):
            with self.subTest(preset):
                done = self.profile("ncu=" + preset, "--no-native", "--no-probe", program=["true"], plan={"kernel": "k_nested"})
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn(words, " ".join(self.calls()[-1]))

    def test_a_root_regions_names_and_secrets(self):
        self.profile(*NCU, "--no-native", "--no-probe", CLI + "replay_mode=kernel", "workload.env.HF_TOKEN=abcdef", "workload.env.FOO=bar", program=["true"], plan={"kernel": "k_nested"})
        self.assertRegex(self.text("config.yaml"), "HF_TOKEN: <redacted:[0-9a-f]{8}>")
        self.assertNotIn("abcdef", self.text("config.yaml") + self.text("inputs.yaml"))
        self.assertIn("FOO: bar", self.text("config.yaml"))


if __name__ == "__main__":
    cases.main()
