"""Does sampling a GPU's counters hold its clocks? SM clock and kernel times with sampling off and on, in turns, idle and at work.

PM sampling is reported to lock a GPU's clocks while a session is open (pytorch 188849). One minute and a half.
"""
import os
import re
import statistics
import subprocess
import threading
import unittest

import gpu

ROUNDS = int(os.environ.get("ROUNDS", "3"))
WAYS = {"nothing": None, "sampling off": "off", "sampled at 1 kHz": "1ms", "sampled at 10 kHz": "100us"}


class Watch:
    """SM clocks in MHz, ten times a second, while the block runs."""

    def __enter__(self):
        self.smi = subprocess.Popen(["nvidia-smi", "--query-gpu=clocks.sm,clocks_throttle_reasons.active", "--format=csv,noheader,nounits", "-lms", "100"],
                                    stdout=subprocess.PIPE, text=True)
        self.lines = []
        self.reader = threading.Thread(target=lambda: self.lines.extend(self.smi.stdout))
        self.reader.start()
        return self

    def __exit__(self, *_):
        self.smi.terminate()
        self.smi.wait()
        self.reader.join()

    def clocks(self):
        return [int(line.split(",")[0]) for line in self.lines if re.match(r"\d+,", line)]


class Clocks(unittest.TestCase):
    def seen(self, command, pattern):
        """{way: (median SM clock in MHz, smallest figure that the program printed)}."""
        clocks, best = {way: [] for way in WAYS}, {}
        for _ in range(ROUNDS):
            for way, interval in WAYS.items():
                run = [] if interval is None else [f"{gpu.BUILD}/bin/rangescope", "profile", "--no-project", "-q", "--cpu", "off", "--light",
                                                   "--sample", interval, f"--runs={gpu.OUT}/runs", "--"]
                with Watch() as watch:
                    done = gpu.Done([*run, *command])
                found = re.search(pattern, done.out)
                self.assertTrue(found, f"{way}: {done.code} {done.err[-300:]}")
                clocks[way] += watch.clocks()
                best[way] = min(best.get(way, 1e9), float(found.group(1)))
        return {way: (statistics.median(clocks[way]), best[way]) for way in WAYS}

    def hold(self, name, seen, unit):
        for way, (mhz, figure) in seen.items():
            gpu.figure(f"{name}, {way}: SM clock", mhz, "MHz")
            gpu.figure(f"{name}, {way}", figure, unit)
        alone = seen["nothing"][1]
        for way, (_, figure) in seen.items():
            self.assertLess(abs(figure / alone - 1), 0.05, f"{name}, {way}: {figure} {unit}, {alone} alone")

    def test_at_work(self):
        """Kernels that read and write memory, with 5 ms of rest every ten."""
        gpu.time_left(40)
        self.hold("load", self.seen([gpu.program("load"), "400"], r"in ([0-9.]+) s"), "s")

    def test_computing(self):
        """A matrix product in bf16, whose time follows the SM clock."""
        gpu.time_left(60)
        text = ("import torch, time\na = torch.randn(8192, 8192, device='cuda', dtype=torch.bfloat16)\n"
                "for _ in range(20): a @ a\ntorch.cuda.synchronize(); t = time.time()\n"
                "for _ in range(200): a @ a\ntorch.cuda.synchronize(); print('RESULT', (time.time() - t) / 200 * 1e3)")
        self.hold("product", self.seen([gpu.need("PyTorch", gpu.python()), "-c", text], r"RESULT ([0-9.]+)"), "ms")

    def test_idle(self):
        """A program that does nothing: the GPU rests, unless a session keeps it awake. No limit."""
        gpu.time_left(30)
        seen = self.seen(["sh", "-c", "sleep 1.5; echo 1"], r"(\d+)")
        for way, (mhz, _) in seen.items():
            gpu.figure(f"idle, {way}: SM clock", mhz, "MHz")
