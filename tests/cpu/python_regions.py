"""Spends CPU time in known methods and modules and prints how much, by the thread's own clock. Launches nothing.

Where the machine takes the core away the clock may run on, but no timer fires: it jumps by many periods of the sampler,
and one sample comes at most. So a step of the clock counts as one millisecond at most.

Usage: python_regions.py MILLISECONDS CLIENT, a shared object with client_push and client_pop: `decode` runs in the range
`step`, a short one each. `torch` is the small one of tests/modules, or a real one.
"""
import ctypes
import json
import sys
import time

from torch import nn

client = ctypes.PyDLL(sys.argv[2])
truth = {}
PERIOD_S = 0.001  # of a sampler at 1 kHz


def spend(name, ms):
    begin = before = time.thread_time()
    worked_s = 0
    while before < begin + ms / 1000:
        sum(i * i for i in range(300))
        now = time.thread_time()
        worked_s += min(now - before, PERIOD_S)
        before = now
    truth[name] = truth.get(name, 0) + worked_s * 1000


class Part(nn.Module):
    def __init__(self, ms):
        super().__init__()
        self.ms = ms


class Attention(Part):
    def forward(self, x):
        spend("attention", self.ms)
        return x


class Mlp(Part):
    def forward(self, x):
        spend("mlp", self.ms)
        return x


class Model(nn.Module):
    def __init__(self, ms):
        super().__init__()
        self.attention, self.mlp = Attention(0.6 * ms), Mlp(0.4 * ms)

    def forward(self, x):
        return self.mlp(self.attention(x))


class Engine:
    def __init__(self, ms):
        self.ms, self.model = ms, Model(0.5 * ms / 200)

    def prefill(self):
        spend("prefill", 0.3 * self.ms)

    def decode(self):
        for _ in range(200):
            client.client_push(b"step")
            self.forward_once()
            client.client_pop()

    def forward_once(self):
        self.model(1)

    def idle(self):
        begin = time.monotonic()
        time.sleep(0.2)
        truth["idle"] = (time.monotonic() - begin) * 1000


engine = Engine(float(sys.argv[1]))
engine.prefill()
spend("outside", 0.2 * engine.ms)
engine.decode()
engine.idle()
print(json.dumps(truth))
