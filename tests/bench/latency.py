#!/usr/bin/env python3
"""Latency of a Python HTTP server while `rangescope attach` samples it. Usage: latency.py RANGESCOPE ROUNDS SECONDS [options of attach]

One client asks without pause, on a connection for each request. In each round, in turns: a stretch alone, one in an attach window, one
after it. Prints median, p99 and longest of all stretches of a kind in us, and the least p99 of one stretch.
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
        found = {"alone": [], "in a window": [], "after it": []}
        try:
            ask(port, 2)
            for _ in range(rounds):
                found["alone"].append(ask(port, seconds))
                window = subprocess.Popen([tool, "attach", str(server.pid), "-q", "--for", f"{seconds + 2}s", *options], cwd=folder,
                                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                time.sleep(1)
                found["in a window"].append(ask(port, seconds))
                if window.wait() != 0:
                    sys.exit("attach failed")
                found["after it"].append(ask(port, seconds))
        finally:
            server.kill()
    for kind, stretches in found.items():
        every = [one for stretch in stretches for one in stretch]
        print(f"{kind}: {len(every)} requests, median {percentile(every, 0.5):.0f}, p99 {percentile(every, 0.99):.0f}, longest {max(every):.0f}; "
              f"p99 of the best stretch {min(percentile(stretch, 0.99) for stretch in stretches):.0f}")


main()
