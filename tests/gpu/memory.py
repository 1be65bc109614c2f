"""Memory of PyTorch under `profile`, held against what the allocator and the program say (memory_program.py)."""
import json
import statistics
import unittest

import gpu

TRAINED = ("gpt", "convolutions", "recurrent", "encoder", "perceptron", "autoencoder", "resnet", "vision", "speech", "experts", "clicks",
           "checkpointed")
RUN_OUT = ("linear", "scores", "convolution", "nested", "growing", "activation", "outer", "logits", "normalization", "upsampling", "unfolding",
           "hidden")


class Memory(unittest.TestCase):
    def profiled(self, *words, options=()):
        python = gpu.need("PyTorch with a GPU", gpu.python())
        run = gpu.Run(f"memory-{'-'.join(words)}", ["--cpu", "off", "--sample", "off", *options], [python, f"{gpu.HERE}/memory_program.py", *words])
        self.assertEqual(run.code, 0, run.err[-600:])
        return run.report, json.loads(run.out.strip().splitlines()[-1])

    def check_peak(self, report, truth):
        memory, = report["memory"]
        self.assertEqual([loss for loss in report["losses"] if loss["kind"].startswith("memory")], [])
        self.assertEqual(memory["peak_bytes"], truth["peak"])
        return memory, {use["use"]: use["bytes"] for use in memory["at_peak"]}

    def test_training(self):
        for name in TRAINED:
            with self.subTest(name):
                report, truth = self.profiled("train", name, "6")
                memory, uses = self.check_peak(report, truth)
                gpu.figure(f"memory, {name}: share of the peak with an owner", memory["owned_share"], "")
                model = uses.get("parameters", 0) + uses.get("older", 0)
                gpu.figure(f"memory, {name}: parameters, reported over true", model / truth["parameters"], "")
                gpu.figure(f"memory, {name}: optimizer state, reported over true", uses.get("optimizer state", 0) / truth["state"], "")
                named = sum(part["bytes"] for part in memory["parts"] if part["use"] == "parameters" and "first module" not in part["owner"])
                gpu.figure(f"memory, {name}: parameters by module, reported over true", named / truth["parameters"], "")
                self.assertGreaterEqual(memory["owned_share"], 0.95)

    def test_generating(self):
        report, truth = self.profiled("generate", "24")
        memory, _ = self.check_peak(report, truth)
        self.assertGreaterEqual(memory["owned_share"], 0.95)

    def test_out_of_memory(self):
        for name in RUN_OUT:
            with self.subTest(name):
                report, truth = self.profiled("oom", name)
                memory, _ = self.check_peak(report, truth)
                self.assertIn("greedy", memory["out_of_memory"]["owner"])
                self.assertAlmostEqual(memory["out_of_memory"]["asked_bytes"] / truth["asked"], 1, 2)
                self.assertIn("greedy", report["verdict"][0]["path"])

    def test_cost(self):
        """A step with and without the recorder, in turns."""
        times = {"off": [], "auto": [], "stacks": []}
        for _ in range(6):
            gpu.time_left(30)
            for mode, seen in times.items():
                seen.append(self.profiled("train", "gpt", "60", options=("--memory", mode))[1]["step_ms"])
        off = statistics.median(times["off"])
        gpu.figure("memory, gpt: a step with --memory off", off, "ms")
        for mode in ("auto", "stacks"):
            gpu.figure(f"memory, gpt: --memory {mode} over off", statistics.median(times[mode]) / off, "")

    def test_cost_of_the_recorder(self):
        """The same in one process, without rangescope."""
        for name in ("gpt", "resnet", "recurrent"):
            gpu.time_left(60)
            done = gpu.Done([gpu.need("PyTorch with a GPU", gpu.python()), f"{gpu.HERE}/memory_program.py", "cost", name, "30"])
            self.assertEqual(done.code, 0, done.err[-600:])
            truth = json.loads(done.out.strip().splitlines()[-1])
            gpu.figure(f"memory, {name}: a step with PyTorch's recorder over one without", truth["on_over_off"], "",
                       f"quartiles {truth['low']:.4f} and {truth['high']:.4f}, {truth['step_ms']:.2f} ms a step, 30 pairs")
