"""Cuts a native capture to the last steps of its loop, and takes the names of folders out of it.
usage: trim_capture.py FROM TO STEPS

FROM is a folder with one PID.gpu and one PID.N.rstrace, whose ranges are `loop` and `step`. TO gets
both, cut: the loop begins with the first step that is kept; calls before it, and their work, go.
Of a program whose GPU work lags behind its calls all steps have to be kept. The formats:
src/wire/gpu.hpp, src/wire/native.hpp."""
import pathlib
import struct
import sys

NAME, KIND, KERNEL, LAUNCH, COPY, MEMSET, INFO, LAUNCH_IN, LAUNCH_OF = 1, 2, 3, 4, 5, 6, 15, 18, 19
BLOCK_MAGIC, CHUNK_MAGIC = 0x42475352, 0x4B434352


def ranges_of(capture):
    """(name, start, end) of every range, in the order of their ends; (pid, tid) of the program."""
    pid, = struct.unpack_from("<I", capture, 16)
    names, stack, ranges, offset, tid = {}, [], [], 4096, 0
    while offset + 64 <= len(capture):
        magic, _, _, chunk_tid, size = struct.unpack_from("<IIIIQ", capture, offset)
        if magic != CHUNK_MAGIC:
            offset += 4096
            continue
        tid, at, record, now = tid or chunk_tid, offset + 64, None, 0
        while at + 8 <= offset + size:
            kind, _, words, value = struct.unpack_from("<BBHI", capture, at)
            if words == 0:
                break
            if kind == 1:
                length, = struct.unpack_from("<Q", capture, at + 8)
                names[value] = capture[at + 16:at + 16 + length].decode()
            elif kind == 3:
                tid = value
            elif kind == 4:
                now, = struct.unpack_from("<q", capture, at + 8)
                stack.append((names.get(value, ""), now))
            elif kind == 5:
                now, = struct.unpack_from("<q", capture, at + 8)
                ranges.append((*stack.pop(), now))
            elif kind == 15:
                now += value & 0xFFFFF
                stack.append((names.get(value >> 20, ""), now))
            elif kind == 16:
                now += value
                ranges.append((*stack.pop(), now))
            at += 8 * words
        offset += size
    return ranges, pid, tid


def trace(header, tid, loop, steps):
    """A capture of the loop and its steps, with the header of the recorded one and without its paths."""
    header = bytearray(header)
    executable = b"python3"
    tail = struct.calcsize("<8sHHIIIqqqQQQQQQQQQ") + 8 * 32
    struct.pack_into("<I", header, tail, len(executable))
    exe = tail + 8 + 64
    header[exe:exe + 3584] = executable.ljust(3584, b"\0")

    def record(kind, value, *rest):
        return struct.pack("<BBHI", kind, 0, 1 + len(rest), value) + b"".join(rest)

    def moment(ns):
        return struct.pack("<q", ns)

    def text(identifier, name):
        return record(1, identifier, struct.pack("<Q", len(name)), name.encode().ljust(8, b"\0"))

    body = text(1, "loop") + text(2, "step") + record(3, tid, moment(loop[0])) + record(4, 1, moment(loop[0]))
    for start, end in steps:
        body += record(4, 2, moment(start)) + record(5, 0, moment(end))
    body += record(5, 0, moment(loop[1]))
    size = -(-(64 + len(body)) // 4096) * 4096
    chunk = struct.pack("<IIIIQ", CHUNK_MAGIC, 0, 0, tid, size).ljust(64, b"\0") + body
    return bytes(header) + chunk.ljust(size, b"\0")


def checksum(data):
    total = 0xCBF29CE484222325
    for word, in struct.iter_unpack("<Q", data):
        total = ((total ^ word) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return total


def records_of(capture):
    offset, = struct.unpack_from("<I", capture, 12)
    while offset + 16 <= len(capture):
        magic, size, _ = struct.unpack_from("<IIQ", capture, offset)
        if magic != BLOCK_MAGIC:
            return
        at = offset + 16
        while at < offset + 16 + size:
            words, = struct.unpack_from("<H", capture, at + 2)
            yield capture[at:at + 8 * words]
            at += 8 * words
        offset += 16 + size


def without_paths(record):
    size, = struct.unpack_from("<I", record, 8)
    key, _, value = record[16:16 + size].partition(b"\0")
    text = key + b"\0" + value.rstrip(b"\0").rpartition(b"/")[2]
    words = 2 + -(-len(text) // 8)
    head = record[:2] + struct.pack("<H", words) + record[4:8] + struct.pack("<II", len(text), 0)
    return head + text.ljust(8 * (words - 2), b"\0")


def gpu_stream(capture, begin_ns):
    """Without calls before `begin_ns` and what they launched."""
    early = set()
    for record in records_of(capture):
        kind, _, _, correlation = struct.unpack_from("<BBHI", record)
        if kind in (LAUNCH, LAUNCH_IN, LAUNCH_OF) and struct.unpack_from("<q", record, 8)[0] < begin_ns:
            early.add(correlation)
    kept = b""
    for record in records_of(capture):
        kind, _, _, correlation = struct.unpack_from("<BBHI", record)
        if kind in (KERNEL, LAUNCH, COPY, MEMSET, LAUNCH_IN, LAUNCH_OF) and correlation in early:
            continue
        kept += without_paths(record) if kind == INFO else record
    header, = struct.unpack_from("<I", capture, 12)
    return capture[:header] + struct.pack("<IIQ", BLOCK_MAGIC, len(kept), checksum(kept)) + kept


def main():
    source, target = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    count = int(sys.argv[3])
    recorded = next(source.glob("*.rstrace")).read_bytes()
    ranges, pid, tid = ranges_of(recorded)
    loop_end = max(end for name, _, end in ranges if name == "loop")
    steps = sorted((start, end) for name, start, end in ranges if name == "step")[-count:]
    begin = steps[0][0] - 1000
    target.mkdir(parents=True, exist_ok=True)
    (target / f"{pid}.0.rstrace").write_bytes(trace(recorded[:4096], tid, (begin, loop_end), steps))
    (target / f"{pid}.gpu").write_bytes(gpu_stream(next(source.glob("*.gpu")).read_bytes(), begin))


main()
