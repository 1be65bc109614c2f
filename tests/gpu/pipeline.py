"""The pipeline with the real nsys and ncu: the four commands of docs/manual/pipeline.md, presets, ladder, PyTorch."""
import json
import os
import unittest

import gpu

CLI = "pipeline.ncu.ncu_cli"
NCU = "pipeline.ncu.enable=true"


class Driven(unittest.TestCase):
    def setUp(self):
        gpu.need("ncu", gpu.ncu())
        gpu.need("nsys", gpu.nsys())
        gpu.time_left(30)
        os.environ.update(RANGESCOPE_NCU=gpu.ncu(), RANGESCOPE_NSYS=gpu.nsys())

    def line(self, options, command, code=0, **env):
        run = gpu.Run(f"pipeline-{self.id().rpartition('.')[2]}", ["run.timeout=120s", *options], command, limit=300, env=env)
        self.assertEqual(run.code, code, f"{run.status.get('message')}: {run.err[-400:]}")
        return run

    def commands(self, program, by_range, app_range, kernel, gated):
        """As they stand in the manual, with the exit code of each."""
        lines = [(by_range, [NCU, f"{CLI}.replay_mode=range", f"{CLI}.nvtx.include=LLM@*",
                             f"{CLI}.sections=[SpeedOfLight,MemoryWorkloadAnalysis,Occupancy,SchedulerStats]"]),
                 (app_range, [NCU, f"{CLI}.replay_mode=app-range", f"{CLI}.nvtx.include=prefill*"]),
                 (kernel, [NCU, f"{CLI}.replay_mode=kernel", f"{CLI}.nvtx.include=decode*", f"{CLI}.kernel_name=regex:.*(matmul|gem[mv]).*",
                           f"{CLI}.kernel_name_base=demangled"]),
                 (gated, ["+pipeline.nsys.gating_nvtx=true", "+pipeline.nsys.nvtx_capture=decode"])]
        for code, options in lines:
            with self.subTest(" ".join(options)):
                self.line(options, program, code)


class Zoo(Driven):
    def test_the_four_commands(self):
        self.commands([gpu.program("zoo")], 0, 0, 0, 0)

    def test_kernels_by_name(self):
        self.line([NCU, f"{CLI}.replay_mode=kernel", f"{CLI}.nvtx.include=decode*", f"{CLI}.kernel_name=regex:.*gemm.*",
                   f"{CLI}.kernel_name_base=demangled"], [gpu.program("zoo")])

    def test_presets(self):
        for preset in ("quick", "standard", "comprehensive", "memory"):
            with self.subTest(preset):
                self.line(["--no-native", "--nsys", f"ncu={preset}", f"{CLI}.nvtx.include=decode"], [gpu.program("zoo")])

    def test_every_nth_occurrence(self):
        # decode comes six times: of every fourth, the first and the fifth.
        metric = f"{CLI}.metrics=[gpu__time_duration.sum]"
        for mode, every, results in (("range", 4, 2), ("app-range", 4, 2), ("range", 5, 2), ("range", 50, 1), ("kernel", 4, 8)):
            with self.subTest(f"{mode} {every}"):
                run = self.line(["--no-native", "--no-probe", NCU, f"{CLI}.replay_mode={mode}", "--include", "decode/", "--every", str(every), metric],
                                [gpu.program("zoo")])
                with open(f"{run.folder}/stages.json", encoding="utf-8") as f:
                    self.assertEqual([s["results"] for s in json.load(f)["stages"] if s["stage"] == "ncu"], [results])

    def test_roofline_set(self):
        for mode in ("kernel", "range"):
            with self.subTest(mode):
                run = self.line(["--no-native", "--no-probe", NCU, f"{CLI}.replay_mode={mode}", "--include", "decode/", "--set", "roofline"], [gpu.program("zoo")])
                decode = gpu.regions(run.report)["decode"]
                self.assertTrue(any(p["level"] == "dram" and p["precision"] == "fp32" and p["flop_per_s"] > 0 for p in decode["roofline"]), decode["roofline"])

    def test_ladder(self):
        zoo = [gpu.program("zoo")]
        for include, options, words in (("decode", [f"{CLI}.set=basic"], []), ("graph_replay", [f"{CLI}.set=basic"], []),
                                        ("decode", [f"{CLI}.metrics=[dram__bytes.sum,sm__inst_executed.sum]"], []),
                                        ("alloc_async_inside", [f"{CLI}.metrics=[gpu__time_duration.sum]", "--no-native"], ["risky"])):
            with self.subTest(include + " " + options[0]):
                self.line([NCU, f"{CLI}.nvtx.include={include}", *options], zoo + words)

    def test_nothing_matched(self):
        self.line([NCU, f"{CLI}.replay_mode=kernel", f"{CLI}.nvtx.include=nosuch/"], [gpu.program("zoo")], 80)

    def test_time_limit(self):
        self.line(["--no-native", "--no-probe", NCU, f"{CLI}.replay_mode=kernel", "run.timeout=3s"], ["sleep", "60"], 80)


class Workloads(Driven):
    def test_llm(self):
        llm = f"{gpu.BUILD}/bin/llm_cuda"
        gpu.need("llm_cuda", os.access(llm, os.X_OK))
        self.commands([llm, "--requests", "1"], 80, 0, 0, 0)  # it has no domain LLM


class PyTorch(Driven):
    def test_lines(self):
        work = [gpu.need("PyTorch", gpu.python()), f"{gpu.HERE}/work.py"]
        few = f"{CLI}.metrics=[gpu__time_duration.sum,dram__bytes.sum]"
        lines = [(0, "24", [NCU, f"{CLI}.nvtx.include=decode", few]),
                 (0, "4", ["--no-native", "+pipeline.nsys.gating_nvtx=true", "+pipeline.nsys.nvtx_capture=decode"]),
                 (80, "4", ["--no-native", "--no-probe", NCU, f"{CLI}.replay_mode=range", f"{CLI}.nvtx.include=prefill*"]),
                 (0, "4", ["--no-native", "--no-probe", NCU, f"{CLI}.replay_mode=app-range", f"{CLI}.nvtx.include=prefill*", few]),
                 (0, "4", ["--no-native", "--no-probe", NCU, f"{CLI}.replay_mode=kernel", f"{CLI}.nvtx.include=decode*",
                           f"{CLI}.kernel_name=regex:.*(gemv|gemm|nvjet).*", f"{CLI}.kernel_name_base=demangled", f"{CLI}.launch_count=5"])]
        lines += [(0, "4", ["--no-native", "--nsys", f"ncu={preset}", f"{CLI}.nvtx.include=decode*"]) for preset in ("quick", "standard", "comprehensive")]
        for code, tokens, options in lines:
            with self.subTest(" ".join(options)):
                gpu.time_left(40)
                self.line(options, work, code, LAYERS="2", TOK=tokens)
