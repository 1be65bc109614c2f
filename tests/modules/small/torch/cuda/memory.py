"""An allocator that records like PyTorch 2.11: each block is a segment of its own, sizes are rounded to 512 bytes.

What `_snapshot` returns has the keys and the values of a real one (tests/golden/memory).
"""
import collections
import sys
import time

OLD = False  # as before PyTorch 2.1: other arguments
_enabled = None
_context = None
_events = collections.deque()
_blocks = {}  # address: bytes
_next = 0x7F0000000000
_in_use = _peak = 0
_observers = []
LIMIT = 1 << 40


class OutOfMemoryError(RuntimeError):
    pass


def _record_memory_history(enabled="all", context="all", stacks="all", max_entries=sys.maxsize, device=None, clear_history=False):
    global _enabled, _context, _events
    if OLD:
        raise TypeError("_record_memory_history() got an unexpected keyword argument 'context'")
    assert enabled in (None, "state", "all") and context in (None, "state", "alloc", "all") and stacks in ("python", "all")
    _enabled, _context = enabled, context
    _events = collections.deque([] if clear_history or enabled is None else _events, max_entries)


def _note(action, address, size):
    if _enabled != "all":
        return
    frame, frames = sys._getframe(2), []
    while frame and _context in ("alloc", "all"):
        frames.append({"name": frame.f_code.co_name, "filename": frame.f_code.co_filename, "line": frame.f_lineno})
        frame = frame.f_back
    _events.append({"action": action, "addr": address, "size": size, "stream": 0, "time_us": time.time_ns() // 1000, "frames": frames})


def allocate(size):
    global _next, _in_use, _peak
    if _in_use + size > LIMIT:
        _events.append({"action": "oom", "device_free": LIMIT - _in_use, "size": size, "stream": 0, "time_us": time.time_ns() // 1000, "frames": []})
        for observer in _observers:
            observer(0, size, LIMIT, LIMIT - _in_use)
        raise OutOfMemoryError
    address = _next
    _blocks[address] = (size + 511) // 512 * 512
    _next += _blocks[address]
    _note("segment_alloc", address, _blocks[address])
    _note("alloc", address, size)
    _in_use += _blocks[address]
    _peak = max(_peak, _in_use)
    return address


def free(address):
    global _in_use
    size = _blocks.pop(address)
    _in_use -= size
    for action in ("free_requested", "free_completed", "segment_free"):
        _note(action, address, size)


def max_memory_allocated():
    return _peak


def memory_stats(device=None):
    return {"allocated_bytes.all.peak": _peak, "allocated_bytes.all.current": _in_use}


def _snapshot(device=None):
    segments = [{"device": 0, "address": address, "total_size": size, "allocated_size": size, "active_size": size, "stream": 0,
                 "segment_type": "large", "segment_pool_id": (0, 0), "is_expandable": False, "frames": [],
                 "blocks": [{"address": address, "size": size, "requested_size": size, "state": "active_allocated", "frames": []}]}
                for address, size in _blocks.items()]
    return {"segments": segments, "device_traces": [list(_events)], "external_annotations": [],
            "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": "", "max_split_size": -1, "expandable_segments": False,
                                   "roundup_power2_divisions": {str(2 ** n): 0 for n in range(17)}}}
