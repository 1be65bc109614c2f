"""Ranges for Python programs that want to be measured. Python 3.7 and later; this file alone is enough for them.

    import rangescope

    with rangescope.range("decode", payload=tokens):      # a context manager
        ...

    with rangescope.window():                             # under `rangescope profile --stopped`: this is recorded
        ...

    @rangescope.range("forward", domain="model")          # or a decorator
    def forward(x): ...

    with rangescope.range("request", start_end=True):     # in a coroutine that awaits inside: its thread runs others meanwhile
        ...                                               # (a decorated `async def` does so by itself)

No package is needed: under `rangescope profile`, and under any profiler that sets NVTX_INJECTION64_PATH as NVTX defines it,
ranges go straight to the profiler's library. `rangescope.backend` says where they go: "rangescope", "nvtx" (another
profiler's library), or "none": no profiler, and then a range does nothing; or its library could not be used, and then
`rangescope.failure` says why.

Is a synchronization needed at the end? No: GPU work belongs to the range that launched it, whenever it runs. Ask for one
with `sync_after=True` (PyTorch's or CuPy's current device) only where the *wall time* of a range is to hold its GPU work:
it keeps the CPU from running ahead, so the program becomes slower by what it had overlapped.
"""
from __future__ import annotations

import functools
import os
import sys

TYPE_CHECKING = False  # importing typing would take longer than all of this
if TYPE_CHECKING:
    from typing import Any, Callable, TypeVar
    _Function = TypeVar("_Function", bound=Callable[..., Any])

__all__ = ["range", "window", "backend", "failure"]

# NVTX's tables (nvtxDetail/nvtxTypes.h): modules, functions in them, and types of what an event carries.
_CALLBACKS, _CORE, _CORE2 = 1, 1, 5
_PUSH_A, _POP, _START_A, _END = 9, 11, 5, 7
_DOMAIN_PUSH_EX, _DOMAIN_POP, _DOMAIN_START_EX, _DOMAIN_END, _DOMAIN_CREATE_A = 4, 5, 2, 3, 12
_UINT64, _INT64, _DOUBLE, _ASCII = 1, 2, 3, 1


class _Nvtx:
    """A client of NVTX as its headers are one: offers its tables to the profiler's library and calls what that put there."""

    def __init__(self, path: str) -> None:
        import ctypes as c
        import struct

        class Callbacks(c.Structure):
            _fields_ = [("size", c.c_size_t), ("get_table", c.c_void_p)]

        self._slots = {module: (c.c_void_p * 17)() for module in (_CORE, _CORE2)}
        self._tables = {module: (c.c_void_p * 17)(*(c.addressof(slots) + 8 * i if 0 < i < 16 else None for i in _counted(17)))
                        for module, slots in self._slots.items()}

        def get_table(module: int, table: Any, size: Any) -> int:
            if module not in self._tables:
                return 0
            if table:
                table[0] = c.addressof(self._tables[module])
            if size:
                size[0] = 16
            return 1

        table_type = c.CFUNCTYPE(c.c_int, c.c_int, c.POINTER(c.c_void_p), c.POINTER(c.c_uint))
        export_type = c.CFUNCTYPE(c.c_void_p, c.c_uint32)
        self._get_table = table_type(get_table)
        self._callbacks = Callbacks(c.sizeof(Callbacks), c.cast(self._get_table, c.c_void_p).value)
        self._export = export_type(lambda which: c.addressof(self._callbacks) if which == _CALLBACKS else None)
        library = c.CDLL(path)
        initialize = library.InitializeInjectionNvtx2
        initialize.argtypes, initialize.restype = [export_type], c.c_int
        if initialize(self._export) == 0:
            raise OSError("it records nothing in this process")

        def function(module: int, number: int, result: Any, *arguments: Any) -> Any:
            at = self._slots[module][number]
            if not at:
                raise OSError("it lacks a function of NVTX")
            return c.PYFUNCTYPE(result, *arguments)(at)

        self.push = function(_CORE, _PUSH_A, c.c_int, c.c_char_p)
        self.pop = function(_CORE, _POP, c.c_int)
        self.domain_push = function(_CORE2, _DOMAIN_PUSH_EX, c.c_int, c.c_void_p, c.c_char_p)
        self.domain_pop = function(_CORE2, _DOMAIN_POP, c.c_int, c.c_void_p)
        self.start = function(_CORE, _START_A, c.c_uint64, c.c_char_p)
        self.end = function(_CORE, _END, None, c.c_uint64)
        self.domain_start = function(_CORE2, _DOMAIN_START_EX, c.c_uint64, c.c_void_p, c.c_char_p)
        self.domain_end = function(_CORE2, _DOMAIN_END, None, c.c_void_p, c.c_uint64)
        self._create = function(_CORE2, _DOMAIN_CREATE_A, c.c_void_p, c.c_char_p)
        self._address: Callable[[bytes], Any] = lambda text: c.cast(c.c_char_p(text), c.c_void_p).value
        self._pack = struct.Struct("=HHIiIiiQii8s").pack
        self._pointer = struct.Struct("=Q").pack

    @functools.lru_cache(maxsize=None)
    def domain(self, name: str) -> Any:
        return self._create(name.encode())

    def attributes(self, name: bytes, payload: int | float | None) -> bytes:
        """nvtxEventAttributes_t. `name` must outlive the call that takes it."""
        kind, bits = 0, 0
        if isinstance(payload, float):
            import struct
            kind, bits = _DOUBLE, struct.unpack("=Q", struct.pack("=d", payload))[0]
        elif payload is not None:
            number = int(payload)
            kind, bits = (_INT64 if number < 0 else _UINT64), number & 0xFFFFFFFFFFFFFFFF
        return self._pack(3, 48, 0, 0, 0, kind, 0, bits, _ASCII, 0, self._pointer(self._address(name)))


def _is_coroutine(function: Any) -> bool:  # as inspect.iscoroutinefunction, which takes long to import
    return bool(getattr(getattr(function, "__code__", None), "co_flags", 0) & 0x80)


_counted = range  # the built-in, which `range` below hides


def _find() -> tuple[str, Any, str | None]:
    path = os.environ.get("NVTX_INJECTION64_PATH")
    if not path:
        return "none", None, None
    try:
        nvtx = _Nvtx(path)
    except Exception as error:  # a program is never ended by being measured
        return "none", None, f"{path}: {error}"
    return ("rangescope" if os.path.basename(path) == "librangescope_inject.so" else "nvtx"), nvtx, None


backend, _nvtx, failure = _find()


def _synchronize() -> None:
    """Waits for the current device of whichever library the program has imported."""
    torch, cupy = sys.modules.get("torch"), sys.modules.get("cupy")
    if torch is not None and torch.cuda.is_available():
        torch.cuda.synchronize()
    elif cupy is not None:
        cupy.cuda.runtime.deviceSynchronize()


if TYPE_CHECKING:
    from threading import local as _local
else:
    from _thread import _local  # importing threading takes longer


class _Open(_local):
    """The push/pop ranges that the calling thread has open, the latest last."""

    def __init__(self) -> None:
        self.ranges: list[_Range] = []


_open = _Open()
_crossings: set[tuple[bytes, bytes]] = set()


def _close(ended: _Range) -> None:
    """Takes a range off those that are open; says so where another one was opened after it: the pop ends that one."""
    ranges = _open.ranges
    if ranges and ranges[-1] is ended:
        ranges.pop()
        return
    for at in _counted(len(ranges) - 1, -1, -1):
        if ranges[at] is ended:
            break
    else:
        return
    later = [other for other in ranges[at + 1:] if other.domain == ended.domain]
    del ranges[at]
    if not later:
        return
    names = (min(ended.name, later[-1].name), max(ended.name, later[-1].name))
    if names in _crossings or sys.stderr is None:
        return
    _crossings.add(names)
    first, other = (repr(name.decode("utf-8", "replace")) for name in (ended.name, later[-1].name))
    try:
        sys.stderr.write(f"rangescope: warning: the range {first} ends while {other}, which began later, is open: both are "
                         "recorded with wrong times. In a generator or coroutine use "
                         f"rangescope.range({other}, start_end=True)\n")
    except (OSError, ValueError):  # closed
        pass


class _Range:
    """A push/pop range of the calling thread."""

    __slots__ = ("name", "payload", "domain", "sync_after")

    def __init__(self, name: str, payload: int | float | None, domain: str | None, sync_after: bool) -> None:
        self.name, self.payload, self.sync_after = str(name).encode("utf-8", "replace"), payload, sync_after
        self.domain = None if domain is None else _nvtx.domain(domain)

    def __enter__(self) -> _Range:
        if self.domain is None and self.payload is None:
            _nvtx.push(self.name)
        else:
            _nvtx.domain_push(self.domain, _nvtx.attributes(self.name, self.payload))
        _open.ranges.append(self)
        return self

    def __exit__(self, *raised: object) -> None:
        try:
            if self.sync_after:
                _synchronize()
        finally:
            self._end()

    def _end(self) -> None:
        if self.domain is None:
            _nvtx.pop()
        else:
            _nvtx.domain_pop(self.domain)
        _close(self)

    def _for_a_call(self) -> _Range:
        return self

    def __call__(self, function: _Function) -> _Function:
        if _is_coroutine(function):
            @functools.wraps(function)
            async def spanned(*arguments: Any, **named: Any) -> Any:
                with _Span(self):
                    return await function(*arguments, **named)
            return spanned  # type: ignore[return-value]

        @functools.wraps(function)
        def measured(*arguments: Any, **named: Any) -> Any:
            with self._for_a_call():
                return function(*arguments, **named)
        return measured  # type: ignore[return-value]


class _Span(_Range):
    """A start/end range: others of its thread may begin and end while it is open."""

    __slots__ = ("id",)

    def __init__(self, of: _Range) -> None:
        self.name, self.payload, self.domain, self.sync_after = of.name, of.payload, of.domain, of.sync_after

    def __enter__(self) -> _Range:
        if self.domain is None and self.payload is None:
            self.id = _nvtx.start(self.name)
        else:
            self.id = _nvtx.domain_start(self.domain, _nvtx.attributes(self.name, self.payload))
        return self

    def _end(self) -> None:
        if self.domain is None:
            _nvtx.end(self.id)
        else:
            _nvtx.domain_end(self.domain, self.id)

    def _for_a_call(self) -> _Range:
        return _Span(self)


class _Nothing(_Range):
    """A range where nobody records: one object for all."""

    __slots__ = ()

    def __init__(self) -> None:
        pass

    def __enter__(self) -> _Range:
        return self

    def __exit__(self, *raised: object) -> None:
        pass

    def __call__(self, function: _Function) -> _Function:
        return function


_nothing = _Nothing()


def range(name: str, *, payload: int | float | None = None, domain: str | None = None, sync_after: bool = False,
          start_end: bool = False) -> _Range:
    """A push/pop range of the calling thread; a context manager and a decorator.

    name: str. payload: an int or float of this occurrence (`--bucket-by payload` tells occurrences apart). domain: str.
    sync_after: synchronize the device before the range ends, also when an exception ends it; nothing without a profiler.
    start_end: a start/end range, for what awaits or yields inside: push/pop ranges of coroutines and generators that take
    turns would be taken for each other, which standard error says then. Of `async def` functions the decorator makes one in
    any case.
    """
    if _nvtx is None:
        return _nothing
    made = _Range(name, payload, domain, sync_after)
    return _Span(made) if start_end else made


class _Window:
    """What runs inside is recorded, where `rangescope profile --stopped` runs the program; elsewhere it does nothing."""

    def __init__(self) -> None:
        self.opened = False

    @staticmethod
    def _ask(request: bytes) -> bool:
        folder = os.environ.get("RANGESCOPE_DIR")
        if not folder:
            return False
        import socket
        try:
            at = os.open(folder, getattr(os, "O_PATH", os.O_RDONLY) | os.O_CLOEXEC)  # its path may be longer than an address
            try:
                with socket.socket(socket.AF_UNIX) as control:
                    control.settimeout(10)
                    control.connect(f"/proc/self/fd/{at}/control.sock")
                    control.sendall(request)
                    return control.recv(16).startswith(b"ok")
            finally:
                os.close(at)
        except OSError:
            return False

    def __enter__(self) -> _Window:
        self.opened = self._ask(b"start\n")
        return self

    def __exit__(self, *raised: object) -> None:
        if self.opened:
            self._ask(b"stop\n")


def window() -> _Window:
    """A window of the run, as `rangescope ctl RUN start` opens one: a context manager. One that is open already stays so.

    `opened` says whether this one was: False without rangescope, and in a run that records its program from begin to end.
    """
    return _Window()
