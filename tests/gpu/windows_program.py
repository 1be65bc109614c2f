"""A server that decodes tokens of a captured model until it is told to end. Usage: windows_program.py SECONDS

Each token is a replay of a CUDA graph and a few eager launches. The last line: tokens, and the times between them.
"""
import sys
import time

import torch

WIDTH, LAYERS = 1024, 16
nvtx = torch.cuda.nvtx
torch.manual_seed(0)

with torch.inference_mode():
    model = torch.nn.Sequential(*(torch.nn.Sequential(torch.nn.Linear(WIDTH, WIDTH), torch.nn.GELU()) for _ in range(LAYERS)))
    model = model.cuda().half().eval()
    x = torch.randn(1, WIDTH, device="cuda", dtype=torch.half)
    for _ in range(3):
        model(x)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = model(x)
    torch.cuda.synchronize()
    print("ready", flush=True)
    times, end = [], time.perf_counter() + float(sys.argv[1])
    while not times or times[-1] < end:
        nvtx.range_push("decode")
        graph.replay()
        nvtx.range_push("sample")
        torch.argmax(y).item()
        nvtx.range_pop()
        nvtx.range_pop()
        times.append(time.perf_counter())

between = sorted((b - a) * 1e6 for a, b in zip(times, times[1:]))
print("tokens", len(times), "median", between[len(between) // 2], "p99", between[len(between) * 99 // 100], "longest", between[-1])
