"""Ranges for Python programs that want to be measured.

    import rangescope

    with rangescope.range("decode", payload=tokens):      # a context manager
        ...

    @rangescope.range("forward")                          # or a decorator
    def forward(x): ...

Any profiler that reads NVTX sees these ranges. They are made by the package `nvtx` where it is installed (with domains and
payloads), else by PyTorch (names alone), else they do nothing; `rangescope.backend` says which: "nvtx", "torch" or "none".

Is a synchronization needed at the end? No: GPU work belongs to the range that launched it, whenever it runs. Ask for one
with `sync_after=True` (PyTorch's or CuPy's current device) only where the *wall time* of a range is to hold its GPU work:
it keeps the CPU from running ahead, so the program becomes slower by what it had overlapped.
"""
import contextlib
import sys

__all__ = ["range", "backend"]


def _find():
    try:
        import nvtx
        return "nvtx", nvtx
    except ImportError:
        pass
    try:
        import torch.cuda.nvtx as torch_nvtx
        torch_nvtx.range_push  # a build of PyTorch without CUDA has stubs, which raise when called
        import torch
        if torch.version.cuda:
            return "torch", torch_nvtx
    except (ImportError, AttributeError):
        pass
    return "none", None


backend, _module = _find()


def _synchronize():
    """Waits for the current device of whichever library the program has imported."""
    torch, cupy = sys.modules.get("torch"), sys.modules.get("cupy")
    if torch is not None and torch.cuda.is_available():
        torch.cuda.synchronize()
    elif cupy is not None:
        cupy.cuda.runtime.deviceSynchronize()


class range(contextlib.ContextDecorator):
    """A push/pop range of the calling thread; a context manager and a decorator.

    name: str. payload: an int or float of this occurrence (`--bucket-by payload` tells occurrences apart); `nvtx` only.
    domain: str, `nvtx` only. sync_after: synchronize the device before the range ends, also when an exception ends it.
    """

    def __init__(self, name, *, payload=None, domain=None, sync_after=False):
        self.name, self.payload, self.domain, self.sync_after = name, payload, domain, sync_after

    def __enter__(self):
        if backend == "nvtx":
            _module.push_range(self.name, domain=self.domain, payload=self.payload)
        elif backend == "torch":
            _module.range_push(self.name)
        return self

    def __exit__(self, *raised):
        try:
            if self.sync_after:
                _synchronize()
        finally:
            if backend == "nvtx":
                _module.pop_range(domain=self.domain)
            elif backend == "torch":
                _module.range_pop()
        return False
