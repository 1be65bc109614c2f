"""Models that people run, as their libraries have them: transformers' Llama, timm's ResNet, loops of Lightning and Accelerate, JAX."""
import unittest

import gpu
import module_truth

JAX = """
import jax, jax.numpy as jnp
step = jax.jit(lambda x, w: jnp.tanh(x @ w).sum())
for size in (256, 512):
    x = jnp.ones((size, size))
    for _ in range(5):
        step(x, x).block_until_ready()
"""


class KnownModels(module_truth.Case):
    program = "models_program.py"

    def kernels(self, report):
        """Number and time of the kernels of each module: its path's last name of either the report's modules or the program's ranges."""
        out = {}
        for region in report["regions"]:
            if region["process"] is None and region["gpu"] and region["gpu"]["exclusive_kernels"]:
                out[module_truth.dotted(region["path"][-1])] = (region["gpu"]["exclusive_kernels"], region["gpu"]["exclusive_kernel_ns"])
        return out

    def occurrences(self, report, last):
        return sum(r["occurrences"] for r in report["regions"] if r["process"] is None and r["path"][-1] == last)

    def test_llama(self):
        self.assertGreaterEqual(self.right_share("llama"), 0.99)

    def test_llama_in_training(self):
        self.assertGreaterEqual(self.right_share("llama-train"), 0.99)
        self.check_backward("models, llama", self.profiled("llama-train", "backward").report)

    def test_llama_generates(self):
        self.assertGreaterEqual(self.right_share("llama-generate"), 0.99)
        report = self.profiled("llama-generate", steps="20").report
        self.assertEqual([self.occurrences(report, name) for name in ("generate", "prefill", "decode step")], [1, 1, 19])
        self.assertGreaterEqual(self.under(report, lambda m: "prefill" in m or "decode step" in m), 0.97)

    def test_static_cache_and_graphs(self):
        self.assertGreaterEqual(self.right_share("llama-static"), 0.99)
        graph = self.profiled("llama-graph").report
        self.assertGreaterEqual(self.under(graph, lambda m: m and m[0] == "LlamaForCausalLM"), 0.9)
        one, replayed = self.kernels(self.profiled("llama-static").report), self.kernels(graph)
        equal = sum(ns for module, (count, ns) in replayed.items() if one.get(module, (0, 0))[0] == count)
        for module in sorted(set(one) | set(replayed)):
            if one.get(module, (0, 0))[0] != replayed.get(module, (0, 0))[0]:
                print("    not so:", module, one.get(module), replayed.get(module))
        share = equal / graph["total"]["kernel_ns"]
        gpu.figure("models, llama-graph: GPU time of modules with as many kernels as without a graph", 100 * share, "%")
        self.assertGreaterEqual(share, 0.97)

    def test_static_cache_compiled(self):
        report = self.profiled("llama-compiled", steps="32").report
        inside = lambda m: "decode step" in m  # noqa: E731
        all_of_it = self.under(report, inside)
        for what, wanted in (("a module", lambda m: "LlamaForCausalLM" in m), ("nodes of the graph", lambda m: m[-1].startswith("["))):
            share = self.under(report, lambda m, wanted=wanted: inside(m) and wanted(m)) / all_of_it
            gpu.figure(f"models, llama-compiled: GPU time of decode steps under {what}", 100 * share, "%")
        left = sorted((-ns, modules) for modules, _, ns in self.own_time(report) if inside(modules) and not modules[-1].startswith("["))
        print("   ", *left[:12], sep="\n    ")
        self.assertGreaterEqual(share, 0.9)

    def test_resnet(self):
        self.assertGreaterEqual(self.right_share("resnet"), 0.99)
        self.check_backward("models, resnet", self.profiled("resnet", "backward").report)

    def test_adapters(self):
        self.assertGreaterEqual(self.right_share("llama-lora"), 0.99)
        self.check_backward("models, llama-lora", self.profiled("llama-lora", "backward").report)

    def test_checkpoints(self):
        report = self.profiled("llama-checkpoints").report
        again = [r for r in report["regions"] if r["process"] is None and r["path"][0] == "backward" and r["gpu"]
                 and module_truth.dotted(r["path"][-1]).endswith("mlp.act_fn")]
        self.assertEqual({r["occurrences"] for r in again}, {20})  # kernels of the forward and of the backward pass
        self.assertGreaterEqual(self.under(report, lambda m: m), 0.99)

    def test_bert(self):
        self.assertGreaterEqual(self.right_share("bert"), 0.99)

    def test_vit(self):
        self.assertGreaterEqual(self.right_share("vit"), 0.99)
        self.check_backward("models, vit", self.profiled("vit", "backward").report)

    def test_sharded(self):
        report = self.profiled("fsdp", ranks=2).report
        self.assertGreaterEqual(self.under(report, lambda m: m), 0.9)  # collectives are launched by callbacks too
        collectives = [r for r in report["regions"] if r["process"] is None and r["domain"] == "nn.Module" and len(r["path"]) > 1
                       and r["gpu"] and r["gpu"]["nccl_kernels"]]
        self.assertEqual(collectives, [])  # sums of gradients are of no module

    def test_lightning(self):
        report = self.profiled("lightning", steps="10").report
        for name in ("training step", "validation step", "optimizer step"):
            self.assertEqual(self.occurrences(report, name), 10, name)
        self.assertGreaterEqual(self.under(report, lambda m: m), 0.9)

    def test_accelerate(self):
        report = self.profiled("accelerate", steps="10").report
        self.assertEqual(self.occurrences(report, "optimizer step"), 10)
        self.assertGreaterEqual(self.under(report, lambda m: m), 0.9)

    def test_jax(self):
        run = gpu.Run("models-jax", ["--sample", "off"], [gpu.need("JAX", gpu.python()), "-c", JAX], limit=120)
        self.assertEqual(run.code, 0, run.err)
        found = {" > ".join(r["path"]): r for r in run.report["regions"] if r["process"] is None and r["depth"] < 3}
        for path, region in found.items():
            print("   ", region["domain"], path, region["occurrences"], region["gpu"] and region["gpu"]["kernels"])
        self.assertEqual(self.occurrences(run.report, "XlaCompile: jit__lambda"), 2)



if __name__ == "__main__":
    unittest.main()
