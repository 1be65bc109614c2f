"""Windows of a decoding server: they hold the GPU's work, and what they cost the tokens in and between them."""
import json
import re
import subprocess
import time
import unittest

import gpu


class Windows(unittest.TestCase):
    def served(self, *options, seconds=12, windows=0):
        """Report (None without windows), {"tokens", "median", "p99", "longest"}; times in us."""
        folder = f"{gpu.OUT}/windows-{len(options)}-{windows}"
        command = [gpu.need("PyTorch", gpu.python()), f"{gpu.HERE}/windows_program.py", str(seconds)]
        if options:
            command = [f"{gpu.BUILD}/bin/rangescope", "profile", "--no-project", "-q", "--run-dir", folder, *options, "--", *command]
        with open(f"{folder}.err", "w", encoding="utf-8") as errors, \
                subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, cwd=gpu.OUT) as program:
            self.assertEqual(program.stdout.readline(), "ready\n", open(f"{folder}.err", encoding="utf-8").read())
            for _ in range(windows):
                for what in ("start", "stop"):
                    done = gpu.Done([f"{gpu.BUILD}/bin/rangescope", "ctl", folder, what])
                    self.assertEqual(done.code, 0, done.err)
                    time.sleep(0.03)
            line = [text for text in program.stdout.read().splitlines() if text.startswith("tokens")][0]
        nothing = 80 if options and not windows else 0  # no window was opened
        self.assertEqual(program.returncode, nothing, open(f"{folder}.err", encoding="utf-8").read()[-600:])
        report = None
        if windows:
            done = gpu.Done([f"{gpu.BUILD}/bin/rangescope", "report", folder, "-f", "json"])
            self.assertEqual(done.code, 0, done.err)
            report = json.loads(done.out)
        return report, {name: float(number) for name, number in re.findall(r"(\w+) ([\d.]+)", line)}

    def test_windows_of_a_server(self):
        gpu.time_left(120)
        _, alone = self.served()
        _, dormant = self.served("--stopped", "--cpu", "off")
        report, watched = self.served("--stopped", "--cpu", "off", seconds=25, windows=100)
        for name, times in (("alone", alone), ("dormant", dormant), ("100 windows", watched)):
            for number in ("median", "p99", "longest"):
                gpu.figure(f"windows, between tokens, {name}, {number}", times[number], "us")
        self.assertEqual(len(report["run"]["windows"]), 100)
        decode, sample = gpu.regions(report)["decode"], gpu.regions(report)["decode > sample"]
        gpu.figure("windows, occurrences of decode in 100 windows", decode["occurrences"], "", f"of {watched['tokens']:.0f} tokens")
        print("    losses:", [(loss["kind"], loss["count"]) for loss in report["losses"]])
        # Whole ones have all kernels: of the graph at the median, the eager ones on the mean, but for the two edges of each window.
        self.assertGreaterEqual(decode["gpu"]["graph_kernels"] / 32, decode["occurrences"] - 200)
        self.assertLessEqual(decode["gpu"]["graph_kernels"] / 32, decode["occurrences"] + 200)
        self.assertGreater(sample["gpu"]["kernels"], 0)
        self.assertLess(dormant["p99"], alone["p99"] * 1.1)

    def test_windows_after_idleness(self):
        """Each window holds all the work of a GPU that did nothing for 20 s before."""
        windows = 15
        gpu.time_left(windows * 22)
        folder = f"{gpu.OUT}/windows-idle"
        rangescope = f"{gpu.BUILD}/bin/rangescope"
        program = [gpu.need("PyTorch", gpu.python()), f"{gpu.HERE}/idle_program.py"]
        with subprocess.Popen([rangescope, "profile", "--no-project", "-q", "--run-dir", folder, "--stopped", "--", *program],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=gpu.OUT) as server:
            self.assertEqual(server.stdout.readline(), "ready\n")
            for _ in range(windows):
                self.assertEqual(gpu.Done([rangescope, "ctl", folder, "start"]).code, 0)
                server.stdin.write("work\n")
                server.stdin.flush()
                self.assertEqual(server.stdout.readline(), "done\n")
                self.assertEqual(gpu.Done([rangescope, "ctl", folder, "stop"]).code, 0)
                time.sleep(20)
            server.stdin.close()
        self.assertEqual(server.returncode, 0)
        report = json.loads(gpu.Done([rangescope, "report", folder, "-f", "json"]).out)
        burst = gpu.regions(report)["burst"]
        self.assertEqual((burst["occurrences"], burst["gpu"]["kernels"]), (windows, 500 * windows))
        lost = [loss for loss in report["losses"] if loss["kind"] not in ("python_late", "memory_not_recorded")]
        self.assertEqual(lost, [])


if __name__ == "__main__":
    unittest.main()
