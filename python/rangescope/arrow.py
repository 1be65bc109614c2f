"""Tables for what reads Arrow (pyarrow, Polars, DuckDB, pandas 2.2), without any of them: the Arrow PyCapsule interface on Arrow's C
stream (arrow.apache.org/docs/format/CDataInterface). One batch of columns; null is what a report lacks."""
from __future__ import annotations

import ctypes
import struct
from collections.abc import Mapping, Sequence
from typing import Any, Optional

Row = Mapping[str, Any]


class _Schema(ctypes.Structure):
    pass


class _Array(ctypes.Structure):
    pass


class _Stream(ctypes.Structure):
    pass


_release = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_get = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
_error = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
_Schema._fields_ = [("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_void_p), ("flags", ctypes.c_int64),
                    ("n_children", ctypes.c_int64), ("children", ctypes.POINTER(ctypes.POINTER(_Schema))), ("dictionary", ctypes.c_void_p),
                    ("release", _release), ("private", ctypes.c_void_p)]
_Array._fields_ = [("length", ctypes.c_int64), ("null_count", ctypes.c_int64), ("offset", ctypes.c_int64), ("n_buffers", ctypes.c_int64),
                   ("n_children", ctypes.c_int64), ("buffers", ctypes.POINTER(ctypes.c_void_p)),
                   ("children", ctypes.POINTER(ctypes.POINTER(_Array))), ("dictionary", ctypes.c_void_p), ("release", _release),
                   ("private", ctypes.c_void_p)]
_Stream._fields_ = [("get_schema", _get), ("get_next", _get), ("get_last_error", _error), ("release", _release), ("private", ctypes.c_void_p)]

_kept: dict[int, Any] = {}  # what a structure points to, by its `private`, until it is released


def _hold(structure: Any, release: Any, *things: Any) -> Any:
    structure.private = token = max(_kept, default=0) + 1
    structure.release = release
    _kept[token] = (structure, *things)
    return structure


def _let_go(kind: Any) -> Any:
    def release(address: int) -> None:
        held = kind.from_address(address)
        for i in range(getattr(held, "n_children", 0)):
            child = held.children[i].contents
            if child.release:
                child.release(ctypes.addressof(child))
        del _kept[held.private]
        held.release = _release(0)
    return _release(release)


_release_schema, _release_array, _release_stream = _let_go(_Schema), _let_go(_Array), _let_go(_Stream)
_empty = ctypes.create_string_buffer(8)


class _Column:
    """Its Arrow format and buffers. Whole numbers are 64 bits, what has no value at all is a column of doubles."""

    def __init__(self, name: str, values: Sequence[Any]) -> None:
        self.name, self.length = name, len(values)
        kinds = {type(value) for value in values if value is not None}
        self.nulls = sum(value is None for value in values)
        if kinds == {bool}:
            self.format, data = b"b", [_bits(values)]
        elif kinds == {int} and all(-1 << 63 <= value < 1 << 63 for value in values if value is not None):
            self.format, data = b"l", [struct.pack(f"{len(values)}q", *(value or 0 for value in values))]
        elif kinds <= {int, float}:
            self.format, data = b"g", [struct.pack(f"{len(values)}d", *(value or 0 for value in values))]
        else:
            texts = [b"" if value is None else str(value).encode(errors="backslashreplace") for value in values]
            ends = [0]
            for text in texts:
                ends.append(ends[-1] + len(text))
            self.format, data = b"U", [struct.pack(f"{len(ends)}q", *ends), b"".join(texts)]
        self.data = [_bits([value is not None for value in values]), *data]

    def schema(self) -> Any:
        return _hold(_Schema(format=self.format, name=self.name.encode(errors="backslashreplace"), flags=2), _release_schema)

    def array(self) -> Any:
        held = [ctypes.create_string_buffer(data, len(data)) if data else _empty for data in self.data]
        places = (ctypes.c_void_p * len(held))(*(ctypes.addressof(each) for each in held))
        if not self.nulls:
            places[0] = None
        array = _Array(length=self.length, null_count=self.nulls, n_buffers=len(held), buffers=ctypes.cast(places, ctypes.POINTER(ctypes.c_void_p)))
        return _hold(array, _release_array, held, places)


def _bits(values: Sequence[Any]) -> bytes:
    out = bytearray((len(values) + 7) // 8)
    for i, value in enumerate(values):
        if value:
            out[i // 8] |= 1 << i % 8
    return bytes(out)


def _parent(kind: Any, release: Any, children: list[Any], **fields: Any) -> Any:
    pointers = (ctypes.POINTER(kind) * len(children))(*(ctypes.pointer(child) for child in children))
    made = kind(n_children=len(children), children=ctypes.cast(pointers, ctypes.POINTER(ctypes.POINTER(kind))), **fields)
    return _hold(made, release, pointers, children)


def _move(made: Any, to: int) -> int:
    ctypes.memmove(to, ctypes.addressof(made), ctypes.sizeof(made))
    return 0


class ArrowTable:
    """Rows as Arrow's readers take them: `pyarrow.table(t)`, `polars.DataFrame(t)`, `duckdb.sql("from t")`. It may be read many times."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._length = len(rows)
        self._columns = [_Column(name, [row[name] for row in rows]) for name in (rows[0] if rows else ())]

    def __len__(self) -> int:
        return self._length

    @property
    def column_names(self) -> list[str]:
        return [each.name for each in self._columns]

    def __repr__(self) -> str:
        return f"<rangescope.ArrowTable: {self._length} rows, {len(self._columns)} columns>"

    def __arrow_c_stream__(self, requested_schema: Optional[object] = None) -> object:
        """A capsule of a new stream; the schema is always that of the table."""
        left = [True]

        def get_schema(_: int, to: int) -> int:
            return _move(_parent(_Schema, _release_schema, [each.schema() for each in self._columns], format=b"+s", name=b""), to)

        def get_next(_: int, to: int) -> int:
            if not left:
                ctypes.memset(to, 0, ctypes.sizeof(_Array))
                return 0
            left.clear()
            nothing = (ctypes.c_void_p * 1)()
            array = _parent(_Array, _release_array, [each.array() for each in self._columns], length=self._length, n_buffers=1,
                            buffers=ctypes.cast(nothing, ctypes.POINTER(ctypes.c_void_p)))
            _kept[array.private] += (nothing,)
            return _move(array, to)

        stream = _Stream(get_schema=_get(get_schema), get_next=_get(get_next), get_last_error=_error(lambda _: None))
        return _capsule(_hold(stream, _release_stream))


_NAME = b"arrow_array_stream"
_new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(("PyCapsule_New", ctypes.pythonapi))
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))
_streams: dict[int, Any] = {}  # a capsule's stream stays where it is when a reader has moved its contents


def _destroy(capsule: int) -> None:
    stream = _streams.pop(_pointer(capsule, _NAME) or 0)
    if stream.release:
        stream.release(ctypes.addressof(stream))


_destructor = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(_destroy)


def _capsule(stream: Any) -> object:
    _streams[ctypes.addressof(stream)] = stream
    return _new(ctypes.addressof(stream), _NAME, ctypes.cast(_destructor, ctypes.c_void_p))
