"""DuckDB's own C library through ctypes: a reader of Parquet that shares nothing with rangescope."""
import ctypes


class Result(ctypes.Structure):
    _fields_ = [(name, ctypes.c_void_p) for name in ("columns", "rows", "changed", "data", "error", "internal")]


class DuckDB:
    def __init__(self, library):
        self.lib = ctypes.CDLL(library)
        self.lib.duckdb_value_varchar.restype = ctypes.c_void_p
        for name in ("duckdb_column_count", "duckdb_row_count"):
            getattr(self.lib, name).restype = ctypes.c_uint64
        self.lib.duckdb_result_error.restype = ctypes.c_char_p
        self.database, self.connection = ctypes.c_void_p(), ctypes.c_void_p()
        if self.lib.duckdb_open(None, ctypes.byref(self.database)) or self.lib.duckdb_connect(self.database, ctypes.byref(self.connection)):
            raise RuntimeError("DuckDB does not open")

    def query(self, sql):
        """Rows as tuples of text or None."""
        result = Result()
        try:
            if self.lib.duckdb_query(self.connection, sql.encode(), ctypes.byref(result)):
                raise RuntimeError(self.lib.duckdb_result_error(ctypes.byref(result)).decode())
            columns, rows = (getattr(self.lib, f"duckdb_{what}_count")(ctypes.byref(result)) for what in ("column", "row"))
            return [tuple(self.cell(result, c, r) for c in range(columns)) for r in range(rows)]
        finally:
            self.lib.duckdb_destroy_result(ctypes.byref(result))

    def cell(self, result, column, row):
        value = self.lib.duckdb_value_varchar(ctypes.byref(result), ctypes.c_uint64(column), ctypes.c_uint64(row))
        if not value:
            return None
        text = ctypes.string_at(value).decode()
        self.lib.duckdb_free(ctypes.c_void_p(value))
        return text

    def close(self):
        self.lib.duckdb_disconnect(ctypes.byref(self.connection))
        self.lib.duckdb_close(ctypes.byref(self.database))
