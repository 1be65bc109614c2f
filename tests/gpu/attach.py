"""Programs that nobody prepared: `attach PID` counts their work on the GPU as they do themselves, and leaves them as they were.

A CUDA program in C++ that checks itself (attached.cu), an HTTP service of PyTorch (attached_server.py), and a server that replays a
CUDA graph (windows_program.py).
"""
import glob
import json
import re
import shutil
import signal
import statistics
import subprocess
import time
import unittest
import urllib.request

import gpu


class Attached(unittest.TestCase):
    def begin(self, *command):
        with open(f"{gpu.OUT}/attached.err", "w", encoding="utf-8") as errors:
            self.program = subprocess.Popen(command, cwd=gpu.OUT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True)
        self.addCleanup(self.end)
        return self.program.stdout.readline().strip()

    def end(self):
        self.program.kill()
        self.program.wait()
        self.program.stdout.close()

    def tool(self, name, *options):
        """attach that runs: returns when the window is open."""
        self.folder = f"{gpu.OUT}/{name}"
        shutil.rmtree(self.folder, ignore_errors=True)
        self.began = time.time()
        self.running = subprocess.Popen([f"{gpu.BUILD}/bin/rangescope", "attach", str(self.program.pid), "--gpu", "on", "--run-dir", self.folder, *options],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        told = self.running.stderr.readline()
        while told and "attached to process" not in told:
            print("    told:", told.strip())
            told = self.running.stderr.readline()
        if "attached to process" not in told:
            self.fail(f"code {self.running.wait()}; its threads: {self.threads()}")
        return time.time() - self.began

    def threads(self):
        """What each thread waits in."""
        found = []
        for folder in glob.glob(f"/proc/{self.program.pid}/task/*"):
            with open(f"{folder}/comm", encoding="utf-8") as comm, open(f"{folder}/syscall", encoding="utf-8") as call:
                found.append(f"{comm.read().strip()}: {call.read().strip()}")
        return found

    def over(self, signaled=True):
        """The report of the window, which a signal ends, unless it ends by itself."""
        if signaled:
            self.running.send_signal(signal.SIGINT)
        _, told = self.running.communicate(timeout=60)
        self.assertEqual(self.running.returncode, 0, told)
        with open(f"{self.folder}/report.json", encoding="utf-8") as file:
            report = json.load(file)
        print("    losses:", [(loss["kind"], loss["count"], loss["detail"][-90:]) for loss in report["losses"]])
        self.assertNotIn("gpu_unavailable", [loss["kind"] for loss in report["losses"]], told)
        # What was under way when the window opened has no call.
        self.assertLess(sum(loss["count"] for loss in report["losses"] if loss["kind"] == "gpu_work_without_call"), 5000, told)
        self.assertTrue(all(device["name"] and device["sm_count"] for device in report["devices"]), report["devices"])
        return report

    def left(self):
        """Threads, descriptors, and files of ours that are mapped beside the library."""
        with open(f"/proc/{self.program.pid}/maps", encoding="utf-8") as file:
            captures = [line for line in file if gpu.OUT in line and "librangescope" not in line and "/attached" not in line]
        return len(glob.glob(f"/proc/{self.program.pid}/task/*")), len(glob.glob(f"/proc/{self.program.pid}/fd/*")), captures

    def threads_come_down_to(self, most):
        for _ in range(100):
            if self.left()[0] <= most:
                break
            time.sleep(0.05)
        self.assertLessEqual(self.left()[0], most)


class Cuda(Attached):
    def ask(self, command):
        self.program.stdin.write(f"{command}\n")
        self.program.stdin.flush()
        return self.program.stdout.readline().strip()

    def us(self, times=3):
        """Of a launch, in the fastest of some bursts."""
        return min(float(re.search(r"([\d.]+) us", self.ask("burst 20000")).group(1)) for _ in range(times))

    def count(self):
        return int(self.ask("count").split()[1])

    def test_kernels_are_those_that_the_program_counted(self):
        self.assertEqual(self.begin(gpu.program("attached")), "ready")
        before, alone = self.left(), self.us()
        for number, kernels, replays in ((1, 1000, 0), (2, 777, 0), (3, 500, 50)):
            took = self.tool(f"attach-cuda-{number}")
            gpu.figure(f"C++, attach {number}: until the window is open", took * 1e3, "ms")
            self.ask(f"burst {kernels}")
            if replays:
                self.ask(f"replay {replays}")
            report = self.over()
            gpu.figure(f"C++, attach {number}: kernels", report["total"]["kernels"], f"of {kernels + 10 * replays}",
                       f"copies {report['total'].get('copies')}")
            after = self.left()
            gpu.figure(f"C++, attach {number}: threads, descriptors more than before", after[0] - before[0], "threads",
                       f"{after[1] - before[1]} descriptors, maps {after[2]}")
            self.assertEqual(report["total"]["kernels"], kernels + 10 * replays)
            self.assertEqual(after[2], [])
        self.tool("attach-cuda-cost")
        watched = self.us()
        self.over()
        gpu.figure("C++, alone", alone, "us a launch")
        gpu.figure("C++, attached", watched, "us a launch")
        gpu.figure("C++, after it", self.us(), "us a launch", "least of 3 bursts of 20,000")
        self.assertEqual(self.ask("busy"), "busy")  # and while it launches without pause
        for number in (1, 2):
            began = self.count()
            self.tool(f"attach-cuda-busy-{number}")
            opened = self.count()
            time.sleep(1)
            closing = self.count()
            report = self.over()
            ended = self.count()
            kernels = report["total"]["kernels"]
            gpu.figure(f"C++, busy, window {number}: kernels", kernels, "", f"at least {closing - opened}, at most {ended - began}")
            self.assertGreaterEqual(kernels, closing - opened)
            self.assertLessEqual(kernels, ended - began)
        self.assertEqual(self.ask("idle"), "idle")
        self.program.stdin.close()
        self.assertRegex(self.program.stdout.readline(), r"^right \d+$")
        self.assertEqual(self.program.wait(timeout=30), 0)


class PyTorch(Attached):
    def ask(self, times):
        """Answers: all the same sum. The median of their microseconds."""
        answers = []
        for _ in range(times):
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/", timeout=60) as asked:
                answers.append(json.load(asked))
        self.sums |= {answer["sum"] for answer in answers}
        return statistics.median(answer["us"] for answer in answers)

    def server(self):
        self.sums = set()
        self.port = int(self.begin(gpu.need("PyTorch", gpu.python()), f"{gpu.HERE}/attached_server.py"))
        self.ask(20)

    def test_a_service(self):
        self.server()
        before, alone, each = self.left(), self.ask(200), []
        for number, requests in ((1, 25), (2, 40), (3, 200)):  # from the second on the library is there
            gpu.figure(f"service, attach {number}: until the window is open", self.tool(f"attach-service-{number}") * 1e3, "ms")
            watched = self.ask(requests)
            report = self.over()
            self.assertEqual(report["run"]["attached"]["pid"], self.program.pid)
            each.append(report["total"]["kernels"] / requests)
            modules = [region for region in report["regions"] if region["process"] is None and region.get("module") and region["gpu"]]
            own = sum(region["gpu"]["exclusive_kernel_ns"] or 0 for region in modules)
            gpu.figure(f"service, attach {number}: GPU time under modules", 100 * own / (report["total"]["kernel_ns"] or 1), "%",
                       f"{each[-1]} kernels a request")
            after = self.left()
            gpu.figure(f"service, attach {number}: threads, descriptors more than before", after[0] - before[0], "threads",
                       f"{after[1] - before[1]} descriptors")
            self.assertEqual(after[2], [])
            self.assertIn("layers.3", " ".join(part for region in modules for part in region["path"]))
            self.assertGreater(own / report["total"]["kernel_ns"], 0.85)
        gpu.figure("service, alone", alone, "us a request")
        gpu.figure("service, attached", watched, "us a request")
        gpu.figure("service, after it", self.ask(200), "us a request", "median of 200")
        self.assertEqual(len(set(each)), 1, each)
        self.assertEqual(each[0], int(each[0]))
        self.assertGreaterEqual(each[0], 8 * 4)  # two products, relu and sum a layer
        self.assertEqual(len(self.sums), 1)

    def test_it_goes_on_where_rangescope_is_killed(self):
        self.server()
        self.tool("attach-before", "--for", "500ms")
        self.over(signaled=False)
        threads = self.left()[0]
        for number in range(10):
            tool = subprocess.Popen([f"{gpu.BUILD}/bin/rangescope", "attach", str(self.program.pid), "--gpu", "on", "--run-dir",
                                     f"{gpu.OUT}/attach-killed-{number}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            self.ask(5)
            time.sleep(0.05 * number)
            tool.send_signal(signal.SIGKILL)
            tool.wait()
            self.ask(20)
            self.threads_come_down_to(threads)
            self.assertIsNone(self.program.poll())
            shutil.rmtree(f"{gpu.OUT}/attach-killed-{number}", ignore_errors=True)
        self.tool("attach-after")
        self.ask(10)
        self.assertGreater(self.over()["total"]["kernels"], 0)
        self.assertEqual(len(self.sums), 1)

    def decoded(self, seconds, cycles=0):
        self.assertEqual(self.begin(gpu.need("PyTorch", gpu.python()), f"{gpu.HERE}/windows_program.py", str(seconds)), "ready")
        kernels = []
        for number in range(cycles):
            self.tool(f"attach-decode-{number % 2}", "--for", "100ms")
            kernels.append(self.over(signaled=False)["total"]["kernels"])
        line = [text for text in self.program.stdout if text.startswith("tokens")][0]
        self.assertEqual(self.program.wait(timeout=30), 0)
        return kernels, {name: float(number) for name, number in re.findall(r"(\w+) ([\d.]+)", line)}

    def test_a_server_that_decodes_by_a_graph_made_before(self):
        _, alone = self.decoded(4)
        kernels, watched = self.decoded(20, cycles=8)
        print("    kernels in 100 ms each:", kernels)
        for number in ("median", "p99", "longest"):
            gpu.figure(f"between tokens, {number}", watched[number], "us", f"with 8 attaches; {alone[number]:.0f} alone")
        self.assertGreater(min(kernels), 1000)
