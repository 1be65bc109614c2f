#!/usr/bin/env python3
"""The workloads' arithmetic against a second, slow implementation in plain Python. Usage: reference.py BIN_DIR"""
import json
import math
import os
import struct
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
import cases  # noqa: E402

BIN = sys.argv[1]
MASK = (1 << 64) - 1


def f32(x):
    return struct.unpack("f", struct.pack("f", x))[0]


class Random:
    def __init__(self, seed):
        self.state = seed & MASK

    def next(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return z ^ (z >> 31)

    def symmetric(self):
        return f32((self.next() >> 11) * 2.0**-52 - 1.0)

    def matrix(self, rows, columns, fan_in, gain=1.0):
        scale = f32(gain * math.sqrt(3.0 / fan_in))
        return [[scale * self.symmetric() for _ in range(columns)] for _ in range(rows)]


def checksum(words, value=0xCBF29CE484222325):
    for word in words:
        for i in range(4):
            value = ((value ^ ((word >> (8 * i)) & 0xFF)) * 0x100000001B3) & MASK
    return value


def times(matrix, x):
    return [sum(a * b for a, b in zip(row, x)) for row in matrix]


def rms_norm(x):
    scale = 1.0 / math.sqrt(sum(a * a for a in x) / len(x) + 1e-5)
    return [a * scale for a in x]


def rotate(x, position, heads):
    width = len(x) // heads
    half = width // 2
    out = list(x)
    for h in range(heads):
        for i in range(half):
            angle = position * 10000.0 ** (-2.0 * i / width)
            a, b = x[h * width + i], x[h * width + i + half]
            out[h * width + i] = a * math.cos(angle) - b * math.sin(angle)
            out[h * width + i + half] = a * math.sin(angle) + b * math.cos(angle)
    return out


def decoder(layers, width, heads, vocabulary, prompt, tokens, requests, seed):
    """(checksum, sum of the absolute last logits) as workloads/llm computes them."""
    random = Random(seed)
    hidden = (width * 8 // 3 + 31) // 32 * 32
    table = random.matrix(vocabulary, width, 3)
    damp = 1.0 / math.sqrt(2.0 * layers)
    weights = [dict(q=random.matrix(width, width, width), k=random.matrix(width, width, width),
                    v=random.matrix(width, width, width), o=random.matrix(width, width, width, damp),
                    gate=random.matrix(hidden, width, width), up=random.matrix(hidden, width, width),
                    down=random.matrix(width, hidden, hidden, damp)) for _ in range(layers)]
    unembed = random.matrix(vocabulary, width, width)
    head = width // heads

    def step(token, position, cache):
        x = table[token]
        for layer, (keys, values) in zip(weights, cache):
            norm = rms_norm(x)
            q = rotate(times(layer["q"], norm), position, heads)
            keys.append(rotate(times(layer["k"], norm), position, heads))
            values.append(times(layer["v"], norm))
            mix = []
            for h in range(heads):
                part = slice(h * head, (h + 1) * head)
                scores = [sum(a * b for a, b in zip(q[part], k[part])) / math.sqrt(head) for k in keys]
                top = max(scores)
                odds = [math.exp(s - top) for s in scores]
                mix += [sum(o * v[h * head + i] for o, v in zip(odds, values)) / sum(odds) for i in range(head)]
            x = [a + b for a, b in zip(x, times(layer["o"], mix))]
            norm = rms_norm(x)
            gate = [g / (1.0 + math.exp(-g)) * u for g, u in zip(times(layer["gate"], norm), times(layer["up"], norm))]
            x = [a + b for a, b in zip(x, times(layer["down"], gate))]
        return times(unembed, rms_norm(x))

    total, words = 0.0, []
    for request in range(requests):
        random = Random(seed * 1000003 + request)
        todo = [random.next() % vocabulary for _ in range(prompt)]
        cache = [([], []) for _ in range(layers)]
        position, made = 0, []
        while len(made) < tokens:
            for token in todo:
                logits = step(token, position, cache)
                position += 1
            made.append(logits.index(max(logits)))
            todo = made[-1:]
        total += sum(abs(x) for x in logits)
        value = checksum(made)
        words += [value & 0xFFFFFFFF, value >> 32]
    return f"{checksum(words):016x}", total


def resnet(batch, size, channels, blocks, classes, batches, seed):
    random = Random(seed)

    def convolution(inputs, outputs, gain):
        weight = random.matrix(outputs, inputs * 9, inputs * 9, gain)
        pairs = [(1.0 + 0.1 * random.symmetric(), 0.1 * random.symmetric()) for _ in range(outputs)]
        return weight, pairs

    stem = convolution(3, channels, 1.0)
    tower = [(convolution(channels, channels, 1.4), convolution(channels, channels, 0.5)) for _ in range(blocks)]
    head = random.matrix(classes, channels, channels)

    def convolve(layer, image, residual=None):
        weight, pairs = layer
        out = [[[0.0] * size for _ in range(size)] for _ in weight]
        for y in range(size):
            for x in range(size):
                near = [plane[y + dy][x + dx] if 0 <= y + dy < size and 0 <= x + dx < size else 0.0
                        for plane in image for dy in (-1, 0, 1) for dx in (-1, 0, 1)]
                for c, value in enumerate(times(weight, near)):
                    value = value * pairs[c][0] + pairs[c][1] + (residual[c][y][x] if residual else 0.0)
                    out[c][y][x] = max(value, 0.0)
        return out

    random_images, labels, total = Random(seed + 7), [], 0.0
    for _ in range(batches):
        flat = random_images.matrix(1, batch * 3 * size * size, 1)[0]
        total = 0.0
        for n in range(batch):
            at = iter(flat[n * 3 * size * size:])
            image = convolve(stem, [[[next(at) for _ in range(size)] for _ in range(size)] for _ in range(3)])
            for first, second in tower:
                image = convolve(second, convolve(first, image), image)
            scores = times(head, [sum(map(sum, plane)) / (size * size) for plane in image])
            labels.append(scores.index(max(scores)))
            total += sum(map(abs, scores))
    return f"{checksum(labels):016x}", total


def measured(workload, options):
    argv = [f"{BIN}/{workload}", "--truth"]
    for name, value in options.items():
        argv += [f"--{name}", value]
    done = cases.run(argv)
    if done.returncode:
        raise AssertionError(done.stderr)
    return json.loads(done.stdout)


class Reference(unittest.TestCase):
    def test_decoder(self):
        options = dict(layers=2, width=16, heads=2, vocabulary=40, prompt=5, tokens=6, requests=2, seed=3)
        want, total = decoder(**options)
        got = measured("llm", options)
        self.assertAlmostEqual(got["logit_sum"] / total, 1.0, places=4)
        self.assertEqual(got["checksum"], want)

    def test_threads_do_not_change_the_answer(self):
        options = dict(layers=2, width=32, heads=4, vocabulary=64, prompt=4, tokens=9, requests=8)
        first, second = (measured("llm", dict(options, threads=n)) for n in (1, 3))
        self.assertEqual(first["checksum"], second["checksum"])
        self.assertEqual(first["regions"], second["regions"])

    def test_seed_changes_the_answer(self):
        first, second = (measured("llm", dict(layers=1, width=32, tokens=8, seed=n))["checksum"] for n in (1, 2))
        self.assertNotEqual(first, second)

    def test_shallow_resnet(self):
        options = dict(batch=2, size=5, channels=4, blocks=2, classes=7, batches=2, seed=5)
        want, total = resnet(**options)
        got = measured("shallow_resnet", options)
        self.assertAlmostEqual(got["score_sum"] / total, 1.0, places=4)
        self.assertEqual(got["checksum"], want)

    def test_counts(self):
        layers, tokens, requests = 3, 7, 2
        got = measured("llm", dict(layers=layers, width=16, heads=2, tokens=tokens, requests=requests))
        want = {("request",): requests}
        for step, count in (("prefill", requests), ("decode", requests * (tokens - 1))):
            want[(step,)] = count
            for i in range(layers):
                for tail in ((), ("attention",), ("mlp",)):
                    want[(step, f"layer_{i}", *tail)] = count
        self.assertEqual({tuple(r["path"]): r["occurrences"] for r in got["regions"]}, want)


if __name__ == "__main__":
    cases.main()
