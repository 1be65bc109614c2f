"""Programs before and after one fix, written after the cures. Usage: savings_program.py NAME before|after|graph [STEPS]

`graph` is the program before the fix whose step is one CUDA graph. The loop is in the NVTX range `loop`, its steps in `step`. The last line is `RESULT` and the loop's time in milliseconds.
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


def captured(step):
    with torch.cuda.stream(torch.cuda.Stream()):
        for _ in range(3):
            step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


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

    return captured(step) if AFTER else step


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


# ---- Training, where a thread of autograd launches the backward pass


class Block(nn.Module):
    """A layer of a transformer whose attention, normalization and activation are given."""

    def __init__(self, width, heads, attend, normalize, activate):
        super().__init__()
        self.heads, self.attend, self.normalize, self.activate = heads, attend, normalize, activate
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(self.normalize(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        x = x + self.out(self.attend(q, k, v).transpose(1, 2).reshape(batch, length, width))
        return x + self.down(self.activate(self.up(self.normalize(x))))


def attention_by_hand(q, k, v):
    return torch.softmax(q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5, -1) @ v


def norm_by_hand(x):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)


def gelu_by_hand(x):
    return 0.5 * x * (1 + torch.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))


def trained(width=1024, heads=16, layers=4, batch=16, length=512, attend=F.scaled_dot_product_attention,
            normalize=lambda x: F.rms_norm(x, x.shape[-1:]), activate=lambda x: F.gelu(x, approximate="tanh"), **optimizer_options):
    net = nn.Sequential(*(Block(width, heads, attend, normalize, activate) for _ in range(layers))).to(DEVICE, torch.bfloat16)
    options = {"lr": 1e-4, "fused": True, **optimizer_options}
    optimizer, x = torch.optim.AdamW(net.parameters(), **options), torch.randn(batch, length, width, device=DEVICE, dtype=torch.bfloat16)

    def step(between=lambda net: None):
        net(x).float().square().mean().backward()
        between(net)
        optimizer.step()
        optimizer.zero_grad()

    return step


def attntrain():
    """Attention by hand -> scaled_dot_product_attention."""
    return trained(length=1024, batch=8, attend=F.scaled_dot_product_attention if AFTER else attention_by_hand)


def normtrain():
    """RMS normalization by hand -> F.rms_norm."""
    return trained(width=2048, layers=2, normalize=(lambda x: F.rms_norm(x, x.shape[-1:])) if AFTER else norm_by_hand)


def gelutrain():
    """GELU by hand -> F.gelu."""
    return trained(activate=(lambda x: F.gelu(x, approximate="tanh")) if AFTER else gelu_by_hand)


def adam():
    """AdamW parameter by parameter -> fused."""
    return trained(width=256, heads=4, layers=24, batch=4, length=64, **({} if AFTER else {"fused": False, "foreach": False}))


def graphtrain():
    """A small network's whole training step -> one CUDA graph."""
    step = trained(width=128, heads=4, layers=6, batch=4, length=32, capturable=True)
    return captured(step) if AFTER else step


def accumulate():
    """The loss of each of eight small batches printed -> added up on the GPU."""
    net = nn.Sequential(*(m for _ in range(3) for m in (nn.Linear(1024, 1024), nn.ReLU()))).to(DEVICE)
    optimizer, x = torch.optim.AdamW(net.parameters(), fused=True), torch.randn(8, 512, 1024, device=DEVICE)

    def step():
        total = 0
        for part in x:
            loss = net(part).square().mean() / 8
            loss.backward()
            total += loss.detach() if AFTER else loss.item()
        optimizer.step()
        optimizer.zero_grad()

    return step


def loadtrain():
    """Batches read and scaled on the main thread -> by eight workers, ahead."""
    class Images(torch.utils.data.Dataset):
        def __len__(self):
            return 64 * 64

        def __getitem__(self, i):
            image = torch.full((3, 96, 96), i % 255, dtype=torch.float32)
            return (image / 255 - 0.45) / 0.22

    net = nn.Sequential(nn.Conv2d(3, 64, 3, 2), nn.ReLU(), nn.Conv2d(64, 64, 3, 2), nn.ReLU(), nn.AdaptiveAvgPool2d(1)).to(DEVICE)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
    torch.set_num_threads(1)
    workers = {"num_workers": 8, "prefetch_factor": 4, "pin_memory": True} if AFTER else {}
    batches = iter(torch.utils.data.DataLoader(Images(), 64, **workers))

    def step():
        net(next(batches).to(DEVICE, non_blocking=AFTER)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def smalls():
    """96 small tensors of a batch copied one by one -> as one pinned tensor."""
    rows, w = [torch.randn(1024) for _ in range(96)], half(1024, 1024).float()
    pinned = torch.stack(rows).pin_memory()

    def step():
        x = pinned.to(DEVICE, non_blocking=True) if AFTER else torch.stack([row.to(DEVICE) for row in rows])
        return x @ w

    return step


# ---- Llama of transformers, with random weights


def llama(layers=8, **options):
    from transformers import LlamaConfig, LlamaForCausalLM

    dtype = options.pop("dtype", torch.bfloat16)
    config = LlamaConfig(hidden_size=1024, intermediate_size=4096, num_hidden_layers=layers, num_attention_heads=16, num_key_value_heads=16,
                         vocab_size=32000, max_position_embeddings=4096, **options)
    return LlamaForCausalLM(config).to(DEVICE, dtype).eval()


def llamahand():
    """Attention as products and a softmax -> scaled_dot_product_attention."""
    net, ids = llama(attn_implementation="sdpa" if AFTER else "eager"), torch.randint(0, 32000, (4, 2048), device=DEVICE)
    return torch.no_grad()(lambda: net(ids, use_cache=False, logits_to_keep=1).logits)


def llama32():
    """Products in float32 -> in TF32."""
    torch.set_float32_matmul_precision("high" if AFTER else "highest")
    net, ids = llama(dtype=torch.float32), torch.randint(0, 32000, (4, 1024), device=DEVICE)
    return torch.no_grad()(lambda: net(ids, use_cache=False, logits_to_keep=1).logits)


def llamadecode():
    """One token after the other -> a static cache and a CUDA graph."""
    from transformers import StaticCache

    net = llama(layers=16)
    cache = StaticCache(config=net.config, max_cache_len=256)
    token = torch.zeros(1, 1, dtype=torch.long, device=DEVICE)
    position = torch.full((1,), 64, dtype=torch.long, device=DEVICE)

    @torch.no_grad()
    def step():
        logits = net(token, past_key_values=cache, cache_position=position, position_ids=position[None], use_cache=True).logits
        token.copy_(logits[:, -1:].argmax(-1))

    return captured(step) if AFTER else step


# ---- A third batch, for the cures as they were when it was written


def train_step(net, x, **options):
    optimizer = torch.optim.SGD(net.parameters(), **{"lr": 1e-3, **options})

    def step():
        net(x).float().square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def mlptrain():
    """An MLP trained in float32 -> its products in TF32."""
    torch.set_float32_matmul_precision("high" if AFTER else "highest")
    net = nn.Sequential(*(m for _ in range(4) for m in (nn.Linear(4096, 4096), nn.GELU()))).to(DEVICE)
    return train_step(net, torch.randn(2048, 4096, device=DEVICE))


def crossattn():
    """Attention with an added bias by hand, heads of 128 -> scaled_dot_product_attention."""
    q, k, v, bias = half(4, 16, 512, 128), half(4, 16, 2048, 128), half(4, 16, 2048, 128), half(1, 1, 512, 2048)

    def step():
        if AFTER:
            return F.scaled_dot_product_attention(q, k, v, attn_mask=bias)
        return torch.softmax(q @ k.transpose(-1, -2) / 128 ** 0.5 + bias, -1) @ v

    return step


def lntrain():
    """Layers of normalization by hand in float32, trained -> F.layer_norm."""
    class Norm(nn.Module):
        def __init__(self):
            super().__init__()
            self.w, self.b = nn.Parameter(torch.ones(1024)), nn.Parameter(torch.zeros(1024))

        def forward(self, x):
            if AFTER:
                return F.layer_norm(x, (1024,), self.w, self.b)
            away = x - x.mean(-1, keepdim=True)
            return away / torch.sqrt(away.square().mean(-1, keepdim=True) + 1e-5) * self.w + self.b

    return train_step(nn.Sequential(*(Norm() for _ in range(8))).to(DEVICE), torch.randn(8192, 1024, device=DEVICE))


def sgdtrain():
    """SGD with momentum, parameter by parameter -> foreach."""
    net = nn.Sequential(*(m for _ in range(100) for m in (nn.Linear(128, 128), nn.ReLU()))).to(DEVICE)
    return train_step(net, torch.randn(64, 128, device=DEVICE), momentum=0.9, weight_decay=1e-4, foreach=AFTER)


def gptdecode():
    """A decoder's step for one token, cache of full length -> one CUDA graph."""
    layers = [[half(3 * 1024, 1024) / 32, half(1024, 1024) / 32, half(4096, 1024) / 32, half(1024, 4096) / 64] for _ in range(12)]
    keys, values = half(12, 8, 16, 512, 64), half(12, 8, 16, 512, 64)
    token = half(8, 1024)

    @torch.no_grad()
    def step():
        x = token
        for layer, (qkv, out, up, down) in enumerate(layers):
            q, k, v = F.linear(F.layer_norm(x, (1024,)), qkv).view(8, 3, 16, 1, 64).unbind(1)
            keys[layer, :, :, 100:101], values[layer, :, :, 100:101] = k, v
            x = x + F.linear(F.scaled_dot_product_attention(q, keys[layer], values[layer]).reshape(8, 1024), out)
            x = x + F.linear(F.gelu(F.linear(F.layer_norm(x, (1024,)), up)), down)
        return x

    return captured(step) if AFTER else step


def onehot():
    """Embeddings as products with one-hot rows -> F.embedding."""
    ids, table = torch.randint(0, 32000, (8192,), device=DEVICE), half(32000, 512)
    return lambda: F.embedding(ids, table) if AFTER else F.one_hot(ids, 32000).half() @ table


def pagetrain():
    """Batches from pageable memory in training -> pinned, one ahead on a stream of its own."""
    net = nn.Sequential(nn.Linear(3072, 2048), nn.ReLU(), nn.Linear(2048, 10)).to(DEVICE)
    batches = [torch.randn(8192, 3072) for _ in range(4)]
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
    stream, number = torch.cuda.Stream(), [0]
    if AFTER:
        batches = [batch.pin_memory() for batch in batches]

    def put():
        number[0] += 1
        with torch.cuda.stream(stream):
            return batches[number[0] % 4].to(DEVICE, non_blocking=True)

    ahead = [put() if AFTER else None]

    def step():
        if AFTER:
            torch.cuda.current_stream().wait_stream(stream)
            x, ahead[0] = ahead[0], put()
            x.record_stream(torch.cuda.current_stream())
        else:
            number[0] += 1
            x = batches[number[0] % 4].to(DEVICE)
        net(x).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def perlayer():
    """A linear layer applied to each of 64 samples -> to the batch."""
    w, x = half(1024, 1024), half(64, 4, 1024)
    return lambda: F.linear(x, w) if AFTER else torch.stack([F.linear(sample, w) for sample in x])


def main():
    step = globals()[NAME]()
    if SIDE == "graph":
        step = captured(step)
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
