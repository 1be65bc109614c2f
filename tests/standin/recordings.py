#!/usr/bin/env python3
"""Every recorded output of ncu and nsys 2025.3.1, failures included, through the pipeline: what each comes to.

Usage: recordings.py BIN_DIR. The recordings (tests/golden/ncu-out, nsys-out) are replayed by the stand-ins of this folder.
"""
import os

from pipeline_case import HERE, PipelineCase, cases

CLI = "pipeline.ncu.ncu_cli."
GOLDEN = os.path.join(HERE, "..", "golden")
DECODE = CLI + "nvtx.include=decode/"

# recording: (replay mode, exit code, outcome, why, words of the message or the cure). Whatever ncu's exit code was.
NCU = {
    # a star, a list, a comma: nothing matched, and ncu exited with 0
    "k_star": ("kernel", 80, "empty", "ncu.only_push_pop", "push/pop"),
    "k_semi": ("kernel", 80, "empty", "ncu.only_start_end", "slash"),
    "k_comma": ("kernel", 80, "empty", "ncu.only_push_pop", "push/pop"),
    "k_miss": ("kernel", 80, "empty", "ncu.only_push_pop", "push/pop"),
    "r_miss": ("range", 80, "empty", "ncu.only_push_pop", "push/pop"),
    "k_worker": ("kernel", 80, "empty", "ncu.only_push_pop", "push_pop_scope=process"),
    "pt_ncu_noslash": ("kernel", 80, "empty", "ncu.only_start_end", "slash"),
    # calls that range replay cannot replay
    "r_alloca": ("range", 80, "failed", "ncu.unsupported_api", "cuMemAllocAsync"),
    "r_graph": ("range", 80, "failed", "ncu.unsupported_api", "cuGraphLaunch"),
    "pt_ncu_range": ("range", 80, "failed", "ncu.unsupported_api", "cuKernelSetAttribute"),
    # mistakes that rangescope refuses by itself; should one reach ncu all the same, it is understood
    "badmetric": ("kernel", 78, "failed", "ncu.unknown_metric", "metric"),
    "badsec": ("kernel", 78, "failed", "ncu.unknown_section", "section"),
    "badset": ("kernel", 78, "failed", "ncu.unknown_set", "set"),
    "badmode": ("kernel", 78, "failed", "ncu.usage", "option"),
    "tp1": ("kernel", 78, "failed", "ncu.usage", "option"),
    "psum": ("kernel", 78, "failed", "ncu.usage", "option"),
    "psum0": ("kernel", 78, "failed", "ncu.usage", "option"),
    # what worked: kernels, ranges without a synchronize, with cudaMalloc inside, of other threads
    "k_decode": ("kernel", 0, "ok", "", ""), "k_nested": ("kernel", 0, "ok", "", ""), "k_dom": ("kernel", 0, "ok", "", ""),
    "k_se": ("kernel", 0, "ok", "", ""), "k_re": ("kernel", 0, "ok", "", ""), "k_exc": ("kernel", 0, "ok", "", ""),
    "k_kern": ("kernel", 0, "ok", "", ""), "k_workerp": ("kernel", 0, "ok", "", ""), "r_decode": ("range", 0, "ok", "", ""),
    "r_async": ("range", 0, "ok", "", ""), "r_alloc": ("range", 0, "ok", "", ""), "ar_async": ("app-range", 0, "ok", "", ""),
    "ar_decode": ("app-range", 0, "ok", "", ""),
    "pt_ncu_apprange": ("app-range", 80, "empty", "empty", ""),  # its report was not kept: words alone prove nothing
}


class Recordings(PipelineCase):
    tools = {"RANGESCOPE_NCU": os.path.join(HERE, "ncu"), "RANGESCOPE_NSYS": os.path.join(HERE, "nsys")}

    def test_every_recording_of_ncu(self):
        there = {name[:-4] for name in os.listdir(os.path.join(GOLDEN, "ncu-out"))}
        self.assertEqual(there, set(NCU))
        for name, (mode, code, outcome, why, words) in NCU.items():
            with self.subTest(name):
                # What was recorded lies in other ranges, too: where it counts, any of them is meant.
                meant = ["--include", "*@*"] if code == 0 else [DECODE]
                done = self.profile("--ncu", "--no-native", "--no-probe", *meant, CLI + "replay_mode=" + mode, CLI + "export.csv=false",
                                    CLI + "export.sections=false",
                                    program=["true"], plan={mode: name})
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertEqual(self.steps(), [(mode, outcome, why)])
                told = self.stages[-1]["message"] + " " + self.stages[-1]["cure"]
                self.assertIn(words, told)
                self.assertIn(words, done.stderr)
                status = self.json("status.json")
                self.assertEqual((status["exit_code"], status["outcome"]), (code, "ok" if code == 0 else "nothing_captured"))
                regions = os.path.join(self.run_dir, "ncu", "regions")
                self.assertEqual(os.path.isdir(regions), outcome == "ok")  # never a region that was not measured

    def test_every_recording_of_nsys(self):
        for name, code, why in (("g1", 80, "nsys.never_started"), ("g4", 80, "nsys.never_started"), ("g2", 0, "")):
            with self.subTest(name):
                done = self.profile("--no-native", "+pipeline.nsys.gating_nvtx=true", "+pipeline.nsys.nvtx_capture=decode", program=["true"], env={"STANDIN_NSYS": "said:" + name})
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertEqual(self.steps("nsys"), [("profile", "empty" if why else "ok", why)])


if __name__ == "__main__":
    cases.main()
