"""A small reader of Perfetto traces, written from the published .proto files and sharing nothing with the writer."""
import struct


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7


def fields(data):
    """[(number, value)]: integers for varints and fixed numbers, bytes for what has a length."""
    at, out = 0, []
    while at < len(data):
        key, at = varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(data, at)
        elif kind == 1:
            value, at = struct.unpack_from("<Q", data, at)[0], at + 8
        elif kind == 2:
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
            assert len(value) == size, "a field beyond the end"
        elif kind == 5:
            value, at = struct.unpack_from("<I", data, at)[0], at + 4
        else:
            raise ValueError(f"wire type {kind}")
        out.append((key >> 3, value))
    return out


def first(message, number, default=None):
    return next((value for n, value in message if n == number), default)


class Trace:
    """tracks: {uuid: {...}}; slices: finished slices with track, name, category, start, end, args, flows_out, flows_in;
    instants alike. counters: {track name: (unit, [(at, value)])}. cpu_samples: {at, pid, tid, mode, chain: [(function, mapping), the outermost first]}. As trace_processor does, events are ordered by time, those of equal time as they stand."""

    def __init__(self, data):
        self.tracks, self.slices, self.instants, self.clocks, self.cpu_samples, self.counters = {}, [], [], {}, [], {}
        functions, paths, mappings, frames, stacks_of = {}, {}, {}, {}, {}
        names, categories, keys = {}, {}, {}
        events = []
        for number, packet in fields(data):
            assert number == 1, f"field {number} of Trace"
            packet = fields(packet)
            assert first(packet, 10), "a packet without a sequence"
            for n, message in packet:
                if n == 12:
                    for kind, entry in fields(message):
                        entry = fields(entry)
                        iid = first(entry, 1)
                        if kind == 19:
                            mappings[iid] = "/".join(paths[value] for n, value in entry if n == 7)
                        elif kind == 6:
                            assert first(entry, 4), "a frame of a mapping without an address"
                            frames[iid] = (functions[first(entry, 2)], mappings[first(entry, 3)])
                        elif kind == 7:
                            stacks_of[iid] = [frames[value] for n, value in entry if n == 2]
                        else:
                            {1: categories, 2: names, 3: keys, 5: functions, 17: paths}[kind][iid] = first(entry, 2).decode()
                elif n == 60:
                    self.add_track(fields(message))
                elif n == 6:
                    for kind, clock in fields(message):
                        if kind == 1:
                            clock = fields(clock)
                            self.clocks[first(clock, 1)] = first(clock, 2)
                elif n == 66:
                    sample = fields(message)
                    self.cpu_samples.append({"at": first(packet, 8), "pid": first(sample, 2), "tid": first(sample, 3), "mode": first(sample, 5),
                                             "chain": stacks_of.get(first(sample, 4), [])})
                elif n == 11:
                    events.append((first(packet, 8), self.event(fields(message), names, categories, keys)))
        events.sort(key=lambda pair: pair[0])
        stacks = {}
        for at, event in events:
            stack = stacks.setdefault(event["track"], [])
            if event["type"] == 1:
                stack.append({**event, "start": at, "depth": len(stack)})
            elif event["type"] == 2:
                self.slices.append({**stack.pop(), "end": at})
            elif event["type"] == 3:
                self.instants.append({**event, "start": at})
            elif event["type"] == 4:
                track = self.tracks[event["track"]]
                self.counters.setdefault(track["name"], (track["unit"], []))[1].append((at, event["value"]))
            else:
                raise ValueError(f"event type {event['type']}")
        assert not any(stacks.values()), "slices without an end"

    def pid_of(self, event):
        """Of the process that the event's track lies in."""
        track = self.tracks[event["track"]]
        while "pid" not in track:
            track = self.tracks[track["parent"]]
        return track["pid"]

    def add_track(self, message):
        track = {"name": (first(message, 2) or b"").decode(), "parent": first(message, 5)}
        if first(message, 3) is not None:
            process = fields(first(message, 3))
            track.update(pid=first(process, 1), process_name=(first(process, 6) or b"").decode())
        if first(message, 4) is not None:
            thread = fields(first(message, 4))
            track.update(pid=first(thread, 1), tid=first(thread, 2))
        if first(message, 8) is not None:
            track.update(unit=(first(fields(first(message, 8)), 6) or b"").decode())
        assert first(message, 1) not in self.tracks, "a track twice"
        self.tracks[first(message, 1)] = track

    def event(self, message, names, categories, keys):
        args = {}
        for n, value in message:
            if n == 4:
                annotation = fields(value)
                key = keys[first(annotation, 1)]
                kind, raw = next((n, v) for n, v in annotation if n != 1)
                args[key] = (bool(raw) if kind == 2 else raw if kind == 3 else raw - (raw >> 63 << 64) if kind == 4
                             else struct.unpack("<d", struct.pack("<Q", raw))[0] if kind == 5 else raw.decode())
        track = first(message, 11)
        assert track in self.tracks, "an event of a track that was not described before"
        return {"type": first(message, 9), "track": track, "name": names.get(first(message, 10)),
                "category": categories.get(first(message, 3)), "args": args,
                "value": struct.unpack("<d", struct.pack("<Q", first(message, 44, 0)))[0],
                "flows_out": [v for n, v in message if n == 47], "flows_in": [v for n, v in message if n == 48]}
