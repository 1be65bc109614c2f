"""What tracing costs: figures for docs/measurements.md. All ways take turns; no case holds a time against a limit."""
import os
import re
import shutil
import unittest

import gpu

ROUNDS = int(os.environ.get("ROUNDS", "5"))


def traced(*libraries, **more):
    """The environment of a program with the injected library; libraries: CUDA beside NVTX."""
    folder = f"{gpu.OUT}/capture"
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    inject = f"{gpu.BUILD}/lib/librangescope_inject.so"
    return {"RANGESCOPE_DIR": folder, "NVTX_INJECTION64_PATH": inject, **{name: inject for name in libraries}, **more}


class Cost(unittest.TestCase):
    def turns(self, ways, pattern, rounds=ROUNDS):
        """{name: (smallest figure that the program printed, smallest wall seconds)} of ways: {name: () -> Done}."""
        best = {}
        for _ in range(rounds):
            for name, way in ways.items():
                done = way()
                self.assertEqual(done.code, 0, f"{name}: {done.err[-300:]}")
                found = float(re.search(pattern, done.out).group(1))
                figure, wall = best.get(name, (found, done.seconds))
                best[name] = (min(figure, found), min(wall, done.seconds))
        return best

    def test_launches(self):
        gpu.time_left(20 * ROUNDS)
        launch = [gpu.program("launch")]
        ways = {"nothing": lambda: gpu.Done(launch),
                "ranges": lambda: gpu.Done(launch, env=traced()),
                "traced": lambda: gpu.Done(launch, env=traced("CUDA_INJECTION64_PATH")),
                "whole": lambda: gpu.Run("cost-launch", [], launch)}
        if gpu.nsys():
            ways["nsys"] = lambda: gpu.Done([gpu.nsys(), "profile", "--trace=cuda,nvtx", "-f", "true", "-o", f"{gpu.OUT}/nsys", *launch])
        best = self.turns(ways, r"([0-9.]+) us/launch")
        for name, (us, wall) in best.items():
            gpu.figure(f"400,000 launches, {name}", us, "us a launch",
                       f"+{us - best['nothing'][0]:.2f}; {wall:.2f} s, {wall / best['nothing'][1]:.2f}x")

    def test_warm_pytorch_decode(self):
        gpu.time_left(20 * ROUNDS)
        work = [gpu.need("PyTorch", gpu.python()), f"{gpu.HERE}/work.py"]
        more = {"TOK": "32", "REPEAT": "24"}
        ways = {"nothing": lambda: gpu.Done(work, env=more),
                "ranges": lambda: gpu.Done(work, env=traced(**more)),
                "traced": lambda: gpu.Done(work, env=traced("CUDA_INJECTION64_PATH", **more))}
        best = self.turns(ways, r"decode ([0-9.]+)", min(ROUNDS, 3))
        for name, (ms, _) in best.items():
            gpu.figure(f"warm PyTorch decode, {name}", ms, "ms a token", f"{ms / best['nothing'][0]:.3f}x")
