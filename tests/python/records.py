#!/usr/bin/env python3
"""records: reports as Python's records and tables, against the command's own JSON and CSV; hostile reports. Usage: records.py BIN ROOT"""
import csv
import ctypes
import gc
import html.parser
import io
import json
import os
import subprocess
import sys
import tempfile
import types
import unittest
import unittest.mock

from package import BIN, COMMAND, PROGRAM, PYTHON, ROOT, cases, golden, need

sys.path.insert(0, f"{ROOT}/tests/parquet")
import duckdb  # noqa: E402
import rangescope
from rangescope import arrow, mcp, page

DUCKDB = next((path for path in (os.environ.get("RANGESCOPE_DUCKDB", ""), f"{BIN}/../lib/libduckdb.so", f"{ROOT}/.cache/duckdb/libduckdb.so")
               if path and os.path.exists(path)), None)


def table(path, *options):
    done = cases.run([COMMAND, "report", path, "-f", "csv", *options])
    return [row for row in csv.DictReader(io.StringIO(done.stdout)) if not row["process"] and row["path"]]  # and not what is outside ranges


class Records(unittest.TestCase):
    def test_import_of_ranges_imports_nothing_more(self):
        done = cases.run([sys.executable, "-c", "import rangescope, sys; print(*sorted(m for m in sys.modules if m.startswith('rangescope') "
                          "or m in ('json', 'subprocess', 'typing', 'pandas')))"])
        self.assertEqual(done.stdout.split(), ["rangescope", "rangescope.ranges"], done.stderr)

    def test_values_are_those_of_the_report(self):
        for path in (golden("nsys/zoo.sqlite"), golden("native-gpu/zoo")):
            run = rangescope.load(path)
            rows = table(path)
            self.assertEqual([each.path for each in run.regions], [row["path"] for row in rows])
            for region, row in zip(run.regions, rows):
                self.assertEqual(region.occurrences, int(row["occurrences"]))
                for name in run["measures"]:
                    self.assertEqual(region[name], float(row[name]) if row[name] else None, f"{path}: {region.path}: {name}")
            self.assertEqual(sum(each.calls for each in run.kernels), run["total.kernels"])
            self.assertEqual(run.regions[0].wall_ns, run.regions[0]["wall_ns.inclusive"])

    def test_functions(self):
        run = rangescope.load(golden("native-cpu/python"))
        self.assertIn(("red", "app.py"), {(each.name.split(" ")[0].split(":")[-1], os.path.basename(each.file or "")) for each in run.functions})
        self.assertEqual({each.region for each in run.functions} - {each.path for each in run.regions}, {""})

    def test_region_by_its_path(self):
        run = rangescope.load(golden("nsys/zoo.sqlite"))
        deep = next(each for each in run.regions if each["depth"] == 1)
        same = [each for each in run.regions if each.path == deep.path]
        self.assertEqual(run.region(deep.path).data, same[0].data)
        self.assertEqual(run.region("LLM@decode_all").domain, "LLM")
        open_close = next(each for each in run.regions if each.kind == "start_end")
        self.assertEqual(run.region(open_close.path + " [start/end]").data, open_close.data)
        with self.assertRaisesRegex(KeyError, "near it: .*" + run.regions[0].path):
            run.region(run.regions[0].path + "x")

    def test_pandas(self):
        need(self, "pandas")
        path = golden("nsys/zoo.sqlite")
        frame = rangescope.load(path).to_pandas()
        rows = table(path)
        self.assertEqual(frame["wall_ns.inclusive"].sum(), sum(float(row["wall_ns.inclusive"]) for row in rows))
        self.assertEqual(frame["ranks.mean_ns"].dtype, float, "absent is NaN")
        self.assertTrue(frame["ranks.mean_ns"].isna().all())
        self.assertEqual(frame.sort_values("gpu.busy_ns").iloc[-1]["gpu.busy_ns"], max(float(row["gpu.busy_ns"] or 0) for row in rows))
        for name in ("verdict", "kernels", "ranks", "functions", "all_regions"):
            rangescope.load(path).to_pandas(name)

    def test_matplotlib(self):
        need(self, "matplotlib")
        import matplotlib
        matplotlib.use("Agg")
        run = rangescope.load(golden("nsys/zoo.sqlite"))
        axes = run.plot(top=3)
        self.assertEqual(sorted(bar.get_width() for bar in axes.patches), sorted((r.self_ns or 0) / 1e9 for r in run.regions)[-3:])
        axes.figure.savefig(io.BytesIO())

    def test_types(self):
        need(self, tool="mypy")
        with tempfile.TemporaryDirectory() as folder:
            with open(f"{folder}/use.py", "w") as f:
                f.write("import rangescope; from typing import Optional\nrun = rangescope.load()\nwall: str = run.regions[0].wall_ns\nn: Optional[int] = run.regions[0].occurrences\n"
                        "@rangescope.range('f')\ndef f(a: int) -> str: return str(a)\nreveal_type(f)\n")
            done = cases.run(["mypy", "--strict", "--python-version", "3.9", "--ignore-missing-imports", "--python-executable", sys.executable, "--cache-dir", f"{folder}/c",
                              f"{ROOT}/python/rangescope"])
            self.assertEqual(done.returncode, 0, done.stdout)
            done = cases.run(["mypy", "--strict", "--cache-dir", f"{folder}/c", "--ignore-missing-imports", f"{folder}/use.py"],
                             env={**os.environ, "MYPYPATH": f"{ROOT}/python"})
        self.assertIn('use.py:3: error: Incompatible types in assignment (expression has type "Optional[float]", variable has type "str")', done.stdout)
        self.assertIn('Revealed type is "def (a: builtins.int) -> builtins.str"', done.stdout)
        self.assertIn("Found 1 error", done.stdout)


class Arrow(unittest.TestCase):
    """Streams read by DuckDB's own library; its tables are views, which ask for a stream once."""

    def read(self, table, sql="from t"):
        if not DUCKDB:
            self.skipTest("no DuckDB (./dev duckdb)")
        reader = duckdb.DuckDB(DUCKDB)
        self.addCleanup(reader.close)
        capsule = table.__arrow_c_stream__()
        stream = ctypes.c_void_p(arrow._pointer(id(capsule), b"arrow_array_stream"))
        self.assertEqual(reader.lib.duckdb_arrow_scan(reader.connection, b"t", stream), 0)
        kinds = {name: kind for name, kind, *_ in reader.query("describe t")}
        rows = [tuple(row) for row in reader.query(sql)]
        reader.query("drop view t")
        return kinds, rows

    def test_values_are_those_of_the_report(self):
        run = rangescope.load(golden("nsys/zoo.sqlite"))
        for name in ("regions", "all_regions", "kernels", "verdict"):
            table, rows = arrow.ArrowTable(run.rows(name)), run.rows(name)
            kinds, got = self.read(table)
            self.assertEqual((list(kinds), len(got), len(table)), (list(rows[0]), len(rows), len(rows)))
            for row, want in zip(got, rows):
                for value, known in zip(row, want.values()):
                    self.assertEqual(value if value is None or isinstance(known, str) else float(value), known)

    def test_types(self):
        rows = [{"whole": 1, "real": 0.5, "flag": True, "text": "a\u00e9\u0000b", "mixed": 1, "none": None, "huge": 1 << 70},
                {"whole": None, "real": None, "flag": None, "text": None, "mixed": 2.5, "none": None, "huge": 1},
                {"whole": -(1 << 63), "real": 1, "flag": False, "text": "", "mixed": None, "none": None, "huge": 1}] * 300
        kinds, got = self.read(arrow.ArrowTable(rows), "select whole, real, flag, text, mixed, none from t")
        self.assertEqual(kinds, {"whole": "BIGINT", "real": "DOUBLE", "flag": "BOOLEAN", "text": "VARCHAR", "mixed": "DOUBLE", "none": "DOUBLE", "huge": "DOUBLE"})
        self.assertEqual([row[:3] + row[4:] for row in got[-3:]], [("1", "0.5", "true", "1.0", None), (None, None, None, "2.5", None),
                                                                  (str(-(1 << 63)), "1.0", "false", None, None)])
        self.assertEqual([row[3] for row in got[-2:]], [None, ""])
        self.assertEqual(len(got), 900)

    def test_nothing_is_kept(self):
        """As a reader that takes a column out, releases the rest, and the column later; and of a stream that nobody reads."""
        table = arrow.ArrowTable([{"a": 1, "b": "x"}] * 10)
        table.__arrow_c_stream__()
        capsule = table.__arrow_c_stream__()
        at = arrow._pointer(id(capsule), b"arrow_array_stream")
        stream = arrow._Stream.from_address(at)
        schema, array, column, end = arrow._Schema(), arrow._Array(), arrow._Array(), arrow._Array()
        self.assertEqual([stream.get_schema(at, ctypes.addressof(schema)), stream.get_next(at, ctypes.addressof(array)), stream.get_next(at, ctypes.addressof(end))], [0] * 3)
        self.assertFalse(end.release, "the end")
        ctypes.memmove(ctypes.addressof(column), array.children[1], ctypes.sizeof(column))
        array.children[1].contents.release = arrow._release(0)
        for each in (schema, array):
            each.release(ctypes.addressof(each))
            self.assertFalse(each.release)
        self.assertEqual(ctypes.string_at(column.buffers[2], 10), b"x" * 10)
        column.release(ctypes.addressof(column))
        del stream, capsule
        gc.collect()
        self.assertEqual((arrow._kept, arrow._streams), ({}, {}))

    def test_what_to_arrow_gives(self):
        run = rangescope.load(golden("nsys/zoo.sqlite"))
        table = run.to_arrow("kernels")
        self.assertEqual((len(table), list(table.column_names)), (len(run.kernels), list(run.rows("kernels")[0])))
        self.assertTrue(hasattr(table, "__arrow_c_stream__"))


class Commands(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.runs = os.path.join(self.folder.name, "runs")

    def program(self, text=PROGRAM):
        path = os.path.join(self.folder.name, "program.py")
        with open(path, "w") as f:
            f.write(text)
        return [*PYTHON, path]

    def test_profile_compare_and_gate(self):
        run = rangescope.profile(self.program(), runs=self.runs)
        self.assertEqual(run.region("step > compute").occurrences, 3)
        self.assertEqual((run.exit_code, rangescope.load("latest", runs=self.runs).report), (0, run.report))
        self.assertEqual(rangescope.load(run, "--include", "compute").regions[-1].path, "step > compute")
        slow = rangescope.profile(self.program(PROGRAM.replace("5000000", "30000000").replace("in range(3)", "in range(20)")), "--repeat", "2", runs=self.runs)
        by_path = {each["path"]: each for each in rangescope.compare(run, slow).changes}
        self.assertEqual(by_path["step > compute"]["ratio"], 6)
        baselines = ["--dir", self.runs + "/baselines"]
        self.assertTrue(os.path.isfile(rangescope.save_baseline(run, "quick", baselines)))
        judged = rangescope.gate(run, "quick", baselines)
        self.assertEqual((judged.passed, judged.verdict, judged.code), (judged.code == 0, judged.data["verdict"], judged.code))
        with self.assertRaises(rangescope.CommandError) as raised:
            rangescope.gate(run, "missing", baselines)
        self.assertEqual(raised.exception.code, 66)

    def test_ranks(self):
        for rank in "01":
            cases.run([COMMAND, "profile", "-q", "--runs", self.runs, "--", *self.program()],
                      env={**os.environ, "RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "localhost",
                           "MASTER_PORT": "29500", "TORCHELASTIC_RUN_ID": "doors"})
        job, = os.listdir(self.runs)
        run = rangescope.load(job, runs=self.runs)
        self.assertEqual([each.rank for each in run.ranks], [0, 1])

    def test_the_programs_end_and_what_it_prints(self):
        run = rangescope.profile(["sh", "-c", "echo said; exit 3"], runs=self.runs, stdout=subprocess.PIPE)
        self.assertEqual((run.exit_code, run.output), (3, "said\n"))
        with self.assertRaises(rangescope.CommandError) as raised:
            rangescope.profile(["/no/such/program"], runs=self.runs, stderr=subprocess.PIPE)
        self.assertEqual(raised.exception.code, 66)
        with self.assertRaises(rangescope.CommandError):
            rangescope.load("no-such-run", runs=self.runs)

    def test_a_run_is_no_option(self):
        with self.assertRaisesRegex(rangescope.CommandError, "exit code 66"):
            rangescope.load("--help")
        for none in ("", "a\0b"):
            with self.assertRaises(ValueError):
                rangescope.load(none)


class Tags(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.text = set(), set(), ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attributes}

    def handle_data(self, data):
        self.text += data


class Hostile(unittest.TestCase):
    EVIL = "</title></svg><script>alert(1)</script><img src=x onerror=alert(1)>\"'\x1b[31m\u202e\x9b"

    def report(self, **more):
        region = {"id": 0, "parent": None, "depth": 0, "path": [self.EVIL], "domain": self.EVIL, "kind": self.EVIL, "process": None, "thread": None,
                  "occurrences": 1, "wall_ns": {"inclusive": 5, "exclusive": 5}, "bound": {"kind": self.EVIL}, "metrics": {}}
        verdict = {"kind": "k", "severity": "' onload='alert(1)", "path": self.EVIL, "text": self.EVIL, "next": self.EVIL}
        return {"schema": "rangescope.report/1", "run": {"id": self.EVIL, "duration_ns": 5}, "regions": [region], "verdict": [verdict], **more}

    def test_names_do_not_become_html(self):
        known = Tags(rangescope.load(golden("nsys/zoo.sqlite"))._repr_html_())
        seen = Tags(rangescope.Run(self.report(), "x")._repr_html_())
        self.assertIn("<script>", seen.text)
        self.assertLessEqual(seen.tags, known.tags)
        self.assertLessEqual(seen.attributes, known.attributes)
        self.assertNotIn("script", known.tags)
        change = {"path": [self.EVIL], "values": {self.EVIL: {"values": [1, 2], "changes": [{"ratio": 2, "low": None, "high": None, "p": None, "standing": self.EVIL}]}}}
        for text in (seen.text, rangescope.Comparison({"regions": [change]})._repr_html_(), repr(rangescope.Run(self.report(), "x").regions)):
            self.assertNotRegex(text, "[\x1b\x9b\u202e]")
            self.assertNotIn("<img", Tags(text).tags)
        self.assertLessEqual(Tags(rangescope.Comparison({"regions": [change]})._repr_html_()).tags, {"div", "table", "tr", "th", "td"})

    def test_a_line_has_what_to_try_and_what_that_saves(self):
        shown = Tags(rangescope.load(golden("nsys/work.sqlite"))._repr_html_()).text
        self.assertIn("in steady state (saves up to 742.4 ms)", shown)
        self.assertIn("Try: Use CUDA graphs or larger batches", shown)

    def test_a_large_report_is_a_small_page(self):
        region = self.report()["regions"][0]
        many = [{**region, "id": i, "parent": i - 1 if i else None, "path": [f"r{j}" * 50 for j in range(min(i, 20) + 1)]} for i in range(20000)]
        self.assertLess(len(rangescope.Run(self.report(regions=many), "x")._repr_html_()), 100_000)
        flat = [{**region, "id": i} for i in range(20000)]
        self.assertLess(len(rangescope.Run(self.report(regions=flat), "x")._repr_html_()), 100_000)
        loop = [{**region, "id": 0, "parent": 0}, {**region, "id": 1, "parent": 1}, {**region, "id": None, "parent": None}]
        self.assertLess(len(rangescope.Run(self.report(regions=loop), "x")._repr_html_()), 100_000)

    def test_what_is_no_report_is_refused(self):
        texts = ["", "[]", "5", "null", "{}", '{"schema": 5}', '{"schema": "rangescope.report/2"}', "[" * 100000, '{"schema": "rangescope.compare/1"}', "\xff\xfe"]
        with tempfile.TemporaryDirectory() as folder:
            for text in texts:
                with open(f"{folder}/report.json", "w", encoding="latin-1") as f:
                    f.write(text)
                with self.assertRaises(rangescope.ReportError, msg=text[:20]):
                    rangescope.load(folder)
            with open(f"{folder}/report.json", "w", encoding="utf-16") as f:
                f.write('{"schema": "rangescope.report/1"}')
            self.assertRaises(rangescope.ReportError, rangescope.load, folder)
            os.truncate(f"{folder}/report.json", 3 << 30)  # nothing on the disk
            with self.assertRaisesRegex(rangescope.ReportError, "at most 256 MiB"):
                rangescope.load(folder)
            os.unlink(f"{folder}/report.json")
            os.mkfifo(f"{folder}/report.json")  # nobody writes into it
            self.assertRaises(rangescope.CommandError, rangescope.load, folder)

    def test_a_value_of_another_type_is_named(self):
        for regions in (5, {}, [5], [None], ["x"], [{"path": "text"}], [{"occurrences": "many", "path": []}], [{"wall_ns": {"exclusive": True}, "path": []}],
                        [{"wall_ns": 5, "path": [None, 5, {}], "metrics": 5}], [{"path": [], "gpu": [], "metrics": {"a": 5}, "cpu": {"functions": [5]}}]):
            run = rangescope.Run(self.report(regions=regions), "x")
            for use in (lambda: run.rows(), lambda: run._repr_html_(), lambda: run.functions, lambda: repr(run)):
                try:
                    use()
                except rangescope.ReportError as error:
                    self.assertRegex(str(error), "report")
        self.assertRaisesRegex(rangescope.ReportError, "occurrences is str", lambda: rangescope.Run(self.report(regions=[{"path": [], "occurrences": "many"}]), "x").rows())

    def test_a_page_of_values_of_another_type_is_refused(self):
        for more in ({"run": {"id": "x", "duration_ns": "long"}}, {"losses": 5}, {"run": {"id": "x", "duration_ns": [1]}}):
            self.assertRaisesRegex(rangescope.ReportError, "another type", rangescope.Run(self.report(**more), "x")._repr_html_)
        change = {"path": ["step"], "values": {"wall": {"values": ["1", "2"], "changes": [{"ratio": "twice", "standing": "s"}]}}}
        self.assertRaises(rangescope.ReportError, rangescope.Comparison({"regions": [change]})._repr_html_)

    def test_a_resource_of_mcp_hides_no_characters(self):
        server = mcp.Server.__new__(mcp.Server)
        server.stored = []
        said = types.SimpleNamespace(stdout="# report\n| a\x1b[2J | \u202e |\n")
        with unittest.mock.patch.object(mcp, "call", lambda *_: said):
            read = server.resources_read({"uri": "rangescope://runs/x"})
        self.assertEqual(read["contents"][0]["text"], "# report\n| a\\u001b[2J | \\u202e |\n")

    def test_plain(self):
        self.assertEqual(page.plain("a b\tc\x1b[0m\u2028é"), "a b\\u0009c\\u001b[0m\\u2028é")
        self.assertEqual(len(page.plain("x" * 10**6)), 160)


if __name__ == "__main__":
    cases.main()
