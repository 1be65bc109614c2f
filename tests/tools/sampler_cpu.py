#!/usr/bin/env python3
"""Runs a command and says on stderr what its busiest further thread took of a core. Usage: sampler_cpu.py COMMAND...

Of `rangescope profile` that thread is the one that takes CPU samples: `sampler 0.123 s of 10.2 s: 0.012 core`, while it lived."""
import os
import signal
import subprocess
import sys
import time


def thread_seconds(pid, tid):
    with open(f"/proc/{pid}/task/{tid}/schedstat", encoding="ascii") as f:
        return int(f.read().split()[0]) / 1e9


process = subprocess.Popen(sys.argv[1:])
for number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(number, lambda received, _: process.send_signal(received))
begun, lived = {}, {}
while process.poll() is None:
    now = time.monotonic()
    try:
        for tid in os.listdir(f"/proc/{process.pid}/task"):
            if int(tid) != process.pid:
                lived[tid] = (thread_seconds(process.pid, tid), now - begun.setdefault(tid, now))
    except OSError:
        pass
    time.sleep(0.1)
cpu, wall = max(lived.values(), default=(0, 0))
if wall > 0:
    print(f"sampler {cpu:.3f} s of {wall:.1f} s: {cpu / wall:.4f} core", file=sys.stderr)
sys.exit(process.returncode if process.returncode >= 0 else 128 - process.returncode)
