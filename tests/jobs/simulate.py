"""Parallel jobs of which everything is known, as the native captures that their ranks would have left (src/wire/native.hpp, src/wire/gpu.hpp).

A Rank collects events of one process with one thread and one GPU; job() writes ranks as a job folder. simulate() makes a training job: steps of
load, forward (kernels), a wait for the GPU, messages to the next rank and an AllReduce, with a fault of a known kind."""
import json
import os
import random
import struct

US, MS = 1_000, 1_000_000
BEGIN = 10**12
NCCL, MPI = 1, 2
COLLECTIVE, MESSAGE, INIT = 1, 2, 3
SCHEMAS = {COLLECTIVE: ["NCCL communicator ID", "Message size [bytes]"], MESSAGE: ["NCCL communicator ID", "Message size [bytes]", "Peer rank"],
           INIT: ["NCCL communicator ID", "No. of ranks", "Rank"]}


def record(kind, value, payload=b"", flags=0):
    payload += b"\0" * (-len(payload) % 8)
    return struct.pack("<BBHI", kind, flags, len(payload) // 8 + 1, value) + payload


class Rank:
    def __init__(self, rank, host="node0", clock=None):
        self.rank, self.host, self.pid = rank, host, 1000 + rank
        self.clock = clock or (lambda ns: ns)
        self.events, self.names, self.gpu, self.gpu_names, self.kinds, self.calls = [], {}, [], {}, {}, 0

    def _name(self, text):
        return self.names.setdefault(text, len(self.names) + 1)

    def range(self, name, start, end, domain=0, schema=None, numbers=()):
        """Ranges are given in the order in which they begin; parents before children."""
        name = self._name(name)
        scope, flags = (struct.pack("<II", domain, 0), 1) if domain else (b"", 0)
        data = record(4, name, struct.pack("<q", BEGIN + round(self.clock(start))) + scope, flags)
        if schema:
            payload = struct.pack(f"<{len(numbers)}q", *numbers)
            data += record(14, schema, struct.pack("<II", domain, len(payload)) + payload)
        order = len(self.events)
        self.events.append((start, 1, order, data))
        self.events.append((end, 0, -order, record(5, domain, struct.pack("<q", BEGIN + round(self.clock(end))))))

    def _call(self, api, start, end):
        self.calls += 1
        self.gpu.append(struct.pack("<BBHIqII", 4, api, 3, self.calls, BEGIN + round(self.clock(start)), end - start, self.pid))
        return self.calls

    def kernel(self, name, grid, launched, start, end, stream=0):
        correlation = self._call(1, launched, launched + 4 * US)
        kind = self.kinds.setdefault((name, grid, stream), len(self.kinds))
        self.gpu.append(struct.pack("<BBHIqII", 3, 0, 3, correlation, BEGIN + round(self.clock(start)), end - start, kind))

    def synchronize(self, start, end):
        self._call(2, start, end)

    def _trace(self):
        body = b"".join(record(1, i, struct.pack("<Q", len(text)) + text.encode()) for text, i in self.names.items())
        fields = [f for s in SCHEMAS.values() for f in s]
        ids = {f: len(self.names) + 1 + i for i, f in enumerate(dict.fromkeys(fields))}
        body += b"".join(record(1, i, struct.pack("<Q", len(text)) + text.encode()) for text, i in ids.items())
        body += b"".join(record(2, i, struct.pack("<Q", len(text)) + text.encode()) for i, text in ((NCCL, "NCCL"), (MPI, "MPI")))
        for schema, names in SCHEMAS.items():
            body += record(13, schema, struct.pack("<Q", len(names)) + b"".join(struct.pack("<IBBHQ", ids[n], 2, 8, 0, 8 * i) for i, n in enumerate(names)))
        body += b"".join(event[3] for event in sorted(self.events, key=lambda e: e[:3]))
        size = 64 + len(body) + 8
        size += -size % 4096
        chunk = struct.pack("<IIIIQ40x", 0x4B434352, 0, 0, self.pid, size) + body
        last = BEGIN + round(self.clock(max(e[0] for e in self.events)))
        head = struct.pack("<8sHHIIIqqqQQQQQQQ16x", b"RSTRACE\n", 1, 2, 4096, self.pid, 1, BEGIN, 1_700_000_000 * 10**9, last, 1, self.rank + 1, 0,
                           self.rank + 1, self.world, 0, 0)
        head += b"\0" * (8 * 32) + struct.pack("<II", 6, 16) + b"rangescope 0.1.0".ljust(64, b"\0") + b"/train"
        return head.ljust(4096, b"\0") + chunk.ljust(size, b"\0")

    def _gpu(self):
        def text(kind, number, value):
            return record(kind, number, struct.pack("<II", len(value), 0) + value)
        out = [text(15, 0, b"clock\0callback"), text(13, 1, b"cudaLaunchKernel"), text(13, 2, b"cudaStreamSynchronize"),
               record(10, 0, struct.pack("<QQQQQQIIII", 0, self.rank + 1, 1 << 37, 1 << 25, 4 * 10**12, 10**9, 9, 0, 132, 4) + b"H200"),
               record(11, 1, struct.pack("<IIII", 0, 7, 0, 0))]
        out += [record(12, stream, struct.pack("<IIII", 0, 1, 7 + stream, 0)) for stream in range(2)]
        names = {name: i + 1 for i, name in enumerate(dict.fromkeys(k[0] for k in self.kinds))}
        out += [text(1, i, name.encode()) for name, i in names.items()]
        out += [record(2, i, struct.pack("<II12I", names[name], stream, grid, 1, 1, 256, 1, 1, 0, 0, 0, 32, 0, 0)) for (name, grid, stream), i in self.kinds.items()]
        body, total = b"".join(out + self.gpu), 0xCBF29CE484222325
        for (word,) in struct.iter_unpack("<Q", body):
            total = (total ^ word) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
        return struct.pack("<8sIIIIqq", b"RSGPU\r\n\0", 1, 40, self.pid, 120900, BEGIN, 1_700_000_000 * 10**9) + struct.pack("<IIQ", 0x42475352, len(body), total) + body

    def write(self, folder):
        os.makedirs(f"{folder}/native")
        for name, data in ((f"{self.pid}.0.rstrace", self._trace()), (f"{self.pid}.gpu", self._gpu())) if self.gpu else ((f"{self.pid}.0.rstrace", self._trace()),):
            with open(f"{folder}/native/{name}", "wb") as f:
                f.write(data)
        for name, value in (("manifest", {"schema": "rangescope.run/1", "id": f"rank-{self.rank}", "start_unix_ns": 1_700_000_000 * 10**9}),
                            ("rank", {"schema": "rangescope.rank/1", "job": os.path.basename(os.path.dirname(folder)), "rank": self.rank, "local_rank": 0,
                                      "world_size": self.world, "host": self.host})):
            with open(f"{folder}/{name}.json", "w", encoding="utf-8") as f:
                json.dump(value, f)


def job(folder, ranks):
    os.makedirs(folder)
    with open(f"{folder}/job.json", "w", encoding="utf-8") as f:
        json.dump({"schema": "rangescope.job/1", "name": os.path.basename(folder), "launcher": "", "key": "", "world_size": len(ranks), "profiled": None, "started_unix_ns": 1}, f)
    for rank in ranks:
        rank.world = len(ranks)
        rank.write(f"{folder}/rank-{rank.rank}")


KERNELS = (("_Z4gemmPf", 528, 900 * US), ("_Z4normPf", 64, 120 * US), ("_Z7softmaxPf", 256, 300 * US))
LINK = 40e9  # bytes a second
SIZE = 8 << 20


def simulate(folder, seed, fault=None, count=None, steps=12, hosts=2, lost=0):
    """`lost`: in so many of 100 steps a rank loses its core for some milliseconds. `fault`: slow_gpu, slow_host, uneven_work, slow_link, slow_pair, straggler or None. Returns the rank (of slow_host the host, of slow_pair both
    ranks) at fault."""
    rnd = random.Random(seed)
    count = count or 4 + 2 * (seed % 3)
    per_host = count // hosts
    ranks = [Rank(r, f"node{min(r // per_host, hosts - 1)}") for r in range(count)]
    bad = rnd.randrange(count)
    noise = [0.001, 0.005, 0.01, 0.02][seed % 4]
    at = [rnd.randrange(2 * MS) for _ in ranks]
    busy = random.Random(1000 + seed)
    spread = lambda ns: max(1, round(ns * rnd.gauss(1, noise)))
    for r in ranks:
        for communicator, members in [(0xABC, count)]:
            r.range("ncclCommInitRank", at[r.rank], at[r.rank] + MS, NCCL, INIT, (communicator, members, r.rank))
        at[r.rank] += 2 * MS
    for step in range(steps):
        begin, ready, calls = list(at), [], []
        for r in ranks:
            i, now = r.rank, at[r.rank]
            slow = 1.25 if fault == "slow_host" and r.host == ranks[bad].host else 1
            parts = [("load", now, now + spread(6 * MS * slow))]
            now = parts[-1][2]
            if lost and busy.random() < lost / 100:
                now += busy.randrange(3 * MS, 7 * MS)
                parts[-1] = (*parts[-1][:2], now)
            if fault == "straggler" and i == bad:
                parts.append(("straggle", now, now + 200 * MS // steps))
                now = parts[-1][2]
            forward, done, launches = now, now, []
            more = 1.3 if fault == "uneven_work" and i == bad else 1
            for name, grid, ns in KERNELS * (4 if more == 1 or seed % 2 else 5):
                grid = round(grid * (more if seed % 2 else 1))
                length = spread(ns * (more if seed % 2 else 1) * (1.15 if fault == "slow_gpu" and i == bad else 1))
                launched, now = now, now + spread(20 * US * slow)
                start = max(done, launched + 6 * US)
                done = start + length
                launches.append((name, grid, launched, start, done))
            parts.append(("forward", forward, now))
            wait, now = now, max(now, done) + 5 * US
            parts.append(("sync", wait, now))
            parts.append(("optimizer", now, now + spread(3 * MS * slow)))
            now = parts[-1][2]
            calls.append((parts, launches, wait))
            ready.append(now)
        # Messages of pairs, first from even ranks to the next, then from odd ones; then the reduction of all.
        exchange = [[] for _ in ranks]
        for phase in (0, 1):
            for a in range(phase, count, 2):
                b = (a + 1) % count
                rate = LINK * (0.5 if fault == "slow_link" and bad in (a, b) or fault == "slow_pair" and bad == a else 1)
                both = max(ready[a], ready[b]) + 10 * US
                end = both + spread(SIZE / rate * 1e9)
                exchange[a].append(("ncclSend", b, ready[a], end))
                exchange[b].append(("ncclRecv", a, ready[b], end))
                ready[a] = ready[b] = end + 5 * US
        last = max(ready)
        for r in ranks:
            i = r.rank
            end = last + spread(2 * MS)
            r.range("step", begin[i], end + 10 * US)
            parts, launches, wait = calls[i]
            for name, start, stop in parts:
                r.range(name, start, stop)
            for name, grid, launched, start, done in launches:
                r.kernel(name, grid, launched, start, done)
            r.synchronize(wait, parts[-1][1])
            for name, peer, start, stop in exchange[i]:
                r.range(name, start, start + 4 * US, NCCL, MESSAGE, (0xABC, SIZE, peer))
                r.kernel("ncclDevKernel_SendRecv", 16, start + US, start + 8 * US, stop, 1)
                r.synchronize(start + 5 * US, stop)
            r.range("ncclAllReduce", ready[i], ready[i] + 4 * US, NCCL, COLLECTIVE, (0xABC, 1 << 26))
            r.kernel("ncclDevKernel_AllReduce", 16, ready[i] + US, ready[i] + 8 * US, end, 1)
            r.synchronize(ready[i] + 5 * US, end)
            at[i] = end + 20 * US
    job(folder, ranks)
    return ranks[bad].host if fault == "slow_host" else {bad, (bad + 1) % count} if fault == "slow_pair" else bad
