"""What tracing costs beside the least that it can, and the way to pay less: --light. Two minutes."""
import os
import subprocess

import cost
import gpu

ROUNDS = int(os.environ.get("ROUNDS", "3"))


def floor():
    """tests/gpu/floor.cpp as a library."""
    path = f"{gpu.OUT}/libfloor.so"
    include = next((f for f in ("/usr/local/cuda/include", "/usr/local/cuda/extras/CUPTI/include", os.environ.get("CUPTI_INCLUDE", ""))
                    if os.path.exists(f"{f}/cupti.h")), None)
    gpu.need("cupti.h", include)
    subprocess.run(["g++", "-O2", "-std=c++17", "-shared", "-fPIC", f"-I{include}", "-I/usr/local/cuda/include", f"{gpu.HERE}/floor.cpp", "-o",
                    path, "-ldl"], check=True)
    return path


class Light(cost.Cost):
    # Not those of the base.
    test_launches = test_warm_pytorch_decode = None

    def costs(self, name, command, pattern, unit, env, rounds):
        library = floor()
        run = [f"{gpu.BUILD}/bin/rangescope", "profile", "--no-project", "-q", "--cpu", "off"]
        ways = {"nothing": lambda: gpu.Done(command, env=env),
                "floor": lambda: gpu.Done(command, env={"CUDA_INJECTION64_PATH": library, **env}),
                "traced": lambda: gpu.Done(command, env=cost.traced("CUDA_INJECTION64_PATH", **env)),
                "light": lambda: gpu.Done([*run, "--light", f"--runs={gpu.OUT}/runs", "--", *command], env=env)}
        self.assertRegex(ways["floor"]().err, r"floor: [1-9]\d* kernels")
        best = {way: figure for way, (figure, _) in self.turns(ways, pattern, rounds).items()}
        for way, figure in best.items():
            gpu.figure(f"{name}, {way}", figure, unit, f"+{figure - best['nothing']:.3g}, {figure / best['nothing']:.4f}x")
        gpu.figure(f"{name}, added by tracing over added by the floor", (best["traced"] - best["nothing"]) / max(best["floor"] - best["nothing"], 1e-9),
                   "", "(goal 1.15)")

    def test_what_launches_cost(self):
        gpu.time_left(50)
        self.costs("launches", [gpu.program("launch")], r"([0-9.]+) us/launch", "us", {}, ROUNDS)

    def test_what_a_warm_decoder_costs(self):
        gpu.time_left(60)
        work = [gpu.need("PyTorch", gpu.python()), f"{gpu.HERE}/work.py"]
        self.costs("decoder", work, r"decode ([0-9.]+)", "ms a token", {"TOK": "32", "REPEAT": "8"}, 1)

    def test_where_the_rest_goes(self):
        """What of rangescope's requests costs launches how much, each beside the floor; and ranges alone. No case has a limit."""
        gpu.time_left(60)
        library, launch = floor(), [gpu.program("launch")]
        ways = {"nothing": lambda: gpu.Done(launch), "ranges": lambda: gpu.Done(launch, env=cost.traced())}
        for more in ("", "kinds", "calls", "calls tid", "clock", "resource", "zeroed", "kinds calls tid clock resource zeroed"):
            ways[f"floor {more}".strip()] = lambda more=more: gpu.Done(launch, env={"CUDA_INJECTION64_PATH": library, "FLOOR": more})
        ways["floor and ranges"] = lambda: gpu.Done(launch, env={**cost.traced(), "CUDA_INJECTION64_PATH": library})
        ways["traced"] = lambda: gpu.Done(launch, env=cost.traced("CUDA_INJECTION64_PATH"))
        ways["traced, no flushing thread"] = lambda: gpu.Done(launch, env=cost.traced("CUDA_INJECTION64_PATH", RANGESCOPE_FLUSH_INTERVAL="0"))
        best = {way: figure for way, (figure, _) in self.turns(ways, r"([0-9.]+) us/launch", ROUNDS).items()}
        for way, figure in best.items():
            gpu.figure(f"launches, {way}", figure, "us", f"+{figure - best['nothing']:.3g}, {figure - best['floor']:+.3g} to the floor")

    def test_light_says_what_the_timeline_says(self):
        gpu.time_left(20)
        launch = [gpu.program("launch"), "4000"]
        whole, light = gpu.Run("whole", ["--sample", "1ms", "--cpu", "off"], launch), gpu.Run("light", ["--light", "--sample", "1ms", "--cpu", "off"], launch)
        self.assertEqual((whole.code, light.code), (0, 0), light.err[-400:])
        self.assertEqual([f for f in os.listdir(f"{light.folder}/native") if f.endswith(".gpu")], [])
        step, same = gpu.regions(light.report)["step"], gpu.regions(whole.report)["step"]
        self.assertIsNone(step["gpu"])
        active, busy = step["metrics"]["gpu_active"], same["gpu"]["busy_ns"] / same["wall_ns"]["inclusive"]
        gpu.figure("GPU active of steps, light", active.get("value", -1), "", f"{active.get('absent', '')} busy by the timeline {busy:.3f}")
        for device in light.report["sampled"]:
            print(f"    {device['source']}: {device['clock']}")
        self.assertNotIn("absent", active)
