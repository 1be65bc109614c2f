#!/usr/bin/env python3
"""What conf/replay/costs.yaml holds of a machine, measured with PyTorch: calls that launch CUDA graphs of so many kernels, and what
copies from and to pinned memory reach. Usage: replay_costs.py"""
import statistics
import time

import torch

KERNELS = (2, 10, 40, 120, 500, 1000)
MIB = (0.0625, 0.25, 1, 4, 16, 64, 256)


def quantiles(values):
    """5 %, median, 95 %."""
    cuts = statistics.quantiles(values, n=20)
    return cuts[0], statistics.median(values), cuts[-1]


def graph_of(kernels):
    x = torch.zeros(1024, device="cuda")
    x.add_(1)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(kernels):
            x.add_(1)
    return graph


def launch_us(graph):
    for _ in range(20):
        graph.replay()
    calls = []
    for _ in range(300):
        torch.cuda.synchronize()
        start = time.perf_counter_ns()
        graph.replay()
        calls.append((time.perf_counter_ns() - start) / 1e3)
    return quantiles(calls)


def gigabytes_per_s(to, source):
    rates = []
    for _ in range(30):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        to.copy_(source, non_blocking=True)
        end.record()
        torch.cuda.synchronize()
        rates.append(source.numel() / begin.elapsed_time(end) / 1e6)
    return quantiles(rates)


def main():
    print(torch.cuda.get_device_name(), "PyTorch", torch.__version__)
    for kernels in KERNELS:
        low, median, high = launch_us(graph_of(kernels))
        print(f"graph of {kernels:>5} kernels: {low:6.2f} {median:6.2f} {high:6.2f} us a launch (5 %, median, 95 %)")
    for mib in MIB:
        pinned = torch.empty(int(mib * 2**20), dtype=torch.uint8, pin_memory=True)
        on_gpu = torch.empty_like(pinned, device="cuda")
        for name, rates in (("to the GPU", gigabytes_per_s(on_gpu, pinned)), ("back", gigabytes_per_s(pinned, on_gpu))):
            print(f"{mib:>8} MiB {name:<11} {rates[0]:6.1f} {rates[1]:6.1f} {rates[2]:6.1f} GB/s")


if __name__ == "__main__":
    main()
