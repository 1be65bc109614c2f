"""Models whose memory is known. Usage: memory_program.py train MODEL STEPS | generate STEPS | oom CASE

The last line is JSON: what PyTorch's allocator says (`peak`, `reserved`), bytes of parameters, gradients and optimizer state, and
the median time of a step (`step_ms`). `oom` runs out of memory below a limit in the module that is called `greedy`, and says how
much that asked for.
"""
import json
import re
import statistics
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
DEVICE = "cuda"


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.heads = heads

    def forward(self, x, cache=None):
        batch, length, width = x.shape
        q, k, v = (part.view(batch, length, self.heads, -1).transpose(1, 2) for part in self.qkv(self.before(x)).chunk(3, -1))
        if cache is not None:
            if cache:
                k, v = torch.cat((cache[0], k), 2), torch.cat((cache[1], v), 2)
            cache[:] = [k, v]
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=cache is None).transpose(1, 2).reshape(batch, length, width)
        x = x + self.out(mixed)
        return x + self.down(F.gelu(self.up(self.between(x))))


class Gpt(nn.Module):
    def __init__(self, width=512, layers=6, words=8000):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.layers = nn.ModuleList(Block(width, 8) for _ in range(layers))
        self.head = nn.Linear(width, words)

    def forward(self, ids, caches=None):
        x = self.embed(ids)
        for number, layer in enumerate(self.layers):
            x = layer(x, None if caches is None else caches[number])
        return self.head(x)


def convolutions():
    return nn.Sequential(*(nn.Sequential(nn.Conv2d(3 if i == 0 else 32 * i, 32 * (i + 1), 3, padding=1), nn.BatchNorm2d(32 * (i + 1)), nn.ReLU())
                           for i in range(5)), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(160, 100))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.cells, self.head = nn.LSTM(256, 512, 2, batch_first=True), nn.Linear(512, 100)

    def forward(self, x):
        return self.head(self.cells(x)[0][:, -1])


def classes(count, limit):
    return torch.randint(0, limit, (count,), device=DEVICE)


MODELS = {
    "gpt": (Gpt, lambda m: F.cross_entropy(m(torch.randint(0, 8000, (8, 256), device=DEVICE)).view(-1, 8000), classes(2048, 8000))),
    "convolutions": (convolutions, lambda m: F.cross_entropy(m(torch.randn(32, 3, 128, 128, device=DEVICE)), classes(32, 100))),
    "recurrent": (Recurrent, lambda m: F.cross_entropy(m(torch.randn(64, 128, 256, device=DEVICE)), classes(64, 100))),
    "encoder": (lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(512, 8, batch_first=True), 4),
                lambda m: m(torch.randn(16, 256, 512, device=DEVICE)).square().mean()),
    "perceptron": (lambda: nn.Sequential(*(nn.Sequential(nn.Linear(2048, 2048), nn.GELU()) for _ in range(8))),
                   lambda m: m(torch.randn(512, 2048, device=DEVICE)).square().mean()),
    "autoencoder": (lambda: nn.Sequential(nn.Conv2d(3, 64, 4, 2, 1), nn.ReLU(), nn.Conv2d(64, 128, 4, 2, 1), nn.ReLU(),
                                          nn.ConvTranspose2d(128, 64, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(64, 3, 4, 2, 1)),
                    lambda m: m(torch.randn(32, 3, 128, 128, device=DEVICE)).square().mean()),
}


def say(**truth):
    print(json.dumps({"peak": torch.cuda.max_memory_allocated(), "reserved": torch.cuda.max_memory_reserved(), **truth}))


def bytes_of(tensors):
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def train(name, steps):
    make, loss = MODELS[name]
    model = make().to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    times = []
    for _ in range(steps):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        loss(model).backward()
        optimizer.step()
        optimizer.zero_grad()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - begin)
    weights = list(model.parameters())
    state = [value for values in optimizer.state.values() for value in values.values() if value.is_cuda]
    say(parameters=bytes_of(weights + list(model.buffers())), state=bytes_of(state), step_ms=1e3 * statistics.median(times[len(times) // 4:]))


def generate(steps):
    model = Gpt().to(DEVICE).eval()
    with torch.inference_mode():
        for _ in range(3):
            caches = [[] for _ in model.layers]
            ids = torch.randint(0, 8000, (4, 128), device=DEVICE)
            for _ in range(steps):
                ids = model(ids, caches)[:, -1:].argmax(-1)
    say(parameters=bytes_of(model.parameters()))


class Scores(nn.Module):
    """Attention that writes its scores out."""

    def forward(self, x):
        return torch.softmax(x @ x.transpose(1, 2), -1) @ x


class Wide(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.ModuleDict({"greedy": nn.Linear(1024, 65536)})

    def forward(self, x):
        return self.inner["greedy"](x)


class Cat(nn.Module):
    def forward(self, x):
        kept = [x]
        while True:
            kept.append(torch.cat(kept, 0))


OUT_OF_MEMORY = {  # modules around the greedy one, and what it is given
    "linear": (lambda: nn.ModuleDict({"small": nn.Linear(256, 256), "greedy": nn.Linear(1024, 1024)}), (1 << 20, 1024)),
    "scores": (lambda: nn.ModuleDict({"small": nn.Linear(256, 256), "greedy": Scores()}), (64, 8192, 64)),
    "convolution": (lambda: nn.ModuleDict({"small": nn.Linear(256, 256), "greedy": nn.Conv2d(16, 256, 3, padding=1)}), (64, 16, 512, 512)),
    "nested": (Wide, (65536, 1024)),
    "growing": (lambda: nn.ModuleDict({"small": nn.Linear(256, 256), "greedy": Cat()}), (1024, 1024)),
    "activation": (lambda: nn.ModuleDict({"small": nn.Linear(256, 256), "greedy": nn.GELU()}), (1 << 20, 1024)),
}


class Around(nn.Module):
    """Calls `small` a few times, then what is greedy until there is no memory."""

    def __init__(self, parts):
        super().__init__()
        self.parts = parts

    def forward(self, x):
        kept = []
        if isinstance(self.parts, nn.ModuleDict):
            kept = [self.parts["small"](torch.randn(1024, 256, device=DEVICE)) for _ in range(8)]
        while True:
            kept.append(self.parts["greedy"](x) if isinstance(self.parts, nn.ModuleDict) else self.parts(x))


def run_out(name):
    torch.cuda.set_per_process_memory_fraction(0.1)
    make, shape = OUT_OF_MEMORY[name]
    model = Around(make()).to(DEVICE)
    try:
        model(torch.randn(*shape, device=DEVICE))
    except torch.OutOfMemoryError as error:
        asked, unit = re.search(r"Tried to allocate ([\d.]+) (\w+)", str(error)).groups()
        say(asked=float(asked) * {"MiB": 1 << 20, "GiB": 1 << 30}[unit])


if __name__ == "__main__":
    what, *words = sys.argv[1:]
    if what == "train":
        train(words[0], int(words[1]))
    elif what == "generate":
        generate(int(words[0]))
    else:
        run_out(words[0])
