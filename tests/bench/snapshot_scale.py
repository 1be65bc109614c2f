#!/usr/bin/env python3
"""A memory snapshot of 1 GB: time and memory of its report, and of redacting its texts (`runs import`).

    snapshot_scale.py BUILD_DIR [GB]

The snapshot is made here: allocations and frees of a training loop, each with a stack of 32 lines out of 2,000, as PyTorch
and Python's pickle write them: a line is one dictionary, which stacks name by its place in the memo. In $TMPDIR.
"""
import os
import struct
import subprocess
import sys
import tempfile
import time

DEPTH, LINES, LIVE, BLOCK = 32, 2000, 2000, 2 << 20
KEYS = ("action", "addr", "size", "stream", "time_us", "frames", "filename", "line", "name", "alloc", "free_requested", "free_completed")


def text(value):
    data = value.encode()
    return b"\x8c" + bytes([len(data)]) + data


def get(word):
    return b"h" + bytes([KEYS.index(word)])


def integer(value):
    return b"\x8a\x07" + struct.pack("<Q", value)[:7] if value >= 1 << 31 else b"J" + struct.pack("<i", value)


def line(number):
    """A dictionary that only the memo keeps."""
    return (b"}\x94(" + get("filename") + text(f"/opt/models/layers/part_{number // 20}.py") + b"\x94" + get("line") + integer(10 + number % 700) +
            get("name") + text(f"function_{number // 4}") + b"\x94u0")


# A line and its two texts are memoized after the keys.
STACKS = [b"".join(b"j" + struct.pack("<I", len(KEYS) + 3 * line) for line in range(first, first + DEPTH)) for first in range(LINES - DEPTH)]


def event(action, number, at_us):
    return (b"}\x94(" + get("action") + get(action) + get("addr") + integer(0x7F0000000000 + number % LIVE * BLOCK) + get("size") + integer(BLOCK) +
            get("stream") + b"K\x00" + get("time_us") + integer(at_us) + get("frames") + b"]\x94(" + STACKS[number * 7 % len(STACKS)] + b"eu")


def make(path, most_bytes):
    """Block N is freed when N + LIVE takes its address; events until the file is of that size. Returns how many."""
    count, at_us = 0, 1_700_000_000_000_000
    with open(path, "wb") as file:
        file.write(b"\x80\x04}(" + text("segments") + b"]")
        file.write(b"".join(text(key) + b"\x94" + b"0" for key in KEYS))
        file.write(b"".join(line(number) for number in range(LINES)) + b"(")
        for block in range(LIVE):
            address = integer(0x7F0000000000 + block * BLOCK)
            file.write(b"}(" + text("device") + b"K\x00" + text("address") + address + text("total_size") + integer(BLOCK) + text("blocks") + b"](}(" +
                       text("address") + address + text("size") + integer(BLOCK) + text("state") + text("active_allocated") + b"ueu")
        file.write(b"e" + text("device_traces") + b"](]")
        number = 0
        while file.tell() < most_bytes:
            batch = []
            while len(batch) < 1000:  # as many as Python's pickle appends at once
                for action in (("free_requested", "free_completed", "alloc") if number >= LIVE else ("alloc",)):
                    at_us += 1
                    batch.append(event(action, number, at_us))
                number += 1
            count += len(batch)
            file.write(b"(" + b"".join(batch) + b"e")
        file.write(b"eu.")
    return count


def own_kilobytes(pid):
    """Without the pages of mapped files, which the system takes back when it needs them."""
    with open(f"/proc/{pid}/status") as status:
        return next((int(line.split()[1]) for line in status if line.startswith("RssAnon:")), 0)


def run(words, folder):
    """Seconds, of CPU time and in all, and MB: its own and with mapped files, at most."""
    start = time.monotonic()
    child = subprocess.Popen(words, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    own = 0
    while True:
        own = max(own, own_kilobytes(child.pid))
        ended, status, usage = os.wait4(child.pid, os.WNOHANG)
        if ended:
            break
        time.sleep(0.01)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"{' '.join(words)}: exit code {child.returncode}")
    return usage.ru_utime + usage.ru_stime, time.monotonic() - start, own / 1024, usage.ru_maxrss / 1024


def main(build, gigabytes="1"):
    tool = os.path.abspath(f"{build}/bin/rangescope")
    with tempfile.TemporaryDirectory(prefix="rangescope-bench-") as folder:
        path = os.path.join(folder, "snapshot.pickle")
        events = make(path, float(gigabytes) * 1e9)
        print(f"\nsnapshot of {os.path.getsize(path) / 1e9:.2f} GB, {events:,} events with {DEPTH} lines each")
        for name, words in (("report", ["report", path]), ("report -f json", ["report", path, "-f", "json"]), ("runs import", ["runs", "import", path])):
            cpu, wall, own, mapped = run([tool, *words], folder)
            print(f"{name:<16}{cpu:>8.2f} s of CPU time, {wall:.2f} s in all, {own:.0f} MB of its own, {mapped:.0f} MB with the mapped file")


if __name__ == "__main__":
    main(*sys.argv[1:])
