#!/usr/bin/env python3
"""Latency of a Python HTTP server while `rangescope attach` samples it. Usage: latency.py RANGESCOPE ROUNDS SECONDS [options of attach]

One client asks without pause, on a connection for each request. In each round, in turns: a stretch alone, one in an attach window, one
after it, and, with PERF=path, one under `perf record` with call chains 199 times per second. Prints the median and p99 of all stretches of
a kind in us, and the median of the stretches' own p99, which a stretch that something else disturbed does not move.
"""
import http.client
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))


def ask(port, seconds):
    times, until = [], time.monotonic() + seconds
    while time.monotonic() < until:
        begin = time.perf_counter_ns()
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        connection.request("GET", "/")
        body = connection.getresponse().read()
        times.append((time.perf_counter_ns() - begin) / 1000)
        connection.close()
        assert body.startswith(b'{"answer"'), body
    return times


def percentile(times, share):
    return sorted(times)[min(len(times) - 1, int(len(times) * share))]


def main():
    tool, rounds, seconds, options = os.path.abspath(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), sys.argv[4:]
    with tempfile.TemporaryDirectory() as folder:
        server = subprocess.Popen([sys.executable, f"{HERE}/../attach/server.py"], stdout=subprocess.PIPE, text=True)
        port = int(server.stdout.readline())
        perf = os.environ.get("PERF")
        found = {kind: [] for kind in ["alone", "in a window", "after it"] + ["under perf record"] * bool(perf)}

        def beside(kind, command):
            window = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(1)
            found[kind].append(ask(port, seconds))
            if window.wait() != 0:
                sys.exit(f"{command[0]} failed")

        try:
            ask(port, 2)
            for _ in range(rounds):
                found["alone"].append(ask(port, seconds))
                beside("in a window", [tool, "attach", str(server.pid), "-q", "--for", f"{seconds + 1.5}s", *options])
                found["after it"].append(ask(port, seconds))
                if perf:
                    beside("under perf record", [perf, "record", "-q", "-F", "199", "--call-graph", "dwarf", "-o", "perf.data", "-p",
                                                 str(server.pid), "--", "sleep", f"{seconds + 1.5}"])
        finally:
            server.kill()
    for kind, stretches in found.items():
        every = [one for stretch in stretches for one in stretch]
        own = sorted(percentile(stretch, 0.99) for stretch in stretches)
        print(f"{kind}: {len(every)} requests, median {percentile(every, 0.5):.0f}, p99 {percentile(every, 0.99):.0f}, "
              f"median of {len(own)} stretches' p99 {own[len(own) // 2]:.0f}")


main()
