"""Occurrences and kernels of every range, as the program itself counted them."""
import json
import os
import unittest

import gpu


class Counted(unittest.TestCase):
    def holds(self, run, truth):
        found = gpu.regions(run.report)
        for path, count in truth.items():
            if path == "(none)":
                continue
            with self.subTest(path):
                region = found.get(path)
                self.assertIsNotNone(region, "no such region")
                self.assertEqual([region["occurrences"], (region["gpu"] or {"kernels": 0})["kernels"]],
                                 [count["occurrences"], count["kernels"]])

    def test_zoo(self):
        run = gpu.Run("truth-zoo", [], [gpu.program("zoo")])
        self.assertEqual(run.code, 0, run.err)
        with open(f"{gpu.ROOT}/tests/golden/native-gpu/zoo.truth.json", encoding="utf-8") as f:
            self.assertEqual(run.out, f.read(), "the program's output has changed under the profiler")
        self.holds(run, json.loads(run.out))

    def test_zoo_with_graphs_whole(self):
        run = gpu.Run("truth-graph", [], [gpu.program("zoo")], env={"RANGESCOPE_CUDA_GRAPHS": "graph"})
        self.assertEqual(run.code, 0, run.err)
        self.assertGreater(gpu.regions(run.report)["graph_replay"]["gpu"]["graph_launches"], 0)

    def test_several_gpus_contexts_and_captures(self):
        run = gpu.Run("truth-several", [], [gpu.program("several")])
        self.assertEqual(run.code, 0, run.err)
        self.holds(run, json.loads(run.out))


class PyTorch(unittest.TestCase):
    def run_script(self, name, **env):
        run = gpu.Run(f"torch-{name}", [], [gpu.need("PyTorch", gpu.python()), f"{gpu.HERE}/{name}.py"], env=env)
        self.assertEqual(run.code, 0, run.err)
        return gpu.regions(run.report)

    def test_backward_belongs_to_its_range(self):
        found = self.run_script("autograd")
        for path in ("step", "step > forward", "step > backward", "step > optimizer"):
            self.assertEqual(found[path]["occurrences"], 5, path)
            self.assertGreater(found[path]["gpu"]["kernels"], 0, path)
        inside = sum(found[f"step > {name}"]["gpu"]["kernels"] for name in ("forward", "backward", "optimizer"))
        self.assertEqual(found["step"]["gpu"]["kernels"], inside)

    def test_spawned_processes(self):
        found = self.run_script("mp")
        for rank in (0, 1):
            self.assertEqual(found[f"rank{rank}_step"]["occurrences"], 4)
            self.assertGreaterEqual(found[f"rank{rank}_step > forward"]["gpu"]["kernels"], 8)

    def test_ddp(self):
        found = self.run_script("ddp", STEPS="10", NCCL_NVLS_ENABLE=os.environ.get("NCCL_NVLS_ENABLE", "0"))
        self.assertEqual(found["step"]["occurrences"] % 10, 0)
        self.assertGreater(found["step > backward"]["gpu"]["kernels"], 0)
        if found["step"]["occurrences"] > 10:  # a single rank has nobody to send to
            self.assertGreater(found["step > all_reduce"]["gpu"]["kernels"], 0)
