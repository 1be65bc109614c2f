"""A program of PyTorch that nobody prepared: `attach PID` gives its kernels under its modules, and leaves it as it was."""
import glob
import json
import shutil
import signal
import subprocess
import time
import unittest

import gpu


class Attached(unittest.TestCase):
    def setUp(self):
        self.program = subprocess.Popen([gpu.need("PyTorch", gpu.python()), f"{gpu.HERE}/modules_program.py", "eager", "1000000"], cwd=gpu.OUT,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        for _ in range(600):  # its steps take some milliseconds: it is in them when it has used so much CPU
            with open(f"/proc/{self.program.pid}/maps", encoding="utf-8") as file:
                if "libcublasLt" in file.read():
                    break
            time.sleep(0.1)
        time.sleep(5)

    def tearDown(self):
        self.program.kill()
        self.program.communicate()

    def attach(self, name, *options):
        folder = f"{gpu.OUT}/{name}"
        shutil.rmtree(folder, ignore_errors=True)
        done = gpu.Done([f"{gpu.BUILD}/bin/rangescope", "attach", str(self.program.pid), "--run-dir", folder, *options])
        self.assertEqual(done.code, 0, done.err)
        with open(f"{folder}/report.json", encoding="utf-8") as file:
            return json.load(file), done

    def left(self):
        with open(f"/proc/{self.program.pid}/maps", encoding="utf-8") as file:
            captures = [line for line in file if gpu.OUT in line and "librangescope" not in line]
        named = []
        for comm in glob.glob(f"/proc/{self.program.pid}/task/*/comm"):
            with open(comm, encoding="utf-8") as file:
                named.append(file.read().strip())
        return len(named), captures

    def test_its_kernels_stand_under_its_modules(self):
        before = self.left()
        rates = []
        for number in (1, 2, 3):  # from the second on the library is there
            report, done = self.attach(f"attach-{number}", "--gpu", "on", "--for", "3s")
            self.assertEqual(report["run"]["attached"]["pid"], self.program.pid)
            self.assertNotIn("gpu_unavailable", [loss["kind"] for loss in report["losses"]], done.err)
            modules = [region for region in report["regions"] if region["process"] is None and region.get("module") and region["gpu"]]
            own = sum(region["gpu"]["exclusive_kernel_ns"] or 0 for region in modules)
            whole = report["total"]["kernel_ns"]
            gpu.figure(f"attach {number}: GPU time under modules", 100 * own / whole, "%")
            self.assertGreater(own / whole, 0.9)
            self.assertIn("model.layers.3.mlp", " ".join(region["path"][-1] for region in modules))
            rates.append(sum(region["gpu"]["kernels"] for region in modules if len(region["path"]) == 1))
            after = self.left()
            self.assertEqual(after[1], [])
            gpu.figure(f"attach {number}: threads more than before", after[0] - before[0], "threads", "CUPTI's own")
            if number == 1:
                first = after[0]
            self.assertLessEqual(after[0], first)
        self.assertGreater(min(rates), max(rates) / 2, rates)
        self.assertIsNone(self.program.poll())

    def test_it_goes_on_where_rangescope_is_killed(self):
        self.attach("attach-before", "--gpu", "on", "--for", "500ms")
        threads = self.left()[0]
        for number in range(10):
            tool = subprocess.Popen([f"{gpu.BUILD}/bin/rangescope", "attach", str(self.program.pid), "--gpu", "on", "--run-dir", f"{gpu.OUT}/attach-killed-{number}"],
                                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(0.2 + 0.1 * number)
            tool.send_signal(signal.SIGKILL)
            tool.wait()
            for _ in range(100):
                if self.left()[0] <= threads:
                    break
                time.sleep(0.05)
            self.assertLessEqual(self.left()[0], threads)
            self.assertIsNone(self.program.poll())
            shutil.rmtree(f"{gpu.OUT}/attach-killed-{number}", ignore_errors=True)
        report, _ = self.attach("attach-after", "--gpu", "on", "--for", "1s")
        self.assertGreater(report["total"]["kernels"], 0)
