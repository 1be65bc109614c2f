#!/usr/bin/env python3
"""Truth for the reader of PyTorch traces, recorded on a machine with a GPU and PyTorch 2.11.

    kineto.py RANGESCOPE OUT
    kineto.py --compare RANGESCOPE OUT      what stands in OUT, without a GPU (tests/golden/kineto)

Runs a training step and a decode under torch.profiler, and once more under rangescope; writes into OUT
  step.json.gz      the trace of torch.profiler, with shapes
  averages.json     key_averages() by name and by name and shapes: calls, CPU and device times in nanoseconds
  kernels.json      kernels of each record_function range, as `rangescope profile` counted them of NVTX ranges
and compares what `rangescope report step.json.gz -f json` says with both. Prints one line a difference, then PASS or
FAIL. Three minutes. The file is its own workload: `kineto.py --work FILE` runs it under the profiler."""
import gzip
import itertools
import json
import os
import subprocess
import sys


def work(trace):
    import torch
    from torch.profiler import ProfilerActivity, profile, record_function

    torch.manual_seed(0)
    nvtx = torch.cuda.nvtx
    model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 64)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    class both:
        """One range under both profilers."""

        def __init__(self, name):
            self.name, self.record = name, record_function(name)

        def __enter__(self):
            nvtx.range_push(self.name)
            self.record.__enter__()

        def __exit__(self, *error):
            self.record.__exit__(*error)
            nvtx.range_pop()

    def step():
        with both("train"):
            with both("forward"):
                loss = model(torch.randn(32, 256, device="cuda")).square().mean()
            with both("backward"):
                loss.backward()
            with both("update"):
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)
        with both("decode"), torch.no_grad():
            state = torch.zeros(1, 256, device="cuda")
            for _ in range(8):
                state[:, :64] = model(state)
            torch.cuda.synchronize()

    for _ in range(3):  # libraries load and choose their kernels
        step()
    torch.cuda.synchronize()
    if not trace:
        nvtx.range_push("measured")
        for _ in range(2):
            step()
        torch.cuda.synchronize()
        nvtx.range_pop()
        return
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], record_shapes=True) as profiler:
        for _ in range(2):
            step()
        torch.cuda.synchronize()
    profiler.export_chrome_trace(trace)

    def rows(by_shape):
        out = []
        for row in profiler.key_averages(group_by_input_shape=by_shape):
            if str(row.device_type).endswith("CUDA"):
                continue  # kernels and GPU annotations have rows of their own
            out.append({"name": row.key, "shapes": str(row.input_shapes) if by_shape else "", "calls": row.count,
                        "cpu_ns": row.cpu_time_total * 1e3, "exclusive_cpu_ns": row.self_cpu_time_total * 1e3,
                        "gpu_ns": row.device_time_total * 1e3, "exclusive_gpu_ns": row.self_device_time_total * 1e3})
        return out

    with open(os.path.join(os.path.dirname(trace), "averages.json"), "w", encoding="utf-8") as file:
        json.dump({"torch": torch.__version__, "operators": rows(False), "by_shape": rows(True)}, file, indent=1)


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode != 0:
        sys.exit(f"FAIL: {' '.join(command)}: {done.returncode}\n{done.stderr[-2000:]}")
    return done.stdout


def overhead(trace):
    """Durations of the profiler's own events, in nanoseconds."""
    with gzip.open(trace) as file:
        events = json.load(file)["traceEvents"]
    return [(event["name"], event["dur"] * 1e3) for event in events if event.get("cat") == "overhead"]


def differences(averages, report, own):
    """PyTorch 2.11 lays the profiler's own events, whose thread the trace does not say, into some operator of the main
    thread, takes their time off it, and counts the kernel that was just being launched for them once more. Rows of the
    report stay clear of that: each such event explains a difference of its own duration, and nothing else does."""
    def close(difference, row):  # PyTorch keeps microseconds with three digits and adds them as doubles
        return abs(difference) <= 2 * row["calls"] + 1e-6 * abs(row["cpu_ns"])

    sums = [sum(part) for size in range(4) for part in itertools.combinations([ns for _, ns in own[:12]], size)]
    names = {name for name, _ in own}
    twice = [0] + [row["gpu_ns"] for row in averages["operators"] if row["name"] in names]
    for table, ours in (("operators", report["operators"]), ("by_shape", report["operators_by_shape"])):
        mine_of = {}
        for row in ours:  # key_averages() shows no shapes inside lists of tensors
            shapes = [[] if any(isinstance(size, list) for size in each) else each
                      for each in json.loads(row.get("shapes") or "[]")]
            mine_of[row["name"], str(shapes) if shapes else ""] = row
        for row in averages[table]:
            where = row["name"] + row["shapes"]
            mine = mine_of.get((row["name"], row["shapes"] if row["shapes"] != "[]" else ""))
            if mine is None:
                yield f"missing: {where} ({row['calls']} calls)"
                continue
            if mine["calls"] != row["calls"]:
                yield f"{where}: calls {mine['calls']}, PyTorch {row['calls']}"
            allowed = {"cpu_ns": [0], "exclusive_cpu_ns": sums, "gpu_ns": twice, "exclusive_gpu_ns": [0]}
            for key, explained in allowed.items():
                difference = (mine[key] or 0) - row[key]
                if key.endswith("gpu_ns"):
                    difference = -difference
                    if row["name"] in names:
                        continue
                if not any(close(difference - each, row) for each in explained):
                    yield f"{where}: {key} {mine[key]:.0f}, PyTorch {row[key]:.0f}"


def kernels_of(report, top=""):
    """Kernels by name of the range, summed over the places where it lies below `top`."""
    out = {}
    for region in report["regions"]:
        if region["domain"] or region["process"] is not None or (top and top not in region["path"]):
            continue
        name = region["path"][-1]
        if name in ("train", "forward", "backward", "update", "decode") and region["gpu"]:
            out[name] = out.get(name, 0) + region["gpu"]["kernels"]
    return out


def compare(rangescope, out, ours):
    """`ours`: kernels of each range as the profiled program has them. Prints what differs."""
    trace = os.path.join(out, "step.json.gz")
    report = json.loads(run(rangescope, "report", trace, "-f", "json"))
    with open(os.path.join(out, "averages.json"), encoding="utf-8") as file:
        averages = json.load(file)
    theirs = kernels_of(report)
    found = list(differences(averages, report, overhead(trace)))
    found += [f"{name}: kernels {theirs.get(name)}, rangescope counted {count}" for name, count in ours.items()
              if theirs.get(name) != count]
    for line in found[:60]:
        print(line)
    print(f"{len(averages['operators'])} operators of PyTorch {averages['torch']}, ranges {ours}")
    print("PASS" if not found and ours else f"FAIL: {len(found)} differences")
    return 0 if not found and ours else 1


def main():
    if sys.argv[1] == "--work":
        return work(sys.argv[2] if len(sys.argv) > 2 else "")
    if sys.argv[1] == "--compare":
        with open(os.path.join(sys.argv[3], "kernels.json"), encoding="utf-8") as file:
            return compare(os.path.abspath(sys.argv[2]), sys.argv[3], json.load(file))
    rangescope, out = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    os.makedirs(out, exist_ok=True)
    trace = os.path.join(out, "step.json")
    run(sys.executable, __file__, "--work", trace)
    with open(trace, "rb") as plain, gzip.open(trace + ".gz", "wb") as packed:
        packed.write(plain.read())
    os.remove(trace)
    runs = os.path.join(out, "runs")
    run(rangescope, "profile", "--root", runs, "--", sys.executable, __file__, "--work")
    ours = kernels_of(json.loads(run(rangescope, "report", "latest", "--root", runs, "-f", "json")), "measured")
    with open(os.path.join(out, "kernels.json"), "w", encoding="utf-8") as file:
        json.dump(ours, file, indent=1)
    return compare(rangescope, out, ours)


if __name__ == "__main__":
    sys.exit(main())
