"""A decoder built from a config.json of Hugging Face's form, with ranges `prefill` and `decode`. Usage: decoder.py CONFIG PROMPT NEW [count]

GQA, gated or plain MLPs, experts. `count`: prints what PyTorch's FlopCounterMode counts of each range, as JSON, on any device.
"""
import json
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F

with open(sys.argv[1], encoding="utf-8") as file:
    C = json.load(file)
PROMPT, NEW, COUNT = int(sys.argv[2]), int(sys.argv[3]), len(sys.argv) > 4
H, L, A, K = C["hidden_size"], C["num_hidden_layers"], C["num_attention_heads"], C.get("num_key_value_heads", C["num_attention_heads"])
D = C.get("head_dim", H // A)
E, TOP = C.get("num_local_experts", 0), C.get("num_experts_per_tok", 1)
GATED = C["model_type"] != "gpt_neox"
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(H, C["intermediate_size"], bias=False) if GATED else None
        self.up, self.down = nn.Linear(H, C["intermediate_size"], bias=False), nn.Linear(C["intermediate_size"], H, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x) if GATED else F.gelu(self.up(x)))


class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.router, self.experts = nn.Linear(H, E, bias=False), nn.ModuleList(Mlp() for _ in range(E))

    def forward(self, x):
        flat = x.reshape(-1, H)
        weight, chosen = self.router(flat).softmax(-1).topk(TOP)
        out = torch.zeros_like(flat)
        for number, expert in enumerate(self.experts):
            token, place = (chosen == number).nonzero(as_tuple=True)
            if len(token):
                out.index_add_(0, token, expert(flat[token]) * weight[token, place, None])
        return out.reshape(x.shape)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.kv, self.o = nn.Linear(H, A * D, bias=False), nn.Linear(H, 2 * K * D, bias=False), nn.Linear(A * D, H, bias=False)
        self.mlp = Experts() if E else Mlp()

    def forward(self, x, cache):
        b, t, _ = x.shape
        q = self.q(x).view(b, t, A, D).transpose(1, 2)
        k, v = self.kv(x).view(b, t, 2, K, D).permute(2, 0, 3, 1, 4)
        if cache:
            k, v = torch.cat((cache[0], k), 2), torch.cat((cache[1], v), 2)
        cache[:] = [k, v]
        repeat = A // K
        a = F.scaled_dot_product_attention(q, k.repeat_interleave(repeat, 1), v.repeat_interleave(repeat, 1), is_causal=t > 1)
        x = x + self.o(a.transpose(1, 2).reshape(b, t, A * D))
        return x + self.mlp(x)


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.head = nn.Embedding(C["vocab_size"], H), nn.Linear(H, C["vocab_size"], bias=False)
        self.blocks = nn.ModuleList(Block() for _ in range(L))

    def forward(self, tokens, caches):
        x = self.embedding(tokens)
        for block, cache in zip(self.blocks, caches):
            x = block(x, cache)
        return self.head(x[:, -1:]).argmax(-1)


torch.manual_seed(0)
model = Decoder().to(DEVICE, torch.bfloat16)
tokens, caches = torch.randint(0, C["vocab_size"], (1, PROMPT), device=DEVICE), [[] for _ in range(L)]


def within(name, tokens):
    if COUNT:
        from torch.utils.flop_counter import FlopCounterMode
        with FlopCounterMode(display=False) as counter:
            tokens = model(tokens, caches)
        counted.setdefault(name, []).append(counter.get_total_flops())
        return tokens
    with torch.cuda.nvtx.range(name):
        tokens = model(tokens, caches)
        torch.cuda.synchronize()
    return tokens


counted = {}
with torch.no_grad():
    tokens = within("prefill", tokens)
    for _ in range(NEW):
        tokens = within("decode", tokens)
if COUNT:
    print(json.dumps(counted))
