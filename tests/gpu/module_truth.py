"""Modules that rangescope found by itself, held against the ranges that a program opened (module_ranges.py)."""
import unittest

import gpu


def dotted(name):
    """'model.layers.0.mlp' of 'model.layers.0.mlp (Mlp)'."""
    return name.split(" (")[0]


class Case(unittest.TestCase):
    program = ""  # beside this file; its first argument is a mode, its second the number of steps

    def profiled(self, mode, *words, options=(), steps="20", ranks=1):
        """A run of the program; with `ranks`, under torchrun on as many GPUs."""
        python = gpu.need("PyTorch", gpu.python())
        if ranks > 1 and int(gpu.Done([python, "-c", "import torch; print(torch.cuda.device_count())"]).out) < ranks:
            self.skipTest(f"no {ranks} GPUs on this machine")
        launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"] if ranks > 1 else []
        run = gpu.Run(f"{self.program.split('_')[0]}-{'-'.join([mode, *words])}", ["--cpu", "off", "--sample", "off", *options],
                      [python, *launcher, f"{gpu.HERE}/{self.program}", mode, steps, *words], limit=300)
        self.assertEqual(run.code, 0, run.err)
        self.assertEqual([loss for loss in run.report["losses"] if loss["kind"] == "gpu_partial"], [])
        return run

    def own_time(self, report):
        """Nanoseconds of kernels by the modules of a path, outermost first, and by the ranges of the program before them."""
        out = []
        marked = {tuple(r["path"]) for r in report["regions"] if r.get("module")}
        for region in report["regions"]:
            if region["process"] is not None or not region["gpu"] or not region["gpu"]["exclusive_kernel_ns"]:
                continue
            parts = [tuple(region["path"][:i + 1]) for i in range(len(region["path"]))]
            out.append(([p[-1] for p in parts if p in marked], [p[-1] for p in parts if p not in marked],
                        region["gpu"]["exclusive_kernel_ns"]))
        return out

    def under(self, report, wanted):
        total = report["total"]["kernel_ns"]
        return sum(ns for modules, _, ns in self.own_time(report) if wanted(modules)) / total

    def right_share(self, mode, word="forward", **more):
        right = wrong = 0
        for modules, ranges, ns in self.own_time(self.profiled(mode, word, **more).report):
            if not ranges:
                continue
            if modules and dotted(modules[-1]) == ranges[-1]:
                right += ns
            else:
                wrong += ns
                print("    not so:", ranges[-1:], modules[-1:], ns)
        self.assertGreater(right, 0)
        gpu.figure(f"{self.program.split('_')[0]}, {mode}: GPU time under the right module", 100 * right / (right + wrong), "%")
        return right / (right + wrong)

    def check_backward(self, name, report):
        """By time of each module: what the engine does between two functions, adding gradients, is in no range of the program."""
        true, seen = {}, {}
        for region in report["regions"]:
            if region["process"] is not None:
                continue
            ns = region["gpu"]["exclusive_kernel_ns"] if region["gpu"] else 0
            if region["domain"] == "nn.Module" and region["path"][0] == "backward":
                module = dotted(region["path"][-1]).removeprefix("module.")  # below DistributedDataParallel
                seen[module] = seen.get(module, 0) + ns
            elif not region["domain"] and not region.get("module"):
                true[region["path"][-1]] = true.get(region["path"][-1], 0) + ns
        print("   ", [note for note in report["notes"] if "backward" in note])
        right = sum(min(ns, seen.get(module, 0)) for module, ns in true.items())
        for module in sorted(true, key=lambda module: abs(true[module] - seen.get(module, 0)), reverse=True)[:8]:
            print("    ", module, true[module], seen.get(module, 0))
        gpu.figure(f"{name}, backward: GPU time under the right module", 100 * right / sum(true.values()), "%")
        self.assertGreaterEqual(right / sum(true.values()), 0.9)
