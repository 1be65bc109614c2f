"""A decoder of plain PyTorch. Usage: modules_program.py eager|graph|compile|reduce-overhead|train|dynamo STEPS [forward|backward]

`dynamo` prints what Dynamo counted (graphs, breaks, compilations again), its guards, and a hash of each result.

`forward`, `backward`: this program opens NVTX ranges around its modules (module_ranges.py).
"""
import os
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

from module_ranges import check

MODE, STEPS, CHECKED = sys.argv[1], int(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else ""
TRAINS, COMPILED = MODE in ("train", "train-compile"), MODE in ("compile", "reduce-overhead", "train-compile")
RANKS = int(os.environ.get("WORLD_SIZE", "1"))
WIDTH, LAYERS, TOKENS = 1024, 12, 256


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        q, k, v = self.qkv(x).view(*x.shape[:2], 3, 16, -1).permute(2, 0, 3, 1, 4)
        return self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(x.shape))


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        return self.down(F.gelu(self.up(x)))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.attention, self.norm2, self.mlp = nn.LayerNorm(WIDTH), Attention(), nn.LayerNorm(WIDTH), Mlp()

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.layers = nn.Embedding(1000, WIDTH), nn.ModuleList(Layer() for _ in range(LAYERS))

    def forward(self, tokens):
        x = self.embed(tokens)
        for layer in self.layers:
            x = layer(x)
        return x


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.model, self.head = Decoder(), nn.Linear(WIDTH, 1000)

    def forward(self, tokens):
        return self.head(self.model(tokens))


def dynamo(model):
    """Two lengths, and a break in the graph: everything that Dynamo does for them must be as it is without a profiler."""
    import hashlib
    import json

    def forward(tokens):
        x = model.model(tokens)
        torch._dynamo.graph_break()
        return model.head(x)

    called = torch.compile(forward, backend="eager")
    for step in range(STEPS):
        with torch.no_grad():
            result = called(torch.full((1, TOKENS // (1 + step % 2)), step % 1000, device="cuda"))
        print(step, hashlib.sha256(result.float().cpu().numpy().tobytes()).hexdigest())
    print(json.dumps({name: dict(sorted(counts.items())) for name, counts in sorted(torch._dynamo.utils.counters.items())}))
    for code in (forward.__code__, Decoder.forward.__code__, Layer.forward.__code__, Attention.forward.__code__):
        for entry in torch._dynamo.eval_frame._debug_get_cache_entry_list(code):
            print(code.co_name, len(str(entry.guard_manager).splitlines()), "guards")


def main():
    torch.manual_seed(1)
    if RANKS > 1:  # under torchrun
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        torch.distributed.init_process_group("nccl")
    model = Model().cuda()
    if MODE == "dynamo":
        return dynamo(model.half().eval())
    model = model if TRAINS else model.half().eval()
    if CHECKED:
        check(model, CHECKED)
    if RANKS > 1:
        model = nn.parallel.DistributedDataParallel(model)
    tokens = torch.randint(0, 1000, (1, TOKENS), device="cuda")
    called = torch.compile(model, mode=MODE if MODE == "reduce-overhead" else None) if COMPILED else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4) if TRAINS else None

    def step():
        if TRAINS:
            F.cross_entropy(called(tokens).flatten(0, 1), tokens.flatten()).backward()
            optimizer.step()
            optimizer.zero_grad()
        else:
            with torch.no_grad():
                called(tokens)

    for _ in range(3):
        step()
    if MODE == "graph":
        graph = torch.cuda.CUDAGraph()
        with torch.no_grad(), torch.cuda.graph(graph):
            called(tokens)
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(STEPS):
        graph.replay() if MODE == "graph" else step()
    torch.cuda.synchronize()
    print(f"{(time.perf_counter() - begin) / STEPS * 1e6:.1f} us a step")
    if RANKS > 1:
        torch.distributed.destroy_process_group()


main()
