#!/usr/bin/env python3
"""Every flag of `profile` is a key of the configuration, and a rangescope.yaml says what the flags say. Usage: keys.py BIN_DIR"""
import json
import os
import re
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
import cases  # noqa: E402

BIN = os.path.abspath(sys.argv[1])
TOOL, VICTIM = os.path.join(BIN, "rangescope"), os.path.join(BIN, "cli_victim")
# They say how the configuration is made, what is said of it, or that nothing is to run.
ABOUT_THE_CALL = {"--config", "--config-dir", "--no-project", "--dry-run", "--verbose", "--quiet", "--json", "--help", "--help-all", "--watch", "--watch-every", "--openmetrics"}


class Keys(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = os.path.realpath(temporary.name)

    def tool(self, *words):
        env = {k: v for k, v in os.environ.items() if not k.startswith("RANGESCOPE__")}
        return cases.run([TOOL, *words], cwd=self.folder, env={**env, "XDG_STATE_HOME": os.path.join(self.folder, "state")})

    def project(self, text):
        with open(os.path.join(self.folder, "rangescope.yaml"), "w", encoding="utf-8") as f:
            f.write(text)
        self.tool("config", "trust", "rangescope.yaml")

    def test_every_flag_is_a_key(self):
        page = self.tool("help", "--man", "profile").stdout.replace("\\-", "-")
        flags = set(re.findall(r"(?m)^\.B (?:-\w, )?(--[\w-]+)", page))
        sections = [line.split(":")[0] for line in self.tool("config", "show").stdout.splitlines() if re.match(r"\w", line)]
        explained = "".join(self.tool("config", "explain", name).stdout for name in sections)
        keys = set(re.findall(r"(?m)^  flag:  (--[\w-]+)", explained))
        self.assertGreater(len(flags), 60)
        self.assertEqual(flags - keys - ABOUT_THE_CALL, set())
        self.assertEqual(keys - flags, set())

    def test_a_file_says_what_flags_say(self):
        self.project("run: {repeat: 2}\n"
                     "report: {format: md, to: out.md, columns: [occurrences, wall_ns.max], explain: true, per_process: false}\n"
                     "pipeline: {native: {max_capture_size: 2M, flush_interval: 200ms, cuda_graphs: graph}}\n")
        done = self.tool("profile", "--", VICTIM)
        self.assertEqual(done.returncode, 0, done.stderr)
        run = os.path.join(self.folder, "rangescope-runs", os.listdir(os.path.join(self.folder, "rangescope-runs"))[0])
        self.assertEqual(sorted(os.listdir(os.path.join(run, "repeats"))), ["001", "002"])
        with open(os.path.join(run, "cmd.txt"), encoding="utf-8") as f:
            command = f.read()
        for words in ("RANGESCOPE_MAX_CAPTURE_SIZE=2097152", "RANGESCOPE_FLUSH_INTERVAL=200ms", "RANGESCOPE_CUDA_GRAPHS=graph"):
            self.assertIn(words, command)
        with open(os.path.join(self.folder, "out.md"), encoding="utf-8") as f:
            self.assertRegex(f.read(), r"\| range +\| +count +\| +max +\|")

    def test_the_command_line_wins(self):
        self.project("report: {format: md, to: out.md}\n")
        done = self.tool("profile", "-f", "csv", "-o", "-", "--", VICTIM)
        self.assertIn("path,", done.stdout)
        self.assertFalse(os.path.exists(os.path.join(self.folder, "out.md")))
        done = self.tool("profile", "--to", "other.md", "--", VICTIM)
        self.assertTrue(os.path.exists(os.path.join(self.folder, "other.md")), done.stderr)

    def test_a_value_that_an_option_refuses_has_its_place(self):
        self.project("run:\n  keep: 3\nreport:\n  sort: wall_ns.medain\npipeline:\n  native:\n    max_capture_size: 4K\n")
        done = self.tool("profile", "--", VICTIM)
        self.assertEqual(done.returncode, 78, done.stderr)
        self.assertRegex(done.stderr, r"rangescope\.yaml:7:\d+: .*at least 1 MiB")

    def test_device_says_whose_peaks_count(self):
        golden = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden", "ncu", "k_roof.ncu-repz")
        self.assertIn("peaks: NVIDIA H200 SXM", self.tool("report", golden).stderr + self.tool("report", golden).stdout)
        done = self.tool("report", golden, "--device", "a100-sxm-80")
        self.assertRegex(done.stdout + done.stderr, r"peaks: NVIDIA A100\b.*chosen by --device")
        for words in (("report", golden, "--device", "nonsense"), ("profile", "device=nonsense", "--", VICTIM), ("profile", "--device", "nonsense", "--", VICTIM)):
            done = self.tool(*words)
            self.assertEqual(done.returncode, 78, done.stderr)
            self.assertIn("no peaks are known for a device 'nonsense'", done.stderr)
        done = self.tool("report", golden, "--device", "h200-sxn")
        self.assertIn("h200-sxm", done.stderr)

    def test_roofline_of_regions_whose_kernels_were_measured(self):
        golden = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden", "ncu", "k_roof.ncu-repz")
        # What ncu's details page of the same file says: 2 * 256^3 FLOP of gemm_like and 2^17 of softmax_like in 22.688 us.
        report = json.loads(self.tool("report", golden, "-f", "json").stdout)
        decode = report["regions"][0]
        point = decode["roofline"][0]
        self.assertEqual((point["level"], point["precision"], decode["metrics"]["gpu_time_ns"]["value"]), ("dram", "fp32", 22688))
        self.assertAlmostEqual(point["flops"], 2 * 256**3 + 2**17, delta=1)
        self.assertAlmostEqual(point["flop_per_s"], point["flops"] / 22688e-9, delta=1e6)
        self.assertAlmostEqual(point["bytes"], 26202531645.57 * 20224e-9 + 107532467532.47 * 2464e-9, delta=1)
        self.assertEqual(decode["bound"]["kind"], "unknown")  # of kernels together the pipes are not known
        self.assertEqual({f["name"]: f["calls"] for f in report["families"]}, {"gemm": 1, "reduction": 1})

    def test_inputs_are_checked_and_recorded(self):
        done = self.tool("profile", "--input", "nosuch.bin", "--", VICTIM)
        self.assertEqual(done.returncode, 66, done.stderr)
        self.assertFalse(os.path.exists(os.path.join(self.folder, "rangescope-runs")))
        os.mkdir(os.path.join(self.folder, "data"))
        for name, text in (("data/a.txt", "abc"), ("data/b.txt", "defg"), ("subset.txt", "a.txt\n")):
            with open(os.path.join(self.folder, name), "w", encoding="utf-8") as f:
                f.write(text)
        self.project(f"workload:\n  inputs: [data, data/a.txt]\n  subset: subset.txt\n  command: [{VICTIM}, '${{workload.subset}}']\n")
        done = self.tool("profile")
        with open(os.path.join(self.folder, "rangescope-runs", os.listdir(os.path.join(self.folder, "rangescope-runs"))[0], "env.json"),
                  encoding="utf-8") as f:
            text = f.read()
        self.assertIn('"input.data/a.txt": "3 bytes, sha256 ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"', text)
        self.assertIn('"input.data": "2 files, 7 bytes, sha256 of the list ', text)
        self.assertIn('"input.subset.txt": "6 bytes', text)
        self.assertIn("subset.txt", self.tool("runs", "show", "latest").stdout)

    def test_flags_without_metrics_are_idle(self):
        done = self.tool("profile", "--per", "kernel", "--", VICTIM)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("there is no use for pipeline.native.per; add --metrics", done.stderr)


if __name__ == "__main__":
    cases.main()
