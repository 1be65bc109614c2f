#!/usr/bin/env python3
"""Large reports of ncu: time and memory of `rangescope report`, and of a page of `ncu --import` (--page raw --csv).

    tests/bench/ncu_report.py BIN_DIR [--ncu PATH] [REPORT]

Large reports are made of the blocks of a real one: result blocks are repeated, and a source entry of random bytes brings
the first to 45 MB (sources are most of a real report). Processor time (user and system), which a busy machine distorts
least, best of five; memory is the peak resident set of the process.
"""
import argparse, os, random, struct, subprocess, sys, tempfile

def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]; at += 1
        value |= (byte & 127) << shift; shift += 7
        if byte < 128: return value, at

def put_varint(value):
    out = bytearray()
    while value > 127: out.append(value & 127 | 128); value >>= 7
    out.append(value)
    return bytes(out)

def fields(data):
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        begin = at
        if key & 7 == 0: value, at = varint(data, at)
        elif key & 7 == 2: size, at = varint(data, at); value = data[at:at + size]; at += size
        else: raise ValueError(key)
        yield key >> 3, value

def blocks(data):
    at = 8 + struct.unpack("<I", data[4:8])[0]
    while at < len(data):
        size = struct.unpack("<I", data[at:at + 4])[0]
        header = dict((number, value) for number, value in fields(data[at + 4:at + 4 + size]))
        end = at + 4 + size + header.get(5, 0)
        yield header, data[at:end]
        at = end

def without_strings(block):
    """The block with an empty string table: names are in the file already."""
    size = struct.unpack("<I", block[:4])[0]
    header = b""
    for number, value in fields(block[4:4 + size]):
        if number == 4: value = b""
        if isinstance(value, bytes): header += put_varint(number << 3 | 2) + put_varint(len(value)) + value
        else: header += put_varint(number << 3) + put_varint(value)
    return struct.pack("<I", len(header)) + header + block[4 + size:]

def source_block(size):
    entry = bytes([8, 1, 34]) + put_varint(size) + random.Random(1).randbytes(size)
    header = b"\x08\x01\x10\x00\x22\x00\x28" + put_varint(len(entry) + 4)
    return struct.pack("<I", len(header)) + header + struct.pack("<I", len(entry)) + entry

def make(report, path, results, size):
    data = open(report, "rb").read()
    if data[:4] == b"\x28\xb5\x2f\xfd": data = subprocess.run(["zstd", "-dc", report], check=True, capture_output=True).stdout
    head, rest = data[:8 + struct.unpack("<I", data[4:8])[0]], list(blocks(data))
    found = [block for header, block in rest if header.get(2) or header.get(7)]
    with open(path, "wb") as out:
        out.write(head)
        for header, block in rest: out.write(block)
        again = [without_strings(block) for block in found]
        for i in range(results - len(found)): out.write(again[i % len(again)])
        if out.tell() < size: out.write(source_block(size - out.tell()))

def measure(argv, best_of=5):
    best, memory = None, 0
    for _ in range(best_of):
        child = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, "LC_ALL": "C"})
        _, status, usage = os.wait4(child.pid, 0)
        took = usage.ru_utime + usage.ru_stime
        if status != 0: return None, 0
        best = took if best is None else min(best, took)
        memory = max(memory, usage.ru_maxrss)
        if took > 20: break
    return best, memory / 1024

def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bin"); parser.add_argument("report", nargs="?")
    parser.add_argument("--ncu", default="")
    arguments = parser.parse_args()
    report = arguments.report or os.path.join(os.path.dirname(__file__), "../golden/ncu/k_decode.ncu-repz")
    with tempfile.TemporaryDirectory() as folder:
        for results, size in ((40, 45_000_000), (5000, 0)):
            path = os.path.join(folder, f"{results}.ncu-rep")
            maker = os.fork()  # a process of its own, since a child begins with the memory of its parent
            if maker == 0:
                make(report, path, results, size)
                os._exit(0)
            os.waitpid(maker, 0)
            print(f"{results} results, {os.path.getsize(path) / 1e6:.1f} MB")
            regions, memory = measure([os.path.join(arguments.bin, "rangescope"), "report", path])
            print(f"  rangescope report                 {regions * 1e3:9.1f} ms  {memory:7.1f} MiB" if regions else "  rangescope report: failed")
            if arguments.ncu:
                theirs, memory = measure([arguments.ncu, "--import", path, "--csv", "--page", "raw"])
                print(f"  ncu --import --csv --page raw     {theirs * 1e3:9.1f} ms  {memory:7.1f} MiB" if theirs else "  ncu: failed")

if __name__ == "__main__":
    main()
