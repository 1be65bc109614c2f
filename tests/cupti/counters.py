#!/usr/bin/env python3
"""Counters by the command line, against the stand-in CUPTI. Usage: counters.py BIN_DIR LIBCUPTI SOURCE_DIR"""
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


class Counters(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="rangescope-counters-")
        self.env = {k: v for k, v in os.environ.items() if not k.endswith("_INJECTION64_PATH")}
        self.env["RANGESCOPE_CUPTI"] = CUPTI

    def tearDown(self):
        shutil.rmtree(self.folder)

    def tool(self, *words, **env):
        return cases.run([TOOL, *words], cwd=self.folder, env={**self.env, **env})

    def profile(self, *words, **env):
        done = self.tool("profile", "--no-project", "--chip", "GH100", "--skip-first", "0", *words, **env)
        runs = os.path.join(self.folder, "rangescope-runs")
        with open(os.path.join(max((os.path.join(runs, name) for name in os.listdir(runs)), key=os.path.getmtime), "report.json"), encoding="utf-8") as f:
            return json.load(f), done

    @staticmethod
    def region(report, *path):
        return next(r for r in report["regions"] if r["path"] == list(path) and r["process"] is None)

    def test_plan(self):
        done = self.tool("metrics", "plan", "--metrics", "dram__bytes.sum,sm__inst_executed.sum", "--chip", "GH100", "-f", "json", STANDIN_PASSES="2")
        self.assertEqual(done.returncode, 0, done.stderr)
        plan = json.loads(done.stdout)
        self.assertEqual((plan["chip"], plan["passes"], plan["occurrences"]["all_rounds"]), ("GH100", 2, 10))
        self.assertEqual(plan["metrics"], ["dram__bytes.sum", "sm__inst_executed.sum"])
        self.assertEqual({c["metric"]: c["passes_alone"] for c in plan["costs"]}, {"dram__bytes.sum": 1, "sm__inst_executed.sum": 1})
        text = self.tool("metrics", "plan", "--metrics", "roofline", STANDIN_PASSES="5").stdout
        self.assertIn("in 5 passes", text)
        self.assertIn("A range needs 5 instances for one complete set", text)

    def test_plan_refuses(self):
        for words, parts in (
            (["--metrics", "dram__byts.sum"], ["no metric 'dram__byts.sum' on GH100", "dram__bytes"]),
            (["--metrics", "dram__bytes"], ["needs a right suffix", ".sum"]),
            (["--metrics", "dram__bytes.sum", "--chip", "GH10"], ["unknown chip 'GH10'", "GH100"]),
            (["--metrics", "rooflin"], ["rooflin", "roofline"]),
            (["--metrics", "dram__bytes.sum,,"], ["empty name"]),
            (["--metrics", "gpu__time_duration.sum,dram__bytes.total,pcie__read_bytes.sum"], ["'dram__bytes.total' needs a right suffix"]),
            (["--metrics", "stalls"], ["group 'stalls' needs", "which GH100 does not have"]),
        ):
            done = self.tool("metrics", "plan", *words)
            self.assertEqual(done.returncode, 64, (words, done.stdout, done.stderr))
            for part in parts:
                self.assertIn(part, done.stderr)
        done = self.tool("metrics", "plan", "--metrics", "dram__bytes.sum", RANGESCOPE_CUPTI="/nonexistent/libcupti.so")
        self.assertEqual(done.returncode, 69, done.stderr)
        self.assertIn("RANGESCOPE_CUPTI", done.stderr)

    def test_what_cannot_be_counted_together_takes_configurations(self):
        done = self.tool("metrics", "plan", "--metrics", "pcie,roofline,dram__bytes.sum", "-f", "json", STANDIN_PASSES="3")
        self.assertEqual(done.returncode, 0, done.stderr)
        plan = json.loads(done.stdout)
        first, second = plan["configurations"]
        self.assertEqual(first["metrics"], ["gpu__time_duration.sum", "pcie__read_bytes.sum", "pcie__write_bytes.sum"])
        self.assertEqual(plan["metrics"], first["metrics"] + second["metrics"])
        self.assertEqual((first["passes"], second["passes"], plan["passes"], plan["occurrences"]["one_round"]), (3, 3, 6, 6))
        text = self.tool("metrics", "plan", "--metrics", "pcie,roofline", STANDIN_PASSES="3").stdout
        self.assertIn("2 configurations, each in separate instances", text)
        self.assertIn("  3 passes: gpu__time_duration.sum, pcie__read_bytes.sum, pcie__write_bytes.sum\n", text)

    def test_several_configurations_in_one_run(self):
        words = ("--metrics", "pcie,dram__bytes.sum,sm__inst_executed.sum", "--rounds", "2", "--include", "decode/", "--", VICTIM, "decode", "60")
        report, done = self.profile(*words)
        self.assertIn("5 passes of 2 configurations on GH100", done.stderr + json.dumps(report))
        metrics = self.region(report, "decode")["metrics"]
        for name, value in (("pcie_read_bytes", 14), ("dram__bytes.sum", 17000), ("sm__inst_executed.sum", 200)):
            self.assertEqual((metrics[name]["value"], metrics[name]["rounds"]), (value, 2), name)
        report, done = self.profile(*words, STANDIN_WITHHELD="pcie__read_bytes.sum")
        self.assertEqual(done.returncode, 0, done.stderr)
        metrics = self.region(report, "decode")["metrics"]
        self.assertEqual((metrics["dram__bytes.sum"]["value"], metrics["dram__bytes.sum"]["rounds"]), (17000, 2))
        self.assertNotIn("pcie_read_bytes", metrics)
        self.assertTrue(any("pcie__write_bytes.sum (of pcie) on device 0" in loss["detail"] for loss in report["losses"]), report["losses"])

    def test_metrics(self):
        listed = self.tool("metrics", "list").stdout
        for name in ("roofline", "speed_of_light", "tensor"):
            self.assertIn(name, listed)
        groups = {g["name"]: g for g in json.loads(self.tool("metrics", "list", "--json").stdout)}
        self.assertIn("gpu_time_ns", [m["name"] for m in groups["roofline"]["metrics"]])
        self.assertIn("dram__bytes.sum", self.tool("metrics", "show", "roofline").stdout)
        self.assertIn("what the stand-in counts", self.tool("metrics", "show", "dram__bytes").stdout)
        found = json.loads(self.tool("metrics", "search", "BYTES", "--json").stdout)
        self.assertEqual([f["name"] for f in found], ["dram__bytes", "l1tex__t_bytes", "lts__t_bytes", "nvlrx__bytes", "pcie__read_bytes",
                                                     "pcie__write_bytes"])
        for words, code, part in (
            (["search", "nothing_such"], 66, "no metric of GH100"),
            (["show", "rooflin"], 64, "roofline"),
            (["show"], 64, "missing: what"),
            (["guess"], 64, "guess"),
        ):
            done = self.tool("metrics", *words)
            self.assertEqual(done.returncode, code, (words, done.stderr))
            self.assertIn(part, done.stderr)

    def test_a_region_with_roofline_bound_and_utilization(self):
        for device, memory in (("NVIDIA H200", 4.8e12), ("NVIDIA H100 80GB HBM3", 3.35e12)):
            report, done = self.profile("--metrics", "roofline", "--rounds", "2", "--include", "decode/", "--width", "0", "--", VICTIM, "decode", "60", STANDIN_DEVICE=device)
            self.assertEqual(done.returncode, 0, done.stderr)
            with open(f"{SOURCE}/docs/formats/report.schema.json", encoding="utf-8") as f:
                self.assertEqual(json_schema.errors(report, json.load(f)), [])
            decode = self.region(report, "decode")
            self.assertEqual(decode["occurrences"], 60)
            self.assertEqual(decode["metrics"]["flop_tensor_bf16"]["value"], 2e9)
            self.assertEqual(decode["metrics"]["flop_tensor_bf16"]["rounds"], 2)
            self.assertEqual(decode["metrics"]["dram_bytes"]["value"], 17000)
            self.assertTrue(decode["gpu"]["partial"])
            # Kernels of 2 and 1 us: occurrences without a timeline do not make their median 0.
            self.assertGreaterEqual(decode["gpu"]["busy_ns_per_occurrence"]["median"], 3000)
            busy = decode["gpu"]["busy_ns_per_occurrence"]["median"]
            self.assertAlmostEqual(decode["utilization"]["executed"], 2e9 / 989.4e12 / (busy / 1e9), delta=0.5)
            self.assertIn("dram", [p["level"] for p in decode["roofline"]])
            bf16 = next(p for p in decode["roofline"] if p["level"] == "dram" and p["precision"] == "tensor bf16")
            self.assertAlmostEqual(bf16["intensity"], 2e9 / 17000)
            self.assertEqual(bf16["roof_flop_per_s"], min(989.4e12, 2e9 / 17000 * memory))
            self.assertNotEqual(decode["bound"]["kind"], "unknown", decode["bound"]["reason"])
            head = next(line for line in done.stderr.splitlines() if line.startswith("range "))
            for title in ("DRAM bytes", "FLOP", "util") + (("bound",) if decode["bound"]["kind"] != "idle" else ()):
                self.assertIn(title, head)

    def test_running_the_program_again_for_a_range_that_comes_once(self):
        report, done = self.profile("--metrics", "sm__inst_executed.sum,dram__bytes.sum,gpu__time_duration.sum", "--rounds", "1", "--passes", "relaunch", "--include", "decode/", "--", VICTIM, "decode", "1", STANDIN_PASSES="3")
        self.assertEqual(done.returncode, 0, done.stderr)
        decode = self.region(report, "decode")
        self.assertEqual(decode["occurrences"], 1, "runs that only count are not in the timeline")
        self.assertEqual(decode["metrics"]["sm__inst_executed.sum"]["value"], 200)
        self.assertEqual(decode["metrics"]["dram__bytes.sum"]["value"], 17000)
        self.assertEqual([l["kind"] for l in report["losses"] if l["kind"].startswith("counters_")], [])
        again = self.tool("report", "latest", "-f", "json")
        self.assertEqual(self.region(json.loads(again.stdout), "decode")["metrics"], decode["metrics"])

    def test_a_program_that_never_does_the_same_twice_is_not_run_for_ever(self):
        script = os.path.join(self.folder, "random.sh")
        with open(script, "w", encoding="utf-8") as f:
            f.write(f'#!/bin/sh\nn=$(cat "$0.n" 2>/dev/null || echo 0); echo $((n + 1)) >"$0.n"\n[ $n -lt 2 ] || exit 0\nexec {VICTIM} decode 1\n')
        os.chmod(script, 0o755)
        report, done = self.profile("--metrics", "sm__inst_executed.sum,dram__bytes.sum,gpu__time_duration.sum", "--rounds", "1", "--passes", "relaunch", "--include", "decode/", "--", script)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.region(report, "decode")["metrics"], {})
        self.assertIn("relaunching stopped after", done.stderr)

    def test_without_enough_occurrences_the_report_says_what_is_missing(self):
        report, _ = self.profile("--metrics", "roofline", "--include", "decode/", "--", VICTIM, "decode", "2")
        loss = next(l for l in report["losses"] if l["kind"] == "counters_incomplete")
        self.assertIn("'decode' has no counters: 4 passes are needed", loss["detail"])
        self.assertIn("--passes relaunch would add the rest", loss["detail"])
        self.assertEqual(self.region(report, "decode")["metrics"], {})
        _, done = self.profile("-o", "table.txt", "--metrics", "roofline", "--passes", "auto", "--include", "decode/", "--", VICTIM, "decode", "2")
        self.assertIn("--passes relaunch would add the rest in", done.stderr)

    def test_occurrences_of_different_payloads(self):
        report, done = self.profile("--metrics", "sm__inst_executed.sum,dram__bytes.sum", "--rounds", "1", "--bucket-by", "payload", "--flops", "sized=1e9*payload", "--include", "sized/", "--", VICTIM, "sized", "40", STANDIN_PASSES="2", STANDIN_DEVICE="NVIDIA H200")
        self.assertEqual(done.returncode, 0, done.stderr)
        for payload in (2, 4):
            sized = self.region(report, f"sized [{payload}]")
            self.assertEqual(sized["occurrences"], 20)
            self.assertEqual(sized["metrics"]["dram__bytes.sum"]["value"], 1000 * payload)
            self.assertEqual(sized["metrics"]["sm__inst_executed.sum"]["value"], 100)
            self.assertEqual(sized["utilization"]["useful_flop"], 1e9 * payload)
            self.assertGreater(sized["utilization"]["useful"], 0)
        again = json.loads(self.tool("report", "latest", "-f", "json").stdout)
        self.assertEqual(self.region(again, "sized [4]")["metrics"]["dram__bytes.sum"]["value"], 4000)

    def test_peaks_of_this_machine_win_over_the_data_sheet(self):
        home = os.path.join(self.folder, "config", "rangescope", "device")
        os.makedirs(home)
        with open(os.path.join(home, "h200.yaml"), "w", encoding="utf-8") as f:
            f.write('name: "mine"\nmatch: ["NVIDIA H200"]\nchip: GH100\nsource: "measured here"\nmemory_bytes_per_s: 4.2e12\nflop_per_s: {tensor_bf16: 700.0e12}\n')
        report, done = self.profile("--metrics", "roofline", "--rounds", "1", "--include", "decode/", "--", VICTIM, "decode", "40", STANDIN_DEVICE="NVIDIA H200", XDG_CONFIG_HOME=os.path.join(self.folder, "config"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("peaks: mine (measured here)", report["notes"])
        point = next(p for p in self.region(report, "decode")["roofline"] if p["level"] == "dram")
        self.assertEqual(point["roof_flop_per_s"], min(700e12, 2e9 / 17000 * 4.2e12))
        if not os.path.exists("/proc/driver/nvidia"):
            done = self.tool("metrics", "calibrate")
            self.assertEqual(done.returncode, 69, done.stdout)
            self.assertIn("driver", done.stderr)

    def test_why_a_kernel_waits(self):
        with open(f"{SOURCE}/docs/formats/report.schema.json", encoding="utf-8") as f:
            schema = json.load(f)
        for words, samples in ((["--pc", "on", "--include", "decode/"], 21), (["--pc", "auto"], 21 + 8)):  # without ranges, the outermost
            report, done = self.profile(*words, "--", VICTIM, "nested", "40")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(json_schema.errors(report, schema), [])
            rows = {row["short_name"]: row.get("stalls") for row in self.region(report, "step", "decode")["gpu"]["top_kernels"]}
            self.assertEqual(rows["gemm"]["lines"][0], {"file": "/src/gemm.cu", "line": 112, "function": "gemm", "offset": 16, "share": 16 / 21,
                                                        "reason": "long scoreboard", "reason_share": 16 / 21})
            self.assertEqual(rows["gemm"]["reasons"][0]["reason"], "long scoreboard")
            self.assertIn("Why kernels wait", self.tool("report", "-f", "md").stdout)
            self.assertRegex(self.tool("report", "-f", "html").stdout, r'"at": ?"gemm\.cu:112"')
            total = next(row for row in report["kernels"] if row["short_name"] == "gemm")["stalls"]
            self.assertEqual(total["samples"], 2 * samples)

    def test_the_program_counter_or_metrics(self):
        done = self.tool("profile", "--chip", "GH100", "--pc", "on", "--metrics", "dram__bytes.sum", "--include", "decode/", "--", VICTIM, "decode", "1")
        self.assertEqual(done.returncode, 64, done.stderr)
        self.assertIn("Run the program twice", done.stderr)
        report, done = self.profile("--pc", "auto", "--metrics", "dram__bytes.sum", "--include", "decode/", "--", VICTIM, "decode", "40")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("dram__bytes.sum", self.region(report, "decode")["metrics"])
        self.assertFalse(any("stalls" in row for row in report["kernels"]))

    def test_mistakes_make_no_run_directory(self):
        for words in (["--metrics", "no_such.sum", "--include", "decode/"], ["--metrics", "dram__bytes.sum"],
                      ["--metrics", "dram__bytes.sum", "--include", "regex:(?i)decode/"]):
            done = self.tool("profile", "--chip", "GH100", *words, "--", VICTIM, "decode", "1")
            self.assertEqual(done.returncode, 64, done.stderr)
            self.assertFalse(os.path.exists(os.path.join(self.folder, "rangescope-runs")))


if __name__ == "__main__":
    cases.main()
