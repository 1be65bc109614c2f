"""Modules of PyTorch without annotation, against NVTX ranges that forward hooks of the program open; what they cost."""
import re
import unittest

import gpu
import module_truth


class PyTorchModules(module_truth.Case):
    program = "modules_program.py"

    def test_backward_is_right(self):
        self.check_backward("modules", self.profiled("train", "backward").report)

    def test_backward_of_two_ranks_is_right(self):
        self.check_backward("modules, two ranks", self.profiled("train", "backward", ranks=2).report)

    def test_compiled_backward(self):
        report = self.profiled("train-compile").report
        print("   ", [note for note in report["notes"] if "backward" in note])
        backward = [r for r in report["regions"] if r["domain"] == "nn.Module" and r["path"][0] == "backward" and r["gpu"]]
        all_ns = sum(r["gpu"]["exclusive_kernel_ns"] for r in backward)
        nodes_ns = sum(r["gpu"]["exclusive_kernel_ns"] for r in backward if r["path"][-1].startswith("["))
        print("   ", sorted((" > ".join(r["path"]) for r in backward), key=len)[:8])
        gpu.figure("modules, compiled training: GPU time of the backward pass under nodes of the graph", 100 * nodes_ns / all_ns, "%")
        self.assertGreaterEqual(nodes_ns / all_ns, 0.9)
        self.assertGreater(all_ns, 0.4 * report["total"]["kernel_ns"])

    def test_eager_is_right(self):
        self.assertGreaterEqual(self.right_share("eager"), 0.99)

    def test_forward_of_training_is_right(self):
        self.assertGreaterEqual(self.right_share("train"), 0.99)

    def test_eager_all_calls(self):
        report = self.profiled("eager").report
        self.assertGreaterEqual(self.under(report, lambda modules: modules), 0.96)  # the rest: copies to the device, casts
        found = gpu.regions(report)
        self.assertEqual(found["Model"]["occurrences"], 23)
        self.assertEqual(found["Model > model (Decoder) > model.layers.3 (Layer)"]["occurrences"], 23)

    def test_graph(self):
        report = self.profiled("graph", steps="200").report  # the weights' cast to half precision is outside: 0.5 ms
        share = self.under(report, lambda modules: modules and re.match(r"model|head", modules[-1]))
        gpu.figure("modules, CUDA graph: GPU time under a module", 100 * share, "%")
        self.assertGreaterEqual(share, 0.97)

    def test_phases_of_training(self):
        report = self.profiled("train").report
        self.assertEqual(gpu.regions(report)["optimizer step"]["occurrences"], 23)
        for name, wanted in (("modules", lambda m: m and m[0] == "Model"), ("optimizer step", lambda m: "optimizer step" in m),
                             ("backward", lambda m: "backward" in m), ("nothing", lambda m: not m)):
            gpu.figure(f"modules, training: GPU time under {name}", 100 * self.under(report, wanted), "%")

    def test_compiled(self):
        for mode in ("compile", "reduce-overhead"):
            with self.subTest(mode):
                report = self.profiled(mode).report
                gpu.figure(f"modules, {mode}: GPU time under a module", 100 * self.under(report, lambda m: m), "%")
                share = self.under(report, lambda m: m and m[-1].startswith("["))
                gpu.figure(f"modules, {mode}: GPU time under nodes of the graph", 100 * share, "%")
                print("   ", sorted((r["path"][-1] for r in report["regions"] if r["path"][-1].startswith("[")), key=len)[:12])
                self.assertGreaterEqual(share, 0.9)

    def test_dynamo_does_the_same(self):
        alone = gpu.Done([gpu.need("PyTorch", gpu.python()), f"{gpu.HERE}/modules_program.py", "dynamo", "8"])
        self.assertEqual(alone.code, 0, alone.err)
        self.assertIn("guards", alone.out)
        self.assertEqual(self.profiled("dynamo", steps="8").out, alone.out)

    def test_cost(self):
        gpu.time_left(120)
        for mode in ("eager", "graph"):
            times = {"alone": [], "off": [], "on": []}
            for _ in range(3):
                command = [gpu.need("PyTorch", gpu.python()), f"{gpu.HERE}/modules_program.py", mode, "300"]
                times["alone"].append(gpu.Done(command).out)
                for way, options in (("off", ["--modules", "off"]), ("on", [])):
                    times[way].append(self.profiled(mode, options=options, steps="300").out)
            for way, texts in times.items():
                least = min(float(re.search(r"([\d.]+) us a step", text).group(1)) for text in texts)
                gpu.figure(f"modules, {mode}, {way}", least, "us a step", "least of 3")


if __name__ == "__main__":
    unittest.main()
