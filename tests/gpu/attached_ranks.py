"""A job of two ranks on two GPUs that nobody prepared: `attach --tree` and `attach --rank` see their kernels, and change nothing."""
import json
import subprocess
import unittest

import gpu

STEPS = "16000"


class Ranks(unittest.TestCase):
    def start(self):
        python = gpu.need("PyTorch", gpu.python())
        command = [python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", f"{gpu.HERE}/attached_ranks_program.py", STEPS]
        with open(f"{gpu.OUT}/ranks.err", "w", encoding="utf-8") as errors:
            program = subprocess.Popen(command, cwd=gpu.OUT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, text=True)
        self.addCleanup(program.kill)
        self.assertEqual(program.stdout.readline(), "ready\n", open(f"{gpu.OUT}/ranks.err", encoding="utf-8").read()[-800:])
        return program

    def window(self, program, name, *options):
        folder = f"{gpu.OUT}/{name}"
        done = gpu.Done([f"{gpu.BUILD}/bin/rangescope", "attach", str(program.pid), "--gpu", "on", "--for", "2s", "--run-dir", folder, *options])
        self.assertEqual(done.code, 0, (done.err + done.out)[-1500:])
        with open(f"{folder}/report.json", encoding="utf-8") as file:
            report = json.load(file)
        kernels = {(region["process"], tuple(region["path"])): region["gpu"]["kernels"] for region in report["regions"] if region.get("gpu")}
        nccl = sum(kernel["calls"] for kernel in report["kernels"] if "nccl" in kernel["name"])
        gpu.figure(f"attach {name}: kernels, of NCCL", sum(kernel["calls"] for kernel in report["kernels"]), "", f"{nccl}, losses " + str([(loss["kind"], loss["count"]) for loss in report["losses"]]))
        print("    regions:", [(" > ".join(path)[-60:], count) for (_, path), count in list(kernels.items())[:12]])
        print("    processes:", [(process["name"], process.get("rank")) for process in report["processes"]][:8], "devices:", len(report["devices"]))
        self.assertNotIn("gpu_unavailable", [loss["kind"] for loss in report["losses"]])
        return report, nccl

    def test_two_ranks(self):
        alone = self.start()
        expected = alone.stdout.read()
        self.assertEqual(alone.wait(timeout=60), 0)
        program = self.start()
        both, of_both = self.window(program, "tree", "--tree")
        one, of_one = self.window(program, "rank", "--rank", "1")
        self.assertEqual(program.stdout.read(), expected)
        self.assertEqual(program.wait(timeout=60), 0)
        self.assertEqual([len(both["devices"]), len(one["devices"])], [2, 1])
        self.assertGreater(of_one, 100)
        self.assertGreater(of_both, 1.4 * of_one)  # as many on each of two


if __name__ == "__main__":
    unittest.main()
