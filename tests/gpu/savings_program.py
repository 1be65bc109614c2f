"""Nine programs before and after one fix, written after the cures. Usage: savings_program.py NAME before|after [STEPS]

The loop is in the NVTX range `loop`, its steps in `step`. The last line is `RESULT` and the loop's time in milliseconds.
"""
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

NAME, SIDE = sys.argv[1:3]
STEPS = int(sys.argv[3]) if len(sys.argv) > 3 else 40
AFTER, DEVICE, nvtx = SIDE == "after", "cuda", torch.cuda.nvtx
torch.manual_seed(0)


def half(*shape):
    return torch.randn(*shape, device=DEVICE, dtype=torch.half)


def swiglu():
    """Element-wise kernels by hand -> compiled into one."""
    a, b, c = (half(8192, 4096) for _ in range(3))

    def chain(a, b, c):
        gate = a / (1 + torch.exp(-a)) * b
        return (gate * 0.5 + c).clamp(-3, 3) * 1.1

    step = torch.compile(chain) if AFTER else chain
    return lambda: step(a, b, c)


def rnn():
    """64 steps of a GRU cell -> one CUDA graph."""
    cell, x = nn.GRUCell(256, 256).to(DEVICE).half(), half(64, 16, 256)

    @torch.no_grad()
    def step():
        h = torch.zeros(16, 256, device=DEVICE, dtype=torch.half)
        for at in x:
            h = cell(at, h)

    if not AFTER:
        return step
    with torch.cuda.stream(torch.cuda.Stream()):
        step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def metrics():
    """Loss, accuracy and norms of gradients read at each step -> kept on the GPU."""
    net = nn.Sequential(*(m for _ in range(6) for m in (nn.Linear(512, 512), nn.ReLU())), nn.Linear(512, 10)).to(DEVICE)
    optimizer = torch.optim.AdamW(net.parameters(), fused=True)
    x, y, kept = torch.randn(256, 512, device=DEVICE), torch.randint(0, 10, (256,), device=DEVICE), []

    def step():
        out = net(x)
        loss = F.cross_entropy(out, y)
        optimizer.zero_grad()
        loss.backward()
        values = [loss.detach(), (out.argmax(1) == y).float().mean(), *(p.grad.norm() for p in net.parameters())]
        kept.append(values if AFTER else [value.item() for value in values])
        optimizer.step()

    return step


def pageload():
    """Images copied from pageable memory -> pinned, one batch ahead on a stream of its own."""
    images = torch.randint(0, 255, (128, 3, 512, 512), dtype=torch.uint8)
    if not AFTER:
        return lambda: (images.to(DEVICE).float() / 255).mean((2, 3))
    images, stream = images.pin_memory(), torch.cuda.Stream()
    buffers = [torch.empty_like(images, device=DEVICE) for _ in range(2)]
    ready, free = ([torch.cuda.Event() for _ in range(2)] for _ in range(2))

    def put(i):
        with torch.cuda.stream(stream):
            stream.wait_event(free[i])
            buffers[i].copy_(images, non_blocking=True)
            ready[i].record(stream)

    def steps():
        put(0)
        while True:
            for i in range(2):
                put(1 - i)
                torch.cuda.current_stream().wait_event(ready[i])
                yield (buffers[i].float() / 255).mean((2, 3))
                free[i].record()

    made = steps()
    return lambda: next(made)


def decoder32():
    """Training in float32 -> its products in TF32."""
    torch.set_float32_matmul_precision("high" if AFTER else "highest")
    layers = nn.ModuleList(nn.TransformerEncoderLayer(1024, 16, 4096, batch_first=True, norm_first=True) for _ in range(4)).to(DEVICE)
    optimizer, x = torch.optim.SGD(layers.parameters(), lr=1e-3), torch.randn(16, 256, 1024, device=DEVICE)

    def step():
        y = x
        for layer in layers:
            y = layer(y)
        optimizer.zero_grad()
        y.square().mean().backward()
        optimizer.step()

    return step


def causal():
    """Masked attention by hand -> scaled_dot_product_attention."""
    q, k, v = (half(8, 16, 1024, 64).to(torch.bfloat16) for _ in range(3))
    mask = torch.ones(1024, 1024, device=DEVICE, dtype=torch.bool).tril()

    def step():
        if AFTER:
            return F.scaled_dot_product_attention(q, k, v, is_causal=True)
        scores = (q @ k.transpose(-1, -2) * 0.125).masked_fill(~mask, float("-inf"))
        return torch.softmax(scores.float(), -1).to(q.dtype) @ v

    return step


def layernorm():
    """LayerNorm by hand -> F.layer_norm."""
    x = half(16384, 2048).to(torch.bfloat16)
    w, b = half(2, 2048).to(torch.bfloat16)

    def step():
        y = x
        for _ in range(6):
            if AFTER:
                y = F.layer_norm(y, (2048,), w, b)
                continue
            wide = y.float()
            away = wide - wide.mean(-1, keepdim=True)
            y = (away * torch.rsqrt((away ** 2).mean(-1, keepdim=True) + 1e-5)).to(y.dtype) * w + b

    return step


def sgd():
    """SGD parameter by parameter -> foreach."""
    parameters = [nn.Parameter(torch.randn(256, 256, device=DEVICE)) for _ in range(300)]
    for parameter in parameters:
        parameter.grad = torch.randn_like(parameter)
    optimizer = torch.optim.SGD(parameters, lr=1e-3, momentum=0.9, weight_decay=1e-4, foreach=AFTER)
    x = torch.randn(1024, 1024, device=DEVICE)

    def step():
        (x @ x).sum()
        optimizer.step()

    return step


def convnet():
    """Convolutions in training, NCHW -> channels_last."""
    net = nn.Sequential(*(m for _ in range(6) for m in (nn.Conv2d(64, 64, 3, padding=1, bias=False), nn.BatchNorm2d(64), nn.ReLU())))
    net, x = net.to(DEVICE).half(), half(32, 64, 112, 112)
    if AFTER:
        net, x = net.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)

    def step():
        optimizer.zero_grad()
        net(x).float().mean().backward()
        optimizer.step()

    return step


def main():
    step = globals()[NAME]()
    for _ in range(5):
        step()
    torch.cuda.synchronize()
    begin = time.perf_counter()
    with nvtx.range("loop"):
        for _ in range(STEPS):
            with nvtx.range("step"):
                step()
        torch.cuda.synchronize()
    print("RESULT", 1e3 * (time.perf_counter() - begin))


if __name__ == "__main__":
    main()
