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
from torch.utils.checkpoint import checkpoint

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


class Bottleneck(nn.Module):
    """As in ResNet-50."""

    def __init__(self, channels, inner):
        super().__init__()
        self.reduce, self.middle, self.expand = nn.Conv2d(channels, inner, 1), nn.Conv2d(inner, inner, 3, padding=1), nn.Conv2d(inner, channels, 1)
        self.norms = nn.ModuleList(nn.BatchNorm2d(size) for size in (inner, inner, channels))

    def forward(self, x):
        y = F.relu(self.norms[0](self.reduce(x)))
        y = F.relu(self.norms[1](self.middle(y)))
        return F.relu(x + self.norms[2](self.expand(y)))


class Resnet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 256, 7, 4, 3)
        self.blocks = nn.Sequential(*(Bottleneck(256, 64) for _ in range(6)))
        self.head = nn.Linear(256, 100)

    def forward(self, x):
        return self.head(self.blocks(self.stem(x)).mean((2, 3)))


class Vision(nn.Module):
    """A vision transformer: patches by a convolution, a class token, learned positions."""

    def __init__(self, width=384, layers=6, patches=196):
        super().__init__()
        self.patches = nn.Conv2d(3, width, 16, 16)
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        self.positions = nn.Parameter(torch.zeros(1, patches + 1, width))
        self.layers, self.head = nn.ModuleList(Block(width, 6) for _ in range(layers)), nn.Linear(width, 100)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat((self.token.expand(x.shape[0], -1, -1), x), 1) + self.positions
        for layer in self.layers:
            x = layer(x)
        return self.head(x[:, 0])


class Speech(nn.Module):
    """As Whisper's: two convolutions over the spectrogram, an encoder, and a decoder that attends to it."""

    def __init__(self, width=384, words=4000):
        super().__init__()
        self.first, self.second = nn.Conv1d(80, width, 3, padding=1), nn.Conv1d(width, width, 3, 2, 1)
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(width, 6, 4 * width, batch_first=True), 3)
        self.embed, self.head = nn.Embedding(words, width), nn.Linear(width, words)
        self.decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(width, 6, 4 * width, batch_first=True), 3)

    def forward(self, sound, ids):
        heard = self.encoder(F.gelu(self.second(F.gelu(self.first(sound)))).transpose(1, 2))
        return self.head(self.decoder(self.embed(ids), heard))


class Experts(nn.Module):
    """Each row goes to one of eight perceptrons."""

    def __init__(self, width=512, experts=8):
        super().__init__()
        self.router = nn.Linear(width, experts)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)) for _ in range(experts))

    def forward(self, x):
        chosen, out = self.router(x).softmax(-1).max(-1), torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            rows = (chosen.indices == number).nonzero()[:, 0]
            out = out.index_add(0, rows, expert(x[rows]) * chosen.values[rows, None])
        return out


class Clicks(nn.Module):
    """A recommender: large tables of embeddings below a small perceptron."""

    def __init__(self):
        super().__init__()
        self.tables = nn.ModuleList(nn.EmbeddingBag(50000, 64, mode="sum") for _ in range(8))
        self.top = nn.Sequential(nn.Linear(8 * 64, 256), nn.ReLU(), nn.Linear(256, 1))

    def forward(self, ids):
        return self.top(torch.cat([table(ids[number]) for number, table in enumerate(self.tables)], 1))


class Checkpointed(Gpt):
    """Its layers' activations are computed again in the backward pass."""

    def forward(self, ids, caches=None):
        x = self.embed(ids)
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False)
        return self.head(x)


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
    "resnet": (Resnet, lambda m: F.cross_entropy(m(torch.randn(16, 3, 224, 224, device=DEVICE)), classes(16, 100))),
    "vision": (Vision, lambda m: F.cross_entropy(m(torch.randn(16, 3, 224, 224, device=DEVICE)), classes(16, 100))),
    "speech": (Speech, lambda m: F.cross_entropy(m(torch.randn(4, 80, 1000, device=DEVICE), classes(4 * 64, 4000).view(4, 64)).view(-1, 4000),
                                                 classes(256, 4000))),
    "experts": (lambda: nn.Sequential(*(Experts() for _ in range(4))), lambda m: m(torch.randn(4096, 512, device=DEVICE)).square().mean()),
    "clicks": (Clicks, lambda m: m([classes(2048 * 8, 50000).view(2048, 8) for _ in range(8)]).square().mean()),
    "checkpointed": (Checkpointed, lambda m: F.cross_entropy(m(torch.randint(0, 8000, (8, 256), device=DEVICE)).view(-1, 8000), classes(2048, 8000))),
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


def cost(name, pairs):
    """Steps with PyTorch's recorder on and off, in blocks that take turns in one process: processes differ by more than it costs."""
    make, loss = MODELS[name]
    model = make().to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)

    def block_ms(recorded, steps=20):
        if recorded:
            torch.cuda.memory._record_memory_history("all", context=None, stacks="python", max_entries=1_000_000)
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(steps):
            loss(model).backward()
            optimizer.step()
            optimizer.zero_grad()
        torch.cuda.synchronize()
        elapsed = time.perf_counter() - begin
        torch.cuda.memory._record_memory_history(None)
        return 1e3 * elapsed / steps

    for _ in range(3):
        block_ms(False)
    off, ratios = [], []
    for pair in range(pairs):
        recorded_first = pair % 2 == 1
        first, second = block_ms(recorded_first), block_ms(not recorded_first)
        on_ms, off_ms = (first, second) if recorded_first else (second, first)
        off.append(off_ms)
        ratios.append(on_ms / off_ms)
    quarters = statistics.quantiles(ratios, n=4)
    say(step_ms=statistics.median(off), on_over_off=quarters[1], low=quarters[0], high=quarters[2])


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


class Outer(nn.Module):
    """A mask of all pairs."""

    def forward(self, x):
        row = x[:, 0]
        return row[:, None] > row[None, :]


class Logits(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(256, 50000)

    def forward(self, x):
        logits = self.head(x)
        return F.cross_entropy(logits.float(), torch.zeros(x.shape[0], dtype=torch.long, device=DEVICE))


class Hidden(nn.Module):
    """The greedy one stands deep in a list."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.ModuleDict({"norm": nn.LayerNorm(1024), "greedy": nn.Linear(1024, 32768)}) for _ in range(4))

    def forward(self, x):
        return [layer["greedy"](layer["norm"](x)) for layer in self.layers]


OUT_OF_MEMORY = {  # modules around the greedy one, and what it is given
    "linear": (lambda: nn.ModuleDict({"small": nn.Linear(256, 256), "greedy": nn.Linear(1024, 1024)}), (1 << 20, 1024)),
    "scores": (lambda: nn.ModuleDict({"small": nn.Linear(256, 256), "greedy": Scores()}), (64, 8192, 64)),
    "convolution": (lambda: nn.ModuleDict({"small": nn.Linear(256, 256), "greedy": nn.Conv2d(16, 256, 3, padding=1)}), (64, 16, 512, 512)),
    "nested": (Wide, (65536, 1024)),
    "growing": (lambda: nn.ModuleDict({"small": nn.Linear(256, 256), "greedy": Cat()}), (1024, 1024)),
    "activation": (lambda: nn.ModuleDict({"small": nn.Linear(256, 256), "greedy": nn.GELU()}), (1 << 20, 1024)),
    "outer": (lambda: nn.ModuleDict({"small": nn.Linear(256, 256), "greedy": Outer()}), (1 << 16, 16)),
    "logits": (lambda: nn.ModuleDict({"small": nn.Linear(256, 256), "greedy": Logits()}), (1 << 15, 256)),
    "normalization": (lambda: nn.ModuleDict({"small": nn.Linear(256, 256), "greedy": nn.LayerNorm(1024)}), (1 << 20, 1024)),
    "upsampling": (lambda: nn.ModuleDict({"small": nn.Linear(256, 256), "greedy": nn.Upsample(scale_factor=4)}), (16, 64, 256, 256)),
    "unfolding": (lambda: nn.ModuleDict({"small": nn.Linear(256, 256), "greedy": nn.Unfold(7, padding=3)}), (16, 64, 128, 128)),
    "hidden": (Hidden, (16384, 1024)),
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
    elif what == "cost":
        cost(words[0], int(words[1]))
    elif what == "generate":
        generate(int(words[0]))
    else:
        run_out(words[0])
